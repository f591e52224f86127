"""One design solved: serial, joblib, Dask."""

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
    RecordsError,
    RevealedWarning,
    SerialWarning,
    SolverInterruptedError,
    TimeLimitError,
)
from mechdesign.base._machine import count_processors
from mechdesign.base._warnings import suppress_warnings, warn
from mechdesign.certify._certificate import Certificate
from mechdesign.data._text import file_digest
from mechdesign.model._problem_words import cost_measure
from mechdesign.model._requirements._kind import RequirementKind
from mechdesign.model._requirements._kinds import KINDS, register
from mechdesign.runs._store import Row, State, Value
from mechdesign.runs._tasks import Task, numbered, versions_for
from mechdesign.solve._blas import blas_threads
from mechdesign.solve._contract import Status
from mechdesign.specification._specification import from_tables
from mechdesign.synthesis._bundle import encode

if TYPE_CHECKING:
    from mechdesign.synthesis._result import Design


_STATES = {Status.INTERRUPTED: State.INTERRUPTED, Status.TIME_LIMIT: State.CENSORED}


@dataclass(frozen=True)
class Outcome:
    """How a task ended: its row, and the files of its certified channel, none where there is no channel."""

    row: Row
    files: dict[str, bytes]


@in_own_arithmetic
def solve(task: Task) -> Outcome:
    """Make a design, with one thread unless its specification says otherwise; an error becomes a failed row.

    Raises:
        RecordsError: The data, or the versions of packages, are not those that the identity of the row names.
    """
    for kind in task.kinds:
        # Reading the task has imported its module, which registers it perhaps.
        if kind.kind not in KINDS:
            register(kind)
    _check_same(task)
    started = time.perf_counter()
    try:
        # The sweep has warned of metrics before; the row has the status, the gap, and how many secrets are revealed.
        with suppress_warnings(MetricWarning, BracketWarning, RevealedWarning):
            given = from_tables(task.tables, task.folder)
            threads = given.settings.threads or 1
            with blas_threads(threads):
                made = given.design(threads=threads)
                files = encode(made.problem, made.channel, made.certificate, made.evidence(), made.origin)
    except TimeLimitError as error:
        return _ended(task, State.CENSORED, str(error), started)
    except SolverInterruptedError as error:
        return _ended(task, State.INTERRUPTED, str(error), started)
    except Exception as error:  # Whatever it is, the other rows do not depend on it.
        return _ended(task, State.FAILED, f"{type(error).__name__}: {error}", started)
    return Outcome(_row(task, made, time.perf_counter() - started), files)


def failed(task: Task, message: str) -> Outcome:
    """Return the outcome of a task that cannot be made."""
    return Outcome(Row(task.key, State.FAILED, {**_before(task), "status": State.FAILED, "message": message}), {})


def interrupted(task: Task) -> Row:
    """Return the row of a task that was stopped."""
    values = {**_before(task), "status": State.INTERRUPTED, "message": "stopped by the user"}
    return Row(task.key, State.INTERRUPTED, values)


def _ended(task: Task, state: State, message: str, started: float) -> Outcome:
    seconds = round(time.perf_counter() - started, 3)
    values = {**_before(task), "status": state, "solve_seconds": seconds, "message": message}
    return Outcome(Row(task.key, state, values), {})


def _before(task: Task) -> dict[str, Value]:
    """Return what is known of a row without a channel."""
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
        **_realised(certificate),
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


def _realised(certificate: Certificate) -> dict[str, Value]:
    pairs, floors = certificate.epsilon, certificate.distortion
    names = numbered("tight_epsilon", len(pairs)) + numbered("distortion", len(floors))
    return dict(zip(names, pairs + floors, strict=True))


def _check_same(task: Task) -> None:
    solver = str(task.tables.get("solver", {}).get("name", "auto"))
    found = versions_for(solver, task.kinds)
    for name, wanted in task.versions.items():
        if found.get(name) != wanted:
            raise RecordsError(
                f"a worker has {name} {found.get(name, 'not at all')}, and the sweep was begun with {wanted}. Install "
                "the same version there, and resume"
            )
    for name, digest in task.data.items():
        path = task.folder / name
        if _digest_now(path) != digest:
            raise RecordsError(
                f"{path} is not as it was when the sweep began. Restore it and resume, or sweep into another folder"
            )


def _digest_now(path: Path) -> str:
    try:
        return file_digest(path)
    except InputError as error:
        raise RecordsError(f"{path} cannot be read by a worker: {error.problem}") from error


