"""The closed forms of temporal privacy leakage, each in a form that loses no digits.

A piece is a line (G, D, rest) of `mechdesign.leakage.lines`, with Q = G + D and 1 − Q = rest. The paper is
Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations
(2019).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_array

__all__ = ["breakpoint_between", "limit_of", "log_ratio"]

# Beyond this ratio log1p(r) = log(r) to the last bit, and logarithms cannot overflow where ratios do.
_HUGE = 1e17

# How near ε may come to ln(1/Q), as a share of what is subtracted, and still be told apart from it.
_INDISTINCT = 4 * np.finfo(np.float64).eps


def log_ratio(G: ArrayLike, D: ArrayLike, alpha: ArrayLike) -> Floats:
    """Return ln[(QA + 1)/(DA + 1)] with A = e^α − 1, the loss of a piece (Equation 24), for every α ≥ 0.

    The arguments broadcast; with u = e^−α and e = 1 − u it is ln(1 + Ge/(De + u)).
    """
    G, D, alpha = np.broadcast_arrays(*(as_array(values, "values", np.float64) for values in (G, D, alpha)))
    u, e = np.exp(-alpha), -np.expm1(-alpha)
    below = D * e + u
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        ratio = G * e / below
        loss = np.log1p(ratio)
        huge = ~(ratio < _HUGE) & (G > 0)
        if huge.any():
            # ln(De + u) is −α itself where D = 0, even if u is too small for a float.
            log_below = np.where(D > 0, np.log(below), -alpha)
            loss = np.where(huge, np.log(G * e + below) - log_below, loss)
    loss = np.where(G > 0, loss, 0.0)
    capped: Floats = np.minimum(loss, alpha)
    return capped


def breakpoint_between(G: Floats, D: Floats, next_G: Floats, next_D: Floats) -> Floats:
    """Return the α > 0 at which two pieces give the same loss, for G > next_G and D > next_D; inf if never.

    From (QA + 1)(D'A + 1) = (Q'A + 1)(DA + 1): A = (G − G')/(G'D − GD').
    """
    faster = next_G * D - G * next_D
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        A = (G - next_G) / faster
        # Where A overflows, its logarithm does not.
        apart = np.where(faster > 0, np.log(G - next_G) - np.log(faster), np.inf)
        return np.where(np.isfinite(A) & (A > 0), np.log1p(A), apart)


def limit_of(G: ArrayLike, D: ArrayLike, rest: ArrayLike, epsilon: float) -> Floats:
    """Return the smallest x ≥ 0 with x = ln[(QA + 1)/(DA + 1)] + ε, A = e^x − 1, or inf (Theorem 11 restored).

    A solves DA² + bA − E = 0 with E = e^ε − 1 and b = 1 + D − e^ε Q = rest + D − EQ. For D = 0 it diverges from
    ε = ln(1/Q) on; an ε within rounding of that bound counts as diverging.
    """
    G, D, rest = np.broadcast_arrays(*(as_array(values, "values", np.float64) for values in (G, D, rest)))
    if epsilon == 0:
        return np.zeros(G.shape)
    Q = G + D
    # Everything divided by max(1, E), so that nothing overflows.
    large = epsilon > 1.0
    inverse = np.exp(-epsilon) / -np.expm1(-epsilon) if large else 1.0
    E = 1.0 if large else np.expm1(epsilon)
    b = (rest + D) * inverse - E * Q
    b = np.where(np.abs(b) <= _INDISTINCT * ((rest + D) * inverse + E * Q), 0.0, b)
    root = np.sqrt(b * b + 4.0 * D * inverse * E)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        # The two forms of the positive root; each avoids a difference of nearly equal numbers.
        A = np.where(b > 0, 2.0 * E / (b + root), (root - b) / (2.0 * D * inverse))
        limit = np.log1p(A)
        # Where A overflows, 1/inverse = e^ε − 1 is taken out of the logarithm.
        apart = epsilon + np.log(-np.expm1(-epsilon)) + np.log((root - b) / (2.0 * D)) if large else limit
    limit = np.where(np.isfinite(A) | ~(D > 0), limit, apart)
    # A limit below ε could only come from rounding.
    limit = np.where((D == 0) & (b <= 0), np.inf, np.maximum(limit, epsilon))
    # Nothing is lost to the past where G = 0: Q = D.
    return np.where(G > 0, limit, epsilon)
