"""Private k-means: losses over all neighbours, a computation that does not depend on the data, and good clusters."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.specification._table_specification import parse
from mechdesign.tables._budget import Budget
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries import _kmeans as kmeans_release
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._sensitivity import _clusterings as clusterings

LINE = Domain({"x": range(10)})
PLANE = Domain({"x": range(5), "y": [0.0, 0.5, 1.0, 1.5]})
MIXED = Domain({"x": range(4), "sex": ["f", "m"]})


def policies() -> dict[str, Policy]:
    return {
        "line": Policy.threshold(LINE, 1),
        "threshold": Policy.threshold(LINE, 3),
        "full": Policy.full(PLANE),
        "attribute": Policy.attribute(PLANE),
        "plane threshold": Policy.threshold(PLANE, 1),
        "partition": Policy.partition(PLANE, np.arange(20) // 5),
        "graph": Policy.graph(PLANE, [(0, 19), (3, 4)]),
        "mixed": Policy.full(MIXED),
        "mixed attribute": Policy.attribute(MIXED),
        "unbounded": Policy.full(PLANE, unbounded=True),
    }


def clusters_of(domain: Domain, centroids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster and the place of every value, in steps about the middle."""
    box = clusterings.box_of(domain)
    codes = np.unravel_index(np.arange(domain.size), domain.shape)
    places = np.column_stack([box.axes[i][codes[i]] for i in box.axes])
    return kmeans_release._nearest(places.astype(float), centroids), places


def test_one_iteration_is_private_for_all_neighbours_and_any_centroids() -> None:
    rng, epsilon = np.random.default_rng(1), Fraction(2, 3)
    for name, policy in policies().items():
        domain = policy.domain
        box = clusterings.box_of(domain)
        laws = KMeans(1, 1).noise(policy, Budget.of(epsilon), box.unit)
        edges = policy.secret_graph.edges()
        for clusters, _ in itertools.product((1, 2, 3, 5), range(6)):
            radius = 2 * max(domain.shape)
            labels, places = clusters_of(domain, rng.uniform(-radius, radius, (clusters, len(box.axes))))
            inside = (labels[:, None] == np.arange(clusters)).astype(np.int64)
            sums = (inside[:, :, None] * places[:, None]).reshape(domain.size, -1)
            loss: Any = 0
            for law, rows in zip(laws, (inside, sums), strict=True):
                each = np.vstack((rows, 0 * rows[:1]))
                change = np.abs(each[edges[:, 0]] - each[edges[:, 1]]).sum(axis=1)
                assert law is not None or not change.any(), name
                loss = loss if law is None else loss + change * Fraction(1) / law.scale
            assert np.max(loss) <= epsilon, (name, clusters)


def test_what_is_computed_does_not_depend_on_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    starts: list[list[float]] = []
    original, nearest = DiscreteLaplace.add, kmeans_release._nearest

    def add(self: DiscreteLaplace, values: Any, rng: Any = None) -> Any:
        calls.append((str(self), values.shape))
        return original(self, values, rng)

    def watched(points: Any, centroids: Any) -> Any:
        starts.append(centroids.ravel().tolist())
        return nearest(points, centroids)

    monkeypatch.setattr(DiscreteLaplace, "add", add)
    monkeypatch.setattr(kmeans_release, "_nearest", watched)
    seen = []
    for data in ([0], [9] * 50, list(range(10)) * 30, [0] * 5 + [9] * 5):
        calls.clear()
        starts.clear()
        md.tables.KMeans(4, iterations=3).release(data, Policy.threshold(LINE, 1), epsilon=1, rng=5)
        seen.append((list(calls), starts[0]))
    # The same noise on the same numbers of answers, whatever is empty, and the same centroids to begin with.
    assert all(one == seen[0] for one in seen)
    assert [shape for _, shape in seen[0][0]] == [(4,), (4, 1)] * 3


