"""Averages over raw visits: each visit is dithered to anchors instead of binned into cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_floats, require
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError, OutsideWarning
from mechdesign.base._names import require_one_index
from mechdesign.base._warnings import warn
from mechdesign.model._domain import Domain
from mechdesign.model._locate import EARTH_RADIUS_KM, wrap_longitudes


def _euclidean(apart: Floats) -> Floats:
    return np.asarray(np.sqrt((apart**2).sum(axis=2)))


def _manhattan(apart: Floats) -> Floats:
    return np.asarray(np.abs(apart).sum(axis=2))


def _chebyshev(apart: Floats) -> Floats:
    return np.asarray(np.abs(apart).max(axis=2))


MEASURES: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {"euclidean": _euclidean, "manhattan": _manhattan, "chebyshev": _chebyshev}
)
"""Functions that compute plane distances (k, m) from coordinate differences (k, m, 2), by the name of the distance."""

# Number of visits processed at a time.
_VISITS_PER_BLOCK = 4096


def anchor_means(
    anchors: Domain,
    points: ArrayLike,
    values: ArrayLike,
    weights: ArrayLike | None = None,
    quiet: bool = False,
    path: str = "values",
) -> tuple[Floats, Floats]:
    """Return the probability that each anchor is drawn, and the mean value over the visits that draw the anchor.

    A visit x with probability π(x) lies between four anchors, with bilinear weights w_a(x). The probabilities are π_a =
    Σ_x π(x) w_a(x), and the means are Σ_x π(x) w_a(x) v(x, ·) / π_a. Neither the probabilities nor the means have a
    binning error. If no visit draws an anchor, its π_a is 0, and it gets the values of the visit that is nearest to it.

    Args:
        anchors: A domain of n anchors.
        points: Raw coordinates, (k, 2): x and y in the unit of the anchors, or latitude and longitude in degrees if the
            anchors have coordinates in degrees. Points outside the rectangle are projected onto it, and an
            `OutsideWarning` counts them.
        values: Numbers for each visit, (k, m), such as costs of answers or errors of estimates.
        weights: Relative weights of the visits, (k,), >= 0; None gives all visits equal weight.
        quiet: Whether to suppress the warning about points outside the rectangle.
        path: The path of `values`, for messages.

    Returns:
        The probabilities π_a, float64 (n,), whose sum is 1, and the means, float64 (n, m).

    Raises:
        InputError: An argument has the wrong shape or is out of range.

    >>> anchors = Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
    >>> anchor_means(anchors, [[0.5, 0.0], [1.0, 0.0]], [[2.0], [4.0]])[0].tolist()
    [0.25, 0.75, 0.0, 0.0]
    """
    from scipy.sparse import csr_array

    visits, shares = _visits(anchors, points, weights)
    array = as_floats(values, path, "(k, m)")
    if len(array) != len(visits):
        raise InputError(path, "has not one row for each point", value=len(array), bound=f"{len(visits)} rows")
    require(np.isfinite(array), array, path, "a finite number")
    assert anchors.lattice is not None
    corners = anchors.lattice.corners(visits[:, 0], visits[:, 1])
    outside = int(corners.outside.sum())
    if outside and not quiet:
        warn(
            f"points: {outside} of {len(visits)} lie outside the rectangle of the anchors and were projected onto it; "
            "their costs are computed at the original places",
            OutsideWarning,
            stacklevel=3,
        )
    rows = np.repeat(np.arange(len(visits)), 4)
    joint = shares[:, None] * corners.weights
    matrix = csr_array((joint.ravel(), (corners.indices.ravel(), rows)), shape=(anchors.size, len(visits)))
    drawn: Floats = np.asarray(matrix.sum(axis=1)).ravel()
    sums = matrix @ array
    never = drawn <= 0
    means = sums / np.where(never, 1.0, drawn)[:, None]
    if never.any():
        places = anchors.points[never]
        shown = _plane(anchors, visits)
        for start in range(0, len(places), 256):
            some = np.flatnonzero(never)[start : start + 256]
            apart = ((anchors.points[some][:, None, :] - shown[None, :, :]) ** 2).sum(axis=2)
            means[some] = array[apart.argmin(axis=1)]
    prior = drawn / drawn.sum()
    return prior, means


def between(anchors: Domain, points: ArrayLike, places: Domain, measure: str) -> Floats:
    """Return the distances from raw points to the members of a domain.

    Args:
        anchors: A domain of anchors, which determines the plane and its unit.
        points: Raw coordinates, (k, 2): x and y in the unit of the anchors, or latitude and longitude in degrees.
        places: A domain of m places, with the same kind of coordinates as the anchors.
        measure: "euclidean", "manhattan" or "chebyshev" in the plane of the anchors, or "haversine" (great circle) if
            both domains have latitudes and longitudes.

    Returns:
        Distances, float64 of shape (k, m), in the unit of the anchors; in km for "haversine".

    Raises:
        InputError: The measure is unknown, or the places and the anchors have different kinds of coordinates.

    >>> anchors = Domain.anchors(columns=2, rows=2, width=3.0, height=4.0)
    >>> between(anchors, [[0.0, 0.0]], anchors, "euclidean").tolist()
    [[0.0, 3.0, 4.0, 5.0]]
    """
    require_kind(anchors, Domain, "anchors", "a Domain")
    require_kind(places, Domain, "observables", "a Domain")
    visits, _ = _visits(anchors, points, None)
    if measure == "haversine":
        if anchors.coordinates is None or places.coordinates is None:
            raise InputError(
                "cost", "needs latitudes and longitudes", value=measure, bound="geographic anchors and answers"
            )
        return _haversine(visits, places.coordinates)
    if measure not in MEASURES:
        raise InputError("cost", "is not known", value=measure, bound=f"{', '.join(MEASURES)} or haversine")
    if anchors.coordinates is not None and places.coordinates is not None:
        targets = _plane(anchors, places.coordinates)
    elif anchors.coordinates is None and places.coordinates is None and places.points.shape[1] == 2:
        if places.unit != anchors.unit:
            raise InputError(
                "observables", "have a different unit from the anchors", value=places.unit, bound=anchors.unit
            )
        targets = places.points
    else:
        bound = "in latitude and longitude" if anchors.coordinates is not None else "in x and y on the plane"
        raise InputError(
            "observables", "have a different kind of coordinates from the anchors", value=places, bound=bound
        )
    shown = _plane(anchors, visits)
    found = np.empty((len(shown), len(targets)))
    for start in range(0, len(shown), _VISITS_PER_BLOCK):
        part = slice(start, start + _VISITS_PER_BLOCK)
        found[part] = MEASURES[measure](shown[part, None, :] - targets[None, :, :])
    return found


def _visits(anchors: Domain, points: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return checked coordinates (k, 2), and weights (k,) that sum to 1."""
    if anchors.lattice is None:
        raise InputError(
            "anchors", "is not a domain of anchors", value=anchors, remedy="build the anchors with Domain.anchors"
        )
    require_one_index({"points": points, "weights": weights})
    visits = as_floats(points, "points", "(k, 2)")
    if visits.shape[1] != 2 or not len(visits):
        raise InputError("points", "are not coordinates", value=visits.shape, bound="of shape (k, 2), with k >= 1")
    require(np.isfinite(visits), visits, "points", "a finite number")
    if anchors.lattice.box is not None:
        good = (visits >= [-90.0, -180.0]) & (visits <= [90.0, 360.0])
        require(good, visits, "points", "a latitude, then a longitude, in degrees")
    if weights is None:
        return visits, np.full(len(visits), 1 / len(visits))
    given = as_floats(weights, "weights", "(k,)")
    if len(given) != len(visits):
        raise InputError("weights", "do not match the number of points", value=len(given), bound=f"{len(visits)}")
    require(np.isfinite(given) & (given >= 0), given, "weights", "a finite number >= 0")
    if not given.any():
        raise InputError("weights", "are all zero", bound="above 0 for at least one point")
    return visits, given / given.sum()


def _plane(anchors: Domain, places: Floats) -> Floats:
    """Return the x and y of places in the plane of the anchors; places in degrees are projected."""
    lattice = anchors.lattice
    assert lattice is not None
    if lattice.box is None:
        return places
    south, north, west, east = lattice.box
    x = (wrap_longitudes(places[:, 1], west, east) - west) / (east - west) * lattice.width
    y = (places[:, 0] - south) / (north - south) * lattice.height
    shown: Floats = np.column_stack((x, y))
    return shown


def _haversine(first: Floats, second: Floats) -> Floats:
    """Return great-circle distances in km, rounded to nearest, because costs need not be rounded down."""
    latitude, longitude = np.radians(first).T
    other_latitude, other_longitude = np.radians(second).T
    half = np.sin((latitude[:, None] - other_latitude) / 2) ** 2
    half += np.cos(latitude)[:, None] * np.cos(other_latitude) * np.sin((longitude[:, None] - other_longitude) / 2) ** 2
    distances: Floats = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return distances
