"""Solve restricted problems of a block program by the interior-point method, with column merging.

A working set has columns, estimates of each floor, and the active estimates of each column. A column matters to a floor
only through the best estimates after observing that column. A proof with some of the estimates is valid for all of
them, because the multipliers of the other estimates may be 0. The floor of a channel is always checked with all
estimates.

Along the central path, the columns that an optimum does not use tend to zero, and many of them shorten the steps. If
several columns satisfy a ratio bound, their sum satisfies it, too, and the row sums do not change. The contribution of
the sum to a floor is at least the sum of the contributions. A small column can therefore be added to another column,
and the iteration continues with one block fewer.

Theory: block_method, Restricted problems; Column merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Progress
from mechdesign.base._errors import SolverError
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    BlockSolution,
    Iteration,
    objective,
    repair,
    weigh_costs,
    with_columns,
)
from mechdesign.solve._blocks.interior_point import IterationEnd, iterate_blocks, largest_cost, solve_by_interior_point
from mechdesign.solve._blocks.iterate import LOW_MU_START, UNIFORM_START, BlockState, Start
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.memory import MemoryBudget
from mechdesign.solve._blocks.tuning import EstimateTuning, MergeTuning, Schedule, TrialTuning, Tuning
from mechdesign.solve._column_generation import Bracket, RestrictedSolution
from mechdesign.solve._contract import Options, Status


def find_close_estimates(program: BlockProgram, x: Floats, worse: float) -> list[Flags]:
    """For each floor, return flags (k, B) of the estimates with errors of at most 1 + `worse` times the least error."""
    errors = [floor.error @ x for floor in program.floors]
    return [error <= (1 + worse) * error.min(axis=0) for error in errors]


def activate_close_estimates(state: BlockState, program: BlockProgram, tuning: EstimateTuning) -> BlockState:
    """Activate the estimates whose errors at the point of the state are close to the least error.

    Estimates with too little slack at the point remain inactive; they can be activated later.
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
    """Return the program with only the given estimates of each floor."""
    chosen = zip(program.floors, estimates, strict=True)
    return replace(program, floors=tuple(replace(floor, error=floor.error[some]) for floor, some in chosen))


def with_all_estimates(
    program: BlockProgram, estimates: Sequence[Integers], multipliers: BlockMultipliers
) -> BlockMultipliers:
    """Extend multipliers for some estimates to all estimates of a program, with zeros for the others."""
    floors = []
    for floor, some, mine in zip(program.floors, estimates, multipliers.floors, strict=True):
        values = np.zeros((len(floor.error), mine.shape[1]))
        values[some] = mine
        floors.append(values)
    return replace(multipliers, floors=tuple(floors))


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


def merge_columns(
    program: BlockProgram, working: BlockWorkingSet, state: BlockState, threshold: float
) -> tuple[BlockState, BlockWorkingSet]:
    """Merge the columns of a working set whose mass is below `threshold` times the average mass.

    Args:
        program: The program of the state.
        working: The working set.
        state: A state with the columns of the working set.
        threshold: A column is merged if its mass is below this multiple of the average mass n/B.

    Returns:
        The state and the working set after merging.
    """
    weights = state.multipliers[program.rows + len(program.floors) :]
    # Only columns whose w satisfies the constraints of all estimates are merged; otherwise the sum could violate a
    # constraint.
    parts, x = state.points[:, program.rows :].T, state.points[:, : program.rows].T
    sound = [w <= (floor.error @ x).min(axis=0) for w, floor in zip(parts, program.floors, strict=True)]
    movable = np.logical_and.reduce(sound) if sound else None
    after, stay = merge_small_columns(state, weigh_costs(program, weights)[:, working.columns], threshold, movable)
    return after, working.replace_columns(working.columns[stay])


def merge_small_columns(
    state: BlockState, cost: Floats, threshold: float, movable: Flags | None = None
) -> tuple[BlockState, Integers]:
    """Add each column of a state with little mass to the column that replaces it at the least cost.

    Args:
        state: A state of B blocks.
        cost: The costs (n, B) of the columns.
        threshold: A column is merged if its mass is below this multiple of the average mass n/B.
        movable: Flags (B,) of the columns that may be merged. By default, all columns may be merged.

    Returns:
        The state of the remaining blocks, and their indices.
    """
    blocks, n = state.points.shape[0], cost.shape[0]
    x = state.points[:, :n]
    mass = x.sum(axis=1) * blocks / n
    leaves = (mass < threshold) & (True if movable is None else movable)
    stay, leave = np.flatnonzero(~leaves), np.flatnonzero(leaves)
    if not leave.size or not stay.size:
        return state, np.arange(blocks)
    points = state.points[stay].copy()
    np.add.at(points, (x[leave] @ cost[:, stay]).argmin(axis=1), state.points[leave])
    floors = tuple(values[stay] for values in state.floor_y)
    return replace(
        state, points=points, ratio_y=state.ratio_y[stay], floor_y=floors, contribution_y=state.contribution_y[stay]
    ), stay


