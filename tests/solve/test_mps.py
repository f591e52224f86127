from __future__ import annotations

import math
from pathlib import Path

import highspy
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import each_row

from mechdesign.errors import InputError
from mechdesign.solve._linear import LinearProgram, to_mps

INF = math.inf


def read(text: str, folder: Path) -> highspy.HighsLp:
    path = folder / "program.mps"
    path.write_text(text, encoding="ascii")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    # By default HiGHS drops coefficients below 1e-9.
    highs.setOptionValue("small_matrix_value", 1e-12)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return highs.getLp()


def text_of(lp: LinearProgram) -> str:
    return "".join(to_mps(lp))


def matrix_of(read_back: highspy.HighsLp) -> np.ndarray:
    parts = read_back.a_matrix_
    shape = (read_back.num_row_, read_back.num_col_)
    make = sparse.csc_array if parts.format_ == highspy.MatrixFormat.kColwise else sparse.csr_array
    return make((np.array(parts.value_), np.array(parts.index_), np.array(parts.start_)), shape=shape).toarray()


def assert_same(lp: LinearProgram, folder: Path) -> highspy.HighsLp:
    back = read(text_of(lp), folder)
    assert (back.num_row_, back.num_col_) == (lp.rows, lp.columns)
    assert back.sense_ == highspy.ObjSense.kMinimize
    assert back.offset_ == 0
    for name, ours in (
        ("col_cost_", lp.cost),
        ("col_lower_", lp.lower),
        ("col_upper_", lp.upper),
        ("row_lower_", lp.row_lower),
        ("row_upper_", lp.row_upper),
    ):
        np.testing.assert_array_equal(np.array(getattr(back, name)), ours, err_msg=name)
    np.testing.assert_array_equal(matrix_of(back), lp.matrix.toarray())
    return back


def columns(lower: list[float], upper: list[float], cost: list[float] | None = None) -> LinearProgram:
    n = len(lower)
    rng = np.random.default_rng(n)
    return LinearProgram(
        np.array(cost if cost is not None else rng.normal(size=n)),
        sparse.csr_array(rng.normal(size=(2, n))),
        np.array([-INF, 0.1]),
        np.array([1 / 3, INF]),
        np.array(lower),
        np.array(upper),
    )


def rows(lower: list[float], upper: list[float]) -> LinearProgram:
    m = len(lower)
    matrix = sparse.csr_array(np.random.default_rng(m).normal(size=(m, 2)))
    return LinearProgram(
        np.array([0.1, -1 / 3]), matrix, np.array(lower), np.array(upper), np.zeros(2), np.full(2, INF)
    )


@each_row(
    ("case", "lower", "upper"),
    [
        ("default", 0.0, INF),
        ("free", -INF, INF),
        ("fixed", 2.5, 2.5),
        ("fixed at zero", 0.0, 0.0),
        ("fixed below zero", -0.1, -0.1),
        ("upper only", -INF, 7.1),
        ("upper only, zero", -INF, 0.0),
        ("upper only, negative", -INF, -7.1),
        ("both negative", -9.3, -7.1),
        ("up to zero", -9.3, 0.0),
        ("negative lower", -9.3, INF),
        ("zero to positive", 0.0, 1 / 3),
        ("extreme", 1e-300, 1e19),
        ("positive lower", 0.1, INF),
    ],
)
def test_bounds_of_columns(case: str, lower: float, upper: float, tmp_path: Path) -> None:
    assert_same(columns([0.0, lower, 0.0], [INF, upper, 1.0]), tmp_path)


@each_row(
    ("case", "lower", "upper"),
    [
        ("equality", 0.1, 0.1),
        ("equality with zero", 0.0, 0.0),
        ("negative equality", -1 / 3, -1 / 3),
        ("lower", 1 / 3, INF),
        ("upper", -INF, -1 / 3),
        ("lower zero", 0.0, INF),
        ("upper zero", -INF, 0.0),
        ("range", 0.1, 0.3),
        ("negative range", -0.3, -0.1),
        ("tiny range", 0.0, 1e-17),
        ("far below", -1e10, 0.1),
        ("far above", -0.1, 1e10),
        ("one unit in the last place", 1.0, 1.0 + 2**-52),
        ("about zero", -1e-300, 1e-300),
    ],
)
def test_bounds_of_rows(case: str, lower: float, upper: float, tmp_path: Path) -> None:
    assert_same(rows([1.0, lower, -INF], [INF, upper, 2.0]), tmp_path)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bounds=st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), min_size=1, max_size=6))
