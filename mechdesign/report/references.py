"""What a reader compares a channel with: costs by name, and the metric that all bounds on pairs imply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import csgraph_from_masked, shortest_path

from mechdesign.certify._claims import PairBound
from mechdesign.model._problem import Problem
from mechdesign.base._arrays import Floats

__all__ = ["NO_INFORMATION", "Reference", "combined_bound"]

NO_INFORMATION = "no information: always the same answer"


@dataclass(frozen=True)
class Reference:
    """The cost of a mechanism that a reader knows; `note` says what it lacks."""

    name: str
    cost: float
    note: str = ""


def combined_bound(problem: Problem) -> Floats | None:
    """Return the largest metric E (n, n) such that p(o|s) <= exp(E(s, t)) p(o|t) implies every bound on pairs.

    It is the length of the shortest path where a bounded pair is an edge, in both directions, of the length ln g.
    Infinite where nothing is required; None when no pair is bounded.
    """
    n = len(problem.prior)
    bounds = np.full((n, n), np.inf)
    for claim in problem.claims:
        if isinstance(claim, PairBound):
            np.minimum.at(bounds, (claim.sources, claim.targets), claim.exponents)
    bounds = np.minimum(bounds, bounds.T)
    np.fill_diagonal(bounds, 0.0)
    if not np.isfinite(bounds[~np.eye(n, dtype=np.bool_)]).any():
        return None
    # A plain matrix would take lengths of zero for missing edges.
    lengths: Floats = shortest_path(csgraph_from_masked(np.ma.masked_invalid(bounds)), method="FW")
    return lengths
