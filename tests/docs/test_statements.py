"""Sentences of the documentation that have a number or a direction in them, computed."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md

DOCS = Path(__file__).parents[2] / "docs"


def test_leakages_are_bounds_that_need_not_be_reached():
    correlation, factor = np.array([[0.0, 1.0], [0.8, 0.2]]), math.exp(0.5)
    # Extremal likelihoods of an output are 1 or e^ε for each state: all sequences of six are tried.
    worst = 0.0
    for outputs in itertools.product(itertools.product((1.0, factor), repeat=2), repeat=6):
        told = np.ones(2)
        for output in outputs:
            told = output * (correlation @ told)
        worst = max(worst, abs(math.log(told[0] / told[1])))
    assert worst == pytest.approx(1.8076, abs=1e-4)
    assert md.leakage.backward([0.5] * 6, correlation)[-1] == pytest.approx(2.2695, abs=1e-4)


def test_flows_of_a_mixed_population_say_too_little():
    """Half of the people never change between two values, and half draw them anew at each of six releases."""
    factor, stay, draw = math.exp(0.3), np.eye(2), np.full((2, 2), 0.5)
    moves = np.block([[stay, 0 * stay], [0 * stay, draw]])
    worst = 0.0
    # An output is e^0.3 times as likely under one of the values.
    for outputs in itertools.product(([1.0, factor] * 2, [factor, 1.0] * 2), repeat=6):
        before = [np.full(4, 0.25) * outputs[0]]
        after = [np.ones(4)]
        for now, later in zip(outputs[1:], reversed(outputs[1:]), strict=True):
            before.append((before[-1] @ moves) * now)
            after.append(moves @ (after[-1] * later))
        told = (np.array(before) * np.array(after[::-1])).reshape(6, 2, 2).sum(axis=1)
        worst = max(worst, float(np.abs(np.log(told[:, 0] / told[:, 1])).max()))
    assert worst == pytest.approx(1.03, abs=5e-3)
    counted = (stay + draw) / 2
    assert md.leakage.temporal([0.3] * 6, counted, counted).max() == pytest.approx(0.78, abs=5e-3)


def test_the_geometric_mechanism_is_optimal_where_costs_never_fall_with_the_distance():
    apart = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    for costs, reached in ((apart, True), (apart**2, True), (apart % 2, False)):
        remapped = (md.mechanisms.Geometric(1.0, 4).matrix().T @ costs / 4).min(axis=1).sum()
        made = md.design(md.Problem(md.Prior.uniform(4), costs, [md.MetricPrivacy(1, apart)]), tolerance=1e-9)
        least = made.certificate.expected_cost
        assert (remapped <= least * (1 + 1e-6)) == reached
    assert (round(float(remapped), 4), round(float(least), 4)) == (0.3227, 0.2689)


def test_the_larger_ratio_of_parallel_edges_overstates():
    anchors, values = md.Domain.anchors(columns=2, rows=2, width=1.0, height=1.0), (1, 2, 1, 1)
    rows = np.array([[value / 4, 1 - value / 4] for value in values])
    corners = np.array(values, dtype=float).reshape(2, 2)
    along = [np.abs(np.diff(corners, axis=axis)) / np.minimum.reduce(corners, axis=axis) for axis in (0, 1)]
    ratios = [float(each.max()) for each in along]
    for norm, apart in (("chebyshev", sum(ratios)), ("euclidean", math.hypot(*ratios))):
        found = md.ContinuousPrivacy(1, anchors, norm).least_epsilon(md.Channel.from_matrix(rows))
        assert found == pytest.approx(1.0, rel=1e-6)
        assert apart == pytest.approx({"chebyshev": 2.0, "euclidean": math.sqrt(2)}[norm])


def test_the_landing_page_shows_the_stored_measurement_of_its_town():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    stored = json.loads((DOCS / "results" / "same_epsilon.json").read_text(encoding="utf-8"))["values"]
    less = stored["planar Laplace, moved to the nearest answer, less"]
    assert f"## {less:.0%} less error at the same ε".replace("%", " %") in text


def test_a_repeated_answer_tells_what_no_leakage_counts():
    """Four reports of two states: an answer that is kept for each state, and a fresh draw for each report."""
    chain, law = np.array([[0.95, 0.05], [0.5, 0.5]]), [10 / 11, 1 / 11]
    weights = np.ones((2, 6))
    weights[0, 0] = weights[1, 1] = math.exp(0.1)
    channel = weights / weights.sum(axis=1, keepdims=True)
    bound = md.leakage.temporal([0.1] * 4, chain, chain).max()
    for kept, told in ((False, 0.21), (True, 5.4)):
        likelihoods = np.zeros((2, 6, 6, 6, 6))
        for path in itertools.product((0, 1), repeat=4):
            moves = law[path[0]] * math.prod(chain[now, later] for now, later in itertools.pairwise(path))
            drawn = sorted(set(path)) if kept else range(4)
            for answers in itertools.product(range(6), repeat=len(drawn)):
                of = dict(zip(drawn, answers, strict=True))
                shown = tuple(of[state if kept else report] for report, state in enumerate(path))
                states = drawn if kept else path
                drawing = math.prod(channel[state, answer] for state, answer in zip(states, answers, strict=True))
                likelihoods[path[1]][shown] += moves * drawing
        likelihoods /= likelihoods.sum(axis=(1, 2, 3, 4), keepdims=True)
        seen = likelihoods.min(axis=0) > 0
        largest = np.abs(np.diff(np.log(likelihoods[:, seen]), axis=0)).max()
        assert largest == pytest.approx(told, rel=0.05)
        assert (largest <= bound) == (not kept)


def test_two_reports_from_another_start_tell_more_than_from_the_stationary_law():
    city = md.Domain.grid(columns=4, rows=3, width=8.0, height=6.0, unit="km")
    distance = md.distances.euclidean(city)
    near = (md.distances.chebyshev(city) <= 2.0).astype(float)
    walk = md.MarkovChain(near / near.sum(axis=1, keepdims=True))
    once, apart = md.leakage.pairs(md.MetricPrivacy(1, distance)), distance > 0
    started = md.leakage.Varying.from_start(walk, np.full(12, 1 / 12), 1).steps[0]
    for before, told in ((walk.reverse(walk.stationary()), 2.0), (started, 2.18)):
        bounds = md.leakage.temporal([once] * 2, before, walk)[-1]
        assert (bounds[apart] / distance[apart]).max() == pytest.approx(told, abs=5e-3)
