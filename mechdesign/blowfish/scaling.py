"""Multiples of a step as floats: each the nearest one, also where the step or its denominator is beyond floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify._exact import nearest
from mechdesign.base._arrays import Floats

__all__ = ["scaled"]

# Numbers up to 2^62, multiplied and divided by what is below this, neither overflow nor underflow.
_LARGEST = 1 << 900


def scaled(numbers: ArrayLike, step: Fraction) -> Floats:
    """Return numbers × step, float64 of the shape of the numbers, which are finite.

    >>> scaled([3], Fraction(1, 10)).tolist(), scaled([3], Fraction(5, 10**324)).tolist()
    ([0.3], [1.5e-323])
    """
    array = np.asarray(numbers)
    if max(abs(step.numerator), step.denominator) < _LARGEST:
        # In this order 3 steps of 0.1 are 0.3.
        found: Floats = array * float(step.numerator) / float(step.denominator)
        return found
    flat = [nearest(Fraction(number) * step) for number in array.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)
