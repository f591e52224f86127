"""Distortion privacy alone: no bound between secrets, a floor on the adversary's error."""

from __future__ import annotations

from decimal import Decimal

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import prior_on
from mechdesign.bench.families.family import square
from mechdesign.certify._exact import float_down
from mechdesign.model import distances
from mechdesign.model._problem import Problem
from mechdesign.model._problem import largest_distortion
from mechdesign.model._requirements._distortion import DistortionPrivacy

__all__ = ["FAMILY"]

_SHARE = "0.8"


def make(n: int, seed: int) -> Problem:
    """Return equation (21) of Privacy Games (Shokri 2015): Euclidean cost, a floor on the Hamming error.

    The floor is eight tenths of the largest error. With cost and error alike the least cost would be the floor itself.
    """
    domain = square(n)
    prior, error = prior_on(domain, seed), distances.hamming(domain)
    floor = round(float(Decimal(_SHARE)) * float_down(largest_distortion(prior, error)), 6)
    requirement = DistortionPrivacy(floor, error)
    return Problem(prior, distances.euclidean(domain), [requirement], title=f"distortion {n} {seed}")


FAMILY = Family("distortion", "distortion privacy against the optimal attack", {"share": _SHARE}, make)
