"""Policy graphs, and their restriction to the possible secrets.

The two ends of an edge of a policy graph are ε-indistinguishable. Nodes k hops apart are then kε-indistinguishable. An
answer may distinguish nodes that no path connects. Sources are PGLP (Cao et al. 2020, Definitions 3 to 6 and Lemma 1)
and DPHMM (Xiao et al. 2017, Definition 4.2). Graphs are undirected networkx graphs. Each builder returns a graph on the
nodes 0, …, n−1, in this order, without self-loops. A constrained graph contains a subset of the nodes, with unchanged
numbers.

The restriction follows sections 4.1 and 4.2 of DPHMM and section 4.1 of PGLP. The support is the set of possible
secrets, which the papers call the constraint or the constrained domain.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mechdesign.base._arrays import Integers, as_labels
from mechdesign.base._check import as_integer, rename_path, require_unmasked
from mechdesign.base._errors import InputError, InputWarning
from mechdesign.base._names import named
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.model import distances
from mechdesign.model._claims import label_components, members
from mechdesign.model._domain import Domain, Grid
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._markov import MarkovChain, as_chain
from mechdesign.model._numbers import Number
from mechdesign.model._prior import Prior, as_prior


def edge_array(graph: nx.Graph) -> Integers:
    """Return the edges as int64 of shape (k, 2), with the lower end first, in lexicographic order."""
    pairs: Integers = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def complete(n: int) -> nx.Graph:
    """Return the complete graph, in which any two of n secrets are indistinguishable (DPHMM, G_cplt).

    Args:
        n: The number of secrets, at least 1.

    Returns:
        The policy graph.

    >>> complete(3).number_of_edges()
    3
    """
    return _join_groups(as_integer(n, "n", 1), [range(n)])


def line(n: int) -> nx.Graph:
    """Return the graph that joins each of n secrets to the next secret: secrets i and i + k are kε-indistinguishable.

    Args:
        n: The number of secrets, at least 1.

    Returns:
        The policy graph.

    >>> list(line(3).edges)
    [(0, 1), (1, 2)]
    """
    n = as_integer(n, "n", 1)
    return from_edges(n, np.column_stack((np.arange(n - 1), np.arange(1, n))))


def blocks(domain: Domain | Grid, k: int | tuple[int, int]) -> nx.Graph:
    """Return the graph that joins all cells of each block of k × k cells (PGLP, G_k9 for k = 3, G_k16 for 4).

    Blocks begin at cell 0. Blocks at the far borders are smaller if k does not divide the number of columns or rows.

    Args:
        domain: A grid.
        k: The number of cells along a side of a block, or a pair (columns, rows).

    Returns:
        The policy graph.

    >>> list(blocks(Domain.grid(columns=4, rows=1, width=4.0, height=1.0), 2).edges)
    [(0, 1), (2, 3)]
    """
    return _warn_if_empty(_join_equal(block_numbers(domain, k).tolist()), "each block has one cell")


def block_numbers(domain: Domain | Grid, k: int | tuple[int, int]) -> Integers:
    """Return the block number of each cell of a grid, int64 (n,); see `blocks`."""
    cells = as_grid(domain)
    sides = k if isinstance(k, tuple) else (k, k)
    if len(sides) != 2:
        raise InputError("k", "is not a block size", value=k, bound="a number of cells, or a pair (columns, rows)")
    wide, high = (as_integer(side, "k", 1) for side in sides)
    row, column = np.divmod(np.arange(cells.size), cells.columns)
    numbers: Integers = row // high * cells.columns + column // wide
    return numbers


def neighbours8(domain: Domain | Grid) -> nx.Graph:
    """Return the graph that joins each cell of a grid to the adjacent cells, up to eight.

    The number of hops is the Chebyshev distance in cells. The number of hops is at most the Euclidean distance divided
    by the shorter side of a cell. A channel that is private under this graph is therefore geo-indistinguishable with ε
    per side (PGLP, Theorem 3.1).

    Args:
        domain: A grid.

    Returns:
        The policy graph.

    >>> neighbours8(Domain.grid(columns=2, rows=2, width=1.0, height=1.0)).number_of_edges()
    6
    """
    cells = as_grid(domain)
    index = np.arange(cells.size).reshape(cells.rows, cells.columns)
    pairs = [
        (index[:, :-1], index[:, 1:]),
        (index[:-1], index[1:]),
        (index[:-1, :-1], index[1:, 1:]),
        (index[:-1, 1:], index[1:, :-1]),
    ]
    return from_edges(cells.size, np.concatenate([np.column_stack((a.ravel(), b.ravel())) for a, b in pairs]))


def categories(labels: Iterable[Hashable], regions: Iterable[Hashable] | None = None) -> nx.Graph:
    """Return the graph that joins secrets of the same category, within each region if given (PGLP, G_poi).

    Args:
        labels: The category of each secret, (n,). A secret with the category None has no edge.
        regions: The region of each secret, (n,), or None.

    Returns:
        The policy graph.

    >>> list(categories(["cafe", "home", "cafe"]).edges)
    [(0, 2)]
    """
    names = as_labels(labels, "labels", ())
    places = [None] * len(names) if regions is None else as_labels(regions, "regions", ())
    if len(places) != len(names):
        raise InputError("regions", "does not match labels", value=len(places), bound=f"{len(names)} values")
    every = [None if name is None else (name, place) for name, place in zip(names, places, strict=True)]
    return _warn_if_empty(_join_equal(every), "no two secrets have the same category")


def threshold(
    domain: Domain | ArrayLike | None = None,
    radius: Number | None = None,
    *,
    distance: ArrayLike | None = None,
    margin: float = 0.0,
) -> nx.Graph:
    """Return the graph that joins secrets whose distance is at most a radius (DPHMM, G_util).

    `threshold(domain, r)` uses Euclidean distances between places; `threshold(distance=matrix, radius=r)` uses a given
    matrix. The edges are the pairs that `ThresholdPrivacy` bounds. A distance that exceeds the radius only by rounding
    is an edge, too; see `distances.reach`. If the graph has several secrets but no edge, the function issues a
    `InputWarning`.

    Args:
        domain: A domain with places, or points of shape (n, d).
        radius: The exact radius, > 0, in the unit of the domain or of the distances.
        distance: Distances between the secrets instead of `domain`, (n, n); infinity means no edge.
        margin: The rounding error of `distance`, in addition to 1e-9 of the radius. For distances of a domain, the
            error is `distances.margin(domain)`.

    Returns:
        The policy graph.

    Raises:
        InputError: Both or neither of `domain` and `distance` are given, `domain` is a matrix of distances, or a number
            is missing or not positive.

    >>> street = [[0.0], [0.1], [0.2], [0.30000000000000004]]
    >>> threshold(street, 0.1).number_of_edges()
    3
    >>> from mechdesign.model.distances import euclidean
    >>> threshold(distance=euclidean(street), radius=0.1).number_of_edges()
    3
    """
    if radius is None:
        raise InputError("radius", "is missing", bound="> 0 and finite")
    if (domain is None) == (distance is None):
        problem = "is given together with distance" if domain is not None else "is missing"
        raise InputError("domain", problem, bound="either places as domain, or a matrix as distance")
    limit = exact(radius, "radius")
    if not 0 < nearest(limit) < math.inf:
        raise InputError("radius", "is out of range", value=radius, bound="> 0 and finite")
    if domain is not None:
        distances.refuse_distances(
            domain, "domain", f"give them as threshold(distance=matrix, radius={exact_text(limit)})"
        )
        pairs = distances.pairs_within(domain, limit)
        places = domain.points if isinstance(domain, Domain) else named(domain, "domain")
        distances.warn_of_radius(limit, float(np.hypot.reduce(np.ptp(places, axis=0))) if places.size else 0.0)
        graph = from_edges(domain.size if isinstance(domain, Domain) else len(places), pairs)
    else:
        try:
            lengths = distances.matrix(distance)  # type: ignore[arg-type]
        except InputError as error:
            raise rename_path(error, "distance", "distances") from error
        if lengths.shape[0] != lengths.shape[1]:
            raise InputError("distance", "is not square", value=lengths.shape, bound="of shape (n, n)")
        distances.warn_of_radius(limit, float(lengths[np.isfinite(lengths)].max(initial=0.0)))
        within = lengths <= distances.reach(limit, margin)
        np.fill_diagonal(within, False)
        graph = from_edges(len(lengths), np.argwhere(within))
    return _warn_if_empty(graph, f"no two secrets are within {exact_text(limit)} of each other")


def transitions(P: MarkovChain | ArrayLike | sparse.sparray) -> nx.Graph:
    """Return the graph that joins two states if one state can precede both (DPHMM, G_trs).

    States j and k are joined if m_ij > 0 and m_ik > 0 for some i. Then even an adversary who knows the previous state
    cannot distinguish the joined states.

    Args:
        P: A Markov chain, a matrix (n, n) with Pr(next = j | now = i) at (i, j), or a SciPy sparse matrix of
            probabilities or counts. Only the positions of the positive entries are used.

    Returns:
        The policy graph.

    >>> list(transitions([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).edges)
    [(0, 1)]
    """
    if sparse.issparse(P):
        steps = sparse.csr_array(P, dtype=np.float64)
        if steps.shape[0] != steps.shape[1] or steps.shape[0] == 0:
            raise InputError("P", "is not square", value=steps.shape, bound="of shape (n, n), n >= 1")
        if not (np.isfinite(steps.data) & (steps.data >= 0)).all():
            raise InputError("P", "has entries that are not probabilities", bound="finite numbers >= 0")
    else:
        chain = as_chain(P, "P")  # type: ignore[arg-type]
        steps = sparse.csr_array(chain.arranged((), "P").matrix)
    steps.eliminate_zeros()
    reached = sparse.csr_array((np.ones(steps.nnz), steps.indices, steps.indptr), shape=steps.shape)
    # Each entry counts the common predecessors of two states; the upper triangle contains each pair once.
    common = sparse.triu(reached.T @ reached, k=1).tocoo()
    graph = from_edges(int(steps.shape[0]), np.column_stack((common.row, common.col)))
    return _warn_if_empty(graph, "no state has transitions to two different states")


def attribute(values: Iterable[Sequence[Hashable]]) -> nx.Graph:
    """Return the graph that joins records if they differ in exactly one attribute (Blowfish, He et al. 2014).

    Args:
        values: One record for each secret, as an array (n, a) or a list of tuples. Secrets with equal records are not
            joined.

    Returns:
        The policy graph.

    >>> sorted(attribute([("a", 1), ("a", 2), ("b", 1)]).edges)
    [(0, 1), (0, 2)]
    """
    try:
        given = list(values)
    except TypeError as error:
        raise InputError(
            "values", "are not a list of records", value=type(values).__name__, bound="tuples of attributes"
        ) from error
    records = [tuple(as_labels(record, f"values[{index}]")) for index, record in enumerate(given)]
    if not records:
        raise InputError("values", "is empty", bound="at least one record")
    width = len(records[0])
    for index, record in enumerate(records):
        if len(record) != width:
            raise InputError(f"values[{index}]", "has another length", value=len(record), bound=f"{width} attributes")
    graph = _make_edgeless(len(records))
    for position in range(width):
        # Group the records that agree in all other attributes by their value of this attribute.
        groups: dict[Hashable, dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
        for index, record in enumerate(records):
            groups[record[:position] + record[position + 1 :]][record[position]].append(index)
        for group in groups.values():
            for one, other in itertools.combinations(group.values(), 2):
                graph.add_edges_from(itertools.product(one, other))
    return _warn_if_empty(graph, "no two records differ in exactly one attribute")


def union(*graphs: nx.Graph) -> nx.Graph:
    """Return the graph with all nodes and all edges of the given policy graphs.

    Args:
        *graphs: Policy graphs, at least one.

    Returns:
        The policy graph.

    >>> union(line(2), complete(3)).number_of_edges()
    3
    """
    if not graphs:
        raise InputError("graphs", "are none", bound="at least one graph")
    result = nx.Graph()
    for index, graph in enumerate(graphs):
        check_graph(graph, path=f"graphs[{index}]")
    result.add_nodes_from(sorted(set().union(*(graph.nodes for graph in graphs))))
    for graph in graphs:
        result.add_edges_from(graph.edges())
    return result


def from_edges(n: int, edges: ArrayLike) -> nx.Graph:
    """Return the graph on n secrets with the given edges.

    Args:
        n: The number of secrets, at least 1.
        edges: Pairs of indices below n, integers (k, 2); an edge may occur several times, in either direction.

    Returns:
        The policy graph.

    Raises:
        InputError: An index is out of range, or an edge is a self-loop.

    >>> list(from_edges(3, [[0, 2]]).edges)
    [(0, 2)]
    """
    n = as_integer(n, "n", 1)
    pairs = named(edges, "edges", dtype=object)
    if pairs.size == 0:
        return _make_edgeless(n)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        found = f"{pairs.dtype} of shape {pairs.shape}"
        raise InputError("edges", "are not pairs of indices", value=found, bound="integers of shape (k, 2)")
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(
            f"edges[{first}]", "joins an unknown node", value=tuple(pairs[first].tolist()), bound=f"nodes 0 to {n - 1}"
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        first = int(loops[0])
        raise InputError(f"edges[{first}]", "is a self-loop", value=tuple(pairs[first].tolist()), remedy="leave it out")
    graph = _make_edgeless(n)
    graph.add_edges_from(pairs.tolist())
    return graph


def as_grid(domain: Domain | Grid) -> Grid:
    """Return the cells of a grid; raise `InputError` for other domains."""
    cells = domain if isinstance(domain, Grid) else getattr(domain, "cells", None)
    if cells is None:
        found = domain if isinstance(domain, Domain) else type(domain).__name__
        raise InputError("domain", "is not a grid", value=found, remedy="build it with Domain.grid or geographic_grid")
    return cells


def _warn_if_empty(graph: nx.Graph, reason: str) -> nx.Graph:
    """Return the graph, with a warning if it has several secrets but no edge."""
    if graph.number_of_nodes() > 1 and graph.number_of_edges() == 0:
        warn(
            f"the policy graph of {graph.number_of_nodes()} secrets has no edge: {reason}. It protects nothing",
            InputWarning,
            stacklevel=3,
        )
    return graph


def _make_edgeless(n: int) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    return graph


def _join_equal(names: Sequence[Hashable]) -> nx.Graph:
    """Return the graph that joins nodes with equal names; nodes with the name None get no edge."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        if name is not None:
            groups[name].append(index)
    return _join_groups(len(names), groups.values())


def _join_groups(n: int, groups: Iterable[Iterable[int]]) -> nx.Graph:
    """Return the graph on n nodes that joins all members of each group."""
    graph = _make_edgeless(n)
    for group in groups:
        graph.add_edges_from(itertools.combinations(group, 2))
    return graph


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
    return np.setdiff1d(sort_nodes(graph), _support(graph, support))


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
    nodes = sort_nodes(graph)
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


def sort_nodes(graph: nx.Graph) -> Integers:
    """Return the nodes of a graph in ascending order, int64."""
    return np.array(sorted(graph), dtype=np.int64)


def as_node(graph: nx.Graph, node: int) -> int:
    """Return a node of the graph as an integer; raise `InputError` for other values."""
    number = as_integer(node, "node", 0)
    if number not in graph:
        raise InputError("node", "is not a node of the graph", value=number, bound=f"one of its {len(graph)} nodes")
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
