"""Solve restricted problems of a block program by the interior-point method, with column merging.

Theory: block_method, Restricted problems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Progress
from mechdesign.base._errors import SolverError
from mechdesign.solve._block_angular import BlockMultipliers, BlockProgram, objective, repair, with_columns
from mechdesign.solve._blocks.interior_point import IterationEnd, iterate_blocks, largest_cost, solve_by_interior_point
from mechdesign.solve._blocks.iterate import LOW_MU_START, UNIFORM_START, BlockState, Start
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.memory import MemoryBudget
from mechdesign.solve._blocks.solution import BlockSolution, Iteration
from mechdesign.solve._blocks.tuning import Tuning
from mechdesign.solve._blocks.working_set import (
    BlockWorkingSet,
    activate_close_estimates,
    choose_schedule,
    merge_columns,
)
from mechdesign.solve._column_generation import Bracket, RestrictedSolution
from mechdesign.solve._contract import Options, Status

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
        schedule = self._schedule(self.tuning.generation.merge_care**number)
        return self.finish_run(self.run_schedule(working.restrict(self.program), working, schedule))

    def begin_round(self, best: BlockBracket) -> None:
        """Set the bracket and the deadline of the restricted problems of a round, and reserve time for pricing."""
        self.best = best
        self.round_deadline = self.deadline.part(self.tuning.generation.master_time_share)

    @property
    def accuracy(self) -> float:
        """The relative gap at which solves of restricted problems stop, computed from the target gap."""
        tuning = self.tuning.generation
        return min(tuning.master_gap_share * self.gap, max(tuning.loose_gap, tuning.loose_share * self.gap))

    def solve_with_care(self, working: BlockWorkingSet, care: float = 1.0) -> BlockRestricted:
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
