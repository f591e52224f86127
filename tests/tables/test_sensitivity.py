"""Sensitivities against their definition, over the edges of every kind of policy, and the refusals of wrong queries."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from database_oracle import histogram, largest_change, neighbours
from database_policies import BOXES, EXAMPLES, GRID, LINE, MIXED, UNEVEN, WIDE, Example
from hypothesis import given
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

from mechdesign.errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._sensitivity._linear import root_up
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, sensitivity

# All numbers of the examples, and the origins of their clusters, are multiples of an eighth.
UNIT = 8


@dataclass(frozen=True)
class Case:
    name: str
    example: Example
    policy: Policy
    edges: np.ndarray
    unbounded: bool
    norm: int

    def check(self, contributions: np.ndarray, found: Sensitivity, unit: int = 1, *, exact: bool = True) -> None:
        """Compare with the largest change over the edges; `contributions` are those of a record, in parts of a unit."""
        truth = Fraction(self.largest(contributions)) / unit**self.norm
        assert found.power == truth if exact else found.power >= truth, (self.name, found, truth)
        assert found.exact == exact, self.name
        assert Fraction(found.value) ** self.norm >= truth, self.name
        assert found.value == pytest.approx(float(truth) ** (1 / self.norm), rel=1e-12) or not exact, self.name
        if exact and truth:
            x, y = found.witness
            assert [x, y] in self.edges.tolist(), self.name

    def largest(self, contributions: np.ndarray) -> Any:
        """Return the largest ‖a_x − a_y‖ over the edges to the power of the norm; an absent record adds nothing."""
        rows = np.vstack((contributions, np.zeros_like(contributions[:1])))
        change = rows[self.edges[:, 0]] - rows[self.edges[:, 1]]
        return max((abs(change) ** self.norm).sum(axis=1).tolist(), default=0)

    @property
    def points(self) -> np.ndarray:
        """The numeric attributes of each value, in eighths."""
        domain = self.example.domain
        numeric = [i for i, attribute in enumerate(domain.attributes) if attribute.numeric]
        return np.array([[round(domain.value(x)[i] * UNIT) for i in numeric] for x in range(domain.size)])


CASES = [
    Case(
        f"{example.name}, {unbounded}, {norm}",
        example,
        example.policy(unbounded=unbounded),
        example.pairs(unbounded),
        unbounded,
        norm,
    )
    for example in (*EXAMPLES, *BOXES)
    for unbounded in (False, True)
    for norm in (1, 2)
]


def test_histograms_and_their_blocks() -> None:
    for case in CASES:
        size = case.example.domain.size
        case.check(np.eye(size, dtype=int), sensitivity(case.policy, "histogram", case.norm))
        for labels in ([0] * size, [x % 2 for x in range(size)], case.policy.secret_graph.components()[:size]):
            blocks = np.equal.outer(labels, np.unique(labels)).astype(int)
            case.check(blocks, sensitivity(case.policy, "histogram", case.norm, partition=labels))


def test_databases_of_two_records_change_as_much_as_one_record() -> None:
    for case in CASES:
        size = case.example.domain.size
        if case.norm == 2 or size > 9:
            continue
        pairs = list(neighbours(case.example.edges(case.unbounded), size + case.unbounded, 2))
        assert case.policy.sensitivity("histogram") == largest_change(histogram(size), iter(pairs), 1), case.name
        if len(case.example.domain.names) == 1:
            truth = largest_change(lambda table: np.cumsum([table.count(x) for x in range(6)]), iter(pairs), 1)
            assert case.policy.sensitivity("cumulative") == truth, case.name


def test_cumulative_counts() -> None:
    tried = [case for case in CASES if len(case.example.domain.names) == 1]
    assert len(tried) > 20
    for case in tried:
        counts = np.triu(np.ones((case.example.domain.size,) * 2, dtype=int))
        case.check(counts, sensitivity(case.policy, "cumulative", case.norm))
        case.check(counts, sensitivity(case.policy, counts.T, case.norm))


def test_sums() -> None:
    for case in CASES:
        names = [each.name for each in case.example.domain.attributes if each.numeric]
        for column, name in enumerate(names):
            found = sensitivity(case.policy, "sum", case.norm, attribute=name)
            case.check(case.points[:, [column]], found, UNIT)


def apart(points: np.ndarray, labels: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Return what a record adds to the sums of each cluster about its origin, (|T|, clusters × attributes)."""
    sums = np.zeros((len(points), len(origins), points.shape[1]), dtype=int)
    sums[np.arange(len(points)), labels] = points - origins[labels]
    return sums.reshape(len(points), -1)


