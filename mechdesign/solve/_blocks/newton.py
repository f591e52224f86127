"""The Newton system at an iterate: factored blocks, the Schur complement that couples them, and its solutions.

In relative steps u = dξ/ξ block o has the Hessian H = Ξ Bᵀ diag(y/z) B Ξ. All rows are homogeneous, so scaling the
whole block (u = 1) hardly moves active rows and H is nearly singular along it. With a root r = argmax x write
u = v + τ·1, v_r = 0: row and column r of H become H·1 = ξ∘(Bᵀy), and H_rr becomes Σ y z, which are computed without
differences. The result M is factored; with P its inverse, p = P[:, r] without entry r, and P₀ = P without row and
column r, the block's inverse Hessian is P₀ + p1ᵀ + 1pᵀ + P_rr 11ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.iterate import Iterate, link_residual
from mechdesign.solve._blocks.layout import Layout
from mechdesign.solve._blocks.ratios import RatioRows

_LINK_ACCURACY = 1e-11
# One in single precision takes more of that; else linking rows are missed in the end.
_REFINEMENTS, _ROUGH_REFINEMENTS = 2, 8
# What a slack of a linking row may take up, relative to itself.
_TAKEN = 1e-6
_LEAST_REGULARISATION, _LARGEST_REGULARISATION = 1e-15, 1e-4


class StallError(Exception):
    """The iteration cannot go on; where it stands is still valid."""


@dataclass(frozen=True, eq=False)
class Targets:
    """The complementarity products T that a direction aims at, as T/z.

    Attributes:
        slot: where the kernel holds those of the ratio rows; None for T = 0, the affine direction.
        adjoint: Bᵀ(T/z) (B, n) of the ratio rows.
        auxiliary: T/z of the auxiliary rows.
    """

    slot: int | None
    adjoint: Floats
    auxiliary: Floats


@dataclass(frozen=True, eq=False)
class Direction:
    """A solution of the Newton system.

    Attributes:
        u: relative steps dξ/ξ (B, N).
        u_x: those of x alone (B, n), contiguous.
        multipliers: dΛ (L,).
        theta: dθ.
        q: dz/z of the auxiliary rows.
        dy: of the auxiliary rows.
        rest: by how much it misses the linking rows.
    """

    u: Floats
    u_x: Floats
    multipliers: Floats
    theta: float
    q: Floats
    dy: Floats
    rest: float


@dataclass(frozen=True, eq=False)
class FactoredBlocks:
    """The factored Hessians at an iterate, and what assembling them measures; valid until the next ones are factored.

    Attributes:
        x: the iterate's x (B, n), contiguous.
        adjoint: Bᵀy (B, N).
        products: Σ y z over each block's rows (B,).
        roots: the root of each block (B,).
        schur: Σ_o E_o Ξ Q Ξ E_oᵀ (L, L), averaged over the symmetry group.
        regularisation: the largest relative change of a diagonal that factoring needed.
        mu: the barrier parameter μ = Σ y z / Σ w over all rows.
    """

    layout: Layout
    ratios: RatioRows
    iterate: Iterate
    x: Floats
    adjoint: Floats
    products: Floats
    roots: Integers
    schur: Floats
    regularisation: float
    mu: float

    def solve(self, right: Floats) -> Floats:
        """Return u (B, N) with H u = ξ∘right for every block."""
        index = np.arange(self.layout.blocks)
        steps = self.iterate.points * right
        steps[index, self.roots] = steps.sum(axis=1)
        kernel = self.ratios.kernel
        self.ratios.workers.run(lambda worker, blocks: kernel.solve(worker, blocks, steps))
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        self.layout.symmetrise(steps)
        return steps


def factor_blocks(layout: Layout, ratios: RatioRows, iterate: Iterate) -> FactoredBlocks:
    """Build and factor the Hessians of all blocks at the newest iterate.

    Raises:
        StallError: where rounding has left a slack that is not positive or a Hessian that cannot be factored.
    """
    ratios.require(iterate.number)
    auxiliary, kernel, n = layout.auxiliary, ratios.kernel, layout.rows
    points, z, y = iterate.points, iterate.z, iterate.y
    if not (z > 0).all():
        raise StallError("rounding has left a slack that is not positive")
    x = np.ascontiguousarray(points[:, :n])
    roots = x.argmax(axis=1)
    pairs, pair_products = np.zeros(x.shape), np.zeros(layout.blocks)
    others, work = np.zeros(points.shape), y * z
    auxiliary.add_adjoint(y, others)
    products = auxiliary.part(work).sum(axis=1)
    for index in range(layout.floors):
        products += auxiliary.floor(work, index).sum(axis=1)
    ratio = y / z
    scale, adjoint = layout.scale(points), np.empty(points.shape)
    columns, edges = np.empty(points.shape), np.empty(points.shape)
    # Each step is compiled when it is first taken.
    stopped = ratios.workers.is_stopped

    def task(worker: int, blocks: slice) -> float:
        if not kernel.assemble(worker, blocks, x, pairs, pair_products) or stopped():
            return np.inf
        for index in range(layout.floors):
            own = auxiliary.part(ratio)[:, index]
            kernel.add_floor(worker, blocks, index, points, auxiliary.floor(ratio, index), own)
        adjoint[blocks] = others[blocks]
        adjoint[blocks, :n] += pairs[blocks]
        products[blocks] += pair_products[blocks]
        edges[blocks] = points[blocks] * adjoint[blocks]
        regularisation = kernel.factor(worker, blocks, roots, edges, products)
        if np.isfinite(regularisation) and not stopped():
            kernel.accumulate(worker, blocks, roots, scale, layout.counts, columns)
        return regularisation

    # Who adds which blocks up is fixed, so that sums are the same every time.
    regularisation = max(ratios.workers.run(task, fixed=True))
    total = kernel.schur()
    if not np.isfinite(regularisation):
        raise StallError("a block cannot be factored")
    total += _around_rays(layout, roots, scale, columns)
    # Kernels fill one triangle only.
    schur = layout.average_matrix(np.triu(total) + np.triu(total, 1).T)
    linked = z[auxiliary.linking] @ y[auxiliary.linking]
    mu = (float(layout.counts @ products) + float(linked)) / layout.total_weight
    return FactoredBlocks(layout, ratios, iterate, x, adjoint, products, roots, schur, regularisation, mu)


def _around_rays(layout: Layout, roots: Integers, scale: Floats, columns: Floats) -> Floats:
    """Return Σ count · e eᵀ ∘ (p1ᵀ + 1pᵀ + P_rr 11ᵀ), one product of rank 2B, from the columns P[:, r] (B, N)."""
    index = np.arange(layout.blocks)
    corners = columns[index, roots, None] / 2
    columns[index, roots] = 0.0
    product: Floats = scale.T @ (layout.counts[:, None] * scale * (columns[:, layout.linked] + corners))
    return product + product.T


class SchurComplement:
    """The Schur complement with its slacks, S = Σ_o E_o Ξ Q Ξ E_oᵀ + diag(0, t/v, t/ω), scaled and factored.

    For the worst cost it is bordered by θ: S dΛ + e dθ = right, eᵀdΛ = corner, e the indicator of ω.
    Raises StallError where it cannot be factored.
    """

    def __init__(self, blocks: FactoredBlocks) -> None:
        layout, iterate = blocks.layout, blocks.iterate
        linking = layout.auxiliary.linking
        self._matrix = blocks.schur.copy()
        tail = np.arange(layout.rows, layout.links)
        self._matrix[tail, tail] += iterate.z[linking] / iterate.y[linking]
        self._scale = 1 / np.sqrt(self._matrix.diagonal())
        scaled = self._matrix * self._scale[:, None] * self._scale
        delta = 0.0
        while True:
            try:
                self._factor = scipy.linalg.cho_factor(scaled + delta * np.eye(layout.links), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                delta = 100 * delta if delta else _LEAST_REGULARISATION
                if delta > _LARGEST_REGULARISATION:
                    raise StallError("the Schur complement cannot be factored") from None
        self._average = layout.average
        self._members = layout.members
        if self._members:
            self._border = np.zeros(layout.links)
            self._border[layout.width :] = 1.0
            self._bordered = self._average(self._refined(self._border))

    def _refined(self, right: Floats) -> Floats:
        """Solve without the border, with one step of iterative refinement."""
        scale = self._scale
        first = scale * scipy.linalg.cho_solve(self._factor, scale * right, check_finite=False)
        rest = right - self._matrix @ first
        return np.asarray(first + scale * scipy.linalg.cho_solve(self._factor, scale * rest, check_finite=False))

    def solve(self, right: Floats, corner: float) -> tuple[Floats, float]:
        """Return dΛ (L,) and dθ."""
        # Rounding breaks the symmetry of the solution, and a poorly conditioned matrix enlarges it.
        free = self._average(self._refined(right))
        if not self._members:
            return free, 0.0
        total = float(self._border @ self._bordered)
        if not total > 0:
            raise StallError("the worst cost no longer moves")
        theta = (float(self._border @ free) - corner) / total
        return free - theta * self._bordered, theta


def refined_direction(blocks: FactoredBlocks, schur: SchurComplement, targets: Targets, found: Direction) -> Direction:
    """Refine a direction for `targets` that has not been: else the linking rows drift, and repair costs too much."""
    if found.rest <= _LINK_ACCURACY or not blocks.ratios.kernel.rough:
        return found
    return newton_direction(blocks, schur, targets, found)


def newton_direction(
    blocks: FactoredBlocks, schur: SchurComplement, targets: Targets, found: Direction | None = None
) -> Direction:
    """Solve the Newton system for `targets`, or refine a rough direction `found` for them.

    With f = T/z and R = −(c − E_oᵀΛ) + Bᵀf each block gives H u = ξ∘(R + E_oᵀdΛ), and the linking rows then give S dΛ.
    """
    layout, iterate, f = blocks.layout, blocks.iterate, targets.auxiliary
    auxiliary, n = layout.auxiliary, layout.rows
    linking = auxiliary.linking
    residual = link_residual(layout, iterate)
    z, y = iterate.z[linking], iterate.y[linking]
    # dt = T/y − z − z dy/y, and T = f z.
    gain = z * (f[linking] / y - 1.0)
    residual[n:] += gain
    if found is None:
        right = layout.adjoint(iterate.multipliers)
        right[:, :n] += targets.adjoint - layout.cost
        right[:, n:] += layout.rewards
        auxiliary.add_adjoint(f, right)
        corner = 1.0 - float(y[layout.floors :].sum())
        u = blocks.solve(right)
        change, theta = schur.solve(residual - layout.sums(iterate.points * u), corner)
        u = blocks.solve(right + layout.adjoint(change))
    else:
        u, change, theta = found.u, found.multipliers, found.theta
    # With a rough Schur complement each direction would take refining: only the one that is taken is worth it.
    refinements, rough = _REFINEMENTS, blocks.ratios.kernel.rough
    if rough:
        refinements = 0 if found is None else _ROUGH_REFINEMENTS
    best: tuple[Floats, Floats, float, Floats, float] | None = None
    while True:
        rest = residual - layout.sums(iterate.points * u)
        rest[n:] -= z / y * change[n:]
        rest[layout.width :] -= theta
        missed = float(np.abs(rest).max())
        if rough and best is not None and not missed < best[-1]:
            u, change, theta, rest, missed = best
            break
        best = u, change, theta, rest, missed
        if missed <= _LINK_ACCURACY or refinements == 0:
            break
        refinements -= 1
        more, more_theta = schur.solve(rest, 0.0)
        change = change + more
        theta += more_theta
        u = u + blocks.solve(layout.adjoint(more))
    # A large slack takes up what its row still lacks: z/y would enlarge the rounding of its small multiplier.
    taken = np.where(np.abs(rest[n:]) <= _TAKEN * z, rest[n:], 0.0)
    dy = np.empty(auxiliary.size)
    dy[linking] = change[n:] + y / z * taken
    link_steps = gain - z / y * change[n:] - taken
    q = auxiliary.relative(iterate.points, u, iterate.z, link_steps)
    rows = slice(0, linking.start)
    dy[rows] = f[rows] - iterate.y[rows] * (1.0 + q[rows])
    return Direction(u, np.ascontiguousarray(u[:, :n]), change, theta, q, dy, missed)
