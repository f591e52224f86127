"""Rewards for contributions to floors, and multipliers corrected for missing columns, against HiGHS on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import check_against_highs, generate, grid, master_of, optimum, priced, random_program, working_of
from long import mostly_long

from mechdesign.base._deadline import Deadline
from mechdesign.errors import InputError
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    FloorBlock,
    RatioMultipliers,
    compute_reduced_costs,
    lower_bound,
    objective,
)
from mechdesign.solve._blocks import pricing
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.pricing import BlockPricer, correct_bound
from mechdesign.solve._blocks.symmetry import find_symmetry
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.solve._contract import Options, Status


def _add_rewards(program, seed):
    """Return a program with rewards for contributions to floors, and with costs that keep its value positive."""
    rng = np.random.default_rng(seed)
    m = program.columns
    most = program.cost.sum() / program.columns
    floors = []
    for floor in program.floors:
        rewards = rng.random(m) * (rng.random(m) < 0.7) * most / max(float(floor.error.sum(axis=1).max()), 1e-300)
        floors.append(replace(floor, minimum=floor.minimum * rng.choice([0.0, 1.0]), rewards=rewards))
    cost = program.cost + (most * len(floors) / program.rows if floors else 0.0)
    return replace(program, cost=cost, floors=tuple(floors))


@pytest.mark.slow
@pytest.mark.long
def test_rewards_agree_with_highs_on_random_programs():
    compared = 0
    for seed in range(150):
        program = random_program(seed)
        if program.worst is None and program.floors:
            program = _add_rewards(program, seed)
            found = solve_by_interior_point(program)
            # The violation of a floor of 0 has no relative size.
            met = replace(program, floors=tuple(floor for floor in program.floors if floor.minimum > 0))
            check_against_highs(program, found, seed, met)
            assert objective(program, found.x) == pytest.approx(found.upper)
            assert lower_bound(program, found.multipliers) == pytest.approx(found.lower)
            compared += 1
    assert compared > 40


@pytest.mark.slow
def test_any_multipliers_prove_a_bound_with_rewards():
    for seed in range(60):
        program = random_program(seed)
        if program.worst is not None or not program.floors:
            continue
        program = _add_rewards(program, seed)
        rng = np.random.default_rng(seed)
        s, t = np.nonzero(np.isfinite(program.exponents))
        o = rng.integers(0, program.columns, s.size)
        ratios = RatioMultipliers(s, t, o, rng.random(s.size) * program.cost.mean())
        floors = tuple(rng.random((len(floor.error), program.columns)) * 0.1 for floor in program.floors)
        value = optimum(program)
        assert lower_bound(program, BlockMultipliers(ratios, floors)) <= value + 1e-7 * abs(value)


@pytest.mark.slow
def test_wrong_rewards_are_refused():
    def reward(rewards):
        return lambda: BlockProgram(np.ones((2, 4)), np.ones((2, 2)), (FloorBlock(0.0, np.ones((1, 2)), rewards),))

    worst = grid(3, 3, floor=0.5, worst=True)
    (floor,) = worst.floors
    for make in (
        *map(reward, (np.ones(3), np.full(4, -1.0), np.full(4, np.inf))),
        lambda: replace(worst, floors=(replace(floor, rewards=np.ones(9)),)),
    ):
        with pytest.raises(InputError, match=r"rewards|expected"):
            make()


@pytest.mark.slow
def test_a_free_column_is_not_optimal_if_another_has_rewards():
    floor = FloorBlock(0.0, np.array([[1.0, 1.0]]), np.array([0.0, 5.0]))
    program = BlockProgram(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[np.inf, 1.0], [1.0, np.inf]]), (floor,))
    found = solve_by_interior_point(program)
    assert found.lower == pytest.approx(-8)
    assert found.upper == pytest.approx(-8)


@pytest.mark.slow
def test_columns_with_different_rewards_are_not_equal():
    program = grid(4, 4, floor=0.5)
    (floor,) = program.floors
    assert find_symmetry(program).order == 8
    rewards = np.zeros(16)
    rewards[3] = 0.5
    assert find_symmetry(replace(program, floors=(replace(floor, rewards=rewards),))).order == 1


def _price(program, used, tolerance=1e-9):
    """Return the solution with some columns, the multipliers of all columns after pricing, and the missing columns."""
    solution, found, multipliers = priced(program, used, tolerance)
    missing = sorted(column for column, one in found.items() if one.lower < -tolerance)
    return solution, multipliers, np.array(missing, dtype=np.int64)


def _correct(program, multipliers, missing, **options):
    """Return the multipliers corrected with all estimates."""
    every = [np.arange(len(floor.error)) for floor in program.floors]
    return correct_bound(program, multipliers, missing, every, Options(**options), 1e-7)


def _drop_used_column(program, without):
    """Return all columns that the optimum uses, except one."""
    return np.delete(np.flatnonzero(solve_by_interior_point(program).x.sum(axis=0) > 1e-3), without)


CASES = {
    "joint": grid(6, 5, floor=0.8),
    "joint, Hamming": grid(6, 5, cost="hamming", floor=0.8),
    "differential": grid(6, 5),
    "worst": grid(5, 4, worst=True),
    "near pairs": grid(8, 6, masked=lambda distance: distance > 1.1),
    "loose floor": grid(6, 5, floor=0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", mostly_long(CASES.values(), 3), ids=CASES)
def test_a_corrected_bound_is_the_value_with_the_substitute_column(program):
    best = solve_by_interior_point(program)
    used = np.flatnonzero(best.x.sum(axis=0) > 1e-3)
    gains = []
    for left_out in range(0, used.size, max(1, used.size // 4)):
        solution, multipliers, missing = _price(program, np.delete(used, left_out))
        assert missing.size
        before = lower_bound(program, multipliers)
        found = _correct(program, multipliers, missing)
        after = lower_bound(program, found)
        assert before < after <= best.upper * (1 + 1e-7)
        assert after <= solution.lower * (1 + 1e-9)
        gains.append((solution.lower - before) / max(solution.lower - after, 1e-12))
        # HiGHS' value of the program with the substitute column.
        others = np.setdiff1d(np.arange(program.columns), missing)
        prices = compute_reduced_costs(program, multipliers)[:, others].min(axis=1)
        weights = [float(values[:, others].sum(axis=0).min()) for values in multipliers.floors]
        whole = sum(v * floor.minimum for v, floor in zip(weights, program.floors, strict=True))
        cost = program.cost
        if program.worst is not None:
            cost = np.zeros_like(cost)
            shares = multipliers.weights / multipliers.weights.sum()
            np.add.at(cost, program.worst.row, shares[:, None] * program.worst.cost)
        small = BlockProgram(
            np.column_stack([cost[:, missing], prices]) + whole / program.rows,
            program.exponents,
            tuple(
                FloorBlock(0.0, floor.error, np.append(np.full(missing.size, v), 0.0))
                for floor, v in zip(program.floors, weights, strict=True)
            ),
        )
        assert after == pytest.approx(optimum(small), rel=2e-7)
    assert max(gains) > 2


def test_a_corrected_bound_of_a_small_program_is_between_the_bound_before_and_the_optimum():
    program = grid(3, 2, floor=0.8)
    best = solve_by_interior_point(program)
    _, multipliers, missing = _price(program, _drop_used_column(program, 0))
    found = _correct(program, multipliers, missing)
    assert lower_bound(program, multipliers) < lower_bound(program, found) * (1 - 1e-3)
    assert lower_bound(program, found) <= best.upper * (1 + 1e-7)
    # Estimates of the missing columns are those of the small program, and those of the others stay.
    (before,), (after,) = multipliers.floors, found.floors
    assert not np.array_equal(after[:, missing], before[:, missing])
    assert np.array_equal(np.delete(after, missing, axis=1), np.delete(before, missing, axis=1))


@pytest.mark.slow
def test_the_bound_needs_the_multipliers_of_the_substitute_column():
    program = CASES["joint"]
    _, multipliers, missing = _price(program, _drop_used_column(program, 0))
    found = _correct(program, multipliers, missing)
    before, after = multipliers.ratios, found.ratios
    kept, new = ~np.isin(before.columns, missing), np.isin(after.columns, missing)
    names = "sources", "targets", "columns", "values"
    parts = (np.concatenate([getattr(before, name)[kept], getattr(after, name)[new]]) for name in names)
    without = replace(found, ratios=RatioMultipliers(*parts))
    assert lower_bound(program, without) < lower_bound(program, found) * (1 - 1e-4)
    # Each entry occurs only once.
    entries = set(zip(after.columns.tolist(), after.sources.tolist(), after.targets.tolist(), strict=True))
    assert len(entries) == after.values.size


@pytest.mark.slow
def test_negative_multipliers_correct_nothing(monkeypatch):
    program = CASES["joint"]
    _, multipliers, missing = _price(program, _drop_used_column(program, 0))

    def wrong(*arguments, **named):
        found = solve_by_interior_point(*arguments, **named)
        ratios = replace(found.multipliers.ratios, values=-found.multipliers.ratios.values)
        return replace(found, multipliers=replace(found.multipliers, ratios=ratios))

    monkeypatch.setattr(pricing, "solve_by_interior_point", wrong)
    assert _correct(program, multipliers, missing) is multipliers


def _make_master_without_a_column(max_loss=30.0, few=0.1, **options):
    """Return a master and a working set that misses a needed column; only a corrected bound reaches the gap."""
    program = CASES["joint"]
    used = _drop_used_column(program, 2)
    solution, multipliers, missing = _price(program, used)
    found = _correct(program, multipliers, missing)
    before, after = ((solution.upper - lower_bound(program, each)) / solution.upper for each in (multipliers, found))
    assert before > 5 * after
    tuning = replace(TUNING, correction=replace(TUNING.correction, max_loss=max_loss, few=few))
    return master_of(program, 4 * after, tuning, **options), working_of(program, used)


@pytest.mark.slow
def test_rounds_continue_if_the_correction_does_not_fit_into_memory():
    master, working = _make_master_without_a_column()
    pricer = BlockPricer(master_of(master.program, master.gap, extra={"memory": 1.0}))
    outcome = generate(master, working, pricer)
    assert outcome.status is Status.OPTIMAL
    assert outcome.rounds > 1


@pytest.mark.slow
@pytest.mark.long
def test_after_ctrl_c_no_bound_is_corrected():
    lower = []
    for pressed in (False, True):
        master, working = _make_master_without_a_column(few=0.5)
        found, pricer = master.solve(working, 0, master.best), BlockPricer(master)
        if pressed:
            master.deadline.cancel()
            master.deadline.acknowledge()
            found = replace(found, status=Status.INTERRUPTED)
        pricer.price(found, master.best)
        lower.append(master.best.lower)
    assert 0 < lower[1] < lower[0] <= optimum(master.program)


@pytest.mark.slow
def test_ctrl_c_during_a_correction_is_raised():
    program, deadline = CASES["joint"], Deadline()
    _, multipliers, missing = _price(program, _drop_used_column(program, 2))
    deadline.cancel()
    with pytest.raises(KeyboardInterrupt):
        _correct(program, multipliers, missing, deadline=deadline)
