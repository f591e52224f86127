"""Share ledgers, series and traces between threads and processes in random ways, with kills and forks.

Each interleaving is a process that creates one object with a budget and passes it to 2 to 8 workers. Workers are
threads, forked processes that inherit the object, processes that open its file, or processes forked by a working
thread. Each worker releases until it is refused, and logs its releases *after* each call has returned. Some processes
get SIGKILL at a random moment; sometimes this is the process that created the object.

In every case, releases must not exceed records, records must not exceed the budget, no worker may wait forever, and the
object must remain usable.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import mechdesign as md
from mechdesign.errors import BudgetExceededError, LeakageExceededError, MechdesignError
from mechdesign.leakage.accounting import Ledger
from mechdesign.tables import Domain, Histogram, Policy
from mechdesign.traces import Trace

TIMEOUT_S = 60.0
"""A worker that has not finished after this time is assumed to wait permanently."""

MOVES = [[0.8, 0.2], [0.2, 0.8]]


class Kept(ABC):
    """A kind of object that keeps a budget, with its files in a folder; releases are exact numbers ε."""

    kind = ""
    in_file = True
    """Whether the object has a file, which other processes can open."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.budget = Fraction(rng.choice(["1", "0.3", "2"]))
        self.share = rng.choice(["0.1", "0.05", "0.3", "1"])
        # True if the budget limits the sum of all ε, and False if it limits only the leakage of each release.
        self.limits_sum = True

    @abstractmethod
    def make(self) -> Any:
        """Create the object."""

    def opened(self) -> Any:
        """Return the object, opened by its file in another process; kinds without a file raise an error."""
        raise AssertionError(f"{self.kind} has no file")

    @abstractmethod
    def release(self, kept: Any) -> Iterator[str]:
        """Release once or several times; yield each release only after its call has returned."""

    @abstractmethod
    def recorded(self, kept: Any) -> tuple[Fraction, bool]:
        """Return the recorded spending, and whether it is within the budget."""

    def handed(self, kept: Any, rng: random.Random) -> Any:
        """Return the object for a worker: the object itself, a copy, or a deep copy."""
        return rng.choice([lambda: kept, lambda: copy.copy(kept), lambda: copy.deepcopy(kept)])()


class LedgerInMemory(Kept):
    """A ledger without a path."""

    kind, in_file = "ledger in memory", False

    def make(self) -> Any:
        return Ledger(epsilon=self.budget)

    def release(self, kept: Any) -> Iterator[str]:
        kept.spend("an answer", "one record", epsilon=self.share)
        yield self.share

    def recorded(self, kept: Any) -> tuple[Fraction, bool]:
        spent = kept.spent.epsilon or Fraction(0)
        return spent, spent <= self.budget


class LedgerFile(LedgerInMemory):
    """A ledger with a path, which may be pickled."""

    kind, in_file = "ledger in a file", True

    def make(self) -> Any:
        return Ledger(epsilon=self.budget, path=self.folder / "ledger.json")

    def opened(self) -> Any:
        # The first process creates the file and sets the budget.
        return Ledger(epsilon=self.budget, path=self.folder / "ledger.json")

    def handed(self, kept: Any, rng: random.Random) -> Any:
        return pickle.loads(pickle.dumps(kept)) if rng.random() < 0.25 else super().handed(kept, rng)


class Histograms(LedgerFile):
    """Releases from a table, charged to a ledger with a path."""

    kind = "table releases"

    def release(self, kept: Any) -> Iterator[str]:
        policy = Policy.full(Domain({"a": range(2)}))
        Histogram().release({"a": [0, 1, 1]}, policy, epsilon=self.share, ledger=kept)
        yield self.share


class SeriesInMemory(LedgerInMemory):
    """A ledger with a series in memory, whose leakages add up or are lost in part from step to step."""

    kind = "series in memory"

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self.matrix = rng.choice([[[1.0, 0.0], [0.0, 1.0]], MOVES])
        self.plan = rng.choice([None, ("equal", 3), [self.share] * 2])
        self.limits_sum = self.matrix is not MOVES

    def make(self) -> Any:
        ledger = Ledger()
        self.add_series(ledger)
        return ledger

    def add_series(self, ledger: Ledger) -> None:
        try:
            ledger.add_series(alpha=self.budget, backward=None, forward=self.matrix, plan=self.plan, history="others")
        except (BudgetExceededError, LeakageExceededError):
            # The list of budgets exceeds the promise.
            ledger.add_series(alpha=self.budget, backward=None, forward=self.matrix, history="others")

    def release(self, kept: Any) -> Iterator[str]:
        step = random.randrange(4)
        planned = kept.series.planned(step)
        epsilon = self.share if planned is None else planned or Fraction(1, 1000)
        arguments = {"complete": 2, "gap": True, "planned": planned is not None and planned > 0}
        kept.spend("an answer", "one record", epsilon=epsilon, step=step, **arguments)
        yield str(epsilon)

    def recorded(self, kept: Any) -> tuple[Fraction, bool]:
        spent, leakages = kept.spent.epsilon or Fraction(0), kept.series.leakage.values()
        return spent, all(leakage <= float(self.budget) for leakage in leakages)


