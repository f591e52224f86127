"""Names and units of distances and costs, and text forms of numbers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

import numpy as np

from mechdesign.base._arithmetic import decimals
from mechdesign.base._arrays import Flags, Floats
from mechdesign.model import distances
from mechdesign.model._domain import Domain


def percent(value: float) -> str:
    """Write a probability in percent.

    >>> percent(0.1234), percent(0.00351), percent(1.0), percent(0.0), percent(2e-8)
    ('12%', '0.35%', '100%', '0%', '2×10⁻⁶%')
    """
    if 0 < value < 1e-5:
        return f"{power(100 * value, ROUND_HALF_EVEN)}%"
    return f"{short(100 * value, 2 if value < 0.995 else 3)}%"


def short(value: float, digits: int = 3) -> str:
    """Write a number with `digits` significant digits, with an exponent only if it is very small or large.

    >>> short(1.23456), short(20.0), short(0.000012345), short(123456.0), short(math.inf)
    ('1.23', '20', '1.23e-05', '123456', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 10**digits <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def power(value: float, rounding: str = ROUND_CEILING) -> str:
    """Write a bound >= 0 with one or two significant digits, rounded up by default.

    >>> power(8.04e-8), power(1e-12), power(0.0311), power(0.0)
    ('9×10⁻⁸', '10⁻¹²', '0.032', '0')
    """
    if not 0 < value < math.inf:
        return short(value)
    digits = 1 if value < 1e-3 else 2
    context = decimals(digits, rounding)
    raised = context.create_decimal(repr(float(value)))
    if raised >= Decimal("0.001"):
        return f"{raised.normalize(context):f}"
    digit, exponent = f"{raised:.0e}".split("e")
    superscript = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'' if digit == '1' else f'{digit}×'}10{superscript}"


def format_bound(value: float, *, up: bool, digits: int = 7) -> str:
    """Write a bound >= 0 with at most `digits` significant digits: an upper bound is rounded up, a lower bound down.

    >>> format_bound(0.5999999999999998, up=True), format_bound(3.78175878903, up=True)
    ('0.6', '3.781759')
    >>> format_bound(3.78175878903, up=False)
    '3.781758'
    """
    if not 0 < value < math.inf:
        return short(value)
    context = decimals(digits, ROUND_CEILING if up else ROUND_FLOOR)
    number = context.create_decimal(repr(float(value))).normalize(context)
    return f"{number:f}" if -5 < number.adjusted() < digits + 5 else f"{number}"


def at_most(value: float) -> str:
    """Write an upper bound with 4 significant digits, rounded up; values below 0 are rounded to the nearest."""
    return format_bound(value, up=True, digits=4)


def at_least(value: float) -> str:
    """Write a lower bound with 4 significant digits, rounded down; values below 0 are rounded to the nearest."""
    return format_bound(value, up=False, digits=4)


# Largest relative difference between a user's distances and the distances of this library.
_DISTANCE_TOLERANCE = 1e-9

# Largest relative difference between plane distances from two processors, which differ only in their last bits.
_LAST_BITS = 2e-15

HAMMING_DISTANCE = "Hamming distance"
PLANE_DISTANCE = "plane distance ≤ great circle"
"""The name of the distances that `distances.euclidean` returns for latitudes and longitudes."""

_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True, eq=False)
class Measure:
    """A matrix of distances, errors or costs, with its name and unit.

    Attributes:
        matrix: The numbers, (n, m).
        name: The name, such as "Euclidean distance"; empty if the matrix is not a known distance.
        unit: The unit; empty if it is unknown.
        root: The unit of the square root, if the numbers are squared distances.

    >>> Measure(np.zeros((1, 1)), "Euclidean distance", "km").with_unit("2.5")
    '2.5 km'
    """

    matrix: Floats
    name: str = ""
    unit: str = ""
    root: str = ""

    def with_unit(self, number: str) -> str:
        """Return a formatted number with the unit.

        Args:
            number: The formatted number.

        Returns:
            The number, followed by the unit if there is one.
        """
        return f"{number} {self.unit}" if self.unit else number

    def with_root(self, value: float, write: Callable[[float], str]) -> str:
        """Return a number with its unit and, for a squared distance, its root, as in "4 km² (the square of 2 km)".

        Args:
            value: The number.
            write: The function that formats a number.

        Returns:
            The formatted number with its unit.
        """
        root = f" (the square of {write(math.sqrt(value))} {self.root})" if self.root and math.isfinite(value) else ""
        return self.with_unit(write(value)) + root


