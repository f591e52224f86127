"""d-privacy on a grid: Euclidean cost and distance."""

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
    """Return d-privacy on a square grid of about n unit cells (Chatzikokolakis et al. 2013)."""
    domain = square(n)
    distance = distances.euclidean(domain)
    return Problem(prior_on(domain, seed), distance, [MetricPrivacy(EPSILON, distance)], title=f"grid {n} {seed}")


FAMILY = Family("grid", "d-privacy on a square grid", {"epsilon": EPSILON}, make)
