"""Small mechanisms to certify and export; the tests import this, and so do the processes that they kill."""

from __future__ import annotations

import contextlib
import ctypes
import math
import platform
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated

ONE = 2**62


def line(n: int, epsilon: float, objective: str = "expected", **changes: Any) -> Evidence:
    """Return a truncated geometric mechanism on a line, with every kind of requirement and some multipliers.

    Metric and graph privacy are tight to a few units of 2**-62 between neighbours.
    """
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    alpha = math.exp(-epsilon)
    weights = alpha**steps * np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1, 1 - alpha)
    numerators = np.rint(weights / (1 + alpha) * ONE).astype(np.int64)
    # A share of the uniform channel pays for the roundings.
    numerators = numerators - (numerators >> 40) + (ONE >> 40) // n
    for row in range(n):
        numerators[row, row] += ONE - sum(numerators[row].tolist())
    distance = steps.astype(np.float64)
    exact_epsilon = Fraction(str(epsilon))
    sources, targets = np.nonzero(steps == 1)
    far = np.zeros(0, dtype=np.int64)
    nothing = PairMultipliers(far, far, far, np.zeros(0))
    values = np.linspace(0.01, 0.02, len(sources)) / n
    fields: dict[str, Any] = {
        "numerators": numerators,
        "exponent": 62,
        "prior": np.full(n, 1 / n),
        "cost": distance,
        "objective": objective,
        "requirements": (
            Stated.metric(exact_epsilon, distance),
            Stated.graph(exact_epsilon, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)),
            Stated.threshold(2 * exact_epsilon, distance, Fraction(5, 2)),
            Stated.distortion(Fraction(1, 10), distance),
        ),
        "multipliers": Multipliers(
            (
                PairMultipliers(sources, targets, sources, values),
                nothing,
                nothing,
                FloorMultipliers(np.arange(n), np.arange(n), np.full(n, 0.01)),
            ),
            np.linspace(1, 2, n) if objective == "worst" else None,
        ),
    }
    return Evidence(**{**fields, **changes})


@contextlib.contextmanager
def flushing() -> Iterator[None]:
    """Let this thread take denormal numbers for zero, and write none."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not sys.platform.startswith("linux"):
        pytest.skip("set by a register of x86-64")
    try:
        library = ctypes.CDLL("libm.so.6")
    except OSError:
        pytest.skip("needs the GNU C library")
    before, changed = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    library.fegetenv(ctypes.byref(before))
    library.fegetenv(ctypes.byref(changed))
    changed[7] |= 0x8040
    library.fesetenv(ctypes.byref(changed))
    try:
        yield
    finally:
        library.fesetenv(ctypes.byref(before))
