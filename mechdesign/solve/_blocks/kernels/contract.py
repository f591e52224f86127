"""The interface between a solve and an array library.

A kernel owns all large arrays: the multipliers y of the ratio rows z_st = g_st x_t − x_s, two sets of complementarity
targets (B, n, n), and the factored Hessians. A kernel processes batches of consecutive blocks. All other quantities are
NumPy vectors. Let u = dx/x be the relative steps, and let ρ_st = g_st x_t / z_st. The relative step of a slack is
computed without cancellation as

    q = dz/z = u_s + ρ_st (u_t − u_s).

A target T of complementarity (y dz + z dy = T − y z) is stored as φ = T/(y z), which gives dy/y = φ − 1 − q. Targets
are stored in single precision. This is accurate enough, because any target is valid if it does not change within a
direction. In units of y z, the centre σμ w of the path is κ = σμ w/(y z) = σμ (w/g)_st ρ_st / (x_t y_st).

Theory: block_method, Newton system in relative steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.layout import BlockLayout

BETA_MIN = 0.1
"""Gondzio's β_min: smaller products are increased to this multiple of the centre."""

BETA_MAX = 10.0
"""Gondzio's β_max: larger products are decreased towards β_max times the centre, by at most this amount."""

UNBOUNDED_TARGET = 1e30
"""Target of a pair without a bound. Its multiplier is 0, and its row never limits a step of the multipliers."""

MIN_MULTIPLIER_SHARE = 1e-3
"""Least ratio of a multiplier after a step to its previous value, if single precision makes the step too long."""

REGULARISATIONS = tuple(1e-15 * 30.0**power for power in range(9))
"""Relative regularisations of the diagonal, which are tried in this order if a matrix cannot be factored."""


class Kernel(Protocol):
    """The large arrays of a solve.

    The argument `worker` is the index of the calling thread, below `threads`, and `blocks` is a batch of blocks. A
    batch has `batch` consecutive blocks, and the last batch may have fewer. Dense kernels also accept smaller batches.
    The methods are called for each batch in the order assemble, add_floor, factor, accumulate. Only the factors are
    stored; accumulate overwrites the Hessians.

    The arguments `x` and `u` (B, n) are contiguous arrays with the points and relative steps of all blocks. Results per
    block are written or added to the rows `blocks` of the given arrays. The argument `slot`, 0 or 1, selects one of the
    two sets of targets.
    """

    LIBRARY_BYTES: ClassVar[int]
    """Memory that the library takes after its first use and compilation, in addition to its import [bytes]."""
    SPARSE: ClassVar[bool]
    """Whether the kernel stores only the pairs with bounds."""
    threads: int
    batch: int
    single_inverses: bool
    """Whether the inverses of the blocks, and so the Schur complement, are currently in single precision."""
    pairs: tuple[Integers, Integers] | None
    """The pairs (s, t) with multipliers in a sparse kernel; None in a kernel with arrays (B, n, n)."""

    def __init__(self, layout: BlockLayout, threads: int) -> None: ...

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        """Return the host memory [bytes] for each of the B n² ratio rows in a solve to this relative gap."""

    def set_precision(self, gap: float) -> bool:
        """Choose the precision for this relative gap from the next iterate on; return whether the precision changes.

        If the gap is 0, all arrays have double precision. Each kernel decides at which gaps it uses single precision.
        """

    def multipliers(self) -> Floats:
        """Return the read-only multipliers y (B, n, n), or (B, K) for the K `pairs`."""

    def export_multipliers(self) -> Floats:
        """Return all multipliers, including those of x >= 0, for `load`: (B, n, n), or (B, n + K) with `pairs`.

        The multipliers are not copied, so the kernel must not be used afterwards.
        """

    def load(self, y: Floats, mu: float) -> None:
        """Set y to an array of `export_multipliers`, which the kernel then owns; μ is the unit of stored centres."""

    def diagonals(self) -> Floats:
        """Return the read-only multipliers y_ss (B, n) of x >= 0."""

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        """Set y = μ w / z."""

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        """Build the Hessians H of the ratio rows at a new point; add Bᵀy to `adjoint` and Σ y z to `products`.

        H_st = −x_s x_t (g_st W_st + g_ts W_ts) for s ≠ t with W = y/z. Because of H·1 = x∘(Bᵀy), the diagonal is
        computed from sums of terms of one sign. Return False if rounding has made a slack zero or negative.
        """

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        """Add floor `index` to H, where y/z is `ratio` (B, k) for its rows, and `own` (B,) for w >= 0.

        The entries of `ratio` are 0 for inactive estimates.
        """

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        """Replace row and column r = root of H by `edges` (B, N), H_rr by `corners` (B,), and factor the result M.

        Return the largest relative regularisation of a diagonal, or infinity if no regularisation sufficed.
        """

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        """Add Σ count · e eᵀ ∘ P₀ to the worker's part of the Schur complement, and write P[:, r] to `columns` (B, N).

        P is the inverse of M, and P₀ is P without row and column r. Rows and columns of P₀ are in the order of the
        linking rows (`layout.link_variables`). The vectors e are the rows of `scale` (B, L).

        Each linking row has one variable of each block, so E_o Ξ P₀ Ξ E_oᵀ = e eᵀ ∘ P₀. The other terms of the inverse
        Hessian are added by `newton._sum_rank_two_terms`.
        """

    def schur(self) -> Floats:
        """Return the upper triangle of the sum (L, L) of the workers' parts, and set the parts to zero."""

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        """Replace each row b of `right` (B, N) by the solution b' of M b' = b."""

    def affine_ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least and the largest q over all blocks, or for each block in a sparse kernel."""

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: Any, adjoint: Floats) -> None:
        """Write to slot 0 the target T = σμ w − dz dy of Mehrotra's corrector for the predictor `u`.

        The predictor has dy = −y (1 + q), so φ = κ + q (1 + q). Add Bᵀ(T/z) to `adjoint`. In sparse kernels, `centre`
        may be an array (b,) with a value for each block; in other kernels, it is a float.
        """

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least q and the least dy/y for the targets in `slot`, in the form of `affine_ratio_test`.

        Values for a call of `centrality` with the same steps are stored only if `store_for_corrector` is true.
        """

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        """Apply Gondzio's centrality correction to the targets in `slot`; write them to the other slot; add Bᵀ(T/z).

        The last call of `ratio_test` must have had the same `u` and `slot`. Products π = (z + α̃_p dz)(y + α̃_d dy)
        outside [0.1 σμw, 10 σμw] are moved towards this interval. In units of y z, the change is clip(π, 0.1 κ, 10
        κ) − min(π, 20 κ).
        """

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: Any) -> None:
        """Move y by `dual` times dy for the targets in `slot`; in sparse kernels, `dual` may be an array (b,)."""

    def release(self) -> None:
        """Free the memory that only further steps need, but not y and the copy that `keep` has made."""

    def keep(self) -> Callable[[], Floats]:
        """Copy y, and return a function that reads the copy until the next call of `keep`.

        The copy may overwrite slot 1 and the results of a ratio test, so corrections are impossible afterwards.
        """
