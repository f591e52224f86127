"""Restrict the adversary's estimates: each column needs only the estimates that are nearly optimal for it.

A column matters to a floor only through the best estimates after observing that column. A proof with some of the
estimates is valid for all of them, because the multipliers of the other estimates may be 0. The floor of a channel is
always checked with all estimates.

Theory: block_method, Restricted problems.
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
    """For each floor, return flags (k, B) of the estimates with errors of at most 1 + `worse` times the least error."""
    errors = [floor.error @ x for floor in program.floors]
    return [error <= (1 + worse) * error.min(axis=0) for error in errors]


def activate_close_estimates(state: BlockState, program: BlockProgram, tuning: EstimateTuning) -> BlockState:
    """Activate the estimates whose errors at the point of the state are close to the least error.

    Estimates with too little slack at the point remain inactive; they can be activated later.
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
    """Return the program with only the given estimates of each floor."""
    chosen = zip(program.floors, estimates, strict=True)
    return replace(program, floors=tuple(replace(floor, error=floor.error[some]) for floor, some in chosen))


def with_all_estimates(
    program: BlockProgram, estimates: Sequence[Integers], multipliers: BlockMultipliers
) -> BlockMultipliers:
    """Extend multipliers for some estimates to all estimates of a program, with zeros for the others."""
    floors = []
    for floor, some, mine in zip(program.floors, estimates, multipliers.floors, strict=True):
        values = np.zeros((len(floor.error), mine.shape[1]))
        values[some] = mine
        floors.append(values)
    return replace(multipliers, floors=tuple(floors))
