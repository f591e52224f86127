"""One Newton direction: block steps, multipliers of the linking rows, and the steps of the small rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.schur import Blocks, LinkSystem
from mechdesign.solvers.ipm.small import SmallRows

__all__ = ["Direction", "Point", "direction", "link_residuals"]

Array = npt.NDArray[np.float64]

# A direction is corrected until it meets the row sums to this accuracy; else they drift, and repair costs too much.
_LINK_ACCURACY = 1e-11
_CORRECTIONS = 2
# What a slack of a linking row may take up, relative to itself.
_TAKEN = 1e-6


@dataclass
class Point:
    """An iterate: ξ (B, N), multipliers Λ (L,) of the linking rows, θ, and z, y of the small rows."""

    points: Array
    multipliers: Array
    theta: float
    z: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Direction:
    """Relative steps u (B, N), dΛ (L,), dθ, and for the small rows q = dz/z and dy."""

    u: Array
    multipliers: Array
    theta: float
    q: Array
    dy: Array


def link_residuals(layout: Layout, small: SmallRows, point: Point) -> Array:
    """Return what the linking rows lack (L,): 1 − Σ x, minimum − Σ w + t, Σ c x + t − θ."""
    total = layout.sums(point.points)
    slack = point.z[small.linking]
    n, width = layout.rows, layout.width
    lacking = -total
    lacking[:n] += 1.0
    lacking[n:width] += layout.minima + slack[: layout.floors]
    lacking[width:] += slack[layout.floors :] - point.theta
    return lacking


def direction(
    layout: Layout,
    small: SmallRows,
    blocks: Blocks,
    system: LinkSystem,
    point: Point,
    pulled: Array,
    f: Array,
) -> Direction:
    """Solve the Newton system for targets f = T/z: `pulled` (B, n) is Bᵀf of the ratio rows.

    `f` is that of the small rows. With R = −(c − E_oᵀΛ) + Bᵀf each block gives H u = ξ∘(R + E_oᵀdΛ), and the linking
    rows then give S dΛ.
    """
    linking, n = small.linking, layout.rows
    right = layout.pull(point.multipliers)
    right[:, :n] += pulled - layout.cost
    small.pull(f, right)
    lacking = link_residuals(layout, small, point)
    z, y = point.z[linking], point.y[linking]
    # dt = T/y − z − z dy/y, and T = f z.
    gain = z * (f[linking] / y - 1.0)
    lacking[n:] += gain
    corner = 1.0 - float(point.y[linking][layout.floors :].sum())
    u = blocks.solve(right)
    change, theta = system.solve(lacking - layout.sums(point.points * u), corner)
    u = blocks.solve(right + layout.pull(change))
    for corrected in range(_CORRECTIONS + 1):
        rest = lacking - layout.sums(point.points * u)
        rest[n:] -= z / y * change[n:]
        rest[layout.width :] -= theta
        if np.abs(rest).max() <= _LINK_ACCURACY or corrected == _CORRECTIONS:
            break
        more, more_theta = system.solve(rest, 0.0)
        change = change + more
        theta += more_theta
        u = u + blocks.solve(layout.pull(more))
    # A large slack takes up what its row still lacks: z/y would enlarge the rounding of its small multiplier.
    taken = np.where(np.abs(rest[n:]) <= _TAKEN * z, rest[n:], 0.0)
    dy = np.empty(small.size)
    dy[linking] = change[n:] + y / z * taken
    link_steps = gain - z / y * change[n:] - taken
    q = small.relative(point.points, u, point.z, link_steps)
    rows = slice(0, linking.start)
    dy[rows] = f[rows] - point.y[rows] * (1.0 + q[rows])
    return Direction(u, change, theta, q, dy)
