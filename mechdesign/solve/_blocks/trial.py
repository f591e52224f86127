"""The trial solve of a large program: a rough solve with few columns, whose dual prices select more columns.

Theory: block_method, Trial solve.
"""

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
    """Return the working set of the trial, and the candidates that are priced after the trial.

    The choice uses reduced costs, because the mass of a column in the coarse problem does not predict its use. Columns
    that were merged may become candidates.

    Args:
        master: Solver of restricted problems.
        coarse: The coarse problem.
        state: Last state of the coarse problem.
        before: Working set of the coarse problem.
        closer: The working set of the coarse problem with fewer estimates.

    Returns:
        The working set of the trial, and the candidate columns (k,).
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
    """A master whose first round starts with a trial solve.

    Attributes:
        master: Solver of restricted problems.
        candidates: The columns that are priced after the trial (k,).
    """

    master: BlockMaster
    candidates: Integers

    def solve(self, working: BlockWorkingSet, number: int, best: BlockBracket) -> BlockRestricted:
        """Solve the restricted problem of round `number`, and offer its point to `best`."""
        if number:
            return self.master.solve(working, number, best)
        self.master.begin_round(best)
        return solve_with_trial(self.master, working, self.candidates)


def solve_with_trial(master: BlockMaster, working: BlockWorkingSet, candidates: Integers) -> BlockRestricted:
    """Solve approximately with the trial columns, add candidates with small reduced costs, and solve again.

    The second solve starts with few superfluous columns, and with most of the useful columns. The solution of the trial
    is returned if no time remains, or if the second solve stops before it reaches a smaller gap.

    Args:
        master: Solver of restricted problems.
        working: Working set of the trial.
        candidates: The columns that are priced after the trial (k,).

    Returns:
        The solution with the smaller gap.
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
    # Free the memory of the multipliers, which may be large.
    del state, run
    try:
        found = master.solve_with_care(chosen)
    except SolverError as error:
        # The memory does not suffice for the added columns.
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
    """Return the omitted columns whose reduced costs may be at most `most`, and their relevant estimates.

    Args:
        master: Solver of restricted problems.
        program: The program with the estimates of the working set, or its coarse problem.
        state: A state of `program`.
        working: The working set of `program`.
        most: Largest reduced cost, for Σ_s x_s = 1.
        among: Columns to price (k,).

    Returns:
        A dictionary from columns to the positions of their estimates for each floor.
    """
    n, tuning = program.rows, master.tuning
    floors = state.multipliers[n : n + len(program.floors)]
    pricing = ColumnPricing(program, master.options, master.report, master.deadline, master.budget, tuning.pricing)
    # Increasing every λ_s by `most` decreases each reduced cost by `most`, because Σ_s x_s = 1.
    prices = DualPrices(state.multipliers[:n] + most, floors, 0.0)
    others = np.setdiff1d(among, working.columns)
    x = state.points[:, :n].T
    return pricing.find_negative(working.columns, x, prices, tuning.estimates.active_slack, others)
