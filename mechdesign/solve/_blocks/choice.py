"""What a restricted program has: some of the columns, some of the adversary's estimates, and which matter to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockMultipliers, BlockProgram
from mechdesign.solve._blocks.estimates import close_estimates, with_all_estimates, with_estimates
from mechdesign.solve._blocks.iterate import State

NEAR = 0.3
"""By what part worse estimates than the best one still take part in a column."""

CLOSE = 0.1
"""By what part the estimates that are chosen may be worse than the best one for some column."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Columns of a program, estimates of each of its floors, and which of these take part in which columns.

    A column has too many rather than too few estimates: one that is missing is noticed late.
    """

    columns: Integers
    """The chosen columns (B,)."""
    estimates: tuple[Integers, ...]
    """The chosen estimates of each floor (k,)."""
    near: tuple[Flags, ...]
    """For each floor, which of all its estimates take part in which of all columns."""

    @classmethod
    def everything(cls, program: BlockProgram) -> Choice:
        """Return the choice of all there is."""
        counts = [len(floor.error) for floor in program.floors]
        near = tuple(np.ones((count, program.columns), dtype=bool) for count in counts)
        return cls(np.arange(program.columns), tuple(np.arange(count) for count in counts), near)

    def only(self, columns: Integers) -> Choice:
        """Return the choice with these columns instead."""
        return replace(self, columns=columns)

    def of(self, program: BlockProgram) -> BlockProgram:
        """Return the program with the chosen estimates only, and all columns."""
        return with_estimates(program, self.estimates)

    def full(self, program: BlockProgram, multipliers: BlockMultipliers) -> BlockMultipliers:
        """Return multipliers of the program with the chosen estimates as those of the program."""
        return with_all_estimates(program, self.estimates, multipliers)

    def flags(self) -> tuple[Flags, ...]:
        """Tell which of the chosen estimates take part in which of the chosen columns (B, k)."""
        flags = [near[np.ix_(some, self.columns)].T for near, some in zip(self.near, self.estimates, strict=True)]
        # A column that was left out for a while may have none of those chosen since.
        return tuple(each | ~each.any(axis=1, keepdims=True) for each in flags)

    def closer(self, program: BlockProgram, x: Floats, worse: float) -> Choice:
        """Return the choice of those estimates that are close to the best one for some chosen column.

        In each of these columns the chosen ones that are near take part from then on.

        Args:
            program: one with the chosen estimates alone, and any number n of rows.
            x: the values (n, B) of the chosen columns.
            worse: by what part a close estimate may be worse than the best one for a column.
        """
        close, near = close_estimates(program, x, worse), close_estimates(program, x, NEAR)
        flags = tuple(every.copy() for every in self.near)
        for every, some, mine in zip(flags, self.estimates, near, strict=True):
            every[np.ix_(some, self.columns)] = mine
        estimates = tuple(some[each.any(axis=1)] for some, each in zip(self.estimates, close, strict=True))
        return Choice(self.columns, estimates, flags)

    def joined(self, more: Mapping[int, tuple[Integers, ...]], estimates: tuple[Integers, ...]) -> Choice:
        """Return the choice with more columns, each with those of the given estimates that are likely to matter to it.

        Args:
            more: the columns, and for each floor where in `estimates` those of the column are.
            estimates: some estimates of each floor.
        """
        flags, chosen = tuple(every.copy() for every in self.near), list(self.estimates)
        for column, close in more.items():
            for index, (every, some) in enumerate(zip(estimates, close, strict=True)):
                flags[index][:, column] = False
                flags[index][every[some], column] = True
                chosen[index] = np.union1d(chosen[index], every[some])
        columns = np.union1d(self.columns, np.array(list(more), dtype=np.int64))
        return Choice(columns, tuple(chosen), flags)

    def completed(self, program: BlockProgram, x: Floats, near: tuple[Flags, ...] | None) -> tuple[Choice, bool]:
        """Return the choice with the estimates that were missing, and whether none of the best ones was.

        Args:
            program: one with all estimates.
            x: the values (n, B) of the chosen columns.
            near: which of the chosen estimates took part in which of these (B, k); None counts as all.
        """
        best, close = close_estimates(program, x, 0.0), close_estimates(program, x, CLOSE)
        flags, chosen, complete = tuple(every.copy() for every in self.near), list(self.estimates), True
        for index, some in enumerate(self.estimates):
            # Where the stages have stalled, what was near may have been too little.
            flags[index][:, self.columns] = True if near is None else flags[index][:, self.columns] | close[index]
            used = np.zeros_like(best[index])
            used[some] = True if near is None else near[index].T
            if not (best[index] <= used).all():
                complete = False
                chosen[index] = np.union1d(some, np.flatnonzero(close[index].any(axis=1)))
        return Choice(self.columns, tuple(chosen), flags), complete


def beyond(program: BlockProgram, columns: Integers, state: State) -> tuple[Floats, float]:
    """Return what columns in use cost beyond a state's multipliers, as columns with Σ_s x_s = 1, and a row's cost."""
    n = program.rows
    x, w, v = state.points[:, :n].T, state.points[:, n:], state.multipliers[n : n + len(program.floors)]
    costs = program.cost[:, columns] * x
    more = costs.sum(axis=0) - state.multipliers[:n] @ x - w @ v
    return more / x.sum(axis=0), abs(float(costs.sum())) / n
