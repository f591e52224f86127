"""Sentences of the documentation that have a number or a direction in them, computed."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md

PROJECT = Path(__file__).parents[2]


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


@pytest.mark.parametrize(("cost", "reached"), [("distance", True), ("square", True), ("parity", False)])
def test_the_geometric_mechanism_is_optimal_where_costs_never_fall_with_the_distance(cost, reached):
    apart = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    costs = {"distance": apart, "square": apart**2, "parity": apart % 2}[cost]
    remapped = (md.mechanisms.Geometric(1.0, 4).matrix().T @ costs / 4).min(axis=1).sum()
    made = md.design(md.Problem(md.Prior.uniform(4), costs, [md.MetricPrivacy(1, apart)]), tolerance=1e-9)
    least = made.certificate.expected_cost
    assert (remapped <= least * (1 + 1e-6)) == reached
    if cost == "parity":
        assert (round(float(remapped), 4), round(float(least), 4)) == (0.3227, 0.2689)


@pytest.mark.parametrize(
    ("values", "norm", "tight", "apart"),
    [((1, 2, 1, 1), "chebyshev", 1.0, 2.0), ((1, 2, 1, 1), "euclidean", 1.0, math.sqrt(2))],
)
def test_the_larger_ratio_of_parallel_edges_overstates(values, norm, tight, apart):
    anchors = md.Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
    rows = np.array([[value / 4, 1 - value / 4] for value in values])
    found = md.ContinuousPrivacy(1, anchors, norm).least_epsilon(md.Channel.from_matrix(rows))
    assert found == pytest.approx(tight, rel=1e-6)
    corners = np.array(values, dtype=float).reshape(2, 2)
    along = [np.abs(np.diff(corners, axis=axis)) / np.minimum.reduce(corners, axis=axis) for axis in (0, 1)]
    ratios = [float(each.max()) for each in along]
    assert (sum(ratios) if norm == "chebyshev" else math.hypot(*ratios)) == pytest.approx(apart)


def test_the_length_of_the_second_verifier():
    said = re.search(r"one file of some (\d+) lines", (PROJECT / "docs/howto/verify.md").read_text(encoding="utf-8"))
    assert said is not None
    lines = (PROJECT / "mechdesign/certify/second_verifier.py").read_text(encoding="utf-8").splitlines()
    assert abs(len(lines) - int(said[1])) <= 0.1 * len(lines)