_ANSWER = 5.0
# So long a cluster may be without a worker before the sweep gives up: killed ones are started again in less.
_WITHOUT_WORKERS = 60.0
# Tasks sent for each thread: one is solved while the next one is on its way.
_AHEAD = 2
# Workers may come and go: how many threads there are is asked now and then.
_ASK_AGAIN = 2.0
_PATH = "dask"


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, for as long as the context lasts.

    Raises:
        MissingDependencyError: ``distributed`` is not installed.
        InputError: Nothing answers there within seconds, or there is no worker.
    """
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("a Dask cluster needs the extra dask: pip install 'mechdesign[dask]'") from error
    require_kind(address, str, _PATH, 'the address of a Dask scheduler, such as "tcp://127.0.0.1:8786"')
    try:
        # A client that finds nobody would go on trying when it is forgotten.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(asyncio.run, _knock(address)).result()
        client = distributed.Client(address, timeout=_ANSWER, set_as_default=False)
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
    """Raise `InputError` unless all workers have the same versions and requirements as we have, and see the same data.

    Raises:
        ClusterError: The cluster was lost meanwhile.
    """
    from distributed.comm import CommClosedError
    from distributed.protocol import pickle

    versions: dict[str, str] = {}
    data: dict[str, str] = {}
    solvers: dict[str, None] = {}
    kinds: dict[type[RequirementKind], None] = {}
    for task in tasks:
        versions |= task.versions
        data |= {str(task.folder / name): digest for name, digest in task.data.items()}
        solvers[str(task.tables.get("solver", {}).get("name", "auto"))] = None
        kinds |= dict.fromkeys(task.kinds)
    try:
        # As bytes: a worker that cannot read them says why.
        sent = pickle.dumps(list(kinds))
    except Exception as error:
        names = ", ".join(kind.kind for kind in kinds)
        problem = f"cannot be sent the requirements {names} ({error})"
        raise InputError(_PATH, problem, remedy="put their classes into a module of their own") from error
    try:
        found = client.run(_facts, list(solvers), list(data), sent, on_error="return")
    except OSError as error:
        raise ClusterError(f"the Dask cluster was lost ({error}); nothing was run") from error
    for worker, facts in found.items():
        if isinstance(facts, CommClosedError):
            # The worker is gone: the scheduler sends nothing there.
            continue
        if isinstance(facts, BaseException):
            wanted = [f"mechdesign {versions['mechdesign']}", *dict.fromkeys(kind.__module__ for kind in kinds)]
            remedy = f"install {' and '.join(wanted)} there"
            raise InputError(_PATH, f"the worker {worker} cannot run mechdesign ({facts})", remedy=remedy)
        _compare(worker, "has other versions", facts[0], versions, "install the same versions there")
        _compare(worker, "does not see the same data", facts[1], data, "put them at the same place there")


def on_cluster(client: Any, tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, each when it is done, from the workers of a cluster.

    A task whose worker is lost is sent to another one, by the scheduler; one that loses too many is a failed row.

    Raises:
        ClusterError: The scheduler is lost, or has been without workers for a minute.
    """
    import distributed

    tasks = iter(tasks)
    under_way: dict[Any, Task] = {}
    workers, capacity, asked = _Presence(client), _capacity(client), time.monotonic()
    try:
        while True:
            if time.monotonic() - asked > _ASK_AGAIN:
                capacity, asked = _capacity(client), time.monotonic()
            for task in itertools.islice(tasks, max(0, capacity - len(under_way))):
                # A name of its own: what an earlier sweep left on the cluster is not taken for an answer.
                name = f"{task.key}-{id(under_way)}"
                under_way[client.submit(solve, task, key=name, pure=False)] = task
            if not under_way:
                return
            for future in _first_done(workers, list(under_way)):
                outcome = _outcome(future, under_way[future], distributed.KilledWorker)
                if outcome is None:
                    # Its worker was lost, and the answer with it: the scheduler has it computed again.
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


async def _knock(address: str) -> None:
    """Connect to a scheduler and leave again; raise an error of the system where there is none."""
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=_ANSWER, **Security().get_connection_args("client"))
    await comm.close()


