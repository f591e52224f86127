from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from database_oracle import histogram, largest_change, neighbours
from database_policies import EXAMPLES, Example
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.blowfish import Domain, Policy, constraint_sensitivity, marginal_constraints
from mechdesign.blowfish.brute_force import neighbouring_databases
from mechdesign.blowfish.constraint_effects import Effects
from mechdesign.blowfish.constraints import as_constraints
from mechdesign.blowfish.contradictions import contradictory
from mechdesign.blowfish.longest_walks import longest_walks
from mechdesign.blowfish.zero_sums import longest_zero_sum
from mechdesign.errors import InputError

QUERIES = {
    "one range": [[0, 1, 1, 0]],
    "one value": [[0, 1, 0, 0]],
    "two ranges": [[1, 0, 0, 0], [0, 1, 0, 0]],
    "overlapping": [[1, 1, 0, 0], [0, 1, 1, 0]],
    "nested": [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]],
    "opposite": [[1, 1, 0, 0], [0, 0, 1, 1]],
    "all": [[1, 1, 1, 1]],
    "none": [[0, 0, 0, 0]],
    "cells": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
}
FOUR = Domain({"x": range(4)})
SQUARE = Domain({"a": range(2), "b": range(2)})
POLICIES = {
    "full": Policy.full,
    "line": Policy.line,
    "threshold": lambda domain, **keywords: Policy.threshold(domain, 2, **keywords),
    "partition": lambda domain, **keywords: Policy.partition(domain, [0, 1, 0, 1], **keywords),
    "graph": lambda domain, **keywords: Policy.graph(domain, [(0, 2), (1, 2)], **keywords),
    "attribute": lambda domain, **keywords: Policy.attribute(SQUARE, **keywords),
}


def edges_of(policy: Policy) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in policy.secret_graph.edges().tolist()}


def brute_force(policy: Policy, records: int) -> float:
    nodes = policy.secret_graph.node_count
    rows = [[*constraint.counted.astype(int), 0] for constraint in policy.constraints]
    pairs = neighbours(edges_of(policy), nodes, records, rows)
    return largest_change(histogram(policy.domain.size), pairs, 1)


