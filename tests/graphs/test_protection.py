from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import ANSWERS, norm_by_program, states, under

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError


def test_figure_9a_and_pglp_figure_11_disconnected_but_not_exposed() -> None:
    """s2 is disconnected under {s2, s4, s5, s6}, and hidden by s4 and s5: DoP 3. s5 is on the boundary of f(s2) + K."""
    graph = under(2, 4, 5, 6)
    s2, s4, s5, s6 = states(2, 4, 5, 6)
    assert graphs.degree_of_protection(ANSWERS, graph, s2) == 3
    assert graphs.degree_of_protection(ANSWERS, graph) == {s2: 3, s4: 4, s5: 4, s6: 3}
    assert graphs.exposed(ANSWERS, graph).size == 0
    assert graphs.protectable(ANSWERS, graph)
    assert graphs.protected_pairs(ANSWERS, graph).tolist() == [[s2, s4], [s2, s5], [s4, s5], [s4, s6], [s5, s6]]


def test_with_the_hull_of_its_component_the_same_node_is_exposed() -> None:
    graph = under(2, 4, 5, 6)
    assert graphs.exposed(ANSWERS, graph, hull="component").tolist() == states(2)
    assert graphs.degree_of_protection(ANSWERS, graph, 1, hull="component") == 1
    assert not graphs.protectable(ANSWERS, graph, hull="component")


def test_example_5_2_and_pglp_figure_3_s5_is_exposed() -> None:
    graph = under(2, 3, 5)
    for hull in ("graph", "component", graphs.SensitivityHull.of(2 * np.eye(2))):
        assert graphs.exposed(ANSWERS, graph, hull=hull).tolist() == states(5)
    # With Laplace noise of sensitivity 3 it would not be: 3/2 becomes 1.
    assert graphs.protectable(ANSWERS, graph, hull=graphs.SensitivityHull.of(3 * np.eye(2)))


def test_figure_9b_and_pglp_figure_4a_s3_is_exposed() -> None:
    assert graphs.exposed(ANSWERS, under(3, 4, 5, 6)).tolist() == states(3)
    assert graphs.degree_of_protection(ANSWERS, under(3, 4, 5, 6))[2] == 1


def test_a_complete_graph_is_protectable_and_a_single_node_is_not() -> None:
    assert graphs.protectable(ANSWERS, graphs.complete(6))
    assert set(graphs.degree_of_protection(ANSWERS, graphs.complete(6)).values()) == {6}
    assert graphs.exposed(ANSWERS, under(4)).tolist() == states(4)
    assert graphs.exposed([[1.0]], graphs.complete(1)).tolist() == [0]


def test_coincident_points_protect_each_other() -> None:
    points = [[0.0, 0.0], [0.0, 0.0], [5.0, 0.0], [5.0, 1.0], [5.0, 0.0]]
    graph = graphs.from_edges(5, [[2, 3]])
    # One hull for all: whatever is at the same place is hidden by it.
    assert graphs.degree_of_protection(points, graph) == {0: 2, 1: 2, 2: 3, 3: 3, 4: 3}
    # Node 4 is released exactly, nodes 2 and 3 with noise: they can be told apart, though 2 and 4 are at one place.
    assert graphs.degree_of_protection(points, graph, hull="component") == {0: 2, 1: 2, 2: 2, 3: 2, 4: 1}
    assert graphs.exposed(points, graph, hull="component").tolist() == [4]


def test_equal_blocks_protect_each_other_across_their_borders() -> None:
    """All blocks have one hull, up to rounding: then the two notions agree, and cells beyond the border count."""
    domain = md.Domain.grid(6, 6, 4.1, 4.1)
    graph = graphs.blocks(domain, 3)
    found = graphs.degree_of_protection(domain, graph, hull="component")
    assert found == graphs.degree_of_protection(domain, graph)
    # K is the square of two cells each way.
    assert found[0] == 9
    assert found[14] == 25
    # A block that lacks its corner has another hull: its four cells near cell 14 hide that no more.
    cut = graphs.constrain(graph, range(35))
    assert graphs.degree_of_protection(domain, cut, 14) == 25
    assert graphs.degree_of_protection(domain, cut, 14, hull="component") == 25 - 4


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_against_brute_force_by_linear_programs(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    points = rng.integers(-3, 4, (n, d)).astype(float)
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.25]
    graph = graphs.from_edges(n, edges)
    kept = graphs.constrain(graph, np.flatnonzero(np.r_[True, rng.random(n - 1) < 0.8]))
    differences = np.array([points[i] - points[j] for i, j in kept.edges()]).reshape(-1, d)

    def inside(v: np.ndarray) -> bool:
        return not v.any() or (len(differences) > 0 and norm_by_program(differences, v) <= 1 + 1e-9)

    # As an array, three points in three dimensions may look like distances, which are refused.
    domain = md.Domain.from_points(points)
    expected = {int(i): sum(inside(points[j] - points[i]) for j in kept) for i in sorted(kept)}
    assert graphs.degree_of_protection(domain, kept) == expected
    assert {i: graphs.degree_of_protection(domain, kept, i) for i in expected} == expected
    assert graphs.exposed(domain, kept).tolist() == [i for i, count in expected.items() if count == 1]
    pairs = graphs.protected_pairs(domain, kept)
    assert {tuple(sorted(edge)) for edge in kept.edges()} <= {tuple(pair) for pair in pairs.tolist()}
    assert len(pairs) * 2 + len(kept) == sum(expected.values())


def test_the_pairs_that_a_hull_protects_make_an_equal_policy() -> None:
    graph = under(2, 4, 5, 6)
    more = graphs.union(graph, graphs.from_edges(6, graphs.protected_pairs(ANSWERS, graph)))
    K, L = (graphs.sensitivity_hull(ANSWERS, one) for one in (graph, more))
    np.testing.assert_array_equal(K.vertices, L.vertices)


@pytest.mark.parametrize(
    "build",
    [
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), 0),
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), -1),
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), 1.5),
        lambda: graphs.degree_of_protection(ANSWERS[:3], under(2, 5)),
        lambda: graphs.exposed(ANSWERS, under(2, 3), hull="whole"),
        lambda: graphs.exposed(ANSWERS, under(2, 3), hull=graphs.SensitivityHull.of([[1.0]])),
        lambda: graphs.exposed(np.full((6, 2), np.nan), under(2, 3)),
        lambda: graphs.protectable(md.Domain.from_labels("abcdef"), under(2, 3)),
    ],
)
def test_wrong_input_is_refused(build) -> None:
    with pytest.raises(InputError):
        build()
