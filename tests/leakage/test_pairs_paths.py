"""Sums and shortest paths of bounds are never below the exact ones, and exact where floats are."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.leakage._bounds import ULP, add, as_bounds, close, close_edges, up

INF = math.inf
LARGEST = np.finfo(float).max


def random_bounds(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return bounds of many sizes, with zeros, infinities, and the least and largest floats."""
    bounds = 10.0 ** rng.uniform(-3, 3, (n, n)) if rng.random() < 0.5 else rng.uniform(0, 2, (n, n))
    for value in (0.0, INF, INF, 5e-324, 1e-300):
        bounds[rng.random((n, n)) < 0.1] = value
    np.fill_diagonal(bounds, 0)
    return bounds


def shortest(bounds: np.ndarray) -> list[list[Fraction | float]]:
    exact = [[each if math.isinf(each) else Fraction(each) for each in row] for row in bounds.tolist()]
    n = len(exact)
    for k, i, j in itertools.product(range(n), repeat=3):
        if INF not in (exact[i][k], exact[k][j]):
            exact[i][j] = min(exact[i][j], exact[i][k] + exact[k][j])
    return exact


@pytest.mark.parametrize("seed", range(6))
def test_paths_are_rounded_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in (1, 2, 5, 9):
        bounds = random_bounds(rng, n)
        rows, cols = np.nonzero(~np.eye(n, dtype=bool))
        exact = shortest(bounds)
        for found in (close(bounds), close_edges(bounds[rows, cols], rows, cols, n)):
            for (i, j), value in np.ndenumerate(found):
                if math.isinf(exact[i][j]):
                    assert math.isinf(value)
                else:
                    assert exact[i][j] <= Fraction(value), (n, i, j)
                    assert Fraction(value) <= exact[i][j] * (1 + 4 * n * Fraction(ULP)) + Fraction(5e-324) * n
        assert (close(bounds) <= bounds).all()
        again = close(close(bounds))
        assert np.allclose(again, close(bounds), rtol=4 * n * ULP, atol=1e-322)


def test_edges_and_exact_sums_stay_as_they_are() -> None:
    found = close_edges(np.full(3, 0.1), np.array([0, 1, 2]), np.array([1, 2, 3]), 4)
    assert (np.diagonal(found, 1) == 0.1).all(), "a single edge is not rounded"
    assert close(np.array([[0, 0.5, INF], [INF, 0, 0.5], [INF, INF, 0]]))[0, 2] == 1.0
    assert np.isinf(found[1:, 0]).all(), "edges lead one way"
    assert (close_edges(np.zeros(2), np.array([0, 1]), np.array([1, 2]), 3)[0] == 0).all(), "an edge of 0 is an edge"
    nothing = np.zeros(0, dtype=np.int64)
    assert np.isinf(close_edges(np.zeros(0), nothing, nothing, 2)).tolist() == [[False, True], [True, False]]
    assert np.isinf(close_edges(np.array([INF]), np.array([0]), np.array([1]), 2)[0, 1])


def test_sums_are_the_least_floats_above() -> None:
    rng = np.random.default_rng(1)
    first, second = 10.0 ** rng.uniform(-320, 300, (2, 500))
    second[:250] = first[:250] * rng.uniform(0, 2, 250)
    for a, b, total in zip(first, second, add(first, second), strict=True):
        exact = Fraction(a) + Fraction(b)
        assert Fraction(np.nextafter(total, 0)) < exact <= Fraction(total)
    ends = np.array([0, INF, LARGEST, LARGEST]), np.array([0, 1, LARGEST, 1])
    assert add(*ends).tolist() == [0, INF, INF, INF]
    assert close(np.array([[0, LARGEST, INF], [INF, 0, LARGEST], [INF, INF, 0]]))[0].tolist() == [0, LARGEST, INF]
    assert up(np.array([0, 1, INF, LARGEST])).tolist() == [0, 1 + ULP, INF, INF]


def test_exact_numbers_are_rounded_up() -> None:
    third = Fraction(1, 3)
    found = as_bounds([[0, third], [INF, 0]], "bounds")
    assert Fraction(found[0, 1]) >= third > Fraction(np.nextafter(found[0, 1], 0))
    assert math.isinf(found[1, 0])
    between = 2**53 + 1
    for given in ([[0, between], [0, 0]], np.array([[0, between], [0, 0]])):
        assert as_bounds(given, "bounds")[0, 1] == between + 1
    long = np.array([[0, 1], [1, 0]], dtype=np.longdouble) / 3
    assert (as_bounds(long, "bounds") >= long).all()
