"""Budgets of least cost for a specification: which ε are designed, and what the total is of."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from spec_examples import LABELS, document

from mechdesign import leakage
from mechdesign import specification as spec
from mechdesign.specification._derived import price_budgets

MILD = np.array([[0.8, 0.2], [0.2, 0.8]])
ASKED = document(LABELS, privacy='privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]')


def test_designs_are_of_shares_of_the_leakage_and_of_what_the_budgets_use() -> None:
    told: list[str] = []
    weights = [1.0, 0.0, 2.0]
    found = price_budgets(spec.parse(ASKED), 0.75, weights, MILD, told=told.append)
    # 0.75 / 200 is 0.00375, so budgets are thousandths: 1/16, 1/8, 1/4, 1/2 and all of 0.75, each rounded down.
    expected = [Fraction(text) for text in ("0.046", "0.093", "0.187", "0.375", "0.75")]
    assert [Fraction(text.rpartition("= ")[2]) for text in told[:5]] == expected
    assert len(told) == len(found.costs) - 1
    assert set(expected) <= set(found.costs)
    assert all(epsilon * 1000 == math.floor(epsilon * 1000) for epsilon in found.costs)
    # Randomised response on three values, and no release.
    for epsilon, cost in found.costs.items():
        assert cost == pytest.approx(2 / (2 + math.exp(epsilon)), rel=1e-6)
    budgets = found.best.epsilons.tolist()
    priced = {float(epsilon): cost for epsilon, cost in found.costs.items()}
    assert found.best.cost == pytest.approx(sum(w * priced[e] for w, e in zip(weights, budgets, strict=True)), rel=1e-9)
    assert found.best.lower_bound <= found.best.cost
    assert leakage.temporal(budgets, MILD).max() <= 0.75
    assert budgets[1] < min(budgets[0], budgets[2])


def test_the_largest_budget_is_the_decimal_that_was_asked() -> None:
    # As a binary number, 0.7 lies below 700 thousandths.
    found = price_budgets(spec.parse(ASKED), 0.7, [1.0])
    assert Fraction("0.7") in found.costs
    assert found.best.epsilons.tolist() == [0.7]
