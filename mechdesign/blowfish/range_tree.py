"""Least squares on the ordered hierarchical structure, in linear time.

The structure (Blowfish, He et al. 2014, section 7.2) cuts |T| ordered values into blocks of θ. It measures the
cumulative count at the end of every block but the last, where it is the number of records, which is public; and in
every block the nodes of a tree of fan-out f, all levels but the root, whose count is a difference of two cumulative
counts. A node stands for a range of values; at the edge of a block it may have fewer children, down to one.

A record that moves by at most θ passes the end of at most one block, which changes one cumulative count by 1, and
leaves one node and enters another on each of the h levels of the trees: noise of scale 1/ε_S on the former and 2h/ε_H
on the latter is (ε_S + ε_H)-private under the threshold policy.

Estimates are the weighted least squares fit to all measurements (Hay, Rastogi, Miklau and Suciu 2010, with weights and
uneven trees): upwards, each node's count from its subtree; along the blocks, a tridiagonal system; downwards, what is
left of each node shared among its children in proportion to their variances. They are unbiased, and among linear
unbiased estimates those of least variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

from mechdesign.base._values import cached_property
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Block", "RangeTree", "height"]


def __dir__() -> list[str]:
    return sorted(__all__)


def height(size: int, fanout: int) -> int:
    """Return the number h of levels below the root of a tree of `size` leaves: the least with fanout**h >= size."""
    levels, reach = 0, 1
    while reach < size:
        levels, reach = levels + 1, reach * fanout
    return levels


@dataclass(frozen=True)
class Block:
    """The tree over one block, or over several blocks of the same shape: counts are then arrays of shape (blocks, …).

    Attributes:
        size: the number of leaves.
        fanout: f.
        levels: h, that of a full block.
        variance: the variance of the noise on each node.
    """

    size: int
    fanout: int
    levels: int
    variance: float

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Return how many values a node of each measured level stands for, from the highest level to the leaves."""
        return tuple(self.fanout**level for level in range(self.levels - 1, -1, -1))

    @cached_property
    def spreads(self) -> tuple[Floats, ...]:
        """Return, level by level, the variance of each node's count as estimated from its own subtree."""
        found: list[Floats] = []
        for width in reversed(self.widths):
            own = np.full(-(-self.size // width), self.variance)
            found.append(own if not found else 1 / (1 / own + 1 / self._gathered(found[-1])))
        return tuple(reversed(found))

    @property
    def root_variance(self) -> float:
        """Return the variance of the block's count as estimated from its tree."""
        return float(self.spreads[0].sum())

    def counts(self, blocks: Integers) -> list[Integers]:
        """Return the counts of the nodes, level by level of shape (blocks, nodes), from those of the values."""
        return [np.add.reduceat(blocks, np.arange(0, self.size, width), axis=1) for width in self.widths]

    def upwards(self, measured: list[Floats]) -> list[Floats]:
        """Return each node's count as estimated from its own subtree."""
        found: list[Floats] = []
        for level in range(self.levels - 1, -1, -1):
            if not found:
                found.append(measured[level])
                continue
            below = self._gathered(self.spreads[level + 1])
            own = self.spreads[level]
            found.append(own * (measured[level] / self.variance + self._gathered(found[-1]) / below))
        return found[::-1]

    def downwards(self, upwards: list[Floats], roots: Floats) -> Floats:
        """Return the counts of the values, shape (blocks, size), from those of the subtrees and of whole blocks."""
        above = roots[:, None]
        for level, (estimate, spread) in enumerate(zip(upwards, self.spreads, strict=True)):
            parent = self._parents(level)
            left = (above - self._children(estimate, level))[:, parent]
            above = estimate + spread / self._children(spread, level)[parent] * left
        return above

    def moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return (a, t): the estimate of Σ w x is a · (count of the block) plus independent noise of variance t.

        Weights have the shape (…, size), the results (…).
        """
        a, t = weights, np.zeros_like(weights)
        for level in range(self.levels - 1, -1, -1):
            spread = self.spreads[level]
            total, covered = self._children(spread, level), self._children(a * spread, level)
            t = self._children(t + a * a * spread, level) - covered**2 / total
            a = covered / total
        return a[..., 0], np.maximum(t[..., 0], 0.0)

    def prefix_moments(self) -> tuple[Floats, Floats]:
        """Return `moments` of the sums of the first 1, …, size values."""
        leaves = np.arange(self.size)
        a, t = np.ones(self.size), np.zeros(self.size)
        for level in range(self.levels - 1, -1, -1):
            spread = self.spreads[level]
            node = leaves // self.widths[level]
            parent = self._parents(level)[node]
            # Sums of the variances of the siblings before a node.
            before = np.cumsum(spread) - spread
            before -= before[np.arange(0, len(spread), self._branching(level))][self._parents(level)]
            total = self._children(spread, level)[parent]
            covered = before[node] + a * spread[node]
            t += before[node] + a * a * spread[node] - covered**2 / total
            a = covered / total
        return a, np.maximum(t, 0.0)

    def _branching(self, level: int) -> int:
        return self.fanout if level else len(self.spreads[0])

    def _parents(self, level: int) -> Integers:
        """Return for each node of a level the number of its parent."""
        return np.arange(len(self.spreads[level])) // self._branching(level)

    def _children(self, values: Floats, level: int) -> Floats:
        """Return the sums over the children in `level` of each node of the level above, along the last axis."""
        starts = np.arange(0, values.shape[-1], self._branching(level))
        sums: Floats = np.add.reduceat(values, starts, axis=-1)
        return sums

    def _gathered(self, values: Floats) -> Floats:
        sums: Floats = np.add.reduceat(values, np.arange(0, values.shape[-1], self.fanout), axis=-1)
        return sums


@dataclass(frozen=True)
class RangeTree:
    """The structure over all values, and the variance of what is estimated from it.

    Attributes:
        size: |T|.
        theta: θ, the size of a block.
        fanout: f.
        node_variance: the variance of the noise on the cumulative counts at the ends of blocks.
        tree_variance: the variance of the noise on the nodes of the trees.
    """

    size: int
    theta: int
    fanout: int
    node_variance: float
    tree_variance: float

    @property
    def levels(self) -> int:
        """Return h."""
        return height(self.theta, self.fanout)

    @property
    def block_count(self) -> int:
        """Return the number of blocks."""
        return -(-self.size // self.theta)

    @cached_property
    def shapes(self) -> tuple[tuple[Block, int], ...]:
        """Return the shapes of the blocks in order, and how many there are of each: full ones, then perhaps a rest."""
        whole, rest = divmod(self.size, self.theta)
        sizes = [(self.theta, whole), (rest, 1)] if rest else [(self.theta, whole)]
        return tuple((Block(size, self.fanout, self.levels, self.tree_variance), number) for size, number in sizes)

    def pieces(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut an array over the values into one array of shape (blocks, size of a block) per shape."""
        parts, start = [], 0
        for block, number in self.shapes:
            stop = start + block.size * number
            parts.append(values[start:stop].reshape(number, block.size))
            start = stop
        return parts

    def fit(self, nodes: Floats, trees: list[list[Floats]], records: int) -> Floats:
        """Return the cumulative counts of least squares, float64 of shape (|T|,).

        Args:
            nodes: measured cumulative counts at the ends of all blocks but the last, shape (blocks - 1,).
            trees: per shape of block and level the measured counts, shape (blocks, nodes).
            records: the number of records.
        """
        if self.levels == 0:
            return np.append(nodes, float(records))
        upwards = [block.upwards(measured) for (block, _), measured in zip(self.shapes, trees, strict=True)]
        roots = np.concatenate([levels[0].sum(axis=1) for levels in upwards])
        ends = self._chain(nodes, roots, records)
        totals = np.diff(ends, prepend=0.0)
        parts, start = [], 0
        for (block, number), levels in zip(self.shapes, upwards, strict=True):
            counts = block.downwards(levels, totals[start : start + number])
            inside = np.cumsum(counts, axis=1)
            # The end of a block is its cumulative count, however the sums within were rounded.
            inside[:, -1] = totals[start : start + number]
            before = ends[start : start + number] - totals[start : start + number]
            parts.append((before[:, None] + inside).ravel())
            start += number
        fitted = np.concatenate(parts)
        fitted[-1] = records
        return fitted

    def variance(self, low: int, high: int) -> float:
        """Return the variance of the estimated count of the values low, …, high, both included."""
        weights = np.zeros(self.size)
        weights[low : high + 1] = 1
        return self.variance_of(weights)

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of the estimate of Σ w x over the counts x of the values."""
        if self.levels == 0:
            return float(self.node_variance * (np.diff(weights) ** 2).sum())
        shares, rest = [], 0.0
        for (block, _), rows in zip(self.shapes, self.pieces(weights), strict=True):
            share = rows[:, 0].astype(np.float64)
            # Blocks whose values all have one weight need no look inside.
            mixed = np.flatnonzero((rows != rows[:, :1]).any(axis=1))
            if mixed.size:
                share[mixed], extra = block.moments(rows[mixed].astype(np.float64))
                rest += float(extra.sum())
            shares.append(share)
        slopes = -np.diff(np.concatenate(shares))
        if not slopes.any():
            return rest
        return float(slopes @ _solved(self._precision, slopes)) + rest

    def prefix_variances(self) -> Floats:
        """Return the variances of the estimated cumulative counts, shape (|T|,)."""
        if self.levels == 0:
            return np.append(np.full(self.size - 1, self.node_variance), 0.0)
        variances, covariances = self._ends
        parts, start = [], 0
        for block, number in self.shapes:
            a, t = block.prefix_moments()
            here = slice(start, start + number)
            before, after = variances[:-1][here, None], variances[1:][here, None]
            both = covariances[here, None]
            parts.append(((1 - a) ** 2 * before + a**2 * after + 2 * a * (1 - a) * both + t).ravel())
            start += number
        found = np.concatenate(parts)
        found[-1] = 0.0
        return np.maximum(found, 0.0)

    def mean_range_error(self) -> float:
        """Return the expected squared error of a range query, averaged over all |T|(|T| + 1)/2 ranges."""
        # Σ_{a<b} (x_a − x_b)² = m Σ x² − (Σ x)² over the m = |T| + 1 cumulative counts, the empty one included.
        alone = float(self.prefix_variances().sum())
        together = self.variance_of(np.arange(self.size, 0, -1, dtype=np.float64))
        return 2 * ((self.size + 1) * alone - together) / (self.size * (self.size + 1))

    @cached_property
    def _root_variances(self) -> Floats:
        return np.repeat([block.root_variance for block, _ in self.shapes], [number for _, number in self.shapes])

    @cached_property
    def _precision(self) -> Floats:
        """Return the matrix of the normal equations for the ends of blocks, upper banded form (2, blocks - 1)."""
        weights = 1 / self._root_variances
        bands = np.zeros((2, self.block_count - 1))
        bands[1] = 1 / self.node_variance + weights[:-1] + weights[1:]
        bands[0, 1:] = -weights[1:-1]
        return bands

    def _chain(self, nodes: Floats, roots: Floats, records: int) -> Floats:
        """Return the cumulative counts at the ends of blocks, the last one being the number of records."""
        if len(nodes) == 0:
            return np.array([float(records)])
        pulls = roots / self._root_variances
        right = nodes / self.node_variance + pulls[:-1] - pulls[1:]
        right[-1] += records / self._root_variances[-1]
        return np.append(_solved(self._precision, right), float(records))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """Return the variances of the cumulative counts before and after each block, (blocks + 1,), and covariances."""
        number = self.block_count
        variances, covariances = np.zeros(number + 1), np.zeros(number)
        if number > 1:
            diagonal, off = self._precision[1], self._precision[0, 1:]
            forward = _pivots(diagonal, off)
            backward = _pivots(diagonal[::-1], off[::-1])[::-1]
            variances[1:-1] = 1 / (forward + backward - diagonal)
            covariances[1:-1] = -off / backward[1:] * variances[1:-2]
        return variances, covariances


def _solved(bands: Floats, right: Floats) -> Floats:
    # LAPACK's tridiagonal solver refuses a system of one equation.
    solution: Floats = right / bands[1] if len(right) == 1 else solveh_banded(bands, right)
    return solution


def _pivots(diagonal: Floats, off: Floats) -> Floats:
    """Return d_1 = a_1, d_k = a_k − b_{k-1}²/d_{k-1}, the pivots of a tridiagonal matrix."""
    pivots = [float(diagonal[0])]
    for a, b in zip(diagonal[1:].tolist(), (off * off).tolist(), strict=True):
        pivots.append(a - b / pivots[-1])
    return np.array(pivots)
