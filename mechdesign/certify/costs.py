"""Exact costs and distortions of a channel of integers, as fractions.

Priors, costs and errors are float64 and taken as the binary numbers they are: integers over a common power of two.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify._arrays import Floats, Integers

__all__ = ["cost_per_secret", "distortion", "expected_cost", "worst_cost"]


def expected_cost(numerators: Integers, exponent: int, prior: Floats, cost: Floats) -> Fraction:
    """Return Σ_s π_s Σ_o p(o|s) c(s,o) for `prior` (n,) and `cost` (n, m), finite and not negative."""
    weights, weights_exponent = _integers(prior)
    totals, totals_exponent = _row_totals(numerators, cost)
    return _scaled(int(weights @ totals), weights_exponent + totals_exponent - exponent)


def cost_per_secret(numerators: Integers, exponent: int, cost: Floats) -> tuple[Fraction, ...]:
    """Return Σ_o p(o|s) c(s,o) for every secret s."""
    totals, totals_exponent = _row_totals(numerators, cost)
    return tuple(_scaled(total, totals_exponent - exponent) for total in totals.tolist())


def worst_cost(numerators: Integers, exponent: int, cost: Floats) -> Fraction:
    """Return max_s Σ_o p(o|s) c(s,o)."""
    totals, totals_exponent = _row_totals(numerators, cost)
    return _scaled(max(totals.tolist()), totals_exponent - exponent)


def distortion(numerators: Integers, exponent: int, prior: Floats, error: Floats) -> Fraction:
    """Return Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s): the expected error of the best attack, for `error` a of shape (k, n).

    Floats choose, for each observable, the estimates ŝ that may be the minimum; only these are summed exactly. A float
    sum of n products of non-negative numbers, in any order, is within (n + 4)·2**-52 of the exact sum relatively, the
    roundings of N and of π·N included, plus what underflow can add: at most 2**-1021 for each term and unit of error.
    """
    n = len(prior)
    scaled = numerators * 2.0**-exponent
    with np.errstate(over="ignore"):
        estimate = error @ (prior[:, None] * scaled)
        margin = (n + 4) * 2.0**-52
        underflow = n * 2.0**-1021 * (1 + error.max())
        candidates = estimate * (1 - margin) - underflow <= (estimate * (1 + margin) + underflow).min(axis=0)
    weights, weights_exponent = _integers(prior)
    errors, errors_exponent = _integers(error)
    joint = numerators.astype(object) * weights[:, None]
    total = 0
    # An observable that never occurs has every estimate as a candidate, and nothing to add.
    for observable in np.flatnonzero(numerators.any(axis=0)).tolist():
        rows = np.flatnonzero(candidates[:, observable])
        total += min((errors[rows] @ joint[:, observable]).tolist())
    return _scaled(total, weights_exponent + errors_exponent - exponent)


def _row_totals(numerators: Integers, cost: Floats) -> tuple[NDArray[np.object_], int]:
    """Return integers T (n,) and e with Σ_o N[s,o] c(s,o) = T[s]·2**e."""
    costs, costs_exponent = _integers(cost)
    totals: NDArray[np.object_] = (numerators.astype(object) * costs).sum(axis=1)
    return totals, costs_exponent


def _integers(values: Floats) -> tuple[NDArray[np.object_], int]:
    """Return Python integers and the largest common exponent e with values = integers · 2**e."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**53).astype(np.int64)
    positive = whole > 0
    if not positive.any():
        return np.zeros(values.shape, dtype=object), 0
    # Trailing zeros go into the exponent: the distances 1 and 2 are small integers, not multiples of 2**-52.
    zeros = np.where(positive, np.frexp((whole & -whole).astype(np.float64))[1] - 1, 0)
    least = int((exponents - 53 + zeros)[positive].min())
    shifts = np.where(positive, exponents - 53 + zeros - least, 0)
    integers: NDArray[np.object_] = (whole >> zeros).astype(object) << shifts.astype(object)
    return integers, least


def _scaled(integer: int, exponent: int) -> Fraction:
    return Fraction(integer << exponent) if exponent >= 0 else Fraction(integer, 1 << -exponent)
