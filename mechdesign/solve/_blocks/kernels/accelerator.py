"""The PyTorch kernel for accelerators, and the choice between this kernel and the CPU kernel.

Theory: block_arithmetic, Single precision.
"""

from __future__ import annotations

import torch

from mechdesign.base._errors import InputError, SolverError
from mechdesign.solve._blocks.kernels.torch import TorchKernel, largest_area
from mechdesign.solve._blocks.layout import BlockLayout

# Number of entries of a batch, which keeps thousands of cores busy.
_BATCH_ENTRIES = 1 << 25
# Working memory of a batch for each entry of its largest array [bytes].
_WORK_BYTES = 64
# Number of rows of a panel of a factor; substitution processes a panel in one product.
_PANEL_ROWS = 64


class AcceleratorKernel(TorchKernel):
    """A kernel that stores and processes batches of blocks on an accelerator.

    On accelerators, products of many matrices are fast, and substitution is slow. Substitution therefore proceeds by
    panels of the factors. Each panel is multiplied with the inverse of its diagonal corner, and the result is refined
    once. Without refinement, the iteration converges more slowly near the end. `entry_bytes` is the host memory, to
    which y is copied at the end. The constructor raises `SolverError` if the device has too little memory.
    """

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        return 8

    def __init__(self, layout: BlockLayout, threads: int, device: object = None) -> None:
        place, blocks, width = torch.device(str(device)), layout.blocks, layout.width
        free = _free_memory(place)
        needed = blocks * width * (
            TorchKernel.entry_bytes(layout, gap=0.0) * width + 8 * _PANEL_ROWS
        ) + _WORK_BYTES * largest_area(layout)
        if needed > free:
            raise SolverError(
                f"the block solver needs about {needed / 1e9:.1f} GB on {place} for {blocks} blocks of {layout.rows} "
                f"rows, but only {free / 1e9:.1f} GB are free. Use symmetry, fewer cells or another device"
            )
        self._spare = free - needed
        super().__init__(layout, 1, device)
        self._corners = torch.empty((blocks, width, min(width, _PANEL_ROWS)), dtype=torch.float64, device=self.device)
        self._parts = [slice(start, min(start + _PANEL_ROWS, width)) for start in range(0, width, _PANEL_ROWS)]

    def _batch_entries(self) -> int:
        return min(_BATCH_ENTRIES, self._spare // (2 * _WORK_BYTES))

    def _corner(self, blocks: slice, part: slice) -> torch.Tensor:
        """Return the inverse of a diagonal corner of the factors (b, k, k)."""
        return self._corners[blocks, part, : part.stop - part.start]

    def _keep_factors(self, blocks: slice, factors: torch.Tensor) -> None:
        super()._keep_factors(blocks, factors)
        for part in self._parts:
            corner = factors[:, part, part]
            identity = torch.eye(corner.shape[1], dtype=corner.dtype, device=self.device)
            self._corner(blocks, part).copy_(torch.linalg.solve_triangular(corner, identity, upper=False))

    def _inverses(self, blocks: slice) -> torch.Tensor:
        factors = self._factors[blocks]
        inverses = torch.zeros_like(factors)
        for part in self._parts:
            before, corner = slice(0, part.start), self._corner(blocks, part)
            inverses[:, part, before] = -corner @ (factors[:, part, before] @ inverses[:, before, before])
            inverses[:, part, part] = corner
        return inverses.mT @ inverses

    def _solutions(self, blocks: slice, right: torch.Tensor) -> torch.Tensor:
        factors = self._factors[blocks]
        for part in self._parts:
            rest = right[:, part] - factors[:, part, : part.start] @ right[:, : part.start]
            right[:, part] = _refine(factors[:, part, part], self._corner(blocks, part), rest)
        for part in reversed(self._parts):
            rest = right[:, part] - factors[:, part.stop :, part].mT @ right[:, part.stop :]
            right[:, part] = _refine(factors[:, part, part].mT, self._corner(blocks, part).mT, rest)
        return right


def _refine(matrices: torch.Tensor, inverses: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Solve systems with the given inverses and one step of iterative refinement."""
    solutions = inverses @ right
    return solutions + inverses @ (right - matrices @ solutions)


def _free_memory(device: torch.device) -> int:
    """Return the free memory of a device [bytes], including memory that PyTorch has reserved but does not use."""
    free: int = torch.cuda.mem_get_info(device)[0]
    unused: int = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + unused


def kernel_on(device: object) -> type[TorchKernel]:
    """Return the kernel for a device, or for the CPU if it is None; raise `InputError` if the device does not exist."""
    accelerators = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    name = "cpu" if device is None else str(device)
    if name == "cpu":
        return TorchKernel
    if name not in accelerators and not (name == "cuda" and accelerators):
        bound = ", ".join(["cpu", *accelerators])
        raise InputError(
            "options.extra.device", "is not a device of PyTorch on this machine", value=device, bound=bound
        )
    return AcceleratorKernel
