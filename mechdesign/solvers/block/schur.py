"""The normal equations: each block's Hessian in the basis of its scaling ray, and the Schur complement of all.

In relative steps u = dξ/ξ block o has the Hessian H = Ξ Bᵀ diag(y/z) B Ξ. All rows are homogeneous, so scaling the
whole block (u = 1) hardly moves active rows and H is nearly singular along it. With a root r = argmax x write
u = v + τ·1, v_r = 0: row and column r of H become H·1 = ξ∘(Bᵀy), and H_rr becomes Σ y z, which are computed without
differences. The result M is factored; with P its inverse, p = P[:, r] without entry r, and P₀ = P without row and
column r, the block's inverse Hessian is P₀ + p1ᵀ + 1pᵀ + P_rr 11ᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mechdesign.solvers.block.kernel import Lapack
from mechdesign.solvers.block.layout import Layout
from mechdesign.solvers.block.parallel import Workers
from mechdesign.solvers.block.rows import PairRows, Piece
from mechdesign.solvers.block.small import SmallRows
from mechdesign.solvers.block.stall import StallError

__all__ = ["Blocks", "LinkSystem"]

Array = npt.NDArray[np.float64]


class Blocks:
    """The factored Hessians of all blocks at one point, with what assembling them measures on the way.

    `pulled` (B, N) is Bᵀy, `products` (B,) is Σ y z over each block's rows, `schur` (L, L) is Σ_o E_o Ξ Q Ξ E_oᵀ,
    averaged over the symmetry group, and `raised` the largest relative change of a diagonal that factoring needed.
    """

    def __init__(self, layout: Layout, workers: Workers, pairs: PairRows, small: SmallRows) -> None:
        self.layout, self.workers, self.pairs, self.small = layout, workers, pairs, small
        width, blocks = layout.width, layout.blocks
        self.factors = np.empty((blocks, width, width))
        self.pulled = np.empty((blocks, width))
        self.products = np.empty(blocks)
        self.schur = np.empty((layout.links, layout.links))
        self.raised = 0.0
        self.points = np.empty((blocks, width))
        self._diagonal = np.empty((blocks, layout.rows))
        self._ones = np.ones(layout.rows)
        self._inverse_ratios = 1 / layout.ratios
        self.roots = np.zeros(blocks, dtype=np.int64)
        self._lapack = [Lapack(width) for _ in range(workers.count)]
        self._inverse = [np.empty((width, width)) for _ in range(workers.count)]

    def assemble(self, points: Array, z: Array, y: Array) -> None:
        """Build and factor all blocks at ξ = `points` (B, N) with slacks `z` and multipliers `y` of the small rows."""
        layout, small = self.layout, self.small
        n = layout.rows
        if not (z > 0).all():
            raise StallError("rounding has left a slack that is not positive")
        self.points = points
        self.roots = points[:, :n].argmax(axis=1)
        self.pulled[:] = 0.0
        small.pull(y, self.pulled)
        products = y * z
        self.products[:] = small.part(products).sum(axis=1)
        for index in range(layout.floors):
            self.products += small.floor(products, index).sum(axis=1)
        x = np.ascontiguousarray(points[:, :n])

        def task(worker: int, batches: Iterator[slice]) -> tuple[Array, float]:
            schur = np.zeros((layout.links, layout.links))
            raised = 0.0
            for piece in self.pairs.pieces(worker, batches):
                if not self._add_pairs(piece, x):
                    raised = np.inf
                if not np.isfinite(raised):
                    continue
                if piece.rows.stop < n:
                    continue
                for block in range(piece.blocks.start, piece.blocks.stop):
                    self._complete(block, z, y)
                    raised = max(raised, self._lapack[worker].factor(self.factors[block]))
                    if np.isfinite(raised):
                        self._accumulate(worker, block, schur)
            return schur, raised

        parts = self.workers.run(task)
        total = parts[0][0]
        for part, _ in parts[1:]:
            total += part
        self.raised = max(raised for _, raised in parts)
        # LAPACK fills one triangle only.
        np.copyto(total, np.triu(total) + np.triu(total, 1).T)
        self.schur = layout.average_matrix(total)

    def _add_pairs(self, piece: Piece, x: Array) -> bool:
        """Write the part of H that comes from a piece of the ratio rows, not yet symmetric; add to Bᵀy and Σ y z.

        Return False, and write nothing, when rounding has left a slack that is not positive.

        H_st = −g x_s x_t W_st and its transpose, H_uu = x_u² (Σ_t W_ut + Σ_s W_su g_su²) less the cross term of the
        diagonal row, with W = y/z.
        """
        n = self.layout.rows
        blocks, rows = piece.whole
        grown = self.pairs.measure(piece, x)
        if grown is None:
            return False
        y = self.pairs.y[piece.whole]
        z, other = piece.buffers[1:3]
        np.multiply(y, z, out=other)
        self.products[blocks] += (other @ self._ones).sum(axis=1)
        self.pairs.pull(piece, y, self.pulled[:, :n])
        # W g x_t = y ρ.
        weighted = piece.buffers[1]
        np.multiply(y, self.pairs.rho[piece.whole], out=weighted)
        hessian = self.factors[blocks, rows, :n]
        np.multiply(weighted, x[blocks, rows, None], out=hessian)
        if rows.start == 0:
            self._diagonal[blocks] = 0.0
        np.multiply(weighted, self._inverse_ratios[rows], out=other)
        own = (other @ (1 / x[blocks])[:, :, None])[:, :, 0]
        self._diagonal[blocks, rows] += x[blocks, rows] ** 2 * own
        weighted *= grown
        self._diagonal[blocks] += self._ones[: weighted.shape[1]] @ weighted
        return True

    def _complete(self, block: int, z: Array, y: Array) -> None:
        """Make the Hessian of a block symmetric, add its floors, and change to the basis of its ray."""
        layout, small = self.layout, self.small
        n = layout.rows
        matrix = self.factors[block]
        point = self.points[block]
        pairs = matrix[:n, :n]
        diagonal = self._diagonal[block] - 2 * pairs.diagonal()
        np.copyto(pairs, -(pairs + pairs.T))
        np.fill_diagonal(pairs, diagonal)
        matrix[n:, :] = 0.0
        matrix[:, n:] = 0.0
        for index, error in enumerate(layout.errors):
            ratio = small.floor(y, index)[block] / small.floor(z, index)[block]
            rows = error * point[:n]
            weighted = rows * ratio[:, None]
            pairs += rows.T @ weighted
            part = n + index
            matrix[part, :n] = matrix[:n, part] = -point[part] * weighted.sum(axis=0)
            own = small.part(y)[block, index] / small.part(z)[block, index]
            matrix[part, part] = point[part] ** 2 * (ratio.sum() + own)
        root = self.roots[block]
        matrix[root, :] = matrix[:, root] = point * self.pulled[block]
        matrix[root, root] = self.products[block]

    def _accumulate(self, worker: int, block: int, schur: Array) -> None:
        """Add count · E Ξ Q Ξ Eᵀ of a block to the upper triangle of `schur`."""
        layout, inverse = self.layout, self._inverse[worker]
        width, root, point = layout.width, self.roots[block], self.points[block]
        self._lapack[worker].invert(self.factors[block], inverse)
        if layout.members:
            np.copyto(inverse, np.triu(inverse) + np.triu(inverse, 1).T)
        p = np.concatenate([inverse[:root, root], [0.0], inverse[root, root + 1 :]])
        corner = inverse[root, root]
        inverse[root, :] = inverse[:, root] = 0.0
        inverse += (p + corner)[:, None]
        inverse += p
        inverse *= (layout.counts[block] * point)[:, None]
        inverse *= point
        schur[:width, :width] += inverse
        if layout.members:
            cost, row = layout.member_cost[:, block], layout.member_row
            schur[:width, width:] -= inverse[:, row] * cost
            schur[width:, width:] += inverse[np.ix_(row, row)] * cost[:, None] * cost

    def solve(self, right: Array) -> Array:
        """Return u (B, N) with H u = ξ∘right for every block."""
        layout = self.layout
        steps = self.points * right
        totals = steps.sum(axis=1)
        index = np.arange(layout.blocks)
        steps[index, self.roots] = totals

        def task(worker: int, batches: Iterator[slice]) -> None:
            lapack = self._lapack[worker]
            for batch in batches:
                for block in range(batch.start, batch.stop):
                    lapack.solve(self.factors[block], steps[block])

        self.workers.run(task)
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        layout.symmetrise(steps)
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
