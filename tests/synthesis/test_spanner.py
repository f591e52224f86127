import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.synthesis._normal import mark_irreducible, measure_dilation


def grid_exponents(columns, rows):
    exponents = np.array(md.distances.euclidean(md.Domain.grid(columns, rows, columns, rows)))
    np.fill_diagonal(exponents, np.inf)
    return exponents


def test_on_a_grid_the_coprime_offsets_remain():
    columns, rows = 7, 5
    kept = mark_irreducible(grid_exponents(columns, rows))
    for s, t in itertools.permutations(range(columns * rows), 2):
        across, up = abs(s % columns - t % columns), abs(s // columns - t // columns)
        assert kept[s, t] == (math.gcd(across, up) == 1)


def test_on_the_papers_grid_61_percent_remain():
    exponents = grid_exponents(20, 15)
    assert mark_irreducible(exponents).sum() / np.isfinite(exponents).sum() == pytest.approx(0.61, abs=0.005)


def test_a_near_set_of_eight_neighbours_has_the_stated_dilation():
    exponents = grid_exponents(6, 6)
    near = mark_irreducible(exponents, 1.0824)
    assert (exponents[near] < 1.5).all()
    assert measure_dilation(exponents, near) == pytest.approx(1 / math.cos(math.pi / 8), abs=1e-3)
    assert measure_dilation(exponents, exponents <= 1) == pytest.approx(math.sqrt(2))


def test_dilation_of_everything_is_one_and_of_too_little_is_infinite():
    exponents = grid_exponents(3, 2)
    assert measure_dilation(exponents, np.isfinite(exponents)) == 1.0
    assert measure_dilation(exponents, np.zeros_like(exponents, dtype=bool)) == math.inf
    assert measure_dilation(np.full((2, 2), np.inf), np.zeros((2, 2), dtype=bool)) == 1.0


@st.composite
def matrices(draw):
    n = draw(st.integers(1, 7))
    values = draw(st.lists(st.sampled_from([1, 2, 3, 4.5, 7, 0.1, 1e-9, np.inf]), min_size=n * n, max_size=n * n))
    matrix = np.array(values, dtype=float).reshape(n, n)
    np.fill_diagonal(matrix, np.inf)
    return matrix


def shortest(exponents, kept):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(exponents)))
    graph.add_weighted_edges_from((s, t, exponents[s, t]) for s, t in np.argwhere(kept).tolist())
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    return np.array([[lengths[s].get(t, np.inf) for t in range(len(exponents))] for s in range(len(exponents))])


@settings(max_examples=50)
@given(matrices())
def test_irreducible_pairs_imply_the_rest_for_any_matrix(exponents):
    kept = mark_irreducible(exponents)
    closure = shortest(exponents, np.isfinite(exponents))
    from_kept = shortest(exponents, kept)
    off = ~np.eye(len(exponents), dtype=bool)
    np.testing.assert_allclose(from_kept[off], closure[off], rtol=1e-11)


@settings(max_examples=50)
@given(matrices(), st.floats(1.0, 3.0))
def test_the_dilation_is_what_paths_over_kept_pairs_guarantee(exponents, allowed):
    kept = mark_irreducible(exponents, allowed)
    paths = shortest(exponents, kept)
    required = np.isfinite(exponents)
    assert (paths[required] <= exponents[required] * measure_dilation(exponents, kept) * (1 + 1e-12)).all()
