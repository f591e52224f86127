from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.base import _arithmetic as arithmetic
from mechdesign.certify import _exponential as exponential_functions
from mechdesign.certify._exponential import SHIFT, exp_lower, exp_upper, ln_lower, ln_upper

CAREFUL = decimal.Context(prec=120, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exponential(epsilon: Fraction, weight: float) -> Fraction:
    """Return exp(epsilon * weight) to 100 digits."""
    power = epsilon * Fraction(weight)
    return Fraction(CAREFUL.exp(CAREFUL.divide(Decimal(power.numerator), Decimal(power.denominator))))


epsilons = st.fractions(min_value=Fraction(1, 10**12), max_value=10**4, max_denominator=10**12)
weights = st.floats(min_value=0, max_value=1e4)


@given(epsilons, weights)
def test_lower_bounds_are_below_and_close(epsilon: Fraction, weight: float) -> None:
    (bound,) = exp_lower(epsilon, np.array([weight]), 62)
    below = Fraction(bound, 2**SHIFT)
    if epsilon * Fraction(weight) > 43:
        assert below == 2**62
        return
    true = exponential(epsilon, weight)
    assert below <= true * (1 + Fraction(1, 10**100))
    assert below >= true - Fraction(2, 2**SHIFT)
    assert bound >= 2**SHIFT


@given(epsilons, weights)
def test_upper_bounds_are_above_and_close(epsilon: Fraction, weight: float) -> None:
    (bound,) = exp_upper(epsilon, np.array([weight]))
    if epsilon * Fraction(weight) > 709:
        assert bound > 8e307
        return
    true = exponential(epsilon, weight)
    assert Fraction(bound) >= true * (1 - Fraction(1, 10**100))
    assert Fraction(bound) <= true * (1 + Fraction(1, 2**51))


def test_no_weight_allows_no_difference() -> None:
    assert exp_lower(Fraction(3, 5), np.zeros(2), 62).tolist() == [2**SHIFT] * 2
    assert exp_upper(Fraction(3, 5), np.zeros(2)).tolist() == [1.0] * 2


def test_tiny_powers_never_round_above() -> None:
    for power in ("1e-300", "1e-60", "1e-39", "1e-20", "1e-12"):
        epsilon = Fraction(power)
        (lower,) = exp_lower(epsilon, np.ones(1), 62)
        (upper,) = exp_upper(epsilon, np.ones(1))
        # exp(x) lies between 1 + x and 1 + x + x² for x up to 1.
        assert 2**SHIFT <= lower <= 2**SHIFT * (1 + epsilon + epsilon**2)
        assert Fraction(upper) >= 1 + epsilon
        assert upper <= math.nextafter(1 + float(epsilon), 2)


def test_huge_powers_are_capped_and_overflow() -> None:
    huge = np.array([42.9, 43.0, 710.0, 1e4, 1e300, 1.7e308])
    assert exp_lower(Fraction(1), huge, 62).tolist()[1:] == [2 ** (62 + SHIFT)] * 5
    assert exp_lower(Fraction(1), huge, 62)[0] < 2 ** (62 + SHIFT)
    assert exp_upper(Fraction(1), huge).tolist()[2:] == [math.inf] * 4
    assert exp_upper(Fraction(1), np.array([709.78]))[0] < math.inf


def logarithm(value: Fraction) -> Fraction:
    """Return a logarithm to 100 digits."""
    return Fraction(CAREFUL.ln(CAREFUL.divide(Decimal(value.numerator), Decimal(value.denominator))))


def test_powers_are_rounded_up_before_their_exponentials_are() -> None:
    """exp(ε) is above a float by less than one part in 10**60, and so is the bound."""
    for factor in (1.1e300, 3.7e250, 8e307):
        epsilon = logarithm(Fraction(factor)) * (1 + Fraction(1, 10**60))
        assert exp_upper(epsilon, np.ones(1)).tolist() == [math.nextafter(factor, math.inf)]


def test_powers_are_rounded_down_before_their_exponentials_are() -> None:
    """exp(ε) is below a multiple of 2**-SHIFT by less than one part in 10**45, and so is the bound."""
    for factor in (2**60 + 1, 3**38, 2**61 + 2**40 + 7):
        epsilon = logarithm(Fraction(factor)) * (1 - Fraction(1, 10**80))
        assert exp_lower(epsilon, np.ones(1), 62).tolist() == [factor * 2**SHIFT - 1]


def test_factors_are_capped_from_where_numerators_end() -> None:
    """The exponent is above 62 · ln 2, and below what is known to be above it."""
    epsilon = 62 * Fraction("0.69314718058")
    assert epsilon > logarithm(Fraction(2**62))
    assert exp_lower(epsilon, np.ones(1), 62).tolist() == [2 ** (SHIFT + 62)]


@given(st.integers(1, 2**126), st.integers(1, 2**126))
def test_lower_logarithms_are_below_and_close(a: int, b: int) -> None:
    a, b = max(a, b), min(a, b)
    true = logarithm(Fraction(a, b))
    assert true * (1 - Fraction(1, 2**52)) <= Fraction(ln_lower(a, b)) <= true


def test_bounds_grow_with_epsilon() -> None:
    weight = np.array([1.4142135623730951])
    steps = [Fraction(3, 5) + Fraction(i, 10**41) for i in range(-20, 20)]
    bounds = [exp_lower(epsilon, weight, 62)[0] for epsilon in steps]
    assert bounds == sorted(bounds)


def test_shapes_are_kept() -> None:
    weight = np.array([[0.0, 1.0], [1.0, 2.0]])
    assert exp_lower(Fraction(1), weight, 62).shape == (2, 2)
    assert exp_upper(Fraction(1), weight).shape == (2, 2)
    assert exp_lower(Fraction(1), np.zeros(0), 62).shape == (0,)
    assert exp_upper(Fraction(1), np.zeros(0)).dtype == np.float64


@given(st.integers(1, 2**62), st.integers(1, 2**62))
def test_logarithms_are_above_and_close(a: int, b: int) -> None:
    a, b = max(a, b), min(a, b)
    bound = ln_upper(a, b)
    true = Fraction(CAREFUL.ln(CAREFUL.divide(Decimal(a), Decimal(b))))
    assert true * (1 - Fraction(1, 10**70)) <= bound <= true * (1 + Fraction(1, 10**38))


def test_logarithm_of_the_smallest_ratio() -> None:
    assert 0 < ln_upper(2**62, 2**62 - 1) < Fraction(1, 2**62 - 2)
    assert ln_upper(5, 5) == 0


@pytest.mark.parametrize(
    ("compute", "rounding"),
    [
        (lambda: exp_lower(Fraction(1, 3), np.ones(1), 62), decimal.ROUND_FLOOR),
        (lambda: exp_upper(Fraction(1, 3), np.ones(1)), decimal.ROUND_CEILING),
        (lambda: ln_lower(7, 3), decimal.ROUND_FLOOR),
        (lambda: ln_upper(7, 3), decimal.ROUND_CEILING),
    ],
)
def test_every_step_is_rounded_to_the_side_of_the_bound(
    monkeypatch: pytest.MonkeyPatch, compute: Callable[[], object], rounding: str
) -> None:
    """What is rounded to the wrong side shows only where a result stands within 40 digits of a float."""
    asked: list[str] = []
    context = arithmetic.decimals
    monkeypatch.setattr(
        exponential_functions, "decimals", lambda digits, given: (asked.append(given), context(digits, given))[1]
    )
    compute()
    assert asked == [rounding]


@pytest.mark.parametrize(
    ("power", "computed"), [(62 * Fraction("0.6931471806"), 0), (Fraction(50), 0), (Fraction(42), 1)]
)
def test_no_exponential_is_computed_that_would_be_cut_off(
    monkeypatch: pytest.MonkeyPatch, power: str, computed: int
) -> None:
    calls: list[Decimal] = []

    class Counting(decimal.Context):
        def exp(self, number: Decimal) -> Decimal:
            calls.append(number)
            return super().exp(number)

    context = arithmetic.decimals

    def counting(digits: int, rounding: str) -> decimal.Context:
        plain = context(digits, rounding)
        return Counting(prec=plain.prec, rounding=plain.rounding, Emin=plain.Emin, Emax=plain.Emax)

    monkeypatch.setattr(exponential_functions, "decimals", counting)
    exp_lower(Fraction(power), np.ones(1), 62)
    assert len(calls) == computed
