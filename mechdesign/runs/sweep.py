"""Run a sweep: what is missing in its folder, on one machine or on a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base import _lazy
from mechdesign.base._check import as_integer
from mechdesign.base._errors import ExportError, InputError, MechdesignError
from mechdesign.certify import _bundle as bundle
from mechdesign.runs._engines import (
    Outcome,
    check_workers,
    connected,
    count_processes,
    in_processes,
    in_this_process,
    interrupted,
    on_cluster,
)
from mechdesign.runs._store import Row, State, Store
from mechdesign.runs._sweep_page import write_report
from mechdesign.runs._tasks import Sweep, Task, parse, prepare, read
from mechdesign.synthesis._folders import check_writable

__all__ = ["Moment", "Result", "Sweep", "parse", "read", "run"]
__dir__ = _lazy.listing(__all__)


@dataclass(frozen=True)
class Moment:
    """How far a sweep is.

    Attributes:
        rows: Rows that are asked for.
        done: Rows that are finished, in this run or before, however they ended.
        failed: Those of them that failed.
        seconds: Time since this run began.
        rate: Rows a second in this run, 0 before its first one.
        left: Seconds that the rest will take at this rate, or None before the first row.
    """

    rows: int
    done: int
    failed: int
    seconds: float
    rate: float
    left: float | None


@dataclass(frozen=True)
class Result:
    """What is in the folder of a sweep.

    Attributes:
        folder: The folder.
        rows: The rows there are, in the order asked for.
        columns: The columns of its table.
        asked: How many rows were asked for.
        interrupted: Whether Ctrl-C ended the run.
    """

    folder: Path
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    asked: int
    interrupted: bool

    def count(self, state: State) -> int:
        """Return how many rows ended so."""
        return sum(row.state is state for row in self.rows)


def run(
    spec: Sweep | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    progress: Callable[[Moment], None] | None = None,
) -> Result:
    """Make a certified design for each of the values that a sweep lists.

    The rows are the same wherever they are solved. Each is solved with one thread, unless ``[solver]`` says otherwise,
    and is written, as a whole, when it is done. A row that fails says so in the table, and the others go on. After
    Ctrl-C the finished rows are there; ``resume=True`` runs the rest, as it does after a crash.

    Args:
        spec: A specification with a ``[sweep]`` table: a file, or what `read` and `parse` return.
        folder: A folder, made where there is none.
        jobs: How many processes of this machine to use, by default as many as there are
            processors that this process may use; 1 is this process.
        dask: The address of the scheduler of a Dask cluster to use instead. Its workers need the same versions of the
            package and its solvers, and the data at the same place.
        resume: Whether the folder may hold rows of this sweep already.
        progress: Called with a `Moment` at the start and whenever a row is done.

    Returns:
        The rows, finished or not.

    Raises:
        SpecificationError: A key or a value is wrong, in whichever row; nothing has been run.
        RecordsError: The folder holds something else: another sweep, of another version, other files, or rows and
            `resume` is false; or the data changed meanwhile.
        InputError: `dask` does not answer, or one of its workers has another version; or ``LOKY_MAX_CPU_COUNT`` is set
            to something else than a number.
        ClusterError: The cluster was lost.
        ExportError: A row cannot be written, as on a full disk; those before it are kept.
    """
    sweep = spec if isinstance(spec, Sweep) else read(spec)
    if jobs is not None:
        jobs = as_integer(jobs, "jobs", 1)
        if dask is not None:
            raise InputError("jobs", "is for this machine, and the sweep is to run on a Dask cluster", value=jobs)
    # An explicit number does not help where joblib itself stumbles over its variable.
    most = 1 if jobs == 1 or dask is not None else count_processes()
    processes = jobs or most
    request, tasks = prepare(sweep)
    check_writable(Path(folder))
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connected(dask)) if dask is not None else None
        if client is not None:
            check_workers(client, tasks.values())
        store = Store(folder, request, resume=resume)
        missing = [tasks[key] for key in store.missing()]
        with _Claims(store) as claims:
            if client is not None:
                outcomes = on_cluster(client, claims.taken(missing))
            elif (count := min(processes, len(missing))) > 1:
                outcomes = in_processes(claims.taken(missing), count)
            else:
                outcomes = in_this_process(claims.taken(missing))
            stopped = _collect(store, claims, outcomes, _Clock(store, progress))
        return _finish(store, sweep, stopped)


class _Claims:
    """The rows that this run has taken, so that no other one runs them at the same time."""

    def __init__(self, store: Store) -> None:
        self.under_way: dict[str, Task] = {}
        self._store = store
        self._held: dict[str, contextlib.ExitStack] = {}

    def __enter__(self) -> _Claims:
        return self

    def __exit__(self, *_: object) -> None:
        for key in [*self._held]:
            self.release(key)

    def taken(self, tasks: list[Task]) -> Iterator[Task]:
        """Yield the tasks that nobody else has, each when it is asked for."""
        for task in tasks:
            held = contextlib.ExitStack()
            if not held.enter_context(self._store.claim(task.key)):
                held.close()
                continue
            self._held[task.key] = held
            self.under_way[task.key] = task
            yield task

    def release(self, key: str) -> None:
        """Give a row back, finished or not."""
        self.under_way.pop(key, None)
        self._held.pop(key).close()


class _Clock:
    """Says how far the sweep is."""

    def __init__(self, store: Store, progress: Callable[[Moment], None] | None) -> None:
        states = [row.state for row in store.rows() if row.state.final]
        self._rows = len(store.request.descriptions)
        self._before = self._done = len(states)
        self._failed = states.count(State.FAILED)
        self._started = time.perf_counter()
        self._progress = progress
        self._tell()

    def ended(self, row: Row) -> None:
        self._done += row.state.final
        self._failed += row.state is State.FAILED
        self._tell()

    def _tell(self) -> None:
        if self._progress is None:
            return
        seconds = time.perf_counter() - self._started
        rate = (self._done - self._before) / seconds
        left = (self._rows - self._done) / rate if rate else None
        self._progress(Moment(self._rows, self._done, self._failed, seconds, rate, left))


def _collect(store: Store, claims: _Claims, outcomes: Iterator[Outcome], clock: _Clock) -> bool:
    """Write each outcome when it comes; return whether Ctrl-C ended it."""
    try:
        for outcome in outcomes:
            _write(store, outcome)
            claims.release(outcome.row.identity)
            clock.ended(outcome.row)
            if outcome.row.state is State.INTERRUPTED:
                # In this process the solver caught Ctrl-C.
                return True
    except KeyboardInterrupt:
        for task in [*claims.under_way.values()]:
            # Of a row that was just being written, the finished one stays.
            row = store.row(task.key)
            if row is None or not row.state.final:
                store.write(interrupted(task))
        return True
    except MechdesignError:
        with contextlib.suppress(ExportError):
            store.tabulate()
        raise
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()
    return False


def _write(store: Store, outcome: Outcome) -> None:
    """Write the channel, then the row: where there is a row, its channel is complete."""
    if outcome.files:
        folder = store.folder / str(outcome.row.values["channel"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{folder} cannot be made: {error.strerror or error}") from error
        bundle.write(folder, outcome.files)
    store.write(outcome.row)


def _finish(store: Store, sweep: Sweep, stopped: bool) -> Result:
    rows, columns = tuple(store.rows()), tuple(store.request.columns)
    store.tabulate()
    write_report(store.folder, sweep, rows, columns)
    return Result(store.folder, rows, columns, len(sweep), stopped)
