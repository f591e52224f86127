"""The planar Laplace mechanism, released as the nearest of finitely many places (Andrés et al. 2013, section 4).

Noise z has the density ε²/(2π) exp(−ε‖z‖) in the plane, so that it lies beyond the distance r with the probability
S(r) = (1 + εr) e^(−εr) (equation 5). Noise beyond the places is counted for the nearest place: the mechanism is
truncated by remapping, which costs no privacy.
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
from mechdesign.mechanisms._finite import falling
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive
from mechdesign.model.distances import euclidean

# Gauss–Legendre nodes for each half of an edge, and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
# At this many multiples of 1/ε nothing is left of the noise, in floating point.
_NOTHING = 800.0
# Nor is there beyond this v, where 1 / cosh v is 2e-13.
_FAR = 30.0
# Sites are on a line if the ratio of their extents is at most this.
_FLAT = 1e-9


@in_own_arithmetic
def planar_laplace(epsilon: float, places: Floats, sites: Floats) -> Floats:
    """Return Pr(the nearest site is o | true place s), shape (n, m), up to rounding and quadrature.

    The mass of a cell is an integral over the directions in which its edges are seen, of the mass between them:
    1/(2π) ∮ (1 − S(r(θ))) dθ. Far cells are sums of S alone, so that their masses, too, have many correct digits.

    Args:
        epsilon: ε, in nats per unit of distance.
        places: The true places, shape (n, 2).
        sites: The places that may be released, all different, shape (m, 2).

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
    masses = np.array([_masses(rate, edges, place) for place in true])
    normalised: Floats = masses / masses.sum(axis=1, keepdims=True)
    return normalised


