"""The memory budget of a solve is determined once, compared with estimates, and refused with both numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import grid
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError, SolverError
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.interior_point import iterate_blocks, solve_by_interior_point
from mechdesign.solve._blocks.memory import MemoryBudget, pricing_batch
from mechdesign.solve._contract import Options, Status

PLENTY = MemoryBudget.of()


@each_row(
    "stated",
    [0, -1, -1e9, True, False, "8 GB", "", [1], {}, float("nan"), np.array([1.0]), np.float64("nan"), b"1", ()],
)
def test_a_budget_that_is_no_number_of_bytes_is_refused(stated: object) -> None:
    for solve in (solve_by_interior_point, solve_block_program):
        with pytest.raises(InputError, match=r"options\.extra\.memory"):
            solve(grid(2, 2), Options(extra={"memory": stated}))


def test_a_design_names_its_own_option() -> None:
    distance = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    problem = md.Problem(np.full(4, 0.25), distance, [md.MetricPrivacy(1.0, distance)])
    for stated in (float("nan"), -1, 0, True, "x"):
        with pytest.raises(InputError, match=r"memory: must be a number of bytes"):
            md.design(problem, solver="block", options={"memory": stated})
    for stated in (10**400, np.float32(1e12), np.int64(2**40), 1e12):
        assert md.design(problem, solver="block", options={"memory": stated}).status is Status.OPTIMAL


@each_row("extra", [{"memory": -3}, {"bogus": 1}, {"arrays": "numpi"}])
@each_row("generation", [True, False])
def test_options_are_checked_where_nothing_is_iterated(extra: dict[str, object], generation: bool) -> None:
    extra = extra | {"generation": generation}
    program = grid(3, 3)
    free = replace(program, cost=np.c_[np.zeros(9), program.cost[:, 1:]])
    for options, given in ((Options(time_limit=0.0, extra=extra), program), (Options(extra=extra), free)):
        with pytest.raises(InputError, match=r"options\.extra\."):
            solve_block_program(given, options)


@each_row("gap", [0.0, -1.0, float("nan"), float("inf")])
def test_a_gap_is_a_positive_number(gap: float) -> None:
    for solve in (solve_by_interior_point, solve_block_program):
        with pytest.raises(InputError, match="gap"):
            solve(grid(2, 2), gap=gap)


def test_a_budget_is_the_least_of_what_is_stated_and_what_is_there() -> None:
    assert MemoryBudget.of(1e6).allowed == 1e6
    assert MemoryBudget.of(1e6).stated
    assert not PLENTY.stated
    assert PLENTY.held > 0
    assert MemoryBudget(None, 0, stated=False).fits(1e30)
    budget = MemoryBudget(100.0, 0, stated=True)
    assert budget.fits(100.0)
    assert not budget.fits(100.5)
    budget.require(100.0, 1, 1)
    with pytest.raises(SolverError, match=r"2\.0 GB for 3 blocks of 4 rows, but 0\.0 GB are allowed"):
        budget.require(2e9, 3, 4)


def test_pricing_takes_fewer_columns_at_a_time_where_memory_is_short() -> None:
    rows = 100
    one = 28 * rows**2
    known = 120_000_000 + 24 * 8 * rows * 50 + 16 * 0.062 * rows**2 * 50
    for columns in (1, 2, 7):
        for room, expected in ((columns * one, columns), (columns * one - 1, max(1, columns - 1))):
            assert pricing_batch(rows, 50, MemoryBudget(known + room + 0.5, 0, stated=True)) == expected
    assert pricing_batch(rows, 50, MemoryBudget(0.0, 0, stated=True)) == 1
    assert pricing_batch(rows, 50, MemoryBudget(None, 0, stated=False)) == 50
    assert pricing_batch(rows, 50, MemoryBudget(known + 3e6, 0, stated=True), block=1_000_000) == 3


def test_a_restart_is_compared_with_the_same_budget() -> None:
    program = grid(5, 4, floor=0.8)
    short = MemoryBudget(1.0, 0, stated=True)
    state = iterate_blocks(program, Options().begun(), gap=0.1).state
    assert state is not None
    with pytest.raises(SolverError, match="are allowed"):
        iterate_blocks(program, Options().begun(), gap=1e-3, start=state, budget=short)
    # The refused state remains valid. Evaluating it needs no further memory.
    found = solve_by_interior_point(program, gap=1e-3, start=replace(state), iterates=False, budget=short)
    assert found.lower < found.upper


def test_a_later_stage_without_memory_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the memory suffices only for the first gap, its state is evaluated and priced."""
    from mechdesign.solve._blocks import memory

    program, asked = grid(6, 5, floor=0.97), []
    require = memory.MemoryBudget.require

    def refuse(self: MemoryBudget, estimate: float, *shape: int) -> None:
        asked.append(estimate)
        if self.allowed is not None and len(asked) > 1:
            raise SolverError("no room")
        require(self, estimate, *shape)

    monkeypatch.setattr(memory.MemoryBudget, "require", refuse)
    found = solve_block_program(program, Options(extra={"generation": True, "memory": 1e12}), gap=1e-5)
    assert len(asked) > 1
    assert found.status is Status.STALLED
    assert found.lower <= found.upper < np.inf
