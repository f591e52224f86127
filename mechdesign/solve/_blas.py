"""Set the number of BLAS threads, a process-wide setting that concurrent solves may change."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
    """Limit BLAS to `number` threads in the `with` block; the last block to end restores the old limit."""
    with _BLAS.at_most(number), limit_this_thread(number):
        yield
