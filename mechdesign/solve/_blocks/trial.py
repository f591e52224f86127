"""The trial of a large program: it is solved roughly with few columns, and its prices choose those to add."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._deadline import Stop
from mechdesign.base._errors import SolverError
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.master import BlockBracket, BlockMaster, BlockRestricted
from mechdesign.solve._blocks.pricing import ColumnPricing, DualPrices
from mechdesign.solve._blocks.working_set import BlockWorkingSet, measure_reduced_costs
from mechdesign.solve._contract import Status


def choose_trial_columns(
    master: BlockMaster, coarse: BlockProgram, state: BlockState, before: BlockWorkingSet, closer: BlockWorkingSet
) -> tuple[BlockWorkingSet, Integers]:
    """Return the columns to try, of those in use in a coarse problem, and the candidates for later.

    Prices judge all columns alike, unlike the mass that a column has left there. Merged columns may be candidates.

    Args:
        master: The master.
        coarse: The coarse problem.
        state: Its last state.
        before: Its working set.
        closer: The same with fewer estimates.
    """
    tuning, used = master.tuning.trial, before.columns
    reduced, unit = measure_reduced_costs(coarse, used, state)
    every = np.arange(master.program.columns)
    more = find_promising(master, coarse, state, before, tuning.candidate_reduced_cost * unit, every)
    master.deadline.check()
    mass = state.points[:, : coarse.rows].sum(axis=1)
    kept = reduced <= tuning.reduced_cost * unit
    joined = closer.add_with_estimates(more, before.estimates)
    tried = used[kept] if mass[kept].sum() >= tuning.min_mass_share * mass.sum() else used
    return joined.replace_columns(tried), joined.columns


@dataclass(frozen=True, eq=False)
class TrialMaster:
    """A master whose first round begins with a trial.

    Attributes:
        master: The master.
        candidates: The columns that are priced after the trial (k,).
    """

    master: BlockMaster
    candidates: Integers

    def solve(self, working: BlockWorkingSet, number: int, best: BlockBracket) -> BlockRestricted:
        """Solve the restricted problem of a round, and offer its point."""
        if number:
            return self.master.solve(working, number, best)
        self.master.begin_round()
        return solve_with_trial(self.master, working, self.candidates)


def solve_with_trial(master: BlockMaster, working: BlockWorkingSet, candidates: Integers) -> BlockRestricted:
    """Solve roughly with the columns to try, add those worth nearly as much, and solve with these.

    The program then begins with few columns that it does not need, and misses few that it does. The trial itself is
    the result where it is closer than the second solve, which time, the user or memory may end, or where there is no
    time for one.
    """
    tuning, deadline = master.tuning, master.deadline
    began, program = deadline.seconds(), working.restrict(master.program)
    run = master.run_schedule(program, working, tuning.merging.trial)
    state = run.state
    if state is None:
        return master.solve_with_care(run.working.replace_columns(candidates))
    left, seconds = deadline.left(), deadline.seconds() - began
    short = left is not None and left < tuning.trial.restart_time_factor * seconds
    if run.status is Status.INTERRUPTED or state.gap > tuning.merging.trial[-1][0] or short:
        return master.finish_run(run)
    _, unit = measure_reduced_costs(program, run.working.columns, state)
    more = find_promising(master, program, state, run.working, tuning.trial.restart_reduced_cost * unit, candidates)
    if deadline.stop() is Stop.USER:
        run = replace(run, status=Status.INTERRUPTED)
    trial = master.finish_run(run, measure=True)
    if trial.status is Status.INTERRUPTED:
        return trial
    chosen = trial.working.add_with_estimates(more, run.working.estimates)
    # Its multipliers may be large.
    del state, run
    try:
        found = master.solve_with_care(chosen)
    except SolverError as error:
        # The memory does not suffice for the columns added.
        return replace(trial, status=Status.STALLED, message=str(error))
    ended = found.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    if ended and trial.prices.gap < found.prices.gap:
        return replace(trial, status=found.status, message=found.message)
    return found


def find_promising(
    master: BlockMaster,
    program: BlockProgram,
    state: BlockState,
    working: BlockWorkingSet,
    most: float,
    among: Integers,
) -> dict[int, tuple[Integers, ...]]:
    """Return the columns left out whose reduced cost may be at most `most`, with their estimates.

    Args:
        master: The master.
        program: The program with the estimates of the working set, or a coarse one like it.
        state: A state of it.
        working: The working set.
        most: Largest reduced cost, for Σ_s x_s = 1.
        among: The columns to look at.
    """
    n, tuning = program.rows, master.tuning
    floors = state.multipliers[n : n + len(program.floors)]
    pricing = ColumnPricing(program, master.options, master.report, master.deadline, master.budget, tuning.pricing)
    # To raise every λ by `most` lowers each reduced cost by `most`, as Σ_s x_s = 1.
    prices = DualPrices(state.multipliers[:n] + most, floors, 0.0)
    others = np.setdiff1d(among, working.columns)
    x = state.points[:, :n].T
    return pricing.find_negative(working.columns, x, prices, tuning.estimates.active_slack, others)
