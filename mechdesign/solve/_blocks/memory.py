"""Estimate the memory of a solve before it starts, and compare the estimate with a budget.

Theory: block_method, Memory and threads.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._machine import count_processors, free_memory, memory_below_limits
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.kernels.tridiagonal import find_levels
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.tuning import TUNING, GenerationTuning

MAX_COPIED_ROWS = 4_000_000
"""Up to this number of ratio rows, the multipliers of the best bound are copied to separate memory."""

# Share of columns that remain after merging without floors, and the number of rows from which this share applies. With
# Euclidean cost, measurements gave 0.6 for 300 columns and 0.77 for 1,024 columns.
_KEPT_SHARE, _KEPT_MIN_ROWS = 0.8, 500
_INTERPRETER_BYTES = 120_000_000
# Largest share of all multipliers that a proof contains: share · rows ** power, within limits. Measurements gave 13 %
# for 144 cells, 8 % for 300 cells, and 6 % for 500 to 1,024 cells.
_PROOF_SHARE, _PROOF_POWER, _MAX_PROOF_SHARE, _MIN_PROOF_SHARE = 4.5, -0.7, 0.3, 0.062
# Bytes per ratio row for relative gaps above each level, in the kernel that uses the least host memory
# (`Kernel.entry_bytes`).
_MIN_ENTRY_BYTES = (1e-2, 14), (1e-5, 16), (-1.0, 28)
# Maximum bytes per thread for a tile and a batch of small dense blocks.
_DENSE_BATCH_BYTES = 10_000_000
# Maximum bytes per thread for a batch of sparse blocks.
_SPARSE_BATCH_BYTES = 150_000_000
# Addresses that a process with a solve takes without filling them: libraries, and, for each thread, a stack and a heap.
_LIBRARY_ADDRESSES, _THREAD_ADDRESSES = 400_000_000, 75_000_000
# Bytes per multiplier of a proof: when stored by block, when expanded to all columns, and during certification.
_BLOCK_BYTES, _UNFOLDED_BYTES, _CERTIFY_BYTES = 16, 60, 175


@dataclass(frozen=True)
class MemoryBudget:
    """The memory that the process may use, which is determined once per solve and compared with estimates.

    Attributes:
        allowed: Maximum memory of the process [bytes], or None if it is unknown.
        held: Memory that the process used before the solve [bytes].
        stated: Whether the limit comes from the caller.
    """

    allowed: float | None
    held: int
    stated: bool

    @classmethod
    def of(cls, limit: float | None = None) -> MemoryBudget:
        """Return the budget of a solve that starts now: `limit` bytes, or all free memory if `limit` is None."""
        return cls(find_allowed_memory(limit), _resident_bytes(), limit is not None)

    @classmethod
    def of_options(cls, extra: Mapping[str, object]) -> MemoryBudget:
        """Return the budget that the option "memory" of the block solver defines.

        Args:
            extra: Options of the block solver.

        Returns:
            The budget.

        Raises:
            InputError: If the value is not a positive number of bytes.
        """
        limit = extra.get("memory")
        if limit is None:
            return cls.of()
        if isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool) and limit > 0:
            large = isinstance(limit, int) and limit > sys.float_info.max
            return cls.of(sys.float_info.max if large else float(limit))
        raise InputError("options.extra.memory", "must be a number of bytes greater than 0", value=limit)

    def fits(self, estimate: float) -> bool:
        """Return whether the estimate [bytes] is within the budget, or true if the budget is unknown."""
        return self.allowed is None or estimate <= self.allowed

    def require(self, estimate: float, blocks: int, rows: int) -> None:
        """Raise `SolverError` if the estimate [bytes] exceeds the budget; the message contains both numbers."""
        if self.allowed is not None and estimate > self.allowed:
            raise SolverError(
                f"the block solver needs about {estimate / 1e9:.1f} GB for {blocks} blocks of {rows} rows, but "
                f"{self.allowed / 1e9:.1f} GB {'are allowed' if self.stated else 'are free'}. Use symmetry, fewer "
                "cells or a wider tolerance, or another solver with lazy rows"
            )


def check_memory(
    layout: BlockLayout,
    threads: int,
    kernel: type[Kernel],
    budget: MemoryBudget,
    gap: float,
    *,
    proves: bool = True,
) -> int:
    """Check the estimated peak memory of the process against the budget, and return it [bytes].

    Args:
        layout: The layout of the program.
        threads: Number of threads that share the blocks.
        kernel: The class of the kernel, which stores the large arrays.
        budget: The memory budget of the process.
        gap: Relative gap to reach.
        proves: Whether the estimate includes the memory for a proof with sparse multipliers.

    Returns:
        The estimate [bytes].

    Raises:
        SolverError: If the estimate exceeds the budget.
    """
    shape = layout.rows, layout.program.columns, layout.blocks
    if kernel.SPARSE:
        sparsity = measure_sparsity(layout.rows, *np.nonzero(layout.weights))
        estimate = _estimate_sparse(*shape, layout.links, threads, sparsity, held=budget.held)
    else:
        sizes = *shape, layout.width, layout.links, threads, kernel.entry_bytes(layout, gap)
        estimate = int(kernel.LIBRARY_BYTES) + _estimate_dense(*sizes, proves=proves, held=budget.held)
    budget.require(estimate, layout.blocks, layout.rows)
    return estimate


def merging_memory(rows: int, columns: int, gap: float) -> int:
    """Estimate the peak memory [bytes] of a program without floors that starts with all columns and merges them.

    The estimate assumes that the share `_KEPT_SHARE` of the columns remains, in the precision that the gap requires.
    For programs with fewer than `_KEPT_MIN_ROWS` rows, it assumes that all columns remain, as they do with Hamming
    cost.
    """
    if rows < _KEPT_MIN_ROWS:
        return block_memory(rows, columns, columns, gap=gap)
    entries = columns * rows**2
    large = max(_entry_bytes(1.0) * entries, _KEPT_SHARE * _entry_bytes(gap) * entries)
    return int(max(_INTERPRETER_BYTES, _resident_bytes()) + large + 8 * (6 * rows**2 + 24 * rows * columns))


def generation_may_pay(
    rows: int,
    columns: int,
    floors: int,
    tuning: GenerationTuning = TUNING.generation,
    *,
    worst: bool,
    sparse: bool,
) -> bool:
    """Return whether column generation may be faster than solving with all columns, according to measurements.

    Column generation is faster with floors, because most columns then become empty. Without floors, optimal channels
    use about half of all columns. Column generation is then faster for sparse blocks, because pricing a column takes
    much less time than solving its block. It is also faster for large dense programs, because it merges columns.
    """
    pays = sparse or floors > 0 or rows >= tuning.min_rows_without_floors
    return pays and not worst and columns * rows**2 >= tuning.min_entries


def find_allowed_memory(limit: float | None = None) -> float | None:
    """Return the maximum memory of the process [bytes]: `limit`, or all free memory; None if it is unknown.

    The result is at most the memory limit of the process and of its container.
    """
    addresses = _LIBRARY_ADDRESSES + _THREAD_ADDRESSES * count_processors()
    free = free_memory(addresses) if limit is None else memory_below_limits(addresses)
    left = math.inf if free is None else _resident_bytes() + free
    most = left if limit is None else min(limit, left)
    return None if most == math.inf else most


def pricing_batch(rows: int, columns: int, budget: MemoryBudget, block: int = 0) -> int:
    """Return the number of columns, at least 1, that can be priced simultaneously within the budget.

    Args:
        rows: Number of rows.
        columns: Number of columns of the program.
        budget: The memory budget of the process.
        block: Size of a sparse block [bytes]; 0 for dense blocks.

    Returns:
        The number of columns.
    """
    if budget.allowed is None:
        return columns
    known = (
        max(_INTERPRETER_BYTES, budget.held)
        + 24 * 8 * rows * columns
        + _BLOCK_BYTES * _MIN_PROOF_SHARE * rows**2 * columns
    )
    return max(1, int((budget.allowed - known) // (block or _MIN_ENTRY_BYTES[-1][1] * rows**2)))


def block_memory(rows: int, columns: int, blocks: int, floors: int = 0, gap: float = 0.0) -> int:
    """Estimate the peak memory [bytes] from the size of a program; `check_memory` usually returns more."""
    width = rows + floors
    return _estimate_dense(rows, columns, blocks, width, width, 1, _entry_bytes(0.0 if floors else gap))


def _entry_bytes(gap: float) -> int:
    """Return the bytes per ratio row at a relative gap."""
    return next(count for level, count in _MIN_ENTRY_BYTES if gap > level)


def _estimate_dense(
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
    """Estimate the peak memory [bytes] with dense blocks, including certification; usually too high.

    The large arrays of the solve are released before the multipliers are certified.
    """
    entries = blocks * width**2
    large = entry_bytes * entries + (8 * entries if blocks * rows**2 <= MAX_COPIED_ROWS else 0)
    large += threads * min(_DENSE_BATCH_BYTES, 16 * entries)
    small = 8 * ((4 + 2 * threads) * links**2 + 6 * rows**2 + 24 * rows * columns)
    kept = min(_MAX_PROOF_SHARE, max(_MIN_PROOF_SHARE, _PROOF_SHARE * rows**_PROOF_POWER)) * rows**2 * columns
    folded = _BLOCK_BYTES * kept * blocks / columns
    base = max(_INTERPRETER_BYTES, _resident_bytes() if held is None else held)
    if not proves:
        return int(base + large + small)
    return int(base + max(large + small + folded + _UNFOLDED_BYTES * kept, _CERTIFY_BYTES * kept))


@dataclass(frozen=True)
class Sparsity:
    """The size of a sparse block: the numbers of its rows, its bounded pairs, and the entries of its factors."""

    rows: int
    pairs: int
    factors: int

    @property
    def bytes(self) -> int:
        """Size of one block in the kernel [bytes]."""
        pairs, rows = self.pairs, self.rows
        return SparseKernel.PAIR_BYTES * (pairs + rows) + 8 * (self.factors + pairs + 6 * rows)


def measure_sparsity(rows: int, sources: Integers, targets: Integers) -> Sparsity:
    """Return the sparsity of blocks with bounds on the pairs (s, t); pairs with s = t are ignored."""
    apart = sources != targets
    widths = find_levels(rows, sources, targets).widths
    return Sparsity(rows, int(apart.sum()), int((widths**2).sum() + (widths[1:] * widths[:-1]).sum()))


def sparse_memory(rows: int, columns: int, blocks: int, sparsity: Sparsity) -> int:
    """Estimate the peak memory of the process with sparse blocks [bytes]."""
    return _estimate_sparse(rows, columns, blocks, rows, 1, sparsity)


def _estimate_sparse(
    rows: int, columns: int, blocks: int, links: int, threads: int, sparsity: Sparsity, *, held: int | None = None
) -> int:
    """Estimate the peak memory of the process with sparse blocks, for several threads [bytes]."""
    pairs, block = sparsity.pairs, sparsity.bytes
    small = 8 * ((4 + 2 * threads) * links**2 + 6 * rows**2 + 24 * rows * columns)
    kept = pairs * columns
    large = blocks * block + 2 * 8 * pairs * blocks + threads * min(_SPARSE_BATCH_BYTES, blocks * block)
    base = max(_INTERPRETER_BYTES, _resident_bytes() if held is None else held)
    return int(base + small + max(large + _BLOCK_BYTES * pairs * blocks, _CERTIFY_BYTES * kept))


def _resident_bytes() -> int:
    """Return the current memory of this process [bytes], or 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
