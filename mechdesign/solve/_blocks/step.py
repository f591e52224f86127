"""One iteration on a weighted central path: from the factored blocks at an iterate to the next iterate.

A step combines Mehrotra's predictor and second-order corrector with Gondzio's centrality correctors. Correctors are
added while they lengthen the step. The target of each row is y z = σμ w. Rows of distant pairs have a small
weight w, and therefore a small target. The main iteration has one system of linking rows; pricing has one system for
each column.

Theory: block_method, One iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._blocks.iterate import Iterate
from mechdesign.solve._blocks.kernels.contract import BETA_MAX, BETA_MIN
from mechdesign.solve._blocks.newton import (
    Direction,
    FactoredBlocks,
    NewtonSystem,
    StallError,
    Targets,
    refine_direction,
    solve_newton,
)
from mechdesign.solve._blocks.tuning import TUNING, StepTuning


class RatioPasses(Protocol):
    """Passes over the ratio rows of C systems, with arrays (C,) of values; the flags `chosen` select systems."""

    def affine_ratio_test(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest dz/z for the target 0."""

    def mehrotra(self, u: Floats, centre: Floats) -> Floats:
        """Write the targets of Mehrotra's corrector to slot 0; return their adjoint (B, n)."""

    def ratio_test(
        self, u: Floats, slot: Integers, chosen: Flags | None, *, store_for_corrector: bool
    ) -> tuple[Floats, Floats]:
        """Return the smallest dz/z and dy/y for the targets in `slot`.

        If `store_for_corrector` is true, a call of `centrality` with the same steps may follow.
        """

    def centrality(
        self, u: Floats, slot: Integers, primal: Floats, dual: Floats, centre: Floats, chosen: Flags
    ) -> Floats:
        """Write Gondzio's correction of the targets in `slot` to the other slot; return their adjoint (B, n)."""


