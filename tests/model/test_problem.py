from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InfeasibleError
from mechdesign.model._problem import largest_distortion

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
PRIOR = [0.5, 0.25, 0.25]


def test_a_floor_above_what_the_prior_allows_names_the_maximum():
    # Releasing nothing leaves 0.25·1 + 0.25·2 = 0.75 for the estimate 0, and 0.5·1 + 0.25·1 = 0.75 for 1.
    assert largest_distortion(PRIOR, LINE) == Fraction(3, 4)
    md.Problem(PRIOR, LINE, [md.DistortionPrivacy("0.75", LINE)])
    with pytest.raises(InfeasibleError, match=r"requirements\[1\].minimum.* 0.75"):
        md.Problem(PRIOR, LINE, [md.DistortionPrivacy(0.1, LINE), md.DistortionPrivacy("0.75000000000000000001", LINE)])


def test_largest_distortion_is_exact_for_the_stored_numbers():
    prior = np.array([0.1, 0.9])
    error = np.array([[0, 0.3], [0.7, 0]])
    assert largest_distortion(prior, error) == min(Fraction(0.9) * Fraction(0.3), Fraction(0.1) * Fraction(0.7))


def test_values_are_frozen_copies():
    cost = LINE.copy()
    problem = md.Problem(PRIOR, cost, [])
    cost[0, 0] = 9
    assert problem.cost[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        problem.cost[0, 0] = 1


def test_a_prior_value_is_accepted():
    assert md.Problem(md.Prior.uniform(3), LINE, []).prior[0] == pytest.approx(1 / 3)
