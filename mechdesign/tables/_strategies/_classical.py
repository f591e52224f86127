"""Strategies from the literature: trees, or trees between cumulative counts, with a budget for each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats
from mechdesign.tables._strategies._gaussian import EdgeSpace


def build_hierarchical_levels(size: int, fanout: int) -> list[Floats]:
    """Return the levels of a tree over `size` ordered values, from the root to the leaves, each a 0/1 matrix."""
    levels, width = [], 1
    while width < size:
        levels.append(_blocks(size, width, size))
        width *= fanout
    return [np.ones((1, size)), *reversed(levels)]


def build_ordered_hierarchical_levels(size: int, theta: int, fanout: int) -> list[Floats]:
    """Return the levels of the ordered hierarchical strategy: every θ-th cumulative count, then levels of trees.

    A move by at most θ values changes at most one cumulative count, and two counts per lower level (He et al. 2014,
    section 7.2).
    """
    ends = np.append(np.arange(theta - 1, size - 1, theta), size - 1)
    levels = [(np.arange(size) <= ends[:, None]).astype(float)]
    width = 1
    trees = []
    while width < theta:
        trees.append(_blocks(size, width, theta))
        width *= fanout
    return levels + trees[::-1]


def balance_levels(levels: Sequence[Floats], space: EdgeSpace, gram: Floats, norm: int) -> Floats:
    """Choose weights of the levels of a strategy that minimise the error at a fixed budget.

    The objective is tr(M·(Σ u_l² A_lᵀA_l)⁻¹)·Δ(u)² for weights u > 0. Here Δ(u) = Σ u_l s_l in the ℓ1 norm and Δ(u)² =
    Σ u_l² s_l² in the ℓ2 norm, where s_l is the sensitivity of level l. Weights for which the sum is singular in
    floating point are skipped. The best weights that the search evaluates are used.

    Args:
        levels: the rows of each level, over the values; rows that no edge changes are omitted.
        space: the span of the edges.
        gram: M in the coordinates of the spanning forest.
        norm: 1 or 2.

    Returns:
        The weighted rows in the coordinates of the forest, shape (k, d).
    """
    parts: list[Floats] = [part[np.abs(part).max(axis=1) > 0] for part in map(space.differences, levels)]
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    changes = np.array([largest_change(part, space, norm) for part in parts])
    grams = [part.T @ part for part in parts]
    visited: list[tuple[float, Floats]] = []

    def objective(logs: Floats) -> tuple[float, Floats]:
        # Only ratios of weights matter, so the largest weight is scaled to 1 to prevent overflow.
        logs = logs - logs.max()
        squares = np.exp(2 * logs)
        total = sum(square * part for square, part in zip(squares, grams, strict=True))
        try:
            factor = cho_factor(total, check_finite=False)
        except LinAlgError:
            return np.inf, np.zeros(len(logs))
        inverse = cho_solve(factor, gram, check_finite=False)
        trace = float(np.trace(inverse))
        if not 0 < trace < np.inf:
            return np.inf, np.zeros(len(logs))
        curvature = cho_solve(factor, inverse.T, check_finite=False)
        slopes = -2 * squares * np.array([float((part * curvature).sum()) for part in grams])
        shares = np.exp(logs) * changes if norm == 1 else squares * changes
        power = 2.0 if norm == 1 else 1.0
        value = float(np.log(trace) + power * np.log(shares.sum()))
        visited.append((value, logs))
        return value, slopes / trace + 2 * shares / shares.sum()

    # The ℓ1 problem is not convex, so the search runs from two points: equal weights, and a large weight on the leaves.
    last = np.arange(len(parts)) == len(parts) - 1
    starts = [np.zeros(len(parts)), np.where(last, 0.0, -3.0)][: 2 if norm == 1 else 1]
    options: Any = {"maxiter": 15, "maxfun": 20}
    for start in starts:
        minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    weights = np.exp(min(visited, key=lambda pair: pair[0])[1]) if visited else np.ones(len(parts))
    return np.vstack([weight * part for weight, part in zip(weights, parts, strict=True)])


def largest_change(rows: Floats, space: EdgeSpace, norm: int) -> float:
    """Return approximately the largest ‖Ae‖₁ (for norm 2, ‖Ae‖₂²) over the edges e, for comparing strategies."""
    columns = np.ascontiguousarray(space.paths @ rows.T)
    distances = cdist(columns, columns, "cityblock" if norm == 1 else "sqeuclidean")
    return float(distances[space.edges[:, 0], space.edges[:, 1]].max())


def decoder(rows: Floats) -> Floats:
    """Return the pseudoinverse A⁺ of a matrix A of full rank, shape (d, k)."""
    if len(rows) < rows.shape[1]:
        return decoder(rows.T).T
    orthogonal, triangular = qr(rows, mode="economic", check_finite=False)
    return np.asarray(solve_triangular(triangular, orthogonal.T, check_finite=False))


def find_squared_error(decoding: Floats, gram: Floats) -> float:
    """Return tr(M·A⁺(A⁺)ᵀ), the total squared error over the workload for noise of unit variance."""
    return float((decoding * (gram @ decoding)).sum())


def _blocks(size: int, width: int, period: int) -> Floats:
    """Return the indicators of blocks of `width` values; a new block also starts after every `period` values."""
    values = np.arange(size)
    labels = (values // period) * (-(-period // width)) + (values % period) // width
    _, numbers = np.unique(labels, return_inverse=True)
    indicators: Floats = (numbers == np.arange(numbers.max() + 1)[:, None]).astype(float)
    return indicators
