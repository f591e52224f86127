"""Rows put together: a small program like a large one, to learn which columns the large one will need.

Rows with small exponents between them are much alike in every channel that meets the ratio bounds, so that a cluster of
them can stand for one row: costs and errors are summed, bounds are those between the rows in the middle. Its value is
neither above nor below that of the program; the columns that its optimum uses are nearly those that the program's uses.

Where some pairs have no bounds the exponents are those that chains of bounds imply, and clusters are bound where any of
their rows are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mechdesign.programs.block_angular import BlockProgram
from mechdesign.programs.chains import implied_exponents

__all__ = ["aggregated"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Clusters are smaller where rows cost more: a peaked prior needs them there.
_ATTRACTION = 0.3


def aggregated(program: BlockProgram, count: int) -> BlockProgram:
    """Return `program` with its rows put together to `count` clusters."""
    implied = program.exponents
    if np.isinf(implied).sum() > program.rows:
        implied = implied_exponents(implied)
    middles, cluster = _clusters(program, implied, count)
    member = np.zeros((middles.size, program.rows))
    member[cluster, np.arange(program.rows)] = 1.0
    joined = member @ np.isfinite(program.exponents) @ member.T > 0
    exponents = np.where(joined, implied[np.ix_(middles, middles)], np.inf)
    np.fill_diagonal(exponents, np.inf)
    floors = tuple(replace(floor, error=floor.error @ member.T) for floor in program.floors)
    worst = program.worst
    if worst is not None:
        worst = replace(worst, row=cluster[worst.row])
    return BlockProgram(member @ program.cost, exponents, floors, worst)


def _clusters(program: BlockProgram, implied: Array, count: int) -> tuple[Integers, Integers]:
    """Return the rows in the middle of clusters, each the farthest from those before, and the cluster of each row."""
    apart = np.minimum(implied, implied.T)
    finite = np.isfinite(apart)
    apart = np.where(finite, apart, 2 * apart[finite].max(initial=1.0))
    np.fill_diagonal(apart, 0.0)
    cost = np.zeros(program.rows)
    if program.worst is None:
        cost = np.abs(program.cost).max(axis=1)
    weight = (cost / cost.max()) ** _ATTRACTION if cost.max() > 0 else np.ones(program.rows)
    middles = [int(weight.argmax())]
    distance = apart[:, middles[0]].copy()
    while len(middles) < count:
        middles.append(int((distance * weight).argmax()))
        np.minimum(distance, apart[:, middles[-1]], out=distance)
    chosen = np.unique(middles)
    return chosen, apart[:, chosen].argmin(axis=1)
