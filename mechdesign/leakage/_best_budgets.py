"""Budgets of least cost: what each release is worth decides how much of the promised leakage it may use."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, read_only
from mechdesign.base._check import as_integer, as_number
from mechdesign.base._errors import BudgetWarning, CorrelationWarning, InputError
from mechdesign.base._warnings import suppress_warnings
from mechdesign.leakage import _recursion as recursion
from mechdesign.leakage._budget_program import WIDEST, Grid, Path, Program, as_curves, solve
from mechdesign.leakage._budgets import allocate_budget, constant_budget
from mechdesign.leakage._correlations import Candidates, Correlation, Varying, check_directions, step_functions
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import windows
from mechdesign.leakage._transitions import as_target

# Budgets aim this far below α, as those of Algorithm 8 do, so that rounding never carries the leakage above it.
_MARGIN = 2.0**-47
# A budget is raised as far as it goes, up to this power of two of α.
_HALVINGS = 20

# What summing costs may lose to rounding, and more.
_ROUNDING = 2.0**-44

# Values on each axis of the grid, round by round, where both directions count.
_COUNTS = (40, 80, 120, 160, 200, 240, 280)
# States that are kept at once: 2 GB.
_MOST_STATES = 2.5e8
# How much of the axis is spaced evenly, and how closely, as a share of α, the rest gathers about known paths.
_EVEN, _WIDTHS = 0.25, (0.05, 0.01)


@dataclass(frozen=True, eq=False)
class BestBudgets:
    """Budgets that keep the promise, and a proof of how far from the cheapest they can be.

    Attributes:
        epsilons: The budget of each release in nats, 0 where it is left out, shape (T,).
        cost: What they cost together, rounded up.
        lower_bound: What no budgets that keep the promise go below, rounded down.
        alpha: What each window of releases may leak.
        window: Its length; 1 stands for every release by itself.
        constant: The cost of Algorithm 7's budgets on the same curves; None where it promises something else.
        allocated: The cost of Algorithm 8's budgets, likewise.
    """

    epsilons: Floats
    cost: float
    lower_bound: float
    alpha: float
    window: int
    constant: float | None
    allocated: float | None

    @property
    def gap(self) -> float:
        """How much cheaper any budgets could be, as a share of the cost."""
        return (self.cost - self.lower_bound) / self.cost if self.cost > 0 else 0.0


@in_own_arithmetic
def best_budgets(
    alpha: float,
    costs: Iterable[Sequence[ArrayLike]],
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    window: int = 1,
    tolerance: float = 0.01,
    time_limit: float = 60.0,
) -> BestBudgets:
    """Return budgets of least cost under which no release, or no window of them, leaks more than `alpha`.

    Minimises Σ C_t(ε_t) over all ε_t ≥ 0 whose temporal leakage is at most α, by dynamic programming on grids that are
    refined about the best paths: once rounded so that the budgets can be spent, once so that their cost is a lower
    bound. The budgets are checked by the recursions of `temporal`, or of `windows`, and are never worse than those of
    Algorithms 7 and 8.

    Args:
        alpha: What each release, or window, may leak, in nats.
        costs: For each release a pair of arrays (epsilons, costs): ε rising, costs never rising; linear between the
            points and constant before and beyond them.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, or None.
        forward: Pr(next state | state now), likewise.
        window: Bound what this many successive releases leak together (w-event privacy, Theorem 3). Beyond 3 the lower
            bound is that of windows of 3, and may be far from the cost.
        tolerance: Stop when cost and lower bound are relatively as close as this.
        time_limit: Start no further refinement after so many seconds of computing.

    Raises:
        InputError: An argument is wrong: see `CostCurve`; or the correlations are `Candidates`.

    >>> curve = ([0.0, 1.0, 2.0], [1.0, 0.4, 0.3])
    >>> best = best_budgets(1.0, [curve, curve, ([0.0], [0.0])], backward=[[0.8, 0.2], [0.2, 0.8]])
    >>> bool(best.lower_bound <= best.cost < best.allocated), float(best.epsilons[2])
    (True, 0.0)
    """
    alpha = as_target(alpha)
    curves = as_curves(costs, alpha)
    window = as_integer(window, "window", 1)
    if window > len(curves):
        raise InputError("window", "is too large", value=window, bound=f"<= {len(curves)}, the number of releases")
    tolerance, time_limit = as_number(tolerance, "tolerance"), as_number(time_limit, "time_limit")
    if tolerance < 0:
        raise InputError("tolerance", "is negative", value=tolerance, bound="a number >= 0")
    before, after = _functions(backward, len(curves), "backward"), _functions(forward, len(curves), "forward")
    check_directions([before], [after], stacklevel=3)
    search = _Search(Program(alpha, curves, (None, *before), (*after, None), min(window, WIDEST)), window)
    constant, allocated = search.published(backward, forward)
    search.refine(tolerance, time_limit)
    epsilons = search.epsilons
    read_only(epsilons)
    cost = search.cost(epsilons)
    return BestBudgets(epsilons, cost, min(search.lower_bound, cost), alpha, window, constant, allocated)


class _Search:
    """The best budgets so far, and the best lower bound."""

    def __init__(self, program: Program, window: int) -> None:
        self._program, self._window = program, window
        known: dict[int, LossFunction | None] = {}
        self._correlations = tuple(
            Varying([known.setdefault(id(loss), _unchecked(loss)) for loss in losses])
            for losses in (program.before[1:], program.after[:-1])
        )
        self.lower_bound = self.cost(np.full(len(program), program.alpha)) * (1 - _ROUNDING)
        self.epsilons = self._trimmed(self._fitted(np.full(len(program), program.alpha)))

    def cost(self, epsilons: Floats) -> float:
        """Return what budgets cost together, rounded up."""
        each = (float(curve.at(value)) for curve, value in zip(self._program.curves, epsilons.tolist(), strict=True))
        return math.fsum(each) * (1 + _ROUNDING)

    def published(self, backward: Correlation, forward: Correlation) -> tuple[float | None, float | None]:
        """Start from Algorithms 7 and 8 and return the costs of their budgets, None where they promise less."""
        if any(isinstance(each, Varying) for each in (backward, forward)):
            return None, None
        steps, alpha = len(self._program), self._program.alpha
        # Here a budget of 0 is an answer like any other, and directions that do not fit were warned of.
        with suppress_warnings(BudgetWarning, CorrelationWarning):
            both = (
                np.full(steps, constant_budget(alpha, backward, forward)),
                allocate_budget(alpha, steps, backward, forward),
            )
        for epsilons in both:
            self._offer(epsilons)
        constant, allocated = (self.cost(epsilons) if self._leakage(epsilons) <= alpha else None for epsilons in both)
        return constant, allocated

    def refine(self, tolerance: float, time_limit: float) -> None:
        """Solve on finer and finer grids until the bracket is as narrow as `tolerance`."""
        started = time.process_time()
        relaxed: Path | None = None
        for count in _COUNTS:
            enough = self.cost(self.epsilons) - self.lower_bound <= tolerance * self.cost(self.epsilons)
            if enough or time.process_time() - started > time_limit:
                return
            grids = self._grids(count, relaxed)
            if sum(len(grid.before) * len(grid.caps) for grid in grids) > _MOST_STATES:
                return
            self._offer(solve(self._program, grids, relaxed=False)[1].epsilons)
            grids = self._grids(count, relaxed)
            bound, relaxed = solve(self._program, grids, relaxed=True)
            self.lower_bound = max(self.lower_bound, bound * (1 - _ROUNDING))

    def _offer(self, epsilons: Floats) -> None:
        """Take budgets, made to fit and then to use what is left, where they cost less than the best so far."""
        trimmed = self._trimmed(self._fitted(epsilons))
        for fitted in (trimmed, self._trimmed(self._filled(trimmed))):
            if self.cost(fitted) < self.cost(self.epsilons) and self._leakage(fitted) <= self._program.alpha:
                self.epsilons = fitted

    def _leakage(self, epsilons: Floats) -> float:
        return float(windows(epsilons, self._window, *self._correlations).max())

    def _fits(self, epsilons: Floats) -> bool:
        return self._leakage(epsilons) <= self._program.alpha * (1 - _MARGIN)

    def _fitted(self, epsilons: Floats) -> Floats:
        """Return budgets lowered in proportion until they fit; those of Algorithm 8 fit already."""
        if self._leakage(epsilons) <= self._program.alpha:
            return epsilons
        low, high = 0.0, 1.0
        while high - low > 2.0**-40 * high and high > 2.0**-200:
            middle = (low + high) / 2 if low > 0 else high / 2
            low, high = (middle, high) if self._fits(middle * epsilons) else (low, middle)
        fitted: Floats = low * epsilons
        return fitted

    def _trimmed(self, epsilons: Floats) -> Floats:
        """Return budgets without what buys nothing."""
        pairs = zip(self._program.curves, epsilons.tolist(), strict=True)
        return np.array([curve.least(epsilon) for curve, epsilon in pairs])

    def _filled(self, epsilons: Floats) -> Floats:
        """Raise single budgets as far as they go, first where most is saved."""
        filled = epsilons.copy()
        savings = [
            float(curve.at(value) - curve.at(min(value + 0.01 * self._program.alpha, self._program.alpha)))
            for curve, value in zip(self._program.curves, filled.tolist(), strict=True)
        ]
        for step in np.argsort(savings)[::-1].tolist():
            if savings[step] <= 0:
                break
            low, high = float(filled[step]), self._program.alpha
            for _ in range(_HALVINGS):
                if high - low <= 2.0**-_HALVINGS * self._program.alpha:
                    break
                filled[step] = (low + high) / 2
                low, high = (float(filled[step]), high) if self._fits(filled) else (low, float(filled[step]))
            filled[step] = low
        return filled

    def _grids(self, count: int, relaxed: Path | None) -> list[Grid]:
        """Return grids with about `count` values on each axis, dense about the best budgets and a relaxed path."""
        program = self._program
        before = recursion.backward(self.epsilons, self._correlations[0])
        after = recursion.forward(self.epsilons, self._correlations[1])
        grids = []
        for step in range(len(program)):
            uses_before = step > 0 and (program.before[step] is not None or program.window > 1)
            uses_caps = step > 0 and (program.after[step - 1] is not None or program.window > 1)
            # With one direction alone the same work buys a finer grid.
            many = count if (uses_before and uses_caps) or step == 0 else int(count**1.5)
            known = [(before[step - 1] if step else 0.0, after[step], self.epsilons[step])]
            if relaxed is not None:
                known.append((relaxed.before[step], relaxed.caps[step], relaxed.epsilons[step]))
            axes = [_values(program.alpha, list(centres), many) for centres in zip(*known, strict=True)]
            ends = np.array([0.0, program.alpha])
            grids.append(Grid(axes[0] if uses_before else ends, axes[1] if uses_caps else ends[1:], axes[2]))
        return grids


def _values(alpha: float, centres: list[float], count: int) -> Floats:
    """Return rising values from 0 to α: the quantiles of a mixture of an even distribution and of Cauchy's.

    Spacing then grows with the square of the distance from a centre. A cell may be as wide as that: its rounding gains
    in proportion to its width, and going there costs the square of the distance.
    """
    axis = np.linspace(0.0, alpha, 8001)
    shares = _EVEN * axis / alpha
    for centre in centres:
        for width in _WIDTHS:
            share = np.arctan((axis - centre) / (width * alpha))
            shares += (1 - _EVEN) / (len(centres) * len(_WIDTHS)) * (share - share[0]) / (share[-1] - share[0])
    values = np.interp(np.linspace(0.0, shares[-1], count), shares, axis)
    inside = [centre for centre in centres if 0 < centre < alpha]
    found: Floats = np.union1d(values, [0.0, alpha, *inside])
    return found


def _functions(correlation: Correlation, steps: int, path: str) -> list[LossFunction | None]:
    if isinstance(correlation, Candidates):
        raise InputError(
            path,
            "are several correlations",
            bound="a matrix, Varying or None",
            remedy="find budgets under each, and check them under the others with temporal",
        )
    return step_functions(correlation, steps, path)[0]


def _unchecked(loss: LossFunction | None) -> LossFunction | None:
    """Return the function without its matrix: whether the two directions fit together is asked but once."""
    return None if loss is None else LossFunction.from_lines(loss.n, loss.digest, list(loss.lines))
