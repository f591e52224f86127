"""Sensitivity hulls of differences.

The sensitivity hull is K = conv{±v : differences v} (DPHMM, Xiao et al. 2017, Definition 5.1; PGLP, Cao et al. 2020,
Definition 8). K is symmetric about the origin and has any affine dimension. `mechdesign.graphs._exposure` computes the
differences from a policy graph.

The vectors are first scaled to comparable lengths along an orthonormal basis of their span. Segments and polygons are
built directly; Qhull builds hulls of higher dimension. Floats have rounding errors, so the differences of equal offsets
on a grid may differ in their last bits. Therefore all functions use the relative tolerance `TOLERANCE`. A generator
is in the span of the others if its distance to the span is below the tolerance, relative to the longest generator. The
method `contains` accepts K-norms up to 1 + `TOLERANCE`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Flags, Floats, Integers, as_floats, read_only, require
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.model._domain import Domain
from mechdesign.model.distances import refuse_distances

TOLERANCE = 1e-9
"""A point outside the hull is treated as inside if its distance, relative to the size of the hull, is at most this."""

# Two generators are merged if their distance, relative to the longest generator, is below this bound. A facet between
# them would have no meaningful direction. A generator this close to the line between two other generators is dropped.
# The bound is far below TOLERANCE and far above rounding errors.
_MERGED = 1e-11


class Body(NamedTuple):
    """A convex body of affine dimension r in R^d, symmetric about the origin.

    The body stores one vertex of each opposite pair, and one facet of each opposite pair.

    Attributes:
        vertices: One vertex of each opposite pair, (k, d).
        normals: One normal a of each opposite pair of facets, scaled so that a·v = 1 on the facet, (m, d).
        basis: An orthonormal basis of the span, (r, d).
        simplices: The corners of simplices that fill the body together with the origin, (t, r). The corners are indices
            of vertices, where index k + i is the negative of vertex i.
        cones: The volume of the cone from the origin over each facet, (m,).
    """

    vertices: Floats
    normals: Floats
    basis: Floats
    simplices: Integers
    cones: Floats


def build(generators: Floats) -> Body:
    """Return conv{±generators} for nonzero vectors of shape (m, d), where m > 0."""
    d = generators.shape[1]
    basis, extents = _span(generators)
    r = len(basis)
    # The vectors y = axes · v fill about [-1, 1]^r in any units, so rounding errors are equal in all directions.
    axes = basis / extents[:, None]
    if r == d:
        basis = np.eye(d)
    distinct = generators[_distinct(generators @ axes.T)]
    return (_segment if r == 1 else _polygon if r == 2 else _polytope)(distinct, axes, basis)


def upright(differences: Floats) -> Floats:
    """Return the differences, with the opposite sign if the first nonzero coordinate is negative."""
    leading = differences[np.arange(len(differences)), np.argmax(differences != 0, axis=1)]
    # Adding zero turns -0.0 into 0.0.
    result: Floats = np.where((leading < 0)[:, None], -differences, differences) + 0.0
    return result


def simplex_volumes(corners: Floats) -> Floats:
    """Return the volumes of simplices from the origin and r corners each; `corners` has the shape (t, r, r)."""
    volumes: Floats = np.abs(np.linalg.det(corners)) / math.factorial(corners.shape[-1])
    return volumes


def too_flat() -> InputError:
    """Return the error for differences that span a nearly flat body."""
    return InputError(
        "differences",
        "are too close to a lower-dimensional subspace to compute their hull",
        remedy="scale the coordinates to similar sizes, or omit coordinates that hardly differ",
    )


def _span(generators: Floats) -> tuple[Floats, Floats]:
    """Return an orthonormal basis (r, d) of the span, and the extent of the generators along each of its vectors.

    The method is Gram–Schmidt orthogonalisation with pivoting: each step adds the direction of the generator that is
    farthest from the current span. The method stops when the distances of all generators from the span are below the
    tolerance.
    """
    d = generators.shape[1]
    basis, extents = np.zeros((0, d)), np.zeros(0)
    rest = generators
    while len(basis) < d:
        lengths = np.sqrt((rest**2).sum(axis=1))
        farthest = int(np.argmax(lengths))
        # Half the tolerance ensures that `norm`, despite rounding, treats every generator as a vector in the span.
        if len(extents) and lengths[farthest] <= TOLERANCE / 2 * extents[0]:
            break
        direction = rest[farthest] / lengths[farthest]
        # Orthogonalise a second time, since rounding may leave a component within the span.
        direction = direction - direction @ basis.T @ basis
        direction /= math.sqrt(float(direction @ direction))
        basis = np.concatenate((basis, direction[None]))
        extents = np.append(extents, lengths[farthest])
        rest = rest - np.outer(rest @ direction, direction)
    return basis, extents


def _distinct(even: Floats) -> Integers:
    """Return the indices of nonzero rows that are distinct, up to rounding and the sign."""
    _, first = np.unique(np.round(even / _MERGED).astype(np.int64), axis=0, return_index=True)
    first = np.sort(first).astype(np.int64)
    # Rounding may separate nearly equal rows, and rows may differ only by the sign, so distances are compared, too.
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
    # Sort the half with angles from 0 to π counter-clockwise; the negatives follow.
    flat = found @ basis.T
    found = np.where(((flat[:, 1] < 0) | ((flat[:, 1] == 0) & (flat[:, 0] < 0)))[:, None], -found, found)
    flat = found @ basis.T
    found = found[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")]
    half = found[_strictly_convex((found @ axes.T).tolist())]
    corner = np.arange(2 * len(half))
    simplices = np.column_stack((corner, np.roll(corner, -1)))
    (px, py), (qx, qy) = (np.concatenate((half, -half[:1])) @ basis.T)[simplices[: len(half)]].transpose(1, 2, 0)
    # The normal a of the side between the corners p and q satisfies a·p = a·q = 1. Differences of close corners are
    # exact; differences of products of coordinates are not.
    twice = px * (qy - py) - py * (qx - px)
    normals = np.column_stack((qy - py, px - qx)) / twice[:, None]
    return Body(half, normals @ basis, basis, simplices, twice / 2)


def _strictly_convex(corners: list[list[float]]) -> list[int]:
    """Return the indices of the corners of half a polygon that are not on the line between their neighbours.

    If two corners are equal up to rounding, the function removes one of them, too. The negative of the first corner
    follows the last corner.
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
    # A facet consists of several simplices and has an opposite facet: group simplices by normal, up to the sign.
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
        # In four or more dimensions, Qhull sometimes cannot merge facets that are coplanar up to rounding. The option
        # QJ moves all points by far less than the tolerance, so no facets are coplanar.
        try:
            return ConvexHull(both, qhull_options="QJ")
        except QhullError as error:
            raise too_flat() from error


