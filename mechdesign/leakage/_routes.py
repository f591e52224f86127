"""Leakage of repeated releases by several independent routes to the loss function, and their differences.

The routes are the hull (`LossFunction`), linear-fractional programs (`loss_by_programs`), and Algorithms 1, 3 and 5 of
Cao et al. (2019). The recursions (13) and (15) of the paper are the same for all: BPL_t = L_B(BPL_{t−1}) + ε_t, FPL_t =
L_F(FPL_{t+1}) + ε_t, and TPL_t = BPL_t + FPL_t − ε_t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, SolverError
from mechdesign.leakage import cao2019
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._loss_by_programs import loss_by_programs
from mechdesign.leakage._row_pair import LARGEST_ALPHA

HULL, PROGRAMS = "hull", "lfp"
ALGORITHMS = ("Algorithm 1", "Algorithm 3", "Algorithm 5")
ROUTES: Mapping[str, tuple[str, ...]] = {
    "hull": (HULL,),
    "lfp": (PROGRAMS,),
    "algorithms": ALGORITHMS,
    "all": (HULL, PROGRAMS, *ALGORITHMS),
}
MAX_DIFFERENCE = 1e-9
"""Largest difference in nats between two routes; a larger one is an error."""

_Loss = Callable[[float], float]


class RouteLeakage(NamedTuple):
    """The leakage of each release by one route, in nats, each of shape (T,)."""

    backward: Floats
    forward: Floats
    temporal: Floats


class Difference(NamedTuple):
    """The largest difference of a route from the first one in nats, and its release."""

    size: float
    step: int


def leakage_by_routes(
    budgets: Floats, before: LossFunction | None, after: LossFunction | None, routes: tuple[str, ...]
) -> dict[str, RouteLeakage]:
    """Return the leakage by each route.

    Raises `InputError` for a correlation without a matrix of numbers, and for α above 20 in linear programs.
    """
    largest = float(budgets.sum())
    found = {}
    for route in routes:
        backward = _accumulate(budgets, _loss_by(route, before, largest, "backward"))
        forward = _accumulate(budgets[::-1], _loss_by(route, after, largest, "forward"))[::-1]
        found[route] = RouteLeakage(backward, forward, backward + forward - budgets)
    return found


def differences(found: Mapping[str, RouteLeakage]) -> dict[str, Difference]:
    """Return the largest difference of each other route from the first one."""
    (_, first), *others = found.items()
    result = {}
    for route, other in others:
        sizes = np.abs(other.temporal - first.temporal)
        step = int(np.argmax(sizes))
        result[route] = Difference(float(sizes[step]), step)
    return result


def require_agreement(
    found: Mapping[str, RouteLeakage], before: LossFunction | None, after: LossFunction | None
) -> None:
    """Raise `SolverError` that names route, release and pairs if a difference is larger than `MAX_DIFFERENCE`."""
    first = next(iter(found.values()))
    for route, (size, step) in differences(found).items():
        if not size <= MAX_DIFFERENCE:
            pairs = {
                "backward": _pair(before, float(first.backward[step - 1]) if step else 0.0),
                "forward": _pair(after, float(first.forward[step + 1]) if step + 1 < len(first.forward) else 0.0),
            }
            rows = " and ".join(f"rows {q} and {d} of the {name} matrix" for name, (q, d) in pairs.items() if q >= 0)
            raise SolverError(
                f"the route {route} differs from the hull by {size:.3g} nats at release {step}"
                + (f", which {rows} determine" if rows else "")
            )


def _accumulate(budgets: Floats, loss: _Loss) -> Floats:
    """Return α_t = L(α_{t−1}) + ε_t with α_0 = ε_0, shape (T,)."""
    reached = np.zeros(len(budgets))
    for step, epsilon in enumerate(budgets.tolist()):
        reached[step] = epsilon + (loss(float(reached[step - 1])) if step else 0.0)
    return reached


def _loss_by(route: str, function: LossFunction | None, largest: float, name: str) -> _Loss:
    """Return the loss of one direction by a route, for α up to `largest`."""
    if function is None:
        return lambda alpha: 0.0
    if route == HULL:
        return function
    if function.matrix is None or function.ends:
        remedy = "use the route hull, or give every row of the matrix as numbers"
        raise InputError(name, "has rows that are not numbers", bound="a row-stochastic matrix", remedy=remedy)
    matrix = function.matrix
    if route == PROGRAMS:
        return lambda alpha: float(loss_by_programs(matrix, [alpha]).values[0])
    if route == "Algorithm 1":
        return lambda alpha: float(cao2019.algorithm1(matrix, alpha))
    tables = cao2019.algorithm2(matrix)
    if route == "Algorithm 3":
        return lambda alpha: float(cao2019.algorithm3(matrix, alpha, tables))
    pieces = cao2019.algorithm4(matrix, largest * (1 + 1e-9) or 1.0, tables)
    return lambda alpha: float(cao2019.algorithm5(matrix, alpha, pieces))


def _pair(function: LossFunction | None, alpha: float) -> tuple[int, int]:
    """Return the rows that attain L(α), or (−1, −1) if there is no correlation, or if its rows are not numbers."""
    if function is None or function.matrix is None or function.ends or alpha == 0:
        return -1, -1
    q, d = loss_by_programs(function.matrix, [min(alpha, LARGEST_ALPHA)]).pairs[0].tolist()
    return q, d
