"""Regression tests for lost time, brackets and digits, one test for each fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from block_cases import ARRAYS, grid, iterates, master_of, priced, working_of

from mechdesign.base._deadline import Deadline
from mechdesign.solve._block_angular import BlockProgram, combine_solutions, objective, with_columns
from mechdesign.solve._blocks import interior_point
from mechdesign.solve._blocks.dual import dual_bound
from mechdesign.solve._blocks.interior_point import InteriorPoint, solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.master import ScheduleRun
from mechdesign.solve._blocks.pricing import BlockPricer
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
    kernel = choose(arrays, 0)(layout, 1)
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