# Products of up to three lengths within these bounds neither overflow nor underflow.
_SMALLEST, _LARGEST = 1e-100, 1e100

# The number of products of a vector and a facet normal that `norm` computes at a time.
_PRODUCTS_PER_BLOCK = 2**18


@dataclass(frozen=True, eq=False, repr=False)
class SensitivityHull:
    """A convex body K in R^d that is symmetric about the origin; see `sensitivity_hull` and `SensitivityHull.of`.

    All arrays are float64 and read-only; r is the affine dimension.

    Attributes:
        vertices: Vertices, (k, d); the second half are the negatives of the first half. For r = 2, the vertices are in
            counter-clockwise order in the coordinates of `basis`. The array is empty for r = 0.
        facets: Outer normals a of the facets, (m, d), with K = {v in the span: a·v ≤ 1 for all a}. The second half are
            the negatives of the first half.
        basis: An orthonormal basis of the span of K, (r, d); the identity for r = d.
        volume: The volume in the affine dimension: a length for r = 1, an area for r = 2, and 0 for r = 0.

    >>> SensitivityHull.of([[1.0, 0.0], [0.0, 1.0]])
    SensitivityHull(dimension=2, vertices=4, volume=2.0)
    """

    vertices: Floats
    facets: Floats
    basis: Floats
    volume: float
    # Corners as indices into vertices, (t, r): each row and the origin form a simplex, and the simplices fill K.
    _simplices: Integers = field(repr=False)
    # The volume of the cone from the origin over each facet of the first half.
    _cones: Floats = field(repr=False)

    @classmethod
    def of(cls, differences: ArrayLike) -> SensitivityHull:
        """Return the convex hull of all rows and their negatives; without rows, the hull is {0}.

        Args:
            differences: Vectors, (m, d) with d ≥ 1.

        Returns:
            The hull.
        """
        generators = as_floats(differences, "differences", "(m, d)")
        if generators.shape[1] == 0:
            raise InputError("differences", "have no coordinates", value=generators.shape, bound="d >= 1")
        return hull_of(_in_range(generators, "differences"))

    def __repr__(self) -> str:
        """Return the dimension, the number of vertices and the volume, without the arrays."""
        shape = f"dimension={self.dimension}, vertices={len(self.vertices)}, volume={self.volume!r}"
        return f"SensitivityHull({shape})"

    @property
    def dimension(self) -> int:
        """Return the affine dimension r of K, from 0 to d."""
        return len(self.basis)

    @property
    def radius(self) -> float:
        """Return the largest Euclidean length in K."""
        return float(np.sqrt((self.vertices**2).sum(axis=1)).max(initial=0.0))

    def norm(self, v: ArrayLike) -> Floats:
        """Return the K-norms min{t ≥ 0 : v ∈ tK}: the largest a·v over the facets.

        The norm is infinite for a vector off the span of K. A vector v is off the span if a coordinate differs from its
        projection by more than `TOLERANCE` times max(max|v|, radius).

        Args:
            v: Vectors, (…, d).

        Returns:
            The norms, (…).
        """
        vectors = as_vectors(v, "v", self.basis.shape[1])
        rows = vectors.reshape(-1, vectors.shape[-1])
        half = self.facets[: len(self._cones)]
        result = np.zeros(len(rows))
        step = max(1, _PRODUCTS_PER_BLOCK // max(1, len(half)))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            result[some] = np.abs(rows[some] @ half.T).max(axis=1, initial=0.0)
        result[self._off_span(rows)] = np.inf
        return result.reshape(vectors.shape[:-1])

    def contains(self, v: ArrayLike) -> Flags:
        """Return whether vectors are in K or on its boundary: their K-norm is at most 1 + `TOLERANCE`.

        Args:
            v: Vectors, (…, d).

        Returns:
            A flag for each vector, (…).
        """
        return np.asarray(self.norm(v) <= 1 + TOLERANCE)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator | int | None = None) -> Floats:
        """Return points drawn uniformly from K in its affine dimension.

        The method first draws a simplex of the triangulation from the origin in proportion to its volume. The method
        then draws a point of the simplex by exponential spacings. The distribution is exact up to rounding.

        Args:
            size: The number of points, or the shape of the array of points.
            rng: A NumPy generator or a seed; None takes a seed from the operating system.

        Returns:
            The points, ``(*size, d)``.
        """
        shape = tuple(as_integer(one, "size", 0) for one in (size if isinstance(size, tuple) else (size,)))
        generator = as_generator(rng)
        count, r = math.prod(shape), self.dimension
        points = np.zeros((count, self.basis.shape[1]))
        if r > 0:
            weights = simplex_volumes(self.vertices[self._simplices] @ self.basis.T)
            chosen = generator.choice(len(weights), size=count, p=weights / weights.sum())
            spacings = generator.standard_exponential((count, r + 1))
            shares = spacings[:, :r] / spacings.sum(axis=1, keepdims=True)
            for corner in range(r):
                points += shares[:, corner, None] * self.vertices[self._simplices[chosen, corner]]
        return points.reshape(*shape, self.basis.shape[1])

    @in_own_arithmetic
    def grown(self, v: ArrayLike) -> tuple[Integers, Floats]:
        """Return the dimensions and volumes of conv(K ∪ {v, −v}), without building these hulls.

        If v is in the span, each facet visible from v adds a pyramid of volume c · (a·v − 1). Here, c is the volume of
        the cone over the facet. The vector −v adds the opposite pyramids. If v has the distance h > 0 from the span,
        the result is a double pyramid of volume 2 h · volume / (r + 1).

        Args:
            v: Vectors, (…, d).

        Returns:
            The dimensions and the volumes, (…) each.
        """
        vectors = as_vectors(v, "v", self.basis.shape[1])
        rows = vectors.reshape(-1, vectors.shape[-1])
        r = self.dimension
        half = self.facets[: len(self._cones)]
        within = self.volume + 2 * np.maximum(np.abs(rows @ half.T) - 1, 0) @ self._cones
        height = np.sqrt(((rows - rows @ self.basis.T @ self.basis) ** 2).sum(axis=1))
        beyond = 2 * height * (self.volume if r else 1.0) / (r + 1)
        outside = self._off_span(rows)
        dimensions = np.where(outside, r + 1, r)
        volumes: Floats = np.where(outside, beyond, within)
        return dimensions.reshape(vectors.shape[:-1]), volumes.reshape(vectors.shape[:-1])

    @in_own_arithmetic
    def _off_span(self, rows: Floats) -> Flags:
        if self.dimension == self.basis.shape[1]:
            return np.zeros(len(rows), dtype=np.bool_)
        # The maximum norm does not underflow for tiny coordinates; the Euclidean norm would.
        apart = np.abs(rows - rows @ self.basis.T @ self.basis).max(axis=1)
        off: Flags = apart > TOLERANCE * np.maximum(np.abs(rows).max(axis=1), self.radius)
        return off


