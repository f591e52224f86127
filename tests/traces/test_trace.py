from __future__ import annotations

import itertools
from fractions import Fraction
from operator import attrgetter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from trace_examples import released, ring, strip

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.traces._adversary import degrees_of
from mechdesign.traces._hmm import logarithm
from mechdesign.traces._trace import Trace

MECHANISMS: list[Any] = ["planar-isotropic", "laplace", "lp"]


def reference(
    outputs: tuple[int, ...], n: int, initial: np.ndarray, matrix: np.ndarray, g: nx.Graph, delta: float | None
) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Run the algorithm from the text of the papers, with sums over all paths for beliefs.

    Return the posteriors, the beliefs after the whole trace and the probability of the outputs.
    """
    points = strip(n).points
    rows: list[np.ndarray] = []
    posteriors: list[np.ndarray] = []

    def beliefs(length: int) -> np.ndarray:
        total = np.zeros((length, n))
        for path in itertools.product(range(n), repeat=length):
            weight = initial[path[0]] * np.prod([matrix[a, b] for a, b in itertools.pairwise(path)])
            weight *= np.prod([row[state] for row, state in zip(rows, path, strict=False)])
            for time, state in enumerate(path):
                total[time, state] += weight
        return total

    for time, output in enumerate(outputs):
        prior = beliefs(time + 1)[time]
        prior /= prior.sum()
        if delta is None:
            members = [s for s in range(n) if prior[s] > 0]
            nearest: dict[int, int] = {s: s for s in members}
        else:
            order = sorted(range(n), key=lambda s: (-prior[s], s))
            count = next(k for k in range(1, n + 1) if prior[order[:k]].sum() >= 1 - delta - 1e-12)
            members = sorted(order[:count])
            nearest = {s: min(members, key=lambda m: (abs(points[m, 0] - points[s, 0]), m)) for s in range(n)}
        graph = g.subgraph(members).copy()
        if len(members) > 1 and list(nx.isolates(graph)):
            graph = md.graphs.repair(points, graph, hull="component").graph
        channel = md.mechanisms.PlanarIsotropic(1, points, graph).channel(strip(n)).matrix
        rows.append(np.array([channel[members.index(nearest[s]), output] if s in nearest else 0.0 for s in range(n)]))
        now = beliefs(time + 1)[time]
        posteriors.append(now / now.sum())
    whole = beliefs(len(outputs))
    return posteriors, whole / whole.sum(axis=1, keepdims=True), float(whole[0].sum())


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 0.25])
def test_the_whole_algorithm_agrees_with_all_paths_and_all_outputs(delta: float | None) -> None:
    n, g = 4, md.graphs.line(4)
    initial, matrix = np.array([0.2, 0.5, 0.3, 0.0]), ring(4)
    trace = Trace(strip(n), g, 1, matrix, initial, delta=delta)
    total = 0.0
    for outputs in itertools.product(range(n), repeat=3):
        again = trace.restart()
        with released(list(outputs)):
            releases = [again.step(1) for _ in outputs]
        posteriors, smoothed, probability = reference(outputs, n, initial, matrix, g, delta)
        for release, expected in zip(releases, posteriors, strict=True):
            np.testing.assert_allclose(release.posterior, expected, rtol=1e-9, atol=1e-15)
        beliefs = md.traces.Adversary(matrix, initial).watch(releases)
        np.testing.assert_allclose(beliefs.smoothed, smoothed, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(beliefs.log_evidence.sum(), np.log(probability), atol=1e-9)
        total += probability
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_surrogate_never_shows(mechanism: Any) -> None:
    prior = [0.02, 0.45, 0.03, 0.45, 0.05]
    trace = Trace(strip(5), md.graphs.complete(5), 1, ring(5), prior, mechanism, delta=0.11)
    stage = trace.table(1)[0]
    assert stage.members.tolist() == [1, 3]
    # State 2 lies between both members: the lower one.
    assert stage.surrogates.tolist() == [1, 1, 1, 3, 3]
    for state, surrogate in enumerate(stage.surrogates.tolist()):
        draws = [[stage.draw(s, np.random.default_rng(seed))[0] for seed in range(20)] for s in (state, surrogate)]
        assert draws[0] == draws[1]
        for output in stage.fitted.observables.tolist():
            likelihood = stage.log_likelihood(output)
            assert likelihood[state] == likelihood[surrogate]


def test_outputs_of_a_state_outside_follow_the_row_of_its_surrogate() -> None:
    trace = Trace(strip(3), md.graphs.complete(3), 1, ring(3), [0.5, 0.45, 0.05], delta=0.06, rng=3)
    stage = trace.table(1)[0]
    assert stage.surrogates.tolist() == [0, 1, 1]
    rng = np.random.default_rng(4)
    outputs = [stage.draw(2, rng)[0] for _ in range(3000)]
    expected = stage.channel.matrix[1] * len(outputs)
    assert stats.chisquare(np.bincount(outputs, minlength=3), expected).pvalue > 1e-3


def test_a_release_depends_on_the_true_state_through_its_output_alone() -> None:
    trace = Trace(strip(5), md.graphs.line(5), 1, ring(5), np.full(5, 0.2), delta=0.3)
    outputs = [0, 1, 1, 4]
    records = []
    for truth in ([0, 1, 2, 3], [4, 4, 4, 4]):
        again = trace.restart()
        with released(outputs):
            records.append([again.step(state) for state in truth])
    for one, other in zip(*records, strict=True):
        assert repr(one) == repr(other)
        assert repr(one.stage) == repr(other.stage)
        for name in ("posterior", "log_likelihood", "coordinates", "stage.prior", "stage.members"):
            np.testing.assert_array_equal(*map(attrgetter(name), (one, other)))
        assert set(one.stage.graph.edges) == set(other.stage.graph.edges)
        assert one.certificate == other.certificate


@pytest.mark.parametrize("hull", ["component", "graph"])
@pytest.mark.parametrize("delta", [None, 0.2])
def test_the_optimal_channel_costs_least_at_every_step(hull: Any, delta: float | None) -> None:
    domain = md.Domain.grid(4, 3, 4.0, 3.0)
    rng = np.random.default_rng(5)
    g = md.graphs.union(md.graphs.blocks(domain, 2), md.graphs.threshold(domain, 1))
    matrix = rng.random((12, 12)) ** 6 * (rng.random((12, 12)) < 0.6) + np.eye(12)
    matrix /= matrix.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(12))
    traces = {
        (mechanism, within): Trace(
            domain, g, 1, matrix, initial, mechanism, hull=hull, delta=delta, within=within, rng=6
        )
        for mechanism, within in [*((m, "map") for m in MECHANISMS), ("lp", "component")]
    }
    for _ in range(3):
        output = int(rng.integers(12))
        with released([output] * len(traces)):
            releases = {key: trace.step(int(rng.integers(12))) for key, trace in traces.items()}
        # One belief for all, so that only the mechanisms differ.
        for trace in traces.values():
            trace._log_posterior = traces["lp", "map"]._log_posterior
        costs = {}
        for key, release in releases.items():
            assert release.certificate is not None
            assert release.certificate.holds
            costs[key] = release.certificate.expected_cost
            distance = md.distances.euclidean(domain)
            rows = release.stage.channel.matrix[np.searchsorted(release.stage.members, release.stage.surrogates)]
            actual = release.stage.prior @ (rows * distance[:, release.stage.fitted.observables]).sum(axis=1)
            assert costs[key] == pytest.approx(actual, rel=1e-9)
        assert costs["lp", "map"] <= costs["lp", "component"] * (1 + 1e-9)
        assert costs["lp", "map"] < min(costs["planar-isotropic", "map"], costs["laplace", "map"])


def test_every_channel_keeps_its_graph_and_no_smaller_epsilon() -> None:
    domain = md.Domain.grid(3, 3, 3.0, 3.0)
    for mechanism in MECHANISMS:
        uniform = (np.full((9, 9), 1 / 9), np.full(9, 1 / 9))
        trace = Trace(domain, md.graphs.blocks(domain, 2), 1, *uniform, mechanism, repaired="all")
        release = trace.step(0)
        assert not list(nx.isolates(release.stage.graph)), "cell 8 is a block of its own, and is joined to another"
        assert release.stage.repair is not None
        assert release.stage.repair.added[0][0] == 8
        (checked,) = release.certificate.requirements
        assert checked.kind == "graph"
        assert checked.nominal == "1"
        assert checked.realised <= 1
        numerators = release.stage.channel.numerators
        members = release.stage.members.tolist()
        for s, t in release.stage.graph.edges:
            ratio = Fraction(0)
            for a, b in ((s, t), (t, s)):
                for x, y in zip(
                    numerators[members.index(a)].tolist(), numerators[members.index(b)].tolist(), strict=True
                ):
                    ratio = max(ratio, Fraction(x, y)) if x else ratio
            assert float(ratio) <= np.e


def test_the_optimal_channel_protects_what_a_hull_would() -> None:
    # Cells 0-1 are joined; 2 is alone, but the hull of the graph, a segment of length 1, hides it behind 1.
    g = md.graphs.from_edges(3, [(0, 1)])
    uniform = np.full(3, 1 / 3)
    everybody = {"repaired": "all"}
    by_hull = Trace(strip(3), g, 1, np.eye(3), uniform, "lp", hull="graph", **everybody).table(1)[0]
    assert set(by_hull.graph.edges) == {(0, 1), (1, 2)}
    assert by_hull.repair is None
    repaired = Trace(strip(3), g, 1, np.eye(3), uniform, "lp", **everybody).table(1)[0]
    assert repaired.repair is not None
    assert repaired.repair.added == ((2, 1),)
    exposed = Trace(strip(3), g, 1, np.eye(3), uniform, "lp", repair=None, **everybody).table(1)[0]
    assert exposed.channel.matrix[2].tolist() == [0, 0, 1]
    # The certificate of the step says so, also where noise is of another mechanism; a warning at each step would not.
    assert exposed.certificate.revealed == (2,)
    assert by_hull.certificate.revealed == repaired.certificate.revealed == ()
    noisy = Trace(strip(3), g, 1, np.eye(3), uniform, repair=None, hull="graph").table(1)[0]
    assert noisy.certificate.revealed == ()
    assert exposed.degrees.tolist() == [2, 2, 1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_states_that_the_policy_leaves_free_are_released_as_they_are(mechanism: Any) -> None:
    # 0-1-2 are joined, 3 and 4 are free by choice (PGLP, Lemma 1).
    g, uniform = md.graphs.from_edges(5, [(0, 1), (1, 2)]), np.full(5, 0.2)
    model = (strip(5), g, 1, np.full((5, 5), 0.2), uniform, mechanism)
    stage = Trace(*model).table(1)[0]
    assert set(stage.graph.edges) == {(0, 1), (1, 2)}
    assert stage.repair is None
    for state in (3, 4):
        row = stage.channel.matrix[state]
        assert row[stage.fitted.observables.tolist().index(state)] == 1
    assert stage.certificate is not None
    # Noise of the others may lead to the place of a free state, which an answer then does not reveal for certain.
    assert stage.certificate.revealed == ((3, 4) if mechanism == "lp" else ())
    everybody = Trace(*model, repaired="all").table(1)[0]
    assert not list(nx.isolates(everybody.graph))
    assert everybody.degrees.min() > 1


def test_a_free_state_has_the_noise_of_the_hull_of_the_graph() -> None:
    g, uniform = md.graphs.from_edges(5, [(0, 1), (1, 2)]), np.full(5, 0.2)
    for mechanism in MECHANISMS[:2]:
        stage = Trace(strip(5), g, 1, np.eye(5), uniform, mechanism, hull="graph").table(1)[0]
        assert set(stage.graph.edges) == {(0, 1), (1, 2)}
        assert stage.channel.matrix[4].max() < 1
        assert stage.degrees.tolist() == [2, 3, 3, 3, 2]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_states_that_the_constraint_disconnected_are_repaired(mechanism: Any) -> None:
    # 0-1 and 3-4 are joined, 2 and 6 are free; 1 is impossible, which disconnects 0.
    g = md.graphs.from_edges(7, [(0, 1), (3, 4), (4, 5)])
    prior = np.array([0.2, 0, 0.2, 0.2, 0.1, 0.1, 0.2])
    hulls: list[Any] = ["component", "graph"]
    for hull in hulls:
        stage = Trace(strip(7), g, 1, np.eye(7), prior, mechanism, hull=hull, repair="nearest").table(1)[0]
        assert stage.repair is not None
        # Its nearest neighbour is the free state 2, which the repair joins to it.
        assert stage.repair.added == ((0, 2),), hull
        assert stage.repair.order == (0,)
        assert (stage.degrees[6] == 1) == (mechanism == "lp" or hull == "component"), hull
        assert stage.certificate is not None
        assert stage.certificate.holds


def test_no_edge_of_a_hull_leads_to_a_free_state() -> None:
    # The hull of the graph is a vertical segment: it protects 1 by the free state 5, and by 7 where that is possible.
    places = [[0, 0], [1, 0], [2, 0], [9, 0], [9, 1], [1, 1], [0, 1], [1, -1], [1, -2]]
    domain = md.Domain.from_points(np.array(places, dtype=float))
    g = md.graphs.from_edges(9, [(1, 2), (3, 4), (0, 6), (7, 8)])
    # Where only the free state is left, a repair may join it, and says so; without a repair 1 is exposed.
    for impossible, repair, edges, added in (
        ([2], "area", [(1, 7)], None),
        ([2], None, [(1, 7)], None),
        ([2, 7, 8], "area", [(1, 5)], ((1, 5),)),
        ([2, 7, 8], "exhaustive", [(1, 5)], ((1, 5),)),
        ([2, 7, 8], None, [], None),
    ):
        prior = np.ones(9)
        prior[impossible] = 0
        model = (domain, g, 1, np.eye(9), prior / prior.sum(), "lp")
        stage = Trace(*model, hull="graph", repair=repair).table(1)[0]
        assert (stage.repair and stage.repair.added) == added
        kept = md.graphs.constrain(g, stage.members)
        assert sorted(set(stage.graph.edges) - set(kept.edges)) == edges
        free = stage.members.tolist().index(5)
        assert (free in stage.certificate.revealed) == (added is None)


def test_a_twin_that_the_policy_leaves_free_is_joined_by_a_repair_only() -> None:
    domain = md.Domain.from_points([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0], [6.0, 0.0]])
    # 0 loses its neighbour 2; its twin 1 is free.
    model = (domain, md.graphs.from_edges(4, [(0, 2)]), 1, np.eye(4), [0.4, 0.3, 0, 0.3], "lp")
    for repair, edges in (("nearest", [(0, 1)]), (None, [])):
        stage = Trace(*model, repair=repair, cost=1 - np.eye(4)).table(1)[0]
        assert sorted(stage.graph.edges) == edges
        assert stage.certificate.revealed == ((2,) if edges else (0, 1, 2))


def test_free_states_and_repairs_in_every_small_policy() -> None:
    rng = np.random.default_rng(20)
    uncovered = 0
    for _ in range(30):
        n = int(rng.integers(3, 7))
        places = md.Domain.from_points(rng.integers(0, 4, (n, 2)).astype(float))
        g = nx.gnp_random_graph(n, 0.3, seed=int(rng.integers(2**31)))
        prior = np.where(rng.random(n) < 0.3, 0.0, rng.random(n))
        prior[0] = 1.0
        mechanism = MECHANISMS[int(rng.integers(3))]
        hull: Any = ["component", "graph"][int(rng.integers(2))]
        stage = Trace(places, g, 1, np.eye(n), prior / prior.sum(), mechanism, hull=hull, tolerance=1e-2).table(1)[0]
        if len(stage.members) == 1:
            continue
        left_alone = {s for s in stage.members.tolist() if stage.degrees[s] == 1}
        assert left_alone <= {s for s in stage.members.tolist() if g.degree(s) == 0}
        # Every added edge has a disconnected end.
        for s, t in set(stage.graph.edges) - {tuple(sorted(edge)) for edge in g.edges}:
            assert any(g.degree(end) > 0 and not set(g.adj[end]) & set(stage.members.tolist()) for end in (s, t))
        uncovered += len(left_alone)
        assert stage.certificate is not None
        assert stage.certificate.holds
    assert uncovered > 5


def test_states_of_one_place_have_one_law_under_a_hull() -> None:
    places = [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    domain = md.Domain.from_points(places, labels=["home", "shop", "den", "far"])
    g = md.graphs.complete(4)
    for mechanism in ("planar-isotropic", "laplace"):
        trace = Trace(domain, g, 1, np.full((4, 4), 0.25), [0.4, 0.2, 0.3, 0.1], mechanism, rng=1)
        stage = trace.table(1)[0]
        assert stage.fitted.observables.tolist() == [0, 1, 3]
        rows = stage.channel.numerators
        np.testing.assert_array_equal(rows[0], rows[2])
        assert stage.certificate is not None
        assert stage.certificate.holds
        release = trace.step("den")
        assert release.output in (0, 1, 3)
        # Their odds never change.
        assert release.posterior[0] / release.posterior[2] == pytest.approx(0.4 / 0.3, rel=1e-9)
        drawn = Trace(domain, g, 1, np.full((4, 4), 0.25), [0.4, 0.2, 0.3, 0.1], mechanism, snap=False, rng=1).step(2)
        assert drawn.posterior[0] / drawn.posterior[2] == pytest.approx(0.4 / 0.3, rel=1e-9)


def test_twins_in_different_components_have_one_law_under_the_hull_of_the_graph() -> None:
    # A segment for a hull: each component uses columns of its own, but for those of the twins 0 and 3.
    domain = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [0.0, 0.0], [4.0, 5.0], [0.0, 0.0]])
    g = md.graphs.from_edges(6, [(0, 1), (2, 4)])
    for mechanism in MECHANISMS[:2]:
        stage = Trace(domain, g, 1, np.eye(6), np.full(6, 1 / 6), mechanism, hull="graph").table(1)[0]
        rows = stage.channel.numerators
        np.testing.assert_array_equal(rows[[3, 5]], rows[[0, 0]])
        assert stage.certificate is not None
        assert stage.certificate.holds


def test_states_of_one_place_are_states_like_others_for_the_optimal_channel() -> None:
    domain = md.Domain.from_points([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0], [6.0, 0.0]])
    hamming = 1 - np.eye(4)
    prior = [0.3, 0.3, 0.2, 0.2]
    free = Trace(domain, md.graphs.from_edges(4, [(2, 3)]), 1, np.eye(4), prior, "lp", cost=hamming).table(1)[0]
    assert free.channel.matrix[:2, :2].tolist() == [[1, 0], [0, 1]]
    # Both lose their neighbours: the hull {0} protects each by the other, the channel by an edge between the two.
    torn = md.graphs.from_edges(4, [(0, 2), (1, 3)])
    alone = Trace(domain, torn, 1, np.eye(4), [0.5, 0.5, 0, 0], "lp", cost=hamming).table(1)[0]
    assert set(alone.graph.edges) == {(0, 1)}
    np.testing.assert_allclose(alone.channel.matrix[0, 0], np.e / (1 + np.e), rtol=1e-5)
    # A member of a δ-location set is released as itself, not as its twin.
    trace = Trace(domain, md.graphs.complete(4), 1, np.eye(4), prior, "lp", delta=0, cost=hamming)
    assert trace.table(1)[0].surrogates.tolist() == [0, 1, 2, 3]


def test_degrees_of_protection() -> None:
    domain, uniform = strip(5), np.full(5, 0.2)
    g = md.graphs.union(md.graphs.from_edges(5, [(0, 1)]), md.graphs.from_edges(5, [(2, 3), (3, 4)]))

    def degrees(mechanism: Any, **choices: Any) -> list[int]:
        return Trace(domain, g, 1, np.eye(5), uniform, mechanism, **choices).table(1)[0].degrees.tolist()

    # The hulls of both components are the same segment: cell 1 is as well hidden by cell 2 as by cell 0.
    assert (
        degrees("planar-isotropic")
        == degrees("laplace")
        == degrees("planar-isotropic", hull="graph")
        == [2, 3, 3, 3, 2]
    )
    assert degrees("lp") == [2, 2, 2, 3, 2]
    known = Trace(domain, g, 1, np.eye(5), [0, 1, 0, 0, 0]).table(1)[0]
    assert known.degrees.tolist() == [0, 1, 0, 0, 0]
    assert degrees_of([known, known], [1, 2]).tolist() == [1, 0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_filter_is_calibrated(mechanism: Any) -> None:
    n, rng = 4, np.random.default_rng(7)
    initial, matrix = np.array([0.4, 0.3, 0.2, 0.1]), ring(n, 0.3)
    trace = Trace(strip(n), md.graphs.line(n), 1, matrix, initial, mechanism, delta=0.15, tolerance=1e-6)
    masses, expected = [], []
    for _ in range(80):
        again = trace.restart(rng=rng)
        state = int(rng.choice(n, p=initial))
        for step in range(3):
            state = int(rng.choice(n, p=matrix[state])) if step else state
            posterior = again.step(state).posterior
            masses.append(posterior[state])
            expected.append((posterior**2).sum())
    gap = np.array(masses) - np.array(expected)
    assert abs(gap.mean()) < 3.5 * gap.std() / np.sqrt(len(gap))


def test_seeds_reproduce_and_none_does_not() -> None:
    domain = strip(30)

    def run(rng: Any) -> list[int | None]:
        trace = Trace(domain, md.graphs.complete(30), 0.5, ring(30), np.full(30, 1 / 30), rng=rng)
        return [trace.step(state).output for state in range(10)]

    assert run(3) == run(3) == run(np.random.default_rng(3))
    assert run(3) != run(4)
    assert run(None) != run(None)


def test_nothing_changes_when_a_step_fails() -> None:
    def fresh() -> Trace:
        return Trace(strip(4), md.graphs.line(4), 1, ring(4), [1, 0, 0, 0], rng=8)

    undisturbed, disturbed = fresh(), fresh()
    for state in (0, 1, 1):
        before = disturbed.belief
        for wrong in (3, 4, -1, "x", 1.5, True):
            if wrong != 3 or state == 0:
                with pytest.raises(InputError, match="true_state"):
                    disturbed.step(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="epsilon"):
            disturbed.step(state, epsilon=0)
        np.testing.assert_array_equal(disturbed.belief, before)
        one, other = undisturbed.step(state), disturbed.step(state)
        assert (one.output, one.stage.time) == (other.output, other.stage.time)


def test_a_state_that_cannot_be_reached_does_not_show_under_a_delta() -> None:
    # A δ-location set releases something near instead: an error would tell.
    assert Trace(strip(4), md.graphs.line(4), 1, ring(4), [1, 0, 0, 0], delta=0).step(2).output == 0


def test_a_known_state_is_released_as_it_is_and_domains_grow_from_there() -> None:
    trace = Trace(strip(5), md.graphs.complete(5), 1, ring(5), [0, 0, 1, 0, 0], rng=9)
    first, second = trace.step(2), trace.step(1)
    assert first.output == 2
    assert first.stage.members.tolist() == [2]
    assert first.stage.hull.dimension == 0
    assert first.stage.repair is None
    assert second.stage.members.tolist() == [1, 2, 3]
    assert second.stage.hull.dimension == 1
    alone = Trace(strip(1), md.graphs.complete(1), 1, [[1.0]], [1.0]).step(0)
    assert alone.output == 0
    assert alone.certificate.holds
    assert alone.posterior.tolist() == [1.0]
    for mechanism in ("laplace", "lp"):
        assert Trace(strip(1), md.graphs.complete(1), 1, [[1.0]], [1.0], mechanism).step(0).output == 0


def test_labels_are_as_good_as_indices() -> None:
    domain = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0]], ["home", "work"])
    trace = Trace(domain, md.graphs.complete(2), 1, np.eye(2), [0.5, 0.5], rng=1)
    assert trace.step("work").output == trace.restart(rng=1).step(1).output


def test_several_releases_at_one_time() -> None:
    trace = Trace(strip(3), md.graphs.line(3), 1, ring(3), [0.5, 0.3, 0.2], rng=10)
    first = trace.step(1)
    second = trace.step(1, epsilon="0.5", same_time=True)
    assert (first.stage.time, second.stage.time, second.stage.epsilon) == (0, 0, Fraction(1, 2))
    np.testing.assert_allclose(second.stage.prior, first.posterior)
    product = np.array([0.5, 0.3, 0.2]) * np.exp(first.log_likelihood + second.log_likelihood)
    np.testing.assert_allclose(second.posterior, product / product.sum())
    third = trace.step(2)
    assert third.stage.time == 1
    np.testing.assert_allclose(third.stage.prior, second.posterior @ ring(3))
    watched = md.traces.Adversary(ring(3), [0.5, 0.3, 0.2]).watch([first, second, third])
    np.testing.assert_allclose(watched.posteriors, [second.posterior, third.posterior])


def test_several_queries_at_one_time() -> None:
    # The state is asked for its place, and for its temperature.
    places, temperatures = strip(3), md.Domain.from_points([[20.0], [25.0], [18.0]], unit="°C")
    place = Trace(places, md.graphs.line(3), 1, ring(3), [0.5, 0.3, 0.2], rng=10)
    temperature = Trace(temperatures, md.graphs.complete(3), "0.5", ring(3), [0.5, 0.3, 0.2], rng=11)
    releases = []
    for state in (1, 2):
        one, other = place.step(state), temperature.step(state)
        place.observe(other.log_likelihood)
        temperature.observe(one.log_likelihood)
        np.testing.assert_allclose(place.belief, temperature.belief)
        releases += [one, other]
    beliefs = md.traces.Adversary(ring(3), [0.5, 0.3, 0.2]).watch(releases)
    np.testing.assert_allclose(beliefs.posteriors[1], place.belief)
    total = md.traces.compose(releases)
    assert total.epsilon == 3
    assert set(total.graph.edges) == {(0, 1), (1, 2)}
    belief = place.belief
    for wrong in ([-np.inf] * 3, [0.0, np.nan, 0.0], [0.0, 0.0]):
        with pytest.raises(InputError, match="log_likelihood"):
            place.observe(wrong)
    np.testing.assert_array_equal(place.belief, belief)


def test_coordinates_far_away_rule_nothing_out() -> None:
    domain = md.Domain.from_points([[0.0], [1.0], [900.0]])
    g = md.graphs.from_edges(3, [(0, 1)])
    trace = Trace(domain, g, 2, ring(3), [0.4, 0.4, 0.2], hull="graph", repair=None, snap=False, rng=1)
    assert trace.step(0).posterior[2] == 0
    assert trace.table(1)[0].members.tolist() == [0, 1, 2]


def test_what_was_fitted_serves_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(strip(4), md.graphs.line(4), 1, ring(4), np.full(4, 0.25))
    one, other = trace.table(2)
    assert one.fitted is other.fitted
    assert trace.restart().table(1)[0].fitted is one.fitted
    # Another ε needs another mechanism for the same states.
    half = trace.restart().step(0, epsilon="0.5").stage
    fresh = Trace(strip(4), md.graphs.line(4), "0.5", ring(4), np.full(4, 0.25)).table(1)[0]
    np.testing.assert_array_equal(half.channel.numerators, fresh.channel.numerators)
    monkeypatch.setattr("mechdesign.traces._planner._CACHE_BYTES", 1)
    by_prior = Trace(strip(4), md.graphs.line(4), 1, ring(4), [1, 0, 0, 0])
    # Four constrained domains, the last one at two times; only the latest is kept.
    assert len({id(stage.fitted) for stage in by_prior.table(5) + by_prior.table(5)}) == 8


def test_a_table_of_channels() -> None:
    trace = Trace(strip(5), md.graphs.complete(5), 1, ring(5), [0, 0, 1, 0, 0], "lp")
    stages = trace.table(4)
    assert [stage.time for stage in stages] == [0, 1, 2, 3]
    np.testing.assert_allclose(stages[3].prior, np.linalg.matrix_power(ring(5), 3)[2])
    assert [len(stage.members) for stage in stages] == [1, 3, 5, 5]
    assert all(stage.certificate.holds for stage in stages)
    trace.step(2)
    later = trace.table(2)
    assert later[0].time == 1
    assert trace.table(0) == ()
    np.testing.assert_allclose(later[0].prior, stages[1].prior)


def test_a_stage_is_exported_and_verified(tmp_path: Any) -> None:
    for mechanism in MECHANISMS:
        trace = Trace(strip(4), md.graphs.line(4), 1, ring(4), np.full(4, 0.25), mechanism, delta=0.3)
        stage = trace.table(1)[0]
        md.save(stage.design, tmp_path / mechanism, report=False)
        certificate = md.verify(tmp_path / mechanism)
        assert certificate.differences(stage.certificate) == ()


def test_outputs_that_are_not_snapped() -> None:
    domain = md.Domain.grid(3, 3, 3.0, 3.0)
    trace = Trace(domain, md.graphs.complete(9), 1, np.full((9, 9), 1 / 9), np.full(9, 1 / 9), snap=False, rng=11)
    release = trace.step(4)
    assert release.output is None
    assert release.certificate is None
    assert release.stage.realised is None
    lengths = release.stage.hull.norm(release.coordinates - domain.points)
    np.testing.assert_allclose(release.posterior, np.exp(-lengths) / np.exp(-lengths).sum())
    assert "Release(time=0, output=[" in repr(release)


def test_coordinates_off_the_map_of_a_degenerate_component_exclude_it() -> None:
    # Cells 0 and 1 get noise along the x axis, at y = 0.5; cells 2, 3 and 5 in the plane.
    domain = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [1.0, 5.0], [0.0, 6.0]])
    g = md.graphs.from_edges(5, [(0, 1), (2, 3), (2, 4)])
    trace = Trace(domain, g, 1, np.eye(5), np.full(5, 0.2), snap=False, rng=12)
    assert trace.step(0).posterior[2:].sum() == 0
    assert trace.restart(rng=12).step(2).posterior[:2].sum() == 0


def test_what_cannot_be_snapped_says_what_a_trace_can_do() -> None:
    corners = md.Domain.from_points(np.vstack((np.zeros(3), np.eye(3))))
    model = (corners, md.graphs.complete(4), 1, np.full((4, 4), 0.25), [0.25] * 4)
    message = r'^snap: is True, but .* has 3 dimensions.*snap=False, or use mechanism="lp"'
    with pytest.raises(InputError, match=message):
        Trace(*model).step(0)
    assert Trace(*model, snap=False).step(0).output is None
    assert Trace(*model, "lp").step(0).output in range(4)
    with pytest.raises(InputError, match=r'^epsilon: is too small.*use mechanism="lp"'):
        Trace(strip(3), md.graphs.line(3), 1e-15, ring(3), [1, 0, 0]).step(0)


def test_the_solver_of_each_step_may_be_chosen() -> None:
    model = (strip(3), md.graphs.line(3), 1, ring(3), [0.5, 0.25, 0.25], "lp")
    release = Trace(*model, settings=md.SolveSettings(solver="highs-simplex")).step(0)
    assert release.certificate is not None
    assert release.certificate.provenance["solver"] == "highs-simplex"
    with pytest.raises(InputError, match=r"^solver: is not known"):
        Trace(*model, settings=md.SolveSettings(solver="abacus")).step(0)


def test_logarithms_of_numerators_are_those_of_the_exact_probabilities() -> None:
    stage = Trace(strip(3), md.graphs.line(3), 1, ring(3), [0.2, 0.3, 0.5]).table(1)[0]
    for output in range(3):
        np.testing.assert_allclose(stage.log_likelihood(output), logarithm(stage.channel.matrix[:, output]), rtol=1e-14)


@settings(max_examples=10)
@given(data=st.data())
def test_any_policy_is_kept_whatever_comes(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Few coordinates: collinear places, ties and degenerate hulls.
    grid = np.array(list(itertools.product(range(4), range(3))), dtype=np.float64)
    domain = md.Domain.from_points(grid[rng.choice(12, n, replace=False)])
    g = nx.gnp_random_graph(n, data.draw(st.sampled_from([0.0, 0.3, 0.7])), seed=int(rng.integers(2**31)))
    matrix = rng.dirichlet(np.ones(n), size=n) * (rng.random((n, n)) < 0.7) + 0.1 * np.eye(n)
    matrix /= matrix.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.full(n, 0.3))
    mechanism: Any = data.draw(st.sampled_from(MECHANISMS))
    trace = Trace(
        domain,
        g,
        data.draw(st.sampled_from(["0.01", 1, 20])),
        matrix,
        initial,
        mechanism,
        delta=data.draw(st.sampled_from([None, 0, 0.3])),
        repair=data.draw(st.sampled_from(["area", "nearest", None])),
        repaired=data.draw(st.sampled_from(["disconnected", "all"])),
        hull=data.draw(st.sampled_from(["component", "graph"])),
        within=data.draw(st.sampled_from(["component", "map"])),
        snap=mechanism == "lp" or data.draw(st.booleans()),
        tolerance=1e-3,
        rng=rng,
    )
    state = int(rng.choice(n, p=initial))
    releases = []
    for _ in range(3):
        release = trace.step(state)
        releases.append(release)
        assert release.certificate is None or release.certificate.holds
        assert release.posterior[state] > 0
        joint = release.stage.prior * np.exp(release.log_likelihood - release.log_likelihood.max())
        np.testing.assert_allclose(release.posterior, joint / joint.sum(), rtol=1e-9, atol=1e-300)
        if trace._planner.repair is not None and len(release.stage.members) > 1:
            free = [s for s in release.stage.members.tolist() if not g.degree(s)]
            free *= trace._planner.repaired == "disconnected"
            assert release.stage.degrees[np.setdiff1d(release.stage.members, free)].min(initial=2) > 1
        for edge in release.stage.graph.edges:
            pair = release.log_likelihood[list(edge)]
            assert pair.max() == -np.inf or np.ptp(pair) <= float(release.stage.epsilon) + 1e-6
        state = int(rng.choice(n, p=matrix[state]))
    np.testing.assert_allclose(
        md.traces.Adversary(matrix, initial).watch(releases).posteriors, [r.posterior for r in releases], rtol=1e-9
    )
    assert md.traces.compose(releases).epsilon == 3 * release.stage.epsilon
