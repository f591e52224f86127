"""Budgets that keep the leakage of every release at or below α (Algorithms 7 and 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer
from mechdesign.base._errors import BudgetWarning
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._series import LONGEST
from mechdesign.leakage._transitions import as_target, round_down
from mechdesign.leakage._upwards import Step, ceiling, that_count, total

# Relative margin below α, so that rounding never raises the leakage above α.
_MARGIN = 2.0**-47
# Rounded sums can exceed α by at most this number of units in the last place.
_ROUNDINGS = 64

_Losses = Sequence[LossFunction | None]


@in_own_arithmetic
def constant_budget(alpha: float, backward: Correlation = None, forward: Correlation = None) -> float:
    """Return the largest constant ε that keeps every leakage at or below α over an infinite horizon.

    By Algorithm 7, the sum of the suprema of backward and forward leakage, minus ε, equals α. If two rows of a matrix
    have disjoint supports, no positive ε exists; then the result is 0.0 with a `BudgetWarning`. The result is rounded
    down.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        The budget of every release, in nats.

    >>> round(constant_budget(1.0, backward=[[0.8, 0.2], [0.1, 0.9]], forward=[[0.8, 0.2], [0.1, 0.9]]), 9)
    0.169120416
    """
    alpha = as_target(alpha)
    before, after = functions_of_both(backward, forward)
    if _identity(before) or _identity(after):
        _warn_of_zero("over an infinite horizon", before, after)
    return constant(alpha, before, after)


@in_own_arithmetic
def allocate_budget(alpha: float, steps: int, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return budgets under which every release leaks exactly α, up to rounding down.

    Algorithm 8: the first release gets ε_1 = α_B, the last ε_T = α_F, and all others ε_m, with L_B(α_B) + ε_m = α_B,
    L_F(α_F) + ε_m = α_F and α_B + α_F − ε_m = α. A single release gets α. If a loss function is the identity, all
    middle budgets ε_m are 0, and a `BudgetWarning` is issued. If only the backward loss is the identity, the first
    release gets α. If only the forward loss is the identity, the last release gets α. If both losses are the identity,
    the first and the last release get α/2 each.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        steps: Number of releases, from 1 to 100,000.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        The budgets in nats, shape (steps,).

    >>> allocate_budget(1.0, 2).tolist()
    [1.0, 1.0]
    """
    alpha, steps = as_target(alpha), as_integer(steps, "steps", 1, LONGEST)
    before, after = functions_of_both(backward, forward)
    back_identity, ahead_identity = _identity(before), _identity(after)
    if steps > 2 and (back_identity or ahead_identity):
        _warn_of_zero("between the first and the last release", before, after)
    elif steps == 2 and back_identity != ahead_identity:
        _warn_of_zero("at one of the two releases", before, after)
    return np.array(allocated(alpha, steps, before, after))


def constant(alpha: float, before: _Losses, after: _Losses) -> float:
    """Return the constant budget of Algorithm 7, without a warning; 0.0 if a loss is the identity."""
    return 0.0 if _identity(before) or _identity(after) else _constant(alpha, before, after)


def allocated(alpha: float, steps: int, before: _Losses, after: _Losses) -> list[float]:
    """Return the budgets of Algorithm 8, without a warning."""
    if steps == 1:
        return [alpha]
    back_identity, ahead_identity = _identity(before), _identity(after)
    if back_identity or ahead_identity:
        middle = 0.0
        first = round_down(as_decimal(alpha) / 2) if ahead_identity and back_identity else alpha * back_identity
        last = round_down(as_decimal(alpha) - as_decimal(first))
    else:
        middle = _constant(alpha, before, after)
        first, last = (_outermost(alpha, middle, *sides) for sides in _both_ceilings(middle, before, after))
    return [first, *[middle] * (steps - 2), last]


def _identity(losses: _Losses) -> bool:
    return any(loss is not None and loss.identity for loss in losses)


def _limit(losses: _Losses, epsilon: float) -> float:
    return max(epsilon if loss is None else loss.supremum(epsilon) for loss in losses)


def _constant(alpha: float, before: _Losses, after: _Losses) -> float:
    """Return the largest constant ε with sup_B + sup_F − ε ≤ α, to a relative 1e-14, with sums rounded up.

    The suprema have closed forms and grow steeply with ε. The search determines even a tiny ε to full precision.
    """
    if not that_count(before) and not that_count(after):
        # Without correlations, each release leaks only its own budget.
        return alpha
    found = _nearly(alpha * (1.0 - _MARGIN), before, after)
    share = _MARGIN
    while found > 0 and share < 1:
        (back, ahead), _ = _both_ceilings(found, before, after)
        if total(back.carried, ahead.carried, found) <= alpha:
            return found
        found *= 1 - share
        share *= 2
    return 0.0


def _nearly(goal: float, before: _Losses, after: _Losses) -> float:
    """Return the largest ε with sup_B + sup_F − ε ≤ `goal`, by the closed forms rounded to nearest."""

    def excess(epsilon: float) -> float:
        return _limit(before, epsilon) + (_limit(after, epsilon) - epsilon) - goal

    low, high = 0.0, goal
    if excess(high) <= 0:
        return high
    # Bisect the exponent first: ε may be many orders of magnitude below α.
    low = high
    while excess(low) > 0:
        high, low = low, low * 2.0**-8
        if low < 2.0**-1014:
            return 0.0
    while high - low > 2.0**-51 * high:
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if excess(middle) > 0:
            high = middle
        else:
            low = middle
    return low


def _both_ceilings(epsilon: float, before: _Losses, after: _Losses) -> tuple[tuple[Step, Step], tuple[Step, Step]]:
    """Return the bounds of both directions in two orders: (own, other) for the first and for the last release."""
    back, ahead = ceiling(that_count(before), epsilon), ceiling(that_count(after), epsilon)
    return (back, ahead), (ahead, back)


def _outermost(alpha: float, middle: float, own: Step, other: Step) -> float:
    """Return the largest budget of the first or last release, whose leakage may reach α.

    The release must not raise the leakage in its own direction above `own.reached`. Its budget is at least `middle`.
    """
    most = round_down(max(as_decimal(alpha) - Fraction(other.carried), Fraction(0)))
    most = min(most, math.nextafter(own.reached, 0.0))
    for _ in range(_ROUNDINGS):
        if most <= middle or total(0.0, other.carried, most) <= alpha:
            return max(most, middle)
        most -= math.ulp(alpha)
    return middle


def _warn_of_zero(where: str, before: _Losses, after: _Losses) -> None:
    reason = f"{describe_identity(before, after)}; give Candidates of matrices that may be true, or spend α/T at each"
    warn(f"no positive budget is possible {where}: {reason} of T releases", BudgetWarning, stacklevel=3)


def describe_identity(before: _Losses, after: _Losses) -> str:
    """Return why leakage adds up without loss, or an empty text if it does not."""
    which = {name: losses for name, losses in (("backward", before), ("forward", after)) if _identity(losses)}
    losses = [loss for losses in which.values() for loss in losses if loss is not None and loss.identity]
    how = "may have, because rows are unknown," if any(len(loss.unknown) for loss in losses) else "have"
    rows = f"two rows of the {' and the '.join(which)} matrix {how} disjoint supports"
    return f"{rows}, so that leakage adds up without loss" if which else ""