def as_points(points: Domain | ArrayLike, path: str = "points") -> Floats:
    """Return places as a read-only array of shape (n, d), n ≥ 1 and d ≥ 1; raise `InputError` for other values.

    A square array of at least three rows with a zero diagonal is an error, because it probably contains distances.
    """
    refuse_distances(points, path, "give places, not the distances between them", least=3)
    array = points.points if isinstance(points, Domain) else as_floats(points, path, "(n, d)")
    if isinstance(points, Domain) and not points.points.shape[1]:
        raise InputError(path, "is a domain of labels, which has no places", remedy="give a domain of points or cells")
    if 0 in array.shape:
        raise InputError(path, "is empty", value=array.shape, bound="an array of shape (n, d), n >= 1 and d >= 1")
    return _in_range(array, path)


def as_vectors(values: ArrayLike, path: str, d: int) -> Floats:
    """Return vectors as float64 of shape (…, d); raise `InputError` unless all coordinates are finite."""
    vectors: Floats = named(values, path, dtype=np.float64)
    if vectors.ndim == 0 or vectors.shape[-1] != d:
        raise InputError(path, "has the wrong shape", value=vectors.shape, bound=f"(…, {d})")
    require(np.isfinite(vectors), vectors, path, "a finite number")
    return vectors


def check_distinct(places: Floats) -> None:
    """Raise `InputError` if two observables at `places` (n, d) are equal, so that their answers look alike."""
    order = np.lexsort(places.T)
    same = np.flatnonzero((places[order[1:]] == places[order[:-1]]).all(axis=1))
    if same.size:
        one, other = sorted(order[same[0] : same[0] + 2].tolist())
        raise InputError(
            f"observables[{other}]",
            f"has the same coordinates as observables[{one}]",
            value=places[other].tolist(),
            remedy="keep one of them",
        )