@pytest.mark.parametrize("unbounded", [False, True])
@pytest.mark.parametrize("queries", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("build", POLICIES.values(), ids=POLICIES.keys())
def test_the_histogram_under_constraints_is_never_below_brute_force(build, queries, unbounded: bool) -> None:
    policy = build(FOUR, constraints=queries, unbounded=unbounded)
    found = constraint_sensitivity(policy)
    assert policy.sensitivity("histogram") == found.value
    records = 3 if unbounded else 4
    truth = brute_force(policy, records)
    assert truth <= found.value
    if found.exact and found.moves <= records:
        assert truth == found.value


@pytest.mark.parametrize("queries", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("build", POLICIES.values(), ids=POLICIES.keys())
def test_a_witness_is_a_pair_of_neighbours_at_the_distance(build, queries) -> None:
    policy = build(FOUR, constraints=queries)
    found = constraint_sensitivity(policy)
    if not found.exact:
        return
    first, second = (tuple(ends) for ends in zip(*found.witness, strict=True))
    pairs = set(neighbours(edges_of(policy), 4, len(first), queries))
    assert (first, second) in pairs
    assert largest_change(histogram(4), iter([(first, second)]), 1) == found.value


def test_random_policies_of_five_values() -> None:
    generator = np.random.default_rng(8)
    domain = Domain({"x": range(5)})
    for trial in range(20):
        edges = [edge for edge in itertools.combinations(range(5), 2) if generator.random() < 0.6]
        queries = generator.integers(0, 2, (generator.integers(1, 4), 5)).tolist()
        policy = Policy.graph(domain, edges, constraints=queries, unbounded=trial % 3 == 0)
        found = constraint_sensitivity(policy)
        records = 3 if policy.unbounded else 4
        truth = brute_force(policy, records)
        assert found.exact
        assert truth <= found.value
        if found.moves <= records:
            assert truth == found.value


def test_two_chained_queries_reach_six_and_one_range_four() -> None:
    # 2 max(|Q|, 1) would be 4 and 2.
    one = Policy.line(FOUR, constraints=[[0, 1, 1, 0]])
    assert constraint_sensitivity(one).value == brute_force(one, 2) == 4
    assert constraint_sensitivity(one).exact
    two = Policy.line(Domain({"x": range(6)}), constraints=[[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]])
    assert constraint_sensitivity(two).value == brute_force(two, 3) == 6
    assert constraint_sensitivity(two).exact


def test_every_changed_record_moves_along_an_edge() -> None:
    # Read literally, Definition 4.1 would let other records compensate along pairs that are no edges.
    policy = Policy.graph(Domain({"x": range(5)}), [(0, 1)], constraints=[[0, 1, 0, 0, 1]])
    assert brute_force(policy, 3) == 0
    found = constraint_sensitivity(policy)
    assert (found.value, found.moves, found.exact) == (0, 2, True)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_random_constraints_are_never_below_brute_force(example: Example) -> None:
    generator = np.random.default_rng(5)
    size = example.domain.size
    for number in (1, 2, 2):
        policy = example.policy(constraints=generator.integers(0, 2, (number, size)))
        records = 3 if size <= 6 else 2
        found = constraint_sensitivity(policy)
        truth = brute_force(policy, records)
        assert truth <= found.value
        if found.exact and found.moves <= records:
            assert truth == found.value


def test_the_search_of_the_package_agrees_with_the_definition() -> None:
    for build, queries in itertools.product(POLICIES.values(), [[], *QUERIES.values()]):
        policy = build(FOUR, constraints=queries)
        expected = {(x, y) for x, y in neighbours(edges_of(policy), 4, 3, queries) if x < y}
        assert {tuple(sorted(pair)) for pair in neighbouring_databases(policy, 3)} == expected
    known = Policy.full(FOUR, constraints=[([1, 0, 0, 0], 1)])
    expected = {(x, y) for x, y in neighbours(edges_of(known), 4, 2, [[1, 0, 0, 0]], [1]) if x < y}
    assert {tuple(sorted(pair)) for pair in neighbouring_databases(known, 2)} == expected


def test_marginals() -> None:
    domain = Domain({"age": range(5), "sex": ["f", "m"], "town": ["p", "q", "r"]})
    for names, cells in [(["sex"], 2), (["town"], 3), (["sex", "town"], 6), (["age"], 5)]:
        found = constraint_sensitivity(Policy.full(domain, constraints=marginal_constraints(domain, names)))
        assert (found.value, found.exact, found.sparse) == (2 * cells, True, True)
    both = marginal_constraints(domain, ["sex"]) + marginal_constraints(domain, ["town"])
    found = constraint_sensitivity(Policy.attribute(domain, constraints=both))
    assert (found.value, found.exact) == (6, True)
    assert not constraint_sensitivity(Policy.full(domain, constraints=both[:3])).sparse
    many = Domain({"x": range(40), "y": range(3)})
    found = constraint_sensitivity(Policy.full(many, constraints=marginal_constraints(many, ["x"])))
    assert (found.value, found.exact) == (80, True)


def test_disjoint_ranges_under_a_distance_threshold() -> None:
    numbers = np.arange(1000)
    ranges = [(numbers >= low) & (numbers < low + 10) for low in (100, 120, 140, 300, 315, 330, 345, 800)]
    domain = Domain({"x": range(1000)})
    # Ranges whose gaps are below θ hang together: 2 (largest group + 1).
    for theta, group in [(5, 1), (6, 4), (10, 4), (11, 4), (200, 7), (999, 8)]:
        found = constraint_sensitivity(Policy.threshold(domain, theta, constraints=ranges))
        assert (found.value, found.exact) == (2 * (group + 1), True), theta


def test_beyond_the_search_limit_the_bound_is_safe() -> None:
    # A random linked set of 20 single values of a graph: not in order, no tree, not complete.
    generator = np.random.default_rng(6)
    g = nx.gnp_random_graph(24, 0.2, seed=7)
    policy = Policy.graph(
        Domain({"x": range(24)}), g, constraints=np.eye(24, dtype=int)[generator.permutation(24)[:20]]
    )
    found = constraint_sensitivity(policy)
    assert not found.exact
    assert found.value <= 2 * 21
    assert found.value >= 2 * len(found.witness)
    crossed = Policy.full(
        Domain({"a": range(3), "b": range(3)}),
        constraints=[np.arange(9) // 3 == i for i in range(3)] + [np.arange(9) % 3 == i for i in range(3)],
    )
    found = constraint_sensitivity(crossed)
    assert not found.sparse
    assert not found.exact
    assert found.value == 2 * 9**4


@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_longest_walks_against_all_simple_paths_and_cycles(n: int, random) -> None:
    links = nx.Graph()
    links.add_nodes_from(range(n))
    links.add_edges_from(pair for pair in itertools.combinations(range(n), 2) if random.random() < 0.4)
    ports = {node for node in range(n) if random.random() < 0.5}
    both_ways = links.to_directed()
    best = max((len(cycle) for cycle in nx.simple_cycles(both_ways)), default=0)
    both_ways.add_edges_from(("+", port) for port in ports)
    both_ways.add_edges_from((port, "-") for port in ports)
    if ports:
        best = max(best, *(len(path) - 1 for path in nx.all_simple_paths(both_ways, "+", "-")))
    walks, bound = longest_walks(links, ports, list(range(n)))
    assert bound == best
    assert all(walk.length == best for walk in walks)
    assert bool(walks) == bool(best)
    for walk in walks:
        assert len(set(walk.nodes)) == len(walk.nodes)
        assert all(links.has_edge(a, b) for a, b in itertools.pairwise(walk.nodes))
        ends = {walk.nodes[0], walk.nodes[-1]}
        assert links.has_edge(walk.nodes[-1], walk.nodes[0]) if walk.cyclic else ends <= ports


@pytest.mark.parametrize("queries", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("build", POLICIES.values(), ids=POLICIES.keys())
def test_longest_walk_of_sparse_constraints_is_the_longest_zero_sum(build, queries) -> None:
    policy = build(FOUR, constraints=queries)
    effects = Effects.of(policy.secret_graph, policy.constraints)
    if effects.sparse and effects.kept:
        sequence, bound = longest_zero_sum([effect for effect in effects.by_effect if effect != ((), ())])
        assert len(sequence) == bound == constraint_sensitivity(policy).moves


@pytest.mark.parametrize(
    ("constraints", "guilty"),
    [
        ([([1, 1, 0, 0], 3), ([0, 1, 1, 0], 5)], ()),
        ([([1, 1, 0, 0], 3), ([1, 1, 0, 0], 4)], (0, 1)),
        ([([1, 0, 0, 0], 3), ([0, 0, 1, 0], 9), ([0, 1, 0, 0], 2), ([1, 1, 0, 0], 4)], (0, 2, 3)),
        ([([1, 1, 1, 1], 3), ([1, 0, 0, 0], 4)], (0, 1)),
        ([([0, 0, 0, 0], 1)], (0,)),
        ([([0, 0, 0, 0], 0), [1, 0, 0, 0]], ()),
    ],
)
def test_contradictory_counts_are_named(constraints, guilty: tuple[int, ...]) -> None:
    if not guilty:
        assert len(Policy.full(FOUR, constraints=constraints).constraints) == len(constraints)
        return
    with pytest.raises(InputError, match=r"constraints\[") as caught:
        Policy.full(FOUR, constraints=constraints)
    assert all(f"constraints[{index}] = " in str(caught.value) for index in guilty)


def test_a_contradiction_only_in_whole_numbers_is_found() -> None:
    # Two records of the three pairs would have to be halves.
    pairs = Domain({"pair": ["ab", "bc", "ca"]})
    counted = [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
    with pytest.raises(InputError, match="contradict"):
        Policy.full(pairs, constraints=[(row, 1) for row in counted])
    assert Policy.full(pairs, constraints=[(row, 2) for row in counted]).constraints
    assert Policy.full(pairs, constraints=[(row, 1) for row in counted[:2]]).constraints


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 1), min_size=4, max_size=4), st.integers(0, 3)), min_size=1, max_size=4)
)
def test_contradictions_against_enumeration(constraints) -> None:
    def possible(chosen) -> bool:
        return any(
            all(sum(c for c, q in zip(counts, row, strict=True) if q) == known for row, known in chosen)
            for counts in itertools.product(range(4), repeat=4)
        )

    guilty = contradictory(as_constraints(constraints, 4), 4)
    assert possible(constraints) == (not guilty)
    chosen = [constraints[index] for index in guilty]
    assert not guilty or not possible(chosen)
    assert all(possible(chosen[:i] + chosen[i + 1 :]) for i in range(len(chosen)))