def choose_schedule(tuning: MergeTuning, *, floors: bool, sparse: bool) -> Schedule:
    """Return the merging schedule for a program with or without floors, and with sparse or dense blocks."""
    return tuning.sparse if sparse else tuning.with_floors if floors else tuning.without_floors


def needs_trial(rows: int, gap: float, trial: TrialTuning, merging: MergeTuning) -> bool:
    """Return whether a program with floors is large enough, and the target gap small enough, for a trial solve."""
    return rows >= trial.min_rows and gap <= trial.max_gap_share * merging.trial[-1][0]


def choose_coarse_sizes(rows: int, trial: TrialTuning, merging: MergeTuning) -> list[int]:
    """Return the numbers of rows of the coarse problems, the smallest first."""
    sizes: list[int] = []
    factor = merging.coarse_factor_of_trial if rows >= trial.min_rows else merging.coarse_factor
    while (rows := rows // factor) >= merging.coarse_min_rows:
        sizes.append(rows)
    return sizes[::-1]


def choose_coarse_schedule(rows: int, gap: float, merging: MergeTuning, *, last: bool, tried: bool) -> Schedule:
    """Return the merging schedule of a coarse problem.

    Args:
        rows: Number of rows of the coarse problem.
        gap: Target relative gap of the full program.
        merging: The schedules.
        last: Whether this is the largest coarse problem.
        tried: Whether a trial solve follows the coarse problem.

    Returns:
        Relative gaps and merging thresholds.
    """
    large = rows >= merging.coarse_large_rows
    usual = merging.coarse_of_trial if tried else merging.coarse_large if large else merging.coarse
    factor = 1.0 if gap < merging.loose_gap else merging.loose_factor
    least = gap if last else max(gap, merging.coarse_first_gap)
    return tuple((level, factor * threshold) for level, threshold in usual if level >= least)


BlockBracket = Bracket[Floats, BlockMultipliers]
BlockRestricted = RestrictedSolution[BlockWorkingSet, BlockSolution]

# A point is infeasible if its cost is below the lower bound by more than this share, which rounding does not explain.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ScheduleRun:
    """The result of iterating along a merging schedule.

    Attributes:
        working: The working set after merging.
        state: The last state. The state is None after a numerical stall, or if the multipliers are not initialised. If
            a state exists and the status is STALLED, the memory does not suffice for a higher precision.
        status: OPTIMAL at the end of the schedule, otherwise the reason for an early end.
    """

    working: BlockWorkingSet
    state: BlockState | None
    status: Status


class BlockMaster:
    """Solver of the restricted problems of a block program, which also records the iterations of all rounds.

    Args:
        program: The program with all columns.
        options: Options of the solve.
        gap: Target relative gap.
        best: The bracket over all columns.
        budget: The memory budget of the process.
        tuning: Constants of all algorithms.

    Attributes:
        history: Iterations of all solves, in order.
        memory: Largest memory estimate [bytes].
        blocks: Largest number of blocks in a round.
        proving: Total time for making the multipliers sparse [s].
        round_deadline: Deadline of the restricted problems of the current round.
        merges_all_columns: Whether the blocks are dense and the program has no floors. If true, the first round starts
            with all columns at a low barrier parameter, and merges small columns.
        schedule: Gaps and merging thresholds for this kind of program.
    """

    def __init__(
        self,
        program: BlockProgram,
        options: Options,
        gap: float,
        best: BlockBracket,
        budget: MemoryBudget,
        tuning: Tuning,
    ) -> None:
        self.program, self.options, self.gap, self.budget = program, options, gap, budget
        self.tuning, self.deadline = tuning, options.deadline
        self.began = self.deadline.seconds()
        self.begin_round(best)
        self.history: list[Iteration] = []
        self.memory, self.blocks, self.proving = 0, 0, 0.0
        self.sparse = sparse_kernel(program, options.extra)
        self.merges_all_columns = not (program.floors or self.sparse)
        self.schedule = choose_schedule(tuning.merging, floors=bool(program.floors), sparse=self.sparse)
        # Progress reports show the best bound and cost so far, even if their multipliers or channel are not stored.
        self._shown_lower, self._shown_upper = -np.inf, np.inf

    def solve(self, working: BlockWorkingSet, number: int, best: BlockBracket) -> BlockRestricted:
        """Solve the restricted problem of round `number` to the gap `accuracy`, and offer its point to `best`."""
        self.begin_round(best)
        # Each round merges fewer columns than the previous round, which may have merged too many.
        return self.solve_along_schedule(working, self.tuning.generation.merge_care**number)

    def begin_round(self, best: BlockBracket) -> None:
        """Set the bracket and the deadline of the restricted problems of a round, and reserve time for pricing."""
        self.best = best
        self.round_deadline = self.deadline.part(self.tuning.generation.master_time_share)

    @property
    def accuracy(self) -> float:
        """The relative gap at which solves of restricted problems stop, computed from the target gap."""
        tuning = self.tuning.generation
        return min(tuning.master_gap_share * self.gap, max(tuning.loose_gap, tuning.loose_share * self.gap))

    def solve_along_schedule(self, working: BlockWorkingSet, care: float = 1.0) -> BlockRestricted:
        """Solve a restricted problem along the schedule, with merging thresholds multiplied by `care`."""
        return self.finish_run(self.run_schedule(working.restrict(self.program), working, self._schedule(care)))

    def _schedule(self, care: float) -> list[tuple[float, float]]:
        """Return the part of the schedule above twice the accuracy, with thresholds multiplied by `care`."""
        return [(gap, care * threshold) for gap, threshold in self.schedule if gap > 2 * self.accuracy]

    def run_schedule(
        self,
        program: BlockProgram,
        working: BlockWorkingSet,
        schedule: Iterable[tuple[float, float]],
        *,
        coarse: bool = False,
        start: BlockState | None = None,
    ) -> ScheduleRun:
        """Iterate to each gap of a schedule in turn, and merge small columns at each gap.

        Args:
            program: The program with the estimates of the working set, or its coarse problem.
            working: The first working set.
            schedule: Relative gaps and merging thresholds.
            coarse: Whether `program` is a coarse problem.
            start: The state from which to continue; the iteration overwrites its arrays.

        Returns:
            The working set after merging, the last state, and the status.
        """
        for gap, threshold in schedule:
            chosen, options = with_columns(program, working.columns), self._options(working, coarse=coarse)
            first = (
                LOW_MU_START if self.merges_all_columns else replace(UNIFORM_START, active=working.active_estimates())
            )
            first_state: BlockState | Start = first if start is None else start
            try:
                reached = iterate_blocks(chosen, options, gap=gap, start=first_state, budget=self.budget)
                self._record(reached.history, reached.memory)
                if not coarse and reached.state is not None and self._may_use_time_left(reached):
                    # If the memory budget does not allow the second run, this state remains valid.
                    self.round_deadline, start = self.deadline, reached.state
                    options = self._options(working)
                    reached = iterate_blocks(chosen, options, gap=gap, start=start, budget=self.budget)
                    self._record(reached.history, reached.memory)
            except SolverError:
                if start is None:
                    raise
                # The memory does not suffice for a higher precision; the last state remains valid.
                return ScheduleRun(working, start, Status.STALLED)
            if reached.status is not Status.OPTIMAL or reached.state is None:
                stopped = reached.status in (Status.INTERRUPTED, Status.TIME_LIMIT)
                return ScheduleRun(working, reached.state if stopped else None, reached.status)
            if not coarse:
                self._record_cost(working, reached.state)
            before = len(working)
            merged, fewer = merge_columns(program, working, reached.state, threshold)
            kept = len(fewer) / before
            if self.sparse and before == self.program.columns and kept > self.tuning.merging.sparse_max_kept_share:
                return ScheduleRun(working, reached.state, Status.OPTIMAL)
            start, working = merged, fewer
            start = activate_close_estimates(start, program, self.tuning.estimates)
            # Free the memory of the multipliers, which may be large.
            del reached
            if self.merges_all_columns and len(working) == before:
                # If no column can be merged, as with Hamming cost, stopping at further gaps only costs extra
                # factorisations.
                break
        return ScheduleRun(working, start, Status.OPTIMAL)

    def finish_run(self, run: ScheduleRun, *, measure: bool = False) -> BlockRestricted:
        """Continue from the end of a schedule to the relative gap `accuracy`, and offer the point to the bracket.

        If the user has stopped the run, or if `measure` is true, the state is only evaluated. The arrays of the state
        are overwritten.

        Args:
            run: The result of `run_schedule`.
            measure: Whether to evaluate the state without iterating.

        Returns:
            The solution, with multipliers for all estimates, and the extended working set.
        """
        working, stopped, start = run.working, run.status is Status.INTERRUPTED, run.state
        active = None if start is None else start.active
        refused = start is not None and run.status is Status.STALLED
        iterates = not (stopped or measure or refused)
        chosen, options = with_columns(working.restrict(self.program), working.columns), self._options(working)
        # Without omitted columns, nothing is left to price.
        gap = self.gap if self.sparse and len(working) == self.program.columns else self.accuracy
        try:
            solution = solve_by_interior_point(
                chosen, options, gap=gap, start=start, iterates=iterates, budget=self.budget
            )
        except SolverError:
            if start is None:
                raise
            refused = True
            solution = solve_by_interior_point(chosen, options, gap=self.accuracy, start=start, iterates=False)
        if stopped:
            solution = replace(solution, status=Status.INTERRUPTED, message="stopped by the user")
        elif refused:
            solution = replace(
                solution, status=Status.STALLED, message="the memory does not suffice for a higher precision"
            )
        self._record(solution.history, solution.memory)
        self.proving += solution.proving
        self.blocks = max(self.blocks, solution.blocks)
        solution = replace(solution, multipliers=working.expand_multipliers(self.program, solution.multipliers))
        completed, complete = working.add_missing_estimates(self.program, solution.x, active)
        self.offer(working, solution, complete=complete)
        return RestrictedSolution(completed, solution, solution.status, solution.message, solution.lower, complete)

    def offer(self, working: BlockWorkingSet, solution: BlockSolution, *, complete: bool) -> None:
        """Offer the point of a solution; if not `complete`, first repair it to meet the floors with all estimates."""
        whole = with_columns(self.program, working.columns)
        point = solution.x if complete else repair(whole, solution.x)
        upper = objective(whole, point)
        unit = self.tuning.interior_point.cost_unit * largest_cost(whole)
        if upper < solution.lower - _ROUNDING * max(abs(upper), unit):
            # After a stall, normalising the row sums may make the point infeasible.
            point = repair(whole, np.full(point.shape, 1 / len(working)))
            upper = objective(whole, point)
        if upper < self.best.upper:
            x = np.zeros((self.program.rows, self.program.columns))
            x[:, working.columns] = point
            self.best.offer_point(upper, x)

    def _record_cost(self, working: BlockWorkingSet, state: BlockState) -> None:
        """Record the cost of the channel at a state, after repairing the floors with all estimates."""
        whole = with_columns(self.program, working.columns)
        cost = objective(whole, repair(whole, state.points[:, : whole.rows].T))
        self._shown_upper = min(self._shown_upper, cost)

    def _may_use_time_left(self, reached: IterationEnd) -> bool:
        """Return whether the round may use all remaining time, because pricing at its weak bound would not help."""
        late = reached.status is Status.TIME_LIMIT and self.deadline.stop() is None
        return late and max((line.lower for line in reached.history), default=-np.inf) <= self.best.lower

    def _record(self, history: tuple[Iteration, ...], memory: int) -> None:
        """Append the iterations of one solve to the history, and keep the largest memory estimate."""
        self.memory = max(self.memory, memory)
        first, ended = len(self.history), self.deadline.seconds() - self.began
        offset_s = ended - (history[-1].seconds if history else 0.0)
        self.history += [
            replace(each, iteration=first + index, seconds=offset_s + each.seconds)
            for index, each in enumerate(history)
        ]

    def report(self, stage: str, iterations: int = 0, upper: float = np.inf) -> None:
        """Report a stage to the progress callback, with the bracket over all columns."""
        known = min(upper, self.best.upper, self._shown_upper)
        lower = max(0.0, self.best.lower, self._shown_lower)
        self.deadline.tell(stage, len(self.history) + iterations, lower, known if np.isfinite(known) else None)

    def _options(self, working: BlockWorkingSet, *, coarse: bool = False) -> Options:
        """Return the options of one solve, whose progress is reported as progress of all rounds."""
        # If the working set contains all columns, the bound of the restricted problem is valid for the full program.
        whole = not coarse and len(working) == self.program.columns
        # If estimates are omitted, the point may violate a floor, so its cost is not an upper bound.
        exact = not coarse and not self.program.floors
        stage = f"{len(working)} of {self.program.columns} columns" + (", a coarse problem" if coarse else "")

        def report(moment: Progress) -> None:
            if whole and moment.lower is not None:
                self._shown_lower = max(self._shown_lower, moment.lower)
            upper = moment.upper if exact and moment.upper is not None else np.inf
            self.report(stage, moment.iteration, upper)

        deadline = self.deadline if whole else self.round_deadline
        return replace(self.options, deadline=deadline.part(report=report))
