"""Few of the adversary's estimates: those that are best, or nearly so, for the columns that there are.

A floor needs the estimates that the adversary would make on seeing one of the columns in use. What is proved with some
estimates is proved, as multipliers of the others may be 0; whether a channel keeps a floor is decided with all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mechdesign.programs.block_angular import BlockMultipliers, BlockProgram

__all__ = ["close_estimates", "with_all_estimates", "with_estimates"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def close_estimates(program: BlockProgram, x: Array, worse: float) -> list[Integers]:
    """Return for each floor the estimates that are within a part `worse` of the best one for any of the columns x."""
    errors = [floor.error @ x for floor in program.floors]
    return [np.flatnonzero((error <= (1 + worse) * error.min(axis=0)).any(axis=1)) for error in errors]


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
