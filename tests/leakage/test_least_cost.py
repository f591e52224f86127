"""Budgets of least cost: brute force, the bracket, Algorithms 7 and 8, windows, and wrong input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from long import mostly_long

from mechdesign import leakage
from mechdesign.errors import CorrelationWarning
from mechdesign.leakage._best_budgets import Program, StateGrid, as_curves, best_budgets, solve
from mechdesign.leakage._correlations import Varying
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import windows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")]

MILD = [[0.8, 0.2], [0.2, 0.8]]
OTHER = [[0.8, 0.2], [0.1, 0.9]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
AXIS = np.linspace(0.0, 2.0, 41)
FALLING = (AXIS, np.exp(-2 * AXIS))


def stochastic(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.dirichlet(np.full(n, 10 ** rng.uniform(-0.7, 0.7)), n)


def random_case(rng: np.random.Generator, longest: int) -> tuple[float, list, LossFunction | None, LossFunction | None]:
    n, steps, alpha = int(rng.integers(2, 5)), int(rng.integers(1, longest + 1)), float(rng.uniform(0.2, 4))
    before, after = (LossFunction(stochastic(rng, n)) if rng.random() < 0.8 else None for _ in range(2))
    curves = []
    for _ in range(steps):
        axis = np.unique(np.append(rng.integers(0, 2) * 0.1, rng.uniform(0.1, alpha, int(rng.integers(1, 5)))))
        curves.append((np.minimum(axis, alpha), np.sort(rng.uniform(0, rng.integers(0, 4), len(axis)))[::-1]))
    curves = [(np.unique(axis), values[: len(np.unique(axis))]) for axis, values in curves]
    return alpha, curves, before, after


def cheapest(alpha: float, curves: list, before: object, after: object, window: int, points: int) -> float:
    """Return the least cost on an even grid of budgets, by trying all of them, the cheapest first."""
    axis = np.linspace(0, alpha, points)
    each = np.array([np.interp(axis, *curve) for curve in curves])
    totals = sum(np.ix_(*each))
    for place in np.argsort(totals, axis=None, kind="stable").tolist():
        budgets = axis[list(np.unravel_index(place, totals.shape))]
        if windows(budgets, window, before, after).max() <= alpha * (1 + 1e-12):
            return float(totals.flat[place])
    return math.inf


@pytest.mark.parametrize("seed", mostly_long(range(12), 8))
def test_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, curves, before, after = random_case(rng, 4)
    window = int(rng.integers(1, min(len(curves), 3) + 1))
    best = best_budgets(alpha, curves, before, after, window=window, tolerance=0.05)
    assert windows(best.epsilons, window, before, after).max() <= alpha
    assert best.cost == pytest.approx(sum(np.interp(e, *c) for e, c in zip(best.epsilons, curves, strict=True)))
    tried = cheapest(alpha, curves, before, after, window, {1: 200, 2: 40, 3: 14, 4: 8}[len(curves)])
    assert best.lower_bound <= tried * (1 + 1e-12)
    assert best.gap <= 0.05
    assert best.cost <= tried / (1 - 0.05) + 1e-12


@pytest.mark.long
def test_never_worse_than_algorithms_7_and_8() -> None:
    rng = np.random.default_rng(7)
    better = 0
    for _ in range(150):
        alpha, curves, before, after = random_case(rng, 4)
        best = best_budgets(alpha, curves, before, after, tolerance=0.5)
        assert best.allocated is not None
        assert best.constant is not None
        assert leakage.temporal(best.epsilons, before, after).max() <= alpha
        assert best.lower_bound <= best.cost <= min(best.allocated, best.constant)
        better += best.cost < 0.99 * min(best.allocated, best.constant)
    assert better > 15


@pytest.mark.parametrize(
    ("weights", "gained"),
    [(np.ones(8), 0.0), ((np.arange(10) % 5 == 0) * 1.0, 0.5), (np.linspace(0.1, 2.0, 8), 0.0)],
    ids=["alike", "every fifth", "rising"],
)
def test_bracket_within_a_hundredth(weights: np.ndarray, gained: float) -> None:
    rng = np.random.default_rng(0)
    before, after = (LossFunction(rng.dirichlet(np.ones(3), 3)) for _ in range(2))
    best = best_budgets(2.0, [(FALLING[0], weight * FALLING[1]) for weight in weights], before, after)
    assert best.gap <= 0.01
    assert best.allocated is not None
    assert best.cost < (1 - gained) * best.allocated
    if gained:
        assert (best.epsilons[weights == 0] < 0.02).all()


def test_lower_bound_where_careless_rounding_exceeds_the_optimum() -> None:
    """Two releases, e^-2ε each, a grid of 20 steps: a transition taken at the upper end of the cell is no bound."""
    axis = np.linspace(0.0, 1.0, 2001)
    curve = (axis, np.exp(-2 * axis))
    loss = LossFunction(MILD)
    fine = np.linspace(0.0, 1.0, 1001)
    # Whatever the first release spends, the second is limited by both promises.
    optimum = min(
        math.exp(-2 * first) + math.exp(-2 * _second(first, loss)) for first in fine.tolist() if loss(first) <= 1
    )
    program = Program(1.0, as_curves([curve, curve], 1.0), (None, loss), (loss, None))
    axis = np.linspace(0.0, 1.0, 21)
    grids = [StateGrid(axis, axis, axis)] * 2
    bound, _ = solve(program, grids, relaxed=True)
    found, path = solve(program, grids, relaxed=False)
    assert bound <= optimum <= found
    # The program rounds to nearest; what is published is checked by leakages that are rounded up.
    assert leakage.temporal(path.epsilons, loss, loss).max() <= 1.0 + 1e-14
    # Rounding the other way claims what is not so: the test would notice.
    assert found > optimum + 1e-3


def _second(first: float, loss: LossFunction) -> float:
    """Return the most that the last of two releases may spend: min of 1 − L(ε_1) and the largest x, L(x) ≤ 1 − ε_1."""
    low, high = 0.0, 1.0 - loss(first)
    if first + loss(high) <= 1:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if first + loss(middle) <= 1 else (low, middle)
    return low


def test_without_correlation_everything_is_spent() -> None:
    best = best_budgets(2.0, [FALLING] * 3)
    assert best.epsilons.tolist() == [2.0] * 3
    assert best.gap < 1e-12


def test_identity_shares_alpha_like_a_sum() -> None:
    """What never fades adds up: min Σ w e^-2ε subject to Σ ε <= α has a closed form."""
    fine = np.linspace(0, 2, 4001)
    weights = np.array([1.0, 3.0, 2.0])
    best = best_budgets(
        2.0, [(fine, weight * np.exp(-2 * fine)) for weight in weights], IDENTITY, IDENTITY, tolerance=0.005
    )
    level = (np.log(weights).sum() - 4.0) / 3
    optimum = 3 * math.exp(level)
    assert best.lower_bound <= optimum * (1 + 1e-6)
    assert best.cost == pytest.approx(optimum, rel=0.006)
    assert math.fsum(best.epsilons.tolist()) <= 2.0


@pytest.mark.parametrize("width", [2, 3, 5])
def test_windows(width: int) -> None:
    loss = LossFunction(MILD)
    best = best_budgets(1.0, [FALLING] * 8, loss, loss, window=width, tolerance=0.05 if width <= 3 else 0.9)
    assert windows(best.epsilons, width, loss, loss).max() <= 1.0
    assert windows(best.epsilons, width, loss, loss).max() >= 0.99
    assert best.allocated is None
    if width <= 3:
        assert best.gap <= 0.05
    wider = best_budgets(1.0, [FALLING] * 8, loss, loss, window=width - 1, tolerance=0.1)
    assert wider.lower_bound <= best.cost


def test_correlations_that_change() -> None:
    varying = Varying([MILD, None, OTHER])
    best = best_budgets(1.0, [FALLING] * 4, varying, varying)
    assert best.allocated is None
    assert best.gap <= 0.01
    assert leakage.temporal(best.epsilons, varying, varying).max() <= 1.0
    # Nothing passes between the second release and the third: two separate programs.
    parts = [best_budgets(1.0, [FALLING] * 2, each, each).cost for each in (MILD, OTHER)]
    assert best.cost == pytest.approx(sum(parts), rel=0.02)


def test_curves_are_linear_between_points() -> None:
    curve = as_curves([([0.5, 1.0], [3.0, 1.0])], 2.0)[0]
    assert curve.at([0.0, 0.5, 0.75, 1.0, 5.0]).tolist() == [3.0, 3.0, 2.0, 1.0, 1.0]


def test_a_budget_that_buys_nothing_is_not_spent() -> None:
    curve = as_curves([([0.5, 1.0, 1.5, 2.0], [3.0, 1.0, 1.0, 0.5])], 2.0)[0]
    assert [curve.least(epsilon) for epsilon in (0.2, 0.5, 0.75, 1.0, 1.2, 1.5, 1.75, 2.0, 9.0)] == [
        0.0, 0.0, 0.75, 1.0, 1.0, 1.0, 1.75, 2.0, 2.0,
    ]  # fmt: skip
    best = best_budgets(2.0, [([0.0, 0.5], [1.0, 0.0])] * 3)
    assert best.epsilons.tolist() == [0.5] * 3


def test_directions_that_do_not_fit_are_warned_of_once() -> None:
    with pytest.warns(CorrelationWarning, match="cannot both be correlations of one chain") as caught:
        best_budgets(1.0, [FALLING] * 3, MILD, OTHER, tolerance=0.5)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_leaving_out_is_free_to_choose() -> None:
    flat = ([0.0], [0.0])
    best = best_budgets(1.0, list(itertools.chain.from_iterable([(FALLING, flat)] * 3)), IDENTITY)
    assert best.epsilons[1::2].tolist() == [0.0] * 3
