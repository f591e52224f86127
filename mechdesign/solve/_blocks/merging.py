"""Nearly empty columns are merged into others while the iteration continues.

Columns that an optimum does not use vanish along the path, and the more of them there are, the shorter its steps. A sum
of columns meets every ratio bound that they all meet, and row sums stay. Its part w of a floor is at least the sum of
their parts. So a column can be added to another, and the iteration goes on with one
block less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockProgram, priced_cost
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.tuning import MergeTuning, Schedule, TrialTuning
from mechdesign.solve._blocks.working_set import BlockWorkingSet


def merge_columns(
    program: BlockProgram, working: BlockWorkingSet, state: BlockState, threshold: float
) -> tuple[BlockState, BlockWorkingSet]:
    """Merge the columns of a working set that have less than this share of an even mass; return what is left."""
    weights = state.multipliers[program.rows + len(program.floors) :]
    # Only columns whose w meets all estimates may go: otherwise the w of the sum could miss one.
    parts, x = state.points[:, program.rows :].T, state.points[:, : program.rows].T
    sound = [w <= (floor.error @ x).min(axis=0) for w, floor in zip(parts, program.floors, strict=True)]
    movable = np.logical_and.reduce(sound) if sound else None
    after, stay = merge_small_columns(state, priced_cost(program, weights)[:, working.columns], threshold, movable)
    return after, working.replace_columns(working.columns[stay])


def merge_small_columns(
    state: BlockState, cost: Floats, threshold: float, movable: Flags | None = None
) -> tuple[BlockState, Integers]:
    """Add columns of a state with little mass to those that serve best instead.

    Args:
        state: A state of B blocks.
        cost: The costs (n, B) of their columns.
        threshold: Share of an even mass n/B below which a column goes.
        movable: Which columns may go (B,); all of them without it.

    Returns:
        The state of the remaining blocks, and their indices.
    """
    blocks, n = state.points.shape[0], cost.shape[0]
    x = state.points[:, :n]
    mass = x.sum(axis=1) * blocks / n
    leaves = (mass < threshold) & (True if movable is None else movable)
    stay, leave = np.flatnonzero(~leaves), np.flatnonzero(leaves)
    if not leave.size or not stay.size:
        return state, np.arange(blocks)
    points = state.points[stay].copy()
    np.add.at(points, (x[leave] @ cost[:, stay]).argmin(axis=1), state.points[leave])
    floors = tuple(values[stay] for values in state.floor_y)
    return replace(
        state, points=points, ratio_y=state.ratio_y[stay], floor_y=floors, contribution_y=state.contribution_y[stay]
    ), stay


def choose_schedule(tuning: MergeTuning, *, floors: bool, sparse: bool) -> Schedule:
    """Return the schedule of a program by its kind."""
    return tuning.sparse if sparse else tuning.with_floors if floors else tuning.without_floors


def needs_trial(rows: int, gap: float, trial: TrialTuning, merging: MergeTuning) -> bool:
    """Tell whether a program with floors is large enough, and to be solved closely enough, for a trial."""
    return rows >= trial.min_rows and gap <= trial.max_gap_share * merging.trial[-1][0]


def choose_coarse_sizes(rows: int, trial: TrialTuning, merging: MergeTuning) -> list[int]:
    """Return the numbers of rows of the coarse problems, the smallest first."""
    sizes: list[int] = []
    factor = merging.coarse_factor_of_trial if rows >= trial.min_rows else merging.coarse_factor
    while (rows := rows // factor) >= merging.coarse_min_rows:
        sizes.append(rows)
    return sizes[::-1]


def choose_coarse_schedule(rows: int, gap: float, merging: MergeTuning, *, last: bool, tried: bool) -> Schedule:
    """Return the schedule of a coarse problem.

    Args:
        rows: Number of its rows.
        gap: The gap asked for.
        merging: The schedules.
        last: Whether it is the largest one.
        tried: Whether a trial follows.
    """
    large = rows >= merging.coarse_large_rows
    usual = merging.coarse_of_trial if tried else merging.coarse_large if large else merging.coarse
    factor = 1.0 if gap < merging.loose_gap else merging.loose_factor
    least = gap if last else max(gap, merging.coarse_first_gap)
    return tuple((level, factor * threshold) for level, threshold in usual if level >= least)
