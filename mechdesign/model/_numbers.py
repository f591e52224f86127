"""Conversion of the numbers in requirements to exact fractions, with a check of their range."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from mechdesign.base._check import LARGEST_NUMBER, LEAST_NUMBER
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact

Number = float | int | str | Decimal | Fraction
"""A float is read as the decimal in its repr; other types are exact."""


def positive(value: Number, path: str) -> Fraction:
    """Return a number as a fraction; raise `InputError` unless it is between 1e-100 and 1e100."""
    number = exact(value, path)
    if number <= 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return not_negative(value, path)


def not_negative(value: Number, path: str) -> Fraction:
    """Return a number as a fraction; raise `InputError` unless it is 0 or between 1e-100 and 1e100."""
    number = exact(value, path)
    if number < 0:
        raise InputError(path, "is negative", value=value, bound="at least 0")
    if number and not exact(LEAST_NUMBER) <= number <= exact(LARGEST_NUMBER):
        bound = f"0 or between {LEAST_NUMBER:g} and {LARGEST_NUMBER:g}"
        raise InputError(path, "is out of range", value=value, bound=bound)
    return number
