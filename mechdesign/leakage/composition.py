"""What several releases together leak: windows of them, and the whole timeline (Theorem 3, Corollary 1, Table 2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify._exact import printed
from mechdesign.base._errors import InputError
from mechdesign.leakage.correlation import Correlation
from mechdesign.leakage.numbers import rounded_up
from mechdesign.leakage.recursion import both_ways
from mechdesign.leakage.upwards import total
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_budgets
from mechdesign.base._check import as_integer

__all__ = ["Guarantees", "guarantees", "window", "windows"]


def __dir__() -> list[str]:
    return sorted(__all__)


def window(
    epsilons: ArrayLike, start: int, stop: int, backward: Correlation = None, forward: Correlation = None
) -> float:
    """Return what the releases from `start` to `stop`, both included and counted from 0, leak together, in nats.

    BPL_start + FPL_stop + Σ of the budgets strictly between (Theorem 3); TPL for a single release. Rounded up; the sum
    of budgets is that of the decimals that they print.

    >>> round(window([0.1, 0.2, 0.3], 0, 2, backward=[[0.8, 0.2], [0.2, 0.8]]), 12)
    0.6
    """
    budgets = as_budgets(epsilons)
    start = as_integer(start, "start", 0)
    stop = as_integer(stop, "stop", start)
    if stop >= len(budgets):
        raise InputError("stop", "is too large", value=stop, bound=f"<= {len(budgets) - 1}, the last release")
    return _windows(budgets, [start], stop - start, backward, forward)[0]


def windows(epsilons: ArrayLike, width: int, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return what each `width` successive releases leak together, shape (T − width + 1,).

    The largest is w-event privacy. Width 1 gives the leakage of each release, width T the sum of all budgets.
    """
    budgets = as_budgets(epsilons)
    width = as_integer(width, "width", 1)
    if width > len(budgets):
        raise InputError("width", "is too large", value=width, bound=f"<= {len(budgets)}, the number of releases")
    return np.array(_windows(budgets, range(len(budgets) - width + 1), width - 1, backward, forward))


def _windows(
    budgets: Floats, starts: Iterable[int], further: int, backward: Correlation, forward: Correlation
) -> list[float]:
    before, after = both_ways(budgets, backward, forward)
    each = budgets.tolist()
    if further == 0:
        return [total(before[start], after[start], each[start]) for start in starts]
    sums = [Fraction(0), *itertools.accumulate(map(printed, each))]
    spent = [(start, rounded_up(sums[start + further + 1] - sums[start])) for start in starts]
    return [total(before[start], after[start + further], epsilon) for start, epsilon in spent]


@dataclass(frozen=True)
class Guarantees:
    """The rows of Table 2, in nats: what holds if the data were independent, and what holds for correlated data."""

    event_independent: float
    event: float
    window_independent: float
    window: float
    user_independent: float
    user: float


def guarantees(
    epsilons: ArrayLike, width: int, backward: Correlation = None, forward: Correlation = None
) -> Guarantees:
    """Return event-level, w-event and user-level privacy of a sequence of releases, w = `width` (Table 2)."""
    budgets = as_budgets(epsilons)
    alone = windows(budgets, width)
    spent = rounded_up(sum(map(printed, budgets.tolist()), Fraction(0)))
    return Guarantees(
        event_independent=float(budgets.max()),
        event=float(windows(budgets, 1, backward, forward).max()),
        window_independent=float(alone.max()),
        window=float(windows(budgets, width, backward, forward).max()),
        user_independent=spent,
        user=spent,
    )
