"""Exact numbers: what a number that a person wrote means, and how it is written and rounded again.

A float stands for the decimal that Python prints for it: 0.6 is 3/5, not the binary number next to it. That is what a
user means by an ε of 0.6 and what a certificate shows. `exact` reads numbers so, `float_up` and `float_down` round to
floats so that the *printed* decimal is on the safe side. Array entries (distances, costs, priors) are not numbers that
a person wrote: elsewhere in this package they are taken as the binary numbers they are.
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

# Longer or larger numbers are mistakes or attacks: 1e999999999 would fill the memory.
_LONGEST_TEXT = 4000
_LARGEST_EXPONENT = 400
# What fits in here has a text of fewer than 4000 characters, also as a decimal.
_LARGEST_BITS = 3000

# How many floats a guess of the least one may be off: two for a quotient that is rounded once, a few for a root.
_NEAR = 16

_ACCEPTED = 'a finite number, or a text such as "0.6" or "3/5", that is zero or between 1e-400 and 1e400 in magnitude'


def exact(value: object, path: str = "value") -> Fraction:
    """Return the number that `value` means.

    A float means the decimal that its repr prints; int, Decimal, Fraction and texts such as "0.6", "6e-1" or "3/5" are
    exact. Raises `InputError`, naming `path`, for anything else: NaN, infinities, booleans, malformed or endless texts.
    """
    if isinstance(value, bool | np.bool_):
        raise InputError(path, "is a truth value, not a number", value=value, bound=_ACCEPTED)
    if isinstance(value, float):
        # A NumPy float64 is a float too, but prints its type along with its value.
        return _from_text(float.__repr__(value), path, value)
    if isinstance(value, np.floating):
        raise InputError(path, f"has only the precision of {value.dtype}", value=value, bound=_ACCEPTED)
    if isinstance(value, int | np.integer):
        return _bounded(Fraction(int(value)), path, value)
    if isinstance(value, Fraction):
        return _bounded(value, path, value)
    if isinstance(value, Decimal):
        return _from_text(str(value), path, value)
    if isinstance(value, str):
        return _from_text(value, path, value)
    raise InputError(path, f"is of type {type(value).__name__}, not a number", value=value, bound=_ACCEPTED)


def exact_text(fraction: Fraction) -> str:
    """Return the shortest text that `exact` reads as `fraction`: a decimal where there is a finite one, else "p/q"."""
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


def printed(number: float) -> Fraction:
    """Return the decimal that the repr of a finite float prints, as a fraction."""
    return Fraction(float.__repr__(number))


def nearest(fraction: Fraction) -> float:
    """Return the float nearest to `fraction`, infinite beyond the largest float."""
    try:
        return fraction.numerator / fraction.denominator
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


def float_up(fraction: Fraction) -> float:
    """Return the least float whose printed decimal is not below `fraction`; infinity beyond the largest float.

    Where numbers too small for all digits count as zero, see `is_flushing`, it is none of those.
    """
    if abs(fraction) < _LEAST_NORMAL and (not fraction or is_flushing()):
        return sys.float_info.min if fraction > 0 else 0.0
    number = nearest(fraction)
    if number == -math.inf:
        return -_LARGEST_FLOAT
    return least_float(number, lambda tried: printed(tried) >= fraction) + 0.0


def least_float(guess: float, enough: Callable[[float], bool]) -> float:
    """Return the least float that is `enough`, or infinity, from a guess that is at most `_NEAR` floats away.

    Every float above one that is enough must be so too; infinity is not asked about. Raises `ArithmeticError` where the
    guess is further away.
    """
    number = guess
    for _ in range(_NEAR):
        if number == math.inf or enough(number):
            break
        number = math.nextafter(number, math.inf)
    for _ in range(_NEAR):
        below = math.nextafter(number, -math.inf)
        if not (math.isfinite(below) and enough(below)):
            if number < math.inf and not enough(number):
                break
            return number
        number = below
    raise ArithmeticError(f"no float within {_NEAR} of {guess!r} is the least one that is enough")


def is_flushing() -> bool:
    """Tell whether the processor takes numbers below about 2e-308 for zero, as libraries can set it for a process.

    Steps from float to float then lead through numbers that all compare as zero.
    """
    return sys.float_info.min / 2 == 0


def float_down(fraction: Fraction) -> float:
    """Return the greatest float whose printed decimal is not above `fraction`; -infinity below the least float."""
    return 0.0 - float_up(-fraction)


def text_up(fraction: Fraction, digits: int = 30) -> str:
    """Return the least decimal of `digits` significant digits that is not below `fraction`, as a text."""
    context = decimals(digits, decimal.ROUND_CEILING)
    return str(context.divide(Decimal(fraction.numerator), Decimal(fraction.denominator)))


_LARGEST_FLOAT = math.nextafter(math.inf, 0)
_LEAST_NORMAL = Fraction(2) ** (sys.float_info.min_exp - 1)


def _from_text(text: str, path: str, value: object) -> Fraction:
    if len(text) > _LONGEST_TEXT:
        raise InputError(path, f"is a text of {len(text)} characters", bound=_ACCEPTED)
    if _DECIMAL.fullmatch(text):
        _, _, exponent = text.lower().partition("e")
        # Look at the exponent before computing a power of ten; digits shift it by at most their number.
        if exponent and (len(exponent) > 6 or abs(int(exponent)) > _LARGEST_EXPONENT + _LONGEST_TEXT):
            raise InputError(path, "is out of range", value=value, bound=_ACCEPTED)
        return _bounded(Fraction(text), path, value)
    if _RATIO.fullmatch(text) and text.rpartition("/")[2].strip("0"):
        return _bounded(Fraction(text), path, value)
    raise InputError(path, "is not a number", value=value, bound=_ACCEPTED)


def _bounded(fraction: Fraction, path: str, value: object) -> Fraction:
    limit = 10**_LARGEST_EXPONENT
    if fraction and not (fraction.denominator <= abs(fraction.numerator) * limit and abs(fraction) <= limit):
        raise InputError(path, "is out of range", value=value, bound=_ACCEPTED)
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > _LARGEST_BITS:
        raise InputError(path, "has too many digits", value=value, bound="a number of at most 900 digits")
    return fraction
