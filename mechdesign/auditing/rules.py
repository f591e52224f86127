"""Rules and noise laws that people use, as matrices to audit: each as it is usually programmed, in floats.

Nothing here is certified: `mechdesign.mechanisms` makes exact channels of the same laws. Rows are secrets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.arithmetic import in_own_arithmetic
from mechdesign.errors import InputError
from mechdesign.mechanisms.planar_laplace import planar_laplace as snapped_noise
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.validation import Floats, as_integer, as_nonnegative, as_number, require_kind

__all__ = ["additive", "exponential", "geometric", "planar_laplace", "planar_laplace_density", "snapping"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Beyond it floats are whole numbers, and next ones not told apart.
_LARGEST_MULTIPLE = 2.0**52
# Rows of more columns have no room.
_LARGEST_NOISE = 10**7
# Sums farther from 1 are no rounding: what an audit refuses, too.
_FARTHEST_SUM = 0.001


def snapping(secrets: Domain, spacing: float) -> Floats:
    """Return the rule "round every coordinate to a multiple of `spacing`": shape (n, places that occur).

    >>> snapping(Domain.from_points([[0.0], [0.4], [0.6]]), 1.0).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    width = _positive(spacing, "spacing")
    require_kind(secrets, Domain, "secrets", "a Domain")
    if not secrets.points.shape[1]:
        raise InputError("secrets", "have no places", bound="a domain of points or cells")
    with np.errstate(over="ignore", under="ignore"):
        multiples = np.floor(secrets.points / width + 0.5)
    if (np.abs(multiples) > _LARGEST_MULTIPLE).any():
        farthest = float(np.abs(secrets.points).max())
        bound = f"at least {farthest / _LARGEST_MULTIPLE:.3g} for coordinates up to {farthest:g}"
        raise InputError("spacing", "is too small for multiples to be told apart", value=width, bound=bound)
    _, place = np.unique(multiples, axis=0, return_inverse=True)
    return np.eye(int(place.max()) + 1)[place.ravel()]


@in_own_arithmetic
def planar_laplace(secrets: Domain, epsilon: float, observables: Domain | None = None) -> Floats:
    """Return planar Laplace noise as it is drawn and snapped: shape (n, m), p(o|s) = Pr(o is the nearest to s + z).

    The noise z has the density ε²/(2π) exp(−ε‖z‖) (Andrés et al. 2013): its radius is drawn by the Lambert W function,
    branch −1, and the result moves to the nearest observable. It keeps ε·d. `planar_laplace_density` is another law.

    Args:
        secrets: n places in the plane.
        epsilon: ε, in nats per unit of distance.
        observables: m places, all different; the secrets unless given.

    Raises:
        InputError: Places are not in one plane and one unit, two observables share a place, or ε is not positive.

    >>> square = Domain.grid(2, 1, 2.0, 1.0)
    >>> planar_laplace(square, 2.0).round(4).tolist()
    [[0.7615, 0.2385], [0.2385, 0.7615]]
    """
    require_kind(secrets, Domain, "secrets", "a Domain")
    sites = secrets if observables is None else observables
    require_kind(sites, Domain, "observables", "a Domain")
    for path, places in (("secrets", secrets), ("observables", sites)):
        if places.points.shape[1] != 2:
            raise InputError(path, "are no places in the plane", value=places.points.shape, bound="of shape (k, 2)")
    distances.euclidean(secrets, observables)  # refuses domains in two units, or in two planes
    if len(np.unique(sites.points, axis=0)) < sites.size:
        path = "secrets" if observables is None else "observables"
        raise InputError(path, "share a place", bound="distinct places", remedy="give each place once, observables=")
    return snapped_noise(_positive(epsilon, "epsilon"), secrets.points, sites.points)


