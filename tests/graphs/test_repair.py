from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import ANSWERS, states, under
from refusals import Mistake, assert_refused
from scipy import spatial

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError
from mechdesign.graphs._builders import components
from mechdesign.graphs._exposure import component_hulls
from mechdesign.graphs._repairs import LARGEST_SEARCH

METHODS = ("area", "nearest", "exhaustive")

# The corners of a square, all joined, and three places of which nothing is asked.
SQUARE = graphs.from_edges(7, list(itertools.combinations(range(4), 2)))


def around(*isolated: tuple[int, int]) -> np.ndarray:
    return np.array([(0, 0), (1, 0), (0, 1), (1, 1), *isolated], dtype=float)


def size(hull: graphs.SensitivityHull) -> tuple[int, float]:
    return hull.dimension, hull.volume


def test_example_6_1_and_pglp_figure_4_connect_s3_to_s4() -> None:
    graph = under(3, 4, 5, 6)
    s3, s4, s5, s6 = states(3, 4, 5, 6)
    areas = {j: graphs.sensitivity_hull(ANSWERS, graphs.union(graph, nx.Graph([(s3, j)]))).volume for j in (s4, s5, s6)}
    assert areas == {s4: 14, s5: 16, s6: 20}
    for method, hull in itertools.product(("area", "exhaustive"), ("graph", "component")):
        found = graphs.repair(ANSWERS, graph, method, hull=hull)
        assert found.added == ((s3, s4),), (method, hull)
        assert found.order == (s3,)
        assert (found.hull_before.volume, found.hull_after.volume) == (9, 14)
        assert set(found.graph.edges()) == {*graph.edges(), (s3, s4)}
        assert (found.method, found.hull) == (method, hull)
        assert graph.number_of_edges() == 3, "the graph handed over is not changed"
    with pytest.raises(nx.NetworkXError):
        found.graph.add_edge(s3, s5)


def test_algorithm_1_connects_to_the_nearest_other_node() -> None:
    found = graphs.repair(ANSWERS, under(3, 4, 5, 6), "nearest")
    assert found.added == (tuple(states(3, 5)),)
    # Of equally near nodes the lower; never the node itself.
    tie = graphs.repair([[0.0], [1.0], [2.0]], graphs.from_edges(3, []), "nearest", order=[1, 0, 2])
    assert tie.added == ((1, 0),)


def test_nothing_to_repair() -> None:
    graph = under(2, 4, 5, 6)
    for method in METHODS:
        found = graphs.repair(ANSWERS, graph, method)
        assert (found.added, found.order) == ((), ())
        assert set(found.graph.edges()) == set(graph.edges())
        assert size(found.hull_before) == size(found.hull_after)


def test_the_order_of_the_nodes_matters() -> None:
    """Errata: hull area 11 or 32 on a square with three isolated nodes."""
    points = around((-3, 1), (1, -4), (5, -3))
    assert graphs.exposed(points, SQUARE).tolist() == [4, 5, 6]
    areas = {
        order: graphs.repair(points, SQUARE, order=order).hull_after.volume
        for order in itertools.permutations((4, 5, 6))
    }
    assert {order[0]: area for order, area in areas.items()} == {4: 11, 5: 32, 6: 11}
    for order in areas:
        assert graphs.repair(points, SQUARE, order=order).order == order
    assert graphs.repair(points, SQUARE).order == (4, 5, 6)
    # Other nodes in an order are passed over.
    assert graphs.repair(points, SQUARE, order=[0, 5, 3, 4, 6]).order == (5, 4, 6)


def test_exposure_is_tested_anew_after_each_edge() -> None:
    points = around((-5, 0), (5, 1))
    graph = graphs.constrain(SQUARE, range(6))
    assert graphs.exposed(points, graph).tolist() == [4, 5]
    found = graphs.repair(points, graph, "nearest")
    assert (found.added, found.order) == (((4, 0),), (4, 5))


def test_only_the_exhaustive_search_is_sure_to_find_the_least() -> None:
    points = around((-2, 4), (-3, -1), (2, 1))
    assert graphs.repair(points, SQUARE, "area").hull_after.volume == 22
    assert graphs.repair(points, SQUARE, "exhaustive").hull_after.volume == 12


# A second way: hulls by SciPy, exposure and the cost of an edge by their definitions.


def body_of(vectors: np.ndarray) -> tuple[int, float]:
    """Return the dimension and the volume of the hull of ±vectors in one or two dimensions."""
    dimension = int(np.linalg.matrix_rank(vectors)) if len(vectors) else 0
    if dimension < 2:
        return dimension, 2 * np.linalg.norm(vectors, axis=1).max(initial=0) * dimension
    return dimension, float(spatial.ConvexHull(np.concatenate((vectors, -vectors))).volume)


