"""What a solve asks of the array library behind it.

A kernel owns all large arrays: the multipliers y of the ratio rows z_st = g_st x_t − x_s and two sets of
complementarity targets (B, n, n), and the factored Hessians. It does all work on them, a batch of consecutive blocks at
a time. Everything else is vectors, NumPy's. With relative steps u = dx/x and ρ = g_st x_t / z_st the relative step of a
slack is, without cancellation,

    q = dz/z = u_s + ρ_st (u_t − u_s),

and a target T of complementarity (y dz + z dy = T − y z), kept as φ = T/(y z), gives dy/y = φ − 1 − q. Targets are kept
in single precision: any target will do, as long as the same is used throughout a direction. In the same unit the centre
of the path, t w, is κ = t w/(y z) = t (w/g)_st ρ_st / (x_t y_st).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.layout import BlockLayout

NEAREST, FARTHEST = 0.1, 10.0
"""Gondzio's β_min and β_max: products are moved to within these factors of the centre, none lowered by more than the
second."""

NEVER = 1e30
"""The target of a pair without a bound, whose y is 0: its row then limits no step of the multipliers."""

LEAST_SHARE = 1e-3
"""What a step leaves of a multiplier at least, where single precision has let it be too long."""

REGULARISATIONS = tuple(1e-15 * 30.0**power for power in range(9))
"""Factors by which the diagonal of a matrix that cannot be factored is raised, relative to itself; the least that works
is taken."""


class Kernel(Protocol):
    """The large arrays of a solve. `worker` says which of `threads` callers asks; `blocks` is a batch of blocks.

    Batches are `batch` consecutive blocks each, the last one fewer; dense kernels take smaller ones, too. Who assembles
    one adds its floors, factors and accumulates it before the next: only the factors of all blocks are kept, and
    accumulating destroys the Hessians.

    `x` and `u` (B, n) are the point and the relative steps of all blocks, contiguous; results per block are written to,
    or added to, the rows `blocks` of the arrays given. `slot`, 0 or 1, says which of the two sets of targets is meant.
    """

    LIBRARY_BYTES: ClassVar[int]
    """Bytes that the library takes once it is used, and has compiled, beyond importing it."""
    SPARSE: ClassVar[bool]
    """Whether it keeps the pairs with bounds alone."""
    threads: int
    batch: int
    rough: bool
    """Whether the Schur complement is summed up in single precision now."""
    pairs: tuple[Integers, Integers] | None
    """The pairs (s, t) that have multipliers, in a kernel that keeps no others; None in one that keeps (B, n, n)."""

    def __init__(self, layout: BlockLayout, threads: int, device: object) -> None: ...

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        """Return the bytes of the host's memory for each of the B n² ratio rows, down to this relative gap."""

    def tune(self, gap: float) -> bool:
        """Choose how precisely to compute at this relative gap, from the next iterate on; return whether that changes.

        With 0 all is done in double precision. How large a gap allows less is the kernel's own affair.
        """

    def multipliers(self) -> Floats:
        """Return y (B, n, n), or (B, K) of the K `pairs`, to read."""

    def saved(self) -> Floats:
        """Return all multipliers, those of x >= 0 too, as `load` takes them: (B, n, n), or (B, n + K) with `pairs`.

        They are not copied: the kernel is done with.
        """

    def load(self, y: Floats, mu: float) -> None:
        """Set y, as `saved` has returned it, and take it over; μ is the unit in which centres are kept."""

    def diagonals(self) -> Floats:
        """Return the multipliers y_ss of x >= 0 (B, n), to read."""

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        """Set y = μ w / z."""

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        """Build the Hessians H of the ratio rows at a new point, add Bᵀy to `adjoint` and Σ y z to `products`.

        H_st = −x_s x_t (g_st W_st + g_ts W_ts) for s ≠ t, W = y/z, and since H·1 = x∘(Bᵀy) the diagonal follows from
        sums of terms of one sign. Return False when rounding has left a slack that is not positive.
        """

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        """Add floor `index` to H: its rows have y/z = `ratio` (B, k), its part w has y/z = `own` (B,).

        Where an estimate does not take part, `ratio` is 0.
        """

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        """Replace row and column r = root of H by `edges` (B, N), H_rr by `corners` (B,), and factor the result M.

        Return the largest regularisation that it took, relative to the diagonal; infinity when none sufficed.
        """

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        """Add Σ count · e eᵀ ∘ P₀ to the worker's part of the Schur complement; write P[:, r] to `columns` (B, N).

        P is the inverse of M and P₀ is P without row and column r, its rows and columns taken as the linking rows want
        them (`layout.linked`); e are the rows of `scale` (B, L).
        """

    def schur(self) -> Floats:
        """Return the sum of the workers' parts (L, L), its upper triangle valid, and set them to zero."""

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        """Replace the rows of `right` (B, N) by the solutions of M b' = b."""

    def affine_ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least and the largest q, of all blocks together or, in a sparse kernel, of each."""

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: Any, adjoint: Floats) -> None:
        """Write to slot 0 the target T = t w − dz dy of Mehrotra's corrector for the predictor `u`.

        The predictor has dy = −y (1 + q), so φ = κ + q (1 + q). Add Bᵀ(T/z) to `adjoint`. A sparse kernel takes one
        `centre` for all blocks or one for each (b,); the others take a float.
        """

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, corrected: bool
    ) -> tuple[Floats | float, Floats | float]:
        """Return the least q and the least dy/y of the steps `u`, for the targets in `slot`, as the affine one does.

        Unless `corrected` no call of `centrality` for the same steps follows, and nothing is stored for it.
        """

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        """Write to the other slot the targets in `slot` with Gondzio's centrality correction; add Bᵀ(T/z) of the new.

        `u` are the steps that `ratio_test` saw last, for the same targets. Products v = (z + α̃_p dz)(y + α̃_d dy) far
        from t w are moved to within [0.1 t w, 10 t w], here all in units of y z: the change is
        clip(v, 0.1 κ, 10 κ) − min(v, 20 κ).
        """

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: Any) -> None:
        """Move y by `dual` times dy, for the targets in `slot`; a sparse kernel also takes one for each block (b,)."""

    def release(self) -> None:
        """Free what only further steps would need; y and what `keep` has kept stay."""

    def keep(self) -> Callable[[], Floats]:
        """Keep a copy of y and return a function that reads it, until `keep` is called again.

        The copy may lie where slot 1 and the results of a ratio test are: no corrections after this.
        """
