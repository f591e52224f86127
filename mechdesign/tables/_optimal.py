"""Least-cost channels under a policy, for answering one count or one attribute of one record.

The randomised answer to one count or one value is a channel, and the policy's guarantee is a set of linear inequalities
on its entries. `mechdesign.design` finds the channel of least expected cost and proves the guarantee and the
optimality. For counts on a line and costs that never decrease with the error, the geometric mechanism with a
Bayes-optimal remap is also optimal. This optimality is a theorem of Ghosh, Roughgarden and Sundararajan (2009).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_floats
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.model._prior import Prior, as_prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.synthesis._design import design
from mechdesign.synthesis._isolation import Isolated
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.tables._policy import Policy

_COSTS = ("absolute", "squared", "hamming")
_LARGEST = 2000


@in_own_arithmetic
def optimal_count(
    records: int,
    epsilon: Any,
    cost: str | ArrayLike = "absolute",
    *,
    prior: Prior | ArrayLike | None = None,
    sensitivity: int = 1,
    settings: SolveSettings | None = None,
) -> Design:
    """Design the channel of least expected cost that answers one count.

    Counts of neighbouring databases differ by at most `sensitivity`. The sensitivity is 1 if the policy has no known
    counts and some edge changes the count. For all other policies, `Policy.sensitivity` computes the sensitivity.

    Args:
        records: the number of records; the count is from 0 to this number.
        epsilon: ε in nats.
        cost: "absolute", "squared" or "hamming", or a matrix c(count, answer) of shape (records + 1, answers).
        prior: the probability of each count; uniform by default.
        sensitivity: the largest difference between the counts of neighbouring databases.
        settings: the settings of the solver.

    Returns:
        The certified design.

    >>> round(optimal_count(4, 0.1).certificate.cost, 6)
    1.2
    """
    size, reach = as_integer(records, "records", 1, _LARGEST - 1) + 1, as_integer(sensitivity, "sensitivity", 1)
    graph = nx.empty_graph(size)
    graph.add_edges_from((low, high) for low in range(size) for high in range(low + 1, min(low + reach, size - 1) + 1))
    places = np.arange(size, dtype=np.float64)[:, None]
    return _design_with(_problem(graph, epsilon, _cost(cost, size, places), prior, "one count"), settings)


@in_own_arithmetic
def optimal_attribute(
    policy: Policy,
    epsilon: Any,
    prior: Prior | ArrayLike | None = None,
    *,
    cost: str | ArrayLike = "absolute",
    isolated: Isolated = "refuse",
    settings: SolveSettings | None = None,
) -> Design:
    """Design the channel of least expected cost that answers the value of one record under a policy.

    Secrets and answers are indices of values of the domain; see `Domain.value`. Two values that an edge joins are
    ε-indistinguishable. Values that no path joins may be distinguished exactly. A value without an edge is refused,
    unless `isolated` is "release".

    Args:
        policy: the policy, without known counts and without the null node.
        epsilon: ε in nats for each edge.
        prior: the probability of each value, shape (|T|,); uniform by default.
        cost: "absolute" and "squared" add up the absolute or squared differences of the numeric attributes. "hamming"
            is 0 for the true value and 1 otherwise. Or a matrix c(value, answer) of shape (|T|, answers) is given.
        isolated: the treatment of values without an edge, as for `mechdesign.design`.
        settings: the settings of the solver.

    Returns:
        The certified design.

    >>> from mechdesign.tables import Domain
    >>> policy = Policy.threshold(Domain({"floor": range(5)}), 1)
    >>> round(optimal_attribute(policy, 0.1).certificate.cost, 6)
    1.2
    """
    require_kind(policy, Policy, "policy", "a Policy")
    size = policy.domain.size
    if size > _LARGEST:
        raise InputError("policy", "has too many values for a channel", value=size, bound=f"at most {_LARGEST}")
    for wrong, problem in ((policy.constraints, "has count constraints"), (policy.unbounded, "has the null node")):
        if wrong:
            raise InputError(
                "policy",
                problem,
                bound="a policy without known counts and without the null node, for the value of one record",
            )
    graph = nx.empty_graph(size)
    graph.add_edges_from(policy.secret_graph.edges().tolist())
    axes = np.unravel_index(np.arange(size), policy.domain.shape)
    numeric = [
        attribute.positions[codes] * float(attribute.unit)
        for attribute, codes in zip(policy.domain.attributes, axes, strict=True)
        if attribute.numeric
    ]
    places = np.column_stack(numeric) if numeric else None
    return _design_with(_problem(graph, epsilon, _cost(cost, size, places), prior, "one attribute"), settings, isolated)


def _problem(graph: nx.Graph, epsilon: Any, cost: Floats, prior: Prior | ArrayLike | None, title: str) -> Problem:
    size = graph.number_of_nodes()
    believed = Prior.uniform(size) if prior is None else as_prior(prior, labels=(), size=size)
    return Problem(believed, cost, [GraphPrivacy(epsilon, graph)], title=title)


def _cost(cost: str | ArrayLike, size: int, places: Floats | None) -> Floats:
    """Return the cost matrix c(value, answer);  `places` has the numeric attributes of each value, shape (size, k)."""
    if not isinstance(cost, str):
        return as_floats(cost, "cost", "(n, m)", (), ())
    if cost not in _COSTS:
        raise InputError("cost", "is not known", value=cost, bound=f"{', '.join(_COSTS)} or a matrix")
    if cost == "hamming":
        return 1 - np.eye(size)
    if places is None:
        raise InputError("cost", "needs a numeric attribute", value=cost, remedy='give a matrix, or use "hamming"')
    apart = np.abs(places[:, None, :] - places[None, :, :])
    return np.asarray((apart if cost == "absolute" else apart**2).sum(axis=2), dtype=np.float64)


def _design_with(problem: Problem, settings: SolveSettings | None, isolated: Isolated = "refuse") -> Design:
    given = SolveSettings() if settings is None else settings
    require_kind(given, SolveSettings, "settings", "SolveSettings")
    return design(problem, isolated=isolated, **{each.name: getattr(given, each.name) for each in fields(given)})
