"""When releases on disjoint parts of a table compose in parallel: at the largest budget instead of the sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.blowfish.clique_graphs import block_numbers
from mechdesign.blowfish.constraints import kinds_of
from mechdesign.blowfish.policy import Policy
from mechdesign.blowfish.policy import as_policy
from mechdesign.blowfish.secret_graphs import Edge

__all__ = ["ParallelComposition", "parallel_composition"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class ParallelComposition:
    """Whether ε-private releases on disjoint parts of a table are ε-private together.

    Attributes:
        allowed: whether they are, by Theorem 4.2 of Blowfish (He et al. 2014); if not, their budgets add up.
        reason: the reason, in a sentence.
        constraint: the constraint that stands in the way, or None.
        edge: an edge of the secret graph that shows it, or None.
    """

    allowed: bool
    reason: str
    constraint: int | None = None
    edge: Edge | None = None

    def __bool__(self) -> bool:
        return self.allowed


def parallel_composition(policy: Policy, parts: ArrayLike | None = None) -> ParallelComposition:
    """Decide whether releases on disjoint groups of people compose in parallel.

    One move changes one person's record, so releases on disjoint groups see the change once, unless publicly known
    counts tie moves in one group to moves in another. An edge is critical to a constraint if it changes its count. What
    it changes any other record may undo, in any group, whether or not an edge joins its values: releases compose in
    parallel only if no edge is critical to any constraint. (Theorem 4.3 asks less, critical edges in one group at most,
    and does not look at moves along pairs that are no edges.)

    Args:
        policy: the policy.
        parts: the part of each value, shape (|T|,), where a person's group is told by the value of the record; then no
            edge may lead from one part to another, so that the group is no secret. Unless given, the groups are chosen
            without looking at the data, and any person may be in any group.
    """
    graph = as_policy(policy).secret_graph
    labels = None if parts is None else np.append(block_numbers(policy.domain, parts, "parts"), -1)
    if labels is not None and (edge := graph.crossing(labels[:-1])) is not None:
        return ParallelComposition(False, "A record may move from one part to another, which changes both.", None, edge)
    kinds, counted = kinds_of(policy.constraints, graph.size, null=graph.has_null)
    joined = graph.joined(kinds[: graph.size])
    critical = counted[kinds[joined[:, 0]]] != counted[kinds[joined[:, 1]]]
    for index in np.flatnonzero(critical.any(axis=0)).tolist():
        x, y = joined[np.argmax(critical[:, index])].tolist()
        where = "groups" if labels is None else "parts"
        reason = f"People in different {where} may change the count of constraints[{index}] and restore it together."
        return ParallelComposition(False, reason, index, (x, y))
    if not policy.constraints:
        return ParallelComposition(True, "Two neighbouring databases differ in a single record.")
    return ParallelComposition(True, "No move along an edge changes a publicly known count.")
