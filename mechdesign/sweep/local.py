"""Designs on one machine: in this process, or in several by joblib."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterable, Iterator

from mechdesign.base._errors import InputError
from mechdesign.base._errors import MechdesignError
from mechdesign.base._errors import SerialWarning
from mechdesign.base._machine import count_processors
from mechdesign.sweep.rows import Task
from mechdesign.sweep.solve import Outcome
from mechdesign.sweep.solve import failed
from mechdesign.sweep.solve import solve
from mechdesign.base._warnings import warn

__all__ = ["count_processes", "in_processes", "in_this_process"]

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
    tasks = iter(tasks)
    under_way: dict[str, Task] = {}

    refused: list[Exception] = []

    def taken() -> Iterator[Task]:
        try:
            for task in tasks:
                under_way[task.key] = task
                yield task
        except Exception as error:
            refused.append(error)
            raise

    while True:
        try:
            with contextlib.closing(_outcomes(taken(), jobs)) as outcomes:
                for outcome in outcomes:
                    del under_way[outcome.row.identity]
                    yield outcome
                return
        except MechdesignError:
            raise
        except Exception as error:  # Which one depends on what the system refuses.
            if refused:
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
    yield from in_this_process(tasks)


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
