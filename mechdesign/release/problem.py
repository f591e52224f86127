"""The design problem of one release: the members of a constrained domain, as likely and as costly as they stand for."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np

from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence
from mechdesign.model._channel import EXPONENT
from mechdesign.model._domain import Domain
from mechdesign.model._problem import STANDS_IN
from mechdesign.model._problem import Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.solve._contract import Status
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._result import SolveSummary
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["merged", "stated_problem", "without_prior"]


def merged(prior: Floats, cost: Floats, members: Integers, surrogates: Integers) -> tuple[Floats, Floats]:
    """Return how likely the members are to be released, and what that costs: shapes (k,) and (k, m).

    `prior` (n,) is over all states, `cost` (n, m) what it costs to release o when s is true, `surrogates` (n,) the
    member as which each state is released, or −1. A member c is as likely as all states released as it together,
    q(c) = Σ_{s → c} p(s), and costs what they do on average, Σ_{s → c} p(s) cost(s, o) / q(c): so the expected cost of
    a channel is that of the true states.
    """
    possible = np.flatnonzero(surrogates >= 0)
    owner = np.searchsorted(members, surrogates[possible])
    weights: Floats = np.bincount(owner, weights=prior[possible], minlength=len(members)).astype(np.float64)
    costs = cost[members]
    # The cost of members that stand for nobody else is their own, to the last bit.
    for index in np.flatnonzero((np.bincount(owner, minlength=len(members)) > 1) & (weights > 0)).tolist():
        states = possible[owner == index]
        costs[index] = prior[states] @ cost[states] / weights[index]
    return weights, costs


def stated_problem(
    domain: Domain, weights: Floats, costs: Floats, graph: nx.Graph, epsilon: Fraction, answers: Integers
) -> Problem:
    """Return the problem that a channel from the nodes of `graph` to the states in `answers` answers, well or badly."""
    members = np.array(sorted(graph), dtype=np.int64)
    policy = nx.relabel_nodes(nx.Graph(graph), {node: row for row, node in enumerate(members.tolist())})
    observables = domain
    if len(answers) < domain.size:
        observables, costs = domain.part(answers), costs[:, answers]
    requirements = [GraphPrivacy(epsilon, policy)]
    return Problem(weights, costs, requirements, secrets=domain.part(members), observables=observables)


def without_prior(design: Design) -> Design:
    """Return a design with the same channel and a uniform prior, under which nothing is claimed of its cost.

    For files that must not hold the prior. What the graph protects is proved as before; the lower bound is 0.
    """
    problem, numerators = design.problem, design.channel.numerators
    uniform = Prior.uniform(len(numerators))
    given = (problem.requirements, problem.objective, problem.secrets, problem.observables, problem.title)
    stated = Problem(uniform, problem.cost, *given)
    name = design.summary.mechanism or "the channel of least expected cost under a prior that is left out"
    summary = SolveSummary(Status.STATED, mechanism=name)
    arrays = (numerators, EXPONENT, stated.prior, stated.cost)
    certificate = certify(Evidence(*arrays, stated.objective, stated.stated), summary.provenance())
    certificate.require()
    return Design(stated, design.channel, certificate, None, summary, Origin(prior=STANDS_IN))
