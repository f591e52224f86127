"""Restrict the adversary's estimates: each column needs only the estimates that are nearly optimal for it.

A floor needs the estimates that the adversary would make after observing a column in use. A proof with some estimates
is a proof with all, because the other multipliers may be 0. The floor of a channel is always checked with all
estimates.

Theory: interior_point, Restricted problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockMultipliers, BlockProgram
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.tuning import EstimateTuning


def find_close_estimates(program: BlockProgram, x: Floats, worse: float) -> list[Flags]:
    """For each floor, return flags (k, B) of the estimates whose error is within the share `worse` of the best one."""
    errors = [floor.error @ x for floor in program.floors]
    return [error <= (1 + worse) * error.min(axis=0) for error in errors]


def activate_close_estimates(state: BlockState, program: BlockProgram, tuning: EstimateTuning) -> BlockState:
    """Return a state in which the estimates that are close to the best one at its point become active.

    Estimates with too little slack at the point remain inactive; they can be added later.
    """
    n, floors = program.rows, []
    x, close = state.points[:, :n], find_close_estimates(program, state.points[:, :n].T, tuning.active_slack)
    for index, (floor, flags, y) in enumerate(zip(program.floors, close, state.floor_y, strict=True)):
        parts = state.points[:, n + index, None]
        slacks = x @ floor.error.T - parts
        new = flags.T & (y == 0) & (slacks > tuning.min_slack * parts)
        floors.append(np.divide(state.mu, slacks, out=y.copy(), where=new))
    return replace(state, floor_y=tuple(floors))


def with_estimates(program: BlockProgram, estimates: Sequence[Integers]) -> BlockProgram:
    """Return the program with only some of the estimates of each floor."""
    chosen = zip(program.floors, estimates, strict=True)
    return replace(program, floors=tuple(replace(floor, error=floor.error[some]) for floor, some in chosen))


def with_all_estimates(
    program: BlockProgram, estimates: Sequence[Integers], multipliers: BlockMultipliers
) -> BlockMultipliers:
    """Return multipliers for all estimates of a program, given those for some estimates; the others are 0."""
    floors = []
    for floor, some, mine in zip(program.floors, estimates, multipliers.floors, strict=True):
        values = np.zeros((len(floor.error), mine.shape[1]))
        values[some] = mine
        floors.append(values)
    return replace(multipliers, floors=tuple(floors))
