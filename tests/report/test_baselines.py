"""The mechanisms beside a design: what they cost, how private they are, exactly, and what they are not."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from report_examples import city, design_of

import mechdesign as md
from mechdesign.certify import _privacy as privacy
from mechdesign.measures._baselines import (
    NO_INFORMATION,
    ON_CELLS,
    TUNED,
    baselines,
    combine_bounds,
    reference_costs,
    tuned_exponential,
)
from mechdesign.model._words import short
from mechdesign.report._design_page import html, side_by_side
from mechdesign.report._statements import describe_proof


def grid(epsilon, objective="expected", power=1):
    domain = md.Domain.grid(5, 4, 5.0, 4.0)
    apart = md.distances.euclidean(domain)
    prior = md.Prior.from_counts(1 + np.arange(20))
    return md.Problem(prior, apart**power, [md.MetricPrivacy(epsilon, apart)], objective, domain, domain)


@pytest.mark.parametrize("epsilon", [0.05, 0.8, 4.0])
@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
def test_every_baseline_is_private_and_none_beats_the_optimum(epsilon):
    problem = grid(epsilon)
    (bound,) = problem.claims
    found = {item.name: item for item in baselines(problem)}
    assert list(found) == [
        ON_CELLS, "planar Laplace, remapped", TUNED,
        f"{TUNED}, remapped", NO_INFORMATION,
    ]  # fmt: skip
    lower = md.design(problem).certificate.lower_bound
    for item in found.values():
        (tight,) = item.tight
        assert tight <= epsilon * (1 + 1e-6)
        assert tight == privacy.realised(item.channel.numerators, 62, bound)
        # What is optimal is so among channels that are as private as asked; a baseline may use a rounding more.
        assert item.cost >= lower * (1 - 1e-6)
    assert found[NO_INFORMATION].tight == (0.0,)
    assert found[NO_INFORMATION].cost == pytest.approx((problem.prior @ problem.cost).min())
    for name in ("planar Laplace", TUNED):
        plain = found.get(name) or found[ON_CELLS]
        remapped = found[f"{name}, remapped"]
        assert remapped.cost <= plain.cost * (1 + 1e-12)
        assert remapped.tight[0] <= plain.tight[0]
        assert remapped.error >= plain.error * (1 - 1e-12)


def test_remapping_against_distances_is_the_optimal_attack():
    problem = grid(0.8)
    found = {item.name: item for item in baselines(problem)}
    plain, remapped = found[TUNED], found[f"{TUNED}, remapped"]
    assert remapped.cost == pytest.approx(plain.error)


def test_the_exponential_mechanism_uses_all_of_its_budget():
    for problem in (grid(0.3), grid(2.0)):
        bound = combine_bounds(problem)
        mechanism, rate = tuned_exponential(bound)
        np.testing.assert_allclose(np.log(mechanism / np.diag(mechanism)[:, None]), -rate * bound, atol=1e-9)
        used = np.log(mechanism[:, None] / mechanism[None]).max(axis=2)
        assert (used <= bound + 1e-12).all()
        apart = ~np.eye(20, dtype=bool)
        assert (used[apart] / bound[apart]).max() == pytest.approx(1, abs=1e-9)


def test_where_all_secrets_are_alike_it_is_randomised_response():
    found, _ = tuned_exponential(np.log(3) * (1 - np.eye(4)))
    np.testing.assert_allclose(found, (np.ones((4, 4)) + 2 * np.eye(4)) / 6)


def test_planar_laplace_follows_the_tightest_bound():
    domain = md.Domain.grid(4, 1, 4.0, 1.0)
    apart = md.distances.euclidean(domain)
    both = [md.MetricPrivacy(2, apart), md.ThresholdPrivacy("0.6", apart, 1)]
    problem = md.Problem(np.full(4, 0.25), apart, both, secrets=domain, observables=domain)
    found = next(item for item in baselines(problem) if item.name == ON_CELLS)
    assert found.tight[0] <= 0.6 * (1 + 1e-6)
    assert found.tight[1] <= 0.6 * (1 + 1e-6)


def test_without_places_there_is_no_planar_laplace_and_its_sentence_is_not_there(monkeypatch):
    leave_pictures_blank(monkeypatch)
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    problem = md.Problem(np.full(5, 0.2), 1 - np.eye(5), [md.GraphPrivacy("1/3", graph)])
    found = {item.name: item for item in baselines(problem)}
    assert set(found) == {TUNED, f"{TUNED}, remapped", NO_INFORMATION}
    # Components share no answer: zeros are kept.
    assert not found[TUNED].channel.numerators[0, 3:].any()
    made = md.design(problem)
    page = html(made)
    assert "Planar Laplace noise" not in page
    assert "tuned exponential mechanism draws" in page
    # A fraction in an exponent stands in brackets.
    assert "e^(1/3) p(o|t)" in describe_proof(made.problem, made.certificate)[0]


def test_worst_costs_are_not_below_expected_ones_and_nothing_is_remapped():
    expected = {item.name: item.cost for item in baselines(grid(0.8))}
    worst = baselines(grid(0.8, "worst"))
    assert not [item for item in worst if "remapped" in item.name]
    assert all(item.cost >= expected[item.name] for item in worst)


def test_baselines_that_miss_a_floor_say_so():
    domain = md.Domain.grid(3, 1, 3.0, 1.0)
    apart = md.distances.euclidean(domain)
    requirements = [md.MetricPrivacy(20, apart), md.DistortionPrivacy("0.6", apart)]
    notes = {item.name: item.note for item in baselines(md.Problem(np.full(3, 1 / 3), apart, requirements))}
    assert notes[TUNED] == "violates the distortion floor"
    assert notes[NO_INFORMATION] == ""


def test_forbidden_answers_are_given_by_no_baseline():
    domain = md.Domain.grid(3, 1, 3.0, 1.0)
    apart = md.distances.euclidean(domain)
    cost = apart.copy()
    cost[0, 2] = np.inf
    found = baselines(md.Problem(np.full(3, 1 / 3), cost, [md.MetricPrivacy(1, apart)], secrets=domain))
    assert found
    for item in found:
        assert item.channel.numerators[0, 2] == 0
        assert np.isfinite(item.cost)


def test_all_of_them_stand_beside_the_design_with_their_numbers():
    problem, made, found = city()
    others = baselines(problem)
    rows = {row[0]: row[1:] for row in side_by_side(design_of(problem, made, found), others).rows}
    tight = tuple(each.realised for each in found.requirements if not each.at_least)
    expected = {item.name: (item.channel, item.tight) for item in others} | {"this design": (made, tight)}
    assert set(rows) == set(expected)
    for name, (channel, levels) in expected.items():
        cost = float(problem.prior @ (problem.cost * channel.matrix).sum(axis=1))
        shown = [float(text) for text in rows[name][0].split(", ")]
        assert shown == pytest.approx(levels, rel=1e-3), name
        assert all(text >= level for text, level in zip(shown, levels, strict=True)), name
        assert float(rows[name][1].split()[0]) == pytest.approx(cost, rel=1e-3), name
    costs = reference_costs(problem, others)
    assert costs[0].name == "no privacy: the best answer for each secret"
    assert costs[0].cost == 0


def test_squares_are_shown_with_their_root(monkeypatch):
    leave_pictures_blank(monkeypatch)
    problem = grid(0.8, power=2)
    made = md.design(problem)
    page = html(made)
    assert "km² (the square of " in page
    assert "up to e^4, a factor of about 55, across this map" in page


def test_continuous_privacy_is_compared_by_the_epsilon_for_all_points():
    anchors = md.Domain.anchors(3, 3, 2.0, 2.0, unit="km")
    asked = md.ContinuousPrivacy(1, anchors)
    problem = md.Problem([1 / 9] * 9, md.distances.euclidean(anchors), [asked], secrets=anchors, observables=anchors)
    made = md.design(problem)
    noise, dithered = [], []
    for item in baselines(problem):
        (noise if item.name.startswith("planar Laplace on the coordinates") else dithered).append(item)
    # Noise on the coordinates has the required ε; as a channel on the anchors, it would be dithered.
    assert [item.tight for item in noise] == [(1.0,), (1.0,)]
    assert noise[0].cost < 2
    assert noise[1].cost <= noise[0].cost
    assert dithered
    for item in dithered:
        assert item.tight == (asked.least_epsilon(item.channel),)
    rows = side_by_side(made, baselines(problem)).rows
    (ours,) = (row for row in rows if "this design" in row[0])
    assert ours[1] == short(asked.least_epsilon(made.channel), 4)
    assert not any("factor" in tight for _, tight, *_ in rows)


def test_without_the_euclidean_distance_noise_keeps_the_bounds_of_the_anchors():
    anchors = md.Domain.anchors(3, 3, 2.0, 2.0, unit="km")
    asked = md.ContinuousPrivacy(1, anchors, "manhattan")
    problem = md.Problem([1 / 9] * 9, md.distances.euclidean(anchors), [asked], secrets=anchors, observables=anchors)
    for item in baselines(problem):
        assert not item.name.startswith("planar Laplace on the coordinates")
        assert item.tight == (asked.least_epsilon(item.channel),)
