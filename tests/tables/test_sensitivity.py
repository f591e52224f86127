from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from database_oracle import histogram, largest_change, neighbours
from database_policies import EXAMPLES, GRID, LINE, MIXED, UNEVEN, Example
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._sensitivity._numbers import root_up
from mechdesign.tables._sensitivity._sensitivity import sensitivity

CASES = [
    pytest.param(example, unbounded, id=f"{example.name}, {unbounded}")
    for example in EXAMPLES
    for unbounded in (False, True)
]


def brute_force(example: Example, unbounded: bool, answer, norm: int, records: int = 1) -> float:
    nodes = example.domain.size + unbounded
    return largest_change(answer, neighbours(example.edges(unbounded), nodes, records), norm)


def coordinates(domain: Domain) -> list[list[Fraction]]:
    """Return the numeric attributes of each value, and nothing for the null node."""
    numeric = [i for i, attribute in enumerate(domain.attributes) if attribute.numeric]
    return [[Fraction(str(domain.value(x)[i])) for i in numeric] for x in range(domain.size)]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), CASES)
def test_histograms(example: Example, unbounded: bool, norm: int) -> None:
    policy = example.policy(unbounded=unbounded)
    size = example.domain.size
    found = sensitivity(policy, "histogram", norm)
    assert found.power == brute_force(example, unbounded, histogram(size), norm, records=2)
    assert found.exact
    for labels in ([0] * size, [x % 2 for x in range(size)], policy.secret_graph.components()[:size]):
        blocks = [[x for x in range(size) if labels[x] == label] for label in set(labels)]

        def answer(database, blocks=blocks):
            return [sum(database.count(value) for value in block) for block in blocks]

        assert sensitivity(policy, "histogram", norm, partition=labels).power == brute_force(
            example, unbounded, answer, norm
        )


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), [case for case in CASES if len(case.values[0].domain.names) == 1])
def test_cumulative_counts(example: Example, unbounded: bool, norm: int) -> None:
    size = example.domain.size

    def answer(database):
        return [sum(value <= x for value in database) for x in range(size)]

    found = sensitivity(example.policy(unbounded=unbounded), "cumulative", norm)
    assert found.power == brute_force(example, unbounded, answer, norm, records=2)
    matrix = np.tril(np.ones((size, size), dtype=int))
    assert sensitivity(example.policy(unbounded=unbounded), matrix, norm).power == found.power


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), CASES)
def test_sums(example: Example, unbounded: bool, norm: int) -> None:
    policy = example.policy(unbounded=unbounded)
    numeric = [attribute.name for attribute in example.domain.attributes if attribute.numeric]
    for column, name in enumerate(numeric):
        points = [*coordinates(example.domain), [Fraction(0)] * len(numeric)]

        def answer(database, points=points, column=column):
            return [sum(points[value][column] for value in database)]

        assert sensitivity(policy, "sum", norm, attribute=name).power == brute_force(example, unbounded, answer, norm)


