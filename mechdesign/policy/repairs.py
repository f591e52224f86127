"""Edges that protect the exposed nodes of a policy graph, at the least noise.

After PGLP (Cao et al. 2020, Algorithm 4) and DPHMM (Xiao et al. 2017, Algorithms 1 and 3). The noise of a K-norm
mechanism grows with the volume of its hull, so the edge to add is one of least volume. The least volume over all graphs
is #P-hard in the dimension (DPHMM, Theorem 6.1); the greedy methods depend on the order in which the nodes are visited,
which is therefore fixed, stated and reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.errors import InputError
from mechdesign.model._arrays import Floats, Integers, as_indices
from mechdesign.model.domain import Domain
from mechdesign.model.graphs import check_graph
from mechdesign.policy.constraint import components
from mechdesign.policy.hull import TOLERANCE, SensitivityHull, as_points, component_hulls, sensitivity_hull

__all__ = ["LARGEST_SEARCH", "Repair", "repair"]

LARGEST_SEARCH = 10_000
"""How many graphs an exhaustive search may have to look at, (n − 1) to the number of exposed nodes."""

Method = Literal["area", "nearest", "best", "exhaustive"]
_METHODS = ("area", "nearest", "best", "exhaustive")


@dataclass(frozen=True, eq=False)
class Repair:
    """A policy graph in which no node is exposed, and how it came about.

    Attributes:
        graph: the repaired graph, frozen: that of before and the added edges.
        added: the added edges (i, j) in order, i the exposed node and j what it was joined to.
        order: the exposed nodes, in the order in which they were visited; one that an earlier edge had come to protect
            was passed over. With the hull of each component, an edge to one of several nodes at one place may expose
            the others: they are visited afterwards.
        hull_before, hull_after: the sensitivity hulls of the whole graph.
        method: how it was repaired.
        hull: the hull, "graph" or "component", by which exposure and volume were judged.
    """

    graph: nx.Graph
    added: tuple[tuple[int, int], ...]
    order: tuple[int, ...]
    hull_before: SensitivityHull
    hull_after: SensitivityHull
    method: str
    hull: str


def repair(
    points: Domain | ArrayLike,
    g: nx.Graph,
    method: Method = "area",
    hull: Literal["graph", "component"] = "graph",
    order: Sequence[int] | None = None,
) -> Repair:
    """Add edges to a policy graph until no node is exposed.

    `method` chooses them:

    - "area": visit the exposed nodes in `order` (ascending unless given); join each that is still exposed to the node
      that gives the hull of least volume, an area in the plane (PGLP, Algorithm 4; DPHMM, Algorithm 3).
    - "nearest": the same, but join it to the nearest node (DPHMM, Algorithm 1).
    - "best": again and again add, of all edges from any exposed node to any other, the one of least volume.
    - "exhaustive": the least volume of all; refused where more than `LARGEST_SEARCH` graphs may have to be looked at.

    Volumes of degenerate hulls are 0 in the full dimension; among them a lower dimension, then the smaller volume in it
    is preferred. Ties, to a relative 1e-9, go to the shorter edge (or total length), then to the lower node.
    A long thin hull has a small volume, and yet much noise along it: "nearest" does not fall for it.

    `hull` is the one that the mechanism uses, for the test of exposure (see `exposed`) and for the volume. With
    "component" the volume is summed over the nodes, each counting the hull of its own component: the total noise.

    Raises `InputError` for a graph of a single node, which no edge can protect.
    """
    places = as_points(points)
    check_graph(g, len(places))
    if method not in _METHODS:
        raise InputError("method", "is unknown", value=method, bound=f"one of {', '.join(_METHODS)}")
    if hull not in ("graph", "component"):
        raise InputError("hull", "is unknown", value=hull, bound='"graph" or "component"')
    nodes = np.array(sorted(g), dtype=np.int64)
    if len(nodes) == 1:
        raise InputError(
            "g",
            "has a single node, which no edge can protect",
            value=int(nodes[0]),
            bound="at least two nodes",
            remedy="enlarge the constrained domain; who knows that no other secret is possible already knows this one",
        )
    before = _state(places, g, nodes, hull)
    exposed = [index for index in range(len(nodes)) if before.exposed(index)]
    visits = exposed if order is None else _visits(nodes, exposed, order)
    if method == "exhaustive":
        edges = _search(before, visits)
    elif method == "best":
        edges = _one_by_one(before, visits)
        visits = [i for i, _ in edges] + visits
    else:
        edges, visits = _greedy(before, visits, method)
    visits = list(dict.fromkeys([*visits, *(i for i, _ in edges)]))
    added = tuple((int(nodes[i]), int(nodes[j])) for i, j in edges)
    graph = nx.Graph()
    graph.add_nodes_from(nodes.tolist())
    graph.add_edges_from(g.edges())
    graph.add_edges_from(added)
    return Repair(
        graph=nx.freeze(graph),
        added=added,
        order=tuple(int(nodes[i]) for i in visits),
        hull_before=sensitivity_hull(places, g),
        hull_after=sensitivity_hull(places, graph),
        method=method,
        hull=hull,
    )


@dataclass(frozen=True, eq=False)
class _State:
    """The hulls with which the nodes are released; nodes are counted 0, 1, … whatever their numbers.

    Node i is released with hulls[member[i]], which sizes[member[i]] nodes share: one hull for all, or one for each
    component.
    """

    places: Floats
    member: Integers
    sizes: Integers
    hulls: tuple[SensitivityHull, ...]
    separate: bool

    def exposed(self, i: int) -> bool:
        """Tell whether no other node is released with the same hull and within it."""
        body = self.hulls[self.member[i]]
        alike = np.array([other is body or other.dimension == body.dimension == 0 for other in self.hulls])
        return int(body.contains(self.places[alike[self.member]] - self.places[i]).sum()) == 1

    def ever_exposed(self, visits: list[int]) -> list[int]:
        """Return all nodes that are exposed or may become so, `visits` first.

        One hull for all only grows. A node released exactly may be left alone at its place.
        """
        if not self.separate:
            return visits
        bare = np.array([body.dimension == 0 for body in self.hulls])[self.member]
        return list(dict.fromkeys([*visits, *np.flatnonzero(bare).tolist()]))

    def joined(self, i: int, j: int) -> _State:
        """Return the state with an edge between i, which has none, and j."""
        owner = self.member[j]
        difference = self.places[j] - self.places[i]
        hulls = list(self.hulls)
        hulls[owner] = SensitivityHull.of(np.concatenate((hulls[owner].vertices, difference[None])))
        if not self.separate:
            return replace(self, hulls=tuple(hulls))
        member, sizes = self.member.copy(), self.sizes.copy()
        sizes[member[i]] -= 1
        sizes[owner] += 1
        member[i] = owner
        return replace(self, hulls=tuple(hulls), member=member, sizes=sizes)

    def volumes(self) -> Floats:
        """Return the volume summed over the nodes, apart for hulls of dimension d, d − 1, …, 1.

        Compared in this order a larger graph is never less: hulls only grow.
        """
        d = self.places.shape[1]
        total = np.zeros(d + 1)
        for size, body in zip(self.sizes, self.hulls, strict=True):
            total[d - body.dimension] += size * body.volume
        return total[:d]

    def costs(self, i: int) -> tuple[Integers, Floats]:
        """Return the other nodes, and by how much `volumes` would grow if i were joined to each; the length last."""
        others = np.delete(np.arange(len(self.places)), i)
        vectors = self.places[others] - self.places[i]
        d = self.places.shape[1]
        costs = np.zeros((len(others), d + 2))
        costs[:, d + 1] = np.sqrt((vectors**2).sum(axis=1))
        owners = self.member[others]
        for owner in np.unique(owners):
            rows = np.flatnonzero(owners == owner)
            body, size = self.hulls[owner], self.sizes[owner]
            dimensions, volumes = body.grown(vectors[rows])
            costs[rows, d - body.dimension] -= size * body.volume
            costs[rows, d - dimensions] += (size + self.separate) * volumes
        # The column of dimension 0 says nothing.
        return others, np.delete(costs, d, axis=1)


def _state(places: Floats, g: nx.Graph, nodes: Integers, hull: str) -> _State:
    count = len(nodes)
    if hull == "graph":
        body = sensitivity_hull(places, g)
        return _State(places[nodes], np.zeros(count, dtype=np.int64), np.array([count]), (body,), separate=False)
    member = np.zeros(count, dtype=np.int64)
    parts = components(g)
    for index, part in enumerate(parts):
        member[np.searchsorted(nodes, part)] = index
    sizes = np.bincount(member, minlength=len(parts))
    return _State(places[nodes], member, sizes, tuple(component_hulls(places, g)), separate=True)


def _visits(nodes: Integers, exposed: list[int], order: Sequence[int]) -> list[int]:
    """Return the exposed nodes in the order asked for, which may name other nodes, too."""
    wanted = as_indices(order, "order", int(nodes[-1]) + 1)
    at = {int(node): index for index, node in enumerate(nodes)}
    visits = [at[node] for node in dict.fromkeys(wanted.tolist()) if node in at and at[node] in set(exposed)]
    missing = sorted(set(exposed) - set(visits))
    if missing:
        raise InputError("order", "leaves out an exposed node", value=int(nodes[missing[0]]))
    return visits


def _greedy(state: _State, visits: list[int], method: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the edges and the visited nodes."""
    edges, visited = [], []
    candidates = state.ever_exposed(visits)
    while pending := [i for i in candidates if state.exposed(i)]:
        visited += pending
        for i in pending:
            # An edge added before may protect it by now.
            if state.exposed(i):
                others, costs = state.costs(i)
                j = int(others[_least(costs[:, -1:] if method == "nearest" else costs)])
                edges.append((i, j))
                state = state.joined(i, j)
    return edges, visited


