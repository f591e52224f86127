"""Exact numbers: the meaning of numbers that users write, their texts, and their rounding to floats.

A float represents the decimal that Python prints for it: 0.6 is 3/5, not the nearest binary number. A user who writes ε
= 0.6 means 3/5, and certificates contain 0.6. `exact` converts numbers by this rule. `float_up` and `float_down` round
so that the *printed* decimal is on the safe side. Entries of arrays (distances, costs, priors) are used as exact binary
numbers.
"""

from __future__ import annotations

import decimal
import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from mechdesign.base._arithmetic import decimals
from mechdesign.base._errors import InputError

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+", re.ASCII)

# Longer texts and larger numbers are mistakes or attacks: 1e999999999 would fill the memory.
_MAX_TEXT_LENGTH = 4000
_MAX_EXPONENT = 400
# Fractions whose terms have at most 3000 bits have texts of fewer than 4000 characters, even as decimals.
_MAX_BITS = 3000

# Maximum number of floats between a guess and the result. A rounded quotient needs two steps, and a root needs a few
# steps.
_MAX_STEPS = 16

_ACCEPTED = 'a finite number, or a text such as "0.6" or "3/5", that is zero or between 1e-400 and 1e400 in magnitude'


def exact(value: object, path: str = "value") -> Fraction:
    """Return the exact number that a value represents.

    A float represents the decimal that its repr prints. An int, a Decimal, a Fraction, and texts such as "0.6", "6e-1"
    or "3/5" are exact.

    Args:
        value: A number, 0 or between 1e-400 and 1e400 in magnitude.
        path: The path of the argument, for messages.

    Returns:
        The number.

    Raises:
        InputError: The value is NaN, infinite, a truth value, malformed, or too long.

    >>> exact(0.6), exact("3/7")
    (Fraction(3, 5), Fraction(3, 7))
    """
    if isinstance(value, bool | np.bool_):
        raise InputError(path, "is a truth value, not a number", value=value, bound=_ACCEPTED)
    if isinstance(value, float):
        # A NumPy float64 is also a float, but its own repr contains its type.
        return _from_text(float.__repr__(value), path, value)
    if isinstance(value, np.floating):
        raise InputError(path, f"has only the precision of {value.dtype}", value=value, bound=_ACCEPTED)
    if isinstance(value, int | np.integer):
        return _check_range(Fraction(int(value)), path, value)
    if isinstance(value, Fraction):
        return _check_range(value, path, value)
    if isinstance(value, Decimal):
        return _from_text(str(value), path, value)
    if isinstance(value, str):
        return _from_text(value, path, value)
    raise InputError(path, f"is of type {type(value).__name__}, not a number", value=value, bound=_ACCEPTED)


