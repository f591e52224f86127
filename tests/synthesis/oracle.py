"""Solve the whole channel program with SciPy: an oracle that shares no code with the package."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

import mechdesign as md


def least_cost(problem: md.Problem) -> float:
    """Return the optimum of the whole program, with every row and every permitted variable."""
    permitted = np.isfinite(problem.cost)
    n, m = permitted.shape
    floors = [r for r in problem.requirements if isinstance(r, md.DistortionPrivacy) and r.minimum > 0]
    width = n * m + len(floors) * m + 1
    rows, limits = [], []

    def row(entries, limit):
        made = np.zeros(width)
        for column, value in entries:
            made[column] += value
        rows.append(made)
        limits.append(limit)

    for requirement in problem.requirements:
        if isinstance(requirement, md.DistortionPrivacy):
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
        for s, t, weight in pairs:
            for o in range(m):
                root = math.exp(epsilon * weight / 2)
                row([(s * m + o, 1 / root), (t * m + o, -root)], 0.0)
    for i, floor in enumerate(floors):
        start = n * m + i * m
        for o in range(m):
            for errors in floor.distance:
                row([(start + o, 1.0)] + [(s * m + o, -problem.prior[s] * errors[s]) for s in range(n)], 0.0)
        row([(start + o, -1.0) for o in range(m)], -float(floor.minimum))
    cost = np.where(permitted, problem.cost, 0.0)
    objective = np.zeros(width)
    if problem.objective == "worst":
        objective[-1] = 1.0
        for s in range(n):
            row([(s * m + o, cost[s, o]) for o in range(m)] + [(width - 1, -1.0)], 0.0)
    else:
        objective[: n * m] = (problem.prior[:, None] * cost).ravel()
    sums = np.zeros((n, width))
    for s in range(n):
        sums[s, s * m : (s + 1) * m] = 1.0
    bounds = [(0, None if allowed else 0) for allowed in permitted.ravel()] + [(0, None)] * (len(floors) * m + 1)
    matrix = np.array(rows) if rows else None
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(objective, matrix, limits or None, sums, np.ones(n), bounds, method="highs", options=options)
    assert found.status == 0, found.message
    return float(found.fun)
