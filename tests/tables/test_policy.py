from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.report import _saving as saving
from mechdesign.tables._charges import parallel_composition
from mechdesign.tables._domain import Domain
from mechdesign.tables._files import Published
from mechdesign.tables._policy import Policy, describe_policy
from mechdesign.tables._sensitivity._sensitivity import neighbouring_databases

LINE = Domain({"x": range(5)})
MIXED = Domain({"age": range(4), "sex": ["f", "m"]})


def test_neighbours_are_said_in_plain_english() -> None:
    for policy, words in [
        (
            Policy.full(MIXED),
            "same number of records and differ in the value of one record, which changes from any value",
        ),
        (Policy.attribute(MIXED), "differs from it in exactly one attribute"),
        (Policy.partition(LINE, [0, 0, 1, 1, 1]), "in the same block of a partition into 2"),
        (Policy.threshold(LINE, 2), "at a distance of at most 2 in x"),
        (Policy.threshold(Domain({"x": range(5), "y": range(2)}), 2), "at a distance of at most 2 in x + y"),
        (
            Policy.attribute(MIXED, theta={"age": 1}),
            "changes from one value of age to another at a distance of at most 1, or from one value of sex to any "
            "other, with all other attributes unchanged.",
        ),
        (
            Policy.attribute(Domain({"x": range(2), "y": range(3), "z": range(3)}), theta={"x": 0, "z": "next"}),
            "changes from one value of z to the next or the previous one, or from one value of y to any other, with "
            "all other attributes unchanged.",
        ),
        (Policy.attribute(LINE, theta={"x": "next"}), "changes from one value of x to the next or the previous one."),
        (Policy.attribute(LINE, theta={"x": "2.50"}), "of x to another at a distance of at most 2.5."),
        (Policy.attribute(LINE, theta={"x": 0}, unbounded=True), "which changes from any value to being absent"),
        (Policy.graph(LINE, [(0, 1), (3, 1)]), "that the given graph joins to it (2 edges)"),
        (Policy.full(LINE, unbounded=True), "or from any value to being absent, or back"),
        (Policy.full(LINE, constraints=[[1, 0, 0, 0, 0]]), "both agree with the publicly known count"),
        (Policy.full(LINE, constraints=[[1, 0, 0, 0, 0]] * 2), "agree with all 2 publicly known counts"),
    ]:
        assert words in policy.neighbours
        assert policy.neighbours.startswith("Two databases are neighbours if they ")
        assert policy.neighbours.endswith(".")
    assert "same number" not in Policy.full(LINE, unbounded=True).neighbours


STAR = [(x, None) for x in range(5)]


def test_edges_to_the_null_node_are_said_wherever_neighbours_are() -> None:
    rows = [
        (STAR, True, "in one record, which changes from any value to being absent, or back."),
        (STAR[:2], True, "in one record, which changes from one of 2 given values to being absent, or back."),
        (STAR[:1], True, "in one record, which changes from one given value to being absent, or back."),
        ([*STAR, (0, 1), (1, 2)], True, "joins to it (2 edges), or from any value to being absent"),
        ([(0, 1), (3, None)], True, "joins to it (1 edge), or from one given value to being absent, or back."),
        ([(0, 1)], False, "of one record, which changes from one value to another that the given graph joins to it (1"),
        ([(0, 1)], True, "joins to it (1 edge), or from any value to being absent, or back."),
        ([], True, "in one record, which changes from any value to being absent, or back."),
        ([], False, "(0 edges)"),
    ]
    for edges, unbounded, words in rows:
        policy = Policy.graph(LINE, edges, unbounded=unbounded)
        assert words in policy.neighbours
        assert ("0 edges" in policy.neighbours) == (not edges and not unbounded), words
        ledger = md.Ledger()
        release = md.tables.Histogram().release([0, 1], policy, epsilon=1, ledger=ledger)
        assert release.description.neighbours == policy.neighbours
        assert [entry.protects for entry in ledger.entries] == [policy.neighbours]
    assert policy.neighbours in saving.html(Published(release))


def test_the_null_node_of_an_explicit_graph() -> None:
    some = Policy.graph(LINE, [(0, 1), (None, 2)], unbounded=True)
    assert some.secret_graph.edges().tolist() == [[0, 1], [2, 5]]
    assert some.sensitivity("histogram") == 2
    only = Policy.graph(LINE, [(None, 2)], unbounded=True)
    assert only.sensitivity("histogram") == only.sensitivity("histogram", norm=2) == 1
    everybody = Policy.graph(LINE, [(0, 1)], unbounded=True)
    assert everybody.secret_graph.edge_count == 6
    g = nx.Graph([(0, 1)])
    assert Policy.graph(LINE, g).secret_graph.edges().tolist() == [[0, 1]]


def test_graphs_from_networkx_and_arrays() -> None:
    edges = [(0, 3), (3, 0), (2, 1), (1, 2)]
    expected = [[0, 3], [1, 2]]
    for g in (edges, np.array(edges), nx.Graph(edges), (pair for pair in edges), [[0, 3], [1, 2]]):
        assert Policy.graph(LINE, g).secret_graph.edges().tolist() == expected
    assert Policy.graph(LINE, []).sensitivity("histogram") == 0
    assert Policy.graph(LINE, []).sensitivity("cumulative") == 0
    assert Policy.graph(LINE, []).sensitivity(np.eye(5)) == 0
    assert Policy.graph(LINE, [], constraints=[[1, 0, 0, 0, 0]]).sensitivity("histogram") == 0


