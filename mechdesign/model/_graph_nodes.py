"""The check of graphs, whose nodes are the positions of the secrets, and remedies that can be followed literally."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base._errors import InputError

if TYPE_CHECKING:
    import networkx as nx

# Another order of the nodes, such as that of the edges, would protect other pairs. A name that is not a label fails.
_BY_LABEL = "networkx.relabel_nodes(graph, lambda node: domain.labels.index(str(node)))"
_FROM_1 = "networkx.relabel_nodes(graph, lambda node: node - 1)"


def check_graph(graph: nx.Graph, size: int | None = None, path: str = "graph", *, every: bool = False) -> None:
    """Raise `InputError` unless `graph` is a policy graph: undirected, without parallel edges and self-loops.

    See `check_nodes` for the nodes.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise InputError(path, "is not a networkx graph", value=type(graph).__name__, bound="a networkx.Graph")
    kind = type(graph).__name__
    if graph.is_multigraph():
        raise InputError(
            path, "may have parallel edges", value=kind, bound="a networkx.Graph", remedy="use networkx.Graph(graph)"
        )
    if graph.is_directed():
        remedy = "indistinguishability is symmetric: use graph.to_undirected()"
        raise InputError(path, "is directed", value=kind, bound="a networkx.Graph", remedy=remedy)
    check_nodes(graph, size, path, every=every)
    loop = next(iter(nx.nodes_with_selfloops(graph)), None)
    if loop is not None:
        raise InputError(
            path,
            "has a self-loop",
            value=(int(loop), int(loop)),
            remedy="remove it with graph.remove_edges_from(list(networkx.selfloop_edges(graph))): it protects no pair",
        )


def check_nodes(graph: nx.Graph, size: int | None = None, path: str = "graph", *, every: bool = False) -> None:
    """Raise `InputError` unless the nodes of a graph are positions of secrets: integers >= 0, below `size` if given.

    A constrained graph may lack some of the positions, unless `every` demands all of 0, 1, …, n − 1. Without `size`, n
    is then the number of nodes.
    """
    count = graph.number_of_nodes()
    if count == 0:
        raise InputError(path, "has no nodes", bound="at least one")
    for node in graph:
        if isinstance(node, bool | np.bool_) or not isinstance(node, int | np.integer):
            problem, remedy = "has a node that is not an integer", _remedy_of_names(graph, every)
            raise InputError(path, problem, value=node, bound="the positions of the secrets, from 0", remedy=remedy)
    least, most = int(min(graph)), int(max(graph))
    if least < 0 or (size is not None and most >= size):
        bound = "at least 0" if size is None else f"between 0 and {size - 1}"
        remedy = _remedy_of_names(graph, every)
        if (least, most) == (1, size):
            remedy = f"count the nodes from 0: {_complete(graph, _FROM_1, str(size)) if every else _FROM_1}"
        raise InputError(path, "has an unknown node", value=least if least < 0 else most, bound=bound, remedy=remedy)
    n = count if size is None else size
    missing = next((position for position in range(n) if position not in graph), None) if every else None
    if missing is not None:
        number = "n" if size is None else str(size)
        remedy = f"a secret without an edge is a node, too: {_complete(graph, 'graph', number)}"
        if least == 1:
            remedy += f"; if the nodes are counted from 1: {_complete(graph, _FROM_1, number)}"
        if size is None and most > count:
            remedy += f"; {_remedy_of_names(graph, every)}"
        raise InputError(
            path,
            f"has no node {missing}",
            value=f"{count} nodes up to {most}",
            bound=f"the nodes 0 to {n - 1}",
            remedy=f"for n secrets, {remedy}" if size is None else remedy,
        )


def _remedy_of_names(graph: nx.Graph, every: bool) -> str:
    """Return the remedy for nodes that are not positions."""
    numbers = [node for node in graph if isinstance(node, int | float | np.integer | np.floating | np.bool_)]
    plain = all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in numbers)
    if len(numbers) == len(graph) and not plain and all(node == node // 1 for node in numbers):
        return "make the nodes integers: networkx.relabel_nodes(graph, int)"
    made = _complete(graph, _BY_LABEL, "domain.size") if every else _BY_LABEL
    return f"if the nodes are labels of the domain, use their positions: {made}"


def _complete(graph: nx.Graph, made: str, number: str) -> str:
    """Return an expression for the graph that `made` gives, with a node for each of a number of secrets."""
    import networkx as nx

    kind = "" if type(graph) is nx.Graph else ", type(graph)"
    return f"networkx.compose(networkx.empty_graph({number}{kind}), {made})"


def _renew_locks() -> None:
    """Give the cached properties of networkx new locks in a forked process, where no thread releases the old locks.

    Until Python 3.12, all graphs share one lock for each property, such as `edges`.
    """
    nx = sys.modules.get("networkx")
    for kind in () if nx is None else (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        for held in vars(kind).values():
            if isinstance(held, functools.cached_property) and "lock" in vars(held):
                vars(held)["lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
