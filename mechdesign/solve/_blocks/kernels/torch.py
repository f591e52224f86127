"""The kernel on PyTorch, which processes whole batches of blocks on the CPU; `accelerator.py` extends it.

All arrays except vectors stay on the device; vectors are transferred once for each batch. As in the NumPy kernel,
four arrays have single precision: ρ, κ for the centre μ₀, q of the last direction, and the targets. The multipliers and
the Hessians have double precision.

Theory: block_arithmetic, Single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.kernels.contract import (
    BETA_MAX,
    BETA_MIN,
    MIN_MULTIPLIER_SHARE,
    REGULARISATIONS,
    UNBOUNDED_TARGET,
)
from mechdesign.solve._blocks.layout import BlockLayout

# Number of entries of a batch, the unit of work of a thread.
_BATCH_ENTRIES = 100_000


class TorchKernel:
    """Batches of blocks as tensors on the CPU, for several callers that use one PyTorch thread each."""

    LIBRARY_BYTES: ClassVar[int] = 200_000_000

    SPARSE: ClassVar[bool] = False
    single_inverses = False
    pairs = None

    def __init__(self, layout: BlockLayout, threads: int, device: object = None) -> None:
        self.layout, self.threads, self.device = layout, threads, torch.device(str(device or "cpu"))
        blocks, n, width = layout.blocks, layout.rows, layout.width
        share = -(-blocks // (4 * threads)) if threads > 1 else blocks
        self.batch = max(1, min(share, self._batch_entries() // largest_area(layout)))
        self._ratios, self._weight_per_ratio = (
            self._constant(layout.ratios),
            self._constant(layout.weights / layout.ratios),
        )
        self._errors = [self._constant(error) for error in layout.errors]
        self._linked = self._constant(layout.link_variables)
        self._free = None if layout.free is None else self._constant(layout.free)
        single = {"dtype": torch.float32, "device": self.device}
        double = {"dtype": torch.float64, "device": self.device}
        self._y = torch.empty((blocks, n, n), **double)
        self._factors = torch.empty((blocks, width, width), **double)
        self._schur = torch.zeros((threads, layout.links, layout.links), **double)
        self._rho = torch.empty((blocks, n, n), **single)
        self._kappa = torch.empty((blocks, n, n), **single)
        # The first set of targets, q of the last ratio test, and the second set of targets. The last two arrays
        # together have the size of y. All arrays start at even offsets.
        size = blocks * n * n
        self._pool = torch.empty((3, size + size % 2), **single)
        self._singles = [part[:size].view(blocks, n, n) for part in self._pool]
        self._q = self._singles[1]
        self._unit = 1.0
        self._work = torch.empty((threads, 3, self.batch * n * n), **double)

    def _batch_entries(self) -> int:
        return _BATCH_ENTRIES

    def _constant(self, array: npt.NDArray[np.generic]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _send(self, *parts: Floats) -> tuple[torch.Tensor, ...]:
        """Copy several arrays with b rows to the device in one transfer."""
        whole = torch.from_numpy(np.concatenate(parts, axis=1)).to(self.device)
        split: tuple[torch.Tensor, ...] = whole.split([part.shape[1] for part in parts], dim=1)
        return split

    def _doubles(self, worker: int, blocks: slice) -> list[torch.Tensor]:
        n, count = self.layout.rows, blocks.stop - blocks.start
        return [buffer[: count * n * n].view(count, n, n) for buffer in self._work[worker]]

    def _halves(self, worker: int, blocks: slice) -> list[torch.Tensor]:
        """Return the worker's buffers as single-precision arrays."""
        n, count = self.layout.rows, blocks.stop - blocks.start
        return [buffer.view(torch.float32)[: count * n * n].view(count, n, n) for buffer in self._work[worker]]

    def _targets(self, slot: int) -> torch.Tensor:
        return self._singles[2 * slot]

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        return 36

    def release(self) -> None:
        self._factors = self._factors[:0].clone()

    def set_precision(self, gap: float) -> bool:
        return False

    def multipliers(self) -> Floats:
        y: Floats = self._y.cpu().numpy()
        return y

    def diagonals(self) -> Floats:
        diagonals: Floats = self._y.diagonal(dim1=1, dim2=2).cpu().numpy()
        return diagonals

    def keep(self) -> Callable[[], Floats]:
        kept = self._pool[1:].reshape(-1).view(torch.float64)[: self._y.numel()].view(self._y.shape)
        kept.copy_(self._y)

        def read() -> Floats:
            y: Floats = kept.cpu().numpy()
            return y

        return read

    def _growth(self, worker: int, blocks: slice, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ρ and z, which are stored in the first two buffers."""
        rho, z, _ = self._doubles(worker, blocks)
        torch.mul(self._ratios, x[:, None, :], out=rho)
        torch.sub(rho, x[:, :, None], out=z)
        return rho.div_(z), z

    def _adjoint(self, worker: int, blocks: slice, values: torch.Tensor) -> torch.Tensor:
        """Return Bᵀ values (b, n), with (Bᵀ y)_t = Σ_s g_st y_st − Σ_r y_tr; the second buffer is overwritten."""
        scaled = self._doubles(worker, blocks)[1]
        torch.mul(values, self._ratios, out=scaled)
        return scaled.sum(dim=1).sub_(values.sum(dim=2))

    def _add_adjoint_of_targets(self, worker: int, blocks: slice, targets: torch.Tensor, adjoint: Floats) -> None:
        if self._free is not None:
            targets.masked_fill_(self._free, UNBOUNDED_TARGET)
        values = self._doubles(worker, blocks)[2]
        torch.mul(self._y[blocks], targets, out=values)
        adjoint[blocks] += self._adjoint(worker, blocks, values).cpu().numpy()

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        self._unit = mu
        (points,) = self._send(x[blocks])
        rho, _ = self._growth(worker, blocks, points)
        y = self._y[blocks]
        torch.mul(rho, self._weight_per_ratio, out=y)
        y.mul_((mu / points)[:, None, :])

    def export_multipliers(self) -> Floats:
        return self.multipliers()

    def load(self, y: Floats, mu: float) -> None:
        self._unit = mu
        self._y.copy_(torch.from_numpy(y))

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        n = self.layout.rows
        (points,) = self._send(x[blocks])
        rho, z = self._growth(worker, blocks, points)
        y, other = self._y[blocks], self._doubles(worker, blocks)[2]
        torch.mul(y, z, out=other)
        least, total = z.amin(dim=(1, 2)), other.sum(dim=(1, 2))
        # −g x_s x_t W = −y ρ x_s
        torch.mul(y, rho, out=other)
        other.mul_(-points[:, :, None])
        sums = self._adjoint(worker, blocks, y)
        hessian = self._factors[blocks, :n, :n]
        # H·1 = x∘(Bᵀy)
        diagonal = points * sums - other.sum(dim=1) - other.sum(dim=2) + 2 * other.diagonal(dim1=1, dim2=2)
        torch.add(other, other.mT, out=hessian)
        hessian.diagonal(dim1=1, dim2=2).copy_(diagonal)
        self._rho[blocks] = rho
        rho.mul_(self._weight_per_ratio).mul_((self._unit / points)[:, None, :]).div_(y)
        if self._free is not None:
            rho.masked_fill_(self._free, 0.0)
        self._kappa[blocks] = rho
        results = torch.cat([sums, total[:, None], least[:, None]], dim=1).cpu().numpy()
        adjoint[blocks] += results[:, :n]
        products[blocks] += results[:, n]
        return bool(results[:, -1].min() > 0)

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        error, part, n = self._errors[index], self.layout.rows + index, self.layout.rows
        inner, outer, weights, ends = self._send(
            points[blocks, :n], points[blocks, part, None], ratio[blocks], own[blocks, None]
        )
        matrices = self._factors[blocks]
        if index == 0:
            matrices[:, n:, :] = 0.0
            matrices[:, :, n:] = 0.0
        edge = (weights @ error).mul_(inner).mul_(-outer)
        matrices[:, part, :n] = matrices[:, :n, part] = edge
        matrices[:, part, part] = (outer**2 * (weights.sum(dim=1, keepdim=True) + ends))[:, 0]
        weighted = (error * inner[:, None, :]).mul_(weights.sqrt()[:, :, None])
        matrices[:, :n, :n] += weighted.mT @ weighted

    def factor(self, worker: int, blocks: slice, roots: Integers, edges: Floats, corners: Floats) -> float:
        matrices = self._factors[blocks]
        index = torch.arange(matrices.shape[0], device=self.device)
        mine = self._constant(roots[blocks])
        edge, corner = self._send(edges[blocks], corners[blocks, None])
        matrices[index, mine, :] = matrices[index, :, mine] = edge
        matrices[index, mine, mine] = corner[:, 0]
        factors, failed = torch.linalg.cholesky_ex(matrices)
        largest = 0.0
        for delta in REGULARISATIONS:
            if not failed.any():
                break
            largest, again = delta, failed.nonzero()[:, 0]
            higher = matrices[again]
            higher.diagonal(dim1=1, dim2=2).mul_(1.0 + delta)
            factors[again], failed[again] = torch.linalg.cholesky_ex(higher)
        self._keep_factors(blocks, factors)
        return np.inf if failed.any() else largest

    def _keep_factors(self, blocks: slice, factors: torch.Tensor) -> None:
        self._factors[blocks] = factors

    def _inverses(self, blocks: slice) -> torch.Tensor:
        inverses: torch.Tensor = torch.cholesky_inverse(self._factors[blocks])
        return inverses

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        inverses = self._inverses(blocks)
        index = torch.arange(inverses.shape[0], device=self.device)
        mine = self._constant(roots[blocks])
        columns[blocks] = inverses[index, :, mine].cpu().numpy()
        inverses[index, mine, :] = 0.0
        inverses[index, :, mine] = 0.0
        if self.layout.members:
            inverses = inverses[:, self._linked[:, None], self._linked]
        left, right = self._send(counts[blocks, None] * scale[blocks], scale[blocks])
        self._schur[worker] += inverses.mul_(left[:, :, None]).mul_(right[:, None, :]).sum(dim=0)

    def schur(self) -> Floats:
        total: Floats = self._schur.sum(dim=0).cpu().numpy()
        self._schur.zero_()
        return total

    def solve(self, worker: int, blocks: slice, right: Floats) -> None:
        (steps,) = self._send(right[blocks])
        right[blocks] = self._solutions(blocks, steps[:, :, None])[:, :, 0].cpu().numpy()

    def _solutions(self, blocks: slice, right: torch.Tensor) -> torch.Tensor:
        """Return the solutions for right-hand sides (b, N, 1), which may be overwritten."""
        factors = self._factors[blocks]
        inner = torch.linalg.solve_triangular(factors, right, upper=False)
        solutions: torch.Tensor = torch.linalg.solve_triangular(factors.mT, inner, upper=True)
        return solutions

    def _relative(self, worker: int, blocks: slice, u: Floats) -> torch.Tensor:
        """Return q in single precision, computed from differences of u in double precision."""
        (steps,) = self._send(u[blocks])
        q = self._halves(worker, blocks)[0]
        torch.sub(steps[:, None, :], steps[:, :, None], out=q)
        return q.mul_(self._rho[blocks]).add_(steps.float()[:, :, None])

    def affine_ratio_test(self, worker: int, blocks: slice, x: Floats, u: Floats) -> tuple[float, float]:
        low, high = torch.stack(torch.aminmax(self._relative(worker, blocks, u))).tolist()
        return low, high

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: float, adjoint: Floats) -> None:
        q, phi, product = self._relative(worker, blocks, u), self._targets(0)[blocks], self._halves(worker, blocks)[1]
        torch.add(q, 1.0, out=product)
        product.mul_(q)
        torch.add(product, self._kappa[blocks], alpha=centre / self._unit, out=phi)
        self._add_adjoint_of_targets(worker, blocks, phi, adjoint)

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool
    ) -> tuple[float, float]:
        q = self._relative(worker, blocks, u)
        if store_for_corrector:
            self._q[blocks] = q
        least = q.amin()
        primal, dual = torch.stack([least, torch.sub(self._targets(slot)[blocks], q, out=q).amin()]).tolist()
        return primal, dual - 1.0

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        q, phi, other = self._q[blocks], self._targets(slot)[blocks], self._targets(1 - slot)[blocks]
        product, bound, clipped = self._halves(worker, blocks)
        # v/(y z) = (1 + α̃_p q) (1 + α̃_d (φ − 1 − q))
        torch.sub(phi, q, out=product)
        product.mul_(dual).add_(1.0 - dual)
        torch.mul(q, primal, out=bound)
        product.mul_(bound.add_(1.0))
        torch.mul(self._kappa[blocks], BETA_MAX * centre / self._unit, out=bound)
        torch.mul(bound, BETA_MIN / BETA_MAX, out=clipped)
        torch.maximum(product, clipped, out=clipped)
        torch.minimum(clipped, bound, out=clipped)
        torch.minimum(product, bound.mul_(2.0), out=product)
        torch.add(phi, clipped.sub_(product), out=other)
        self._add_adjoint_of_targets(worker, blocks, other, adjoint)

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: float) -> None:
        points, steps = self._send(x[blocks], u[blocks])
        change, other = self._growth(worker, blocks, points)
        torch.sub(steps[:, None, :], steps[:, :, None], out=other)
        change.mul_(other).add_(steps[:, :, None])
        # The new y is y (1 + α (φ − 1 − q)), which remains positive even if single precision makes the step too long.
        torch.sub(self._targets(slot)[blocks], change, out=change)
        change.mul_(dual).add_(1.0 - dual).clamp_(min=MIN_MULTIPLIER_SHARE)
        self._y[blocks].mul_(change)


def largest_area(layout: BlockLayout) -> int:
    """Return the number of entries of the largest array for one block."""
    largest: int = max(layout.links**2, *(layout.width * error.shape[0] for error in layout.errors), 1)
    return largest
