"""Columns that are all but empty, merged into others while the iteration goes on.

Columns that an optimum does not use vanish along the path, and the more of them there are, the shorter its steps. Sums
of columns meet every ratio bound that each of them meets, row sums stay as they are, and a sum keeps at least the sum
of the parts w of a floor that its columns keep: so a column can be added to another, and the iteration goes on with
one block less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._blocks.iterate import State


def merged(state: State, cost: Floats, empty: float, movable: Flags | None = None) -> tuple[State, Integers]:
    """Add columns of a state with less mass than the part `empty` of an even share to those that serve best instead.

    Args:
        state: a state of B blocks.
        cost: the costs (n, B) of their columns.
        empty: the part of an even share n/B.
        movable: which columns may go (B,); all of them without it.

    Returns:
        The state of the blocks that stay, and which these are.
    """
    blocks, n = state.points.shape[0], cost.shape[0]
    x = state.points[:, :n]
    mass = x.sum(axis=1) * blocks / n
    leaves = (mass < empty) & (True if movable is None else movable)
    stay, leave = np.flatnonzero(~leaves), np.flatnonzero(leaves)
    if not leave.size or not stay.size:
        return state, np.arange(blocks)
    points = state.points[stay].copy()
    np.add.at(points, (x[leave] @ cost[:, stay]).argmin(axis=1), state.points[leave])
    floors = tuple(values[stay] for values in state.floor_y)
    return replace(state, points=points, ratio_y=state.ratio_y[stay], floor_y=floors, part_y=state.part_y[stay]), stay
