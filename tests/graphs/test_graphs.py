from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import POLICY, states
from refusals import Mistake, assert_refused
from scipy import sparse

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError, InputWarning
from mechdesign.graphs._builders import check_graph, components, delta_set, disconnected, edge_array, excluded
from mechdesign.graphs._exposure import component_hulls
from mechdesign.measures import _utility as metrics


def edges(graph: nx.Graph) -> set[tuple[int, int]]:
    return {tuple(sorted(edge)) for edge in graph.edges()}


def pairs_where(n: int, holds) -> set[tuple[int, int]]:
    return {(i, j) for i, j in itertools.combinations(range(n), 2) if holds(i, j)}


# Builders


def test_complete_and_line() -> None:
    assert edges(graphs.complete(4)) == set(itertools.combinations(range(4), 2))
    assert edges(graphs.line(4)) == {(0, 1), (1, 2), (2, 3)}
    for one in (graphs.complete(1), graphs.line(1)):
        assert list(one) == [0]
        assert not one.edges


def test_blocks_against_brute_force() -> None:
    for columns, rows, k in ((6, 6, 3), (7, 5, 3), (4, 3, 1), (5, 4, (2, 3)), (3, 3, 10)):
        blocks_join_what_is_together(columns, rows, k)


def blocks_join_what_is_together(columns: int, rows: int, k: int | tuple[int, int]) -> None:
    domain = md.Domain.grid(columns, rows, 1.0, 1.0)
    wide, high = k if isinstance(k, tuple) else (k, k)

    def together(i: int, j: int) -> bool:
        (r, c), (s, d) = divmod(i, columns), divmod(j, columns)
        return (r // high, c // wide) == (s // high, d // wide)

    with pytest.warns(InputWarning) if k == 1 else contextlib.nullcontext():
        graph = graphs.blocks(domain, k)
    assert edges(graph) == pairs_where(columns * rows, together)
    with pytest.warns(InputWarning) if k == 1 else contextlib.nullcontext():
        assert edges(graphs.blocks(domain.cells, k)) == edges(graph)


def test_neighbours8_against_brute_force() -> None:
    for columns, rows in ((5, 4), (1, 6), (1, 1), (2, 2)):
        cells = list(itertools.product(range(rows), range(columns)))
        touch = pairs_where(len(cells), lambda i, j: np.abs(np.subtract(cells[i], cells[j])).max() == 1)  # noqa: B023
        assert edges(graphs.neighbours8(md.Domain.grid(columns, rows, 2.0, 3.0))) == touch, (columns, rows)


def test_categories_within_regions() -> None:
    labels = ["shop", "bar", "shop", None, "shop", None]
    assert edges(graphs.categories(labels)) == {(0, 2), (0, 4), (2, 4)}
    assert edges(graphs.categories(labels, regions=[1, 1, 2, 1, 1, 1])) == {(0, 4)}
    assert edges(graphs.categories(np.array([3, 1, 3]))) == {(0, 2)}
    assert edges(POLICY) == {(1, 2), (3, 4), (3, 5), (4, 5)}


def test_threshold_is_the_threshold_requirement() -> None:
    domain = md.Domain.grid(5, 4, 5.0, 4.0)
    distance = md.distances.euclidean(domain)
    for r in (1, 1.4142135623730951, 1.41, 2, "2.5"):
        within = pairs_where(domain.size, lambda i, j, r=r: distance[i, j] <= float(r))
        assert edges(graphs.threshold(domain, r)) == within, r
        claim = md.ThresholdPrivacy(1, distance, r).claims()[0]
        assert edges(graphs.threshold(domain.points, r)) == {
            (s, t) for s, t in zip(claim.sources.tolist(), claim.targets.tolist(), strict=True) if s < t
        }, r


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_threshold_is_exact_at_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-5, 6, (12, 2)) * 0.1
    distance = md.distances.euclidean(points)
    r = float(rng.choice(distance[distance > 0]))
    # What rounding may have lengthened is within, and twice as much is not.
    for bound in (r, np.nextafter(r, 0), np.nextafter(r, 9), r * (1 - 2.1e-9), r * (1 + 2.1e-9)):
        expected = pairs_where(12, lambda i, j, bound=bound: distance[i, j] <= bound * (1 + 1e-9) + 1e-15)
        with contextlib.nullcontext() if expected else pytest.warns(InputWarning):
            assert edges(graphs.threshold(points, float(bound))) == expected
    found = md.distances.pairs_within(points, r)
    assert found.tolist() == sorted(found.tolist())


