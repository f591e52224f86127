"""The rows of a channel as the exact numbers that they are: integers, fractions, or binary floating point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.certify._exact import nearest
from mechdesign.base._values import cached_property
from mechdesign.base._errors import InputError
from mechdesign.base._errors import Shown
from mechdesign.model._channel import Channel
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._arrays import read_only
from mechdesign.base._arrays import require
from mechdesign.base._check import require_unmasked

__all__ = ["SUM_TOLERANCE", "Rows", "exact_rows"]


def __dir__() -> list[str]:
    return sorted(__all__)


SUM_TOLERANCE = Fraction(1, 1000)
"""How far the sum of a row of probabilities may be from 1: what people round to three places."""

# Every float64 is a multiple of 2**-1074, and below 2**-1022 they have fewer digits.
_SMALLEST = 1074
_PRECISE = 2.0**-1022
# Times a power of two as small as this one, every probability is 0 as a float.
_FAR = 5000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a channel before they are divided by their sums; negative entries are counted, and stand as zeros.

    Attributes:
        floats: The entries rounded to nearest, float64 of shape (n, m), read-only; zero only where the entry is.
        entries: The exact entries: `floats` itself where they are floats; else as they were given.
        scale: What the entries are multiples of: 2**-62 for a `Channel`, else 1.
        sums: The exact sums of the rows.
        negative: How many entries were below zero.
    """

    floats: Floats
    entries: NDArray[Any]
    scale: Fraction
    sums: tuple[Fraction, ...]
    negative: int

    def entry(self, secret: int, observable: int) -> Fraction:
        """Return an entry exactly, before its row is divided by its sum."""
        if self.floats[secret, observable] == 0:
            return Fraction(0)
        value = self.entries[secret, observable]
        return Fraction(value.item() if isinstance(value, np.generic) else value) * self.scale

    def probability(self, secret: int, observable: int) -> Fraction:
        """Return p(o|s) exactly."""
        return self.entry(secret, observable) / self.sums[secret]

    @property
    def deviation(self) -> Fraction:
        """The largest distance of a row's sum from 1."""
        return max(abs(total - 1) for total in self.sums)

    @cached_property
    def split(self) -> tuple[Floats, Integers]:
        """p(o|s) as x·2**e, both (n, m): within 3·2**-53 of it relatively, whatever the size of entries and sums."""
        mantissas, exponents = np.frexp(self.floats)
        exponents = exponents.astype(np.int64)
        if self.entries is not self.floats:
            for secret, observable in np.argwhere((self.floats > 0) & (self.floats < _PRECISE)).tolist():
                found = _split(self.entry(secret, observable))
                mantissas[secret, observable], exponents[secret, observable] = found
        sums = [_split(total) for total in self.sums]
        mantissas /= np.array([mantissa for mantissa, _ in sums])[:, None]
        return mantissas, exponents - np.array([exponent for _, exponent in sums])[:, None]

    def normalised(self) -> Floats:
        """Return p(o|s) rounded to floats, shape (n, m); zero only where it is."""
        mantissas, exponents = self.split
        with np.errstate(under="ignore"):
            divided: Floats = np.ldexp(mantissas, exponents.clip(-_FAR, _FAR).astype(np.intc))
        divided[(divided == 0) & (self.floats > 0)] = np.nextafter(0, 1)
        read_only(divided)
        return divided


def exact_rows(matrix: Channel | ArrayLike, weights: bool = False) -> Rows:
    """Return the rows of a channel, of a matrix of floats or integers, or of one of fractions (dtype object).

    With `weights` the sums of rows may be any positive numbers; without, they are 1 to within `SUM_TOLERANCE`.

    Raises:
        InputError: It is no matrix of finite numbers, is empty, or has a row without a positive entry, or of another
            sum.
    """
    if isinstance(matrix, Channel):
        n = len(matrix.numerators)
        return Rows(matrix.matrix, matrix.numerators, Fraction(1, matrix.denominator), (Fraction(1),) * n, 0)
    given = _given(matrix)
    if given.dtype == object:
        floats = np.array([[nearest(Fraction(value)) for value in row] for row in given], dtype=np.float64)
        lost = np.array([[Fraction(value) > 0 for value in row] for row in given]) & (floats == 0)
        floats[lost] = np.nextafter(0, 1)
    else:
        floats = given.astype(np.float64)
    require(np.isfinite(floats), floats, "matrix", "a finite number")
    negative = int((floats < 0).sum())
    floats = np.maximum(floats, 0.0)
    if given.dtype.kind == "f":
        sums = tuple(_sum(row) for row in floats.tolist())
    else:
        sums = tuple(sum((Fraction(value) for value in row if value > 0), Fraction(0)) for row in given.tolist())
    for secret, total in enumerate(sums):
        if total == 0:
            remedy = "give what is answered for this secret, or leave the secret out"
            if negative:
                remedy = "give probabilities; of their logarithms take exp"
            raise InputError(
                f"matrix[{secret}]", "has no positive entry", bound="a row of probabilities", remedy=remedy
            )
        if not weights and abs(total - 1) > SUM_TOLERANCE:
            raise InputError(
                f"matrix[{secret}]",
                "does not sum to 1",
                value=Shown(f"{nearest(total):.6g}"),
                bound=f"1, to within {float(SUM_TOLERANCE):g}",
                remedy=_remedy(floats, total),
            )
    read_only(floats)
    return Rows(floats, floats if given.dtype.kind == "f" else given, Fraction(1), sums, negative)


def _remedy(floats: Floats, total: Fraction) -> str:
    """Say what a matrix may be whose row has another sum than 1."""
    if (np.abs(floats.sum(axis=0) - 1) <= float(SUM_TOLERANCE)).all():
        return "Transpose it, if its columns are secrets: each column sums to 1"
    if abs(total - 100) <= 100 * SUM_TOLERANCE:
        return "Divide percentages by 100"
    return "Divide each row by its sum, or say that the entries are weights (weights=True, --weights)"


def _given(matrix: ArrayLike) -> NDArray[Any]:
    bound = "a matrix (n, m) of probabilities, a row for each secret"
    require_unmasked(matrix, "matrix")
    try:
        raw = np.asarray(matrix)
    except (TypeError, ValueError) as error:
        raise InputError("matrix", f"is no matrix ({error})", bound=bound) from error
    if raw.ndim != 2 or 0 in raw.shape:
        raise InputError("matrix", "is no matrix", value=raw.shape, bound=bound)
    if raw.dtype == object:
        if all(isinstance(value, int | Fraction) for value in raw.flat):
            return raw.copy()
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("matrix", "holds other things than numbers", bound=bound) from error
    if raw.dtype.kind in "iu":
        return raw.astype(object)
    if raw.dtype.kind != "f":
        raise InputError("matrix", f"holds {raw.dtype}", bound=bound)
    # Narrower floats are numbers of float64, too.
    return raw.astype(np.float64)


def _split(value: Fraction) -> tuple[float, int]:
    """Return x and e with x·2**e the float next to a positive number, or what it would be if exponents had no end."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa, exponent = math.frexp(nearest(value / Fraction(2) ** shift))
    return mantissa, exponent + shift


def _sum(row: list[float]) -> Fraction:
    """Return the exact sum of floats that are not negative."""
    total = 0
    for value in row:
        if value:
            numerator, denominator = value.as_integer_ratio()
            total += numerator << (_SMALLEST + 1 - denominator.bit_length())
    return Fraction(total, 1 << _SMALLEST)
