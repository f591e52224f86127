"""Where the iteration starts: the uniform channel, well inside every bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.programs.block import objective
from mechdesign.solvers.block.directions import Point
from mechdesign.solvers.block.layout import Layout
from mechdesign.solvers.block.small import SmallRows

__all__ = ["first_point", "total_weight"]

Array = npt.NDArray[np.float64]

# Parts of a floor start at most this share below what the column gives, or a third of the way to the minimum.
_BELOW = 0.05


def total_weight(layout: Layout, small: SmallRows) -> float:
    """Return the sum of the weights of all rows of the program, orbits counted in full."""
    return float(layout.counts.sum() * layout.weights.sum() + small.counts @ small.weights)


def first_point(layout: Layout, small: SmallRows) -> tuple[Point, float]:
    """Return the first iterate and its μ: x = 1/m, y = μ w / z with μ = cost / (m Σ w), λ = 0."""
    program, n, m = layout.program, layout.rows, layout.program.columns
    points = np.full((layout.blocks, layout.width), 1 / m)
    slack = np.empty(layout.floors + layout.members)
    for index, error in enumerate(layout.errors):
        # Releasing nothing reaches `largest`, above every floor that can be met: all rows are met from the start, and
        # steps keep them so. Meeting them only in the end is too late where there is little room.
        largest = float(error.sum(axis=1).min())
        below = min(_BELOW, max(1e-14, (1 - layout.minima[index] / largest) / 3)) if largest > 0 else 0.0
        points[:, n + index] = largest * (1 - below) / m
        surplus = float(layout.counts @ points[:, n + index]) - layout.minima[index]
        slack[index] = surplus if surplus > 0 else max(below * largest, 1e-300)
    cost = objective(program, np.full((n, m), 1 / m))
    theta = 0.0
    if program.worst is not None:
        theta = 1.1 * cost
        slack[layout.floors :] = theta - program.worst.cost.mean(axis=1)
    z = small.slacks(points, slack)
    mu = cost / (m * float(layout.weights.sum()))
    y = mu * small.weights / z
    multipliers = np.zeros(layout.links)
    multipliers[n:] = y[small.linking]
    return Point(points, multipliers, theta, z, y), mu