class SeriesFile(SeriesInMemory):
    """A ledger with a series in a file, whose plan is replaced now and then."""

    kind, in_file = "series in a file", True

    def make(self) -> Any:
        ledger = Ledger(path=self.folder / "ledger.json")
        self.add_series(ledger)
        return ledger

    def opened(self) -> Any:
        ledger = Ledger(path=self.folder / "ledger.json")
        if ledger.series is None:
            # The process that makes the series was killed before.
            self.add_series(ledger)
        return ledger

    def handed(self, kept: Any, rng: random.Random) -> Any:
        return pickle.loads(pickle.dumps(kept)) if rng.random() < 0.25 else super().handed(kept, rng)

    def release(self, kept: Any) -> Iterator[str]:
        if random.random() < 0.2:
            kept.series.plan = None
        yield from super().release(kept)


class TraceInMemory(Kept):
    """A trace with a ledger in memory, whose stages are sampled repeatedly."""

    kind, in_file = "trace, ledger in memory", False

    def make(self) -> Any:
        self.ledger = self.made_ledger()
        city, chain = md.Domain.grid(2, 1, 2.0, 1.0), md.MarkovChain(MOVES)
        rules = {"mechanism": "randomised-response", "ledger": self.ledger}
        trace = Trace(city, md.graphs.complete(2), self.share, chain, md.Prior.uniform(2), **rules)
        if self.rng.random() < 0.5:
            # This fits the mechanism of the step beforehand; the trace itself does not change.
            trace.table(1)
        return trace

    def made_ledger(self) -> Any:
        return Ledger(epsilon=self.budget)

    def handed(self, kept: Any, rng: random.Random) -> Any:
        return kept if rng.random() < 0.8 else copy.copy(kept)

    def release(self, kept: Any) -> Iterator[str]:
        stage = kept.step(0).stage
        yield self.share
        stage.draw(1)
        yield self.share

    def recorded(self, kept: Any) -> tuple[Fraction, bool]:
        spent = self.ledger.spent.epsilon or Fraction(0)
        return spent, spent <= self.budget


class TraceFile(TraceInMemory):
    """Traces with one ledger in a file; each process that opens the ledger creates a separate trace."""

    kind, in_file = "trace, ledger in a file", True

    def made_ledger(self) -> Any:
        return Ledger(epsilon=self.budget, path=self.folder / "ledger.json")

    def opened(self) -> Any:
        return self.make()


KINDS: tuple[type[Kept], ...] = (
    LedgerInMemory, LedgerFile, Histograms, SeriesInMemory, SeriesFile, TraceInMemory, TraceFile,
)  # fmt: skip


@dataclass
class Shared:
    """The shared state of the workers of one interleaving: the log, and one end of a pipe."""

    kept: Any
    keeper: Kept
    log: int

    def work(self, rng: random.Random, get: Callable[[], Any], rounds: int) -> None:
        """Release until refused, and log the releases."""
        try:
            kept = get()
            for _ in range(rounds):
                time.sleep(rng.random() * 0.003)
                for released in self.keeper.release(kept):
                    os.write(self.log, f"released {released}\n".encode())
        except MechdesignError as error:
            os.write(self.log, f"refused {type(error).__name__}\n".encode())
        except BaseException:
            os.write(self.log, ("failed " + traceback.format_exc().replace("\n", " | ") + "\n").encode())

    def forked(self, rng: random.Random, get: Callable[[], Any], rounds: int) -> int:
        """Fork a worker process, and return its process id."""
        child = os.fork()
        if child == 0:
            try:
                self.work(rng, get, rounds)
            finally:
                os._exit(0)
        return child