class MainPasses:
    """The passes of the main iteration, which all workers share, for one system of linking rows."""

    def __init__(self, blocks: FactoredBlocks) -> None:
        self.x, self.ratios = blocks.x, blocks.ratios

    def affine_ratio_test(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest dz/z."""
        low, high = self.ratios.affine_ratio_test(self.x, u)
        return np.array([-low]), np.array([high - 1.0])

    def mehrotra(self, u: Floats, centre: Floats) -> Floats:
        """Write the targets of Mehrotra's corrector to slot 0; return their adjoint."""
        return self.ratios.mehrotra(self.x, u, float(centre[0]))

    def ratio_test(
        self, u: Floats, slot: Integers, chosen: Flags | None, *, store_for_corrector: bool
    ) -> tuple[Floats, Floats]:
        """Return the smallest dz/z and dy/y."""
        primal, dual = self.ratios.ratio_test(self.x, u, int(slot[0]), store_for_corrector=store_for_corrector)
        return np.array([primal]), np.array([dual])

    def centrality(
        self, u: Floats, slot: Integers, primal: Floats, dual: Floats, centre: Floats, chosen: Flags
    ) -> Floats:
        """Write Gondzio's correction to the other slot; return its adjoint."""
        return self.ratios.centrality(self.x, u, int(slot[0]), float(primal[0]), float(dual[0]), float(centre[0]))


@dataclass(frozen=True, eq=False)
class SearchDirection:
    """The direction of a step, with its targets; slots, lengths and counts are arrays (C,).

    Attributes:
        targets: Target complementarity products.
        direction: The direction.
        slot: Slot of the targets in the kernel.
        primal: Longest primal step.
        dual: Longest dual step.
        correctors: Number of accepted correctors.
    """

    targets: Targets
    direction: Direction
    slot: Integers
    primal: Floats
    dual: Floats
    correctors: Integers


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums that are computed while the blocks are assembled.

    Attributes:
        products: The sum Σ y z over the rows of each block (B,).
        adjoint: Bᵀy (B, N).
        weight: The sum Σ w over all rows.
    """

    products: Floats
    adjoint: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class StepResult:
    """The next iterate, the primal and dual step lengths, and the number of accepted centrality correctors."""

    iterate: Iterate
    primal: float
    dual: float
    correctors: int


def take_step(blocks: FactoredBlocks, *, allow_correctors: bool = True) -> StepResult:
    """Take one primal-dual step from the newest iterate, with or without centrality correctors.

    Args:
        blocks: The factored blocks at the newest iterate.
        allow_correctors: Whether to try centrality correctors.

    Returns:
        The next iterate and the step lengths.

    Raises:
        StallError: If the Newton system cannot be solved, or if its solution in single precision is too inaccurate.
    """
    blocks.ratios.require_newest(blocks.iterate.number)
    layout = blocks.layout
    tuning = TUNING.sparse_step if layout.sparse else TUNING.step
    if not allow_correctors:
        tuning = replace(tuning, max_correctors=0)
    system, passes = blocks.system(), MainPasses(blocks)
    sums = BlockSums(blocks.products, blocks.adjoint, layout.total_weight)
    search = find_search_direction(system, passes, sums, tuning)
    found = refine_direction(system, search.targets, search.direction)
    if system.single_inverses and not found.link_residual <= tuning.max_link_miss_single * layout.link_unit:
        raise StallError("a direction in single precision misses the linking rows")
    primal, dual = search.primal, search.dual
    if found is not search.direction:
        primal, dual = _step_lengths(system, passes, found, search.slot, None, store_for_corrector=False)
    if not (np.isfinite(found.u).all() and np.isfinite(found.dy).all() and np.isfinite(found.dmultipliers).all()):
        raise StallError("a direction is not finite")
    share = boundary_shares(primal, dual, tuning)
    lengths = float((share * primal)[0]), float((share * dual)[0])
    iterate = _advance(blocks, found, int(search.slot[0]), *lengths)
    return StepResult(iterate, *lengths, int(search.correctors[0]))


def boundary_shares(primal: Floats, dual: Floats, tuning: StepTuning) -> Floats:
    """Return the fraction (C,) of the distance to the boundary that a step takes; it is larger for long steps."""
    is_long = np.minimum(primal, dual) >= tuning.long_step
    return np.where(is_long, tuning.boundary_fraction_long, tuning.boundary_fraction)


def find_search_direction(
    system: NewtonSystem, passes: RatioPasses, sums: BlockSums, tuning: StepTuning
) -> SearchDirection:
    """Compute the direction of a step with Mehrotra's predictor and corrector, and with Gondzio's correctors."""
    coupling, auxiliary, iterate = system.coupling, system.auxiliary, system.iterate
    predictor = solve_newton(system, Targets(np.zeros(system.cost.shape), np.zeros(auxiliary.size)))
    centre = _choose_centring(system, passes, sums, predictor, tuning)
    f = coupling.spread(centre) * auxiliary.weights / iterate.z - predictor.q * predictor.dy
    targets = Targets(passes.mehrotra(predictor.u_x, centre), f)
    found = solve_newton(system, targets)
    slot = np.zeros(centre.size, dtype=np.int64)
    tries_correctors = tuning.max_correctors > 0
    primal, dual = _step_lengths(system, passes, found, slot, None, store_for_corrector=tries_correctors)
    search = SearchDirection(targets, found, slot, primal, dual, np.zeros(centre.size, dtype=np.int64))
    trying = np.ones(centre.size, dtype=np.bool_)
    for _ in range(tuning.max_correctors):
        trying = trying & (np.minimum(search.primal, search.dual) < tuning.long_step)
        if not trying[coupling.active()].any():
            break
        search, trying = _correct(system, passes, search, centre, trying, tuning)
    return search


def _correct(
    system: NewtonSystem,
    passes: RatioPasses,
    search: SearchDirection,
    centre: Floats,
    trying: Flags,
    tuning: StepTuning,
) -> tuple[SearchDirection, Flags]:
    """Try one of Gondzio's correctors, and accept it in the systems whose steps become long enough.

    Let π = (z + α̃_p dz)(y + α̃_d dy). The target changes by max(clip(π, 0.1 σμw, 10 σμw) − π, −10 σμw). The function
    returns the search direction, and flags (C,) of the systems that accept the corrector.
    """
    coupling, auxiliary, iterate = system.coupling, system.auxiliary, system.iterate
    z, y, found, f = iterate.z, iterate.y, search.direction, search.targets.auxiliary
    primal, dual = (
        np.minimum(1.0, tuning.reach_factor * length + tuning.reach_offset) for length in (search.primal, search.dual)
    )
    adjoint = passes.centrality(found.u_x, search.slot, primal, dual, centre, trying)
    primal, dual = coupling.spread(primal), coupling.spread(dual)
    product = (z * (1 + primal * found.q)) * (y + dual * found.dy)
    wanted = coupling.spread(centre) * auxiliary.weights
    # This equals clip(π) − π, but is at least −10 σμw.
    change = np.minimum(np.maximum(product, BETA_MIN * wanted), BETA_MAX * wanted)
    change -= np.minimum(product, 2 * BETA_MAX * wanted)
    targets = Targets(adjoint, f + change / z)
    other = solve_newton(system, targets)
    longer = _step_lengths(system, passes, other, 1 - search.slot, trying, store_for_corrector=True)
    better = trying & (longer[0] + longer[1] >= search.primal + search.dual + tuning.min_corrector_gain)
    better &= np.minimum(*longer) >= tuning.min_step_kept * np.minimum(search.primal, search.dual)
    if better.all():
        chosen = targets, other
    elif not better.any():
        chosen = search.targets, found
    else:
        chosen = _mix(coupling.spread(better), better[:, None], (targets, other), (search.targets, found))
    slot, correctors = np.where(better, 1 - search.slot, search.slot), search.correctors + better
    lengths = np.where(better, longer[0], search.primal), np.where(better, longer[1], search.dual)
    return SearchDirection(*chosen, slot, *lengths, correctors), better


def _mix(
    rows: Flags, blocks: Flags, new: tuple[Targets, Direction], old: tuple[Targets, Direction]
) -> tuple[Targets, Direction]:
    """Return the new targets and direction in the flagged blocks, and the old targets and direction in other blocks."""
    (targets, found), (before, earlier) = new, old
    mixed = Targets(
        np.where(blocks, targets.target_adjoint, before.target_adjoint),
        np.where(rows, targets.auxiliary, before.auxiliary),
    )
    direction = Direction(
        np.where(blocks, found.u, earlier.u),
        np.where(blocks, found.u_x, earlier.u_x),
        np.where(blocks, found.dmultipliers, earlier.dmultipliers),
        found.dtheta,
        np.where(rows, found.q, earlier.q),
        np.where(rows, found.dy, earlier.dy),
        max(found.link_residual, earlier.link_residual),
    )
    return mixed, direction


def _choose_centring(
    system: NewtonSystem, passes: RatioPasses, sums: BlockSums, predictor: Direction, tuning: StepTuning
) -> Floats:
    """Return the centres σ μ (C,), where σ is Mehrotra's (μ_aff/μ)³, capped at `max_sigma`.

    The rows of the blocks satisfy dy = −y (1 + q), Σ y z q = u·ΞBᵀy and Σ y z q² = uᵀHu. The complementarity is
    therefore computed without a pass over these rows.
    """
    coupling, auxiliary, iterate, n = system.coupling, system.auxiliary, system.iterate, system.cost.shape[1]
    low, high = passes.affine_ratio_test(predictor.u_x)
    primal = 1.0 / np.maximum(1.0, -coupling.minimum(low, predictor.q))
    # For the target 0, dy/y = −1 − q.
    dual = 1.0 / np.maximum(1.0, -coupling.minimum(-1.0 - high, auxiliary.relative_change(iterate.y, predictor.dy)))
    # R + EᵀdΛ for the target 0, so `second` is uᵀHu.
    steps = iterate.points * predictor.u
    right = coupling.link_adjoint(iterate.multipliers + predictor.dmultipliers)
    right[:, :n] -= system.cost
    right[:, n:] += system.rewards
    products = coupling.total(sums.products)
    first = coupling.total((steps * sums.adjoint).sum(axis=1))
    second = coupling.total((steps * right).sum(axis=1))
    # Σ y z (1 + α_p q)(1 − α_d − α_d q)
    reached = products * (1 - dual) + (primal * (1 - dual) - dual) * first - primal * dual * second
    link = auxiliary.linking
    z, y = iterate.z[link], iterate.y[link]
    total = products + float(z @ y)
    if z.size:
        linked = z * (1 + primal * predictor.q[link]) * (y + dual * predictor.dy[link])
        reached = reached + float(linked.sum())
    share = np.maximum(0.0, reached) / total
    # Each value is cubed separately, because NumPy's power of an array may differ in the last bit.
    sigma = np.minimum(np.array([float(each) ** 3 for each in share]), tuning.max_sigma)
    centre: Floats = sigma * (total / sums.weight)
    return centre


def _step_lengths(
    system: NewtonSystem,
    passes: RatioPasses,
    found: Direction,
    slot: Integers,
    chosen: Flags | None,
    *,
    store_for_corrector: bool,
) -> tuple[Floats, Floats]:
    """Return the longest steps (C,), at most 1, that keep z and y non-negative."""
    coupling, y = system.coupling, system.iterate.y
    low, fall = passes.ratio_test(found.u_x, slot, chosen, store_for_corrector=store_for_corrector)
    primal = 1.0 / np.maximum(1.0, -coupling.minimum(low, found.q))
    dual = 1.0 / np.maximum(1.0, -coupling.minimum(fall, system.auxiliary.relative_change(y, found.dy)))
    return primal, dual


def _advance(blocks: FactoredBlocks, found: Direction, slot: int, primal: float, dual: float) -> Iterate:
    """Return the next iterate, after a step of length `primal` in ξ, θ and slacks, and `dual` in multipliers."""
    layout, iterate = blocks.layout, blocks.iterate
    linking = layout.auxiliary.linking
    blocks.ratios.advance(blocks.x, found.u_x, slot, dual)
    points = iterate.points * (1 + primal * found.u)
    slack = iterate.z[linking] * (1 + primal * found.q[linking])
    y = iterate.y + dual * found.dy
    multipliers = iterate.multipliers + dual * found.dmultipliers[0]
    multipliers[layout.rows :] = y[linking]
    theta = iterate.theta + primal * found.dtheta
    return Iterate(iterate.number + 1, points, multipliers, theta, layout.auxiliary.slacks(points, slack), y)
