"""Kill designs, sweeps, releases, ledgers and series at random moments, and look for incomplete files and lost charges.

    python benchmarks/attacks/crash_safety.py [--kills 1000] [--seed 7] [--only ledger]

Each victim is a forked process that repeats one job, reports each finished round, and gets SIGKILL at a random moment.
The next process continues with the files that the killed process has left. After every kill the files are read as a
user would read them. The script counts incomplete files, which readers must *report*, and faults, which must not occur.
A fault is a set of incomplete or mixed files that a reader accepts, or a finished round that is lost.
"""

from __future__ import annotations

import os
import sys

# Processes are forked, so no library may have running threads.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import contextlib
import hashlib
import io
import itertools
import json
import random
import select
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import psutil

import mechdesign as md
from mechdesign.certify._bundle import write
from mechdesign.cli import main as command
from mechdesign.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, origin

DESIGN = """
title = "{title}"
domain.line = {n}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ kind = "metric", epsilon = 1, distance = "euclidean" }}]
solver = {{ name = "highs-simplex" }}
"""
SWEPT = '[sweep]\n"privacy.0.epsilon" = {}\n'
TRACE = """
domain.grid = { columns = 3, rows = 2, width = 3, height = 2 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 0.5, blocks = 3 }]
release = { transition = { neighbours = 8 } }
"""
WALK = "state\n0\n1\n4\n"
TABLE = "age\n" + "3\n1\n7\n" * 20
DATABASE = """
table.person = false
domain.attributes.age = { range = [0, 9] }
policy = { kind = "threshold", theta = 1 }
release = { kind = "ranges", epsilon = "1/1000", ranges = [[0, 2], [3, 9]] }
ledger = { path = "ledger.json", epsilon = 100 }
"""
SPENT = "1/1000"
Say = Callable[[], None]


class Victim(ABC):
    """A job that is repeated forever in a folder, and the conditions that the folder must meet after every kill.

    `done` counts the rounds that all processes so far have reported as finished.
    """

    # Number of processes that work in the folder at the same time.
    processes = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done = 0
        self.prepare()

    def prepare(self) -> None:  # noqa: B027
        """Write the input files of the job, if it needs any."""

    @abstractmethod
    def work(self, say: Say) -> None:
        """Repeat the job; call `say` after each round."""

    @abstractmethod
    def faults(self, killed: int) -> list[str]:
        """Return the faults after a number of kills; "incomplete" counts files that readers report as incomplete."""


class Export(Victim):
    """Two sets of files that overwrite one another as fast as possible."""

    def prepare(self) -> None:
        """Design both sets, in another process: a solver may start threads."""
        self.sets: list[dict[str, bytes]] = []
        for name, n in (("old", 4), ("new", 5)):
            text = DESIGN.format(title=name, n=n)
            apart(
                lambda text=text, name=name: md.save(
                    md.specification.parse(text).design(), self.folder / name, report=n_is_odd(name)
                )
            )
            self.sets.append(content(self.folder / name))
        self.certificates = [md.verify(self.folder / name) for name in ("old", "new")]

    def work(self, say: Say) -> None:
        """Repeatedly overwrite one set of files with the other."""
        for files in itertools.cycle(self.sets):
            write(self.folder / "set", files)
            say()

    def faults(self, killed: int) -> list[str]:
        """Require either one complete set without other files, or a set that readers report as incomplete."""
        try:
            found = md.verify(self.folder / "set")
        except CertificateError as error:
            incomplete = "incomplete bundle" in error.reason or "is not a folder" in error.reason
            return ["incomplete" if incomplete else f"refused for another reason: {error.reason}"]
        seen = {name: each for name, each in content(self.folder / "set").items() if not name.startswith(".")}
        for files, certificate in zip(self.sets, self.certificates, strict=True):
            if not found.differences(certificate):
                return [] if seen == files else ["a mixture of two sets was accepted"]
        return ["an unknown certificate was accepted"]


class Design(Export):
    """`mechdesign design` for one problem and then for another, into the same folder."""

    def work(self, say: Say) -> None:
        """Repeatedly run the command, alternately for both specifications."""
        for name, n in itertools.cycle((("old", 4), ("new", 5))):
            path = self.folder / f"{name}.toml"
            path.write_text(DESIGN.format(title=name, n=n), encoding="utf-8")
            report = [] if n_is_odd(name) else ["--no-report"]
            run("design", path, "-o", self.folder / "set", "--overwrite", *report)
            say()

    def faults(self, killed: int) -> list[str]:
        """Require either a set that verifies, without other files, or a set that readers report as incomplete."""
        found = [fault for fault in super().faults(killed) if fault != "a mixture of two sets was accepted"]
        # The bytes differ from run to run, because files contain times, so file names must show whether two sets are
        # mixed.
        names = {path.name for path in (self.folder / "set").glob("[!.]*")}
        if not found and not any(names == set(files) for files in self.sets):
            found.append(f"files of two sets stand side by side: {sorted(names)}")
        return found


