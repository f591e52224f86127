"""Rigorous bounds of exp(ε·w) and of ln(a/b).

ε is a fraction, and w is a float64 that is used as an exact binary number. The `decimal` module rounds exp and ln
correctly to the nearest decimal. The next decimal below or above the result is therefore a true bound. The bound is
also valid just below a power of ten, where decimals are more closely spaced and rounding errors are smaller.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arithmetic import decimals
from mechdesign.base._arrays import Floats

# Lower bounds of exp are multiples of 2^-SHIFT. Two different numerators below 2^62 have a ratio that differs from 1 by
# at least 2^-62. With 128 binary places, a bound that differs from 1 by 2^-62 is still accurate to 66 places.
SHIFT = 128

# 58 digits represent any bound below 2^62 with all of its 128 binary places.
_DIGITS = 60

# The quotient of different numbers below 2^63 differs from 1 by more than 2^-64.
_MIN_DIFFERENCE_BITS = 64


def exp_lower(epsilon: Fraction, weights: Floats, exponent: int) -> NDArray[np.object_]:
    """Return Python integers A, shaped like `weights`, with A / 2**SHIFT <= exp(ε·w), at most 2**(SHIFT + exponent).

    The cap 2**(SHIFT + exponent) changes no decision if numerators are at most 2**exponent: a larger factor only
    requires p(o|s) = 0 wherever p(o|t) = 0. ε and w must be finite and at least 0. A is at least 2**SHIFT, equals
    2**SHIFT for w = 0, and never decreases if ε or w increases.
    """
    down = decimals(_DIGITS, decimal.ROUND_FLOOR)
    scale = Decimal(2**SHIFT)
    # 0.6931471806 is above ln 2: if ε·w is at least `far`, exp(ε·w) is above 2**exponent.
    far = down.multiply(Decimal(exponent), Decimal("0.6931471806"))

    def bound(weight: float) -> int:
        power = _product(down, epsilon, weight)
        if power >= far:
            return 1 << (SHIFT + exponent)
        below = down.next_minus(down.exp(power))
        return min(max(int(down.multiply(below, scale)), 1 << SHIFT), 1 << (SHIFT + exponent))

    unique, places = np.unique(weights, return_inverse=True)
    bounds = np.array([bound(weight) for weight in unique.tolist()], dtype=object)
    return bounds[places].reshape(weights.shape)


def exp_upper(epsilon: Fraction, weights: Floats) -> Floats:
    """Return float64 numbers g, shaped like `weights`, with g >= exp(ε·w) as binary numbers; inf if that overflows.

    ε and w must be finite and at least 0. The result is 1 for w = 0, and otherwise at most two units in the last place
    too large.
    """
    up = decimals(30, decimal.ROUND_CEILING)

    def bound(weight: float) -> float:
        power = _product(up, epsilon, weight)
        if not power:
            return 1.0
        # exp(709.9) is above the largest float64.
        if power > Decimal("709.9"):
            return math.inf
        above = up.next_plus(up.exp(power))
        nearest = float(above)
        return nearest if Decimal(nearest) >= above else math.nextafter(nearest, math.inf)

    unique, places = np.unique(weights, return_inverse=True)
    bounds = np.array([bound(weight) for weight in unique.tolist()], dtype=np.float64)
    return bounds[places].reshape(weights.shape)


def ln_upper(a: int, b: int) -> Fraction:
    """Return an upper bound on ln(a/b) for positive integers, with a relative error below 1e-38; it is 0 if a = b.

    Quotients have 60 digits, and more digits if a/b differs from 1 by less than 2**-64.
    """
    if a == b:
        return Fraction(0)
    up = decimals(_DIGITS + _extra_digits(a, b), decimal.ROUND_CEILING)
    return Fraction(up.next_plus(up.ln(up.divide(Decimal(a), Decimal(b)))))


def ln_below(a: int, b: int, digits: int) -> Fraction:
    """Return a lower bound on ln(a/b) for different positive integers.

    With 60 digits the relative error is below 1e-38; each further digit makes the error ten times smaller.
    """
    down = decimals(digits + _extra_digits(a, b), decimal.ROUND_FLOOR)
    return Fraction(down.next_minus(down.ln(down.divide(Decimal(a), Decimal(b)))))


def _extra_digits(a: int, b: int) -> int:
    """Return the number of further digits that a/b needs if it differs from 1 by less than 2**-64."""
    # |a/b - 1| is above 2**-gap.
    gap = max(a, b).bit_length() - abs(a - b).bit_length() + 1
    return max(0, math.ceil((gap - _MIN_DIFFERENCE_BITS) * math.log10(2)))


def ln_lower(a: int, b: int) -> float:
    """Return a float64, at least 0, whose exp is at most a/b, for integers a >= b >= 1; 0 if they are equal."""
    if a == b:
        return 0.0
    down = decimals(_DIGITS, decimal.ROUND_FLOOR)
    # If the quotient rounds down to 1, its logarithm is 0 and the next lower number is negative.
    below = max(Decimal(0), down.next_minus(down.ln(down.divide(Decimal(a), Decimal(b)))))
    nearest = float(below)
    return nearest if Decimal(nearest) <= below else math.nextafter(nearest, 0.0)


def _product(context: decimal.Context, epsilon: Fraction, weight: float) -> Decimal:
    """Return ε·w, rounded once in the direction of the context."""
    numerator, denominator = weight.as_integer_ratio()
    return context.divide(Decimal(epsilon.numerator * numerator), Decimal(epsilon.denominator * denominator))