def recognise_distance(
    matrix: Floats, rows: Domain | None, columns: Domain | None, counts: Flags | None = None
) -> Measure:
    """Recognise a matrix (rows, columns) that equals a known distance between two domains.

    `counts` is a mask of the entries that are compared; None means all entries.
    """
    seen = np.ones(matrix.shape, dtype=np.bool_) if counts is None else counts
    if rows is None or columns is None or matrix.shape != (rows.size, columns.size):
        if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix[seen], (1.0 - np.eye(len(matrix)))[seen]):
            return Measure(matrix, HAMMING_DISTANCE)
        return Measure(matrix)
    dimensions = rows.points.shape[1]
    if dimensions and dimensions == columns.points.shape[1] and rows.unit == columns.unit:
        apart = np.abs(rows.points[:, None, :] - columns.points[None, :, :])
        known = (
            ("Euclidean distance", np.sqrt((apart**2).sum(axis=2))),
            ("Manhattan distance", apart.sum(axis=2)),
            ("Chebyshev distance", apart.max(axis=2)),
        )
        if rows.plane is not None and rows.plane.shorter and rows.plane == columns.plane:
            values = distances.euclidean(rows, columns)[seen]
            if (
                np.allclose(matrix[seen], values, rtol=_DISTANCE_TOLERANCE, atol=0.0)
                and (matrix[seen] <= values * (1 + _LAST_BITS)).all()
            ):
                return Measure(matrix, PLANE_DISTANCE, clip(rows.unit))
        for name, values in known:
            if np.allclose(matrix[seen], values[seen], rtol=_DISTANCE_TOLERANCE, atol=0.0):
                return Measure(matrix, name, clip(rows.unit))
    on_earth = rows.coordinates is not None and columns.coordinates is not None
    if on_earth and np.allclose(
        matrix[seen], distances.haversine(rows, columns)[seen], rtol=_DISTANCE_TOLERANCE, atol=0.0
    ):
        return Measure(matrix, "great-circle distance", "km")
    if np.array_equal(matrix[seen], distances.hamming(rows, columns)[seen]):
        return Measure(matrix, HAMMING_DISTANCE)
    return Measure(matrix)


def recognise_measure(
    matrix: Floats, rows: Domain | None, columns: Domain | None, counts: Flags | None = None
) -> Measure:
    """Recognise a matrix that equals a known distance, or a known squared distance, between two domains."""
    found = recognise_distance(matrix, rows, columns, counts)
    roots = found if found.name else recognise_distance(np.sqrt(matrix), rows, columns, counts)
    if roots is found or not roots.name:
        return found
    unit = roots.unit if roots.unit.isalpha() or not roots.unit else f"({roots.unit})"
    return Measure(matrix, f"squared {roots.name}", f"{unit}²" if unit else "", roots.unit)


def plain(text: str) -> str:
    r"""Return a text without characters that are invalid in XML or change the writing direction.

    Control characters, halves of surrogate pairs, U+FFFE, U+FFFF and marks of writing direction become U+FFFD.

    >>> plain("a\x00b")
    'a\ufffdb'
    """
    return "".join("\ufffd" if _unfit(character) else character for character in text)


def clip(text: str, length: int = 18) -> str:
    r"""Shorten a text to one line of at most `length` characters, for figures.

    >>> clip("a rather long\nname", 10)
    'a rather …'
    """
    line = plain(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"


# XML does not allow these characters; SVG is XML.
_NO_XML = "\ufffe\uffff"


def _unfit(character: str) -> bool:
    if character in "\t\n":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS or character in _NO_XML


@dataclass(frozen=True, eq=False)
class Words:
    """The names of distances and the formats of numbers that sentences about requirements use.

    Attributes:
        secrets: The domain of the secrets, or None.

    >>> Words(None).factor(1.0)
    '2.72'
    """

    secrets: Domain | None

    def measure(self, matrix: Floats) -> Measure:
        """Return a matrix of distances between the secrets with its name and unit.

        Args:
            matrix: Distances, (n, n).

        Returns:
            The matrix with its name and unit; both are empty for an unknown matrix.
        """
        return recognise_measure(matrix, self.secrets, self.secrets)

    def factor(self, exponent: float) -> str:
        """Return e raised to the power `exponent`, rounded up, as a text.

        Args:
            exponent: The exponent, such as ε times a distance.

        Returns:
            The formatted factor.
        """
        # The margin covers the rounding of exp.
        if exponent < 30:
            return format_bound(math.exp(exponent) * (1 + 1e-12), up=True, digits=3)
        return f"e^{format_bound(exponent, up=True, digits=3)}"