def test_transitions_join_what_one_state_reaches() -> None:
    rng = np.random.default_rng(3)
    steps = rng.random((15, 15)) < 0.15
    steps[~steps.any(axis=1), 0] = True
    P = steps / steps.sum(axis=1, keepdims=True)
    both = pairs_where(15, lambda j, k: bool((steps[:, j] & steps[:, k]).any()))
    stored_zero = sparse.coo_array(([0.0], ([0], [14])), shape=(15, 15))
    for given_as in (P, md.MarkovChain(P), sparse.csr_array(P), sparse.csr_array(P) + stored_zero):
        assert edges(graphs.transitions(given_as)) == both
    assert both


def test_attribute_joins_records_one_attribute_apart() -> None:
    records = list(itertools.product("ab", [1, 2, 3], [None, "x"]))
    apart = pairs_where(12, lambda i, j: sum(a != b for a, b in zip(records[i], records[j], strict=True)) == 1)
    assert edges(graphs.attribute(records)) == apart
    # Equal records differ in no attribute.
    assert edges(graphs.attribute([[0, 1], [0, 1], [0, 2]])) == {(0, 2), (1, 2)}
    assert edges(graphs.attribute(np.array([[0], [0], [5]]))) == {(0, 2), (1, 2)}


def test_union_and_from_edges() -> None:
    both = graphs.union(graphs.line(3), graphs.from_edges(4, [[3, 1], [1, 3], [0, 1]]))
    assert list(both) == [0, 1, 2, 3]
    assert edges(both) == {(0, 1), (1, 2), (1, 3)}
    assert graphs.from_edges(2, []).number_of_edges() == 0
    assert edge_array(both).tolist() == [[0, 1], [1, 2], [1, 3]]


def test_builders_on_a_map_of_900_cells() -> None:
    domain = md.Domain.grid(30, 30, 17.3, 17.3)
    side = 17.3 / 30
    graph = graphs.blocks(domain, 5)
    assert graph.number_of_edges() == 36 * 300
    assert graphs.sensitivity_hull(domain, graph).volume == pytest.approx((8 * side) ** 2)
    # So many pairs of cells lie x columns and y rows apart, in either direction.
    near = [(x, y) for x, y in itertools.product(range(-9, 10), repeat=2) if 0 < math.hypot(x, y) * side <= 1.5]
    assert graphs.threshold(domain, 1.5).number_of_edges() == sum((30 - abs(x)) * (30 - abs(y)) for x, y in near) / 2
    chain = sparse.csr_array(sparse.random_array((900, 900), density=0.008, random_state=1))
    reached = (chain.indices[first:last] for first, last in itertools.pairwise(chain.indptr))
    assert edges(graphs.transitions(chain)) == {
        pair for states in reached for pair in itertools.combinations(sorted(states.tolist()), 2)
    }


# Constraints


def test_constrained_graph_of_the_papers() -> None:
    """PGLP, Figures 1 and 3: s1, s4 and s6 are excluded, s5 is disconnected, s2 and s3 stay joined."""
    support = states(2, 3, 5)
    left = graphs.constrain(POLICY, support)
    assert list(left) == support
    assert edges(left) == {(1, 2)}
    assert excluded(POLICY, support).tolist() == states(1, 4, 6)
    assert disconnected(POLICY, support).tolist() == states(5)
    # s1 never had a neighbour: alone, but not disconnected.
    assert disconnected(POLICY, states(1, 2, 3)).size == 0
    assert graphs.isolated(graphs.constrain(POLICY, states(1, 2, 3))).tolist() == states(1)
    assert edges(graphs.constrain(left, support[::-1])) == edges(left)
    assert POLICY.number_of_nodes() == 6, "what is constrained is a copy"


def test_components() -> None:
    assert [part.tolist() for part in components(POLICY)] == [[0], [1, 2], [3, 4, 5]]


