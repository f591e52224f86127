"""Designs on a Dask cluster that is there already."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mechdesign.data._text import file_digest
from mechdesign.base._errors import ClusterError
from mechdesign.base._errors import InputError
from mechdesign.base._errors import MissingDependencyError
from mechdesign.model._requirements._kind import RequirementKind
from mechdesign.sweep.rows import Task
from mechdesign.sweep.rows import versions_for
from mechdesign.sweep.solve import Outcome
from mechdesign.sweep.solve import failed
from mechdesign.sweep.solve import solve
from mechdesign.base._check import require_kind

__all__ = ["connected", "on_cluster"]

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
