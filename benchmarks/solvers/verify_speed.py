"""Time the exact check of all pairs and observables, on a grid (few distances) and on points (all distances differ).

Run ``python benchmarks/solvers/verify_speed.py [columns rows]``; 20 × 15 cells make 26.9 million inequalities. Some channels
are exponential mechanisms with half of ε = 0.6, which have some slack. The other channel has the columns exp(-ε·d),
without normalisation: every row between collinear cells is tight to the last unit.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mechdesign.certify._claims import PairBound
from mechdesign.certify._privacy import check, realised

EPSILON = Fraction(3, 5)


def timed(name: str, ask: Callable[[], object]) -> None:
    start = time.perf_counter()
    found = ask()
    print(f"  {name:<28}{time.perf_counter() - start:7.2f} s   {str(found)[:70]}")


def main(columns: int = 20, rows: int = 15) -> None:
    grid = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2).astype(np.float64)
    scattered = np.random.default_rng(0).random(grid.shape) * [columns, rows]
    for name, points in (("grid", grid), ("scattered", scattered)):
        distance = np.linalg.norm(points[:, None] - points, axis=2)
        bound = PairBound.metric(EPSILON, distance)
        half = np.exp(-0.3 * distance)
        private = np.floor(half / half.sum(axis=1, keepdims=True) * 2.0**60).astype(np.int64)
        tight = np.floor(np.exp(-0.6 * distance) * 2.0**61).astype(np.int64)
        print(f"{name}: {len(bound) * len(points) / 1e6:.1f} million inequalities")
        timed("check, private", lambda p=private, b=bound: check(p, 62, b))
        timed("least epsilon, private", lambda p=private, b=bound: realised(p, 62, b))
        timed("check, tight", lambda p=tight, b=bound: check(p, 62, b))
        timed("least epsilon, tight", lambda p=tight, b=bound: realised(p, 62, b))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
