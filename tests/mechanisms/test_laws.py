"""Rules as matrices: rows are distributions, at any scale, and what has no such rows is refused."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import mechdesign as md

FAR = md.Domain.from_points([[0.0, 0.0], [1e6, 0.0], [0.0, 3e6]])
PAIR = functools.partial(md.mechanisms.Exponential, distance=[[0.0, 1.0], [1.0, 0.0]])
ELSEWHERE = md.Domain.from_points([[1e9, 0.0], [1e9, 1.0]])
CITY = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [0.3, 2.0]])


# The first row of each law at ε = 1.5, as `md.rules` gave it before laws were mechanisms.
def test_laws_by_their_definitions():
    epsilon, line = 1.5, np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    far = md.distances.euclidean(CITY)
    elsewhere = md.Domain.from_points([[0.0, 0.5], [2.0, 1.0]])
    beyond = md.distances.euclidean(CITY, elsewhere)
    alpha = np.exp(-epsilon)
    noise, falling = md.mechanisms.PlanarLaplace("1.5", CITY), md.mechanisms.Exponential("1.5", far)
    # The ends of a line take what lies beyond them.
    geometric = np.where(np.isin(np.arange(4), [0, 3]), 1, 1 - alpha) / (1 + alpha) * alpha**line
    for name, found, weights in (
        ("density", noise.density(), np.exp(-epsilon * far)),
        ("density, elsewhere", noise.density(elsewhere), np.exp(-epsilon * beyond)),
        ("exponential", falling.matrix(), np.exp(-epsilon / 2 * far)),
        ("exponential, elsewhere", falling.matrix(answers=beyond), np.exp(-epsilon / 2 * beyond)),
        ("geometric", md.mechanisms.Geometric("1.5", 4).matrix(), geometric),
    ):
        expected = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)
    # Each place goes to the nearest of (0, 0), (0, 1.5) and (1.5, 0).
    assert md.mechanisms.snapping(CITY, 1.5).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    # Multiples that can just be told apart.
    assert md.mechanisms.snapping(md.Domain.from_points([[1.0], [2.0]]), 1e-15).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("epsilon", [1e-20, 1.0, 800.0, 1e100])
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


def test_the_law_of_the_exponential_mechanism_is_that_of_its_answers():
    law = PAIR("0.7")
    assert law.matrix().tolist() == law.matrix(answers=law.distance).tolist()