@pytest.mark.parametrize(
    ("constraints", "path"),
    [
        (5, "constraints"),
        ("text", "constraints"),
        ([[0, 1]], "constraints[0]"),
        ([[0, 1, 2, 0]], "constraints[0][2]"),
        ([[0, 0.5, 0, 0]], "constraints[0][1]"),
        ([["a", "b", "c", "d"]], "constraints[0]"),
        ([[0, 1, 0, 0], ([0, 1, 0, 0], -1)], "constraints[1]"),
        ([([0, 1, 0, 0], 1.5)], "constraints[0]"),
        ([([0, 1, 0, 0], True)], "constraints[0]"),
        ([([0, 1, 0, 0], 10**12)], "constraints[0]"),
    ],
)
def test_wrong_constraints_are_refused(constraints, path: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy.full(FOUR, constraints=constraints)
    assert caught.value.path == path


def test_a_pair_of_a_domain_of_two_values() -> None:
    two = Domain({"x": range(2)})
    assert Policy.full(two, constraints=[[0, 1]]).constraints[0].known is None
    assert Policy.full(two, constraints=[([0, 1], 7)]).constraints[0].known == 7


def test_marginal_tables_with_counts() -> None:
    domain = Domain({"age": range(2), "sex": ["f", "m"]})
    pairs = marginal_constraints(domain, ["sex", "age"], [[1, 2], [3, 4]])
    assert [(array.astype(int).tolist(), known) for array, known in pairs] == [
        ([1, 0, 0, 0], 1),
        ([0, 0, 1, 0], 2),
        ([0, 1, 0, 0], 3),
        ([0, 0, 0, 1], 4),
    ]
    with pytest.raises(InputError, match="wrong shape"):
        marginal_constraints(domain, ["sex"], [1, 2, 3])
    with pytest.raises(InputError, match="one of age, sex"):
        marginal_constraints(domain, ["height"])


def test_data_are_checked_against_known_counts() -> None:
    policy = Policy.full(FOUR, constraints=[([1, 1, 0, 0], 3), [0, 1, 0, 0]])
    policy.check_counts([1, 2, 5, 0])
    with pytest.raises(InputError, match=r"constraints\[0\]: does not hold"):
        policy.check_counts([1, 1, 5, 0])
    with pytest.raises(InputError, match="wrong shape"):
        policy.check_counts([1])
