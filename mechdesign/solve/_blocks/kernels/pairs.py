"""The common part of kernels for few bounds per row: multipliers of bounded pairs, and passes over many blocks.

Multipliers and targets exist only for pairs (s, t) with a bound and for the rows x_s >= 0. Each block has E
multipliers, and b consecutive blocks are stored as arrays (E, b). A Hessian has a diagonal and entries for the pairs.
Subclasses factor the Hessian.

Theory: block_method, Sparse blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, Integers, Singles
from mechdesign.base._errors import SolverError
from mechdesign.solve._blocks.kernels.contract import MIN_MULTIPLIER_SHARE
from mechdesign.solve._blocks.kernels.numpy import correct_targets
from mechdesign.solve._blocks.layout import BlockLayout

# Number of entries of a tile. With an eighth of this number, an iteration takes 1.3 to 1.6 times as long.
_TILE_ENTRIES = 400_000


def _summing(size: int, places: Integers, columns: Integers, values: Floats) -> sparse.csr_array:
    """Return the sparse matrix (size, E) with `values` at (places, columns)."""
    return sparse.coo_array((values, (places, columns)), shape=(size, columns.size)).tocsr()


def _least(values: Singles) -> Floats:
    """Return the least value of each column (b,) of values (E, b)."""
    # A single column is reshaped to a vector, because NumPy computes its minimum along axis 0 slowly.
    least: Singles = values.reshape(-1).min(keepdims=True) if values.shape[1] == 1 else values.min(axis=0)
    return least.astype(np.float64)


class PairTile:
    """The arrays (E, b) of the pairs of b consecutive blocks, and their Hessians, in the order of the rows."""

    def __init__(self, blocks: slice, rows: int, pairs: int, edges: int) -> None:
        size = blocks.stop - blocks.start
        self.blocks, self.size = blocks, size
        self.y = np.empty((pairs, size))
        # The arrays are ρ, κ for the centre μ₀, q of the last direction, and two sets of targets.
        self.rho, self.kappa, self.q, *self.targets = np.empty((5, pairs, size), dtype=np.float32)
        # The diagonals of the Hessians, and their negated off-diagonal entries.
        self.diagonal, self.entries = np.empty((rows, size)), np.empty((edges, size))

    def release(self) -> None:
        """Free the memory that is needed only for further iterations."""
        self.targets = []
        self.rho, self.kappa, self.q = np.empty((3, 0), dtype=np.float32)


class PairLists:
    """The pairs with a bound and the rows x_s >= 0 in a given order of the rows, with matrices that sum over them.

    Args:
        layout: Layout of the program.
        order: Order of the rows in stored vectors (n,).

    Attributes:
        order: The order of the rows.
        position: Position of each row in `order` (n,).
        pairs: The rows s and t of the pairs with a bound.
        s: Positions of the rows s of all entries (E,), starting with the entries of x_s >= 0.
        t: Positions of the rows t of all entries (E,).
        ratios: Coefficients g (E, 1).
        weight_per_ratio: Weights divided by coefficients (E, 1).
        adjoint: Matrix from y to Bᵀy (n, E).
        low: Smaller position of each off-diagonal entry of a Hessian.
        high: Larger position of each off-diagonal entry of a Hessian.
        edges: Matrix that adds the entries of (s, t) and (t, s) for each pair.
        ends: Matrix that adds the entries of a Hessian by rows.
    """

    def __init__(self, layout: BlockLayout, order: Integers) -> None:
        n = layout.rows
        sources, targets = np.nonzero(layout.weights > 0)
        self.order = order
        self.position = np.empty(n, dtype=np.int64)
        self.position[order] = np.arange(n)
        first = np.argsort(sources != targets, kind="stable")
        sources, targets = sources[first], targets[first]
        self.pairs = sources[n:], targets[n:]
        self.s, self.t = self.position[sources], self.position[targets]
        ratios = layout.ratios[sources, targets]
        self.ratios = ratios[:, None]
        self.weight_per_ratio = (layout.weights[sources, targets] / ratios)[:, None]
        every = np.arange(ratios.size)
        self.adjoint = _summing(n, self.t, every, ratios) - _summing(n, self.s, every, np.ones(every.size))
        low, high = np.minimum(self.s, self.t)[n:], np.maximum(self.s, self.t)[n:]
        keys, edge = np.unique(low * n + high, return_inverse=True)
        self.edges = sparse.coo_array((np.ones(edge.size), (edge, every[n:])), shape=(keys.size, every.size)).tocsr()
        self.low, self.high = keys // n, keys % n
        self.to_low, self.to_high = (
            _summing(n, ends, np.arange(keys.size), np.ones(keys.size)) for ends in (self.low, self.high)
        )
        self.ends = (self.to_low + self.to_high).tocsr()


class Pairs:
    """The kernel that stores y and, in single precision, ρ, κ, q of the last direction, and two sets of targets.

    The attribute `order` (n,) contains the rows in the order in which vectors are stored.
    """

    SPARSE: ClassVar[bool] = True
    PAIR_BYTES: ClassVar[int] = 28
    LIBRARY_BYTES: ClassVar[int] = 0

    def __init__(self, layout: BlockLayout, threads: int, lists: PairLists, entries: int | None = None) -> None:
        """Divide the blocks into tiles with at most `entries` entries, and with at least one block."""
        self.layout, self.threads = layout, threads
        self.order, self.position, self.pairs = lists.order, lists.position, lists.pairs
        self._s, self._t, self._ratios, self._weight_per_ratio = lists.s, lists.t, lists.ratios, lists.weight_per_ratio
        self._adjoint, self._edges, self._ends = lists.adjoint, lists.edges, lists.ends
        self._low, self._high, self._to_low, self._to_high = lists.low, lists.high, lists.to_low, lists.to_high
        self._entries = lists.s.size
        self.batch = max(
            1, min((_TILE_ENTRIES if entries is None else entries) // self._entries, -(-layout.blocks // threads))
        )
        self._buffers = [np.empty((3, self._entries * self.batch)) for _ in range(threads)]
        self._unit = 1.0
        starts = range(0, layout.blocks, self.batch)
        self._tiles: list[Any] = [
            self._new_tile(slice(start, min(start + self.batch, layout.blocks))) for start in starts
        ]

    def _new_tile(self, blocks: slice) -> PairTile:
        """Return a tile for these blocks."""
        return PairTile(blocks, self.layout.rows, self._entries, self._low.size)

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        return cls.PAIR_BYTES

    def release(self) -> None:
        for tile in self._tiles:
            tile.release()

    def multipliers(self) -> Floats:
        return np.concatenate([tile.y[self.layout.rows :].T for tile in self._tiles])

    def export_multipliers(self) -> Floats:
        return np.concatenate([tile.y.T for tile in self._tiles])

    def load(self, y: Floats, mu: float) -> None:
        self._unit = mu
        for tile in self._tiles:
            np.copyto(tile.y, y[tile.blocks].T)

    def diagonals(self) -> Floats:
        n = self.layout.rows
        return np.concatenate([tile.y[:n].T for tile in self._tiles])

    def keep(self) -> Callable[[], Floats]:
        kept = self.multipliers()
        return lambda: kept

    def _tile(self, blocks: slice) -> Any:
        tile = self._tiles[blocks.start // self.batch]
        assert tile.blocks == blocks
        return tile

    def _room(self, worker: int, tile: PairTile) -> list[Floats]:
        size = self._entries * tile.size
        return [buffer[:size].reshape(self._entries, tile.size) for buffer in self._buffers[worker]]

    def _singles(self, worker: int, tile: PairTile) -> list[Singles]:
        size = self._entries * tile.size
        return [buffer.view(np.float32)[:size].reshape(self._entries, -1) for buffer in self._buffers[worker]]

    def _order_rows(self, tile: PairTile, vectors: Floats) -> Floats:
        """Return the rows of `vectors` (B, n) of a tile as columns (n, b), in the stored order of the rows."""
        return vectors[tile.blocks].T[self.order]

    def _add(self, tile: PairTile, values: Floats, out: Floats) -> None:
        """Add columns (n, b), which are in the stored order of the rows, to the rows of `out` (B, n)."""
        out[tile.blocks] += values[self.position].T

    def _growth(self, tile: PairTile, point: Floats, rho: Floats, z: Floats) -> bool:
        """Compute ρ and z for the columns `point` (n, b); return whether all z are positive."""
        np.take(point, self._t, axis=0, out=rho, mode="clip")
        rho *= self._ratios
        np.take(point, self._s, axis=0, out=z, mode="clip")
        np.subtract(rho, z, out=z)
        if not z.min() > 0:
            return False
        rho /= z
        return True

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        self._unit = mu
        tile = self._tile(blocks)
        rho, z, _ = self._room(worker, tile)
        point = self._order_rows(tile, x)
        if not self._growth(tile, point, rho, z):
            raise SolverError(
                "the block method cannot start: a factor exp(ε·d) is 1 in floating point; use another solver"
            )
        np.multiply(rho, self._weight_per_ratio, out=tile.y)
        tile.y *= mu / point[self._t]

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        tile = self._tile(blocks)
        rho, z, other = self._room(worker, tile)
        point = self._order_rows(tile, x)
        # Bᵀy is added even if a slack is not positive, because the lower bound depends only on the multipliers.
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
        rho *= self._weight_per_ratio
        np.take(point, self._t, axis=0, out=z, mode="clip")
        rho /= z
        rho *= self._unit
        np.divide(rho, tile.y, out=tile.kappa, casting="same_kind")
        return True

    def _relative(self, worker: int, tile: PairTile, u: Floats, q: Singles) -> Singles:
        """Compute q in single precision from differences of u in double precision."""
        first, second, _ = self._room(worker, tile)
        steps = self._order_rows(tile, u)
        np.take(steps, self._s, axis=0, out=first, mode="clip")
        np.take(steps, self._t, axis=0, out=second, mode="clip")
        second -= first
        second *= tile.rho
        np.add(second, first, out=q, casting="same_kind")
        return q

    def affine_ratio_test(self, worker: int, blocks: slice, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        tile = self._tile(blocks)
        q = self._relative(worker, tile, u, tile.q)
        return _least(q), -_least(np.negative(q, out=self._singles(worker, tile)[0]))

    def mehrotra(
        self, worker: int, blocks: slice, x: Floats, u: Floats, centre: Floats | float, adjoint: Floats
    ) -> None:
        tile = self._tile(blocks)
        q, phi = self._relative(worker, tile, u, tile.q), tile.targets[0]
        product = self._singles(worker, tile)[0]
        np.add(q, 1.0, out=product)
        product *= q
        np.multiply(tile.kappa, centre / self._unit, out=phi, casting="same_kind")
        phi += product
        self._add_adjoint_of_targets(worker, tile, phi, adjoint)

    def _add_adjoint_of_targets(self, worker: int, tile: PairTile, targets: Singles, out: Floats) -> None:
        values = self._room(worker, tile)[2]
        np.multiply(tile.y, targets, out=values)
        self._add(tile, self._adjoint @ values, out)

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool
    ) -> tuple[Floats, Floats]:
        tile = self._tile(blocks)
        q = self._relative(worker, tile, u, tile.q)
        change = np.subtract(tile.targets[slot], q, out=self._singles(worker, tile)[0])
        return _least(q), _least(change) - 1.0

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        tile = self._tile(blocks)
        phi, other = tile.targets[slot], tile.targets[1 - slot]
        spare, aim = self._singles(worker, tile), centre / self._unit
        correct_targets(phi, tile.q, tile.kappa, (primal, dual), aim, spare, other)
        self._add_adjoint_of_targets(worker, tile, other, adjoint)

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: Floats | float) -> None:
        tile = self._tile(blocks)
        rho, z, change = self._room(worker, tile)
        positive = self._growth(tile, self._order_rows(tile, x), rho, z)
        assert positive, "the point has been assembled with positive slacks"
        steps = self._order_rows(tile, u)
        np.take(steps, self._s, axis=0, out=z, mode="clip")
        np.take(steps, self._t, axis=0, out=change, mode="clip")
        change -= z
        change *= rho
        change += z
        # The new y is y (1 + α (φ − 1 − q)), which remains positive even if single precision makes the step too long.
        np.subtract(tile.targets[slot], change, out=change)
        change *= dual
        change += 1.0 - dual
        np.maximum(change, MIN_MULTIPLIER_SHARE, out=change)
        # The direction of a column may contain infinite values or NaN if the column does not move.
        np.copyto(change, 1.0, where=np.equal(dual, 0.0))
        tile.y *= change
