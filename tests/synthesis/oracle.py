"""Solve the whole channel program with SciPy: an oracle that shares no code with the package."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.optimize import linprog

import mechdesign as md


def least(
    prior: np.ndarray,
    cost: np.ndarray,
    factors: Iterable[tuple[int, int, float]],
    floors: Iterable[tuple[float, np.ndarray, np.ndarray]],
    objective: str,
) -> float:
    """Return the optimum of the whole program, row by row.

    Each factor (s, t, g) requires p(o|s) <= g p(o|t); each floor has a minimum, the errors of the adversary's
    estimates, and its prior. Infinite costs forbid answers.
    """
    permitted, floors = np.isfinite(cost), list(floors)
    n, m = permitted.shape
    width = n * m + len(floors) * m + 1
    rows: list[np.ndarray] = []
    limits: list[float] = []

    def row(entries: Iterable[tuple[int, float]], limit: float) -> None:
        made = np.zeros(width)
        for column, value in entries:
            made[column] += value
        rows.append(made)
        limits.append(limit)

    for s, t, factor in factors:
        root = math.sqrt(factor)
        for o in range(m):
            row([(s * m + o, 1 / root), (t * m + o, -root)], 0.0)
    for i, (minimum, error, belief) in enumerate(floors):
        start = n * m + i * m
        for o in range(m):
            for errors in error:
                row([(start + o, 1.0)] + [(s * m + o, -belief[s] * errors[s]) for s in range(n)], 0.0)
        row([(start + o, -1.0) for o in range(m)], -minimum)
    finite, costs = np.where(permitted, cost, 0.0), np.zeros(width)
    if objective == "worst":
        costs[-1] = 1.0
        for s in range(n):
            row([(s * m + o, finite[s, o]) for o in range(m)] + [(width - 1, -1.0)], 0.0)
    else:
        costs[: n * m] = (prior[:, None] * finite).ravel()
    sums = np.zeros((n, width))
    for s in range(n):
        sums[s, s * m : (s + 1) * m] = 1.0
    bounds = [(0, None if allowed else 0) for allowed in permitted.ravel()] + [(0, None)] * (len(floors) * m + 1)
    matrix = np.array(rows) if rows else None
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(costs, matrix, limits or None, sums, np.ones(n), bounds, method="highs", options=options)
    assert found.status == 0, found.message
    return float(found.fun)


def least_cost(problem: md.Problem) -> float:
    """Return the optimum of a problem, from its requirements."""
    factors: list[tuple[int, int, float]] = []
    floors = []
    for requirement in problem.requirements:
        if isinstance(requirement, md.DistortionPrivacy):
            if requirement.minimum > 0:
                floors.append((float(requirement.minimum), requirement.distance, problem.prior))
            continue
        epsilon = float(requirement.epsilon)
        if isinstance(requirement, md.GraphPrivacy):
            pairs = [(s, t, 1.0) for s, t in requirement.edges.tolist()]
            pairs += [(t, s, w) for s, t, w in pairs]
        elif isinstance(requirement, md.ThresholdPrivacy):
            near = requirement.distance <= float(requirement.radius)
            pairs = [(s, t, 1.0) for s, t in zip(*np.nonzero(near), strict=True) if s != t]
        else:
            finite = np.isfinite(requirement.distance)
            pairs = [(s, t, requirement.distance[s, t]) for s, t in zip(*np.nonzero(finite), strict=True) if s != t]
        factors += [(s, t, math.exp(epsilon * weight)) for s, t, weight in pairs]
    return least(problem.prior, problem.cost, factors, floors, problem.objective)
