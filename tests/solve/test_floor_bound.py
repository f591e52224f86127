"""The lower bound from one floor alone: where it is tight, that it never exceeds the optimum, and its uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import grid, optimum, random_program
from rows import each_row

import mechdesign as md
from mechdesign.solve._block_angular import BlockProgram, FloorBlock, find_floor_multipliers, lower_bound
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._contract import Options, Status


def test_it_is_the_floor_where_costs_are_errors() -> None:
    program = grid(5, 4, floor=0.8)
    (floor,) = program.floors
    found = find_floor_multipliers(program)
    assert lower_bound(program, found) == pytest.approx(floor.minimum, rel=1e-12)
    assert (found.floors[0] >= 0).all()
    np.testing.assert_allclose(found.floors[0].sum(axis=0), 1.0, rtol=1e-12)


def test_it_is_the_price_of_the_cheapest_answer_times_the_floor() -> None:
    # Relative to the only estimate's error, observable 0 costs 3 and 2, and observable 1 costs 5 and 4: v = min(2, 4).
    error = np.array([[0.5, 0.25]])
    cost = np.array([[1.5, 2.5], [0.5, 1.0]])
    program = BlockProgram(cost, np.array([[np.inf, 1.0], [1.0, np.inf]]), (FloorBlock(0.6, error),))
    v = min(max(min(cost[s, o] / error[0, s] for s in (0, 1)) for _ in (0,)) for o in (0, 1))
    assert v == 2.0
    # Some rows may have a positive reduced cost in addition to v · minimum: here 3 · 0.5 − 2 · 0.5 in the first row.
    assert lower_bound(program, find_floor_multipliers(program)) == pytest.approx(2.0 * 0.6 + 0.5, rel=1e-12)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_it_never_lies_above_the_optimum(first: int) -> None:
    proved = 0
    for seed in range(first, first + 40):
        program = random_program(seed)
        bound = lower_bound(program, find_floor_multipliers(program))
        if program.floors and program.worst is None:
            proved += bound > 0
            assert bound <= optimum(program) * (1 + 1e-9) + 1e-12, seed
    assert proved


def test_programs_that_prove_nothing_by_it() -> None:
    program = grid(3, 3, floor=0.5)
    (floor,) = program.floors
    free = replace(program, floors=(replace(floor, error=0 * floor.error),))
    rewarded = replace(program, floors=(replace(floor, rewards=np.zeros(9)),))
    for other in (grid(3, 3), grid(3, 3, floor=0.5, worst=True), free, rewarded, replace(program, floors=())):
        assert all(not values.any() for values in find_floor_multipliers(other).floors)


def test_a_solve_without_time_has_it() -> None:
    program = grid(5, 4, floor=0.8)
    found = solve_by_interior_point(program, Options(time_limit=0.0))
    assert found.status is Status.TIME_LIMIT
    assert found.lower == pytest.approx(program.floors[0].minimum, rel=1e-12)


def test_a_design_that_is_stopped_at_once_has_it() -> None:
    domain = md.Domain.grid(5, 4, 5.0, 4.0)
    distance = md.distances.euclidean(domain)
    prior = np.full(20, 0.05)
    floor = 0.8 * float((distance @ prior).min())
    problem = md.Problem(prior, distance, [md.MetricPrivacy("0.8", distance), md.DistortionPrivacy(floor, distance)])
    made = md.design(problem, solver="block", time_limit=1e-6)
    assert made.status is Status.TIME_LIMIT
    assert made.certificate.lower_bound == pytest.approx(floor, rel=1e-9)


@each_row("generation", [True, False])
def test_a_floor_that_no_point_reaches_is_never_called_optimal(generation: bool) -> None:
    errors = 1.0 - np.eye(4)
    program = BlockProgram(errors, np.where(np.eye(4) > 0, np.inf, 1.0), (FloorBlock(0.8, errors * 0.25),))
    assert solve_block_program(program, Options(extra={"generation": generation})).status is Status.STALLED


def test_an_optimum_of_zero_has_a_gap_in_units_of_the_cost() -> None:
    distance = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
    errors = distance / 8
    program = BlockProgram(np.where(distance <= 3, 0.0, errors), np.full((8, 8), np.inf), (FloorBlock(0.9, errors),))
    found = solve_block_program(program, Options(extra={"generation": True}))
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= 1e-9 * errors.max()
