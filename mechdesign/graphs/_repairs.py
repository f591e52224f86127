"""Edges that protect exposed secrets.

The sources are Algorithm 4 of PGLP (Cao et al. 2020) and Algorithms 1 and 3 of DPHMM (Xiao et al. 2017). The noise of a
K-norm mechanism grows with the volume of its hull, so an added edge should have the least volume. Finding the least
volume over all graphs is #P-hard in the dimension (DPHMM, Theorem 6.1). The result of the greedy methods depends on the
order of the nodes. Therefore the order of the nodes is deterministic and part of the result.
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
from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError
from mechdesign.graphs._builders import components, membership, sort_nodes
from mechdesign.graphs._exposure import hull_between, hulls_between
from mechdesign.graphs._hull import TOLERANCE, SensitivityHull, as_points
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph


@dataclass(frozen=True, eq=False)
class RepairState:
    """The hulls of the nodes while edges are added; nodes are numbered 0, 1, … in ascending order.

    The hull of node i is hulls[member[i]], and sizes[member[i]] nodes share it. Either all nodes share one hull, or the
    nodes of each component share a hull. If `bystander` is true for a node, this node protects another node only if an
    edge joins the two.
    """

    places: Floats
    member: Integers
    sizes: Integers
    hulls: tuple[SensitivityHull, ...]
    separate: bool
    bystander: Flags

    def is_exposed(self, i: int) -> bool:
        """Return whether the hull around node i contains no other node with the same hull."""
        body = self.hulls[self.member[i]]
        alike = np.array([other is body or other.dimension == body.dimension == 0 for other in self.hulls])
        others = alike[self.member] & ~self.bystander
        others[i] = False
        return not body.contains(self.places[others] - self.places[i]).any()

    def list_candidates(self, visits: list[int]) -> list[int]:
        """Return all nodes that are exposed or may become exposed, starting with `visits`.

        If all nodes share a hull, added edges only enlarge this hull. With a hull for each component, a node without
        edges may become exposed if the other nodes at its place get edges.
        """
        if not self.separate:
            return visits
        bare = np.array([body.dimension == 0 for body in self.hulls])[self.member]
        return list(dict.fromkeys([*visits, *np.flatnonzero(bare).tolist()]))

    def join(self, i: int, j: int) -> RepairState:
        """Return the state after adding an edge from node i, which has no edges, to node j."""
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
        """Return the sums of volumes over the nodes, separately for hulls of dimension d, d − 1, …, 1.

        Adding edges never decreases this vector in lexicographic order, because hulls only grow.
        """
        d = self.places.shape[1]
        total = np.zeros(d + 1)
        for size, body in zip(self.sizes, self.hulls, strict=True):
            total[d - body.dimension] += size * body.volume
        return total[:d]

    def costs(self, i: int) -> tuple[Integers, Floats]:
        """Return the other nodes, and the cost of an edge from i to each of them.

        The cost is the increase of `volumes`, followed by the length of the edge.
        """
        others = np.delete(np.arange(len(self.places)), i)
        vectors = self.places[others] - self.places[i]
        d = self.places.shape[1]
        costs = np.zeros((len(others), d + 2))
        costs[:, d + 1] = np.sqrt((vectors**2).sum(axis=1))
        owners = self.member[others]
        sizes = self.sizes[owners]
        # Components may share a hull; all nodes without an edge share K = {0}.
        shared = np.array([id(body) for body in self.hulls])[owners]
        for one in np.unique(shared):
            rows = np.flatnonzero(shared == one)
            body = self.hulls[owners[rows[0]]]
            dimensions, volumes = body.grown(vectors[rows])
            costs[rows, d - body.dimension] -= sizes[rows] * body.volume
            costs[rows, d - dimensions] += (sizes[rows] + self.separate) * volumes
        # The column of dimension 0 is always zero.
        return others, np.delete(costs, d, axis=1)


def release_state(places: Floats, graph: nx.Graph, nodes: Integers, hull: str, bystander: Flags) -> RepairState:
    """Return the initial state of a graph with the sorted `nodes`.

    If `hull` is "graph", all nodes share one hull; otherwise, each component has its own hull.
    """
    count = len(nodes)
    if hull == "graph":
        body = hull_between(places, graph)
        return RepairState(places[nodes], np.zeros(count, dtype=np.int64), np.array([count]), (body,), False, bystander)
    parts = components(graph)
    member = membership(parts, len(places))[nodes]
    sizes = np.bincount(member, minlength=len(parts))
    return RepairState(places[nodes], member, sizes, tuple(hulls_between(places, graph)), True, bystander)


LARGEST_SEARCH = 10_000
"""The largest permitted number of graphs in an exhaustive search; k exposed nodes give (n − 1)^k graphs."""

Method = Literal["area", "nearest", "exhaustive"]
"""The method for choosing the added edges; see `repair`."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A policy graph without exposed nodes, and the edges that were added.

    Attributes:
        graph: The repaired graph, frozen: the original graph and the added edges.
        added: The added edges (i, j) in the order of their addition, each from an exposed node i to a node j.
        order: The exposed nodes in the order of the visits, including nodes that an earlier edge already protected.
            With a hull for each component, an edge to a node may expose other nodes at the same place; these nodes are
            visited last.
        hull_before: The sensitivity hull of the original graph.
        hull_after: The sensitivity hull of the repaired graph.
        method: The method of the repair.
        hull: The hull, "graph" or "component", that determines exposure and volume.

    >>> graph = nx.Graph([(0, 1)])
    >>> graph.add_node(2)
    >>> repair([[0.0], [1.0], [9.0]], graph).added
    ((2, 1),)
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
    """Return a policy graph with added edges, in which none of `nodes` is exposed.

    The method chooses the edges:

    - "area": visit the exposed nodes in `order`. Join each node that is still exposed to the node that gives the hull
      of least volume, an area in the plane. This is Algorithm 4 of PGLP and Algorithm 3 of DPHMM.
    - "nearest": visit the exposed nodes in `order`, and join each node that is still exposed to the nearest node
      (DPHMM, Algorithm 1).
    - "exhaustive": find the graph of least volume among all graphs with added edges. More than `LARGEST_SEARCH` graphs
      are an error.

    A degenerate hull has the volume 0 in the full dimension. Of two degenerate hulls, the hull with the lower dimension
    is preferred, then the hull with the smaller volume. Volumes are equal if their relative difference is at most 1e-9.
    In a tie, the shorter edge (or the smaller total length) is preferred, then the lower node. A long thin hull has a
    small volume but large noise along its axis; "nearest" avoids these hulls.

    Args:
        points: The places f(s): a domain, or an array (n, d).
        graph: The policy graph, with at least two nodes.
        method: "area", "nearest" or "exhaustive".
        hull: The hull of the mechanism, which determines exposure (see `exposed`) and volume. With "component", the
            volume is the sum over nodes of the volume of their component's hull.
        order: The order in which exposed nodes are visited; None means ascending.
        nodes: The nodes to protect, such as those of `disconnected`; None means all. The other end of an added edge may
            be any node.
        bystanders: Nodes that protect another node only if an edge joins the two, even if they lie within its hull. For
            a mechanism without a hull, the bystanders are the nodes without edges in the policy.

    Returns:
        The repaired graph and the added edges.

    Raises:
        InputError: The graph has a single node, an argument does not match the graph, or the search is too large.

    >>> repair([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]], nx.empty_graph(3), "nearest").added
    ((0, 1), (2, 1))
    """
    places = as_points(points)
    check_graph(graph, len(places))
    require_name(method, get_args(Method), "method")
    require_name(hull, ("graph", "component"), "hull")
    everyone = sort_nodes(graph)
    if len(everyone) == 1:
        raise InputError(
            "graph",
            "has a single node, which no edge can protect",
            value=int(everyone[0]),
            bound="at least two nodes",
            remedy="enlarge the constrained domain: an adversary already knows a single possible secret",
        )
    aside = np.zeros(len(everyone), dtype=np.bool_)
    aside[_find_positions(everyone, bystanders, "bystanders")] = True
    before = release_state(places, graph, everyone, hull, aside)
    chosen = set(range(len(everyone)) if nodes is None else _find_positions(everyone, nodes, "nodes"))
    exposed = [index for index in sorted(chosen) if before.is_exposed(index)]
    visits = exposed if order is None else _visits(everyone, exposed, order)
    # A new edge may expose other nodes at the place of its end.
    candidates = [index for index in before.list_candidates(visits) if index in chosen]
    if method == "exhaustive":
        edges = _search(before, visits, candidates)
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