def contains(vectors: np.ndarray, v: np.ndarray) -> bool:
    dimension, volume = body_of(vectors)
    larger, grown = body_of(np.concatenate((vectors, v[None])))
    return larger == dimension and grown <= volume * (1 + 1e-9)


def parts_of(points: np.ndarray, graph: nx.Graph, hull: str) -> list[tuple[list[int], np.ndarray]]:
    """Return the nodes that share a hull, and the differences along their edges."""
    parts = [sorted(graph)] if hull == "graph" else [sorted(part) for part in nx.connected_components(graph)]
    return [(part, np.array([points[i] - points[j] for i, j in graph.subgraph(part).edges])) for part in parts]


def exposed_by_definition(points: np.ndarray, graph: nx.Graph, hull: str) -> list[int]:
    alone = [node for node in sorted(graph) if not graph.degree(node)]
    ((_, vectors),) = parts_of(points, graph, "graph")
    if hull == "component":
        # No noise at all: who is released exactly is hidden by others at the same place.
        vectors, others = np.zeros((0, points.shape[1])), alone
    else:
        others = sorted(graph)
    vectors = vectors.reshape(-1, points.shape[1])
    return [i for i in alone if not any(contains(vectors, points[j] - points[i]) for j in others if j != i)]


def cost(points: np.ndarray, graph: nx.Graph, edge: tuple[int, int], hull: str) -> tuple[float, ...]:
    """Return the volumes over all nodes after an edge, by dimension from the highest, and the length of the edge."""
    larger = nx.Graph(graph)
    larger.add_edge(*edge)
    total = [0.0] * (points.shape[1] + 1)
    for part, vectors in parts_of(points, larger, hull):
        dimension, volume = body_of(vectors.reshape(-1, points.shape[1]))
        total[points.shape[1] - dimension] += len(part) * volume
    length = float(np.linalg.norm(points[edge[0]] - points[edge[1]]))
    return tuple(round(each, 7) for each in (*total[:-1], length))


def added_by_definition(points: np.ndarray, graph: nx.Graph, method: str, hull: str) -> list[tuple[int, int]]:
    graph, added = nx.Graph(graph), []
    while pending := exposed_by_definition(points, graph, hull):
        for i in pending:
            left = exposed_by_definition(points, graph, hull)
            edges = [(i, j) for j in sorted(graph) if j != i]
            if i in left:
                from_cost = -1 if method == "nearest" else 0
                edge = min(edges, key=lambda edge: (cost(points, graph, edge, hull)[from_cost:], edge))
                added.append(edge)
                graph.add_edge(*edge)
    return added


@pytest.mark.parametrize("hull", ["graph", "component"])
def test_greedy_repairs_add_the_edges_of_least_cost(hull: str) -> None:
    dice = np.random.default_rng(3)
    lengths = set()
    for trial in range(14):
        n, d = int(dice.integers(3, 7)), 1 + (trial % 3 > 0)
        places = dice.integers(-3, 4, (n, d)).astype(float)
        pairs = [pair for pair in itertools.combinations(range(n), 2) if dice.random() < 0.2]
        graph, points = graphs.from_edges(n, pairs), md.Domain.from_points(places)
        assert graphs.exposed(points, graph, hull).tolist() == exposed_by_definition(places, graph, hull)
        for method in ("area", "nearest"):
            found = graphs.repair(points, graph, method, hull=hull).added
            assert list(found) == added_by_definition(places, graph, method, hull), (trial, method)
            lengths.add(len(found))
    assert len(lengths) > 2


def least_by_enumeration(points: np.ndarray, graph: nx.Graph, hull: str) -> tuple[float, ...]:
    """Return the least total volume, by dimension from the highest, of all graphs with more edges that protect all."""
    nodes = sorted(graph)
    d = points.shape[1]
    missing = [pair for pair in itertools.combinations(nodes, 2) if not graph.has_edge(*pair)]
    best = None
    for count in range(len(missing) + 1):
        for chosen in itertools.combinations(missing, count):
            larger = nx.Graph(graph)
            larger.add_edges_from(chosen)
            if graphs.exposed(points, larger, hull=hull).size:
                continue
            parts = components(larger)
            hulls = component_hulls(points, larger)
            if hull == "graph":
                parts, hulls = [np.array(nodes)], [graphs.sensitivity_hull(points, larger)]
            total = [0.0] * (d + 1)
            for part, body in zip(parts, hulls, strict=True):
                total[d - body.dimension] += len(part) * body.volume
            score = tuple(round(value, 9) for value in total[:d])
            best = score if best is None else min(best, score)
    assert best is not None
    return best


