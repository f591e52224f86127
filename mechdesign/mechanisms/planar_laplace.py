"""The planar Laplace mechanism, released as the nearest of finitely many places (Andrés et al. 2013, section 4).

Noise z has the density ε²/(2π) exp(−ε‖z‖) in the plane, so that it lies beyond the distance r with the probability
S(r) = (1 + εr) e^(−εr) (equation 5). What falls beyond the places is counted for the nearest one: the mechanism is
truncated by remapping, which costs no privacy.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import Voronoi

from mechdesign.arithmetic import in_own_arithmetic
from mechdesign.errors import InputError
from mechdesign.validation import Floats, Integers, as_floats, as_number

__all__ = ["planar_laplace"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Gauss–Legendre nodes for each half of an edge.
_NODES = 40
# At this many multiples of 1/ε nothing is left of the noise, in floating point.
_NOTHING = 800.0


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
    rate = as_number(epsilon, "epsilon")
    if not 0 < rate < np.inf:
        raise InputError("epsilon", "is not positive", value=epsilon, bound="> 0 and finite")
    true, released = as_floats(places, "places", "(n, 2)"), as_floats(sites, "sites", "(m, 2)")
    for name, points in (("places", true), ("sites", released)):
        if points.shape[1] != 2 or not len(points):
            raise InputError(name, "are not places in the plane", value=points.shape, bound="of shape (k, 2), k >= 1")
    if len(np.unique(released, axis=0)) != len(released):
        raise InputError("sites", "are not all different", bound="distinct places")
    starts, ends, owners = _edges(rate, np.vstack((true, released)), released)
    masses = np.array([_masses(rate, starts - place, ends - place, owners, len(released)) for place in true])
    normalised: Floats = masses / masses.sum(axis=1, keepdims=True)
    return normalised


def _edges(rate: float, everything: Floats, sites: Floats) -> tuple[Floats, Floats, Integers]:
    """Return the edges of all Voronoi cells, counterclockwise, and the site of each; cells end where no noise is."""
    middle = (everything.min(axis=0) + everything.max(axis=0)) / 2
    reach = 4 * float(np.ptp(everything, axis=0).max()) + 4 * _NOTHING / rate
    corners = middle + reach * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    found = Voronoi(np.vstack((sites, corners)))
    starts, ends, owners = [], [], []
    for site in range(len(sites)):
        corner = found.vertices[found.regions[found.point_region[site]]]
        offsets = corner - sites[site]
        polygon = corner[np.argsort(np.arctan2(offsets[:, 1], offsets[:, 0]))]
        starts.append(polygon)
        ends.append(np.roll(polygon, -1, axis=0))
        owners.append(np.full(len(polygon), site))
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)


def _masses(rate: float, starts: Floats, ends: Floats, owners: Integers, count: int) -> Floats:
    """Return the mass of each cell about the origin."""
    along = ends - starts
    lengths = np.hypot(along[:, 0], along[:, 1])
    proper = lengths > 0
    starts, ends, along, owners = starts[proper], ends[proper], along[proper], owners[proper]
    along = along / lengths[proper, None]
    # The distance of the origin from the line of an edge, positive where the edge runs counterclockwise about it.
    heights = starts[:, 0] * along[:, 1] - starts[:, 1] * along[:, 0]
    away = np.abs(heights)
    # An edge whose line passes through the origin is seen as a point, and counts for nothing.
    safe = np.where(away > 0, away, 1.0)
    first, last = (starts * along).sum(axis=1) / safe, (ends * along).sum(axis=1) / safe
    signs = np.sign(heights)
    seen = np.bincount(owners, signs * (np.arctan(last) - np.arctan(first)), count)
    # What is seen of a cell from outside starts and ends in the same direction.
    seen[np.abs(seen) < 1e-9] = 0.0
    # With tan ψ = sinh v the integrand S(a cosh v) / cosh v is as smooth for near lines as for far ones.
    with np.errstate(over="ignore"):
        near = np.minimum(rate * safe, 2 * _NOTHING)
        most = np.arccosh(np.maximum(_NOTHING / near, 1.0))
    low, high = (np.clip(np.arcsinh(of), -most, most) for of in (first, last))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    outside = np.zeros(count)
    # It changes fastest at v = 0, the foot of the perpendicular.
    foot = np.clip(0.0, low, high)
    for start, stop in ((low, foot), (foot, high)):
        half = (stop - start) / 2
        stretch = np.cosh((start + half)[:, None] + half[:, None] * nodes)
        radii = near[:, None] * stretch
        beyond = (1 + radii) * np.exp(-radii) / stretch
        outside += np.bincount(owners, signs * half * (beyond @ weights), count)
    masses: Floats = np.maximum(seen - outside, 0.0) / (2 * np.pi)
    return masses
