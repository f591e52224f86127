"""Programs in other units: the answer is that of the same program at an ordinary scale."""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve import Answer, LinearProgram, Options, Status
from mechdesign.solve._contract import measure
from mechdesign.solve._linear import residuals, scale
from mechdesign.solve._registry import find
from mechdesign.solve._solve import solve

INF = np.inf
Row = tuple[tuple[Fraction, ...], Fraction]
solve_module = importlib.import_module("mechdesign.solve._solve")
SOLVERS = ("highs", "scipy", "cvxpy")


def corner(cost: float = 1.0, row: float = 1.0) -> LinearProgram:
    """Maximise 2x + y over x + y <= 3 and x <= 1, in other units: the optimum is (1, 2)."""
    matrix = np.array([[1.0, 1.0], [1.0, 0.0]]) * row
    return LinearProgram(
        np.array([-2.0, -1.0]) * cost, matrix, [-np.inf] * 2, [3.0 * row, row], [0.0, 0.0], [np.inf] * 2
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimum_does_not_depend_on_units(solver: str) -> None:
    for cost in (1.0, 1e-3, 1e-7, 1e-8, 1e-9, 1e-30):
        for row in (1.0, 1e-8, 1e-10, 1e-12):
            found = solve(corner(cost, row), solver)
            assert found.status is Status.OPTIMAL, (cost, row)
            assert np.abs(found.x - [1, 2]).max() < 1e-5, (cost, row)
            assert found.residuals.objective == pytest.approx(-4 * cost, rel=1e-5), (cost, row)
            # The multipliers are those of the program in its own units.
            assert np.allclose(found.row_dual * row / cost, [-1, -1], atol=1e-4), (cost, row)


def test_half_the_optimum_is_no_optimum() -> None:
    for cost in (1.0, 1e-6, 1e-9, 1e-12):
        program = corner(cost)
        exact = Answer(Status.OPTIMAL, np.array([1.0, 2.0]), np.array([-1.0, -1.0]) * cost, 1, "done", "toy 1")
        assert measure(program, exact, solver="toy", seconds=0.0).status is Status.OPTIMAL, cost
        half = Answer(Status.OPTIMAL, np.array([1.0, 0.0]), np.array([0.0, -2.0]) * cost, 1, "done", "toy 1")
        assert measure(program, half, solver="toy", seconds=0.0).status is Status.FAILED, cost
        slightly = Answer(Status.OPTIMAL, np.array([1.0, 2.0]), np.array([-0.99, -1.01]) * cost, 1, "done", "toy 1")
        assert measure(program, slightly, solver="toy", seconds=0.0).status is Status.FAILED, cost
        beyond = Answer(Status.OPTIMAL, np.array([1.0, 2.1]), np.array([-1.0, -1.0]) * cost, 1, "done", "toy 1")
        assert measure(program, beyond, solver="toy", seconds=0.0).status is Status.FAILED, cost


def test_rows_that_are_broken_by_a_tenth_of_their_size_are_broken() -> None:
    for row in (1.0, 1e-5, 1e-9):
        answer = Answer(Status.OPTIMAL, np.array([1.1, 1.9]), np.array([-1.0, -1.0]) / row, 1, "done", "toy 1")
        assert measure(corner(row=row), answer, solver="toy", seconds=0.0).status is Status.FAILED, row


def test_factors_are_powers_of_two_and_only_raise() -> None:
    program = corner(3e-9, 0.3)
    scaled = scale(program)
    assert 1 <= np.abs(scaled.program.cost).max() < 2
    factors = np.ldexp(1.0, scaled.rows)
    assert (scaled.rows >= 0).all()
    assert not scaled.columns.any()
    assert (scaled.program.matrix.toarray() == program.matrix.toarray() * factors[:, None]).all()
    assert (scaled.program.cost == program.cost * 2.0**scaled.cost).all()
    ordinary = corner(5.0, 7.0)
    assert scale(ordinary).program is ordinary
    empty = LinearProgram([0.0], np.zeros((1, 1)), [-1.0], [1.0], [0.0], [1.0])
    assert scale(empty).program is empty
    assert residuals(empty, np.zeros(1), np.zeros(1)).gap == 0


def test_answers_return_from_other_units_without_rounding() -> None:
    rng = np.random.default_rng(2)
    for exponent in (-50, 50):
        program = LinearProgram(
            [1.0, 2.0], np.array([[3.0, np.ldexp(1.0, exponent)]]), [3.0], [INF], [0.0, 0.0], [INF, 7.0]
        )
        scaled = scale(program)
        assert scaled.columns.any(), exponent
        x, row_dual = rng.random(2), rng.random(1)
        there = scaled.convert(x, row_dual)
        back = scaled.restore(*there)
        assert (back[0] == x).all(), exponent
        assert (back[1] == row_dual).all(), exponent
        # The objectives agree, but for the unit of the costs.
        assert scaled.program.cost @ there[0] == pytest.approx(2.0**scaled.cost * (program.cost @ x)), exponent


def _eliminate(rows: list[Row], kept: int) -> list[Row]:
    """Eliminate all variables but one from inequalities ``numbers @ x <= right`` (Fourier and Motzkin)."""
    for place in range(kept):
        above = [row for row in rows if row[0][place] > 0]
        below = [row for row in rows if row[0][place] < 0]
        found = [row for row in rows if row[0][place] == 0]
        for high, low in itertools.product(above, below):
            a, b = -low[0][place], high[0][place]
            found.append(
                (tuple(a * one + b * two for one, two in zip(high[0], low[0], strict=True)), a * high[1] + b * low[1])
            )
        least: dict[tuple[Fraction, ...], Fraction] = {}
        for numbers, right in found:
            size = max(map(abs, numbers)) or Fraction(1)
            key = tuple(number / size for number in numbers)
            least[key] = min(right / size, least.get(key, right / size))
        rows = list(least.items())
    return rows


def _solve_exactly(program: LinearProgram) -> tuple[Status, Fraction]:
    """Return the status and the optimum in exact rationals."""
    columns = program.columns
    matrix = np.vstack([program.matrix.toarray(), np.eye(columns)])
    lows = np.concatenate([program.row_lower, program.lower])
    highs = np.concatenate([program.row_upper, program.upper])
    # The last variable is at least the objective.
    rows: list[Row] = [(tuple(map(Fraction, [*program.cost, -1.0])), Fraction(0))]
    for numbers, low, high in zip(matrix, lows, highs, strict=True):
        for sign, bound in ((1.0, high), (-1.0, -low)):
            if np.isfinite(bound):
                rows.append((tuple(map(Fraction, [*(sign * numbers), 0.0])), Fraction(bound)))
    left = _eliminate(rows, columns)
    if any(right < 0 for numbers, right in left if not numbers[columns]):
        return Status.INFEASIBLE, Fraction(0)
    bounds = [right / numbers[columns] for numbers, right in left if numbers[columns]]
    return (Status.OPTIMAL, max(bounds)) if bounds else (Status.UNBOUNDED, Fraction(0))


def _draw(rng: np.random.Generator, decades: int, what: str) -> tuple[LinearProgram, float]:
    """Draw a program of small whole numbers in other units, and return the unit of its objective."""
    rows, columns = rng.integers(1, 4, 2)
    matrix = rng.integers(-3, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    low = np.where(rng.random(rows) < 0.6, rng.integers(-4, 4, rows), -INF)
    high = np.where(rng.random(rows) < 0.6, np.where(np.isfinite(low), low, 0) + rng.integers(0, 4, rows), INF)
    least = np.where(rng.random(columns) < 0.7, rng.integers(-2, 2, columns), -INF)
    most = np.where(
        rng.random(columns) < 0.4, np.where(np.isfinite(least), least, 0) + rng.integers(0, 4, columns), INF
    )
    limit = round(decades * math.log2(10))

    def units(name: str, count: int) -> np.ndarray:
        return np.ldexp(1.0, rng.integers(-limit, limit + 1, count) * (what in (name, "all")))

    of_rows, of_columns = units("rows", rows), units("columns", columns)
    (size,), (cost,) = units("sizes", 1), units("costs", 1)
    program = LinearProgram(
        rng.integers(-3, 4, columns) * of_columns * cost,
        matrix * of_rows[:, None] * of_columns,
        low * of_rows * size,
        high * of_rows * size,
        least / of_columns * size,
        most / of_columns * size,
    )
    return program, size * cost


def _compare_with_exact(solver: str, count: int, seed: int) -> int:
    """Assert that the solver claims nothing wrong; return how many programs it did not decide."""
    rng = np.random.default_rng(seed)
    undecided = 0
    for each, what in itertools.product(range(count), ("rows", "columns", "costs", "sizes", "all")):
        program, unit = _draw(rng, (4, 8, 15)[each % 3], what)
        status, optimum = _solve_exactly(program)
        found = solve(program, solver)
        undecided += found.status in (Status.STALLED, Status.FAILED)
        assert found.status in (status, Status.STALLED, Status.FAILED), (each, what)
        if found.status is Status.OPTIMAL:
            assert found.residuals.objective / unit == pytest.approx(float(optimum / Fraction(unit)), abs=1e-4), each
    return undecided


def test_no_claim_is_wrong_in_any_units() -> None:
    assert _compare_with_exact("highs", 4, 5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["highs", "scipy", "highs-ipx", "cvxpy"])
def test_no_claim_of_many_is_wrong_in_any_units(solver: str) -> None:
    assert _compare_with_exact(solver, 120, 11) <= 6


def test_data_of_one_program_of_very_different_sizes() -> None:
    tiny, huge = 1e-12, 1e30
    for name, status, given in (
        ("infeasible among tiny numbers", "INFEASIBLE", ([1.0], [[1.0]], [2 * tiny], [INF], [0.0], [tiny])),
        ("feasible among tiny numbers", "OPTIMAL", ([1.0], [[1.0]], [tiny], [INF], [0.0], [2 * tiny])),
        ("an empty row that asks for little", "INFEASIBLE", ([1.0], [[0.0]], [tiny], [INF], [0.0], [1.0])),
        ("a feasible row of huge numbers", "OPTIMAL", ([1.0], [[huge]], [huge], [INF], [0.0], [1.0])),
        ("an infeasible row of huge numbers", "INFEASIBLE", ([1.0], [[huge]], [2 * huge], [INF], [0.0], [1.0])),
        ("a huge column", "OPTIMAL", ([1.0, 1.0], [[1e15, 1.0]], [1.0], [1.0], [0.0, 0.0], [INF, 0.0])),
        ("a tiny column", "OPTIMAL", ([1.0, 1.0], [[1e-15, 1.0]], [1.0], [1.0], [0.0, 0.0], [INF, 0.0])),
        (
            "a tiny cost of a free column",
            "UNBOUNDED",
            ([-tiny, 1.0], [[0.0, 1.0]], [1.0], [INF], [0.0, 0.0], [INF, 2.0]),
        ),
        ("a free row of huge numbers", "OPTIMAL", ([1.0], [[1e200]], [-INF], [INF], [1.0], [INF])),
    ):
        for solver in ("highs", "scipy"):
            cost, matrix, *bounds = given
            assert solve(LinearProgram(cost, np.array(matrix), *bounds), solver).status is Status[status], (
                name,
                solver,
            )


def test_secrets_that_hardly_occur_leave_the_units_of_others_alone() -> None:
    """The floor has 1e-280 beside 1, which no units bring together."""
    places = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [40.0, 40.0]])
    distance = md.distances.euclidean(places)
    requirements = [md.ThresholdPrivacy(1, distance, 0.5), md.DistortionPrivacy("0.2", distance)]
    problem = md.Problem(np.array([0.5, 0.5, 1e-280]), distance, requirements)
    for solver in ("highs-simplex", "scipy"):
        made = md.design(problem, solver=solver, rows="all", isolated="release")
        assert made.certificate.cost == pytest.approx(0.2, rel=1e-9), solver


def test_solvers_that_report_what_is_not_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def claim(status: Status) -> None:
        true = find("highs").load()

        def wrong(program: LinearProgram, options: Options, start: object = None) -> Answer:
            asked = program.columns == 2 and program.cost.tolist() == [-2.0, -1.0] and np.isinf(program.upper).all()
            return Answer(status, None, None, 0, "so it is", "toy 1") if asked else true(program, options, start)

        monkeypatch.setattr(solve_module, "find", lambda name: replace(find("highs"), load=lambda: wrong))

    for status in (Status.INFEASIBLE, Status.UNBOUNDED):
        claim(status)
        found = solve(corner())
        assert found.status is Status.FAILED, status
        assert status.name in found.message
        assert "so it is" in found.message
