"""Support functions of pairs of rows, and their upper envelope.

For an ordered pair of rows (q, d) and μ ≥ 0 the support function is E(μ) = Σ_j ((q_j − d_j) − μ d_j)₊. E is convex and
falls with μ. The straight parts of E are the lines G − μD of the prefixes of columns ordered by q_j/d_j. `envelope`
evaluates E at a few slopes μ only.

The envelope h(μ) is the highest line G − μD at μ. The envelope meets the line μ/(e^α − 1) at μ = e^L − 1. Therefore the
lines of the envelope are the pieces of the loss function for every α. A prefix point (D, Q) of a pair is a point of its
ROC curve. The envelope is dual to the upper-left convex hull of all prefix points.

The search starts from two known lines and evaluates the support functions at their crossing. If no line rises above the
crossing, no further line of the envelope lies between these two lines, because the envelope is convex. Otherwise the
highest line at the crossing splits the interval. A pair is dropped from an interval if the chord of its support
function stays below the crossing of the lines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, Integers


class Line(NamedTuple):
    """The line G − μD of a set of columns of two rows q and d.

    Each value is a sum that is rounded once. Therefore G is accurate for nearly equal rows, and 1 − Q for nearly
    disjoint rows.

    Attributes:
        G: Sum of q_j − d_j over the set.
        D: Sum of d_j over the set.
        rest: 1 − Q, the sum of q_j outside the set.

    >>> Line(0.5, 0.25, 0.25).at(1.0)
    0.25
    """

    G: float
    D: float
    rest: float

    def at(self, mu: float) -> float:
        """Return the height of the line.

        Args:
            mu: The slope μ ≥ 0.

        Returns:
            G − μD.
        """
        return self.G - mu * self.D


def line_of(q: Floats, d: Floats, mu: float) -> Line:
    """Return the line of the columns with q_j − d_j > μ d_j, or with d_j = 0 for μ = inf.

    `q` and `d` have shape (n,). The line touches the support function of the pair at `mu`.
    """
    inside = (d == 0) & (q > 0) if math.isinf(mu) else (q - d) - mu * d > 0
    chosen_q, chosen_d = q[inside], d[inside]
    return Line(
        math.fsum(np.concatenate([chosen_q, -chosen_d]).tolist()),
        math.fsum(chosen_d.tolist()),
        math.fsum(q[~inside].tolist()),
    )


def are_pieces(lines: Sequence[Line]) -> bool:
    """Return whether lines may belong to a loss function: all values are probabilities, and G and D fall."""
    within = all(0 <= value <= 1 + 1e-9 for line in lines for value in line)
    return bool(lines) and within and all(a.G > b.G and a.D > b.D for a, b in itertools.pairwise(lines))


# Larger slopes are ignored: they matter only for α > 690 and probabilities below 1e-300.
LARGEST_SLOPE = 1e300

# Bytes of a temporary array that fits the cache of one core.
_CACHE = 1 << 19

# If more than this share of all pairs is needed, it is faster to evaluate all pairs.
_MANY = 0.15

# If less than this share of the columns is nonzero, it is faster to select these columns.
_FEW = 0.2

_ROUNDING_32 = 2.0**-24


class Support(Protocol):
    """Several support functions, numbered 0..count−1, each of one pair of rows or the maximum over several pairs."""

    count: int
    largest: float

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Return upper bounds of all support functions at `mu`, shape (count,), and whether they are exact values.

        The bounds are close enough to find the functions that may rise above `height`.
        """

    def values(self, units: Integers, mu: float) -> Floats:
        """Return the support functions of `units` at `mu`, accurate to a few roundings of G."""

    def gains(self, units: Integers, values: Floats, mu: float) -> Floats:
        """Return G of the lines of `units`, whose values at `mu` are `values`; rounding errors grow with G."""

    def limits(self) -> Floats:
        """Return the support functions for slopes above `largest`, shape (count,): Σ q_j over d_j = 0."""

    def line(self, unit: int, mu: float) -> Line:
        """Return a line that touches the support function of `unit` at `mu`."""


