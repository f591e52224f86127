"""Exact arithmetic: matrices of integers times one unit, and roots and floats that are rounded up."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import as_decimal, exact, float_up, is_flushing, least_float, nearest
from mechdesign.tables._values import refuse_names

# The sum of the squared differences of two columns must be below 2^62.
_LARGEST_BITS = 62
# Norms of differences of two floats up to this bound do not overflow.
_LARGEST = 1e300
# For floats up to this bound, squares of the floats, of their reciprocals and of their differences neither overflow nor
# underflow. The magnitude of a nonzero difference is at least 2**-53 times its subtrahend.
_LARGEST_FLOAT = 2.0**400


@dataclass(frozen=True, eq=False)
class LatticeMatrix:
    """The matrix `entries` × `unit`.

    Attributes:
        entries: an array of shape (q, |T|) of int64, Python integers or floats; sums and squares of int64 entries
            cannot overflow.
        unit: a positive unit.
        floats: whether the matrix was given as floats.
    """

    entries: NDArray[Any]
    unit: Fraction = Fraction(1)
    floats: bool = False

    @property
    def rounded(self) -> bool:
        """Return whether the entries are floats, so that arithmetic on them is rounded."""
        return bool(self.entries.dtype.kind == "f")


def as_lattice(matrix: Any, size: int) -> LatticeMatrix:
    """Return a matrix, or a single row over the values, as integers times a unit if the conversion is exact.

    Floats are converted by their exact binary values, or stay floats if the integers would not fit into an int64.
    Fractions, Decimals and strings in object arrays are converted exactly.
    """
    refuse_names(matrix, "query")
    array = named(matrix, "query", dtype=object)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != size or array.shape[0] == 0:
        raise InputError("query", "has the wrong shape", value=np.shape(matrix), bound=f"({size},) or (q, {size})")
    if array.dtype.kind in "biu":
        return LatticeMatrix(_small(array.astype(object) if array.dtype.kind == "u" else array.astype(np.int64)))
    if array.dtype.kind == "f":
        return _from_floats(array.astype(np.float64))
    if array.dtype.kind == "O":
        return _from_objects(array)
    raise InputError("query", f"contains entries of type {array.dtype}", bound="an array of real numbers")


def plain(power: Fraction, norm: int, floats: bool) -> int | float | Fraction:
    """Return Δ, given Δ^norm, as an int if it is an integer, else as a Fraction or as a float rounded up."""
    if norm == 2:
        numerator, denominator = math.isqrt(power.numerator), math.isqrt(power.denominator)
        if Fraction(numerator, denominator) ** 2 != power:
            return root_up(power)
        power = Fraction(numerator, denominator)
    if power.denominator == 1:
        return power.numerator
    return float_up(power) if floats else power


def root_up(power: Fraction) -> float:
    """Return nearly the least float whose square is at least `power`, as is the square of its printed decimal."""
    # The fraction is scaled to a value near 1, so the fraction and its root are in the range of floats.
    shift = (power.denominator.bit_length() - power.numerator.bit_length()) // 2
    number = math.ldexp(math.sqrt(nearest(power * Fraction(4) ** shift)), -shift)
    if not power:
        return 0.0
    if number < sys.float_info.min and is_flushing():
        return sys.float_info.min
    for _ in range(2):
        number = math.nextafter(number, 0)
    return least_float(number, lambda tried: Fraction(tried) ** 2 >= power and as_decimal(tried) ** 2 >= power)


def _small(array: NDArray[Any]) -> NDArray[Any]:
    """Return integers as int64 if sums of their squared differences cannot overflow, else as Python integers."""
    largest = max(abs(int(array.max())), abs(int(array.min())))
    fits = 4 * largest * largest * len(array) < 1 << _LARGEST_BITS
    return array.astype(np.int64 if fits else object)


def _from_floats(array: Floats) -> LatticeMatrix:
    good = np.abs(array) <= _LARGEST
    if not good.all():
        place = np.unravel_index(int(np.argmin(good)), array.shape)
        row, column = (int(index) for index in place)
        raise InputError(
            f"query[{row},{column}]", "is not accepted", value=float(array[place]), bound="a number of at most 1e300"
        )
    for bits in (0, 8, 24):
        scaled = np.ldexp(array, bits)
        if np.abs(scaled).max() >= 2.0**53:
            break
        if (scaled == np.rint(scaled)).all() and (integers := _small(scaled.astype(np.int64))).dtype.kind == "i":
            return LatticeMatrix(integers, Fraction(1, 1 << bits), floats=True)
    sizes = np.abs(array[array != 0])
    if sizes.max() > _LARGEST_FLOAT or sizes.min() < 1 / _LARGEST_FLOAT:
        fractions = [[Fraction(value) for value in values] for values in array.tolist()]
        return replace(_from_fractions(fractions), floats=True)
    return LatticeMatrix(array, floats=True)


def _from_objects(array: NDArray[Any]) -> LatticeMatrix:
    fractions = [
        [exact(value, f"query[{row},{column}]") for column, value in enumerate(values)]
        for row, values in enumerate(array.tolist())
    ]
    return replace(_from_fractions(fractions), floats=any(isinstance(value, float) for value in array.ravel()))


def _from_fractions(rows: list[list[Fraction]]) -> LatticeMatrix:
    denominator = math.lcm(*{value.denominator for values in rows for value in values})
    integers = np.empty((len(rows), len(rows[0])), dtype=object)
    for row, values in enumerate(rows):
        integers[row] = [value.numerator * (denominator // value.denominator) for value in values]
    return LatticeMatrix(_small(integers), Fraction(1, denominator))
