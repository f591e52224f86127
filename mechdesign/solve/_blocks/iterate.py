"""Iterates, their primal residual, and starting points well inside all bounds.

Theory: block_method, Start and stopping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Flags, Floats
from mechdesign.solve._block_angular import BlockProgram, objective
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.tuning import TUNING


@dataclass(frozen=True)
class Start:
    """The parameters of a starting point.

    Attributes:
        slope: The channel is p(o|s) ∝ exp(−slope · E[s, r(o)]), where r(o) is the row with the least cost in column o.
            If the slope is None, the channel is uniform.
        mu_share: The ratio of μ to cost / (m Σ w).
        active: For each floor, flags (B, k) of the active estimates. By default, all estimates are active.
    """

    slope: float | None
    mu_share: float
    active: tuple[Flags, ...] | None = None


DISTANCE_START = Start(0.45, 1.0)
"""The start for metric exponents. Ratios are below exp(0.9 E), and the channel costs less than the uniform channel."""

UNIFORM_START = Start(None, 1.0)
"""The start for programs with few columns, or with exponents that are not a metric."""

LOW_MU_START = Start(0.38, 0.1)
"""The start for merging without floors. It halves the iterations to a gap of 0.4, but later gaps take more."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A primal-dual point, except the multipliers of the ratio rows, which `RatioRows` contains.

    Attributes:
        number: Number of steps from the start.
        points: ξ (B, N), the variables of the blocks.
        multipliers: Λ (L,) of the linking rows.
        theta: θ, the worst cost, or 0 in a program without a worst cost.
        z: Slacks of the auxiliary rows.
        y: Multipliers of the auxiliary rows.
    """

    number: int
    points: Floats
    multipliers: Floats
    theta: float
    z: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class BlockState:
    """An iterate with all multipliers in arrays by block, so that blocks can be removed and added.

    Continuing from a state overwrites it, because a kernel modifies the array of the multipliers of the ratio rows.

    Attributes:
        points: ξ (B, N).
        multipliers: Λ (L,).
        theta: θ, the worst cost.
        slacks: Slacks of the linking rows (F + q,).
        ratio_y: Multipliers of the ratio rows in the layout of a kernel: (B, n, n), or (B, n + K) for sparse blocks.
        floor_y: For each floor, multipliers of its rows (B, k).
        contribution_y: Multipliers of w >= 0 (B, F).
        mu: μ.
        gap: Relative gap.
    """

    points: Floats
    multipliers: Floats
    theta: float
    slacks: Floats
    ratio_y: Floats
    floor_y: tuple[Floats, ...]
    contribution_y: Floats
    mu: float
    gap: float

    @property
    def active(self) -> tuple[Flags, ...]:
        """For each floor, flags (B, k) of the active estimates, which are those with positive multipliers."""
        return tuple(values > 0 for values in self.floor_y)


def save_state(layout: BlockLayout, iterate: Iterate, ratio_y: Floats, mu: float, gap: float) -> BlockState:
    """Combine the iterate and the multipliers `ratio_y` of the ratio rows into a state."""
    auxiliary = layout.auxiliary
    floors = tuple(auxiliary.floor(iterate.y, index).copy() for index in range(layout.floors))
    slacks, parts = iterate.z[auxiliary.linking].copy(), auxiliary.contributions(iterate.y).copy()
    return BlockState(iterate.points, iterate.multipliers, iterate.theta, slacks, ratio_y, floors, parts, mu, gap)


def resume_iterate(layout: BlockLayout, state: BlockState) -> Iterate:
    """Return the iterate of a state, without the multipliers of the ratio rows, which the kernel loads."""
    auxiliary = layout.auxiliary
    y = np.empty(auxiliary.size)
    for index, values in enumerate(state.floor_y):
        auxiliary.floor(y, index)[:] = values
    auxiliary.contributions(y)[:] = state.contribution_y
    y[auxiliary.linking] = state.multipliers[layout.rows :]
    z = auxiliary.slacks(state.points, state.slacks)
    return Iterate(0, state.points, state.multipliers, state.theta, z, y)


def link_residual(layout: BlockLayout, iterate: Iterate) -> Floats:
    """Return the primal residual of the linking rows (L,): 1 − Σ x, minimum − Σ w + t, Σ c x + t − θ."""
    total = layout.link_sums(iterate.points)
    slack = iterate.z[layout.auxiliary.linking]
    n, width = layout.rows, layout.width
    residual = -total
    residual[:n] += 1.0
    residual[n:width] += layout.minima + slack[: layout.floors]
    residual[width:] += slack[layout.floors :] - iterate.theta
    return residual


def primal_residual(layout: BlockLayout, iterate: Iterate) -> float:
    """Return the largest residual of a linking row, in its unit: 1, the floor's minimum, or the largest cost."""
    floors = np.where(layout.minima > 0, layout.minima, 1.0)
    costs = np.full(layout.members, max(float(np.abs(layout.member_cost).max(initial=0.0)), 1e-300))
    units = np.concatenate([np.ones(layout.rows), floors, costs])
    return float((np.abs(link_residual(layout, iterate)) / units).max())


