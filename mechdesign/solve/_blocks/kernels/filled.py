"""The kernel for few bounds and floors: lists of pairs, and dense factors, because floors make Hessians dense.

The kernel prices columns one after the other. The kernel stores only the factor of each Hessian, and does not compute a
Schur complement.

Theory: block_method, Sparse blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS
from mechdesign.solve._blocks.kernels.lapack import Lapack, address
from mechdesign.solve._blocks.kernels.pairs import PairLists, Pairs
from mechdesign.solve._blocks.layout import BlockLayout


@dataclass(frozen=True, eq=False)
class _FloorTerms:
    """The values that a floor adds to Hessians: x (b, n), w (b,), and y/z of its rows (b, k) and of w >= 0 (b,)."""

    error: Floats
    points: Floats
    parts: Floats
    ratio: Floats
    own: Floats


class _HessianBuffer:
    """A worker's memory for a Hessian and its floor rows in single or double precision, with LAPACK functions."""

    def __init__(self, layout: BlockLayout, *, single: bool) -> None:
        kind = np.float32 if single else np.float64
        most = max((len(error) for error in layout.errors), default=0)
        self.lapack = Lapack(layout.width, single=single)
        self.matrix: Any = np.empty((layout.width, layout.width), dtype=kind)
        self.weighted: Any = np.empty((most, layout.rows), dtype=kind)


class FilledKernel(Pairs):
    """A kernel with one packed factor for each block, in single precision unless its factorisation fails.

    Each tile has one block. Otherwise, all blocks of a tile would iterate until the last of them is priced.
    """

    def __init__(self, layout: BlockLayout, threads: int) -> None:
        rows = np.arange(layout.rows)
        super().__init__(layout, threads, layout.geometry.derive("filled", lambda: PairLists(layout, rows)), entries=0)
        self.single_inverses = False
        self.factors = np.empty((layout.blocks, layout.width * (layout.width + 1) // 2), dtype=np.float32)
        # Double-precision factors of the blocks whose factorisation in single precision failed.
        self._doubles: dict[int, Floats] = {}
        self._places = self._low * layout.width + self._high
        self._single = [_HessianBuffer(layout, single=True) for _ in range(threads)]
        self._double = [_HessianBuffer(layout, single=False) for _ in range(threads)]
        self._floors: list[list[_FloorTerms]] = [[] for _ in range(threads)]

    def release(self) -> None:
        super().release()
        self.factors = self.factors[:0].copy()
        self._doubles = {}

    def set_precision(self, gap: float) -> bool:
        return False

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        self._floors[worker] = []
        return super().assemble(worker, blocks, x, adjoint, products)

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        n = self.layout.rows
        mine = points[blocks]
        floor = _FloorTerms(self.layout.errors[index], mine[:, :n], mine[:, n + index], ratio[blocks], own[blocks])
        self._floors[worker].append(floor)

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        largest = 0.0
        for index, block in enumerate(range(blocks.start, blocks.stop)):
            right = int(roots[block]), edges[block], float(corners[block])
            if block not in self._doubles:
                buffer = self._single[worker]
                if buffer.lapack.try_factor(self._hessian(buffer, worker, blocks, index, *right)):
                    buffer.lapack.pack(address(buffer.matrix), address(self.factors[block]))
                    continue
            buffer = self._double[worker]
            for delta in (0.0, *REGULARISATIONS):
                matrix = self._hessian(buffer, worker, blocks, index, *right)
                np.einsum("ss->s", matrix)[:] *= 1 + delta
                if buffer.lapack.try_factor(matrix):
                    break
            else:
                return np.inf
            largest = max(largest, delta)
            packed = self._doubles.setdefault(block, np.empty(self.factors.shape[1]))
            buffer.lapack.pack(address(buffer.matrix), address(packed))
        return largest

    def _hessian(
        self, buffer: _HessianBuffer, worker: int, blocks: slice, index: int, root: int, edge: Floats, corner: float
    ) -> Any:
        """Compute the upper triangle of M for a block of the batch in a worker's memory."""
        tile, matrix, n = self._tile(blocks), buffer.matrix, self.layout.rows
        matrix[:] = 0.0
        matrix.reshape(-1)[self._places] = -tile.entries[:, index]
        np.einsum("ss->s", matrix)[:n] = tile.diagonal[:, index]
        for place, floor in enumerate(self._floors[worker], n):
            x, w, ratio = floor.points[index], floor.parts[index], floor.ratio[index]
            some = np.flatnonzero(ratio)
            weighted = buffer.weighted[: some.size]
            np.multiply(floor.error[some] * x, np.sqrt(ratio[some])[:, None], out=weighted, casting="same_kind")
            matrix[:n, place] = -w * (np.sqrt(ratio[some]) @ weighted)
            matrix[place, place] = w**2 * (ratio.sum() + floor.own[index])
            buffer.lapack.add_product(weighted, address(matrix))
        matrix[:root, root], matrix[root, root:] = edge[:root], edge[root:]
        matrix[root, root] = corner
        return matrix

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        raise InputError("options.extra.arrays", "can only price columns", value="filled")

    def schur(self) -> Floats:
        raise InputError("options.extra.arrays", "can only price columns", value="filled")

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        for block in range(blocks.start, blocks.stop):
            if block in self._doubles:
                self._double[worker].lapack.solve(address(self._doubles[block]), address(right[block]))
                continue
            vector = right[block].astype(np.float32)
            self._single[worker].lapack.solve(address(self.factors[block]), address(vector))
            right[block] = vector


KERNEL = FilledKernel
