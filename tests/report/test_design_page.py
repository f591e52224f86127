"""The page on a design: its sections, its numbers, and what it says where a requirement does not hold."""

from __future__ import annotations

import re
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from numpy.testing import assert_allclose
from report_examples import Page, certificate, channel, city, design_of, domains, mixing, page_of, prior_of

from mechdesign.measures import attack
from mechdesign.measures._baselines import combine_bounds, tuned_exponential
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem, attack_measure, cost_measure
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._threshold import ThresholdPrivacy
from mechdesign.model._words import Words, recognise_measure
from mechdesign.report._design_page import adversaries, list_adversaries
from mechdesign.report._statements import describe_proof


@pytest.fixture(autouse=True)
def blank(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pictures blank but in slow tests."""
    if request.node.get_closest_marker("slow") is None:
        leave_pictures_blank(monkeypatch)


def cells(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of all tables on a page, by the head of the row."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    return {head: re.findall(r"<td[^>]*>(.*?)</td>", cells) for head, cells in rows}


def test_the_sections_and_numbers_of_a_page():
    problem, made, found = city()
    page = page_of(problem, made, found)
    assert re.findall(r"<h[12]>(.*?)</h", page) == [
        *(
            "City",
            "Requirements",
            "Cost",
            "What this does not promise",
            "Answers, and what they let an adversary guess",
        ),
        *("Stated, and not proved", "Provenance", "Verify and sample"),
    ]
    assert Page(page).elements.count("figure") == 5
    shown = cells(page)
    # What is shown never claims more than what is proved, and little less.
    for checked in found.requirements:
        (row,) = [row for head, row in shown.items() if head.startswith(f"{checked.kind} privacy")]
        achieved = Fraction(row[1].split()[-1])
        proved = Fraction(checked.realised)
        assert (achieved <= proved) if checked.at_least else (achieved >= proved), checked.kind
        assert abs(achieved - proved) <= proved / 100
        assert (str(checked.nominal) in row[0].split()[-1], row[2]) == (True, "holds")
    cost = Fraction(shown["Expected cost"][0].split()[0])
    assert found.cost <= cost <= found.cost * 1.001
    worst = float((problem.cost * made.matrix).sum(axis=1).max())
    assert worst <= float(shown["Worst cost"][0].split()[0]) <= worst * 1.001
    assert shown["solve seconds"] == ["0.25"]
    assert "mechdesign verify ." in Page(page).text
    # What it promises in words.
    for words in (
        "two secrets 1 km apart by a factor of at most 1.83",
        "two secrets within 1.5 km of each other by a factor of at most 2.72",
        "off by at least 0.1 km on average",
    ):
        assert words in page


def test_a_channel_that_does_not_hold_is_said_not_to():
    problem, _, _ = city(title="")
    made = channel(np.exp(-0.9 * np.asarray(problem.cost)))
    found = certificate(problem, made)
    assert not found.holds
    text = Page(page_of(problem, made, found)).text
    assert "Does not hold:" in text
    assert "Private, and" not in text
    assert "the worst pair of secrets is " in text
    assert "Anyone who sees an answer" not in text
    assert "Privacy mechanism" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "objective"),
    [("one cell", "worst"), ("none", "worst"), ("labels", "expected"), ("coordinates", "expected")],
)
def test_pages_of_every_kind_of_domain(name, objective):
    domain = domains()[name]
    n = 5 if domain is None else domain.size
    cost = np.abs(np.subtract.outer(np.arange(n, dtype=float), np.arange(n)))
    problem = Problem(prior_of(n), cost, [GraphPrivacy(1, nx.path_graph(n))], objective, secrets=domain)
    made = channel(mixing(n) + 0.01)
    Page(page_of(problem, made, certificate(problem, made)))


@pytest.mark.slow
def test_a_channel_for_300_secrets_makes_a_small_page():
    page = page_of(*city(20, 15))
    assert len(page.encode()) < 600_000


def test_observables_may_be_of_another_domain_and_number():
    secrets, observables = Domain.grid(3, 2, 3.0, 2.0), Domain.grid(2, 2, 3.0, 2.0)
    cost = distances.euclidean(secrets, observables)
    problem = Problem(prior_of(6), cost, [], secrets=secrets, observables=observables)
    made = channel(mixing(6, 4) + 0.01)
    assert "Nothing was required." in page_of(problem, made, certificate(problem, made))
    assert cost_measure(problem).name == "Euclidean distance"


# --- what numbers mean -------------------------------------------------------------------------------------------


def test_distances_are_recognised_by_their_values():
    grid = Domain.geographic_grid(3, 2, 40.7, 40.8, -74.0, -73.9)
    for name, function in (
        ("plane distance ≤ great circle", distances.euclidean),
        ("Manhattan distance", distances.manhattan),
        ("Chebyshev distance", distances.chebyshev),
        ("great-circle distance", distances.haversine),
    ):
        found = recognise_measure(function(grid), grid, grid)
        assert (found.name, found.unit) == (name, "km")
    assert recognise_measure(distances.hamming(grid), grid, grid).name == "Hamming distance"
    assert recognise_measure(distances.hamming(3), None, None).name == "Hamming distance"
    doubled = recognise_measure(2 * distances.euclidean(grid), grid, grid)
    assert (doubled.name, doubled.unit) == ("", "")


def test_the_attack_is_measured_by_the_first_floor_else_by_the_places_else_by_identity():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    error = distances.manhattan(grid)
    prior, cost = np.full(4, 0.25), distances.euclidean(grid)
    floors = [DistortionPrivacy("0.1", error), DistortionPrivacy("0.1", cost)]
    assert attack_measure(Problem(prior, cost, floors, secrets=grid)).name == "Manhattan distance"
    assert attack_measure(Problem(prior, cost, [], secrets=grid)).name == "Euclidean distance"
    assert attack_measure(Problem(prior, cost, [])).name == "Hamming distance"
    labels = Domain.from_labels(list("abcd"))
    assert attack_measure(Problem(prior, cost, [], secrets=labels)).name == "Hamming distance"


def test_answers_without_a_domain_are_secrets_only_where_the_truth_is_cheapest():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    prior, apart = np.full(4, 0.25), distances.euclidean(grid)
    assert Problem(prior, apart, [], secrets=grid).observables is grid
    assert Problem(prior, apart[::-1], [], secrets=grid).observables is None
    assert Problem(prior, apart[:, :3], [], secrets=grid).observables is None


def test_requirements_are_named_with_their_units():
    grid = Domain.grid(2, 2, 2.0, 2.0, unit="m")
    apart = distances.euclidean(grid)
    names = [
        requirement.title(Words(grid))
        for requirement in (
            MetricPrivacy(1, apart),
            MetricPrivacy(1, apart * 3),
            ThresholdPrivacy(1, apart, "1.25"),
            GraphPrivacy(1, nx.path_graph(4)),
            DistortionPrivacy(0, apart),
        )
    ]
    assert names == [
        "metric privacy, ε per m (Euclidean distance)",
        "metric privacy, ε per unit of distance",
        "threshold privacy, ε within 1.25 m (Euclidean distance)",
        "graph privacy, ε per edge (3 edges)",
        "distortion privacy, expected error in m (Euclidean distance)",
    ]


def test_sentences_on_what_is_proved_state_the_numbers_of_their_claims():
    problem, _, found = city()
    metric, threshold, distortion = describe_proof(problem, found)
    apart = distances.euclidean(problem.secrets)
    farthest = float(apart.max())
    (reach, exponent) = re.findall(r"at its maximum of (\S+) km the factor is e\^(\S+)$", metric)[0]
    assert (float(reach), float(exponent)) == pytest.approx((farthest, 0.6 * farthest), rel=5e-3)
    assert (
        "p(o|s) ≤ e^(0.6·d(s, t)) p(o|t) for all 132 ordered pairs of secrets (s, t), and each of 12 answers" in metric
    )
    near = np.count_nonzero((apart > 0) & (apart <= 1.5))
    assert f"p(o|s) ≤ e^1 p(o|t) for {near} of 132 ordered pairs" in threshold
    assert "an error of at least 0.1 km on average, with each of its 12 listed guesses" in distortion
    for said, checked in zip((metric, threshold, distortion), found.requirements, strict=True):
        assert said.startswith(f"{checked.kind} privacy, ")


def test_adversaries_are_those_of_the_floors_and_of_each_error_under_the_true_prior():
    grid = Domain.grid(3, 1, 3.0, 1.0)
    apart, prior = distances.euclidean(grid), np.array([0.5, 0.3, 0.2])
    wrong = distances.hamming(3)
    beliefs = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [1 / 3, 1 / 3, 1 / 3]])
    made = channel(mixing(3), grid.labels, grid.labels)
    # The same error at the ends, another between them.
    floors = [(apart, beliefs[:1]), (wrong, beliefs[1:]), (apart, beliefs[:1])]
    required = [DistortionPrivacy("0.1", error, prior=list(own)) for error, own in floors]
    problem = Problem(prior, apart, required, secrets=grid, observables=grid)
    expected = [
        ("the prior of the mechanism", apart, prior),
        ("the prior of requirement 1", apart, beliefs[0]),
        ("the prior of the mechanism", wrong, prior),
        ("the prior of requirement 2 1", wrong, beliefs[1]),
        ("the prior of requirement 2 2", wrong, beliefs[2]),
        ("the prior of requirement 3", apart, beliefs[0]),
    ]
    found = list(adversaries(problem, made))
    assert [each.name for each in found] == [name for name, _, _ in expected]
    for each, (_, error, belief) in zip(found, expected, strict=True):
        assert each.expected == pytest.approx(attack.optimal(made, belief, error).distortion)
        assert each.real == pytest.approx(attack.optimal(made, belief, error, truth=prior).distortion)
        assert each.unit == ("km" if error is apart else "")

    # Of many, those that expect the least are shown, and the number of the others is stated.
    many = np.random.default_rng(4).dirichlet(np.ones(3), 50)
    problem = Problem(prior, apart, [DistortionPrivacy(0, apart, prior=list(many))], secrets=grid)
    table = list_adversaries(design_of(problem, made, certificate(problem, made)))
    least = sorted(each.expected for each in adversaries(problem, made))
    assert table.heads[0] == "What the adversary believes (the first 40 of 51)"
    assert [float(row[1].split()[0]) for row in table.rows] == pytest.approx(least[:40], rel=1e-3)


# --- the metric that bounds imply ------------------------------------------------------------------------------------


def test_combined_bounds_are_shortest_paths():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    problem = Problem(np.full(5, 0.2), 1 - np.eye(5), [GraphPrivacy("0.5", graph)])
    bound = combine_bounds(problem)
    assert_allclose(bound[0], [0, 0.5, 1.0, np.inf, np.inf])
    mechanism, _ = tuned_exponential(bound)
    assert_allclose(mechanism.sum(axis=1), 1)
    assert mechanism[0, 3] == 0
    assert combine_bounds(Problem(np.full(5, 0.2), 1 - np.eye(5), [])) is None


def test_zero_distances_are_edges():
    apart = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    problem = Problem(np.full(3, 1 / 3), apart, [MetricPrivacy(1, apart)])
    assert_allclose(combine_bounds(problem), apart)
