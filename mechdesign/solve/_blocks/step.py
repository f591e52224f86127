"""One iteration: from the factored blocks at an iterate to the next one, on a weighted central path.

Mehrotra's predictor and second-order corrector, then Gondzio's centrality correctors as long as they lengthen the step.
Rows aim at y z = w t with t = σ μ: far pairs, of small weight w, are allowed less complementarity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.solve._blocks.iterate import Iterate
from mechdesign.solve._blocks.kernels.contract import FARTHEST, NEAREST
from mechdesign.solve._blocks.newton import (
    Direction,
    FactoredBlocks,
    SchurComplement,
    StallError,
    Targets,
    newton_direction,
    refined_direction,
)

_LARGEST_SIGMA, _LARGEST_SPARSE_SIGMA = 0.02, 0.1
# At most so many correctors; they end when both steps are long enough, or one gains too little or shortens a step.
_CORRECTIONS = 6
_LONG_ENOUGH = 0.95
# By how much a direction in single precision may miss the linking rows, in their largest unit: one that misses them by
# more is not taken.
_MISSED = 1e-7
_WORTHWHILE = 0.01
_KEPT = 0.9
# The part of the way to the boundary that is gone: more where the step is long.
_STEP = 0.9
_LAST_STEP = 0.99


@dataclass(frozen=True, eq=False)
class Step:
    """The next iterate, both step lengths, and how many centrality correctors were kept."""

    iterate: Iterate
    primal: float
    dual: float
    corrections: int


def take_step(blocks: FactoredBlocks, *, corrections: bool = True) -> Step:
    """Take one primal-dual step from the newest iterate, with or without centrality correctors.

    Raises:
        StallError: where the Newton system cannot be solved, or not well enough in single precision.
    """
    blocks.ratios.require(blocks.iterate.number)
    most = _CORRECTIONS if corrections else 0
    schur = SchurComplement(blocks)
    predictor = newton_direction(blocks, schur, _affine(blocks))
    centre = _centring(blocks, predictor) * blocks.mu
    targets = _mehrotra(blocks, predictor, centre)
    found = newton_direction(blocks, schur, targets)
    lengths = _step_lengths(blocks, targets, found, corrected=most > 0)
    kept = 0
    while kept < most and min(lengths) < _LONG_ENOUGH:
        trial = _centrality(blocks, targets, found, lengths, centre)
        other = newton_direction(blocks, schur, trial)
        longer = _step_lengths(blocks, trial, other, corrected=True)
        if sum(longer) < sum(lengths) + _WORTHWHILE or min(longer) < _KEPT * min(lengths):
            break
        targets, found, lengths = trial, other, longer
        kept += 1
    refined = refined_direction(blocks, schur, targets, found)
    if blocks.ratios.kernel.rough and not refined.rest <= _MISSED * blocks.layout.link_unit:
        raise StallError("a direction in single precision misses the linking rows")
    if refined is not found:
        lengths = _step_lengths(blocks, targets, refined, corrected=False)
    found = refined
    if not (np.isfinite(found.u).all() and np.isfinite(found.dy).all() and np.isfinite(found.multipliers).all()):
        raise StallError("a direction is not finite")
    share = _LAST_STEP if min(lengths) >= _LONG_ENOUGH else _STEP
    primal, dual = share * lengths[0], share * lengths[1]
    return Step(_advance(blocks, targets, found, primal, dual), primal, dual, kept)


def _affine(blocks: FactoredBlocks) -> Targets:
    """Return the targets T = 0 of the predictor."""
    return Targets(None, np.zeros_like(blocks.x), np.zeros(blocks.layout.auxiliary.size))


def _centring(blocks: FactoredBlocks, predictor: Direction) -> float:
    """Return Mehrotra's σ = (μ_aff/μ)³, but at most 0.02, for sparse blocks 0.1."""
    layout, iterate = blocks.layout, blocks.iterate
    linking = layout.auxiliary.linking
    low, high = blocks.ratios.affine_ratio_test(blocks.x, predictor.u_x)
    primal = 1.0 / max(1.0, low, -float(predictor.q.min(initial=0.0)))
    dual = 1.0 / max(1.0, high, layout.auxiliary.greatest_fall(iterate.y, predictor.dy))
    # Over the blocks' rows dy = −y (1 + q), Σ y z q = u·ΞBᵀy and Σ y z q² = uᵀHu: no pass is needed.
    steps = iterate.points * predictor.u
    right = layout.adjoint(iterate.multipliers + predictor.multipliers)
    right[:, : layout.rows] -= layout.cost
    right[:, layout.rows :] += layout.rewards
    products = float(layout.counts @ blocks.products)
    first = float(layout.counts @ (steps * blocks.adjoint).sum(axis=1))
    second = float(layout.counts @ (steps * right).sum(axis=1))
    reached = products * (1 - dual) + (primal * (1 - dual) - dual) * first - primal * dual * second
    z, y = iterate.z[linking], iterate.y[linking]
    linked = z * (1 + primal * predictor.q[linking]) * (y + dual * predictor.dy[linking])
    total = products + float(z @ y)
    largest = _LARGEST_SPARSE_SIGMA if layout.sparse else _LARGEST_SIGMA
    return min((max(0.0, reached + float(linked.sum())) / total) ** 3, largest)