class PlanarLaplace:
    """Planar Laplace noise about places in the plane (Andrés et al. 2013), which keeps ε·d.

    `matrix` is the law of noise that is drawn and moved to the nearest observable; `density` is not.

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
        """Return p(o|s) = Pr(o is the nearest observable to s + z), shape (n, m).

        The noise z has the density ε²/(2π) exp(−ε‖z‖): its radius is drawn by the Lambert W function, branch −1.

        Args:
            observables: m places, all different; the points unless given.

        Raises:
            InputError: Places are not in one plane and one unit, or two observables share a place.
        """
        path = "points" if observables is None else "observables"
        sites = self.points if observables is None else require_plane(observables, path)
        euclidean(self.points, observables)  # refuses domains in two units, or in two planes
        if len(np.unique(sites.points, axis=0)) < sites.size:
            raise InputError(
                path, "share a place", bound="distinct places", remedy="give each place once, observables="
            )
        return planar_laplace(float(self.epsilon), self.points.points, sites.points)

    def density(self, observables: Domain | None = None) -> Floats:
        """Return the density of the noise at the observables, p(o|s) ∝ exp(−ε‖s − o‖), each row divided by its sum.

        This is not the law of noise that is drawn and snapped (see `matrix`). It is sharper if ε times the distance of
        neighbours is 1 or more. The sums differ from secret to secret, so that the guarantee is weaker than ε·d.
        """
        return falling(euclidean(self.points, observables), float(self.epsilon))


def require_plane(places: Domain, path: str) -> Domain:
    """Return a domain; raise `InputError` unless its members are places in the plane."""
    require_kind(places, Domain, path, "a Domain")
    if places.points.shape[1] != 2:
        raise InputError(path, "are not places in the plane", value=places.points.shape, bound="of shape (k, 2)")
    return places


@dataclass(frozen=True, eq=False)
class _Edges:
    """The edges of all Voronoi cells, counterclockwise, each once for either cell; those without an end are rays.

    Attributes:
        middles: A point on the line of each edge, (k, 2).
        along: Its direction, of length 1, (k, 2).
        low: The start on the line, measured from the middle, (k,); −∞ for a ray.
        high: The end, (k,); ∞ for a ray.
        owners: The site of its cell, int64 (k,).
        open: The angle in which each cell is seen at infinity, (m,).
    """

    middles: Floats
    along: Floats
    low: Floats
    high: Floats
    owners: Integers
    open: Floats


def _edges(sites: Floats) -> _Edges:
    """Return the edges of the Voronoi cells of two sites or more."""
    centred = sites - sites.mean(axis=0)
    _, extents, axes = np.linalg.svd(centred, full_matrices=False)
    if len(sites) == 2 or extents[1] <= _FLAT * extents[0]:
        order = np.argsort(centred @ axes[0])
        pairs: NDArray[Any] = np.column_stack((order[:-1], order[1:]))
        spans = np.tile([-np.inf, np.inf], (len(pairs), 1))
    else:
        found = Voronoi(sites)
        pairs, spans = found.ridge_points, np.zeros((len(found.ridge_points), 2))
    first, second = sites[pairs[:, 0]], sites[pairs[:, 1]]
    middles, apart = (first + second) / 2, second - first
    # The first site is on the left.
    along = np.column_stack((-apart[:, 1], apart[:, 0])) / np.hypot(apart[:, 0], apart[:, 1])[:, None]
    if not np.isinf(spans).any():
        for index, vertices in enumerate(found.ridge_vertices):
            ends = [
                float((found.vertices[vertex] - middles[index]) @ along[index]) for vertex in vertices if vertex >= 0
            ]
            if len(ends) == 1:
                # A ray leads away from all other sites, which are on one side of the two.
                beside = (sites - first[index]) @ along[index]
                ends.append(-np.inf if beside.max() > -beside.min() else np.inf)
            spans[index] = sorted(ends)
    low, high = np.concatenate((spans, -spans[:, ::-1])).T
    directions, owners = np.concatenate((along, -along)), np.concatenate((pairs[:, 0], pairs[:, 1]))
    return _Edges(
        np.concatenate((middles, middles)), directions, low, high, owners, _at_infinity(directions, low, high, owners)
    )


def _at_infinity(along: Floats, low: Floats, high: Floats, owners: Integers) -> Floats:
    """Return the angle of each cell at infinity: counterclockwise, from the ray that leaves to the one that comes."""
    count = int(owners.max()) + 1
    turns = np.zeros(count)
    for site in range(count):
        mine = owners == site
        leaves, comes = along[mine & np.isinf(high)], -along[mine & np.isinf(low)]
        # A cell between two parallel lines is not seen at infinity.
        if len(leaves) == 1:
            angle = np.diff(np.arctan2([leaves[0, 1], comes[0, 1]], [leaves[0, 0], comes[0, 0]]))[0] % (2 * np.pi)
            turns[site] = 0.0 if angle > 2 * np.pi - 1e-9 else angle
    return turns


def _masses(rate: float, edges: _Edges, place: Floats) -> Floats:
    """Return the mass of each cell about a place."""
    count, owners, along = len(edges.open), edges.owners, edges.along
    middles = edges.middles - place
    # The distance of the place from the line of an edge, positive where the edge runs counterclockwise about it.
    heights = middles[:, 0] * along[:, 1] - middles[:, 1] * along[:, 0]
    away = np.abs(heights)
    # An edge whose line passes through the place is seen as a point, and counts for nothing.
    safe = np.where(away > 0, away, 1.0)
    foot_to_middle = (middles * along).sum(axis=1)
    first, last = (foot_to_middle + edges.low) / safe, (foot_to_middle + edges.high) / safe
    signs = np.sign(heights)
    seen = edges.open + np.bincount(owners, signs * (np.arctan(last) - np.arctan(first)), count)
    # The angles of a cell that is seen from outside cancel.
    seen[np.abs(seen) < 1e-9] = 0.0
    # With tan ψ = sinh v the integrand S(a cosh v) / cosh v is as smooth for near lines as for far ones.
    with np.errstate(divide="ignore", over="ignore"):
        near = np.minimum(rate * safe, 2 * _NOTHING)
        most = np.minimum(np.arccosh(np.maximum(_NOTHING / near, 1.0)), _FAR)
    low, high = (np.clip(np.arcsinh(of), -most, most) for of in (first, last))
    outside = np.zeros(count)
    # It changes fastest at v = 0, the foot of the perpendicular.
    foot = np.clip(0.0, low, high)
    for start, stop in ((low, foot), (foot, high)):
        half = (stop - start) / 2
        stretch = np.cosh((start + half)[:, None] + half[:, None] * _NODES)
        radii = near[:, None] * stretch
        beyond = (1 + radii) * np.exp(-radii) / stretch
        outside += np.bincount(owners, signs * half * (beyond @ _WEIGHTS), count)
    masses: Floats = np.maximum(seen - outside, 0.0) / (2 * np.pi)
    return masses