def middle(points: np.ndarray) -> np.ndarray:
    return (points.min(axis=0) + points.max(axis=0)) // 2


def test_sums_and_sizes_of_given_clusters() -> None:
    dice = np.random.default_rng(1)
    for case in CASES:
        points = case.points
        labels = dice.integers(0, 3, len(points))
        origins = dice.integers(0, 5 * UNIT, (3, points.shape[1]))
        exact = [[Fraction(int(x), UNIT) for x in row] for row in origins]
        found = sensitivity(case.policy, "kmeans-sum", case.norm, clusters=labels, origins=exact)
        case.check(apart(points, labels, origins), found, UNIT)
        sizes = np.equal.outer(labels, np.arange(3)).astype(int)
        case.check(sizes, sensitivity(case.policy, "kmeans-size", case.norm, clusters=labels))
        for clusters in (labels, 0 * labels) if case.norm == 2 else (labels,):
            sums = apart(points, clusters, np.tile(middle(points), (3, 1)))
            case.check(sums, sensitivity(case.policy, "kmeans-sum", case.norm, clusters=clusters), UNIT)
            # The bound for any clusters is for those that depend on the numeric attributes only.
            first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)[1:]
            sums = apart(points, clusters[first[place.ravel()]], np.tile(middle(points), (3, 1)))
            assert case.largest(sums) <= sensitivity(case.policy, "kmeans-sum", case.norm).power * UNIT**case.norm


def test_sums_and_sizes_of_any_clusters_are_the_worst_over_all_clusterings() -> None:
    # It is enough to let the two ends of an edge be in one cluster or in two, if their numbers differ.
    tight = set()
    for case in CASES:
        points = case.points - middle(case.points)
        together = case.largest(points)
        rows = np.vstack((points, np.zeros_like(points[:1])))
        x, y = rows[case.edges[:, 0]], rows[case.edges[:, 1]]
        moved = (case.edges[:, 1] == len(points)) | (x != y).any(axis=1)
        both = (abs(x) ** case.norm).sum(axis=1) + (abs(y) ** case.norm).sum(axis=1)
        truth = Fraction(int(max(together, both[moved].max(initial=0)))) / UNIT**case.norm
        found = sensitivity(case.policy, "kmeans-sum", case.norm)
        assert found.power == truth if found.exact else found.power >= truth, case.name
        if found.power == truth:
            tight.add(case.name)
        if case.norm == 1:
            assert found.exact
            assert list(found.witness) in case.edges.tolist()
            assert sum(abs(rows[end]).sum() for end in found.witness) == truth * UNIT, case.name
        null = case.edges[:, 1] == len(points)
        sizes = 2 if (moved & ~null).any() else 1 if null.any() else 0
        assert sensitivity(case.policy, "kmeans-size", case.norm).power == sizes, case.name
    # On whole steps the bound for thresholds is attained.
    assert {case.name for case in CASES if case.example.domain in (LINE, WIDE)} <= tight