def test_public_attributes_are_said_where_their_counts_are_exact() -> None:
    domain = Domain({"region": ["north", "south"], "age": range(4), "ward": range(2)})
    for theta, more, words in (
        ({"region": 0}, {}, "2 values of ward, where region is public"),
        ({"region": 0, "ward": 0}, {}, "where region and ward are public"),
        ({"region": 0, "age": "next"}, {}, "where region is public"),
        ({"age": 1}, {}, ""),
        ({"region": 0}, {"unbounded": True}, ""),
        ({"region": 0}, {"constraints": [[1] + [0] * 15]}, ""),
    ):
        policy = Policy.attribute(domain, theta=theta, **more)
        assert words in describe_policy(policy), theta
        assert ("public" in describe_policy(policy).replace("publicly", "")) == bool(words), theta
        exact = policy.sensitivity("histogram", partition=[x // 8 for x in range(16)]) == 0
        assert exact == bool(words and "region" in theta), theta


def test_values_at_exactly_the_threshold_are_joined() -> None:
    for values in (
        [k / 10 for k in range(11)],
        [k * 0.1 for k in range(11)],
        (np.arange(11) * 0.1 + 5e6).tolist(),
        [Fraction(k, 10) for k in range(11)],
        list(itertools.accumulate([0.1] * 10, initial=1e6)),
    ):
        for policy in (Policy.threshold, lambda domain, theta: Policy.attribute(domain, theta={"a": theta})):
            assert policy(Domain({"a": values}), 0.1).steps == 1, values
            assert policy(Domain({"a": values}), "0.3").steps == 3, values
        both = Policy.attribute(Domain({"a": values, "b": ["x", "y"]}), theta={"a": 0.2, "b": 0})
        assert both.secret_graph.edge_count == 2 * (10 + 9), values
    for theta in (1, 4, 5, "2.5", 1.5):
        assert Policy.threshold(LINE, theta).secret_graph.edge_count > 0


def test_values_beyond_the_threshold() -> None:
    for last, joined in ((0.7, True), (0.7 + 6e-10, True), (0.7 + 1.5e-9, False), (0.701, False)):
        graph = Policy.threshold(Domain({"a": [0.0, 0.1, last]}), 0.7).secret_graph
        assert graph.edge_count == 2 + joined, last


def test_whole_numbers_and_fractions_have_no_margin() -> None:
    far = Domain({"a": [0, 1, 10**10 + 1]})
    assert Policy.threshold(far, 10**10).secret_graph.edge_count == 2
    assert Policy.threshold(far, 10**10 + 1).secret_graph.edge_count == 3
    thirds = Domain({"a": [Fraction(0), Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**12)]})
    assert Policy.threshold(thirds, Fraction(1, 3)).secret_graph.edge_count == 2
    # A threshold that was computed: 2.0999999999999996.
    assert Policy.threshold(Domain({"a": [Fraction(k, 10) for k in range(30)]}), 3 * 0.7).steps == 21


def test_parallel_composition_without_constraints() -> None:
    assert parallel_composition(Policy.full(LINE))
    assert parallel_composition(Policy.full(LINE, unbounded=True))
    blocks = Policy.partition(LINE, [0, 0, 1, 1, 1], unbounded=True)
    assert parallel_composition(blocks, [0, 0, 1, 1, 1])
    crossing = parallel_composition(Policy.threshold(LINE, 1), [0, 0, 1, 1, 1])
    assert not crossing.allowed
    assert crossing.edge == (1, 2)


def test_parallel_composition_under_constraints() -> None:
    # Known numbers of men and women: two people in different groups may swap.
    sexes = Policy.full(MIXED, constraints=[[1, 0] * 4, [0, 1] * 4])
    found = parallel_composition(sexes)
    assert not found.allowed
    assert found.constraint == 0
    # The example after Theorem 4.3: counts of whole components that no edge changes.
    components = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]]
    blocks = Policy.partition(LINE, [0, 0, 1, 1, 1], constraints=components)
    assert parallel_composition(blocks)
    assert parallel_composition(blocks, [0, 0, 1, 1, 1])
    # A count within one block: who leaves it is made up for by somebody of the other block who comes.
    within = Policy.partition(LINE, [0, 0, 1, 1, 1], constraints=[[0, 0, 1, 0, 0]])
    assert not parallel_composition(within)
    assert not parallel_composition(within, [0, 0, 1, 1, 1])
    assert ((0, 2), (2, 3)) in set(neighbouring_databases(within, 2))
    across = Policy.partition(LINE, [0, 0, 1, 1, 1], constraints=[[1, 0, 1, 0, 0]])
    found = parallel_composition(across, [0, 0, 1, 1, 1])
    assert not found.allowed
    assert found.constraint == 0
    assert "one of the parts" in found.reason
