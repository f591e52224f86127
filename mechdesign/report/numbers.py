"""Numbers written for reading, without anything that draws."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from mechdesign.base._arithmetic import decimals

__all__ = ["bounded", "percent", "power", "relative", "short"]


def percent(value: float) -> str:
    """Write a probability in percent.

    >>> percent(0.1234), percent(0.00351), percent(1.0), percent(0.0), percent(2e-8)
    ('12%', '0.35%', '100%', '0%', '2×10⁻⁶%')
    """
    if 0 < value < 1e-5:
        return f"{power(100 * value, ROUND_HALF_EVEN)}%"
    return f"{short(100 * value, 2 if value < 0.995 else 3)}%"


def short(value: float, digits: int = 3) -> str:
    """Write a number in `digits` digits, without an exponent where that is short.

    >>> short(1.23456), short(20.0), short(0.000012345), short(123456.0), short(math.inf)
    ('1.23', '20', '1.23e-05', '123456', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 10**digits <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def power(value: float, rounding: str = ROUND_CEILING) -> str:
    """Write a bound >= 0 for reading; rounded up unless told otherwise, to one digit where it is small.

    >>> power(8.04e-8), power(1e-12), power(0.0311), power(0.0)
    ('9×10⁻⁸', '10⁻¹²', '0.032', '0')
    """
    if not 0 < value < math.inf:
        return short(value)
    digits = 1 if value < 1e-3 else 2
    context = decimals(digits, rounding)
    raised = context.create_decimal(repr(float(value)))
    if raised >= Decimal("0.001"):
        return f"{raised.normalize(context):f}"
    digit, exponent = f"{raised:.0e}".split("e")
    superscript = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'' if digit == '1' else f'{digit}×'}10{superscript}"


def bounded(value: float, *, up: bool, digits: int = 7) -> str:
    """Write a bound >= 0 for reading, in `digits` digits at most, rounded to the side that stays true.

    >>> bounded(0.5999999999999998, up=True), bounded(3.78175878903, up=True), bounded(3.78175878903, up=False)
    ('0.6', '3.781759', '3.781758')
    """
    if not 0 < value < math.inf:
        return short(value)
    context = decimals(digits, ROUND_CEILING if up else ROUND_FLOOR)
    number = context.create_decimal(repr(float(value))).normalize(context)
    return f"{number:f}" if -5 < number.adjusted() < digits + 5 else f"{number}"


def relative(gap: float) -> str:
    """Write a relative gap, rounded up, in percent where it is not small.

    >>> relative(0.0123), relative(2.1e-9)
    ('1.3%', '3×10⁻⁹')
    """
    return power(gap) if gap < 1e-3 else f"{power(100 * gap)}%"
