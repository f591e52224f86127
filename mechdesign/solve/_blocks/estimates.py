"""Few of the adversary's estimates: for each column those that are best, or nearly so, for it.

A floor needs the estimates that the adversary would make on seeing one of the columns in use, and each column those of
its own. What is proved with some estimates is proved, as multipliers of the others may be 0; whether a channel keeps a
floor is decided with all.
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
    """Tell for each floor which estimates are within a part `worse` of the best for which of the columns x (k, B)."""
    errors = [floor.error @ x for floor in program.floors]
    return [error <= (1 + worse) * error.min(axis=0) for error in errors]


def activate_close_estimates(state: BlockState, program: BlockProgram, tuning: EstimateTuning) -> BlockState:
    """Return a state in which the estimates that are close at its point take part, besides those that do.

    Those that its point does not allow stay out: they can come in later.
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
    """Return the program with some of the estimates of each floor only."""
    chosen = zip(program.floors, estimates, strict=True)
    return replace(program, floors=tuple(replace(floor, error=floor.error[some]) for floor, some in chosen))


def with_all_estimates(
    program: BlockProgram, estimates: Sequence[Integers], multipliers: BlockMultipliers
) -> BlockMultipliers:
    """Return multipliers of a program with some of the estimates as those of the program, 0 for the others."""
    floors = []
    for floor, some, mine in zip(program.floors, estimates, multipliers.floors, strict=True):
        values = np.zeros((len(floor.error), mine.shape[1]))
        values[some] = mine
        floors.append(values)
    return replace(multipliers, floors=tuple(floors))
