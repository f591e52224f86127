"""Voronoi cells and integrals over them.

The section of a Voronoi diagram by an affine subspace is a power diagram. Let y_i be the projection of site i onto the
subspace, and h_i its squared distance from the subspace. The cell of site i is the set of points z for which
|z - y_i|² + h_i is least. If several sites are equally near, the site with the lowest index owns the point. Distances
are equal if their relative difference is below `ROUNDING`.

Polygons have homogeneous coordinates (a, b, w). The point (a, b) has w = 1. The point at infinity in the direction
(a, b) has w = 0 and a + b = 1. A polygon may repeat a corner, so an array of shape (N, V, 3) contains N polygons of
at most V corners. A half-plane (p, q, r) is the set p·a + q·b <= r. The points at infinity of the half-plane are the
directions with p·a + q·b <= 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mechdesign.base._arrays import Floats, Integers
from mechdesign.model._claims import label_components

ROUNDING = 1e-12

# Sites are collinear if their distances from a line, relative to their extent along it, are below this bound.
_COLLINEAR = 1e-9

# The number of floats in the temporary arrays of one step of `nearest`.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class PlaneDiagram:
    """A power diagram of the plane: sites (m, 2), squared heights (m,), and the neighbours of each cell.

    `owners` are the sites with nonempty cells, sorted by decreasing number of neighbours. A row of `neighbours` lists
    the sites whose cells share a side with the cell of an owner, padded with -1.
    """

    sites: Floats
    heights: Floats
    owners: Integers
    neighbours: Integers


@dataclass(frozen=True, eq=False)
class Rectangles:
    """The Voronoi diagram of sites that form a grid: each pair of a column and a row has a rectangle.

    `columns` and `rows` contain the boundaries between neighbouring columns and rows, preceded by -inf and followed by
    inf. `column` and `row`, shape (m,), are the indices of the column and the row of each site.
    """

    columns: Floats
    rows: Floats
    column: Integers
    row: Integers


def nearest(places: Floats, sites: Floats) -> Integers:
    """Return, for each place (n, d), the index of the nearest of the sites (m, d); in ties, the lowest index."""
    result = np.empty(len(places), dtype=np.int64)
    step = max(1, _BLOCK // sites.size)
    for start in range(0, len(places), step):
        difference = places[start : start + step, None] - sites
        squares = (difference**2).sum(axis=2)
        # The second term of `noise` covers the rounding errors of coordinates far from the origin.
        least = squares.min(axis=1, keepdims=True)
        noise = ROUNDING * (least + np.sqrt(least) * np.abs(sites).max())
        result[start : start + step] = (squares <= least + noise).argmax(axis=1)
    return result


def line_diagram(sites: Floats, heights: Floats) -> tuple[Integers, Floats]:
    """Return the sites that own a piece of the line, from left to right, and the boundaries between them.

    `sites` (m,) are positions along the line, and `heights` (m,) are squared distances from the line. The squared
    distance of a site is a linear function of the position, up to a term common to all sites. The slope of this
    function is minus twice the position of the site, and the lower envelope of all functions gives the pieces.
    """
    extent = float(np.sqrt(np.ptp(sites) ** 2 + heights.max()))
    order = np.argsort(sites, kind="stable")
    group = np.concatenate(([0], np.cumsum(np.diff(sites[order]) > ROUNDING * extent)))
    least = np.full(group[-1] + 1, np.inf)
    np.minimum.at(least, group, heights[order])
    lowest = heights[order] <= least[group] + ROUNDING * extent**2
    first = np.full(len(least), len(sites))
    np.minimum.at(first, group[lowest], order[lowest])
    owners: list[int] = []
    boundaries: list[float] = []
    position, height = sites.tolist(), heights.tolist()
    for site in first.tolist():
        while owners:
            other = owners[-1]
            gap = position[site] - position[other]
            boundary = (position[site] + position[other]) / 2 + (height[site] - height[other]) / (2 * gap)
            # A piece as short as a rounding error is dropped, since its mass would depend on rounding.
            if len(owners) > 1 and boundary <= boundaries[-1] + ROUNDING * extent:
                owners.pop()
                boundaries.pop()
                continue
            boundaries.append(boundary)
            break
        owners.append(site)
    return np.array(owners), np.array(boundaries)


def plane_diagram(sites: Floats, heights: Floats) -> PlaneDiagram:
    """Return the power diagram of sites (m, 2) at squared heights (m,).

    Neighbours are joined by an edge of the lower hull of the sites lifted to |y|² + h. Collinear sites are neighbours
    if they are adjacent on their line. If Qhull fails, all sites are treated as neighbours.
    """
    distinct = _distinct(sites, heights)
    try:
        pairs = _neighbours(sites[distinct], heights[distinct])
    except QhullError:
        return all_pairs(sites, heights)
    return _diagram(sites, heights, distinct[pairs], distinct)


def all_pairs(sites: Floats, heights: Floats) -> PlaneDiagram:
    """Return the power diagram in which all sites are treated as neighbours, which is slow but always correct."""
    distinct = _distinct(sites, heights)
    return _diagram(sites, heights, distinct[np.column_stack(np.triu_indices(len(distinct), 1))], distinct)


def rectangles(sites: Floats) -> Rectangles | None:
    """Return the Voronoi diagram of sites (m, 2) if they form a full grid of columns and rows, otherwise None."""
    axes, places = [], []
    tolerance = ROUNDING * float(np.ptp(sites, axis=0).max())
    for coordinate in sites.T:
        order = np.argsort(coordinate, kind="stable")
        group = np.concatenate(([0], np.cumsum(np.diff(coordinate[order]) > tolerance)))
        place = np.empty(len(sites), dtype=np.int64)
        place[order] = group
        axes.append(coordinate[order][np.concatenate(([True], np.diff(group) > 0))])
        places.append(place)
    if len(axes[0]) * len(axes[1]) != len(sites):
        return None
    if len(np.unique(places[0] * len(axes[1]) + places[1])) != len(sites):
        return None
    columns, rows = (np.concatenate(([-np.inf], (axis[1:] + axis[:-1]) / 2, [np.inf])) for axis in axes)
    return Rectangles(columns, rows, places[0], places[1])


def _distinct(sites: Floats, heights: Floats) -> Integers:
    """Return the indices of distinct sites; of sites with equal projections, only the site of least height is kept."""
    extent = float(np.sqrt((np.ptp(sites, axis=0) ** 2).sum() + heights.max()))
    pairs = cKDTree(sites).query_pairs(ROUNDING * extent, output_type="ndarray")
    group = label_components(len(sites), pairs)
    least = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(least, group, heights)
    lowest = np.flatnonzero(heights <= least[group] + ROUNDING * extent**2)
    return lowest[np.unique(group[lowest], return_index=True)[1]]


def _neighbours(sites: Floats, heights: Floats) -> Integers:
    """Return pairs (k, 2) of sites whose cells touch, including all pairs that share a side."""
    if len(sites) == 1:
        return np.zeros((0, 2), dtype=np.int64)
    centred = sites - sites.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    if len(sites) == 2 or lengths[1] <= _COLLINEAR * lengths[0]:
        owners, _ = line_diagram(centred @ directions[0], heights)
        return np.column_stack((owners[:-1], owners[1:]))
    scale = float(np.abs(centred).max())
    centred /= scale
    lifted = (centred**2).sum(axis=1) + (heights - heights.min()) / scale**2
    # A point high above the sites makes the hull solid, even if all lifted sites are coplanar.
    apex = [0.0, 0.0, 4 * float(lifted.max())]
    hull = ConvexHull(np.vstack((np.column_stack((centred, lifted)), apex)), qhull_options="Qt")
    lower = hull.simplices[(hull.simplices < len(sites)).all(axis=1) & (hull.equations[:, 2] < 0)]
    sides = np.concatenate((lower[:, [0, 1]], lower[:, [1, 2]], lower[:, [2, 0]]))
    pairs: Integers = np.unique(np.sort(sides, axis=1), axis=0).astype(np.int64)
    return pairs


def _diagram(sites: Floats, heights: Floats, pairs: Integers, distinct: Integers) -> PlaneDiagram:
    """Return the diagram with the neighbours of each owner; only the cell of a single site has no neighbours."""
    both = np.concatenate((pairs, pairs[:, ::-1]))
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    counts = np.bincount(both[:, 0], minlength=len(sites))
    owners = np.flatnonzero(counts) if len(distinct) > 1 else distinct
    owners = owners[np.argsort(-counts[owners], kind="stable")]
    neighbours = np.full((len(owners), int(counts.max(initial=0))), -1, dtype=np.int64)
    rank = np.empty(len(sites), dtype=np.int64)
    rank[owners] = np.arange(len(owners))
    slot = np.arange(len(both)) - np.searchsorted(both[:, 0], both[:, 0])
    neighbours[rank[both[:, 0]], slot] = both[:, 1]
    return PlaneDiagram(sites, heights, owners, neighbours)


_ROUNDING = 2.0**-50

# The number of terms of the series in `_second_difference`; for v < 1, the next term is below 2**-53 of the sum.
_TERMS = 19


def quadrants(count: int) -> Floats:
    """Return `count` copies of the quadrant a, b >= 0, whose corners are the origin and two points at infinity."""
    quadrant = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return np.broadcast_to(quadrant, (count, 3, 3))


def clip(polygons: Floats, halfplanes: Floats) -> tuple[Floats, Integers]:
    """Intersect each polygon (N, V, 3) with its half-plane (N, 3); return nonempty intersections and their indices."""
    p, q, r = (halfplanes[:, None, axis] for axis in range(3))
    terms = (r * polygons[..., 2], p * polygons[..., 0], q * polygons[..., 1])
    value = terms[0] - terms[1] - terms[2]
    # For a point at infinity, the sign depends on the angle between its direction and the line.
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
    """Keep the corners with `value` >= 0 and add a corner on each side along which the sign changes."""
    following, later = np.roll(polygons, -1, axis=1), np.roll(value, -1, axis=1)
    crosses = value * later < 0
    # Both weights of the new corner are positive, so no cancellation occurs.
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
    """Return the integrals (N,) of exp(-(a + b)) over polygons (N, V, 3), as sums of positive terms.

    Each polygon is a fan of triangles from its first corner. Let h be the value of a + b at a corner. For a triangle
    with finite corners, the integral is twice the area times the second divided difference of exp at the three values
    of -h. For corners at infinity, the integral is the determinant of the homogeneous corners times the divided
    difference at the finite corners.
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
    """Return (1 - exp(-u)) / u for u >= 0, and its limit 1 for u = 0."""
    safe = np.where(u > 0, u, 1.0)
    result: Floats = np.where(u > 0, -np.expm1(-safe) / safe, 1.0)
    return result


def _value(heights: Floats) -> Floats:
    result: Floats = np.exp(-heights[:, 0])
    return result


def _first_difference(heights: Floats) -> Floats:
    """Return ∫ exp(-h) over a segment of length 1, where h is linear between the two sorted heights of its ends."""
    result: Floats = np.exp(-heights[:, 0]) * exponential_difference(heights[:, 1] - heights[:, 0])
    return result


def _second_difference(heights: Floats) -> Floats:
    """Return half the mean of exp(-h) over a triangle, where h is linear with the sorted heights at its corners.

    Let h_0 <= h_0 + u <= h_0 + v be the heights, and E(u) = (1 - exp(-u)) / u. The result is
    exp(-h_0) (E(u) - exp(-u) E(v - u)) / v, which loses at most two bits for v >= 1. For v < 1 the series
    exp(-h_0) Σ_n (-1)^n h_n(u, v) / (n + 2)! is used instead, where h_n = Σ_i u^i v^(n-i).
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
