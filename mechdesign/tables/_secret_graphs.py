"""Secret graphs: their interface, explicit graphs, and graphs under which a record may be absent.

The nodes are the indices of a domain's values, 0 to |T| − 1, and possibly the *null node* |T|, which represents an
absent record. An edge is a discriminative pair of secrets (Blowfish, He et al. 2014, Definition 3.1). Graphs are stored
as rules, because a policy on several attributes has too many edges for a list. Most rules have closed forms for the
required quantities, such as the largest difference of weights over the edges. For rules without closed forms, the
quantities are computed from all edges, in blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mechdesign.base._arrays import Flags, Integers, read_only
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.tables._domain import Domain
from mechdesign.tables._known_counts import Constraint

LARGEST_EDGE_LIST = 4_000_000
"""The largest number of edges that `SecretGraph.edges` lists."""

BLOCK = 1 << 18
"""The approximate number of edges in a block."""

LARGEST_ARRAY = 1 << 26
"""The largest number of values for which an array with one entry per value is allocated; the array takes 0.5 GiB."""


Edge = tuple[int, int]


class Largest(NamedTuple):
    """The largest value of a quantity over the edges, and an edge that attains it; (0, None) without edges."""

    value: Any
    edge: Edge | None


class SecretGraph(ABC):
    """A policy graph on the values of a domain.

    Attributes:
        size: the number |T| of values; node `size` is the null node.
        kind: the rule, such as ``"full"``.
        has_null: whether edges lead to the null node.
        steps: θ if the edges between values are exactly the pairs whose indices differ by at most θ, else None. The
            complete graph has θ = |T| − 1.
        phrase: how one record may change along an edge, such as "from any value to any other".

    >>> from mechdesign.tables import Domain, Policy
    >>> graph = Policy.threshold(Domain({"age": range(4)}), 1).secret_graph
    >>> graph.edges().tolist(), graph.steps
    ([[0, 1], [1, 2], [2, 3]], 1)
    """

    size: int
    kind: str
    has_null: bool = False

    @property
    def steps(self) -> int | None:
        """Return θ if the edges are exactly the pairs of values whose indices differ by at most θ, else None."""
        return None

    @property
    @abstractmethod
    def phrase(self) -> str:
        """Return how one record may change along an edge."""

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """Return the number of edges."""

    @abstractmethod
    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them.

        Args:
            x: the indices of nodes.
            y: the indices of other nodes, an array that broadcasts with `x`.

        Returns:
            Booleans of the broadcast shape.
        """

    @abstractmethod
    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once, in arrays of shape (k, 2) with the smaller number first."""

    @property
    def node_count(self) -> int:
        """Return the number of nodes, including the null node if there is one."""
        return self.size + self.has_null

    def edges(self, limit: int = LARGEST_EDGE_LIST) -> Integers:
        """Return all edges, int64 of shape (edge_count, 2), the smaller number first.

        Args:
            limit: the largest number of edges to list.

        Returns:
            The edges.

        Raises:
            InputError: The graph has more than `limit` edges; `edge_blocks` yields them in blocks.
        """
        if self.edge_count > limit:
            raise InputError(
                "policy",
                "has too many edges to list",
                value=self.edge_count,
                bound=f"at most {limit} edges",
                remedy="use a smaller domain, or a query whose sensitivity has a closed form",
            )
        blocks = list(self.edge_blocks())
        return np.concatenate(blocks) if blocks else np.zeros((0, 2), dtype=np.int64)

    def components(self) -> Integers:
        """Return, for each node, the index of its connected component, int64 of shape (node_count,)."""
        n = self.node_count
        labels = np.arange(n)
        for block in self.edge_blocks():
            labels = merge_labels(labels, labels[block[:, 0]], labels[block[:, 1]])
        return labels

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges; the null node has weight 0.

        Args:
            weights: the weights, shape (|T|,).
            within: labels of the values, shape (|T|,). If given, only edges to the null node and between values with
                equal labels are considered.

        Returns:
            The largest difference, and an edge that attains it.
        """
        extended = np.append(weights, np.zeros(1, dtype=weights.dtype))
        return self._largest(lambda x, y: np.abs(extended[x] - extended[y]), _same(within, self.size))

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y| over the edges, for weights that depend on a single attribute.

        A graph with a closed form allocates no array with an entry for each value. The null node has weight 0.

        Args:
            shape: the number of values of each attribute; their product is |T|.
            axis: the index of the attribute.
            weights: the weight of each of the attribute's values, distinct integers of shape (shape[axis],).

        Returns:
            The largest difference, and an edge that attains it.

        Raises:
            InputError: The graph has no closed form, and an array with |T| entries would exceed the memory limit.
        """
        require_room(self.size, "the sum of an attribute under this policy")
        return self.spread(weights[np.arange(self.size) // math.prod(shape[axis + 1 :]) % shape[axis]])

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over edges whose ends have different labels `points`; the null node has r = 0.

        Args:
            radii: the nonnegative radius r of each value, shape (|T|,).
            points: nonnegative labels of the values, shape (|T|,); by default all labels are different.

        Returns:
            The largest sum, and an edge that attains it.
        """
        extended = np.append(radii, np.zeros(1, dtype=radii.dtype))
        labels = np.append(points, -1) if points is not None else np.arange(self.size + 1)
        return self._largest(lambda x, y: extended[x] + extended[y], lambda x, y: labels[x] != labels[y])

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None.

        Args:
            labels: labels of the values, shape (|T|,); by default all labels are different.

        Returns:
            The edge, or None.
        """
        for block in self.edge_blocks():
            x, y = block[block[:, 1] < self.size].T
            crosses = np.flatnonzero(labels[x] != labels[y]) if labels is not None else np.arange(len(x))
            if len(crosses):
                return int(x[crosses[0]]), int(y[crosses[0]])
        return None

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that occurs at the ends of an edge.

        Args:
            labels: labels of the values, shape (|T|,); the null node has a separate label.

        Returns:
            The edges, shape (k, 2).
        """
        extended = np.append(labels, labels.max() + 1)
        found = np.zeros((0, 2), dtype=np.int64)
        for block in self.edge_blocks():
            found = select_one_per_pair(np.concatenate((found, block)), extended)
        return found

    def _largest(self, quantity: Any, allowed: Any) -> Largest:
        best: Largest = Largest(0, None)
        for block in self.edge_blocks():
            x, y = block[:, 0], block[:, 1]
            if allowed is not None:
                good = allowed(x, y)
                x, y = x[good], y[good]
            if len(x):
                values = quantity(x, y)
                top = int(np.argmax(values))
                if best.edge is None or values[top] > best.value:
                    best = Largest(as_scalar(values[top]), (int(x[top]), int(y[top])))
        return best


