"""What the caller has set for floating point and decimals changes no number, and is as it was afterwards."""

from __future__ import annotations

import decimal

import numpy as np
import pytest

import mechdesign as md
from mechdesign.arithmetic import in_own_arithmetic, own_arithmetic
from mechdesign.errors import MetricWarning
from mechdesign.warned import warn

LINE = md.Domain.grid(20, 1, 200.0, 10.0)
DISTANCE = md.distances.euclidean(LINE)


@pytest.fixture
def strict():
    """Let floating-point errors be raised, and decimals have three digits."""
    asked = decimal.Context(prec=3, Emax=5, traps=[decimal.Inexact])
    with np.errstate(all="raise"), decimal.localcontext(asked):
        yield
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")
        assert decimal.getcontext().prec == 3
        assert decimal.getcontext().traps[decimal.Inexact]


def problem(epsilon: float) -> md.Problem:
    return md.Problem(
        np.full(20, 1 / 20), DISTANCE, [md.MetricPrivacy(epsilon, DISTANCE)], secrets=LINE, observables=LINE
    )


def test_it_would_be_raised_without(strict):
    with pytest.raises(FloatingPointError):
        np.exp(np.array(-800.0))
    with own_arithmetic():
        assert np.exp(np.array(-800.0)) == 0
        assert decimal.getcontext().prec == 28


CASES = {
    "design with a large ε": lambda: md.design(problem(4.0), solver="block").certificate.cost,
    "planar Laplace rule": lambda: md.rules.planar_laplace(LINE, 20.0).sum(),
    "exponential rule": lambda: md.rules.exponential(DISTANCE, 30.0).sum(),
    "geometric rule": lambda: md.rules.geometric(200, 8.0).sum(),
    "audit": lambda: md.audit(md.rules.exponential(DISTANCE, 2.0), distance=DISTANCE).epsilon,
    "spread of noise": lambda: md.mechanisms.DiscreteGaussian(0.05).variance,
    "picture": lambda: md.figures.policy(LINE, [[0, 1]]).get_figwidth(),
    "leakage": lambda: md.leakage.temporal([0.1] * 3, [[0.9, 0.1], [0.2, 0.8]], None).sum(),
    "budget": lambda: md.leakage.constant_budget(1.0, [[0.9, 0.1], [0.2, 0.8]]),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_a_caller_without_settings(strict, name):
    found = CASES[name]()
    with own_arithmetic():
        assert found == pytest.approx(CASES[name](), rel=1e-9)


def test_a_bundle_is_saved_and_verified(strict, tmp_path):
    made = md.design(problem(4.0), solver="block")
    made.save(tmp_path / "city", report=False)
    assert md.verify(tmp_path / "city").holds


def test_a_warning_names_the_caller_through_any_number_of_doors():
    @in_own_arithmetic
    def inner() -> None:
        warn("here", MetricWarning, stacklevel=3)

    @in_own_arithmetic
    def outer() -> None:
        inner()

    with pytest.warns(MetricWarning) as said:
        outer()
    assert said[0].filename == __file__
