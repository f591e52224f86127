"""Sweeps: a certified design for each combination of listed values; the folders of the designs are the record."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mechdesign.base import _lazy
from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._check import as_integer, as_path, as_truth, require_kind
from mechdesign.base._errors import (
    BracketWarning,
    ClusterError,
    ExportError,
    InputError,
    MechdesignError,
    MetricWarning,
    MissingDependencyError,
    ReportError,
    RevealedWarning,
    SolverError,
    SolverInterruptedError,
    StateError,
)
from mechdesign.base._machine import count_processors
from mechdesign.base._version import __version__
from mechdesign.base._warnings import suppress_warnings
from mechdesign.certify._texts import csv_text
from mechdesign.runs._points import (
    PAGE,
    RESULTS,
    Point,
    Record,
    Sweep,
    Value,
    cell,
    claiming,
    describe_claim,
    list_points,
    parse,
    points,
    read,
    read_record,
    tidy,
    write_design,
    write_failure,
)
from mechdesign.solve._contract import Status
from mechdesign.solve._threads import blas_threads
from mechdesign.specification._origin import data_files, file_digest, to_json
from mechdesign.specification._specification import from_tables
from mechdesign.synthesis._bundle import encode
from mechdesign.synthesis._folders import Wanted, check_folder
from mechdesign.synthesis._result import SolveSummary

__all__ = ["Point", "Sweep", "parse", "points", "run"]
__dir__ = _lazy.listing(__all__)

Row = Mapping[str, Value]

_PART = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
_PARTS = 'a part such as "3/16", from "1/16" to "16/16"'
_ADDRESS = 'the address of a Dask scheduler, such as "tcp://127.0.0.1:8786"'
_ANSWER_TIMEOUT_S = 5.0
# Packages whose versions must be the same everywhere.
_PACKAGES = ("mechdesign", "numpy", "scipy", "highspy")
# Errors of joblib and of Dask that say that a process was killed.
_KILLED = ("TerminatedWorkerError", "KilledWorker")
_KILLED_REASON = "a process was killed while this design or another one was made, possibly for lack of memory"
_LAST_COLUMNS = ("revealed", "solver", "solve_seconds", "iterations", "message", "channel")


def run(
    spec: Sweep | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    part: str | None = None,
    retry: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Row, ...]:
    """Make the missing designs of a sweep, each in a folder of its own, and write a table and a page of all.

    The folder of a point has the name of the point. It holds a certified bundle, or ``failed.json`` with the reason.
    A point is done if its bundle verifies and has the same specification, digests of data files and version of this
    package. After Ctrl-C, after a crash, or if values were added, the next call makes only the missing points.

    Results do not depend on the number of processes. Each design uses one thread, unless ``[solver]`` sets another
    number. Any number of calls may share a folder: each point is made by one of them.

    Args:
        spec: A specification with a ``[sweep]`` table: the path of a file, or the result of `parse`.
        folder: Folder of the results, created if missing.
        jobs: Number of processes of this machine, by default the number of processors available to this process; 1
            means this process.
        dask: Address of the scheduler of a Dask cluster, which is used instead of local processes. The workers need the
            same versions of the package and its solvers, and the data at the same path.
        part: Make only a part of the points, such as "3/16", and no table: the third of each sixteen points.
        retry: Whether to try failed points again, and points that a process of another host claimed. Nobody can ask
            whether such a process still runs, so no other call may be at work.
        progress: Function that is called with the number of finished points and the number of all, at the start and
            after each point.

    Returns:
        The rows of the table, which map columns to values, in the order of the points. The status of a row is "done",
        "censored" if a time limit ended the search, "failed", or "missing" if another call is still at work.

    Raises:
        SpecificationError: If a key or a value of any point is invalid; nothing has been run.
        StateError: If the folder holds another design of a point, one that does not verify, or data changed meanwhile.
        InputError: If `dask` does not answer or one of its workers has other versions, or an argument is wrong.
        ClusterError: If the cluster was lost.
        SolverError: If a process was killed; its points have failed, and other points are kept.
        ExportError: If the folder holds other files, or a file cannot be written; finished points are kept.
        MissingDependencyError: If the package of the cluster is not installed; nothing has been run.

    Example:
        >>> run("sweep.toml", "designs")  # doctest: +SKIP
    """
    sweep = spec if isinstance(spec, Sweep) else read(spec)
    target, again = Path(as_path(folder, "folder")), as_truth(retry, "retry")
    count, (first, step) = _count_processes(jobs, dask), _parse_part(part)
    asked = points(sweep)
    found = list_points(target)
    check_folder(target, {*found, RESULTS, PAGE}, "a sweep", first=dict.fromkeys(found, ""), others=bool(found))
    tasks = _plan(asked, target)
    mine = tasks[first::step]
    known = {task.point.name: read_record(task.folder, task.wanted) for task in mine}
    missing = [task for task in mine if (record := known[task.point.name]) is None or (again and record.reason)]
    for task in mine:
        if known[task.point.name] is not None:
            tidy(task.folder, again)
    done = len(mine) - len(missing)
    say = progress or (lambda done, total: None)
    say(done, len(mine))
    with _engine(min(count, len(missing)), dask if missing else None) as solve_all:
        try:
            with contextlib.closing(_make(missing, solve_all, again)) as made:
                for task, record in made:
                    known[task.point.name] = record
                    done += 1
                    say(done, len(mine))
        finally:
            # Other calls may have made some of the points meanwhile.
            known |= {
                task.point.name: read_record(task.folder, task.wanted) for task in mine if not known[task.point.name]
            }
            rows = tuple(_row(task, known[task.point.name]) for task in mine)
            if part is None and any(known.values()):
                _write_table(target, sweep, asked, rows)
    if part is None:
        _draw(target, sweep, rows)
    return rows


def _count_processes(jobs: int | None, dask: str | None) -> int:
    """Return the number of processes of this machine."""
    if dask is not None:
        require_kind(dask, str, "dask", _ADDRESS)
        if jobs is not None:
            raise InputError("jobs", "cannot be combined with a Dask cluster", value=jobs)
        return 1
    return count_processors() if jobs is None else as_integer(jobs, "jobs", 1)


def _parse_part(part: str | None) -> tuple[int, int]:
    """Return the first point of a part, and the step to its next point."""
    if part is None:
        return 0, 1
    require_kind(part, str, "part", _PARTS)
    found = _PART.fullmatch(part)
    if found is None or int(found[1]) > int(found[2]):
        raise InputError("part", "is not a part", value=part, bound=_PARTS)
    return int(found[1]) - 1, int(found[2])


@dataclass(frozen=True)
class _Task:
    """A point, the folder of its record, and what the record must say."""

    point: Point
    folder: Path
    wanted: Wanted


def _plan(asked: Sequence[Point], target: Path) -> list[_Task]:
    """Return the task of each point; each data file is read once."""
    digests: dict[str, str] = {}
    tasks = []
    for point in asked:
        tables, base = point.specification.tables, point.specification.folder
        names = data_files(tables)
        for name in names:
            if name not in digests:
                digests[name] = file_digest(base / name)
        wanted = Wanted(to_json(tables), {name: digests[name] for name in names})
        tasks.append(_Task(point, target / point.name, wanted))
    return tasks


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a task, from any process: the files of a bundle and its record, or no files."""

    task: _Task
    files: Mapping[str, bytes]
    record: Record


