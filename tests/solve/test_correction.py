"""Parts of floors that earn something, and multipliers corrected for missing columns, against HiGHS on all rows."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from block_cases import check_against_highs, grid, optimum, random_program

from mechdesign.base._deadline import Deadline
from mechdesign.errors import InputError, SolverError
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    FloorBlock,
    RatioMultipliers,
    lower_bound,
    objective,
    reduced_costs,
)
from mechdesign.solve._blocks import correction, generation, solve
from mechdesign.solve._blocks.automorphisms import find_symmetry
from mechdesign.solve._blocks.column_generation import solve_columns
from mechdesign.solve._blocks.correction import corrected
from mechdesign.solve._blocks.outside import Outside, restricted
from mechdesign.solve._blocks.interior_point import solve_block
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow


def _rewarded(program, seed):
    """Return a program whose parts of floors earn something, with costs that keep its value positive."""
    rng = np.random.default_rng(seed)
    m = program.columns
    most = program.cost.sum() / program.columns
    floors = []
    for floor in program.floors:
        rewards = rng.random(m) * (rng.random(m) < 0.7) * most / max(float(floor.error.sum(axis=1).max()), 1e-300)
        floors.append(replace(floor, minimum=floor.minimum * rng.choice([0.0, 1.0]), rewards=rewards))
    cost = program.cost + (most * len(floors) / program.rows if floors else 0.0)
    return replace(program, cost=cost, floors=tuple(floors))


def test_rewards_agree_with_highs_on_random_programs():
    compared = 0
    for seed in range(150):
        program = random_program(seed)
        if program.worst is None and program.floors:
            program = _rewarded(program, seed)
            found = solve_block(program)
            # Of a floor of 0 the violation is not relative to anything.
            met = replace(program, floors=tuple(floor for floor in program.floors if floor.minimum > 0))
            check_against_highs(program, found, seed, met)
            assert objective(program, found.x) == pytest.approx(found.upper)
            assert lower_bound(program, found.multipliers) == pytest.approx(found.lower)
            compared += 1
    assert compared > 40


def test_any_multipliers_prove_a_bound_where_parts_earn_something():
    for seed in range(60):
        program = random_program(seed)
        if program.worst is not None or not program.floors:
            continue
        program = _rewarded(program, seed)
        rng = np.random.default_rng(seed)
        s, t = np.nonzero(np.isfinite(program.exponents))
        o = rng.integers(0, program.columns, s.size)
        ratios = RatioMultipliers(s, t, o, rng.random(s.size) * program.cost.mean())
        floors = tuple(rng.random((len(floor.error), program.columns)) * 0.1 for floor in program.floors)
        value = optimum(program)
        assert lower_bound(program, BlockMultipliers(ratios, floors)) <= value + 1e-7 * abs(value)


@pytest.mark.parametrize(
    "rewards",
    [np.ones(3), np.full(4, -1.0), np.full(4, np.inf)],
    ids=["of another length", "negative", "infinite"],
)
def test_wrong_rewards_are_refused(rewards):
    with pytest.raises(InputError, match="rewards"):
        BlockProgram(np.ones((2, 4)), np.ones((2, 2)), (FloorBlock(0.0, np.ones((1, 2)), rewards),))


def test_rewards_do_not_go_with_a_worst_cost():
    program = grid(3, 3, floor=0.5, worst=True)
    (floor,) = program.floors
    with pytest.raises(InputError, match="expected"):
        replace(program, floors=(replace(floor, rewards=np.ones(9)),))


def test_a_column_without_cost_is_no_optimum_where_another_earns_something():
    floor = FloorBlock(0.0, np.array([[1.0, 1.0]]), np.array([0.0, 5.0]))
    program = BlockProgram(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[np.inf, 1.0], [1.0, np.inf]]), (floor,))
    found = solve_block(program)
    assert found.lower == pytest.approx(-8)
    assert found.upper == pytest.approx(-8)


def test_columns_that_earn_different_things_are_not_alike():
    program = grid(4, 4, floor=0.5)
    (floor,) = program.floors
    assert find_symmetry(program).order == 8
    rewards = np.zeros(16)
    rewards[3] = 0.5
    assert find_symmetry(replace(program, floors=(replace(floor, rewards=rewards),))).order == 1


def test_negative_multipliers_correct_nothing(monkeypatch):
    program = CASES["joint"]
    used = np.flatnonzero(solve_block(program).x.sum(axis=0) > 1e-3)
    _, multipliers, missing = _priced(program, used[1:])
    original = solve.solve_block

    def wrong(*arguments, **named):
        found = original(*arguments, **named)
        ratios = replace(found.multipliers.ratios, values=-found.multipliers.ratios.values)
        return replace(found, multipliers=replace(found.multipliers, ratios=ratios))

    monkeypatch.setattr(correction, "solve_block", wrong)
    assert corrected(program, multipliers, missing, _all(program), Options(), 1e-7) is multipliers


def test_after_ctrl_c_no_bound_is_corrected(monkeypatch):
    program = CASES["joint"]
    _without_one(monkeypatch, program)
    monkeypatch.setattr(generation, "_FEW_MISSING", 0.5)
    solve = generation._Run._solve
    told = []

    def interrupted(run, level, care):
        solution, complete = solve(run, level, care)
        run.deadline.cancel()
        run.deadline.acknowledge()
        return replace(solution, status=Status.INTERRUPTED), complete

    monkeypatch.setattr(generation._Run, "_solve", interrupted)
    options = Options(progress=lambda moment: told.append(moment.stage))
    found = generation.solve_generated(program, options, always=True)
    assert found.status is Status.INTERRUPTED
    assert "columns priced" in told
    assert "bound corrected" not in told
    assert found.lower <= optimum(program) <= found.upper


def _priced(program, used, tolerance=1e-9):
    """Return the solution with some columns, and the multipliers of all once the others are priced."""
    solution = solve_block(restricted(program, used))
    asked = Outside(program, Options(), lambda words: None, Deadline())
    priced, multipliers = asked.price(used, solution, tolerance, 1e-6)
    missing = np.array(sorted(column for column, found in priced.items() if found.lower < -tolerance), dtype=np.int64)
    return solution, multipliers, missing


def _all(program):
    return [np.arange(len(floor.error)) for floor in program.floors]


CASES = {
    "joint": grid(6, 5, floor=0.8),
    "joint, Hamming": grid(6, 5, cost="hamming", floor=0.8),
    "differential": grid(6, 5),
    "worst": grid(5, 4, worst=True),
    "near pairs": grid(8, 6, masked=lambda distance: distance > 1.1),
    "loose floor": grid(6, 5, floor=0.3),
}


@pytest.mark.parametrize("program", CASES.values(), ids=CASES)
def test_a_corrected_bound_is_the_value_with_the_rest(program):
    best = solve_block(program)
    used = np.flatnonzero(best.x.sum(axis=0) > 1e-3)
    gains = []
    for left_out in range(0, used.size, max(1, used.size // 4)):
        solution, multipliers, missing = _priced(program, np.delete(used, left_out))
        assert missing.size
        before = lower_bound(program, multipliers)
        found = corrected(program, multipliers, missing, _all(program), Options(), 1e-7)
        after = lower_bound(program, found)
        assert before < after <= best.upper * (1 + 1e-7)
        assert after <= solution.lower * (1 + 1e-9)
        gains.append((solution.lower - before) / max(solution.lower - after, 1e-12))
        # The value of the program with the rest, by HiGHS.
        others = np.setdiff1d(np.arange(program.columns), missing)
        prices = reduced_costs(program, multipliers)[:, others].min(axis=1)
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


def test_the_rest_has_multipliers_that_the_bound_needs(monkeypatch):
    program = CASES["joint"]
    used = np.flatnonzero(solve_block(program).x.sum(axis=0) > 1e-3)
    _, multipliers, missing = _priced(program, used[1:])
    found = lower_bound(program, corrected(program, multipliers, missing, _all(program), Options(), 1e-7))
    of_columns = correction._of_columns

    def without_rest(ratios, columns):
        kept = of_columns(ratios, columns)
        return replace(kept, values=0 * kept.values) if columns.tolist() == [missing.size] else kept

    monkeypatch.setattr(correction, "_of_columns", without_rest)
    without = lower_bound(program, corrected(program, multipliers, missing, _all(program), Options(), 1e-7))
    assert without < found - 1e-4 * abs(found)


def test_each_entry_of_a_sum_occurs_once():
    one = RatioMultipliers(np.array([1, 0]), np.array([2, 1]), np.array([0, 3]), np.array([1.0, 2.0]))
    other = RatioMultipliers(np.array([0, 0]), np.array([1, 2]), np.array([3, 3]), np.array([4.0, 8.0]))
    total = correction._sum(3, one, other)
    entries = zip(*(getattr(total, name).tolist() for name in ("columns", "sources", "targets", "values")), strict=True)
    assert list(entries) == [(0, 1, 2, 1.0), (3, 0, 1, 6.0), (3, 0, 2, 8.0)]


def _without_one(monkeypatch, program):
    """Let generation begin with the columns that the optimum uses but one; return its rounds, and these columns."""
    used = np.delete(np.flatnonzero(solve_block(program).x.sum(axis=0) > 1e-3), 2)
    rounds = []
    solve = generation._Run._solve

    def begin(run, *, always):
        run.choice = run.choice.only(used)
        return True

    def counted(run, level, care):
        rounds.append(run.columns.size)
        return solve(run, level, care)

    monkeypatch.setattr(generation._Run, "begin", begin)
    monkeypatch.setattr(generation._Run, "_solve", counted)
    return rounds, used


def _gap_between(program, used):
    """Return a gap that is reached with some columns if the bound is corrected, and otherwise is not."""
    solution, multipliers, missing = _priced(program, used)
    found = corrected(program, multipliers, missing, _all(program), Options(), 1e-7)
    before, after = ((solution.upper - lower_bound(program, each)) / solution.upper for each in (multipliers, found))
    assert before > 5 * after
    return 4 * after


def _correctable(monkeypatch):
    """Return a program begun without a column it needs, its rounds, and a gap that a corrected bound reaches."""
    program = CASES["joint"]
    rounds, used = _without_one(monkeypatch, program)
    return program, rounds, _gap_between(program, used)


def test_a_corrected_bound_may_save_a_round(monkeypatch):
    program, rounds, gap = _correctable(monkeypatch)
    told = []
    found = generation.solve_generated(
        program, Options(progress=lambda moment: told.append(moment.stage)), gap=gap, always=True
    )
    assert found.status is Status.OPTIMAL
    assert len(rounds) == 1
    assert "bound corrected" in told
    value = optimum(program)
    assert found.lower <= value <= found.upper
    assert found.upper - found.lower <= gap * found.upper
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers))
    rounds.clear()
    monkeypatch.setattr(generation, "_CORRECTED", 0.0)
    assert generation.solve_generated(program, gap=gap, always=True).status is Status.OPTIMAL
    assert len(rounds) > 1


def test_without_room_for_a_correction_the_rounds_go_on(monkeypatch):
    program, rounds, gap = _correctable(monkeypatch)

    def refused(*arguments, **named):
        raise SolverError("no room")

    monkeypatch.setattr(correction, "solve_block", refused)
    assert generation.solve_generated(program, gap=gap, always=True).status is Status.OPTIMAL
    assert len(rounds) > 1


def test_ctrl_c_during_a_correction_keeps_what_was_proved(monkeypatch):
    program, rounds, gap = _correctable(monkeypatch)
    original = solve.solve_block

    def stopped(*arguments, **named):
        signal.raise_signal(signal.SIGINT)
        return original(*arguments, **named)

    monkeypatch.setattr(correction, "solve_block", stopped)
    found = solve_columns(program, Options(extra={"generation": True}), gap=gap)
    assert found.status is Status.INTERRUPTED
    assert len(rounds) == 1
    value = optimum(program)
    assert 0 < found.lower <= value <= found.upper < 1.1 * value


def test_where_few_columns_are_missing_the_bound_is_corrected_in_any_case(monkeypatch):
    program = CASES["joint"]
    rounds, _ = _without_one(monkeypatch, program)
    told = []
    options = Options(progress=lambda moment: told.append((moment.stage, moment.lower)))
    assert generation.solve_generated(program, options, always=True).status is Status.OPTIMAL
    assert all(stage != "bound corrected" for stage, _ in told)
    told.clear()
    rounds.clear()
    monkeypatch.setattr(generation, "_FEW_MISSING", 0.5)
    found = generation.solve_generated(program, options, always=True)
    assert found.status is Status.OPTIMAL
    # The first round is not enough, but what it proves is better from then on.
    assert len(rounds) > 1
    before, after = (
        next(lower for stage, lower in told if stage == name) for name in ("columns priced", "bound corrected")
    )
    assert before < after <= optimum(program)