def exact_text(fraction: Fraction) -> str:
    """Return the shortest text that `exact` reads as `fraction`.

    Args:
        fraction: The number.

    Returns:
        A decimal if the number has a finite decimal, else "p/q".

    >>> from fractions import Fraction
    >>> exact_text(Fraction(3, 5)), exact_text(Fraction(1, 3))
    ('0.6', '1/3')
    """
    rest = fraction.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    if rest != 1:
        return f"{fraction.numerator}/{fraction.denominator}"
    places = max(twos, fives)
    digits = str(abs(fraction.numerator) * 10**places // fraction.denominator)
    sign = "-" if fraction < 0 else ""
    if places > 40:
        return f"{sign}{digits}e-{places}"
    if places:
        digits = digits.zfill(places + 1)
        return f"{sign}{digits[:-places]}.{digits[-places:]}"
    stripped = digits.rstrip("0")
    if len(digits) > 40:
        return f"{sign}{stripped}e{len(digits) - len(stripped)}"
    return sign + digits


def as_decimal(number: float) -> Fraction:
    """Return the decimal that the repr of a finite float prints, as a fraction."""
    return Fraction(float.__repr__(number))


def nearest(fraction: Fraction) -> float:
    """Return the float nearest to `fraction`; infinite beyond the largest float."""
    try:
        return fraction.numerator / fraction.denominator
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


def float_above(fraction: Fraction) -> float:
    """Return the least float64 that is, as a binary number, not below a positive fraction."""
    number = nearest(fraction)
    return number if number == math.inf or Fraction(number) >= fraction else math.nextafter(number, math.inf)


def float_up(fraction: Fraction) -> float:
    """Round up to a float whose printed decimal is not below the number.

    Args:
        fraction: The number.

    Returns:
        The least float whose printed decimal is not below `fraction`; infinity beyond the largest float. If the
        processor flushes subnormal numbers to zero, the result is not subnormal; see `is_flushing`.

    >>> from fractions import Fraction
    >>> float_up(Fraction(1, 3))
    0.33333333333333337
    """
    if abs(fraction) < _LEAST_NORMAL and (not fraction or is_flushing()):
        return sys.float_info.min if fraction > 0 else 0.0
    number = nearest(fraction)
    if number == -math.inf:
        return -_LARGEST_FLOAT
    return least_float(number, lambda tried: as_decimal(tried) >= fraction) + 0.0


def least_float(guess: float, enough: Callable[[float], bool]) -> float:
    """Return the least float that satisfies `enough`, or infinity.

    Args:
        guess: A float that is at most `_MAX_STEPS` floats away from the result.
        enough: A monotone function that returns whether a finite float is large enough.

    Returns:
        The float.

    Raises:
        ArithmeticError: The guess is more than `_MAX_STEPS` floats away from the result.
    """
    number = guess
    for _ in range(_MAX_STEPS):
        if number == math.inf or enough(number):
            break
        number = math.nextafter(number, math.inf)
    for _ in range(_MAX_STEPS):
        below = math.nextafter(number, -math.inf)
        if not (math.isfinite(below) and enough(below)):
            if number < math.inf and not enough(number):
                break
            return number
        number = below
    raise ArithmeticError(f"the least sufficient float is more than {_MAX_STEPS} floats away from {guess!r}")


def is_flushing() -> bool:
    """Return whether the processor treats numbers below about 2e-308 as zero; libraries can set this for a process.

    `math.nextafter` then steps through subnormal numbers that all compare equal to zero.
    """
    return sys.float_info.min / 2 == 0


def float_down(fraction: Fraction) -> float:
    """Round down to a float whose printed decimal is not above the number.

    Args:
        fraction: The number.

    Returns:
        The greatest float whose printed decimal is not above `fraction`; -infinity below the least float.

    >>> from fractions import Fraction
    >>> float_down(Fraction(1, 3))
    0.3333333333333333
    """
    return 0.0 - float_up(-fraction)


def text_up(fraction: Fraction, digits: int = 30) -> str:
    """Return the least decimal of `digits` significant digits that is not below `fraction`, as a text."""
    context = decimals(digits, decimal.ROUND_CEILING)
    return str(context.divide(Decimal(fraction.numerator), Decimal(fraction.denominator)))


_LARGEST_FLOAT = math.nextafter(math.inf, 0)
_LEAST_NORMAL = Fraction(2) ** (sys.float_info.min_exp - 1)


def _from_text(text: str, path: str, value: object) -> Fraction:
    if len(text) > _MAX_TEXT_LENGTH:
        raise InputError(path, f"is a text of {len(text)} characters", bound=_ACCEPTED)
    if _DECIMAL.fullmatch(text):
        _, _, exponent = text.lower().partition("e")
        # Check the exponent before computing a power of ten; n digits change the exponent by at most n.
        if exponent and (len(exponent) > 6 or abs(int(exponent)) > _MAX_EXPONENT + _MAX_TEXT_LENGTH):
            raise InputError(path, "is out of range", value=value, bound=_ACCEPTED)
        return _check_range(Fraction(text), path, value)
    if _RATIO.fullmatch(text) and text.rpartition("/")[2].strip("0"):
        return _check_range(Fraction(text), path, value)
    raise InputError(path, "is not a number", value=value, bound=_ACCEPTED)


def _check_range(fraction: Fraction, path: str, value: object) -> Fraction:
    limit = 10**_MAX_EXPONENT
    if fraction and not (fraction.denominator <= abs(fraction.numerator) * limit and abs(fraction) <= limit):
        raise InputError(path, "is out of range", value=value, bound=_ACCEPTED)
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > _MAX_BITS:
        raise InputError(path, "has too many digits", value=value, bound="a number of at most 900 digits")
    return fraction
