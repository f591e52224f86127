"""Rules as matrices: rows are distributions, at any scale, and what has no such rows is refused."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError

FAR = md.Domain.from_points([[0.0, 0.0], [1e6, 0.0], [0.0, 3e6]])
PAIR = functools.partial(md.mechanisms.Exponential, distance=[[0.0, 1.0], [1.0, 0.0]])
ELSEWHERE = md.Domain.from_points([[1e9, 0.0], [1e9, 1.0]])
CITY = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [0.3, 2.0]])
SITES = md.Domain.from_points([[0.0, 0.5], [2.0, 1.0]])
NOISE = md.mechanisms.PlanarLaplace("1.5", CITY)
FALLING = md.mechanisms.Exponential("1.5", md.distances.euclidean(CITY))
# The first row of each law at ε = 1.5, as `md.rules` gave it before laws were mechanisms.
BEFORE = {
    "planar Laplace": (NOISE.matrix, [0.6182000869846808, 0.24897147193647273, 0.13282844107884645]),
    "planar Laplace, elsewhere": (lambda: NOISE.matrix(SITES), [0.8695010505761771, 0.1304989494238229]),
    "density": (NOISE.density, [0.7866124900677879, 0.17551697088358068, 0.03787053904863141]),
    "density, elsewhere": (lambda: NOISE.density(SITES), [0.931125109101664, 0.06887489089833604]),
    "exponential": (FALLING.matrix, [0.5910921541713303, 0.2792121632181717, 0.12969568261049794]),
    "exponential, elsewhere": (
        lambda: FALLING.matrix(answers=md.distances.euclidean(CITY, SITES)),
        [0.7861799577840591, 0.21382004221594086],
    ),
    "geometric": (
        md.mechanisms.Geometric("1.5", 4).matrix,
        [0.8175744761936437, 0.14172088746428285, 0.031622204316283035, 0.009082432025790453],
    ),
    "snapping": (lambda: md.mechanisms.snapping(CITY, 1.5), [1.0, 0.0, 0.0]),
    "additive": (lambda: md.mechanisms.additive({-1: 0.25, 0: 0.5, 2: 0.25}, 2), [0.25, 0.5, 0.0, 0.25, 0.0]),
}


@pytest.mark.parametrize("name", BEFORE)
def test_each_law_has_the_numbers_of_before(name):
    law, first = BEFORE[name]
    assert law()[0] == pytest.approx(first, rel=1e-14, abs=0)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-3, 1.0, 800.0, 1e100])
def test_no_row_is_ever_without_a_sum(epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for matrix in (
            PAIR(epsilon).matrix(answers=[[5000.0, 6000.0], [0.0, 1e9]]),
            PAIR(epsilon).matrix(answers=np.full((2, 3), 1e100)),
            PAIR(epsilon).matrix(),
            md.mechanisms.PlanarLaplace(epsilon, FAR).matrix(ELSEWHERE),
            md.mechanisms.Geometric(epsilon, 4).matrix(),
        ):
            assert np.isfinite(matrix).all()
            assert matrix.sum(axis=1) == pytest.approx(1.0)


def test_rows_far_from_all_answers_keep_their_odds():
    near, far = PAIR(2).matrix(answers=[[0.0, 1.0], [1e4, 1e4 + 1.0]])
    assert far == pytest.approx(near)
    assert near[0] / near[1] == pytest.approx(np.e)


def test_geometric_noise_of_a_small_rate_is_spread_evenly():
    # 1 - α is ε, and not the 0 that the difference of rounded numbers is.
    assert md.mechanisms.Geometric(1e-20, 3).matrix()[0, 1] == pytest.approx(5e-21)


def test_a_spacing_at_which_multiples_are_not_told_apart_is_refused():
    line = md.Domain.from_points([[1.0], [2.0]])
    assert md.mechanisms.snapping(line, 1e-15).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    for spacing in (1e-16, 1e-320):
        with pytest.raises(InputError, match="spacing: is too small"):
            md.mechanisms.snapping(line, spacing)


@pytest.mark.parametrize("masses", [5, None, [0.5, 0.5], {None: 1.0}, {0.5: 1.0}, {True: 1.0}, {10**8: 1.0}])
def test_masses_of_noise_are_of_integers(masses):
    with pytest.raises(InputError, match="masses"):
        md.mechanisms.additive(masses, 2)


@pytest.mark.parametrize("answers", [np.zeros((2, 0)), np.zeros((3, 2)), [0.0, 1.0], [[-1.0], [0.0]], [["a"], ["b"]]])
def test_distances_from_other_answers_have_a_row_for_each_secret(answers):
    with pytest.raises(InputError, match="answers"):
        PAIR(1).matrix(answers=answers)


def test_the_law_of_the_exponential_mechanism_is_that_of_its_answers():
    law = PAIR("0.7")
    assert law.matrix().tolist() == law.matrix(answers=law.distance).tolist()


@pytest.mark.parametrize("rule", [md.mechanisms.PlanarLaplace, md.mechanisms.Exponential])
def test_interchanged_arguments_are_named(rule):
    with pytest.raises(InputError, match=r"epsilon: is of type Domain, not a number"):
        rule(FAR, 1.0)


def test_masses_of_noise_sum_to_1():
    with pytest.raises(InputError, match=r"masses: do not sum to 1; found 0.75"):
        md.mechanisms.additive({-1: 0.25, 0: 0.5}, 2)
    assert md.mechanisms.additive({-1: 1 / 3, 0: 1 / 3, 1: 1 / 3}, 2).shape == (2, 4)
