from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._costs import distortion
from mechdesign.certify._privacy import check
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._rounding import round_channel

ONE = 1 << 62


def rounded(problem, matrix):
    form = normalise(problem)
    bounds = [claim for claim in problem.claims if isinstance(claim, PairBound)]

    def holds(numerators):
        return all(check(numerators, 62, bound) is None for bound in bounds)

    def distortions(numerators):
        return tuple(distortion(numerators, 62, problem.prior, floor.claim.error) for floor in form.floors)

    return round_channel(form, matrix, holds, distortions)


def line(n, epsilon=1, floor=None):
    d = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    requirements = [md.MetricPrivacy(epsilon, d)]
    if floor is not None:
        requirements.append(md.DistortionPrivacy(floor, d))
    return md.Problem(np.full(n, 1 / n), d, requirements)


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 0.01, 1, 30, 500]), st.sampled_from([None, 0.3, 0.6]))
def test_any_matrix_becomes_a_channel_that_holds(seed, epsilon, floor):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((4, 4)) * rng.choice([0, 1e-17, 1e-9, 1], size=(4, 4))
    problem = line(4, epsilon, floor)
    found = rounded(problem, matrix)
    assert (found.numerators.astype(object).sum(axis=1) == ONE).all()
    assert found.numerators.min() >= 0
    for claim in problem.claims:
        if isinstance(claim, Floor):
            assert distortion(found.numerators, 62, problem.prior, claim.error) >= claim.minimum
        else:
            assert check(found.numerators, 62, claim) is None


def test_a_feasible_matrix_hardly_changes():
    problem = line(5)
    matrix = np.exp(-0.5 * problem.cost)
    matrix /= matrix.sum(axis=1, keepdims=True)
    found = rounded(problem, matrix)
    assert found.privacy_weight <= 1e-14
    np.testing.assert_allclose(found.numerators / 2.0**62, matrix, rtol=1e-13)


def test_the_mixing_weight_is_proportional_to_the_violation():
    problem = line(2)
    ratio = np.exp(1)
    exact = np.array([[ratio, 1], [1, ratio]]) / (1 + ratio)
    for violation in (1e-12, 1e-6, 1e-3):
        matrix = exact + violation * np.array([[1, -1], [-1, 1]])
        found = rounded(problem, matrix)
        cost = (found.numerators / 2.0**62 * problem.cost).sum() / 2
        assert cost == pytest.approx(1 / (1 + ratio), rel=1e-9)


def test_columns_that_are_never_used_stay_empty():
    found = rounded(line(3), np.tile([0.0, 1.0, 0.0], (3, 1)))
    np.testing.assert_array_equal(found.numerators, [[0, ONE, 0]] * 3)


def test_columns_of_rounding_noise_are_emptied():
    matrix = np.tile([0.0, 1.0, 0.0], (3, 1))
    matrix[0, 0] = 1e-15  # An entry of 1e-15 above zeros would be an infinite ratio.
    found = rounded(line(3), matrix)
    assert (found.numerators[:, 1] > ONE * (1 - 1e-12)).all()


def test_a_missed_floor_is_met_exactly():
    problem = line(3, 50, floor="0.5")
    found = rounded(problem, np.eye(3))
    value = distortion(found.numerators, 62, problem.prior, problem.claims[1].error)
    assert Fraction(1, 2) <= value <= Fraction(1, 2) + Fraction(1, 10**9)
