"""Designs with few bounded pairs: their selection, reduction, estimates and certificates."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve._blocks.memory import Sparsity
from mechdesign.synthesis._blocks import BlockReduction
from mechdesign.synthesis._normal import find_few_pairs, mark_irreducible, measure_dilation, normalise
from mechdesign.synthesis._parts import split
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import Size, estimate, size_of

SIDE = 7
STREETS = nx.convert_node_labels_to_integers(nx.grid_2d_graph(SIDE, SIDE))
WALKS = np.asarray(nx.floyd_warshall_numpy(STREETS))
PRIOR = np.random.default_rng(3).dirichlet(np.ones(SIDE**2))


def exponents_of(distance: np.ndarray) -> np.ndarray:
    exponents = np.where(distance > 0, 0.6 * distance, np.inf)
    np.fill_diagonal(exponents, np.inf)
    return exponents


def steps() -> np.ndarray:
    return np.where(WALKS == 1, 0.6, np.inf)


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_costs_of_bounds_between_neighbours_match_highs(objective: str) -> None:
    problem = md.Problem(PRIOR, WALKS[:, :12], [md.GraphPrivacy("0.6", STREETS)], objective)
    found = md.design(problem, solver="block", tolerance=1e-4)
    other = md.design(problem, solver="highs-ipx", rows="all", tolerance=1e-6)
    assert found.certificate.holds
    assert found.certificate.relative_gap <= 1e-4
    assert found.certificate.lower_bound <= other.certificate.cost
    assert other.certificate.lower_bound <= found.certificate.cost


def test_lengths_of_paths_are_bounds_between_neighbours(tmp_path) -> None:
    asked = md.Problem(PRIOR, WALKS, [md.MetricPrivacy("0.6", WALKS)])
    program, _ = BlockReduction().apply(normalise(asked))
    assert np.array_equal(np.isfinite(program.exponents), WALKS == 1)
    every = md.design(asked, solver="block", tolerance=1e-4)
    # The certificate covers all pairs.
    assert every.certificate.holds
    assert every.certificate.epsilon[0] <= 0.6
    near = md.design(md.Problem(PRIOR, WALKS, [md.GraphPrivacy("0.6", STREETS)]), solver="block", tolerance=1e-4)
    assert every.certificate.cost == pytest.approx(near.certificate.cost, rel=2e-4)
    md.save(every, tmp_path / "out", report=False)
    assert md.verify(tmp_path / "out").holds


def test_irreducible_pairs_are_found_among_near_ones() -> None:
    exponents = exponents_of(WALKS)
    kept = find_few_pairs(exponents)
    assert kept is not None
    assert np.array_equal(kept, WALKS == 1)
    assert measure_dilation(exponents, kept) <= 1 + 1e-12
    few = find_few_pairs(steps())
    assert few is not None
    assert np.array_equal(few, WALKS == 1)


def test_many_irreducible_pairs_are_not_few() -> None:
    places = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1).astype(float)
    assert find_few_pairs(exponents_of(md.distances.euclidean(places))) is None
    # No near bounds imply a shortcut between distant places.
    shortcut = WALKS.copy()
    shortcut[0, -1] = shortcut[-1, 0] = 11.5
    assert find_few_pairs(exponents_of(shortcut)) is None
    assert find_few_pairs(exponents_of(WALKS[:30, :30])) is None


def test_few_and_many_bounds_are_reduced_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    exponents = np.where(rng.random((60, 60)) < 0.1, rng.random((60, 60)), np.inf)
    np.fill_diagonal(exponents, np.inf)
    found = mark_irreducible(exponents)
    monkeypatch.setattr("mechdesign.synthesis._normal.is_sparse", lambda *sizes: False)
    assert np.array_equal(found, mark_irreducible(exponents))
    assert found.sum() < np.isfinite(exponents).sum()


def test_sizes_account_for_few_bounds() -> None:
    near = md.Problem(PRIOR, WALKS, [md.GraphPrivacy("0.6", STREETS)])
    size = size_of(near, split(near)[0])
    assert size.sparsity is not None
    assert size.sparsity.pairs == 2 * STREETS.number_of_edges()
    every = md.Problem(PRIOR, WALKS, [md.MetricPrivacy("0.6", WALKS)])
    assert size_of(every, split(every)[0]).sparsity == size.sparsity
    floor = md.Problem(PRIOR, WALKS, [md.GraphPrivacy("0.6", STREETS), md.DistortionPrivacy("0.1", WALKS)])
    assert size_of(floor, split(floor)[0]).sparsity is None


def test_sparse_blocks_need_less_memory() -> None:
    dense = Size(2500, 2500)
    sparse = replace(dense, sparsity=Sparsity(2500, 9800, 166_000))
    settings = SolveSettings(options={"memory": 12e9})
    assert not estimate(dense, settings).fits
    assert estimate(sparse, settings).fits
    assert estimate(sparse, settings).rows == 9800 * 2500
    assert estimate(sparse, SolveSettings(options={"arrays": "numpy"})).memory == estimate(dense, settings).memory
