"""Rigorous bounds of exp(-x) to any number of bits, as integers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from mechdesign.base._arithmetic import decimals

__all__ = ["exp_minus"]

# Bits computed beyond those asked for, so that the two bounds are neighbours unless a multiple of 2**-bits is near.
_GUARD = 16


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with low <= 2**bits · exp(-x) <= high and high - low at most 2, for x >= 0.

    The `decimal` module rounds exp correctly. Its argument is the rational x rounded to `digits` digits, which changes
    exp(-x) by a relative 2x·10**-digits at most, and x is below the number of bits: with the digits taken here both
    errors together are less than one unit of the last guard bit, and two are allowed for.
    """
    # ln 2 < 1, so that beyond this the power is below 2**-bits.
    if x.numerator >= bits * x.denominator:
        return 0, 1
    fine = bits + _GUARD
    digits = 10 + len(str(bits)) + fine * 30103 // 100000
    context = decimals(digits)
    power = context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    number = int(context.multiply(power, Decimal(1 << fine)))
    return max(number - 2, 0) >> _GUARD, min((number + 2 >> _GUARD) + 1, 1 << bits)
