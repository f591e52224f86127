"""The design problem of one release: the members of a constrained domain, as likely and as costly as they stand for."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np

from mechdesign.model._arrays import Floats, Integers
from mechdesign.model.domain import Domain
from mechdesign.model.problem import Problem
from mechdesign.model.requirements import GraphPrivacy
from mechdesign.policy.constraint import components

__all__ = ["release_problem"]


def release_problem(
    domain: Domain,
    prior: Floats,
    cost: Floats,
    surrogates: Integers,
    graph: nx.Graph,
    epsilon: Fraction,
    observables: Integers,
    within: str = "map",
) -> Problem:
    """Return the least-cost problem over the nodes of `graph`, the members of a constrained domain.

    `prior` (n,) is over all states, `cost` (n, n) what it costs to release o when s is true, `surrogates` (n,) the
    member as which each state is released, or −1. A member c is as likely as all states released as it together,
    q(c) = Σ_{s → c} p(s), and costs what they do on average, Σ_{s → c} p(s) cost(s, o) / q(c): so the expected cost is
    that of the true states. `observables` are states, ascending; with ``within="component"`` answers outside the
    member's connected component of the graph are forbidden, their cost infinite.
    """
    members = np.array(sorted(graph), dtype=np.int64)
    position = np.full(domain.size, -1)
    position[members] = np.arange(len(members))
    possible = np.flatnonzero(surrogates >= 0)
    owner = position[surrogates[possible]]
    weights = np.bincount(owner, weights=prior[possible], minlength=len(members))
    costs = cost[np.ix_(members, observables)]
    # Members that stand for others as well; the cost of the rest is their own, to the last bit.
    for index in np.flatnonzero((np.bincount(owner, minlength=len(members)) > 1) & (weights > 0)).tolist():
        stood_for = possible[owner == index]
        costs[index] = prior[stood_for] @ cost[np.ix_(stood_for, observables)] / weights[index]
    if within == "component":
        part = np.full(domain.size, -1)
        for number, nodes in enumerate(components(graph)):
            part[nodes] = number
        costs[part[members][:, None] != part[observables]] = np.inf
    policy = nx.Graph()
    policy.add_nodes_from(range(len(members)))
    policy.add_edges_from((int(position[s]), int(position[t])) for s, t in graph.edges())
    return Problem(
        weights,
        costs,
        [GraphPrivacy(epsilon, policy)],
        secrets=_some(domain, members),
        observables=_some(domain, observables),
    )


def _some(domain: Domain, chosen: Integers) -> Domain:
    """Return the domain of some of the places; the domain itself, with its grid, where these are all."""
    if len(chosen) == domain.size:
        return domain
    labels = tuple(domain.labels[index] for index in chosen.tolist())
    coordinates = None if domain.coordinates is None else domain.coordinates[chosen]
    return Domain(domain.points[chosen], labels, domain.unit, coordinates=coordinates)
