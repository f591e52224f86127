"""Edges that protect exposed secrets.

After PGLP (Cao et al. 2020, Algorithm 4) and DPHMM (Xiao et al. 2017, Algorithms 1 and 3). The noise of a K-norm
mechanism grows with the volume of its hull, so the edge to add is one of least volume. The least volume over all graphs
is #P-hard in the dimension (DPHMM, Theorem 6.1); the greedy methods depend on the order in which the nodes are visited,
which is therefore fixed, stated and reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Flags, Floats, Integers, as_indices
from mechdesign.base._errors import InputError
from mechdesign.graphs._builders import check_graph
from mechdesign.graphs._constraints import components, membership
from mechdesign.graphs._exposure import hull_between, hulls_between
from mechdesign.graphs._geometry._hull import TOLERANCE, SensitivityHull, as_points
from mechdesign.model._domain import Domain


@dataclass(frozen=True, eq=False)
class Released:
    """The hulls with which the nodes are released; nodes are counted 0, 1, … whatever their numbers.

    Node i is released with hulls[member[i]], which sizes[member[i]] nodes share: one hull for all, or one for each
    component. Nodes where `bystander` is true protect others only once an edge leads to them.
    """

    places: Floats
    member: Integers
    sizes: Integers
    hulls: tuple[SensitivityHull, ...]
    separate: bool
    bystander: Flags

    def exposed(self, i: int) -> bool:
        """Tell whether no other node is released with the same hull and within it."""
        body = self.hulls[self.member[i]]
        alike = np.array([other is body or other.dimension == body.dimension == 0 for other in self.hulls])
        others = alike[self.member] & ~self.bystander
        others[i] = False
        return not body.contains(self.places[others] - self.places[i]).any()

    def ever_exposed(self, visits: list[int]) -> list[int]:
        """Return all nodes that are exposed or may become so, `visits` first.

        One hull for all only grows. A node released exactly may be left alone at its place.
        """
        if not self.separate:
            return visits
        bare = np.array([body.dimension == 0 for body in self.hulls])[self.member]
        return list(dict.fromkeys([*visits, *np.flatnonzero(bare).tolist()]))

    def joined(self, i: int, j: int) -> Released:
        """Return the state with an edge between i, which has none, and j."""
        owner = self.member[j]
        bystander = self.bystander.copy()
        bystander[j] = False
        difference = self.places[j] - self.places[i]
        hulls = list(self.hulls)
        hulls[owner] = SensitivityHull.of(np.concatenate((hulls[owner].vertices, difference[None])))
        if not self.separate:
            return replace(self, hulls=tuple(hulls), bystander=bystander)
        member, sizes = self.member.copy(), self.sizes.copy()
        sizes[member[i]] -= 1
        sizes[owner] += 1
        member[i] = owner
        return replace(self, hulls=tuple(hulls), member=member, sizes=sizes, bystander=bystander)

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
        sizes = self.sizes[owners]
        # Components may share a hull; all nodes without an edge do.
        shared = np.array([id(body) for body in self.hulls])[owners]
        for one in np.unique(shared):
            rows = np.flatnonzero(shared == one)
            body = self.hulls[owners[rows[0]]]
            dimensions, volumes = body.grown(vectors[rows])
            costs[rows, d - body.dimension] -= sizes[rows] * body.volume
            costs[rows, d - dimensions] += (sizes[rows] + self.separate) * volumes
        # The column of dimension 0 says nothing.
        return others, np.delete(costs, d, axis=1)


def released(places: Floats, graph: nx.Graph, nodes: Integers, hull: str, bystander: Flags) -> Released:
    """Return the hulls of a graph with the sorted `nodes`, one for all ("graph") or one for each component."""
    count = len(nodes)
    if hull == "graph":
        body = hull_between(places, graph)
        return Released(places[nodes], np.zeros(count, dtype=np.int64), np.array([count]), (body,), False, bystander)
    parts = components(graph)
    member = membership(parts, len(places))[nodes]
    sizes = np.bincount(member, minlength=len(parts))
    return Released(places[nodes], member, sizes, tuple(hulls_between(places, graph)), True, bystander)


LARGEST_SEARCH = 10_000
"""How many graphs an exhaustive search may have to look at, (n − 1) to the number of exposed nodes."""

Method = Literal["area", "nearest", "best", "exhaustive"]
"""How the edges that are added are chosen; see `repair`."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A policy graph in which no node is exposed, and how it came about.

    Attributes:
        graph: the repaired graph, frozen: that of before and the added edges.
        added: the added edges (i, j) in order, i the exposed node and j what it was joined to.
        order: the exposed nodes, in the order in which they were visited; one that an earlier edge had come to protect
            was passed over. With the hull of each component, an edge to one of several nodes at one place may expose
            the others: they are visited afterwards.
        hull_before: the sensitivity hull of the whole graph without the added edges.
        hull_after: the one with them.
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
    graph: nx.Graph,
    method: Method = "area",
    *,
    hull: Literal["graph", "component"] = "graph",
    order: Sequence[int] | None = None,
    nodes: Sequence[int] | Integers | None = None,
    bystanders: Sequence[int] | Integers = (),
) -> Repair:
    """Add edges to a policy graph until no node is exposed, or none of `nodes` where these are given.

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

    `nodes` are the nodes to protect, such as those of `disconnected`; all of the graph unless given. An edge may lead
    to any other node. `bystanders` are nodes that protect others along edges only, even where a hull contains them:
    those that the policy leaves free, under a mechanism without a hull.

    Raises `InputError` for a graph of a single node, which no edge can protect, and for `nodes`, `bystanders` or an
    `order` that do not fit the graph.
    """
    places = as_points(points)
    check_graph(graph, len(places))
    if method not in get_args(Method):
        raise InputError("method", "is unknown", value=method, bound=f"one of {', '.join(get_args(Method))}")
    if hull not in ("graph", "component"):
        raise InputError("hull", "is unknown", value=hull, bound='"graph" or "component"')
    everyone = np.array(sorted(graph), dtype=np.int64)
    if len(everyone) == 1:
        raise InputError(
            "graph",
            "has a single node, which no edge can protect",
            value=int(everyone[0]),
            bound="at least two nodes",
            remedy="enlarge the constrained domain; who knows that no other secret is possible already knows this one",
        )
    aside = np.zeros(len(everyone), dtype=np.bool_)
    aside[_chosen(everyone, bystanders, "bystanders")] = True
    before = released(places, graph, everyone, hull, aside)
    chosen = set(range(len(everyone)) if nodes is None else _chosen(everyone, nodes, "nodes"))
    exposed = [index for index in sorted(chosen) if before.exposed(index)]
    visits = exposed if order is None else _visits(everyone, exposed, order)
    # Joining a node may expose others at its place.
    candidates = [index for index in before.ever_exposed(visits) if index in chosen]
    if method == "exhaustive":
        edges = _search(before, visits, candidates)
    elif method == "best":
        edges = _one_by_one(before, candidates)
        visits = [i for i, _ in edges] + visits
    else:
        edges, visits = _greedy(before, candidates, method)
    visits = list(dict.fromkeys([*visits, *(i for i, _ in edges)]))
    added = tuple((int(everyone[i]), int(everyone[j])) for i, j in edges)
    repaired = nx.Graph()
    repaired.add_nodes_from(everyone.tolist())
    repaired.add_edges_from(graph.edges())
    repaired.add_edges_from(added)
    return Repair(
        graph=nx.freeze(repaired),
        added=added,
        order=tuple(int(everyone[i]) for i in visits),
        hull_before=hull_between(places, graph),
        hull_after=hull_between(places, repaired),
        method=method,
        hull=hull,
    )