def test_hops_of_the_eight_neighbour_graph_bound_distances_from_below() -> None:
    """PGLP, Theorem 3.1 and Figure 2(a): d_G ≤ d_E, for example 3 and √10."""
    domain = md.Domain.grid(6, 5, 6.0, 5.0)
    graph = graphs.neighbours8(domain)
    hops = md.distances.shortest_path(graph)
    assert (hops <= md.distances.euclidean(domain)).all()
    assert (hops == md.distances.chebyshev(domain)).all()
    assert hops[0, 9] == 3
    assert md.distances.euclidean(domain)[0, 9] == math.nextafter(math.sqrt(10), 0) or math.isclose(
        md.distances.euclidean(domain)[0, 9], math.sqrt(10)
    )


def test_theorem_3_1_a_graph_private_channel_is_geo_indistinguishable() -> None:
    domain = md.Domain.grid(3, 3, 3.0, 3.0)
    distance = md.distances.euclidean(domain)
    graph = md.GraphPrivacy(0.5, graphs.neighbours8(domain))
    channel = md.design(md.Problem(md.Prior.uniform(9), distance, [graph])).channel
    bound = np.exp(0.5 * distance)[:, :, None] * channel.matrix[None, :]
    assert (channel.matrix[:, None] <= bound * (1 + 1e-12)).all()


def test_theorem_3_2_a_complete_graph_on_the_delta_set_is_delta_location_set_privacy() -> None:
    prior = [0.5, 0.05, 0.3, 0.15]
    chosen = delta_set(prior, 0.1)
    assert chosen.tolist() == [0, 2, 3]
    assert edges(graphs.constrain(graphs.complete(4), chosen)) == {(0, 2), (0, 3), (2, 3)}


@pytest.mark.filterwarnings("ignore:delta is")
def test_delta_set_on_a_tie_takes_the_lower_index() -> None:
    assert delta_set([0.25] * 4, 0.5).tolist() == [0, 1]
    assert delta_set([0.25] * 4, "0.5000001").tolist() == [0, 1]
    assert delta_set([0.25] * 4, "0.4999999").tolist() == [0, 1, 2]
    assert delta_set([0.25, 0.5, 0.25], 0.25).tolist() == [0, 1]
    assert delta_set(md.Prior([0.0, 1e-300, 1.0, 0.0]), 0).tolist() == [1, 2]


def test_delta_set_decides_exactly() -> None:
    # Added up in floats the first nine give 0.8999999999999999; exactly, ten equal shares are ten equal shares.
    assert delta_set([0.1] * 10, 0.1).tolist() == list(range(9))
    assert delta_set([0.1] * 10, 0.2).tolist() == list(range(8))
    # The float64s next to 0.6 and 0.2 are together a little less than 4/5 of the sum of all.
    assert delta_set([0.2, 0.6, 0.2], 0.2).tolist() == [0, 1, 2]
    # A probability too small to be seen beside the others still counts.
    assert delta_set([1.0, 1e-200], 0).tolist() == [0, 1]
    assert delta_set([1.0, 1e-200], "1e-200").tolist() in ([0], [0, 1])
    assert delta_set([1.0, 1e-200], "1.1e-200").tolist() == [0]


@pytest.mark.filterwarnings("ignore:delta is")
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7).filter(any), st.fractions(0, "999/1000"))
@settings(max_examples=40, deadline=None)
def test_delta_set_is_smallest(counts: list[int], delta: Fraction) -> None:
    prior = md.Prior.from_counts(counts)
    values = [Fraction(value) for value in prior.probabilities.tolist()]
    found = delta_set(prior, delta)
    enough = (1 - delta) * sum(values)
    assert sum(values[i] for i in found) >= enough
    smaller = itertools.combinations(values, len(found) - 1)
    assert all(sum(chosen) < enough for chosen in smaller)


def test_a_support_may_be_any_collection() -> None:
    for support in ({0, 3}, (node for node in (0, 3)), dict.fromkeys((0, 3)), range(0, 6, 3), np.array([3, 0])):
        assert list(graphs.constrain(POLICY, support)) == [0, 3]


# Wrong input


