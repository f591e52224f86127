"""Rules as matrices: rows are distributions, at any scale, and what has no such rows is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError

FAR = md.Domain.from_points([[0.0, 0.0], [1e6, 0.0], [0.0, 3e6]])
ELSEWHERE = md.Domain.from_points([[1e9, 0.0], [1e9, 1.0]])


@pytest.mark.parametrize("epsilon", [1e-20, 1e-3, 1.0, 800.0, 1e300])
def test_no_row_is_ever_without_a_sum(epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for matrix in (
            md.rules.exponential([[5000.0, 6000.0], [0.0, 1e9]], epsilon),
            md.rules.exponential(np.full((2, 3), 1e100), epsilon),
            md.rules.planar_laplace(FAR, epsilon, ELSEWHERE),
            md.rules.geometric(4, epsilon),
        ):
            assert np.isfinite(matrix).all()
            assert matrix.sum(axis=1) == pytest.approx(1.0)


def test_rows_far_from_all_answers_keep_their_odds():
    near, far = md.rules.exponential([[0.0, 1.0], [1e4, 1e4 + 1.0]], 2.0)
    assert far == pytest.approx(near)
    assert near[0] / near[1] == pytest.approx(np.e)


def test_geometric_noise_of_a_small_rate_is_spread_evenly():
    # 1 - α is ε, and not the 0 that the difference of rounded numbers is.
    assert md.rules.geometric(3, 1e-20)[0, 1] == pytest.approx(5e-21)


def test_a_spacing_at_which_multiples_are_not_told_apart_is_refused():
    line = md.Domain.from_points([[1.0], [2.0]])
    assert md.rules.snapping(line, 1e-15).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    for spacing in (1e-16, 1e-320):
        with pytest.raises(InputError, match="spacing: is too small"):
            md.rules.snapping(line, spacing)


@pytest.mark.parametrize("masses", [5, None, [0.5, 0.5], {None: 1.0}, {0.5: 1.0}, {True: 1.0}, {10**8: 1.0}])
def test_masses_of_noise_are_of_integers(masses):
    with pytest.raises(InputError, match="masses"):
        md.rules.additive(masses, 2)


def test_a_distance_without_entries_is_refused():
    with pytest.raises(InputError, match="has no entries"):
        md.rules.exponential(np.zeros((2, 0)), 1.0)


@pytest.mark.parametrize("rule", [md.rules.planar_laplace, md.rules.planar_laplace_density])
def test_interchanged_arguments_are_named(rule):
    with pytest.raises(InputError, match=r"secrets: is of another kind|epsilon: is not a number"):
        rule(1.0, FAR)


def test_masses_of_noise_sum_to_1():
    with pytest.raises(InputError, match=r"masses: do not sum to 1; found 0.75"):
        md.rules.additive({-1: 0.25, 0: 0.5}, 2)
    assert md.rules.additive({-1: 1 / 3, 0: 1 / 3, 1: 1 / 3}, 2).shape == (2, 4)