def test_a_point_has_one_cluster_wherever_it_stands() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1003, 3))
    centroids = rng.normal(size=(7, 3))
    labels = kmeans_release._nearest(points, centroids)
    order = rng.permutation(1003)
    assert (kmeans_release._nearest(points[order], centroids) == labels[order]).all()
    alone = [kmeans_release._nearest(point[None], centroids)[0] for point in points[:100]]
    assert labels[:100].tolist() == alone
    squared = ((points[:, None] - centroids[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared[np.arange(1003), labels], squared.min(axis=1))
    assert kmeans_release._nearest(np.zeros((1, 1)), np.array([[1.0], [-1.0]])).tolist() == [0]


def test_clusters_are_found() -> None:
    rng = np.random.default_rng(6)
    domain = Domain({"x": range(200), "y": range(100)})
    true = np.array([[30, 20], [150, 70], [90, 90]])
    points = np.clip(np.rint(true[rng.integers(0, 3, 30_000)] + rng.normal(0, 5, (30_000, 2))), 0, [199, 99]).astype(
        int
    )
    table = {"x": points[:, 0], "y": points[:, 1]}
    start = [[10, 10], [190, 50], [100, 99]]
    ledger = md.Ledger()
    found = md.tables.KMeans(3, iterations=8, initial=start).release(
        table, Policy.attribute(domain), epsilon=2, rng=1, ledger=ledger
    )
    np.testing.assert_allclose(found.centroids, true, atol=2)
    assert [(entry.epsilon, entry.rho) for entry in ledger.entries] == [(Fraction(2), None)]
    assert found.assign([[30, 20], [95, 85]]).tolist() == [0, 2]
    sizes = found.answers[found.labels["quantity"] == "size"]
    assert sizes.sum() == pytest.approx(30_000, abs=400)
    assert found.attributes == ("x", "y")


def test_exact_clusters_are_said_and_free() -> None:
    # Every block is one place: neither sizes nor sums are protected.
    policy = Policy.partition(MIXED, np.arange(8) // 2)
    found = md.tables.KMeans(2, iterations=3, initial=[[0], [3]]).release(
        policy=policy, epsilon=1, positions=[0, 1, 6, 7], rng=1
    )
    assert found.epsilon == 0
    assert found.centroids.tolist() == [[0], [3]]
    assert (found.low == found.high).all()
    assert "exact" in found.description.remarks[0]


def test_saved_and_read_again(tmp_path: Path) -> None:
    found = md.tables.KMeans(2, iterations=2).release(list(range(10)) * 9, Policy.threshold(LINE, 1), epsilon=1, rng=1)
    md.save(found, tmp_path, report=False)
    back = md.tables.load(tmp_path)
    assert isinstance(back, kmeans_release.ClusteringRelease)
    assert np.array_equal(back.centroids, found.centroids)
    assert (back.attributes, back.iterations) == (("x",), 2)
    assert back.assign([[1.0]]).tolist() == found.assign([[1.0]]).tolist()


def test_points_may_be_an_array_of_reals():
    domain = md.tables.Domain({"x": range(50), "y": range(50)})
    points = np.random.default_rng(0).uniform(0, 49, (500, 2))
    policy = md.tables.Policy.full(domain)
    made = md.tables.KMeans(3, iterations=5).release(points, policy, epsilon=1.0, rng=1)
    rounded = md.tables.KMeans(3, iterations=5).release(np.rint(points).astype(int), policy, epsilon=1.0, rng=1)
    np.testing.assert_array_equal(made.centroids, rounded.centroids)
    assert repr(made).startswith("ClusteringRelease(k-means")


def test_points_in_a_list_are_those_in_an_array() -> None:
    policy = Policy.full(Domain({"x": range(9), "y": [0, 0.5, 1]}))
    points = [[1.2, 0.4], [7.9, 1.0], [0.0, 0.1]]
    first, second = (
        md.tables.KMeans(2, iterations=2).release(form, policy, epsilon=5, rng=1) for form in (points, np.array(points))
    )
    assert first.answers.tolist() == second.answers.tolist()
    table = md.tables.KMeans(2, iterations=2).release([(1, 0.5), (8, 1), (0, 0)], policy, epsilon=5, rng=1)
    assert table.answers.tolist() == first.answers.tolist()


def test_initial_centroids_of_a_specification_are_those_of_the_release() -> None:
    query = parse(
        'table.person = false\ndomain.attributes.x = { range = [0, 9] }\npolicy.kind = "full"\n'
        'release = { kind = "kmeans", epsilon = 1000, k = 2, iterations = 1, initial = [[0.0], [1.0]] }\n'
    ).query
    assert np.asarray(query.initial).tolist() == [[0.0], [1.0]]
    assert (query.k, query.iterations) == (2, 1)
