"""The δ of a channel at a given ε, rounded up.

At the exponents ε·d, the hockey-stick divergence of a pair is δ(s, t) = Σ_o max(p(o|s) − exp(ε·d(s, t)) p(o|t), 0).
Floating-point numbers select the pairs that may attain the largest δ, and exact fractions decide among them. A lower
bound of the exponential makes δ larger, never smaller.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._exact import exact, float_up
from mechdesign.certify._exponential import SHIFT, exp_lower
from mechdesign.measures._audit import Audit
from mechdesign.measures._tight import Rows, tight
from mechdesign.model import distances
from mechdesign.model._numbers import Number, not_negative

# Larger factors than 2**_LARGEST_EXPONENT are replaced by it, which changes δ by less than 1e-18.
_LARGEST_EXPONENT = 62
# A bound on the relative error of the product of a factor and a probability in floating point.
_BLUR = 2.0**-40
# The number of differences that are computed at a time.
_BLOCK_ENTRIES = 2**21


@in_own_arithmetic
def find_delta(found: Audit, epsilon: Number, radius: Number | None = None) -> float:
    """Return the least δ for which a channel is (ε·d, δ)-private for all bounded pairs within a radius.

    For every set O of observables, p(O|s) <= exp(ε·d(s, t)) p(O|t) + δ.

    Args:
        found: The audit of the channel.
        epsilon: ε >= 0, in nats per unit of distance, or per edge of a policy graph.
        radius: The largest distance of the pairs, up to rounding; all bounded pairs by default.

    Returns:
        δ, rounded up; 0 if the pair bounds hold for ε.

    Raises:
        InputError: ε or the radius is negative or not finite.

    >>> from mechdesign.measures._audit import audit
    >>> find_delta(audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]]), epsilon=0)
    0.5
    """
    require_kind(found, Audit, "found", "an Audit")
    rate = not_negative(epsilon, "epsilon")
    bound, rows = found.bound, found._rows
    chosen = np.arange(len(bound))
    if radius is not None:
        if exact(radius, "radius") < 0:
            raise InputError("radius", "is negative", value=radius, bound=">= 0")
        chosen = np.flatnonzero(bound.weights <= distances.reach(radius))
    sources, targets, weights = bound.sources[chosen], bound.targets[chosen], bound.weights[chosen]
    if tight(rows, ExponentBound(bound.kind, Fraction(1), sources, targets, weights)).holds(rate):
        return 0.0
    factors = np.exp(np.minimum(float(rate) * weights, _LARGEST_EXPONENT * math.log(2)))
    sums = _sum_excesses(rows, sources, targets, factors)
    blur = _BLUR * (2 + rows.floats.shape[1] * 2.0**-10)
    lower = exp_lower(rate, weights, _LARGEST_EXPONENT)
    largest = Fraction(0)
    for pair in np.flatnonzero(sums >= sums.max() - 2 * blur).tolist():
        delta = _delta_of(rows, int(sources[pair]), int(targets[pair]), float(factors[pair]), int(lower[pair]))
        largest = max(largest, delta)
        if largest == 1:
            break
    return float_up(largest)


def _sum_excesses(rows: Rows, sources: Integers, targets: Integers, factors: Floats) -> Floats:
    """Return Σ_o max(p(o|s) − g p(o|t), 0) for each pair (s, t) with its factor g, in floating point."""
    matrix = rows.normalised()
    sums = np.empty(len(sources))
    size = max(1, _BLOCK_ENTRIES // matrix.shape[1])
    for start in range(0, len(sources), size):
        part = slice(start, start + size)
        excess = matrix[sources[part]] - factors[part, None] * matrix[targets[part]]
        sums[part] = np.maximum(excess, 0.0).sum(axis=1)
    return sums


def _delta_of(rows: Rows, s: int, t: int, factor: float, lower: int) -> Fraction:
    """Return Σ_o max(p(o|s) − g p(o|t), 0) for g = lower / 2**SHIFT, where `factor` is near g."""
    one, other = rows.normalised()[s], rows.normalised()[t]
    exactly = Fraction(lower, 1 << SHIFT)
    excesses = (
        rows.probability(s, observable) - exactly * rows.probability(t, observable)
        for observable in np.flatnonzero((one > 0) & (one * (1 + _BLUR) >= factor * other)).tolist()
    )
    return sum((excess for excess in excesses if excess > 0), Fraction(0))
