"""What a release costs at each budget ε: curves that fall, linear between the points that are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._errors import InputError
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_array
from mechdesign.base._arrays import as_nonnegative
from mechdesign.base._arrays import require

__all__ = ["CostCurve", "as_curves"]


def __dir__() -> list[str]:
    return sorted(__all__)


_POINTS = "a pair of arrays (epsilons, costs), each of shape (k,), k >= 1"


@dataclass(frozen=True, eq=False)
class CostCurve:
    """The cost of one release as a function of its ε: linear between points, and constant before and beyond them.

    Attributes:
        epsilons: Budgets in nats, rising, shape (k,).
        costs: What the release costs with each, in any unit, never rising, shape (k,).
    """

    epsilons: Floats
    costs: Floats

    def at(self, epsilon: ArrayLike) -> Floats:
        """Return the cost at one ε or at an array of them."""
        return np.asarray(np.interp(as_array(epsilon, "epsilon", np.float64), self.epsilons, self.costs))

    def least(self, epsilon: float) -> float:
        """Return the least budget that costs no more than `epsilon` does; it differs where the curve is flat."""
        place = int(np.argmax(self.costs <= self.at(epsilon)))
        if place == 0 and self.costs[0] <= self.at(epsilon):
            return 0.0
        return min(float(self.epsilons[place]), epsilon) if self.costs[place] == self.at(epsilon) else epsilon


def as_curves(costs: Iterable[Sequence[ArrayLike]], alpha: float) -> tuple[CostCurve, ...]:
    """Return a checked curve for each release.

    Raises:
        InputError: A curve is no pair of arrays of one length, its ε do not rise, its costs rise, or it starts beyond
            `alpha`, so that nothing is known of any budget that may be spent.
    """
    if isinstance(costs, str) or not isinstance(costs, Iterable):
        raise InputError("costs", "are not curves", value=costs, bound=f"for each release {_POINTS}")
    known: dict[int, CostCurve] = {}
    # The list keeps every curve alive, so that no two of them share an id.
    given = list(costs)
    if not given:
        raise InputError("costs", "are empty", bound=f"for each release {_POINTS}")
    for step, points in enumerate(given):
        if id(points) not in known:
            known[id(points)] = _curve(points, f"costs[{step}]", alpha)
    return tuple(known[id(points)] for points in given)


def _curve(points: Sequence[ArrayLike], path: str, alpha: float) -> CostCurve:
    if isinstance(points, CostCurve):
        points = (points.epsilons, points.costs)
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
    require(rising, epsilons, f"{path}.epsilons", "larger than the one before", "sort the points by ε, each ε once")
    falling = np.append(True, values[1:] <= values[:-1])
    remedy = "a larger ε never costs more, as a channel for less serves too. Take for each ε the least cost up to it"
    require(falling, values, f"{path}.costs", "at most the cost before it, as costs must not rise with ε", remedy)
    if epsilons[0] > alpha:
        raise InputError(
            f"{path}.epsilons[0]",
            "is more than any release may spend",
            value=float(epsilons[0]),
            bound=f"at most alpha = {alpha:.6g}",
            remedy="raise alpha, or give the cost of a smaller ε; that of leaving the release out is the one at ε = 0",
        )
    return CostCurve(epsilons, values)