def interleave(keeper: Kept, rng: random.Random, log: int) -> None:
    """Create the object and start the workers, as the process of an interleaving."""
    sys.setswitchinterval(rng.choice([1e-6, 1e-5, 5e-3]))
    kept = keeper.make()
    shared = Shared(kept, keeper, log)
    if rng.random() < 0.3:
        shared.work(rng, lambda: kept, 1)
    threads, children = [], []
    for _ in range(rng.randint(2, 8)):
        own, rounds = random.Random(rng.random()), rng.randint(1, 4)
        handed = lambda own=own: keeper.handed(kept, own)  # noqa: E731
        ways = ["thread", "thread", "fork", "fork from a thread"] + ["open"] * keeper.in_file
        match rng.choice(ways):
            case "thread":
                threads.append(threading.Thread(target=shared.work, args=(own, handed, rounds)))
                threads[-1].start()
            case "fork":
                children.append(shared.forked(own, handed, rounds))
            case "open":
                children.append(shared.forked(own, keeper.opened, rounds))
            case _:

                def both(own: random.Random = own, handed: Callable[[], Any] = handed, rounds: int = rounds) -> None:
                    shared.work(own, handed, 1)
                    children.append(shared.forked(own, handed, rounds))
                    shared.work(own, handed, rounds)

                threads.append(threading.Thread(target=both))
                threads[-1].start()
        time.sleep(rng.random() * 0.002)
    for child in list(children):
        if rng.random() < 0.3:
            time.sleep(rng.random() * 0.01)
            os.kill(child, signal.SIGKILL)
    for thread in threads:
        thread.join()
    for child in children:
        os.waitpid(child, 0)
    spent, within = keeper.recorded(kept)
    os.write(log, f"recorded {spent} {within}\n".encode())


@dataclass(frozen=True)
class Ended:
    """The result of an interleaving: the violated conditions, and the number of log lines of each kind."""

    faults: tuple[str, ...]
    lines: Counter[str]
    killed: bool


def run(make: type[Kept], seed: int) -> Ended:
    """Run one interleaving in separate processes, and check the remaining state."""
    rng = random.Random(f"{make.kind} {seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keeper = make(folder, rng)
        kill = rng.random() < 0.25
        reading, holding = os.pipe()
        log = os.open(folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        with warnings.catch_warnings():
            # Python warns about forks of processes with threads, which this test makes on purpose.
            warnings.simplefilter("ignore")
            root = os.fork()
            if root == 0:
                try:
                    # A tracer such as coverage may hold a lock during a fork; the new process would wait for this lock
                    # forever.
                    sys.settrace(None)
                    threading.settrace(None)  # type: ignore[arg-type]
                    os.setsid()
                    os.close(reading)
                    interleave(keeper, rng, log)
                except BaseException:
                    os.write(log, ("failed " + traceback.format_exc().replace("\n", " | ") + "\n").encode())
                finally:
                    os._exit(0)
        os.close(holding)
        if kill:
            _wait_for_a_line(folder / "log")
            time.sleep(random.Random(seed).random() * 0.02)
            os.kill(root, signal.SIGKILL)
        # The pipe is closed when the last process that has opened it ends.
        done = bool(select.select([reading], [], [], TIMEOUT_S)[0])
        os.close(reading)
        if not done:
            os.killpg(root, signal.SIGKILL)
        os.waitpid(root, 0)
        os.close(log)
        text = (folder / "log").read_text()
        faults = list(_faults(text, keeper, kill)) if done else ["somebody waits for ever"]
    return Ended(tuple(faults), Counter(line.split(" ")[0] for line in text.splitlines()), kill)


def _wait_for_a_line(log: Path) -> None:
    """Wait until a worker writes something, for at most a second."""
    until = time.monotonic() + 1.0
    while not log.stat().st_size and time.monotonic() < until:
        time.sleep(0.001)


def _faults(text: str, keeper: Kept, killed: bool) -> Iterator[str]:
    lines = [line.split(" ", 2) for line in text.splitlines()]
    yield from (" ".join(line) for line in lines if line[0] == "failed")
    released = sum((Fraction(line[1]) for line in lines if line[0] == "released"), Fraction(0))
    if keeper.limits_sum and released > keeper.budget:
        yield f"released {released} of {keeper.budget}"
    known = [(Fraction(line[1]), line[2] == "True") for line in lines if line[0] == "recorded"]
    if keeper.in_file and any(keeper.folder.glob("*.json")):
        # After all kills, opening the files again must not wait for a lock.
        left = keeper.opened()
        known.append(_recorded_after(keeper, left))
    elif not killed and not known:
        yield "nothing was recorded"
    for recorded, within in known:
        if released > recorded:
            yield f"released {released}, recorded {recorded}"
        if not within:
            yield f"recorded {recorded} of {keeper.budget}"


def _recorded_after(keeper: Kept, left: Any) -> tuple[Fraction, bool]:
    keeper.recorded(left)
    try:
        # This last release is not counted; the object must make it or refuse it.
        for _ in keeper.release(left):
            break
    except MechdesignError:
        pass
    recorded, within = keeper.recorded(left)
    return recorded, within
