"""The upper envelope of the lines of all pairs of rows, built from few support queries.

e^L − 1 = μ where the envelope h(μ), the highest line G − μD at μ, meets μ/(e^α − 1): the lines of the envelope are the
pieces of the loss function, whatever α. A prefix point (D, Q) of a pair is a point of its ROC curve; the envelope is
dual to the upper-left convex hull of all of them.

Two known lines cross somewhere. If no line rises above the crossing, no line rises above the two between the points
where each of them is the highest, because the envelope is convex; otherwise the highest line there splits the interval.
A pair whose chord between the ends of an interval stays below the crossing is never asked again within it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.leakage.lines import Line
from mechdesign.leakage.support import Support
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["envelope"]

# A line rises when it does so by more than this share of its own G, which is what its sum may be rounded by. Leaving
# out a line that rises less changes L by a relative 1e-14 at most: it is the highest over no longer stretch.
_RISE = 5e-15

# While more than this share of all units is in play, queries are dear, and wide intervals are halved geometrically.
_MANY = 0.02
_WIDE = 64.0

# Two G that differ by less are one G, rounded in two ways.
_SAME = 2.0**-51

_BATCH = 64
_MOST = 4096


@dataclass
class _Interval:
    """The slopes from a to b, where `left` and `right` are highest, and the units that may rise between.

    `at_a` and `at_b` are upper bounds of the units' support functions at the ends, of the shape of `units`.
    """

    a: float
    b: float
    left: Line
    right: Line
    units: Integers
    at_a: Floats
    at_b: Floats


def envelope(support: Support) -> list[Line]:
    """Return the lines of the envelope, by falling D; the only line (0, 0, 1) when all rows are equal.

    Every line is that of a set of columns of a pair of rows, and no set of columns of any pair gives more than a
    relative 1e-14 beyond them. Ties may leave a line out or keep one that is nowhere strictly highest.
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
        if len(now.units) > _MANY * support.count and now.b > _WIDE * max(now.a, 1.0):
            x = math.sqrt(max(now.a, 1.0)) * math.sqrt(now.b)
        best, at_x = _query(support, now, x)
        if best is None:
            if x == crossing:
                continue
            best = now.left if x < crossing else now.right
        found.add(best)
        stack.append(_Interval(x, now.b, best, now.right, now.units, at_x, now.at_b))
        stack.append(_Interval(now.a, x, now.left, best, now.units, now.at_a, at_x))
    return _sorted_out(found)


def _height(now: _Interval, x: float) -> float:
    return max(now.left.at(x), now.right.at(x), 0.0)


def _able(now: _Interval, crossing: float) -> _Interval:
    """Return the interval with the units whose chord rises above the crossing of its lines.

    A chord that stays below there stays below one of the two lines everywhere, because it does so at a and b.
    """
    share = (now.b - crossing) / (now.b - now.a)
    able = np.flatnonzero(share * now.at_a + (1.0 - share) * now.at_b > _height(now, crossing) * (1.0 + _RISE))
    if len(able) > 0.5 * len(now.units):
        # Copies would cost more memory than they save work.
        return now
    return _Interval(now.a, now.b, now.left, now.right, now.units[able], now.at_a[able], now.at_b[able])


def _query(support: Support, now: _Interval, x: float) -> tuple[Line | None, Floats]:
    """Return the highest line at x if it rises above the known ones, and the units' values or upper bounds there."""
    height = _height(now, x)
    if len(now.units) > 0.15 * support.count:
        at_x, exact = support.screen(x, height)
        if len(now.units) < support.count:
            at_x = at_x[now.units]
    else:
        at_x, exact = support.values(now.units, x), True
    return _highest(support, now.units, at_x, exact, x, height), at_x


def _highest(support: Support, units: Integers, values: Floats, exact: bool, x: float, height: float) -> Line | None:
    """Return the highest line at x that rises above `height`, or None; make `values` exact where that was needed."""
    if not exact:
        # Look at the most promising units, then at all others that may still be higher.
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
    """Return which of the units `among` is the highest of those that rise by more than rounding, if any."""
    if len(among) > _BATCH:
        # Nearly always one of the highest rises; where many are tied, all have to be looked at.
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


def _sorted_out(lines: set[Line]) -> list[Line]:
    """Return the lines by falling D, without those that another with no larger D equals or exceeds in G."""
    kept: list[Line] = []
    for line in sorted(lines, key=lambda line: (line.D, -line.G)):
        if not kept or line.G > kept[-1].G * (1.0 + _SAME):
            kept.append(line)
    return kept[::-1]