def test_wrong_input_is_refused() -> None:
    grid, places = md.Domain.grid(2, 2, 1.0, 1.0), [[0.0], [1.0]]
    calls = {
        "n": [lambda: graphs.complete(0), lambda: graphs.line(2.5)],
        "domain": [
            lambda: graphs.blocks(md.Domain.from_points([[0.0, 1.0]]), 3),
            lambda: graphs.blocks(np.zeros((3, 2)), 1),
            lambda: graphs.neighbours8("map"),
            lambda: graphs.threshold(5, 1),
            lambda: graphs.threshold([[0.0], [np.nan]], 1),
            lambda: graphs.threshold([[0.0], [1.0, 2.0]], 1),
            lambda: graphs.threshold(radius=1),
            lambda: graphs.threshold(places, distance=np.ones((2, 2)), radius=1),
        ],
        "k": [lambda: graphs.blocks(grid, 0), lambda: graphs.blocks(grid, (2, 1, 1))],
        "labels": [
            *[
                lambda labels=labels: graphs.categories(labels)
                for labels in ([], "shops", ["a", float("nan")], ["a", ["b"]], 5)
            ],
            lambda: graphs.threshold(md.Domain.from_labels("ab"), 1),
        ],
        "regions": [lambda: graphs.categories(["a", "b"], regions=[1])],
        "radius": [
            *[lambda radius=radius: graphs.threshold(places, radius) for radius in (0, -1, 10**400)],
            lambda: graphs.threshold(places),
            *[lambda radius=radius: graphs.threshold(distance=np.ones((2, 2)), radius=radius) for radius in (0, "far")],
            *[lambda radius=radius: md.distances.pairs_within([[0.0]], radius) for radius in (-1.0, math.inf)],
        ],
        "margin": [lambda: graphs.threshold(distance=np.ones((2, 2)), radius=1, margin="wide")],
        "P": [
            lambda: graphs.transitions([[0.5, 0.4], [0, 1]]),
            lambda: graphs.transitions(sparse.csr_array(np.ones((2, 3)))),
            lambda: graphs.transitions(sparse.csr_array(-np.eye(2))),
        ],
        "values": [lambda records=records: graphs.attribute(records) for records in ([], [(1, 2), (1,)], [1, 2])],
        "graphs": [graphs.union],
        "graph": [
            lambda: graphs.union(graphs.line(2), nx.DiGraph([(0, 1)])),
            lambda: graphs.isolated(nx.Graph()),
        ],
        "edges": [
            lambda pairs=pairs: graphs.from_edges(3, pairs)
            for pairs in ([[0, 3]], [[-1, 0]], [[1, 1]], [[0.0, 1.0]], [0, 1], [[0, 1], [2]])
        ],
        "support": [
            lambda support=support: graphs.constrain(POLICY, support)
            for support in ([], [0, 6], [True] * 6, "s1", [0, [1, 2]], {0, "s2"})
        ],
        "delta": [lambda delta=delta: delta_set([0.5, 0.5], delta) for delta in (1, -0.1, math.nan)],
        "prior": [lambda: delta_set([0.0, 0.0], 0.1)],
        "distance": [
            lambda distance=distance: graphs.threshold(distance=distance, radius=1)
            for distance in (np.ones((2, 3)), [[0.0, -1.0], [1.0, 0.0]], [[0.0, np.nan], [1.0, 0.0]], grid, "far", [[]])
        ],
    }
    assert_refused(
        Mistake(f"{place}, {number}", make, place)
        for place, makes in calls.items()
        for number, make in enumerate(makes)
    )
    with pytest.raises(InputError, match=r"^values: are not a list of records"):
        graphs.attribute(None)


def test_every_function_refuses_what_is_no_policy_graph() -> None:
    points = np.arange(10.0).reshape(5, 2)
    for graph, says in (
        ("graph", "not a networkx graph"),
        (nx.DiGraph([(0, 1)]), "directed"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "parallel"),
        (nx.Graph(), "no nodes"),
        (nx.Graph([(0, 0), (0, 1)]), "self-loop"),
        (nx.Graph([("a", "b")]), "not an integer"),
        (nx.Graph([(True, 2)]), "not an integer"),
        (nx.Graph([(-1, 2)]), "unknown node"),
        (nx.Graph([(0, 9)]), "unknown node"),
    ):
        with pytest.raises(InputError, match=says):
            check_graph(graph, 5)
        for function in (graphs.sensitivity_hull, component_hulls, graphs.exposed, graphs.repair):
            with pytest.raises(InputError, match=says):
                function(points, graph)
    check_graph(nx.Graph([(np.int64(0), np.int64(4))]), 5)


