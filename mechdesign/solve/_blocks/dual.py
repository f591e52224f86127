"""Compute the lower bound that an iterate proves, and sparse multipliers for nearly the same bound.

Theory: block_method, Lower bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockMultipliers, RatioMultipliers
from mechdesign.solve._blocks.iterate import Iterate
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.newton import FactoredBlocks

BlockEntries = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]
"""Rows s, rows t and values of the multipliers of one block."""

_SUM_ROUNDING = 1e-13


def dual_bound(blocks: FactoredBlocks) -> float:
    """Return Σ_s (λ_s + min_o r[s, o]) + Σ_f v_f minimum_f with r = c − E_oᵀΛ − Bᵀy.

    The bound is valid for any y, v, ω >= 0 after two scalings. In each block, the multipliers of each floor are scaled
    to sum to v plus the block's reward. For a worst cost, the bound is divided by Σ ω. The multipliers of x >= 0, whose
    rows have the coefficient g_ss − 1 = 1, are omitted, which improves the bound.
    """
    layout, iterate = blocks.layout, blocks.iterate
    auxiliary, n, width = layout.auxiliary, layout.rows, layout.width
    multipliers = iterate.multipliers
    adjoint = blocks.adjoint[:, :n] - blocks.ratios.kernel.diagonals()
    reduced = layout.cost - layout.link_adjoint(multipliers)[:, :n] - adjoint
    for index, (error, scaled) in enumerate(zip(layout.errors, _scale_floor_multipliers(layout, iterate), strict=True)):
        reduced -= (scaled - auxiliary.floor(iterate.y, index)) @ error
    least = reduced.min(axis=0)[layout.images[:, :n]].min(axis=0)
    total = float((multipliers[:n] + least).sum()) + float(multipliers[n:width] @ layout.minima)
    return total / float(multipliers[width:].sum()) if layout.members else total


def _scale_floor_multipliers(layout: BlockLayout, iterate: Iterate) -> list[Floats]:
    """Scale the multipliers (B, k) of each floor, so that they sum to v plus the reward in every block."""
    result = []
    for index in range(layout.floors):
        mine = layout.auxiliary.floor(iterate.y, index)
        total = iterate.multipliers[layout.rows + index] + layout.rewards[:, index, None]
        result.append(mine * (total / mine.sum(axis=1, keepdims=True)))
    return result


def sparsify(
    layout: BlockLayout, iterate: Iterate, y: Floats, allowance: float, pairs: tuple[Integers, Integers] | None = None
) -> BlockMultipliers:
    """Drop small multipliers y, such that the bound decreases by at most `allowance`.

    Dropping y_st of a column raises the reduced cost of t in this column, and lowers the reduced cost of s by y_st.
    The bound depends only on the least reduced cost of each row. In each row and column, the smallest multipliers are
    dropped while their sum is within a budget. The budget is the difference between the reduced cost and the least
    reduced cost of the row, plus allowance/n. The multipliers of blocks that represent several columns are then
    expanded to all these columns. The multipliers of floors and of the worst cost are not dropped.

    Args:
        layout: The layout of the program.
        iterate: The iterate.
        y: Multipliers of the ratio rows (B, n, n), or (B, K) for the given `pairs`.
        allowance: Largest decrease of the bound, in units of the cost.
        pairs: For sparse blocks, the rows s and t of each multiplier.

    Returns:
        Multipliers of all columns of the program.
    """
    n = layout.rows
    share = allowance / n
    if layout.members:
        share *= float(iterate.multipliers[layout.width :].sum())
    budget = _compute_reduced_costs(layout, iterate)
    _subtract_adjoint(layout, y, pairs, budget)
    budget -= budget.min(axis=0)[layout.images[:, :n]].min(axis=0)
    budget += share
    parts = trim_multipliers(layout, y, budget, pairs)
    scale, weights = 1.0, None
    if layout.members:
        weights = iterate.multipliers[layout.width :].copy()
        scale = float(weights.sum())
        weights /= scale
    ratios = _unfold(layout, parts, scale)
    return BlockMultipliers(ratios, _unfold_floors(layout, iterate), weights)


def trim_multipliers(
    layout: BlockLayout, y: Floats, budget: Floats, pairs: tuple[Integers, Integers] | None
) -> list[BlockEntries]:
    """Drop the smallest multipliers of each row s of each block while their sum stays within `budget` (B, n) >= 0.

    Dropping y_st lowers the reduced cost of s by y_st, and raises the reduced cost of t.

    Args:
        layout: The layout of the program.
        y: Multipliers (B, n, n), or (B, K) for the given `pairs`.
        budget: Largest sum of dropped multipliers (B, n).
        pairs: For sparse blocks, the rows s and t of each multiplier.

    Returns:
        The remaining entries of each block.
    """
    if pairs is not None:
        return _trim_pairs(pairs, y, budget)
    n = layout.rows
    allowed = ~np.eye(n, dtype=bool)
    if layout.free is not None:
        allowed &= ~layout.free
    parts: list[BlockEntries] = []
    for index in range(len(y)):
        values = np.where(allowed, y[index], 0.0)
        ordered = np.sort(values, axis=1)
        dropped = (np.cumsum(ordered, axis=1, dtype=np.float64) <= budget[index, :, None]).sum(axis=1)
        least = ordered[np.arange(n), np.minimum(dropped, n - 1)]
        s, t = np.nonzero((values >= least[:, None]) & (values > 0) & (dropped < n)[:, None])
        parts.append((s.astype(np.int32), t.astype(np.int32), values[s, t]))
    return parts


def _trim_pairs(pairs: tuple[Integers, Integers], y: Floats, budget: Floats) -> list[BlockEntries]:
    """Drop the smallest multipliers (B, K) of sparse blocks, as `trim_multipliers` does for dense blocks."""
    sources, targets = (ends.astype(np.int32) for ends in pairs)
    parts: list[BlockEntries] = []
    for values, room in zip(y, budget, strict=True):
        order = np.lexsort((values, sources))
        rows, ordered = sources[order], values[order]
        total = np.concatenate([[0.0], np.cumsum(ordered)])
        before = total[np.searchsorted(rows, rows)]
        # The rounding error of a difference of cumulative sums is proportional to the largest sum.
        sums = total[1:] - before + _SUM_ROUNDING * total[-1]
        kept = order[(sums > room[rows]) & (ordered > 0)]
        parts.append((sources[kept], targets[kept], values[kept]))
    return parts


def _unfold(layout: BlockLayout, parts: list[BlockEntries], scale: float) -> RatioMultipliers:
    """Expand the multipliers of blocks to all columns that the blocks represent, and divide them by `scale`."""
    mover, block = layout.origins
    sizes = np.array([values.size for _, _, values in parts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes[block])])
    total = int(starts[-1])
    sources, targets, columns = (np.empty(total, dtype=np.int64) for _ in range(3))
    multipliers = np.empty(total)
    for column in range(block.size):
        mine = slice(starts[column], starts[column + 1])
        s, t, values = parts[block[column]]
        rows = layout.symmetry.rows[mover[column]]
        sources[mine], targets[mine], columns[mine] = rows[s], rows[t], column
        multipliers[mine] = values / scale
    return RatioMultipliers(sources, targets, columns, multipliers)


def _compute_reduced_costs(layout: BlockLayout, iterate: Iterate) -> Floats:
    """Return the reduced costs (B, n) without the terms of the ratio rows."""
    reduced = layout.cost - layout.link_adjoint(iterate.multipliers)[:, : layout.rows]
    for error, values in zip(layout.errors, _scale_floor_multipliers(layout, iterate), strict=True):
        reduced -= values @ error
    return reduced


def _subtract_adjoint(layout: BlockLayout, y: Floats, pairs: tuple[Integers, Integers] | None, reduced: Floats) -> None:
    """Subtract Bᵀy from `reduced` (B, n), without the multipliers of x >= 0, which the bound does not need."""
    if pairs is not None:
        sources, targets = pairs
        index = np.arange(sources.size)
        where = np.concatenate([index, index]), np.concatenate([targets, sources])
        values = np.concatenate([layout.ratios[sources, targets], -np.ones(index.size)])
        rows = sparse.coo_array((values, where), shape=(index.size, layout.rows)).tocsr()
        for block in range(layout.blocks):
            reduced[block] -= y[block] @ rows
        return
    ratios = layout.ratios.copy()
    np.fill_diagonal(ratios, 1.0)
    for block in range(layout.blocks):
        reduced[block] += y[block].sum(axis=1, dtype=np.float64) - (ratios * y[block]).sum(axis=0)


def _unfold_floors(layout: BlockLayout, iterate: Iterate) -> tuple[Floats, ...]:
    """Return the multipliers of the floors for all columns."""
    mover, block = layout.origins
    scale = float(iterate.multipliers[layout.width :].sum()) if layout.members else 1.0
    result = []
    for index, values in enumerate(_scale_floor_multipliers(layout, iterate)):
        order = layout.symmetry.estimates[index]
        full = np.empty((values.shape[1], block.size))
        for column in range(block.size):
            full[order[mover[column]], column] = values[block[column]] / scale
        result.append(full)
    return tuple(result)
