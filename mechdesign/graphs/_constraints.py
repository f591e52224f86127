"""Policy graphs under a constraint: the restriction of a graph to the possible secrets.

The sources are sections 4.1 and 4.2 of DPHMM (Xiao et al. 2017) and section 4.1 of PGLP (Cao et al. 2020). The support
is the set of possible secrets, which the papers call the constraint or the constrained domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import exact
from mechdesign.model._claims import label_components, members
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number
from mechdesign.model._prior import Prior, as_prior


def constrain(graph: nx.Graph, support: Iterable[int] | ArrayLike) -> nx.Graph:
    """Return the subgraph of a policy graph induced by the possible secrets (PGLP, Definition 12).

    Args:
        graph: The policy graph.
        support: The nodes of the subgraph, at least one, in any order.

    Returns:
        The subgraph.

    Raises:
        InputError: The support is empty or contains an unknown node.

    >>> list(constrain(nx.path_graph(4), [1, 2]).edges)
    [(1, 2)]
    """
    check_graph(graph)
    kept = _support(graph, support)
    result = nx.Graph()
    result.add_nodes_from(kept.tolist())
    inside = set(kept.tolist())
    # Building a new graph is faster than graph.subgraph, which filters edges one by one.
    result.add_edges_from((s, t) for s in kept.tolist() for t in inside.intersection(graph.adj[s]) if s < t)
    return result


def delta_set(prior: Prior | ArrayLike, delta: Number) -> Integers:
    """Return the δ-location set: the smallest set of secrets with probability at least 1 − δ (DPHMM, Theorem 4.1).

    The most probable secrets are selected; in ties, the lower index comes first. The probabilities are divided by their
    exact sum. With δ = 0, the set contains the secrets with positive probability.

    Args:
        prior: Probabilities, (n,).
        delta: The exact number δ, in [0, 1).

    Returns:
        Sorted indices.

    >>> delta_set([0.125, 0.5, 0.375], 0.125).tolist()
    [1, 2]
    """
    probabilities = as_prior(prior, labels=()).probabilities
    share = 1 - exact(delta, "delta")
    if not 0 < share <= 1:
        raise InputError("delta", "is out of range", value=delta, bound="at least 0 and below 1")
    order = np.lexsort((np.arange(len(probabilities)), -probabilities))
    weights = [Fraction(value) for value in probabilities[order].tolist()]
    # The probabilities have a power of two as common denominator, so sums use integers.
    unit = math.lcm(*(weight.denominator for weight in weights))
    whole = [weight.numerator * (unit // weight.denominator) for weight in weights]
    least, total = share * sum(whole), 0
    for count, number in enumerate(whole, start=1):
        total += number
        if total >= least:
            return np.sort(order[:count])
    raise AssertionError("the total probability is at least any share of it")


def excluded(graph: nx.Graph, support: Iterable[int] | ArrayLike) -> Integers:
    """Return the nodes outside the support, sorted (PGLP, Definition 10). No mechanism can protect these nodes.

    Args:
        graph: The policy graph.
        support: The possible nodes.

    Returns:
        Sorted nodes.

    >>> excluded(nx.path_graph(3), [0, 1]).tolist()
    [2]
    """
    check_graph(graph)
    return np.setdiff1d(_nodes(graph), _support(graph, support))


def disconnected(graph: nx.Graph, support: Iterable[int] | ArrayLike) -> Integers:
    """Return the sorted nodes of the support whose neighbours all lie outside the support (PGLP, Definition 11).

    Nodes without any neighbours are not included. Whether these nodes are *exposed* depends on the mechanism: see
    `exposed`.

    Args:
        graph: The policy graph.
        support: The possible nodes.

    Returns:
        Sorted nodes.

    >>> disconnected(nx.path_graph(3), [0, 2]).tolist()
    [0, 2]
    """
    check_graph(graph)
    alone = isolated(constrain(graph, support))
    return alone[[graph.degree(node) > 0 for node in alone.tolist()]] if alone.size else alone


def isolated(graph: nx.Graph) -> Integers:
    """Return the nodes without any edge, sorted: the graph does not protect them.

    Here, "isolated" means "without any edge", as in graph theory. In PGLP, an isolated node is a node without
    protection by the mechanism (Definition 13). DPHMM and this package call such a node exposed; see `exposed`.

    Args:
        graph: The policy graph.

    Returns:
        Sorted nodes.

    >>> isolated(nx.empty_graph(2)).tolist()
    [0, 1]
    """
    check_graph(graph)
    return np.array(sorted(node for node, degree in graph.degree() if degree == 0), dtype=np.int64)


def components(graph: nx.Graph) -> list[Integers]:
    """Return the connected components of a graph, each sorted, in the order of their first nodes.

    Args:
        graph: The policy graph.

    Returns:
        Arrays of nodes.

    >>> [nodes.tolist() for nodes in components(nx.Graph([(0, 2), (1, 3)]))]
    [[0, 2], [1, 3]]
    """
    check_graph(graph)
    nodes = np.array(sorted(graph), dtype=np.int64)
    pairs = np.searchsorted(nodes, np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2))
    return [nodes[part] for part in members(label_components(len(nodes), pairs))] if nodes.size else []


def membership(parts: Sequence[Integers], n: int) -> Integers:
    """Return the index of the component that contains each node, or -1.

    Args:
        parts: Disjoint arrays of nodes, such as `components`.
        n: The number of nodes.

    Returns:
        Indices into `parts`, int64 (n,).

    >>> membership([np.array([0, 2]), np.array([1])], 4).tolist()
    [0, 1, 0, -1]
    """
    require_unmasked(parts, "parts")
    member = np.full(n, -1, dtype=np.int64)
    for index, nodes in enumerate(parts):
        member[nodes] = index
    return member


def _nodes(graph: nx.Graph) -> Integers:
    return np.array(sorted(graph), dtype=np.int64)


def as_node(graph: nx.Graph, node: int, path: str = "node") -> int:
    """Return a node of the graph as an integer; raise `InputError` for other values."""
    number = as_integer(node, path, 0)
    if number not in graph:
        raise InputError(path, "is not a node of the graph", value=number, bound=f"one of its {len(graph)} nodes")
    return number


def _support(graph: nx.Graph, support: Iterable[int] | ArrayLike) -> Integers:
    """Return the nodes of the support, sorted and without repetition."""
    # NumPy treats sets and generators as single objects: convert them to lists.
    plain = isinstance(support, Iterable) and not isinstance(support, Sequence | np.ndarray)
    listed = list(support) if plain else support  # type: ignore[arg-type]
    found = named(listed, "support", dtype=object)
    if found.ndim != 1 or found.size == 0:
        raise InputError(
            "support", "is not a list of nodes", value=found.shape, bound="at least one node, of shape (k,)"
        )
    if found.dtype.kind not in "iu":
        remedy = "use numpy.flatnonzero on a mask" if found.dtype.kind == "b" else ""
        raise InputError("support", f"has the type {found.dtype}", bound="node numbers", remedy=remedy)
    for index, node in enumerate(found.tolist()):
        if node not in graph:
            raise InputError(
                f"support[{index}]", "is not a node of the graph", value=node, bound=f"one of its {len(graph)} nodes"
            )
    return np.unique(found).astype(np.int64)
