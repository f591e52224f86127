from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import ANSWERS, norm_by_program, states, under

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError
from mechdesign.graphs._exposure import hull_level, protected_pairs


def test_figure_9a_and_pglp_figure_11_disconnected_but_not_exposed() -> None:
    """s2 is disconnected under {s2, s4, s5, s6}, and hidden by s4 and s5: DoP 3. s5 is on the boundary of f(s2) + K."""
    graph = under(2, 4, 5, 6)
    s2, s4, s5, s6 = states(2, 4, 5, 6)
    assert graphs.degree_of_protection(ANSWERS, graph, s2) == 3
    assert graphs.degree_of_protection(ANSWERS, graph) == {s2: 3, s4: 4, s5: 4, s6: 3}
    assert graphs.exposed(ANSWERS, graph).size == 0
    assert protected_pairs(ANSWERS, graph).tolist() == [[s2, s4], [s2, s5], [s4, s5], [s4, s6], [s5, s6]]


def test_with_the_hull_of_its_component_the_same_node_is_exposed() -> None:
    graph = under(2, 4, 5, 6)
    assert graphs.exposed(ANSWERS, graph, hull="component").tolist() == states(2)
    assert graphs.degree_of_protection(ANSWERS, graph, 1, hull="component") == 1


def test_example_5_2_and_pglp_figure_3_s5_is_exposed() -> None:
    graph = under(2, 3, 5)
    for hull in ("graph", "component", graphs.SensitivityHull.of(2 * np.eye(2))):
        assert graphs.exposed(ANSWERS, graph, hull=hull).tolist() == states(5)
    # With Laplace noise of sensitivity 3 it would not be: 3/2 becomes 1.
    assert graphs.exposed(ANSWERS, graph, hull=graphs.SensitivityHull.of(3 * np.eye(2))).size == 0


def test_figure_9b_and_pglp_figure_4a_s3_is_exposed() -> None:
    assert graphs.exposed(ANSWERS, under(3, 4, 5, 6)).tolist() == states(3)
    assert graphs.degree_of_protection(ANSWERS, under(3, 4, 5, 6))[2] == 1


def test_a_complete_graph_is_protectable_and_a_single_node_is_not() -> None:
    assert graphs.exposed(ANSWERS, graphs.complete(6)).size == 0
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
@settings(max_examples=20, deadline=None)
def test_exposure_pairs_and_levels_against_linear_programs(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    points = rng.integers(-2, 3, (n, d)).astype(float)
    graph = graphs.from_edges(n, [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.25])
    kept = graphs.constrain(graph, np.flatnonzero(np.r_[True, rng.random(n - 1) < 0.8]))
    # As an array, three points in three dimensions may look like distances, which are refused.
    domain = md.Domain.from_points(points)

    @functools.cache
    def norm(generators: tuple[tuple[float, ...], ...], v: tuple[float, ...]) -> float:
        if not generators:
            return np.inf if any(v) else 0.0
        return norm_by_program(np.array(generators), np.array(v)) if any(v) else 0.0

    def between(i: int, j: int) -> tuple[float, ...]:
        return tuple((points[max(i, j)] - points[min(i, j)]).tolist())

    def hull_of(nodes: Iterable[int]) -> tuple[tuple[float, ...], ...]:
        return tuple(sorted({between(i, j) for i, j in kept.subgraph(nodes).edges} - {(0.0,) * d}))

    def equal(one: tuple[tuple[float, ...], ...], other: tuple[tuple[float, ...], ...]) -> bool:
        return one == other or all(
            norm(a, v) <= 1 + 1e-9 for a, b in ((one, other), (other, one)) for v in b
        )  # fmt: skip

    whole = {i: hull_of(kept) for i in kept}
    own = {i: hull_of(part) for part in nx.connected_components(kept) for i in part}
    for hull, body in (("graph", whole), ("component", own)):
        pairs = [
            [i, j]
            for i, j in itertools.combinations(sorted(kept), 2)
            if equal(body[i], body[j]) and norm(body[i], between(i, j)) <= 1 + 1e-9
        ]
        assert protected_pairs(domain, kept, hull=hull).tolist() == pairs
        expected = {i: 1 + sum(i in pair for pair in pairs) for i in sorted(kept)}
        assert graphs.degree_of_protection(domain, kept, hull=hull) == expected
        assert {i: graphs.degree_of_protection(domain, kept, i, hull=hull) for i in expected} == expected
        assert graphs.exposed(domain, kept, hull=hull).tolist() == [i for i, count in expected.items() if count == 1]
    level = max((norm(whole[i], between(i, j)) for i, j in itertools.combinations(sorted(kept), 2)), default=0.0)
    K = graphs.sensitivity_hull(domain, kept)
    assert hull_level(domain, K, "0.5", support=sorted(kept)) == pytest.approx(0.5 * level, rel=1e-9)


def test_the_pairs_that_a_hull_protects_make_an_equal_policy() -> None:
    graph = under(2, 4, 5, 6)
    more = graphs.union(graph, graphs.from_edges(6, protected_pairs(ANSWERS, graph)))
    K, L = (graphs.sensitivity_hull(ANSWERS, one) for one in (graph, more))
    np.testing.assert_array_equal(K.vertices, L.vertices)


def test_wrong_input_is_refused() -> None:
    for build in (
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), 0),
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), -1),
        lambda: graphs.degree_of_protection(ANSWERS, under(2, 3), 1.5),
        lambda: graphs.degree_of_protection(ANSWERS[:3], under(2, 5)),
        lambda: graphs.exposed(ANSWERS, under(2, 3), hull="whole"),
        lambda: graphs.exposed(ANSWERS, under(2, 3), hull=graphs.SensitivityHull.of([[1.0]])),
        lambda: graphs.exposed(np.full((6, 2), np.nan), under(2, 3)),
        lambda: graphs.exposed(md.Domain.from_labels("abcdef"), under(2, 3)),
    ):
        with pytest.raises(InputError):
            build()
