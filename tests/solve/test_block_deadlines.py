"""The block method keeps its time limit from the first step on, and reports the time for its last part."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve._contract import Status


def line(n: int) -> md.Problem:
    distance = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    prior = np.random.default_rng(0).dirichlet(np.ones(n))
    return md.Problem(prior, distance, [md.MetricPrivacy("0.6", distance)])


@pytest.mark.parametrize("generation", [True, False])
def test_without_any_time_the_constant_channel_is_certified(generation: bool) -> None:
    made = md.design(line(20), solver="block", time_limit=1e-9, options={"generation": generation})
    assert made.status is Status.TIME_LIMIT
    assert made.certificate.holds
    assert made.certificate.lower_bound <= made.certificate.expected_cost


def test_the_parts_of_the_time_are_said() -> None:
    summary = md.design(line(20), solver="block").summary
    assert summary.proving_seconds is not None
    assert summary.rounding_seconds is not None
    assert summary.certifying_seconds is not None
    assert 0 <= summary.proving_seconds <= summary.seconds + 1e-3
