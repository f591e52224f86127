"""Programs whose costs or rows are small: the answer is that of the same program at an ordinary scale."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.solve import Answer, LinearProgram, Status, measure, solve
from mechdesign.solve._linear import raise_small, residuals

SOLVERS = ("highs", "scipy", "scipy-ds", "scipy-ipm", "cvxpy")


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
    raised, rows, cost = raise_small(program)
    assert 1 <= np.abs(raised.cost).max() < 2
    assert (np.frexp([*rows, cost])[0] == 0.5).all()
    assert (raised.matrix.toarray() == program.matrix.toarray() * rows[:, None]).all()
    assert (raised.cost == program.cost * cost).all()
    same, rows, cost = raise_small(corner(5.0, 7.0))
    assert (same.cost == corner(5.0, 7.0).cost).all()
    assert (rows == 1).all()
    assert cost == 1
    empty = LinearProgram([0.0], np.zeros((1, 1)), [-1.0], [1.0], [0.0], [1.0])
    assert raise_small(empty)[0] is empty
    assert residuals(empty, np.zeros(1), np.zeros(1)).gap == 0
