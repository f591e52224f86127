"""What numbers mean: the names and units of distances and costs, and the domain of the answers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.certify._claims import Floor
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.model.problem import Problem
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats

__all__ = ["Measure", "answers", "attack_measure", "clip", "cost_measure", "decimal", "measure", "plain", "recognised"]


_CLOSE = 1e-9

# Distances in a plane that another processor computed differ in the last bits only, by less than their margin.
_BITS = 2e-15

PLANE_DISTANCE = "plane distance ≤ great circle"
"""What `distances.euclidean` measures between latitudes and longitudes."""

_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True, eq=False)
class Measure:
    """A matrix of distances, errors or costs with its `name`, such as "Euclidean distance", and its unit.

    Both are empty where the matrix is none of the library's distances. `root` is the unit of the square root, where the
    numbers are squares of distances.
    """

    matrix: Floats
    name: str = ""
    unit: str = ""
    root: str = ""

    def with_unit(self, number: str) -> str:
        """Write a number that is measured so."""
        return f"{number} {self.unit}" if self.unit else number

    def with_root(self, value: float, write: Callable[[float], str]) -> str:
        """Write a number that is measured so, and that of a square also as a distance: "4 km² (the square of 2 km)"."""
        root = f" (the square of {write(math.sqrt(value))} {self.root})" if self.root and math.isfinite(value) else ""
        return self.with_unit(write(value)) + root


def measure(matrix: Floats, rows: Domain | None, columns: Domain | None, counts: Flags | None = None) -> Measure:
    """Recognise a matrix between the members of two domains, shape (rows, columns), by its values.

    `counts` marks the entries to look at, all unless given.
    """
    seen = np.ones(matrix.shape, dtype=np.bool_) if counts is None else counts
    if rows is None or columns is None or matrix.shape != (rows.size, columns.size):
        if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix[seen], (1.0 - np.eye(len(matrix)))[seen]):
            return Measure(matrix, "Hamming distance")
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
                np.allclose(matrix[seen], values, rtol=_CLOSE, atol=0.0)
                and (matrix[seen] <= values * (1 + _BITS)).all()
            ):
                return Measure(matrix, PLANE_DISTANCE, clip(rows.unit))
        for name, values in known:
            if np.allclose(matrix[seen], values[seen], rtol=_CLOSE, atol=0.0):
                return Measure(matrix, name, clip(rows.unit))
    on_earth = rows.coordinates is not None and columns.coordinates is not None
    if on_earth and np.allclose(matrix[seen], distances.haversine(rows, columns)[seen], rtol=_CLOSE, atol=0.0):
        return Measure(matrix, "great-circle distance", "km")
    if np.array_equal(matrix[seen], distances.hamming(rows, columns)[seen]):
        return Measure(matrix, "Hamming distance")
    return Measure(matrix)


def recognised(matrix: Floats, rows: Domain | None, columns: Domain | None, counts: Flags | None = None) -> Measure:
    """Recognise a matrix as `measure` does, and also squares of such distances."""
    found = measure(matrix, rows, columns, counts)
    roots = found if found.name else measure(np.sqrt(matrix), rows, columns, counts)
    if roots is found or not roots.name:
        return found
    unit = roots.unit if roots.unit.isalpha() or not roots.unit else f"({roots.unit})"
    return Measure(matrix, f"squared {roots.name}", f"{unit}²" if unit else "", roots.unit)


def answers(problem: Problem) -> Domain | None:
    """Return the domain of the observables; without one, that of the secrets where the true answer costs least."""
    if problem.observables is not None or problem.secrets is None:
        return problem.observables
    square = problem.cost.shape[0] == problem.cost.shape[1]
    if square and (np.diagonal(problem.cost) == problem.cost.min(axis=1)).all():
        return problem.secrets
    return None


def cost_measure(problem: Problem) -> Measure:
    """Say in what the cost of a permitted answer is measured."""
    return recognised(problem.cost, problem.secrets, answers(problem), np.isfinite(problem.cost))


def attack_measure(problem: Problem) -> Measure:
    """Return what an adversary wants small, estimates by secrets.

    That is the error of the first floor among the requirements; else the Euclidean distance of the secrets, or, on much
    of the globe, the great-circle distance; else, where they have no places, the Hamming distance.
    """
    for claim in problem.claims:
        if isinstance(claim, Floor):
            return recognised(claim.error, problem.secrets, problem.secrets)
    secrets = problem.secrets
    if secrets is not None and secrets.points.shape[1]:
        if secrets.plane is None:
            return Measure(distances.euclidean(secrets), "Euclidean distance", clip(secrets.unit))
        if secrets.plane.shorter:
            return Measure(distances.euclidean(secrets), PLANE_DISTANCE, clip(secrets.unit))
        return Measure(distances.haversine(secrets), "great-circle distance", "km")
    return Measure(distances.hamming(len(problem.prior)), "Hamming distance")


def decimal(number: Fraction | str) -> str:
    """Write an exact number as a decimal where one is exact and short, else as a fraction.

    >>> decimal(Fraction(3, 5)), decimal("1/3"), decimal("12")
    ('0.6', '1/3', '12')
    """
    value = Fraction(number)
    for digits in range(19):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            whole, part = divmod(abs(scaled.numerator), 10**digits)
            text = f"{whole}.{part:0{digits}d}" if digits else str(whole)
            return f"−{text}" if value < 0 else text
    return str(value)


def plain(text: str) -> str:
    r"""Return a text without characters that no page can hold, or that change how the text around them is read.

    Control characters, halves of surrogate pairs and marks of writing direction become U+FFFD.

    >>> plain("a\x00b")
    'a\ufffdb'
    """
    return "".join("\ufffd" if _unfit(character) else character for character in text)


def clip(text: str, length: int = 18) -> str:
    r"""Shorten a text to `length` characters in one line, fit for a picture.

    >>> clip("a rather long\nname", 10)
    'a rather …'
    """
    line = plain(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"


def _unfit(character: str) -> bool:
    if character in "\t\n":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS
