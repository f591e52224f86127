"""Sensitivity hulls of policy graphs, and secrets that a mechanism exposes.

A K-norm mechanism with hull K makes the nodes i and j ε-indistinguishable if and only if K contains the difference
f(j) − f(i) of their places. This is Theorem 5.2 of DPHMM (Xiao et al. 2017), for nodes with the same hull. The pair
(i, j) need not be an edge of the policy graph. Nodes with different hulls can always be distinguished, because the
ratio of their densities is unbounded. Exposure must therefore be tested with the hull that the mechanism uses:

- "graph", the default: the hull of the whole graph for all nodes, as in DPHMM and in Algorithm 3 of PGLP;
- "component": the hull of each node's component, as in P-LM and P-PIM of PGLP and by default in `PlanarIsotropic`. With
  this hull, a node without edges is released exactly. Only other nodes without edges at the same place protect this
  node;
- a `SensitivityHull` for all nodes, such as the cross-polytope of the Laplace mechanism.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from mechdesign.base._arrays import Floats, Integers, as_indices
from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.graphs._builders import as_node, components, edge_array, isolated, membership, sort_nodes
from mechdesign.graphs._hull import TOLERANCE, SensitivityHull, as_points, hull_of, upright
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number, positive


def sensitivity_hull(points: Domain | ArrayLike, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a whole policy graph (DPHMM, Definition 5.1).

    PGLP uses the hull of each component instead, see `component_hulls`. A graph without edges gives K = {0}.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        graph: The policy graph; its nodes are indices of places.

    Returns:
        The hull.

    >>> sensitivity_hull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], nx.complete_graph(3)).volume
    3.0
    """
    return hull_between(as_points(points), graph)