def test_every_clustering_of_a_small_box_is_no_worse() -> None:
    domain = Domain({"a": range(4), "b": range(2)})
    for theta, norm in itertools.product((1, 2, 3, 4), (1, 2)):
        policy = Policy.threshold(domain, theta)
        edges = policy.secret_graph.edges()
        case = Case("box", EXAMPLES[0], policy, edges, False, norm)
        points = np.array([domain.value(x) for x in range(8)]) * 2
        found = max(
            case.largest(apart(points, np.array([0, *labels]), np.tile(middle(points), (2, 1))))
            for labels in itertools.product((0, 1), repeat=7)
        )
        assert sensitivity(policy, "kmeans-sum", norm).power * 2**norm == found, (theta, norm)


def test_matrices_of_integers_fractions_and_floats() -> None:
    dice = np.random.default_rng(2)
    for case in CASES:
        size = case.example.domain.size
        integers = dice.integers(-4, 5, (3, size))
        for matrix, unit in ((integers, 1), (integers / 8, 8), (integers[:1], 1)):
            case.check(integers[: len(matrix)].T, sensitivity(case.policy, matrix, case.norm), unit)
        if case.example in BOXES:
            continue
        fractions = np.array([[Fraction(int(v), 7) for v in row] for row in integers], dtype=object)
        case.check(integers.T, sensitivity(case.policy, fractions, case.norm), 7)
        huge = integers.astype(object) * 10**30
        case.check(huge.T, sensitivity(case.policy, huge, case.norm))
        floats = dice.normal(size=(3, size))
        for matrix in (floats, floats[0]):
            exact = np.array([[Fraction(value) for value in row] for row in np.atleast_2d(matrix).tolist()])
            truth = case.largest(exact.T)
            found = sensitivity(case.policy, matrix, case.norm)
            assert truth <= found.power <= truth * (1 + Fraction(1, 10**12)), case.name
            assert not found.exact


def test_the_lemma_of_the_paper_fails_where_an_edge_crosses_a_boundary() -> None:
    line = Policy.threshold(Domain({"x": range(10)}), 1)
    clusters = [0] * 5 + [1] * 5
    # Centroids 2 and 7: the move 4 -> 5 changes the plain sums by 9, not by 1 or 2.
    assert line.sensitivity("kmeans-sum", clusters=clusters, origins=[[0], [0]]) == 9
    assert line.sensitivity("kmeans-sum", clusters=clusters, origins=[[2], [7]]) == 4
    assert line.sensitivity("kmeans-sum", clusters=clusters) == 1
    assert line.sensitivity("kmeans-sum") == 8
    blocks = Policy.partition(Domain({"x": range(10)}), clusters)
    assert blocks.sensitivity("kmeans-sum", clusters=clusters) == 4
    assert blocks.sensitivity("kmeans-size", clusters=clusters) == 0


def test_histogram_of_a_partition_under_its_own_policy_is_exact() -> None:
    labels = ["u", "v", "u", "w", "w", "u", "v", "w", "w"]
    policy = Policy.partition(GRID, labels)
    assert policy.sensitivity("histogram", partition=labels) == 0
    assert policy.sensitivity("histogram") == 2
    assert Policy.partition(GRID, labels, unbounded=True).sensitivity("histogram", partition=labels) == 1
    singles = Policy.partition(GRID, range(9))
    assert singles.sensitivity("histogram") == singles.sensitivity("kmeans-sum") == 0


def test_results_are_integers_or_fractions_where_they_can_be() -> None:
    policy = Policy.full(LINE)
    assert type(policy.sensitivity("histogram")) is int
    assert type(policy.sensitivity(np.tril(np.ones((6, 6))))) is int
    assert policy.sensitivity(np.array([Fraction(1, 3)] + [Fraction(0)] * 5, dtype=object)) == Fraction(1, 3)
    assert policy.sensitivity([[0, 3, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0]], norm=2) == 5
    assert Policy.full(UNEVEN).sensitivity("sum") == Fraction(15, 2)
    root = policy.sensitivity("histogram", norm=2)
    assert root**2 >= 2 > math.nextafter(root, 0) ** 2 * (1 - 1e-15)


