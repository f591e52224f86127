"""Solve a block program with all columns, or by column generation if that is faster.

An optimal channel uses few columns, and columns that tend to zero increase the number of iterations. With only the
useful columns, the interior-point method takes half the iterations, and each iteration processes fewer blocks. Coarse
problems, and for large programs a rough trial solve, choose the first columns. `master.py` solves the restricted
problems, and merges columns that become nearly empty; `pricing.py` prices the omitted columns. The multipliers of all
columns prove a lower bound for the full program.

A coarse problem clusters the rows. If the exponents between two rows are small, the rows are similar in every channel
that satisfies the ratio bounds. One row of the coarse problem therefore represents a cluster of rows. The costs and
errors of this row are sums over the cluster. The exponent between two clusters is the mean over their pairs of rows. If
all exponents are finite, the geometric means of a channel's rows satisfy the bounds of the coarse problem. The optimal
value of the coarse problem is not a bound for the full program. Yet nearly the same columns are optimal in both
problems. If a pair of rows has no bound, its exponent is the length of the shortest path along bounds between the two
rows. Two clusters then have a bound if at least one pair of their rows has a bound.

Theory: block_method, Initial working set; Trial solve; Rounds.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Stop
from mechdesign.base._errors import InputError, SolverError
from mechdesign.solve._block_angular import (
    BlockProgram,
    BlockSolution,
    combine_solutions,
    find_floor_multipliers,
    find_zero_cost_channel,
    imply_exponents,
    lower_bound,
    objective,
    repair,
    zero_multipliers,
)
from mechdesign.solve._blocks.interior_point import largest_cost, solve_by_interior_point
from mechdesign.solve._blocks.iterate import BlockState
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.master import (
    BlockBracket,
    BlockMaster,
    BlockRestricted,
    BlockWorkingSet,
    choose_coarse_schedule,
    choose_coarse_sizes,
    measure_reduced_costs,
    needs_trial,
)
from mechdesign.solve._blocks.memory import MemoryBudget, block_memory, generation_may_pay, merging_memory
from mechdesign.solve._blocks.pricing import BlockPricer, ColumnPricing, DualPrices
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._blocks.tuning import TUNING, GenerationTuning, Tuning
from mechdesign.solve._column_generation import Bracket, generate_columns
from mechdesign.solve._contract import Options, Status


def aggregate_rows(program: BlockProgram, count: int) -> BlockProgram:
    """Return the coarse problem of `program` with at most `count` clusters of rows."""
    implied = program.exponents
    if np.isinf(implied).sum() > program.rows:
        implied = imply_exponents(implied)
    cluster = _cluster_rows(implied, count)
    member = np.zeros((int(cluster.max()) + 1, program.rows))
    member[cluster, np.arange(program.rows)] = 1.0
    joined = member @ np.isfinite(program.exponents) @ member.T > 0
    exponents = np.where(joined, _average_exponents(implied, member), np.inf)
    np.fill_diagonal(exponents, np.inf)
    floors = tuple(replace(floor, error=floor.error @ member.T) for floor in program.floors)
    worst = program.worst
    if worst is not None:
        worst = replace(worst, row=cluster[worst.row])
    return BlockProgram(member @ program.cost, exponents, floors, worst)


def _cluster_rows(implied: Floats, count: int) -> Integers:
    """Return the cluster of each row, by average-linkage clustering with exponents as distances."""
    apart = np.maximum(implied, implied.T)
    finite = np.isfinite(apart)
    apart = np.where(finite, apart, 2 * apart[finite].max(initial=1.0))
    np.fill_diagonal(apart, 0.0)
    tree = hierarchy.average(squareform(apart, checks=False))
    # Cut the tree by the number of clusters and not by height, because many merges on a grid have equal heights.
    cluster: Integers = hierarchy.cut_tree(tree, [min(count, len(apart))])[:, 0].astype(np.int64)
    return cluster


def _average_exponents(implied: Floats, member: Floats) -> Floats:
    """Return the mean of the finite exponents between the rows of each pair of clusters."""
    finite = np.isfinite(implied)
    np.fill_diagonal(finite, False)
    counts = member @ finite @ member.T
    sums = member @ np.where(finite, implied, 0.0) @ member.T
    means: Floats = np.divide(sums, counts, out=np.full(counts.shape, np.inf), where=counts > 0)
    return means


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
        return master.solve_along_schedule(run.working.replace_columns(candidates))
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
        found = master.solve_along_schedule(chosen)
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


class Initial(NamedTuple):
    """The first working set, and the candidates (k,) that are priced after a trial solve (None without a trial)."""

    working: BlockWorkingSet
    candidates: Integers | None = None


def choose_initial_working_set(master: BlockMaster, *, always: bool) -> Initial | None:
    """Return the first working set, or None if solving with all columns at once is faster.

    Solving with all columns is faster if the coarse problem keeps many columns or takes few iterations. This test is
    skipped if `always` is true, or if the memory does not suffice for all blocks. Programs with sparse blocks or
    without floors do not use coarse problems. The solve of these programs starts with all columns, and merges columns
    with little mass.

    Args:
        master: Solver of restricted problems.
        always: Whether to generate columns even if solving with all columns at once may be faster.

    Returns:
        The first working set, or None.

    Raises:
        SolverError: If the memory does not suffice.
        KeyboardInterrupt: If the user stops the solve of a coarse problem.
    """
    program, tuning = master.program, master.tuning
    working = BlockWorkingSet.with_all_columns(program, tuning.estimates)
    rows, columns = program.rows, program.columns
    if master.sparse or master.merges_all_columns:
        if master.merges_all_columns:
            master.budget.require(merging_memory(rows, columns, master.gap), columns, rows)
        return Initial(working)
    always = always or not master.budget.fits(block_memory(rows, columns, columns, len(program.floors), master.gap))
    tried = program.worst is None and needs_trial(rows, master.gap, tuning.trial, tuning.merging)
    # All columns are candidates of the trial, unless the coarse problem selects fewer.
    candidates = np.arange(columns) if tried else None
    sizes, begun = choose_coarse_sizes(rows, tuning.trial, tuning.merging), 0
    for size in sizes:
        coarse, last = working.restrict(aggregate_rows(program, size)), size == sizes[-1]
        schedule = choose_coarse_schedule(size, master.gap, tuning.merging, last=last, tried=tried)
        begun = len(master.history)
        run = master.run_schedule(coarse, working, schedule[:1], coarse=True)
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if not always and len(master.history) < tuning.generation.min_coarse_iterations:
            return None
        if run.status is Status.OPTIMAL:
            run = master.run_schedule(coarse, run.working, schedule[1:], coarse=True, start=run.state)
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        working = run.working
        if run.status is Status.OPTIMAL and run.state is not None:
            x = run.state.points[:, : coarse.rows].T
            closer = working.select_estimates(coarse, x, 1.0 if last else 3.0)
            if last and tried:
                working, candidates = choose_trial_columns(master, coarse, run.state, working, closer)
            else:
                working = closer
    few = len(working) <= tuning.generation.max_column_share * columns
    long = len(master.history) - begun >= tuning.generation.min_total_iterations
    return Initial(working, candidates) if always or (few and long) else None


def solve_block_program(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
    tuning: Tuning = TUNING,
) -> BlockSolution:
    """Solve `program` to a relative gap, with all columns at once or by column generation.

    ``options.extra["generation"]`` selects column generation (True), all columns at once (False), or the method that is
    expected to be faster (None). Column generation does not use symmetry. If column generation stalls, the program is
    solved with all columns at once, provided that the memory suffices. The result then combines the better point and
    the better bound of both solves.

    Args:
        program: The program to minimise.
        options: Deadline and threads; `extra` may contain the keys of `solve_by_interior_point` and "generation".
        gap: Relative gap at which to stop; it overrides `options.gap`.
        symmetry: Symmetries of the program. With a nontrivial group, columns are not generated.
        tuning: Constants of all algorithms.

    Returns:
        The best point, multipliers that prove the bound, and the history of all rounds.

    Raises:
        InputError: If an option is unknown or invalid.
        SolverError: If the estimated memory exceeds the budget.
    """
    options = (options or Options()).begun()
    extra, deadline, began = dict(options.extra), options.deadline, options.deadline.seconds()
    generation = extra.pop("generation", None)
    if not (generation is None or isinstance(generation, bool)):
        raise InputError("options.extra.generation", "must be true or false", value=generation)
    options = replace(options, extra=extra)
    symmetric = symmetry is not None and symmetry.order > 1
    generates = generation or (generation is None and should_generate_columns(program, options, tuning.generation))
    if symmetric or not generates or deadline.left() == 0 or find_zero_cost_channel(program, 0.0) is not None:
        return solve_by_interior_point(program, options, gap=gap, symmetry=symmetry)
    with deadline.keeping():
        master = BlockMaster(
            program, options, gap, _start_bracket(program, tuning), MemoryBudget.of_options(options.extra), tuning
        )
        status, message = Status.INTERRUPTED, "stopped by the user"
        with contextlib.suppress(KeyboardInterrupt):
            initial = choose_initial_working_set(master, always=generation is True)
            if initial is None:
                return solve_by_interior_point(program, options, gap=gap)
            rules, tried = tuning.generation, initial.candidates
            outcome = generate_columns(
                master if tried is None else TrialMaster(master, tried),
                BlockPricer(master), initial.working, master.best, gap, deadline,
                max_rounds=rules.max_rounds, min_entering_limit=rules.min_entering_limit,
            )  # fmt: skip
            status, message = outcome.status, outcome.message
        if deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        found = _make_solution(master, status, message, deadline.seconds() - began)
    if found.status not in (Status.STALLED, Status.ITERATION_LIMIT) or master.best.is_within(gap):
        return found
    # The inverses of sparse blocks lose digits that the triangular factors of dense blocks keep.
    options = replace(options, extra={**options.extra, "arrays": "numpy"}) if master.sparse else options
    try:
        return combine_solutions(found, solve_by_interior_point(program, options, gap=gap))
    except SolverError:
        # The memory does not suffice for all blocks.
        return found


def should_generate_columns(
    program: BlockProgram, options: Options | None = None, tuning: GenerationTuning | None = None
) -> bool:
    """Return whether column generation may be faster than solving with all columns."""
    extra = (options or Options()).extra
    kind = {"worst": program.worst is not None, "sparse": sparse_kernel(program, extra)}
    return generation_may_pay(program.rows, program.columns, len(program.floors), tuning or TUNING.generation, **kind)


def _start_bracket(program: BlockProgram, tuning: Tuning) -> BlockBracket:
    """Return a bracket with the better of two simple lower bounds: from zero multipliers, or from a single floor."""
    best: BlockBracket = Bracket(tuning.interior_point.cost_unit * largest_cost(program))
    for known in (zero_multipliers(program), find_floor_multipliers(program)):
        best.offer_bound(lower_bound(program, known), known)
    return best


def _make_solution(master: BlockMaster, status: Status, message: str, seconds: float) -> BlockSolution:
    """Return the best point and the best bound of all rounds as a solution."""
    program, best = master.program, master.best
    x = best.point
    if x is None:
        x = repair(program, np.full((program.rows, program.columns), 1 / program.columns))
    assert best.proof is not None
    return BlockSolution(
        status, x, best.proof, best.lower, objective(program, x), message, seconds, master.memory, master.blocks,
        tuple(master.history), master.proving,
    )  # fmt: skip