def cluster_sums(points, origins, labels, k):
    def answer(database):
        sums = [[Fraction(0)] * len(points[0]) for _ in range(k)]
        for value in database:
            if value < len(points):
                for axis, (x, o) in enumerate(zip(points[value], origins[labels[value]], strict=True)):
                    sums[labels[value]][axis] += x - o
        return [entry for row in sums for entry in row]

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), CASES)
def test_sums_of_given_clusters(example: Example, unbounded: bool, norm: int) -> None:
    policy = example.policy(unbounded=unbounded)
    points = coordinates(example.domain)
    generator = np.random.default_rng(1)
    middle = [(min(axis) + max(axis)) / 2 for axis in zip(*points, strict=True)]
    for trial in range(6):
        labels = generator.integers(0, 3, len(points)).tolist() if trial else [0] * len(points)
        origins = [[Fraction(int(v), 4) for v in generator.integers(0, 20, len(middle))] for _ in range(3)]
        given_origins = sensitivity(policy, "kmeans-sum", norm, clusters=labels, origins=origins)
        expected = brute_force(example, unbounded, cluster_sums(points, origins, labels, 3), norm)
        assert given_origins.power == expected
        about_middle = sensitivity(policy, "kmeans-sum", norm, clusters=labels)
        expected = brute_force(example, unbounded, cluster_sums(points, [middle] * 3, labels, 3), norm)
        assert about_middle.power == expected
        assert expected <= sensitivity(policy, "kmeans-sum", norm).power


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), CASES)
def test_sums_of_any_clusters_are_the_worst_over_all_clusterings(example: Example, unbounded: bool, norm: int) -> None:
    # It is enough to let the two ends of an edge be in one cluster or in two, if their numbers differ.
    policy = example.policy(unbounded=unbounded)
    points = coordinates(example.domain)
    middle = [(min(axis) + max(axis)) / 2 for axis in zip(*points, strict=True)]
    worst = Fraction(0)
    sizes = 0
    for edge in example.edges(unbounded):
        x, y = sorted(edge)
        a = [p - o for p, o in zip(points[x], middle, strict=True)]
        if y == len(points):
            worst = max(worst, sum(abs(v) ** norm for v in a))
            sizes = max(sizes, 1)
        elif points[x] != points[y]:
            b = [p - o for p, o in zip(points[y], middle, strict=True)]
            worst = max(worst, sum(abs(v) ** norm for v in (*a, *b)))
            worst = max(worst, sum(abs(v - w) ** norm for v, w in zip(a, b, strict=True)))
            sizes = 2
    found = sensitivity(policy, "kmeans-sum", norm)
    assert found.power == worst if found.exact else found.power >= worst
    if norm == 1:
        assert found.exact
        x, y = found.witness
        ends = [
            sum(map(abs, (p - o for p, o in zip(points[z], middle, strict=True)))) for z in (x, y) if z < len(points)
        ]
        assert sum(ends) == worst
    assert sensitivity(policy, "kmeans-size", norm).power == sizes


def test_the_lemma_of_the_paper_fails_where_an_edge_crosses_a_boundary() -> None:
    line = Policy.line(Domain({"x": range(10)}))
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


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("example", "unbounded"), CASES)
def test_matrices_of_integers_fractions_and_floats(example: Example, unbounded: bool, norm: int) -> None:
    policy = example.policy(unbounded=unbounded)
    generator = np.random.default_rng(2)
    size = example.domain.size
    integers = generator.integers(-4, 5, (3, size))
    fractions = np.array([[Fraction(int(v), 7) for v in row] for row in integers], dtype=object)
    floats = generator.normal(size=(3, size))
    huge = np.array([[int(v) * 10**30 for v in row] for row in integers], dtype=object)
    for matrix in (integers, fractions, floats, integers / 8, huge, integers[:1], floats[0], fractions[0]):
        rows = [[Fraction(value) for value in row] + [Fraction(0)] for row in np.atleast_2d(matrix).tolist()]

        def answer(database, rows=rows):
            return [sum(row[value] for value in database) for row in rows]

        truth = brute_force(example, unbounded, answer, norm)
        found = sensitivity(policy, matrix, norm)
        if matrix is floats or matrix.base is floats:
            assert truth <= found.power <= truth * (1 + Fraction(1, 10**12))
            assert not found.exact
        else:
            assert found.power == truth
            assert found.exact
        assert Fraction(found.value) ** norm >= truth
        assert found.value == pytest.approx(float(truth) ** (1 / norm), rel=1e-12)


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
    policy = Policy.line(Domain({"x": range(4)}))

    def median(database):
        return float(np.median(database))

    truth = largest_change(
        lambda database: [median(database)], neighbours({frozenset((i, i + 1)) for i in range(3)}, 4, 3), 1
    )
    assert policy.sensitivity(median, records=3) == truth == 1
    assert Policy.full(Domain({"x": range(4)})).sensitivity(median, records=3) == 3
    # With the null node, `records` is the largest number of records, and the function gets the present records.
    assert Policy.line(Domain({"x": range(4)}), unbounded=True).sensitivity(len, records=3) == 1
    assert Policy.line(Domain({"x": range(4)})).sensitivity(len, records=3) == 0
    known = Policy.full(Domain({"x": range(3)}), constraints=[([1, 0, 0], 1)])
    assert known.sensitivity(lambda database: np.bincount(database, minlength=3), records=3) == 2
    with pytest.raises(InputError, match="too many databases"):
        policy.sensitivity(median, records=20)
    with pytest.raises(InputError, match="number of records"):
        policy.sensitivity(median)
    with pytest.raises(InputError, match="different lengths"):
        policy.sensitivity(lambda database: sorted(set(database.tolist())), records=2)


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
    policy = Policy.threshold(GRID, 2)
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 3, GRID.size)
    truth = [policy.sensitivity("kmeans-sum", norm=norm, clusters=labels) for norm in (1, 2)]
    monkeypatch.setattr("mechdesign.tables._sensitivity._clusterings._EDGES_TO_WALK", 0)
    bounds = [sensitivity(policy, "kmeans-sum", norm, clusters=labels) for norm in (1, 2)]
    assert all(bound.value >= value for bound, value in zip(bounds, truth, strict=True))