class DensePairs:
    """All ordered pairs of the rows of a dense matrix, shape (m, n); pair i·m + j has q = row j and d = row i."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.count = len(rows) ** 2
        top, bottom = rows.max(axis=0), rows.min(axis=0)
        # Subtracting the least entry of each column keeps precision for nearly identical rows.
        self._excess = rows - bottom
        self._top = top - bottom
        with np.errstate(over="ignore", under="ignore"):
            ratios = top / np.where(rows > 0, rows, np.inf).min(axis=0)
        self.largest = min(float(ratios.max()), LARGEST_SLOPE)

    def _scale_rows(self, mu: float, which: Integers | slice = slice(None)) -> Floats:
        """Return (1 + μ) d minus the least entry of each column, capped at the largest q of the column."""
        scaled = mu * self.rows[which]
        scaled += self._excess[which]
        np.minimum(scaled, self._top, out=scaled)
        return scaled

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Bound or evaluate all support functions; see `Support`."""
        scaled = self._scale_rows(mu)
        if 8 * self.rows.size * len(self.rows) <= _CACHE:
            heights = self._excess - scaled[:, None, :]
            np.maximum(heights, 0.0, out=heights)
            return heights.sum(axis=2).ravel(), True
        counting = scaled < self._top
        if np.count_nonzero(counting) < _FEW * counting.size:
            return self._by_columns(scaled, counting), True
        m, n = self.rows.shape
        # Error bound of a sum of n nonnegative numbers in single precision, in eight or more partial sums.
        noise = (n / 8 + 32) * _ROUNDING_32 * float(self._excess.sum(axis=1).max())
        if noise > 1e-2 * height:
            return self._directly(scaled), True
        out = np.empty((m, m), dtype=np.float32)
        q32, d32, ones = self._excess.astype(np.float32), scaled.astype(np.float32), np.ones(n, dtype=np.float32)
        for block in _blocks(m, 4 * n):
            smaller = np.empty((block.stop - block.start, n), dtype=np.float32)
            for d in range(m):
                # Σ (q − λd)₊ = Σ q − Σ min(q, λd); the last sum is fast.
                np.minimum(q32[block], d32[d], out=smaller)
                np.dot(smaller, ones, out=out[d, block])
        bounds = self._excess.sum(axis=1) - out
        bounds += noise
        return bounds.ravel(), False

    def _by_columns(self, scaled: Floats, counting: np.ndarray) -> Floats:
        columns = np.ascontiguousarray(self._excess.T)
        out = np.zeros((len(scaled), len(scaled)))
        for d, (values, which) in enumerate(zip(scaled, counting, strict=True)):
            chosen = np.flatnonzero(which)
            heights = columns[chosen]
            heights -= values[chosen, None]
            np.maximum(heights, 0.0, out=heights)
            heights.sum(axis=0, out=out[d])
        return out.ravel()

    def _directly(self, scaled: Floats) -> Floats:
        m, n = self.rows.shape
        out = np.empty((m, m))
        for block in _blocks(m, 8 * n):
            heights = np.empty((block.stop - block.start, n))
            for d in range(m):
                np.subtract(self._excess[block], scaled[d], out=heights)
                np.maximum(heights, 0.0, out=heights)
                heights.sum(axis=1, out=out[d, block])
        return out.ravel()

    def values(self, units: Integers, mu: float) -> Floats:
        """Evaluate the support functions of `units`; see `Support`."""
        if len(units) > _MANY * self.count:
            return self._directly(self._scale_rows(mu))[units]
        m, n = self.rows.shape
        d_rows, place = units // m, np.arange(len(units))
        if len(units) > m:
            # For fewer units, finding repeated rows costs more than it saves.
            d_rows, place = np.unique(d_rows, return_inverse=True)
        scaled = self._scale_rows(mu, d_rows)
        q_rows = units % m
        out = np.empty(len(units))
        for block in _blocks(len(units), 8 * n):
            heights = self._excess.take(q_rows[block], axis=0)
            heights -= scaled.take(place[block], axis=0)
            np.maximum(heights, 0.0, out=heights)
            heights.sum(axis=1, out=out[block])
        return out

    def gains(self, units: Integers, values: Floats, mu: float) -> Floats:
        """Return G at `mu`; see `Support`."""
        m, n = self.rows.shape
        q_rows, d_rows = units % m, units // m
        out = np.empty(len(units))
        for block in _blocks(len(units), 8 * n):
            d = self.rows.take(d_rows[block], axis=0)
            above = self._excess.take(q_rows[block], axis=0) > self._scale_rows(mu, d_rows[block])
            out[block] = np.einsum("ij,ij->i", d, above)
        return values + mu * out

    def limits(self) -> Floats:
        """Return the support functions with the columns d_j = 0 only; see `Support`."""
        if (self.rows > 0).all():
            return np.zeros(self.count)
        limits: Floats = ((self.rows == 0).astype(np.float64) @ self.rows.T).ravel()
        return limits

    def line(self, unit: int, mu: float) -> Line:
        """Return a line that touches at `mu`; see `Support`."""
        d, q = divmod(unit, len(self.rows))
        return line_of(self.rows[q], self.rows[d], mu)


