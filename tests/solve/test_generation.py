"""Column generation with blocks, against HiGHS and all blocks at once: pricing, merging, brackets, and wrong proofs."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from block_cases import (
    TINY,
    agree,
    assert_encloses,
    check_against_highs,
    grid,
    master_of,
    priced,
    random_program,
    violation,
    working_of,
)
from long import mostly_long

from mechdesign.base._deadline import Deadline
from mechdesign.errors import InputError
from mechdesign.solve._block_angular import FloorBlock, compute_reduced_costs, lower_bound
from mechdesign.solve._blocks.column_generation import should_generate_columns, solve_block_program
from mechdesign.solve._blocks.interior_point import iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.master import (
    find_close_estimates,
    merge_small_columns,
    with_all_estimates,
    with_estimates,
)
from mechdesign.solve._blocks.memory import MemoryBudget
from mechdesign.solve._blocks.pricing import BlockPricer
from mechdesign.solve._blocks.pricing_problem import solve_pricing_problems
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

GENERATED = Options(extra={"generation": True})


@pytest.mark.parametrize("first", mostly_long(range(0, 200, 50)))
def test_agrees_with_highs_on_random_programs(first):
    for seed in range(first, first + 50):
        program = random_program(seed)
        check_against_highs(program, solve_block_program(program, GENERATED, tuning=TINY), seed)


@pytest.mark.parametrize(
    "program",
    [grid(6, 5, floor=0.8), grid(6, 5, cost="hamming", floor=0.8), grid(6, 4, worst=True), grid(5, 5, floor=0.7)],
    ids=["joint", "joint, Hamming", "worst", "joint, square"],
)
def test_brackets_are_those_of_all_blocks_at_once(program):
    found = solve_block_program(program, GENERATED, tuning=TINY)
    assert found.status is Status.OPTIMAL
    assert (found.upper - found.lower) / found.upper <= 3e-7
    agree(found, program)


def test_a_point_below_the_bound_is_not_kept():
    program = grid(6, 5, floor=0.3)
    master, solution = master_of(program), solve_by_interior_point(program)
    # Each secret uses its cheapest observable, without ratio bounds.
    cheapest = np.eye(30)[program.cost.argmin(axis=1)]
    master.offer(working_of(program), replace(solution, x=cheapest), complete=True)
    assert solution.lower < master.best.upper < np.inf
    assert violation(program, master.best.point) <= 1e-9


def test_the_bound_needs_the_multipliers_of_omitted_columns():
    program = grid(6, 5, floor=0.8)
    found = solve_block_program(program, GENERATED, tuning=TINY)
    unused = found.x.sum(axis=0) == 0
    assert unused.any()
    ratios = found.multipliers.ratios
    kept = ~unused[ratios.columns]
    parts = (getattr(ratios, name)[kept] for name in ("sources", "targets", "columns", "values"))
    without = replace(found.multipliers, ratios=type(ratios)(*parts))
    assert lower_bound(program, without) < 0.99 * found.lower


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_prices_enclose_those_of_highs(share):
    program = grid(4, 4, floor=0.97)
    solved = solve_by_interior_point(program)
    least = compute_reduced_costs(program, solved.multipliers).min(axis=1)
    prices, weight = least * (1 + 0.1 * share), float(solved.multipliers.floors[0].sum(axis=0).min()) * (1 + share)
    assert weight > 1e-3
    layout = lay_out(program)
    kernel = choose("numpy", 0)(layout, 1)
    tolerance = 1e-6
    weights = np.array([weight])
    found = solve_pricing_problems(layout, kernel, prices, weights, tolerance, Deadline())
    assert_encloses(program, found, prices, weights, tolerance)


@pytest.mark.parametrize("floor", [0.9, 0.95, 0.97, 0.98])
def test_a_tolerance_below_rounding_costs_no_proof(floor):
    program = grid(6, 5, floor=floor)
    solved = solve_by_interior_point(program)
    prices = compute_reduced_costs(program, solved.multipliers).min(axis=1)
    weight = np.array([float(solved.multipliers.floors[0].sum(axis=0).min())])
    layout = lay_out(program)
    kernel = choose("numpy", 0)(layout, 1)
    for found in solve_pricing_problems(layout, kernel, prices, weight, 1e-18, Deadline()):
        # An iteration beyond rounding accuracy once ended 97 below the value.
        assert found.lower >= -1e-4


def test_sums_of_columns_keep_rows_bounds_and_floors():
    program = grid(5, 4, floor=0.8)
    reached = iterate_blocks(program, Options(), gap=0.03)
    state, stay = merge_small_columns(reached.state, program.cost, 0.5)
    assert 0 < stay.size < program.columns
    n = program.rows
    before, after = reached.state.points, state.points
    assert after.sum(axis=0) == pytest.approx(before.sum(axis=0))
    x = np.zeros((n, program.columns))
    x[:, stay] = after[:, :n].T
    assert violation(program, x / x.sum(axis=1, keepdims=True)) <= 1e-6
    least = (after[:, :n] @ program.floors[0].error.T).min(axis=1)
    assert (after[:, n] <= least * (1 + 1e-12)).all()
    # The iteration continues from the merged state.
    restricted = replace(program, cost=program.cost[:, stay])
    on = iterate_blocks(restricted, Options(), gap=1e-3, start=state)
    assert on.status is Status.OPTIMAL


def test_proofs_with_some_estimates_hold_with_all():
    program = grid(5, 4, floor=0.97)
    whole = solve_by_interior_point(program)
    some = [np.flatnonzero(flags.any(axis=1)) for flags in find_close_estimates(program, whole.x, 0.1)]
    assert some[0].size < 20
    few = with_estimates(program, some)
    solved = solve_by_interior_point(few)
    lifted = with_all_estimates(program, some, solved.multipliers)
    # The estimates of the optimum are among the chosen ones, and fewer estimates never increase the cost.
    assert lower_bound(program, lifted) == pytest.approx(solved.lower, rel=1e-12)
    assert solved.lower == pytest.approx(whole.lower, rel=1e-5)
    worst = with_estimates(program, [np.array([0])])
    assert solve_by_interior_point(worst).upper < 0.99 * whole.lower


def test_interruption_and_time_limit_return_valid_brackets():
    program = grid(7, 6, floor=0.8)
    expected = solve_by_interior_point(program).upper
    moments = []

    def stop(progress):
        moments.append(progress)
        if progress.stage.startswith("columns priced"):
            signal.raise_signal(signal.SIGINT)

    found = solve_block_program(program, replace(GENERATED, progress=stop), tuning=TINY)
    assert found.status is Status.INTERRUPTED
    assert found.lower <= expected * (1 + 1e-9)
    assert expected <= found.upper * (1 + 1e-6)
    assert found.upper < 2 * expected
    assert all(moment.lower is None or moment.lower <= expected * (1 + 1e-9) for moment in moments)
    limited = solve_block_program(program, replace(GENERATED, time_limit=0.01), tuning=TINY)
    assert limited.status is Status.TIME_LIMIT
    assert limited.x.sum(axis=1) == pytest.approx(np.ones(42))
    assert limited.lower <= expected <= limited.upper * (1 + 1e-6)


def test_it_is_chosen_by_size_and_by_floors():
    assert not should_generate_columns(grid(5, 4, floor=0.8))
    assert should_generate_columns(grid(20, 15))
    assert should_generate_columns(grid(20, 15, floor=0.8))


def test_an_option_that_is_not_a_boolean_is_refused():
    with pytest.raises(InputError, match="generation"):
        solve_block_program(grid(2, 2), Options(extra={"generation": "yes"}))


def test_proofs_under_another_floor_are_not_reused():
    program = grid(5, 4, floor=0.97)
    (floor,) = program.floors
    first = replace(program, floors=(floor, FloorBlock(floor.minimum / 2, floor.error[:7])))
    least = 0.97 * float(floor.error[:7].sum(axis=1).min())
    second = replace(program, floors=(replace(floor, minimum=0.3 * floor.minimum), FloorBlock(least, floor.error[:7])))
    used = np.arange(0, 20, 2)
    asked = BlockPricer(master_of(first))
    for bound, by in ((first, 0), (second, 1)):
        solution, _, multipliers = priced(bound, used, 1e-3, 1e-4, asked)
        binding = [float(values.sum(axis=0).min()) > 1e-3 for values in solution.multipliers.floors]
        assert binding == [by == 0, by == 1]
        assert [values.shape for values in multipliers.floors] == [(20, 20), (7, 20)]


def test_a_stall_keeps_the_result_if_all_blocks_do_not_fit():
    program, ballast = grid(6, 5, cost="hamming", floor=0.97), []
    expected, held = solve_by_interior_point(program), max(MemoryBudget.of().held, 120e6)

    def grow(progress):
        """Use more memory than remains once the columns have theirs."""
        if not ballast:
            ballast.append(np.ones(40_000_000))

    options = Options(progress=grow, extra={"generation": True, "memory": held + 150e6})
    found = solve_block_program(program, options, gap=1e-13, tuning=TINY)
    assert found.status in (Status.STALLED, Status.ITERATION_LIMIT)
    assert expected.lower <= found.upper <= expected.upper * (1 + 1e-5)
    assert expected.upper * (1 - 1e-5) <= found.lower <= expected.upper
