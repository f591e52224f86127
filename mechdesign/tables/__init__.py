"""Policies on databases, and releases that protect exactly what a policy names.

After Blowfish (He, Machanavajjhala and Ding 2014). A `Policy` says which values of a record must not be told apart (the
edges of its secret graph) and which counts are publicly known; its sensitivities say how much noise a query needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.tables._budget import Budget as Budget
    from mechdesign.tables._policies._known_counts import marginal_constraints as marginal_constraints
    from mechdesign.tables._queries._cumulative import CumulativeRelease as CumulativeRelease
    from mechdesign.tables._queries._cumulative import hierarchical as hierarchical
    from mechdesign.tables._queries._cumulative import ordered as ordered
    from mechdesign.tables._queries._cumulative import ordered_hierarchical as ordered_hierarchical
    from mechdesign.tables._queries._cumulative import release_cumulative as release_cumulative
    from mechdesign.tables._parallel import part_of as part_of
    from mechdesign.tables._domain import Domain as Domain
    from mechdesign.tables._queries._kmeans import ClusteringRelease as ClusteringRelease
    from mechdesign.tables._queries._kmeans import kmeans as kmeans
    from mechdesign.tables._sensitivity._constrained import ConstraintSensitivity as ConstraintSensitivity
    from mechdesign.tables._sensitivity._constrained import constraint_sensitivity as constraint_sensitivity
    from mechdesign.tables._queries._linear import release_histogram as release_histogram
    from mechdesign.tables._queries._linear import release_linear as release_linear
    from mechdesign.tables._queries._linear import release_sum as release_sum
    from mechdesign.tables._strategies._strategy import Strategy as Strategy
    from mechdesign.tables._files import load as load
    from mechdesign.tables._optimal import CountCosts as CountCosts
    from mechdesign.tables._optimal import compare_counts as compare_counts
    from mechdesign.tables._optimal import optimal_attribute as optimal_attribute
    from mechdesign.tables._optimal import optimal_count as optimal_count
    from mechdesign.tables._parallel import ParallelComposition as ParallelComposition
    from mechdesign.tables._parallel import parallel_composition as parallel_composition
    from mechdesign.tables._queries._plans import Plan as Plan
    from mechdesign.tables._queries._plans import plan_cumulative as plan_cumulative
    from mechdesign.tables._queries._plans import plan_histogram as plan_histogram
    from mechdesign.tables._queries._plans import plan_workload as plan_workload
    from mechdesign.tables._policy import Policy as Policy
    from mechdesign.tables._files import Publication as Publication
    from mechdesign.tables._sensitivity._sensitivity import Sensitivity as Sensitivity
    from mechdesign.tables._sensitivity._sensitivity import sensitivity as sensitivity
    from mechdesign.tables._queries._trees import RangePlan as RangePlan
    from mechdesign.tables._queries._trees import budget_split as budget_split
    from mechdesign.tables._queries._trees import ordered_error as ordered_error
    from mechdesign.tables._queries._trees import plan_ranges as plan_ranges
    from mechdesign.tables._queries._cumulative import Distribution as Distribution
    from mechdesign.tables._queries._cumulative import Estimate as Estimate
    from mechdesign.tables._queries._cumulative import Quantile as Quantile
    from mechdesign.tables._queries._cumulative import cdf as cdf
    from mechdesign.tables._queries._cumulative import quantile as quantile
    from mechdesign.tables._queries._cumulative import range_query as range_query
    from mechdesign.tables._release import Description as Description
    from mechdesign.tables._release import Release as Release
    from mechdesign.tables._strategies._choice import strategy as strategy
    from mechdesign.tables._workload import Workload as Workload
    from mechdesign.tables._workload import marginals as marginals

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