@pytest.mark.parametrize("hull", ["graph", "component"])
def test_exhaustive_search_against_all_graphs(hull: str) -> None:
    for seed in range(3):
        points = np.random.default_rng(seed).integers(-3, 4, (4, 2)).astype(float)
        graph = graphs.from_edges(4, [[0, 1]] if seed % 2 else [])
        found = graphs.repair(points, graph, "exhaustive", hull=hull)
        parts, hulls = [range(4)], [found.hull_after]
        if hull == "component":
            parts, hulls = components(found.graph), component_hulls(points, found.graph)
        total = [0.0] * 3
        for part, body in zip(parts, hulls, strict=True):
            total[2 - body.dimension] += len(part) * body.volume
        assert tuple(round(value, 9) for value in total[:2]) == least_by_enumeration(points, graph, hull), seed


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(["graph", "component"]))
@settings(max_examples=12, deadline=None)
def test_every_repair_protects_all_and_keeps_what_was_asked(seed: int, d: int, hull: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    # As an array, three points in three dimensions may look like distances, which are refused.
    points = md.Domain.from_points(rng.integers(-3, 4, (n, d)).astype(float))
    graph = graphs.from_edges(n, [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.15])
    exposed = graphs.exposed(points, graph, hull=hull).tolist()
    results = {method: graphs.repair(points, graph, method, hull=hull) for method in METHODS}
    for found in results.values():
        assert graphs.exposed(points, found.graph, hull=hull).size == 0
        assert {*map(frozenset, graph.edges()), *map(frozenset, found.added)} == {*map(frozenset, found.graph.edges())}
        assert sorted(found.order) == exposed or (hull == "component" and set(found.order) > set(exposed))
        assert all(i != j and not graph.has_edge(i, j) for i, j in found.added)
        assert size(found.hull_before) == size(graphs.sensitivity_hull(points, graph))
        assert size(found.hull_after) == size(graphs.sensitivity_hull(points, found.graph))
        assert found.hull_after.contains(found.hull_before.vertices).all()
    if hull == "graph":
        least = results["exhaustive"].hull_after
        for found in results.values():
            dimension, volume = size(found.hull_after)
            assert (least.dimension, least.volume) <= (dimension, volume * (1 + 1e-9))


def test_ties_of_area_zero_go_to_the_shorter_edge() -> None:
    points = [[0.0, 0.0], [5.0, 0.0], [0.0, 2.0], [3.0, 3.0]]
    found = graphs.repair(points, graphs.from_edges(4, []))
    assert found.added[0] == (0, 2)


def test_ties_do_not_hang_on_rounding() -> None:
    """On a grid whose cells are no float64 long the answer is that on a grid of unit cells."""
    support = [0, 1, 7, 13, 21, 24, 30, 33]
    unit, odd = (md.Domain.grid(6, 6, side, side) for side in (6.0, 4.1))
    for method, hull in itertools.product(("area", "nearest"), ("graph", "component")):
        added = [
            graphs.repair(domain, graphs.constrain(graphs.blocks(domain, 2), support), method, hull=hull).added
            for domain in (unit, odd)
        ]
        assert added[0] == added[1]
        assert added[0]


def test_in_three_dimensions_the_volume_is_least() -> None:
    rng = np.random.default_rng(6)
    points = np.concatenate((rng.normal(size=(6, 3)), [[9.0, 9.0, 9.0]]))
    graph = graphs.from_edges(7, list(itertools.combinations(range(6), 2)))
    found = graphs.repair(points, graph)
    volumes = [graphs.sensitivity_hull(points, graphs.union(graph, nx.Graph([(6, j)]))).volume for j in range(6)]
    assert found.added == ((6, int(np.argmin(volumes))),)
    assert found.hull_after.volume == pytest.approx(min(volumes))


def test_component_hulls_and_graph_hulls_ask_for_different_edges() -> None:
    """A node within the hull of the whole graph still has no noise under PGLP's mechanisms."""
    graph = under(2, 4, 5, 6)
    assert graphs.repair(ANSWERS, graph).added == ()
    found = graphs.repair(ANSWERS, graph, hull="component")
    assert len(found.added) == 1
    assert found.added[0][0] == states(2)[0]
    # Coincident with a node that has noise: joining the two costs nothing.
    points = [[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [1.0, 0.0]]
    joined = graphs.repair(points, graphs.from_edges(4, [[0, 1], [1, 2]]), "nearest", hull="component")
    assert joined.added == ((3, 1),)


def test_an_edge_to_one_of_two_nodes_at_one_place_exposes_the_other() -> None:
    for method in METHODS:
        found = graphs.repair([[1.0], [-1.0], [-1.0]], graphs.from_edges(3, []), method, hull="component")
        assert found.order == (0, 2)
        assert found.added[0] == (0, 1)
        assert len(found.added) == 2


def test_a_large_map_is_repaired_quickly() -> None:
    domain = md.Domain.grid(40, 40, 17.3, 17.3)
    support = np.flatnonzero(np.random.default_rng(0).random(1600) < 0.05)
    graph = graphs.constrain(graphs.blocks(domain, 5), support)
    for hull in ("graph", "component"):
        for method in ("area", "nearest"):
            assert graphs.exposed(domain, graphs.repair(domain, graph, method, hull=hull).graph, hull=hull).size == 0


def test_wrong_input_is_refused() -> None:
    five, places = graphs.from_edges(5, [(0, 1)]), np.array([[0.0, 0], [1, 0], [0, 5], [3, 5], [5, 1]])
    kept, four = graphs.constrain(five, [0, 1, 2, 4]), graphs.from_edges(4, [(2, 3)])
    alone, loop = graphs.complete(1), nx.Graph([(0, 0), (0, 1)])
    line = np.array([[0.0], [1.0], [10.0], [11.0]])
    places_of = {
        "graph": [
            lambda: graphs.repair([[0.0, 1.0]], alone),
            lambda: graphs.repair(ANSWERS, under(3)),
            lambda: graphs.repair(ANSWERS, loop),
            lambda: graphs.repair(ANSWERS, graphs.line(7)),
        ],
        "method": [lambda: graphs.repair(ANSWERS, under(3, 4), "smallest")],
        "hull": [lambda: graphs.repair(ANSWERS, under(3, 4), hull="whole")],
        "order": [
            lambda order=order: graphs.repair(ANSWERS, under(3, 4), order=order) for order in ([2], [7], [[2], [1, 3]])
        ],
        "points": [lambda: graphs.repair([[0.0], [np.nan]], graphs.line(2))],
        "nodes": [
            lambda nodes=nodes: graphs.repair(places, kept, nodes=nodes)
            for nodes in ([5], [-1], [1.5], ["a"], [True], [[1]], 4, [3])
        ],
        "bystanders": [
            lambda nodes=nodes: graphs.repair(line, four, bystanders=nodes)
            for nodes in ([4], [-1], [0.5], [[1]], ["a"])
        ],
    }
    assert_refused(
        Mistake(f"{place}, {number}", make, place)
        for place, makes in places_of.items()
        for number, make in enumerate(makes)
    )


def test_an_exhaustive_search_is_refused_just_above_its_bound() -> None:
    points = np.random.default_rng(0).normal(size=(101, 2))
    joined = list(itertools.combinations(range(98), 2))
    # Two exposed nodes of 101 are 100² graphs, three of 101 are 100³.
    points[98:] = [[50.0, 0.0], [0.0, 70.0], [90.0, 90.0]]
    two = graphs.repair(points, graphs.from_edges(101, [*joined, (97, 98)]), "exhaustive")
    assert LARGEST_SEARCH == 100**2
    assert graphs.exposed(points, two.graph).size == 0
    with pytest.raises(InputError, match="costly"):
        graphs.repair(points, graphs.from_edges(101, joined), "exhaustive")
    # A number of graphs too long to be printed.
    with pytest.raises(InputError, match=r"costly: 1600 of 1600 nodes are exposed; found 'exhaustive, 1599\*\*1600"):
        graphs.repair(np.arange(1600.0)[:, None], graphs.from_edges(1600, []), "exhaustive")


def test_only_some_nodes_are_repaired() -> None:
    points = [[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [3.0, 5.0], [5.0, 1.0]]
    g = graphs.from_edges(5, [(0, 1)])
    for method, hull in itertools.product(METHODS, ("graph", "component")):
        made = graphs.repair(points, g, method, hull=hull, nodes=[3])
        assert made.order == (3,), (method, hull)
        assert [i for i, _ in made.added] == [3], (method, hull)
        assert 3 not in graphs.exposed(points, made.graph, hull)
        assert graphs.repair(points, g, method, hull=hull, nodes=[0, 1]).added == ()
        whole = graphs.repair(points, g, method, hull=hull)
        assert graphs.repair(points, g, method, hull=hull, nodes=np.arange(5)).added == whole.added
        assert set(whole.order) >= {2, 3, 4}


def test_bystanders_protect_by_an_edge_only():
    # The hull {−1, 1} of 2-3 contains the difference of 0 and 1.
    places, g = [[0.0], [1.0], [10.0], [11.0]], graphs.from_edges(4, [(2, 3)])
    assert graphs.repair(places, g, nodes=[0]).added == ()
    for method in ("area", "nearest", "exhaustive"):
        found = graphs.repair(places, g, method, nodes=[0], bystanders=[1])
        assert found.added == ((0, 1),)
        assert found.order == (0,)
    # Once an edge leads to it, it protects others by the hull, too.
    twice = [[0.0], [1.0], [10.0], [11.0], [2.0]]
    made = graphs.repair(twice, graphs.from_edges(5, [(2, 3)]), nodes=[0, 4], bystanders=[1])
    assert made.added == ((0, 1),)
