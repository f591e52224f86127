"""Engines of a sweep: solve tasks in this process, in several processes with joblib, or on a Dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._check import require_kind
from mechdesign.base._errors import (
    BracketWarning,
    ClusterError,
    InputError,
    MechdesignError,
    MetricWarning,
    MissingDependencyError,
    RevealedWarning,
    SerialWarning,
    SolverInterruptedError,
    StateError,
    TimeLimitError,
)
from mechdesign.base._machine import count_processors
from mechdesign.base._warnings import suppress_warnings, warn
from mechdesign.certify._certificate import Certificate
from mechdesign.model._problem_words import cost_measure
from mechdesign.runs._store import Row, State, Value
from mechdesign.runs._tasks import Task, number_columns, versions_for
from mechdesign.solve._blas import blas_threads
from mechdesign.solve._contract import Status
from mechdesign.specification._origin import file_digest
from mechdesign.specification._specification import from_tables
from mechdesign.synthesis._bundle import encode

if TYPE_CHECKING:
    from mechdesign.synthesis._result import Design


_STATES = {Status.INTERRUPTED: State.INTERRUPTED, Status.TIME_LIMIT: State.CENSORED}


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task: its row, and the files of its certified channel, or no files without a channel."""

    row: Row
    files: dict[str, bytes]


@in_own_arithmetic
def solve(task: Task) -> TaskOutcome:
    """Design the mechanism of a task, with one thread by default; an error becomes a failed row.

    Raises `StateError` if data or versions of packages differ from those in the identity of the row.
    """
    _check_same(task)
    started = time.perf_counter()
    try:
        # The sweep has already warned about metrics, and the row contains the facts of the two other warnings: status,
        # gap, and number of revealed secrets.
        with suppress_warnings(MetricWarning, BracketWarning, RevealedWarning):
            given = from_tables(task.tables, task.folder)
            threads = given.settings.threads or 1
            with blas_threads(threads):
                made = given.design(threads=threads)
                files = encode(made.problem, made.channel, made.certificate, made.evidence(), made.origin)
    except TimeLimitError as error:
        return _outcome_without_channel(task, State.CENSORED, str(error), started)
    except SolverInterruptedError as error:
        return _outcome_without_channel(task, State.INTERRUPTED, str(error), started)
    except Exception as error:  # Other rows do not depend on this error.
        return _outcome_without_channel(task, State.FAILED, f"{type(error).__name__}: {error}", started)
    return TaskOutcome(_row(task, made, time.perf_counter() - started), files)


def make_failed_outcome(task: Task, message: str) -> TaskOutcome:
    """Return the outcome of a task that failed."""
    return TaskOutcome(Row(task.key, State.FAILED, {**_before(task), "status": State.FAILED, "message": message}), {})


def make_interrupted_row(task: Task) -> Row:
    """Return the row of a task that the user stopped."""
    values = {**_before(task), "status": State.INTERRUPTED, "message": "stopped by the user"}
    return Row(task.key, State.INTERRUPTED, values)


def _outcome_without_channel(task: Task, state: State, message: str, started: float) -> TaskOutcome:
    seconds = round(time.perf_counter() - started, 3)
    values = {**_before(task), "status": state, "solve_seconds": seconds, "message": message}
    return TaskOutcome(Row(task.key, state, values), {})


def _before(task: Task) -> dict[str, Value]:
    """Return the known values of a row without a channel."""
    return {name: value for name, value in task.columns.items() if name != "channel"}


def _row(task: Task, made: Design, seconds: float) -> Row:
    certificate, summary = made.certificate, made.summary
    state = _STATES.get(made.status, State.DONE)
    values: dict[str, Value] = {
        **task.columns,
        "status": state,
        "cost": certificate.cost,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
        **_list_realised(certificate),
        "revealed": len(certificate.revealed or ()),
        "solver": summary.solver,
        "solve_seconds": summary.seconds if summary.seconds is not None else round(seconds, 3),
        "iterations": summary.iterations,
        "message": made.status.value,
    }
    details = {
        "provenance": dict(certificate.provenance),
        "objective": certificate.objective,
        "unit": cost_measure(made.problem).unit,
        "seconds": round(seconds, 3),
    }
    return Row(task.key, state, values, details)


