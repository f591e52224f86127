"""Group omitted columns by the most similar column of the working set, and choose the estimates for each group.

Only a few estimates of a floor matter to a column: the best estimates for similar columns. Pricing starts with these
estimates, because a bound that some estimates prove is valid for all.

Theory: block_method, Pricing problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.tuning import PricingTuning


@dataclass(frozen=True, eq=False)
class ColumnGroup:
    """Similar columns, with the estimates of each floor that are used to price these columns."""

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
    """Group columns by the most similar column of the working set; without floors, group consecutive columns.

    Args:
        program: The program with all columns.
        used: The columns of the working set (k,).
        x: The values of these columns (n, k).
        others: The columns to group.
        size: Maximum number of columns in a group.
        slack: Relative amount by which the error of an estimate may exceed the least error for a similar column.
        tuning: Constants of pricing.

    Returns:
        Groups of columns, the largest first.
    """
    if not program.floors:
        return [ColumnGroup(others[start : start + size], ()) for start in range(0, others.size, size)]
    mass = x.sum(axis=0)
    kept = np.flatnonzero(mass > tuning.min_mass_share * mass.mean())
    shapes = x[:, kept] / mass[kept]
    # The additional cost if an omitted column replaced a column of the working set.
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