def hull_between(places: Floats, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a graph, without checking the places.

    Args:
        places: The places f(s), (n, d).
        graph: The policy graph.

    Returns:
        The hull.

    >>> hull_between(np.array([[0.0], [2.0]]), nx.path_graph(2)).volume
    4.0
    """
    require_unmasked(places, "places")
    check_graph(graph, len(places))
    edges = edge_array(graph)
    return hull_of(places[edges[:, 0]] - places[edges[:, 1]])


def component_hulls(points: Domain | ArrayLike, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each connected component (PGLP, Definition 8).

    Components with equal differences share one hull object. Nodes without edges share the hull {0}.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        graph: The policy graph; its nodes are indices of places.

    Returns:
        Hulls in the order of `components`.

    >>> [hull.volume for hull in component_hulls([[0.0], [1.0], [5.0]], nx.path_graph(2))]
    [2.0]
    """
    return hulls_between(as_points(points), graph)


def hulls_between(places: Floats, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each component of a graph, without checking the places.

    Args:
        places: The places f(s), (n, d).
        graph: The policy graph.

    Returns:
        Hulls in the order of `components`.

    >>> [hull.volume for hull in hulls_between(np.array([[0.0], [2.0]]), nx.path_graph(2))]
    [4.0]
    """
    require_unmasked(places, "places")
    check_graph(graph, len(places))
    parts, edges = components(graph), edge_array(graph)
    owner = membership(parts, len(places))[edges[:, 0]]
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(parts) + 1))
    differences = upright((places[edges[:, 0]] - places[edges[:, 1]])[order])
    known: dict[bytes, SensitivityHull] = {}
    hulls = []
    for first, last in itertools.pairwise(starts.tolist()):
        distinct = np.unique(differences[first:last], axis=0)
        key = distinct.tobytes()
        if key not in known:
            known[key] = hull_of(distinct)
        hulls.append(known[key])
    return hulls


def hull_level(
    points: Domain | ArrayLike, hull: SensitivityHull, epsilon: Number, *, support: ArrayLike | None = None
) -> float:
    """Return the level ε max ‖f(s_j) − f(s_k)‖_K over all pairs of possible states (DPHMM, Theorems 5.3 and 6.3).

    The level is infinite if two places differ by a vector outside the span of K.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        hull: The hull K.
        epsilon: ε > 0.
        support: Indices of the possible states; None means all.

    Returns:
        The privacy level.

    >>> places = [[0.0], [1.0], [2.0]]
    >>> hull_level(places, sensitivity_hull(places, nx.path_graph(3)), 0.5)
    1.0
    """
    places = as_points(points)
    chosen = places if support is None else places[as_indices(support, "support", len(places))]
    budget = float(positive(epsilon, "epsilon"))
    if len(chosen) == 0 or math.isinf(hull.norm(chosen - chosen[0]).max()):
        return 0.0 if len(chosen) == 0 else math.inf
    # The K-norm is a maximum of a·v over facets, so the extreme values of a·f(s) for each facet suffice.
    heights = chosen @ hull.facets.T
    return budget * float((heights.max(axis=0) - heights.min(axis=0)).max(initial=0.0))


Hull = Literal["graph", "component"] | SensitivityHull

# The sorted nodes that share a hull, and this hull.
_Group = tuple[Integers, SensitivityHull]


def degree_of_protection(
    points: Domain | ArrayLike, graph: nx.Graph, node: int | None = None, *, hull: Hull = "graph"
) -> int | dict[int, int]:
    """Return the number of nodes that the mechanism makes ε-indistinguishable from a node, including itself.

    This is the degree of protection of DPHMM, Definition 5.2. Only nodes of the graph are counted, so a constrained
    graph counts only possible secrets.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        graph: The policy graph on the possible secrets.
        node: A node; None means all nodes.
        hull: The hull of the mechanism: "graph", "component" or a `SensitivityHull`.

    Returns:
        The number of nodes. If `node` is None, a dictionary with the number for each node, in ascending order.

    Raises:
        InputError: The node is not in the graph, or an argument is invalid.

    >>> degree_of_protection([[0.0], [1.0], [2.0]], nx.path_graph(3))
    {0: 2, 1: 3, 2: 2}
    """
    places = as_points(points)
    groups = _groups(places, graph, hull)
    if node is not None:
        return _partners(places, groups, as_node(graph, node)) + 1
    counts = {int(one): 1 for one in sorted(graph)}
    for pairs in _pairs(places, groups):
        for one, times in zip(*np.unique(pairs, return_counts=True), strict=True):
            counts[int(one)] += int(times)
    return counts


def exposed(points: Domain | ArrayLike, graph: nx.Graph, hull: Hull = "graph") -> Integers:
    """Return the nodes with a degree of protection of 1, sorted (DPHMM, section 5.2).

    PGLP calls exposed nodes isolated (Definition 13). A node with an edge is never exposed, because its neighbours
    protect it. If the graph has a single node, this node is always exposed.

    Args:
        points: The places f(s): a domain, or an array (n, d). Without places, over a domain of labels, nothing but an
            edge protects a node.
        graph: The policy graph on the possible secrets.
        hull: The hull of the mechanism: "graph", "component" or a `SensitivityHull`.

    Returns:
        Sorted nodes.

    >>> graph = nx.path_graph(2)
    >>> graph.add_node(2)
    >>> exposed([[0.0], [1.0], [9.0]], graph).tolist()
    [2]
    """
    if isinstance(points, Domain) and not points.points.shape[1]:
        check_graph(graph, points.size)
        return isolated(graph)
    places = as_points(points)
    groups = _groups(places, graph, hull)
    alone = isolated(graph)
    return alone[[_partners(places, groups, int(node)) == 0 for node in alone]] if alone.size else alone


def protected_pairs(points: Domain | ArrayLike, graph: nx.Graph, hull: Hull = "graph") -> Integers:
    """Return the pairs (i, j), i < j, that the mechanism makes ε-indistinguishable.

    An edge of the graph is one of the pairs if the hull contains the difference of its ends. An optimal channel, or
    another mechanism without a hull, protects the pairs if its policy graph contains them as edges.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        graph: The policy graph on the possible secrets.
        hull: The hull of the mechanism: "graph", "component" or a `SensitivityHull`.

    Returns:
        Pairs, int64 (k, 2), sorted.

    >>> protected_pairs([[0.0], [1.0], [2.0]], nx.path_graph(3)).tolist()
    [[0, 1], [1, 2]]
    """
    places = as_points(points)
    found = np.concatenate(list(_pairs(places, _groups(places, graph, hull))))
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def _groups(places: Floats, graph: nx.Graph, hull: Hull) -> list[_Group]:
    """Return groups of nodes that share a hull, with the hull of each group."""
    check_graph(graph, len(places))
    everyone = sort_nodes(graph)
    if isinstance(hull, SensitivityHull):
        if hull.basis.shape[1] != places.shape[1]:
            raise InputError("hull", "has another dimension", value=hull, bound=f"a hull in R^{places.shape[1]}")
        return [(everyone, hull)]
    if hull == "graph":
        return [(everyone, hull_between(places, graph))]
    if hull != "component":
        raise InputError("hull", "is unknown", value=hull, bound='"graph", "component" or a SensitivityHull')
    groups: list[tuple[list[Integers], SensitivityHull]] = []
    known: dict[int, int] = {}
    for nodes, body in zip(components(graph), hulls_between(places, graph), strict=True):
        if id(body) not in known:
            same = (index for index, (_, other) in enumerate(groups) if _equal(body, other))
            known[id(body)] = next(same, len(groups))
            if known[id(body)] == len(groups):
                groups.append(([], body))
        groups[known[id(body)]][0].append(nodes)
    return [(np.sort(np.concatenate(parts)), body) for parts, body in groups]


def _equal(one: SensitivityHull, other: SensitivityHull) -> bool:
    """Return whether two hulls are equal up to the tolerance."""
    if one.dimension != other.dimension or abs(one.radius - other.radius) > TOLERANCE * one.radius:
        return False
    return bool(one.contains(other.vertices).all() and other.contains(one.vertices).all())


def _partners(places: Floats, groups: list[_Group], node: int) -> int:
    """Return the number of other nodes that protect a node."""
    nodes, body = next(
        (nodes, body) for nodes, body in groups if nodes[np.searchsorted(nodes, node) % len(nodes)] == node
    )
    return int(body.contains(places[nodes] - places[node]).sum()) - 1


def _pairs(places: Floats, groups: list[_Group]) -> Iterator[Integers]:
    """Yield the pairs of ε-indistinguishable nodes in each group, with the lower node first."""
    for nodes, body in groups:
        # No vector of K is longer than its radius, so the K-norm is computed only for pairs within the radius.
        near = cKDTree(places[nodes]).query_pairs(body.radius * (1 + 2 * TOLERANCE), output_type="ndarray")
        pairs = np.sort(nodes[near], axis=1)
        yield pairs[body.contains(places[pairs[:, 1]] - places[pairs[:, 0]])]
