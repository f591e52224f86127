"""The kernel on NumPy and SciPy: passes over the ratio rows in tiles that fit the cache, and LAPACK for each block.

Theory: block_method, Single precision.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from mechdesign.base._arrays import Floats, Integers, Singles
from mechdesign.base._errors import SolverError
from mechdesign.solve._blocks.kernels.contract import BETA_MAX, BETA_MIN, MIN_MULTIPLIER_SHARE, UNBOUNDED_TARGET
from mechdesign.solve._blocks.kernels.lapack import Lapack, address
from mechdesign.solve._blocks.layout import BlockLayout

# Number of entries of a tile. In smaller tiles, NumPy calls are so short that threads wait for the interpreter lock.
# With half of this number and a quarter of `_BATCH_ENTRIES`, an iteration is 5 to 25 % slower (two threads, 100 to
# 1,024 rows).
_TILE_ENTRIES = 98_304
# Number of entries of a batch, the unit of work of a thread.
_BATCH_ENTRIES = 400_000
# Number of rows of the strips in which matrices are transposed.
_STRIP_ROWS = 64
# Smallest relative gap with factors and directions in single precision. The number of iterations is the same with 300
# and 1,024 cells.
SINGLE_FACTORS_GAP = 1e-2
# Smallest relative gap with inverses in single precision. Only the Schur complement uses inverses.
_SINGLE_INVERSES_GAP = 1e-4
# Smallest number of rows with which single precision saves enough time.
SINGLE_MIN_ROWS = 100
# Smallest relative gaps with floors, whose Hessians have off-diagonal entries of both signs. At smaller gaps,
# single-precision factors shorten the steps. With 122 columns and 1,024 cells, a solve then takes 79 instead of 18
# iterations from 2.6e-3 to 1e-3.
_FLOOR_FACTORS_GAP = 5e-3
_FLOOR_INVERSES_GAP = 1e-4
# Smallest number of rows with floors for which factors and inverses take most of the time of an iteration.
_FLOOR_SINGLE_MIN_ROWS = 512


class DenseMemory:
    """A worker's memory for three arrays of the same shape, in double or in single precision."""

    def __init__(self, shape: tuple[int, int, int], memory: Floats) -> None:
        size = math.prod(shape)
        self.buffers = [buffer[:size].reshape(shape) for buffer in memory]
        self.singles = [buffer.view(np.float32)[:size].reshape(shape) for buffer in memory]


class DenseTile:
    """A tile of whole blocks, or of rows of one block, with a worker's memory for three arrays (b, r, n)."""

    def __init__(self, blocks: slice, rows: slice, room: DenseMemory) -> None:
        self.blocks, self.rows, self.whole = blocks, rows, (blocks, rows)
        self.buffers, self.singles = room.buffers, room.singles