_SolveAll = Callable[[Iterator[_Task]], Iterator[_Outcome]]


def _make(missing: Sequence[_Task], solve_all: _SolveAll, retry: bool) -> Generator[tuple[_Task, Record], None, None]:
    """Yield each missing point with its record, which has been written; other processes may make some of them."""
    held: dict[str, contextlib.ExitStack] = {}
    under_way: dict[str, _Task] = {}

    def claim() -> Iterator[_Task]:
        for task in missing:
            with contextlib.ExitStack() as stack:
                if not stack.enter_context(claiming(task.folder, retry)):
                    continue
                # Another process may have finished the point before it was claimed.
                found = read_record(task.folder, task.wanted)
                if found is None or (retry and found.reason):
                    under_way[task.point.name] = task
                    held[task.point.name] = stack.pop_all()
                    yield task

    with contextlib.ExitStack() as whole:
        whole.callback(lambda: [*map(contextlib.ExitStack.close, [*held.values()])])
        try:
            outcomes = solve_all(claim())
            whole.callback(getattr(outcomes, "close", lambda: None))
            for outcome in outcomes:
                task = under_way.pop(outcome.task.point.name)
                _write(task, outcome)
                held.pop(task.point.name).close()
                yield task, outcome.record
        except MechdesignError:
            raise
        except Exception as error:  # Its type depends on what the system or the cluster refuses.
            if type(error).__name__ not in _KILLED:
                raise ClusterError(
                    f"the processes were lost or not started ({error}); finished points are kept. Call again, without "
                    "environment variables of joblib (LOKY_MAX_CPU_COUNT, JOBLIB_…), or with one process (--jobs 1)"
                ) from error
            for task in [*under_way.values()]:
                _write(task, _Outcome(task, {}, Record(reason=_KILLED_REASON, seconds=0.0)))
            raise SolverError(
                f"a process was killed, possibly for lack of memory: {len(under_way)} points failed. Call again for "
                "the other points, and with retry (--retry) and fewer jobs for these"
            ) from error


