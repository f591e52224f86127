"""From dense multipliers to sparse ones that prove nearly the same bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.programs.block_angular import BlockMultipliers, RatioMultipliers
from mechdesign.solvers.ipm.bound import floor_multipliers
from mechdesign.solvers.ipm.directions import Point
from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.small import SmallRows

__all__ = ["sparsify", "unfold"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def sparsify(layout: Layout, small: SmallRows, point: Point, y: Array, allowance: float) -> BlockMultipliers:
    """Drop the smallest multipliers; the bound falls by at most `allowance`.

    Dropping y_st of a column raises the reduced cost of t there and lowers that of s by y_st. Only the least reduced
    cost of a row counts in the bound, so in each row and column the smallest multipliers go as long as their sum is at
    most the distance of the reduced cost from that least one, plus allowance/n. Blocks that stand for several columns
    are then unfolded. Multipliers of floors and worst cost are kept whole.
    """
    n = layout.rows
    share = allowance / n
    if layout.members:
        share *= float(point.multipliers[layout.width :].sum())
    budget = _reduced(layout, small, point, y)
    budget -= budget.min(axis=0)[layout.images[:, :n]].min(axis=0)
    budget += share
    parts: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Array]] = []
    allowed = ~np.eye(n, dtype=bool)
    if layout.free is not None:
        allowed &= ~layout.free
    for index in range(layout.blocks):
        values = np.where(allowed, y[index], 0.0)
        ordered = np.sort(values, axis=1)
        dropped = (np.cumsum(ordered, axis=1) <= budget[index, :, None]).sum(axis=1)
        least = ordered[np.arange(n), np.minimum(dropped, n - 1)]
        s, t = np.nonzero((values >= least[:, None]) & (values > 0) & (dropped < n)[:, None])
        parts.append((s.astype(np.int32), t.astype(np.int32), values[s, t]))
    mover, block = _unfold(layout)
    scale, weights = 1.0, None
    if layout.members:
        weights = point.multipliers[layout.width :].copy()
        scale = float(weights.sum())
        weights /= scale
    ratios = _unfolded(layout, parts, mover, block, scale)
    return BlockMultipliers(ratios, _floors(layout, small, point, mover, block), weights)


def _unfolded(
    layout: Layout,
    parts: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Array]],
    mover: Integers,
    block: Integers,
    scale: float,
) -> RatioMultipliers:
    """Return the multipliers of all columns, divided by `scale`, from those of the blocks that stand for them."""
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


def _reduced(layout: Layout, small: SmallRows, point: Point, y: Array) -> Array:
    """Return the reduced costs (B, n) without the multipliers of x >= 0, which the bound does not need."""
    n = layout.rows
    reduced = layout.cost - layout.pull(point.multipliers)[:, :n]
    ratios = layout.ratios.copy()
    np.fill_diagonal(ratios, 1.0)
    for block in range(layout.blocks):
        reduced[block] += y[block].sum(axis=1) - (ratios * y[block]).sum(axis=0)
    for error, values in zip(layout.errors, floor_multipliers(layout, small, point), strict=True):
        reduced -= values @ error
    return reduced


def unfold(layout: Layout, x: Array) -> Array:
    """Return the full matrix (n, m) of the blocks' entries x (B, n)."""
    mover, block = _unfold(layout)
    full = np.empty((layout.rows, layout.program.columns))
    for column in range(layout.program.columns):
        full[layout.symmetry.rows[mover[column]], column] = x[block[column]]
    return full


def _unfold(layout: Layout) -> tuple[Integers, Integers]:
    """Return for every column the group element that brings its block's representative there, and the block."""
    columns = layout.program.columns
    kept, _ = layout.symmetry.representatives(columns)
    mover = np.zeros(columns, dtype=np.int64)
    block = np.zeros(columns, dtype=np.int64)
    for index in range(kept.size - 1, -1, -1):
        for element in range(layout.symmetry.order - 1, -1, -1):
            column = layout.symmetry.columns[element, kept[index]]
            mover[column], block[column] = element, index
    return mover, block


def _floors(layout: Layout, small: SmallRows, point: Point, mover: Integers, block: Integers) -> tuple[Array, ...]:
    scale = float(point.multipliers[layout.width :].sum()) if layout.members else 1.0
    result = []
    for index, values in enumerate(floor_multipliers(layout, small, point)):
        order = layout.symmetry.estimates[index]
        full = np.empty((values.shape[1], block.size))
        for column in range(block.size):
            full[order[mover[column]], column] = values[block[column]] / scale
        result.append(full)
    return tuple(result)
