"""Releases from counts of consecutive numbers, and strategies for workloads in short forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import Terms
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative import Cumulative
from mechdesign.tables._records import Records
from mechdesign.tables._strategy import Strategy
from mechdesign.tables._values import range_positions, value_names
from mechdesign.tables._workload import MatrixQueries, Workload, all_ranges, identity, marginals, prefixes, ranges_of


def release_counts(counts: Any, theta: int, epsilon: Any, mechanism: str = "ordered", **how: Any) -> Any:
    """Release a cumulative histogram of the values 0, 1, … under the policy of a threshold θ."""
    domain = Domain({"value": range(len(counts))})
    policy = Policy.threshold(domain, theta) if theta < len(counts) - 1 else Policy.full(domain)
    query = Cumulative(mechanism=mechanism, fanout=how.pop("fanout", None))
    return query.release(policy=policy, counts=counts, epsilon=epsilon, **how)


def workload_of(asked: Any, domain: Domain) -> Workload:
    """Return a workload: itself, or from its name, a list of tuples (ranges of values), or a matrix."""
    if isinstance(asked, Workload):
        return asked
    if isinstance(asked, str) and asked == "marginals":
        return marginals(domain)
    if isinstance(asked, str):
        made = {"identity": identity, "prefixes": prefixes, "ranges": all_ranges}[asked](domain.size)
        return replace(made, names=value_names(domain))
    if isinstance(asked, list) and all(isinstance(pair, tuple) for pair in asked):
        return ranges_of(domain, range_positions(domain, asked))
    return MatrixQueries(asked)


def strategy_of(asked: Any, policy: Policy, noise: str = "gaussian", positions: Any = None, **using: Any) -> Strategy:
    """Return the best strategy for a workload, or for ranges of positions, or the best one of a kind."""
    workload = workload_of(asked, policy.domain) if positions is None else ranges_of(policy.domain, positions)
    return (workload.using(**using) if using else workload).strategy(policy, noise)


def release_by(strategy: Strategy, data: Any = None, *, epsilon: Any = None, rho: Any = None, **how: Any) -> Any:
    """Release the workload of a strategy through this very strategy."""
    records = Records(strategy.policy.domain, data, how.pop("positions", None), how.pop("counts", None))
    return strategy.answer(Terms(strategy.policy, Budget.of(epsilon, rho), **how), records)
