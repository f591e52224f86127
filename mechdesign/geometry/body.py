"""Vertices, facets and a triangulation of conv{±d} for some vectors d, of whatever affine dimension.

The work behind `SensitivityHull`. The vectors are brought to comparable lengths along an orthonormal basis of their
span before anything is decided; in one and two dimensions the body is then built by hand, above by Qhull.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mechdesign.base._errors import InputError
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["TOLERANCE", "Body", "build", "simplex_volumes", "too_flat", "upright"]

TOLERANCE = 1e-9
"""How far, relative to the hull, a point may lie outside and still count as inside."""

# Generators this close to each other, or to the line between two others, relative to the longest, are merged: the facet
# between them would have no meaningful direction. Far below TOLERANCE, far above rounding.
_MERGED = 1e-11


class Body(NamedTuple):
    """A convex body symmetric about the origin of R^d, of affine dimension r, in halves: the negatives are left out.

    `vertices` (k, d); `normals` (m, d) of the facets, a·v = 1 on each; `basis` (r, d) of the span, orthonormal;
    `simplices` (t, r), corners that fill the body together with the origin: indices of vertices, those from k on being
    their negatives; `cones` (m,), the volume of the cone from the origin over each facet.
    """

    vertices: Floats
    normals: Floats
    basis: Floats
    simplices: Integers
    cones: Floats


def build(generators: Floats) -> Body:
    """Return conv{±generators} for vectors of shape (m, d), none of them zero and m > 0."""
    d = generators.shape[1]
    basis, extents = _span(generators)
    r = len(basis)
    # y = axes · v fills about [-1, 1]^r, whatever the units: rounding then means the same in all directions.
    axes = basis / extents[:, None]
    if r == d:
        basis = np.eye(d)
    distinct = generators[_distinct(generators @ axes.T)]
    return (_segment if r == 1 else _polygon if r == 2 else _polytope)(distinct, axes, basis)


def upright(differences: Floats) -> Floats:
    """Return each difference or its negative, so that the first coordinate that is not zero is positive."""
    leading = differences[np.arange(len(differences)), np.argmax(differences != 0, axis=1)]
    # Adding zero turns -0.0 into 0.0.
    result: Floats = np.where((leading < 0)[:, None], -differences, differences) + 0.0
    return result


def simplex_volumes(corners: Floats) -> Floats:
    """Return the volumes of the simplices spanned by the origin and r corners each, shape (t, r, r)."""
    volumes: Floats = np.abs(np.linalg.det(corners)) / math.factorial(corners.shape[-1])
    return volumes


def too_flat() -> InputError:
    """Return the error about differences that span too thin a body."""
    return InputError(
        "differences",
        "are too close to a lower dimension for their hull to be computed",
        remedy="bring the coordinates to similar sizes, or leave out those that hardly differ",
    )


def _span(generators: Floats) -> tuple[Floats, Floats]:
    """Return an orthonormal basis (r, d) of the span, and the extent of the generators along each of its vectors.

    Gram–Schmidt, taking the generator that is farthest from the span so far, until none is farther than the tolerance.
    """
    d = generators.shape[1]
    basis, extents = np.zeros((0, d)), np.zeros(0)
    rest = generators
    while len(basis) < d:
        lengths = np.sqrt((rest**2).sum(axis=1))
        farthest = int(np.argmax(lengths))
        # Half the tolerance, so that rounding cannot put a generator off the span that `norm` sees.
        if len(extents) and lengths[farthest] <= TOLERANCE / 2 * extents[0]:
            break
        direction = rest[farthest] / lengths[farthest]
        # Once more: rounding may have left a part within the span.
        direction = direction - direction @ basis.T @ basis
        direction /= math.sqrt(float(direction @ direction))
        basis = np.concatenate((basis, direction[None]))
        extents = np.append(extents, lengths[farthest])
        rest = rest - np.outer(rest @ direction, direction)
    return basis, extents


def _distinct(even: Floats) -> Integers:
    """Return the indices of the rows without zeros and without repetitions of a row or its negative, up to rounding."""
    _, first = np.unique(np.round(even / _MERGED).astype(np.int64), axis=0, return_index=True)
    first = np.sort(first).astype(np.int64)
    # Rows that are the same but for rounding may have been rounded to different sides, and one of them been negated.
    some = even[first]
    pairs = cKDTree(np.concatenate((some, -some))).query_pairs(_MERGED, output_type="ndarray") % len(some)
    keep = np.abs(some).max(axis=1) > _MERGED
    keep[pairs.max(axis=1)[pairs[:, 0] != pairs[:, 1]]] = False
    distinct: Integers = first[keep]
    return distinct


def _segment(generators: Floats, axes: Floats, basis: Floats) -> Body:
    longest = generators[[int(np.argmax(np.abs(generators @ axes[0])))]]
    reach = longest @ basis[0]
    return Body(longest, basis / reach[:, None], basis, np.array([[0], [1]]), np.abs(reach))


def _polygon(generators: Floats, axes: Floats, basis: Floats) -> Body:
    even = generators @ axes.T
    found = generators[np.unique(_qhull(even).vertices % len(even))]
    # From the angle 0 on, counter-clockwise, as far as the angle π; the negatives follow.
    flat = found @ basis.T
    found = np.where(((flat[:, 1] < 0) | ((flat[:, 1] == 0) & (flat[:, 0] < 0)))[:, None], -found, found)
    flat = found @ basis.T
    found = found[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")]
    half = found[_strictly_convex((found @ axes.T).tolist())]
    corner = np.arange(2 * len(half))
    simplices = np.column_stack((corner, np.roll(corner, -1)))
    (px, py), (qx, qy) = (np.concatenate((half, -half[:1])) @ basis.T)[simplices[: len(half)]].transpose(1, 2, 0)
    # a·p = a·q = 1. The difference of close corners is exact, unlike that of products of their coordinates.
    twice = px * (qy - py) - py * (qx - px)
    normals = np.column_stack((qy - py, px - qx)) / twice[:, None]
    return Body(half, normals @ basis, basis, simplices, twice / 2)


def _strictly_convex(corners: list[list[float]]) -> list[int]:
    """Return which of the corners of half a polygon, in order, are not on the line between their neighbours.

    Of two corners that are the same but for rounding one goes, too. After the last corner comes the first's negative.
    """
    kept = list(range(len(corners)))
    index = 0
    while index < len(kept) > 2:
        (px, py), (x, y) = corners[kept[index - 1]], corners[kept[index]]
        qx, qy = corners[kept[(index + 1) % len(kept)]]
        if index == 0:
            px, py = -px, -py
        if index == len(kept) - 1:
            qx, qy = -qx, -qy
        height = (x - px) * (qy - py) - (y - py) * (qx - px)
        if abs(height) <= _MERGED * math.hypot(qx - px, qy - py):
            del kept[index]
            index = max(index - 1, 0)
        else:
            index += 1
    return kept


def _polytope(generators: Floats, axes: Floats, basis: Floats) -> Body:
    even = generators @ axes.T
    m, r = even.shape
    hull = _qhull(even)
    used, position = np.unique(hull.simplices % m, return_inverse=True)
    half = generators[used]
    simplices = position.reshape(-1, r) + np.where(hull.simplices < m, 0, len(used))
    volumes = simplex_volumes(np.concatenate((half, -half))[simplices] @ basis.T)
    # A facet is cut into several simplices, and has an opposite: gather those of the same normal, up to the sign.
    normals = hull.equations[:, :r] / -hull.equations[:, r:]
    rounded = np.round(normals / _MERGED)
    _, first, facet = np.unique(upright(rounded), axis=0, return_index=True, return_inverse=True)
    cones = np.bincount(facet.ravel(), weights=volumes) / 2
    solid = cones > 0
    return Body(half, (normals[first] @ axes)[solid], basis, simplices, cones[solid])


def _qhull(even: Floats) -> ConvexHull:
    both = np.concatenate((even, -even))
    try:
        return ConvexHull(both)
    except QhullError:
        # Rarely, in four dimensions or more, Qhull cannot merge facets that are coplanar but for rounding. It helps to
        # move all points a little, far less than the tolerance, so that there are none.
        try:
            return ConvexHull(both, qhull_options="QJ")
        except QhullError as error:
            raise too_flat() from error
