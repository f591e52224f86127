"""Threads: the process-wide limit of BLAS, and workers that share blocks and call single-threaded BLAS.

Theory: block_method, Memory and threads.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np

from mechdesign.base._deadline import Deadline, OutOfTimeError, Stop
from mechdesign.base._machine import count_threads
from mechdesign.base._process import UpperLimit


@functools.cache
def _controller() -> Any:
    """Find the BLAS libraries of NumPy and SciPy; the result is cached, because the search takes a millisecond.

    The result is None in a Python without ctypes, such as WebAssembly outside a browser, where BLAS has one thread.
    """
    try:
        import ctypes  # noqa: F401 - threadpoolctl needs it
    except ImportError:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def limit_this_thread(number: int) -> Any:
    """Return a context manager that limits BLAS libraries with a limit per thread (such as OpenMP) in this thread."""
    found = _controller()
    return contextlib.nullcontext() if found is None else found.limit(limits=number)


class _Holder:
    """A thread that sets the process-wide limit: a limit can be changed only by the thread that has set it."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._before = contextlib.ExitStack()

    def limit(self, number: int) -> Callable[[], None]:
        self._thread, self._before = None, contextlib.ExitStack()
        if not count_threads(1):
            # The system cannot start a thread, so the current thread sets the limit.
            self._before.enter_context(limit_this_thread(number))
            return self._before.close
        self._thread = ThreadPoolExecutor(1)
        try:
            self._thread.submit(lambda: self._before.enter_context(limit_this_thread(number))).result()
        except BaseException:
            self._undo()
            raise
        return self._undo

    def change(self, number: int) -> None:
        if self._thread is None:
            limit_this_thread(number)
        else:
            self._thread.submit(limit_this_thread, number).result()

    def _undo(self) -> None:
        assert self._thread is not None
        self._thread.submit(self._before.close).result()
        self._thread.shutdown()
        self._thread = None


_HOLDER = _Holder()
_BLAS = UpperLimit(_HOLDER.limit, _HOLDER.change)


@contextlib.contextmanager
def blas_threads(number: int) -> Iterator[None]:
    """Limit BLAS to `number` threads in the `with` block; the last block to end restores the old limit.

    The uses are counted, because the limit belongs to the process, and several solves may limit it at the same time.
    """
    with _BLAS.at_most(number), limit_this_thread(number):
        yield


Result = TypeVar("Result")


class Workers:
    """Threads that process batches of consecutive blocks; the calling thread is worker 0.

    Kernels release the global interpreter lock during long calls, so threads run in parallel. `last_seconds` is the
    duration of the last `run`.
    """

    last_seconds = 0.0
    _raised = False

    def __init__(self, threads: int, blocks: int, batch: int, deadline: Deadline | None = None) -> None:
        self.deadline = deadline or Deadline()
        self.batches = [slice(start, min(start + batch, blocks)) for start in range(0, blocks, batch)]
        others = count_threads(min(threads, len(self.batches)) - 1)
        self._pool = ThreadPoolExecutor(others, initializer=limit_this_thread, initargs=(1,)) if others > 0 else None
        self._others = range(1, 1 + others)

    def run(self, task: Callable[[int, slice], Result], *, fixed: bool = False, whole: bool = False) -> list[Result]:
        """Call ``task(worker, batch)`` for every batch; return the results in arbitrary order.

        Each worker that has finished a batch takes the next batch. After Ctrl-C, or at the time limit, no further batch
        is started. Exceptions are raised after all workers have finished.

        Args:
            task: Function of the worker number and a slice of blocks.
            fixed: Whether the assignment of batches to workers is fixed, so that sums per worker are reproducible.
            whole: Whether to complete all batches after the start. A run of this kind does not start if the last run
                took longer than the remaining time.

        Returns:
            The results of the batches.

        Raises:
            OutOfTimeError: If the time limit is reached. The error is raised only once, so that results can be
                evaluated after the limit.
        """
        began, left = self.deadline.seconds(), self.deadline.left()
        if whole and left is not None and self.last_seconds > left and not self._raised:
            raise self._out_of_time()
        results = self._share(task, fixed, (lambda: False) if whole else self.is_stopped)
        self.last_seconds = self.deadline.seconds() - began
        if not whole and self.is_stopped():
            self.deadline.check()
            raise self._out_of_time()
        return results

    def is_stopped(self) -> bool:
        """Return whether the user has requested a stop or the time limit is reached; long tasks should check it."""
        stop = self.deadline.stop()
        return stop is not None and not (stop is Stop.TIME and self._raised)

    def _out_of_time(self) -> OutOfTimeError:
        """Return the exception for the time limit, and record that the exception is raised."""
        self._raised = True
        return OutOfTimeError()

    def _share(self, task: Callable[[int, slice], Result], fixed: bool, stopped: Callable[[], bool]) -> list[Result]:
        """Run the batches on all threads, and return their results."""
        if self._pool is None:
            return _drain(task, 0, iter(self.batches), stopped)
        count = 1 + len(self._others)
        shared = iter(self.batches)
        shares = [iter(self.batches[worker::count]) if fixed else shared for worker in range(count)]
        futures = [self._pool.submit(_drain, task, worker, shares[worker], stopped) for worker in self._others]
        try:
            results = _drain(task, 0, shares[0], stopped)
            for future in futures:
                results += future.result()
            return results
        finally:
            wait(futures)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _drain(
    task: Callable[[int, slice], Result], worker: int, batches: Iterator[slice], stopped: Callable[[], bool]
) -> list[Result]:
    """Run batches on one worker until all batches are taken or the run is stopped."""
    results: list[Result] = []
    # Overflows are ignored here, because a later check ends the iteration if a step is not finite.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        for batch in batches:
            if stopped():
                break
            results.append(task(worker, batch))
    return results
