"""Hulls of graphs; exposed secrets.

A K-norm mechanism with hull K makes i and j ε-indistinguishable exactly when f(j) − f(i) ∈ K (DPHMM, Xiao et al. 2017,
Definition 5.2 and Theorem 5.2), whether or not the policy graph asks for it. That holds between nodes that are released
with the same hull. With the hull of each component, two nodes whose hulls differ can always be told apart: far out, the
ratio of their densities has no bound. So exposure must be tested with the hull that the mechanism uses:

- "graph", the default: one hull for all nodes, that of the whole graph, as in DPHMM and in Algorithm 3 of PGLP;
- "component": for each node the hull of its component, as P-LM and P-PIM of PGLP are defined, and `PlanarIsotropic`
  unless told otherwise. A node without edges is then released exactly, and is protected only by other such nodes at the
  same place;
- a `SensitivityHull`, one for all nodes, such as the cross-polytope of the Laplace mechanism.
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
from mechdesign.base._errors import InputError
from mechdesign.graphs._builders import check_graph, edge_array
from mechdesign.graphs._constraints import as_node, components, isolated, membership
from mechdesign.graphs._geometry._hull import TOLERANCE, SensitivityHull, as_points, hull_of, upright
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive


def sensitivity_hull(points: Domain | ArrayLike, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a whole policy graph (DPHMM, Definition 5.1).

    `points` are the answers f(s): a domain with places, or an array of shape (n, d); the nodes of `graph` are indices
    into them. For PGLP's hull of each component see `component_hulls`. A graph without edges gives K = {0}.
    """
    return hull_between(as_points(points), graph)


def hull_between(places: Floats, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a graph on places that are checked already, shape (n, d)."""
    check_graph(graph, len(places))
    edges = edge_array(graph)
    return hull_of(places[edges[:, 0]] - places[edges[:, 1]])


def component_hulls(points: Domain | ArrayLike, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each connected component (PGLP, Definition 8), in the order of `components`.

    Components whose differences are the same to the bit share one object; nodes without edges share K = {0}.
    """
    return hulls_between(as_points(points), graph)


def hulls_between(places: Floats, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each component of a graph on places that are checked already, shape (n, d)."""
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
    """Return ε max ‖f(s_j) − f(s_k)‖_K over the states in `support`, all unless given (DPHMM, Theorems 5.3 and 6.3).

    Infinite where two places differ by a vector off the span of K.
    """
    places = as_points(points)
    chosen = places if support is None else places[as_indices(support, "support", len(places))]
    budget = float(positive(epsilon, "epsilon"))
    if len(chosen) == 0 or math.isinf(hull.norm(chosen - chosen[0]).max()):
        return 0.0 if len(chosen) == 0 else math.inf
    # The K-norm of a difference is the largest over the facets, and on each the extremes are farthest apart.
    heights = chosen @ hull.facets.T
    return budget * float((heights.max(axis=0) - heights.min(axis=0)).max(initial=0.0))


Hull = Literal["graph", "component"] | SensitivityHull

# The nodes, sorted, that are released with one hull, and that hull.
_Group = tuple[Integers, SensitivityHull]


def degree_of_protection(
    points: Domain | ArrayLike, graph: nx.Graph, node: int | None = None, *, hull: Hull = "graph"
) -> int | dict[int, int]:
    """Count the nodes that the mechanism cannot tell from a node, itself included (DPHMM, Definition 5.2).

    Only nodes of `graph` count, that is those of the constrained domain. `points` holds the answers f: a domain with
    places or an array (n, d). `hull` is the one that the mechanism uses; see this module. Returns a number for
    one `node`, or a dictionary for all of them in ascending order. Raises `InputError` for a node that the graph does
    not have.
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
    """Return the nodes with a degree of protection of 1, sorted: nothing hides them (DPHMM, section 5.2).

    PGLP calls them isolated (Definition 13). A node with an edge is never among them: its neighbours protect it. A
    graph of a single node exposes it.
    """
    places = as_points(points)
    groups = _groups(places, graph, hull)
    alone = isolated(graph)
    return alone[[_partners(places, groups, int(node)) == 0 for node in alone]] if alone.size else alone


def protectable(points: Domain | ArrayLike, graph: nx.Graph, hull: Hull = "graph") -> bool:
    """Tell whether no node is exposed (DPHMM, Definition 5.3)."""
    return exposed(points, graph, hull).size == 0


def protected_pairs(points: Domain | ArrayLike, graph: nx.Graph, hull: Hull = "graph") -> Integers:
    """Return the pairs (i, j), i < j, that the mechanism makes ε-indistinguishable: int64 of shape (k, 2), sorted.

    They contain the edges of `graph`, unless a `SensitivityHull` is given that does not fit. A mechanism without a
    hull, such as an optimal channel, protects the same pairs when they are edges of its policy graph.
    """
    places = as_points(points)
    found = np.concatenate(list(_pairs(places, _groups(places, graph, hull))))
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def _groups(places: Floats, graph: nx.Graph, hull: Hull) -> list[_Group]:
    """Return the nodes that share a hull, with that hull."""
    check_graph(graph, len(places))
    everyone = np.array(sorted(graph), dtype=np.int64)
    if isinstance(hull, SensitivityHull):
        if hull.basis.shape[1] != places.shape[1]:
            raise InputError("hull", "is of another space", value=hull, bound=f"a hull in R^{places.shape[1]}")
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
    """Tell whether two hulls are the same set, up to the tolerance."""
    if one.dimension != other.dimension or abs(one.radius - other.radius) > TOLERANCE * one.radius:
        return False
    return bool(one.contains(other.vertices).all() and other.contains(one.vertices).all())


def _partners(places: Floats, groups: list[_Group], node: int) -> int:
    """Return how many other nodes protect a node."""
    nodes, body = next(
        (nodes, body) for nodes, body in groups if nodes[np.searchsorted(nodes, node) % len(nodes)] == node
    )
    return int(body.contains(places[nodes] - places[node]).sum()) - 1


def _pairs(places: Floats, groups: list[_Group]) -> Iterator[Integers]:
    """Yield the pairs of each group that protect each other, the lower node first."""
    for nodes, body in groups:
        # No vector of K is longer than its radius: only near pairs need the K-norm.
        near = cKDTree(places[nodes]).query_pairs(body.radius * (1 + 2 * TOLERANCE), output_type="ndarray")
        pairs = np.sort(nodes[near], axis=1)
        yield pairs[body.contains(places[pairs[:, 1]] - places[pairs[:, 0]])]
