"""The working set of a restricted problem: columns, estimates of each floor, and the active estimates of each column.

Theory: interior_point, Restricted problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockMultipliers, BlockProgram
from mechdesign.solve._blocks.estimates import find_close_estimates, with_all_estimates, with_estimates
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.tuning import EstimateTuning


@dataclass(frozen=True, eq=False)
class BlockWorkingSet:
    """Columns of a program, chosen estimates of each floor, and the active estimates of each column.

    An estimate is *active* in a column if the restricted problem contains its row. The sets are rather too large than
    too small, because a missing estimate is only detected at the end of a round.

    Attributes:
        columns: The columns in use (B,).
        estimates: The chosen estimates of each floor (k,).
        active: For each floor, flags of all estimates and all columns (K, m).
        tuning: Tolerances for choosing estimates.
    """

    columns: Integers
    estimates: tuple[Integers, ...]
    active: tuple[Flags, ...]
    tuning: EstimateTuning

    @classmethod
    def with_all_columns(cls, program: BlockProgram, tuning: EstimateTuning) -> BlockWorkingSet:
        """Return the working set with all columns and all estimates."""
        counts = [len(floor.error) for floor in program.floors]
        active = tuple(np.ones((count, program.columns), dtype=bool) for count in counts)
        return cls(np.arange(program.columns), tuple(np.arange(count) for count in counts), active, tuning)

    def __len__(self) -> int:
        """Return the number of columns."""
        return int(self.columns.size)

    def replace_columns(self, columns: Integers) -> BlockWorkingSet:
        """Return the working set with other columns."""
        return replace(self, columns=columns)

    def add(self, columns: Sequence[int]) -> BlockWorkingSet:
        """Return the working set extended by the given columns."""
        return self.replace_columns(np.union1d(self.columns, np.array(columns, dtype=np.int64)))

    def restrict(self, program: BlockProgram) -> BlockProgram:
        """Return the program with all columns, but only the chosen estimates."""
        return with_estimates(program, self.estimates)

    def expand_multipliers(self, program: BlockProgram, multipliers: BlockMultipliers) -> BlockMultipliers:
        """Return multipliers for all estimates of the program, given those for the chosen estimates."""
        return with_all_estimates(program, self.estimates, multipliers)

    def active_estimates(self) -> tuple[Flags, ...]:
        """For each floor, return flags (B, k) of the chosen estimates that are active in the columns in use."""
        flags = [active[np.ix_(some, self.columns)].T for active, some in zip(self.active, self.estimates, strict=True)]
        # A column that returns after some rounds may have no active estimate; then all chosen ones become active.
        return tuple(each | ~each.any(axis=1, keepdims=True) for each in flags)

    def select_estimates(self, program: BlockProgram, x: Floats, factor: float) -> BlockWorkingSet:
        """Return the working set with only the estimates that are close to the best one in some column.

        Args:
            program: A program with only the chosen estimates, and any number n of rows.
            x: The values (n, B) of the columns.
            factor: Factor of the tolerance `chosen_slack`.

        Returns:
            The working set with fewer estimates, and with the active flags at `x`.
        """
        close = find_close_estimates(program, x, factor * self.tuning.chosen_slack)
        near = find_close_estimates(program, x, self.tuning.active_slack)
        flags = tuple(every.copy() for every in self.active)
        for every, some, mine in zip(flags, self.estimates, near, strict=True):
            every[np.ix_(some, self.columns)] = mine
        estimates = tuple(some[each.any(axis=1)] for some, each in zip(self.estimates, close, strict=True))
        return replace(self, estimates=estimates, active=flags)

    def add_with_estimates(
        self, more: Mapping[int, tuple[Integers, ...]], estimates: tuple[Integers, ...]
    ) -> BlockWorkingSet:
        """Return the working set extended by columns, each with the estimates that probably matter to it.

        Args:
            more: The columns. For each floor, the positions of the column's estimates in `estimates`.
            estimates: Some estimates of each floor (k,).

        Returns:
            The extended working set.
        """
        flags, chosen = tuple(every.copy() for every in self.active), list(self.estimates)
        for column, close in more.items():
            for index, (every, some) in enumerate(zip(estimates, close, strict=True)):
                flags[index][:, column] = False
                flags[index][every[some], column] = True
                chosen[index] = np.union1d(chosen[index], every[some])
        columns = np.union1d(self.columns, np.array(list(more), dtype=np.int64))
        return replace(self, columns=columns, estimates=tuple(chosen), active=flags)

    def add_missing_estimates(
        self, program: BlockProgram, x: Floats, active: tuple[Flags, ...] | None
    ) -> tuple[BlockWorkingSet, bool]:
        """Return the working set extended by missing estimates, and whether no best estimate of a column was missing.

        Args:
            program: A program with all estimates.
            x: The values (n, B) of the columns.
            active: Flags (B, k) of the chosen estimates that were active; None if all were.

        Returns:
            The extended working set, and whether no best estimate was missing.
        """
        best, close = find_close_estimates(program, x, 0.0), find_close_estimates(program, x, self.tuning.chosen_slack)
        flags, chosen, complete = tuple(every.copy() for every in self.active), list(self.estimates), True
        for index, some in enumerate(self.estimates):
            # After a stall without a state, all estimates become active.
            flags[index][:, self.columns] = True if active is None else flags[index][:, self.columns] | close[index]
            used = np.zeros_like(best[index])
            used[some] = True if active is None else active[index].T
            if not (best[index] <= used).all():
                complete = False
                chosen[index] = np.union1d(some, np.flatnonzero(close[index].any(axis=1)))
        return replace(self, estimates=tuple(chosen), active=flags), complete


def measure_reduced_costs(program: BlockProgram, columns: Integers, state: BlockState) -> tuple[Floats, float]:
    """Return the reduced costs (B,) of the columns in use at the prices of a state, and the mean cost of a row.

    Args:
        program: The program that the state belongs to.
        columns: The columns in use (B,).
        state: A state of that program with these columns.

    Returns:
        Reduced costs per unit of mass, Σ_s x_s = 1, and the cost of the state divided by the number of rows.
    """
    n = program.rows
    x, w, v = state.points[:, :n].T, state.points[:, n:], state.multipliers[n : n + len(program.floors)]
    costs = program.cost[:, columns] * x
    more = costs.sum(axis=0) - state.multipliers[:n] @ x - w @ v
    return more / x.sum(axis=0), abs(float(costs.sum())) / n
