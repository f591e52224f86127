"""Regression tests for lost time, brackets and digits, one test for each fault."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from block_cases import ARRAYS, TINY, grid, iterates, master_of, priced, working_of

from mechdesign.base._deadline import Deadline
from mechdesign.solve._block_angular import BlockProgram, objective, with_columns
from mechdesign.solve._blocks import interior_point, pricing
from mechdesign.solve._blocks import master as master_module
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.dual import dual_bound
from mechdesign.solve._blocks.initial_working_set import choose_initial_working_set
from mechdesign.solve._blocks.interior_point import InteriorPoint, iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.layout import lay_out, make_geometry
from mechdesign.solve._blocks.master import ScheduleRun
from mechdesign.solve._blocks.pricer import BlockPricer
from mechdesign.solve._blocks.solution import combine_solutions
from mechdesign.solve._contract import Options, Status


class Clock:
    """A clock that tests set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_all_restricted_problems_of_a_round_end_at_the_same_time() -> None:
    clock, program = Clock(), grid(5, 4, floor=0.8)
    master = master_of(program, 1e-4, deadline=Deadline(100.0, clock=clock))
    for now, left in ((0.0, 60.0), (30.0, 30.0), (70.0, 0.0)):
        clock.now = now
        assert master.round_deadline.left() == pytest.approx(left)
    # Two fifths of the time remain for pricing, unless all columns are in use.
    assert BlockPricer(master).deadline.left() == pytest.approx(30.0)
    for columns, status in ((np.arange(10), Status.TIME_LIMIT), (None, Status.OPTIMAL)):
        assert master.finish_run(ScheduleRun(working_of(program, columns), None, Status.OPTIMAL)).status is status


def test_a_stall_of_all_blocks_at_once_is_not_solved_again() -> None:
    program, gap, counts = grid(5, 4, floor=0.8), 1e-15, []
    tuning = replace(TINY, generation=replace(TINY.generation, min_entries=1, min_coarse_iterations=1000))

    def begin(program: Any, options: Options, gap: float) -> object:
        master = master_of(program, gap, tuning, progress=options.progress)
        return choose_initial_working_set(master, always=False)

    for solve in (solve_by_interior_point, partial(solve_block_program, tuning=tuning), begin):
        told: list[object] = []
        solve(program, Options(progress=told.append), gap=gap)
        counts.append(len(told))
    every, both, few = counts
    assert min(every, few) > 1
    assert both == every + few


def test_the_better_ends_of_two_brackets_count() -> None:
    program = grid(5, 4, floor=0.8)
    loose, tight = (solve_by_interior_point(program, gap=gap) for gap in (0.1, 1e-6))
    point = replace(loose, x=tight.x, upper=tight.upper)
    bound = replace(loose, multipliers=tight.multipliers, lower=tight.lower, message="the bound")
    for both in (combine_solutions(point, bound), combine_solutions(bound, point)):
        assert (both.lower, both.upper) == (tight.lower, tight.upper)
        assert both.x is tight.x
        assert both.multipliers is tight.multipliers
    assert combine_solutions(loose, tight) is tight
    assert combine_solutions(tight, loose) is tight


def test_multipliers_are_those_of_any_order_of_answers() -> None:
    program = grid(5, 4, floor=0.97)
    used, pricer = np.arange(0, 20, 2), BlockPricer(master_of(program, threads=1))
    solution, found, multipliers = priced(program, used, pricer=pricer)
    other = pricer.join_multipliers(used, solution.multipliers, dict(reversed(found.items())), np.arange(1))
    for name in ("sources", "targets", "columns", "values"):
        assert np.array_equal(getattr(multipliers.ratios, name), getattr(other.ratios, name))


@pytest.mark.parametrize("arrays", ARRAYS)
def test_hessians_with_two_floors_are_symmetric(arrays: str) -> None:
    program = grid(5, 4, floor=0.8)
    (floor,) = program.floors
    layout = lay_out(replace(program, floors=(floor, replace(floor, error=floor.error[::2]))))
    kernel = choose(arrays, None, 0)(layout, 1, None)
    blocks = iterates(layout, kernel, 3)
    kernel.set_precision(0.0)
    pairs, products = np.zeros(blocks.x.shape), np.zeros(layout.blocks)
    some = slice(0, min(kernel.batch, layout.blocks))
    assert kernel.assemble(0, some, blocks.x, pairs, products)
    ratio = blocks.iterate.y / blocks.iterate.z
    auxiliary = layout.auxiliary
    for index in range(2):
        own = auxiliary.contributions(ratio)[:, index]
        kernel.add_floor(0, some, index, blocks.iterate.points, auxiliary.floor(ratio, index), own)
    for matrix in kernel._matrices(0, some):
        assert np.array_equal(matrix, matrix.T)


def test_the_geometry_of_the_bounds_is_computed_once_for_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    made, laid = Mock(wraps=make_geometry), Mock(wraps=lay_out)
    monkeypatch.setattr(pricing, "make_geometry", made)
    monkeypatch.setattr(pricing, "lay_out", laid)
    priced(grid(6, 5, floor=0.97), np.arange(0, 30, 3))
    # Each column is priced once with the likely estimates, and at most once with all estimates.
    assert 1 <= made.call_count <= 2 < laid.call_count