# Places or distances, and graphs without edges


def test_threshold_takes_places_or_by_name_distances() -> None:
    city = md.Domain.grid(columns=6, rows=6, width=6.0, height=6.0, unit="km")
    distance = md.distances.euclidean(city)
    expected = pairs_where(36, lambda i, j: distance[i, j] <= 1)
    assert len(expected) == 60
    for graph in (
        graphs.threshold(city, 1.0),
        graphs.threshold(city, radius=1.0),
        graphs.threshold(city.points, 1),
        graphs.threshold(distance=distance, radius=1.0),
        graphs.threshold(distance=distance.tolist(), radius="1"),
    ):
        assert list(graph) == list(range(36))
        assert edges(graph) == expected
    one_way = graphs.threshold(distance=[[0, 1, np.inf], [9, 0, 9], [9, 9, 0]], radius=2)
    assert edges(one_way) == {(0, 1)}


def test_distances_given_as_places_are_refused() -> None:
    for distance in (md.distances.euclidean(md.Domain.grid(3, 2, 3.0, 2.0)), 1 - np.eye(2), np.zeros((3, 3)).tolist()):
        for build in (graphs.threshold, lambda domain, radius: graphs.threshold(domain=domain, radius=radius)):
            with pytest.raises(InputError, match=r"^domain: .*distances.*as threshold\(distance=matrix, radius=1.5\)"):
                build(distance, 1.5)
        with pytest.raises(InputError, match=r"^domain: .*reach\(radius\)"):
            md.distances.pairs_within(distance, 1.5)
        # Named as places they are places.
        named, n = md.Domain.from_points(distance), len(distance)
        assert graphs.threshold(named, 9).number_of_edges() == n * (n - 1) / 2
    # This cannot be both.
    assert list(graphs.threshold([[0.0]], 1)) == [0]
    line = md.distances.euclidean([[0.0], [1.0], [2.0], [3.0]])
    for function in (
        lambda: graphs.sensitivity_hull(line, graphs.line(4)),
        lambda: graphs.exposed(line, graphs.line(4)),
        lambda: md.mechanisms.PlanarIsotropic(1, line, graphs.line(4)),
        lambda: graphs.problem(line, graph=graphs.line(4), epsilon=1),
        lambda: metrics.euclidean_error(np.eye(4), np.full(4, 0.25), line),
    ):
        with pytest.raises(InputError, match="not the distances between them"):
            function()


def test_a_graph_without_an_edge_warns() -> None:
    for build in (
        lambda: graphs.threshold(md.Domain.grid(3, 3, 3.0, 3.0), 0.5),
        lambda: graphs.threshold(distance=np.ones((3, 3)), radius=0.5),
        lambda: graphs.blocks(md.Domain.grid(3, 3, 3.0, 3.0), 1),
        lambda: graphs.categories(["a", "b", None]),
        lambda: graphs.transitions(np.eye(3)),
        lambda: graphs.attribute([("a", 1), ("b", 2)]),
    ):
        with pytest.warns(InputWarning, match=r"^the policy graph of \d secrets has no edge: .* It protects nothing$"):
            assert not build().edges
    # One secret has nobody to be joined to, and an empty list asks for no edge.
    assert not graphs.threshold([[1.0]], 1).edges
    assert not graphs.from_edges(3, []).edges


def test_pairs_of_a_grid_are_those_of_its_places() -> None:
    for (columns, rows, width), radius in (((9, 9, 0.9), "0.1"), ((20, 15, 2.1), "0.21"), ((1, 40, 3.3), 0.5)):
        domain = md.Domain.grid(columns, rows, width, width * rows / columns)
        limit = md.distances.reach(radius)
        expected = np.argwhere(np.triu(md.distances.euclidean(domain) <= limit, 1))
        np.testing.assert_array_equal(md.distances.pairs_within(domain, radius), expected)
        np.testing.assert_array_equal(md.distances.pairs_within(domain.points, radius), expected)
