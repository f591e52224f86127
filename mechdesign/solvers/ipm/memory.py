"""How much memory a solve takes, said before it starts."""

from __future__ import annotations

import os

from mechdesign.solvers.ipm.kernel import Kernel
from mechdesign.solvers.ipm.layout import Layout

__all__ = ["COPIED", "available", "needed", "resident"]

COPIED = 4_000_000
"""Up to so many ratio rows the multipliers of the best bound are copied; of more, once the gap is small, kept."""

# What a kernel's library takes once it is used, and has compiled, beyond importing it.
_LIBRARY = {"kernel_numba": 95_000_000, "kernel_torch": 200_000_000, "kernel_accelerator": 200_000_000}
_INTERPRETER = 120_000_000
# The part of all multipliers that proves the bound, at most: 13 % at 144 cells, 8 % at 300, 6 % from 500 to 1,024.
_SHARE, _FALL, _LARGEST_SHARE, _LEAST_SHARE = 4.5, -0.7, 0.3, 0.062
# Bytes for each of these: in one block, unfolded with what computing the bound takes, and for certifying afterwards.
_FOLDED, _UNFOLDED, _CERTIFIED = 16, 60, 175


def needed(layout: Layout, workers: int, kernel: type[Kernel]) -> int:
    """Estimate the peak of the process in bytes, the certificate that follows included; rather more than less.

    The solve's large arrays are gone when the multipliers are certified, which takes as much where symmetry makes them
    small.
    """
    rows, columns = layout.rows, layout.program.columns
    entries = layout.blocks * layout.width**2
    large = kernel.ENTRY_BYTES * entries + (8 * entries if layout.blocks * rows**2 <= COPIED else 0)
    links = (4 + 2 * workers) * layout.links**2
    small = 8 * (links + 6 * rows**2 + 24 * rows * columns)
    kept = min(_LARGEST_SHARE, max(_LEAST_SHARE, _SHARE * rows**_FALL)) * rows**2 * columns
    folded = _FOLDED * kept * layout.blocks / columns
    base = max(_INTERPRETER, resident()) + _LIBRARY.get(kernel.__module__.rpartition(".")[2], 0)
    return int(base + max(large + small + folded + _UNFOLDED * kept, _CERTIFIED * kept))


def resident() -> int:
    """Return the bytes that this process holds now, 0 where the system does not say so."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def available() -> int | None:
    """Return the bytes that can still be had without swapping, where the system says so."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