def _write(task: _Task, outcome: _Outcome) -> None:
    if outcome.files:
        write_design(task.folder, outcome.files)
    else:
        write_failure(task.folder, task.wanted, outcome.record.reason, outcome.record.seconds or 0.0)


@in_own_arithmetic
def _solve(task: _Task) -> _Outcome:
    """Design the mechanism of a task, with one thread by default; an error becomes a failure.

    Raises `StateError` if data or the version differ from those that the record must name.
    """
    _require_same(task)
    started, tables = time.perf_counter(), task.point.specification.tables
    try:
        # `points` has warned about metrics, and the row holds the facts of the two other warnings.
        with suppress_warnings(MetricWarning, BracketWarning, RevealedWarning):
            given = from_tables(tables, task.point.specification.folder)
            threads = given.settings.threads or 1
            with blas_threads(threads):
                made = given.design(threads=threads)
                files = encode(made.problem, made.channel, made.certificate, made.evidence(), made.origin)
    except SolverInterruptedError as error:
        raise KeyboardInterrupt from error
    except Exception as error:  # Other points do not depend on this error.
        reason, seconds = f"{type(error).__name__}: {error}", time.perf_counter() - started
        return _Outcome(task, {}, Record(reason=reason, seconds=round(seconds, 3)))
    if made.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    _require_same(task)
    return _Outcome(task, files, Record(made.certificate))


def _require_same(task: _Task) -> None:
    if task.wanted.version != __version__:
        raise StateError(f"a worker has mechdesign {__version__}, not {task.wanted.version}. Install the same version")
    for name, digest in task.wanted.files.items():
        path = task.point.specification.folder / name
        try:
            found = file_digest(path)
        except InputError as error:
            raise StateError(f"{path} cannot be read by a worker: {error.problem}") from error
        if found != digest:
            raise StateError(f"{path} has changed since the sweep began. Restore it, or sweep into another folder")


def _solve_apart(task: _Task, parent: int) -> _Outcome:
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal, but only the first process handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return _solve(task)


@contextlib.contextmanager
def _engine(count: int, dask: str | None) -> Iterator[_SolveAll]:
    """Yield a function that solves tasks in this process, in several ones, or on a cluster, in order of completion."""
    if dask is not None:
        with _connect(dask) as client:
            # On a cluster a task is claimed somewhat before it is sent to a free process.
            yield lambda tasks: _solve_in_parallel(tasks, "2 * n_jobs", backend="dask", client=client, n_jobs=-1)
    elif count > 1:
        yield lambda tasks: _solve_in_parallel(tasks, "n_jobs", backend="loky", n_jobs=count, inner_max_num_threads=1)
    else:
        yield lambda tasks: map(_solve, tasks)


def _solve_in_parallel(tasks: Iterator[_Task], ahead: str, **configuration: Any) -> Iterator[_Outcome]:
    """Solve tasks in processes, `ahead` of which are claimed at a time."""
    # joblib may refuse the values of its environment variables when it is imported.
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(**configuration):
        workers = Parallel(return_as="generator_unordered", pre_dispatch=ahead, batch_size=1, max_nbytes=None)
        outcomes: Iterator[_Outcome] = workers(delayed(_solve_apart)(task, os.getpid()) for task in tasks)
    return outcomes


