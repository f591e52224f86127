"""Passes over the ratio rows z_st = g_st x_t − x_s of all blocks, shared among the workers.

The multipliers y (B, n, n) are too large to be copied at every iteration. The multipliers are the only values that are
modified in place. The multipliers belong to the newest iterate; access through an older iterate raises an error.

Theory: block_method, One iteration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.parallel import Workers


class RatioRows:
    """The ratio rows, with a kernel that stores all arrays of their size.

    The arguments `x` and `u` (B, n) of the methods are contiguous arrays with the points and relative steps of all
    blocks. `moves` counts the updates of y, and equals the number of the iterate to which y belongs.
    """

    def __init__(self, layout: BlockLayout, workers: Workers, kernel: Kernel) -> None:
        self.layout, self.workers, self.kernel = layout, workers, kernel
        self.moves = 0

    @property
    def y(self) -> Floats:
        """The read-only multipliers of the newest iterate: (B, n, n) for dense blocks, or (B, K) for sparse blocks."""
        return self.kernel.multipliers()

    def require_newest(self, number: int) -> None:
        """Raise an error if the iterate is not the newest, because older iterates have no multipliers."""
        if number != self.moves:
            raise RuntimeError(
                f"the ratio rows belong to iterate {self.moves}; iterate {number} no longer has multipliers"
            )

    def keep(self, *, spare: bool) -> Callable[[], Floats]:
        """Return a function that returns the current y, even after later updates.

        The function refers to a copy of y. With `spare`, the copy overwrites the memory for centrality corrections if
        the kernel has such memory. After `keep` with `spare`, no centrality correction is allowed.
        """
        if spare or self.kernel.SPARSE:
            return self.kernel.keep()
        copy = self.y.copy()
        return lambda: copy

    def start(self, x: Floats, mu: float) -> None:
        """Set y = μ w / z for the first iterate. If the pass is interrupted, the multipliers remain undefined."""
        self.workers.run(lambda worker, blocks: self.kernel.start(worker, blocks, x, mu))
        self.moves = 0

    def resume(self, y: Floats, mu: float) -> None:
        """Set y to the multipliers of a state."""
        self.kernel.load(y, mu)
        self.moves = 0

    def affine_ratio_test(self, x: Floats, u: Floats) -> tuple[float, float]:
        """Return max −dz/z = max −q, and max −dy/y = max 1 + q for the target 0."""
        parts = self.workers.run(lambda worker, blocks: self.kernel.affine_ratio_test(worker, blocks, x, u))
        low, high = (np.concatenate([np.atleast_1d(part) for part in some]) for some in zip(*parts, strict=True))
        return -float(low.min()), 1.0 + float(high.max())

    def mehrotra(self, x: Floats, u: Floats, centre: float) -> Floats:
        """Write the targets T = σμ w − dz dy of Mehrotra's corrector to slot 0; return Bᵀ(T/z) (B, n)."""
        adjoint = np.zeros(x.shape)
        self.workers.run(lambda worker, blocks: self.kernel.mehrotra(worker, blocks, x, u, centre, adjoint))
        return adjoint

    def ratio_test(self, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool) -> tuple[float, float]:
        """Return the smallest dz/z and dy/y for the targets in `slot`.

        If `store_for_corrector` is true, a call of `centrality` with the same steps may follow.
        """
        parts = self.workers.run(
            lambda worker, blocks: self.kernel.ratio_test(
                worker, blocks, x, u, slot, store_for_corrector=store_for_corrector
            )
        )
        primal, dual = (np.concatenate([np.atleast_1d(part) for part in some]) for some in zip(*parts, strict=True))
        return float(primal.min()), float(dual.min())

    def centrality(self, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float) -> Floats:
        """Write Gondzio's correction of the targets in `slot`, for steps `primal` and `dual`, to the other slot.

        The last call of `ratio_test` must have had the same `u` and `slot`. Return Bᵀ(T/z) of the new targets (B, n).
        """
        adjoint = np.zeros(x.shape)
        self.workers.run(
            lambda worker, blocks: self.kernel.centrality(worker, blocks, x, u, slot, primal, dual, centre, adjoint)
        )
        return adjoint

    def advance(self, x: Floats, u: Floats, slot: int, dual: float) -> None:
        """Move y by `dual` times dy, for the targets in `slot`; y then belongs to the next iterate.

        This pass is always completed, because a mixture of multipliers of two iterates would prove only a weak bound.
        """
        self.workers.run(lambda worker, blocks: self.kernel.advance(worker, blocks, x, u, slot, dual), whole=True)
        self.moves += 1
