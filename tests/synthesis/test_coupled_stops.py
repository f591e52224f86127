"""Parts that share floors: a stopped master program keeps the previous mixture, and equal proposals count once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve._column_generation import Bracket, RestrictedSolution
from mechdesign.solve._contract import Options, Status
from mechdesign.synthesis import _coupled

INF = np.inf


def towns(count: int) -> md.Problem:
    """Return towns of three places with disjoint answers, which share a distortion floor."""
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


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.TIME_LIMIT])
def test_a_stopped_master_keeps_the_previous_mixture(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, count = towns(3), []
    expected = md.design(problem)
    assert (expected.summary.rounds or 0) >= 2

    class Stopped(_coupled.PartMixtureMaster):
        def solve(self, working: Any, *given: Any) -> Any:
            count.append(1)
            return (
                RestrictedSolution(working, None, status, "", -np.inf)
                if len(count) == 2
                else super().solve(working, *given)
            )

    monkeypatch.setattr(_coupled, "PartMixtureMaster", Stopped)
    made = md.design(problem)
    assert made.status is status
    assert made.certificate.holds
    assert made.certificate.lower_bound > 0
    assert made.certificate.expected_cost >= expected.certificate.expected_cost


def test_a_part_of_cost_zero_shares_a_floor() -> None:
    own, x = np.repeat([0, 1], (5, 2)), np.r_[np.arange(5.0), 100.0, 101.0]
    distance = np.abs(x[:, None] - x)
    cost = np.where(own[:, None] == own, distance * (distance > 1.5), INF)
    error, prior = np.minimum(distance, 5.0), np.full(7, 1 / 7)
    largest = sum(float((error[:, own == g] @ prior[own == g]).min()) for g in (0, 1))
    privacy = [md.ThresholdPrivacy(1.0, distance, 1.0), md.DistortionPrivacy(0.9 * largest, error)]
    made = md.design(md.Problem(prior, cost, privacy))
    assert made.status is Status.OPTIMAL
    assert made.certificate.holds
    assert made.certificate.relative_gap <= 1e-6


def test_equal_proposals_count_once() -> None:
    problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", np.array([[0.0, 1], [1, 0]]))])
    kind = _coupled.PartClass(problem, (), "all", mass=1.0)
    asked = _coupled.PartPricer([kind], np.zeros(0), "highs-simplex", Options())
    found = RestrictedSolution(_coupled.PartColumns(((kind.constant,),)), np.zeros(0))
    ((number, proposal),) = asked.price(found, Bracket()).improving
    more = found.working.add([(number, proposal)])
    assert len(more) == 2
    assert not asked.price(replace(found, working=more), Bracket()).improving
