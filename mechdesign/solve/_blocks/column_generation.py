"""Solve a block program: all columns at once, or few at a time, whichever is faster.

An optimum uses few columns, and those that tend to zero lengthen the central path. The columns that matter take half
the iterations, each of a fraction of the blocks. Coarse problems say with which columns to begin, where blocks are
dense (`initial_working_set.py`); those that turn out to be empty are merged into others (`merging.py`). The rest is
column generation with blocks for columns: `master.py` solves the restricted problems, `pricer.py` prices the columns
left out. The multipliers of all together prove a bound over all columns, so that the last bracket is the whole
program's.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from mechdesign.base._errors import InputError, SolverError
from mechdesign.solve._block_angular import BlockProgram, lower_bound, objective, repaired
from mechdesign.solve._blocks.initial_working_set import choose_initial_working_set
from mechdesign.solve._blocks.interior_point import largest_cost, solve_block
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.master import BlockBracket, BlockMaster
from mechdesign.solve._blocks.memory import MemoryBudget, may_generation_pay
from mechdesign.solve._blocks.pricer import BlockPricer
from mechdesign.solve._blocks.solution import (
    BlockSolution,
    combine_solutions,
    find_floor_multipliers,
    find_free_constant,
    zero_multipliers,
)
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._blocks.trial import TrialMaster
from mechdesign.solve._blocks.tuning import TUNING, GenerationTuning, Tuning
from mechdesign.solve._column_generation import Bracket, generate_columns
from mechdesign.solve._contract import Options, Status


def solve_columns(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
    tuning: Tuning = TUNING,
) -> BlockSolution:
    """Solve `program` until the relative gap over all its columns is `gap`: all columns at once, or few at a time.

    ``options.extra["generation"]`` chooses between them: true, false, or absent, which means whatever is faster.
    Symmetry is used with all columns only. The history is that of all rounds, and the bracket that is reported is over
    all columns. Where column generation ends short of the gap, all blocks at once follow if there is memory for them,
    and the better ends of both brackets count. Arguments, results and errors are those of `solve_block`.
    """
    options = (options or Options()).begun()
    extra, deadline, began = dict(options.extra), options.deadline, options.deadline.seconds()
    asked = extra.pop("generation", None)
    if not (asked is None or isinstance(asked, bool)):
        raise InputError("options.extra.generation", "must be true or false", value=asked)
    options = replace(options, extra=extra)
    symmetric = symmetry is not None and symmetry.order > 1
    generates = asked or (asked is None and may_generate_columns(program, options, tuning.generation))
    if symmetric or not generates or deadline.left() == 0 or find_free_constant(program, 0.0) is not None:
        return solve_block(program, options, gap=gap, symmetry=symmetry)
    with deadline.keeping():
        master = BlockMaster(
            program, options, gap, _start_bracket(program, tuning), MemoryBudget.of_options(options.extra), tuning
        )
        status, message = Status.INTERRUPTED, "stopped by the user"
        with contextlib.suppress(KeyboardInterrupt):
            initial = choose_initial_working_set(master, always=asked is True)
            if initial is None:
                return solve_block(program, options, gap=gap)
            rules, tried = tuning.generation, initial.candidates
            outcome = generate_columns(
                master if tried is None else TrialMaster(master, tried),
                BlockPricer(master), initial.working, master.best, gap, deadline,
                max_rounds=rules.max_rounds, min_entering=rules.min_entering,
            )  # fmt: skip
            status, message = outcome.status, outcome.message
        if deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        found = _make_solution(master, status, message, deadline.seconds() - began)
    if found.status not in (Status.STALLED, Status.ITERATION_LIMIT):
        return found
    try:
        return combine_solutions(found, solve_block(program, options, gap=gap))
    except SolverError:
        # There is no room for all blocks.
        return found


def may_generate_columns(
    program: BlockProgram, options: Options | None = None, tuning: GenerationTuning | None = None
) -> bool:
    """Tell whether column generation may be faster than all blocks at once."""
    extra = (options or Options()).extra
    merges = extra.get("device") in (None, "cpu") and extra.get("arrays") != "torch"
    kind = {"worst": program.worst is not None, "sparse": sparse_kernel(program, extra), "merges": merges}
    return may_generation_pay(program.rows, program.columns, len(program.floors), tuning or TUNING.generation, **kind)


def _start_bracket(program: BlockProgram, tuning: Tuning) -> BlockBracket:
    """Return a bracket with two lower bounds that need no iteration: of zero multipliers, and of one floor alone."""
    best: BlockBracket = Bracket(tuning.interior_point.cost_unit * largest_cost(program))
    for known in (zero_multipliers(program), find_floor_multipliers(program)):
        best.offer_bound(lower_bound(program, known), known)
    return best


def _make_solution(master: BlockMaster, status: Status, message: str, seconds: float) -> BlockSolution:
    """Return the best point and the best bound of all rounds."""
    program, best = master.program, master.best
    x = best.point
    if x is None:
        x = repaired(program, np.full((program.rows, program.columns), 1 / program.columns))
    assert best.proof is not None
    return BlockSolution(
        status, x, best.proof, best.lower, objective(program, x), message, seconds, master.memory, master.blocks,
        tuple(master.history), master.proving,
    )  # fmt: skip