@dataclass(frozen=True, eq=False)
class ExplicitGraph(SecretGraph):
    """A secret graph given by its edges.

    Attributes:
        size: the number |T| of values; node `size` is the null node.
        listed: the distinct edges, int64 of shape (m, 2), the smaller number first.
        kind: the rule, ``"graph"``.

    >>> ExplicitGraph(3, np.array([[0, 1], [1, 2]])).has_edge(0, [1, 2]).tolist()
    [True, False]
    """

    size: int
    listed: Integers
    kind: str = "graph"

    @property
    def has_null(self) -> bool:  # type: ignore[override]
        """Return whether an edge leads to the null node."""
        return bool((self.listed[:, 1] == self.size).any())

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        absent = int((self.listed[:, 1] == self.size).sum())
        between = len(self.listed) - absent
        count = f"{between} edge{'s' * (between != 1)}"
        change = f"from one value to another that the given graph joins to it ({count})"
        if not absent:
            return change
        if absent == self.size:
            presence = "from any value to being absent, or back"
        else:
            some = f"one of {absent} given values" if absent > 1 else "one given value"
            presence = f"from {some} to being absent, or back"
        return f"{change}, or {presence}" if between else presence

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return len(self.listed)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y| over the edges, for weights that depend on a single attribute."""
        if not len(self.listed):
            return Largest(0, None)
        ends = weights[self.listed // math.prod(shape[axis + 1 :]) % shape[axis]]
        ends = np.where(self.listed == self.size, 0, ends)
        changes = np.abs(ends[:, 0] - ends[:, 1])
        top = int(np.argmax(changes))
        return Largest(as_scalar(changes[top]), (int(self.listed[top, 0]), int(self.listed[top, 1])))

    @cached_property
    def _codes(self) -> Integers:
        return np.sort(self.listed[:, 0] * (self.size + 1) + self.listed[:, 1])

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.asarray(x, dtype=np.int64), np.asarray(y, dtype=np.int64)
        codes = np.minimum(first, second) * (self.size + 1) + np.maximum(first, second)
        return np.isin(codes, self._codes)

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for start in range(0, len(self.listed), BLOCK):
            yield self.listed[start : start + BLOCK]

    def components(self) -> Integers:
        """Return the index of each node's connected component."""
        return merge_labels(np.arange(self.node_count), self.listed[:, 0], self.listed[:, 1])


