"""What several releases together leak: windows of them, and the whole timeline (Theorem 3, Corollary 1, Table 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.errors import InputError
from mechdesign.leakage.correlation import Correlation
from mechdesign.leakage.lines import Floats
from mechdesign.leakage.recursion import both_ways
from mechdesign.validation import as_budgets, as_integer

__all__ = ["Guarantees", "guarantees", "window", "windows"]


def __dir__() -> list[str]:
    return sorted(__all__)


def window(
    epsilons: ArrayLike, start: int, stop: int, backward: Correlation = None, forward: Correlation = None
) -> float:
    """Return what the releases from `start` to `stop`, both included and counted from 0, leak together, in nats.

    BPL_start + FPL_stop + Σ of the budgets strictly between (Theorem 3); TPL for a single release.

    >>> round(window([0.1, 0.2, 0.3], 0, 2, backward=[[0.8, 0.2], [0.2, 0.8]]), 12)
    0.6
    """
    budgets = as_budgets(epsilons)
    start = as_integer(start, "start", 0)
    stop = as_integer(stop, "stop", start)
    if stop >= len(budgets):
        raise InputError("stop", "is too large", value=stop, bound=f"<= {len(budgets) - 1}, the last release")
    return float(_windows(budgets, start, stop - start, backward, forward))


def windows(epsilons: ArrayLike, width: int, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return what each `width` successive releases leak together, shape (T − width + 1,).

    The largest is w-event privacy. Width 1 gives the leakage of each release, width T the sum of all budgets.
    """
    budgets = as_budgets(epsilons)
    width = as_integer(width, "width", 1)
    if width > len(budgets):
        raise InputError("width", "is too large", value=width, bound=f"<= {len(budgets)}, the number of releases")
    return np.atleast_1d(_windows(budgets, np.arange(len(budgets) - width + 1), width - 1, backward, forward))


def _windows(budgets: Floats, start: ArrayLike, further: int, backward: Correlation, forward: Correlation) -> Floats:
    first = np.asarray(start)
    before, after = both_ways(budgets, backward, forward)
    if further == 0:
        return np.asarray(before[first] + (after[first] - budgets[first]))
    between = [math.fsum(budgets[at + 1 : at + further]) for at in np.atleast_1d(first).tolist()]
    return np.asarray(before[first] + after[first + further] + np.reshape(between, first.shape))


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
    total = math.fsum(budgets)
    return Guarantees(
        event_independent=float(budgets.max()),
        event=float(windows(budgets, 1, backward, forward).max()),
        window_independent=float(alone.max()),
        window=float(windows(budgets, width, backward, forward).max()),
        user_independent=total,
        user=total,
    )