@contextlib.contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address; raise an error unless it answers and its workers have our versions."""
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("a Dask cluster needs the extra dask: pip install 'mechdesign[dask]'") from error
    try:
        # A client that found no scheduler would wait, and then print a traceback. A notebook has an event loop already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _greet(address)).result()
        client = distributed.Client(address, timeout=_ANSWER_TIMEOUT_S, set_as_default=False)
    except Exception as error:  # Its type depends on the address and on who answers.
        problem = f"does not answer ({str(error) or type(error).__name__})"
        remedy = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        raise InputError("dask", problem, value=address, bound=_ADDRESS, remedy=remedy) from error
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            remedy = f"start some with `dask worker {address}`"
            raise InputError("dask", "has no workers", value=address, bound="a cluster with workers", remedy=remedy)
        _require_versions(client.run(_find_versions, on_error="return"))
        yield client
    finally:
        client.close()


async def _greet(address: str) -> None:
    """Connect to the scheduler at an address and exchange the first messages, as a client does."""
    from distributed import Security
    from distributed.comm import connect

    keys = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, timeout=_ANSWER_TIMEOUT_S, **keys), _ANSWER_TIMEOUT_S)
    await comm.close()


def _find_versions() -> dict[str, str | None]:
    return {name: find_version(name) for name in _PACKAGES}


def find_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _require_versions(workers: Mapping[str, Any]) -> None:
    """Raise `InputError` unless all workers have our versions; each worker gives its versions, or an error."""
    own = _find_versions()
    for worker, found in workers.items():
        remedy = f"install the same versions on the worker: mechdesign {own['mechdesign']}"
        if isinstance(found, OSError):
            # The worker has ended, so no point is sent to it.
            continue
        if isinstance(found, BaseException):
            raise InputError("dask", f"the worker {worker} cannot run mechdesign ({found})", remedy=remedy)
        wrong = [name for name in own if found[name] != own[name]]
        if wrong:
            said, bound = ({name: each[name] for name in wrong} for each in (found, own))
            problem = f"the worker {worker} has other versions"
            raise InputError("dask", problem, value=said, bound=str(bound), remedy=remedy)


def _row(task: _Task, record: Record | None) -> Row:
    """Return the row of a point in the table."""
    values: dict[str, Value] = {name: cell(value) for name, value in task.point.values.items()}
    if record is None:
        return values | {"status": "missing", "message": describe_claim(task.folder)}
    made = record.certificate
    if made is None:
        return values | {"status": "failed", "solve_seconds": record.seconds, "message": record.reason}
    summary = SolveSummary.from_provenance(made.provenance)
    realised = dict(zip(_number_columns("tight_epsilon", len(made.epsilon)), made.epsilon, strict=True))
    realised |= zip(_number_columns("distortion", len(made.distortion)), made.distortion, strict=True)
    return values | {
        "status": "censored" if summary.status is Status.TIME_LIMIT else "done",
        "cost": made.cost,
        "lower_bound": made.lower_bound,
        "relative_gap": made.relative_gap,
        **realised,
        "revealed": len(made.revealed or ()),
        "solver": summary.solver,
        "solve_seconds": summary.seconds,
        "iterations": summary.iterations,
        "message": summary.status.value,
        "channel": task.point.name,
    }


def _number_columns(name: str, count: int) -> list[str]:
    """Return `count` column names: the name, then the name with the suffix _2, _3 and so on."""
    return [name if number == 1 else f"{name}_{number}" for number in range(1, count + 1)]


def _write_table(target: Path, sweep: Sweep, asked: Sequence[Point], rows: Sequence[Row]) -> None:
    """Write ``results.csv``; a missing value is empty, and floats have all their digits."""
    kinds = [[entry.get("kind") for entry in point.specification.tables["privacy"]] for point in asked]
    floors = max(found.count("distortion") for found in kinds)
    pairs = max(len(found) - found.count("distortion") for found in kinds)
    columns = [
        *sweep.values, "status", "cost", "lower_bound", "relative_gap",
        *_number_columns("tight_epsilon", max(pairs, 1)), *_number_columns("distortion", floors), *_LAST_COLUMNS,
    ]  # fmt: skip
    cells = ((str(each).lower() if isinstance(each, bool) else each for each in map(row.get, columns)) for row in rows)
    try:
        make_folder(target)
    except OSError as error:
        raise ExportError(f"{target} cannot be made: {error.strerror or error}") from error
    write_file(target / RESULTS, [csv_text([columns, *cells]).encode()])


def _draw(target: Path, sweep: Sweep, rows: Sequence[Row]) -> None:
    """Write the page."""
    try:
        from mechdesign.runs._sweep_figure import html

        write_file(target / PAGE, [html(sweep, rows).encode()])
    except Exception as error:  # All else is written, so that only the page is missing.
        raise ReportError(f"all designs are in {target}; only {PAGE} is missing ({error})") from error
