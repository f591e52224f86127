"""The secret graph of a threshold on the sum of the differences of several attributes."""

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
from mechdesign.tables._policies._graphs import BLOCK, Edge, Largest, SecretGraph
from mechdesign.tables._policies._lines import AttributeGraph


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
