from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sparse
from refusals import Mistake, assert_refused
from rows import each_row

from mechdesign.errors import InputError
from mechdesign.solve._linear import LinearProgram, residuals

INF = math.inf


def program(**changes: object) -> LinearProgram:
    """Build min x + 2y subject to 1 <= x + y <= 3, x - y = 0, 0 <= x, y <= 4, with parts replaced."""
    parts: dict[str, object] = {
        "cost": [1.0, 2.0],
        "matrix": sparse.csr_array(np.array([[1.0, 1.0], [1.0, -1.0]])),
        "row_lower": [1.0, 0.0],
        "row_upper": [3.0, 0.0],
        "lower": [0.0, -INF],
        "upper": [INF, 4.0],
    }
    return LinearProgram(**(parts | changes))  # type: ignore[arg-type]


def test_attributes() -> None:
    lp = program()
    assert (lp.rows, lp.columns) == (2, 2)
    assert dict(lp.row_blocks) == {"all": slice(0, 2)}
    assert dict(lp.column_blocks) == {"all": slice(0, 2)}
    assert lp.cost.dtype == lp.lower.dtype == np.float64


def test_blocks() -> None:
    lp = program(column_blocks={"x": slice(0, 1), "y": slice(1, 2)})
    assert list(lp.column_blocks) == ["x", "y"]
    with pytest.raises(TypeError):
        lp.column_blocks["z"] = slice(0, 1)  # type: ignore[index]


def test_is_frozen_and_apart_from_what_it_was_made_of() -> None:
    cost = np.array([1.0, 2.0])
    lp = program(cost=cost)
    cost[0] = 7
    assert lp.cost[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        lp.cost[0] = 7
    with pytest.raises(FrozenInstanceError):
        lp.cost = cost  # type: ignore[misc]


def test_entries_given_twice_are_added_and_the_argument_left_alone() -> None:
    matrix = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    lp = program(matrix=matrix, row_lower=[0], row_upper=[1])
    assert lp.matrix.toarray().tolist() == [[2, 5]]
    assert lp.matrix.nnz == 2
    assert matrix.indices.tolist() == [1, 0, 1]
    assert matrix.data.tolist() == [1, 2, 4]


def test_a_dense_matrix_is_accepted() -> None:
    assert program(matrix=[[1, 1], [0, 2]]).matrix.nnz == 3


def test_wrong_parts() -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"cost": [1.0]}, "cost"),
        ({"cost": [[1.0, 2.0]]}, "cost"),
        ({"row_lower": [0.0] * 3}, "row_lower"),
        ({"row_upper": []}, "row_upper"),
        ({"lower": 0.0}, "lower"),
        ({"upper": [1.0, 2.0, 3.0]}, "upper"),
        ({"matrix": [1.0, 2.0]}, "matrix"),
        ({"cost": [1.0, math.nan]}, "cost[1]"),
        ({"lower": [math.nan, 0.0]}, "lower[0]"),
        ({"row_upper": [1.0, math.nan]}, "row_upper[1]"),
        ({"cost": [INF, 0.0]}, "cost[0]"),
        ({"cost": ["a", 0.0]}, "cost"),
        ({"matrix": [[1.0, INF], [0.0, 0.0]]}, "matrix"),
        ({"matrix": [[1.0, math.nan], [0.0, 0.0]]}, "matrix"),
        ({"row_lower": [1.0, 0.5]}, "row[1]"),
        ({"lower": [0.0, 4.5]}, "column[1]"),
        ({"lower": [INF, 0.0]}, "column[0]"),
        ({"upper": [INF, -INF]}, "column[1]"),
        ({"row_lower": [INF, 0.0], "row_upper": [INF, 0.0]}, "row[0]"),
        ({"row_lower": [-INF, -INF], "row_upper": [0.0, -INF]}, "row[1]"),
        ({"row_blocks": {"a": slice(0, 1)}}, "row_blocks"),
        ({"row_blocks": {"a": slice(0, 1), "b": slice(0, 2)}}, "row_blocks"),
        ({"row_blocks": {"a": slice(1, 2), "b": slice(0, 1)}}, "row_blocks"),
        ({"row_blocks": {"a": slice(0, 3)}}, "row_blocks"),
        ({"row_blocks": {"a": slice(0, 3), "b": slice(3, 1), "c": slice(1, 2)}}, "row_blocks"),
        ({"column_blocks": {"a": slice(0, 1), "b": slice(2, 2)}}, "column_blocks"),
    ]
    assert_refused(
        Mistake(f"{number}: {path}", partial(program, **changes), path, error=InputError)
        for number, (changes, path) in enumerate(wrong)
    )


def test_bounds_may_touch() -> None:
    assert program(lower=[0.0, 4.0]).lower[1] == 4


def test_residuals_of_an_optimal_pair() -> None:
    # x = y = 1/2; multipliers: a + b = 1 and a - b = 2.
    quality = residuals(program(), np.array([0.5, 0.5]), np.array([1.5, -0.5]))
    assert (quality.primal, quality.dual, quality.gap) == (0, 0, 0)
    assert quality.objective == quality.bound == 1.5


@each_row(
    ("x", "violation"),
    [((0, 0), 1), ((2, 2), 1), ((1, 0), 1), ((-1, -1), 3), ((5, 5), 7), ((0.5, 0.5 - 1e-9), 1e-9)],
)
def test_residuals_find_the_largest_violation(x: tuple[float, float], violation: float) -> None:
    assert residuals(program(), np.array(x, dtype=float), np.zeros(2)).primal == pytest.approx(violation, rel=1e-6)


def test_residuals_judge_the_sign_of_multipliers() -> None:
    x = np.array([0.5, 0.5])
    # The first row has both bounds, and the second is an equality: any sign goes, but the reduced costs tell.
    assert residuals(program(), x, np.array([0.0, 0.0])).dual == 2
    assert residuals(program(), x, np.array([2.0, 0.0])).dual == 1
    one_sided = program(row_upper=[INF, 0.0])
    assert residuals(one_sided, x, np.array([-3.0, 5.0])).dual >= 3


def test_residuals_leave_infeasible_multipliers_out_of_the_bound() -> None:
    # Reduced costs (1, 2): the second leans on a bound that does not exist.
    assert residuals(program(), np.zeros(2), np.zeros(2)).bound == 0


@each_row("bad", [math.nan, INF, -INF])
def test_residuals_of_missing_numbers_are_infinite(bad: float) -> None:
    for x, row_dual in (([bad, 0], [0, 0]), ([0, 0], [0, bad])):
        quality = residuals(program(), np.array(x, dtype=float), np.array(row_dual, dtype=float))
        assert quality.primal == quality.dual == quality.objective == quality.gap == INF
        assert quality.bound == -INF


def test_residuals_without_rows() -> None:
    lp = program(matrix=np.zeros((0, 2)), row_lower=[], row_upper=[], cost=[1.0, -1.0])
    quality = residuals(lp, np.array([0.0, 4.0]), np.zeros(0))
    assert quality.objective == quality.bound == -4