class Dense:
    """The common part of dense kernels: the multipliers y, the factors, and the Hessians.

    The Hessians of a batch are assembled, factored and inverted in a worker's memory; packed factors are stored.
    """

    SPARSE: ClassVar[bool] = False
    pairs = None

    y: Any
    factors: Any

    def __init__(self, layout: BlockLayout, threads: int) -> None:
        n, width, blocks = layout.rows, layout.width, layout.blocks
        self.layout, self.threads = layout, threads
        # Each thread gets at least four batches, so that all threads finish at about the same time. If these batches
        # would be smaller than a tile, each thread gets at least two.
        share = max(-(-blocks // (4 * threads)), min(_TILE_ENTRIES // (n * n), -(-blocks // (2 * threads))))
        self.batch = max(1, min(share, _BATCH_ENTRIES // (n * n), blocks))
        self.y = np.zeros((blocks, n, n))
        self.factors = np.empty((blocks, width * (width + 1) // 2))
        self.weight_per_ratio = layout.weights / layout.ratios
        self._lapack = [Lapack(width) for _ in range(threads)]
        self._hessians = [np.empty((self.batch, width, width)) for _ in range(threads)]
        # Single-precision copies of the Hessians of a batch, or of one factor.
        self._single = [Lapack(width, single=True) for _ in range(threads)]
        self._copies = [np.empty((self.batch, width, width), dtype=np.float32) for _ in range(threads)]
        self.single_inverses = False
        # Double-precision factors of the blocks whose factorisation in single precision failed.
        self._doubles: dict[int, Floats] = {}
        estimates = max((len(error) for error in layout.errors), default=0)
        self._weighted = [np.empty((estimates, n)) for _ in range(threads)]
        self._schur = np.zeros((threads, layout.links, layout.links))

    def set_precision(self, gap: float) -> bool:
        floors = self.layout.floors > 0
        worth = self.layout.rows >= (_FLOOR_SINGLE_MIN_ROWS if floors else SINGLE_MIN_ROWS)
        before = self.factors.dtype, self.single_inverses
        kind = np.float32 if worth and gap > (_FLOOR_FACTORS_GAP if floors else SINGLE_FACTORS_GAP) else np.float64
        if self.factors.dtype != kind:
            self._doubles = {}
            self.factors = np.empty(self.factors.shape, dtype=kind)
        self.single_inverses = worth and gap > (_FLOOR_INVERSES_GAP if floors else _SINGLE_INVERSES_GAP)
        return before != (self.factors.dtype, self.single_inverses)

    def multipliers(self) -> Floats:
        y: Floats = self.y
        return y

    def export_multipliers(self) -> Floats:
        return self.multipliers()

    def load(self, y: Floats, mu: float) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)

    def release(self) -> None:
        self._doubles = {}
        self.factors = self.factors[:0].copy()

    def diagonals(self) -> Floats:
        return self.multipliers().diagonal(axis1=1, axis2=2)

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        error, n = self.layout.errors[index], self.layout.rows
        part, matrices, lapack = n + index, self._matrices(worker, blocks), self._lapack[worker]
        x, w, ratios = points[blocks, :n], points[blocks, part], ratio[blocks]
        if index == 0:
            matrices[:, n:, :] = 0.0
            matrices[:, :, n:] = 0.0
        matrices[:, part, :n] = matrices[:, :n, part] = -w[:, None] * (x * (ratios @ error))
        matrices[:, part, part] = w**2 * (ratios.sum(axis=1) + own[blocks])
        for matrix, point, mine, roots in zip(matrices, x, ratios > 0, np.sqrt(ratios), strict=True):
            some = np.flatnonzero(mine)
            weighted = self._weighted[worker][: some.size]
            np.multiply(error if some.size == len(error) else error[some], point, out=weighted)
            weighted *= roots[some, None]
            # The BLAS function for a product of a matrix with its transpose does half of the work, and fills one
            # triangle.
            lapack.add_product(weighted, address(matrix))
        # Products fill one triangle; it is copied to the other triangle after all floors are added.
        if index == self.layout.floors - 1 and self.factors.dtype != np.float32:
            _mirror(matrices[:, :n, :n])

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        matrices: Any = self._matrices(worker, blocks)
        mine, index = roots[blocks], np.arange(len(matrices))
        matrices[index, mine, :] = edges[blocks]
        matrices[index, :, mine] = edges[blocks]
        matrices[index, mine, mine] = corners[blocks]
        lapack = self._lapack[worker]
        if self.factors.dtype == np.float32:
            copies = self._copies[worker][: len(matrices)]
            np.copyto(copies, matrices, casting="same_kind")
            return max(
                self._factor_single(worker, block, matrix, copy)
                for block, matrix, copy in zip(range(blocks.start, blocks.stop), matrices, copies, strict=True)
            )
        largest = max(lapack.factor(matrix) for matrix in matrices)
        for matrix, packed in zip(matrices, self.factors[blocks], strict=True):
            lapack.pack(address(matrix), address(packed))
        return largest

    def _factor_single(self, worker: int, block: int, matrix: Floats, copy: Singles) -> float:
        """Factor the copy of a matrix in single precision; if that fails, factor the matrix in double precision."""
        single, double = self._single[worker], self._lapack[worker]
        if single.try_factor(copy):
            self._doubles.pop(block, None)
            single.pack(address(copy), address(self.factors[block]))
            return 0.0
        # The regularisation also needs the lower triangle.
        _mirror(matrix[None])
        regularisation = double.factor(matrix)
        packed = self._doubles[block] = np.empty(self.factors.shape[1])
        double.pack(address(matrix), address(packed))
        np.copyto(copy, matrix, casting="same_kind")
        return regularisation

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        total, linked = self._schur[worker], self.layout.link_variables
        for block, inverse in enumerate(self._inverses(worker, blocks), blocks.start):
            root = roots[block]
            columns[block, :root] = inverse[:root, root]
            columns[block, root:] = inverse[root, root:]
            inverse[root, :] = inverse[:, root] = 0.0
            # The lower triangle contains unrelated values, which are ignored later.
            product = inverse
            if self.layout.members:
                product = (np.triu(inverse) + np.triu(inverse, 1).T)[np.ix_(linked, linked)]
            product *= (counts[block] * scale[block])[:, None]
            product *= scale[block]
            total += product

    def _inverses(self, worker: int, blocks: slice) -> Iterator[Floats | Singles]:
        """Yield the upper triangle of the inverse of each block of a batch, computed from its factor."""
        factors: Any = self._matrices(worker, blocks)
        copies = self._copies[worker]
        copied = self.single_inverses and self.factors.dtype != np.float32
        if self.factors.dtype == np.float32:
            factors = copies[: len(factors)]
        invert = (self._single if self.single_inverses else self._lapack)[worker].invert
        for factor in factors:
            inverse = factor
            if copied:
                inverse = copies[0]
                np.copyto(inverse, factor, casting="same_kind")
            invert(address(inverse))
            yield inverse

    def schur(self) -> Floats:
        total: Floats = self._schur.sum(axis=0)
        self._schur[:] = 0.0
        return total

    def _matrices(self, worker: int, blocks: slice) -> Floats:
        """Return the worker's memory for the Hessians of a batch (b, N, N)."""
        size = blocks.stop - blocks.start
        if size > self.batch:
            # A larger batch would make compiled code write past the end of the array.
            raise ValueError(f"a batch has at most {self.batch} blocks, not {size}")
        return self._hessians[worker][:size]

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        with self._with_double_factors(worker, blocks, right):
            self._substitute(worker, blocks, right)

    @contextlib.contextmanager
    def _with_double_factors(self, worker: int, blocks: slice, right: Floats) -> Iterator[None]:
        """Solve for the blocks with double-precision factors; the `with` block may overwrite their rows of `right`."""
        mine = [block for block in range(blocks.start, blocks.stop) if block in self._doubles]
        vectors = right[mine]
        for block, vector in zip(mine, vectors, strict=True):
            self._lapack[worker].solve(address(self._doubles[block]), address(vector))
        yield
        right[mine] = vectors

    def _substitute(self, worker: int, blocks: slice, right: Floats) -> None:
        """Solve for all blocks of a batch with the factors in `factors`."""
        single = self.factors.dtype == np.float32
        solve = (self._single if single else self._lapack)[worker].solve
        vectors = right[blocks].astype(np.float32) if single else right[blocks]
        matrix, vector = address(self.factors[blocks]), address(vectors)
        matrix_bytes, vector_bytes = self.factors.strides[0], vectors.strides[0]
        for block in range(len(vectors)):
            solve(matrix + block * matrix_bytes, vector + block * vector_bytes)
        if single:
            right[blocks] = vectors


def _mirror(matrices: Floats) -> None:
    """Copy the upper triangles of matrices (b, n, n) to the lower triangles."""
    n = matrices.shape[1]
    for start in range(0, n, _STRIP_ROWS):
        rows, rest = slice(start, start + _STRIP_ROWS), slice(start + _STRIP_ROWS, None)
        square = matrices[:, rows, rows]
        np.copyto(square, np.triu(square) + np.triu(square, 1).swapaxes(1, 2))
        matrices[:, rest, rows] = matrices[:, rows, rest].swapaxes(1, 2)


class NumpyKernel(Dense):
    """A dense kernel that also stores ρ, κ for the centre μ₀, q, and two sets of targets in single precision.

    Single precision halves the time of an operation, and suffices for targets and step lengths. Only the step of y
    recomputes q in double precision.
    """

    LIBRARY_BYTES: ClassVar[int] = 0

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        return 30 if gap > SINGLE_FACTORS_GAP else 32

    def __init__(self, layout: BlockLayout, threads: int) -> None:
        super().__init__(layout, threads)
        shape, n = self.y.shape, layout.rows
        self._rho: Singles = np.empty(shape, dtype=np.float32)
        self._kappa: Singles = np.empty(shape, dtype=np.float32)
        # The first set of targets, q of the last ratio test, and the second set of targets. The last two arrays
        # together have the size of y.
        self._singles: Singles = np.empty((3, *shape), dtype=np.float32)
        self._q: Singles = self._singles[1]
        self._unit = 1.0
        self._ones = np.ones(n)
        self._height = n if n * n <= 2 * _TILE_ENTRIES else max(1, _TILE_ENTRIES // n)
        self._deep = max(1, _TILE_ENTRIES // (n * n))
        self._memory = [np.empty((3, self._deep * self._height * n)) for _ in range(threads)]
        self._rooms: list[dict[tuple[int, int], DenseMemory]] = [{} for _ in range(threads)]

    def release(self) -> None:
        super().release()
        self._rho = self._kappa = np.empty(0, dtype=np.float32)

    def _targets(self, slot: int) -> Singles:
        targets: Singles = self._singles[2 * slot]
        return targets

    def keep(self) -> Callable[[], Floats]:
        kept: Floats = self._singles[1:].reshape(-1).view(np.float64).reshape(self.y.shape)
        np.copyto(kept, self.y)
        return lambda: kept

    def load(self, y: Floats, mu: float) -> None:
        super().load(y, mu)
        self._unit = mu

    def _tiles(self, worker: int, blocks: slice) -> Iterator[DenseTile]:
        n = self.layout.rows
        for first in range(blocks.start, blocks.stop, self._deep):
            deep = slice(first, min(first + self._deep, blocks.stop))
            for start in range(0, n, self._height):
                rows = slice(start, min(start + self._height, n))
                yield DenseTile(deep, rows, self._room(worker, deep.stop - first, rows.stop - start))

    def _room(self, worker: int, deep: int, height: int) -> DenseMemory:
        """Return the worker's memory in this shape; it is cached, because creating it keeps the interpreter lock."""
        rooms = self._rooms[worker]
        if (deep, height) not in rooms:
            rooms[deep, height] = DenseMemory((deep, height, self.layout.rows), self._memory[worker])
        return rooms[deep, height]

    def _growth(self, tile: DenseTile, x: Floats) -> tuple[Floats, Floats] | None:
        """Return ρ and z, which are stored in the first two buffers, or None if a slack z is not positive."""
        rho, z = tile.buffers[:2]
        blocks, rows = tile.whole
        np.multiply(self.layout.ratios[rows], x[blocks, None, :], out=rho)
        np.subtract(rho, x[blocks, rows, None], out=z)
        if not z.min() > 0:
            return None
        rho /= z
        return rho, z

    def _add_adjoint(self, tile: DenseTile, values: Floats, out: Floats) -> None:
        """Add Bᵀ values to `out` (B, n), with (Bᵀ y)_t = Σ_s g_st y_st − Σ_r y_tr; the second buffer is overwritten."""
        blocks, rows = tile.whole
        scaled = tile.buffers[1]
        np.multiply(values, self.layout.ratios[rows], out=scaled)
        out[blocks] += self._ones[: scaled.shape[1]] @ scaled
        out[blocks, rows] -= values @ self._ones

    def _add_adjoint_of_targets(self, tile: DenseTile, targets: Singles, out: Floats) -> None:
        if self.layout.free is not None:
            np.copyto(targets, UNBOUNDED_TARGET, where=self.layout.free[tile.rows])
        values = tile.buffers[2]
        np.multiply(self.y[tile.whole], targets, out=values)
        self._add_adjoint(tile, values, out)

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        self._unit = mu
        for tile in self._tiles(worker, blocks):
            measured = self._growth(tile, x)
            if measured is None:
                raise SolverError(
                    "the block method cannot start: a factor exp(ε·d) is 1 in floating point; use another solver"
                )
            y = self.y[tile.whole]
            np.multiply(measured[0], self.weight_per_ratio[tile.rows], out=y)
            y *= mu / x[tile.blocks, None, :]

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        n = self.layout.rows
        matrices = self._matrices(worker, blocks)[:, :n, :n]
        for tile in self._tiles(worker, blocks):
            measured = self._growth(tile, x)
            if measured is None:
                return False
            rho, z = measured
            y, other = self.y[tile.whole], tile.buffers[2]
            np.multiply(y, z, out=other)
            products[tile.blocks] += (other @ self._ones).sum(axis=1)
            # −g x_s x_t W = −y ρ x_s
            batch = slice(tile.blocks.start - blocks.start, tile.blocks.stop - blocks.start)
            hessian = matrices[batch, tile.rows]
            np.multiply(y, rho, out=hessian)
            hessian *= -x[tile.blocks, tile.rows, None]
            self._add_adjoint(tile, y, adjoint)
            self._rho[tile.whole] = rho
            rho *= self.weight_per_ratio[tile.rows]
            rho *= self._unit / x[tile.blocks, None, :]
            bounded: Any = True if self.layout.free is None else ~self.layout.free[tile.rows]
            np.divide(rho, y, out=rho, where=bounded)
            self._kappa[tile.whole] = rho
        self._complete(matrices, x[blocks] * adjoint[blocks])
        return True

    def _complete(self, hessian: Floats, diagonal: Floats) -> None:
        """Add the transposes to Hessians (b, n, n), and set the diagonals to give the row sums `diagonal` (b, n)."""
        n = self.layout.rows
        diagonal -= hessian @ self._ones + self._ones @ hessian
        diagonal += 2 * hessian.diagonal(axis1=1, axis2=2)
        for start in range(0, n, _STRIP_ROWS):
            strip, rest = slice(start, start + _STRIP_ROWS), slice(start, n)
            both = hessian[:, strip, rest] + hessian[:, rest, strip].swapaxes(1, 2)
            hessian[:, strip, rest] = both
            hessian[:, rest, strip] = both.swapaxes(1, 2)
        index = np.arange(n)
        hessian[:, index, index] = diagonal

    def _relative(self, tile: DenseTile, u: Floats) -> Singles:
        """Return q in single precision, computed from differences of u in double precision."""
        q: Singles = tile.singles[0]
        blocks, rows = tile.whole
        np.subtract(u[blocks, None, :], u[blocks, rows, None], out=q, casting="same_kind")
        q *= self._rho[tile.whole]
        q += u[blocks, rows, None].astype(np.float32)
        return q

    def affine_ratio_test(self, worker: int, blocks: slice, x: Floats, u: Floats) -> tuple[float, float]:
        low, high = np.inf, -np.inf
        for tile in self._tiles(worker, blocks):
            q = self._relative(tile, u)
            low, high = min(low, float(q.min())), max(high, float(q.max()))
        return low, high

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: float, adjoint: Floats) -> None:
        for tile in self._tiles(worker, blocks):
            q, phi, product = self._relative(tile, u), self._targets(0)[tile.whole], tile.singles[1]
            np.add(q, 1.0, out=product)
            product *= q
            np.multiply(self._kappa[tile.whole], centre / self._unit, out=phi)
            phi += product
            self._add_adjoint_of_targets(tile, phi, adjoint)

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool
    ) -> tuple[float, float]:
        primal, dual = np.inf, np.inf
        for tile in self._tiles(worker, blocks):
            q = self._relative(tile, u)
            if store_for_corrector:
                self._q[tile.whole] = q
            primal = min(primal, float(q.min()))
            change = np.subtract(self._targets(slot)[tile.whole], q, out=q)
            dual = min(dual, float(change.min()))
        return primal, dual - 1.0

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        targets, others = self._targets(slot), self._targets(1 - slot)
        for tile in self._tiles(worker, blocks):
            q, phi, other = self._q[tile.whole], targets[tile.whole], others[tile.whole]
            aim = centre / self._unit
            correct_targets(phi, q, self._kappa[tile.whole], (primal, dual), aim, tile.singles, other)
            self._add_adjoint_of_targets(tile, other, adjoint)

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: float) -> None:
        for tile in self._tiles(worker, blocks):
            measured = self._growth(tile, x)
            assert measured is not None
            change, other = measured
            own = u[tile.blocks, tile.rows, None]
            np.subtract(u[tile.blocks, None, :], own, out=other)
            change *= other
            change += own
            # The new y is y (1 + α (φ − 1 − q)), which remains positive even if single precision makes the step too
            # long.
            np.subtract(self._targets(slot)[tile.whole], change, out=change)
            change *= dual
            change += 1.0 - dual
            np.maximum(change, MIN_MULTIPLIER_SHARE, out=change)
            self.y[tile.whole] *= change


def correct_targets(
    phi: Singles, q: Singles, kappa: Singles, lengths: tuple[float, float], aim: float, spare: Sequence[Singles],
    out: Singles,
) -> None:  # fmt: skip
    """Write the targets φ with Gondzio's correction for the step lengths `lengths` to `out`, and overwrite `spare`.

    Products v/(y z) outside [0.1, 10] κ·aim are moved to this interval, but are decreased by at most 10 κ·aim.
    """
    product, bound, clipped = spare
    primal, dual = lengths
    # v/(y z) = (1 + α̃_p q) (1 + α̃_d (φ − 1 − q))
    np.subtract(phi, q, out=product)
    product *= dual
    product += 1.0 - dual
    np.multiply(q, primal, out=bound)
    bound += 1.0
    product *= bound
    np.multiply(kappa, BETA_MAX * aim, out=bound)
    np.multiply(bound, BETA_MIN / BETA_MAX, out=clipped)
    np.maximum(product, clipped, out=clipped)
    np.minimum(clipped, bound, out=clipped)
    bound *= 2.0
    np.minimum(product, bound, out=product)
    clipped -= product
    np.add(phi, clipped, out=out)


KERNEL = NumpyKernel
