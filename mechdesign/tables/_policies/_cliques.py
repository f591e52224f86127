"""Secret graphs that consist of cliques: complete graphs, attribute graphs and partition graphs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Flags, Integers, as_labels, read_only
from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._graphs import (
    BLOCK,
    Edge,
    Largest,
    SecretGraph,
    along,
    as_scalar,
    find_largest,
    merge_labels,
    select_one_per_pair,
)


class CliqueGraph(SecretGraph):
    """A graph that joins two values if a grouping puts both into one group; at most one grouping does so."""

    @abstractmethod
    def groupings(self) -> Iterator[Integers]:
        """Yield, for each grouping, an array with the index of the group of each value, int64 of shape (|T|,)."""

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges."""
        total = 0
        for groups in self.groupings():
            sizes = np.unique(groups, return_counts=True)[1]
            total += sum(size * (size - 1) // 2 * times for size, times in _tally(sizes))
        return total

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        values = (first != second) & (first < self.size) & (second < self.size)
        a, b = np.where(values, first, 0), np.where(values, second, 0)
        same = np.zeros(a.shape, dtype=bool)
        for groups in self.groupings():
            same |= groups[a] == groups[b]
        return np.asarray(same & values)

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for groups in self.groupings():
            order = np.argsort(groups, kind="stable")
            ordered = groups[order]
            # The group of the i-th value in this order ends before position last[i].
            last = np.searchsorted(ordered, ordered, side="right")
            yield from _pairs(order, last)

    def components(self) -> Integers:
        """Return the index of each value's connected component."""
        labels = np.arange(self.size)
        for groups in self.groupings():
            first, inverse = np.unique(groups, return_index=True, return_inverse=True)[1:]
            labels = merge_labels(labels, labels, labels[first[inverse]])
        return labels

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges, which is the largest range of weights in a group."""
        return find_largest(_widest(weights, _refine(groups, within)) for groups in self.groupings())

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        widest = self.spread(np.arange(self.size) if labels is None else labels)
        return widest.edge if widest.value else None

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges whose ends have different points."""
        points = np.arange(self.size) if points is None else points
        return find_largest(_top_two(radii, groups, points) for groups in self.groupings())

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that occurs at the ends of an edge."""
        found = [np.zeros((0, 2), dtype=np.int64)]
        extended = np.append(labels, labels.max() + 1)
        for groups in self.groupings():
            refined = _refine(groups, labels)
            order = np.argsort(refined, kind="stable")
            starts = np.flatnonzero(np.append(True, np.diff(refined[order]) != 0))
            # If a label occurs often in a group, two of its values represent all others with this label.
            kept = np.union1d(order[starts], order[np.minimum(starts + 1, len(order) - 1)])
            by_group = kept[np.argsort(groups[kept], kind="stable")]
            last = np.searchsorted(groups[by_group], groups[by_group], side="right")
            for block in _pairs(by_group, last):
                found = [select_one_per_pair(np.concatenate((*found, block)), extended)]
        return found[0]


@dataclass(frozen=True, eq=False)
class CompleteGraph(CliqueGraph):
    """The complete graph, which joins every two values."""

    size: int
    kind: str = "full"

    @property
    def steps(self) -> int | None:
        """Return |T| − 1, or None for a single value."""
        return self.size - 1 if self.size > 1 else None

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        return "from any value to any other"

    def groupings(self) -> Iterator[Integers]:
        """Yield one group that contains all values."""
        yield np.zeros(self.size, dtype=np.int64)

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self.size * (self.size - 1) // 2

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.asarray(x), np.asarray(y)
        return np.asarray((first != second) & (first < self.size) & (second < self.size))

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges."""
        if within is not None or self.size < 2:
            return super().spread(weights, within)
        low, high = int(np.argmin(weights)), int(np.argmax(weights))
        edge = (min(low, high), max(low, high)) if low != high else (0, 1)
        return Largest(as_scalar(weights[high] - weights[low]), edge)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the difference of the largest and the least weight."""
        return _whole_width(self, shape, axis, weights)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        if labels is not None:
            return super().crossing(labels)
        return (0, 1) if self.size > 1 else None


@dataclass(frozen=True, eq=False)
class AttributeGraph(CliqueGraph):
    """A graph that joins values that differ in exactly one attribute."""

    shape: tuple[int, ...]
    kind: str = "attribute"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return math.prod(self.shape)

    @property
    def steps(self) -> int | None:
        """Return |T| − 1 for a single attribute, because the graph is then complete; otherwise None."""
        return self.size - 1 if len(self.shape) == 1 and self.size > 1 else None

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        return "from one value to another that differs from it in exactly one attribute"

    def groupings(self) -> Iterator[Integers]:
        """Yield one grouping per attribute; the values in a group differ only in this attribute."""
        stride = self.size
        for length in self.shape:
            stride //= length
            numbers = np.arange(self.size)
            yield numbers // (stride * length) * stride + numbers % stride

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the difference of the largest and the least weight."""
        return _whole_width(self, shape, axis, weights)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        if labels is not None:
            return super().crossing(labels)
        stride = self.size
        for length in self.shape:
            stride //= length
            if length > 1:
                return 0, stride
        return None

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return sum(self.size * (length - 1) // 2 for length in self.shape)


@dataclass(frozen=True, eq=False)
class PartitionGraph(CliqueGraph):
    """A graph that joins values in the same block of a partition."""

    labels: Integers
    kind: str = "partition"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return len(self.labels)

    @cached_property
    def block_count(self) -> int:
        """Return the number of blocks."""
        return len(np.unique(self.labels))

    @property
    def steps(self) -> int | None:
        """Return |T| − 1 for a single block, because the graph is then complete; otherwise None."""
        return self.size - 1 if self.block_count == 1 and self.size > 1 else None

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        return f"from one value to another in the same block of a partition into {self.block_count}"

    def groupings(self) -> Iterator[Integers]:
        """Yield the only grouping, which is the partition into blocks."""
        yield self.labels


def block_numbers(domain: Domain, labels: ArrayLike, path: str = "labels") -> Integers:
    """Return the index of each value's block, int64 of shape (|T|,), from the label of its block."""
    numbers = label_numbers(labels, path)
    if len(numbers) != domain.size:
        raise InputError(
            path, "have the wrong length", value=len(numbers), bound=f"one for each of {domain.size} values"
        )
    return numbers


def label_numbers(labels: ArrayLike, path: str) -> Integers:
    """Return an integer for each label, int64 of shape (n,); equal labels have equal integers."""
    require_unmasked(labels, path)
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuU" and labels.ndim == 1 and labels.size:
        numbers = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    else:
        first: dict[object, int] = {}
        found = as_labels(labels, path)  # type: ignore[arg-type]
        numbers = np.array([first.setdefault(label, len(first)) for label in found], dtype=np.int64)
    return read_only(numbers)


def _tally(sizes: Integers) -> Iterator[tuple[int, int]]:
    values, times = np.unique(sizes, return_counts=True)
    yield from zip(values.tolist(), times.tolist(), strict=True)


def _pairs(order: Integers, last: Integers) -> Iterator[Integers]:
    """Yield the pairs order[i], order[j] with i < j < last[i]."""
    pending: list[Integers] = []
    held = 0
    positions = np.arange(len(order))
    offset = 1
    while len(positions := positions[positions + offset < last[positions]]):
        pairs = np.column_stack((order[positions], order[positions + offset]))
        pending.append(np.sort(pairs, axis=1))
        held += len(pairs)
        if held >= BLOCK:
            yield from np.array_split(np.concatenate(pending), -(-held // (4 * BLOCK)))
            pending, held = [], 0
        offset += 1
    if pending:
        yield np.concatenate(pending)


def _refine(groups: Integers, labels: Integers | None) -> Integers:
    """Return the common refinement of the partition into `groups` and, if labels are given, the partition by label."""
    if labels is None:
        return groups
    first = np.unique(groups, return_inverse=True)[1]
    second = np.unique(labels, return_inverse=True)[1]
    return np.asarray(first * (int(second.max()) + 1) + second)


def _whole_width(graph: SecretGraph, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
    """Return the largest change of the weight of one attribute, if edges join all its values to each other."""
    if len(weights) < 2:
        return Largest(0, graph.crossing())
    return along(shape, axis, CompleteGraph(len(weights)).spread(weights))


def _widest(weights: NDArray[Any], groups: Integers) -> Largest:
    order = np.lexsort((weights, groups))
    ordered = groups[order]
    starts = np.flatnonzero(np.append(True, np.diff(ordered) != 0))
    ends = np.append(starts[1:], len(order)) - 1
    widths = weights[order[ends]] - weights[order[starts]]
    # A group with one value has no edge.
    real = ends > starts
    if not real.any():
        return Largest(0, None)
    top = int(np.flatnonzero(real)[np.argmax(widths[real])])
    ends_of_edge = sorted((int(order[starts[top]]), int(order[ends[top]])))
    return Largest(as_scalar(widths[top]), (ends_of_edge[0], ends_of_edge[1]))


def _top_two(radii: NDArray[Any], groups: Integers, points: Integers) -> Largest:
    order = np.lexsort((radii, groups))[::-1]
    dense = np.unique(groups[order], return_inverse=True)[1]
    first = order[np.unique(dense, return_index=True)[1]]
    # The largest sum of a group adds the largest radius r to the largest radius at a different point than that of r.
    other = points[order] != points[first[dense]]
    rest, leaders = order[other], first[dense[other]]
    if not len(rest):
        return Largest(0, None)
    sums = radii[rest] + radii[leaders]
    top = int(np.argmax(sums))
    ends = sorted((int(rest[top]), int(leaders[top])))
    return Largest(as_scalar(sums[top]), (ends[0], ends[1]))
