"""Passes over the ratio rows z_st = g_st x_t − x_s of all blocks, in pieces that fit the processor's cache.

Kept for all rows (B, n, n) are the multipliers y, the growth ρ = g_st x_t / z_st, and targets; steps are recomputed
from vectors whenever needed. With relative steps u = dx/x the relative step of a slack is, without cancellation,

    q = dz/z = u_s + ρ_st (u_t − u_s),

and a complementarity target T (y dz + z dy = T − y z), kept as f = T/z, gives dy = f − y (1 + q). A central value t w
divided by z is t (w/g)_st ρ_st / x_t, so that nothing has to be divided by slacks but ρ, once at each point.
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
_BUFFERS = 3

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
        self.rho = np.empty((blocks, n, n))
        self.f = np.empty((blocks, n, n))
        self.spare = np.empty((blocks, n, n))
        self._height = n if n * n <= 2 * _PIECE else max(1, _PIECE // n)
        self._batch = batch_size(n)
        self._slope = layout.weights / layout.ratios
        self._ones = np.ones(n)
        self._buffers = [np.empty((_BUFFERS, self._batch * self._height * n)) for _ in range(workers.count)]

    def pieces(self, worker: int, batches: Iterator[slice]) -> Iterator[Piece]:
        """Cut batches of blocks into pieces that fit the cache."""
        n = self.layout.rows
        for batch in batches:
            for start in range(0, n, self._height):
                yield Piece(batch, slice(start, min(start + self._height, n)), self._buffers[worker], n)

    def measure(self, piece: Piece, x: Array) -> Array | None:
        """Set ρ at a new point; return g x_t in the first buffer, z in the second, None when some z is not positive."""
        grown: Array = piece.buffers[0]
        z: Array = piece.buffers[1]
        blocks, rows = piece.whole
        np.multiply(self.layout.ratios[rows], x[blocks, None, :], out=grown)
        np.subtract(grown, x[blocks, rows, None], out=z)
        if not z.min() > 0:
            return None
        np.divide(grown, z, out=self.rho[piece.whole])
        return grown

    def relative(self, piece: Piece, u: Array) -> Array:
        """Return q = dz/z for the relative steps u, in the first buffer."""
        q: Array = piece.buffers[0]
        blocks, rows = piece.whole
        np.subtract(u[blocks, None, :], u[blocks, rows, None], out=q)
        q *= self.rho[piece.whole]
        q += u[blocks, rows, None]
        return q

    def centre(self, piece: Piece, inverse: Array, out: Array) -> None:
        """Write w/z = (w/g) ρ / x_t to `out`, with `inverse` = t/x (B, n): then it is t w / z."""
        np.multiply(self.rho[piece.whole], self._slope[piece.rows], out=out)
        out *= inverse[piece.blocks, None, :]

    def start(self, x: Array, mu: float) -> None:
        """Set y = μ w / z."""

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                self.measure(piece, x)
                self.centre(piece, mu / x, self.y[piece.whole])

        self.workers.run(task)

    def predict(self, u: Array) -> tuple[float, float]:
        """Return max −dz/z = max −q and, for the target 0, max −dy/y = max 1 + q."""

        def task(worker: int, batches: Iterator[slice]) -> tuple[float, float]:
            low, high = np.inf, -np.inf
            for piece in self.pieces(worker, batches):
                q = self.relative(piece, u)
                low, high = min(low, float(q.min())), max(high, float(q.max()))
            return low, high

        parts = np.array(self.workers.run(task))
        return -float(parts[:, 0].min()), 1 + float(parts[:, 1].max())

    def aim(self, x: Array, u: Array, centre: float) -> Array:
        """Set the target T = t w − dz dy of Mehrotra's corrector for the predictor u; return Bᵀ f (B, n).

        The predictor has dy = −y (1 + q), so f = t w / z + y q (1 + q).
        """
        pulled = np.zeros((self.layout.blocks, self.layout.rows))
        inverse = centre / x

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                q = self.relative(piece, u)
                f, other = self.f[piece.whole], piece.buffers[1]
                self.centre(piece, inverse, f)
                np.multiply(q, self.y[piece.whole], out=other)
                f += other
                other *= q
                f += other
                self.pull(piece, f, pulled)

        self.workers.run(task)
        return pulled

    def pull(self, piece: Piece, values: Array, out: Array) -> None:
        """Add Bᵀ values to `out` (B, n): (Bᵀ y)_t = Σ_s g_st y_st − Σ_r y_tr."""
        blocks, rows = piece.whole
        scaled = piece.buffers[1]
        np.multiply(values, self.layout.ratios[rows], out=scaled)
        out[blocks] += self._ones[: scaled.shape[1]] @ scaled
        out[blocks, rows] -= values @ self._ones

    def ratios(self, u: Array) -> tuple[float, float]:
        """Return max −dz/z and max −dy/y for the current target and the relative steps u."""

        def task(worker: int, batches: Iterator[slice]) -> tuple[float, float]:
            primal, dual = np.inf, np.inf
            for piece in self.pieces(worker, batches):
                q = self.relative(piece, u)
                primal = min(primal, float(q.min()))
                dual = min(dual, self._relative_dual(piece, q))
            return primal, dual

        parts = np.array(self.workers.run(task))
        return -float(parts[:, 0].min()), -float(parts[:, 1].min())

    def _relative_dual(self, piece: Piece, q: Array) -> float:
        """Return min dy/y = min f/y − (1 + q) over the rows that bind."""
        change = piece.buffers[1]
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

        Products v = (z + α̃_p dz)(y + α̃_d dy) far from t w are moved to within [0.1 t w, 10 t w]; here all divided by z.
        """
        pulled = np.zeros((self.layout.blocks, self.layout.rows))
        inverse = centre / x

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                q = self.relative(piece, u)
                f, new = self.f[piece.whole], self.spare[piece.whole]
                product, other = piece.buffers[1:3]
                # y + α dy = y (1 − α (1 + q)) + α f
                np.multiply(q, -dual, out=product)
                product += 1.0 - dual
                product *= self.y[piece.whole]
                np.multiply(f, dual, out=other)
                product += other
                q *= primal
                q += 1.0
                product *= q
                aims = q
                self.centre(piece, inverse, aims)
                np.multiply(aims, _NEAREST, out=other)
                np.maximum(product, other, out=other)
                aims *= _FARTHEST
                np.minimum(other, aims, out=other)
                other -= product
                np.negative(aims, out=aims)
                np.maximum(other, aims, out=other)
                np.add(f, other, out=new)
                self.pull(piece, new, pulled)

        self.workers.run(task)
        return pulled

    def accept(self) -> None:
        """Make the corrected targets the current ones."""
        self.f, self.spare = self.spare, self.f

    def advance(self, u: Array, dual: float) -> None:
        """Move y by `dual` times dy = f − y (1 + q)."""

        def task(worker: int, batches: Iterator[slice]) -> None:
            for piece in self.pieces(worker, batches):
                q = self.relative(piece, u)
                y, other = self.y[piece.whole], piece.buffers[1]
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
