"""How fast this machine is now, measured in a second by what solvers spend their time on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from mechdesign.solve._blocks.parallel import single_threaded

__all__ = ["Speed", "measure_speed", "slowness"]

# Seconds that each of the three measurements takes, and what is measured, about as large as blocks of the solver are.
_SECONDS = 0.25
_ROWS, _SIDE = 256, 40


@dataclass(frozen=True)
class Speed:
    """What three pieces of work take, in seconds, with as many threads at once as a solver would have.

    Attributes:
        factor: Inverting a dense matrix of 256 rows.
        sweep: One pass over the ratio rows of a block of 256 secrets.
        sparse: Factoring the matrix of a grid of 40 × 40 points.
    """

    factor: float
    sweep: float
    sparse: float


# What they take on the machine that the constants of `mechdesign.synthesis.sizes` are from: one of two idle cores of an
# AMD EPYC, under NumPy 2.4 with OpenBLAS.
_REFERENCE = Speed(factor=3.0e-3, sweep=1.3e-4, sparse=3.2e-3)


def slowness(speed: Speed) -> float:
    """Return how many times as long solvers take as on the reference machine: the geometric mean of what is measured.

    >>> slowness(Speed(6.0e-3, 2.6e-4, 6.4e-3))
    2.0
    """
    ratios = (getattr(speed, name) / getattr(_REFERENCE, name) for name in ("factor", "sweep", "sparse"))
    return float(round(math.prod(ratios) ** (1 / 3), 12))


def measure_speed(threads: int = 1) -> Speed:
    """Measure the speed of this machine, as busy as it is, in three quarters of a second."""
    random = np.random.default_rng(1)
    matrix = random.random((_ROWS, _ROWS)) + _ROWS * np.eye(_ROWS)
    ratios = 1 + random.random((_ROWS, _ROWS))
    values, weights = random.random(_ROWS) + 1, random.random((_ROWS, _ROWS))
    line = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(_SIDE, _SIDE))
    grid = scipy.sparse.kronsum(line, line, format="csc")

    def sweep() -> None:
        grown = ratios * values
        slack = grown - values[:, None]
        (weights * grown / slack).sum(axis=0)

    works = (lambda: np.linalg.inv(matrix), sweep, lambda: scipy.sparse.linalg.splu(grid))
    with single_threaded():
        return Speed(*(_time(work, threads) for work in works))


def _time(work: Callable[[], object], threads: int) -> float:
    """Return the seconds that a piece of work takes where `threads` do it at once, divided by their number."""
    work()
    started = time.perf_counter()
    until = started + _SECONDS

    def repeat(_: int) -> int:
        count = 0
        while not count or time.perf_counter() < until:
            work()
            count += 1
        return count

    if threads == 1:
        done = repeat(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(repeat, range(threads)))
    return (time.perf_counter() - started) / done
