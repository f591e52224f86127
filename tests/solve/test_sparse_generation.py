"""Column generation with sparse blocks: against HiGHS, and against all blocks at once; pricing and merging."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from block_cases import (
    agree,
    assert_encloses,
    assert_proves,
    check_against_highs,
    random_program,
    violation,
)
from long import mostly_long
from test_sparse_blocks import GRAPHS, program_on, squares

from mechdesign.base._deadline import Deadline
from mechdesign.solve._block_angular import BlockProgram, compute_reduced_costs, lower_bound, with_columns
from mechdesign.solve._blocks.column_generation import should_generate_columns, solve_block_program
from mechdesign.solve._blocks.interior_point import iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.master import merge_small_columns
from mechdesign.solve._blocks.pricing_problem import solve_pricing_problems
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

GENERATED = Options(extra={"generation": True, "arrays": "sparse"})


@pytest.mark.parametrize("first", mostly_long(range(0, 120, 40)))
def test_agrees_with_highs_on_random_programs(first):
    tested = 0
    for seed in range(first, first + 40):
        program = random_program(seed)
        if program.floors:
            continue
        tested += 1
        check_against_highs(program, solve_block_program(program, GENERATED), seed)
    assert tested > 5


@pytest.mark.parametrize("worst", mostly_long([False, True]))
@pytest.mark.parametrize("name", GRAPHS)
def test_brackets_are_those_of_all_blocks_at_once(name, worst):
    program, gap = program_on(GRAPHS[name], worst=worst), 1e-4
    found = solve_block_program(program, GENERATED, gap=gap)
    assert found.status is Status.OPTIMAL
    assert (found.upper - found.lower) / found.upper <= gap
    agree(found, program)
    assert violation(program, found.x) <= 1e-7


def test_it_is_chosen_by_size():
    assert not should_generate_columns(program_on(squares(10, 10)))
    assert should_generate_columns(program_on(squares(15, 15)))
    assert not should_generate_columns(program_on(squares(20, 20), worst=True))


@pytest.mark.parametrize("limit", mostly_long([2.0, None]))
def test_what_the_first_stage_has_found_is_kept(limit):
    program = program_on(squares(15, 15))
    uniform, expected = program.cost.mean(axis=1).sum(), solve_by_interior_point(program, gap=1e-4).upper

    def told(progress):
        if limit is not None and progress.iteration:
            time.sleep(0.2)
        elif progress.iteration == 6:
            signal.raise_signal(signal.SIGINT)

    found = solve_block_program(program, Options(progress=told, time_limit=limit, extra=GENERATED.extra), gap=1e-4)
    assert found.status is (Status.INTERRUPTED if limit is None else Status.TIME_LIMIT)
    assert expected <= found.upper * (1 + 1e-9)
    assert found.upper < 0.99 * uniform
    assert found.lower <= expected * (1 + 1e-9)
    assert found.lower >= 0.0
    assert limit is not None or found.lower > 0.2 * expected
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers))
    assert violation(program, found.x) <= 1e-7


@pytest.mark.parametrize("tile", mostly_long([2_000, 1]))
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_prices_enclose_those_of_highs(share, tile, monkeypatch):
    monkeypatch.setattr("mechdesign.solve._blocks.kernels.pairs._TILE_ENTRIES", tile)
    program = program_on(GRAPHS["roads"])
    solved = solve_by_interior_point(program, gap=1e-4)
    prices = compute_reduced_costs(program, solved.multipliers).min(axis=1) * (1 + 0.05 * share)
    layout = lay_out(program)
    kernel = SparseKernel(layout, 1)
    assert (kernel.batch > 1) == (tile > 1)
    found = solve_pricing_problems(layout, kernel, prices, np.zeros(0), 1e-6, Deadline())
    negative = assert_encloses(program, found, prices, [], 1e-6)
    assert negative > 5 if share else negative == 0


def _priced(program, prices, columns=slice(None), kernel=SparseKernel):
    layout = lay_out(with_columns(program, np.arange(program.columns)[columns]))
    return solve_pricing_problems(layout, kernel(layout, 1), prices, np.zeros(0), 1e-6, Deadline())


def _prices(program, share):
    return compute_reduced_costs(program, solve_by_interior_point(program, gap=1e-4).multipliers).min(axis=1) * share


def test_a_direction_that_is_not_finite_ends_its_own_column_alone():
    class Broken(SparseKernel):
        def solve(self, worker, blocks, right):
            super().solve(worker, blocks, right)
            right[7] = np.nan

    program = program_on(GRAPHS["roads"])
    prices = _prices(program, 1.05)
    expected, found = _priced(program, prices), _priced(program, prices, kernel=Broken)
    assert found[7].iterations < expected[7].iterations
    for column in set(range(program.columns)) - {7}:
        assert found[column].lower == pytest.approx(expected[column].lower, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("calls", [0, 3])
def test_the_bound_is_valid_if_a_point_cannot_be_assembled(calls):
    class Broken(SparseKernel):
        made = 0

        def assemble(self, worker, blocks, x, adjoint, products):
            self.made += 1
            done = super().assemble(worker, blocks, x, adjoint, products)
            return done and self.made <= calls

        def _growth(self, tile, point, rho, z):
            return super()._growth(tile, point, rho, z) and self.made <= calls

    program = program_on(GRAPHS["roads"])
    prices = _prices(program, 1.05)
    for column, found in enumerate(_priced(program, prices, kernel=Broken)):
        assert found.iterations == calls
        assert_proves(program, column, found, prices, 1e-6)


def test_bounds_in_one_direction_alone_rows_and_large_exponents():
    program = program_on(GRAPHS["squares"])
    exponents = program.exponents.copy()
    s, t = np.nonzero(np.isfinite(exponents))
    exponents[s[s > t][::2], t[s > t][::2]] = np.inf
    exponents[3], exponents[:, 3] = np.inf, np.inf
    exponents[s[5], t[5]] = exponents[t[5], s[5]] = 100.0
    changed = BlockProgram(program.cost, exponents)
    expected, found = solve_by_interior_point(changed, gap=1e-5), solve_block_program(changed, GENERATED, gap=1e-5)
    assert found.upper == pytest.approx(expected.upper, rel=2e-5)
    assert found.lower == pytest.approx(expected.lower, rel=2e-5)
    assert found.lower <= expected.upper * (1 + 1e-9)


def test_sums_of_columns_keep_rows_and_bounds():
    program = program_on(GRAPHS["roads"])
    state, stay = merge_small_columns(iterate_blocks(program, Options(), gap=0.03).state, program.cost, 0.5)
    assert 0 < stay.size < program.columns
    assert state.points.sum(axis=0) == pytest.approx(np.ones(program.rows), abs=1e-6)
    few = with_columns(program, stay)
    assert violation(few, (state.points / state.points.sum(axis=0)).T) <= 1e-6
    assert iterate_blocks(few, Options(), gap=1e-3, start=state).status is Status.OPTIMAL