def test_sparse_blocks_that_end_an_iteration_are_not_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    program = grid(9, 8, masked=lambda distance: distance > 1.1)
    factored, factor = [], SparseKernel.factor

    def counted(self: SparseKernel, *given: Any) -> float:
        factored.append(1)
        return factor(self, *given)

    monkeypatch.setattr(SparseKernel, "factor", counted)
    found = solve_by_interior_point(program, Options(threads=1, extra={"arrays": "sparse"}), gap=1e-4)
    assert found.status is Status.OPTIMAL
    kernel = choose("sparse", None, 0)(lay_out(program), 1, None)
    batches = -(-program.columns // kernel.batch)
    assert 0 < len(factored) < batches * found.iterations


def test_kernels_of_one_geometry_share_the_lists_of_pairs() -> None:
    program = grid(9, 8, masked=lambda distance: distance > 1.1)
    geometry = make_geometry(program.exponents, 0)
    few = lay_out(with_columns(program, np.arange(4)), geometry=geometry)
    others = lay_out(with_columns(program, np.arange(4, 9)), geometry=geometry)
    kernels = [choose("sparse", None, 0)(layout, 1, None) for layout in (few, others, lay_out(program))]
    assert kernels[0].pairs is kernels[1].pairs
    assert kernels[0].pairs is not kernels[2].pairs
    np.testing.assert_array_equal(kernels[0].pairs, kernels[2].pairs)


def test_prices_of_a_solution_that_was_cut_are_proved_as_closely_as_it_is_solved() -> None:
    program, used = grid(5, 4, cost="hamming", floor=0.9), np.arange(0, 20, 2)
    master = master_of(program, 1e-6)
    tolerances = []

    class Asked(BlockPricer):
        def price_omitted(self, found: Any, tolerance: float, inactive: float) -> Any:
            tolerances.append(tolerance * program.rows / master.best.upper)
            return super().price_omitted(found, tolerance, inactive)

    solved = master.finish_run(ScheduleRun(working_of(program, used), None, Status.OPTIMAL))
    rough = solve_by_interior_point(with_columns(program, used), gap=0.2)
    reached = (rough.upper - rough.lower) / rough.upper
    for found in (solved, replace(solved, prices=rough, status=Status.TIME_LIMIT)):
        Asked(master).price(found, master.best)
    share = master.tuning.generation.pricing_gap_share
    assert tolerances == pytest.approx([share * 1e-6, share * reached])


@pytest.mark.slow
def test_gaps_between_the_iterate_and_its_repaired_point_are_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Bᵀy alone allows the end but the repaired point does not, the iteration continues with factored blocks."""
    n, tried, options = 45, 0, Options(threads=1, extra={"arrays": "sparse"})
    near, apart = np.arange(n - 1), np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    exponents = np.full((n, n), np.inf)
    exponents[near, near + 1] = exponents[near + 1, near] = 0.4
    kept: list[tuple[float, float]] = []

    class Lines(InteriorPoint):
        def _record_iterate(self, *given: Any) -> Any:
            upper, lower = objective(self.program, self._channel()), max(self.lower, dual_bound(self.blocks))
            relative, absolute, residual = super()._record_iterate(*given)
            kept.append((abs(upper - lower) / upper, relative))
            return relative, absolute, residual

    monkeypatch.setattr(interior_point, "InteriorPoint", Lines)
    # Which programs have such a gap depends on rounding.
    for seed in range(20, 28):
        rng = np.random.default_rng(seed)
        cost = rng.random(n)[:, None] * (apart + rng.random((n, n))) / n
        program = BlockProgram(cost, exponents * rng.uniform(0.2, 3))
        kept.clear()
        solve_by_interior_point(program, options, gap=1e-9)
        for gap in [(a + b) / 2 for a, b in kept if a * (1 + 1e-12) < b < 1e-2]:
            asked = gap if gap <= 1e-6 else gap / 0.9
            assert solve_by_interior_point(program, options, gap=asked).status is Status.OPTIMAL
            tried += 1
    assert tried


def test_time_that_pricing_cannot_use_goes_to_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, program, left = Clock(), grid(5, 4, cost="hamming", floor=0.8), []
    master = master_of(program, 1e-4, deadline=Deadline(100.0, clock=clock))
    # Pricing could prove no larger bound.
    master.best.offer_bound(1e9, None)

    def timed(chosen: Any, options: Options, **named: Any) -> Any:
        left.append(options.deadline.left())
        reached = iterate_blocks(chosen, options, **named)
        if len(left) > 1:
            return reached
        clock.now = 61.0
        return replace(reached, status=Status.TIME_LIMIT)

    monkeypatch.setattr(master_module, "iterate_blocks", timed)
    master.begin_round(master.best)
    run = master.run_schedule(program, working_of(program, np.arange(10)), ((0.1, 0.0),))
    assert run.status is Status.OPTIMAL
    assert left == [60.0, 39.0]
