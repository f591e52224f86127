"""Choose the first working set of column generation: the columns that coarse problems use.

Theory: block_method, Initial working set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.solve._blocks.coarsening import aggregate_rows
from mechdesign.solve._blocks.master import BlockMaster
from mechdesign.solve._blocks.memory import block_memory, merging_memory
from mechdesign.solve._blocks.merging import choose_coarse_schedule, choose_coarse_sizes, needs_trial
from mechdesign.solve._blocks.trial import choose_trial_columns
from mechdesign.solve._blocks.working_set import BlockWorkingSet
from mechdesign.solve._contract import Status


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
