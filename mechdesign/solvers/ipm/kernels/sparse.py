"""The kernel for sparse blocks, in which each row has few bounds: lists of pairs, block tridiagonal Hessians.

Multipliers and targets are kept for the pairs (s, t) with a bound and for the rows x_s >= 0, E numbers a block. Rows
are in a breadth-first order, in which a Hessian is block tridiagonal; on roads and grids the levels have about √n rows.
What a block adds to the Schur complement then takes about n² √n operations and not n³, a solve n √n and not n².

Only H_r, the Hessian without row and column r of the root, is sparse and factored; row and column r of M are a border.
With e = M_·r and f = H_r⁻¹ e the solution of M b' = b is b'_r = (b_r − f·b) / σ, σ = M_rr − e·f, and H_r⁻¹ b − f b'_r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

from mechdesign.errors import InputError, SolverError
from mechdesign.solvers.ipm.kernels.contract import LEAST_SHARE, REGULARISATIONS
from mechdesign.solvers.ipm.kernels.numpy import WORTH_SINGLE, centred
from mechdesign.solvers.ipm.kernels.tridiagonal import Factors, Shape, find_levels
from mechdesign.solvers.ipm.layout import Layout

__all__ = ["SparseKernel"]

Array = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

# Entries of a tile: fewer make calls of NumPy so short that threads wait for the interpreter's lock (2,500 places take
# 1.3 to 1.6 times as long with an eighth of these).
_TILE = 400_000
# Entries of a level's rows of the inverses that are added up together: the more, the less often a matrix that does not
# fit the cache is read and written (2,500 road places: 14 seconds an iteration, 21 with 750,000 and half the tile).
_PANEL = 4_000_000
# Above the first of these relative gaps factors, and so directions, are in single precision; above the second inverses
# are, sums of terms of one sign that lose nothing. With 1e-3 for the first the iteration stalls (900 road places).
_SINGLE_FACTORS, _SINGLE_INVERSES = 3e-2, 1e-4
# Right sides that are missed by more than this part of the largest terms are worth a second solve.
_UNMET = 1e-12


def _summing(size: int, places: Integers, columns: Integers, values: Array) -> sparse.csr_array:
    """Return the matrix that adds `values` times numbers up at their places."""
    return sparse.coo_array((values, (places, columns)), shape=(size, columns.size)).tocsr()


class _Tile:
    """What is kept of b consecutive blocks, in the order of the levels: arrays (E, b) of pairs, factors."""

    def __init__(self, blocks: slice, pairs: int, edges: int, shape: Shape) -> None:
        size, n = blocks.stop - blocks.start, shape.levels.order.size
        self.blocks, self.size = blocks, size
        self.y = np.empty((pairs, size))
        # ρ, κ for the centre μ₀, q of the last direction, and two sets of targets.
        self.rho, self.kappa, self.q, *self.targets = np.empty((5, pairs, size), dtype=np.float32)
        self.diagonal, self.entries = np.empty((n, size)), np.empty((edges, size))
        self.levels = shape.levels
        self.refactor(np.float64)
        self.roots = np.zeros(size, dtype=np.int64)
        self.along, self.corners = np.empty((size, n)), np.empty(size)

    def refactor(self, kind: type[np.floating[Any]]) -> None:
        """Make room for factors of this precision."""
        self.factors = Factors(self.levels, self.size, kind)


class SparseKernel:
    """Kept besides y, in single precision: ρ, κ, q of the last direction, two arrays of targets."""

    SPARSE: ClassVar[bool] = True
    PAIR_BYTES: ClassVar[int] = 28
    LIBRARY_BYTES: ClassVar[int] = 0

    def __init__(self, layout: Layout, threads: int, device: object = None) -> None:
        n = layout.rows
        if layout.floors:
            raise InputError("options.extra.arrays", "takes no distortion floors: they fill the blocks", value="sparse")
        bounded = layout.weights > 0
        sources, targets = np.nonzero(bounded)
        levels = find_levels(n, sources, targets)
        self.layout, self.threads, self.levels = layout, threads, levels
        # The rows x_s >= 0 come first.
        first = np.argsort(sources != targets, kind="stable")
        sources, targets = sources[first], targets[first]
        self.pairs = sources[n:], targets[n:]
        self._s, self._t = levels.position[sources], levels.position[targets]
        ratios = layout.ratios[sources, targets]
        self._ratios = ratios[:, None]
        self._slope = (layout.weights[sources, targets] / ratios)[:, None]
        self._entries = ratios.size
        every = np.arange(self._entries)
        self._adjoint = _summing(n, self._t, every, ratios) - _summing(n, self._s, every, np.ones(every.size))
        # Both directions of a pair are one entry of the Hessian below the diagonal.
        low, high = np.minimum(self._s, self._t)[n:], np.maximum(self._s, self._t)[n:]
        keys, edge = np.unique(low * n + high, return_inverse=True)
        self._edges = sparse.coo_array((np.ones(edge.size), (edge, every[n:])), shape=(keys.size, every.size)).tocsr()
        self._low, self._high = keys // n, keys % n
        self._to_low, self._to_high = (
            _summing(n, ends, np.arange(keys.size), np.ones(keys.size)) for ends in (self._low, self._high)
        )
        self._ends = (self._to_low + self._to_high).tocsr()
        self._shape = Shape(levels, self._high, self._low)
        self.batch = max(1, min(_TILE // self._entries, -(-layout.blocks // threads)))
        starts = range(0, layout.blocks, self.batch)
        slices = [slice(start, min(start + self.batch, layout.blocks)) for start in starts]
        self._tiles = [_Tile(blocks, self._entries, keys.size, self._shape) for blocks in slices]
        widest = int(levels.widths.max())
        self._buffers = [np.empty((3, self._entries * self.batch)) for _ in range(threads)]
        self._matrices = [np.empty((2, self.batch * self._shape.size)) for _ in range(threads)]
        self._together = min(self.batch, max(1, _PANEL // (widest * n)))
        panel = (self._together, widest, n)
        self._panels: list[Any] = [np.empty((2, *panel)) for _ in range(threads)]
        self.rough = False
        self._kind: type[np.floating[Any]] = np.float64
        self._schur = np.zeros((threads, layout.links, layout.links))
        self._products = np.zeros((layout.blocks, n))
        self._unit = 1.0

    @classmethod
    def entry_bytes(cls, layout: Layout, gap: float) -> int:
        return cls.PAIR_BYTES

    def release(self) -> None:
        for tile in self._tiles:
            tile.factors, tile.targets = Factors(self.levels, 0), []
            tile.rho, tile.kappa, tile.q = np.empty((3, 0), dtype=np.float32)

    def tune(self, gap: float) -> bool:
        before, self.rough = (self.rough, self._kind), gap > _SINGLE_INVERSES
        single = gap > _SINGLE_FACTORS and self.layout.rows >= WORTH_SINGLE
        self._kind = np.float32 if single else np.float64
        if before[0] != self.rough:
            kind = np.float32 if self.rough else np.float64
            self._panels = [np.empty(panel.shape, dtype=kind) for panel in self._panels]
        if before[1] != self._kind:
            for tile in self._tiles:
                tile.refactor(self._kind)
        return before != (self.rough, self._kind)

    def multipliers(self) -> Array:
        return np.concatenate([tile.y[self.layout.rows :].T for tile in self._tiles])

    def saved(self) -> Array:
        return np.concatenate([tile.y.T for tile in self._tiles])

    def load(self, y: Array, mu: float) -> None:
        self._unit = mu
        for tile in self._tiles:
            np.copyto(tile.y, y[tile.blocks].T)

    def diagonals(self) -> Array:
        n = self.layout.rows
        return np.concatenate([tile.y[:n].T for tile in self._tiles])

    def keep(self) -> Callable[[], Array]:
        kept = self.multipliers()
        return lambda: kept

    def _tile(self, blocks: slice) -> _Tile:
        tile: _Tile = self._tiles[blocks.start // self.batch]
        assert tile.blocks == blocks
        return tile

    def _room(self, worker: int, tile: _Tile) -> list[Array]:
        size = self._entries * tile.size
        return [buffer[:size].reshape(self._entries, tile.size) for buffer in self._buffers[worker]]

    def _singles(self, worker: int, tile: _Tile) -> list[Singles]:
        size = self._entries * tile.size
        return [buffer.view(np.float32)[:size].reshape(self._entries, -1) for buffer in self._buffers[worker]]

    def _ordered(self, tile: _Tile, vectors: Array) -> Array:
        """Return the rows of `vectors` (B, n) of a tile as columns (n, b), in the order of the levels."""
        return vectors[tile.blocks].T[self.levels.order]

    def _add(self, tile: _Tile, values: Array, out: Array) -> None:
        """Add columns (n, b) in the order of the levels to the rows of `out` (B, n)."""
        out[tile.blocks] += values[self.levels.position].T

    def _growth(self, tile: _Tile, point: Array, rho: Array, z: Array) -> bool:
        """Write ρ and z for the columns `point` (n, b); return whether all z are positive."""
        np.take(point, self._t, axis=0, out=rho, mode="clip")
        rho *= self._ratios
        np.take(point, self._s, axis=0, out=z, mode="clip")
        np.subtract(rho, z, out=z)
        if not z.min() > 0:
            return False
        rho /= z
        return True

    def start(self, worker: int, blocks: slice, x: Array, mu: float) -> None:
        self._unit = mu
        tile = self._tile(blocks)
        rho, z, _ = self._room(worker, tile)
        point = self._ordered(tile, x)
        if not self._growth(tile, point, rho, z):
            raise SolverError(
                "the block method cannot start: a factor exp(ε·d) is 1 in floating point; use another solver"
            )
        np.multiply(rho, self._slope, out=tile.y)
        tile.y *= mu / point[self._t]

    def assemble(self, worker: int, blocks: slice, x: Array, adjoint: Array, products: Array) -> bool:
        tile = self._tile(blocks)
        rho, z, other = self._room(worker, tile)
        point = self._ordered(tile, x)
        # Whatever the point, multipliers prove what they prove.
        added = self._adjoint @ tile.y
        self._add(tile, added, adjoint)
        if not self._growth(tile, point, rho, z):
            return False
        products[blocks] += np.einsum("eb,eb->b", tile.y, z)
        # −g x_s x_t W = −y ρ x_s
        np.multiply(tile.y, rho, out=other)
        np.take(point, self._s, axis=0, out=z, mode="clip")
        other *= z
        tile.entries[:] = self._edges @ other
        np.multiply(point, added, out=tile.diagonal)
        tile.diagonal += self._ends @ tile.entries
        tile.rho[:] = rho
        rho *= self._slope
        np.take(point, self._t, axis=0, out=z, mode="clip")
        rho /= z
        rho *= self._unit
        np.divide(rho, tile.y, out=tile.kappa, casting="same_kind")
        return True

    def add_floor(self, worker: int, blocks: slice, index: int, points: Array, ratio: Array, own: Array) -> None:
        raise InputError("floors", "fill the Hessians of blocks: the sparse kernel takes none")

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Array, corners: Array) -> float:
        tile = self._tile(blocks)
        each = np.arange(tile.size)
        mine = self.levels.position[roots[blocks]]
        tile.roots[:] = mine
        self._without_roots(tile, mine)
        sides = edges[blocks][:, self.levels.order]
        sides[each, mine] = 0.0
        diagonal = tile.diagonal.copy()
        buffers = self._matrices[worker].view(self._kind)
        # What single precision cannot factor is left to double.
        for delta in (0.0, *(REGULARISATIONS if self._kind is np.float64 else ())):
            np.multiply(diagonal, 1 + delta, out=tile.diagonal)
            if not tile.factors.factor(*self._shape.spread(tile.diagonal, tile.entries, *buffers)):
                continue
            tile.along[:] = self._solved(tile, sides, refined=True)
            np.subtract(corners[blocks] * (1 + delta), (sides * tile.along).sum(axis=1), out=tile.corners)
            if (tile.corners > 0).all():
                return delta
        return np.inf

    def _without_roots(self, tile: _Tile, roots: Integers) -> None:
        """Make row and column r of each block those of the unit matrix."""
        ends = self._ends
        for block, root in enumerate(roots.tolist()):
            tile.entries[ends.indices[ends.indptr[root] : ends.indptr[root + 1]], block] = 0.0
            tile.diagonal[root, block] = 1.0

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Array, counts: Array, columns: Array
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
        # One rank-one term for each block; `schur` adds them all in a single product.
        np.multiply(scaled, tile.along / np.sqrt(tile.corners)[:, None], out=self._products[blocks])

    def _accumulate_linked(self, worker: int, tile: _Tile, scale: Array, counts: Array) -> None:
        """Add what `accumulate` does where the linking rows hold variables several times, block by block."""
        n, position, linked = self.layout.rows, self.levels.position, self.layout.linked
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

    def schur(self) -> Array:
        total: Array = self._schur.sum(axis=0)
        self._schur[:] = 0.0
        if self.layout.members:
            return total
        total += self._products.T @ self._products
        position = self.levels.position
        return (np.triu(total) + np.triu(total, 1).T)[np.ix_(position, position)]

    def solve(self, worker: int, blocks: slice, right: Array) -> None:
        tile = self._tile(blocks)
        each, order = np.arange(tile.size), self.levels.order
        found = right[blocks][:, order]
        sums = found[each, tile.roots]
        found[each, tile.roots] = 0.0
        shift = (sums - (tile.along * found).sum(axis=1)) / tile.corners
        # In single precision only the direction that is taken is refined, with the linking rows.
        found = self._solved(tile, found, refined=self._kind is np.float64)
        found -= tile.along * shift[:, None]
        found[each, tile.roots] = shift
        right[blocks] = found[:, self.levels.position]

    def _solved(self, tile: _Tile, right: Array, *, refined: bool) -> Array:
        """Solve for right sides (b, n) in the order of the levels, with refinement where they are not met.

        Products with explicit inverses lose more digits than substitution would where entries differ widely.
        """
        found = self._product(tile, right)
        if not refined:
            return found
        steps = found.T
        rest = right.T - tile.diagonal * steps
        rest += self._to_low @ (tile.entries * steps[self._high])
        rest += self._to_high @ (tile.entries * steps[self._low])
        if (np.abs(rest) > _UNMET * (np.abs(right.T) + tile.diagonal * np.abs(steps))).any():
            found += self._product(tile, rest.T)
        return found

    def _product(self, tile: _Tile, right: Array) -> Array:
        """Return the inverses of the factored matrices times vectors (b, n)."""
        found = right.astype(tile.factors.kind, order="C")
        tile.factors.solve(found[:, :, None])
        return found.astype(np.float64, copy=False)

    def _relative(self, worker: int, tile: _Tile, u: Array, q: Singles) -> Singles:
        """Write q in single precision, from differences of u in double precision."""
        first, second, _ = self._room(worker, tile)
        steps = self._ordered(tile, u)
        np.take(steps, self._s, axis=0, out=first, mode="clip")
        np.take(steps, self._t, axis=0, out=second, mode="clip")
        second -= first
        second *= tile.rho
        np.add(second, first, out=q, casting="same_kind")
        return q

    def affine_ratio_test(self, worker: int, blocks: slice, x: Array, u: Array) -> tuple[Array, Array]:
        tile = self._tile(blocks)
        q = self._relative(worker, tile, u, tile.q)
        return q.min(axis=0), q.max(axis=0)

    def mehrotra(self, worker: int, blocks: slice, x: Array, u: Array, centre: Array | float, adjoint: Array) -> None:
        tile = self._tile(blocks)
        q, phi = self._relative(worker, tile, u, tile.q), tile.targets[0]
        product = self._singles(worker, tile)[0]
        np.add(q, 1.0, out=product)
        product *= q
        np.multiply(tile.kappa, centre / self._unit, out=phi, casting="same_kind")
        phi += product
        self._add_adjoint_of_targets(worker, tile, phi, adjoint)

    def _add_adjoint_of_targets(self, worker: int, tile: _Tile, targets: Singles, out: Array) -> None:
        values = self._room(worker, tile)[2]
        np.multiply(tile.y, targets, out=values)
        self._add(tile, self._adjoint @ values, out)

    def ratio_test(
        self, worker: int, blocks: slice, x: Array, u: Array, slot: int, *, corrected: bool
    ) -> tuple[Array, Array]:
        tile = self._tile(blocks)
        q = self._relative(worker, tile, u, tile.q)
        change = np.subtract(tile.targets[slot], q, out=self._singles(worker, tile)[0])
        return q.min(axis=0), change.min(axis=0).astype(np.float64) - 1.0

    def centrality(
        self, worker: int, blocks: slice, x: Array, u: Array, slot: int, primal: float, dual: float, centre: float,
        adjoint: Array,
    ) -> None:  # fmt: skip
        tile = self._tile(blocks)
        phi, other = tile.targets[slot], tile.targets[1 - slot]
        spare, aim = self._singles(worker, tile), centre / self._unit
        centred(phi, tile.q, tile.kappa, (primal, dual), aim, spare, other)
        self._add_adjoint_of_targets(worker, tile, other, adjoint)

    def advance(self, worker: int, blocks: slice, x: Array, u: Array, slot: int, dual: Array | float) -> None:
        tile = self._tile(blocks)
        rho, z, change = self._room(worker, tile)
        positive = self._growth(tile, self._ordered(tile, x), rho, z)
        assert positive, "the point was assembled"
        steps = self._ordered(tile, u)
        np.take(steps, self._s, axis=0, out=z, mode="clip")
        np.take(steps, self._t, axis=0, out=change, mode="clip")
        change -= z
        change *= rho
        change += z
        # y (1 + α (φ − 1 − q)), kept positive where single precision has let the step be too long.
        np.subtract(tile.targets[slot], change, out=change)
        change *= dual
        change += 1.0 - dual
        np.maximum(change, LEAST_SHARE, out=change)
        # A column that stays where it is may have a direction that is not finite.
        np.copyto(change, 1.0, where=np.equal(dual, 0.0))
        tile.y *= change


KERNEL = SparseKernel
