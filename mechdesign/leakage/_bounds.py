"""Bounds of pairs of states, and shortest paths among them, rounded up.

A matrix B of shape (n, n) in nats stands for all x ≥ 0 with x_j ≤ e^{B(j,k)} x_k. Its diagonal is 0, an infinite entry
is no bound, and B(j,k) may differ from B(k,j). Shortest paths leave this set unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Floats, Integers, require
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, named
from mechdesign.certify._exact import exact, float_above

# The distance from 1 to the next float.
ULP = 2.0**-52


def up(values: Floats) -> Floats:
    """Return the next float above each finite positive entry; other entries stay.

    >>> up(np.array([0.0, 1.0, np.inf])).tolist()
    [0.0, 1.0000000000000002, inf]
    """
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(values) & (values > 0), np.nextafter(values, np.inf), values)


def add(first: Floats, second: Floats) -> Floats:
    """Return the least floats that are at least the sums of entries ≥ 0; the arguments broadcast.

    >>> add(np.array([0.5, 0.1]), np.array([0.5, 0.7])).tolist()
    [1.0, 0.8]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = first + second
        # The error of each sum, exact (Knuth, TwoSum); NaN for infinite sums.
        part = total - first
        error = (first - (total - part)) + (second - part)
        return np.where(error > 0, np.nextafter(total, np.inf), total)


def close(bounds: Floats) -> Floats:
    """Return the lengths of shortest paths among the states, with sums rounded up (Floyd and Warshall).

    Args:
        bounds: Bounds of the pairs, shape (n, n).

    Returns:
        A new matrix, at most `bounds`.

    >>> close(np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [np.inf, 1.0, 0.0]])).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    closed = np.array(bounds, dtype=np.float64)
    np.fill_diagonal(closed, 0.0)
    for k in range(len(closed)):
        shorter = closed[:, [k]] + closed[[k], :] < closed
        if shorter.any():
            # Most matrices are closed already, so that few sums need an exact rounding.
            i, j = np.nonzero(shorter)
            closed[i, j] = np.minimum(closed[i, j], add(closed[i, k], closed[k, j]))
    return closed


def close_edges(values: Floats, rows: Integers, cols: Integers, n: int) -> Floats:
    """Return the lengths of shortest paths along given edges, rounded up (Dijkstra from every state).

    A path has at most as many edges as the least value fits into its length. Each sum has one rounding, of at most
    2⁻⁵³ of the sum.

    Args:
        values: Lengths ≥ 0 of the edges, shape (m,).
        rows: The states at which the edges start; no edge occurs twice.
        cols: The states at which the edges end.
        n: Number of states.

    Returns:
        The lengths, shape (n, n); infinite without a path.

    >>> close_edges(np.array([0.5, 0.5]), np.array([0, 1]), np.array([1, 2]), 3)[0].round(9).tolist()
    [0.0, 0.5, 1.0]
    """
    fine = np.isfinite(values)
    values, rows, cols = values[fine], rows[fine], cols[fine]
    # SciPy takes an explicit zero as an edge of length 0.
    lengths: Floats = csgraph.dijkstra(sparse.csr_array((values, (rows, cols)), shape=(n, n)))
    least = float(values.min(initial=np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.minimum(np.floor(lengths / least * (1 + n * ULP)), n) if least > 0 else np.full((n, n), float(n))
        factor = np.where(edges > 1, 1 + edges * ULP, 1.0)
        return np.where(np.isfinite(lengths), lengths * factor, np.inf)


def as_bounds(values: Any, path: str, names: Labels = ()) -> Floats:
    """Return bounds of pairs as a new float64 matrix of shape (n, n), not closed along paths.

    Args:
        values: Bounds ≥ 0, possibly infinite, with a diagonal of 0: an array, nested lists or a frame. Floats stand for
            themselves; exact numbers are rounded up.
        path: The path of the matrix, for messages.
        names: The names of the states, in the order of the result.

    Returns:
        The matrix.

    Raises:
        InputError: The matrix is not square, an entry is negative or NaN, or the diagonal is not 0.

    >>> as_bounds([[0, 1], [2, 0]], "bounds").tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    given = named(values, path, names, names, object)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.size == 0:
        bound, remedy = "of shape (n, n), n >= 1", "give one row and one column for each state"
        raise InputError(path, "is not a square matrix", value=given.shape, bound=bound, remedy=remedy)
    if given.dtype.kind == "O":
        given = np.array(
            [
                [_as_bound(value, f"{path}[{i},{j}]") for j, value in enumerate(row)]
                for i, row in enumerate(given.tolist())
            ]
        )
    if given.dtype.kind not in "iuf":
        raise InputError(path, f"holds {given.dtype}", bound="an array of real numbers")
    bounds = given.astype(np.float64)
    require(bounds >= 0, bounds, path, "a number >= 0 or infinity", "a bound is a privacy loss in nats; inf: no bound")
    diagonal = np.diagonal(bounds)
    # np.nextafter, which rounds a sum of bounds up, turns 0 into the least float.
    wrong = np.flatnonzero(diagonal > np.nextafter(0.0, 1.0))
    if wrong.size:
        at = int(wrong[0])
        remedy = "no state differs from itself: set the diagonal to 0"
        raise InputError(f"{path}[{at},{at}]", "is not 0", value=float(diagonal[at]), bound="0", remedy=remedy)
    np.fill_diagonal(bounds, 0.0)
    return bounds + 0.0


def _as_bound(value: object, path: str) -> float:
    if isinstance(value, float):
        return value
    number = exact(value, path)
    return float_above(number) if number > 0 else float(number)