class Sweep(Victim):
    """Two processes that sweep ever more values into one folder."""

    processes = 2

    def prepare(self) -> None:
        """Know no finished point."""
        self.known: dict[Path, int] = {}

    def work(self, say: Say) -> None:
        """Run the command for one value more than there are designs, again and again."""
        while True:
            count = len(self.done_points()) + 1
            text = DESIGN.format(title="sweep", n=4) + SWEPT.format([step / 100 for step in range(1, count + 1)])
            path = self.folder / f"{os.getpid()}.toml"
            path.write_text(text, encoding="utf-8")
            run("sweep", path, "-o", self.folder / "out", "--jobs", 1)
            say()

    def done_points(self) -> dict[Path, int]:
        """Return when each design was finished."""
        return {path: path.stat().st_mtime_ns for path in (self.folder / "out").glob("*/certificate.json")}

    def faults(self, killed: int) -> list[str]:
        """Require that each finished design remains as it was, and verifies; at the end a call finishes all."""
        now = self.done_points()
        faults = [f"{path} was lost or made twice" for path, time in self.known.items() if now.get(path) != time]
        for path in now.keys() - self.known.keys():
            md.verify(path.parent)
        self.known = now
        apart(lambda: self.work(_enough))
        left = [path for path in (self.folder / "out").rglob("*") if path.name.startswith((".", "claim"))]
        faults += [f"{path} was left" for path in left if (path.parent / "certificate.json").exists()]
        known, self.known = self.known, self.done_points()
        faults += [f"{path} was made twice" for path, time in known.items() if self.known.get(path) != time]
        rows = (self.folder / "out" / "results.csv").read_text(encoding="utf-8").splitlines()
        return faults + ["results.csv has not all designs"] * (len(rows) != 1 + len(self.known))


class Release(Victim):
    """`mechdesign release` for the same trace, repeatedly into the same folder."""

    def prepare(self) -> None:
        """Write specification and trace."""
        (self.folder / "s.toml").write_text(TRACE, encoding="utf-8")
        (self.folder / "t.csv").write_text(WALK, encoding="utf-8")

    def work(self, say: Say) -> None:
        """Run the command."""
        while True:
            files = (self.folder / "s.toml", self.folder / "t.csv", "-o", self.folder / "out")
            run("release", *files, "--channels", "--overwrite")
            say()

    def faults(self, killed: int) -> list[str]:
        """Require complete files, and files of one run if there is a manifest."""
        folder = self.folder / "out"
        steps = WALK.count("\n") - 1
        faults = [
            f"{path.name} is half written"
            for path in filter(written, folder.glob("[!.]*.csv"))
            if path.read_bytes().count(b"\n") != steps + 1
        ]
        for path in filter(written, folder.glob("[!.]*.json")):
            with contextlib.suppress(ValueError):
                json.loads(path.read_bytes())
                continue
            faults.append(f"{path.name} is half written")
        if not written(folder / "release.json"):
            return [*faults, "incomplete"]
        for name, digest in json.loads((folder / "release.json").read_bytes())["files"].items():
            if not (folder / name).exists() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
                faults.append(f"the manifest lists {name}, but the folder has other files")
        for step in range(steps):
            try:
                md.verify(folder / "channels" / f"step-{step}")
            except CertificateError as error:
                faults.append(f"step {step} of a whole release does not verify: {error.reason}")
        return faults


class Ledger(Victim):
    """Three processes that charge one ledger."""

    processes = 3

    def work(self, say: Say) -> None:
        """Repeatedly charge the ledger."""
        ledger = md.Ledger(1000, path=self.folder / "ledger.json")
        while True:
            ledger.spend("a count", "one record", epsilon=SPENT)
            say()

    def faults(self, killed: int) -> list[str]:
        """Require every charge that returned, and at most one further charge for each kill."""
        return self.counted("ledger", len(md.Ledger(1000, path=self.folder / "ledger.json").entries), killed)

    def counted(self, name: str, count: int, killed: int) -> list[str]:
        """Compare the number of charges with the finished rounds; each kill may have interrupted one round."""
        if count < self.done:
            return [f"the {name} forgot {self.done - count} of {self.done} charges"]
        return [f"the {name} holds {count} for {self.done} rounds"] if count > self.done + killed else []