@dataclass(frozen=True, eq=False)
class UnboundedGraph(SecretGraph):
    """A graph whose values are all joined to the null node as well: any record may be added or removed.

    Attributes:
        inner: the graph between values.

    >>> UnboundedGraph(ExplicitGraph(2, np.array([[0, 1]]))).edges().tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    inner: SecretGraph
    has_null: bool = True

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return self.inner.size

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Return the rule of the graph between values."""
        return self.inner.kind

    @property
    def steps(self) -> int | None:
        """Return θ if the edges between values are exactly the pairs whose indices differ by at most θ, else None."""
        return self.inner.steps

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        presence = "from any value to being absent, or back"
        return f"{self.inner.phrase}, or {presence}" if self.inner.crossing() is not None else presence

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self.inner.edge_count + self.size

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        presence = (np.asarray(x) == self.size) ^ (np.asarray(y) == self.size)
        return np.asarray(self.inner.has_edge(x, y) | presence)

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        yield from self.inner.edge_blocks()
        for start in range(0, self.size, BLOCK):
            x = np.arange(start, min(start + BLOCK, self.size))
            yield np.column_stack((x, np.full(len(x), self.size)))

    def components(self) -> Integers:
        """Return one component, which contains all nodes."""
        return np.zeros(self.size + 1, dtype=np.int64)

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges; the null node has weight 0."""
        return find_largest((self.inner.spread(weights, within), self._farthest(weights)))

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y| over the edges, for weights that depend on a single attribute."""
        top = int(np.argmax(np.abs(weights)))
        presence = Largest(abs(as_scalar(weights[top])), (top * math.prod(shape[axis + 1 :]), self.size))
        return find_largest((self.inner.spread_along(shape, axis, weights), presence))

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges whose ends have different points."""
        return find_largest((self.inner.largest_sum(radii, points), self._farthest(radii)))

    def _farthest(self, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x|, which an edge to the null node attains."""
        top = int(np.argmax(np.abs(weights)))
        return Largest(abs(as_scalar(weights[top])), (top, self.size))

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        return self.inner.crossing(labels)

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that occurs at the ends of an edge."""
        first = np.unique(labels, return_index=True)[1]
        return np.concatenate((self.inner.joined(labels), np.column_stack((first, np.full(len(first), self.size)))))


def require_room(size: int, what: str) -> None:
    """Raise `InputError` if an array with an entry for each of `size` values would exceed the memory limit.

    Args:
        size: the number |T| of values.
        what: the feature that needs the array, for the error message.
    """
    if size > LARGEST_ARRAY:
        raise InputError(
            "domain",
            f"has too many values for {what}",
            value=size,
            bound=f"at most {LARGEST_ARRAY:,}",
            remedy="leave out attributes that are not needed, or group values",
        )


def along(shape: tuple[int, ...], axis: int, found: Largest) -> Largest:
    """Convert an edge of one attribute to an edge of the domain, at the first values of all other attributes."""
    stride = math.prod(shape[axis + 1 :])
    return found if found.edge is None else Largest(found.value, (found.edge[0] * stride, found.edge[1] * stride))


def find_largest(candidates: Any) -> Largest:
    """Return the largest of several candidates; candidates without an edge are ignored."""
    best = Largest(0, None)
    for candidate in candidates:
        if candidate.edge is not None and (best.edge is None or candidate.value > best.value):
            best = candidate
    return best


def as_scalar(value: Any) -> Any:
    """Return a NumPy scalar as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def select_one_per_pair(edges: Integers, labels: Integers) -> Integers:
    """Return one edge for each unordered pair of labels that occurs at the ends of an edge."""
    first, second = labels[edges[:, 0]], labels[edges[:, 1]]
    codes = np.minimum(first, second) * (int(labels.max()) + 1) + np.maximum(first, second)
    return edges[np.unique(codes, return_index=True)[1]]


def merge_labels(labels: Integers, x: Integers, y: Integers) -> Integers:
    """Merge each label x[i] with the label y[i], and return the merged labels, renumbered from 0."""
    count = int(labels.max()) + 1
    links = sparse.coo_matrix((np.ones(len(x), dtype=np.int8), (x, y)), shape=(count, count))
    _, renumbered = connected_components(links, directed=False)
    return read_only(renumbered.astype(np.int64)[labels])


def _same(within: Integers | None, size: int) -> Any:
    if within is None:
        return None
    labels = np.append(within, -1)
    return lambda x, y: (labels[x] == labels[y]) | (y == size)


@dataclass(frozen=True, eq=False)
class BasePolicy:
    """A policy P = (domain, secret graph, constraints); `Policy` builds policies.

    Attributes:
        domain: the domain of the records.
        secret_graph: the graph whose edges join values that must stay indistinguishable.
        constraints: the publicly known counts.
        unbounded: whether a record may be added or removed.

    >>> from mechdesign.tables import Domain
    >>> BasePolicy(Domain({"x": range(2)}), ExplicitGraph(2, np.array([[0, 1]]))).unbounded
    False
    """

    domain: Domain
    secret_graph: SecretGraph
    constraints: tuple[Constraint, ...] = ()
    unbounded: bool = False
