"""Check the numbers that this room is given: leakages α and budgets ε, in nats."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify._exact import exact
from mechdesign.certify._exact import float_down
from mechdesign.certify._exact import float_up
from mechdesign.base._errors import InputError
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_number
from mechdesign.base._check import require_unmasked

__all__ = ["as_alphas", "as_not_negative", "as_target", "rounded_down", "rounded_up"]


# Numbers that a float may be unable to hold.
_EXACT = (int, Fraction, Decimal)


def as_alphas(alpha: ArrayLike) -> Floats:
    """Return numbers α ≥ 0, infinity included, as float64 of any shape; raise `InputError` naming the first bad one."""
    bound = "numbers >= 0"
    require_unmasked(alpha, "alpha")
    try:
        values = np.asarray(alpha)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"an array of {values.dtype} was given")
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("alpha", "is not an array of numbers", value=alpha, bound=bound) from error
    good = values >= 0
    if not good.all():
        raise InputError("alpha", "is not accepted", value=float(values[~good].flat[0]), bound="a number >= 0")
    return values


def as_not_negative(value: float, path: str) -> float:
    """Return a finite number ≥ 0 as a float, which is no less than it; raise `InputError` otherwise."""
    number = as_number(value, path)
    if number < 0:
        raise InputError(path, "is negative", value=number, bound="a number >= 0")
    return rounded_up(exact(value, path)) if isinstance(value, _EXACT) else number


def as_target(alpha: float) -> float:
    """Return what each release may leak, a finite number > 0, as a float that is no more; else raise `InputError`."""
    number = as_number(alpha, "alpha")
    if number <= 0:
        raise InputError(
            "alpha",
            "leaves no budget",
            value=number,
            bound="a number > 0",
            remedy="alpha is what each release may leak, in nats, such as 1",
        )
    return rounded_down(exact(alpha, "alpha")) if isinstance(alpha, _EXACT) else number


def rounded_up(number: Fraction) -> float:
    """Return the least float whose decimal is at least a fraction ≥ 0; `math.inf` where there is none.

    >>> rounded_up(3 * Fraction("0.1"))
    0.3
    """
    return float_up(Fraction(number))


def rounded_down(number: Fraction) -> float:
    """Return the largest float whose decimal is at most a fraction ≥ 0."""
    return float_down(Fraction(number))
