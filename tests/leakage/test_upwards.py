"""Sums of budgets are exact, leakages round up, and a budget that was promised is accepted as often as promised."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import leakage
from mechdesign.base._errors import BudgetWarning
from mechdesign.errors import LeakageExceededError
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import windows
from mechdesign.leakage._transitions import round_down, round_up
from mechdesign.leakage._upwards import advance, ceiling, first, total
from mechdesign.model._markov import smooth

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

MILD = [[0.8, 0.2], [0.2, 0.8]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
ALIKE = [[0.3, 0.7], [0.3, 0.7]]


def test_sums_are_those_of_the_decimals():
    for back, ahead in ((IDENTITY, None), (None, IDENTITY), (IDENTITY, IDENTITY), (IDENTITY, ALIKE)):
        accountant = Accountant(0.3, back, ahead)
        for left in (0.2, 0.1, 0.0):
            accountant.release(0.1)
            assert accountant.largest() == left
        assert accountant.leakage.max() == 0.3
        assert leakage.temporal([0.1] * 3, back, ahead).max() == 0.3
        for tiny in (1e-17, 5e-324):
            with pytest.raises(LeakageExceededError):
                accountant.release(tiny)
        accountant.release(0.0)
        assert len(accountant) == 4


def test_nothing_tiny_is_absorbed_where_leakage_is_lost_on_the_way():
    accountant = Accountant(1.0, forward=MILD)
    accountant.release(1.0)
    for tiny in (1e-17, 1e-300, 5e-324):
        with pytest.raises(LeakageExceededError):
            accountant.release(tiny)
    accountant = Accountant(1.0, IDENTITY, MILD)
    accountant.release(0.7)
    accountant.release(accountant.largest())
    refused = 0
    for _ in range(3):
        try:
            accountant.release(1e-17)
        except LeakageExceededError:
            refused += 1
    assert refused >= 2
    assert accountant.leakage.max() <= 1.0


def test_independent_releases_do_not_add_up():
    accountant = Accountant(0.3, ALIKE)
    for _ in range(5):
        accountant.release(0.3)
    assert accountant.leakage.tolist() == [0.3] * 5


def test_numbers_that_are_no_floats_are_rounded_towards_safety():
    third = Fraction(1, 3)
    assert Fraction(str(float(third))) < third
    accountant = Accountant(1.0, IDENTITY)
    accountant.release(third)
    assert Fraction(repr(float(accountant.epsilons[0]))) >= third
    assert Fraction(repr(Accountant(third).alpha)) <= third
    accountant = Accountant(Decimal("0.3"), IDENTITY)
    for _ in range(3):
        accountant.release(Decimal("0.1"))
    assert accountant.largest() == 0.0


def test_sums_of_windows_are_exact():
    assert leakage.window([0.1] * 3, 0, 2) == 0.3
    assert windows([0.1] * 4, 3).tolist() == [0.3, 0.3]
    assert windows([0.1] * 3, 3, IDENTITY, IDENTITY).tolist() == [0.3]


@settings(max_examples=50)
@given(st.fractions(0, 10**6, max_denominator=10**20))
def test_rounding_of_fractions(number):
    up, down = round_up(number), round_down(number)
    assert Fraction(repr(down)) <= number <= Fraction(repr(up))
    assert up == 0 or Fraction(repr(math.nextafter(up, 0))) < number
    assert Fraction(repr(math.nextafter(down, math.inf))) > number


def test_rounding_at_the_edge_of_floats():
    assert round_up(Fraction(10) ** 400) == math.inf
    assert round_down(Fraction(10) ** 400) == math.nextafter(math.inf, 0)
    assert round_up(Fraction(1, 10**400)) == 5e-324
    assert total(1e308, 1e308, 1e308) == math.inf
    assert leakage.temporal([1e308] * 3, IDENTITY, MILD).max() == math.inf


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 20.0), st.floats(1e-9, 5.0))
def test_a_step_is_never_below_60_digits(seed, reached, epsilon):
    rng = np.random.default_rng(seed)
    P = smooth(np.eye(2), 10 ** rng.uniform(-9, 0)).matrix if seed % 2 else rng.dirichlet([0.3, 0.3], 2) + 1e-9
    loss = LossFunction(P / P.sum(axis=1, keepdims=True))
    step = advance(loss, first(epsilon)._replace(reached=reached), epsilon, epsilon)
    with localcontext() as context:
        context.prec = 60
        A = Decimal(reached).exp() - 1
        # With rows that sum to one: Q = 1 − rest where that is the smaller error, else G + D.
        values = []
        for G, D, rest in loss.lines:
            G, D, rest = Decimal(G), Decimal(D), Decimal(rest)
            whole = G + D + rest
            values.append((((G + D) / whole * A + 1) / (D / whole * A + 1)).ln())
        truth = max(values)
        assert Decimal(step.reached) >= truth + Decimal(repr(epsilon)) - Decimal(2) ** -52 * max(truth, 1)
        assert Decimal(step.reached) <= (truth + Decimal(epsilon)) * (1 + Decimal(2) ** -45) + Decimal(2) ** -50


def promised(seed: int) -> tuple[float, object, object]:
    """Return α and correlations: strong and weak, near the identity, in both directions, and candidates."""
    rng = np.random.default_rng(seed)

    def matrix():
        if rng.integers(3) == 0:
            return smooth(np.eye(3), 10 ** rng.uniform(-9, 0)).matrix
        P = rng.dirichlet(np.full(3, 10 ** rng.uniform(-1, 1)), 3) + 10 ** rng.uniform(-12, -1)
        return P / P.sum(axis=1, keepdims=True)

    sides = [None if rng.integers(4) == 0 else matrix() for _ in range(2)]
    if rng.integers(4) == 0:
        sides[0] = Candidates([matrix(), matrix(), None])
    return float(10 ** rng.uniform(-3, 2.5)), sides[0], sides[1]


@pytest.mark.parametrize("seed", range(8))
def test_what_budgets_promise_is_accepted(seed):
    alpha, back, ahead = promised(seed)
    always = leakage.constant_budget(alpha, back, ahead)
    assert leakage.temporal(np.full(500, always), back, ahead).max() <= alpha
    budgets = leakage.allocate_budget(alpha, 15, back, ahead)
    accountant = Accountant(alpha, back, ahead)
    for epsilon in budgets.tolist():
        accountant.release(epsilon)
    assert alpha * (1 - 1e-9) <= accountant.leakage.min() <= accountant.leakage.max() <= alpha
    np.testing.assert_array_equal(accountant.leakage, leakage.temporal(budgets, back, ahead))


@pytest.mark.long
@pytest.mark.slow
def test_ten_thousand_releases_of_what_was_promised():
    near = smooth(np.eye(2), 1e-3).matrix
    for back, ahead in ((near, None), (IDENTITY, IDENTITY)):
        spent = leakage.constant_budget(1.0, back, ahead) if ahead is None else 1e-4
        accountant = Accountant(1.0, back, ahead)
        for _ in range(10_000):
            accountant.release(spent)
        assert accountant.leakage.max() <= 1.0
    assert accountant.leakage.max() == 1.0
    with pytest.raises(LeakageExceededError):
        accountant.release(1e-4)


def test_three_thousand_releases_both_ways():
    near = smooth(np.eye(2), 1e-2).matrix
    spent = leakage.constant_budget(1.0, near, near)
    found = leakage.temporal(np.full(3000, spent), near, near).max()
    assert 1 - 1e-9 <= found <= 1.0
    assert leakage.temporal(np.full(3000, spent * (1 + 1e-9)), near, near).max() > 1.0


def test_the_largest_is_accepted_each_time():
    rng = np.random.default_rng(3)
    for back, ahead in itertools.product((None, MILD, IDENTITY), (None, IDENTITY, MILD)):
        accountant = Accountant(0.7, back, ahead)
        for _ in range(5):
            accountant.release(accountant.largest() * rng.uniform(0, 0.5))
        accountant.release(accountant.largest())
        assert accountant.leakage.max() <= 0.7


def test_a_ceiling_is_kept_and_a_little_more_is_not():
    loss = LossFunction(smooth(np.eye(3), 1e-6).matrix)
    epsilon = leakage.constant_budget(1.0, loss)
    most = ceiling([loss], epsilon)
    step = first(epsilon)._replace(reached=most.reached)
    for _ in range(100):
        step = advance(loss, step, epsilon, epsilon)
        assert step.reached <= most.reached
    assert advance(loss, step._replace(reached=most.reached), epsilon, epsilon * (1 + 1e-9)).reached > most.reached
    assert ceiling([LossFunction(IDENTITY)], 0.1).reached == math.inf
    assert ceiling([], 0.1).carried == 0.0


def test_an_allocation_between_disjoint_rows_is_an_exact_half():
    with pytest.warns(BudgetWarning):
        budgets = leakage.allocate_budget(0.3, 3, IDENTITY, IDENTITY)
    assert budgets.tolist() == [0.15, 0.0, 0.15]
    for alpha in (0.1, 1 / 3, 0.7, 1e-300):
        first_one, last = leakage.allocate_budget(alpha, 2, IDENTITY, IDENTITY).tolist()
        assert leakage.temporal([first_one, last], IDENTITY, IDENTITY).max() <= alpha
