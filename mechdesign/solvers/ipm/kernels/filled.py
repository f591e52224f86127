"""The kernel for few bounds and floors: lists of pairs, Hessians that the floors fill, factored as dense ones.

It prices columns, one after the other for the linear algebra and many at a time for the passes; nothing is kept of a
Hessian but its factor, and what a block adds to a Schur complement is not computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.errors import InputError
from mechdesign.solvers.ipm.kernels.contract import REGULARISATIONS
from mechdesign.solvers.ipm.kernels.lapack import Lapack, address
from mechdesign.solvers.ipm.kernels.pairs import Pairs
from mechdesign.solvers.ipm.layout import Layout

__all__ = ["FilledKernel"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Floor:
    """What a floor adds to the Hessians of a batch: x (b, n), w (b,), y/z of its rows (b, k) and of w >= 0 (b,)."""

    error: Array
    points: Array
    parts: Array
    ratio: Array
    own: Array


class FilledKernel(Pairs):
    """Rows as they are, and for each block a packed factor.

    A tile is one block: those of a tile would all go on until the last of them is priced.
    """

    def __init__(self, layout: Layout, threads: int, device: object = None) -> None:
        width = layout.width
        super().__init__(layout, threads, np.arange(layout.rows), entries=0)
        self.rough = False
        self.factors = np.empty((layout.blocks, width * (width + 1) // 2), dtype=np.float32)
        # Those of blocks that single precision could not factor.
        self._doubles: dict[int, Array] = {}
        self._lapack = [Lapack(width) for _ in range(threads)]
        self._single = [Lapack(width, single=True) for _ in range(threads)]
        self._hessians = [np.empty((width, width)) for _ in range(threads)]
        self._copies = [np.empty((width, width), dtype=np.float32) for _ in range(threads)]
        self._floors: list[list[_Floor]] = [[] for _ in range(threads)]
        most = max((len(error) for error in layout.errors), default=0)
        self._weighted = [np.empty((most, layout.rows)) for _ in range(threads)]

    def release(self) -> None:
        super().release()
        self.factors = self.factors[:0].copy()
        self._doubles = {}

    def tune(self, gap: float) -> bool:
        return False

    def assemble(self, worker: int, blocks: slice, x: Array, adjoint: Array, products: Array) -> bool:
        self._floors[worker] = []
        return super().assemble(worker, blocks, x, adjoint, products)

    def add_floor(self, worker: int, blocks: slice, index: int, points: Array, ratio: Array, own: Array) -> None:
        n = self.layout.rows
        mine = points[blocks]
        floor = _Floor(self.layout.errors[index], mine[:, :n], mine[:, n + index], ratio[blocks], own[blocks])
        self._floors[worker].append(floor)

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Array, corners: Array) -> float:
        largest = 0.0
        for index, block in enumerate(range(blocks.start, blocks.stop)):
            matrix = self._hessian(worker, blocks, index, roots, edges, corners)
            if block not in self._doubles and self._factored_single(worker, block, matrix):
                continue
            packed = self._doubles.setdefault(block, np.empty(self.factors.shape[1]))
            lapack = self._lapack[worker]
            for delta in (0.0, *REGULARISATIONS):
                if delta:
                    matrix = self._hessian(worker, blocks, index, roots, edges, corners)
                    np.einsum("ss->s", matrix)[:] *= 1 + delta
                if lapack.factors(matrix):
                    break
            else:
                return np.inf
            largest = max(largest, delta)
            lapack.pack(address(matrix), address(packed))
        return largest

    def _factored_single(self, worker: int, block: int, matrix: Array) -> bool:
        """Factor a copy of a matrix in single precision; return whether that was enough."""
        copy, lapack = self._copies[worker], self._single[worker]
        np.copyto(copy, matrix, casting="same_kind")
        if not lapack.factors(copy):
            return False
        lapack.pack(address(copy), address(self.factors[block]))
        return True

    def _hessian(self, worker: int, blocks: slice, index: int, roots: Integers, edges: Array, corners: Array) -> Array:
        """Return the upper triangle of M for a block of the batch, in the worker's memory."""
        tile, matrix, n = self._tile(blocks), self._hessians[worker], self.layout.rows
        matrix[:] = 0.0
        matrix[self._low, self._high] = -tile.entries[:, index]
        np.einsum("ss->s", matrix)[:n] = tile.diagonal[:, index]
        for place, floor in enumerate(self._floors[worker], n):
            x, w, ratio = floor.points[index], floor.parts[index], floor.ratio[index]
            some = np.flatnonzero(ratio)
            weighted = self._weighted[worker][: some.size]
            np.multiply(floor.error[some], np.sqrt(ratio[some])[:, None], out=weighted)
            weighted *= x
            matrix[:n, place] = -w * (np.sqrt(ratio[some]) @ weighted)
            matrix[place, place] = w**2 * (ratio.sum() + floor.own[index])
            self._lapack[worker].add_product(weighted, address(matrix))
        block = blocks.start + index
        root = roots[block]
        matrix[:root, root], matrix[root, root:] = edges[block, :root], edges[block, root:]
        matrix[root, root] = corners[block]
        return matrix

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Array, counts: Array, columns: Array
    ) -> None:
        raise InputError("options.extra.arrays", "prices columns only", value="filled")

    def schur(self) -> Array:
        raise InputError("options.extra.arrays", "prices columns only", value="filled")

    def solve(self, worker: int, blocks: slice, right: Array) -> None:
        for block in range(blocks.start, blocks.stop):
            if block in self._doubles:
                self._lapack[worker].solve(address(self._doubles[block]), address(right[block]))
                continue
            vector = right[block].astype(np.float32)
            self._single[worker].solve(address(self.factors[block]), address(vector))
            right[block] = vector


KERNEL = FilledKernel
