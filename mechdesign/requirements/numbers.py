"""The numbers of requirements: exact, whatever type they are given in."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from mechdesign.certify.exact import exact
from mechdesign.errors import InputError

__all__ = ["Number", "positive"]

Number = float | int | str | Decimal | Fraction
"""A float means the decimal that its repr prints; the others are exact."""


def positive(value: Number, path: str) -> Fraction:
    """Return a number, exact; raise `InputError` unless it is above 0."""
    number = exact(value, path)
    if number <= 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return number
