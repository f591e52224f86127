"""Longest simple cycles, and longest simple paths between ports, in an undirected graph.

In the policy graph G_P of Blowfish (He et al. 2014, section 8) an edge q → q' between two constraints always comes with
q' → q, and v⁺ → q with q → v⁻, since a pair of values that must not be told apart can be taken either way round. So G_P
is an undirected graph on the constraints, some of which are *ports*, joined to both v⁺ and v⁻. A simple cycle of G_P is
an edge there and back, or a simple cycle of three or more constraints; a simple path from v⁺ to v⁻ is a simple path
between two ports, or a single port, with one edge more at either end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx

__all__ = ["SEARCH_LIMIT", "Walk", "longest_walks"]

SEARCH_LIMIT = 16
"""Number of linked constraints up to which the longest cycle and path are found whatever the graph."""


@dataclass(frozen=True)
class Walk:
    """A simple cycle, or a simple path from v⁺ to v⁻, of a policy graph.

    Attributes:
        nodes: the constraints on it, in order.
        cyclic: whether it is a cycle; otherwise a path whose ends are ports.
    """

    nodes: tuple[int, ...]
    cyclic: bool

    @property
    def length(self) -> int:
        """Return the number of edges."""
        return len(self.nodes) + (not self.cyclic)


def longest_walks(links: nx.Graph, ports: set[int], order: Sequence[int]) -> tuple[list[Walk], int]:
    """Return the longest walks found, from different components, and an upper bound on the length of every walk.

    The bound is attained for complete graphs, trees, and graphs in which each node is linked to the next one in the
    given order (as disjoint ranges under a distance threshold are), and wherever at most `SEARCH_LIMIT` nodes hang
    together.

    Args:
        links: the undirected graph.
        ports: nodes at which a path may begin and end.
        order: all nodes in an order that is likely to be a path.
    """
    place = {node: index for index, node in enumerate(order)}
    found: list[Walk] = []
    bound = 0
    for component in nx.connected_components(links):
        nodes = sorted(component, key=place.__getitem__)
        walks, most = _in_component(links.subgraph(component), ports & component, nodes)
        found += walks
        bound = max(bound, most)
    longest = max((walk.length for walk in found), default=0)
    return [walk for walk in found if walk.length == longest], bound


def _in_component(part: nx.Graph, ports: set[int], order: list[int]) -> tuple[list[Walk], int]:
    size = len(order)
    found = [Walk((port,), False) for port in sorted(ports)] + [Walk(edge, True) for edge in part.edges]
    # A path visits all nodes at best, between two ports; a cycle has one edge less.
    bound = size + 1 if len(ports) > 1 or (ports and size == 1) else max(size if size > 1 else 0, 2 * bool(ports))
    if max((walk.length for walk in found), default=0) < bound:
        found += _in_order(part, ports, order)
    if part.number_of_edges() == size - 1:
        found += _on_a_tree(part, ports)
        bound = max((walk.length for walk in found), default=0)
    elif max(walk.length for walk in found) < bound and size <= SEARCH_LIMIT:
        found += _searched(part, ports, order)
        bound = max(walk.length for walk in found)
    return found, bound


def _in_order(part: nx.Graph, ports: set[int], order: list[int]) -> Iterator[Walk]:
    """Yield the walks through all nodes, or all ports first and last, that are there at first sight."""
    inner = [node for node in order if node not in ports]
    outer = [node for node in order if node in ports]
    for nodes in (order, outer[:1] + inner + outer[1:]):
        if all(part.has_edge(a, b) for a, b in itertools.pairwise(nodes)):
            if nodes[0] in ports and nodes[-1] in ports:
                yield Walk(tuple(nodes), False)
            if len(nodes) > 2 and part.has_edge(nodes[-1], nodes[0]):
                yield Walk(tuple(nodes), True)


def _on_a_tree(part: nx.Graph, ports: set[int]) -> Iterator[Walk]:
    """Yield the longest path between two ports of a tree: from the port farthest from any port to the one farthest."""
    if ports:
        start = min(ports)
        for _ in range(2):
            paths = nx.single_source_shortest_path(part, start)
            start = max(sorted(ports), key=lambda port: len(paths[port]))
        yield Walk(tuple(paths[start]), False)


def _searched(part: nx.Graph, ports: set[int], order: list[int]) -> Iterator[Walk]:
    """Yield a longest path between ports and a longest cycle, by dynamic programming over the sets of nodes."""
    place = {node: index for index, node in enumerate(order)}
    adjacent = [sum(1 << place[other] for other in part.adj[node]) for node in order]
    gates = sum(1 << place[port] for port in ports)

    reached = _reached(adjacent, gates, anywhere=True)
    sets = [nodes for nodes, ends in enumerate(reached) if ends & gates]
    if sets:
        nodes = max(sets, key=int.bit_count)
        yield Walk(tuple(order[i] for i in _traced(adjacent, reached, nodes, reached[nodes] & gates)), False)

    # Every cycle starts at its lowest node.
    reached = _reached(adjacent, (1 << len(order)) - 1, anywhere=False)
    sets = [n for n, ends in enumerate(reached) if n.bit_count() > 2 and ends & adjacent[_lowest(n)]]
    if sets:
        nodes = max(sets, key=int.bit_count)
        ends = reached[nodes] & adjacent[_lowest(nodes)]
        yield Walk(tuple(order[i] for i in _traced(adjacent, reached, nodes, ends)), True)


def _reached(adjacent: list[int], starts: int, anywhere: bool) -> list[int]:
    """Return for each set of nodes the ends of the simple paths through it that begin at a start.

    Unless `anywhere`, paths begin at their lowest node.
    """
    size = len(adjacent)
    reached = [0] * (1 << size)
    for start in range(size):
        if starts >> start & 1:
            reached[1 << start] = 1 << start
    for nodes in range(1, 1 << size):
        if ends := reached[nodes]:
            for new in range(0 if anywhere else _lowest(nodes), size):
                if not nodes >> new & 1 and adjacent[new] & ends:
                    reached[nodes | 1 << new] |= 1 << new
    return reached


def _traced(adjacent: list[int], reached: list[int], nodes: int, ends: int) -> list[int]:
    """Return a path through a set of nodes that stops at one of `ends`."""
    path = [_lowest(ends)]
    while nodes := nodes ^ (1 << path[-1]):
        path.append(_lowest(reached[nodes] & adjacent[path[-1]]))
    return path[::-1]


def _lowest(nodes: int) -> int:
    return (nodes & -nodes).bit_length() - 1
