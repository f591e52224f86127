"""Work on blocks with all cores: plain threads, each calling single-threaded BLAS."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

__all__ = ["Workers", "single_threaded_blas"]

Result = TypeVar("Result")

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("", "64_", "_64")


class Workers:
    """A few threads that share the blocks, a batch of consecutive ones at a time.

    The caller is one of them. Kernels release the interpreter's lock where it matters, so plain threads are enough.
    """

    def __init__(self, threads: int, blocks: int, batch: int) -> None:
        self.batches = [slice(start, min(start + batch, blocks)) for start in range(0, blocks, batch)]
        others = min(threads, len(self.batches)) - 1
        self._pool = ThreadPoolExecutor(others) if others > 0 else None
        self._others = range(1, 1 + others)

    def run(self, task: Callable[[int, slice], Result], *, fixed: bool = False) -> list[Result]:
        """Call ``task(worker, batch)`` for every batch; return the results in no particular order.

        Whoever is free takes the next batch, unless who takes which is to be `fixed`: for sums that a worker keeps,
        which then are the same to the bit every time.
        An interruption is passed on only when all workers are done, so that nothing changes behind the caller's back.
        """
        if self._pool is None:
            return _drain(task, 0, iter(self.batches))
        count = 1 + len(self._others)
        shared = iter(self.batches)
        shares = [iter(self.batches[worker::count]) if fixed else shared for worker in range(count)]
        futures = [self._pool.submit(_drain, task, worker, shares[worker]) for worker in self._others]
        try:
            results = _drain(task, 0, shares[0])
            for future in futures:
                results += future.result()
            return results
        finally:
            wait(futures)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _drain(task: Callable[[int, slice], Result], worker: int, batches: Iterator[slice]) -> list[Result]:
    # What overflows at the end of the range is noticed where it matters: a step that is not finite ends the iteration.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return [task(worker, batch) for batch in batches]


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let every BLAS call use one thread, and PyTorch if it is loaded; restore what was before.

    Does nothing about a BLAS that is not OpenBLAS.
    """
    torch = sys.modules.get("torch")
    controls = (*_controls(), *([] if torch is None else [(torch.get_num_threads, torch.set_num_threads)]))
    before = [(setter, getter()) for getter, setter in controls]
    for setter, _ in before:
        setter(1)
    try:
        yield
    finally:
        for setter, threads in before:
            setter(threads)


@functools.cache
def _controls() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """Find the thread controls of the OpenBLAS libraries behind NumPy and SciPy."""
    files = []
    numpy = "numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"
    for module in ("scipy.linalg.cython_lapack", numpy):
        with contextlib.suppress(ImportError):
            files.append(importlib.import_module(module).__file__)
    found = []
    for file in files:
        with contextlib.suppress(OSError, TypeError):
            # A symbol is looked up in the extension and in the libraries that it is linked to.
            library = ctypes.CDLL(file)
            for prefix, suffix in itertools.product(_PREFIXES, _SUFFIXES):
                with contextlib.suppress(AttributeError):
                    getter = getattr(library, f"{prefix}_get_num_threads{suffix}")
                    setter = getattr(library, f"{prefix}_set_num_threads{suffix}")
                    found.append((getter, setter))
                    break
    return tuple(found)
