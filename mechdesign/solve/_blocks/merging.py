"""Merge nearly empty columns into other columns during the iteration.

Along the central path, the columns that an optimum does not use tend to zero, and many of them shorten the steps. If
several columns satisfy a ratio bound, their sum satisfies it, too, and the row sums do not change. The contribution of
the sum to a floor is at least the sum of the contributions. A small column can therefore be added to another column,
and the iteration continues with one block fewer.

Theory: block_method, Column merging.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockProgram, weigh_costs
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.tuning import MergeTuning, Schedule, TrialTuning
from mechdesign.solve._blocks.working_set import BlockWorkingSet


def merge_columns(
    program: BlockProgram, working: BlockWorkingSet, state: BlockState, threshold: float
) -> tuple[BlockState, BlockWorkingSet]:
    """Merge the columns of a working set whose mass is below `threshold` times the average mass.

    Args:
        program: The program of the state.
        working: The working set.
        state: A state with the columns of the working set.
        threshold: A column is merged if its mass is below this multiple of the average mass n/B.

    Returns:
        The state and the working set after merging.
    """
    weights = state.multipliers[program.rows + len(program.floors) :]
    # Only columns whose w satisfies the constraints of all estimates are merged; otherwise the sum could violate a
    # constraint.
    parts, x = state.points[:, program.rows :].T, state.points[:, : program.rows].T
    sound = [w <= (floor.error @ x).min(axis=0) for w, floor in zip(parts, program.floors, strict=True)]
    movable = np.logical_and.reduce(sound) if sound else None
    after, stay = merge_small_columns(state, weigh_costs(program, weights)[:, working.columns], threshold, movable)
    return after, working.replace_columns(working.columns[stay])


def merge_small_columns(
    state: BlockState, cost: Floats, threshold: float, movable: Flags | None = None
) -> tuple[BlockState, Integers]:
    """Add each column of a state with little mass to the column that replaces it at the least cost.

    Args:
        state: A state of B blocks.
        cost: The costs (n, B) of the columns.
        threshold: A column is merged if its mass is below this multiple of the average mass n/B.
        movable: Flags (B,) of the columns that may be merged. By default, all columns may be merged.

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
    """Return the merging schedule for a program with or without floors, and with sparse or dense blocks."""
    return tuning.sparse if sparse else tuning.with_floors if floors else tuning.without_floors


def needs_trial(rows: int, gap: float, trial: TrialTuning, merging: MergeTuning) -> bool:
    """Return whether a program with floors is large enough, and the target gap small enough, for a trial solve."""
    return rows >= trial.min_rows and gap <= trial.max_gap_share * merging.trial[-1][0]


def choose_coarse_sizes(rows: int, trial: TrialTuning, merging: MergeTuning) -> list[int]:
    """Return the numbers of rows of the coarse problems, the smallest first."""
    sizes: list[int] = []
    factor = merging.coarse_factor_of_trial if rows >= trial.min_rows else merging.coarse_factor
    while (rows := rows // factor) >= merging.coarse_min_rows:
        sizes.append(rows)
    return sizes[::-1]


def choose_coarse_schedule(rows: int, gap: float, merging: MergeTuning, *, last: bool, tried: bool) -> Schedule:
    """Return the merging schedule of a coarse problem.

    Args:
        rows: Number of rows of the coarse problem.
        gap: Target relative gap of the full program.
        merging: The schedules.
        last: Whether this is the largest coarse problem.
        tried: Whether a trial solve follows the coarse problem.

    Returns:
        Relative gaps and merging thresholds.
    """
    large = rows >= merging.coarse_large_rows
    usual = merging.coarse_of_trial if tried else merging.coarse_large if large else merging.coarse
    factor = 1.0 if gap < merging.loose_gap else merging.loose_factor
    least = gap if last else max(gap, merging.coarse_first_gap)
    return tuple((level, factor * threshold) for level, threshold in usual if level >= least)
