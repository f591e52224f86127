"""Policies on databases, and releases that protect exactly what a policy names.

After Blowfish (He, Machanavajjhala and Ding 2014). A `Policy` says which values of a record must not be told apart (the
edges of its secret graph) and which counts are publicly known; its sensitivities say how much noise a query needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.blowfish.budget import Budget as Budget
    from mechdesign.blowfish.constraints import marginal_constraints as marginal_constraints
    from mechdesign.blowfish.cumulative import CumulativeRelease as CumulativeRelease
    from mechdesign.blowfish.cumulative import hierarchical as hierarchical
    from mechdesign.blowfish.cumulative import ordered as ordered
    from mechdesign.blowfish.cumulative import ordered_hierarchical as ordered_hierarchical
    from mechdesign.blowfish.cumulative import release_cumulative as release_cumulative
    from mechdesign.blowfish.division import part_of as part_of
    from mechdesign.blowfish.domain import Domain as Domain
    from mechdesign.blowfish.kmeans_release import ClusteringRelease as ClusteringRelease
    from mechdesign.blowfish.kmeans_release import kmeans as kmeans
    from mechdesign.blowfish.known_counts import ConstraintSensitivity as ConstraintSensitivity
    from mechdesign.blowfish.known_counts import constraint_sensitivity as constraint_sensitivity
    from mechdesign.blowfish.linear_release import release_histogram as release_histogram
    from mechdesign.blowfish.linear_release import release_linear as release_linear
    from mechdesign.blowfish.linear_release import release_sum as release_sum
    from mechdesign.blowfish.linear_strategy import Strategy as Strategy
    from mechdesign.blowfish.loading import load as load
    from mechdesign.blowfish.optimal_channels import CountCosts as CountCosts
    from mechdesign.blowfish.optimal_channels import compare_counts as compare_counts
    from mechdesign.blowfish.optimal_channels import optimal_attribute as optimal_attribute
    from mechdesign.blowfish.optimal_channels import optimal_count as optimal_count
    from mechdesign.blowfish.parallel import ParallelComposition as ParallelComposition
    from mechdesign.blowfish.parallel import parallel_composition as parallel_composition
    from mechdesign.blowfish.planning import Plan as Plan
    from mechdesign.blowfish.planning import plan_cumulative as plan_cumulative
    from mechdesign.blowfish.planning import plan_histogram as plan_histogram
    from mechdesign.blowfish.planning import plan_workload as plan_workload
    from mechdesign.blowfish.policy import Policy as Policy
    from mechdesign.blowfish.publication import Publication as Publication
    from mechdesign.blowfish.query_sensitivity import Sensitivity as Sensitivity
    from mechdesign.blowfish.query_sensitivity import sensitivity as sensitivity
    from mechdesign.blowfish.range_planning import RangePlan as RangePlan
    from mechdesign.blowfish.range_planning import budget_split as budget_split
    from mechdesign.blowfish.range_planning import ordered_error as ordered_error
    from mechdesign.blowfish.range_planning import plan_ranges as plan_ranges
    from mechdesign.blowfish.ranges import Distribution as Distribution
    from mechdesign.blowfish.ranges import Estimate as Estimate
    from mechdesign.blowfish.ranges import Quantile as Quantile
    from mechdesign.blowfish.ranges import cdf as cdf
    from mechdesign.blowfish.ranges import quantile as quantile
    from mechdesign.blowfish.ranges import range_query as range_query
    from mechdesign.blowfish.release import Description as Description
    from mechdesign.blowfish.release import Release as Release
    from mechdesign.blowfish.strategy_choice import strategy as strategy
    from mechdesign.blowfish.workload import Workload as Workload
    from mechdesign.blowfish.workload import marginals as marginals

_VALUES = {
    "Budget": ".budget",
    "ClusteringRelease": ".kmeans_release",
    "ConstraintSensitivity": ".known_counts",
    "CountCosts": ".optimal_channels",
    "CumulativeRelease": ".cumulative",
    "Description": ".release",
    "Distribution": ".ranges",
    "Domain": ".domain",
    "Estimate": ".ranges",
    "ParallelComposition": ".parallel",
    "Plan": ".planning",
    "Policy": ".policy",
    "Publication": ".publication",
    "Quantile": ".ranges",
    "RangePlan": ".range_planning",
    "Release": ".release",
    "Sensitivity": ".query_sensitivity",
    "Strategy": ".linear_strategy",
    "Workload": ".workload",
    "budget_split": ".range_planning",
    "cdf": ".ranges",
    "compare_counts": ".optimal_channels",
    "constraint_sensitivity": ".known_counts",
    "hierarchical": ".cumulative",
    "kmeans": ".kmeans_release",
    "load": ".loading",
    "marginal_constraints": ".constraints",
    "optimal_attribute": ".optimal_channels",
    "optimal_count": ".optimal_channels",
    "ordered": ".cumulative",
    "ordered_error": ".range_planning",
    "ordered_hierarchical": ".cumulative",
    "marginals": ".workload",
    "parallel_composition": ".parallel",
    "part_of": ".division",
    "plan_cumulative": ".planning",
    "plan_histogram": ".planning",
    "plan_ranges": ".range_planning",
    "plan_workload": ".planning",
    "quantile": ".ranges",
    "range_query": ".ranges",
    "release_cumulative": ".cumulative",
    "release_histogram": ".linear_release",
    "release_linear": ".linear_release",
    "release_sum": ".linear_release",
    "sensitivity": ".query_sensitivity",
    "strategy": ".strategy_choice",
}

__all__ = [*_VALUES]


def __getattr__(name: str) -> object:
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_VALUES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
