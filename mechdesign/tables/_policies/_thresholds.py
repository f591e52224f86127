"""Secret graphs defined by a distance threshold, including the line, on one ordered attribute or on several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Flags, Integers
from mechdesign.base._values import cached_property
from mechdesign.tables._policies._graphs import (
    BLOCK,
    Edge,
    Largest,
    SecretGraph,
    along,
    as_scalar,
    find_largest,
    select_one_per_pair,
)


@dataclass(frozen=True, eq=False)
class OrderedGraph(SecretGraph):
    """A graph that joins each value x of an ordered attribute to x + 1, …, reach[x].

    Attributes:
        reach: int64 of shape (|T|,), not decreasing, with x <= reach[x] < |T|.
        steps: θ if reach[x] = min(x + θ, |T| − 1) for all x, else None.
        phrase: how one record may change along an edge.
    """

    reach: Integers
    kind: str
    phrase: str = ""

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return len(self.reach)

    @cached_property
    def steps(self) -> int | None:
        """Return θ if the edges are exactly the pairs of values whose indices differ by at most θ, else None."""
        numbers = np.arange(self.size)
        theta = int(self._widths.max())
        regular = (self.reach == np.minimum(numbers + theta, self.size - 1)).all()
        return theta if regular and theta > 0 else None

    @property
    def _widths(self) -> Integers:
        return self.reach - np.arange(self.size)

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return int(self._widths.sum())

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        low, high = np.minimum(x, y), np.maximum(x, y)
        values = (low < high) & (high < self.size)
        return np.asarray(values & (high <= self.reach[np.where(values, low, 0)]))

    def edge_blocks(self) -> Iterator[Integers]:
        """Yield every edge once."""
        numbers, widths = np.arange(self.size), self._widths
        # The fewer edges each value has, the more values a block of edges covers.
        rows = max(1, BLOCK // max(1, int(widths.max())))
        for start in range(0, self.size, rows):
            width = widths[start : start + rows]
            if total := int(width.sum()):
                x = np.repeat(numbers[start : start + rows], width)
                offset = np.arange(total) - np.repeat(np.cumsum(width) - width, width)
                yield np.column_stack((x, x + 1 + offset))

    def components(self) -> Integers:
        """Return the index of each value's connected component: a run of values in which each is joined to the next."""
        cuts = self.reach[:-1] == np.arange(self.size - 1)
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(cuts)))

    def spread(self, weights: NDArray[Any], within: Integers | None = None) -> Largest:
        """Return the largest |w_x − w_y| over the edges."""
        if within is not None:
            return super().spread(weights, within)
        return find_largest(_highest_sum(-w, w, self.reach) for w in (weights, -weights))

    def largest_sum(self, radii: NDArray[Any], points: Integers | None = None) -> Largest:
        """Return the largest r_x + r_y over the edges whose ends have different points."""
        return super().largest_sum(radii, points) if points is not None else _highest_sum(radii, radii, self.reach)

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between consecutive values with different labels, or None if all edges join equal labels."""
        joined = self._widths[:-1] > 0
        crosses = np.flatnonzero(joined & (labels[1:] != labels[:-1]) if labels is not None else joined)
        return (int(crosses[0]), int(crosses[0]) + 1) if len(crosses) else None

    def joined(self, labels: Integers) -> Integers:
        """Return one edge for each unordered pair of labels that occurs at the ends of an edge."""
        extended = np.append(labels, labels.max() + 1)
        starts = np.flatnonzero(np.append(True, np.diff(labels) != 0))
        ends = np.append(starts[1:], self.size) - 1
        longer = (ends > starts) & (self.reach[starts] > starts)
        # First come edges within a run of equal labels, then edges from the end of a run to the start of a later run.
        found = np.column_stack((starts[longer], starts[longer] + 1))
        inside = np.flatnonzero(ends > starts)
        for run in inside[~longer[inside]]:
            x = np.arange(starts[run], ends[run])
            if len(x := x[self.reach[x] > x]):
                found = np.concatenate((found, [[x[0], x[0] + 1]]))
        found = select_one_per_pair(found, extended)
        offset = 1
        runs = np.arange(len(starts))
        while len(runs := runs[runs + offset < len(starts)]):
            runs = runs[starts[runs + offset] <= self.reach[ends[runs]]]
            new = np.column_stack((ends[runs], starts[runs + offset]))
            found = select_one_per_pair(np.concatenate((found, new)), extended)
            offset += 1
        return found


@dataclass(frozen=True, eq=False)
class ThresholdGraph(SecretGraph):
    """A graph that joins values whose numeric attributes have a positive ℓ1 distance of at most a threshold.

    Attributes:
        shape: the number of values of each attribute.
        positions: for each attribute its values as multiples of `unit`, in ascending order; None for an attribute that
            does not change along edges.
        limit: the threshold as a multiple of `unit`.
        unit: the common step of all attributes that may change.
        phrase: how one record may change along an edge.
    """

    shape: tuple[int, ...]
    positions: tuple[Integers | None, ...]
    limit: int
    unit: Fraction = Fraction(1)
    phrase: str = ""
    kind: str = "threshold"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return math.prod(self.shape)

    @cached_property
    def edge_count(self) -> int:
        """Return the number of edges, computed from the number of pairs at each distance along each axis."""
        counts = {0: 1}
        for length, axis in zip(self.shape, self.positions, strict=True):
            counts = _convolve(counts, _count_ordered_pairs(length, axis, self.limit), self.limit)
        # The counts are numbers of ordered pairs, including pairs of equal values.
        return (sum(counts.values()) - self.size) // 2

    def has_edge(self, x: ArrayLike, y: ArrayLike) -> Flags:
        """Return, for each pair of nodes, whether an edge joins them."""
        first, second = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        values = (first != second) & (first < self.size) & (second < self.size)
        a = np.unravel_index(np.where(values, first, 0), self.shape)
        b = np.unravel_index(np.where(values, second, 0), self.shape)
        distance = np.zeros(first.shape, dtype=np.int64)
        fixed = values.copy()
        for axis, i, j in zip(self.positions, a, b, strict=True):
            if axis is None:
                fixed &= i == j
            else:
                distance += np.abs(axis[i] - axis[j])
        return np.asarray(fixed & (distance <= self.limit))

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
        shortest = [
            _shortest(length, axis, self.limit) for length, axis in zip(self.shape, self.positions, strict=True)
        ]

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
            if positions is not None:
                distance = distance + np.abs(positions[numbers + step] - positions[numbers]).reshape(shape)
        x = start[np.broadcast_to(distance <= self.limit, start.shape)]
        return np.sort(np.column_stack((x, x + int(np.dot(offset, strides)))), axis=1)

    def spread_along(self, shape: tuple[int, ...], axis: int, weights: NDArray[Any]) -> Largest:
        """Return the largest |w_x − w_y|, which is attained by an edge that changes only the attribute `axis`."""
        if (positions := self.positions[axis]) is not None:
            reach = np.searchsorted(positions, positions + self.limit, side="right") - 1
            found = OrderedGraph(reach, self.kind).spread(weights)
            if found.edge is not None:
                return along(shape, axis, found)
        return Largest(0, self.crossing())

    def crossing(self, labels: Integers | None = None) -> Edge | None:
        """Return an edge between two values with different labels, or None.

        Only edges between consecutive values of one attribute are searched. If any edge joins different labels, an edge
        on a monotone path between its ends also joins different labels.
        """
        stride = self.size
        for length, axis in zip(self.shape, self.positions, strict=True):
            stride //= length
            near = np.flatnonzero(np.diff(axis) <= self.limit) if axis is not None else np.zeros(0, dtype=np.int64)
            if labels is None and len(near):
                return int(near[0] * stride), int((near[0] + 1) * stride)
            if labels is not None and len(near):
                table = labels.reshape(-1, length, stride)
                crosses = np.argwhere(table[:, near] != table[:, near + 1])
                if len(crosses):
                    before, step, after = crosses[0].tolist()
                    x = (before * length + int(near[step])) * stride + after
                    return x, x + stride
        return None

    def components(self) -> Integers:
        """Return the index of each value's connected component.

        If an edge joins two values, edges also join all consecutive values on a monotone path between them. A component
        is therefore a product of runs, one for each attribute, whose gaps are at most the threshold.
        """
        labels = np.zeros(1, dtype=np.int64)
        for length, axis in zip(self.shape, self.positions, strict=True):
            cuts = np.ones(length - 1, dtype=bool) if axis is None else np.diff(axis) > self.limit
            runs = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(cuts)))
            labels = (labels[:, None] * (int(runs[-1]) + 1) + runs).ravel()
        return labels


def _highest_sum(starts: NDArray[Any], ends: NDArray[Any], reach: Integers) -> Largest:
    """Return the largest starts[x] + ends[y] over x < y <= reach[x], from maxima over windows of 2^k values."""
    x = np.flatnonzero(reach > np.arange(len(reach)))
    best = Largest(0, None)
    if not len(x):
        return best
    low, high = x + 1, reach[x]
    level = np.frexp((high - low + 1).astype(np.float64))[1] - 1
    maxima = ends
    for k in range(int(level.max()) + 1):
        if k:
            half = 1 << (k - 1)
            maxima = np.maximum(maxima[:-half], maxima[half:])
        here = np.flatnonzero(level == k)
        if len(here):
            tops = starts[x[here]] + np.maximum(maxima[low[here]], maxima[high[here] - (1 << k) + 1])
            at = int(np.argmax(tops))
            if best.edge is None or tops[at] > best.value:
                start = int(x[here[at]])
                window = ends[start + 1 : int(reach[start]) + 1]
                best = Largest(as_scalar(tops[at]), (start, start + 1 + int(np.argmax(window))))
    return best


def _shortest(length: int, axis: Integers | None, limit: int) -> dict[int, int]:
    """Return a dictionary from each index difference along an axis to the least distance with this difference."""
    shortest = {0: 0}
    if axis is not None:
        for step in range(1, length):
            least = int((axis[step:] - axis[:-step]).min())
            if least > limit:
                break
            shortest[step] = least
    return shortest


def _count_ordered_pairs(length: int, axis: Integers | None, limit: int) -> dict[int, int]:
    """Return the number of ordered pairs of values of an axis at each distance up to `limit`."""
    pairs = {0: length}
    if axis is not None:
        for step in range(1, length):
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
