import math
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

import mechdesign as md
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.model._claims import Claims, label_disclosed_sets, label_tied_secrets
from mechdesign.model._problem import largest_distortion

INF = math.inf


def test_what_is_forbidden_to_one_is_forbidden_to_all_that_are_tied_to_it():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    cost = np.array([[0, 1, 2.0], [1, 0, 1], [INF, 1, 0], [1, 1, 1], [1, INF, 1]])
    problem = md.Problem(np.full(5, 0.2), cost, [md.GraphPrivacy(1, graph)])
    assert np.isinf(problem.cost).tolist() == [[True, False, False]] * 3 + [[False, True, False]] * 2
    assert problem.cost[0].tolist() == [INF, 1, 2]
    again = md.Problem(problem.prior, problem.cost, problem.requirements)
    assert np.array_equal(again.cost, problem.cost)


def test_a_bound_in_one_direction_spreads_in_one_direction():
    distance = np.array([[0, 1, INF], [INF, 0, 1], [INF, INF, 0.0]])
    with pytest.warns(md.errors.MetricWarning):
        requirement = md.MetricPrivacy(1, distance)
    assert np.isinf(md.Problem(np.ones(3) / 3, [[0, 0], [0, 0], [INF, 0]], [requirement]).cost[:, 0]).all()
    assert np.isinf(md.Problem(np.ones(3) / 3, [[INF, 0], [0, 0], [0, 0]], [requirement]).cost[:, 0]).sum() == 1


@settings(max_examples=40)
@given(st.integers(0, 10**9))
def test_spreading_against_repeated_passes(seed):
    random = np.random.default_rng(seed)
    n, m = random.integers(1, 7), random.integers(1, 5)
    distance = np.where(random.random((n, n)) < 0.3, 1.0, INF)
    np.fill_diagonal(distance, 0)
    cost = np.where(random.random((n, m)) < 0.2, INF, 1.0)
    cost[:, 0] = 0
    forbidden = np.isinf(cost)
    for _ in range(n):
        for s in range(n):
            for t in range(n):
                if math.isfinite(distance[s, t]):
                    forbidden[s] |= forbidden[t]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", md.errors.MetricWarning)
        requirement = md.ThresholdPrivacy(1, distance, radius=1)
    problem = md.Problem(np.full(n, 1 / n), cost, [requirement])
    assert np.array_equal(np.isinf(problem.cost), forbidden)


def test_a_secret_needs_an_answer():
    with pytest.raises(InputError, match=r"cost\[1\]: forbids every answer"):
        md.Problem([0.5, 0.5], [[0, 1], [INF, INF]], [])
    with pytest.raises(InputError, match=r"cost\[1,0\]"):
        md.Problem([0.5, 0.5], [[0, 1], [math.nan, 0]], [])
    with pytest.raises(InfeasibleError, match="no channel has an answer for secret 0"):
        md.Problem([0.5, 0.5], [[0, INF], [INF, 0]], [md.GraphPrivacy(1, nx.path_graph(2))])


def test_the_largest_floor_is_one_that_tells_the_set():
    """Two pairs with answers of their own: the adversary always knows the pair, and errs within it."""
    cost = np.array([[0, 1, INF, INF], [1, 0, INF, INF], [INF, INF, 0, 1], [INF, INF, 1, 0]])
    prior, error = np.array([0.1, 0.2, 0.4, 0.3]), 1 - np.eye(4)
    largest = largest_distortion(prior, error, [0, 0, 1, 1])
    assert float(largest) == pytest.approx(0.1 + 0.3)
    md.Problem(prior, cost, [md.DistortionPrivacy(largest, error)])
    with pytest.raises(InfeasibleError, match=r"which of 2 sets .* is 0\.4\.") as caught:
        md.Problem(prior, cost, [md.DistortionPrivacy("0.41", error)])
    assert str(caught.value).startswith("requirements[0].minimum: ")
    # Pairs that share an answer need not be told apart.
    shared = np.column_stack((cost, np.full(4, 9.0)))
    assert label_disclosed_sets(shared, Claims()).tolist() == [0] * 4
    md.Problem(prior, shared, [md.DistortionPrivacy("0.6", error)])


def test_labels_count_from_the_first_secret():
    graph = md.GraphPrivacy(1, md.graphs.from_edges(5, [(4, 1), (2, 0)]))
    assert label_tied_secrets(5, graph.claims()).tolist() == [0, 1, 0, 2, 1]
    assert label_tied_secrets(3, Claims()).tolist() == [0, 1, 2]


@each_row("chosen", [[0, 2, 3], [4], [0, 1, 2, 3, 4]])
def test_restricted_requirements_say_the_same_of_the_secrets_kept(chosen):
    places = np.array([[0.0], [1], [3], [4], [9]])
    distance = md.distances.euclidean(places)
    chosen = np.array(chosen)
    for requirement in (
        md.MetricPrivacy("0.3", distance),
        md.ThresholdPrivacy("0.3", distance, radius=3),
        md.GraphPrivacy("0.3", nx.Graph([(0, 2), (2, 3), (3, 4), (1, 0)])),
    ):
        part = requirement.restrict(chosen)
        assert part.size == len(chosen)
        assert part.epsilon == requirement.epsilon
        whole, kept = requirement.claims()[0], part.claims()[0]
        pairs = dict(zip(zip(whole.sources, whole.targets, strict=True), whole.weights, strict=True))
        expected = {pair: weight for pair, weight in pairs.items() if set(pair) <= set(chosen.tolist())}
        ends = zip(chosen[kept.sources], chosen[kept.targets], strict=True)
        assert dict(zip(ends, kept.weights, strict=True)) == expected
    floor = md.DistortionPrivacy(1, distance).restrict(chosen)
    assert floor.minimum == 0
    assert np.array_equal(floor.distance, distance[:, chosen])
