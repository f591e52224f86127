"""Pricing with few bounds per row: the choice of bounds, the kernel, and proofs that hold with all bounds."""

from __future__ import annotations

import numpy as np
import pytest
from block_cases import FEW, agree, assert_encloses, grid, master_of, reduced_cost

from mechdesign.base._deadline import Deadline
from mechdesign.solve._block_angular import (
    BlockProgram,
    FloorBlock,
    compute_reduced_costs,
    imply_exponents,
    near_exponents,
    with_columns,
)
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import few_bounds
from mechdesign.solve._blocks.kernels.filled import FilledKernel
from mechdesign.solve._blocks.kernels.lapack import Lapack
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.pricing import ColumnPricing, DualPrices
from mechdesign.solve._blocks.pricing_problem import solve_pricing_problems
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

GENERATED = Options(extra={"generation": True})


def restrict_bounds(program, count=6):
    """Return the program with few bounds per row."""
    return type(program)(program.cost, near_exponents(program.exponents, count), program.floors, program.worst)


def test_the_strictest_bounds_stay_that_no_two_others_imply():
    exponents = grid(7, 7).exponents
    near = near_exponents(exponents, 8)
    kept = np.isfinite(near)
    np.fill_diagonal(kept, False)
    middle = 24
    # On a grid, the four neighbours and the four diagonal ones imply the rows two steps away.
    places = np.array([divmod(int(t), 7) for t in np.flatnonzero(kept[middle])]) - 3
    assert sorted(map(tuple, places.tolist())) == [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    assert (near[kept] == exponents[kept]).all()
    assert (kept.sum(axis=1) <= 8).all()


def test_on_a_line_the_neighbours_imply_all_others():
    exponents = grid(9, 1).exponents
    near = near_exponents(exponents, 4)
    np.fill_diagonal(near, np.inf)
    assert np.isfinite(near).sum() == 16
    paths = exponents.copy()
    np.fill_diagonal(paths, 0.0)
    assert imply_exponents(near) == pytest.approx(paths)


def prices_of(program, solved):
    """Return λ and v."""
    least = compute_reduced_costs(program, solved.multipliers).min(axis=1)
    return least, np.array([float(values.sum(axis=0).min()) for values in solved.multipliers.floors])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("floor", [None, 0.97])
def test_prices_enclose_those_of_highs_and_prove_all_bounds(share, floor):
    program = grid(5, 4, floor=floor)
    least, weights = prices_of(program, solve_by_interior_point(program))
    prices, weights = least * (1 + 0.1 * share), weights * (1 + share)
    fewer, tolerance = restrict_bounds(program), 1e-6
    layout = lay_out(fewer)
    kernel = few_bounds(floors=floor is not None)(layout, 1)
    found = solve_pricing_problems(layout, kernel, prices, weights, tolerance, Deadline())
    improving = assert_encloses(program, found, prices, weights, tolerance, fewer)
    assert improving > 3 or share < 1.0


def test_the_kernel_takes_what_single_precision_cannot_factor(monkeypatch):
    program = grid(5, 4, floor=0.97)
    prices, weights = prices_of(program, solve_by_interior_point(program))
    prices = prices * 1.02
    layout = lay_out(restrict_bounds(program))
    expected = solve_pricing_problems(layout, FilledKernel(layout, 1), prices, weights, 1e-6, Deadline())
    whole = Lapack.try_factor

    def double_only(self, matrix):
        return matrix.dtype == np.float64 and whole(self, matrix)

    monkeypatch.setattr(Lapack, "try_factor", double_only)
    found = solve_pricing_problems(layout, FilledKernel(layout, 1), prices, weights, 1e-6, Deadline())
    for one, other in zip(expected, found, strict=True):
        assert one.iterations == pytest.approx(other.iterations, abs=2)
        assert (one.lower >= -1e-6) == (other.lower >= -1e-6)
    monkeypatch.setattr(Lapack, "try_factor", lambda self, matrix: False)
    # If nothing can be factored, the bounds are those of the start.
    for found in solve_pricing_problems(layout, FilledKernel(layout, 1), prices, weights, 1e-6, Deadline()):
        assert found.iterations == 0


class RecordedPricing(ColumnPricing):
    """Pricing that records the numbers of bounds and columns of each tier."""

    def price_groups(self, program, groups, prices, threads):
        found = super().price_groups(program, groups, prices, threads)
        self.tiers = [*getattr(self, "tiers", ()), (int(np.isfinite(program.exponents).sum()), len(found))]
        return found


def pricing_of(program, used, gap=3e-7):
    """Return the pricing of omitted columns, the solution with the columns in use, and its λ and v."""
    solved, master = solve_by_interior_point(with_columns(program, used), gap=gap), master_of(program)
    asked = RecordedPricing(program, master.options, master.report, master.deadline, master.budget, FEW.pricing)
    return asked, solved, *prices_of(with_columns(program, used), solved)


@pytest.mark.parametrize("floor", [0.8, 0.97])
def test_columns_that_few_bounds_do_not_prove_are_priced_with_all(floor):
    program, used = grid(6, 5, floor=floor), np.arange(0, 30, 3)
    others = np.setdiff1d(np.arange(30), used)
    asked, solved, prices, weights = pricing_of(program, used)
    found = asked.price_columns(program, used, solved.x, others, DualPrices(prices, weights, 1e-6))
    for column, one in found.items():
        assert one.lower <= reduced_cost(program, column, prices, weights) + 1e-7
    (fewer, first), (every, last) = asked.tiers[0], asked.tiers[-1]
    assert fewer < every
    assert first == others.size > last
    agree(solve_block_program(program, GENERATED, tuning=FEW), program)


@pytest.mark.parametrize("gap", [0.1, 0.03, 0.01, 3e-3, 1e-4])
def test_a_loose_gap_keeps_the_columns_in_use(gap):
    program = grid(6, 5, floor=0.9)
    found = solve_block_program(program, GENERATED, gap=gap, tuning=FEW)
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= gap * found.upper
    agree(found, program)


def test_places_close_together_stay_bound_to_each_other_in_clusters():
    """In three distant clusters of 12 rows, all near rows lie in the same cluster, and proofs hold with all bounds."""
    rng = np.random.default_rng(5)
    places = np.concatenate([center + 0.1 * rng.random((12, 2)) for center in ([0, 0], [4, 0], [0, 4])])
    distance = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    exponents = 0.8 * distance
    np.fill_diagonal(exponents, np.inf)
    prior = np.full(36, 1 / 36)
    for floors in ((), (FloorBlock(0.9 * float((distance @ prior).min()), distance * prior),)):
        program = BlockProgram(prior[:, None] * distance, exponents, floors)
        least, weights = prices_of(program, solve_by_interior_point(program, gap=1e-4))
        fewer = restrict_bounds(program, 8)
        layout = lay_out(fewer)
        kernel = few_bounds(floors=bool(floors))(layout, 1)
        found = solve_pricing_problems(layout, kernel, least * 1.01, weights, 1e-6, Deadline())
        assert_encloses(program, found, least * 1.01, weights, 1e-6, fewer)
