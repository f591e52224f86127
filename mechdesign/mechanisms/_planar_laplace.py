"""The planar Laplace mechanism with answers snapped to finitely many places (Andrés et al. 2013, section 4).

The noise z has the density ε²/(2π) exp(−ε‖z‖) in the plane. The norm of the noise exceeds r with the probability S(r) =
(1 + εr) e^(−εr) (equation 5). Noisy points outside the region of the places are snapped to the nearest place, too. This
truncation is post-processing, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Voronoi

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_floats
from mechdesign.base._check import as_positive, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.mechanisms._finite import exponential_rows
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive
from mechdesign.model.distances import euclidean

# Gauss–Legendre nodes for each half of an edge, and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
# The probability that the norm of the noise exceeds this multiple of 1/ε underflows to 0.
_MAX_RADIUS = 800.0
# The largest value of the variable of integration v; at this value, 1 / cosh v is 2e-13.
_MAX_V = 30.0
# The least mass of a cell, far above the floats that lose digits.
_LEAST_MASS = 1e-290
# Sites are treated as collinear if the ratio of their extents is at most this value.
_FLAT = 1e-9


@in_own_arithmetic
def planar_laplace(epsilon: float, places: Floats, sites: Floats) -> Floats:
    """Return Pr(the nearest site is o | true place s), shape (n, m), up to rounding and quadrature errors.

    The mass of a cell is the integral 1/(2π) ∮ (1 − S(r(θ))) dθ along its boundary, at distance r(θ) in direction θ.
    For a cell that does not contain s, the constant terms cancel and only the terms with S are summed. The small masses
    of distant cells therefore have a small relative error, unless the cells are far smaller than the distance. Errors
    cost no privacy, even where they exceed a mass; see `_keep_bound`.

    Args:
        epsilon: ε, in nats per unit of distance.
        places: The true places, shape (n, 2).
        sites: The distinct places that may be released, shape (m, 2).

    Returns:
        The probabilities, shape (n, m).

    >>> planar_laplace(1.0, np.array([[0.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]])).round(12).tolist()
    [[0.5, 0.5]]
    """
    rate = as_positive(epsilon, "epsilon")
    true, released = as_floats(places, "places", "(n, 2)"), as_floats(sites, "sites", "(m, 2)")
    for name, points in (("places", true), ("sites", released)):
        if points.shape[1] != 2 or not len(points):
            raise InputError(name, "are not places in the plane", value=points.shape, bound="of shape (k, 2), k >= 1")
    if len(np.unique(released, axis=0)) != len(released):
        raise InputError("sites", "are not all different", bound="distinct places")
    if len(released) == 1:
        return np.ones((len(true), 1))
    edges = _edges(released)
    return _keep_bound(np.array([_masses(rate, edges, place) for place in true]), rate, true)


def _keep_bound(masses: Floats, rate: float, places: Floats) -> Floats:
    """Return normalised masses with p(o|s) <= e^(ε d(s, t)) p(o|t), which exact masses meet.

    The mass of a cell far smaller than its distance is lost to rounding, and smaller masses underflow to 0. The largest
    e^(−ε d(s, t)) p(o|t) over all t is at least p(o|s), and meets the bound by the triangle inequality.
    """
    positive = np.maximum(masses / masses.sum(axis=1, keepdims=True), _LEAST_MASS)
    shares = np.exp(-rate * np.hypot(*(places[:, None] - places).transpose(2, 0, 1)))
    kept = np.array([(share[:, None] * positive).max(axis=0) for share in shares])
    normalised: Floats = kept / kept.sum(axis=1, keepdims=True)
    return normalised


class PlanarLaplace:
    """The planar Laplace mechanism (Andrés et al. 2013) for places in the plane.

    The mechanism guarantees p(o|s) <= exp(ε d(s, s')) p(o|s') for the Euclidean distance d. The method `matrix` returns
    the probabilities of the noisy places after they are snapped to the nearest observable. The method `density` returns
    normalised densities, which differ from these probabilities.

    Args:
        epsilon: ε, in nats per unit of distance.
        points: n places in the plane.

    Raises:
        InputError: The points are not places in the plane, or ε is not positive.

    >>> square = Domain.grid(2, 1, 2.0, 1.0)
    >>> PlanarLaplace(2, square).matrix().round(4).tolist()
    [[0.7615, 0.2385], [0.2385, 0.7615]]
    """

    def __init__(self, epsilon: Number, points: Domain) -> None:
        self.epsilon: Fraction = positive(epsilon, "epsilon")
        self.points = require_plane(points, "points")

    def __repr__(self) -> str:
        return f"PlanarLaplace(epsilon={exact_text(self.epsilon)}, {self.points.size} places)"

    @in_own_arithmetic
    def matrix(self, observables: Domain | None = None) -> Floats:
        """Return p(o|s) = Pr(o is the nearest observable to s + z).

        The noise z has the density ε²/(2π) exp(−ε‖z‖).

        Args:
            observables: The m distinct places that may be released. By default, the points are used.

        Returns:
            The probabilities, shape (n, m).

        Raises:
            InputError: The points and the observables have different units or planes, or two observables coincide.
        """
        path = "points" if observables is None else "observables"
        sites = self.points if observables is None else require_plane(observables, path)
        euclidean(self.points, observables)  # raises InputError for domains with different units or planes
        if len(np.unique(sites.points, axis=0)) < sites.size:
            raise InputError(
                path, "share a place", bound="distinct places", remedy="pass each place once as observables"
            )
        return planar_laplace(float(self.epsilon), self.points.points, sites.points)

    def density(self, observables: Domain | None = None) -> Floats:
        """Return p(o|s) ∝ exp(−ε‖s − o‖), the density of the noise at the observables, normalised in each row.

        The result differs from the probabilities of the planar Laplace mechanism; see `matrix`. The rows are more
        concentrated than those of `matrix` if ε times the distance of neighbouring places is 1 or more. The normalising
        sum depends on the secret, so the guarantee is weaker than for `matrix`.

        Args:
            observables: The m places that may be released. By default, the points are used.

        Returns:
            The normalised densities, shape (n, m).
        """
        return exponential_rows(euclidean(self.points, observables), float(self.epsilon))


def require_plane(places: Domain, path: str) -> Domain:
    """Return a domain; raise `InputError` unless its members are places in the plane."""
    require_kind(places, Domain, path, "a Domain")
    if places.points.shape[1] != 2:
        raise InputError(path, "are not places in the plane", value=places.points.shape, bound="of shape (k, 2)")
    return places


@dataclass(frozen=True, eq=False)
class _Edges:
    """The edges of all Voronoi cells, directed counterclockwise around their cells.

    Each edge occurs twice, once for each of the two cells that it separates. An unbounded edge is a ray or a line.

    Attributes:
        middles: A point on the line of each edge, (k, 2).
        along: The unit direction of each edge, (k, 2).
        low: The position where each edge starts on its line, relative to the middle, (k,); −∞ if it has no start.
        high: The position where each edge ends on its line, relative to the middle, (k,); ∞ if it has no end.
        owners: The index of the site whose cell lies on the left of each edge, int64 (k,).
        open: The angle that each cell covers at infinity, (m,); 0 for a bounded cell.
        centre: The origin of the middles, (2,).
    """

    middles: Floats
    along: Floats
    low: Floats
    high: Floats
    owners: Integers
    open: Floats
    centre: Floats


def _edges(sites: Floats) -> _Edges:
    """Return the edges of the Voronoi cells of at least two sites."""
    # Qhull squares coordinates, and loses the digits of places that are close together and far from the origin.
    centre = sites.mean(axis=0)
    sites = sites - centre
    _, extents, axes = np.linalg.svd(sites, full_matrices=False)
    if len(sites) == 2 or extents[1] <= _FLAT * extents[0]:
        order = np.argsort(sites @ axes[0])
        pairs: NDArray[Any] = np.column_stack((order[:-1], order[1:]))
        spans = np.tile([-np.inf, np.inf], (len(pairs), 1))
    else:
        found = Voronoi(sites)
        pairs, spans = found.ridge_points, np.zeros((len(found.ridge_points), 2))
    first, second = sites[pairs[:, 0]], sites[pairs[:, 1]]
    middles, apart = (first + second) / 2, second - first
    # The first site lies on the left of the edge.
    along = np.column_stack((-apart[:, 1], apart[:, 0])) / np.hypot(apart[:, 0], apart[:, 1])[:, None]
    if not np.isinf(spans).any():
        for index, vertices in enumerate(found.ridge_vertices):
            ends = [
                float((found.vertices[vertex] - middles[index]) @ along[index]) for vertex in vertices if vertex >= 0
            ]
            if len(ends) == 1:
                # All other sites lie on one side of the line through these two; the ray points to the other side.
                beside = (sites - first[index]) @ along[index]
                ends.append(-np.inf if beside.max() > -beside.min() else np.inf)
            spans[index] = sorted(ends)
    low, high = np.concatenate((spans, -spans[:, ::-1])).T
    directions, owners = np.concatenate((along, -along)), np.concatenate((pairs[:, 0], pairs[:, 1]))
    at_infinity = _at_infinity(directions, low, high, owners)
    return _Edges(np.concatenate((middles, middles)), directions, low, high, owners, at_infinity, centre)


def _at_infinity(along: Floats, low: Floats, high: Floats, owners: Integers) -> Floats:
    """Return the angle of each cell at infinity, counterclockwise from its outgoing ray to its incoming ray."""
    count = int(owners.max()) + 1
    turns = np.zeros(count)
    for site in range(count):
        mine = owners == site
        leaves, comes = along[mine & np.isinf(high)], -along[mine & np.isinf(low)]
        # A cell between two parallel lines covers the angle 0 at infinity.
        if len(leaves) == 1:
            angle = np.diff(np.arctan2([leaves[0, 1], comes[0, 1]], [leaves[0, 0], comes[0, 0]]))[0] % (2 * np.pi)
            turns[site] = 0.0 if angle > 2 * np.pi - 1e-9 else angle
    return turns


def _masses(rate: float, edges: _Edges, place: Floats) -> Floats:
    """Return the probability of each cell for noise around a place."""
    count, owners, along = len(edges.open), edges.owners, edges.along
    middles = edges.middles - (place - edges.centre)
    # The signed distance of the place from the line of each edge, positive if the edge runs counterclockwise.
    heights = middles[:, 0] * along[:, 1] - middles[:, 1] * along[:, 0]
    away = np.abs(heights)
    # An edge covers no angle and contributes nothing if its line contains the place.
    safe = np.where(away > 0, away, 1.0)
    foot_to_middle = (middles * along).sum(axis=1)
    first, last = (foot_to_middle + edges.low) / safe, (foot_to_middle + edges.high) / safe
    signs = np.sign(heights)
    seen = edges.open + np.bincount(owners, signs * (np.arctan(last) - np.arctan(first)), count)
    # The angles of all edges of a cell cancel, up to rounding, if the place lies outside the cell.
    seen[np.abs(seen) < 1e-9] = 0.0
    # With tan ψ = sinh v, the integrand is S(a cosh v) / cosh v, which is smooth even for lines close to the place.
    with np.errstate(divide="ignore", over="ignore"):
        near = np.minimum(rate * safe, 2 * _MAX_RADIUS)
        most = np.minimum(np.arccosh(np.maximum(_MAX_RADIUS / near, 1.0)), _MAX_V)
    low, high = (np.clip(np.arcsinh(of), -most, most) for of in (first, last))
    outside = np.zeros(count)
    # The integrand changes fastest at v = 0, so the interval is split at this foot of the perpendicular.
    foot = np.clip(0.0, low, high)
    for start, stop in ((low, foot), (foot, high)):
        half = (stop - start) / 2
        stretch = np.cosh((start + half)[:, None] + half[:, None] * _NODES)
        radii = near[:, None] * stretch
        beyond = (1 + radii) * np.exp(-radii) / stretch
        outside += np.bincount(owners, signs * half * (beyond @ _WEIGHTS), count)
    masses: Floats = np.maximum(seen - outside, 0.0) / (2 * np.pi)
    return masses
