"""Run a sweep: solve the missing designs of its folder, on one machine or on a cluster."""

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
    TaskOutcome,
    check_workers,
    connect,
    count_processes,
    in_processes,
    in_this_process,
    make_interrupted_row,
    on_cluster,
)
from mechdesign.runs._store import Row, State, Store
from mechdesign.runs._tasks import Sweep, Task, parse, prepare, read
from mechdesign.synthesis._folders import check_writable

__all__ = ["Moment", "Result", "Sweep", "parse", "read", "run"]
__dir__ = _lazy.listing(__all__)


@dataclass(frozen=True)
class Moment:
    """The progress of a sweep.

    Attributes:
        rows: Number of requested rows.
        done: Number of rows that are finished in any state, by this run or an earlier run.
        failed: Number of failed rows among the finished rows.
        seconds: Time since this run began.
        rate: Rows per second in this run, 0 before its first row.
        left: Estimated seconds for the remaining rows, or None before the first row.

    Example:
        >>> Moment(rows=10, done=5, failed=0, seconds=2.0, rate=2.5, left=2.0).left
        2.0
    """

    rows: int
    done: int
    failed: int
    seconds: float
    rate: float
    left: float | None


@dataclass(frozen=True)
class Result:
    """The contents of the folder of a sweep.

    Attributes:
        folder: The folder.
        rows: The existing rows, in the order of the request.
        columns: The columns of the table.
        asked: Number of requested rows.
        interrupted: Whether Ctrl-C ended the run.

    Example:
        >>> Result(Path("designs"), (), ("epsilon", "cost"), asked=3, interrupted=False).asked
        3
    """

    folder: Path
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    asked: int
    interrupted: bool

    def count(self, state: State) -> int:
        """Return the number of rows in a state.

        Args:
            state: A state of rows.

        Returns:
            The number of rows.
        """
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
    """Solve the designs of a sweep, and write a table, a page and the certified channels into a folder.

    Results do not depend on the engine. Each design uses one thread, unless ``[solver]`` sets another number, and its
    row is written when it is done. A failed row does not stop the others. After Ctrl-C or a crash finished rows remain,
    and ``resume=True`` runs the others.

    Args:
        spec: A specification with a ``[sweep]`` table: the path of a file, or the result of `read` or `parse`.
        folder: Folder of the results, created if missing.
        jobs: Number of processes of this machine, by default the number of processors available to this process; 1
            means this process.
        dask: Address of the scheduler of a Dask cluster, which is used instead of local processes. The workers need the
            same versions of the package and its solvers, and the data at the same path.
        resume: Whether the folder may already contain rows of this sweep.
        progress: Function that is called with a `Moment` at the start and after each row.

    Returns:
        The rows, finished or not.

    Raises:
        SpecificationError: If a key or a value of any row is invalid; nothing has been run.
        StateError: If the folder contains another sweep, another version or other files, or contains rows and
            `resume` is false, or the data changed during the run.
        InputError: If `dask` does not answer, or one of its workers has another version, or ``LOKY_MAX_CPU_COUNT`` is
            not a positive integer.
        ClusterError: If the cluster was lost.
        ExportError: If a row cannot be written, for example on a full disk; earlier rows are kept.
        MissingDependencyError: If the package of the cluster is not installed; nothing has been run.

    Example:
        >>> run("sweep.toml", "designs")  # doctest: +SKIP
    """
    sweep = spec if isinstance(spec, Sweep) else read(spec)
    if jobs is not None:
        jobs = as_integer(jobs, "jobs", 1)
        if dask is not None:
            raise InputError("jobs", "cannot be combined with a Dask cluster", value=jobs)
    from mechdesign.runs._sweep_page import write_report

    # joblib rejects an invalid limit even if `jobs` is given.
    most = 1 if jobs == 1 or dask is not None else count_processes()
    processes = jobs or most
    request, tasks = prepare(sweep)
    check_writable(Path(folder))
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connect(dask)) if dask is not None else None
        if client is not None:
            check_workers(client, tasks.values())
        store = Store(folder, request, resume=resume)
        missing = [tasks[key] for key in store.missing()]
        with _Claims(store) as claims:
            if client is not None:
                outcomes = on_cluster(client, claims.take(missing))
            elif (count := min(processes, len(missing))) > 1:
                outcomes = in_processes(claims.take(missing), count)
            else:
                outcomes = in_this_process(claims.take(missing))
            stopped = _collect(store, claims, outcomes, _Clock(store, progress))
        store.tabulate()
        rows, columns = tuple(store.rows()), tuple(store.request.columns)
        write_report(store.folder, sweep, rows, columns)
        return Result(store.folder, rows, columns, len(sweep), stopped)


class _Claims:
    """Rows that this run has claimed, so that no other run solves them at the same time."""

    def __init__(self, store: Store) -> None:
        self.under_way: dict[str, Task] = {}
        self._store = store
        self._held: dict[str, contextlib.ExitStack] = {}

    def __enter__(self) -> _Claims:
        return self

    def __exit__(self, *_: object) -> None:
        for key in [*self._held]:
            self.release(key)

    def take(self, tasks: list[Task]) -> Iterator[Task]:
        """Yield the tasks that no other process has claimed, each when it is requested."""
        for task in tasks:
            held = contextlib.ExitStack()
            if not held.enter_context(self._store.claim(task.key)):
                held.close()
                continue
            self._held[task.key] = held
            self.under_way[task.key] = task
            yield task

    def release(self, key: str) -> None:
        """Release a row, finished or not."""
        self.under_way.pop(key, None)
        self._held.pop(key).close()


class _Clock:
    """A counter of finished rows that reports the progress."""

    def __init__(self, store: Store, progress: Callable[[Moment], None] | None) -> None:
        states = [row.state for row in store.rows() if row.state.final]
        self._rows = len(store.request.descriptions)
        self._before = self._done = len(states)
        self._failed = states.count(State.FAILED)
        self._started = time.perf_counter()
        self._progress = progress
        self._report()

    def count(self, row: Row) -> None:
        self._done += row.state.final
        self._failed += row.state is State.FAILED
        self._report()

    def _report(self) -> None:
        if self._progress is None:
            return
        seconds = time.perf_counter() - self._started
        rate = (self._done - self._before) / seconds
        left = (self._rows - self._done) / rate if rate else None
        self._progress(Moment(self._rows, self._done, self._failed, seconds, rate, left))


def _collect(store: Store, claims: _Claims, outcomes: Iterator[TaskOutcome], clock: _Clock) -> bool:
    """Write each outcome when it arrives; return whether Ctrl-C ended the run."""
    try:
        for outcome in outcomes:
            _write(store, outcome)
            claims.release(outcome.row.identity)
            clock.count(outcome.row)
            if outcome.row.state is State.INTERRUPTED:
                # The solver ran in this process and has handled Ctrl-C.
                return True
    except KeyboardInterrupt:
        for task in [*claims.under_way.values()]:
            # A row that was being written at the interruption is kept if it is complete.
            row = store.row(task.key)
            if row is None or not row.state.final:
                store.write(make_interrupted_row(task))
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


def _write(store: Store, outcome: TaskOutcome) -> None:
    """Write the channel, then the row: if a row exists, its channel is complete."""
    if outcome.files:
        folder = store.folder / str(outcome.row.values["channel"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{folder} cannot be made: {error.strerror or error}") from error
        bundle.write(folder, outcome.files)
    store.write(outcome.row)
