"""What a policy graph is: an undirected `networkx.Graph` on the numbers of secrets, and its edges as an array."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.base._arrays import Integers

__all__ = ["check_graph", "edge_array"]


def check_graph(graph: nx.Graph, size: int | None = None, path: str = "graph") -> None:
    """Raise `InputError` unless `graph` is a policy graph: undirected, not empty, without self-loops.

    Its nodes must be whole numbers from 0 on, below `size` where that is given; a constrained graph lacks some.
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(path, "is not a networkx graph", value=type(graph).__name__, bound="a networkx.Graph")
    if graph.is_directed():
        raise InputError(path, "is directed", remedy="indistinguishability goes both ways: use to_undirected()")
    if graph.is_multigraph():
        raise InputError(path, "has parallel edges", value=type(graph).__name__, remedy="use networkx.Graph(graph)")
    if graph.number_of_nodes() == 0:
        raise InputError(path, "has no nodes", bound="at least one")
    for node in graph:
        if isinstance(node, bool | np.bool_) or not isinstance(node, int | np.integer):
            raise InputError(
                path,
                "has a node that is no whole number",
                value=node,
                bound="the indices of the secrets",
                remedy="relabel with networkx.convert_node_labels_to_integers",
            )
        if node < 0 or (size is not None and node >= size):
            bound = "at least 0" if size is None else f"between 0 and {size - 1}"
            raise InputError(path, "has an unknown node", value=int(node), bound=bound)
    loop = next(iter(nx.nodes_with_selfloops(graph)), None)
    if loop is not None:
        raise InputError(
            path,
            "has a self-loop",
            value=(int(loop), int(loop)),
            remedy="remove it with graph.remove_edges_from(networkx.selfloop_edges(graph)): it hides nothing",
        )


def edge_array(graph: nx.Graph) -> Integers:
    """Return the edges as int64 of shape (k, 2): the lower end first, in lexicographic order."""
    pairs: Integers = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
