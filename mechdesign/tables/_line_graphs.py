"""Secret graphs whose edges run along lines of values: complete, partition, attribute and threshold graphs.

A threshold graph bounds the sum of the differences of several attributes.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Flags, Integers, as_labels, read_only
from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.tables._domain import Domain
from mechdesign.tables._secret_graphs import (
    BLOCK,
    Edge,
    Largest,
    SecretGraph,
    along,
    as_scalar,
    find_largest,
    select_one_per_pair,
)
from mechdesign.tables._values import in_order_of_values


class Line(NamedTuple):
    """Values in a sequence, each of which is joined to the values after it up to a certain place.

    Attributes:
        order: the values, each once.
        reach: for each place i the last place that it is joined to, not decreasing, with i <= reach[i].
    """

    order: Integers
    reach: Integers

    def within(self, labels: Integers) -> Line:
        """Return the line without the edges between values with different labels."""
        numbers = np.unique(labels[self.order], return_inverse=True)[1].ravel()
        places = np.argsort(numbers, kind="stable")
        rows = numbers[places] * len(places)
        reach = np.searchsorted(rows + places, rows + self.reach[places], side="right") - 1
        return Line(self.order[places], reach)

    def sorted_by(self, labels: Integers) -> Line:
        """Return the same edges, where values that are joined to the same values are sorted by their labels."""
        first = np.searchsorted(self.reach, np.arange(len(self.reach)))
        places = np.lexsort((labels[self.order], self.reach, first))
        return Line(self.order[places], self.reach)

    def edge(self, found: Largest) -> Largest:
        """Return a result whose edge joins two places with the edge between the values at these places."""
        if found.edge is None:
            return found
        low, high = sorted(self.order[list(found.edge)].tolist())
        return Largest(found.value, (low, high))


class LinesGraph(SecretGraph):
    """A graph that joins two values if a line joins them; at most one line does so."""

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """Yield the lines."""

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        for order, reach in self.lines():
            ascending = bool((order[1:] > order[:-1]).all())
            for i, j in _pairs(reach):
                edges = np.column_stack((order[i], order[j]))
                yield edges if ascending else np.sort(edges, axis=1)

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges."""
        found = []
        for line in self.lines():
            kept = line if within is None else line.within(within)
            placed = weights[kept.order]
            found += [kept.edge(_highest_sum(-each, each, kept.reach)) for each in (placed, -placed)]
        return find_largest(found)

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges whose ends have different points."""
        found = []
        for line in self.lines():
            placed = radii[line.order]
            best = _highest_sum(placed, placed, line.reach)
            if points is not None and best.edge is not None:
                own = points[line.order]
                if own[best.edge[0]] == own[best.edge[1]]:
                    best = _highest_sum_apart(placed, own, line.reach)
            found.append(line.edge(best))
        return find_largest(found)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None.

        Only edges between successive places are searched: if any edge joins different labels, one of them does so.
        """
        for order, reach in self.lines():
            joined = reach[:-1] > np.arange(len(reach) - 1)
            if labels is not None:
                joined &= labels[order[1:]] != labels[order[:-1]]
            if len(crosses := np.flatnonzero(joined)):
                low, high = sorted(order[crosses[0] : crosses[0] + 2].tolist())
                return low, high
        return None

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that occurs at the ends of an edge."""
        extended = np.append(labels, labels.max() + 1)
        found = np.zeros((0, 2), dtype=np.int64)
        for order, reach in (line.sorted_by(labels) for line in self.lines()):
            own = labels[order]
            same = np.flatnonzero((own[1:] == own[:-1]) & (reach[:-1] > np.arange(len(reach) - 1)))
            found = np.concatenate((found, np.column_stack((order[same], order[same + 1]))))
            # All other edges join the last value of a run of equal labels to the first value of a later run, if any.
            starts = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
            ends = np.append(starts[1:], len(own)) - 1
            for i, j in _pairs(np.searchsorted(starts, reach[ends], side="right") - 1):
                across = np.column_stack((order[ends[i]], order[starts[j]]))
                found = select_one_per_pair(np.concatenate((found, across)), extended)
        return np.sort(select_one_per_pair(found, extended), axis=1)


@dataclass(frozen=True, eq=False)
class CompleteGraph(LinesGraph):
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

    def lines(self) -> Iterator[Line]:
        """Yield one line on which all values are joined."""
        yield Line(np.arange(self.size), np.full(self.size, self.size - 1))

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self.size * (self.size - 1) // 2

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.asarray(x), np.asarray(y)
        return np.asarray((first != second) & (first < self.size) & (second < self.size))

    def components(self) -> Integers:
        """Return one component, which contains all values."""
        return np.zeros(self.size, dtype=np.int64)

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges."""
        if within is not None or self.size < 2:
            return super().spread(weights, within)
        low, high = int(np.argmin(weights)), int(np.argmax(weights))
        edge = (min(low, high), max(low, high)) if low != high else (0, 1)
        return Largest(as_scalar(weights[high] - weights[low]), edge)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the difference of the largest and the least weight."""
        if len(weights) < 2:
            return Largest(0, self.crossing())
        return along(shape, axis, CompleteGraph(len(weights)).spread(weights))

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        if labels is not None:
            return super().crossing(labels)
        return (0, 1) if self.size > 1 else None


@dataclass(frozen=True, eq=False)
class PartitionGraph(LinesGraph):
    """A graph that joins values in the same block of a partition."""

    labels: Integers
    kind: str = "partition"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return len(self.labels)

    @cached_property
    def _sizes(self) -> Integers:
        return np.unique(self.labels, return_counts=True)[1]

    @property
    def steps(self) -> int | None:
        """Return |T| − 1 for a single block, because the graph is then complete; otherwise None."""
        return self.size - 1 if len(self._sizes) == 1 and self.size > 1 else None

    @property
    def phrase(self) -> str:
        """Return how one record may change along an edge."""
        return f"from one value to another in the same block of a partition into {len(self._sizes)}"

    def lines(self) -> Iterator[Line]:
        """Yield one line, on which the values of each block follow one another."""
        yield Line(np.argsort(self.labels, kind="stable"), np.repeat(np.cumsum(self._sizes) - 1, self._sizes))

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return sum(size * (size - 1) // 2 for size in self._sizes.tolist())

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.asarray(x), np.asarray(y)
        # The null node has a separate label.
        labels = np.append(self.labels, -1)
        return np.asarray((first != second) & (labels[first] == labels[second]))

    def components(self) -> Integers:
        """Return the index of each value's block."""
        return np.unique(self.labels, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class AttributeGraph(LinesGraph):
    """A graph that joins values that differ in exactly one attribute, by no more than the attribute's threshold.

    Attributes:
        shape: the number of values of each attribute.
        reaches: for each attribute the largest index to which the value with each index may change, int64, not
            decreasing; None if every value may change to any other.
        kind: the rule.
        phrase: how one record may change along an edge.
    """

    shape: tuple[int, ...]
    reaches: tuple[Integers | None, ...]
    kind: str = "attribute"
    phrase: str = "from one value to another that differs from it in exactly one attribute"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return math.prod(self.shape)

    @cached_property
    def steps(self) -> int | None:
        """Return θ if the only attribute may change by at most θ indices, else None."""
        if len(self.shape) > 1 or self.crossing() is None:
            return None
        if self.reaches[0] is None:
            return self.size - 1
        theta = int(self._widths(0).max())
        regular = np.minimum(np.arange(self.size) + theta, self.size - 1)
        return theta if (self.reaches[0] == regular).all() else None

    def reach(self, axis: int) -> Integers:
        """Return the largest index to which each value of an attribute may change."""
        found, length = self.reaches[axis], self.shape[axis]
        return np.full(length, length - 1) if found is None else found

    def _widths(self, axis: int) -> Integers:
        """Return how far up each value of an attribute may change, in indices."""
        return self.reach(axis) - np.arange(self.shape[axis])

    def lines(self) -> Iterator[Line]:
        """Yield one line for each attribute that may change, on which it runs through its values again and again."""
        numbers = np.arange(self.size)
        for axis, length in enumerate(self.shape):
            if (widths := self._widths(axis)).any():
                order = np.moveaxis(numbers.reshape(self.shape), axis, -1).ravel()
                yield Line(order, (numbers.reshape(-1, length) + widths).ravel())

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        count = 0
        for axis, (length, reach) in enumerate(zip(self.shape, self.reaches, strict=True)):
            edges = length * (length - 1) // 2 if reach is None else int(self._widths(axis).sum())
            count += self.size // length * edges
        return count

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        near = (first < self.size) & (second < self.size)
        ends = [np.unravel_index(np.where(near, each, 0), self.shape) for each in (first, second)]
        changed = np.zeros(first.shape, dtype=np.int64)
        for a, b, reach in zip(*ends, self.reaches, strict=True):
            changed += a != b
            if reach is not None:
                near = near & (np.maximum(a, b) <= reach[np.minimum(a, b)])
        return np.asarray(near & (changed == 1))

    @property
    def connected(self) -> bool:
        """Return whether a path joins every two values."""
        axes = zip(self.shape, self.reaches, strict=True)
        return all(reach is None or (reach[:-1] > np.arange(length - 1)).all() for length, reach in axes)

    def components(self) -> Integers:
        """Return the index of each value's connected component, which is a product of runs, one for each attribute."""
        labels = np.zeros(1, dtype=np.int64)
        for axis in range(len(self.shape)):
            runs = np.append(0, np.cumsum(self._widths(axis)[:-1] == 0))
            labels = (labels[:, None] * (int(runs[-1]) + 1) + runs).ravel()
        return labels

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y|, which is attained by an edge that changes only the attribute `axis`."""
        alone = AttributeGraph((len(weights),), (self.reaches[axis],))
        found = CompleteGraph(len(weights)).spread(weights) if self.reaches[axis] is None else alone.spread(weights)
        return Largest(0, self.crossing()) if found.edge is None else along(shape, axis, found)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None."""
        if labels is not None:
            return super().crossing(labels)
        for axis, (length, reach) in enumerate(zip(self.shape, self.reaches, strict=True)):
            first = 0 if reach is None else int(np.argmax(self._widths(axis) > 0))
            if length > 1 and (reach is None or reach[first] > first):
                return along(self.shape, axis, Largest(0, (first, first + 1))).edge
        return None


def block_numbers(domain: Domain, labels: ArrayLike, path: str = "labels") -> Integers:
    """Return the index of each value's block, int64 of shape (|T|,), from the label of its block; names travel."""
    numbers = label_numbers(in_order_of_values(domain, labels, path), path)
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


def _pairs(reach: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield the places i and j of all pairs with i < j <= reach[i]."""
    widths = reach - np.arange(len(reach))
    ends = np.cumsum(widths)
    cuts = np.searchsorted(ends, np.arange(BLOCK, ends[-1], BLOCK)) + 1
    for places in np.split(np.arange(len(reach)), np.unique(cuts)):
        if len(first := np.repeat(places, widths[places])):
            # The pairs are numbered in order; those of place i have the numbers up to ends[i].
            numbers = np.arange(len(first)) + ends[places[0]] - widths[places[0]]
            yield first, first + 1 + numbers - (ends[first] - widths[first])


Merge = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


def _windows(table: NDArray[Any], reach: Integers, merge: Merge) -> Iterator[tuple[Integers, NDArray[Any]]]:
    """Yield places x and the merged entries of the table at x + 1, …, reach[x]; `merge` may merge entries twice.

    The entries of windows of 2^k places are merged from those of 2^(k − 1) places.
    """
    x = np.flatnonzero(reach > np.arange(len(reach)))
    low, high = x + 1, reach[x]
    level = np.frexp((high - low + 1).astype(np.float64))[1] - 1
    for k in range(int(level.max(initial=-1)) + 1):
        if k:
            half = 1 << (k - 1)
            table = merge(table[..., :-half], table[..., half:])
        here = np.flatnonzero(level == k)
        if len(here):
            yield x[here], merge(table[..., low[here]], table[..., high[here] - (1 << k) + 1])


def _highest_sum(starts: NDArray[Any], ends: NDArray[Any], reach: Integers) -> Largest:
    """Return the largest starts[x] + ends[y] over x < y <= reach[x]."""
    best = Largest(0, None)
    for x, tops in _windows(ends, reach, np.maximum):
        sums = starts[x] + tops
        at = int(np.argmax(sums))
        if best.edge is None or sums[at] > best.value:
            start = int(x[at])
            window = ends[start + 1 : int(reach[start]) + 1]
            best = Largest(as_scalar(sums[at]), (start, start + 1 + int(np.argmax(window))))
    return best


def _highest_sum_apart(radii: NDArray[Any], points: Integers, reach: Integers) -> Largest:
    """Return the largest r_x + r_y over x < y <= reach[x] with different points."""
    number = len(radii)
    # An entry of the table has the place of the largest radius, and the place of the largest one at another point; the
    # place `number` stands for none.
    radius, point = np.append(radii, -1), np.append(points, -1)

    def merge(one: Integers, other: Integers) -> Integers:
        swap = radius[one[0]] < radius[other[0]]
        (first, own), (rival, third) = (np.where(swap, a, b) for a, b in ((other, one), (one, other)))
        rival = np.where(point[rival] != point[first], rival, third)
        return np.stack((first, np.where(radius[own] >= radius[rival], own, rival)))

    best = Largest(0, None)
    table = np.stack((np.arange(number), np.full(number, number)))
    for x, (first, second) in _windows(table, reach, merge):
        y = np.where(point[first] != point[x], first, second)
        sums = np.where(y < number, radius[x] + radius[y], -1)
        at = int(np.argmax(sums))
        if y[at] < number and (best.edge is None or sums[at] > best.value):
            best = Largest(as_scalar(sums[at]), (int(x[at]), int(y[at])))
    return best


@dataclass(frozen=True, eq=False)
class ThresholdGraph(SecretGraph):
    """A graph that joins values whose numeric attributes have a positive ℓ1 distance of at most a threshold.

    Attributes:
        shape: the number of values of each attribute.
        positions: for each attribute its values as multiples of `unit`, in ascending order.
        limit: the threshold as a multiple of `unit`.
        unit: the common step of all attributes.
        phrase: how one record may change along an edge.
    """

    shape: tuple[int, ...]
    positions: tuple[Integers, ...]
    limit: int
    unit: Fraction = Fraction(1)
    phrase: str = ""
    kind: str = "threshold"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return math.prod(self.shape)

    @cached_property
    def alone(self) -> AttributeGraph:
        """Return the graph of the edges that change a single attribute.

        If an edge joins two values, edges of this graph join all consecutive values on a monotone path between them.
        """
        return AttributeGraph(self.shape, tuple(reach_within(axis, self.limit) for axis in self.positions))

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges, computed from the number of pairs at each distance along each axis."""
        counts = {0: 1}
        for axis in self.positions:
            counts = _convolve(counts, _count_ordered_pairs(axis, self.limit), self.limit)
        # The counts are numbers of ordered pairs, including pairs of equal values.
        return (sum(counts.values()) - self.size) // 2

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        values = (first != second) & (first < self.size) & (second < self.size)
        a = np.unravel_index(np.where(values, first, 0), self.shape)
        b = np.unravel_index(np.where(values, second, 0), self.shape)
        distance = np.zeros(first.shape, dtype=np.int64)
        for axis, i, j in zip(self.positions, a, b, strict=True):
            distance += np.abs(axis[i] - axis[j])
        return np.asarray(values & (distance <= self.limit))

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once, grouped by the index differences of its ends along the axes."""
        strides = np.array([math.prod(self.shape[i + 1 :]) for i in range(len(self.shape))])
        pending: list[Integers] = []
        held = 0
        for offset in self._offsets():
            edges = self._along(offset, strides)
            pending.append(edges)
            held += len(edges)
            if held >= BLOCK:
                yield np.concatenate(pending)
                pending, held = [], 0
        if held:
            yield np.concatenate(pending)

    def _offsets(self) -> Iterator[tuple[int, ...]]:
        """Yield the possible index differences along all axes; the first nonzero difference is positive."""
        shortest = [_shortest(axis, self.limit) for axis in self.positions]

        def extend(prefix: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
            if len(prefix) == len(self.shape):
                if any(prefix):
                    yield prefix
                return
            leading = not any(prefix)
            for step, cost in shortest[len(prefix)].items():
                if used + cost <= self.limit:
                    yield from extend((*prefix, step), used + cost)
                    if step and not leading:
                        yield from extend((*prefix, -step), used + cost)

        yield from extend((), 0)

    def _along(self, offset: tuple[int, ...], strides: Integers) -> Integers:
        distance = np.zeros((1,) * len(self.shape), dtype=np.int64)
        start = np.zeros((1,) * len(self.shape), dtype=np.int64)
        for axis, (step, length, positions) in enumerate(zip(offset, self.shape, self.positions, strict=True)):
            shape = [1] * len(self.shape)
            shape[axis] = -1
            numbers = np.arange(max(0, -step), length - max(0, step))
            start = start + (numbers * strides[axis]).reshape(shape)
            distance = distance + np.abs(positions[numbers + step] - positions[numbers]).reshape(shape)
        x = start[np.broadcast_to(distance <= self.limit, start.shape)]
        return np.sort(np.column_stack((x, x + int(np.dot(offset, strides)))), axis=1)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y|, which is attained by an edge that changes only the attribute `axis`."""
        return self.alone.spread_along(shape, axis, weights)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels that changes a single attribute, or None."""
        return self.alone.crossing(labels)

    def components(self) -> Integers:
        """Return the index of each value's connected component."""
        return self.alone.components()


def reach_within(positions: Integers, limit: int) -> Integers | None:
    """Return the largest index of a value at a distance of at most `limit` from each value; None if it is the last."""
    reach = np.searchsorted(positions, positions + limit, side="right") - 1
    return None if reach[0] == len(positions) - 1 else reach


def _shortest(axis: Integers, limit: int) -> dict[int, int]:
    """Return a dictionary from each index difference along an axis to the least distance with this difference."""
    shortest = {0: 0}
    for step in range(1, len(axis)):
        least = int((axis[step:] - axis[:-step]).min())
        if least > limit:
            break
        shortest[step] = least
    return shortest


def _count_ordered_pairs(axis: Integers, limit: int) -> dict[int, int]:
    """Return the number of ordered pairs of values of an axis at each distance up to `limit`."""
    pairs = {0: len(axis)}
    for step in range(1, len(axis)):
        distances = axis[step:] - axis[:-step]
        if int(distances.min()) > limit:
            break
        for distance, times in zip(*np.unique(distances[distances <= limit], return_counts=True), strict=True):
            pairs[int(distance)] = pairs.get(int(distance), 0) + 2 * int(times)
    return pairs


def _convolve(first: dict[int, int], second: dict[int, int], limit: int) -> dict[int, int]:
    result: dict[int, int] = {}
    for (a, m), (b, n) in itertools.product(first.items(), second.items()):
        if a + b <= limit:
            result[a + b] = result.get(a + b, 0) + m * n
    return result
