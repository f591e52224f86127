"""When releases on disjoint parts of a table compose in parallel: at the largest budget instead of the sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.blowfish.clique_graphs import block_numbers
from mechdesign.blowfish.constraint_effects import Effects
from mechdesign.blowfish.policy import Policy, as_policy
from mechdesign.blowfish.secret_graphs import Edge

__all__ = ["ParallelComposition", "parallel_composition"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class ParallelComposition:
    """Whether ε-private releases on disjoint parts of a table are ε-private together.

    Attributes:
        allowed: whether they are, by Theorems 4.2 and 4.3 of Blowfish (He et al. 2014); if not, their budgets add up.
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
    counts tie moves in one group to moves in another. An edge is critical to a constraint if it changes its count. By
    Theorem 4.3 it suffices that every constraint has critical edges in one group at most.

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
    effects = Effects.of(graph, policy.constraints, labels)
    for index in range(len(policy.constraints)):
        critical = effects.joined[effects.affects(index)]
        if not len(critical):
            continue
        shown = (int(critical[0, 0]), int(critical[0, 1]))
        if labels is None:
            reason = f"People in different groups may change the count of constraints[{index}] and restore it together."
            return ParallelComposition(False, reason, index, shown)
        touched = np.unique(labels[critical].max(axis=1))
        if len(touched) > 1:
            reason = f"Records in {len(touched)} parts may change the count of constraints[{index}] and restore it."
            return ParallelComposition(False, reason, index, shown)
    if not policy.constraints:
        return ParallelComposition(True, "Two neighbouring databases differ in a single record.")
    return ParallelComposition(True, "No publicly known count ties records of one part to records of another.")
