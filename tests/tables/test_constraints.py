from __future__ import annotations

import itertools
import operator
from fractions import Fraction

import numpy as np
import pytest
from database_oracle import histogram, largest_change, neighbours
from database_policies import EXAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import known_counts as brute
from mechdesign.errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._known_counts import (
    as_constraints,
    bound_length,
    find_contradiction,
    find_rank,
    marginal_constraints,
    minimal_zero_sums,
)
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._linear import Histogram
from mechdesign.tables._sensitivity import _constrained as known_counts
from mechdesign.tables._sensitivity import _linear as linear_queries
from mechdesign.tables._sensitivity._constrained import ConstraintSensitivity, constraint_sensitivity
from mechdesign.tables._sensitivity._linear import LargestChange
from mechdesign.tables._sensitivity._sensitivity import neighbouring_databases, sensitivity

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
    "line": lambda domain, **keywords: Policy.attribute(domain, theta={"x": "next"}, **keywords),
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


def readings(policy: Policy, records: int) -> dict[str, int]:
    """Return the largest change of the histogram by each reading of the definition."""
    nodes = policy.secret_graph.node_count
    rows = [[*constraint.counted.astype(int), *[0] * (nodes - policy.domain.size)] for constraint in policy.constraints]
    known = [constraint.known for constraint in policy.constraints]
    case = brute.Case(policy, edges_of(policy), nodes, rows, known, records)
    return {
        name: int(np.abs(brute.changes(pairs, nodes)[:, : policy.domain.size]).sum(axis=1).max(initial=0))
        for name, pairs in brute.neighbours(case).items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("build", POLICIES.values(), ids=POLICIES.keys())
def test_the_histogram_under_constraints_is_never_below_brute_force(build) -> None:
    for (name, queries), unbounded in itertools.product(QUERIES.items(), (False, True)):
        policy = build(FOUR, constraints=queries, unbounded=unbounded)
        found = constraint_sensitivity(policy)
        assert policy.sensitivity("histogram") == found.value
        records = 3 if unbounded else 4
        truth = brute_force(policy, records)
        assert truth <= found.value, name
        if found.exact and found.moves <= records:
            assert truth == found.value, name


def test_thresholds_over_unequal_axes_under_constraints() -> None:
    domain = Domain({"a": range(3), "b": [0, 3]})
    sums = {"a": [0, 0, 1, 1, 2, 2], "b": [0, 3] * 3}
    for theta, unbounded in ((1, False), (3, False), (4, True)):
        for row in ([0, 1, 1, 0, 0, 0], [1, 0] * 3):
            policy = Policy.threshold(domain, theta, constraints=[row], unbounded=unbounded)
            pairs = list(neighbours(edges_of(policy), 6 + unbounded, 3, [[*row, 0]]))
            assert largest_change(histogram(6), iter(pairs), 1) <= policy.sensitivity("histogram")
            for name, weights in sums.items():
                values = [*weights, 0]
                truth = largest_change(lambda table, v=values: [sum(v[x] for x in table)], iter(pairs), 1)
                assert truth <= policy.sensitivity("sum", attribute=name) <= truth + 3, (theta, row, name)


def test_random_policies_of_five_values() -> None:
    generator = np.random.default_rng(8)
    domain = Domain({"x": range(5)})
    for trial in range(6):
        edges = [edge for edge in itertools.combinations(range(5), 2) if generator.random() < 0.6]
        queries = generator.integers(0, 2, (generator.integers(1, 4), 5)).tolist()
        policy = Policy.graph(domain, edges, constraints=queries, unbounded=trial % 3 == 0)
        found = constraint_sensitivity(policy)
        records = 3
        truth = brute_force(policy, records)
        assert truth <= found.value
        if found.exact and found.moves <= records:
            assert truth == found.value


def test_two_chained_queries_reach_six_and_one_range_four() -> None:
    # 2 max(|Q|, 1) would be 4 and 2.
    one = Policy.threshold(FOUR, 1, constraints=[[0, 1, 1, 0]])
    assert constraint_sensitivity(one).value == brute_force(one, 2) == 4
    assert constraint_sensitivity(one).exact
    two = Policy.threshold(Domain({"x": range(6)}), 1, constraints=[[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]])
    assert constraint_sensitivity(two).value == brute_force(two, 3) == 6
    assert constraint_sensitivity(two).exact


def test_a_secret_that_only_an_unprotected_record_can_make_up_for_is_not_released():
    # In the south dx is public: a record moves from (north, hiv) to (north, flu) only if another moves from (south,
    # flu) to (south, hiv).
    domain = Domain({"region": ["north", "south"], "dx": ["hiv", "flu"]})
    policy = Policy.partition(domain, ["n", "n", "s", "s2"], constraints=[([1, 0, 1, 0], 1)])
    assert brute_force(policy, 2) == 4
    assert constraint_sensitivity(policy) == ConstraintSensitivity(4, True, 2)
    release = Histogram().release([("north", "hiv"), ("south", "flu")], policy, epsilon=1, rng=1)
    assert release.epsilon == 1
    assert release.standard_errors.min() > 5
    assert policy.sensitivity("histogram", 2) == 2
    assert policy.sensitivity("histogram", partition=[0, 1, 0, 1]) == 0


def test_the_two_readings_differ_both_ways_and_neither_is_passed():
    # Only 0 and 1 are joined; 1 and 4 are counted.
    one = Policy.graph(Domain({"x": range(5)}), [(0, 1)], constraints=[[0, 1, 0, 0, 1]])
    assert (readings(one, 3), constraint_sensitivity(one).value) == ({"printed": 4, "edges": 0, "used": 4}, 4)
    other = Policy.threshold(FOUR, 1, constraints=[[1, 0, 0, 1]])
    assert (readings(other, 2), constraint_sensitivity(other).value) == ({"printed": 2, "edges": 4, "used": 4}, 4)


def test_overlapping_counts_of_two_bits_reach_eight():
    # (C1, A1, B2, D2) -> (B1, D1, A2, C2): four records move, and no proper subset of the moves preserves both counts.
    domain = Domain({"bits": ["A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2"]})
    counts = [[0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]]
    for policy in (Policy.full(domain, constraints=counts), Policy.graph(domain, [(4, 2)], constraints=counts)):
        assert constraint_sensitivity(policy) == ConstraintSensitivity(8, True, 4)
    changed = Policy.full(domain, constraints=counts).sensitivity(np.array(counts))
    assert changed == 0


def test_a_move_that_keeps_all_counts_is_the_only_one():
    # Edges within the kinds {0, 1} and {2, 3, 4} only: one record moves, as far as its edge is long.
    policy = Policy.graph(Domain({"x": range(5)}), [(0, 1), (3, 4)], constraints=[[1, 1, 0, 0, 0]])
    assert constraint_sensitivity(policy) == ConstraintSensitivity(2, True, 1)
    assert policy.sensitivity("cumulative") == policy.sensitivity("sum") == 1
    joined = Policy.graph(policy.domain, [(0, 1), (3, 4), (1, 2)], constraints=[[1, 1, 0, 0, 0]])
    assert constraint_sensitivity(joined) == ConstraintSensitivity(4, True, 2)
    # The move 1 -> 2 is along the edge, and 4 -> 0 is the other move.
    assert joined.sensitivity("sum") == 3


def test_null_nodes_are_of_the_kind_that_nothing_counts():
    domain = Domain({"x": range(4)})
    within = Policy.graph(domain, [(3, None)], constraints=[[1, 1, 0, 0]], unbounded=True)
    assert within.sensitivity("histogram") == 1
    across = Policy.graph(domain, [(0, None)], constraints=[[1, 1, 0, 0]], unbounded=True)
    assert across.sensitivity("histogram") == brute_force(across, 3) == 3
    single = Policy.graph(domain, [(0, None)], constraints=[[1, 0, 0, 0], [0, 1, 1, 1]], unbounded=True)
    assert single.sensitivity("histogram") == brute_force(single, 3) == 2


def test_linear_queries_count_moves_along_pairs_that_are_no_edges():
    numbers = np.arange(8)
    line = Policy.threshold(Domain({"x": range(8)}), 1, constraints=[numbers < 4])
    assert line.sensitivity("cumulative") == 6
    assert line.sensitivity("cumulative", 2) == pytest.approx(6**0.5)
    assert line.sensitivity("sum") == 6
    assert line.sensitivity((numbers < 4).astype(int)) == 0
    domain = Domain({"age": range(5), "sex": ["f", "m"]})
    sexes = Policy.attribute(domain, constraints=marginal_constraints(domain, ["sex"]))
    assert sexes.sensitivity("histogram", partition=np.arange(10) // 2) == 2
    assert sexes.sensitivity("histogram", partition=np.arange(10) % 2) == 0


def test_random_matrices_are_never_below_brute_force():
    generator = np.random.default_rng(12)
    domain = Domain({"x": range(5)})
    for trial in range(4):
        edges = [edge for edge in itertools.combinations(range(5), 2) if generator.random() < 0.4] or [(0, 1)]
        policy = Policy.graph(domain, edges, constraints=generator.integers(0, 2, (2, 5)), unbounded=trial % 2 == 0)
        # Of integers, and of floats.
        matrix = generator.integers(-4, 5, (int(generator.integers(1, 9)), 5)) / (1 if trial < 2 else 10)
        rows = [[*constraint.counted.astype(int), 0] for constraint in policy.constraints]
        nodes = policy.secret_graph.node_count
        differences = brute.changes(set(neighbours(edges_of(policy), nodes, 3, rows)), nodes)[:, :5].tolist()
        exact = [[Fraction(weight) for weight in row] for row in matrix.tolist()]
        changes = [[sum(map(operator.mul, row, change)) for row in exact] for change in differences]
        for norm in (1, 2):
            largest = max((sum(abs(change) ** norm for change in each) for each in changes), default=0)
            assert largest <= sensitivity(policy, matrix, norm).power, (trial, norm)


@pytest.fixture(scope="module")
def compared():
    """Give random policies, queries and norms, each with the largest change by each reading of the definition."""
    found = []
    for number in range(18):
        generator = np.random.default_rng([1, number])
        case = brute.random_case(generator)
        differences = {name: brute.changes(pairs, case.nodes) for name, pairs in brute.neighbours(case).items()}
        for query, matrix in brute.queries(case, generator).values():
            for norm in (1, 2):
                changes = {name: (np.abs(each @ matrix.T) ** norm).sum(axis=1) for name, each in differences.items()}
                largest = {name: int(each.max(initial=0)) for name, each in changes.items()}
                found.append((case.policy, query, norm, largest))
    return found


def test_random_policies_are_never_below_both_readings(compared):
    powers = [sensitivity(policy, query, norm).power for policy, query, norm, _ in compared]
    assert all(power >= max(largest.values()) for power, (*_, largest) in zip(powers, compared, strict=True))
    equal = [
        power == max(largest["printed"], largest["edges"])
        for power, (*_, largest) in zip(powers, compared, strict=True)
    ]
    assert sum(equal) > 110


@pytest.mark.parametrize(
    "limits",
    [
        {"_EDGES_TO_LIST": -1},
        {"FEW_ROWS": 0, "_ENTRIES_AT_ONCE": 0},
        {"_MOST_WAYS": -1},
        {"_EDGES_TO_LIST": -1, "FEW_ROWS": 0, "_MOST_KINDS": -1},
    ],
    ids=" ".join,
)
def test_no_way_to_bound_is_below_both_readings(compared, monkeypatch, limits):
    for name, limit in limits.items():
        monkeypatch.setattr(known_counts, name, limit)
        if name == "FEW_ROWS":
            monkeypatch.setattr(linear_queries, name, limit)
    for policy, query, norm, largest in compared:
        assert sensitivity(policy, query, norm).power >= max(largest.values()), (policy, query, norm)


def test_the_comparison_finds_a_sensitivity_that_is_too_small(compared, monkeypatch):
    # One record alone, along an edge within a kind.
    monkeypatch.setattr(known_counts, "_bound_joint_change", lambda *_: LargestChange(Fraction(0), None))
    powers = [sensitivity(policy, query, norm).power for policy, query, norm, _ in compared]
    faults = [power < max(largest.values()) for power, (*_, largest) in zip(powers, compared, strict=True)]
    assert sum(faults) > 10


def test_random_constraints_are_never_below_brute_force() -> None:
    for number, example in enumerate(EXAMPLES):
        generator = np.random.default_rng([5, number])
        size = example.domain.size
        policy = example.policy(constraints=generator.integers(0, 2, (1 + number % 2, size)))
        records = 3 if size <= 6 else 2
        found = constraint_sensitivity(policy)
        truth = brute_force(policy, records)
        assert truth <= found.value, example.name
        if found.exact and found.moves <= records:
            assert truth == found.value, example.name


def test_the_search_of_the_package_agrees_with_the_definition() -> None:
    for name, queries in itertools.product(("full", "line", "partition", "graph"), [[], *QUERIES.values()]):
        build = POLICIES[name]
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
        assert (found.value, found.exact) == (2 * cells, True)
    both = marginal_constraints(domain, ["sex"]) + marginal_constraints(domain, ["town"])
    found = constraint_sensitivity(Policy.attribute(domain, constraints=both))
    # Seven records move, and one of them changes a single attribute.
    assert (found.value, found.exact, found.moves) == (14, True, 7)
    # Both sexes and one town are counted; with one of the two sexes instead, four records move.
    assert constraint_sensitivity(Policy.full(domain, constraints=both[:3])).value == 8
    many = Domain({"x": range(40), "y": range(3)})
    found = constraint_sensitivity(Policy.full(many, constraints=marginal_constraints(many, ["x"])))
    assert (found.value, found.exact) == (80, True)


def test_disjoint_ranges_under_a_distance_threshold() -> None:
    numbers = np.arange(1000)
    ranges = [(numbers >= low) & (numbers < low + 10) for low in (100, 120, 140, 300, 315, 330, 345, 800)]
    domain = Domain({"x": range(1000)})
    # All ranges hang together by records that move from any one to any other, whatever θ is.
    for theta in (1, 5, 200, 999):
        found = constraint_sensitivity(Policy.threshold(domain, theta, constraints=ranges))
        assert (found.value, found.exact) == (2 * (8 + 1), True), theta


def test_beyond_the_search_every_record_may_move_as_far_as_any():
    domain = Domain({"a": range(3), "b": range(3)})
    crossed = Policy.full(domain, constraints=marginal_constraints(domain, ["a"]) + marginal_constraints(domain, ["b"]))
    # Of six counts four are independent.
    assert constraint_sensitivity(crossed) == ConstraintSensitivity(2 * 9**4, False, 9**4)
    assert crossed.sensitivity("sum", attribute="a") == 2 * 9**4
    assert crossed.sensitivity("histogram", 2) == pytest.approx(2**0.5 * 9**4)
    three = Policy.threshold(Domain({"x": range(8)}), 1, constraints=[np.arange(8) >> bit & 1 for bit in range(3)])
    assert constraint_sensitivity(three).moves <= 10


def test_zero_sums_against_all_sequences():
    # Every sequence of up to six effects of two counts: those without a part that adds up to nothing.
    vectors = np.array([vector for vector in itertools.product((-1, 0, 1), repeat=2) if any(vector)])
    found, finished = minimal_zero_sums(vectors)
    assert finished
    expected = set()
    for length in range(1, 6):
        for chosen in itertools.combinations_with_replacement(range(8), length):
            parts = itertools.chain.from_iterable(itertools.combinations(chosen, k) for k in range(1, length))
            if not vectors[list(chosen)].sum(axis=0).any() and all(
                vectors[list(part)].sum(axis=0).any() for part in parts
            ):
                expected.add(tuple(np.bincount(chosen, minlength=8).tolist()))
    assert set(map(tuple, found.tolist())) == expected
    assert found.sum(axis=1).max() == bound_length(2) == 4
    assert [bound_length(q) for q in range(5)] == [0, 2, 4, 10, 9**4]


@given(st.lists(st.lists(st.integers(-1, 1), min_size=4, max_size=4), min_size=1, max_size=6))
def test_exact_rank(rows):
    assert find_rank(np.array(rows)) == np.linalg.matrix_rank(np.array(rows))


def test_a_search_that_takes_too_long_says_so():
    vectors = np.array([vector for vector in itertools.product((-1, 0, 1), repeat=3) if any(vector)])
    assert not minimal_zero_sums(vectors)[1]
    assert not minimal_zero_sums(np.ones((600, 2), dtype=np.int64))[1]


def test_contradictory_counts_are_named() -> None:
    for constraints, guilty in (
        ([([1, 1, 0, 0], 3), ([0, 1, 1, 0], 5)], ()),
        ([([1, 1, 0, 0], 3), ([1, 1, 0, 0], 4)], (0, 1)),
        ([([1, 0, 0, 0], 3), ([0, 0, 1, 0], 9), ([0, 1, 0, 0], 2), ([1, 1, 0, 0], 4)], (0, 2, 3)),
        ([([1, 1, 1, 1], 3), ([1, 0, 0, 0], 4)], (0, 1)),
        ([([0, 0, 0, 0], 1)], (0,)),
        ([([0, 0, 0, 0], 0), [1, 0, 0, 0]], ()),
    ):
        if not guilty:
            assert len(Policy.full(FOUR, constraints=constraints).constraints) == len(constraints)
            continue
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


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 1), min_size=4, max_size=4), st.integers(0, 3)), min_size=1, max_size=4)
)
def test_contradictions_against_enumeration(constraints) -> None:
    def possible(chosen) -> bool:
        return any(
            all(sum(c for c, q in zip(counts, row, strict=True) if q) == known for row, known in chosen)
            for counts in itertools.product(range(4), repeat=4)
        )

    guilty = find_contradiction(as_constraints(constraints, Domain({"x": range(4)})), 4)
    assert possible(constraints) == (not guilty)
    chosen = [constraints[index] for index in guilty]
    assert not guilty or not possible(chosen)
    assert all(possible(chosen[:i] + chosen[i + 1 :]) for i in range(len(chosen)))


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


def test_known_tables_are_pairs_also_for_counts_of_zero() -> None:
    domain = Domain({"sex": ["f", "m"], "age": range(3)})
    for table in ([0, 0], [3, 0], [2, 5]):
        pairs = marginal_constraints(domain, ["sex"], table)
        assert [(known, array.tolist()) for array, known in pairs] == [
            (known, [index // 3 == row for index in range(6)]) for row, known in enumerate(table)
        ]
