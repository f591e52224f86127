"""Parts that share floors: what is kept where the mixture is stopped, and equal proposals."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve._contract import Status
from mechdesign.synthesis._coupled import column_generation, pricing

INF = np.inf


def towns(count: int) -> md.Problem:
    """Return towns of three places with answers of their own, which share a distortion floor."""
    rng = np.random.default_rng(count)
    n = 3 * count
    points = np.repeat(10.0 * np.arange(count), 3)[:, None] + rng.random((n, 1))
    distance = np.abs(points - points.T)
    own = np.repeat(np.arange(count), 3)
    cost = np.where(own[:, None] == own, distance, INF)
    prior = rng.dirichlet(np.ones(n))
    floor = 0.8 * sum(float((distance[:, own == t] @ prior[own == t]).min()) for t in range(count))
    near = np.where(own[:, None] == own, distance, INF)
    return md.Problem(prior, cost, [md.MetricPrivacy("8", near), md.DistortionPrivacy(floor, distance)])


def test_a_mixture_that_is_stopped_keeps_the_shares_of_the_round_before(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, mix, count = towns(3), column_generation._mix, []
    expected = md.design(problem)
    assert (expected.summary.rounds or 0) >= 2

    def stopped(*given: object) -> object:
        count.append(1)
        return Status.INTERRUPTED if len(count) == 2 else mix(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(column_generation, "_mix", stopped)
    made = md.design(problem)
    assert made.status is Status.INTERRUPTED
    assert made.certificate.holds
    assert made.certificate.lower_bound > 0
    assert made.certificate.expected_cost >= expected.certificate.expected_cost


def test_equal_proposals_count_once() -> None:
    problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", np.array([[0.0, 1], [1, 0]]))])
    kind = pricing.Kind(problem, (), "all")
    other = kind.proposal(np.array([[0.7, 0.3], [0.3, 0.7]]))
    assert not kind.add(kind.constant)
    assert kind.add(other)
    assert not kind.add(other)
    assert len(kind.proposals) == 2
