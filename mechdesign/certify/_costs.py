"""Exact costs and distortions of a channel of integers, as fractions.

Priors, costs and errors are float64 numbers, which are converted exactly to integers over a common power of two. An
infinite cost forbids an answer; a forbidden answer with probability 0 adds nothing to the cost.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers

# Maximum number of entries that are Python integers at the same time; each entry takes about a hundred bytes.
_BLOCK_ENTRIES = 2**20

_NOTHING = Fraction(0)


def forbidden_answer(numerators: Integers, cost: Floats) -> tuple[int, int] | None:
    """Find a forbidden answer that the channel gives.

    Args:
        numerators: The channel (n, m), int64.
        cost: Costs (n, m), float64; infinite for forbidden answers.

    Returns:
        The secret and the observable of the first forbidden answer, or None.

    >>> import numpy as np
    >>> forbidden_answer(np.array([[1, 1]]), np.array([[0.0, np.inf]]))
    (0, 1)
    """
    secrets, observables = np.nonzero((numerators > 0) & np.isinf(cost))
    return (int(secrets[0]), int(observables[0])) if len(secrets) else None


def expected_cost(numerators: Integers, exponent: int, prior: Floats, cost: Floats) -> Fraction:
    """Return Σ_s π_s Σ_o p(o|s) c(s,o) exactly.

    Args:
        numerators: The channel (n, m), int64, over 2**exponent.
        exponent: The exponent.
        prior: π (n,), float64.
        cost: c (n, m), float64, not negative. An entry may be infinite if p(o|s) is 0; the product is then 0.

    Returns:
        The expected cost.

    >>> import numpy as np
    >>> expected_cost(np.array([[1, 1], [0, 2]]), 1, np.array([0.5, 0.5]), np.array([[0.0, 1], [1, 0]]))
    Fraction(1, 4)
    """
    per_secret = cost_per_secret(numerators, exponent, cost)
    return sum((Fraction(weight) * total for weight, total in zip(prior.tolist(), per_secret, strict=True)), _NOTHING)


def cost_per_secret(numerators: Integers, exponent: int, cost: Floats) -> tuple[Fraction, ...]:
    """Return Σ_o p(o|s) c(s,o) for every secret s.

    Args:
        numerators: The channel (n, m), int64, over 2**exponent.
        exponent: The exponent.
        cost: c (n, m), as in `expected_cost`.

    Returns:
        One fraction for each secret.

    >>> import numpy as np
    >>> cost_per_secret(np.array([[1, 1], [0, 2]]), 1, np.array([[0.0, 1], [1, 0]]))
    (Fraction(1, 2), Fraction(0, 1))
    """
    found: list[Fraction] = []
    rows = max(1, _BLOCK_ENTRIES // cost.shape[1])
    for start in range(0, len(cost), rows):
        part = numerators[start : start + rows]
        secrets, observables = np.nonzero(part)
        costs, costs_exponent = _integers(cost[start : start + rows][secrets, observables])
        totals = np.zeros(len(part), dtype=object)
        np.add.at(totals, secrets, part[secrets, observables].astype(object) * costs)
        found.extend(_scale(total, costs_exponent - exponent) for total in totals.tolist())
    return tuple(found)


def worst_cost(numerators: Integers, exponent: int, cost: Floats) -> Fraction:
    """Return max_s Σ_o p(o|s) c(s,o) exactly.

    Args:
        numerators: The channel (n, m), int64, over 2**exponent.
        exponent: The exponent.
        cost: c (n, m), as in `expected_cost`.

    Returns:
        The worst cost.

    >>> import numpy as np
    >>> worst_cost(np.array([[1, 1], [0, 2]]), 1, np.array([[0.0, 1], [1, 0]]))
    Fraction(1, 2)
    """
    return max(cost_per_secret(numerators, exponent, cost))


def distortion(numerators: Integers, exponent: int, prior: Floats, error: Floats) -> Fraction:
    """Return Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s), the expected error of the best attack, exactly.

    For each observable, floating-point sums select the estimates ŝ that may attain the minimum; exact sums are computed
    only for these estimates. A float sum of n non-negative products has a relative error of at most (n + 4)·2**-52.
    The bound (n + 4)·2**-52 includes the roundings of N and π·N. Underflow adds at most 2**-1021 for each term and unit
    of error.

    Args:
        numerators: The channel (n, m), int64, over 2**exponent.
        exponent: The exponent.
        prior: π (n,), float64.
        error: a (k, n), float64; rows are estimates.

    Returns:
        The distortion.

    >>> import numpy as np
    >>> distortion(np.array([[1, 1], [0, 2]]), 1, np.array([0.5, 0.5]), np.array([[0.0, 1], [1, 0]]))
    Fraction(1, 4)
    """
    # Remove duplicate rows of errors: they would tie for every observable, and each would be summed exactly. With
    # indices, NumPy does not load numpy.ma.
    error, _ = np.unique(error, axis=0, return_index=True)
    width = max(1, _BLOCK_ENTRIES // max(error.shape))
    parts = (numerators[:, start : start + width] for start in range(0, numerators.shape[1], width))
    return sum((_distortion(part, exponent, prior, error) for part in parts), _NOTHING)


def _distortion(numerators: Integers, exponent: int, prior: Floats, error: Floats) -> Fraction:
    """Return the contribution of some observables to `distortion`."""
    n = len(prior)
    scaled = numerators * 2.0**-exponent
    with np.errstate(over="ignore", under="ignore"):
        estimate = error @ (prior[:, None] * scaled)
        margin = (n + 4) * 2.0**-52
        underflow = n * 2.0**-1021 * (1 + error.max())
        candidates = estimate * (1 - margin) - underflow <= (estimate * (1 + margin) + underflow).min(axis=0)
    weights, weights_exponent = _integers(prior)
    total = _NOTHING
    # An observable that never occurs contributes nothing.
    for observable in np.flatnonzero(numerators.any(axis=0)).tolist():
        secrets, estimates = np.flatnonzero(numerators[:, observable]), np.flatnonzero(candidates[:, observable])
        joint = numerators[secrets, observable].astype(object) * weights[secrets]
        rows, least = max(1, _BLOCK_ENTRIES // len(secrets)), []
        for start in range(0, len(estimates), rows):
            errors, errors_exponent = _integers(error[np.ix_(estimates[start : start + rows], secrets)])
            least.append(_scale(min((errors @ joint).tolist()), weights_exponent + errors_exponent - exponent))
        total += min(least)
    return total


def _integers(values: Floats) -> tuple[NDArray[np.object_], int]:
    """Return Python integers and the largest common exponent e with values = integers · 2**e."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**53).astype(np.int64)
    positive = whole > 0
    if not positive.any():
        return np.zeros(values.shape, dtype=object), 0
    # Trailing zero bits move into the exponent, so that the distances 1 and 2 become small integers.
    zeros = np.where(positive, np.frexp((whole & -whole).astype(np.float64))[1] - 1, 0)
    least = int((exponents - 53 + zeros)[positive].min())
    shifts = np.where(positive, exponents - 53 + zeros - least, 0)
    integers: NDArray[np.object_] = (whole >> zeros).astype(object) << shifts.astype(object)
    return integers, least


def _scale(integer: int, exponent: int) -> Fraction:
    return integer * Fraction(2) ** exponent
