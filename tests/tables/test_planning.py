"""Plans: expected errors are those that releases show, limits hold, and the best way is the one that is taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative import (
    cumulative_theta,
    ordered,
    plan_cumulative,
    range_query,
)
from mechdesign.tables._queries._kmeans import plan_kmeans
from mechdesign.tables._queries._linear import plan_histogram, plan_sum, release_histogram
from mechdesign.tables._workload import plan_workload

AGE = Domain({"age": range(40)})


def by_name(plan):
    return {option.name: option for option in plan.options}


def test_ranges_have_errors_of_their_own():
    ranges = [(0, 39), (3, 17), (5, 39)]
    plan = plan_cumulative(Policy.threshold(AGE, 1), 1, ranges=ranges, mechanism="ordered", compare=False)
    variance = DiscreteLaplace(1).variance
    # The whole is public; two noisy counts; one.
    assert plan.taken.error == pytest.approx(math.sqrt((0 + 2 * variance + variance) / 3))
    release = ordered(np.ones(40, dtype=int), 1, 1, rng=1)
    wanted = [range_query(release, *ends).standard_error for ends in ranges]
    assert plan.taken.error == pytest.approx(math.sqrt(np.mean(np.square(wanted))))


def test_the_best_is_taken_and_limits_hold():
    for policy in (Policy.full(AGE), Policy.threshold(AGE, 4), Policy.threshold(AGE, 1)):
        plan = plan_cumulative(policy, "0.1")
        own = [option for option in plan.options if "strategy" not in option.name]
        assert plan.taken.error == min(option.error for option in own)
        # Noise in whole steps has a little less variance.
        assert all(option.error >= option.limit * 0.999 for option in plan.options)
        assert [option.error for option in plan.options] == sorted(option.error for option in plan.options)
        assert plan.spends == "ε = 0.1"
        assert plan.neighbours == policy.neighbours


def test_a_plan_says_which_releases_use_strategies():
    full, line = Policy.full(Domain({"a": range(20)})), Policy.threshold(Domain({"a": range(20)}), 1)
    for ranges, said in (([(0, 9), (4, 13)], True), (None, False)):
        plan = plan_cumulative(full if said else line, 1, ranges=ranges)
        assert (plan.options[0].error < plan.taken.error) == said
        assert any('kind = "workload" use strategies' in remark for remark in plan.remarks) == said


def test_a_named_mechanism_is_taken():
    policy = Policy.threshold(AGE, 4)
    for name in ("ordered", "ordered-hierarchical", "hierarchical"):
        assert plan_cumulative(policy, 1, mechanism=name, compare=False).taken.name == name
    # At the ends it is one of the others.
    assert plan_cumulative(Policy.threshold(AGE, 1), 1, mechanism="ordered-hierarchical").taken.name == "ordered"
    assert plan_cumulative(Policy.full(AGE), 1, mechanism="ordered-hierarchical").taken.name == "hierarchical"


def test_a_histogram_is_planned_as_it_is_released():
    policy = Policy.threshold(AGE, 1)
    for budget in ({"epsilon": "0.5"}, {"rho": "0.5"}):
        plan = plan_histogram(policy, **budget)
        released = release_histogram([3, 4], policy, rng=1, **budget)
        assert plan.taken.error == pytest.approx(released.standard_errors[0])
        assert all(option.limit <= option.error for option in plan.options)
    blocks = np.arange(40) // 10
    plan = plan_histogram(policy, epsilon=1, partition=blocks)
    assert plan.queries == 4
    exact = plan_histogram(Policy.partition(AGE, blocks), epsilon=1, partition=blocks)
    assert (exact.taken.error, exact.spends) == (0, "nothing")
    assert "leaves these answers exact" in exact.remarks[0]


def test_known_counts_raise_the_error():
    free, known = Policy.full(AGE), Policy.full(AGE, constraints=[np.arange(40) < 20])
    assert plan_histogram(known, epsilon=1).taken.error > plan_histogram(free, epsilon=1).taken.error
    assert plan_histogram(known, epsilon=1).taken.limit is None


def test_workloads():
    plan, strategy = plan_workload("ranges", Policy.threshold(AGE, 4), rho="0.5")
    queries = strategy.workload.count
    assert plan.taken.error == pytest.approx(math.sqrt(strategy.error(rho="0.5") / queries), rel=1e-6)
    assert plan.taken.limit == pytest.approx(math.sqrt(strategy.lower_bound(rho="0.5") / queries), rel=1e-9)
    blocks = Policy.partition(AGE, np.arange(40) // 10)
    exact, _ = plan_workload(np.kron(np.eye(4), np.ones(10)), blocks, epsilon=1)
    assert (exact.spends, exact.taken.error) == ("nothing", 0)


def test_sums_and_clusters():
    policy = Policy.attribute(Domain({"x": [0, 0.5, 1.0]}), theta={"x": "next"})
    assert plan_sum(policy, "x", epsilon=1).taken.error == pytest.approx(DiscreteLaplace(1).variance ** 0.5 / 2)
    plan = plan_kmeans(policy, 2, iterations=5, clusters=3)
    assert plan.queries == 6
    # Half of ε/5 for each; a record that changes its cluster changes two sizes.
    assert by_name(plan)["size of a cluster"].error == pytest.approx(math.sqrt(2) * 2 / 0.2)
    apart = plan_kmeans(Policy.graph(policy.domain, []), 2, iterations=5, clusters=3)
    assert apart.spends == "nothing"


def test_theta_of_a_policy():
    for policy, theta in (
        (Policy.threshold(AGE, 1), 1),
        (Policy.threshold(AGE, 7), 7),
        (Policy.threshold(AGE, 39), 40),
        (Policy.full(AGE), 40),
        (Policy.full(Domain({"age": [5]})), 1),
        (Policy.attribute(Domain({"x": [0, 1, 10]}), theta={"x": "next"}), 1),
        (Policy.attribute(AGE, theta={"age": 7}), 7),
        (Policy.attribute(AGE), 40),
    ):
        assert cumulative_theta(policy) == theta, policy
