"""The planar Laplace mechanism snapped to places: against closed forms, quadrature in the plane, and its guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from mechdesign.mechanisms._planar_laplace import _keep_bound, planar_laplace
from mechdesign.model._domain import Domain

SCATTERED = np.array([[0.0, 0.0], [1.0, 0.2], [2.5, -1.0], [0.3, 2.0], [-1.5, 0.7], [4.0, 4.0]])


@pytest.mark.parametrize("epsilon", [1e-3, 3.0, 40.0])
def test_half_planes(epsilon):
    """Beyond a line at the distance h lies 1/π ∫ S(h / cos ψ) over ψ from 0 to π/2, with S(r) = (1 + εr) e^(-εr)."""
    h = 0.75
    found = planar_laplace(epsilon, np.array([[0.25, 5.0]]), np.array([[-1.0, 5.0], [3.0, 5.0]]))[0, 1]

    def beyond(angle):
        r = epsilon * h / np.cos(angle)
        return (1 + r) * np.exp(-r)

    expected = quad(beyond, 0, np.pi / 2, epsabs=0, epsrel=1e-12)[0] / np.pi
    assert found == pytest.approx(expected, rel=1e-8)


def test_the_cell_in_the_middle_of_a_grid():
    grid = Domain.grid(5, 5, 5.0, 5.0)
    found = planar_laplace(0.9, grid.points, grid.points)

    def density(y, x):
        return 0.81 / (2 * np.pi) * np.exp(-0.9 * np.hypot(x - 2.5, y - 2.5))

    quarter = dblquad(density, 2.5, 3.0, 2.5, 3.0, epsabs=1e-12)[0]
    assert found[12, 12] == pytest.approx(4 * quarter, rel=1e-8)
    assert found[12, 13] == pytest.approx(dblquad(density, 3.0, 4.0, 2.0, 3.0, epsabs=1e-12)[0], rel=1e-8)
    np.testing.assert_allclose(found, found[::-1, ::-1], rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 6.0])
@pytest.mark.parametrize("sites", [SCATTERED, Domain.grid(6, 4, 6.0, 4.0).points], ids=["scattered", "grid"])
def test_the_guarantee_of_geo_indistinguishability(epsilon, sites):
    """p(o|s) <= exp(ε‖s − t‖) p(o|t), also where the answers are other places than the secrets."""
    places = np.random.default_rng(3).uniform(-2, 6, (12, 2))
    masses = planar_laplace(epsilon, places, sites)
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    assert (masses > 0).all()
    assert (masses[:, None] <= np.exp(epsilon * apart)[:, :, None] * masses[None] * (1 + 1e-6)).all()


def far_clusters(apart: float, close: float) -> np.ndarray:
    """Return five clusters of five places each, around the origin."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, apart, (5, 1, 2)) + rng.uniform(-close, close, (5, 5, 2))
    return np.asarray((places - places.mean(axis=(0, 1))).reshape(-1, 2))


@pytest.mark.parametrize(("apart", "close"), [(1e5, 1.0), (1e5, 0.1), (1e4, 0.01), (1e5, 1e-3)])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 1.0])
def test_tight_clusters_far_apart_keep_the_guarantee(apart: float, close: float, epsilon: float) -> None:
    """Cells of 1 m seen from 100 km are lost to rounding, or underflow; the loss is still ε d, up to 1e-9 nats."""
    places = far_clusters(apart, close)
    masses = planar_laplace(epsilon, places, places)
    assert (masses > 0).all()
    logarithm = np.log(masses)
    loss = (logarithm[:, None] - logarithm).max(axis=2)
    allowed = epsilon * np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    assert (loss - allowed).max() < 1e-9
    if close == 1:
        off = ~np.eye(len(places), dtype=bool)
        assert (loss[off] / allowed[off]).max() < 1 + 1e-6


def test_keeping_the_guarantee_changes_no_mass_that_meets_it() -> None:
    exact = np.array([[1.0, 0.5], [0.5, 1.0]]) / 1.5
    near = np.array([[0.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(_keep_bound(exact, 0.5, near), exact, rtol=1e-15)
    # A lost mass becomes the least that the others allow.
    lost = _keep_bound(np.array([[1.0, 0.0], [0.5, 0.5]]), 0.5, near)
    np.testing.assert_allclose(lost[0, 1] / lost[0, 0], 0.5 * np.exp(-1.0), rtol=1e-12)


def test_the_unit_of_distance_does_not_matter():
    one = planar_laplace(0.7, SCATTERED, SCATTERED)
    np.testing.assert_allclose(planar_laplace(0.7e-6, SCATTERED * 1e6, SCATTERED * 1e6), one, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-4, 5e-324])
def test_where_noise_is_far_larger_than_the_map_only_the_direction_of_the_noise_counts(epsilon: float) -> None:
    # Far away each side of a square of places is a quarter of all directions, that of a corner.
    square = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
    corners = np.isin(np.arange(25), [0, 4, 20, 24])
    found = planar_laplace(epsilon, square, square)
    assert np.abs(found - np.where(corners, 0.25, 0.0)).max() < 10 * epsilon + 1e-10
    # Of places on a line the two ends have half of them each; a triangle has what its angles leave of a half turn.
    line = planar_laplace(epsilon, square[:5], square[:5] + np.array([0, 7]))
    assert np.abs(line - [0.5, 0, 0, 0, 0.5]).max() < 10 * epsilon + 1e-10
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    expected = [0.25, 0.375, 0.375]
    assert np.abs(planar_laplace(epsilon, triangle, triangle) - expected).max() < 10 * epsilon + 1e-10