class Series(Ledger):
    """Three processes that charge one ledger with a series, at random time steps, and replace its plan."""

    def prepare(self) -> None:
        """Create the ledger and its series."""
        ledger = md.Ledger(1000, path=self.folder / "ledger.json")
        flows = [[0.8, 0.2], [0.2, 0.8]]
        ledger.add_series(alpha=3, backward=flows, forward=flows, plan=("equal", 1000), history="others")

    def work(self, say: Say) -> None:
        """Repeatedly charge the ledger, at a step that the plan or what is left allows."""
        ledger = md.Ledger(1000, path=self.folder / "ledger.json")
        while True:
            step = random.randrange(1000)
            with contextlib.suppress(md.errors.BudgetExceededError, md.errors.LeakageExceededError):
                if random.random() < 0.1:
                    ledger.series.plan = ("equal", 10)
                ledger.spend("a count", "one record", epsilon=SPENT, step=step, complete=2, gap=True)
                say()

    def faults(self, killed: int) -> list[str]:
        """Require every charge that returned, at most one further charge for each kill, and no leakage above α."""
        ledger = md.Ledger(1000, path=self.folder / "ledger.json")
        found = self.counted("ledger", len(ledger.entries), killed)
        return found + ["a leakage exceeds α"] * (max(ledger.series.leakage.values(), default=0.0) > 3)


class Database(Ledger):
    """`mechdesign table`: the ledger is charged before the answers are drawn."""

    processes = 1

    def prepare(self) -> None:
        """Write specification and table."""
        (self.folder / "s.toml").write_text(DATABASE, encoding="utf-8")
        (self.folder / "t.csv").write_text(TABLE, encoding="utf-8")

    def work(self, say: Say) -> None:
        """Publish into a new folder and into a folder with an older release."""
        for number in itertools.count():
            for name in ("same", f"{os.getpid()}-{number}"):
                files = (self.folder / "s.toml", self.folder / "t.csv", "-o", self.folder / name)
                run("table", *files, "--no-report", "--overwrite")
                say()

    def faults(self, killed: int) -> list[str]:
        """Require a charge for every published release, and that all files belong to one release."""
        ledger = md.Ledger(path=self.folder / "ledger.json") if (self.folder / "ledger.json").exists() else None
        entries = 0 if ledger is None else len(ledger.entries)
        faults = self.counted("ledger", entries, killed)
        if ledger is not None and ledger.spent.epsilon != entries * Fraction(SPENT):
            faults.append("the ledger does not add up")
        published = [path for path in self.folder.iterdir() if (path / "answers.csv").exists()]
        if len(published) > entries:
            faults.append(f"{len(published)} releases for {entries} charges")
        for folder in published:
            if not written(folder / "release.json"):
                faults.append("incomplete")
                continue
            described = json.loads((folder / "release.json").read_bytes())
            answers = (folder / "answers.csv").read_bytes()
            if hashlib.sha256(answers).hexdigest() != described["answers_sha256"]:
                faults.append(f"{folder.name}: release.json belongs to another release than the answers")
            if not written(folder / "ranges.csv"):
                faults.append(f"{folder.name}: a whole release lacks its ranges")
            elif (folder / "ranges.csv").stat().st_mtime_ns > (folder / "release.json").stat().st_mtime_ns:
                faults.append(f"{folder.name}: release.json belongs to an earlier release than the ranges")
        return faults


class Benchmark(Victim):
    """`mechdesign.bench`, whose results are found again by the process that continues."""

    def prepare(self) -> None:
        """Remember the results after each kill."""
        self.rows: dict[str, bytes] = {}

    def work(self, say: Say) -> None:
        """Run a suite of many small problems."""
        os.environ["VICTIM"] = str(self.folder)
        suite = md.bench.Suite("kills", {"grid": (4,)}, tuple(range(1000)), 60.0, 4.0)
        md.bench.run(suite, ["highs-simplex"], self.folder / "out", progress=lambda *_: say())

    def faults(self, killed: int) -> list[str]:
        """Require every finished run as it was, at most one more for each kill, and no process that goes on."""
        now = {path.name: path.read_bytes() for path in (self.folder / "out" / "rows").glob("[!.]*")}
        faults = ["a result is gone or was written again"] * bool(self.rows.items() - now.items())
        faults += ["a result is half written"] * (not all(json.loads(each)["ended"] == "done" for each in now.values()))
        if not self.done <= len(now) <= self.done + killed:
            faults.append(f"{len(now)} results for {self.done} rounds")
        self.rows = now
        limit = time.monotonic() + PATIENCE
        while orphans(self.folder):
            if time.monotonic() > limit:
                return [*faults, "a process of the benchmark goes on"]
        return faults


