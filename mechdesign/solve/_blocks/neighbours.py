"""Columns left out, put together with the columns in use that would serve in their place, and with their estimates.

Of all estimates of a floor a few matter to a column: those that the adversary would make on seeing a column much like
it. What is proved with some estimates is proved, so that a column is priced with these first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram

_NEIGHBOURS = 4
# Columns with less than this part of an even share are not in use.
_EMPTY = 1e-3


@dataclass(frozen=True, eq=False)
class Group:
    """Columns alike, and for each floor the estimates to begin with."""

    columns: Integers
    estimates: tuple[Integers, ...]


def grouped(
    program: BlockProgram, used: Integers, x: Floats, others: Integers, largest: int, worse: float
) -> list[Group]:
    """Put the columns `others` of a program into groups of at most `largest`, by the column in use that is most alike.

    Without floors, groups are of any columns.

    Args:
        program: with costs of all columns.
        used: the columns in use.
        x: their values (n, used).
        others: the columns to group.
        largest: how many a group may have.
        worse: by what part estimates that matter may be worse than the best one.
    """
    if not program.floors:
        return [Group(others[start : start + largest], ()) for start in range(0, others.size, largest)]
    mass = x.sum(axis=0)
    kept = np.flatnonzero(mass > _EMPTY * mass.mean())
    shapes = x[:, kept] / mass[kept]
    # What each of the others would cost in the place of a column in use, beyond what that one does.
    beyond = program.cost[:, others].T @ shapes - (program.cost[:, used[kept]] * shapes).sum(axis=0)
    near = np.argsort(beyond, axis=1)[:, :_NEIGHBOURS]
    errors = [floor.error @ shapes for floor in program.floors]
    matter = [error <= (1 + worse) * error.min(axis=0) for error in errors]
    groups = []
    for middle in np.unique(near[:, 0]):
        alike = np.flatnonzero(near[:, 0] == middle)
        for start in range(0, alike.size, largest):
            mine = alike[start : start + largest]
            estimates = tuple(np.flatnonzero(each[:, np.unique(near[mine])].any(axis=1)) for each in matter)
            groups.append(Group(others[mine], estimates))
    return sorted(groups, key=lambda group: -group.columns.size)
