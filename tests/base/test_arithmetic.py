"""What the caller has set for floating point and decimals changes no number, and is as it was afterwards."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pytest
from releases import strategy_of
from rows import each_row

import mechdesign as md
from mechdesign import tables as blowfish
from mechdesign.base._arithmetic import decimals, in_own_arithmetic, own_arithmetic
from mechdesign.base._warnings import warn
from mechdesign.certify._exponential import SHIFT, exp_lower
from mechdesign.errors import MetricWarning
from mechdesign.mechanisms._discrete import DiscreteGaussian, exp_minus
from mechdesign.model._words import format_bound
from mechdesign.traces._hmm import forward, smooth

LINE = md.Domain.grid(20, 1, 200.0, 10.0)
DISTANCE = md.distances.euclidean(LINE)
LADDER = np.diag(np.full(40, 1 - 1e-10), 1) + np.diag(np.full(40, 1e-10), -1)
LADDER += np.diag(1 - LADDER.sum(axis=1))
POLICY = blowfish.Policy.full(blowfish.Domain({"n": range(6)}))
SAME = [[1.0, 2.0], [1.0, 2.0], [4.0, 2.0]]
FAR_CENTRES = """
domain.grid = { columns = 20, rows = 1, width = 200.0, height = 10.0, unit = "km" }
prior.simulated = { people = 1000, background = 0.5, centres = [{ x = 0.0, y = 5.0, spread = 1.0, weight = 1 }] }
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 0.1, distance = "euclidean" }]
"""


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
    "planar Laplace rule": lambda: md.mechanisms.PlanarLaplace(20.0, LINE).matrix().sum(),
    "exponential rule": lambda: md.mechanisms.Exponential(30.0, DISTANCE).matrix().sum(),
    "geometric rule": lambda: md.mechanisms.Geometric(8.0, 200).matrix().sum(),
    "audit": lambda: md.audit(md.mechanisms.Exponential(2.0, DISTANCE).matrix(), distance=DISTANCE).epsilon,
    "spread of noise": lambda: DiscreteGaussian(0.05).variance,
    "picture": lambda: md.figures.graph(LINE, [[0, 1]]).get_figwidth(),
    "leakage": lambda: md.leakage.temporal([0.1] * 3, [[0.9, 0.1], [0.2, 0.8]], None).sum(),
    "budget": lambda: md.leakage.constant_budget(1.0, [[0.9, 0.1], [0.2, 0.8]]),
    "loss at large budgets": lambda: md.leakage.LossFunction([[0.8, 0.2], [0.2, 0.8]])(np.array([800.0, 900.0])).sum(),
    "chain that mixes slowly": lambda: md.MarkovChain(LADDER).stationary().probabilities[-2:].sum(),
    "what a trace tells": lambda: forward([0.5, 0.5], np.eye(2), [[0.0, -1000.0], [0.0, -1.0]]).posteriors.sum(),
    "what a trace told": lambda: smooth([0.5, 0.5], np.eye(2), [[0.0, -1000.0], [0.0, -1.0]]).sum(),
    "strategy of counts": lambda: strategy_of("identity", POLICY, noise="gaussian").lower_bound(rho=1),
    "plan of counts": lambda: blowfish.Histogram().plan(POLICY, epsilon=1).options[0].error,
    "hull of one point": lambda: md.graphs.sensitivity_hull(SAME, md.graphs.from_edges(3, [[0, 1]])).norm([1e-300, 0]),
    "simulated people": lambda: md.specification.parse(FAR_CENTRES).problem().prior.sum(),
}


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
@each_row("name", CASES)
def test_numbers_are_those_of_a_caller_without_settings(strict, name):
    found = CASES[name]()
    with own_arithmetic():
        assert found == pytest.approx(CASES[name](), rel=1e-9)


def test_bounds_are_true_whatever_decimals_the_caller_has(monkeypatch):
    # With three digits 52 ln 2 is 36.0, and 2^52 is above exp(36.01).
    weights = np.array([36.01])
    known = exp_lower(Fraction(1), weights, 52), exp_minus(Fraction(1, 3), 40), format_bound(0.1234567891, up=True)
    for name, value in {"prec": 3, "Emax": 5, "rounding": decimal.ROUND_UP}.items():
        monkeypatch.setattr(decimal.DefaultContext, name, value)
    monkeypatch.setitem(decimal.DefaultContext.traps, decimal.Inexact, True)
    with decimal.localcontext(decimal.Context(prec=3, Emax=5, traps=[])):
        found = exp_lower(Fraction(1), weights, 52), exp_minus(Fraction(1, 3), 40), format_bound(0.1234567891, up=True)
        context = decimals(30)
    assert found == known
    assert int(found[0][0]) < 1 << (SHIFT + 52)
    assert (context.Emax, context.traps[decimal.Inexact]) == (decimal.MAX_EMAX, False)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
def test_a_bundle_is_saved_and_verified(strict, tmp_path):
    made = md.design(problem(4.0), solver="block")
    md.save(made, tmp_path / "city", report=False)
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