def _mehrotra(blocks: FactoredBlocks, predictor: Direction, centre: float) -> Targets:
    """Return T = t w − dz dy, the second-order corrector of the predictor."""
    f = centre * blocks.layout.auxiliary.weights / blocks.iterate.z - predictor.q * predictor.dy
    return Targets(0, blocks.ratios.mehrotra(blocks.x, predictor.u_x, centre), f)


def _centrality(
    blocks: FactoredBlocks, targets: Targets, found: Direction, lengths: tuple[float, float], centre: float
) -> Targets:
    """Return the targets with Gondzio's correction for steps somewhat longer than those `found` allows.

    Products v = (z + α̃_p dz)(y + α̃_d dy) far from t w change by clip(v, 0.1 t w, 10 t w) − v, not below −10 t w.
    """
    assert targets.slot is not None
    iterate = blocks.iterate
    primal, dual = (min(1.0, 1.8 * length + 0.3) for length in lengths)
    adjoint = blocks.ratios.centrality(blocks.x, found.u_x, targets.slot, primal, dual, centre)
    product = (iterate.z * (1 + primal * found.q)) * (iterate.y + dual * found.dy)
    aim = centre * blocks.layout.auxiliary.weights
    change = np.minimum(np.maximum(product, NEAREST * aim), FARTHEST * aim) - np.minimum(product, 2 * FARTHEST * aim)
    return Targets(1 - targets.slot, adjoint, targets.auxiliary + change / iterate.z)


def _step_lengths(
    blocks: FactoredBlocks, targets: Targets, found: Direction, *, corrected: bool
) -> tuple[float, float]:
    """Return the longest steps up to 1 that keep z and y non-negative."""
    assert targets.slot is not None
    primal, dual = blocks.ratios.ratio_test(blocks.x, found.u_x, targets.slot, corrected=corrected)
    primal = max(1.0, primal, -float(found.q.min(initial=0.0)))
    dual = max(1.0, dual, blocks.layout.auxiliary.greatest_fall(blocks.iterate.y, found.dy))
    return 1.0 / primal, 1.0 / dual


def _advance(blocks: FactoredBlocks, targets: Targets, found: Direction, primal: float, dual: float) -> Iterate:
    """Return the next iterate: ξ, θ and slacks move by `primal`, multipliers by `dual`."""
    assert targets.slot is not None
    layout, iterate = blocks.layout, blocks.iterate
    linking = layout.auxiliary.linking
    blocks.ratios.advance(blocks.x, found.u_x, targets.slot, dual)
    points = iterate.points * (1 + primal * found.u)
    slack = iterate.z[linking] * (1 + primal * found.q[linking])
    y = iterate.y + dual * found.dy
    multipliers = iterate.multipliers + dual * found.multipliers
    multipliers[layout.rows :] = y[linking]
    theta = iterate.theta + primal * found.theta
    return Iterate(iterate.number + 1, points, multipliers, theta, layout.auxiliary.slacks(points, slack), y)
