"""How much memory a solve takes, said before it starts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._machine import free_memory, memory_below_limits
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.kernels.tridiagonal import find_levels
from mechdesign.solve._blocks.layout import Layout
from mechdesign.solve._blocks.tuning import TUNING, GenerationTuning

COPIED = 4_000_000
"""Up to so many ratio rows the multipliers of the best bound are copied; of more, once the gap is small, kept in spare
memory."""

# Of 300 and of 1,024 columns 0.6 and 0.77 stay (Euclidean cost).
_STAY, _MEASURED = 0.8, 500
_INTERPRETER = 120_000_000
# The part of all multipliers that proves the bound, at most: 13 % at 144 cells, 8 % at 300, 6 % from 500 to 1,024.
_SHARE, _FALL, _LARGEST_SHARE, _LEAST_SHARE = 4.5, -0.7, 0.3, 0.062
# Of each ratio row, in the kernel that takes least of the host's memory (`Kernel.entry_bytes`), by the relative gap.
_LEAST_ENTRY_BYTES = (1e-2, 14), (1e-5, 16), (-1.0, 28)
# What a thread takes at most for its tile and its batch of small dense blocks.
_DENSE_BATCH = 10_000_000
# What a thread takes at most for its batch of sparse blocks.
_SPARSE_BATCH = 150_000_000
# Bytes for each of these: in one block, unfolded with what computing the bound takes, and for certifying afterwards.
_FOLDED, _UNFOLDED, _CERTIFIED = 16, 60, 175


@dataclass(frozen=True)
class MemoryBudget:
    """The memory that the process may take, asked for once in a solve and then compared with estimates.

    Attributes:
        allowed: Most bytes of the process; None where nobody knows.
        held: Bytes that it held before the solve.
        stated: Whether the caller stated the limit.
    """

    allowed: float | None
    held: int
    stated: bool

    @classmethod
    def of(cls, limit: float | None = None) -> MemoryBudget:
        """Return the budget of a solve that begins now, of `limit` bytes or of all that is free."""
        return cls(allowed_memory(limit), _resident(), limit is not None)

    @classmethod
    def of_options(cls, extra: Mapping[str, object]) -> MemoryBudget:
        """Return the budget that options of the block solver state as "memory".

        Raises:
            InputError: It is not a number of bytes greater than 0.
        """
        limit = extra.get("memory")
        if limit is None:
            return cls.of()
        if isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool) and limit > 0:
            large = isinstance(limit, int) and limit > sys.float_info.max
            return cls.of(sys.float_info.max if large else float(limit))
        raise InputError("options.extra.memory", "must be a number of bytes greater than 0", value=limit)

    def fits(self, estimate: float) -> bool:
        """Tell whether the budget allows this many bytes, as far as is known."""
        return self.allowed is None or estimate <= self.allowed

    def require(self, estimate: float, blocks: int, rows: int) -> None:
        """Raise `SolverError` where the budget does not allow this many bytes, with both numbers."""
        if self.allowed is not None and estimate > self.allowed:
            raise SolverError(
                f"the block solver needs about {estimate / 1e9:.1f} GB for {blocks} blocks of {rows}, but "
                f"{self.allowed / 1e9:.1f} GB {'are allowed' if self.stated else 'are free'}. Use symmetry, fewer "
                "cells or a wider tolerance, or another solver with lazy rows"
            )


def check_memory(
    layout: Layout,
    threads: int,
    kernel: type[Kernel],
    budget: MemoryBudget,
    gap: float,
    *,
    proves: bool = True,
) -> int:
    """Return the estimated peak of the process [bytes].

    Args:
        layout: The program as it is to be solved.
        threads: Number of threads that share the blocks.
        kernel: The kernel that holds the large arrays.
        budget: The memory that the process may take.
        gap: The relative gap to be reached.
        proves: Whether the multipliers are proved at the end, which takes memory, too.

    Raises:
        SolverError: The estimate exceeds the budget.
    """
    shape = layout.rows, layout.program.columns, layout.blocks
    if kernel.SPARSE:
        sparsity = measure(layout.rows, *np.nonzero(layout.weights))
        estimate = _sparse(*shape, layout.links, threads, sparsity, held=budget.held)
    else:
        sizes = *shape, layout.width, layout.links, threads, kernel.entry_bytes(layout, gap)
        estimate = int(kernel.LIBRARY_BYTES) + _needed(*sizes, proves=proves, held=budget.held)
    budget.require(estimate, layout.blocks, layout.rows)
    return estimate


def merging_memory(rows: int, columns: int, gap: float) -> int:
    """Estimate the peak of the process in bytes where a large program without floors begins with all its columns.

    In the end `_STAY` of them are left, and the numbers are as precise as the gap requires. Below `_MEASURED` rows room
    for all of them is asked for: with Hamming cost all stay.
    """
    if rows < _MEASURED:
        return block_memory(rows, columns, columns, gap=gap)
    entries = columns * rows**2
    large = max(_entry_bytes(1.0) * entries, _STAY * _entry_bytes(gap) * entries)
    return int(max(_INTERPRETER, _resident()) + large + 8 * (6 * rows**2 + 24 * rows * columns))


def few_may_do(
    rows: int,
    columns: int,
    floors: int,
    tuning: GenerationTuning = TUNING.generation,
    *,
    worst: bool,
    sparse: bool,
    merges: bool = False,
) -> bool:
    """Tell whether few columns at a time may be faster than all blocks at once, by what was measured.

    They are where floors pull against the cost: then most columns end up empty. Without floors half of all are used,
    which pays where blocks are sparse, for a column is then priced in a fraction of the time that its block takes, or
    large, where the kernel `merges` columns in the host's memory.
    """
    pays = sparse or floors > 0 or (merges and rows >= tuning.min_rows_without_floors)
    return pays and not worst and columns * rows**2 >= tuning.min_entries


def allowed_memory(limit: float | None = None) -> float | None:
    """Return the most bytes that the process may take: `limit`, or all that is free; None where nobody knows.

    It is never more than the limits of the process and its container leave.
    """
    free = free_memory() if limit is None else memory_below_limits()
    left = math.inf if free is None else _resident() + free
    most = left if limit is None else min(limit, left)
    return None if most == math.inf else most


def pricing_batch(rows: int, columns: int, budget: MemoryBudget, block: int = 0) -> int:
    """Return the number of columns that fit into the budget while they are priced, at least 1.

    Args:
        rows: Number of rows.
        columns: Number of columns of the program.
        budget: The memory that the process may take.
        block: Bytes of a sparse block; 0 for a dense one.
    """
    if budget.allowed is None:
        return columns
    known = max(_INTERPRETER, budget.held) + 24 * 8 * rows * columns + _FOLDED * _LEAST_SHARE * rows**2 * columns
    return max(1, int((budget.allowed - known) // (block or _LEAST_ENTRY_BYTES[-1][1] * rows**2)))


def block_memory(rows: int, columns: int, blocks: int, floors: int = 0, gap: float = 0.0) -> int:
    """Estimate the peak of the process in bytes from the size of a program alone: rather less than `check_memory`."""
    width = rows + floors
    return _needed(rows, columns, blocks, width, width, 1, _entry_bytes(0.0 if floors else gap))


def _entry_bytes(gap: float) -> int:
    return next(count for level, count in _LEAST_ENTRY_BYTES if gap > level)


def _needed(
    rows: int,
    columns: int,
    blocks: int,
    width: int,
    links: int,
    threads: int,
    entry_bytes: int,
    *,
    proves: bool = True,
    held: int | None = None,
) -> int:
    """Estimate the peak of the process in bytes, the certificate that follows included; rather more than less.

    The solve's large arrays are gone when the multipliers are certified, which takes as much where symmetry makes them
    small.
    """
    entries = blocks * width**2
    large = entry_bytes * entries + (8 * entries if blocks * rows**2 <= COPIED else 0)
    large += threads * min(_DENSE_BATCH, 16 * entries)
    small = 8 * ((4 + 2 * threads) * links**2 + 6 * rows**2 + 24 * rows * columns)
    kept = min(_LARGEST_SHARE, max(_LEAST_SHARE, _SHARE * rows**_FALL)) * rows**2 * columns
    folded = _FOLDED * kept * blocks / columns
    base = max(_INTERPRETER, _resident() if held is None else held)
    if not proves:
        return int(base + large + small)
    return int(base + max(large + small + folded + _UNFOLDED * kept, _CERTIFIED * kept))


@dataclass(frozen=True)
class Sparsity:
    """What makes a sparse block of `rows` large: its bounds on pairs, and how many numbers its factors are."""

    rows: int
    pairs: int
    factors: int

    @property
    def bytes(self) -> int:
        """Bytes of one block in the kernel."""
        pairs, rows = self.pairs, self.rows
        return SparseKernel.PAIR_BYTES * (pairs + rows) + 8 * (self.factors + pairs + 4 * rows)

    def scaled(self, rows: int) -> Sparsity:
        """Return what is to be expected of a graph of the same kind with so many rows, in levels of about √rows."""
        growth = rows / self.rows
        return Sparsity(rows, math.ceil(self.pairs * growth), math.ceil(self.factors * growth**1.5))


def measure(rows: int, sources: Integers, targets: Integers) -> Sparsity:
    """Return the sparsity of blocks with bounds on the pairs (s, t); pairs of a row with itself count for nothing."""
    apart = sources != targets
    widths = find_levels(rows, sources, targets).widths
    return Sparsity(rows, int(apart.sum()), int((widths**2).sum() + (widths[1:] * widths[:-1]).sum()))


def sparse_memory(rows: int, columns: int, blocks: int, sparsity: Sparsity) -> int:
    """Estimate the peak of the process in bytes where blocks are sparse."""
    return _sparse(rows, columns, blocks, rows, 1, sparsity)


def _sparse(
    rows: int, columns: int, blocks: int, links: int, threads: int, sparsity: Sparsity, *, held: int | None = None
) -> int:
    pairs, block = sparsity.pairs, sparsity.bytes
    small = 8 * ((4 + 2 * threads) * links**2 + 6 * rows**2 + 24 * rows * columns)
    kept = pairs * columns
    large = blocks * block + 2 * 8 * pairs * blocks + threads * min(_SPARSE_BATCH, blocks * block)
    base = max(_INTERPRETER, _resident() if held is None else held)
    return int(base + small + max(large + _FOLDED * pairs * blocks, _CERTIFIED * kept))


def _resident() -> int:
    """Return the bytes that this process holds now, 0 where the system does not say so."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
