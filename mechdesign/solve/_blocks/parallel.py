"""Work on blocks with all cores: plain threads, each calling single-threaded BLAS."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from mechdesign.base._deadline import Deadline, OutOfTimeError, Stop
from mechdesign.base._machine import count_threads
from mechdesign.solve._blas import blas_threads, limit_this_thread

Result = TypeVar("Result")


class Workers:
    """A few threads that share the blocks, a batch of consecutive ones at a time.

    The caller is one of them. Kernels release the interpreter's lock where it matters, so plain threads are enough.
    `last_seconds` says how many seconds they needed last.
    """

    last_seconds = 0.0
    _raised = False

    def __init__(self, threads: int, blocks: int, batch: int, deadline: Deadline | None = None) -> None:
        self.deadline = deadline or Deadline()
        self.batches = [slice(start, min(start + batch, blocks)) for start in range(0, blocks, batch)]
        others = count_threads(min(threads, len(self.batches)) - 1)
        self._pool = ThreadPoolExecutor(others, initializer=_limit_worker) if others > 0 else None
        self._others = range(1, 1 + others)

    def run(self, task: Callable[[int, slice], Result], *, fixed: bool = False, whole: bool = False) -> list[Result]:
        """Call ``task(worker, batch)`` for every batch; return the results in no particular order.

        Whoever is free takes the next batch, unless who takes which is to be `fixed`: for sums that a worker keeps,
        which then are the same to the bit every time.
        After Ctrl-C, or when it is late, no batch is begun, unless the `whole` is to be done: that is not begun where
        it would be late at its end. It is passed on when all workers are done, so that nothing changes behind the
        caller's back.

        Raises:
            OutOfTimeError: The time limit is reached; raised once, so that what is known can still be looked at.
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
        """Tell whether the user has asked for an end, or the time is over; a long task may ask, too."""
        stop = self.deadline.stop()
        return stop is not None and not (stop is Stop.TIME and self._raised)

    def _out_of_time(self) -> OutOfTimeError:
        self._raised = True
        return OutOfTimeError()

    def _share(self, task: Callable[[int, slice], Result], fixed: bool, stopped: Callable[[], bool]) -> list[Result]:
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
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _drain(
    task: Callable[[int, slice], Result], worker: int, batches: Iterator[slice], stopped: Callable[[], bool]
) -> list[Result]:
    results: list[Result] = []
    # What overflows at the end of the range is noticed where it matters: a step that is not finite ends the iteration.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        for batch in batches:
            if stopped():
                break
            results.append(task(worker, batch))
    return results


class _Torch:
    """The number of threads of PyTorch, of which each thread has a copy, and the process what new threads get.

    All who want one thread make and undo it in their own; the first of them, and the last, for the process too.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 1

    def __enter__(self) -> None:
        torch = sys.modules["torch"]
        with self._lock:
            if not self._users:
                self._before = torch.get_num_threads()
            self._users += 1
            torch.set_num_threads(1)

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._users -= 1
            sys.modules["torch"].set_num_threads(self._before)


def _limit_worker() -> None:
    """Let a worker use one thread where each thread has a number of its own, as with OpenMP; it keeps it to its end."""
    limit_this_thread(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


_TORCH = _Torch()


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Let every call of BLAS, and of PyTorch if it is loaded, use one thread; restore what was before.

    However many solves want it at once: their users are counted, for the number is the process's.
    """
    with blas_threads(1), _TORCH if "torch" in sys.modules else contextlib.nullcontext():
        yield
