"""What planar Laplace noise costs on a grid, and the least ε at which it is worth its cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._locate import PLANE
from mechdesign.model._locate import locate
from mechdesign.model._prior import Prior
from mechdesign.base._arrays import Floats

__all__ = ["LEVELS", "Worth", "noise_cost", "worthwhile_epsilon"]

LEVELS = tuple(Fraction(level) for level in ("0.1", "0.2", "0.5", "1", "2", "5", "10", "20"))
"""The ε that are tried, in nats per km: with the last one, odds change by a factor of e² within 100 m."""

_DRAWS = 2**15


@dataclass(frozen=True)
class Worth:
    """The least ε of `LEVELS` at which noise costs at most half of telling nothing, or None; costs are in km.

    Attributes:
        epsilon: the ε.
        noise: what noise costs with it, or with the last of `LEVELS`.
        nothing: what it costs to give the same answer always, the best one.
    """

    epsilon: Fraction | None
    noise: float
    nothing: float


def worthwhile_epsilon(domain: Domain, prior: Prior) -> Worth:
    """Return the least ε of `LEVELS` at which planar Laplace noise costs at most half of telling nothing."""
    nothing = float((prior.probabilities @ distances.euclidean(domain)).min())
    noise = 0.0
    for epsilon in LEVELS:
        noise = noise_cost(domain, prior, epsilon)
        if noise <= nothing / 2 and nothing > 0:
            return Worth(epsilon, noise, nothing)
    return Worth(None, noise, nothing)


def noise_cost(domain: Domain, prior: Prior, epsilon: Fraction) -> float:
    """Return the expected distance between a cell and that in which it is released with planar Laplace noise, in km.

    Noise z of density ε²/(2π) exp(−ε‖z‖) is added to the middle of a cell that is drawn from the prior; beyond the grid
    the nearest cell is taken. The mean of so many draws is always the same: they come from a seed, and hide nothing.
    """
    cells, noise = _draws(domain, prior)
    area = domain.area(PLANE)
    assert area is not None
    true = domain.points[cells]
    found, _ = locate(area, tuple((true + noise / float(epsilon)).T), "nearest")
    return float(np.hypot(*(domain.points[found] - true).T).mean())


def _draws(domain: Domain, prior: Prior) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    """Return cells from the prior, and noise with ε = 1."""
    generator = np.random.default_rng(0)
    cells = generator.choice(domain.size, _DRAWS, p=prior.probabilities)
    radius, angle = generator.gamma(2.0, size=_DRAWS), generator.uniform(0, 2 * np.pi, _DRAWS)
    return cells, np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))
