"""Leakages rounded up, so that no bound is below the true value, and exact sums of budgets.

A budget means the decimal number that Python prints for its float. If L is 0 or the identity, leakages are exact sums
of these decimals. Otherwise L(x) is increased by a share 2⁻⁴⁸, because its relative error is at most 24 units of 2⁻⁵³.
If L(x) is more than half of x, it is computed as x minus the deficit x − L(x), which is accurate by itself. Sums are
rounded up once.

Therefore repeated rounding does not raise a leakage above a fixed point, for any number of releases. Assume that the
computed values satisfy ε ≤ (1 − 4·2⁻⁴⁸)(X − L(X)). Then a leakage of at most X stays at most X after every release with
a budget of at most ε; see `ceiling`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from mechdesign.certify._exact import as_decimal, nearest
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._transitions import round_up

Amount = Fraction | float
"""A leakage in nats: an exact fraction, or a float that is an upper bound; 0.0 is exact."""

Budget = Fraction | float
"""The budget of a release in nats: an exact fraction, or a float that stands for its decimal."""

# A bound of the relative error of values and deficits of L, and a margin for such an error.
_SLACK = 2.0**-48
_DEEP = 4 * _SLACK
# A bound of the relative rounding error of a sum of three numbers, as a factor.
_SUMMED = 1 + 2.0**-50
# During steps without a release, a leakage is no longer reduced below this share of it.
_NEGLIGIBLE = 2.0**-100


@functools.lru_cache(maxsize=1 << 12)
def decimal(number: Budget) -> Fraction:
    """Return a fraction itself, and the decimal number that Python prints for a finite float."""
    return number if isinstance(number, Fraction) else as_decimal(number)


class Step(NamedTuple):
    """The leakage that other releases add to one release, and the total leakage of this release.

    Attributes:
        carried: Leakage that other releases add.
        reached: A float that is at least the sum of `carried` and the release's ε.
    """

    carried: Amount
    reached: float


def first(epsilon: Budget) -> Step:
    """Return the step of a release to whose leakage no other release adds."""
    return Step(0.0, _above(epsilon))


def advance(loss: LossFunction | None, step: Step, spent: Budget, epsilon: Budget) -> Step:
    """Return the step L(x) + ε of a release with budget `epsilon` that follows `step`.

    `spent` is the budget that the release of `step` spent.
    """
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
    """Return bounds of the carried leakage and of the total X over an infinite horizon with budgets up to ε.

    X remains a bound if the first release spends more than ε but leaks at most X by itself. Without losses nothing is
    carried, and X is infinite. Both bounds are infinite if no finite bound is found.
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


def carry(
    chains: Iterable[Iterable[LossFunction | None]],
    budgets: Sequence[Budget],
    gaps: Sequence[int] | None = None,
) -> list[Amount]:
    """Return the largest amount, over all chains, that the earlier releases of a sequence add to each release.

    The backward loss functions in the order of time give the left term of Equation (13) of Cao et al. (2019). The
    forward ones, with releases in the reverse order, give that of Equation (15).

    Args:
        chains: For each candidate, the loss function from each release to the next; without one nothing is carried.
        budgets: The budgets of the releases.
        gaps: The number of steps from each release to the next, by default 1; the steps between spend nothing.

    Returns:
        The amounts, in the order of the budgets.
    """
    found = [[step.carried for step in carry_steps(chain, budgets, gaps)] for chain in chains]
    return [max(amounts) for amounts in zip(*found or [[0.0] * len(budgets)], strict=True)]


def carry_steps(
    chain: Iterable[LossFunction | None],
    budgets: Sequence[Budget],
    gaps: Sequence[int] | None = None,
    known: Sequence[Step] = (),
    rest: Sequence[Step] = (),
) -> list[Step]:
    """Return the step of each release for one candidate.

    `known` are steps of the first releases, and `rest` those of a sequence that lacks the first release: where one of
    them is met again, the others follow.
    """
    steps = [*known] or [first(budgets[0])]
    step, done = steps[-1], len(steps)
    passed = zip(budgets[done - 1 : -1], budgets[done:], rest or itertools.repeat(None), strict=False)
    for loss, gap, (spent, epsilon, old) in zip(chain, gaps or itertools.repeat(1), passed, strict=False):
        if gap > 1:
            step, spent = _wait(loss, step, spent, gap - 1)
        step = advance(loss, step, spent, epsilon)
        if step == old:
            return [*steps, *rest[len(steps) - 1 :]]
        steps.append(step)
    return steps


@functools.lru_cache(maxsize=1 << 10)
def _wait(loss: LossFunction | None, step: Step, spent: Budget, steps: int) -> tuple[Step, Budget]:
    """Return the last of some steps that spend nothing, and its budget."""
    least = step.reached * _NEGLIGIBLE
    for _ in range(steps):
        idle = advance(loss, step, spent, 0.0)
        if (spent == 0 and idle == step) or step.reached < least:
            # Further steps change nothing, or only lower what is already negligible.
            break
        step, spent = idle, 0.0
    return step, spent


def total(before: Amount, after: Amount, epsilon: Budget) -> float:
    """Return the leakage of a release, rounded up to a float: its ε and the amounts carried from both sides.

    If both amounts are exact, the result is the least float whose decimal is at least the sum.
    """
    return as_float(add_up(before, after, epsilon))


def as_float(amount: Amount) -> float:
    """Return the least float whose decimal is at least an exact amount; a float is returned as it is."""
    return round_up(amount) if isinstance(amount, Fraction) else amount


def add_up(before: Amount, after: Amount, epsilon: Budget) -> Amount:
    """Return the leakage of a release, as `total` does; it is exact if both amounts and the budget are."""
    if before == 0 and after == 0:
        return epsilon
    exact = isinstance(after, Fraction) or (isinstance(before, Fraction) and after == 0)
    if exact and before != math.inf:
        return Fraction(before) + Fraction(after) + decimal(epsilon)
    # Four roundings in the sum, and two in the conversion of decimals to floats.
    return math.nextafter((float(before) + float(after) + _near(epsilon)) * _SUMMED, math.inf)


def that_count(losses: Iterable[LossFunction | None]) -> list[LossFunction]:
    """Return the loss functions that may be the largest: only the identity if present, else all that are not 0."""
    known = [loss for loss in losses if loss is not None and loss.adds]
    return next(([loss] for loss in known if loss.identity), known)


def _bounds(loss: LossFunction, x: float, slack: float) -> tuple[float | None, float]:
    """Return an upper bound of L(x) if it is less than half of x, else None; and a lower bound of x − L(x)."""
    value, deficit = loss.split(x)
    if value < x / 2:
        larger = math.nextafter(value * (1 + slack), math.inf)
        return larger, max(math.nextafter(x - larger, -math.inf), 0.0)
    return None, max(math.nextafter(deficit * (1 - slack), -math.inf), 0.0)


def _above(epsilon: Budget) -> float:
    """Return a float that is at least the fraction `epsilon`, or the decimal of the float `epsilon`."""
    return math.nextafter(_near(epsilon), math.inf) if epsilon else 0.0


def _near(epsilon: Budget) -> float:
    return epsilon if isinstance(epsilon, float) else nearest(epsilon)


def _sum(a: float, b: float) -> float:
    """Return the least float ≥ a + b."""
    nearest = a + b
    if not math.isfinite(nearest):
        return nearest
    # The error of the sum, exact (Knuth, TwoSum).
    part = nearest - a
    error = (a - (nearest - part)) + (b - part)
    return math.nextafter(nearest, math.inf) if error > 0 else nearest