@given(st.fractions(min_value=0, max_value=10**9))
def test_roots_are_rounded_up(power: Fraction) -> None:
    root = root_up(power)
    assert Fraction(root) ** 2 >= power
    assert float(root) <= math.sqrt(power) * (1 + 1e-15) + 1e-300


def test_any_function_by_brute_force() -> None:
    policy = Policy.threshold(Domain({"x": range(4)}), 1)

    def median(database):
        return float(np.median(database))

    truth = largest_change(
        lambda database: [median(database)], neighbours({frozenset((i, i + 1)) for i in range(3)}, 4, 3), 1
    )
    assert policy.sensitivity(median, records=3) == truth == 1
    assert Policy.full(Domain({"x": range(4)})).sensitivity(median, records=3) == 3
    # With the null node, `records` is the largest number of records, and the function gets the present records.
    assert Policy.threshold(Domain({"x": range(4)}), 1, unbounded=True).sensitivity(len, records=3) == 1
    assert Policy.threshold(Domain({"x": range(4)}), 1).sensitivity(len, records=3) == 0
    known = Policy.full(Domain({"x": range(3)}), constraints=[([1, 0, 0], 1)])
    assert known.sensitivity(lambda database: np.bincount(database, minlength=3), records=3) == 2
    assert_refused(
        [
            Mistake("too many databases", lambda: policy.sensitivity(median, records=20), "records"),
            Mistake("no number of records", lambda: policy.sensitivity(median), "records", "number of records"),
            Mistake(
                "answers of other lengths",
                lambda: policy.sensitivity(lambda database: sorted(set(database.tolist())), records=2),
                "query",
            ),
        ]
    )


def test_many_distinct_columns_and_few_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    matrix = generator.integers(0, 2, (3, 60))
    policies = [
        Policy.threshold(Domain({"x": range(60)}), 7),
        Policy.attribute(Domain({"x": range(10), "y": range(6)}), unbounded=True),
    ]
    walked = [policy.sensitivity(matrix, norm=norm) for policy in policies for norm in (1, 2)]
    monkeypatch.setattr("mechdesign.tables._sensitivity._linear._ENTRIES_TO_WALK", 0)
    assert [policy.sensitivity(matrix, norm=norm) for policy in policies for norm in (1, 2)] == walked


def test_bounds_for_thresholds_with_too_many_edges_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.tables._sensitivity._clusterings._EDGES_TO_WALK", 0)
    dice = np.random.default_rng(4)
    for case in CASES:
        if "threshold" in case.name:
            points = case.points
            labels = dice.integers(0, 3, len(points))
            truth = case.largest(apart(points, labels, np.tile(middle(points), (3, 1))))
            found = sensitivity(case.policy, "kmeans-sum", case.norm, clusters=labels).power * UNIT**case.norm
            assert truth <= found, case.name


def test_large_domains_have_closed_forms() -> None:
    pixels = Domain({"b": range(256), "g": range(256), "r": range(256)})
    for policy, sums in [
        (Policy.full(pixels), 765),
        (Policy.attribute(pixels), 765),
        (Policy.threshold(pixels, 64), 764),
    ]:
        assert policy.sensitivity("kmeans-sum") == sums
        assert policy.sensitivity("histogram") == 2
    values = Domain({"x": range(10**5)})
    for theta in (1, 1000, 10**5):
        assert Policy.threshold(values, theta).sensitivity("cumulative") == min(theta, 10**5 - 1)
    assert Policy.full(values, unbounded=True).sensitivity("cumulative") == 10**5


