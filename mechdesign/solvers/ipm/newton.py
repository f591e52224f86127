"""The normal equations: each block's Hessian in the basis of its scaling ray, and the Schur complement of all.

In relative steps u = dξ/ξ block o has the Hessian H = Ξ Bᵀ diag(y/z) B Ξ. All rows are homogeneous, so scaling the
whole block (u = 1) hardly moves active rows and H is nearly singular along it. With a root r = argmax x write
u = v + τ·1, v_r = 0: row and column r of H become H·1 = ξ∘(Bᵀy), and H_rr becomes Σ y z, which are computed without
differences. The result M is factored; with P its inverse, p = P[:, r] without entry r, and P₀ = P without row and
column r, the block's inverse Hessian is P₀ + p1ᵀ + 1pᵀ + P_rr 11ᵀ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.parallel import Workers
from mechdesign.solvers.ipm.rows import PairRows
from mechdesign.solvers.ipm.small import SmallRows
from mechdesign.solvers.ipm.stall import StallError

__all__ = ["Blocks", "LinkSystem"]

Array = npt.NDArray[np.float64]


class Blocks:
    """The factored Hessians of all blocks at one point, with what assembling them measures on the way.

    `pulled` (B, N) is Bᵀy, `products` (B,) is Σ y z over each block's rows, `schur` (L, L) is Σ_o E_o Ξ Q Ξ E_oᵀ,
    averaged over the symmetry group, and `raised` the largest relative change of a diagonal that factoring needed.
    """

    def __init__(self, layout: Layout, workers: Workers, pairs: PairRows, small: SmallRows) -> None:
        self.layout, self.workers, self.pairs, self.small = layout, workers, pairs, small
        self.kernel = pairs.kernel
        self.points = np.empty((layout.blocks, layout.width))
        self.pulled = np.empty((layout.blocks, layout.width))
        self.products = np.empty(layout.blocks)
        self.roots = np.zeros(layout.blocks, dtype=np.int64)
        self.schur = np.empty((layout.links, layout.links))
        self.raised = 0.0

    def assemble(self, points: Array, z: Array, y: Array) -> None:
        """Build and factor all blocks at ξ = `points` (B, N) with slacks `z` and multipliers `y` of the small rows."""
        layout, small = self.layout, self.small
        n = layout.rows
        if not (z > 0).all():
            raise StallError("rounding has left a slack that is not positive")
        self.points = points
        self.pairs.x = x = np.ascontiguousarray(points[:, :n])
        self.roots = x.argmax(axis=1)
        pulled, products = np.zeros(x.shape), np.zeros(layout.blocks)
        others, work = np.zeros(points.shape), y * z
        small.pull(y, others)
        self.products = small.part(work).sum(axis=1)
        for index in range(layout.floors):
            self.products += small.floor(work, index).sum(axis=1)
        ratio = y / z
        scale, columns, edges = layout.scale(points), np.empty(points.shape), np.empty(points.shape)

        def task(worker: int, blocks: slice) -> float:
            kernel = self.kernel
            if not kernel.assemble(worker, blocks, x, pulled, products):
                return np.inf
            for index in range(layout.floors):
                own = small.part(ratio)[:, index]
                kernel.add_floor(worker, blocks, index, points, small.floor(ratio, index), own)
            self.pulled[blocks] = others[blocks]
            self.pulled[blocks, :n] += pulled[blocks]
            self.products[blocks] += products[blocks]
            edges[blocks] = points[blocks] * self.pulled[blocks]
            raised = kernel.factor(worker, blocks, self.roots, edges, self.products)
            if np.isfinite(raised):
                kernel.accumulate(worker, blocks, self.roots, scale, layout.counts, columns)
            return raised

        self.raised = max(self.workers.run(task, fixed=True))
        total = self.kernel.schur()
        if np.isfinite(self.raised):
            total += self._around_rays(scale, columns)
        # Kernels fill one triangle only.
        self.schur = layout.average_matrix(np.triu(total) + np.triu(total, 1).T)

    def _around_rays(self, scale: Array, columns: Array) -> Array:
        """Return Σ count · e eᵀ ∘ (p1ᵀ + 1pᵀ + P_rr 11ᵀ), one product of rank 2B, from the columns P[:, r] (B, N)."""
        index = np.arange(self.layout.blocks)
        corners = columns[index, self.roots, None] / 2
        columns[index, self.roots] = 0.0
        product: Array = scale.T @ (self.layout.counts[:, None] * scale * (columns[:, self.layout.linked] + corners))
        return product + product.T

    def solve(self, right: Array) -> Array:
        """Return u (B, N) with H u = ξ∘right for every block."""
        index = np.arange(self.layout.blocks)
        steps = self.points * right
        steps[index, self.roots] = steps.sum(axis=1)
        self.workers.run(lambda worker, blocks: self.kernel.solve(worker, blocks, steps))
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        self.layout.symmetrise(steps)
        return steps


class LinkSystem:
    """The Schur complement with its slacks, S = Σ_o E_o Ξ Q Ξ E_oᵀ + diag(0, t/v, t/ω), scaled and factored.

    For the worst cost it is bordered by θ: S dΛ + e dθ = right, eᵀdΛ = corner, e the indicator of ω.
    """

    def __init__(self, blocks: Blocks, z: Array, y: Array) -> None:
        layout, linking = blocks.layout, blocks.small.linking
        self._matrix = blocks.schur.copy()
        tail = np.arange(layout.rows, layout.links)
        self._matrix[tail, tail] += z[linking] / y[linking]
        self._scale = 1 / np.sqrt(self._matrix.diagonal())
        scaled = self._matrix * self._scale[:, None] * self._scale
        raised = 0.0
        while True:
            try:
                self._factor = scipy.linalg.cho_factor(scaled + raised * np.eye(layout.links), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                raised = 100 * raised if raised else 1e-15
                if raised > 1e-4:
                    raise StallError("the coupling of the blocks cannot be factored") from None
        self._average = layout.average
        self._width = layout.width
        self._members = layout.members
        if self._members:
            self._border = np.zeros(layout.links)
            self._border[self._width :] = 1.0
            self._bordered = self._average(self._plain(self._border))

    def _plain(self, right: Array) -> Array:
        """Solve without the border, with one step of iterative refinement."""
        scale = self._scale
        first = scale * scipy.linalg.cho_solve(self._factor, scale * right, check_finite=False)
        rest = right - self._matrix @ first
        return np.asarray(first + scale * scipy.linalg.cho_solve(self._factor, scale * rest, check_finite=False))

    def solve(self, right: Array, corner: float) -> tuple[Array, float]:
        """Return dΛ (L,) and dθ."""
        # Rounding breaks the symmetry of the solution, and a poorly conditioned matrix enlarges it.
        free = self._average(self._plain(right))
        if not self._members:
            return free, 0.0
        theta = (float(self._border @ free) - corner) / float(self._border @ self._bordered)
        return free - theta * self._bordered, theta