def _find_positions(everyone: Integers, nodes: Sequence[int] | Integers, path: str) -> list[int]:
    """Return the positions of nodes in the sorted list of all nodes."""
    wanted = np.unique(as_indices(nodes, path, int(everyone[-1]) + 1))
    strange = np.setdiff1d(wanted, everyone)
    if strange.size:
        raise InputError(path, "contains an unknown node", value=int(strange[0]), bound="nodes of the graph")
    found: list[int] = np.searchsorted(everyone, wanted).tolist()
    return found


def _visits(nodes: Integers, exposed: list[int], order: Sequence[int]) -> list[int]:
    """Return the exposed nodes in the given order, which may contain other nodes."""
    wanted = as_indices(order, "order", int(nodes[-1]) + 1)
    at = {int(node): index for index, node in enumerate(nodes)}
    visits = [at[node] for node in dict.fromkeys(wanted.tolist()) if node in at and at[node] in set(exposed)]
    missing = sorted(set(exposed) - set(visits))
    if missing:
        raise InputError("order", "omits an exposed node", value=int(nodes[missing[0]]), bound="all exposed nodes")
    return visits


def _greedy(state: RepairState, candidates: list[int], method: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the edges of the method "area" or "nearest", and the visited nodes."""
    edges, visited = [], []
    while pending := [i for i in candidates if state.is_exposed(i)]:
        visited += pending
        for i in pending:
            # An earlier edge may already protect the node.
            if state.is_exposed(i):
                others, costs = state.costs(i)
                j = int(others[_least(costs[:, -1:] if method == "nearest" else costs)])
                edges.append((i, j))
                state = state.join(i, j)
    return edges, visited


def _search(state: RepairState, visits: list[int], candidates: list[int]) -> list[tuple[int, int]]:
    """Return the edges of least volume, found by branch and bound; added edges never decrease the volume.

    In every graph that protects all nodes, the first exposed node has an edge, or another node within its hull. If it
    has another node within its hull, an edge between the two nodes does not change the hull. So the search needs to try
    only the edges from the first exposed node.
    """
    others = len(state.places) - 1
    if others ** min(len(visits), LARGEST_SEARCH.bit_length()) > LARGEST_SEARCH:
        raise InputError(
            "method",
            f"is too costly: {len(visits)} of {len(state.places)} nodes are exposed",
            value=f"exhaustive, {others}**{len(visits)} graphs",
            bound=f"at most {LARGEST_SEARCH} graphs",
            remedy='use "area"',
        )
    best: tuple[Floats, list[tuple[int, int]]] | None = None

    def visit(state: RepairState, edges: list[tuple[int, int]], length: float) -> None:
        nonlocal best
        score = np.append(state.volumes(), length)
        if best is not None and _compare(score, best[0]) > 0:
            return
        first = next((i for i in candidates if state.is_exposed(i)), None)
        if first is None:
            if best is None or _compare(score, best[0]) < 0:
                best = (score, edges)
            return
        others, costs = state.costs(first)
        # Try the cheapest edges first, since an early good solution prunes more of the search. Ties keep the order of
        # the nodes.
        for rank in np.lexsort(costs.T[::-1]):
            visit(state.join(first, int(others[rank])), [*edges, (first, int(others[rank]))], length + costs[rank, -1])

    visit(state, [], 0.0)
    assert best is not None, "edges from every exposed node protect all nodes"
    return best[1]


def _least(costs: Floats) -> int:
    """Return the first row that is lexicographically least, comparing columns up to the tolerance."""
    rows = np.arange(len(costs))
    for column in costs.T:
        least = column[rows].min()
        rows = rows[column[rows] <= least + TOLERANCE * abs(least)]
    return int(rows[0])


def _compare(one: Floats, other: Floats) -> int:
    """Return -1, 0 or 1 if `one` is lexicographically below, equal to or above `other`, up to the tolerance."""
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        if not math.isclose(a, b, rel_tol=TOLERANCE):
            return -1 if a < b else 1
    return 0
