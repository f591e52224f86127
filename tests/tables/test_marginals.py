"""Marginal tables under full and attribute policies: the exact program against the general search and brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from refusals import Mistake, assert_refused
from releases import release_by, strategy_of

import mechdesign as md
from mechdesign.errors import BracketWarning, InputError
from mechdesign.tables._optimal_strategies import list_differences, list_sets, solve_marginals

T = md.tables
SHAPES = ((2, 3), (2, 3, 4), (3, 1, 2), (5,), (2, 2, 2, 2))


def domain(shape: tuple[int, ...]) -> md.tables.Domain:
    return T.Domain({f"a{axis}": range(size) for axis, size in enumerate(shape)})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_error_and_bound_are_those_of_the_general_search(shape: tuple[int, ...]) -> None:
    place = domain(shape)
    for policy, ways in itertools.product((T.Policy.full(place), T.Policy.attribute(place)), range(1, len(shape) + 1)):
        asked = T.marginals(place, ways)
        found = strategy_of(asked, policy, tolerance=1e-6)
        # The same queries as a matrix, of which nothing is known.
        general = strategy_of(asked.queries, policy, tolerance=1e-6)
        assert found.error(rho=0.5) == pytest.approx(general.error(rho=0.5), rel=3e-6), (policy, ways)
        assert found.lower_bound(rho=0.5) <= general.error(rho=0.5) * (1 + 1e-9)
        assert 0 <= 1 - found.lower_bound(rho=0.5) / found.error(rho=0.5) < 1e-6


def test_values_of_an_attribute_with_a_threshold_cannot_be_exchanged() -> None:
    place = domain((4, 3))
    asked, any_value = T.marginals(place, 1), strategy_of(T.marginals(place, 1), T.Policy.attribute(place))
    for theta in ({"a0": 1}, {"a0": "next"}, {"a1": 0}):
        policy = T.Policy.attribute(place, theta=theta)
        found = strategy_of(asked, policy)
        rows, edges = found.rows.astype(object), policy.secret_graph.edges()
        assert found.power == max(int(((rows[:, x] - rows[:, y]) ** 2).sum()) for x, y in edges.tolist()), theta
        assert found.lower_bound(rho=0.5) <= found.error(rho=0.5) < any_value.lower_bound(rho=0.5), theta


def test_known_optima() -> None:
    # All pairs, from an independent solution of the program by Clarabel: total squared error at ρ = 1/2.
    for shape, optimum in {
        (2, 5, 2, 7): 563.193731,
        (2, 5, 2, 7, 6): 1924.187689,
        (2, 5, 7, 6, 4): 2655.883570,
    }.items():
        place = domain(shape)
        found = strategy_of(T.marginals(place, 2), T.Policy.full(place))
        assert found.error(rho=0.5) == pytest.approx(optimum, rel=1e-6), shape
        assert found.lower_bound(rho=0.5) == pytest.approx(optimum, rel=1e-6), shape


def test_rows_sensitivity_and_decoding_by_their_definitions() -> None:
    for shape, one in itertools.product(((2, 3), (2, 3, 2), (4, 1)), (False, True)):
        place, tables = domain(shape), tuple(itertools.combinations(range(len(shape)), min(2, len(shape))))
        made = solve_marginals(shape, tables, list_sets(shape, tables), list_differences(shape, one=one))
        rows = made.rows()
        policy = T.Policy.attribute(place) if one else T.Policy.full(place)
        edges = policy.secret_graph.edges()
        changes = [int(((rows[:, x] - rows[:, y]) ** 2).sum()) for x, y in edges.tolist()]
        assert made.power == max(changes), shape
        assert made.count == len(rows)
        # The decoding answers every query without bias, and its variances add up to the trace.
        workload, size = (
            T.marginals(place, [[f"a{axis}" for axis in table] for table in tables]).matrix(),
            math.prod(shape),
        )
        histogram = np.arange(1.0, size + 1)
        whole = np.zeros(size)
        whole[0] = histogram.sum()
        estimate = made.decoding() @ (rows @ histogram)
        assert np.allclose(workload @ (whole + estimate), workload @ histogram, rtol=1e-9), shape
        assert ((workload @ made.decoding()) ** 2).sum() == pytest.approx(made.trace, rel=1e-9)


def test_the_bound_holds_for_random_strategies() -> None:
    shape = (2, 3)
    place = domain(shape)
    bound = strategy_of(T.marginals(place, 1), T.Policy.full(place)).lower_bound(rho=0.5)
    workload, dice = T.marginals(place, 1).matrix(), np.random.default_rng(5)
    centred = workload - workload.mean(axis=1, keepdims=True)
    for _ in range(200):
        strategy = dice.normal(size=(6, 6)) * dice.choice([0.1, 1, 5], size=(6, 1))
        changes = strategy[:, :, None] - strategy[:, None, :]
        power = (changes**2).sum(axis=0).max()
        spread = centred @ np.linalg.pinv(strategy - strategy.mean(axis=1, keepdims=True))
        assert power * (spread**2).sum() >= bound * (1 - 1e-9)


def test_a_release_answers_with_the_stated_errors() -> None:
    place = domain((2, 3, 4))
    found = strategy_of(T.marginals(place, 2), T.Policy.full(place))
    values = np.random.default_rng(0).integers(0, 24, 300)
    truth = found.workload.answers(np.bincount(values, minlength=24))
    errors = np.array([release_by(found, positions=values, rho=0.5, rng=seed).answers - truth for seed in range(150)])
    assert np.abs(errors.mean(axis=0)).max() < 5 * found.standard_errors(rho=0.5).max() / math.sqrt(150)
    assert (errors**2).sum(axis=1).mean() == pytest.approx(found.error(rho=0.5), rel=0.1)
    assert (found.standard_errors(rho=0.5) ** 2).sum() == pytest.approx(found.error(rho=0.5), rel=1e-9)


def test_millions_of_values_have_an_optimum_and_no_release() -> None:
    place = domain((2, 5, 2, 7, 6, 16, 9, 15, 42))
    found = strategy_of(T.marginals(place, 2), T.Policy.full(place))
    assert found.error(rho=0.5) == pytest.approx(151_869.2727, rel=1e-6)
    assert found.lower_bound(rho=0.5) <= found.error(rho=0.5)
    assert "rows and releases take at most 2,048 values, and the domain has 76," in found.reason
    many = domain((2,) * 40)
    assert_refused(
        [
            Mistake("a release", lambda: release_by(found, positions=[0], rho=0.5), "policy", "too many values"),
            Mistake(
                "a plan",
                lambda: found.workload.plan(found.policy, rho=1),
                "policy",
                "at most 2,048 values",
            ),
            Mistake("rows", lambda: found.rows, "policy", "too many values"),
            Mistake("Laplace noise", lambda: strategy_of(found.workload, found.policy, "laplace"), "policy"),
            Mistake("another kind", lambda: strategy_of(found.workload, found.policy, kind="identity"), "policy"),
            Mistake("a matrix of all coefficients", lambda: found.workload.matrix(), "ways"),
            Mistake("a threshold", lambda: strategy_of(found.workload, T.Policy.threshold(place, 1)), "policy"),
            Mistake("40 attributes", lambda: strategy_of(T.marginals(many), T.Policy.full(many)), "workload", "sets"),
            Mistake("no table", lambda: T.marginals(place, []), "ways"),
            Mistake("ten attributes of nine", lambda: T.marginals(place, 10), "ways"),
            Mistake("an unknown attribute", lambda: T.marginals(place, [["a9"]]), "ways[0]"),
            Mistake("an attribute twice", lambda: T.marginals(place, [["a0"], ["a1", "a1"]]), "ways[1]", "twice"),
            Mistake("a truth value", lambda: T.marginals(place, True), "ways", "whole number"),
            Mistake("half a table", lambda: T.marginals(place, 1.5), "ways", "whole number"),
            Mistake("all cells", lambda: T.marginals(place, 9), "ways", "cells"),
        ]
    )


def test_other_policies_take_the_general_search() -> None:
    place = domain((2, 3))
    for policy in (T.Policy.full(place, unbounded=True), T.Policy.partition(place, [0, 0, 1, 1, 1, 1])):
        found = strategy_of(T.marginals(place, 1), policy)
        assert found.lower_bound(rho=0.5) <= found.error(rho=0.5) * (1 + 1e-9)
        assert found.bound.multiplier.size > 0
    # Tables of another domain of the same size are not these tables.
    other = T.marginals(domain((3, 2)), 1)
    assert strategy_of(other, T.Policy.full(place)).bound.multiplier.size > 0


def test_tables_without_a_difference_are_exact() -> None:
    place = domain((1, 3))
    found = strategy_of(T.marginals(place, [["a0"]]), T.Policy.full(place))
    assert found.kind == "exact"
    assert found.power == Fraction(0)


def test_a_bound_further_away_than_the_tolerance_is_said() -> None:
    place = domain((2, 5, 2, 7))
    with pytest.warns(BracketWarning, match="further away than the tolerance"):
        strategy_of(T.marginals(place, 2).queries, T.Policy.full(place), tolerance=1e-12)
    with pytest.raises(InputError, match="tolerance"):
        strategy_of(T.marginals(place, 2), T.Policy.full(place), tolerance=0)


def test_the_number_of_attributes_is_any_integer() -> None:
    place = domain((2, 3, 2))
    for ways in (2, np.int64(2), np.uint8(2), np.array(2)):
        assert T.marginals(place, ways).tables == ((0, 1), (0, 2), (1, 2)), repr(ways)
