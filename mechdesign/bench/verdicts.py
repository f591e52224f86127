"""What a solver's numbers are worth as they were returned, before anybody mends them."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.measures._tight import exact_rows
from mechdesign.measures._tight import tight
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._claims import Floor
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats

__all__ = ["OPTIMAL_GAP", "SLACK", "Returned", "Verdict", "claimed", "returned", "tight_epsilon"]


OPTIMAL_GAP = 1e-5
"""The relative distance from a proved lower bound up to which a cost counts as optimal."""

SLACK = 1e-6
"""How much a returned matrix may miss what was asked for: ε and a floor relatively, a row sum and a sign absolutely.

No matrix of floats keeps a bound exactly where it is tight; this much is forgiven, so that what is called not private
is so by more than rounding.
"""


class Verdict(enum.StrEnum):
    """What a solver says of its numbers, and what is true of them: one vocabulary for both."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    NOT_PRIVATE = "not-private"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    TIMEOUT = "timeout"


_CLAIMS = {
    Status.OPTIMAL: Verdict.OPTIMAL,
    Status.STATED: Verdict.FEASIBLE,
    Status.INFEASIBLE: Verdict.INFEASIBLE,
    Status.TIME_LIMIT: Verdict.TIMEOUT,
}


def claimed(status: Status) -> Verdict:
    """Return what a solver says; whatever is neither an optimum nor a reason is a failure."""
    return _CLAIMS.get(status, Verdict.FAILED)


@dataclass(frozen=True)
class Returned:
    """A matrix as a solver returned it, with rows divided by their sums.

    Attributes:
        cost: Its cost.
        tight_epsilon: The least ε of its pair bound, rounded up; infinite where a zero, or less, stands beside a
            positive entry; None where no bound between secrets is asked for.
        fault: What is wrong with it, NOT_PRIVATE or INFEASIBLE, or None.
    """

    cost: float
    tight_epsilon: float | None
    fault: Verdict | None

    def verdict(self, lower_bound: float) -> Verdict:
        """Return what it is, given a proved lower bound."""
        if self.fault is not None:
            return self.fault
        close = self.cost - lower_bound <= OPTIMAL_GAP * max(abs(self.cost), 1e-300)
        return Verdict.OPTIMAL if close else Verdict.FEASIBLE


def returned(problem: Problem, matrix: Floats) -> Returned:
    """Judge a matrix (n, m) for a problem, with no more forgiven than `SLACK`."""
    if not np.isfinite(matrix).all():
        return Returned(math.inf, math.inf if _bounds(problem) else None, Verdict.INFEASIBLE)
    sums = matrix.sum(axis=1)
    positive = np.maximum(matrix, 0.0)
    weights = positive.sum(axis=1)
    if (weights <= 0).any():
        return Returned(math.inf, math.inf if _bounds(problem) else None, Verdict.INFEASIBLE)
    rows = positive / weights[:, None]
    each = (rows * problem.cost).sum(axis=1)
    cost = float(each.max() if problem.objective == "worst" else problem.prior @ each)
    found = [(tight_epsilon(matrix, bound), float(bound.epsilon)) for bound in _bounds(problem)]
    fault = None
    if any(tight > asked * (1 + SLACK) for tight, asked in found):
        fault = Verdict.NOT_PRIVATE
    elif np.abs(sums - 1).max() > SLACK or matrix.min() < -SLACK or not all(_met(rows, problem)):
        fault = Verdict.INFEASIBLE
    return Returned(cost, max(tight for tight, _ in found) if found else None, fault)


def tight_epsilon(matrix: Floats, bound: ExponentBound) -> float:
    """Return the least ε for which a matrix of floats, rows divided by their sums, keeps a bound; rounded up.

    Negative entries count as zeros, which a positive entry may not stand beside; secrets at distance 0 may differ by
    what rounding makes of them. The rest is `mechdesign.measures._tight`.
    """
    positive = np.maximum(matrix, 0.0)
    weighted = bound.weights > 0
    if not weighted.all() and _differ(positive, bound, ~weighted):
        return math.inf
    arrays = {name: getattr(bound, name)[weighted] for name in ("sources", "targets", "weights")}
    return tight(exact_rows(matrix, weights=True), replace(bound, **arrays)).epsilon


def _differ(positive: Floats, bound: ExponentBound, pairs: Flags) -> bool:
    """Tell whether rows differ that are at distance 0, by more than what rounding makes of them."""
    rows = positive / positive.sum(axis=1, keepdims=True)
    return bool((np.abs(rows[bound.sources[pairs]] - rows[bound.targets[pairs]]) > SLACK).any())


def _bounds(problem: Problem) -> list[ExponentBound]:
    return [claim for claim in problem.claims if isinstance(claim, ExponentBound)]


def _met(rows: Floats, problem: Problem) -> Iterator[bool]:
    """Yield, for each floor, whether the adversary's expected error is above it."""
    for claim in problem.claims:
        if isinstance(claim, Floor):
            error = float(((claim.error * problem.prior) @ rows).min(axis=0).sum())
            yield error >= float(claim.minimum) * (1 - SLACK)
