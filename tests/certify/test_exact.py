from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mechdesign.certify._exact import as_decimal, exact, exact_text, float_down, float_up, text_up
from mechdesign.errors import InputError

fractions = st.fractions(max_denominator=10**30)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (0.6, Fraction(3, 5)),
        (np.float64(0.6), Fraction(3, 5)),
        (1e-5, Fraction(1, 100_000)),
        (-0.0, Fraction(0)),
        (3, Fraction(3)),
        (np.int32(3), Fraction(3)),
        ("0.6", Fraction(3, 5)),
        ("6e-1", Fraction(3, 5)),
        (".6", Fraction(3, 5)),
        ("3/5", Fraction(3, 5)),
        ("3.", Fraction(3)),
        ("-3/5", Fraction(-3, 5)),
        (Decimal("0.60"), Fraction(3, 5)),
        (Fraction(1, 3), Fraction(1, 3)),
        (10**400, Fraction(10**400)),
        ("1e-400", Fraction(1, 10**400)),
        (5e-324, Fraction(5, 10**324)),
        ("1e+00012", Fraction(10**12)),
        ("0" * 3999 + "1", Fraction(1)),
        (Fraction(2**3000 - 1, 2**2999), Fraction(2**3000 - 1, 2**2999)),
    ],
)
def test_exact_reads_what_is_printed(value: object, meaning: Fraction) -> None:
    assert exact(value) == meaning


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.bool_(False),
        math.nan,
        math.inf,
        -math.inf,
        Decimal("NaN"),
        Decimal("Infinity"),
        "",
        " 0.6",
        "0.6\n",
        "0,6",
        "inf",
        "1/0",
        "1/00",
        "1_0",
        "٣",
        "1e",
        "0x1p-3",
        "1e999999999999",
        "1e-401",
        "1e5000",
        "9" * 5000,
        "0" * 4000 + "1",
        "0." + "3" * 1000,
        10**401,
        Fraction(1, 2**3001),
        Fraction(2**3000 + 1, 2**2999),
        np.float32(0.6),
        None,
        1j,
        [0.6],
    ],
)
def test_exact_refuses(value: object) -> None:
    with pytest.raises(InputError, match=r"requirements\[1\].epsilon"):
        exact(value, "requirements[1].epsilon")


@given(fractions)
@example(Fraction(10**300))
@example(Fraction(3, 10**380))
@example(Fraction(123, 2**90))
@example(Fraction(1, 10**41))
@example(Fraction(10**41 + 1))
def test_text_round_trips(fraction: Fraction) -> None:
    assert exact(exact_text(fraction)) == fraction


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(3, 5), "0.6"),
        (Fraction(1, 20), "0.05"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(100), "100"),
        (Fraction(0), "0"),
        (Fraction(10**50), "1e50"),
        (Fraction(7, 10**50), "7e-50"),
        (Fraction(7, 10**40), f"0.{'0' * 39}7"),
        (Fraction(7, 10**41), "7e-41"),
        (Fraction(7 * 10**39), f"7{'0' * 39}"),
        (Fraction(7 * 10**40), "7e40"),
    ],
)
def test_texts_are_short(fraction: Fraction, text: str) -> None:
    assert exact_text(fraction) == text


@given(fractions)
def test_floats_are_rounded_outwards_by_less_than_one_step(fraction: Fraction) -> None:
    up, down = float_up(fraction), float_down(fraction)
    assert exact(down) <= fraction <= exact(up)
    assert as_decimal(math.nextafter(up, -math.inf)) < fraction < as_decimal(math.nextafter(down, math.inf))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_rounds_to_itself(number: float) -> None:
    assert float_up(exact(number)) == float_down(exact(number)) == number


def test_just_below_a_decimal_is_that_decimal() -> None:
    assert float_up(Fraction(3, 5) - Fraction(1, 10**30)) == 0.6
    assert float_up(Fraction(3, 5) + Fraction(1, 10**30)) == math.nextafter(0.6, 1)
    assert float_down(Fraction(3, 5) - Fraction(1, 10**30)) == math.nextafter(0.6, 0)


def test_floats_beyond_the_largest() -> None:
    largest = math.nextafter(math.inf, 0)
    assert float_up(Fraction(10**400)) == math.inf
    assert float_down(Fraction(10**400)) == largest
    assert float_up(Fraction(-(10**400))) == -largest
    assert float_down(Fraction(-(10**400))) == -math.inf
    assert float_up(Fraction(1, 10**400)) == 5e-324
    assert math.copysign(1, float_down(Fraction(1, 10**400))) == 1


@given(fractions)
def test_texts_are_rounded_up(fraction: Fraction) -> None:
    rounded = Fraction(text_up(fraction))
    assert 0 <= rounded - fraction <= abs(fraction) / 10**29


def test_texts_have_thirty_digits() -> None:
    assert text_up(Fraction(1, 3)) == f"0.{'3' * 29}4"


def test_nothing_is_rounded_to_a_negative_zero() -> None:
    for rounded in (float_up(Fraction(-1, 10**390)), float_down(Fraction(1, 10**390)), float_down(Fraction(0))):
        assert math.copysign(1, rounded) == 1
        assert rounded == 0
