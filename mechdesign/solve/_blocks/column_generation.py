"""Solve a block program with all columns, or by column generation if that is faster.

An optimal channel uses few columns, and columns that tend to zero increase the number of iterations. With only the
useful columns, the interior-point method takes half the iterations, and each iteration processes fewer blocks.
`initial_working_set.py` chooses the first columns, and `merging.py` merges columns that become nearly empty.
`master.py` solves the restricted problems, and `pricer.py` prices the omitted columns. The multipliers of all columns
prove a lower bound for the full program.

Theory: block_method, Rounds.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from mechdesign.base._errors import InputError, SolverError
from mechdesign.solve._block_angular import BlockProgram, lower_bound, objective, repair
from mechdesign.solve._blocks.initial_working_set import choose_initial_working_set
from mechdesign.solve._blocks.interior_point import largest_cost, solve_by_interior_point
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.master import BlockBracket, BlockMaster
from mechdesign.solve._blocks.memory import MemoryBudget, generation_may_pay
from mechdesign.solve._blocks.pricer import BlockPricer
from mechdesign.solve._blocks.solution import (
    BlockSolution,
    combine_solutions,
    find_floor_multipliers,
    find_zero_cost_channel,
    zero_multipliers,
)
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._blocks.trial import TrialMaster
from mechdesign.solve._blocks.tuning import TUNING, GenerationTuning, Tuning
from mechdesign.solve._column_generation import Bracket, generate_columns
from mechdesign.solve._contract import Options, Status


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
