"""Budgets of least cost: releases with steeper cost curves get a larger share of the promised leakage."""

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
from mechdesign.leakage._budget_program import WIDEST, Path, Program, StateGrid, as_curves, solve
from mechdesign.leakage._budgets import allocate_budget, constant_budget
from mechdesign.leakage._correlations import Candidates, Correlation, Varying, check_directions, step_functions
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import windows
from mechdesign.leakage._transitions import as_target

# Relative margin of budgets below α, as in Algorithm 8, so that rounding never raises the leakage above α.
_MARGIN = 2.0**-47
# Number of bisection steps when a single budget is raised.
_HALVINGS = 20

# Relative bound of the rounding error of a sum of costs.
_ROUNDING = 2.0**-44

# Number of values on each grid axis, round by round, if both directions have correlations.
_COUNTS = (40, 80, 120, 160, 200, 240, 280)
# Largest total number of states of all grids; this number of states needs 2 GB of memory.
_MOST_STATES = 2.5e8
# Share of the values on an axis that are spaced evenly.
_EVEN_SHARE = 0.25
# The other values follow Cauchy distributions around known paths, with these widths as shares of α.
_WIDTHS = (0.05, 0.01)


@dataclass(frozen=True, eq=False)
class BestBudgets:
    """Budgets that keep the promise, with a lower bound of the cost of all such budgets.

    Attributes:
        epsilons: Budget of each release in nats, 0 if the release is left out, shape (T,).
        cost: Total cost of the budgets, rounded up.
        lower_bound: Lower bound of the cost of all budgets that keep the promise, rounded down.
        alpha: Largest leakage of each window of releases, in nats.
        window: Number of releases in a window; 1 bounds each release separately.
        constant: Cost of the budgets of Algorithm 7 on the same curves; None if they break the promise.
        allocated: Cost of the budgets of Algorithm 8 on the same curves; None if they break the promise.

    >>> found = best_budgets(1.0, [([0.0, 1.0], [1.0, 0.0])])
    >>> found.epsilons.tolist(), found.cost, found.gap
    ([1.0], 0.0, 0.0)
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
        """The largest possible saving by other budgets, as a share of the cost."""
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
    """Return budgets of least cost under which no window of releases leaks more than `alpha`.

    The function minimises Σ C_t(ε_t) over all ε_t ≥ 0 with a temporal leakage of at most α, by dynamic programming on
    grids. The grids are refined around the best paths. Rounding states to the grid in one direction gives feasible
    budgets. Rounding them in the other direction gives a lower bound of the cost. The budgets are checked by the
    recursions of `temporal` or `windows`, and cost at most as much as those of Algorithms 7 and 8.

    Args:
        alpha: Largest leakage of each release, or window of releases, in nats.
        costs: For each release a pair of arrays (epsilons, costs): ε rises, and costs do not rise. The cost is linear
            between the points, and constant before and beyond them.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, or None.
        forward: Pr(next state | state now), in the same forms as `backward`.
        window: Number of successive releases whose joint leakage is bounded (w-event privacy, Theorem 3). For more
            than 3 releases, the lower bound is computed for windows of 3, and may be far below the cost.
        tolerance: Relative gap between cost and lower bound at which to stop, at least 0.
        time_limit: CPU time in seconds after which no further refinement starts.

    Returns:
        The budgets with their cost and lower bound.

    Raises:
        InputError: An argument is not valid, or the correlations are `Candidates`.

    >>> curve = ([0.0, 1.0, 2.0], [1.0, 0.4, 0.3])
    >>> best = best_budgets(1.0, [curve, curve, ([0.0], [0.0])], backward=[[0.8, 0.2], [0.2, 0.8]])
    >>> bool(best.lower_bound <= best.cost < best.allocated), float(best.epsilons[2])
    (True, 0.0)
    """
    alpha = as_target(alpha)
    curves = as_curves(costs, alpha)
    window = as_integer(window, "window", 1, len(curves))
    tolerance, time_limit = as_number(tolerance, "tolerance"), as_number(time_limit, "time_limit")
    if tolerance < 0:
        raise InputError("tolerance", "is negative", value=tolerance, bound="a number >= 0")
    before, after = _functions(backward, len(curves), "backward"), _functions(forward, len(curves), "forward")
    check_directions([before], [after], stacklevel=3)
    search = _Search(Program(alpha, curves, (None, *before), (*after, None), min(window, WIDEST)), window)
    constant, allocated = search.start_from_published(backward, forward)
    search.refine(tolerance, time_limit)
    epsilons = search.epsilons
    read_only(epsilons)
    cost = search.cost(epsilons)
    return BestBudgets(epsilons, cost, min(search.lower_bound, cost), alpha, window, constant, allocated)


class _Search:
    """The search for budgets of least cost, with the best budgets and the best lower bound so far."""

    def __init__(self, program: Program, window: int) -> None:
        self._program, self._window = program, window
        known: dict[int, LossFunction | None] = {}
        self._correlations = tuple(
            Varying([known.setdefault(id(loss), _drop_matrix(loss)) for loss in losses])
            for losses in (program.before[1:], program.after[:-1])
        )
        self.lower_bound = self.cost(np.full(len(program), program.alpha)) * (1 - _ROUNDING)
        self.epsilons = self._trim(self._scale_down(np.full(len(program), program.alpha)))

    def cost(self, epsilons: Floats) -> float:
        """Return the total cost of budgets, rounded up."""
        each = (float(curve.at(value)) for curve, value in zip(self._program.curves, epsilons.tolist(), strict=True))
        return math.fsum(each) * (1 + _ROUNDING)

    def start_from_published(self, backward: Correlation, forward: Correlation) -> tuple[float | None, float | None]:
        """Start from Algorithms 7 and 8; return the cost of each one's budgets, or None if they break the promise."""
        if any(isinstance(each, Varying) for each in (backward, forward)):
            return None, None
        steps, alpha = len(self._program), self._program.alpha
        # Budgets of 0 are allowed here, and correlations that do not match were already reported.
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
        """Solve on successively finer grids until the relative gap is at most `tolerance`."""
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
        """Make budgets feasible, use up the remaining leakage, and keep them if they cost less than the best so far."""
        trimmed = self._trim(self._scale_down(epsilons))
        for fitted in (trimmed, self._trim(self._fill(trimmed))):
            if self.cost(fitted) < self.cost(self.epsilons) and self._leakage(fitted) <= self._program.alpha:
                self.epsilons = fitted

    def _leakage(self, epsilons: Floats) -> float:
        return float(windows(epsilons, self._window, *self._correlations).max())

    def _fits(self, epsilons: Floats) -> bool:
        return self._leakage(epsilons) <= self._program.alpha * (1 - _MARGIN)

    def _scale_down(self, epsilons: Floats) -> Floats:
        """Scale the budgets down until no window leaks more than α; return feasible budgets unchanged."""
        if self._leakage(epsilons) <= self._program.alpha:
            return epsilons
        low, high = 0.0, 1.0
        while high - low > 2.0**-40 * high and high > 2.0**-200:
            middle = (low + high) / 2 if low > 0 else high / 2
            low, high = (middle, high) if self._fits(middle * epsilons) else (low, middle)
        fitted: Floats = low * epsilons
        return fitted

    def _trim(self, epsilons: Floats) -> Floats:
        """Lower each budget as far as possible without changing its cost."""
        pairs = zip(self._program.curves, epsilons.tolist(), strict=True)
        return np.array([curve.least(epsilon) for curve, epsilon in pairs])

    def _fill(self, epsilons: Floats) -> Floats:
        """Raise the budgets one by one as far as possible, starting with the largest saving."""
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

    def _grids(self, count: int, relaxed: Path | None) -> list[StateGrid]:
        """Return a grid for each release: about `count` values per axis, dense near the best and relaxed paths."""
        program = self._program
        before = recursion.backward(self.epsilons, self._correlations[0])
        after = recursion.forward(self.epsilons, self._correlations[1])
        grids = []
        for step in range(len(program)):
            uses_before = step > 0 and (program.before[step] is not None or program.window > 1)
            uses_caps = step > 0 and (program.after[step - 1] is not None or program.window > 1)
            # If one direction alone has correlations, the same work allows a finer grid.
            many = count if (uses_before and uses_caps) or step == 0 else int(count**1.5)
            known = [(before[step - 1] if step else 0.0, after[step], self.epsilons[step])]
            if relaxed is not None:
                known.append((relaxed.before[step], relaxed.caps[step], relaxed.epsilons[step]))
            axes = [_values(program.alpha, list(centres), many) for centres in zip(*known, strict=True)]
            ends = np.array([0.0, program.alpha])
            grids.append(StateGrid(axes[0] if uses_before else ends, axes[1] if uses_caps else ends[1:], axes[2]))
        return grids


def _values(alpha: float, centres: list[float], count: int) -> Floats:
    """Return rising values from 0 to α: the quantiles of a mixture of a uniform distribution and Cauchy distributions.

    With Cauchy distributions, the spacing and thus the rounding errors grow with the square of the distance from a
    centre. The cost of a path also grows with the square of its distance from the best path. Large rounding errors
    therefore affect only expensive paths.
    """
    axis = np.linspace(0.0, alpha, 8001)
    shares = _EVEN_SHARE * axis / alpha
    for centre in centres:
        for width in _WIDTHS:
            share = np.arctan((axis - centre) / (width * alpha))
            shares += (1 - _EVEN_SHARE) / (len(centres) * len(_WIDTHS)) * (share - share[0]) / (share[-1] - share[0])
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
            remedy="find budgets under each correlation, and check them under the others with temporal",
        )
    return step_functions(correlation, steps, path)[0]


def _drop_matrix(loss: LossFunction | None) -> LossFunction | None:
    """Return the loss function without its matrix, so that later calls do not compare the two directions again."""
    return None if loss is None else LossFunction.from_lines(loss.n, loss.digest, list(loss.lines))
