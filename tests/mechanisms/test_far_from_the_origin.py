"""Places in metres of national grids: whatever squares coordinates gives the same as beside the origin."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import mechdesign as md

SYSTEMS = {
    "UTM": (382_000, 5_200_000),
    "LV95": (2_600_000, 1_200_000),
    "Lambert 93": (652_000, 6_862_000),
    "Mercator": (829_000, 5_933_000),
    "British grid": (530_000, 180_000),
}


def sites(seed: int, count: int = 25) -> tuple[np.ndarray, float]:
    """Return places of a floor or a site, in metres with two decimals, and its size."""
    dice = np.random.default_rng(seed)
    size = float(dice.choice([5, 10, 20, 50, 100]))
    return np.unique(np.round(dice.random((count, 2)) * size, 2), axis=0), size


@pytest.mark.parametrize("seed", range(4))
def test_planar_laplace_noise_keeps_its_law_and_its_answers(seed: int) -> None:
    places, size = sites(seed)
    near = md.mechanisms.PlanarLaplace(4 / size, md.Domain.from_points(places)).matrix()
    for name, offset in SYSTEMS.items():
        far = md.mechanisms.PlanarLaplace(4 / size, md.Domain.from_points(places + offset)).matrix()
        assert far.shape == near.shape, name
        assert np.abs(far - near).max() < 1e-6, name


def test_places_on_a_line_and_pairs_stay_so() -> None:
    for places in ([[0.0, 0.0], [1.0, 2.0]], [[0.0, 0.0], [1.5, 1.5], [4.0, 4.0]]):
        near = md.mechanisms.PlanarLaplace(1, md.Domain.from_points(places)).matrix()
        for name, offset in SYSTEMS.items():
            far = md.mechanisms.PlanarLaplace(1, md.Domain.from_points(np.add(places, offset))).matrix()
            assert np.abs(far - near).max() < 1e-6, name


def test_hulls_exposure_and_cells_do_not_move() -> None:
    places, size = sites(7, 12)
    graph = nx.path_graph(len(places))
    hull = md.graphs.sensitivity_hull(places, graph)
    channel = md.mechanisms.PlanarIsotropic(1, places, graph).channel(places).matrix
    for name, offset in SYSTEMS.items():
        moved = places + offset
        other = md.graphs.sensitivity_hull(moved, graph)
        assert other.volume == pytest.approx(hull.volume, rel=1e-6), name
        assert md.graphs.degree_of_protection(moved, graph) == md.graphs.degree_of_protection(places, graph), name
        assert np.abs(md.mechanisms.PlanarIsotropic(1, moved, graph).channel(moved).matrix - channel).max() < 1e-6, name
    assert size > 0
