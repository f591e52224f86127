"""Least squares on trees: the structure of the measurements, their noise, and the expected errors.

The structure (Blowfish, He et al. 2014, section 7.2) cuts |T| ordered values into blocks of θ values. The cumulative
count at the end of every block is measured, except at the last block, where the count is the public number of records.
In every block, the nodes of a tree of fan-out f are also measured, except the root. The count of a root is the
difference of two cumulative counts. A node represents a range of values, and the last node of a level may have fewer
than f children.

A record that moves by at most θ passes the end of at most one block, so at most one cumulative count changes by 1. On
each of the h levels of the trees, the move decreases the count of one node and increases the count of another. Noise of
scale 1/ε_S on cumulative counts and 2h/ε_H on nodes is therefore (ε_S + ε_H)-private under the threshold policy.

The estimates are the weighted least squares fit to all measurements. The algorithm extends that of Hay, Rastogi, Miklau
and Suciu (2010) to weights and uneven trees. An upward pass estimates each node's count from its subtree. A tridiagonal
system then yields the counts of the blocks. A downward pass distributes the residual of each node among its children in
proportion to their variances. The estimates are unbiased, with the least variance among linear unbiased estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded
from scipy.optimize import minimize_scalar

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._secret_graphs import require_room


def height(size: int, fanout: int) -> int:
    """Return the number h of levels below the root of a tree of `size` leaves, the least h with fanout**h >= size."""
    levels, reach = 0, 1
    while reach < size:
        levels, reach = levels + 1, reach * fanout
    return levels


@dataclass(frozen=True)
class Block:
    """The tree over one block, or over several blocks of the same shape with counts of shape (blocks, …).

    Attributes:
        size: the number of leaves.
        fanout: f, the largest number of children of a node.
        levels: h, the number of measured levels in a full block.
        variance: the variance of the noise on each node.
    """

    size: int
    fanout: int
    levels: int
    variance: float

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Return the number of values that a node of each measured level represents, from the top to the leaves."""
        return tuple(self.fanout**level for level in range(self.levels - 1, -1, -1))

    @cached_property
    def spreads(self) -> tuple[Floats, ...]:
        """Return, for each level, the variances of the nodes' counts as estimated from their subtrees."""
        found: list[Floats] = []
        for width in reversed(self.widths):
            own = np.full(-(-self.size // width), self.variance)
            found.append(own if not found else 1 / (1 / own + 1 / self._sum_by_parent(found[-1])))
        return tuple(reversed(found))

    @property
    def root_variance(self) -> float:
        """Return the variance of a block's count as estimated from its tree."""
        return float(self.spreads[0].sum())

    def counts(self, blocks: Integers) -> list[Integers]:
        """Compute the counts of the nodes from the counts of the values; each level has shape (blocks, nodes)."""
        return [np.add.reduceat(blocks, np.arange(0, self.size, width), axis=1) for width in self.widths]

    def upwards(self, measured: list[Floats]) -> list[Floats]:
        """Return, for each level, the nodes' counts as estimated from their subtrees."""
        found: list[Floats] = []
        for level in range(self.levels - 1, -1, -1):
            if not found:
                found.append(measured[level])
                continue
            below = self._sum_by_parent(self.spreads[level + 1])
            own = self.spreads[level]
            found.append(own * (measured[level] / self.variance + self._sum_by_parent(found[-1]) / below))
        return found[::-1]

    def downwards(self, upwards: list[Floats], roots: Floats) -> Floats:
        """Compute the counts of the values, shape (blocks, size), from upward estimates and counts of blocks."""
        above = roots[:, None]
        for level, (estimate, spread) in enumerate(zip(upwards, self.spreads, strict=True)):
            parent = self._parents(level)
            left = (above - self._children(estimate, level))[:, parent]
            above = estimate + spread / self._children(spread, level)[parent] * left
        return above

    def moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return (a, t) such that Σ w x is estimated by a · (count of the block) plus independent noise of variance t.

        Weights have shape (…, size), and both results have shape (…).
        """
        a, t = weights, np.zeros_like(weights)
        for level in range(self.levels - 1, -1, -1):
            spread = self.spreads[level]
            total, covered = self._children(spread, level), self._children(a * spread, level)
            t = self._children(t + a * a * spread, level) - covered**2 / total
            a = covered / total
        return a[..., 0], np.maximum(t[..., 0], 0.0)

    def prefix_moments(self) -> tuple[Floats, Floats]:
        """Return the results of `moments` for the sum of the first k values, for k = 1, …, size."""
        leaves = np.arange(self.size)
        a, t = np.ones(self.size), np.zeros(self.size)
        for level in range(self.levels - 1, -1, -1):
            spread = self.spreads[level]
            node = leaves // self.widths[level]
            parent = self._parents(level)[node]
            # For each node, the variances of its preceding siblings are added up.
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
        """Return the index of the parent of each node of a level."""
        return np.arange(len(self.spreads[level])) // self._branching(level)

    def _children(self, values: Floats, level: int) -> Floats:
        """Sum the values of the nodes in `level` over the children of each parent, along the last axis."""
        starts = np.arange(0, values.shape[-1], self._branching(level))
        sums: Floats = np.add.reduceat(values, starts, axis=-1)
        return sums

    def _sum_by_parent(self, values: Floats) -> Floats:
        sums: Floats = np.add.reduceat(values, np.arange(0, values.shape[-1], self.fanout), axis=-1)
        return sums


@dataclass(frozen=True)
class RangeTree:
    """The measurements of all blocks and trees, with the variances of the estimates from them.

    Attributes:
        size: |T|.
        theta: θ, the size of a block.
        fanout: f, the largest number of children of a node.
        node_variance: the variance of the noise on the cumulative counts at the ends of blocks.
        tree_variance: the variance of the noise on the nodes of the trees.

    >>> RangeTree(size=8, theta=4, fanout=2, node_variance=1.0, tree_variance=1.0).block_count
    2
    """

    size: int
    theta: int
    fanout: int
    node_variance: float
    tree_variance: float

    @property
    def levels(self) -> int:
        """Return h, the number of measured levels of the trees."""
        return height(self.theta, self.fanout)

    @property
    def block_count(self) -> int:
        """Return the number of blocks."""
        return -(-self.size // self.theta)

    @cached_property
    def shapes(self) -> tuple[tuple[Block, int], ...]:
        """Return each shape of block with the number of its blocks: the full blocks, then a shorter last block."""
        whole, rest = divmod(self.size, self.theta)
        sizes = [(self.theta, whole), (rest, 1)] if rest else [(self.theta, whole)]
        return tuple((Block(size, self.fanout, self.levels, self.tree_variance), number) for size, number in sizes)

    def pieces(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Split an array over the values into one array of shape (blocks, size of a block) for each shape of block.

        Args:
            values: the array, shape (|T|,).

        Returns:
            The arrays, in the order of `shapes`.
        """
        parts, start = [], 0
        for block, number in self.shapes:
            stop = start + block.size * number
            parts.append(values[start:stop].reshape(number, block.size))
            start = stop
        return parts

    def fit(self, nodes: Floats, trees: list[list[Floats]], records: int) -> Floats:
        """Return the least squares fit of the cumulative counts.

        Args:
            nodes: the measured cumulative counts at the ends of all blocks except the last, shape (blocks - 1,).
            trees: the measured counts for each shape of block and each level, shape (blocks, nodes).
            records: the number of records.

        Returns:
            The cumulative counts, float64 of shape (|T|,).
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
            # The cumulative count at the end of a block is inserted directly, without the rounding errors of the sums.
            inside[:, -1] = totals[start : start + number]
            before = ends[start : start + number] - totals[start : start + number]
            parts.append((before[:, None] + inside).ravel())
            start += number
        fitted = np.concatenate(parts)
        fitted[-1] = records
        return fitted

    def variance(self, low: int, high: int) -> float:
        """Return the variance of the estimated number of records with the values low, …, high.

        Args:
            low: the index of the first value.
            high: the index of the last value.

        Returns:
            The variance.
        """
        weights = np.zeros(self.size)
        weights[low : high + 1] = 1
        return self.variance_of(weights)

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of the estimate of Σ w x over the counts x of the values.

        Args:
            weights: the weights w, shape (|T|,).

        Returns:
            The variance.
        """
        if self.levels == 0:
            return float(self.node_variance * (np.diff(weights) ** 2).sum())
        shares, rest = [], 0.0
        for (block, _), rows in zip(self.shapes, self.pieces(weights), strict=True):
            share = rows[:, 0].astype(np.float64)
            # If all values of a block have the same weight, the trees add no variance.
            mixed = np.flatnonzero((rows != rows[:, :1]).any(axis=1))
            if mixed.size:
                share[mixed], extra = block.moments(rows[mixed].astype(np.float64))
                rest += float(extra.sum())
            shares.append(share)
        slopes = -np.diff(np.concatenate(shares))
        if not slopes.any():
            return rest
        return float(slopes @ _solve(self._precision, slopes)) + rest

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
        # The identity Σ_{a<b} (x_a − x_b)² = m Σ x² − (Σ x)² is used for the m = |T| + 1 cumulative counts, including
        # 0.
        alone = float(self.prefix_variances().sum())
        together = self.variance_of(np.arange(self.size, 0, -1, dtype=np.float64))
        return 2 * ((self.size + 1) * alone - together) / (self.size * (self.size + 1))

    @cached_property
    def _root_variances(self) -> Floats:
        return np.repeat([block.root_variance for block, _ in self.shapes], [number for _, number in self.shapes])

    @cached_property
    def _precision(self) -> Floats:
        """Return the matrix of the normal equations for the ends of blocks, in banded form (2, blocks - 1)."""
        weights = 1 / self._root_variances
        bands = np.zeros((2, self.block_count - 1))
        bands[1] = 1 / self.node_variance + weights[:-1] + weights[1:]
        bands[0, 1:] = -weights[1:-1]
        return bands

    def _chain(self, nodes: Floats, roots: Floats, records: int) -> Floats:
        """Return the cumulative counts at the ends of blocks; the last count is the number of records."""
        if len(nodes) == 0:
            return np.array([float(records)])
        pulls = roots / self._root_variances
        right = nodes / self.node_variance + pulls[:-1] - pulls[1:]
        right[-1] += records / self._root_variances[-1]
        return np.append(_solve(self._precision, right), float(records))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """Return the variances of the cumulative counts at the ends of blocks, and the covariances of adjacent ones."""
        number = self.block_count
        variances, covariances = np.zeros(number + 1), np.zeros(number)
        if number > 1:
            diagonal, off = self._precision[1], self._precision[0, 1:]
            forward = _pivots(diagonal, off)
            backward = _pivots(diagonal[::-1], off[::-1])[::-1]
            variances[1:-1] = 1 / (forward + backward - diagonal)
            covariances[1:-1] = -off / backward[1:] * variances[1:-2]
        return variances, covariances


def _solve(bands: Floats, right: Floats) -> Floats:
    # LAPACK's tridiagonal solver does not accept a system of one equation.
    solution: Floats = right / bands[1] if len(right) == 1 else solveh_banded(bands, right)
    return solution


def _pivots(diagonal: Floats, off: Floats) -> Floats:
    """Return d_1 = a_1, d_k = a_k − b_{k-1}²/d_{k-1}, the pivots of a tridiagonal matrix."""
    pivots = [float(diagonal[0])]
    for a, b in zip(diagonal[1:].tolist(), (off * off).tolist(), strict=True):
        pivots.append(a - b / pivots[-1])
    return np.array(pivots)


_LEAST_VARIANCE = 1e-60


def _law(scale: Fraction) -> DiscreteLaplace:
    try:
        return DiscreteLaplace(scale)
    except InputError as error:
        problem = "is too small or too large, because the scale of the noise is out of range"
        raise InputError("epsilon", problem, value=f"{nearest(scale):.4g}", bound="a scale of at most 2^50") from error


# The safety factor of `RangeNoise.half_widths`.
_MARGIN = 1.002


@dataclass(frozen=True)
class RangeNoise:
    """The exact scales of the two-sided geometric noise on cumulative counts and on trees.

    Attributes:
        node_scale: the scale for the cumulative counts at the ends of blocks, or None without noise.
        tree_scale: the scale for the nodes of the trees within blocks, or None without noise.

    >>> bool(RangeNoise(None, None)), bool(RangeNoise(Fraction(2), None))
    (False, True)
    """

    node_scale: Fraction | None
    tree_scale: Fraction | None

    def __bool__(self) -> bool:
        return self.node_scale is not None or self.tree_scale is not None

    def __str__(self) -> str:
        parts = [
            f"{law.describe(Fraction(1))} on each {what}"
            for law, what in ((self.node_law, "cumulative count"), (self.tree_law, "node"))
            if law is not None
        ]
        return " and ".join(parts) or "no noise"

    @property
    def node_law(self) -> DiscreteLaplace | None:
        """Return the law of the noise on the cumulative counts at the ends of blocks."""
        return None if self.node_scale is None else _law(self.node_scale)

    @property
    def tree_law(self) -> DiscreteLaplace | None:
        """Return the law of the noise on the nodes of the trees."""
        return None if self.tree_scale is None else _law(self.tree_scale)

    def prepare(self) -> None:
        """Compute the tables for drawing the noise."""
        for law in (self.node_law, self.tree_law):
            if law is not None:
                law.prepare()

    def structure(self, size: int, block: int, fanout: int) -> RangeTree:
        """Return the structure of the measurements with the variances of their noise.

        Args:
            size: the number |T| of values.
            block: the number of values in a block.
            fanout: the fan-out of the trees.

        Returns:
            The structure.

        Raises:
            InputError: The arrays of the structure would exceed the memory limit.
        """
        require_room(size, "ranges")
        # Weights are inverse variances. If a kind of noise is not used, its variance is set to 1, which has no effect.
        laws = (self.node_law, self.tree_law)
        variances = [1.0 if law is None else max(law.variance, _LEAST_VARIANCE) for law in laws]
        return RangeTree(size, block, fanout, *variances)

    def half_widths(self, variances: Floats, counts: int, confidence: Fraction) -> Floats:
        """Return half-widths of the intervals around unbiased estimates.

        Without trees, an estimate is one noisy count or the difference of two noisy counts, and the half-width is
        exact. With trees, the error of an estimate is a weighted sum of independent Laplace variables. The half-width
        is 1.002 times the standard deviation, times the larger of the Laplace and normal quantiles for variance 1. It
        is not proven that the quantile of every weighted sum is smaller. In the worst case among those computed, two
        almost equal terms at the level 90.7 %, a factor of 1.0005 would suffice. The standard deviation is computed for
        continuous noise, and half a step is added because the noise is discrete.

        Args:
            variances: the variances of the estimates.
            counts: the number of noisy counts in an estimate, 1 or 2; with trees, this argument has no effect.
            confidence: the confidence level, in (0, 1).

        Returns:
            The half-widths, in the shape of the variances.
        """
        if self.tree_scale is None:
            law = self.node_law
            width = 0.0 if law is None else float(law.half_width(confidence))
            if law is not None and counts == 2:
                width = half_width_of_two(law, float(1 - confidence))
            return np.where(variances > 0, width, 0.0)
        outside = float(1 - confidence)
        factor = max(-math.log(outside) / math.sqrt(2), -NormalDist().inv_cdf(outside / 2)) * _MARGIN
        laws = [law for law in (self.node_law, self.tree_law) if law is not None]
        continuous = max(2 * float(law.scale) ** 2 / max(law.variance, _LEAST_VARIANCE) for law in laws)
        return np.where(variances > 0, factor * np.sqrt(variances * continuous) + 0.5, 0.0)


def interval_about(linear: Any, width: Any, answer: Any, records: int) -> tuple[Any, Any]:
    """Return the ends of the intervals linear ± width, clipped to possible counts and widened to contain the answer."""
    low = np.minimum(np.clip(linear - width, 0, records), answer)
    high = np.maximum(np.clip(linear + width, 0, records), answer)
    return low, high


def half_width_of_two(law: DiscreteLaplace, outside: float) -> float:
    """Return the least integer t with P(|X − Y| > t) <= outside for two independent draws of the law.

    The convolution is P(X − Y = k) = ((1−q)/(1+q))² q^k (k + c) for k >= 0, with c = (1+q²)/(1−q²). Summation gives
    P(|X − Y| > t) = 2((1−q)/(1+q))² q^(t+1) ((t + 1 + c)/(1−q) + q/(1−q)²).
    """
    rate = nearest(1 / law.scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)
    c = (1 + q * q) / (gap * (1 + q))

    def beyond(t: int) -> float:
        return 2 / (1 + q) ** 2 * math.exp(-rate * (t + 1)) * ((t + 1 + c) * gap + q)

    # The error probability is reduced slightly to allow for rounding errors.
    allowed = outside * (1 - 1e-9)
    low, high = -1, 1
    while beyond(high) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) > allowed else (low, middle)
    return float(high)


# Above this number of blocks the average error is nearly constant.
_BLOCKS = 64
# Shares of the budget are multiples of 2**-20.
_SHARES = 2**20
# Between these bounds all errors are representable as floats, and `DiscreteLaplace` accepts all scales.
_LEAST_EPSILON = Fraction(1, 10**6)
_LARGEST_EPSILON = 10**100
_LARGEST_FANOUT = 2**31
# A fan-out is skipped if its error without least squares exceeds this factor times the least such error.
_WORTH_A_LOOK = 2.0


@dataclass(frozen=True)
class RangePlan:
    """The parameters of the ordered hierarchical mechanism.

    Attributes:
        size: the number |T| of values.
        theta: θ.
        fanout: f, the largest number of children of a node.
        epsilon_nodes: ε_S, the budget of the cumulative counts at the ends of blocks; 0 for a single block.
        epsilon_tree: ε_H, the budget of the trees within blocks; 0 if θ = 1.

    >>> plan = RangePlan(8, 4, 2, Fraction(1, 2), Fraction(1, 2))
    >>> plan.levels, plan.noise.tree_scale
    (2, Fraction(8, 1))
    """

    size: int
    theta: int
    fanout: int
    epsilon_nodes: Fraction
    epsilon_tree: Fraction

    @property
    def levels(self) -> int:
        """Return the number h of measured levels of the trees."""
        return height(self.theta, self.fanout)

    @property
    def noise(self) -> RangeNoise:
        """Return the noise, with scale 1/ε_S on cumulative counts and scale 2h/ε_H on nodes of trees."""
        return RangeNoise(
            1 / self.epsilon_nodes if self.epsilon_nodes and self.size > self.theta else None,
            2 * self.levels / self.epsilon_tree if self.epsilon_tree else None,
        )

    @property
    def structure(self) -> RangeTree:
        """Return the structure of the measurements with the variances of their noise."""
        return self.noise.structure(self.size, self.theta, self.fanout)

    @property
    def error(self) -> float:
        """Return the expected squared error of the least squares answer to a range query, averaged over all ranges.

        The value is exact for the discrete noise. The isotonic regression that follows does not increase the total
        squared error of the cumulative counts.
        """
        return self.structure.mean_range_error()


@in_own_arithmetic
def budget_split(size: int, theta: int, fanout: int, *, epsilon: object) -> tuple[float, float, float]:
    """Return ε_S, ε_H and the expected squared error of the ordered hierarchical mechanism by a closed formula.

    The average squared error of a range query, without least squares, is about

        E = c₁/ε_S² + c₂/ε_H²,   c₁ = 4(|T| − θ)/(|T| + 1),   c₂ = 8(f − 1)(log_f θ)³ |T|/(|T| + 1)

    (Blowfish, He et al. 2014, Theorem 7.2). The minimum (c₁^⅓ + c₂^⅓)³/ε² is attained at ε_S = ε c₁^⅓/(c₁^⅓ + c₂^⅓) and
    ε_H = ε − ε_S.

    Args:
        size: the number |T| of values.
        theta: θ, from 1 to |T|.
        fanout: f, the fan-out of the trees, at least 2.
        epsilon: ε in nats.

    Returns:
        ε_S, ε_H and the expected squared error.

    Raises:
        InputError: An argument is out of range.

    >>> [round(number, 4) for number in budget_split(1024, 16, 4, epsilon=1)]
    [0.2149, 0.7851, 396.3685]
    """
    size, theta, fanout, budget = _check_arguments(size, theta, fanout, epsilon)
    c1 = 4 * (size - theta) / (size + 1)
    c2 = 8 * (fanout - 1) * math.log(theta, fanout) ** 3 * size / (size + 1)
    if size == 1:
        # The only count is the public number of records.
        return float(budget), 0.0, 0.0
    first, second = c1 ** (1 / 3), c2 ** (1 / 3)
    nodes = float(budget) * first / (first + second)
    return nodes, float(budget) - nodes, (first + second) ** 3 / float(budget) ** 2


@in_own_arithmetic
def choose_tree(size: int, theta: int, epsilon: object, *, fanout: int | None = None) -> RangePlan:
    """Choose the fan-out and the budget split of the ordered hierarchical mechanism with the least expected error.

    The error is the exact least squares error, averaged over all ranges. A domain of more than 64 blocks is
    approximated by a domain of 64 blocks.

    Args:
        size: the number |T| of values.
        theta: θ, from 1 to |T|.
        epsilon: ε in nats.
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.

    Returns:
        The plan.

    Raises:
        InputError: An argument is out of range.

    >>> choose_tree(16, 1, epsilon=1).epsilon_nodes
    Fraction(1, 1)
    """
    size, theta, given, budget = _check_arguments(size, theta, 2 if fanout is None else fanout, epsilon)
    if theta == 1 or size == 1:
        return RangePlan(size, theta, given, budget, Fraction(0))
    candidates = [given] if fanout is not None else _fanouts(theta)
    blocks = min(size, theta * _BLOCKS)

    def plan_with_share(f: int, share: float) -> RangePlan:
        part = Fraction(min(max(round(share * _SHARES), 1), _SHARES - 1), _SHARES) if size > theta else Fraction(0)
        return RangePlan(blocks, theta, f, budget * part, budget * (1 - part))

    def by_formula(f: int) -> RangePlan:
        nodes, tree, _ = budget_split(blocks, theta, f, epsilon=budget)
        return plan_with_share(f, nodes / (nodes + tree))

    best = candidates[0] if len(candidates) == 1 else min(candidates, key=lambda f: by_formula(f).error)
    found = by_formula(best)
    if size > theta:
        search = minimize_scalar(
            lambda share: plan_with_share(best, share).error,
            bounds=(0.01, 0.99),
            method="bounded",
            options={"xatol": 2e-3},
        )
        found = min(found, plan_with_share(best, float(search.x)), key=lambda plan: plan.error)
    return RangePlan(size, theta, best, found.epsilon_nodes, found.epsilon_tree)


def _fanouts(theta: int) -> list[int]:
    """Return the least fan-out for each height of the trees, without fan-outs whose errors are much larger."""
    errors = {}
    for levels in range(1, theta.bit_length() + 1):
        fanout = max(2, math.floor(theta ** (1 / levels)))
        while fanout**levels < theta:
            fanout += 1
        errors[fanout] = (fanout - 1) * height(theta, fanout) ** 3
    least = min(errors.values())
    return [fanout for fanout, error in errors.items() if error <= _WORTH_A_LOOK * least]


def _check_arguments(size: int, theta: int, fanout: int, epsilon: object) -> tuple[int, int, int, Fraction]:
    number = as_integer(size, "size", 1)
    threshold = as_integer(theta, "theta", 1, number)
    budget = exact(epsilon, "epsilon")
    if not _LEAST_EPSILON <= budget <= _LARGEST_EPSILON:
        problem = "is not positive" if budget <= 0 else "is out of range"
        raise InputError("epsilon", problem, value=exact_text(budget), bound="between 1e-6 and 1e100")
    return number, threshold, as_fanout(fanout), budget


def as_fanout(fanout: object) -> int:
    """Return a fan-out of trees; raise `InputError` if it is not an integer from 2 to the largest fan-out."""
    return as_integer(fanout, "fanout", 2, _LARGEST_FANOUT)
