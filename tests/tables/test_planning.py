"""Plans: expected errors are those that releases show, limits hold, and the best way is the one that is taken."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from releases import release_counts

from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative import Cumulative, Quantiles, Ranges, find_theta, range_query
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._queries._linear import Histogram, Sum
from mechdesign.tables._workload import MatrixQueries, all_ranges

AGE = Domain({"age": range(40)})


def by_name(plan):
    return {option.name: option for option in plan.options}


def test_ranges_have_errors_of_their_own():
    ranges = [(0, 39), (3, 17), (5, 39)]
    plan = Ranges(ranges, mechanism="ordered").plan(Policy.threshold(AGE, 1), epsilon=1)
    variance = DiscreteLaplace(1).variance
    # The whole is public; two noisy counts; one.
    assert plan.taken.error == pytest.approx(math.sqrt((0 + 2 * variance + variance) / 3))
    release = release_counts(np.ones(40, dtype=int), 1, 1, rng=1)
    wanted = [range_query(release, *ends).standard_error for ends in ranges]
    assert plan.taken.error == pytest.approx(math.sqrt(np.mean(np.square(wanted))))


RANGES = Ranges([(0, 9), (4, 13)])
POLICIES = {
    "full": Policy.full(AGE),
    "threshold": Policy.threshold(AGE, 4),
    "line": Policy.threshold(AGE, 1),
    "partition": Policy.partition(AGE, np.arange(40) // 10),
    "unbounded": Policy.full(AGE, unbounded=True),
    "known counts": Policy.threshold(AGE, 4, constraints=[np.arange(40) < 20]),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_each_query_takes_the_best_of_its_plan_and_limits_hold(kind):
    policy = POLICIES[kind]
    for query, budget in itertools.product(
        (Histogram(), Histogram(np.arange(40) // 7), Cumulative(), RANGES, Quantiles([0.5])),
        ({"epsilon": "0.1"}, {"rho": "0.5"}),
    ):
        if isinstance(query, Quantiles) and (policy.unbounded or (policy.constraints and "rho" in budget)):
            continue
        plan = query.plan(policy, **budget)
        case = (query, kind, budget)
        assert plan.taken is min(plan.options, key=lambda option: option.error), case
        assert [option.error for option in plan.options] == sorted(option.error for option in plan.options)
        # Noise in whole steps has a little less variance.
        assert all(option.error >= (option.limit or 0) * 0.999 for option in plan.options), case
        assert plan.spends == ("ε = 0.1" if "epsilon" in budget else "ρ = 0.5")
        assert plan.neighbours == policy.neighbours
        found = query.release([3, 4, 31], policy, rng=1, **budget)
        errors = found.standard_errors
        if query is RANGES:
            errors = np.array([each.estimate.standard_error for each in query.read(found, AGE)["ranges"]])
        # The last of the cumulative counts is public.
        assert plan.taken.error == pytest.approx(math.sqrt(np.mean(errors**2)), rel=0.01), case
        assert (plan.taken.name.split()[0] in found.description.mechanism) or plan.taken.name == "independent", case


def test_quantiles_take_what_their_plan_shows_as_the_best():
    policy, query = Policy.threshold(Domain({"age": range(100)}), 5), Quantiles([0.25, 0.5])
    for epsilon in ("0.25", "0.5", 1):
        plan = query.plan(policy, epsilon=epsilon)
        assert plan.taken.error == min(option.error for option in plan.options)
    assert "strategy" in Quantiles([0.5]).plan(Policy.full(policy.domain), epsilon=1).taken.name
    full = Policy.full(policy.domain)
    (low, middle) = query.read(query.release([3] * 9 + [40] * 9, full, epsilon=10**6, rng=1), policy.domain)[
        "quantiles"
    ]
    assert (low.value, middle.value) == ("3", "3")


def test_what_a_strategy_of_cumulative_counts_releases_exactly_is_said():
    for budget in ({"epsilon": 1}, {"rho": 1}):
        found = Cumulative().release([3, 12, 31], POLICIES["partition"], rng=1, **budget)
        assert "strategy" in found.description.mechanism
        assert "in the 4 components" in found.description.remarks[0]
        for query in (Cumulative(), Histogram()):
            assert found.description.remarks[0] in query.plan(POLICIES["partition"], **budget).remarks
        # At the end of each block is an exact total.
        assert found.linear[9::10].tolist() == pytest.approx([1, 2, 2, 3], abs=1e-6)
    alone = Cumulative().release([3, 12, 31], Policy.partition(AGE, range(40)), rho=1)
    assert (alone.rho, alone.answers[-1], "exact" in alone.description.remarks[0]) == (0, 3, True)
    assert range_query(alone, 10, 19).interval() == (1, 1)


def test_a_large_domain_has_no_strategies_but_where_no_mechanism_fits():
    wide = Domain({"age": range(257)})
    for query in (Histogram(), Cumulative()):
        assert not any("strategy" in option.name for option in query.plan(Policy.full(wide), epsilon=1).options)
    assert "strategy" in Ranges([(0, 9)]).plan(Policy.full(wide, unbounded=True), epsilon=1).taken.name


def test_a_named_mechanism_is_taken():
    policy = Policy.threshold(AGE, 4)
    for name in ("ordered", "ordered-hierarchical", "hierarchical"):
        assert Cumulative(mechanism=name).plan(policy, epsilon=1).taken.name == name
    # At the ends it is one of the others.
    by_trees = Cumulative(mechanism="ordered-hierarchical")
    assert by_trees.plan(Policy.threshold(AGE, 1), epsilon=1).taken.name == "ordered"
    assert by_trees.plan(Policy.full(AGE), epsilon=1).taken.name == "hierarchical"


def test_a_histogram_is_planned_as_it_is_released():
    policy = Policy.threshold(AGE, 1)
    for budget in ({"epsilon": "0.5"}, {"rho": "0.5"}):
        plan = Histogram().plan(policy, **budget)
        released = Histogram().release([3, 4], policy, rng=1, **budget)
        assert plan.taken.error == pytest.approx(math.sqrt((released.standard_errors**2).mean()), rel=1e-6)
        assert all(option.limit <= option.error for option in plan.options)
    blocks = np.arange(40) // 10
    plan = Histogram(blocks).plan(policy, epsilon=1)
    assert plan.queries == 4
    exact = Histogram(blocks).plan(Policy.partition(AGE, blocks), epsilon=1)
    assert (exact.taken.error, exact.spends) == (0, "nothing")
    assert "leaves these answers exact" in exact.remarks[0]


def test_known_counts_raise_the_error():
    free, known = Policy.full(AGE), Policy.full(AGE, constraints=[np.arange(40) < 20])
    assert Histogram().plan(known, epsilon=1).taken.error > Histogram().plan(free, epsilon=1).taken.error
    assert Histogram().plan(known, epsilon=1).taken.limit is None


def test_workloads():
    policy = Policy.threshold(AGE, 4)
    plan, strategy = all_ranges(40).plan(policy, rho="0.5"), all_ranges(40).strategy(policy)
    queries = strategy.workload.count
    assert plan.taken.error == pytest.approx(math.sqrt(strategy.error(rho="0.5") / queries), rel=1e-6)
    assert plan.taken.limit == pytest.approx(math.sqrt(strategy.lower_bound(rho="0.5") / queries), rel=1e-9)
    blocks = Policy.partition(AGE, np.arange(40) // 10)
    exact = MatrixQueries(np.kron(np.eye(4), np.ones(10))).plan(blocks, epsilon=1)
    assert (exact.spends, exact.taken.error) == ("nothing", 0)


def test_sums_and_clusters():
    policy = Policy.threshold(Domain({"x": [0, 0.5, 1.0]}), 0.5)
    assert Sum("x").plan(policy, epsilon=1).taken.error == pytest.approx(DiscreteLaplace(1).variance ** 0.5 / 2)
    plan = KMeans(3, iterations=5).plan(policy, epsilon=2)
    assert plan.queries == 6
    # Half of ε/5 for each; a record that changes its cluster changes two sizes.
    assert by_name(plan)["size of a cluster"].error == pytest.approx(math.sqrt(2) * 2 / 0.2)
    apart = KMeans(3, iterations=5).plan(Policy.graph(policy.domain, []), epsilon=2)
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
        assert find_theta(policy) == theta, policy