def _list_realised(certificate: Certificate) -> dict[str, Value]:
    pairs, floors = certificate.epsilon, certificate.distortion
    names = number_columns("tight_epsilon", len(pairs)) + number_columns("distortion", len(floors))
    return dict(zip(names, pairs + floors, strict=True))


def _check_same(task: Task) -> None:
    solver = str(task.tables.get("solver", {}).get("name", "auto"))
    found = versions_for(solver)
    for name, wanted in task.versions.items():
        if found.get(name) != wanted:
            raise StateError(
                f"a worker has {name} {found.get(name, 'not installed')}, but the sweep was started with {wanted}. "
                "Install the same version on the worker, and resume"
            )
    for name, digest in task.data.items():
        path = task.folder / name
        if _digest_now(path) != digest:
            raise StateError(
                f"{path} has changed since the sweep began. Restore it and resume, or sweep into another folder"
            )


def _digest_now(path: Path) -> str:
    try:
        return file_digest(path)
    except InputError as error:
        raise StateError(f"{path} cannot be read by a worker: {error.problem}") from error


_ANSWER_TIMEOUT_S = 5.0
# Seconds without any worker after which the sweep stops; a restarted worker needs less time.
_MAX_S_WITHOUT_WORKERS = 60.0
# Tasks sent for each thread: a task is being solved while the next task is sent.
_TASKS_PER_THREAD = 2
# Seconds between queries of the number of threads, since workers may come and go.
_CAPACITY_INTERVAL_S = 2.0
_PATH = "dask"


@contextlib.contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, for the duration of the context.

    Raises `MissingDependencyError` without the package ``distributed``. Raises `InputError` if the scheduler does not
    answer within a few seconds, or the cluster has no workers.
    """
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("a Dask cluster needs the extra dask: pip install 'mechdesign[dask]'") from error
    require_kind(address, str, _PATH, 'the address of a Dask scheduler, such as "tcp://127.0.0.1:8786"')
    try:
        # A client that cannot connect would keep trying in the background, so test the connection separately.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(asyncio.run, _check_reachable(address)).result()
        client = distributed.Client(address, timeout=_ANSWER_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            _PATH,
            f"does not answer ({str(error) or type(error).__name__})",
            value=address,
            bound='the address of a Dask scheduler, such as "tcp://127.0.0.1:8786"',
            remedy="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from error
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            remedy = f"start some with `dask worker {address}`"
            raise InputError(_PATH, "has no workers", value=address, bound="a cluster with workers", remedy=remedy)
        yield client
    finally:
        client.close()


def check_workers(client: Any, tasks: Iterable[Task]) -> None:
    """Raise `InputError` unless all workers have our versions and data.

    Raises `ClusterError` if the cluster is lost.
    """
    from distributed.comm import CommClosedError

    versions: dict[str, str] = {}
    data: dict[str, str] = {}
    solvers: dict[str, None] = {}
    for task in tasks:
        versions |= task.versions
        data |= {str(task.folder / name): digest for name, digest in task.data.items()}
        solvers[str(task.tables.get("solver", {}).get("name", "auto"))] = None
    try:
        found = client.run(_facts, list(solvers), list(data), on_error="return")
    except OSError as error:
        raise ClusterError(f"the Dask cluster was lost ({error}); nothing was run") from error
    for worker, facts in found.items():
        if isinstance(facts, CommClosedError):
            # The worker has ended: the scheduler sends no tasks to it.
            continue
        if isinstance(facts, BaseException):
            remedy = f"install mechdesign {versions['mechdesign']} there"
            raise InputError(_PATH, f"the worker {worker} cannot run mechdesign ({facts})", remedy=remedy)
        _compare(worker, "has other versions", facts[0], versions, "install the same versions on the worker")
        _compare(worker, "does not have the same data", facts[1], data, "put the files at the same path on the worker")


def on_cluster(client: Any, tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
    """Yield the outcomes of tasks from the workers of a cluster, in the order of completion.

    If a worker is lost, the scheduler sends its tasks to other workers; a task that loses too many workers is a failed
    row. Raises `ClusterError` if the scheduler is lost, or has had no workers for a minute.
    """
    import distributed

    tasks = iter(tasks)
    under_way: dict[Any, Task] = {}
    workers, capacity, asked = _WorkerWatch(client), _capacity(client), time.monotonic()
    try:
        while True:
            if time.monotonic() - asked > _CAPACITY_INTERVAL_S:
                capacity, asked = _capacity(client), time.monotonic()
            for task in itertools.islice(tasks, max(0, capacity - len(under_way))):
                # A unique name, so that results of an earlier sweep on the cluster are not used.
                name = f"{task.key}-{id(under_way)}"
                under_way[client.submit(solve, task, key=name, pure=False)] = task
            if not under_way:
                return
            for future in _first_done(workers, list(under_way)):
                outcome = _outcome(future, under_way[future], distributed.KilledWorker)
                if outcome is None:
                    # The worker with the result of this task was lost: the scheduler runs the task again.
                    workers.require()
                    continue
                del under_way[future]
                yield outcome
                future.release()
    except (OSError, distributed.CancelledError) as error:
        raise ClusterError(f"the Dask cluster was lost ({error}); finished rows are kept. Resume the sweep") from error
    finally:
        with contextlib.suppress(Exception):
            client.cancel(list(under_way))


async def _check_reachable(address: str) -> None:
    """Connect to a scheduler and disconnect; raise an `OSError` if no scheduler answers."""
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=_ANSWER_TIMEOUT_S, **Security().get_connection_args("client"))
    await comm.close()


def _facts(solvers: list[str], paths: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions and digests of a worker."""
    versions: dict[str, str] = {}
    for solver in solvers:
        versions |= versions_for(solver)
    return versions, {path: file_digest(Path(path)) for path in paths if Path(path).exists()}


