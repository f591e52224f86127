"""Designs on one machine: in this process, or in several by joblib."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Iterable, Iterator

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from mechdesign.sweep.rows import Task
from mechdesign.sweep.solve import Outcome, failed, solve

__all__ = ["in_processes", "in_this_process"]

# So often a row is run of which each time the process was killed, the later times without others beside it.
_TRIES = 3


def in_this_process(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, one after the other."""
    return map(solve, tasks)


def in_processes(tasks: Iterable[Task], jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, each when it is done, from so many processes.

    When a process is killed, by the system for want of memory say, the tasks that were under way are run again, one at
    a time. A task whose process is killed each time is a failed row.
    """
    tasks = iter(tasks)
    under_way: dict[str, Task] = {}

    def taken() -> Iterator[Task]:
        for task in tasks:
            under_way[task.key] = task
            yield task

    while True:
        with contextlib.closing(_outcomes(taken(), jobs)) as outcomes:
            try:
                for outcome in outcomes:
                    del under_way[outcome.row.identity]
                    yield outcome
                return
            except TerminatedWorkerError:
                pass
        for task in [*under_way.values()]:
            yield _alone(task)
            del under_way[task.key]


def _alone(task: Task) -> Outcome:
    """Return the outcome of a task whose process was killed, but perhaps because of another one."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(TerminatedWorkerError), contextlib.closing(_outcomes([task], 2)) as outcomes:
            return next(outcomes)
    return failed(task, f"its process was killed {_TRIES} times, for want of memory perhaps")


def _outcomes(tasks: Iterable[Task], jobs: int) -> Generator[Outcome, None, None]:
    # Tasks are taken when a process is free, so that those under way are known.
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        workers = Parallel(return_as="generator_unordered", pre_dispatch=jobs, batch_size=1, max_nbytes=None)
        yield from workers(delayed(_solve)(task) for task in tasks)


def _solve(task: Task) -> Outcome:
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal; it is for the first one to act on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return solve(task)
