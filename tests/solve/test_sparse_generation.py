"""Column generation with sparse blocks: against HiGHS, and against all blocks at once; pricing and merging."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from block_cases import agree, check_against_highs, master_of, random_program, reduced_cost, violation
from long import mostly_long
from scipy.sparse import csgraph
from test_sparse_blocks import GRAPHS, program_on, roads, squares

from mechdesign.base._deadline import Deadline
from mechdesign.solve._block_angular import BlockProgram, compute_reduced_costs, lower_bound, with_columns
from mechdesign.solve._blocks.coarsening import aggregate_rows
from mechdesign.solve._blocks.column_generation import should_generate_columns, solve_block_program
from mechdesign.solve._blocks.interior_point import iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.layout import is_sparse, lay_out
from mechdesign.solve._blocks.merging import merge_small_columns
from mechdesign.solve._blocks.neighbours import group_columns
from mechdesign.solve._blocks.pricing import ColumnPricing, DualPrices
from mechdesign.solve._blocks.pricing_problem import solve_pricing_problems
from mechdesign.solve._blocks.tuning import TUNING
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


@pytest.mark.long
def test_it_uses_few_blocks_if_it_is_chosen():
    program = program_on(roads(330, 5))
    assert should_generate_columns(program)
    few, every = solve_block_program(program, gap=1e-3), solve_by_interior_point(program, gap=1e-3)
    assert few.status is every.status is Status.OPTIMAL
    assert few.blocks < 0.7 * every.blocks
    assert few.lower <= every.upper * (1 + 1e-9)
    assert every.lower <= few.upper * (1 + 1e-9)
    assert (few.upper - few.lower) / few.upper <= 1e-3


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
    tolerance, negative = 1e-6, 0
    for column, found in enumerate(solve_pricing_problems(layout, kernel, prices, np.zeros(0), tolerance, Deadline())):
        expected = reduced_cost(program, column, prices, [])
        negative += expected < -tolerance
        assert found.lower <= expected + 1e-8
        assert found.upper >= expected - 1e-8
        # Either the sign is proved, or the value is known to within half of itself.
        assert found.lower >= -tolerance or found.upper - found.lower <= 0.51 * abs(found.lower)
        reduced = program.cost[:, column] - prices
        growth = np.exp(program.exponents[found.sources, found.targets])
        np.add.at(reduced, found.sources, found.values)
        np.add.at(reduced, found.targets, -growth * found.values)
        assert (found.values > 0).all()
        assert reduced.min() >= min(found.lower, -tolerance) - 1e-12
    assert negative > 5 if share else negative == 0


def _priced(program, prices, columns=slice(None), kernel=SparseKernel):
    layout = lay_out(with_columns(program, np.arange(program.columns)[columns]))
    return solve_pricing_problems(layout, kernel(layout, 1), prices, np.zeros(0), 1e-6, Deadline())


def _prices(program, share):
    return compute_reduced_costs(program, solve_by_interior_point(program, gap=1e-4).multipliers).min(axis=1) * share


def test_columns_of_a_batch_are_independent(monkeypatch):
    program = program_on(GRAPHS["roads"])
    prices = _prices(program, 1.05)
    together = _priced(program, prices)
    monkeypatch.setattr("mechdesign.solve._blocks.kernels.pairs._TILE_ENTRIES", 1)
    for one, other in zip(together, _priced(program, prices), strict=True):
        assert one.iterations == other.iterations
        assert one.lower == pytest.approx(other.lower, rel=1e-6, abs=1e-12)


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
        reduced = program.cost[:, column] - prices
        np.add.at(reduced, found.sources, found.values)
        growth = np.exp(program.exponents[found.sources, found.targets])
        np.add.at(reduced, found.targets, -growth * found.values)
        assert reduced.min() >= min(found.lower, -1e-6) - 1e-12


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


class Groups(ColumnPricing):
    """Pricing that records how many columns are priced at a time, and prices none."""

    largest = 0

    def price_groups(self, program, groups, prices, threads):
        self.largest = max(self.largest, *(group.columns.size for group in groups), 0)
        return {}


@pytest.mark.parametrize(("extra", "most"), [({"arrays": "numpy"}, 50), ({"device": "cuda"}, 50), ({}, 390)])
def test_dense_kernels_do_not_count_on_sparse_blocks(extra, most):
    program = program_on(squares(20, 20))
    master, used = master_of(program, threads=1, extra=extra), np.arange(10)
    tuning = replace(TUNING.generation, min_rows_without_floors=500)
    assert should_generate_columns(program, master.options, tuning) is (not extra)
    asked = Groups(program, master.options, master.report, master.deadline, master.budget, TUNING.pricing)
    asked.price_columns(
        program, used, np.ones((400, 10)), np.arange(10, 400), DualPrices(np.zeros(400), np.zeros(0), 1e-6)
    )
    assert asked.largest == most


def test_the_iteration_goes_on_from_a_state():
    program = program_on(GRAPHS["squares"])
    whole = iterate_blocks(program, Options(), gap=1e-4)
    first = iterate_blocks(program, Options(), gap=0.03)
    # Targets are in single precision, in units of the first μ.
    again = iterate_blocks(program, Options(), gap=1e-4, start=first.state)
    assert again.status is Status.OPTIMAL
    assert abs(len(first.history) + len(again.history) - len(whole.history)) <= 3
    assert again.history[0].lower == pytest.approx(first.history[-1].lower)
    pairs = int(np.isfinite(program.exponents).sum())
    assert first.state.ratio_y.shape == (program.columns, program.rows + pairs)


def test_sums_of_columns_keep_rows_and_bounds():
    program = program_on(GRAPHS["roads"])
    state, stay = merge_small_columns(iterate_blocks(program, Options(), gap=0.03).state, program.cost, 0.5)
    assert 0 < stay.size < program.columns
    assert state.points.sum(axis=0) == pytest.approx(np.ones(program.rows), abs=1e-6)
    few = with_columns(program, stay)
    assert violation(few, (state.points / state.points.sum(axis=0)).T) <= 1e-6
    assert iterate_blocks(few, Options(), gap=1e-3, start=state).status is Status.OPTIMAL


@pytest.mark.parametrize("name", ["squares", "roads", "pieces"])
def test_a_coarse_problem_keeps_bounds_between_adjacent_clusters(name):
    program = program_on(GRAPHS[name], columns=7)
    small = aggregate_rows(program, 16)
    assert small.rows == 16
    assert small.cost.sum(axis=0) == pytest.approx(program.cost.sum(axis=0))
    bounded = np.isfinite(small.exponents)
    assert (bounded == bounded.T).all()
    assert 0 < bounded.sum() < 16 * 15 / 2
    whole = csgraph.connected_components(np.isfinite(program.exponents))[0]
    assert csgraph.connected_components(bounded)[0] == whole
    # Exponents between neighbouring clusters are means of implied exponents, which are at least the shortest bound.
    assert small.exponents.min() >= program.exponents.min()
    larger = program_on(squares(20, 20), columns=5)
    assert is_sparse(133, int(np.isfinite(aggregate_rows(larger, 133).exponents).sum()), 0)


def test_clusters_have_implied_bounds():
    exponents = np.full((4, 4), np.inf)
    for s in range(3):
        exponents[s, s + 1] = exponents[s + 1, s] = 1.0 + s
    cost = np.array([[1.0], [1e-9], [1e-9], [1.0]])
    small = aggregate_rows(BlockProgram(cost, exponents), 2)
    # Rows 0 to 2 lie at 0, 1 and 3, and row 3 at 6.
    assert small.exponents[0, 1] == small.exponents[1, 0] == pytest.approx((6 + 5 + 3) / 3)


def test_without_floors_groups_are_of_any_columns():
    program = program_on(GRAPHS["squares"])
    others = np.arange(3, 40)
    groups = group_columns(program, np.arange(3), np.ones((program.rows, 3)), others, 10, 0.1, TUNING.pricing)
    assert [group.columns.size for group in groups] == [10, 10, 10, 7]
    assert np.concatenate([group.columns for group in groups]).tolist() == others.tolist()
    assert all(group.estimates == () for group in groups)
