"""What a solve asks of the array library behind it: one protocol, and the choice among those that implement it.

A kernel owns all arrays of shape (B, n, n) — the multipliers y of the ratio rows z_st = g_st x_t − x_s, the targets of
the current direction, the factored Hessians — and does all work on them, a batch of consecutive blocks at a time.
Everything else is vectors, NumPy's. With relative steps u = dx/x and ρ = g_st x_t / z_st the relative step of a slack
is, without cancellation,

    q = dz/z = u_s + ρ_st (u_t − u_s),

and a target T of complementarity (y dz + z dy = T − y z), kept as φ = T/(y z), gives dy/y = φ − 1 − q. Targets are kept
in single precision: any target will do, as long as the same is used throughout a direction. In the same unit the centre
of the path, t w, is κ = t w/(y z) = t (w/g)_st ρ_st / (x_t y_st).
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from mechdesign.errors import InputError, MissingDependencyError
from mechdesign.solvers.ipm.layout import Layout

__all__ = ["FARTHEST", "LEAST_SHARE", "NEAREST", "NEVER", "RAISES", "Kernel", "choose"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NEAREST, FARTHEST = 0.1, 10.0
"""A correction moves products to within these factors of the centre, lowering none by more than the second."""

NEVER = 1e30
"""The target of a pair without a bound, whose y is 0: its row then limits no step of the multipliers."""

LEAST_SHARE = 1e-3
"""What a step leaves of a multiplier at least, where single precision has let it be too long."""

RAISES = tuple(1e-15 * 30.0**power for power in range(9))
"""By how much, relative to itself, the diagonal of a matrix that cannot be factored is raised: the least that works."""

# From so many ratio rows on it pays to import Numba, if it is there: half a second once, then half of the time.
_WORTH_IMPORTING = 250_000
_EXTRAS = {"numba": "fast", "torch": "torch"}
_MODULES = {"torch": "accelerator"}


class Kernel(Protocol):
    """The large arrays of a solve. `worker` says which of `threads` callers asks; `blocks` is a batch of blocks.

    `x` and `u` (B, n) are the point and the relative steps of all blocks, contiguous; results per block are written to,
    or added to, the rows `blocks` of the arrays given.
    """

    ENTRY_BYTES: ClassVar[int]
    """Bytes of the host's memory for each of the B n² ratio rows."""
    threads: int
    batch: int

    def __init__(self, layout: Layout, threads: int, device: object) -> None: ...

    def multipliers(self) -> Array:
        """Return y (B, n, n), to read."""

    def diagonals(self) -> Array:
        """Return the multipliers y_ss of x >= 0 (B, n), to read."""

    def start(self, worker: int, blocks: slice, x: Array, mu: float) -> None:
        """Set y = μ w / z."""

    def assemble(self, worker: int, blocks: slice, x: Array, pulled: Array, products: Array) -> bool:
        """Build the Hessians H of the ratio rows at a new point, add Bᵀy to `pulled` and Σ y z to `products`.

        H_st = −x_s x_t (g_st W_st + g_ts W_ts) for s ≠ t, W = y/z, and since H·1 = x∘(Bᵀy) the diagonal follows from
        sums of terms of one sign. Return False when rounding has left a slack that is not positive.
        """

    def add_floor(self, worker: int, blocks: slice, index: int, points: Array, ratio: Array, own: Array) -> None:
        """Add floor `index` to H: its rows have y/z = `ratio` (B, k), its part w has y/z = `own` (B,)."""

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Array, corners: Array) -> float:
        """Replace row and column r = root of H by `edges` (B, N), H_rr by `corners` (B,), and factor the result M.

        Return the largest relative change of a diagonal that it took, infinity when none sufficed.
        """

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Array, counts: Array, columns: Array
    ) -> None:
        """Add Σ count · e eᵀ ∘ P₀ to the worker's part of the Schur complement; write P[:, r] to `columns` (B, N).

        P is the inverse of M and P₀ is P without row and column r, its rows and columns taken as the linking rows want
        them (`layout.linked`); e are the rows of `scale` (B, L).
        """

    def schur(self) -> Array:
        """Return the sum of the workers' parts (L, L), its upper triangle valid, and set them to zero."""

    def solve(self, worker: int, blocks: slice, right: Array) -> None:
        """Replace the rows of `right` (B, N) by the solutions of M b' = b."""

    def predict(self, worker: int, blocks: slice, x: Array, u: Array) -> tuple[float, float]:
        """Return the least and the largest q."""

    def aim(self, worker: int, blocks: slice, x: Array, u: Array, centre: float, pulled: Array) -> None:
        """Set T = t w − dz dy of Mehrotra's corrector for the predictor `u`; add Bᵀ(T/z) to `pulled`.

        The predictor has dy = −y (1 + q), so φ = κ + q (1 + q).
        """

    def ratios(self, worker: int, blocks: slice, x: Array, u: Array) -> tuple[float, float]:
        """Return the least q and the least dy/y of the steps `u`."""

    def recentre(
        self, worker: int, blocks: slice, x: Array, u: Array, primal: float, dual: float, centre: float, pulled: Array
    ) -> None:
        """Set the other targets: the current ones with a centrality correction (Gondzio); add Bᵀ(T/z) of the new.

        `u` are the steps that `ratios` saw last. Products v = (z + α̃_p dz)(y + α̃_d dy) far from t w are moved to within
        [0.1 t w, 10 t w], here all in units of y z: the change is clip(v, 0.1 κ, 10 κ) − min(v, 20 κ).
        """

    def accept(self) -> None:
        """Exchange the current targets and the others."""

    def advance(self, worker: int, blocks: slice, x: Array, u: Array, dual: float) -> None:
        """Move y by `dual` times dy."""

    def keep(self) -> None:
        """Remember y, from here on without corrections: the memory of the other targets may hold it."""

    def restore(self) -> None:
        """Return to the y that was kept."""


def choose(name: object, device: object, rows: int) -> type[Kernel]:
    """Return the kernel called `name`; without a name PyTorch's for a device, Numba's where it pays, else NumPy's.

    Raises InputError for a name that is not known or a device that is not the library's, MissingDependencyError for a
    library that is not installed.
    """
    known = "numpy, numba, torch"
    if name is None and device in (None, "cpu"):
        pays = "numba" in sys.modules or rows >= _WORTH_IMPORTING
        name = "numba" if pays and importlib.util.find_spec("numba") else "numpy"
    elif name is None:
        name = "torch"
    if not isinstance(name, str) or name not in known.split(", "):
        raise InputError("options.extra.arrays", "is not known to the block solver", value=name, bound=known)
    if name != "torch" and device not in (None, "cpu"):
        raise InputError("options.extra.device", f"is not where {name} computes", value=device, bound="cpu")
    extra = _EXTRAS.get(name)
    if extra is not None and importlib.util.find_spec(name) is None:
        raise MissingDependencyError(f"options.extra.arrays: {name} is missing; pip install 'mechdesign[{extra}]'")
    module: Any = importlib.import_module(f"mechdesign.solvers.ipm.kernel_{_MODULES.get(name, name)}")
    kernel: type[Kernel] = module.kernel_on(device) if name == "torch" else module.KERNEL
    return kernel
