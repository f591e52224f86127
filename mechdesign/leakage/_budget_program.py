"""The dynamic program that finds budgets of least cost.

The state before release t is a pair (b, f). The backward leakage of release t − 1 is b, and f is a cap on the forward
leakage of release t. Spending ε ≤ f leads to the state

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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, as_nonnegative, require
from mechdesign.base._errors import InputError
from mechdesign.leakage._loss import LossFunction

_POINTS = "a pair of arrays (epsilons, costs), each of shape (k,), k >= 1"


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


WIDEST = 3
"""The longest window for which two state variables suffice."""

# The relaxed program loosens each comparison by this share of α, which far exceeds the rounding errors of losses.
_FORGIVEN = 2.0**-40


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
            if self._program.window == WIDEST and self._step > 0:
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
