"""Support queries: how far the lines of row pairs rise at one slope.

For an ordered pair of rows (q, d) and μ ≥ 0 the support function is E(μ) = Σ_j ((q_j − d_j) − μ d_j)₊. It is convex and
falls with μ; its straight parts are the lines G − μD of the pair's ratio-ordered prefixes. `mechdesign.leakage.hull`
asks for it at a few slopes and never looks at a prefix that no query met.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from mechdesign.leakage.lines import Line
from mechdesign.leakage.lines import line_of
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["LARGEST_SLOPE", "DensePairs", "Support"]

# Slopes beyond this are left alone: they matter from α = 690 on, for probabilities below 1e-300.
LARGEST_SLOPE = 1e300

# Bytes of a temporary array; it then stays within the cache of one core.
_CACHE = 1 << 19

# Above this share of all pairs it is faster to evaluate all of them than to pick.
_MANY = 0.15

# Below this share of columns that still count it is faster to pick those columns.
_FEW = 0.2

_ROUNDING_32 = 2.0**-24


class Support(Protocol):
    """Many support functions, numbered 0..count−1, each of a pair of rows or of several pairs."""

    count: int
    largest: float

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Return upper bounds of all support functions at `mu`, shape (count,), and whether they are the values.

        Bounds are close enough to tell which functions may rise above `height`.
        """

    def values(self, units: Integers, mu: float) -> Floats:
        """Return the support functions of `units` at `mu`, to a few roundings of G."""

    def gains(self, units: Integers, values: Floats, mu: float) -> Floats:
        """Return G of the lines of `units` at `mu`, where their values are `values`: what rounding is measured by."""

    def limits(self) -> Floats:
        """Return the support functions, shape (count,), beyond `largest`: Σ q_j where d_j = 0."""

    def line(self, unit: int, mu: float) -> Line:
        """Return the line on which the support function of `unit` lies at `mu`."""


class DensePairs:
    """All ordered pairs of the rows of a dense matrix, shape (m, n); pair i·m + j has q = row j and d = row i."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.count = len(rows) ** 2
        top, bottom = rows.max(axis=0), rows.min(axis=0)
        # Sums over what rows have beyond the least of each column keep nearly identical rows apart.
        self._excess = rows - bottom
        self._top = top - bottom
        with np.errstate(over="ignore", under="ignore"):
            ratios = top / np.where(rows > 0, rows, np.inf).min(axis=0)
        self.largest = min(float(ratios.max()), LARGEST_SLOPE)

    def _scaled(self, mu: float, which: Integers | slice = slice(None)) -> Floats:
        """Return (1 + μ) d less the least entry, clipped to the largest q of each column: beyond it nothing changes."""
        scaled = mu * self.rows[which]
        scaled += self._excess[which]
        np.minimum(scaled, self._top, out=scaled)
        return scaled

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Bound or evaluate all support functions; see `Support`."""
        scaled = self._scaled(mu)
        if 8 * self.rows.size * len(self.rows) <= _CACHE:
            heights = self._excess - scaled[:, None, :]
            np.maximum(heights, 0.0, out=heights)
            return heights.sum(axis=2).ravel(), True
        counting = scaled < self._top
        if np.count_nonzero(counting) < _FEW * counting.size:
            return self._by_columns(scaled, counting), True
        m, n = self.rows.shape
        # What a sum of n rounded numbers >= 0 may be off by in single precision, eight or more of them side by side.
        noise = (n / 8 + 32) * _ROUNDING_32 * float(self._excess.sum(axis=1).max())
        if noise > 1e-2 * height:
            return self._directly(scaled), True
        out = np.empty((m, m), dtype=np.float32)
        q32, d32, ones = self._excess.astype(np.float32), scaled.astype(np.float32), np.ones(n, dtype=np.float32)
        for block in _blocks(m, 4 * n):
            smaller = np.empty((block.stop - block.start, n), dtype=np.float32)
            for d in range(m):
                # Σ (q − λd)₊ = Σ q − Σ min(q, λd), and the last sum is fast.
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
            return self._directly(self._scaled(mu))[units]
        m, n = self.rows.shape
        d_rows, place = units // m, np.arange(len(units))
        if len(units) > m:
            # Otherwise finding rows that occur twice costs more than it saves.
            d_rows, place = np.unique(d_rows, return_inverse=True)
        scaled = self._scaled(mu, d_rows)
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
            above = self._excess.take(q_rows[block], axis=0) > self._scaled(mu, d_rows[block])
            out[block] = np.einsum("ij,ij->i", d, above)
        return values + mu * out

    def limits(self) -> Floats:
        """Return the support functions where only d_j = 0 counts; see `Support`."""
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
