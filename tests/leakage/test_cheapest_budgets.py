"""Costs of budgets and the search for the cheapest, on problems that are small enough for every change."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mechdesign.leakage._best_budgets import CostCurve, best_budgets
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._loss_by_programs import _polish
from mechdesign.leakage._recursion import windows

LOSS = LossFunction([[0.8, 0.2], [0.3, 0.7]])
STAIRS = (np.array([0.0, 0.5, 1.0, 1.5, 2.0]), np.array([3.0, 2.0, 2.0, 0.5, 0.5]))


def test_the_least_budget_of_a_cost_is_where_the_curve_becomes_flat() -> None:
    curve = CostCurve(*STAIRS)
    for epsilon in np.linspace(0, 2.5, 51).tolist():
        cost = float(curve.at(epsilon))
        assert cost == pytest.approx(float(np.interp(epsilon, *STAIRS)))
        least = curve.least(epsilon)
        assert least <= epsilon
        assert float(curve.at(least)) <= cost
        # Nothing smaller costs as little.
        smaller = [each for each in np.linspace(0, least, 41)[:-1] if each < least]
        assert all(float(curve.at(each)) > cost for each in smaller), epsilon
    flat = CostCurve(np.array([0.0, 1.0]), np.array([2.0, 2.0]))
    assert flat.least(0.7) == 0


@pytest.mark.parametrize(
    ("window", "before", "after"), [(1, LOSS, LOSS), (1, LOSS, None), (1, None, LOSS), (2, LOSS, None)]
)
def test_no_budgets_on_a_grid_are_cheaper(window: int, before: object, after: object) -> None:
    alpha, axis = 1.0, np.linspace(0, 1, 16)
    curves = [(axis, np.exp(-k * axis) * scale) for k, scale in ((1.0, 1.0), (3.0, 2.0), (2.0, 1.0))]
    found = best_budgets(alpha, curves, before, after, window=window, tolerance=0.05)
    assert windows(found.epsilons, window, before, after).max() <= alpha * (1 + 1e-12)
    assert found.cost == pytest.approx(sum(np.interp(e, *c) for e, c in zip(found.epsilons, curves, strict=True)))
    assert found.lower_bound <= found.cost
    assert found.cost <= found.lower_bound * 1.1
    best = math.inf
    for chosen in itertools.product(axis.tolist(), repeat=3):
        cost = sum(float(np.interp(e, *curve)) for e, curve in zip(chosen, curves, strict=True))
        if cost < best and windows(chosen, window, before, after).max() <= alpha:
            best = cost
    assert found.lower_bound <= best * (1 + 1e-9)
    assert found.cost <= best * 1.05


def test_one_step_of_dinkelbach() -> None:
    dice = np.random.default_rng(11)
    moves = 0
    for _ in range(200):
        q, d = dice.dirichlet(np.ones(4), 2)
        alpha = float(dice.uniform(0.1, 3))
        low, high = math.exp(-alpha / 2), math.exp(alpha / 2)
        x = dice.uniform(low, high, 4)
        point, loss, moved = _polish(q, d, x, alpha)
        ratio = q @ x / (d @ x)
        expected = np.where(q - ratio * d > 0, high, low)
        better = q @ expected / (d @ expected)
        moves += moved
        assert moved == (better > ratio * (1 + 1e-12)) or better == pytest.approx(ratio, rel=1e-9)
        assert np.allclose(point, expected if moved else x, rtol=1e-9)
        assert loss == pytest.approx(max(math.log(max(better, ratio)), 0.0), abs=1e-9)
    assert moves > 150
