"""Requirements and problems: what they bound, how they are stored, and numbers at the limits."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InfeasibleError, MetricWarning
from mechdesign.model._numbers import not_negative, positive
from mechdesign.model._problem import largest_distortion

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


@each_row("value", [0.6, "0.6", "3/5", Decimal("0.6"), Fraction(3, 5), np.float64(0.6)])
def test_a_number_means_the_decimal_that_was_written(value):
    assert md.MetricPrivacy(value, LINE).epsilon == Fraction(3, 5)
    assert md.DistortionPrivacy(value, LINE).minimum == Fraction(3, 5)


def test_metric_privacy_bounds_every_ordered_pair():
    bound = md.MetricPrivacy(0.5, LINE).claims()[0]
    assert len(bound) == 6
    assert set(zip(bound.sources.tolist(), bound.targets.tolist(), bound.weights.tolist(), strict=True)) == {
        (0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (0, 2, 2.0), (2, 0, 2.0),
    }  # fmt: skip


def test_an_infinite_distance_asks_for_nothing():
    apart = np.array([[0, np.inf], [np.inf, 0]])
    assert len(md.MetricPrivacy(1, apart).claims()[0]) == 0


@each_row(("radius", "pairs"), [(0.5, 0), (1, 4), (1.9, 4), (2, 6)])
def test_threshold_privacy_bounds_pairs_up_to_and_including_the_radius(radius, pairs):
    assert len(md.ThresholdPrivacy(1, LINE, radius).claims()[0]) == pairs


def test_the_radius_includes_a_stored_distance_of_the_same_name():
    tenth = np.array([[0, 0.1], [0.1, 0]])  # the double 0.1 lies above the decimal 1/10
    assert len(md.ThresholdPrivacy(1, tenth, radius=0.1).claims()[0]) == 2
    assert len(md.ThresholdPrivacy(1, tenth, radius="0.1").claims()[0]) == 2


def test_graph_privacy_bounds_both_directions_of_every_edge():
    bound = md.GraphPrivacy(1, nx.path_graph(3)).claims()[0]
    assert sorted(zip(bound.sources.tolist(), bound.targets.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_a_requirement_does_not_follow_later_changes_of_its_graph():
    graph = nx.path_graph(3)
    requirement = md.GraphPrivacy(1, graph)
    graph.add_edge(0, 2)
    assert len(requirement.claims()[0]) == 4
    with pytest.raises(nx.NetworkXError):
        requirement.graph.add_edge(0, 2)


def test_a_matrix_that_is_no_metric_warns_and_is_kept():
    odd = np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0.0]])
    with pytest.warns(MetricWarning, match="triangle"):
        assert md.MetricPrivacy(1, odd).claims()[0].weights.max() == 5
    skew = np.array([[0, 1], [2, 0.0]])
    with pytest.warns(MetricWarning, match="symmetric"):
        md.MetricPrivacy(1, skew)


def test_estimates_may_differ_from_secrets():
    assert md.DistortionPrivacy(0, np.ones((5, 3))).size == 3


PRIOR = [0.5, 0.25, 0.25]


def test_a_floor_above_what_the_prior_allows_names_the_maximum():
    # Releasing nothing leaves 0.25·1 + 0.25·2 = 0.75 for the estimate 0, and 0.5·1 + 0.25·1 = 0.75 for 1.
    assert largest_distortion(PRIOR, LINE) == Fraction(3, 4)
    md.Problem(PRIOR, LINE, [md.DistortionPrivacy("0.75", LINE)])
    with pytest.raises(InfeasibleError, match=r"requirements\[1\].minimum.* 0.75"):
        md.Problem(PRIOR, LINE, [md.DistortionPrivacy(0.1, LINE), md.DistortionPrivacy("0.75000000000000000001", LINE)])


def test_largest_distortion_is_exact_for_the_stored_numbers():
    prior = np.array([0.1, 0.9])
    error = np.array([[0, 0.3], [0.7, 0]])
    assert largest_distortion(prior, error) == min(Fraction(0.9) * Fraction(0.3), Fraction(0.1) * Fraction(0.7))


def test_values_are_frozen_copies():
    cost = LINE.copy()
    problem = md.Problem(PRIOR, cost, [])
    cost[0, 0] = 9
    assert problem.cost[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        problem.cost[0, 0] = 1


def test_a_prior_value_is_accepted():
    assert md.Problem(md.Prior.uniform(3), LINE, []).prior[0] == pytest.approx(1 / 3)


KINDS = {
    "epsilon": lambda number: md.MetricPrivacy(number, LINE),
    "epsilon of a threshold": lambda number: md.ThresholdPrivacy(number, LINE, 1),
    "radius": lambda number: md.ThresholdPrivacy(1, LINE, number),
    "epsilon of a graph": lambda number: md.GraphPrivacy(number, nx.path_graph(3)),
    "minimum": lambda number: md.DistortionPrivacy(number, LINE),
}


@each_row("number", ["1e309", "1e-400", "1.0001e100", "9.999e-101", Fraction(10) ** 300, 5e-324, 1e308])
@each_row("kind", KINDS)
def test_numbers_beyond_the_limits_are_refused(kind: str, number: Any) -> None:
    with pytest.raises(md.errors.InputError, match=r"is out of range; found .*; must be 0 or between") as caught:
        KINDS[kind](number)
    assert caught.value.path == kind.split()[0]


@each_row("number", ["1e100", "1e-100", 1e100, 1e-100])
def test_numbers_at_the_limits_are_taken(number: Any) -> None:
    assert positive(number, "epsilon") == not_negative(number, "minimum") == Fraction(str(number))
    assert not_negative(0, "minimum") == 0


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("epsilon", ["1e-100", "1e-17", "1e100"])
def test_bounds_at_the_limits_are_designed(epsilon: str) -> None:
    problem = md.Problem([0.5, 0.25, 0.25], LINE, [md.MetricPrivacy(epsilon, LINE)])
    assert md.design(problem, solver="highs-simplex").certificate.holds


@each_row("epsilon", ["1e-100", "1e-17"])
def test_factors_of_1_are_too_much_for_the_block_method(epsilon: str) -> None:
    problem = md.Problem([0.5, 0.25, 0.25], LINE, [md.MetricPrivacy(epsilon, LINE)])
    with pytest.raises(md.errors.SolverError, match="use another solver"):
        md.design(problem, solver="block", options={"arrays": "numpy"})


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_floors_at_the_limits() -> None:
    def problem(minimum: str) -> md.Problem:
        return md.Problem([0.5, 0.25, 0.25], LINE, [md.DistortionPrivacy(minimum, LINE)])

    assert md.design(problem("1e-100")).certificate.holds
    with pytest.raises(md.errors.InfeasibleError, match=r"expected error at 1e\+100"):
        problem("1e100")


CITY = md.Domain.grid(3, 2, 3.0, 2.0)
APART = md.distances.euclidean(CITY)


@each_row(
    "stated",
    [
        lambda radius: md.ThresholdPrivacy(1, APART, radius),
        lambda radius: md.graphs.threshold(CITY, radius),
        lambda radius: md.graphs.threshold(distance=APART, radius=radius),
    ],
)
def test_a_radius_in_metres_between_kilometres_warns(stated):
    with pytest.warns(MetricWarning, match="check its unit"):
        stated(1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated(100)


def test_secrets_are_the_answers_where_none_is_cheaper_than_the_truth() -> None:
    town = md.Domain.from_points([[0, 0], [1, 0], [3, 0]], ["a", "b", "c"], "km")
    km = md.distances.euclidean(town)
    cases = {
        "distances": (km, town),
        "ties": (np.ones((3, 3)), town),
        "a forbidden answer": (np.where(km > 2, np.inf, km), town),
        "just dearer than another": (1.0 + 2.0**-52 * np.eye(3), None),
        "just cheaper than all others": (1.0 - 2.0**-53 * np.eye(3), town),
        "fewer answers": (km[:, :2], None),
        "other answers": (np.roll(km, 1, axis=1), None),
    }
    for name, (cost, found) in cases.items():
        problem = md.Problem(md.Prior.uniform(3), cost, [], secrets=town)
        assert problem.observables is found, name
    other = md.Domain.from_labels(["x", "y", "z"])
    assert md.Problem(md.Prior.uniform(3), km, [], secrets=town, observables=other).observables is other
    assert md.Problem(md.Prior.uniform(3), km, []).observables is None
    made = md.design(md.Problem(md.Prior.uniform(3), km, [md.MetricPrivacy(1, km)], secrets=town))
    assert made.channel.observables == ("a", "b", "c")
    assert made.sample_at(0.9, 0.1).place is not None
