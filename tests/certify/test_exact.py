from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
from refusals import Mistake, assert_refused

from mechdesign.certify._exact import as_decimal, exact, exact_text, float_down, float_up, text_up

READ = [
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
]
REFUSED = [
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
]


def test_exact_reads_what_is_printed() -> None:
    for value, meaning in READ:
        assert exact(value) == meaning, value


def test_exact_refuses() -> None:
    path = "requirements[1].epsilon"
    assert_refused(Mistake(repr(value)[:40], lambda value=value: exact(value, path), path) for value in REFUSED)


def some_fractions(count: int) -> Iterator[Fraction]:
    """Yield fractions of any magnitude, and those that texts write in another form."""
    yield from (
        Fraction(10**300),
        Fraction(3, 10**380),
        Fraction(123, 2**90),
        Fraction(1, 10**41),
        Fraction(10**41 + 1),
    )
    random = Random(7)
    for _ in range(count):
        size = 10 ** random.randint(0, 30)
        yield Fraction(random.randint(-size, size), random.randint(1, 10 ** random.randint(0, 30)))


def test_text_round_trips() -> None:
    for fraction in some_fractions(100):
        assert exact(exact_text(fraction)) == fraction


TEXTS = [
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
]


def test_texts_are_short() -> None:
    for fraction, text in TEXTS:
        assert exact_text(fraction) == text


def test_floats_are_rounded_outwards_by_less_than_one_step() -> None:
    for fraction in some_fractions(60):
        up, down = float_up(fraction), float_down(fraction)
        assert exact(down) <= fraction <= exact(up)
        assert as_decimal(math.nextafter(up, -math.inf)) < fraction < as_decimal(math.nextafter(down, math.inf))


def test_a_float_rounds_to_itself() -> None:
    random = np.random.default_rng(8)
    odd = [0.0, 5e-324, 2.0**-1022, 1.7976931348623157e308]
    for number in [*odd, *(random.random(60) * 10.0 ** random.uniform(-320, 307, 60)).tolist()]:
        for each in (number, -number):
            assert float_up(exact(each)) == float_down(exact(each)) == each


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


def test_texts_are_rounded_up() -> None:
    for fraction in some_fractions(100):
        assert 0 <= Fraction(text_up(fraction)) - fraction <= abs(fraction) / 10**29


def test_texts_have_thirty_digits() -> None:
    assert text_up(Fraction(1, 3)) == f"0.{'3' * 29}4"


def test_nothing_is_rounded_to_a_negative_zero() -> None:
    for rounded in (float_up(Fraction(-1, 10**390)), float_down(Fraction(1, 10**390)), float_down(Fraction(0))):
        assert math.copysign(1, rounded) == 1
        assert rounded == 0
