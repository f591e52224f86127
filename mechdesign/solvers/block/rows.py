"""Passes over the ratio rows z_st = g_st x_t − x_s of all blocks, in pieces that fit the processor's cache.

Only the multipliers y and one target array are kept for all rows (B, n, n); slacks and steps are recomputed from
vectors whenever they are needed. With relative steps u = dx/x the relative step of a slack is, without cancellation,

    q = dz/z = u_s + (g_st x_t / z_st)(u_t − u_s),

and a complementarity target T (y dz + z dy = T − y z), kept as f = T/z, gives dy = f − y (1 + q).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.block.layout import Layout
from mechdesign.solvers.block.parallel import Workers

__all__ = ["PairRows", "recentred"]

Array = npt.NDArray[np.float64]

_PIECE = 49_152
_BUFFERS = 5

# A target may move a product to within these factors of the centre, and lower it by at most the larger (Gondzio).
_NEAREST, _FARTHEST = 0.1, 10.0


def recentred(product: Array, centre: Array) -> Array:
    """Return, in place of products v (its memory is reused), clip(v, 0.1 c, 10 c) − v, not below −10 c."""
    change = np.minimum(np.maximum(product, _NEAREST * centre), _FARTHEST * centre)
    change -= product
    return np.maximum(change, -_FARTHEST * centre, out=change)


class Piece:
    """Blocks `blocks` and, when one block is larger than the cache, rows `rows` of it; arrays of (b, r, n)."""

    def __init__(self, blocks: slice, rows: slice, buffers: Array, n: int) -> None:
        self.blocks, self.rows = blocks, rows
        shape = (blocks.stop - blocks.start, rows.stop - rows.start, n)
        size = shape[0] * shape[1] * shape[2]
        self.buffers = [buffer[:size].reshape(shape) for buffer in buffers]
        self.whole = (blocks, rows)


class PairRows:
    """The multipliers `y` of all ratio rows, the targets `f` of the current direction, and the passes over them."""

    def __init__(self, layout: Layout, workers: Workers) -> None:
        n, blocks = layout.rows, layout.blocks
        self.layout, self.workers = layout, workers
        self.y = np.empty((blocks, n, n))
        self.f = np.empty((blocks, n, n))
        self.spare = np.empty((blocks, n, n))
        self._height = n if n * n <= 2 * _PIECE else max(1, _PIECE // n)
        self._batch = batch_size(n)
        self._buffers = [np.empty((_BUFFERS, self._batch * self._height * n)) for _ in range(workers.count)]

    def pieces(self, worker: int, batches: Iterator[slice]) -> Iterator[Piece]:
        """Cut batches of blocks into pieces that fit the cache."""
        n = self.layout.rows
        for batch in batches:
            for start in range(0, n, self._height):
                yield Piece(batch, slice(start, min(start + self._height, n)), self._buffers[worker], n)

    def slacks(self, piece: Piece, x: Array) -> tuple[Array, Array]:
        """Return g x_t and z = g x_t − x_s, in the piece's first two buffers."""
        grown, z = piece.buffers[:2]
        blocks, rows = piece.whole
        np.multiply(self.layout.ratios[rows], x[blocks, None, :], out=grown)
        np.subtract(grown, x[blocks, rows, None], out=z)
        return grown, z

    def relative(self, piece: Piece, x: Array, u: Array) -> tuple[Array, Array]:
        """Return z and q = dz/z for the relative steps u; the buffer of g x_t is reused for q."""
        q, z = self.slacks(piece, x)
        difference = piece.buffers[2]
        blocks, rows = piece.whole
        np.divide(q, z, out=q)
        np.subtract(u[blocks, None, :], u[blocks, rows, None], out=difference)
        q *= difference
        q += u[blocks, rows, None]
        return z, q

    def start(self, x: Array, mu: float) -> None:
        """Set y = μ w / z."""

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                _, z = self.slacks(piece, x)
                np.divide(mu * self.layout.weights[piece.rows], z, out=self.y[piece.whole])

        self.workers.run(task)

    def predict(self, x: Array, u: Array) -> tuple[float, float, float, float]:
        """For the target 0 return max −q, max −dy/y = max 1 + q, Σ y z q and Σ y z q², each sum over all columns."""
        layout = self.layout

        def task(worker: int, batches: Iterator[slice]) -> tuple[float, float, float, float]:
            low, high, first, second = np.inf, -np.inf, 0.0, 0.0
            for piece in self.pieces(worker, batches):
                z, q = self.relative(piece, x, u)
                low, high = min(low, float(q.min())), max(high, float(q.max()))
                z *= self.y[piece.whole]
                z *= q
                count = layout.counts[piece.blocks]
                first += float(count @ z.sum(axis=(1, 2)))
                z *= q
                second += float(count @ z.sum(axis=(1, 2)))
            return low, high, first, second

        parts = np.array(self.workers.run(task))
        return (
            -float(parts[:, 0].min()),
            1 + float(parts[:, 1].max()),
            float(parts[:, 2].sum()),
            float(parts[:, 3].sum()),
        )

    def aim(self, x: Array, u: Array, centre: float) -> Array:
        """Set the target T = t w − dz dy of Mehrotra's corrector for the predictor u; return Bᵀ f (B, n).

        The predictor has dy = −y (1 + q), so f = t w / z + y q (1 + q).
        """
        weights = centre * self.layout.weights
        pulled = np.zeros((self.layout.blocks, self.layout.rows))

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                z, q = self.relative(piece, x, u)
                f, other = self.f[piece.whole], piece.buffers[2]
                np.divide(weights[piece.rows], z, out=f)
                np.add(q, 1.0, out=other)
                other *= q
                other *= self.y[piece.whole]
                f += other
                self.pull(piece, f, pulled)

        self.workers.run(task)
        return pulled

    def pull(self, piece: Piece, values: Array, out: Array) -> None:
        """Add Bᵀ values to `out` (B, n): (Bᵀ y)_t = Σ_s g_st y_st − Σ_r y_tr."""
        blocks, rows = piece.whole
        scaled = piece.buffers[3]
        np.multiply(values, self.layout.ratios[rows], out=scaled)
        out[blocks] += scaled.sum(axis=1)
        out[blocks, rows] -= values.sum(axis=2)

    def ratios(self, x: Array, u: Array) -> tuple[float, float]:
        """Return max −dz/z and max −dy/y for the current target and the relative steps u."""

        def task(worker: int, batches: Iterator[slice]) -> tuple[float, float]:
            primal, dual = np.inf, np.inf
            for piece in self.pieces(worker, batches):
                _, q = self.relative(piece, x, u)
                primal = min(primal, float(q.min()))
                dual = min(dual, self._relative_dual(piece, q))
            return primal, dual

        parts = np.array(self.workers.run(task))
        return -float(parts[:, 0].min()), -float(parts[:, 1].min())

    def _relative_dual(self, piece: Piece, q: Array) -> float:
        """Return min dy/y = min f/y − (1 + q) over the rows that bind."""
        change = piece.buffers[2]
        if self.layout.free is None:
            np.divide(self.f[piece.whole], self.y[piece.whole], out=change)
        else:
            free = self.layout.free[piece.rows]
            change[:] = np.inf
            np.divide(self.f[piece.whole], self.y[piece.whole], out=change, where=~free)
        change -= q
        return float(change.min()) - 1.0

    def recentre(self, x: Array, u: Array, primal: float, dual: float, centre: float) -> Array:
        """Write into `spare` the targets changed by one centrality correction (Gondzio) and return Bᵀ of them.

        Products v = (z + α̃_p dz)(y + α̃_d dy) far from t w are moved to within [0.1 t w, 10 t w].
        """
        weights = centre * self.layout.weights
        pulled = np.zeros((self.layout.blocks, self.layout.rows))

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                z, q = self.relative(piece, x, u)
                y, f, new = self.y[piece.whole], self.f[piece.whole], self.spare[piece.whole]
                product, other = piece.buffers[2:4]
                # y + α dy = y (1 − α (1 + q)) + α f
                np.multiply(q, -dual, out=product)
                product += 1.0 - dual
                product *= y
                np.multiply(f, dual, out=other)
                product += other
                q *= primal
                q += 1.0
                product *= q
                product *= z
                aims = weights[piece.rows]
                np.maximum(product, _NEAREST * aims, out=other)
                np.minimum(other, _FARTHEST * aims, out=other)
                other -= product
                np.maximum(other, -_FARTHEST * aims, out=other)
                other /= z
                np.add(f, other, out=new)
                self.pull(piece, new, pulled)

        self.workers.run(task)
        return pulled

    def accept(self) -> None:
        """Make the corrected targets the current ones."""
        self.f, self.spare = self.spare, self.f

    def advance(self, x: Array, u: Array, dual: float) -> None:
        """Move y by `dual` times dy = f − y (1 + q)."""

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                _, q = self.relative(piece, x, u)
                y, other = self.y[piece.whole], piece.buffers[2]
                # y (1 − α (1 + q)) + α f
                q *= -dual
                q += 1.0 - dual
                y *= q
                np.multiply(self.f[piece.whole], dual, out=other)
                y += other

        self.workers.run(task)


def batch_size(n: int) -> int:
    """Return how many blocks of n rows are worked on at a time."""
    return max(1, _PIECE // (n * n))
