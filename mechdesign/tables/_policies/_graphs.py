"""Secret graphs: interface, explicit, null, union.

The nodes are the numbers of a domain's values, 0 to |T| − 1, and perhaps the *null node* |T|, which stands for "this
person is not in the table". An edge is a discriminative pair of secrets (Blowfish, He et al. 2014, Definition 3.1).
Graphs are kept by their rule: those of a policy on several attributes have far too many edges to be listed. What is
needed of them, largest differences over the edges above all, has a closed form for each rule, and a plain walk over the
edges in blocks as the general method.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mechdesign.base._arrays import Flags, Integers, read_only
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._known_counts import Constraint

LARGEST_EDGE_LIST = 4_000_000
"""Number of edges up to which `SecretGraph.edges` lists them."""

BLOCK = 1 << 18
"""About how many edges a block holds."""

LARGEST_ARRAY = 1 << 26
"""Number of values up to which an array with an entry for each of them is made: half a GiB."""


Edge = tuple[int, int]


class Largest(NamedTuple):
    """The largest value of some quantity over the edges, 0 without any, and an edge that attains it."""

    value: Any
    edge: Edge | None


class SecretGraph(ABC):
    """A policy graph on the values of a domain.

    Attributes:
        size: number |T| of values; node `size` is the null node.
        kind: the rule, such as ``"full"``.
        has_null: whether edges lead to the null node.
        steps: θ if the values are ordered and exactly those at most θ numbers apart are joined, so that the graph looks
            the same from every value (|T| − 1: the complete graph; 1: the line), else None.
        phrase: how one record may change along an edge, such as "from any value to any other".
    """

    size: int
    kind: str
    has_null: bool = False

    @property
    def steps(self) -> int | None:
        """Return θ for a graph that joins exactly the values at most θ numbers apart, else None."""
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
        """Say for each two nodes, arrays of numbers that broadcast, whether an edge joins them."""

    @abstractmethod
    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once, in arrays of shape (k, 2) with the smaller number first."""

    @property
    def node_count(self) -> int:
        """Return the number of nodes, the null node included where there is one."""
        return self.size + self.has_null

    def edges(self, limit: int = LARGEST_EDGE_LIST) -> Integers:
        """Return all edges, int64 of shape (edge_count, 2), the smaller number first.

        Raises:
            InputError: more than `limit` edges; `edge_blocks` yields them a block at a time.
        """
        if self.edge_count > limit:
            raise InputError(
                "policy",
                "has too many edges to be listed",
                value=self.edge_count,
                bound=f"at most {limit} edges",
                remedy="use a smaller domain, or a query whose sensitivity has a closed form",
            )
        blocks = list(self.edge_blocks())
        return np.concatenate(blocks) if blocks else np.zeros((0, 2), dtype=np.int64)

    def components(self) -> Integers:
        """Return the number of the connected component of each node, int64 of shape (node_count,)."""
        n = self.node_count
        labels = np.arange(n)
        for block in self.edge_blocks():
            labels = merge_labels(labels, labels[block[:, 0]], labels[block[:, 1]])
        return labels

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges; the null node weighs 0.

        Args:
            weights: shape (|T|,).
            within: labels of the values, shape (|T|,); only edges within one label then count, and those to the null
                node.
        """
        extended = np.append(weights, np.zeros(1, dtype=weights.dtype))
        return self._largest(lambda x, y: np.abs(extended[x] - extended[y]), _same(within, self.size))

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y| over the edges, for weights that depend on a single attribute.

        Rules for which this has a closed form make no array of all values. The null node weighs 0.

        Args:
            shape: the number of values of each attribute; their product is |T|.
            axis: the number of the attribute.
            weights: the weight of each of its values, distinct integers of shape (shape[axis],).

        Raises:
            InputError: the rule has no closed form, and an array of |T| entries would fill the memory.
        """
        require_room(self.size, "the sum of an attribute under this policy")
        return self.spread(weights[np.arange(self.size) // math.prod(shape[axis + 1 :]) % shape[axis]])

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges whose ends have different `points`; the null node has r = 0.

        Args:
            radii: what each value adds, not negative, shape (|T|,).
            points: labels of the values, not negative, shape (|T|,); all different unless given.
        """
        extended = np.append(radii, np.zeros(1, dtype=radii.dtype))
        labels = np.append(points, -1) if points is not None else np.arange(self.size + 1)
        return self._largest(lambda x, y: extended[x] + extended[y], lambda x, y: labels[x] != labels[y])

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels (any two values unless given), or None."""
        for block in self.edge_blocks():
            x, y = block[block[:, 1] < self.size].T
            crosses = np.flatnonzero(labels[x] != labels[y]) if labels is not None else np.arange(len(x))
            if len(crosses):
                return int(x[crosses[0]]), int(y[crosses[0]])
        return None

    def joined(self, labels: Integers) -> Integers:
        """Return which labels are joined: one edge (x, y) for each unordered pair of labels, shape (k, 2).

        The null node has a label of its own.
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
    """A graph given by its edges, int64 of shape (m, 2), distinct, the smaller number first; |T| is the null node."""

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
        """Return for each pair of nodes whether an edge joins them."""
        first, second = np.asarray(x, dtype=np.int64), np.asarray(y, dtype=np.int64)
        codes = np.minimum(first, second) * (self.size + 1) + np.maximum(first, second)
        return np.isin(codes, self._codes)

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for start in range(0, len(self.listed), BLOCK):
            yield self.listed[start : start + BLOCK]

    def components(self) -> Integers:
        """Return the number of each node's connected component."""
        return merge_labels(np.arange(self.node_count), self.listed[:, 0], self.listed[:, 1])


@dataclass(frozen=True, eq=False)
class NullGraph(SecretGraph):
    """An edge from the null node to every value: any person may be added or removed."""

    size: int
    kind: str = "null"
    has_null: bool = True

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        return "from any value to being absent, or back"

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self.size

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return for each pair of nodes whether an edge joins them."""
        return np.asarray((np.asarray(x) == self.size) ^ (np.asarray(y) == self.size))

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for start in range(0, self.size, BLOCK):
            x = np.arange(start, min(start + BLOCK, self.size))
            yield np.column_stack((x, np.full(len(x), self.size)))

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x|."""
        top = int(np.argmax(np.abs(weights)))
        return Largest(abs(as_scalar(weights[top])), (top * math.prod(shape[axis + 1 :]), self.size))

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return None: no edge joins two values."""
        return None

    def components(self) -> Integers:
        """Return one component for all."""
        return np.zeros(self.size + 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class UnionGraph(SecretGraph):
    """The edges of several graphs on the same values."""

    parts: tuple[SecretGraph, ...]
    kind: str = "union"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return self.parts[0].size

    @property
    def has_null(self) -> bool:  # type: ignore[override]
        """Return whether an edge leads to the null node."""
        return any(part.has_null for part in self.parts)

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        # A given graph without edges changes nothing.
        real = [part for part in self.parts if not isinstance(part, ExplicitGraph) or len(part.listed)]
        return ", or ".join(part.phrase for part in real or self.parts)

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges, each counted once."""
        if all(part.kind == "null" or not part.has_null for part in self.parts) and self._without_null() == 1:
            return sum(part.edge_count for part in self.parts)
        return sum(map(len, self.edge_blocks()))

    def _without_null(self) -> int:
        return sum(part.kind != "null" for part in self.parts)

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return for each pair of nodes whether an edge joins them."""
        return np.asarray(np.logical_or.reduce([part.has_edge(x, y) for part in self.parts]))

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for index, part in enumerate(self.parts):
            for block in part.edge_blocks():
                for earlier in self.parts[:index]:
                    block = block[~earlier.has_edge(block[:, 0], block[:, 1])]
                if len(block):
                    yield block

    def components(self) -> Integers:
        """Return the number of each node's connected component."""
        n = self.node_count
        labels = np.arange(n)
        for part in self.parts:
            own = part.components()
            # The first node of a component stands for it.
            _, first = np.unique(own, return_index=True)
            own = np.unique(own, return_inverse=True)[1]
            labels = merge_labels(labels, labels[: len(own)], labels[first[own]])
        return labels

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges of any part."""
        return find_largest(part.spread(weights, within) for part in self.parts)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y| over the edges of any part."""
        return find_largest(part.spread_along(shape, axis, weights) for part in self.parts)

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges of any part."""
        return find_largest(part.largest_sum(radii, points) for part in self.parts)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge of any part between two values with different labels, or None."""
        return next((edge for part in self.parts if (edge := part.crossing(labels)) is not None), None)

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that an edge joins."""
        found = np.concatenate([part.joined(labels) for part in self.parts])
        return select_one_per_pair(found, np.append(labels, labels.max() + 1))


def require_room(size: int, what: str) -> None:
    """Raise `InputError` where an array with an entry for each of `size` values would fill the memory.

    Args:
        size: the number |T| of values.
        what: what needs the array, in words.
    """
    if size > LARGEST_ARRAY:
        raise InputError(
            "domain",
            f"has too many values for {what}",
            value=size,
            bound=f"at most {LARGEST_ARRAY:,}",
            remedy="leave out attributes that it does not need, or group values",
        )


def along(shape: tuple[int, ...], axis: int, found: Largest) -> Largest:
    """Return what was found for a single attribute as an edge of the domain: the others keep their first values."""
    stride = math.prod(shape[axis + 1 :])
    return found if found.edge is None else Largest(found.value, (found.edge[0] * stride, found.edge[1] * stride))


def find_largest(candidates: Any) -> Largest:
    """Return the largest of several values over edges."""
    best = Largest(0, None)
    for candidate in candidates:
        if candidate.edge is not None and (best.edge is None or candidate.value > best.value):
            best = candidate
    return best


def as_scalar(value: Any) -> Any:
    """Return a NumPy number as a plain one."""
    return value.item() if isinstance(value, np.generic) else value


def select_one_per_pair(edges: Integers, labels: Integers) -> Integers:
    """Return one of the edges for each unordered pair of labels of their ends."""
    first, second = labels[edges[:, 0]], labels[edges[:, 1]]
    codes = np.minimum(first, second) * (int(labels.max()) + 1) + np.maximum(first, second)
    return edges[np.unique(codes, return_index=True)[1]]


def merge_labels(labels: Integers, x: Integers, y: Integers) -> Integers:
    """Return labels in which the labels x[i] and y[i] have become one, renumbered from 0."""
    count = int(labels.max()) + 1
    links = sparse.coo_matrix((np.ones(len(x), dtype=np.int8), (x, y)), shape=(count, count))
    _, renumbered = connected_components(links, directed=False)
    return read_only(renumbered.astype(np.int64)[labels])


def _same(within: Integers | None, size: int) -> Any:
    if within is None:
        return None
    labels = np.append(within, -1)
    return lambda x, y: (labels[x] == labels[y]) | (y == size)


class PolicyLike(Protocol):
    """A policy (T, G, Q): the domain, the graph of values that must not be told apart, and counts that are known."""

    @property
    def domain(self) -> Domain:
        """Return the values that a record may have."""

    @property
    def secret_graph(self) -> SecretGraph:
        """Return the graph on their numbers."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the count queries whose answers are public."""


def require_policy(policy: object) -> None:
    """Raise `InputError` for what has no domain, secret graph and known counts, which every policy has."""
    if isinstance(policy, type) or not all(hasattr(policy, name) for name in ("domain", "secret_graph", "constraints")):
        raise InputError("policy", "is of another kind", value=type(policy).__name__, bound="a blowfish.Policy")