def test_wrong_queries_are_refused() -> None:
    rows = [
        ("median", {}, "query"),
        ("histogram", {"norm": 3}, "norm"),
        ("histogram", {"norm": 1.0}, "norm"),
        ("histogram", {"norm": True}, "norm"),
        ("histogram", {"attribute": "age"}, "attribute"),
        ("histogram", {"partition": [0, 1]}, "partition"),
        ("cumulative", {}, "domain"),
        ("sum", {}, "attribute"),
        ("sum", {"attribute": "height"}, "attribute"),
        ("sum", {"attribute": "sex"}, "domain['sex']"),
        ("kmeans-sum", {"clusters": [0, 1]}, "clusters"),
        ("kmeans-sum", {"origins": [[0]]}, "origins"),
        ("kmeans-sum", {"clusters": [0] * 8, "origins": [[0, 0]]}, "origins"),
        ("kmeans-sum", {"clusters": [0] * 8, "origins": [[1 / 3]]}, "origins"),
        ([1, 2], {}, "query"),
        (np.zeros((0, 8)), {}, "query"),
        (np.full((2, 8), np.nan), {}, "query[0,0]"),
        (np.full((2, 8), 1e308), {}, "query[0,0]"),
        (["a"] * 8, {}, "query"),
    ]
    policy = Policy.full(MIXED)
    mistakes = [
        Mistake(f"{query}, {options}", partial(policy.sensitivity, query, **options), path)
        for query, options, path in rows
    ]
    for query, values in (("cumulative", ["a", "b"]), ("cumulative", [2, 1]), ("kmeans-sum", ["a", "b"])):
        make = partial(Policy.full(Domain({"x": values})).sensitivity, query)
        mistakes.append(Mistake(f"{query} of {values}", make, "domain"))
    assert_refused(mistakes)
    with pytest.raises(InputError, match=r"^records: is not an option of this query; found .*; must be .*Leave it out"):
        policy.sensitivity(np.zeros(8), records=2)


def test_under_constraints_other_queries_get_a_safe_bound() -> None:
    queries = [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]]
    policy = Policy.threshold(LINE, 1, constraints=queries)
    pairs = list(neighbours({frozenset((i, i + 1)) for i in range(5)}, 6, 3, queries))
    truth = largest_change(lambda database: [sum(value <= x for value in database) for x in range(6)], iter(pairs), 1)
    found = sensitivity(policy, "cumulative")
    # Three kinds, each left and taken up by one record: 0 -> 2 along no edge, 1 -> 5 and 4 -> 3, say.
    assert found.exact
    assert truth == found.value == 7
    for query in itertools.islice(itertools.product([0, 1], repeat=6), 1, None, 7):
        truth = largest_change(lambda database, q=query: [sum(q[value] for value in database)], iter(pairs), 1)
        assert truth <= policy.sensitivity(query)


def test_matrices_under_constraints() -> None:
    policy = Policy.threshold(LINE, 1, constraints=[[0, 1, 1, 0, 0, 0]])
    matrix = np.vstack((np.arange(6), np.ones(6, dtype=np.int64)))
    for form in (np.array, np.ndarray.tolist):
        # The move 0 -> 1 is along an edge, and 1 -> 5 is the other move.
        assert sensitivity(policy, form(matrix)).value == sensitivity(policy, "sum").value == 5
        assert policy.sensitivity(form(matrix[0])) == 5


def test_floats_of_any_size_are_never_taken_for_less() -> None:
    policy = Policy.full(Domain({"x": range(3)}))
    for size, norm in itertools.product((5e-324, 1e-200, 1e-30, 1e160, 1e300), (1, 2, np.int64(1), np.int64(2))):
        for rows in ([[0, size, -size]], [[0, size, 1.5], [0, size, -size]]):
            columns = [[Fraction(row[x]) for row in rows] for x in range(3)]
            truth = max(
                sum(abs(a - b) ** int(norm) for a, b in zip(x, y, strict=True))
                for x, y in itertools.combinations(columns, 2)
            )
            found = sensitivity(policy, rows, norm)
            assert truth <= found.power <= truth * (1 + Fraction(1, 10**12)), (size, norm)
            assert found.power <= Fraction(found.value) ** int(norm), (size, norm)
            assert Fraction(found.value) ** int(norm) <= max(truth * 2, Fraction(5e-324) ** int(norm) * 9), (size, norm)
