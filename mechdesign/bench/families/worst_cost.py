"""d-privacy at the least worst cost: the dearest secret counts, whatever the prior."""

from __future__ import annotations

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import prior_on
from mechdesign.bench.families.family import square
from mechdesign.model import distances
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._metric import MetricPrivacy

__all__ = ["FAMILY"]

EPSILON = "0.6"


def make(n: int, seed: int) -> Problem:
    """Return equation (12) of Privacy Games (Shokri 2015) on a square grid; cells cost more or less to miss."""
    domain = square(n)
    distance = distances.euclidean(domain)
    # Without weights the grid's symmetries would remain, and the seed would change nothing.
    weights = prior_on(domain, seed)
    cost = distance * (0.5 + weights / weights.max())[:, None]
    requirement = MetricPrivacy(EPSILON, distance)
    return Problem(weights, cost, [requirement], objective="worst", title=f"worst cost {n} {seed}")


FAMILY = Family("worst-cost", "d-privacy on a grid at the least worst cost", {"epsilon": EPSILON}, make)