def _in_range(array: Floats, path: str) -> Floats:
    magnitude = np.abs(array)
    # This comparison is false for NaN, so NaN is an error, too.
    good = (magnitude == 0) | ((magnitude >= _SMALLEST) & (magnitude <= _LARGEST))
    require(good, array, path, "zero or between 1e-100 and 1e100 in magnitude")
    return array


def hull_of(differences: Floats) -> SensitivityHull:
    """Return the convex hull of all rows and their negatives.

    Args:
        differences: Vectors, (m, d).

    Returns:
        The hull.

    Raises:
        InputError: The vectors are not an array of finite numbers.

    >>> hull_of(np.array([[1.0, 0.0], [0.0, 1.0]])).volume
    2.0
    """
    differences = as_floats(differences, "differences", "(m, d)")
    require(np.isfinite(differences), differences, "differences", "a finite number")
    generators = np.unique(upright(differences[differences.any(axis=1)]), axis=0)
    if len(generators) == 0:
        none = np.zeros((0, differences.shape[1]))
        return _frozen(Body(none, none, none, np.zeros((0, 0), dtype=np.int64), np.zeros(0)))
    hull = _frozen(build(generators))
    # Check the result of Qhull: all generators are inside, and all vertices are on the boundary.
    if hull.norm(generators).max() > 1 + TOLERANCE or hull.norm(hull.vertices).min() < 1 - TOLERANCE:
        raise too_flat()
    return hull


def _frozen(body: Body) -> SensitivityHull:
    vertices = np.concatenate((body.vertices, 0.0 - body.vertices))
    facets = np.concatenate((body.normals, 0.0 - body.normals))
    for array in (vertices, facets, body.basis, body.simplices, body.cones):
        read_only(array)
    return SensitivityHull(vertices, facets, body.basis, 2 * math.fsum(body.cones), body.simplices, body.cones)
