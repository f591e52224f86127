"""Approximate location: the law against SciPy and a simulation, the presets, and deterministic rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import mechdesign as md
from mechdesign.mechanisms._approximate_location import LARGEST_OFFSET, interval_masses

Location = md.mechanisms.ApproximateLocation
CITY = md.Domain.grid(columns=6, rows=4, width=3.0, height=2.0, unit="km")


def law(points: np.ndarray, places: np.ndarray, spacing: float, deviation: float) -> np.ndarray:
    """Return the law by SciPy's normal distribution function, on the side where differences lose nothing."""
    whole = 1 - 2 * ndtr(-LARGEST_OFFSET)
    masses = np.ones((len(points), len(places)))
    for axis in (0, 1):
        middle = (places[None, :, axis] - points[:, None, axis]) / deviation
        low = np.clip(middle - spacing / deviation / 2, -LARGEST_OFFSET, LARGEST_OFFSET)
        high = np.clip(middle + spacing / deviation / 2, -LARGEST_OFFSET, LARGEST_OFFSET)
        low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
        masses *= (ndtr(high) - ndtr(low)) / whole
    return masses


@pytest.mark.parametrize(("spacing", "deviation"), [(2.0, 0.5), (1.0, 0.25), (0.75, 0.5), (2.0, 0.03125)])
def test_the_matrix_is_the_law(spacing: float, deviation: float) -> None:
    rng = np.random.default_rng(3)
    town = md.Domain.from_points(rng.uniform(-5, 5, (8, 2)), unit="km")
    made = Location(town, spacing, deviation)
    matrix, expected = made.matrix(), law(town.points, made.observables.points, spacing, deviation)
    assert matrix.shape == (8, made.observables.size)
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-14
    assert ((matrix > 0) == (expected > 0)).all()
    assert (matrix > 0).any(axis=0).all()
    given = matrix > 1e-25
    assert np.abs(matrix[given] / expected[given] - 1).max() < 1e-11
    assert np.abs(matrix - expected).max() < 1e-15


def test_masses_are_the_nearest_floats() -> None:
    # G(z) by the alternating series, in fractions of 200 bits: an independent way to the same numbers.
    def integral(z: Fraction) -> Fraction:
        total, term = Fraction(0), z
        for k in range(400):
            total += term / (2 * k + 1)
            term = Fraction(round(-term * z * z / (2 * (k + 1)) * 2**400), 2**400)
        return total

    ends = [Fraction(n, 7) for n in (-56, -50, -23, -7, 0, 1, 3, 20, 41, 55, 56)]
    whole = 2 * integral(Fraction(8))
    found = interval_masses(ends)
    for mass, low, high in zip(found.tolist(), ends, ends[1:], strict=False):
        exactly = (integral(high) - integral(low)) / whole
        assert abs(Fraction(mass) - exactly) <= exactly / 2**53
    assert interval_masses([Fraction(8) - Fraction(1, 10**60), Fraction(8)]).tolist() == [0.0]


def test_the_rule_of_android_simulated() -> None:
    """Draw offsets and round, as the source says, and compare frequencies with the law."""
    made = Location.android(CITY)
    matrix, places = made.matrix(), made.observables.points
    rng = np.random.default_rng(5)
    for secret in (0, 7, 23):
        drawn = CITY.points[secret] + rng.normal(0, 2.0 / 4, (40_000, 2))
        answers = np.floor(drawn / 2.0 + 0.5) * 2.0
        counts = (answers[:, None, :] == places[None, :, :]).all(axis=2).mean(axis=0)
        assert np.abs(counts - matrix[secret]).max() < 0.01


def test_presets_have_the_published_numbers() -> None:
    android, browser = Location.android(CITY), Location.browser(CITY)
    assert (android.spacing, android.deviation) == (2, Fraction(1, 2))
    assert (browser.spacing, browser.deviation) == (5, 0)
    assert Location.android(CITY, "0.2").deviation == Fraction(1, 20)
    metres = md.Domain.grid(columns=2, rows=2, width=3000.0, height=2000.0, unit="m")
    assert Location.android(metres, 2000).deviation == 500
    assert repr(Location.browser(metres, 5000)) == "ApproximateLocation(4 places, spacing=5000, deviation=0)"


def test_without_an_offset_it_is_snapping() -> None:
    town = md.Domain.from_points(np.random.default_rng(1).uniform(-6, 6, (40, 2)), unit="km")
    for spacing in (0.3, 1.0, 2.0, 7.0):
        made = Location(town, spacing)
        assert np.array_equal(made.matrix(), md.mechanisms.snapping(town, spacing))
        nearest = made.observables.points[made.matrix().argmax(axis=1)]
        assert np.abs(nearest - town.points).max() <= spacing / 2 * (1 + 1e-12)


def test_ties_are_rounded_up_and_the_origin_moves_the_grid() -> None:
    pair = md.Domain.from_points([[0.5, 0.0], [1.5, 0.0]])
    assert Location(pair, 1).observables.points.tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert Location(pair, 1, origin=("0.5", 0)).observables.points.tolist() == [[0.5, 0.0], [1.5, 0.0]]
    assert Location(pair, 2, origin=(1, 0)).observables.points.tolist() == [[1.0, 0.0]]
    shifted = md.Domain.from_points(pair.points + 4.0)
    assert np.array_equal(Location(pair, 2, "0.5").matrix(), Location(shifted, 2, "0.5").matrix())


def test_two_houses_at_a_border_have_no_ε() -> None:
    houses = md.Domain.from_points([[2.499, 0.0], [2.501, 0.0], [0.0, 0.0]], unit="km")
    distance = md.distances.euclidean(houses)
    found = md.audit(Location.browser(houses).matrix(), distance)
    assert found.epsilon == math.inf
    assert found.epsilon_by_distance([0.01])[0].epsilon == math.inf
    inside = md.Domain.from_points([[2.4, 0.0], [-2.4, 0.0]], unit="km")
    assert md.audit(Location.browser(inside).matrix(), md.distances.euclidean(inside)).epsilon == 0.0
    # An offset that is cut off rules answers out, too.
    assert md.audit(Location.android(CITY).matrix(), md.distances.euclidean(CITY)).epsilon == math.inf


def test_places_in_latitude_and_longitude() -> None:
    town = md.Domain.geographic_grid(columns=5, rows=4, south=46.9, north=47.0, west=7.4, east=7.5)
    made = Location.android(town)
    places = made.observables
    assert places.plane == town.plane
    cost = md.distances.euclidean(town, places)
    assert cost.shape == made.matrix().shape
    assert np.abs(places.points / 2 - np.round(places.points / 2)).max() < 1e-9
    assert (made.matrix() * cost).sum(axis=1).max() < 1.5


def test_a_tiny_offset_decides_only_at_borders() -> None:
    made = Location(md.Domain.from_points([[0.0, 0.0], [0.5, 0.0]]), 1, "1e-30")
    assert made.observables.points.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert made.matrix().tolist() == [[1.0, 0.0], [0.5, 0.5]]
