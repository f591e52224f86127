"""The kernel for sparse blocks, whose rows have few bounds: lists of pairs, and block tridiagonal Hessians.

In a breadth-first order of the rows, a Hessian is block tridiagonal. For road networks and grids, the levels have about
√n rows. The contribution of a block to the Schur complement then takes about n² √n operations instead of n³. Solving
with a block takes n √n operations instead of n².

Only H_r is sparse and factored: the Hessian without row and column r of the root. Row and column r of M form a border
    around H_r.
Let e = M_·r, f = H_r⁻¹ e and σ = M_rr − e·f. The solution of M b' = b has the entry b'_r = (b_r − f·b) / σ, and the
other entries are H_r⁻¹ b − f b'_r.

Theory: block_method, Sparse blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS
from mechdesign.solve._blocks.kernels.numpy import SINGLE_MIN_ROWS
from mechdesign.solve._blocks.kernels.pairs import PairLists, Pairs, PairTile
from mechdesign.solve._blocks.kernels.tridiagonal import Factors, Levels, Shape, find_levels
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.tuning import TUNING

# Number of entries of the inverses that are summed together. The sum does not fit into the cache, and is accessed less
# often with larger panels. With 2,500 road places, an iteration takes 14 s. With 750,000 entries and smaller tiles, an
# iteration takes 21 s.
_PANEL_ENTRIES = 4_000_000


class SparseTile(PairTile):
    """A tile that also contains the factors of the Hessians."""

    def __init__(self, blocks: slice, rows: int, pairs: int, shape: Shape, edges: int) -> None:
        super().__init__(blocks, rows, pairs, edges)
        self.levels = shape.levels
        self.refactor(np.float64)
        self.roots = np.zeros(self.size, dtype=np.int64)
        self.excess = np.empty((rows, self.size))
        self.sides, self.along = np.empty((2, self.size, rows))
        self.totals, self.corners = np.empty((2, self.size))

    def refactor(self, kind: type[np.floating[Any]]) -> None:
        """Allocate factors of this precision."""
        self.factors = Factors(self.levels, self.size, kind)

    def release(self) -> None:
        super().release()
        self.factors = Factors(self.levels, 0)


def _derive(layout: BlockLayout) -> tuple[Levels, PairLists, Shape]:
    levels = find_levels(layout.rows, *np.nonzero(layout.weights > 0))
    lists = PairLists(layout, levels.order)
    return levels, lists, Shape(levels, lists.high, lists.low)


class SparseKernel(Pairs):
    """The kernel with rows in the order of the levels, and block tridiagonal factors for each block."""

    def __init__(self, layout: BlockLayout, threads: int) -> None:
        n = layout.rows
        if layout.floors:
            raise InputError(
                "options.extra.arrays",
                "does not support distortion floors, because they make Hessians dense",
                value="sparse",
            )
        self.levels, lists, self._shape = layout.geometry.derive("sparse", lambda: _derive(layout))
        super().__init__(layout, threads, lists)
        widest = int(self.levels.widths.max())
        self._matrices = [np.empty((2, self.batch * self._shape.size)) for _ in range(threads)]
        self._together = min(self.batch, max(1, _PANEL_ENTRIES // (widest * n)))
        panel = (self._together, widest, n)
        self._panels: list[Any] = [np.empty((2, *panel)) for _ in range(threads)]
        self.single_inverses, self._near_end = False, False
        self._kind: type[np.floating[Any]] = np.float64
        self._schur = np.zeros((threads, layout.links, layout.links))
        self._products = np.zeros((layout.blocks, n))

    def _new_tile(self, blocks: slice) -> PairTile:
        return SparseTile(blocks, self.layout.rows, self._entries, self._shape, self._low.size)

    def set_precision(self, gap: float) -> bool:
        before, self.single_inverses = (
            (self.single_inverses, self._kind),
            gap > TUNING.sparse_factors.single_inverses_gap,
        )
        self._near_end = not self.single_inverses
        single = gap > TUNING.sparse_factors.single_factors_gap and self.layout.rows >= SINGLE_MIN_ROWS
        self._kind = np.float32 if single else np.float64
        if before[0] != self.single_inverses:
            kind = np.float32 if self.single_inverses else np.float64
            self._panels = [np.empty(panel.shape, dtype=kind) for panel in self._panels]
        if before[1] != self._kind:
            for tile in self._tiles:
                tile.refactor(self._kind)
        return before != (self.single_inverses, self._kind)

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        raise InputError("floors", "are not supported by the sparse kernel, because they make Hessians dense")

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        tile = self._tile(blocks)
        each = np.arange(tile.size)
        mine = self.levels.position[roots[blocks]]
        tile.roots[:] = mine
        sides = tile.sides
        sides[:] = edges[blocks][:, self.levels.order]
        excess = sides.T.copy()
        self._without_roots(tile, mine, excess)
        sides[each, mine] = 0.0
        buffers = self._matrices[worker].view(self._kind)
        # If the factorisation fails in single precision, the caller repeats it in double precision.
        for delta in (0.0, *(REGULARISATIONS[1:] if self._kind is np.float64 else ())):
            np.add(excess, delta * tile.diagonal, out=tile.excess)
            matrices = self._shape.spread(tile.entries, *buffers)
            sums = tile.excess if self._near_end else (1 + delta) * tile.diagonal
            if not tile.factors.factor(*matrices, sums.T.astype(self._kind), exact=self._near_end):
                continue
            tile.along[:] = self._product(tile, sides)
            missed = self._residual(tile, sides, tile.along)
            if (np.abs(missed).max(axis=1) > TUNING.sparse_factors.max_miss * np.abs(sides).max(axis=1)).any():
                continue
            tile.along += self._product(tile, missed)
            np.multiply(corners[blocks], 1 + delta, out=tile.totals)
            np.subtract(tile.totals, (sides * tile.along).sum(axis=1), out=tile.corners)
            if (tile.corners > 0).all():
                return delta
        return np.inf

    def _without_roots(self, tile: SparseTile, roots: Integers, excess: Floats) -> None:
        """Replace row and column r of each block by those of the unit matrix; add its entries to the row sums."""
        ends = self._ends
        for block, root in enumerate(roots.tolist()):
            mine = ends.indices[ends.indptr[root] : ends.indptr[root + 1]]
            excess[self._low[mine] + self._high[mine] - root, block] += tile.entries[mine, block]
            tile.entries[mine, block] = 0.0
            tile.diagonal[root, block] = excess[root, block] = 1.0

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        tile = self._tile(blocks)
        each, order = np.arange(tile.size), self.levels.order
        own = -tile.along / tile.corners[:, None]
        own[each, tile.roots] = 1 / tile.corners
        columns[blocks][:, order] = own
        if self.layout.members:
            self._accumulate_linked(worker, tile, scale, counts)
            return
        scaled = scale[blocks][:, order] * np.sqrt(counts[blocks])[:, None]
        scaled[each, tile.roots] = 0.0
        for first in range(0, tile.size, self._together):
            some = slice(first, min(first + self._together, tile.size))
            tile.factors.add_inverse(scaled[some], self._schur[worker], self._panels[worker], some)
        # Each block has one rank-one term; `schur` adds all these terms in a single product.
        np.multiply(scaled, tile.along / np.sqrt(tile.corners)[:, None], out=self._products[blocks])

    def _accumulate_linked(self, worker: int, tile: SparseTile, scale: Floats, counts: Floats) -> None:
        """Accumulate the inverses one block at a time, if several linking rows refer to the same variable."""
        n, position, linked = self.layout.rows, self.levels.position, self.layout.link_variables
        some = np.ones((1, n))
        panels = self._panels[worker][:, :1]
        for index, block in enumerate(range(tile.blocks.start, tile.blocks.stop)):
            root = tile.roots[index]
            some[:] = 1.0
            some[0, root] = 0.0
            inverse = np.zeros((n, n))
            tile.factors.add_inverse(some, inverse, panels, slice(index, index + 1))
            inverse = np.triu(inverse) + np.triu(inverse, 1).T
            along = tile.along[index]
            inverse += along[:, None] * (along / tile.corners[index])
            where = position[linked]
            product = inverse[np.ix_(where, where)]
            product *= (counts[block] * scale[block])[:, None]
            product *= scale[block]
            self._schur[worker] += product

    def schur(self) -> Floats:
        total: Floats = self._schur.sum(axis=0)
        self._schur[:] = 0.0
        if self.layout.members:
            return total
        total += self._products.T @ self._products
        position = self.levels.position
        return (np.triu(total) + np.triu(total, 1).T)[np.ix_(position, position)]

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        tile = self._tile(blocks)
        each, order = np.arange(tile.size), self.levels.order
        found = right[blocks][:, order]
        sums = found[each, tile.roots]
        found[each, tile.roots] = 0.0
        steps, shift = self._solve_bordered(tile, found, sums)
        # With inverses in single precision, only the final direction is refined, together with the linking rows. Near
        # the end, the residual of a solution would remain in the dual constraints: explicit inverses are less accurate
        # than substitution, and large parts of `steps` and `along` may cancel.
        refinements = 0 if self.single_inverses else TUNING.sparse_factors.refinements if self._near_end else 1
        for _ in range(refinements):
            rest = self._residual(tile, found, steps) - tile.sides * shift[:, None]
            missed = sums - tile.totals * shift - (tile.sides * steps).sum(axis=1)
            more, more_shift = self._solve_bordered(tile, rest, missed)
            steps, shift = steps + more, shift + more_shift
        steps[each, tile.roots] = shift
        right[blocks] = steps[:, self.levels.position]

    def _solve_bordered(self, tile: SparseTile, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return the solution (b, n) without the roots, and its entries (b,) of the roots, without refinement."""
        shift = (sums - (tile.along * right).sum(axis=1)) / tile.corners
        return self._product(tile, right) - tile.along * shift[:, None], shift

    def _residual(self, tile: SparseTile, right: Floats, found: Floats) -> Floats:
        """Return right − H_r found (b, n), from differences, which keep digits that products with a diagonal lose."""
        steps = found.T
        flows = tile.entries * (steps[self._high] - steps[self._low])
        rest = right.T - tile.excess * steps
        rest += self._to_low @ flows
        rest -= self._to_high @ flows
        return rest.T

    def _product(self, tile: SparseTile, right: Floats) -> Floats:
        """Multiply vectors (b, n) with the inverses of the factored matrices."""
        found = right.astype(tile.factors.kind, order="C")
        tile.factors.solve(found[:, :, None])
        return found.astype(np.float64, copy=False)


KERNEL = SparseKernel
