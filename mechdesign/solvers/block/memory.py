"""How much memory a solve takes, said before it starts."""

from __future__ import annotations

import os

from mechdesign.solvers.block.layout import Layout

__all__ = ["available", "needed"]

# Interpreter, libraries, buffers and the many small arrays.
_BASE = 120_000_000


def needed(layout: Layout, workers: int, entry_bytes: int) -> int:
    """Estimate the peak in bytes, for a kernel that keeps `entry_bytes` for each ratio row."""
    entry = 8
    blocks = entry_bytes * layout.blocks * layout.width**2
    links = (4 + 2 * workers) * layout.links**2
    constants = 6 * layout.rows**2 + 8 * layout.rows * layout.program.columns
    unfolded = 4 * 4 * layout.rows * layout.program.columns
    return _BASE + blocks + entry * (links + constants + unfolded)


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
