"""The span of a policy's edges: what the policy protects, in coordinates in which every edge is a 0/1 vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from mechdesign.base._values import cached_property
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["EdgeSpace", "edge_space"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class EdgeSpace:
    """A spanning forest of a graph on values 0 … size − 1, with the null node numbered `size`.

    A query row a acts on edges only, through its differences α along the d edges of the forest: an edge (x, y) moves
    the answer by a_x − a_y = (c_x − c_y)·α, with c_x the 0/1 indicator of the path from the root to x. In the other
    direction a histogram h is given by the counts v = Cᵀh below each edge of the forest and by the totals of the
    components, and a·h = α·v where a vanishes at the roots. What lies outside the span of the edges are those totals:
    no pair of secrets changes them.

    Attributes:
        size: the number |T| of values.
        edges: the pairs of values of every edge, int64 of shape (m, 2); the null node is `size`.
        paths: C, 0/1 of shape (size + 1, d), float64.
        children: the lower end of each edge of the forest, int64 of shape (d,).
        parents: its upper end, int64 of shape (d,).
        component: the number of each value's component, int64 of shape (size,).
        free: the components whose totals no edge changes, int64 (those without the null node).
    """

    size: int
    edges: Integers
    paths: Floats
    children: Integers
    parents: Integers
    component: Integers
    free: Integers

    @property
    def rank(self) -> int:
        """Return d, the dimension of the span of the edges."""
        return len(self.children)

    @cached_property
    def in_forest(self) -> Flags:
        """Say which edges belong to the forest, shape (m,)."""
        known = np.minimum(self.children, self.parents) * (self.size + 1) + np.maximum(self.children, self.parents)
        return np.isin(self.edges.min(axis=1) * (self.size + 1) + self.edges.max(axis=1), known)

    @cached_property
    def totals(self) -> Floats:
        """Return the queries outside the span, one 0/1 row per component whose total no edge changes."""
        totals: Floats = (self.component[None, :] == self.free[:, None]).astype(float)
        return totals

    def differences(self, rows: Floats) -> Floats:
        """Return the rows' differences along the forest, shape (k, d)."""
        padded = np.concatenate([rows, np.zeros((len(rows), 1))], axis=1)
        result: Floats = padded[:, self.children] - padded[:, self.parents]
        return result

    def congruence(self, matrix: Floats) -> Floats:
        """Return TᵀMT for a symmetric M on values, with T the differences along the forest."""
        return self.differences(self.differences(matrix).T)

    def histogram(self, below: Floats) -> Floats:
        """Return T·v for columns v of counts below the edges of the forest: shape (size, …)."""
        result = np.zeros((self.size + 1, *below.shape[1:]))
        np.add.at(result, self.children, below)
        np.subtract.at(result, self.parents, below)
        return result[: self.size]

    def centred(self, rows: Floats) -> Floats:
        """Return the rows' orthogonal projections on the span of the edges."""
        sums = rows @ self.totals.T
        result: Floats = rows - (sums / self.totals.sum(axis=1)) @ self.totals
        return result

    def laplacian(self, weights: Floats) -> Floats:
        """Return Σ w_e (e_x − e_y)(e_x − e_y)ᵀ over the edges, shape (size + 1, size + 1)."""
        nodes = self.size + 1
        first, second = self.edges.T
        pairs = coo_array((weights, (first, second)), shape=(nodes, nodes)).toarray()
        pairs += pairs.T
        return np.diag(pairs.sum(axis=0)) - pairs


def edge_space(size: int, edges: Integers) -> EdgeSpace:
    """Return the span of the edges of a graph on values 0 … size − 1, the null node being `size`.

    The forest is the shortest one for the values' numbers, a chain wherever neighbouring numbers are joined.

    Args:
        size: the number of values.
        edges: pairs of distinct nodes, of shape (m, 2), each pair once.
    """
    nodes = size + 1
    first, second = edges.T
    # A zero would be no edge at all; an edge to the null node is shorter than any other.
    lengths = np.where(np.maximum(first, second) == size, 0.5, np.abs(first - second).astype(float))
    # Spanning trees of SciPy before 1.17 take indices of 32 bits only.
    places = (first.astype(np.int32), second.astype(np.int32))
    graph = coo_array((lengths, places), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    _, labels = connected_components(tree, directed=False)
    roots = {int(labels[size]): size}
    for value in range(size):
        roots.setdefault(int(labels[value]), value)
    order: list[int] = []
    parent = np.full(nodes, -1, dtype=np.int64)
    for root in roots.values():
        reached, before = breadth_first_order(tree, root, directed=False)
        order.extend(int(node) for node in reached[1:])
        parent[reached[1:]] = before[reached[1:]]
    children = np.array(sorted(order), dtype=np.int64)
    column = np.full(nodes, -1, dtype=np.int64)
    column[children] = np.arange(len(children))
    paths = np.zeros((nodes, len(children)))
    for node in order:
        paths[node] = paths[parent[node]]
        paths[node, column[node]] = 1.0
    component = labels[:size].astype(np.int64)
    free = np.array(sorted(set(component.tolist()) - {int(labels[size])}), dtype=np.int64)
    return EdgeSpace(size, edges, paths, children, parent[children], component, free)
