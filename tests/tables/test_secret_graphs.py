from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from database_policies import BOXES, EXAMPLES, LINE, UNEVEN

from mechdesign.errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy

CASES = [(example, unbounded) for example in (*EXAMPLES, *BOXES) for unbounded in (False, True)]


def edge_set(edges: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in edges.tolist()}


def test_edges_are_those_of_the_rule_each_once() -> None:
    for example, unbounded in CASES:
        graph = example.policy(unbounded=unbounded).secret_graph
        edges = graph.edges()
        assert (edges[:, 0] < edges[:, 1]).all(), example.name
        assert len(edges) == graph.edge_count == len(example.edges(unbounded)), example.name
        assert edge_set(edges) == example.edges(unbounded), example.name
        assert graph.has_null is unbounded
        assert graph.size == example.domain.size


def test_has_edge_and_components() -> None:
    for example, unbounded in CASES:
        graph = example.policy(unbounded=unbounded).secret_graph
        n = graph.node_count
        x, y = np.meshgrid(np.arange(n), np.arange(n))
        expected = np.zeros((n, n), dtype=bool)
        for a, b in map(tuple, example.edges(unbounded)):
            expected[a, b] = expected[b, a] = True
        assert (graph.has_edge(x, y) == expected).all(), example.name
        plain = nx.from_numpy_array(expected)
        labels = graph.components()
        for component in nx.connected_components(plain):
            assert len({int(labels[node]) for node in component}) == 1, example.name
        assert len(set(labels.tolist())) == nx.number_connected_components(plain), example.name


def test_closed_forms_equal_a_walk_over_the_edges() -> None:
    generator = np.random.default_rng(0)
    for example, unbounded in CASES:
        graph = example.policy(unbounded=unbounded).secret_graph
        edges = {tuple(sorted(edge)) for edge in example.edges(unbounded)}
        null = graph.size
        for _ in range(3):
            weights = generator.integers(-5, 6, graph.size)
            labels = generator.integers(0, 3, graph.size)
            w, c = [*weights.tolist(), 0], [*labels.tolist(), -1]
            found = graph.spread(weights)
            assert found.value == max(abs(w[x] - w[y]) for x, y in edges), example.name
            assert found.edge in edges
            assert abs(w[found.edge[0]] - w[found.edge[1]]) == found.value

            same = [abs(w[x] - w[y]) for x, y in edges if c[x] == c[y] or y == null]
            assert graph.spread(weights, labels).value == max(same, default=0), example.name

            r = [*np.abs(weights).tolist(), 0]
            assert graph.largest_sum(np.abs(weights)).value == max(r[x] + r[y] for x, y in edges), example.name
            apart = [r[x] + r[y] for x, y in edges if c[x] != c[y]]
            assert graph.largest_sum(np.abs(weights), labels).value == max(apart, default=0), example.name

            crossing = [(x, y) for x, y in edges if y != null and c[x] != c[y]]
            assert (graph.crossing(labels) in crossing) if crossing else graph.crossing(labels) is None, example.name

            c[-1] = max(c) + 1
            pairs = {tuple(sorted((c[x], c[y]))) for x, y in edges}
            joined = graph.joined(labels)
            assert {tuple(edge) for edge in joined.tolist()} <= edges, example.name
            assert {tuple(sorted((c[x], c[y]))) for x, y in joined.tolist()} == pairs, example.name
            assert len(joined) == len(pairs), example.name


def test_blocks_hold_the_edges_of_large_graphs() -> None:
    for policy in (Policy.full(Domain({"x": range(1500)})), Policy.threshold(Domain({"x": range(20_000)}), 60)):
        blocks = list(policy.secret_graph.edge_blocks())
        assert len(blocks) > 1
        assert sum(map(len, blocks)) == policy.secret_graph.edge_count
        assert max(map(len, blocks)) < 2_000_000


def test_large_graphs_are_refused_a_list_of_edges() -> None:
    graph = Policy.attribute(Domain({"x": range(1000), "y": range(1000)})).secret_graph
    assert graph.edge_count == 1000 * 1000 * 999
    with pytest.raises(InputError, match="too many edges"):
        graph.edges()
    with pytest.raises(InputError, match="at most 14"):
        Policy.full(LINE).secret_graph.edges(14)
    assert len(Policy.full(LINE).secret_graph.edges(15)) == 15


def test_steps_of_ordered_graphs() -> None:
    for policy, steps in [
        (Policy.full(LINE), 5),
        (Policy.threshold(LINE, 1), 1),
        (Policy.threshold(LINE, 2), 2),
        (Policy.threshold(LINE, 2, unbounded=True), 2),
        (Policy.threshold(LINE, 6), 5),
        (Policy.threshold(Domain({"x": range(0, 60, 10)}), 25), 2),
        (Policy.threshold(Domain({"x": [0.1, 0.2, 0.3, 0.4]}), 0.2), 2),
        (Policy.threshold(UNEVEN, 4.5), None),
        (Policy.attribute(UNEVEN, theta={"x": "next"}), 1),
        (Policy.attribute(LINE, theta={"x": 2}), 2),
        (Policy.attribute(LINE, theta={"x": 0}, unbounded=True), None),
        (Policy.attribute(UNEVEN, theta={"x": 4.5}), None),
        (Policy.partition(LINE, [0] * 6), 5),
        (Policy.partition(LINE, [0] * 3 + [1] * 3), None),
        (Policy.graph(LINE, [(0, 1)]), None),
        (Policy.attribute(LINE), 5),
        (Policy.attribute(Domain({"a": range(2), "b": range(3)})), None),
    ]:
        assert policy.steps == steps, policy