def _compare(worker: str, problem: str, found: Mapping[str, str], wanted: Mapping[str, str], remedy: str) -> None:
    wrong = [name for name in wanted if found.get(name) != wanted[name]]
    if wrong:
        raise InputError(
            _PATH,
            f"the worker {worker} {problem}",
            value={name: found.get(name) for name in wrong},
            bound=str({name: wanted[name] for name in wrong}),
            remedy=remedy,
        )


def _capacity(client: Any) -> int:
    threads: int = sum(client.nthreads().values())
    return max(1, threads) * _TASKS_PER_THREAD


class _WorkerWatch:
    """The time at which the cluster last had a worker."""

    def __init__(self, client: Any) -> None:
        self.client, self._seen = client, time.monotonic()

    def require(self) -> None:
        """Raise `ClusterError` if there has been no worker for a minute."""
        if self.client.nthreads():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen >= _MAX_S_WITHOUT_WORKERS:
            raise ClusterError("the Dask cluster has no workers left; finished rows are kept. Start some, and resume")


def _first_done(workers: _WorkerWatch, futures: list[Any]) -> list[Any]:
    """Wait for futures, and return the finished futures."""
    import distributed

    while True:
        with contextlib.suppress(TimeoutError), workers.client.as_current():
            return list(distributed.wait(futures, timeout=_pause_seconds(), return_when="FIRST_COMPLETED").done)
        workers.require()


def _outcome(future: Any, task: Task, killed: type[BaseException]) -> TaskOutcome | None:
    """Return the outcome of a finished future, or None if its result does not arrive."""
    try:
        outcome: TaskOutcome = future.result(timeout=_pause_seconds())
    except TimeoutError:
        return None
    except killed:
        return make_failed_outcome(task, "every worker with this task was killed, possibly for lack of memory")
    return outcome


def _pause_seconds() -> float:
    """Return the seconds to wait between two checks for workers."""
    return _MAX_S_WITHOUT_WORKERS / 12


