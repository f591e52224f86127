"""Whom a K-norm mechanism protects: degree of protection, exposed nodes.

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

from collections.abc import Iterator
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from mechdesign.base._errors import InputError
from mechdesign.geometry.body import TOLERANCE
from mechdesign.geometry.hull import SensitivityHull
from mechdesign.geometry.hull import as_points
from mechdesign.graphs.check import check_graph
from mechdesign.graphs.constraint import components
from mechdesign.graphs.constraint import isolated
from mechdesign.graphs.hulls import hull_between
from mechdesign.graphs.hulls import hulls_between
from mechdesign.model._domain import Domain
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer

__all__ = ["Hull", "degree_of_protection", "exposed", "protectable", "protected_pairs"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
        chosen = as_integer(node, "node", 0)
        if chosen not in graph:
            raise InputError("node", "is not a node of the graph", value=chosen, bound=f"one of its {len(graph)} nodes")
        return _partners(places, groups, chosen) + 1
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
