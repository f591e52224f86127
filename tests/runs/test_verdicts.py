"""What returned numbers are worth: exact, just inside and just outside, and every fault is seen."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import mechdesign as md
from mechdesign.certify._claims import PairBound
from mechdesign.runs._phases import SLACK, Verdict, judge_matrix, read_claim, tight_epsilon
from mechdesign.solve._contract import Status

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


def problem(epsilon: float = 1.0, floor: float | None = None) -> md.Problem:
    requirements: list[object] = [md.MetricPrivacy(epsilon, LINE)]
    if floor is not None:
        requirements.append(md.DistortionPrivacy(floor, LINE))
    return md.Problem(np.full(3, 1 / 3), LINE, requirements)


def response(epsilon: float) -> np.ndarray:
    """Return the geometric mechanism on three points, whose tight ε is ε."""
    a = math.exp(-epsilon)
    ends = np.array([1, a, a * a]) / (1 + a)
    middle = np.array([a, 1 - a, a]) / (1 + a)
    return np.array([ends * [1, 1 - a, 1], middle, (ends * [1, 1 - a, 1])[::-1]])


def test_a_closed_form_is_found():
    bound = PairBound.metric(Fraction(1), LINE)
    for epsilon in (0.01, 0.5, 1.0, 3.0):
        matrix = response(epsilon)
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
        assert tight_epsilon(matrix, bound) == pytest.approx(epsilon, rel=1e-12)


positive = st.floats(2.0**-40, 1.0)


@settings(max_examples=50)
@given(arrays.arrays(float, (3, 4), elements=positive), st.integers(1, 3))
def test_it_is_the_least_one_in_exact_arithmetic(matrix, scale):
    bound = PairBound.metric(Fraction(1), scale * LINE)
    found = tight_epsilon(matrix, bound)
    sums = [sum(map(Fraction, row.tolist())) for row in matrix]
    rows = [[Fraction(value) / total for value in row.tolist()] for row, total in zip(matrix, sums, strict=True)]
    largest = max(
        math.log(rows[s][o] / rows[t][o]) / weight
        for s, t, weight in zip(bound.sources, bound.targets, bound.weights, strict=True)
        for o in range(4)
    )
    assert found == pytest.approx(max(largest, 0.0), rel=1e-9, abs=1e-14)


def test_it_is_rounded_up():
    # The logarithm of 2 is no float.
    bound = PairBound.graph(Fraction(1), 2, [[0, 1]])
    found = tight_epsilon(np.array([[0.5, 0.5], [0.25, 0.75]]), bound)
    assert Fraction(found) > Fraction("0.693147180559945309417232121458")
    assert found == math.log(2) or found == math.nextafter(math.log(2), 1)


def test_a_zero_or_less_beside_a_positive_entry_is_infinite():
    for bad in (0.0, -0.0, -1e-17):
        matrix = response(1.0)
        matrix[0, 2] = bad
        found = judge_matrix(problem(), matrix)
        assert (found.tight_epsilon, found.verdict(0.0)) == (math.inf, Verdict.NOT_PRIVATE), bad


def test_a_column_of_zeros_tells_nothing():
    matrix = np.hstack([response(1.0), np.zeros((3, 1)) - 1e-18])
    assert tight_epsilon(matrix, PairBound.metric(Fraction(1), LINE)) == pytest.approx(1.0)


def test_the_same_place_asks_for_the_same_row():
    bound = PairBound.metric(Fraction(1), np.zeros((2, 2)))
    assert tight_epsilon(np.array([[0.5, 0.5], [0.5, 0.5]]), bound) == 0.0
    assert tight_epsilon(np.array([[0.5, 0.5], [0.4, 0.6]]), bound) == math.inf


def test_just_inside_and_just_outside_the_slack():
    inside, outside = response(1.0 + 0.9 * SLACK), response(1.0 + 1.1 * SLACK)
    assert judge_matrix(problem(), inside).fault is None
    assert judge_matrix(problem(), outside).fault is Verdict.NOT_PRIVATE


def test_rows_must_sum_to_one_and_floors_be_met():
    matrix = response(1.0)
    assert judge_matrix(problem(), matrix * (1 + 0.5 * SLACK)).fault is None
    assert judge_matrix(problem(), matrix * (1 + 2 * SLACK)).fault is Verdict.INFEASIBLE
    constant = np.tile([0.0, 1.0, 0.0], (3, 1))
    met = 2 / 3
    assert judge_matrix(problem(floor=met * (1 - 1e-12)), constant).fault is None
    assert judge_matrix(problem(floor=met * (1 - 1e-12)), response(1.0)).fault is Verdict.INFEASIBLE


def test_numbers_that_are_none_are_no_channel():
    for bad in (math.nan, math.inf):
        matrix = response(1.0)
        matrix[1, 1] = bad
        assert judge_matrix(problem(), matrix).verdict(0.0) is Verdict.INFEASIBLE
    assert judge_matrix(problem(), np.zeros((3, 3))).verdict(0.0) is Verdict.INFEASIBLE


def test_optimal_is_what_a_bound_proves():
    found = judge_matrix(problem(), response(1.0))
    assert found.verdict(found.cost * (1 - 0.9e-5)) is Verdict.OPTIMAL
    assert found.verdict(found.cost * (1 - 1.1e-5)) is Verdict.FEASIBLE


def test_claims_have_the_same_vocabulary():
    assert read_claim(Status.OPTIMAL) is Verdict.OPTIMAL
    assert read_claim(Status.INFEASIBLE) is Verdict.INFEASIBLE
    assert read_claim(Status.TIME_LIMIT) is Verdict.TIMEOUT
    assert read_claim(Status.STALLED) is read_claim(Status.UNBOUNDED) is read_claim(Status.FAILED) is Verdict.FAILED
