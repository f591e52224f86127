"""Groups of columns left out: by the column in use that would serve in their place, and with its estimates.

Only a few estimates of a floor matter to a column: those that are best for similar columns. A bound that some
estimates prove is valid, so that a column is priced with these first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.tuning import PricingTuning


@dataclass(frozen=True, eq=False)
class ColumnGroup:
    """Columns alike, and for each floor the estimates to begin with."""

    columns: Integers
    estimates: tuple[Integers, ...]


def group_columns(
    program: BlockProgram,
    used: Integers,
    x: Floats,
    others: Integers,
    size: int,
    slack: float,
    tuning: PricingTuning,
) -> list[ColumnGroup]:
    """Group columns of a program by the column in use that is most similar; any columns where there are no floors.

    Args:
        program: The program with all its columns.
        used: The columns in use.
        x: Their values (n, used).
        others: The columns to group.
        size: Largest number of columns in a group.
        slack: Relative amount by which an estimate may be worse than the best one and still count.
        tuning: The constants.
    """
    if not program.floors:
        return [ColumnGroup(others[start : start + size], ()) for start in range(0, others.size, size)]
    mass = x.sum(axis=0)
    kept = np.flatnonzero(mass > tuning.min_mass_share * mass.mean())
    shapes = x[:, kept] / mass[kept]
    # What each of the others would cost in the place of a column in use, beyond what that one does.
    beyond = program.cost[:, others].T @ shapes - (program.cost[:, used[kept]] * shapes).sum(axis=0)
    near = np.argsort(beyond, axis=1)[:, : tuning.neighbours]
    errors = [floor.error @ shapes for floor in program.floors]
    matter = [error <= (1 + slack) * error.min(axis=0) for error in errors]
    groups = []
    for middle in np.unique(near[:, 0]):
        alike = np.flatnonzero(near[:, 0] == middle)
        for start in range(0, alike.size, size):
            mine = alike[start : start + size]
            estimates = tuple(np.flatnonzero(each[:, np.unique(near[mine])].any(axis=1)) for each in matter)
            groups.append(ColumnGroup(others[mine], estimates))
    return sorted(groups, key=lambda group: -group.columns.size)