# Maximal number of attempts for a task whose process is killed; later attempts run alone.
_MAX_ATTEMPTS = 3
_JOBLIB_LIMIT = "LOKY_MAX_CPU_COUNT"


def count_processes() -> int:
    """Return the default number of processes of a sweep: the processors available to this process, or joblib's limit.

    Raises `InputError` if the variable with joblib's limit is not a positive integer.
    """
    most = os.environ.get(_JOBLIB_LIMIT)
    if most is None:
        return count_processors()
    if not (most.isascii() and most.isdigit() and int(most) >= 1):
        remedy = "unset this environment variable"
        raise InputError(
            _JOBLIB_LIMIT, "is not a number of processes", value=most, bound="an integer >= 1", remedy=remedy
        )
    return min(int(most), count_processors())


def in_this_process(tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
    """Yield the outcomes of tasks, one after the other."""
    return map(solve, tasks)


def in_processes(tasks: Iterable[Task], jobs: int) -> Iterator[TaskOutcome]:
    """Yield the outcomes of tasks from `jobs` processes, in the order of completion.

    If a process is killed, for example for lack of memory, the unfinished tasks run again, one at a time. A task whose
    process is killed at every attempt is a failed row. Without shared memory or threads, tasks run in this process,
    with a `SerialWarning`.
    """
    taken = _TaskQueue(tasks)
    under_way = taken.under_way
    while True:
        try:
            with contextlib.closing(_outcomes(taken, jobs)) as outcomes:
                for outcome in outcomes:
                    del under_way[outcome.row.identity]
                    yield outcome
                return
        except MechdesignError:
            raise
        except Exception as error:  # The type of the error depends on the resource that the system refuses.
            if taken.failed:
                raise
            if not _is_killed(error):
                said = " ".join(str(error).split()) or type(error).__name__
                message = f"processes cannot share work on this machine ({said}): rows are solved one after the other"
                warn(message, SerialWarning, stacklevel=2)
                break
        for task in [*under_way.values()]:
            yield _retry_alone(task)
            del under_way[task.key]
    yield from in_this_process([*under_way.values()])
    yield from in_this_process(taken.left)


class _TaskQueue(Iterable[Task]):
    """An iterator over tasks, which records the running tasks and whether the creation of a task has failed."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.left = iter(tasks)
        self.under_way: dict[str, Task] = {}
        self.failed = False

    def __iter__(self) -> Iterator[Task]:
        try:
            for task in self.left:
                self.under_way[task.key] = task
                yield task
        except Exception:
            self.failed = True
            raise


def _retry_alone(task: Task) -> TaskOutcome:
    """Return the outcome of a task whose process was killed, possibly because of another task."""
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            with contextlib.closing(_outcomes([task], 2)) as outcomes:
                return next(outcomes)
        except Exception as error:
            if not _is_killed(error):
                raise
    return make_failed_outcome(task, f"its process was killed {_MAX_ATTEMPTS} times, possibly for lack of memory")


def _is_killed(error: Exception) -> bool:
    """Return whether an error means that a process of joblib was killed."""
    loky = sys.modules.get("joblib.externals.loky.process_executor")
    return loky is not None and isinstance(error, loky.TerminatedWorkerError)


def _outcomes(tasks: Iterable[Task], jobs: int) -> Generator[TaskOutcome, None, None]:
    # joblib reads environment variables when it is imported, and rejects some of their values.
    import joblib.parallel
    from joblib import Parallel, delayed, parallel_config

    if joblib.parallel.mp is None:
        raise OSError("joblib finds no shared memory, or JOBLIB_MULTIPROCESSING=0 disables it")
    # Take a task only when a process is free, so that the tasks under way are known.
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        workers = Parallel(return_as="generator_unordered", pre_dispatch=jobs, batch_size=1, max_nbytes=None)
        yield from workers(delayed(_solve)(task) for task in tasks)


def _solve(task: Task) -> TaskOutcome:
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal, but only the first process handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return solve(task)
