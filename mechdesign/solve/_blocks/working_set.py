"""The working set of a restricted problem: columns, estimates of each floor, and the active estimates of each column.

Theory: block_method, Restricted problems.
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
    """The columns of a working set, the chosen estimates of each floor, and the active estimates of each column.

    An estimate is *active* in a column if the restricted problem contains its row. More estimates are active than
    strictly necessary, because a missing estimate is detected only at the end of a round.

    Attributes:
        columns: The columns of the working set (B,).
        estimates: The chosen estimates of each floor (k,).
        active: For each floor, flags (K, m) of the active estimates in each column.
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
        """Return the working set with `columns` in place of its columns."""
        return replace(self, columns=columns)

    def add(self, columns: Sequence[int]) -> BlockWorkingSet:
        """Return the working set extended by the given columns."""
        return self.replace_columns(np.union1d(self.columns, np.array(columns, dtype=np.int64)))

    def restrict(self, program: BlockProgram) -> BlockProgram:
        """Return the program with all columns, but only the chosen estimates."""
        return with_estimates(program, self.estimates)

    def expand_multipliers(self, program: BlockProgram, multipliers: BlockMultipliers) -> BlockMultipliers:
        """Extend multipliers for the chosen estimates to all estimates of the program."""
        return with_all_estimates(program, self.estimates, multipliers)

    def active_estimates(self) -> tuple[Flags, ...]:
        """For each floor, return flags (B, k) of the chosen estimates that are active in the columns."""
        flags = [active[np.ix_(some, self.columns)].T for active, some in zip(self.active, self.estimates, strict=True)]
        # If a column that was removed enters again, it may have no active estimate; all chosen estimates then become
        # active.
        return tuple(each | ~each.any(axis=1, keepdims=True) for each in flags)

    def select_estimates(self, program: BlockProgram, x: Floats, factor: float) -> BlockWorkingSet:
        """Keep only the estimates whose errors are close to the least error of at least one column.

        Args:
            program: A program with only the chosen estimates, such as a coarse problem with n rows.
            x: The values (n, B) of the columns.
            factor: Factor by which the tolerance `chosen_slack` is multiplied.

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
        """Return the working set extended by columns and by the estimates that are probably relevant to them.

        Args:
            more: A dictionary from columns to the positions, in `estimates`, of their estimates for each floor.
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
        """Return the working set with missing estimates added, and whether each column's best estimates were active.

        Args:
            program: A program with all estimates.
            x: The values (n, B) of the columns.
            active: For each floor, flags (B, k) of the chosen estimates that were active. If it is None, all estimates
                were active.

        Returns:
            The extended working set, and whether the best estimates of all columns were active.
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
    """Return the reduced costs (B,) of the working set at the prices of a state, and the mean cost of a row.

    Args:
        program: The program of the state.
        columns: The columns of the working set (B,).
        state: A state of `program`, restricted to these columns.

    Returns:
        Reduced costs of columns with Σ_s x_s = 1, and the cost of the state divided by the number of rows.
    """
    n = program.rows
    x, w, v = state.points[:, :n].T, state.points[:, n:], state.multipliers[n : n + len(program.floors)]
    costs = program.cost[:, columns] * x
    more = costs.sum(axis=0) - state.multipliers[:n] @ x - w @ v
    return more / x.sum(axis=0), abs(float(costs.sum())) / n