def planar_laplace_density(secrets: Domain, epsilon: float, observables: Domain | None = None) -> Floats:
    """Return the density of planar Laplace noise at the places, p(o|s) ∝ exp(−ε‖s − o‖), each row divided by its sum.

    This is not the law of noise that is drawn and snapped (`planar_laplace`): where ε times the distance of neighbours
    is 1 or more, it is sharper. The sums differ from secret to secret, so that the guarantee is weaker than ε·d.
    """
    rate = _positive(epsilon, "epsilon")
    require_kind(secrets, Domain, "secrets", "a Domain")
    return _falling(distances.euclidean(secrets, observables), rate)


@in_own_arithmetic
def exponential(distance: ArrayLike, epsilon: float) -> Floats:
    """Return the exponential mechanism, p(o|s) ∝ exp(−ε d(s, o)/2) (McSherry and Talwar 2007), for d (n, m)."""
    apart = as_nonnegative(distance, "distance", 2)
    if not apart.size:
        raise InputError("distance", "has no entries", value=apart.shape, bound="a secret and an observable or more")
    return _falling(apart, _positive(epsilon, "epsilon") / 2)


@in_own_arithmetic
def geometric(n: int, epsilon: float) -> Floats:
    """Return two-sided geometric noise on 0..n−1, what falls outside put at the nearer end (Ghosh et al. 2009)."""
    size, rate = as_integer(n, "n", 2), _positive(epsilon, "epsilon")
    alpha = math.exp(-rate)
    index = np.arange(size)
    powers = alpha ** np.abs(index[:, None] - index[None, :])
    # 1 - α without cancellation.
    inner: Floats = powers * -math.expm1(-rate) / (1 + alpha)
    inner[:, 0], inner[:, -1] = powers[:, 0] / (1 + alpha), powers[:, -1] / (1 + alpha)
    return inner


@in_own_arithmetic
def additive(masses: Mapping[int, float], n: int) -> Floats:
    """Return a noise law on the integers added to 0..n−1, as it is: columns are the sums that occur.

    Args:
        masses: The probability of each value of the noise.
        n: The number of secrets, 0 to n − 1.

    Raises:
        InputError: Values that are no integers, or probabilities whose sum is not within 0.001 of 1, as for an audit.

    >>> additive({-1: 0.25, 0: 0.5, 1: 0.25}, 2).tolist()
    [[0.25, 0.5, 0.25, 0.0], [0.0, 0.25, 0.5, 0.25]]
    """
    size = as_integer(n, "n", 1)
    require_kind(masses, Mapping, "masses", "a mapping of integers to probabilities")
    if not masses:
        raise InputError("masses", "are empty", bound="a probability for each value of the noise")
    values = np.array([_whole(value) for value in masses])
    weights = as_nonnegative(list(masses.values()), "masses", 1)
    total = math.fsum(weights)
    if abs(total - 1) > _FARTHEST_SUM:
        raise InputError("masses", "do not sum to 1", value=total, bound="1, to within 0.001")
    start = int(values.min())
    matrix = np.zeros((size, size + int(values.max()) - start))
    for secret in range(size):
        matrix[secret, secret + values - start] = weights
    return matrix


def _falling(apart: Floats, rate: float) -> Floats:
    """Return rows in proportion to exp(-rate · d): the least distance of each row has the weight 1, so no sum is 0."""
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(-rate * (apart - apart.min(axis=1, keepdims=True)))
    divided: Floats = weights / weights.sum(axis=1, keepdims=True)
    return divided


def _whole(value: Any) -> int:
    """Return a value of the noise, an integer of either sign that a matrix has room for."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not -_LARGEST_NOISE <= int(value) <= _LARGEST_NOISE:
        bound = f"integers between -{_LARGEST_NOISE} and {_LARGEST_NOISE}"
        raise InputError("masses", "are of values that are no such noise", value=value, bound=bound)
    return int(value)


def _positive(value: object, path: str) -> float:
    number = as_number(value, path)
    if number <= 0:
        raise InputError(path, "is not positive", value=number, bound="a number > 0")
    return number
