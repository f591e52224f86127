"""Distances between secrets, rounded down.

A privacy requirement allows a loss of ε·d(s, s'). A distance that is rounded up would weaken this requirement, and
could exclude a pair whose distance equals a radius. Every distance of this module is therefore a float64 *not above*
the exact distance between the exact coordinates. The float of a coordinate is read as the decimal in its repr, and
neighbouring cells of a grid are exactly one step apart. `euclidean`, `manhattan`, `chebyshev` and `hamming` return the
largest float64 that is not above the exact distance. The docstrings of `haversine`, `shortest_path` and `euclidean`
state the margins for graphs and for latitudes and longitudes. Matrices are read-only float64 of shape (n, m), with rows
for the first argument and columns for the second. With one argument, matrices are exactly symmetric with zeros on the
diagonal. Coordinates must be zero or between 1e-100 and 1e100 in magnitude; sums of their products are then exact.

If only floats are known (a user's matrix, places in degrees, computed coordinates), rounding may have lengthened a
distance. The function `reach` therefore returns the largest distance that is treated as within a radius.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base import _lazy
from mechdesign.base._arrays import Floats, Integers, as_floats, read_only, require
from mechdesign.base._check import as_integer, as_number, require_kind
from mechdesign.base._errors import InputError, MetricWarning, Shown, values_are_withheld
from mechdesign.base._names import opened
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal, exact, nearest
from mechdesign.model import _expansions as expansions
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_nodes
from mechdesign.model._locate import DEGREE_KM, EARTH_RADIUS_KM, Plane
from mechdesign.model._written import (
    CHEBYSHEV,
    EUCLIDEAN,
    MANHATTAN,
    Norm,
    places_of,
    shape_of,
    steps_of,
    table_of_steps,
)

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "chebyshev",
    "euclidean",
    "hamming",
    "haversine",
    "manhattan",
    "margin",
    "shortest_path",
]
__dir__ = _lazy.listing(__all__)


# For coordinates of these magnitudes, no square overflows, and no product of two rounding errors underflows below the
# subnormals.
_SMALLEST, _LARGEST = 1e-100, 1e100

# Number of pairs processed at a time: their temporary arrays then fit the processor's cache.
_PAIRS_PER_BLOCK = 2**14

# Number of sources of shortest paths processed at a time.
_SOURCES_PER_BLOCK = 64

# A radius this many times the largest distance is probably in another unit, such as metres instead of kilometres.
_SUSPICIOUS_RADIUS_RATIO = 100

# Largest relative violation of symmetry or the triangle inequality that is attributed to rounding.
_METRIC_TOLERANCE = 1e-12

# Number of sums of two distances that are computed at a time.
_SUMS_PER_BLOCK = 100_000

# Integers up to this magnitude are exact in float64.
_LARGEST_WHOLE = 2**53

# The unit roundoff of float64, which is the largest relative error of one operation.
_ROUNDOFF = 2.0**-53

# `haversine` and `euclidean` round each distance down by these shares.
_HAVERSINE_MARGIN = 1e-14
_PLANE_MARGIN = 1e-14

# Relative amount by which a distance may exceed a radius and still be treated as within the radius.
_RADIUS_MARGIN = Fraction(1, 10**9)

# The margin for rounded coordinates, as a multiple of the unit in the last place of the largest coordinate.
_COORDINATE_MARGIN_ULPS = 4

_Number = float | int | str | Decimal | Fraction

_Kernel = Callable[[Integers, Integers], Floats]


def euclidean(domain: Domain | ArrayLike, other: Domain | ArrayLike | None = None) -> Floats:
    """Return the Euclidean distances √(Σ_k (x_k − y_k)²), each rounded down to float64.

    Distances between places in latitude and longitude are computed in their `Plane`: R √((c Δλ)² + Δφ²), from the
    stored coordinates. With the factor c of `Plane.over`, these distances never exceed great-circle distances. The
    factor 1 − 1e-14 covers about a dozen roundings, each with a relative error of at most 2⁻⁵².

    Args:
        domain: A domain with places, or points (n, d).
        other: A second domain or points (m, d), in the same unit; None compares the first argument with itself.

    Returns:
        Distances, (n, m), in the unit of the domain.

    Raises:
        InputError: The two domains are in different planes, or a domain touches a pole or is half as wide as the globe.

    >>> euclidean([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    if isinstance(domain, Domain) and domain.plane is not None and (other is None or isinstance(other, Domain)):
        _pair_of_points(domain, other)
        first = _coordinates(domain, "domain")
        second = first if other is None else _coordinates(other, "other")
        return _blocks(len(first), len(second), other is None, _in_plane(domain.plane, first, second))
    return _pairwise(domain, other, EUCLIDEAN)


def pairs_within(domain: Domain | ArrayLike, radius: _Number) -> Integers:
    """Return the pairs (i, j), i < j, whose Euclidean distance is at most a radius.

    The entry of `euclidean(domain)` for these pairs is at most `reach(radius, margin(domain))`; pairs at exactly the
    radius are included. For a small radius, far fewer than n² pairs are examined.

    Args:
        domain: A domain, or points (n, d); not a matrix of distances.
        radius: The radius, finite and >= 0, in the unit of the domain.

    Returns:
        Pairs, int64 of shape (k, 2), sorted.

    Raises:
        InputError: The function `euclidean` rejects the domain, the array is square with a zero diagonal, or the radius
            is invalid.

    >>> pairs_within([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]], 2).tolist()
    [[0, 1], [1, 2]]
    """
    refuse_distances(domain, "domain", "use numpy.argwhere(distance <= distances.reach(radius))")
    points = _points(domain, "domain")
    limit = reach(radius, margin(domain))
    if isinstance(domain, Domain) and domain.plane is None and (steps := steps_of(domain)) is not None:
        return _cells_within(domain, steps, limit)
    from scipy.spatial import cKDTree

    # The margins far exceed the rounding errors of the tree's distances and of points in a plane.
    wide = limit * (1 + 1e-9) + _absolute_margin(domain)
    near: Integers = cKDTree(points).query_pairs(wide, output_type="ndarray").astype(np.int64)
    near.sort(axis=1)
    near = near[np.lexsort((near[:, 1], near[:, 0]))]
    # Compute exact distances only for places that have neighbours.
    members, ends = np.unique(near, return_inverse=True)
    ends = ends.reshape(near.shape)
    kernel: _Kernel
    if isinstance(domain, Domain) and domain.plane is not None:
        coordinates = _coordinates(domain, "domain")[members]
        kernel = _in_plane(domain.plane, coordinates, coordinates)
    else:
        places = places_of(points[members])
        kernel = functools.partial(EUCLIDEAN.lengths, places, places)
    good = np.zeros(len(near), dtype=np.bool_)
    for start in range(0, len(near), _PAIRS_PER_BLOCK):
        some = slice(start, start + _PAIRS_PER_BLOCK)
        good[some] = kernel(ends[some, 0], ends[some, 1]) <= limit
    found: Integers = near[good]
    return found


def _cells_within(domain: Domain, steps: tuple[Fraction, Fraction], limit: float) -> Integers:
    """Return the pairs of cells of a grid with a distance of at most `limit`, sorted."""
    columns, rows = shape_of(domain)
    numbers = np.arange(columns * rows).reshape(rows, columns)
    # Numbers of steps along x and along y that the radius covers.
    across, up = (
        min(count, int(limit / nearest(step)) + 2) for step, count in zip(steps, (columns, rows), strict=True)
    )
    lengths = table_of_steps(steps, across, up, EUCLIDEAN)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for j, i in np.argwhere(lengths <= limit).tolist():
        if i or j:
            found.append(_apart(numbers, j, i))
        if i and j:
            found.append(_apart(numbers[:, ::-1], j, i))
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _apart(numbers: Integers, up: int, across: int) -> Integers:
    """Return the pairs of cells that are `up` rows and `across` columns apart, (k, 2), the lower cell first."""
    rows, columns = numbers.shape
    lower, upper = numbers[: rows - up, : columns - across], numbers[up:, across:]
    return np.column_stack((lower.ravel(), upper.ravel()))


def reach(radius: _Number, margin: float = 0.0) -> float:
    """Return the largest distance treated as within a radius: radius · (1 + 1e-9) + margin, rounded down.

    The result exceeds the radius so that it includes distances that exceed the radius only because of rounding.

    Args:
        radius: The radius, finite and >= 0.
        margin: The possible rounding error of coordinates, finite and >= 0; see the function `margin`.

    Returns:
        The largest distance.

    Raises:
        InputError: An argument is negative or not finite.

    >>> 0.1 + 0.2 <= 0.3, 0.1 + 0.2 <= reach(0.3)
    (False, True)
    """
    exactly = exact(radius, "radius")
    if exactly < 0 or nearest(exactly) == math.inf:
        raise InputError("radius", "is out of range", value=radius, bound=">= 0 and finite")
    more = as_number(margin, "margin")
    if more < 0:
        raise InputError("margin", "is negative", value=margin, bound=">= 0 and finite")
    return _at_most(exactly * (1 + _RADIUS_MARGIN) + Fraction(more))


def warn_of_radius(radius: _Number, largest: float) -> None:
    """Warn if a radius is more than a hundred times the largest distance, because it may be in another unit."""
    if 0 < largest < math.inf and nearest(exact(radius, "radius")) > _SUSPICIOUS_RADIUS_RATIO * largest:
        found = "the largest distance" if values_are_withheld() else f"the largest distance, {largest:.6g}"
        warn(
            f"radius is more than {_SUSPICIOUS_RADIUS_RATIO} times {found}: check its unit",
            MetricWarning,
            stacklevel=3,
        )


def down_to(distance: Floats, radius: _Number, margin: float = 0.0) -> Floats:
    """Return read-only distances; a distance between the radius and its `reach` is replaced by the radius."""
    exactly = nearest(exact(radius, "radius"))
    return read_only(np.where((distance > exactly) & (distance <= reach(radius, margin)), exactly, distance))


def margin(domain: Domain | ArrayLike) -> float:
    """Return the amount by which rounding of coordinates may have lengthened distances.

    The margin is 4 units in the last place of the largest coordinate. For example, distances between coordinates of
    some millions of metres are accurate to a few 1e-9 m.

    Args:
        domain: A domain, or points (n, d).

    Returns:
        The margin, in the unit of the domain (km for places in degrees); 0 for a domain without places.

    >>> margin([[0.0, 1.0]]) == 4 * 2.0**-52
    True
    """
    unit = 1.0
    if not isinstance(domain, Domain):
        places = as_floats(domain, "domain", "(n, d)")
    elif domain.coordinates is not None:
        places, unit = domain.coordinates, DEGREE_KM
    else:
        places = domain.points
    return _COORDINATE_MARGIN_ULPS * float(np.spacing(np.abs(places).max())) * unit if places.size else 0.0


def refuse_distances(points: Domain | ArrayLike, path: str, remedy: str, least: int = 2) -> None:
    """Raise `InputError` for a square array of at least `least` rows with a zero diagonal, which may contain distances.

    An array of points may also have this form; points in a `Domain` are always accepted.
    """
    if isinstance(points, Domain):
        return
    array = as_floats(points, path, "(n, d)")
    if array.shape[0] == array.shape[1] >= least and not array.diagonal().any():
        raise InputError(
            path,
            "is square with a zero diagonal, like a matrix of distances, but points are expected",
            value=array.shape,
            bound="a domain, or points of shape (n, d)",
            remedy=f"{remedy}; if they are points, give Domain.from_points(points)",
        )


def manhattan(domain: Domain | ArrayLike, other: Domain | ArrayLike | None = None) -> Floats:
    """Return the Manhattan distances Σ_k |x_k − y_k|, each rounded down to float64.

    Args:
        domain: A domain with places, or points (n, d).
        other: A second domain or points (m, d), in the same unit; None compares the first argument with itself.

    Returns:
        Distances, (n, m), in the unit of the domain.

    >>> manhattan([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 7.0], [7.0, 0.0]]
    """
    return _pairwise(domain, other, MANHATTAN)


def chebyshev(domain: Domain | ArrayLike, other: Domain | ArrayLike | None = None) -> Floats:
    """Return the Chebyshev distances max_k |x_k − y_k|, each rounded down to float64.

    Args:
        domain: A domain with places, or points (n, d).
        other: A second domain or points (m, d), in the same unit; None compares the first argument with itself.

    Returns:
        Distances, (n, m), in the unit of the domain.

    >>> chebyshev([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 4.0], [4.0, 0.0]]
    """
    return _pairwise(domain, other, CHEBYSHEV)


def hamming(domain: Domain | int, other: Domain | None = None) -> Floats:
    """Return the Hamming distances: 0 for equal secrets and 1 for different ones.

    Args:
        domain: A domain, or the number n of secrets.
        other: A second domain, whose members are compared by label; None compares the first argument with itself.

    Returns:
        Distances, (n, m).

    >>> hamming(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if isinstance(domain, Domain) and isinstance(other, Domain):
        rows, columns = (np.array(labels, dtype=object) for labels in (domain.labels, other.labels))
        result: Floats = np.not_equal(rows[:, None], columns[None, :]).astype(np.float64)
    elif other is None:
        n = domain.size if isinstance(domain, Domain) else as_integer(domain, "domain", 1)
        result = 1.0 - np.eye(n)
    else:
        raise InputError("other", "can be compared by label only with a domain", bound="two domains")
    return read_only(result)


def haversine(domain: Domain | ArrayLike, other: Domain | ArrayLike | None = None) -> Floats:
    """Return great-circle distances in km on a sphere of radius `EARTH_RADIUS_KM`.

    Let Δφ and Δλ be the differences of latitude and longitude, and a = sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2). The same
    term for the antipode of the second place is b = sin²((φ₁ + φ₂)/2) + cos φ₁ cos φ₂ cos²(Δλ/2). The distance is 2R
    atan2(√a, √b). All terms are nonnegative and computed from accurate angles (a cosine is the sine of the
    complementary angle). No cancellation occurs, even near the poles, the antimeridian or the antipode. Assume an error
    of 2⁻⁵³ for each arithmetic operation, and of 4 units in the last place for sin, hypot and arctan2. The relative
    error of the result is then below 80 · 2⁻⁵³ < 0.9e-14. The factor 1 − 1e-14 ensures that the result is never above
    the exact distance, with a relative difference of less than 2e-14.

    Args:
        domain: A domain with coordinates in degrees, or latitudes and longitudes in degrees, (n, 2).
        other: A second domain or coordinates (m, 2); None compares the first argument with itself.

    Returns:
        Distances in km, (n, m).

    >>> haversine([[0.0, 0.0], [0.0, 90.0]]).round(3).tolist()
    [[0.0, 10007.557], [10007.557, 0.0]]
    """
    first = _coordinates(domain, "domain")
    second = first if other is None else _coordinates(other, "other")
    return _blocks(len(first), len(second), other is None, functools.partial(_haversine, first, second))


def shortest_path(graph: nx.Graph, weight: str | None = None) -> Floats:
    """Return the lengths of the shortest paths between all nodes of a NetworkX graph, or inf if there is no path.

    The length of an edge is read as the decimal in its repr. No result exceeds the exact length. Let all lengths be
    multiples of a decimal u, such as 1 or 0.1, and all paths at most 2⁵³ u. Then each result is the largest float64 not
    above the exact length. If there is no such u, the relative error of a result is at most (3k + 3) · 2⁻⁵³, for paths
    with up to k edges.

    Args:
        graph: A graph with the nodes 0, …, n−1. In a directed graph, entry (i, j) is the length of the path from i to
            j, unlike in `graph.to_undirected()`. Of parallel edges, only the shortest is used. Self-loops are ignored.
        weight: The edge attribute that contains the length, which is zero or between 1e-100 and 1e100; None gives every
            edge length 1.

    Returns:
        Lengths, (n, n), read-only.

    Raises:
        InputError: The nodes are not 0, …, n−1, or a length is missing or out of range.

    >>> import networkx as nx
    >>> shortest_path(nx.path_graph(3)).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    import networkx as nx
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    require_kind(graph, nx.Graph, "graph", "a NetworkX graph")
    check_nodes(graph, every=True)
    n = graph.number_of_nodes()
    shortest = _edge_lengths(graph, weight)
    if not shortest:
        return read_only(np.where(np.eye(n, dtype=bool), 0.0, np.inf))
    rows, columns = np.array(list(shortest)).T
    exactly = {length: as_decimal(length) for length in set(shortest.values())}
    scale = math.lcm(*{length.denominator for length in exactly.values()})
    whole = (n - 1) * max(exactly.values()) * scale <= _LARGEST_WHOLE and scale <= _LARGEST_WHOLE
    known = {length: float(value * scale) if whole else _at_most(value) for length, value in exactly.items()}
    lengths = np.array([known[length] for length in shortest.values()])
    edges = csr_array((lengths, (rows, columns)), shape=(n, n))
    # Process a few sources at a time, because SciPy does not react to Ctrl-C.
    parts = [
        dijkstra(edges, directed=True, indices=np.arange(start, min(start + _SOURCES_PER_BLOCK, n)))
        for start in range(0, n, _SOURCES_PER_BLOCK)
    ]
    result = np.vstack(parts)
    if whole:
        result = _divide_down(result, scale)
    else:
        # Dijkstra's additions are monotone, so the result is at most the rounded length of the exact shortest path.
        # With k edges, this rounded length is at most (1 + u)^(k - 1) times the exact length, because the first
        # addition, to zero, is exact.
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            additions = np.minimum(np.floor(result / lengths.min() * (1 + 1e-9)), n - 1) - 1
        # Two more units cover the rounding of the multiplication.
        shrunk = result * (1 - (np.nan_to_num(additions, nan=n) + 2) * _ROUNDOFF)
        result = np.where((additions > 0) & np.isfinite(result), shrunk, result)
        if not graph.is_directed():
            # Rounding may differ between the two directions of a path.
            result = np.minimum(result, result.T)
    return read_only(result)


def matrix(values: ArrayLike, n: int | None = None) -> Floats:
    """Return a user's distances as a read-only float64 matrix, without changing their values.

    Args:
        values: Distances >= 0, (n, m); inf means no bound on a pair.
        n: The required number of rows and columns, or None.

    Returns:
        The matrix.

    Raises:
        InputError: The shape is wrong, or an entry is negative; the message names the first negative entry.

    >>> matrix([[0, 1], [1, 0]], n=2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    result = as_floats(values, "distances", "(n, m)", (), ())
    if n is not None and result.shape != (n, n):
        raise InputError("distances", "has the wrong shape", value=result.shape, bound=f"of shape ({n}, {n})")
    if result.size == 0:
        raise InputError("distances", "is empty", value=result.shape, bound="at least one row and one column")
    # Comparisons with NaN are false, so NaN is rejected as well.
    require(result >= 0, result, "distances", "a number >= 0, or inf")
    return result


def check_metric(matrix: ArrayLike, path: str = "distances") -> None:
    """Warn with `MetricWarning` if a square matrix of distances is not a metric.

    Separate warnings report a nonzero diagonal, asymmetry, and violations of the triangle inequality
    d(i, j) ≤ d(i, k) + d(k, j). Violations up to 1e-12 of the smaller side are ignored. Each warning names the worst
    entries. The running time grows as n³, and is one or two seconds for n = 1000.

    Args:
        matrix: Distances >= 0, (n, n); inf is allowed.
        path: The name of the argument in messages.

    Raises:
        InputError: The matrix is not square, or an entry is negative.

    >>> check_metric([[0, 1], [1, 0]])
    """
    distances = as_floats(opened(matrix, path).settled(path).values, path, "(n, n)")
    if distances.shape[0] != distances.shape[1]:
        raise InputError(path, "is not square", value=distances.shape, bound="of shape (n, n)")
    require(distances >= 0, distances, path, "a number >= 0, or inf")
    if distances.size == 0:
        return
    diagonal = np.diagonal(distances)
    if diagonal.any():
        worst = int(np.argmax(diagonal))
        found = "above 0" if values_are_withheld() else diagonal[worst]
        _warn(f"{path}[{worst},{worst}] is {found}: the distance of a secret from itself is not zero")
    excess = _relative_excess(distances, distances.T)
    row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[row, column] > _METRIC_TOLERANCE:
        entry, other = f"[{row},{column}]", f"[{column},{row}]"
        _warn(
            f"{path} is not symmetric: {entry} and {other} differ"
            if values_are_withheld()
            else f"{path} is not symmetric: {entry} is {distances[row, column]}, {other} is {distances[column, row]}"
        )
    violation, i, k, j = _worst_triple(distances)
    if violation > _METRIC_TOLERANCE:
        entry, sides = f"[{i},{j}]", f"[{i},{k}] + [{k},{j}]"
        _warn(
            f"{path} violates the triangle inequality: {entry} is more than {sides}"
            if values_are_withheld()
            else f"{path} violates the triangle inequality: {entry} is {distances[i, j]}, more than {sides} = "
            f"{distances[i, k]} + {distances[k, j]}"
        )


def _warn(message: str) -> None:
    # Attribute the warning to the caller of check_metric.
    warn(message, MetricWarning, stacklevel=3)


def _relative_excess(value: Floats, limit: Floats) -> Floats:
    """Return the relative excess value / limit − 1 if it is positive, otherwise 0, also for inf/inf and 0/0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        return np.where(value > limit, value / limit - 1, 0.0)


def _worst_triple(distances: Floats) -> tuple[float, int, int, int]:
    """Return (excess, i, k, j) for the largest relative excess of d(i, j) over d(i, k) + d(k, j)."""
    worst = (0.0, 0, 0, 0)
    size = len(distances)
    # Process a limited number of k at a time, so that the sums fit into the cache of a core.
    height = min(size, max(1, _SUMS_PER_BLOCK // size))
    buffer = np.empty((height, size))
    for i, row in enumerate(distances):
        # An infinite d(i, k) makes the path through k infinite; skipping such k saves time if most are infinite.
        ways = np.flatnonzero(np.isfinite(row))
        every = 2 * ways.size > size
        least = np.full(size, np.inf)
        with np.errstate(over="ignore", under="ignore"):
            for first in range(0, size if every else ways.size, height):
                some: slice | Integers = slice(first, first + height) if every else ways[first : first + height]
                onward = distances[some]
                sums = np.add(row[some, None], onward, out=buffer[: len(onward)])
                np.minimum(least, sums.min(axis=0), out=least)
            excess = _relative_excess(row, least)
            j = int(np.argmax(excess))
            if excess[j] > worst[0]:
                worst = (float(excess[j]), i, int(np.argmin(row + distances[:, j])), j)
    return worst


def _edge_lengths(graph: nx.Graph, weight: str | None) -> dict[tuple[int, int], float]:
    """Check all lengths. Return the length of the shortest edge for each ordered pair of different nodes."""
    shortest: dict[tuple[int, int], float] = {}
    for start, end, attributes in graph.edges(data=True):
        if weight is None:
            length = 1.0
        elif weight not in attributes:
            raise InputError(
                f"graph.edges[{start},{end}]",
                "has no length",
                value=sorted(map(str, attributes)),
                bound=f"with the attribute {weight!r}",
            )
        else:
            given = attributes[weight]
            length = float(as_floats(given, f"graph.edges[{start},{end}].{weight}", "()"))
            if length != 0 and not _SMALLEST <= length <= _LARGEST:
                raise InputError(
                    f"graph.edges[{start},{end}].{weight}",
                    "is not a length",
                    value=given,
                    bound="zero or between 1e-100 and 1e100",
                )
        if start == end:
            continue
        for edge in [(start, end)] if graph.is_directed() else [(start, end), (end, start)]:
            shortest[edge] = min(length, shortest.get(edge, math.inf))
    return shortest


def _at_most(value: Fraction) -> float:
    """Return the largest float64 that is at most an exact number."""
    found = nearest(value)
    return found if Fraction(found) <= value else math.nextafter(found, 0)


def _divide_down(whole: Floats, scale: int) -> Floats:
    """Return the largest float64 that is at most `whole` / `scale`; entries are integers up to 2⁵³ or inf."""
    finite = np.isfinite(whole)
    number = np.where(finite, whole, 0.0)
    quotient = number / scale
    high, low = expansions.two_product(quotient, np.full_like(quotient, float(scale)))
    # The rounded quotient times the scale is close enough to the number for an exact first difference.
    return np.where(finite, np.where((number - high) - low < 0, np.nextafter(quotient, 0), quotient), np.inf)


def _points(domain: Domain | ArrayLike, path: str) -> Floats:
    points = domain.points if isinstance(domain, Domain) else as_floats(domain, path, "(n, d)")
    if points.shape[1] == 0:
        raise InputError(
            path,
            "has no places, so distances are not defined",
            value=points.shape,
            remedy="use hamming, or your own matrix",
        )
    if isinstance(domain, Domain) and domain.plane is not None and not domain.plane.shorter:
        raise InputError(
            path,
            "touches a pole or is half as wide as the globe: plane distances may exceed the great circle",
            value=Shown(domain),
            remedy="use haversine, or a smaller box",
        )
    return _in_range(points, path)


def _in_range(points: Floats, path: str) -> Floats:
    if len(points) == 0:
        raise InputError(path, "is empty", value=points.shape, bound="at least one row")
    magnitude = np.abs(points)
    good = (magnitude == 0) | ((magnitude >= _SMALLEST) & (magnitude <= _LARGEST))
    require(good, points, path, "zero or between 1e-100 and 1e100 in magnitude", "use another unit of length")
    return points


def _coordinates(domain: Domain | ArrayLike, path: str) -> Floats:
    if isinstance(domain, Domain):
        if domain.coordinates is None:
            raise InputError(
                path,
                "has no latitudes and longitudes",
                value=Shown(domain),
                remedy="build it with Domain.geographic_grid or Domain.from_coordinates, or use euclidean",
            )
        return _in_range(domain.coordinates, path)
    coordinates = as_floats(domain, path, "(n, 2)")
    if coordinates.shape[1] != 2:
        raise InputError(path, "has the wrong shape", value=coordinates.shape, bound="(n, 2)")
    good = np.abs(coordinates) <= np.array([90.0, 180.0])
    require(good, coordinates, path, "a latitude between -90 and 90 and a longitude between -180 and 180 degrees")
    return _in_range(coordinates, path)


def _pairwise(domain: Domain | ArrayLike, other: Domain | ArrayLike | None, norm: Norm) -> Floats:
    first, second = _pair_of_points(domain, other)
    whole = isinstance(domain, Domain) and (other is None or other is domain)
    if whole and (steps := steps_of(domain)) is not None:  # type: ignore[arg-type]
        return _across(table_of_steps(steps, *shape_of(domain), norm))  # type: ignore[arg-type]
    here = places_of(domain if isinstance(domain, Domain) else first)
    if other is None:
        return _blocks(len(first), len(first), True, functools.partial(norm.lengths, here, here))
    there = places_of(other if isinstance(other, Domain) else second)
    scale = math.lcm(here.scale, there.scale)
    kernel = functools.partial(norm.lengths, here.rescale(scale), there.rescale(scale))
    return _blocks(len(first), len(second), False, kernel)


def _across(lengths: Floats) -> Floats:
    """Return the distances between all cells of a grid, given the lengths of displacements, (rows, columns)."""
    rows, columns = lengths.shape
    # Reflect the table to include steps to the left and down. The length for steps i and j is then at entry (rows − 1 +
    # j, columns − 1 + i).
    every = np.pad(lengths, ((rows - 1, 0), (columns - 1, 0)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(every, (rows, columns))
    return read_only(np.ascontiguousarray(windows[::-1, ::-1]).reshape(lengths.size, lengths.size))


def _pair_of_points(domain: Domain | ArrayLike, other: Domain | ArrayLike | None) -> tuple[Floats, Floats]:
    """Return two arrays of points; raise `InputError` unless they have the same dimension, unit and plane."""
    first = _points(domain, "domain")
    if other is None:
        return first, first
    second = _points(other, "other")
    if first.shape[1] != second.shape[1]:
        raise InputError(
            "other",
            "has a different number of dimensions",
            value=second.shape[1],
            bound=f"{first.shape[1]} as in domain",
        )
    if isinstance(domain, Domain) and isinstance(other, Domain) and domain is not other:
        if (domain.coordinates is None) != (other.coordinates is None):
            raise InputError(
                "other",
                "has a different kind of coordinates from domain",
                bound="both on the plane, or both in latitude and longitude",
            )
        if domain.unit != other.unit:
            raise InputError("other", "is in another unit", value=other.unit, bound=f"{domain.unit!r} as in domain")
        projected = domain.coordinates is not None and other.coordinates is not None
        if projected and (domain.plane is None or domain.plane != other.plane):
            raise InputError(
                "other",
                "may be in another plane",
                value=Shown(other),
                remedy="use haversine, or domains over the same bounding box",
            )
    return first, second


def _absolute_margin(domain: Domain | ArrayLike) -> float:
    """Return a bound, in km, on the difference between distances computed from rounded points and from coordinates."""
    return 1e-9 if isinstance(domain, Domain) and domain.plane is not None else 0.0


def _blocks(n: int, m: int, symmetric: bool, kernel: _Kernel) -> Floats:
    """Compute a matrix (n, m) in blocks of rows; for a symmetric matrix, compute only the upper triangle."""
    result = np.zeros((n, m))
    step = max(1, _PAIRS_PER_BLOCK // m)
    for start in range(0, n, step):
        rows, columns = np.arange(start, min(start + step, n)), np.arange(start if symmetric else 0, m)
        found = kernel(rows[:, None], columns[None, :])
        result[start : start + step, columns[0] :] = found
        if symmetric:
            result[columns[0] :, start : start + step] = found.T
    return read_only(result)


def _in_plane(plane: Plane, first: Floats, second: Floats) -> _Kernel:
    """Return the function with which `euclidean` computes distances between latitudes and longitudes."""
    east = DEGREE_KM * plane.cosine

    def kernel(rows: Integers, columns: Integers) -> Floats:
        # The relative rounding error of each difference is at most 2⁻⁵³.
        north, aside = (first[rows, axis] - second[columns, axis] for axis in (0, 1))
        lengths: Floats = (1 - _PLANE_MARGIN) * np.hypot(DEGREE_KM * north, east * aside)
        return lengths

    return kernel


def _haversine(places: Floats, others: Floats, rows: Integers, columns: Integers) -> Floats:
    first, second = places[rows, 0], others[columns, 0]
    east, rest = expansions.two_sum(places[rows, 1], -others[columns, 1])
    # Δλ, a number in [0, 360], is computed exactly as a double-double number. Then min(Δλ, 360 − Δλ) and its difference
    # from 180 are computed, each rounded once.
    east, rest = np.where(east < 0, -east, east), np.where(east < 0, -rest, rest)
    around, around_rest = expansions.two_sum(np.full_like(east, 360.0), -east)
    straight, straight_rest = expansions.two_sum(np.full_like(east, 180.0), -east)
    apart = np.where(straight + (straight_rest - rest) >= 0, east + rest, around + (around_rest - rest))
    from_opposite = np.abs(straight + (straight_rest - rest))
    cosines = np.sqrt(_sine(90 - np.abs(first)) * _sine(90 - np.abs(second)))
    near = np.hypot(_sine(np.abs(first - second) / 2), cosines * _sine(apart / 2))
    far = np.hypot(_sine(np.abs(first + second) / 2), cosines * _sine(from_opposite / 2))
    return (1 - _HAVERSINE_MARGIN) * (2 * EARTH_RADIUS_KM * np.arctan2(near, far))


def _sine(degrees: Floats) -> Floats:
    sine: Floats = np.sin(degrees * (math.pi / 180))
    return sine
