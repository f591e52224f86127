"""Least-cost channels that answer one count.

The randomised answer is a channel, and the policy's guarantee is a set of linear inequalities on its entries.
`mechdesign.design` finds the channel of least expected cost and proves the guarantee and the optimality. If the
sensitivity is 1 and the cost never decreases with the error, the geometric mechanism with a Bayes-optimal remap is also
optimal. This optimality is a theorem of Ghosh, Roughgarden and Sundararajan (2009).
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
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings

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
    believed = Prior.uniform(size) if prior is None else as_prior(prior, labels=(), size=size)
    problem = Problem(believed, _cost(cost, size), [GraphPrivacy(epsilon, graph)], title="one count")
    given = SolveSettings() if settings is None else settings
    require_kind(given, SolveSettings, "settings", "SolveSettings")
    return design(problem, **{each.name: getattr(given, each.name) for each in fields(given)})


def _cost(cost: str | ArrayLike, size: int) -> Floats:
    """Return the cost matrix c(count, answer)."""
    if not isinstance(cost, str):
        return as_floats(cost, "cost", "(n, m)", (), ())
    if cost not in _COSTS:
        raise InputError("cost", "is not known", value=cost, bound=f"{', '.join(_COSTS)} or a matrix")
    if cost == "hamming":
        return 1 - np.eye(size)
    apart = np.abs(np.subtract.outer(np.arange(size, dtype=np.float64), np.arange(size)))
    return apart if cost == "absolute" else apart**2