def _chosen(everyone: Integers, nodes: Sequence[int] | Integers, path: str) -> list[int]:
    """Return the positions of some nodes."""
    wanted = np.unique(as_indices(nodes, path, int(everyone[-1]) + 1))
    strange = np.setdiff1d(wanted, everyone)
    if strange.size:
        raise InputError(path, "holds a node that the graph does not have", value=int(strange[0]))
    found: list[int] = np.searchsorted(everyone, wanted).tolist()
    return found


def _visits(nodes: Integers, exposed: list[int], order: Sequence[int]) -> list[int]:
    """Return the exposed nodes in the order asked for, which may name other nodes, too."""
    wanted = as_indices(order, "order", int(nodes[-1]) + 1)
    at = {int(node): index for index, node in enumerate(nodes)}
    visits = [at[node] for node in dict.fromkeys(wanted.tolist()) if node in at and at[node] in set(exposed)]
    missing = sorted(set(exposed) - set(visits))
    if missing:
        raise InputError("order", "leaves out an exposed node", value=int(nodes[missing[0]]))
    return visits


def _greedy(state: Released, candidates: list[int], method: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the edges and the visited nodes."""
    edges, visited = [], []
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


def _one_by_one(state: Released, candidates: list[int]) -> list[tuple[int, int]]:
    edges = []
    while pending := [i for i in candidates if state.exposed(i)]:
        found = [state.costs(i) for i in pending]
        best = _least(np.concatenate([costs for _, costs in found]))
        which, rank = divmod(best, len(state.places) - 1)
        i, j = pending[which], int(found[which][0][rank])
        edges.append((i, j))
        state = state.joined(i, j)
    return edges


def _search(state: Released, visits: list[int], candidates: list[int]) -> list[tuple[int, int]]:
    """Return the edges of least volume, by branch and bound: the volume never shrinks as edges are added.

    In a graph that protects all, the first exposed node has an edge, or a node within its hull: joining the two does
    not change that hull. So it is enough to try all edges from the first node still exposed.
    """
    others = len(state.places) - 1
    if others ** min(len(visits), LARGEST_SEARCH.bit_length()) > LARGEST_SEARCH:
        raise InputError(
            "method",
            f"is too costly: {len(visits)} of {len(state.places)} nodes are exposed",
            value=f"exhaustive, {others}**{len(visits)} graphs",
            bound=f"at most {LARGEST_SEARCH} graphs",
            remedy='use "best" or "area"',
        )
    best: tuple[Floats, list[tuple[int, int]]] | None = None

    def visit(state: Released, edges: list[tuple[int, int]], length: float) -> None:
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