def _one_by_one(state: _State, visits: list[int]) -> list[tuple[int, int]]:
    edges = []
    candidates = state.ever_exposed(visits)
    while pending := [i for i in candidates if state.exposed(i)]:
        found = [state.costs(i) for i in pending]
        best = _least(np.concatenate([costs for _, costs in found]))
        which, rank = divmod(best, len(state.places) - 1)
        i, j = pending[which], int(found[which][0][rank])
        edges.append((i, j))
        state = state.joined(i, j)
    return edges


def _search(state: _State, visits: list[int]) -> list[tuple[int, int]]:
    """Return the edges of least volume, by branch and bound: the volume never shrinks as edges are added.

    In a graph that protects all, the first exposed node has an edge, or a node within its hull: joining the two does
    not change that hull. So it is enough to try all edges from the first node still exposed.
    """
    count = (len(state.places) - 1) ** len(visits)
    if count > LARGEST_SEARCH:
        raise InputError(
            "method",
            f"is too costly: {len(visits)} of {len(state.places)} nodes are exposed",
            value=f"exhaustive, {count} graphs",
            bound=f"at most {LARGEST_SEARCH} graphs",
            remedy='use "best" or "area"',
        )
    candidates = state.ever_exposed(visits)
    best: tuple[Floats, list[tuple[int, int]]] | None = None

    def visit(state: _State, edges: list[tuple[int, int]], length: float) -> None:
        nonlocal best
        score = np.append(state.volumes(), length)
        if best is not None and _compare(score, best[0]) > 0:
            return
        first = next((i for i in candidates if state.exposed(i)), None)
        if first is None:
            if best is None or _compare(score, best[0]) < 0:
                best = (score, edges)
            return
        others, costs = state.costs(first)
        # The cheapest first: a good solution early prunes the rest. Ties stay in the order of the nodes.
        for rank in np.lexsort(costs.T[::-1]):
            visit(
                state.joined(first, int(others[rank])), [*edges, (first, int(others[rank]))], length + costs[rank, -1]
            )

    visit(state, [], 0.0)
    assert best is not None, "joining every exposed node to any other protects all"
    return best[1]


def _least(costs: Floats) -> int:
    """Return the first row that is least in the first column, then in the next, each up to the tolerance."""
    rows = np.arange(len(costs))
    for column in costs.T:
        least = column[rows].min()
        rows = rows[column[rows] <= least + TOLERANCE * abs(least)]
    return int(rows[0])


def _compare(one: Floats, other: Floats) -> int:
    """Return -1, 0 or 1 as `one` comes before, with or after `other`, column by column up to the tolerance."""
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        if not math.isclose(a, b, rel_tol=TOLERANCE):
            return -1 if a < b else 1
    return 0
