"""Algorithms 1 to 8 of Cao et al. (2019) as published: reference implementations for checks.

Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations
(2019). Names follow the paper: q and d are rows; qM, dM and aM are tables with a row for each ordered pair. Docstrings
mark corrections of the printed text with "Corrected". This module has no cache, and shares no code with the faster
method of `LossFunction`.

Sums G = Q − D are stored next to D, because the difference Q − D of nearly equal rows loses all digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base import _lazy
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.leakage._loss import limit_of, log_ratio
from mechdesign.leakage._transitions import as_alphas, as_not_negative, as_target, as_transition

__all__ = [
    "algorithm1",
    "algorithm2",
    "algorithm3",
    "algorithm4",
    "algorithm5",
    "algorithm6",
    "algorithm7",
    "algorithm8",
]
__dir__ = _lazy.listing(__all__)


# Largest number of halvings of a bisection, which normally stops when its interval no longer shrinks.
_STEPS = 200


class Tables(NamedTuple):
    """The tables of Algorithm 2: one row for each ordered pair of rows, one column for each prefix.

    Prefix i of a pair holds the i + 1 columns of largest ratio q_j/d_j among those with q_j > d_j. This prefix is the
    best prefix for α from `until[i + 1]` up to `until[i]`, so that `until` falls along a row. All arrays have shape
    (pairs, n).

    Attributes:
        G: Sum of q_j − d_j over the prefix; qM = G + D.
        D: Sum of d_j over the prefix; dM = D.
        rest: Sum of q_j over all other columns, 1 − Q.
        until: Transition points aM, in the order of the paper; −1 if there is no such prefix.

    >>> algorithm2([[0.8, 0.2], [0.2, 0.8]]).G.round(3).tolist()
    [[0.6, 0.6], [0.6, 0.6]]
    """

    G: Floats
    D: Floats
    rest: Floats
    until: Floats


class Piecewise(NamedTuple):
    """The result of Algorithm 4: pieces (G, D) of the loss function in order of α.

    Attributes:
        G: Q − D of each piece, shape (k,).
        D: D of each piece, shape (k,).
        start: Lower end of each piece, shape (k,).
        largest: Upper end of the last piece.

    >>> algorithm4([[0.8, 0.2], [0.2, 0.8]], 2.0).start.tolist()
    [0.0]
    """

    G: Floats
    D: Floats
    start: Floats
    largest: float


def algorithm1(P: Any, alpha: ArrayLike) -> Floats | float:
    """Return L(α) by solving the linear-fractional program of every pair of rows (Theorem 5) for every α.

    The printed algorithm starts from the columns with q_j > d_j and repeatedly drops those with
    q_j/d_j ≤ (QA+1)/(DA+1). The remaining columns are the best prefix in the order of the ratio. Corrected: this
    function takes the maximum over all prefixes. For large α the printed comparison rounds to equality, drops all
    columns and returns 0.

    Args:
        P: Row-stochastic matrix, shape (n, n).
        alpha: Leakage α ≥ 0 in nats, a number or an array.

    Returns:
        L(α) in nats, of the shape of `alpha`.

    >>> round(algorithm1([[0.8, 0.2], [0.2, 0.8]], 1.0), 6)
    0.569445
    """
    matrix = _dense(P)

    def one(value: float) -> float:
        best = 0.0
        for d in matrix:
            G, D, _ = _prefix_sums(*_candidates(matrix, d))
            best = max(best, float(log_ratio(G, D, value).max(initial=0.0)))
        return best

    return _each(alpha, one)


def algorithm2(P: Any) -> Tables:
    """Precompute the prefix sums of every pair of rows and the transition points between them (Theorems 8 and 9).

    Corrected: ties and d_j = 0 are handled. Let q′ and d′ be the sums of q and d over the columns before column i. Then
    column i leaves the set for good at A = (q_i − d_i)/(q′d_i − d′q_i), or never if the denominator is 0. For accuracy,
    q′ and d′ exclude column i itself.

    Args:
        P: Row-stochastic matrix, shape (n, n).

    Returns:
        The tables of all ordered pairs.

    >>> algorithm2([[0.8, 0.2], [0.2, 0.8]]).D.round(3).tolist()
    [[0.2, 0.2], [0.2, 0.2]]
    """
    matrix = _dense(P)
    n = len(matrix)
    parts = []
    for row in range(n):
        others = np.delete(matrix, row, axis=0)
        q, d, outside = _candidates(others, matrix[row])
        G, D, rest = _prefix_sums(q, d, outside)
        parts.append((G, D, rest, _transition_points(q, d, G, D)))
    columns = (np.concatenate(column) if parts else np.zeros((0, n)) for column in zip(*parts, strict=True))
    return Tables(*columns)


def algorithm3(P: Any, alpha: ArrayLike, tables: Tables | None = None) -> Floats | float:
    """Return L(α) as the largest value over all pairs, each at the prefix that is best at α (after Algorithm 2).

    Args:
        P: Row-stochastic matrix, shape (n, n).
        alpha: Leakage α ≥ 0 in nats, a number or an array.
        tables: The tables of `algorithm2` for `P`, if they are known.

    Returns:
        L(α) in nats, of the shape of `alpha`.

    >>> round(algorithm3([[0.8, 0.2], [0.2, 0.8]], 1.0), 6)
    0.569445
    """
    G, D, _, until = algorithm2(P) if tables is None else tables
    pairs = np.arange(len(G))

    def one(value: float) -> float:
        if not len(G):
            return 0.0
        # `until` falls along each row: count the prefixes that end beyond α.
        index = np.maximum(np.count_nonzero(until > value, axis=1) - 1, 0)
        return float(log_ratio(G[pairs, index], D[pairs, index], value).max())

    return _each(alpha, one)


def algorithm4(P: Any, largest: float, tables: Tables | None = None) -> Piecewise:
    """Join the functions of all pairs into one function on 0 ≤ α ≤ `largest`, by recursion on intervals (Theorem 10).

    Corrected: the second recursion is on the interval [α_k, α_m]. Corrected: if two functions meet at the left end of
    an interval, the right function is kept. Corrected: identical rows, not uniform rows, give the zero function.

    Args:
        P: Row-stochastic matrix, shape (n, n).
        largest: Upper end of the domain of the function, in nats.
        tables: The tables of `algorithm2` for `P`, if they are known.

    Returns:
        The pieces of L on [0, `largest`].

    >>> algorithm4([[0.8, 0.2], [0.2, 0.8]], 2.0).G.round(3).tolist()
    [0.6]
    """
    largest = as_not_negative(largest, "largest")
    tables = algorithm2(P) if tables is None else tables
    if not len(tables.G) or not (tables.G > 0).any():
        return Piecewise(np.zeros(1), np.zeros(1), np.zeros(1), largest)
    low, high = _ruling_at_zero(tables), _ruling(tables, largest)
    pieces = [(*low, 0.0)]
    # Unfinished intervals, with the leftmost at the end of the list, each with the functions that are largest at its
    # ends.
    todo = [(0.0, largest, low, high)]
    while todo:
        first, last, left, right = todo.pop()
        meet = _meeting(left, right)
        if not first < meet < last:
            if left != right and meet <= first:
                # Beyond its own end, the left function is never the largest.
                pieces.append((*right, first))
            elif left != right and last == largest:
                pieces.append((*right, last))
            continue
        top = _ruling(tables, meet)
        # Functions with a relative difference up to 1e-14 are equal up to rounding.
        if _value(top, meet) <= _value(left, meet) * (1 + 1e-14) or top in (left, right):
            pieces.append((*right, meet))
            continue
        todo.append((meet, last, top, right))
        todo.append((first, meet, left, top))
    G, D, start = (np.array(column) for column in zip(*pieces, strict=True))
    return Piecewise(G, D, np.maximum.accumulate(start), largest)


def algorithm5(P: Any, alpha: ArrayLike, function: Piecewise | None = None) -> Floats | float:
    """Return L(α) by binary search in the function of Algorithm 4.

    Args:
        P: Row-stochastic matrix, shape (n, n).
        alpha: Leakage α ≥ 0 in nats, a number or an array.
        function: The function of `algorithm4` for `P`; by default it is computed up to the largest α.

    Returns:
        L(α) in nats, of the shape of `alpha`.

    Raises:
        InputError: α is beyond the end of the given function.

    >>> round(algorithm5([[0.8, 0.2], [0.2, 0.8]], 1.0), 6)
    0.569445
    """
    values = as_alphas(alpha)
    if function is None:
        function = algorithm4(P, float(np.max(values, initial=0.0)) or 1.0)

    def one(value: float) -> float:
        if value > function.largest:
            raise InputError(
                "alpha",
                "is beyond the end of the function",
                value=value,
                bound=f"<= {function.largest}",
                remedy="run algorithm4 with a larger end, or use LossFunction, which has none",
            )
        index = int(np.searchsorted(function.start, value, side="right")) - 1
        return float(log_ratio(function.G[index], function.D[index], value))

    return _each(alpha, one)


def algorithm6(P: Any, epsilon: float, tables: Tables | None = None) -> float:
    """Return the supremum of the leakage under a constant ε: the largest value of Theorem 11 over all prefixes.

    The theorem needs the pair (q, d) that is best at the fixed point, not at α = ε. The maximum over all prefixes
    belongs to this pair.

    Args:
        P: Row-stochastic matrix, shape (n, n).
        epsilon: Budget ε ≥ 0 of every release, in nats.
        tables: The tables of `algorithm2` for `P`, if they are known.

    Returns:
        The supremum in nats, `math.inf` if the leakage has no bound.

    >>> round(algorithm6([[0.8, 0.2], [0.2, 0.8]], 0.1), 6)
    0.248772
    """
    epsilon = as_not_negative(epsilon, "epsilon")
    G, D, rest, until = algorithm2(P) if tables is None else tables
    real = until >= 0
    if not real.any():
        return epsilon
    return float(limit_of(G[real], D[real], rest[real], epsilon).max())


def algorithm7(alpha: float, P_B: Any, P_F: Any) -> float:
    """Return the constant ε with sup BPL + sup FPL − ε = α, by bisection with Algorithm 6; 0.0 if only ε = 0 fits.

    Corrected: the loop stops when its interval no longer shrinks. This criterion is relative, and is always reached.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        P_B: Backward correlation, shape (n, n).
        P_F: Forward correlation, shape (n, n).

    Returns:
        The budget ε of every release, in nats.

    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> round(algorithm7(1.0, P, P), 9)
    0.169120416
    """
    alpha = as_target(alpha)
    tables_B, tables_F = algorithm2(P_B), algorithm2(P_F)
    low, high = 0.0, alpha
    for _ in range(_STEPS):
        epsilon = (low + high) / 2
        if not low < epsilon < high:
            break
        total = algorithm6(P_B, epsilon, tables_B) + algorithm6(P_F, epsilon, tables_F) - epsilon
        low, high = (epsilon, high) if total <= alpha else (low, epsilon)
    return low


def algorithm8(alpha: float, steps: int, P_B: Any, P_F: Any) -> Floats:
    """Return budgets that solve L_B(α_B) + α_F = α and L_F(α_F) + α_B = α, by bisection on α_B.

    A root lies in [0, α], because L is non-decreasing and 1-Lipschitz. Corrected: the middle budgets are those of the
    releases 2 to T − 1, and a single release gets α.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        steps: Number of releases T ≥ 1.
        P_B: Backward correlation, shape (n, n).
        P_F: Forward correlation, shape (n, n).

    Returns:
        The budgets in nats, shape (steps,).

    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> algorithm8(1.0, 3, P, P).round(5).tolist()
    [0.58456, 0.16912, 0.58456]
    """
    alpha, steps = as_target(alpha), as_integer(steps, "steps", 1)
    if steps == 1:
        return np.array([alpha])
    tables_B, tables_F = algorithm2(P_B), algorithm2(P_F)
    low, high = 0.0, alpha
    for _ in range(_STEPS):
        alpha_B = (low + high) / 2
        if not low < alpha_B < high:
            break
        alpha_F = alpha - float(algorithm3(P_B, alpha_B, tables_B))
        excess = float(algorithm3(P_F, alpha_F, tables_F)) + alpha_B - alpha
        low, high = (alpha_B, high) if excess <= 0 else (low, alpha_B)
    alpha_B = low
    between = alpha_B - float(algorithm3(P_B, alpha_B, tables_B))
    budgets = np.full(steps, between)
    budgets[0], budgets[-1] = alpha_B, alpha - float(algorithm3(P_B, alpha_B, tables_B))
    return budgets


def _dense(P: Any) -> Floats:
    matrix = as_transition(P, "P")
    dense: Floats = matrix.toarray() if sparse.issparse(matrix) else matrix
    return dense


def _each(alpha: ArrayLike, one: Any) -> Floats | float:
    values = as_alphas(alpha)
    if values.ndim == 0:
        return float(one(float(values)))
    return np.array([one(value) for value in values.ravel().tolist()]).reshape(values.shape)


def _candidates(q: Floats, d: Floats) -> tuple[Floats, Floats, Floats]:
    """Return all rows q and one row d, with columns sorted by falling q_j/d_j, and 0 if q_j ≤ d_j (Corollary 2).

    The third array, shape (m,), is the sum of each q over the columns with q_j ≤ d_j. Columns with d_j = 0 come first.
    The shapes of q (m, n) and d (n,) give two arrays of shape (m, n).
    """
    d = np.broadcast_to(d, q.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        # Use (q − d)/d instead of q/d, because ratios of nearly equal numbers all round to 1.
        ratio = np.where(q > d, (q - d) / d, -1.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    q, d = np.take_along_axis(q, order, axis=1), np.take_along_axis(d, order, axis=1)
    kept = q > d
    return np.where(kept, q, 0.0), np.where(kept, d, 0.0), np.where(kept, 0.0, q).sum(axis=1)


def _prefix_sums(q: Floats, d: Floats, outside: Floats) -> tuple[Floats, Floats, Floats]:
    """Return G, D and 1 − Q of all prefixes of the ordered columns, each (m, n); 1 − Q is the sum of all other q_j."""
    G, D = np.cumsum(q - d, axis=1), np.cumsum(d, axis=1)
    # Summing from the far end keeps the digits of a small 1 − Q.
    beyond = np.concatenate([outside[:, None], q[:, :0:-1]], axis=1).cumsum(axis=1)[:, ::-1]
    return G, D, beyond


def _transition_points(q: Floats, d: Floats, G: Floats, D: Floats) -> Floats:
    """Return the α up to which each prefix is best before its last column leaves, falling along a row; −1 if never."""
    gain = q - d
    before_G = np.concatenate([np.zeros((len(G), 1)), G[:, :-1]], axis=1)
    before_D = np.concatenate([np.zeros((len(D), 1)), D[:, :-1]], axis=1)
    # The denominator q′d_i − d′q_i, with q′ = G′ + d′ and q_i = g_i + d_i.
    slower = before_G * d - before_D * gain
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        until = np.where(slower > 0, np.log1p(gain / slower), np.inf)
    until[gain <= 0] = -1.0
    # Enforce monotonicity: rounding may put ties out of order.
    return np.minimum.accumulate(until, axis=1)


def _ruling(tables: Tables, alpha: float) -> tuple[float, float]:
    """Return (G, D) of the largest function at α > 0."""
    pairs = np.arange(len(tables.G))
    index = np.maximum(np.count_nonzero(tables.until > alpha, axis=1) - 1, 0)
    G, D = tables.G[pairs, index], tables.D[pairs, index]
    best = int(np.argmax(log_ratio(G, D, alpha)))
    return float(G[best]), float(D[best])


def _ruling_at_zero(tables: Tables) -> tuple[float, float]:
    """Return (G, D) of the largest function just right of 0: the largest slope G, then the least D."""
    top = tables.G.max() == tables.G
    D = np.where(top, tables.D, np.inf)
    best = np.unravel_index(int(np.argmin(D)), D.shape)
    return float(tables.G[best]), float(tables.D[best])


def _meeting(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Return the α > 0 at which two functions meet, or −1 if they do not."""
    numerator = left[0] - right[0]
    denominator = right[0] * left[1] - left[0] * right[1]
    if numerator <= 0 or denominator <= 0:
        return -1.0
    return math.log1p(numerator / denominator)


def _value(function: tuple[float, float], alpha: float) -> float:
    return float(log_ratio(*function, alpha))
