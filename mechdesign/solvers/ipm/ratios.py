"""Passes over the ratio rows z_st = g_st x_t − x_s of all blocks, shared among the workers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.kernel import FARTHEST, NEAREST, Kernel
from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.parallel import Workers

__all__ = ["PairRows", "recentred"]

Array = npt.NDArray[np.float64]


def recentred(product: Array, centre: Array) -> Array:
    """Return by how much a centrality correction changes products v: clip(v, 0.1 c, 10 c) − v, not below −10 c."""
    aim = np.minimum(np.maximum(product, NEAREST * centre), FARTHEST * centre)
    return aim - np.minimum(product, 2 * FARTHEST * centre)


class PairRows:
    """The ratio rows at the point `x` (B, n): their multipliers, the targets of the current direction, in a kernel."""

    def __init__(self, layout: Layout, workers: Workers, kernel: Kernel) -> None:
        self.layout, self.workers, self.kernel = layout, workers, kernel
        self.x = np.empty((layout.blocks, layout.rows))

    @property
    def y(self) -> Array:
        """The multipliers (B, n, n)."""
        return self.kernel.multipliers()

    @property
    def diagonals(self) -> Array:
        """The multipliers of x >= 0 (B, n)."""
        return self.kernel.diagonals()

    def start(self, x: Array, mu: float) -> None:
        """Set y = μ w / z."""
        self.workers.run(lambda worker, blocks: self.kernel.start(worker, blocks, x, mu))

    def predict(self, u: Array) -> tuple[float, float]:
        """Return max −dz/z = max −q and, for the target 0, max −dy/y = max 1 + q."""
        parts = self.workers.run(lambda worker, blocks: self.kernel.predict(worker, blocks, self.x, u))
        return -min(low for low, _ in parts), 1.0 + max(high for _, high in parts)

    def aim(self, u: Array, centre: float) -> Array:
        """Set the target T = t w − dz dy of Mehrotra's corrector for the predictor `u`; return Bᵀ(T/z) (B, n)."""
        pulled = np.zeros((self.layout.blocks, self.layout.rows))
        self.workers.run(lambda worker, blocks: self.kernel.aim(worker, blocks, self.x, u, centre, pulled))
        return pulled

    def ratios(self, u: Array) -> tuple[float, float]:
        """Return max −dz/z and max −dy/y for the current targets and the relative steps `u`."""
        parts = self.workers.run(lambda worker, blocks: self.kernel.ratios(worker, blocks, self.x, u))
        return -min(primal for primal, _ in parts), -min(dual for _, dual in parts)

    def recentre(self, u: Array, primal: float, dual: float, centre: float) -> Array:
        """Write the other targets: the current ones, changed by a centrality correction (Gondzio) for `primal`, `dual`.

        `u` are the steps that `ratios` saw last, for the current targets. Return Bᵀ(T/z) of the new ones (B, n).
        """
        pulled = np.zeros((self.layout.blocks, self.layout.rows))
        self.workers.run(
            lambda worker, blocks: self.kernel.recentre(worker, blocks, self.x, u, primal, dual, centre, pulled)
        )
        return pulled

    def accept(self) -> None:
        """Exchange the current targets and the others."""
        self.kernel.accept()

    def advance(self, u: Array, dual: float) -> None:
        """Move y by `dual` times dy, for the steps `u` and the current targets."""
        self.workers.run(lambda worker, blocks: self.kernel.advance(worker, blocks, self.x, u, dual))

    def keep(self) -> None:
        """Remember y, in the memory that corrections would use: there are none after this."""
        self.kernel.keep()

    def restore(self) -> None:
        """Return to the y that was kept."""
        self.kernel.restore()