def orphans(folder: Path) -> list[int]:
    """Return the processes that belong to a victim's folder, without those that nobody waits for."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("VICTIM") == str(folder):
                found.append(process.pid)
    return found


VICTIMS = (Export, Design, Sweep, Release, Ledger, Series, Database, Benchmark)
# Number of kills after which a victim starts in a new folder, as its files grow.
KILLS_IN_A_FOLDER = 25
# Seconds within which the threads of a finished job must end.
PATIENCE = 5.0


def n_is_odd(name: str) -> bool:
    """Return whether a set has a report: only the new set has one, so that mixing both sets is noticed."""
    return name == "new"


def written(path: Path) -> bool:
    """Return whether a file has content; a file of an older set is emptied before it is written again."""
    return path.is_file() and path.stat().st_size > 0


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(*arguments: object) -> None:
    """Run a command in this process; a round that the command refuses is none."""
    try:
        command.main([str(argument) for argument in arguments])
    except SystemExit as ended:
        if ended.code:
            raise SystemExit(f"mechdesign {arguments[0]} ends with the exit code {ended.code}") from None


def silent() -> None:
    """Suppress all further output of this process."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)


def apart(job: Callable[[], object]) -> None:
    """Run a job in a forked process."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            silent()
            job()
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("a victim could not be prepared")


def start(victim: Victim) -> tuple[int, int]:
    """Fork a process for the job; return its process id and the pipe that reports finished rounds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        os.read(reading, 1)
        return child, reading
    with contextlib.suppress(BaseException):
        os.close(reading)
        silent()
        os.write(writing, b"!")
        victim.work(lambda: os.write(writing, b"."))
    os._exit(1)


class EnoughError(Exception):
    """Report a finished round."""


def _enough() -> None:
    os._exit(0)


def warm(victim: Victim) -> None:
    """Do a round in this process, so that forked processes need no imports; no thread may remain afterwards."""

    def stop() -> None:
        victim.done += 1
        raise EnoughError

    with (
        contextlib.suppress(EnoughError),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        victim.work(stop)
    # A thread that has already ended may remain in the system's list for a moment.
    limit = time.monotonic() + PATIENCE
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < limit:
        time.sleep(0.001)
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit(f"{type(victim).__name__.lower()}: a job left threads behind, which forks do not survive")


def slay(victim: Victim, longest: float, chance: random.Random) -> int:
    """Start the victim's processes, kill each at a random moment, and count its rounds; return the number of kills."""
    running = [(*start(victim), chance.uniform(0, longest)) for _ in range(victim.processes)]
    begun, killed = time.monotonic(), 0
    for child, reading, moment in sorted(running, key=lambda each: each[2]):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        killed += end(victim, child, reading)
    return killed


def end(victim: Victim, child: int, reading: int) -> bool:
    """Kill a process, and count the rounds that it reported; return whether it was still alive."""
    os.kill(child, signal.SIGKILL)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    while said := os.read(reading, 2**16):
        victim.done += len(said)
    os.close(reading)
    return killed


def time_of_rounds(victim: Victim, rounds: int = 3) -> float:
    """Let a victim work for some rounds, and kill it."""
    child, reading = start(victim)
    begun = time.monotonic()
    for _ in range(rounds):
        if not select.select([reading], [], [], 300)[0] or not os.read(reading, 1):
            raise SystemExit(f"{type(victim).__name__.lower()}: the job itself fails")
        victim.done += 1
    seconds = time.monotonic() - begun
    end(victim, child, reading)
    return seconds


def main() -> None:
    """Kill, check and print; exit with 1 if a file was incomplete or a charge was lost."""
    given = options(__doc__, kills=1000, seed=7, only="")
    chance = random.Random(given.seed)
    victims = [kind for kind in VICTIMS if given.only.lower() in kind.__name__.lower()]
    total, faults = 0, 0
    print(f"{'victim':12} kills  rounds  incomplete  faults")
    for kind in victims:
        kills, rounds, found = 0, 0, Counter[str]()
        while kills < -(-given.kills // len(victims)):
            with tempfile.TemporaryDirectory() as name:
                victim = kind(Path(name))
                warm(victim)
                longest, here = time_of_rounds(victim), 1
                while here < KILLS_IN_A_FOLDER and kills + here <= -(-given.kills // len(victims)):
                    here += slay(victim, longest, chance)
                    found.update(victim.faults(here))
                kills, rounds = kills + here, rounds + victim.done
        incomplete = found.pop("incomplete", 0)
        total, faults = total + kills, faults + found.total()
        print(f"{kind.__name__.lower():12} {kills:5} {rounds:7} {incomplete:11} {found.total():7}", flush=True)
        for fault, count in found.most_common(5):
            print(f"    {count} times: {fault}", flush=True)
    print(f"{total} kills: {faults} faults; {origin()}")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
