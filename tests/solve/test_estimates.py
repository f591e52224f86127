"""Floors with some of the adversary's estimates: the same in all columns, or different ones in each column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import TINY, generate, grid, master_of, optimum, violation, working_of
from long import mostly_long

from mechdesign.solve._block_angular import lower_bound, objective
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.interior_point import iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.iterate import UNIFORM_START
from mechdesign.solve._blocks.master import find_close_estimates, merge_small_columns, with_estimates
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

ARRAYS = "numpy", "numba"


def iterate_with(program, near, arrays="numpy", gap=1e-6):
    """Iterate with the estimates that are flagged in `near`, by column."""
    start = replace(UNIFORM_START, active=tuple(near))
    return iterate_blocks(program, Options(extra={"arrays": arrays}), gap=gap, start=start)


def draw_estimates(program, seed):
    """Return flags (m, k) for each floor: random estimates for each column, at least one."""
    rng = np.random.default_rng(seed)
    flags = []
    for floor in program.floors:
        mine = rng.random((program.columns, len(floor.error))) < 0.4
        mine[np.arange(program.columns), rng.integers(0, len(floor.error), program.columns)] = True
        flags.append(mine)
    return flags


@pytest.mark.parametrize("arrays", mostly_long(ARRAYS))
def test_some_estimates_in_every_column_are_a_program_with_these(arrays):
    program, some = grid(5, 4, floor=0.9), np.array([1, 5, 6, 7, 11, 12, 13, 18])
    flags = np.zeros((20, 20), dtype=bool)
    flags[:, some] = True
    mine = iterate_with(program, [flags], arrays)
    theirs = iterate_blocks(
        with_estimates(program, [some]), Options(extra={"arrays": arrays}), gap=1e-6, start=UNIFORM_START
    )
    assert theirs.status is Status.OPTIMAL
    # The gap is measured with all estimates, so it is never reached here.
    assert mine.status is Status.STALLED
    assert mine.history[-1].upper == pytest.approx(theirs.history[-1].upper, rel=2e-6)
    assert mine.history[-1].lower == pytest.approx(theirs.history[-1].lower, rel=2e-6)
    assert (mine.state.floor_y[0][:, some] > 0).all()
    assert not np.delete(mine.state.floor_y[0], some, axis=1).any()


@pytest.mark.parametrize("arrays", ARRAYS)
@pytest.mark.parametrize("seed", range(4))
def test_columns_may_have_different_estimates(arrays, seed):
    program = grid(4, 3, floor=0.9, worst=seed == 3)
    near = draw_estimates(program, seed)
    reached = iterate_with(program, near, arrays)
    expected = optimum(program, near)
    assert expected < (1 - 1e-3) * optimum(program)
    assert reached.history[-1].lower == pytest.approx(expected, rel=1e-5)
    assert objective(program, reached.state.points[:, : program.rows].T) == pytest.approx(expected, rel=1e-5)


def test_proofs_with_some_estimates_hold_with_all():
    program = grid(4, 3, floor=0.9)
    state = iterate_with(program, draw_estimates(program, 1), gap=1e-3).state
    found = solve_by_interior_point(program, start=state)
    whole = optimum(program)
    assert found.lower <= whole * (1 + 1e-9)
    assert lower_bound(program, found.multipliers) == pytest.approx(found.lower)
    # All estimates limit the contributions of a column. Missing estimates cost rounds, but never give a wrong proof.
    assert found.upper >= whole * (1 - 1e-9)


def test_columns_that_violate_other_estimates_are_not_merged():
    program = grid(6, 5, floor=0.9)
    state = iterate_with(program, [np.ones((30, 30), dtype=bool)], gap=0.03).state
    _, stay = merge_small_columns(state, program.cost, 0.5)
    assert stay.size < 30
    movable = np.ones(30, dtype=bool)
    movable[np.setdiff1d(np.arange(30), stay)[0]] = False
    _, kept = merge_small_columns(state, program.cost, 0.5, movable)
    assert kept.tolist() == sorted([*stay.tolist(), int(np.flatnonzero(~movable)[0])])
    _, none = merge_small_columns(state, program.cost, 0.5, np.zeros(30, dtype=bool))
    assert none.tolist() == list(range(30))


@pytest.mark.parametrize("seed", mostly_long(range(4)))
def test_missing_estimates_cost_rounds_but_no_validity(seed):
    program = grid(6, 5, floor=0.97)
    master, working = master_of(program), working_of(program, np.arange(0, 30, 2))
    active = tuple(flags.T for flags in draw_estimates(program, seed))
    working = replace(working, active=active, estimates=(np.arange(seed, 30, 30 // (1 + seed)),))
    outcome, best, expected = generate(master, working), master.best, solve_by_interior_point(program)
    assert outcome.status is Status.OPTIMAL
    assert outcome.rounds > 1
    assert best.lower <= expected.upper
    assert best.upper == pytest.approx(expected.upper, rel=1e-6)
    assert violation(program, best.point) <= 1e-6


@pytest.mark.parametrize("eps", [0.6, 1.5])
def test_progress_reports_bracket_the_optimum(eps):
    program = grid(7, 6, eps=eps, floor=0.9)
    expected, told = solve_by_interior_point(program), []
    found = solve_block_program(program, Options(extra={"generation": True}, progress=told.append), tuning=TINY)
    assert found.status is Status.OPTIMAL
    uppers = [moment.upper for moment in told if moment.upper is not None]
    # After the first gap of the full program, progress reports include a channel's cost.
    assert len(uppers) > 10
    assert min(uppers) >= expected.lower * (1 - 1e-9)
    assert max(moment.lower for moment in told if moment.lower is not None) <= expected.upper * (1 + 1e-9)


def activate_one(working, estimate, columns=slice(None)):
    """Return the working set with one active estimate in some columns, and none in the others."""
    active = np.zeros_like(working.active[0])
    active[estimate, columns] = True
    return replace(working, active=(active,))


def test_all_estimates_are_active_after_a_stall():
    program = grid(4, 3, floor=0.9)
    x = solve_by_interior_point(program).x
    one = activate_one(working_of(program), 5)
    after, complete = one.add_missing_estimates(program, x, None)
    assert complete
    assert after.active[0].all()
    # The previous case omits nothing; this case omits the best estimates.
    after, complete = one.add_missing_estimates(program, x, one.active_estimates())
    assert not complete
    best = find_close_estimates(program, x, 0.0)[0]
    assert (after.active[0] >= best).all()
