"""Integrals of exp(-(a + b)) over convex pieces of the quadrant a, b >= 0, bounded or not.

Pieces are polygons in homogeneous coordinates (a, b, w): w = 1 is the point (a, b), w = 0 the point at infinity in the
direction (a, b), and then a + b = 1. A polygon may repeat a vertex, which changes nothing; so arrays of shape
(N, V, 3) hold N polygons of at most V corners each. A half-plane (p, q, r) is p·a + q·b <= r; at infinity it keeps
the directions with p·a + q·b <= 0.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["clip", "exponential_difference", "integrate", "quadrants"]


_ROUNDING = 2.0**-50

# Terms of the series of `_second_difference` for arguments below 1: the next is below 2**-53 of the sum.
_TERMS = 19


def quadrants(count: int) -> Floats:
    """Return `count` times the whole quadrant: the origin and the points at infinity of both axes."""
    quadrant = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return np.broadcast_to(quadrant, (count, 3, 3))


def clip(polygons: Floats, halfplanes: Floats) -> tuple[Floats, Integers]:
    """Cut each polygon (N, V, 3) with its half-plane (N, 3); return what has an interior left, and its indices."""
    p, q, r = (halfplanes[:, None, axis] for axis in range(3))
    terms = (r * polygons[..., 2], p * polygons[..., 0], q * polygons[..., 1])
    value = terms[0] - terms[1] - terms[2]
    # At infinity what counts is the angle between the direction and the line.
    slope = np.where(polygons[..., 2] > 0, 0.0, np.maximum(np.abs(p), np.abs(q)))
    value[np.abs(value) <= _ROUNDING * np.maximum.reduce([slope, *(np.abs(term) for term in terms)])] = 0.0
    kept = np.flatnonzero((value > 0).any(axis=1))
    polygons, value = polygons[kept], value[kept]
    cut = (value < 0).any(axis=1)
    if not cut.any():
        return polygons, kept
    corners = _cut(polygons[cut], value[cut])
    result = np.empty((len(kept), max(corners.shape[1], polygons.shape[1]), 3))
    for place, part in ((cut, corners), (~cut, polygons[~cut])):
        result[place, : part.shape[1]] = part
        result[place, part.shape[1] :] = part[:, :1]
    return result, kept


def _cut(polygons: Floats, value: Floats) -> Floats:
    """Keep the corners where `value` >= 0 and add one wherever its sign changes along a side."""
    following, later = np.roll(polygons, -1, axis=1), np.roll(value, -1, axis=1)
    crosses = value * later < 0
    # Both weights are positive: nothing cancels.
    weight, other = np.abs(later)[..., None], np.abs(value)[..., None]
    crossing = weight * polygons + other * following
    scale = np.where(crossing[..., 2] > 0, crossing[..., 2], crossing[..., 0] + crossing[..., 1])
    crossing /= np.where(crosses, scale, 1.0)[..., None]
    crossing[crossing[..., 2] > 0, 2] = 1.0
    n, v = value.shape
    candidates = np.stack((polygons, crossing), axis=2).reshape(n, 2 * v, 3)
    used = np.stack((value >= 0, crosses), axis=2).reshape(n, 2 * v)
    place = np.cumsum(used, axis=1) - 1
    first = candidates[np.arange(n), used.argmax(axis=1)]
    result = np.repeat(first[:, None], int(place.max()) + 1, axis=1)
    rows, columns = np.nonzero(used)
    result[rows, place[rows, columns]] = candidates[rows, columns]
    return result


def integrate(polygons: Floats) -> Floats:
    """Return the integrals (N,) of exp(-(a + b)) over polygons (N, V, 3), all terms positive.

    A fan of triangles from the first corner: on a triangle with finite corners the integral is twice its area times
    the second divided difference of exp at minus the three values of a + b; as corners go to infinity it tends to the
    determinant of the homogeneous corners times the divided difference of those that are left.
    """
    total = np.zeros(len(polygons))
    for corner in range(1, polygons.shape[1] - 1):
        triangles = np.stack((polygons[:, 0], polygons[:, corner], polygons[:, corner + 1]), axis=1)
        order = np.argsort(-triangles[..., 2], axis=1, kind="stable")
        triangles = np.take_along_axis(triangles, order[..., None], axis=1)
        apex = triangles[:, :1, :2]
        sides = triangles[:, 1:, :2] - triangles[:, 1:, 2:] * apex
        area = np.abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0])
        heights = triangles[..., 0] + triangles[..., 1]
        finite = triangles[..., 2].sum(axis=1).astype(np.int64)
        for number, difference in ((1, _value), (2, _first_difference), (3, _second_difference)):
            chosen = np.flatnonzero((finite == number) & (area > 0))
            total[chosen] += area[chosen] * difference(np.sort(heights[chosen, :number], axis=1))
    return total


def exponential_difference(u: Floats) -> Floats:
    """Return (1 - exp(-u)) / u for u >= 0, which is 1 at 0."""
    safe = np.where(u > 0, u, 1.0)
    result: Floats = np.where(u > 0, -np.expm1(-safe) / safe, 1.0)
    return result


def _value(heights: Floats) -> Floats:
    result: Floats = np.exp(-heights[:, 0])
    return result


def _first_difference(heights: Floats) -> Floats:
    """Return ∫ exp(-h) over a segment of length 1 on which h goes linearly between two heights, sorted."""
    result: Floats = np.exp(-heights[:, 0]) * exponential_difference(heights[:, 1] - heights[:, 0])
    return result


def _second_difference(heights: Floats) -> Floats:
    """Return half the mean of exp(-h) over a triangle on which h is linear, from its corners' heights, sorted.

    With u <= v the two larger heights above the least and E the first difference it is exp(-least) times
    (E(u) - exp(-u) E(v - u)) / v, which loses at most two bits where v >= 1, and Σ_n (-1)^n h_n(u, v) / (n + 2)!,
    h_n = Σ_i u^i v^(n-i), where v < 1.
    """
    u, v = heights[:, 1] - heights[:, 0], heights[:, 2] - heights[:, 0]
    result = np.empty(len(u))
    far = v >= 1
    if far.any():
        near, wide = u[far], v[far]
        result[far] = (exponential_difference(near) - np.exp(-near) * exponential_difference(wide - near)) / wide
    near, wide = u[~far], v[~far]
    symmetric, power, factorial, series = np.ones(len(near)), np.ones(len(near)), 2.0, np.full(len(near), 0.5)
    for n in range(1, _TERMS):
        power = -power * near
        symmetric = power - wide * symmetric
        factorial *= n + 2
        series += symmetric / factorial
    result[~far] = series
    result *= np.exp(-heights[:, 0])
    return result