def test_any_range_survives(bounds: list[tuple[float, float]], tmp_path: Path) -> None:
    lp = rows([min(pair) for pair in bounds], [max(pair) for pair in bounds])
    back = read(text_of(lp), tmp_path)
    lower, upper = np.array(back.row_lower_), np.array(back.row_upper_)
    names = list(back.row_names_)
    for row in range(lp.rows):
        twice = f"all_{row}_upper"
        assert lower[row] == lp.row_lower[row]
        assert (upper[names.index(twice)] if twice in names else upper[row]) == lp.row_upper[row]


def test_a_range_that_no_number_expresses_is_written_twice(tmp_path: Path) -> None:
    # 2 + 2^-52 lies halfway between two numbers, from either side.
    lp = rows([-1.0, 0.0], [1.0 + 2**-52, 1.0])
    back = read(text_of(lp), tmp_path)
    assert list(back.row_names_) == ["all_0", "all_1", "all_0_upper"]
    assert list(back.row_lower_) == [-1, 0, -INF]
    assert list(back.row_upper_) == [INF, 1, 1 + 2**-52]
    np.testing.assert_array_equal(matrix_of(back)[2], lp.matrix.toarray()[0])


def test_a_row_without_bounds_is_dropped_by_readers(tmp_path: Path) -> None:
    back = read(text_of(rows([-INF, 1.0], [INF, 2.0])), tmp_path)
    assert list(back.row_lower_) == [1]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats(-1e12, 1e12).filter(lambda v: v == 0 or abs(v) > 1e-11), min_size=6, max_size=6))
def test_coefficients_to_the_last_bit(values: list[float], tmp_path: Path) -> None:
    lp = LinearProgram(
        np.array(values[:2]),
        sparse.csr_array(np.array(values[2:]).reshape(2, 2)),
        np.array([0.1, -INF]),
        np.array([0.1, 0.7]),
        np.zeros(2),
        np.full(2, INF),
    )
    assert_same(lp, tmp_path)


def test_empty_columns_and_columns_of_the_objective_only(tmp_path: Path) -> None:
    matrix = sparse.csr_array(np.array([[1.0, 0, 0, 2.0], [0, 0, 0, 1.0]]))
    lp = LinearProgram(
        np.array([0.0, 0.0, 0.1, 0.0]), matrix, np.ones(2), np.full(2, INF), np.zeros(4), np.array([INF, 3, INF, INF])
    )
    assert_same(lp, tmp_path)


def test_empty_rows(tmp_path: Path) -> None:
    matrix = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 1.0]]))
    lp = LinearProgram(np.ones(2), matrix, np.array([-1.0, 1.0]), np.array([INF, 1.0]), np.zeros(2), np.ones(2))
    assert_same(lp, tmp_path)


def test_without_rows(tmp_path: Path) -> None:
    lp = LinearProgram(np.ones(2), sparse.csr_array((0, 2)), np.zeros(0), np.zeros(0), np.zeros(2), np.ones(2))
    assert_same(lp, tmp_path)


def test_names_have_no_spaces(tmp_path: Path) -> None:
    lp = LinearProgram(
        np.ones(3),
        sparse.csr_array(np.ones((2, 3))),
        np.zeros(2),
        np.ones(2),
        np.zeros(3),
        np.ones(3),
        row_blocks={"row sums": slice(0, 1), "distortion": slice(1, 2)},
        column_blocks={"p": slice(0, 2), "worst case": slice(2, 3)},
        name="a least-cost channel",
    )
    back = assert_same(lp, tmp_path)
    assert list(back.row_names_) == ["row_sums_0", "distortion_0"]
    assert list(back.col_names_) == ["p_0", "p_1", "worst_case_0"]
    assert text_of(lp).startswith("NAME a_least-cost_channel\n")


def test_names_that_would_collide_are_refused() -> None:
    lp = LinearProgram(
        np.ones(2),
        sparse.csr_array((0, 2)),
        np.zeros(0),
        np.zeros(0),
        np.zeros(2),
        np.ones(2),
        column_blocks={"a b": slice(0, 1), "a_b": slice(1, 2)},
    )
    with pytest.raises(InputError, match="only in spaces"):
        text_of(lp)


def test_the_optimum_survives(tmp_path: Path) -> None:
    lp = columns([0.0, -INF, -3.0, -INF], [INF, -1.5, 2.0, -0.5], cost=[1.0, -1.0, 0.5, -2.0])
    text = text_of(lp)
    assert text.endswith("ENDATA\n")
    assert " MI bound all_1\n UP bound all_1 -1.5\n" in text
    assert_same(lp, tmp_path)
