"""Exact costs and distortions of a channel of integers, as fractions.

Priors, costs and errors are float64 and taken as the binary numbers they are: integers over a common power of two. An
infinite cost says that an answer is forbidden; where the channel never gives it, it costs nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers

# Entries that are Python integers at a time: they take a hundred bytes each.
_CHUNK = 2**20

_NOTHING = Fraction(0)


def forbidden_answer(numerators: Integers, cost: Floats) -> tuple[int, int] | None:
    """Return the first secret and observable that occur together although their cost is infinite, None without any."""
    secrets, observables = np.nonzero((numerators > 0) & np.isinf(cost))
    return (int(secrets[0]), int(observables[0])) if len(secrets) else None


def expected_cost(numerators: Integers, exponent: int, prior: Floats, cost: Floats) -> Fraction:
    """Return Σ_s π_s Σ_o p(o|s) c(s,o) for `prior` (n,) and `cost` (n, m), not negative.

    Costs may be infinite where p(o|s) is 0: 0·∞ counts as 0.
    """
    per_secret = cost_per_secret(numerators, exponent, cost)
    return sum((Fraction(weight) * total for weight, total in zip(prior.tolist(), per_secret, strict=True)), _NOTHING)


def cost_per_secret(numerators: Integers, exponent: int, cost: Floats) -> tuple[Fraction, ...]:
    """Return Σ_o p(o|s) c(s,o) for every secret s."""
    found: list[Fraction] = []
    rows = max(1, _CHUNK // cost.shape[1])
    for start in range(0, len(cost), rows):
        part = numerators[start : start + rows]
        secrets, observables = np.nonzero(part)
        costs, costs_exponent = _integers(cost[start : start + rows][secrets, observables])
        totals = np.zeros(len(part), dtype=object)
        np.add.at(totals, secrets, part[secrets, observables].astype(object) * costs)
        found.extend(_scaled(total, costs_exponent - exponent) for total in totals.tolist())
    return tuple(found)


def worst_cost(numerators: Integers, exponent: int, cost: Floats) -> Fraction:
    """Return max_s Σ_o p(o|s) c(s,o)."""
    return max(cost_per_secret(numerators, exponent, cost))


def distortion(numerators: Integers, exponent: int, prior: Floats, error: Floats) -> Fraction:
    """Return Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s): the expected error of the best attack, for `error` a of shape (k, n).

    Floats choose, for each observable, the estimates ŝ that may be the minimum; only these are summed exactly. A float
    sum of n products of non-negative numbers, in any order, is within (n + 4)·2**-52 of the exact sum relatively, the
    roundings of N and of π·N included, plus what underflow can add: at most 2**-1021 for each term and unit of error.
    """
    # Attacks that are alike tie everywhere, and each tie is summed exactly.
    error = np.unique(error, axis=0)
    width = max(1, _CHUNK // max(error.shape))
    parts = (numerators[:, start : start + width] for start in range(0, numerators.shape[1], width))
    return sum((_distortion(part, exponent, prior, error) for part in parts), _NOTHING)


def _distortion(numerators: Integers, exponent: int, prior: Floats, error: Floats) -> Fraction:
    """Return what some observables add to `distortion`."""
    n = len(prior)
    scaled = numerators * 2.0**-exponent
    with np.errstate(over="ignore", under="ignore"):
        estimate = error @ (prior[:, None] * scaled)
        margin = (n + 4) * 2.0**-52
        underflow = n * 2.0**-1021 * (1 + error.max())
        candidates = estimate * (1 - margin) - underflow <= (estimate * (1 + margin) + underflow).min(axis=0)
    weights, weights_exponent = _integers(prior)
    total = _NOTHING
    # An observable that never occurs has every estimate as a candidate, and nothing to add.
    for observable in np.flatnonzero(numerators.any(axis=0)).tolist():
        secrets, estimates = np.flatnonzero(numerators[:, observable]), np.flatnonzero(candidates[:, observable])
        joint = numerators[secrets, observable].astype(object) * weights[secrets]
        rows, least = max(1, _CHUNK // len(secrets)), []
        for start in range(0, len(estimates), rows):
            errors, errors_exponent = _integers(error[np.ix_(estimates[start : start + rows], secrets)])
            least.append(_scaled(min((errors @ joint).tolist()), weights_exponent + errors_exponent - exponent))
        total += min(least)
    return total


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
    return integer * Fraction(2) ** exponent
