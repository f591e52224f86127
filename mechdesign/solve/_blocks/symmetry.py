"""Symmetries of a block program: permutations of rows and columns that leave it unchanged.

Theory: block_method, Symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.solve._block_angular import BlockProgram


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A group of G permutations of rows, columns, estimates and worst-cost members, starting with the identity.

    Element γ maps row s to rows[γ, s], column o to columns[γ, o], and so on. The program is invariant:
    exponents[γs, γt] = exponents[s, t], cost[γs, γo] = cost[s, o], and error[γh, γs] = error[h, s]. The worst cost is
    invariant in the same way.

    Attributes:
        rows: Images of the rows (G, n).
        columns: Images of the columns (G, m).
        members: Images of the members of the worst cost (G, q).
        estimates: Images of the estimates (G, k) of each floor.
    """

    rows: Integers
    columns: Integers
    members: Integers
    estimates: tuple[Integers, ...]

    @property
    def order(self) -> int:
        """Number G of group elements."""
        return int(self.rows.shape[0])

    def representatives(self, columns: int) -> tuple[Integers, Integers]:
        """Return one column of each orbit and the sizes of the orbits."""
        least = self.columns.min(axis=0)
        kept, counts = np.unique(least, return_counts=True)
        assert int(counts.sum()) == columns
        return kept.astype(np.int64), counts.astype(np.int64)

    def origins(self, columns: int) -> tuple[Integers, Integers]:
        """For every column, return its orbit's index and an element that maps the orbit's representative to it."""
        kept, _ = self.representatives(columns)
        mover = np.zeros(columns, dtype=np.int64)
        orbit = np.zeros(columns, dtype=np.int64)
        for index in range(kept.size - 1, -1, -1):
            for element in range(self.order - 1, -1, -1):
                column = self.columns[element, kept[index]]
                mover[column], orbit[column] = element, index
        return mover, orbit


def trivial_symmetry(program: BlockProgram) -> Symmetry:
    """Return the group that contains only the identity."""
    members = program.worst.row.size if program.worst is not None else 0
    identity = [np.arange(size, dtype=np.int64)[None, :] for size in (program.rows, program.columns, members)]
    estimates = tuple(np.arange(floor.error.shape[0])[None, :] for floor in program.floors)
    return Symmetry(identity[0], identity[1], identity[2], estimates)
