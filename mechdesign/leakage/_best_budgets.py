"""Budgets of least cost: releases with steeper cost curves get a larger share of the promised leakage.

A dynamic program finds them. The state before release t is a pair (b, f). The backward leakage of release t − 1 is b,
and f is a cap on the forward leakage of release t. Spending ε ≤ f leads to the state

    b' = ε + L_B(b),    f' = max {x ≤ α : L_F(x) ≤ f − ε},

and release t leaks at most L_B(b) + f ≤ α. The least cost of all later releases rises with b and falls with f. On a
grid of states and of ε, rounding b' up and f' down gives a feasible path, whose budgets can be spent.

The *relaxed* program rounds b' down and f' up. For each cell between two values of ε, it uses the cost at the upper end
and the next state of the lower end. Therefore the grid contains, for every feasible sequence of budgets, a path that
costs no more. Caps are limited to α − L_B(b), where b is the lower end of a cell, so that the bound never depends on a
rounded cap.

A window of two releases leaks b' + f', where (b', f') is the state after its first release. If the middle release of a
window of three spends ε in the state (b, f), the window leaks b + ε + f'. In the program, both conditions are upper
bounds on f'. (Cao et al. 2019, Theorem 3, Equations (13) and (15).)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_nonnegative, read_only, require
from mechdesign.base._check import as_integer, as_number
from mechdesign.base._errors import BudgetWarning, CorrelationWarning, InputError
from mechdesign.base._warnings import suppress_warnings
from mechdesign.leakage import _recursion as recursion
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
_POINTS = "a pair of arrays (epsilons, costs), each of shape (k,), k >= 1"
# The longest window for which two state variables suffice.
_WIDEST = 3
# The relaxed program loosens each comparison by this share of α, which far exceeds the rounding errors of losses.
_FORGIVEN = 2.0**-40


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
    recursions of `temporal` and `window`, and cost at most as much as those of Algorithms 7 and 8.

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
    search = _Search(Program(alpha, curves, (None, *before), (*after, None), min(window, _WIDEST)), window)
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


@dataclass(frozen=True, eq=False)
class CostCurve:
    """The cost of one release as a function of its ε: linear between points, and constant before and beyond them.

    Attributes:
        epsilons: Budgets in nats, rising, shape (k,).
        costs: Cost of the release at each budget, in any unit, not rising, shape (k,).

    >>> CostCurve(np.array([0.0, 1.0]), np.array([4.0, 2.0])).at(0.5).item()
    3.0
    """

    epsilons: Floats
    costs: Floats

    def at(self, epsilon: float | Floats) -> Floats:
        """Return the cost at one or several budgets.

        Args:
            epsilon: Budgets in nats, a number or an array.

        Returns:
            The costs, of the shape of `epsilon`.
        """
        return np.asarray(np.interp(epsilon, self.epsilons, self.costs))

    def least(self, epsilon: float) -> float:
        """Return the least budget with the same cost as `epsilon`, which is smaller only where the curve is flat.

        Args:
            epsilon: A budget in nats.

        Returns:
            The least budget that does not cost more than `epsilon`.
        """
        place = int(np.argmax(self.costs <= self.at(epsilon)))
        if place == 0 and self.costs[0] <= self.at(epsilon):
            return 0.0
        return min(float(self.epsilons[place]), epsilon) if self.costs[place] == self.at(epsilon) else epsilon


def as_curves(costs: Iterable[Sequence[ArrayLike]], alpha: float) -> tuple[CostCurve, ...]:
    """Return a checked curve for each release.

    Raises `InputError` if a curve is not a pair of arrays of one length, if its ε do not rise, or if its costs rise.
    The function also refuses a curve that starts beyond `alpha`, because the cost of all allowed budgets is then
    unknown.
    """
    if isinstance(costs, str) or not isinstance(costs, Iterable):
        raise InputError("costs", "are not curves", value=costs, bound=f"for each release {_POINTS}")
    known: dict[int, CostCurve] = {}
    # The list keeps every curve alive, because the id of a deleted curve could be reused for another curve.
    given = list(costs)
    if not given:
        raise InputError("costs", "are empty", bound=f"for each release {_POINTS}")
    for step, points in enumerate(given):
        if id(points) not in known:
            known[id(points)] = _curve(points, f"costs[{step}]", alpha)
    return tuple(known[id(points)] for points in given)


def _curve(points: Sequence[ArrayLike], path: str, alpha: float) -> CostCurve:
    try:
        epsilons, values = points
    except (TypeError, ValueError) as error:
        raise InputError(path, "is not a curve", value=points, bound=_POINTS) from error
    epsilons = as_nonnegative(epsilons, f"{path}.epsilons", 1)
    values = as_nonnegative(values, f"{path}.costs", 1)
    if len(epsilons) != len(values) or not len(values):
        found = (len(epsilons), len(values))
        raise InputError(path, "has arrays of different lengths, or empty ones", value=found, bound=_POINTS)
    rising = np.append(True, epsilons[1:] > epsilons[:-1])
    require(
        rising,
        epsilons,
        f"{path}.epsilons",
        "larger than the one before",
        "sort the points by ε, and give each ε only once",
    )
    falling = np.append(True, values[1:] <= values[:-1])
    remedy = "a channel for a smaller ε also satisfies a larger ε. For each ε, take the least cost of any ε up to it"
    require(falling, values, f"{path}.costs", "at most the preceding cost, because costs must not rise with ε", remedy)
    if epsilons[0] > alpha:
        raise InputError(
            f"{path}.epsilons[0]",
            "is larger than the budget of any release",
            value=float(epsilons[0]),
            bound=f"at most alpha = {alpha:.6g}",
            remedy="raise alpha, or give the cost at a smaller ε; the cost at ε = 0 is that of leaving the release out",
        )
    return CostCurve(epsilons, values)


@dataclass(frozen=True)
class Program:
    """The problem of least cost: minimise the sum of the curves while no window of releases leaks more than `alpha`.

    For each release, `before` contains the loss function from the previous release (None for the first release). For
    each release, `after` contains the loss function from the next release. Both tuples have one entry for each release.
    """

    alpha: float
    curves: tuple[CostCurve, ...]
    before: tuple[LossFunction | None, ...]
    after: tuple[LossFunction | None, ...]
    window: int = 1

    def __len__(self) -> int:
        return len(self.curves)


class StateGrid(NamedTuple):
    """The grids of one release, rising from 0 to α: for the previous backward leakage, for the cap and for ε.

    Without a correlation in its direction, an axis contains only its end points, and the axis of caps only α.
    """

    before: Floats
    caps: Floats
    epsilons: Floats


class Path(NamedTuple):
    """A path through the grids: the states and budgets of all releases, three arrays of shape (T,)."""

    before: Floats
    caps: Floats
    epsilons: Floats


def solve(program: Program, grids: list[StateGrid], *, relaxed: bool) -> tuple[float, Path]:
    """Return the least cost on the grids and its path; with `relaxed`, the cost is a lower bound of all costs."""
    values: list[Floats] = []
    following: Floats | None = None
    for step in reversed(range(len(program))):
        stage = _Stage(program, grids, step, relaxed, following)
        if following is None:
            value = stage.final()
        else:
            value = np.full(stage.caps.shape, np.inf)
            for choice in stage.choices():
                np.minimum(value, choice.total, out=value)
        values.append(value)
        following = _pad(value, relaxed)
    values.reverse()
    cap = len(grids[0].caps) - 1
    return float(values[0][0, cap]), _path(program, grids, values, relaxed)


class _Choice(NamedTuple):
    """The effect of one value or cell of ε: which state follows each state, and the total cost from there on."""

    epsilon: int
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    total: Floats


class _Stage:
    """The states of one release, or only the state at `place`, with the effect of each ε on these states."""

    def __init__(
        self,
        program: Program,
        grids: list[StateGrid],
        step: int,
        relaxed: bool,
        following: Floats | None,
        place: tuple[int, int] | None = None,
    ) -> None:
        before, caps, self._epsilons = grids[step]
        if place is not None:
            before, caps = before[place[0] : place[0] + 1], caps[place[1] : place[1] + 1]
        self._program, self._relaxed, self._following, self._step = program, relaxed, following, step
        self._next = grids[step + 1] if following is not None else None
        self._forgiven = _FORGIVEN * program.alpha if relaxed else 0.0
        self._state, self._given = before, caps
        self._carried = _loss(program.before[step], before)
        # Leakage still allowed for this and later releases, regardless of the cap.
        used = np.zeros_like(before) if step == 0 else self._carried if program.window == 1 else before
        self._limit = program.alpha - used + self._forgiven
        self.caps = np.minimum(caps[None, :], self._limit[:, None])

    def final(self) -> Floats:
        """Return the costs of the last release, which spends its whole cap."""
        costs = self._program.curves[self._step].at(np.maximum(self.caps, 0.0))
        return np.where(self.caps < 0, np.inf, costs)

    def choices(self) -> Iterator[_Choice]:
        """Yield the next states and costs of each ε; the cost of a forbidden choice is infinite."""
        assert self._following is not None
        assert self._next is not None
        curve, grid, flat = self._program.curves[self._step], self._next, self._following.ravel()
        width = self._following.shape[1]
        carried_on = _loss(self._program.after[self._step], grid.caps)
        prices = curve.at(self._epsilons)
        at_caps = curve.at(np.maximum(self.caps, 0.0)) if self._relaxed else None
        for index, epsilon in enumerate(self._epsilons.tolist()):
            leads_to = epsilon + self._carried - self._forgiven
            if self._relaxed:
                rows = np.maximum(np.searchsorted(grid.before, leads_to, side="right") - 1, 0)
            else:
                rows = np.searchsorted(grid.before, leads_to, side="left")
            # Number of allowed caps for the next release; if it is 0, padding makes the cost infinite.
            columns = np.minimum(
                np.searchsorted(carried_on, self._given + (self._forgiven - epsilon), side="right")[None, :],
                np.searchsorted(carried_on, self._limit + (self._forgiven - epsilon), side="right")[:, None],
            )
            if self._program.window == _WIDEST and self._step > 0:
                left = self._program.alpha - self._state - epsilon + self._forgiven
                columns = np.minimum(columns, np.searchsorted(grid.caps, left, side="right")[:, None])
            total = flat.take(rows[:, None] * width + columns)
            if at_caps is None:
                total += prices[index]
            else:
                # No release spends more than its cap. Costs never rise with ε, so the cost at the cap is a lower bound.
                total += np.maximum(prices[min(index + 1, len(prices) - 1)], at_caps)
            yield _Choice(index, rows, columns, total)


def _path(program: Program, grids: list[StateGrid], values: list[Floats], relaxed: bool) -> Path:
    row, column = 0, len(grids[0].caps) - 1
    states: list[tuple[float, float, float]] = []
    for step in range(len(program)):
        last = step == len(program) - 1
        following = None if last else _pad(values[step + 1], relaxed)
        stage = _Stage(program, grids, step, relaxed, following, (row, column))
        cap = float(stage.caps[0, 0])
        if last:
            states.append((float(grids[step].before[row]), cap, max(cap, 0.0)))
            break
        best = min(stage.choices(), key=lambda choice: float(choice.total[0, 0]))
        states.append((float(grids[step].before[row]), cap, float(grids[step].epsilons[best.epsilon])))
        row = min(int(best.rows[0]), len(grids[step + 1].before) - 1)
        column = int(best.columns[0, 0])
        column = min(column, len(grids[step + 1].caps) - 1) if relaxed else max(column - 1, 0)
    return Path(*np.array(states).T)


def _pad(value: Floats, relaxed: bool) -> Floats:
    """Add a column for states without an allowed cap, and a row for values beyond the grid.

    Column k contains the costs of states with k allowed caps. This is the cost at the k-th cap if caps are rounded
    down, and at the next larger cap if they are rounded up.
    """
    rows, columns = value.shape
    padded = np.full((rows + 1, columns + 1), np.inf)
    if relaxed:
        padded[:-1, 1:-1], padded[:-1, -1] = value[:, 1:], value[:, -1]
    else:
        padded[:-1, 1:] = value
    return padded


def _loss(loss: LossFunction | None, leakage: Floats) -> Floats:
    return np.zeros_like(leakage) if loss is None else np.asarray(loss(leakage))
