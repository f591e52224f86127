"""The lower bound that an iterate proves, from what assembling its blocks has measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.directions import Point
from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.small import SmallRows

__all__ = ["bound", "floor_multipliers"]

Array = npt.NDArray[np.float64]


def floor_multipliers(layout: Layout, small: SmallRows, point: Point) -> list[Array]:
    """Return for each floor its multipliers (B, k), scaled in every block to sum to v."""
    result = []
    for index in range(layout.floors):
        mine = small.floor(point.y, index)
        result.append(mine * (point.multipliers[layout.rows + index] / mine.sum(axis=1, keepdims=True)))
    return result


def bound(layout: Layout, small: SmallRows, point: Point, pulled: Array) -> float:
    """Return Σ_s (λ_s + min_o r[s, o]) + Σ_f v_f minimum_f with r = c − E_oᵀΛ − Bᵀy; `pulled` (B, N) is Bᵀy.

    Any y, v, ω >= 0 make it valid once the multipliers of each floor sum to v in every block (what w_o >= 0 then costs
    is nothing), and once all is divided by Σ ω for the worst cost.
    """
    n, width = layout.rows, layout.width
    multipliers = point.multipliers
    reduced = layout.cost - layout.pull(multipliers)[:, :n] - pulled[:, :n]
    for index, (error, scaled) in enumerate(zip(layout.errors, floor_multipliers(layout, small, point), strict=True)):
        reduced -= (scaled - small.floor(point.y, index)) @ error
    least = reduced.min(axis=0)[layout.images[:, :n]].min(axis=0)
    total = float((multipliers[:n] + least).sum()) + float(multipliers[n:width] @ layout.minima)
    return total / float(multipliers[width:].sum()) if layout.members else total
