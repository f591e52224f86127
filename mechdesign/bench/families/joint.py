"""d-privacy and distortion privacy at once."""

from __future__ import annotations

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import prior_on
from mechdesign.bench.families.family import square
from mechdesign.certify._exact import float_down
from mechdesign.model import distances
from mechdesign.model._problem import Problem
from mechdesign.model._problem import largest_distortion
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy

__all__ = ["FAMILY"]

EPSILON = "1.2"
_SHARE = 0.9


def make(n: int, seed: int) -> Problem:
    """Return equation (24) of Privacy Games (Shokri 2015): d-privacy, and nine tenths of the largest Hamming error.

    Either requirement alone would leave the other unmet.
    """
    domain = square(n)
    prior, distance, error = prior_on(domain, seed), distances.euclidean(domain), distances.hamming(domain)
    floor = round(_SHARE * float_down(largest_distortion(prior, error)), 6)
    requirements = [MetricPrivacy(EPSILON, distance), DistortionPrivacy(floor, error)]
    return Problem(prior, distance, requirements, title=f"joint {n} {seed}")


FAMILY = Family("joint", "d-privacy and distortion privacy at once", {"epsilon": EPSILON, "share": _SHARE}, make)