def test_large_domains_have_closed_forms() -> None:
    pixels = Domain({"b": range(256), "g": range(256), "r": range(256)})
    for policy, sums in [
        (Policy.full(pixels), 765),
        (Policy.attribute(pixels), 765),
        (Policy.threshold(pixels, 64), 764),
    ]:
        assert policy.sensitivity("kmeans-sum") == sums
        assert policy.sensitivity("histogram") == 2
    values = Domain({"x": range(10**6)})
    for theta in (1, 1000, 10**6):
        assert Policy.threshold(values, theta).sensitivity("cumulative") == min(theta, 10**6 - 1)
    assert Policy.full(values, unbounded=True).sensitivity("cumulative") == 10**6


@pytest.mark.parametrize(
    ("query", "options", "path"),
    [
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
        (np.zeros(8), {"records": 2}, "records"),
    ],
)
def test_wrong_queries_are_refused(query: object, options: dict, path: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy.full(MIXED).sensitivity(query, **options)
    assert caught.value.path == path


def test_cumulative_needs_numbers_in_order() -> None:
    for values in (["a", "b"], [2, 1]):
        with pytest.raises(InputError, match="numbers in ascending order for cumulative counts"):
            Policy.full(Domain({"x": values})).sensitivity("cumulative")
    with pytest.raises(InputError, match="no numeric attribute"):
        Policy.full(Domain({"x": ["a", "b"]})).sensitivity("kmeans-sum")


def test_under_constraints_other_queries_get_a_safe_bound() -> None:
    queries = [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]]
    policy = Policy.line(LINE, constraints=queries)
    pairs = list(neighbours({frozenset((i, i + 1)) for i in range(5)}, 6, 3, queries))
    truth = largest_change(lambda database: [sum(value <= x for value in database) for x in range(6)], iter(pairs), 1)
    found = sensitivity(policy, "cumulative")
    # Three kinds, each left and taken up by one record: 0 -> 2 along no edge, 1 -> 5 and 4 -> 3, say.
    assert found.exact
    assert truth == found.value == 7
    for query in itertools.islice(itertools.product([0, 1], repeat=6), 1, None, 7):
        truth = largest_change(lambda database, q=query: [sum(q[value] for value in database)], iter(pairs), 1)
        assert truth <= policy.sensitivity(query)


@pytest.mark.parametrize("form", [np.array, np.ndarray.tolist])
def test_matrices_under_constraints(form) -> None:
    policy = Policy.line(LINE, constraints=[[0, 1, 1, 0, 0, 0]])
    matrix = np.vstack((np.arange(6), np.ones(6, dtype=np.int64)))
    # The move 0 -> 1 is along an edge, and 1 -> 5 is the other move.
    assert sensitivity(policy, form(matrix)).value == sensitivity(policy, "sum").value == 5
    assert policy.sensitivity(form(matrix[0])) == 5


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e-30, 1e160, 1e300])
@pytest.mark.parametrize("norm", [1, 2, np.int64(1), np.int64(2)])
def test_floats_of_any_size_are_never_taken_for_less(size: float, norm: int) -> None:
    policy = Policy.full(Domain({"x": range(3)}))
    for rows in ([[0, size, -size]], [[0, size, 1.5], [0, size, -size]]):
        columns = [[Fraction(row[x]) for row in rows] for x in range(3)]
        truth = max(
            sum(abs(a - b) ** int(norm) for a, b in zip(x, y, strict=True))
            for x, y in itertools.combinations(columns, 2)
        )
        found = sensitivity(policy, rows, norm)
        assert truth <= found.power <= truth * (1 + Fraction(1, 10**12))
        assert found.power <= Fraction(found.value) ** int(norm) <= max(truth * 2, Fraction(5e-324) ** int(norm) * 9)
