"""Spaces of edges and independent optima for tests of strategies."""

from __future__ import annotations

from collections.abc import Iterable

import cvxpy as cp
import numpy as np

from mechdesign.tables._optimal_strategies import EdgeSpace, edge_space


def space_of(size: int, pairs: Iterable[tuple[int, int]]) -> EdgeSpace:
    return edge_space(size, np.array(list(pairs), dtype=np.int64).reshape(-1, 2))


def threshold_space(size: int, theta: int) -> EdgeSpace:
    """θ = 0: no policy, every record may be added or removed."""
    if theta == 0:
        return space_of(size, [(value, size) for value in range(size)])
    return space_of(size, [(x, y) for x in range(size) for y in range(x + 1, min(x + theta, size - 1) + 1)])


def projected(gram: np.ndarray, space: EdgeSpace) -> np.ndarray:
    inside = space.centred(space.centred(gram).T)
    return (inside + inside.T) / 2


def independent_optimum(rows: np.ndarray, space: EdgeSpace) -> float:
    """Minimise tr(X⁻¹M) under eᵀXe ≤ 1 with a conic solver, for workloads of full rank."""
    vectors = space.paths[space.edges[:, 0]] - space.paths[space.edges[:, 1]]
    matrix = cp.Variable((space.rank, space.rank), PSD=True)
    cost = cp.matrix_frac(space.differences(rows).T, matrix)
    constraints = [vector @ matrix @ vector <= 1 for vector in vectors]
    return float(cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL))
