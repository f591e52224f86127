"""A policy graph of blocks: complete within each, nothing between them."""

from __future__ import annotations

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import prior_on
from mechdesign.bench.families.family import square
from mechdesign.graphs._builders import blocks
from mechdesign.model import distances
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy

__all__ = ["FAMILY"]

EPSILON = "1"
_SIDE = 4


def make(n: int, seed: int) -> Problem:
    """Return the policy of PGLP (Cao 2020) in which cells of one block of 4 × 4 are indistinguishable."""
    domain = square(n)
    requirement = GraphPrivacy(EPSILON, blocks(domain, _SIDE))
    return Problem(prior_on(domain, seed), distances.euclidean(domain), [requirement], title=f"blocks {n} {seed}")


FAMILY = Family("blocks", "policy graph of blocks of 4 × 4 cells", {"epsilon": EPSILON, "side": _SIDE}, make)
