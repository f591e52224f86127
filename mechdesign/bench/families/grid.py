"""d-privacy on a grid: Euclidean cost and distance."""

from __future__ import annotations

from mechdesign.bench.families.family import Family, prior_on, square
from mechdesign.model import distances
from mechdesign.model.problem import Problem
from mechdesign.requirements.kinds import MetricPrivacy

__all__ = ["FAMILY"]

EPSILON = "0.6"


def make(n: int, seed: int) -> Problem:
    """Return d-privacy on a square grid of about n unit cells (Chatzikokolakis et al. 2013)."""
    domain = square(n)
    distance = distances.euclidean(domain)
    return Problem(prior_on(domain, seed), distance, [MetricPrivacy(EPSILON, distance)], title=f"grid {n} {seed}")


FAMILY = Family("grid", "d-privacy on a square grid", {"epsilon": EPSILON}, make)
