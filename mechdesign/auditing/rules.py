"""Rules and noise laws that people use, as matrices to audit: each as it is usually programmed, in floats.

Nothing here is certified: `mechdesign.mechanisms` makes exact channels of the same laws. Rows are secrets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.arithmetic import in_own_arithmetic
from mechdesign.errors import InputError
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.validation import Floats, as_integer, as_nonnegative, as_number

__all__ = ["additive", "exponential", "geometric", "planar_laplace", "snapping"]


def __dir__() -> list[str]:
    return sorted(__all__)


def snapping(secrets: Domain, spacing: float) -> Floats:
    """Return the rule "round every coordinate to a multiple of `spacing`": shape (n, places that occur).

    >>> snapping(Domain.from_points([[0.0], [0.4], [0.6]]), 1.0).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    width = _positive(spacing, "spacing")
    if not secrets.points.shape[1]:
        raise InputError("secrets", "have no places", bound="a domain of points or cells")
    _, place = np.unique(np.floor(secrets.points / width + 0.5), axis=0, return_inverse=True)
    return np.eye(int(place.max()) + 1)[place.ravel()]


@in_own_arithmetic
def planar_laplace(secrets: Domain, epsilon: float, observables: Domain | None = None) -> Floats:
    """Return planar Laplace noise cut off at the map: p(o|s) ∝ exp(−ε‖s − o‖), each row divided by its sum.

    The density of Andrés et al. (2013) at the places of the observables. What is cut off differs from secret to secret,
    and so do the sums: the guarantee is weaker than ε·d.
    """
    rate = _positive(epsilon, "epsilon")
    apart = distances.euclidean(secrets, observables)
    return _normalised(np.exp(-rate * (apart - apart.min(axis=1, keepdims=True))))


@in_own_arithmetic
def exponential(distance: ArrayLike, epsilon: float) -> Floats:
    """Return the exponential mechanism, p(o|s) ∝ exp(−ε d(s, o)/2) (McSherry and Talwar 2007), for d (n, m)."""
    apart = as_nonnegative(distance, "distance", 2)
    return _normalised(np.exp(-_positive(epsilon, "epsilon") / 2 * apart))


@in_own_arithmetic
def geometric(n: int, epsilon: float) -> Floats:
    """Return two-sided geometric noise on 0..n−1, what falls outside put at the nearer end (Ghosh et al. 2009)."""
    size, alpha = as_integer(n, "n", 2), math.exp(-_positive(epsilon, "epsilon"))
    index = np.arange(size)
    powers = alpha ** np.abs(index[:, None] - index[None, :])
    inner: Floats = powers * (1 - alpha) / (1 + alpha)
    inner[:, 0], inner[:, -1] = powers[:, 0] / (1 + alpha), powers[:, -1] / (1 + alpha)
    return inner


@in_own_arithmetic
def additive(masses: Mapping[int, float], n: int) -> Floats:
    """Return a noise law on the integers added to 0..n−1, as it is: columns are the sums that occur.

    Args:
        masses: The probability of each value of the noise.
        n: The number of secrets, 0 to n − 1.

    >>> additive({-1: 0.25, 0: 0.5, 1: 0.25}, 2).tolist()
    [[0.25, 0.5, 0.25, 0.0], [0.0, 0.25, 0.5, 0.25]]
    """
    size = as_integer(n, "n", 1)
    if not masses:
        raise InputError("masses", "are empty", bound="a probability for each value of the noise")
    values = np.array([as_integer(abs(value), "masses", 0) * (1 if value >= 0 else -1) for value in masses])
    weights = as_nonnegative(list(masses.values()), "masses", 1)
    start = int(values.min())
    matrix = np.zeros((size, size + int(values.max()) - start))
    for secret in range(size):
        matrix[secret, secret + values - start] = weights
    return matrix


def _normalised(weights: Floats) -> Floats:
    divided: Floats = weights / weights.sum(axis=1, keepdims=True)
    return divided


def _positive(value: object, path: str) -> float:
    number = as_number(value, path)
    if number <= 0:
        raise InputError(path, "is not positive", value=number, bound="a number > 0")
    return number
