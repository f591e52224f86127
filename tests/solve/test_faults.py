"""Limits, brackets and orders that once cost results: one test for each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import grid, iterates

from mechdesign.base._deadline import Deadline
from mechdesign.solve._blocks import columns, generation, outside
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import geometry_of, lay_out
from mechdesign.solve._blocks.outside import Outside, restricted
from mechdesign.solve._blocks.solution import combine
from mechdesign.solve._blocks.interior_point import solve_block
from mechdesign.solve._contract import Options, Status


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_all_restricted_programs_of_a_round_end_at_the_same_time() -> None:
    clock, program = Clock(), grid(5, 4, floor=0.8)
    run = generation._Run(program, Options(deadline=Deadline(100.0, clock=clock)), 1e-4, 0.0)
    # With all columns in use there are none to price.
    assert run._options("").deadline.left() == 100.0
    run.choice = run.choice.only(np.arange(10))
    assert run._options("").deadline.left() == pytest.approx(60.0)
    clock.now = 30.0
    assert run._options("").deadline.left() == pytest.approx(30.0)
    assert run._options("a small program").deadline.left() == pytest.approx(30.0)
    clock.now = 60.0
    assert run._options("").deadline.left() == 0.0
    # Two fifths are left for pricing.
    assert run.pricing.left() == pytest.approx(40.0)


def test_a_stall_of_all_blocks_at_once_is_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program, calls = grid(5, 4, floor=0.8), []

    def stalled(*given: object, **named: object) -> object:
        calls.append(given)
        return replace(solve_block(program, gap=1e-2), status=Status.STALLED)

    monkeypatch.setattr(columns, "may_pay", lambda *given: True)
    monkeypatch.setattr(columns, "solve_generated", lambda *given, **named: None)
    monkeypatch.setattr(columns, "solve_block", stalled)
    assert columns.solve_columns(program).status is Status.STALLED
    assert len(calls) == 1


def test_the_better_ends_of_two_brackets_count() -> None:
    program = grid(5, 4, floor=0.8)
    loose, tight = (solve_block(program, gap=gap) for gap in (0.1, 1e-6))
    point = replace(loose, x=tight.x, upper=tight.upper)
    bound = replace(loose, multipliers=tight.multipliers, lower=tight.lower, message="the bound")
    for both in (combine(point, bound), combine(bound, point)):
        assert (both.lower, both.upper) == (tight.lower, tight.upper)
        assert both.x is tight.x
        assert both.multipliers is tight.multipliers
    assert combine(loose, tight) is tight
    assert combine(tight, loose) is tight


def test_multipliers_are_those_of_any_order_of_answers() -> None:
    program = grid(5, 4, floor=0.97)
    used = np.arange(0, 20, 2)
    solution = solve_block(restricted(program, used))
    asked = Outside(program, Options(threads=1), lambda words: None, Deadline())
    priced, multipliers = asked.price(used, solution, 1e-6, 1e-6)
    backwards = dict(reversed(priced.items()))
    other = asked._joined(used, solution.multipliers, backwards, np.arange(1))
    for name in ("sources", "targets", "columns", "values"):
        assert np.array_equal(getattr(multipliers.ratios, name), getattr(other.ratios, name))


@pytest.mark.parametrize("arrays", ["numpy", "numba"])
def test_hessians_with_two_floors_are_symmetric(arrays: str) -> None:
    program = grid(5, 4, floor=0.8)
    (floor,) = program.floors
    layout = lay_out(replace(program, floors=(floor, replace(floor, error=floor.error[::2]))))
    kernel = choose(arrays, None, 0)(layout, 1, None)
    blocks = iterates(layout, kernel, 3)
    kernel.tune(0.0)
    pairs, products = np.zeros(blocks.x.shape), np.zeros(layout.blocks)
    some = slice(0, min(kernel.batch, layout.blocks))
    assert kernel.assemble(0, some, blocks.x, pairs, products)
    ratio = blocks.iterate.y / blocks.iterate.z
    auxiliary = layout.auxiliary
    for index in range(2):
        own = auxiliary.part(ratio)[:, index]
        kernel.add_floor(0, some, index, blocks.iterate.points, auxiliary.floor(ratio, index), own)
    for matrix in kernel._matrices(0, some):
        assert np.array_equal(matrix, matrix.T)


def test_the_geometry_of_the_bounds_is_computed_once_for_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    program, made, laid = grid(6, 5, floor=0.97), [], []

    def counted(*given: object) -> object:
        made.append(given)
        return geometry_of(*given)  # type: ignore[arg-type]

    def noted(priced: object, **named: object) -> object:
        laid.append(priced)
        return lay_out(priced, **named)  # type: ignore[arg-type]

    used = np.arange(0, 30, 3)
    solution = solve_block(restricted(program, used))
    monkeypatch.setattr(outside, "geometry_of", counted)
    monkeypatch.setattr(outside, "lay_out", noted)
    asked = Outside(program, Options(threads=1), lambda words: None, Deadline())
    asked.price(used, solution, 1e-6, 1e-6)
    # Once with the estimates that are likely to matter, and at most once with all of them.
    assert 1 <= len(made) <= 2 < len(laid)