def start_iterate(layout: BlockLayout, start: Start = DISTANCE_START) -> tuple[Iterate, float]:
    """Return the first iterate, with y = μ w / z and λ = 0, and its μ.

    If `start` has a slope, the channel decays with distance. If this channel is not well inside all bounds, the uniform
    channel replaces it.
    """
    program, auxiliary, n = layout.program, layout.auxiliary, layout.rows
    channel = _make_channel(program, start.slope)
    points, slack = _place_blocks(layout, channel)
    if (slack[: layout.floors] <= 0).any() or not _is_interior(program, channel) or not _is_invariant(layout, channel):
        channel = np.full(program.cost.shape, 1 / program.columns)
        points, slack = _place_blocks(layout, channel)
        unmet = slack[: layout.floors] <= 0
        slack[: layout.floors][unmet] = np.maximum(
            TUNING.interior_point.contribution_margin * layout.minima[unmet], 1e-300
        )
    cost = objective(program, channel)
    theta = 0.0
    if program.worst is not None:
        theta = 1.1 * cost
        slack[layout.floors :] = theta - (program.worst.cost * channel[program.worst.row]).sum(axis=1)
    z = auxiliary.slacks(points, slack)
    # With rewards, the cost may be negative.
    spent = max(cost, TUNING.interior_point.min_start_cost * float(np.abs(program.cost).max(initial=1e-300)))
    mu = start.mu_share * spent / (program.columns * float(layout.weights.sum()))
    y = mu * auxiliary.weights / z
    multipliers = np.zeros(layout.links)
    multipliers[n:] = y[auxiliary.linking]
    return Iterate(0, points, multipliers, theta, z, y), mu


def _place_blocks(layout: BlockLayout, channel: Floats) -> tuple[Floats, Floats]:
    """Return the points ξ (B, N) of the blocks for a channel (n, m), and the slacks of the floors.

    The contributions w are so close to their upper limits that each floor is met if the channel allows it. A floor that
    is met once remains met in all steps.
    """
    n = layout.rows
    points = np.empty((layout.blocks, layout.width))
    points[:, :n] = channel[:, layout.kept].T
    points[:, n:] = 0.0
    layout.symmetrise(points)
    slack = np.ones(layout.floors + layout.members)
    for index, error in enumerate(layout.errors):
        least = (points[:, :n] @ error.T).min(axis=1)
        total, minimum = float(layout.counts @ least), layout.minima[index]
        below = (
            min(TUNING.interior_point.contribution_margin, max(1e-14, (1 - minimum / total) / 3)) if total > 0 else 0.0
        )
        points[:, n + index] = least * (1 - below)
        slack[index] = total * (1 - below) - minimum
    return points, slack


def _make_channel(program: BlockProgram, slope: float | None) -> Floats:
    """Return the starting channel with this slope, or the uniform channel if the slope is unsuitable."""
    cost = program.cost
    uniform = np.full(cost.shape, 1 / program.columns)
    if slope is None:
        return uniform
    if program.worst is not None:
        cost = np.full(cost.shape, np.inf)
        np.minimum.at(cost, program.worst.row, program.worst.cost)
    best = cost.argmin(axis=0)
    exponents = program.exponents.copy()
    np.fill_diagonal(exponents, 0.0)
    if np.unique(best).size < best.size or exponents.max() > TUNING.interior_point.max_start_exponent:
        return uniform
    channel = np.exp(-slope * exponents[:, best])
    spread: Floats = channel / channel.sum(axis=1, keepdims=True)
    return spread


def _is_invariant(layout: BlockLayout, channel: Floats) -> bool:
    """Return whether a channel is invariant under the symmetries of the layout."""
    pairs = zip(layout.symmetry.rows, layout.symmetry.columns, strict=True)
    return all(np.allclose(channel[np.ix_(rows, columns)], channel, rtol=1e-6, atol=0.0) for rows, columns in pairs)


def _is_interior(program: BlockProgram, channel: Floats) -> bool:
    """Return whether all ratios are below exp(0.95 E)."""
    if channel.min() == channel.max():
        # The uniform channel is accepted early, because comparing all ratios of 2,500 rows would take 40 seconds.
        return True
    logs = np.log(channel)
    limit = 0.95 * program.exponents
    return all(bool((logs[s] - logs <= limit[s][:, None]).all()) for s in range(program.rows))