def _facts(solvers: list[str], paths: list[str], kinds: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """Return versions and digests, on a worker, which is to know the kinds that were sent."""
    from distributed.protocol import pickle

    versions: dict[str, str] = {}
    known = pickle.loads(kinds)
    for solver in solvers:
        versions |= versions_for(solver, known)
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
    return max(1, threads) * _AHEAD


class _Presence:
    """Knows when the cluster had a worker last."""

    def __init__(self, client: Any) -> None:
        self.client, self._seen = client, time.monotonic()

    def require(self) -> None:
        """Raise `ClusterError` where there has been no worker for a minute."""
        if self.client.nthreads():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen >= _WITHOUT_WORKERS:
            raise ClusterError("the Dask cluster has no workers left; finished rows are kept. Start some, and resume")


def _first_done(workers: _Presence, futures: list[Any]) -> list[Any]:
    """Return the futures that are done, at least one of them."""
    import distributed

    while True:
        with contextlib.suppress(TimeoutError), workers.client.as_current():
            return list(distributed.wait(futures, timeout=_pause(), return_when="FIRST_COMPLETED").done)
        workers.require()


def _outcome(future: Any, task: Task, killed: type[BaseException]) -> Outcome | None:
    """Return what a future that is done has brought, or None where the answer does not come."""
    try:
        outcome: Outcome = future.result(timeout=_pause())
    except TimeoutError:
        return None
    except killed:
        return failed(task, "every worker that it was sent to was killed, for want of memory perhaps")
    return outcome


def _pause() -> float:
    """Return for how many seconds one waits before looking whether there are workers."""
    return _WITHOUT_WORKERS / 12


# So often a row is run of which each time the process was killed, the later times without others beside it.
_TRIES = 3
_MOST = "LOKY_MAX_CPU_COUNT"


def count_processes() -> int:
    """Return how many processes a sweep uses unless told: the processors that this one may use.

    Raises:
        InputError: The variable with which joblib is told to use fewer holds something else than a number.
    """
    most = os.environ.get(_MOST)
    if most is None:
        return count_processors()
    if not (most.isascii() and most.isdigit() and int(most) >= 1):
        remedy = "unset this variable of the environment"
        raise InputError(_MOST, "is no number of processes", value=most, bound="an integer >= 1", remedy=remedy)
    return min(int(most), count_processors())


def in_this_process(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, one after the other."""
    return map(solve, tasks)


def in_processes(tasks: Iterable[Task], jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, each when it is done, from so many processes.

    When a process is killed, by the system for want of memory say, the tasks that were under way are run again, one at
    a time. A task whose process is killed each time is a failed row. Where processes cannot work together, for want of
    shared memory or of threads, the tasks are run in this one, with a `SerialWarning`.
    """
    taken = _Taken(tasks)
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
        except Exception as error:  # Which one depends on what the system refuses.
            if taken.failed:
                raise
            if not _is_killed(error):
                said = " ".join(str(error).split()) or type(error).__name__
                message = f"processes cannot work together here ({said}): rows are solved one after the other"
                warn(message, SerialWarning, stacklevel=2)
                break
        for task in [*under_way.values()]:
            yield _alone(task)
            del under_way[task.key]
    yield from in_this_process([*under_way.values()])
    yield from in_this_process(taken.left)


class _Taken(Iterable[Task]):
    """Tasks that are taken one by one: those that are left, those under way, and whether to make one failed."""

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


def _alone(task: Task) -> Outcome:
    """Return the outcome of a task whose process was killed, but perhaps because of another one."""
    for _ in range(_TRIES - 1):
        try:
            with contextlib.closing(_outcomes([task], 2)) as outcomes:
                return next(outcomes)
        except Exception as error:
            if not _is_killed(error):
                raise
    return failed(task, f"its process was killed {_TRIES} times, for want of memory perhaps")


def _is_killed(error: Exception) -> bool:
    """Tell whether an error says that a process of joblib's was killed."""
    loky = sys.modules.get("joblib.externals.loky.process_executor")
    return loky is not None and isinstance(error, loky.TerminatedWorkerError)


def _outcomes(tasks: Iterable[Task], jobs: int) -> Generator[Outcome, None, None]:
    # joblib reads variables of the environment when it is imported, and refuses some of their values.
    import joblib.parallel
    from joblib import Parallel, delayed, parallel_config

    if joblib.parallel.mp is None:
        raise OSError("joblib finds no shared memory, or JOBLIB_MULTIPROCESSING=0 rules it out")
    # Tasks are taken when a process is free, so that those under way are known.
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        workers = Parallel(return_as="generator_unordered", pre_dispatch=jobs, batch_size=1, max_nbytes=None)
        yield from workers(delayed(_solve)(task) for task in tasks)


def _solve(task: Task) -> Outcome:
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal; it is for the first one to act on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return solve(task)
