"""Leakages rounded up, so that no bound is below the value that it bounds, and sums of budgets that are exact.

A budget is the decimal that its float prints. Where nothing is lost between releases (L is 0 or the identity) leakages
are sums of these decimals. Elsewhere L(x) is taken a share 2⁻⁴⁸ too large: its value has relative errors of at most 24
units of 2⁻⁵³. Where L(x) is more than half of x, it is x less the deficit x − L(x), which has as many digits of its
own, and the sums round up once. So whatever stays at its fixed point in exact numbers stays there here, however often
it is repeated: if ε ≤ (1 − 4·2⁻⁴⁸)(X − L(X)) as computed, no release whose budget is at most ε takes a leakage of at
most X beyond X; see `ceiling`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._transitions import rounded_up

Amount = Fraction | float
"""A leakage in nats: a fraction where it is exact, else a float that it does not pass; 0.0 is exact."""

# Above the relative error of a value of L, or of a deficit, and what makes up for it twice over.
_SLACK = 2.0**-48
_DEEP = 4 * _SLACK
# The same for a sum of three numbers.
_SUMMED = 1 + 2.0**-50


@functools.lru_cache(maxsize=1 << 12)
def decimal(number: float) -> Fraction:
    """Return the decimal that a finite float prints."""
    return as_decimal(number)


class Step(NamedTuple):
    """What other releases add to the leakage of one, and a float that is at least this and its own ε together."""

    carried: Amount
    reached: float


def first(epsilon: float) -> Step:
    """Return the step of a release to which no other adds anything."""
    return Step(0.0, _above(epsilon))


def advance(loss: LossFunction | None, step: Step, spent: float, epsilon: float) -> Step:
    """Return the step after `step`, whose release spent `spent`, for a release that spends `epsilon`: L(x) + ε."""
    if loss is None or not loss.adds or step.reached == 0:
        return first(epsilon)
    x, most = step.reached, _above(epsilon)
    if loss.identity:
        exact = isinstance(step.carried, Fraction) or step.carried == 0
        return Step(Fraction(step.carried) + decimal(spent) if exact else x, _sum(x, most))
    value, deficit = _bounds(loss, x, _SLACK)
    if value is not None:
        return Step(value, _sum(value, most))
    return Step(math.nextafter(x - deficit, math.inf), _sum(x, _sum(most, -deficit)))


def ceiling(losses: Sequence[LossFunction], epsilon: float) -> Step:
    """Return bounds for ever under budgets of at most ε: what is carried at most, and X, which none passes.

    X is as good for a first release of more than ε that reaches X at most. Without losses nothing is carried, whatever
    is reached; both are infinite where nothing is found to stay below anything.
    """
    if not losses:
        return Step(0.0, math.inf)
    most = _above(epsilon)
    X = max(max(loss.supremum(epsilon) for loss in losses), most)
    share = 2.0**-52
    while math.isfinite(X) and share < 1:
        deficits = [_bounds(loss, X, _DEEP)[1] for loss in losses]
        if most <= min(deficits):
            return Step(max(math.nextafter(X - deficit, math.inf) for deficit in deficits), X)
        X *= 1 + share
        share *= 2
    return Step(math.inf, math.inf)


def total(before: Amount, after: Amount, epsilon: float) -> float:
    """Return what a release leaks in all, by its own ε and by what is carried from both sides, rounded up.

    It is the least float whose decimal is no less where both are exact.
    """
    if before == 0 and after == 0:
        return epsilon
    exact = isinstance(after, Fraction) or (isinstance(before, Fraction) and after == 0)
    if exact and before != math.inf:
        return rounded_up(Fraction(before) + Fraction(after) + decimal(epsilon))
    # Four roundings, and two for the difference of numbers from their decimals.
    return math.nextafter((float(before) + float(after) + epsilon) * _SUMMED, math.inf)


def that_count(losses: Iterable[LossFunction | None]) -> list[LossFunction]:
    """Return those of several losses that may be the largest: the identity alone, or all but those that are 0."""
    known = [loss for loss in losses if loss is not None and loss.adds]
    return next(([loss] for loss in known if loss.identity), known)


def _bounds(loss: LossFunction, x: float, slack: float) -> tuple[float | None, float]:
    """Return L(x) from above, where it is less than half of x, else None; and x − L(x) from below."""
    value, deficit = loss.split(x)
    if value < x / 2:
        larger = math.nextafter(value * (1 + slack), math.inf)
        return larger, max(math.nextafter(x - larger, -math.inf), 0.0)
    return None, max(math.nextafter(deficit * (1 - slack), -math.inf), 0.0)


def _above(epsilon: float) -> float:
    """Return a float that is no less than the decimal of `epsilon`, as a number."""
    return math.nextafter(epsilon, math.inf) if epsilon else 0.0


def _sum(a: float, b: float) -> float:
    """Return the least float ≥ a + b."""
    nearest = a + b
    if not math.isfinite(nearest):
        return nearest
    # The error of the sum, exact (Knuth, TwoSum).
    part = nearest - a
    error = (a - (nearest - part)) + (b - part)
    return math.nextafter(nearest, math.inf) if error > 0 else nearest