def _blocks(count: int, bytes_each: int) -> Iterator[slice]:
    step = max(1, _CACHE // bytes_each)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


# A line counts as higher if it exceeds the crossing by more than this share of its G, a bound of its rounding error.
# Omitting a line with a smaller excess changes L by a relative 1e-14 at most.
_RISE = 5e-15

# If more than this share of all units remains, queries are expensive, and wide intervals are split at the geometric
# mean.
_MANY_LINES = 0.02
_WIDE = 64.0

# Values of G with a smaller relative difference are equal up to rounding.
_SAME = 2.0**-51

_BATCH = 64
_MOST = 4096


@dataclass
class _Interval:
    """The slopes from a to b, the highest lines at a and at b, and the units that may rise above both lines.

    `left` is the highest line at a, and `right` is the highest line at b. `at_a` and `at_b` contain an upper bound of
    each unit's support function at a and at b.
    """

    a: float
    b: float
    left: Line
    right: Line
    units: Integers
    at_a: Floats
    at_b: Floats


def envelope(support: Support) -> list[Line]:
    """Return the lines of the envelope, by falling D; only the line (0, 0, 1) if all rows are equal.

    Every line belongs to a set of columns of a pair of rows. No other set of columns exceeds the lines by more than a
    relative 1e-14. In case of ties, a line may be missing, or a line may be kept that is nowhere strictly highest.
    """
    units = np.arange(support.count)
    at_zero, exact = support.screen(0.0, 1.0)
    first = _highest(support, units, at_zero, exact, 0.0, 0.0)
    if first is None:
        return [Line(0.0, 0.0, 1.0)]
    limits = support.limits()
    last = support.line(int(np.argmax(limits)), math.inf)
    found = {first, last} if last.G > 0 else {first}
    stack = [_Interval(0.0, support.largest, first, last, units, at_zero, limits)]
    while stack:
        now = stack.pop()
        fall = now.left.D - now.right.D
        crossing = (now.left.G - now.right.G) / fall if fall > 0 else now.a
        if not now.a < crossing < now.b:
            continue
        now = _able(now, crossing)
        if not len(now.units):
            continue
        x = crossing
        if len(now.units) > _MANY_LINES * support.count and now.b > _WIDE * max(now.a, 1.0):
            x = math.sqrt(max(now.a, 1.0)) * math.sqrt(now.b)
        best, at_x = _query(support, now, x)
        if best is None:
            if x == crossing:
                continue
            best = now.left if x < crossing else now.right
        found.add(best)
        stack.append(_Interval(x, now.b, best, now.right, now.units, at_x, now.at_b))
        stack.append(_Interval(now.a, x, now.left, best, now.units, now.at_a, at_x))
    return _remove_dominated(found)


def _height(now: _Interval, x: float) -> float:
    return max(now.left.at(x), now.right.at(x), 0.0)


def _able(now: _Interval, crossing: float) -> _Interval:
    """Return the interval with the units whose chord rises above the crossing of its lines.

    A lower chord stays below one of the two lines everywhere, because it does not exceed them at a and b.
    """
    share = (now.b - crossing) / (now.b - now.a)
    able = np.flatnonzero(share * now.at_a + (1.0 - share) * now.at_b > _height(now, crossing) * (1.0 + _RISE))
    if len(able) > 0.5 * len(now.units):
        # Copying would cost more than it saves.
        return now
    return _Interval(now.a, now.b, now.left, now.right, now.units[able], now.at_a[able], now.at_b[able])


def _query(support: Support, now: _Interval, x: float) -> tuple[Line | None, Floats]:
    """Return the highest line at x if it exceeds the known lines, and the units' values or upper bounds at x."""
    height = _height(now, x)
    if len(now.units) > 0.15 * support.count:
        at_x, exact = support.screen(x, height)
        if len(now.units) < support.count:
            at_x = at_x[now.units]
    else:
        at_x, exact = support.values(now.units, x), True
    return _highest(support, now.units, at_x, exact, x, height), at_x


def _highest(support: Support, units: Integers, values: Floats, exact: bool, x: float, height: float) -> Line | None:
    """Return the highest line at x above `height`, or None; replace bounds in `values` by exact values as needed."""
    if not exact:
        # Evaluate the most promising units first, then all other units that may be higher.
        several = min(_BATCH, len(units))
        promising = np.argpartition(values, -several)[-several:]
        values[promising] = support.values(units[promising], x)
        done = np.zeros(len(units), dtype=bool)
        done[promising] = True
        for floor in (max(height, float(values[promising].max())), height):
            rest = np.flatnonzero((values > floor) & ~done)
            values[rest] = support.values(units[rest], x)
            done[rest] = True
            place = _rising(support, units, values, np.flatnonzero(done & (values > height)), x, height)
            if place is not None:
                break
    else:
        place = _rising(support, units, values, np.flatnonzero(values > height * (1.0 + _RISE)), x, height)
    if place is None:
        return None
    line = support.line(int(units[place]), x)
    return line if line.at(x) > height else None


def _rising(support: Support, units: Integers, values: Floats, among: Integers, x: float, height: float) -> int | None:
    """Return the index of the highest unit of `among` that exceeds `height` by more than rounding, or None."""
    if len(among) > _BATCH:
        # Usually one of the highest units rises; with many ties, all must be checked.
        top = np.argpartition(values[among], -_BATCH)[-_BATCH:]
        place = _rising(support, units, values, among[top], x, height)
        if place is not None:
            return place
        among = np.delete(among, top)
    while len(among):
        now, among = among[:_MOST], among[_MOST:]
        rising = now[values[now] > height + _RISE * support.gains(units[now], values[now], x)]
        if len(rising):
            return int(rising[np.argmax(values[rising])])
    return None


def _remove_dominated(lines: set[Line]) -> list[Line]:
    """Return the lines by falling D, without lines that have both a larger D and no larger G than another line."""
    kept: list[Line] = []
    for line in sorted(lines, key=lambda line: (line.D, -line.G)):
        if not kept or line.G > kept[-1].G * (1.0 + _SAME):
            kept.append(line)
    return kept[::-1]


class SparseRows:
    """The m support functions of a sparse matrix: for each row d, the maximum of E_qd(μ) over all rows q.

    E_qd(μ) = Σ q − Σ_j min(q_j, (1 + μ) d_j), and the second sum runs over the columns that both rows have. A query of
    all units takes time proportional to the number of entries that pairs of rows share, and memory proportional to m. A
    column with entries in all m rows costs m² steps. The absolute error of the values is about 1e-15.
    """

    def __init__(self, rows: sparse.csr_array) -> None:
        self.rows = rows
        self.count = rows.shape[0]
        self._columns = rows.tocsc()
        self._sums = np.asarray(rows.sum(axis=1)).ravel()
        largest = 1.0
        for column in range(rows.shape[1]):
            entries = self._columns.data[self._columns.indptr[column] : self._columns.indptr[column + 1]]
            if len(entries):
                largest = max(largest, float(entries.max() / entries.min()))
        self.largest = min(largest, LARGEST_SLOPE)

    def _heights(self, unit: int, mu: float) -> Floats:
        """Return E_qd(μ) for all q, with d = row `unit`."""
        shared = np.zeros(self.count)
        columns = self._columns
        for place in range(self.rows.indptr[unit], self.rows.indptr[unit + 1]):
            column = self.rows.indices[place]
            part = slice(columns.indptr[column], columns.indptr[column + 1])
            if np.isinf(mu):
                shared[columns.indices[part]] += columns.data[part]
            else:
                shared[columns.indices[part]] += np.minimum(columns.data[part], (1.0 + mu) * self.rows.data[place])
        return self._sums - shared

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Bound or evaluate all support functions; see `Support`."""
        return self.values(np.arange(self.count), mu), True

    def values(self, units: Integers, mu: float) -> Floats:
        """Evaluate the support functions of `units`; see `Support`."""
        return np.array([self._heights(unit, mu).max() for unit in units.tolist()])

    def gains(self, units: Integers, values: Floats, mu: float) -> Floats:
        """Return G at `mu`; see `Support`."""
        # Values are sums over whole rows, so their rounding errors correspond to G = 1.
        return np.ones(len(units))

    def limits(self) -> Floats:
        """Return the support functions with the columns d_j = 0 only; see `Support`."""
        return self.values(np.arange(self.count), np.inf)

    def line(self, unit: int, mu: float) -> Line:
        """Return a line that touches at `mu`; see `Support`."""
        q = int(np.argmax(self._heights(unit, mu)))
        return line_of(self.rows[[q]].toarray()[0], self.rows[[unit]].toarray()[0], mu)
