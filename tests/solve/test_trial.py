"""Trial solves of large programs with floors: which columns they use, and which results are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import FEW, agree, grid, master_of
from long import mostly_long

from mechdesign.base._deadline import Deadline
from mechdesign.errors import SolverError
from mechdesign.solve._blocks.column_generation import (
    aggregate_rows,
    choose_initial_working_set,
    solve_block_program,
    solve_with_trial,
)
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.master import BlockMaster, ScheduleRun
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

# Constants with which small programs use a trial, and few bounds per row.
TRIED = replace(FEW, trial=replace(FEW.trial, min_rows=2))


class Master(BlockMaster):
    """A master that records the columns of each solve along the schedule, and may stop, stall or refuse there."""

    when = ""
    begun = ()

    def press(self, when):
        if when == self.when:
            self.when = ""
            self.deadline.cancel()

    def run_schedule(self, program, working, schedule, **options):
        if program.rows < self.program.rows or self.begun:
            return super().run_schedule(program, working, schedule, **options)
        if self.when == "stall":
            return ScheduleRun(working, None, Status.STALLED)
        self.press("trial")
        run = super().run_schedule(program, working, schedule, **options)
        self.press("pricing")
        return run

    def finish_run(self, run, *, measure=False):
        if measure:
            self.press("measuring")
        return super().finish_run(run, measure=measure)

    def solve_along_schedule(self, working, care=1.0):
        self.begun += (working.columns,)
        self.press("anew")
        if self.when == "refuse":
            raise SolverError("the memory does not suffice")
        if self.when == "time":
            self.round_deadline = Deadline(0.0)
        return super().solve_along_schedule(working, care)


def trial(floor=0.9, when="", tuning=TRIED, **options):
    """Return a master, the columns of the trial, and the candidates to be priced after it."""
    master = master_of(grid(7, 6, floor=floor), 3e-7, tuning, Master, **options)
    initial = choose_initial_working_set(master, always=True)
    master.when = when
    return master, initial.working, initial.candidates


@pytest.mark.parametrize("floor", mostly_long([0.9, 0.85, 0.97]))
def test_a_trial_adds_the_columns_of_the_optimum(floor):
    master, working, candidates = trial(floor)
    solve_with_trial(master, working, candidates)
    (after,) = master.begun
    assert set(working.columns) <= set(after) <= set(candidates)
    assert after.size < master.program.columns
    found = solve_block_program(master.program, Options(extra={"generation": True}), tuning=TRIED)
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= 3e-7 * found.upper
    agree(found, master.program)


@pytest.mark.parametrize("when", ["trial", "pricing", "measuring", "anew"])
def test_ctrl_c_keeps_the_result_of_the_trial(when):
    master, working, candidates = trial(when=when)
    found = solve_with_trial(master, working, candidates)
    assert not master.when
    assert found.status is Status.INTERRUPTED
    every = solve_by_interior_point(master.program)
    assert every.lower <= master.best.upper * (1 + 1e-9)
    assert when == "trial" or found.prices.upper - found.prices.lower <= 0.02 * found.prices.upper


@pytest.mark.parametrize(("when", "status"), [("time", Status.TIME_LIMIT), ("refuse", Status.STALLED)])
def test_a_stopped_second_solve_returns_the_better_result(when, status):
    master, working, candidates = trial(when=when)
    found = solve_with_trial(master, working, candidates)
    assert len(master.begun) == 1
    assert found.status is status
    assert set(found.working.columns) <= set(working.columns)
    assert found.prices.upper - found.prices.lower <= 0.02 * found.prices.upper


@pytest.mark.parametrize("count", [2, 5, 9, 16])
def test_geometric_means_over_clusters_meet_their_bounds(count):
    """If a column satisfies all bounds, the geometric means of its rows satisfy the bounds of the coarse problem."""
    program = grid(6, 5)
    small = aggregate_rows(program, count)
    assert small.rows == count
    finite = program.exponents.copy()
    np.fill_diagonal(finite, 0.0)
    # With unit vectors as columns, the costs reveal the cluster of each row.
    member = aggregate_rows(replace(program, cost=np.eye(30)), count).cost
    assert (member.sum(axis=0) == 1).all()
    rng = np.random.default_rng(count)
    for _ in range(20):
        start = rng.normal(0, 3, 30)
        logarithms = (start + finite).min(axis=1)
        assert (logarithms[:, None] - logarithms <= finite + 1e-12).all()
        means = member @ logarithms / member.sum(axis=1)
        assert (means[:, None] - means <= np.where(np.isinf(small.exponents), 1e9, small.exponents) + 1e-12).all()
