"""The interface between a solve and an array library.

A kernel owns all large arrays: the multipliers y of the ratio rows z_st = g_st x_t − x_s, two sets of complementarity
targets (B, n, n), and the factored Hessians. It works on batches of consecutive blocks. All other quantities are NumPy
vectors. With relative steps u = dx/x and ρ = g_st x_t / z_st the relative step of a slack is, without cancellation,

    q = dz/z = u_s + ρ_st (u_t − u_s).

A target T of complementarity (y dz + z dy = T − y z) is stored as φ = T/(y z), which gives dy/y = φ − 1 − q. Targets
have single precision: any target is valid if the same one is used throughout a direction. In the same unit the centre
of the path, t w, is κ = t w/(y z) = t (w/g)_st ρ_st / (x_t y_st).

Theory: interior_point, Newton system in relative steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.layout import BlockLayout

BETA_MIN = 0.1
"""Gondzio's β_min: products are raised to at least this multiple of the centre."""

BETA_MAX = 10.0
"""Gondzio's β_max: products are lowered to this multiple of the centre, by at most this multiple of it."""

UNBOUNDED_TARGET = 1e30
"""Target of a pair without a bound: its y is 0, and its row never limits a step of the multipliers."""

MIN_MULTIPLIER_SHARE = 1e-3
"""Least share of a multiplier that remains after a step that single precision made too long."""

REGULARISATIONS = tuple(1e-15 * 30.0**power for power in range(9))
"""Relative shifts of the diagonal of a matrix that cannot be factored; the least one that works is used."""


class Kernel(Protocol):
    """The large arrays of a solve.

    `worker` is the index of the calling thread, below `threads`; `blocks` is a batch of blocks. A batch has `batch`
    consecutive blocks, and the last one may have fewer; dense kernels also accept smaller ones. The order of calls for
    each batch is assemble, add_floor, factor, accumulate. Only the factors are kept; accumulate destroys the Hessians.

    `x` and `u` (B, n) are the point and the relative steps of all blocks, contiguous. Results per block are written or
    added to the rows `blocks` of the given arrays. `slot`, 0 or 1, selects one of the two sets of targets.
    """

    LIBRARY_BYTES: ClassVar[int]
    """Memory of the library after first use and compilation, in addition to its import [bytes]."""
    SPARSE: ClassVar[bool]
    """Whether it stores only the pairs with bounds."""
    threads: int
    batch: int
    rough: bool
    """Whether the Schur complement currently has single precision."""
    pairs: tuple[Integers, Integers] | None
    """The pairs (s, t) with multipliers in a sparse kernel; None in a kernel with arrays (B, n, n)."""

    def __init__(self, layout: BlockLayout, threads: int, device: object) -> None: ...

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        """Return the host memory for each of the B n² ratio rows, down to this relative gap [bytes]."""

    def tune(self, gap: float) -> bool:
        """Choose the precision for this relative gap, from the next iterate on; return whether it changes.

        At 0 everything has double precision. Each kernel decides at which gaps it uses less.
        """

    def multipliers(self) -> Floats:
        """Return y (B, n, n), or (B, K) for the K `pairs`; read-only."""

    def export_multipliers(self) -> Floats:
        """Return all multipliers, including those of x >= 0, for `load`: (B, n, n), or (B, n + K) with `pairs`.

        They are not copied; the kernel must not be used afterwards.
        """

    def load(self, y: Floats, mu: float) -> None:
        """Set y from an array of `export_multipliers`, and take ownership of it; μ is the unit of stored centres."""

    def diagonals(self) -> Floats:
        """Return the multipliers y_ss of x >= 0 (B, n); read-only."""

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        """Set y = μ w / z."""

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        """Build the Hessians H of the ratio rows at a new point; add Bᵀy to `adjoint` and Σ y z to `products`.

        H_st = −x_s x_t (g_st W_st + g_ts W_ts) for s ≠ t with W = y/z. Since H·1 = x∘(Bᵀy), the diagonal follows from
        sums of terms of one sign. Return False if rounding has made a slack zero or negative.
        """

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        """Add floor `index` to H: its rows have y/z = `ratio` (B, k), and w >= 0 has y/z = `own` (B,).

        `ratio` is 0 for inactive estimates.
        """

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        """Replace row and column r = root of H by `edges` (B, N), H_rr by `corners` (B,), and factor the result M.

        Return the largest relative regularisation of a diagonal; infinity if none sufficed.
        """

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        """Add Σ count · e eᵀ ∘ P₀ to the worker's part of the Schur complement; write P[:, r] to `columns` (B, N).

        P is the inverse of M, and P₀ is P without row and column r. Its rows and columns follow the order of the
        linking rows (`layout.linked`); e are the rows of `scale` (B, L).
        """

    def schur(self) -> Floats:
        """Return the sum of the workers' parts (L, L), valid in its upper triangle, and set them to zero."""

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        """Replace the rows of `right` (B, N) by the solutions of M b' = b."""

    def affine_ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least and the largest q, of all blocks together, or of each block in a sparse kernel."""

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: Any, adjoint: Floats) -> None:
        """Write to slot 0 the target T = t w − dz dy of Mehrotra's corrector for the predictor `u`.

        The predictor has dy = −y (1 + q), so that φ = κ + q (1 + q). Add Bᵀ(T/z) to `adjoint`. Sparse kernels accept
        one `centre` for all blocks or one for each (b,); other kernels accept a float.
        """

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, corrected: bool
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least q and the least dy/y of the steps `u` for the targets in `slot`, as in `affine_ratio_test`.

        Without `corrected` no call of `centrality` for the same steps follows, and nothing is stored for it.
        """

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        """Write to the other slot the targets in `slot` with Gondzio's centrality correction; add the new Bᵀ(T/z).

        `u` are the steps of the last `ratio_test` for the same targets. Products v = (z + α̃_p dz)(y + α̃_d dy) far from
        t w move to [0.1 t w, 10 t w]. In units of y z the change is clip(v, 0.1 κ, 10 κ) − min(v, 20 κ).
        """

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: Any) -> None:
        """Move y by `dual` times dy for the targets in `slot`; sparse kernels also accept one factor per block (b,)."""

    def release(self) -> None:
        """Free memory that only further steps need; y and the copy of `keep` remain."""

    def keep(self) -> Callable[[], Floats]:
        """Keep a copy of y and return a function that reads it, until the next call of `keep`.

        The copy may overwrite slot 1 and the results of a ratio test, so that no corrections are possible afterwards.
        """
