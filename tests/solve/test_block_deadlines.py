"""The block method keeps its time limit from the first step on, and reports the time for its last part."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._contract import Status

ROWS = 1_000_000


def line(n: int) -> md.Problem:
    distance = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    prior = np.random.default_rng(0).dirichlet(np.ones(n))
    return md.Problem(prior, distance, [md.MetricPrivacy("0.6", distance)])


@pytest.mark.parametrize(
    ("ready", "limit", "name"), [(False, 3.0, "numpy"), (False, 59.9, "numpy"), (True, 3.0, "numba")]
)
def test_a_short_limit_leaves_no_time_to_compile(
    ready: bool, limit: float, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    module: Any = importlib.import_module("mechdesign.solve._blocks.kernels.numba")
    monkeypatch.setattr(module, "is_compiled", lambda: ready)
    assert choose(None, None, ROWS, time_limit=limit).__module__.endswith(name)
    assert choose(None, None, ROWS, time_limit=60.0).__module__.endswith("numba")
    assert choose(None, None, ROWS).__module__.endswith("numba")
    # If the caller requests Numba by name, the solve waits for the compilation.
    assert choose("numba", None, ROWS, time_limit=limit).__module__.endswith("numba")


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
