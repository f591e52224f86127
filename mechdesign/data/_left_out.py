"""Count the rows of a file that are left out, by reason, and refuse a file of which too many are.

Positions, times and places of a row that cannot be read say nothing of the others, where rows are counted. Where each
row has a place of its own, as the records of a table or the steps of a trace without times, none is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

from mechdesign.base._check import as_number
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal
from mechdesign.model._locate import INTERCHANGED

MOST_LEFT_OUT = 0.05
"""The share of rows that may be left out unless another one is given."""

# Reasons.
UNREADABLE_TIME = "with a time that cannot be read"
SET_CLOCK = "at an hour that clocks repeat or skip"
FIELDS = "with another number of fields"
USER = "without a user"
UNKNOWN_PLACE = "with a place that the table of places lacks"
LATITUDE = "with a latitude beyond 90 degrees"
LONGITUDE = "with a longitude beyond 180 degrees"
NO_PLACE = "without a place"
NO_STATE = "without a state"
BLANK = "without anything"
NO_TIME = "without a time"

# Of so many reasons the numbers are said.
_NAMED = 6


class RowError(Exception):
    """A row cannot be counted: the `reason`, and the `error` that says where and what.

    `interchangeable` says of a latitude beyond 90° whether it may be the longitude, and the longitude the latitude.
    """

    def __init__(self, reason: str, error: InputError, interchangeable: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.error, self.interchangeable = reason, error, interchangeable

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.error, self.interchangeable), vars(self)


class LeftOut:
    """The rows of one file that were read, and those that were left out: how many for each reason, and of whom.

    `missing` is the share that may be left out.
    """

    def __init__(self, missing: float = MOST_LEFT_OUT) -> None:
        self.missing = as_share(missing)
        self.kept = 0
        self._counts: dict[str, Counter[str]] = {}
        self._first: dict[str, InputError] = {}
        self._interchangeable = True

    def add(self, row: RowError, user: str = "") -> None:
        """Count a row of a user, and keep what is wrong with it where it is the first of its kind."""
        self._counts.setdefault(user, Counter())[row.reason] += 1
        self._first.setdefault(row.reason, row.error)
        if row.reason == LATITUDE:
            self._interchangeable &= row.interchangeable

    @property
    def counts(self) -> Mapping[str, int]:
        """How many rows were left out for each reason."""
        return sum(self._counts.values(), Counter())

    def of(self, user: str) -> Mapping[str, int]:
        """Return how many rows of one user were left out for each reason."""
        return self._counts.get(user, Counter())

    def check(self) -> None:
        """Raise `InputError`, as for the first row of the most frequent reason, where too many rows are left out."""
        counts = self.counts
        left_out = sum(counts.values())
        if left_out > as_decimal(self.missing) * (left_out + self.kept):
            self._refuse(counts, left_out)

    def _refuse(self, counts: Mapping[str, int], left_out: int) -> NoReturn:
        rows = left_out + self.kept
        error = self._first[max(counts, key=counts.__getitem__)]
        problem, remedies = error.problem, [error.remedy]
        if LATITUDE in counts and self._interchangeable:
            error = self._first[LATITUDE]
            problem, remedies = f"{error.problem}: {INTERCHANGED}", ["exchange the names of the two columns"]
        said = f"{left_out} of {rows} row{'s' * (rows != 1)} would be left out: {_by_reason(counts)}"
        if self.kept > left_out:
            needed = math.ceil(100 * Fraction(left_out, rows)) / 100
            said += f"; say --missing {needed:g} (missing = {needed:g}) where that may be"
        remedies.append(said)
        remedy = "; ".join(filter(None, remedies))
        raise InputError(error.path, problem, value=error.value, bound=error.bound, remedy=remedy) from error


def as_share(missing: object, path: str = "missing") -> float:
    """Return the share of rows that may be left out; raise `InputError` for what is none."""
    share = as_number(missing, path)
    if not 0 <= share <= 1:
        raise InputError(path, "is no share of rows", value=share, bound="between 0 and 1")
    return share


def left_out_text(counts: Mapping[str, int]) -> str:
    """Say how many rows are left out, and why.

    >>> left_out_text({"without a time": 3, "with a latitude beyond 90 degrees": 1})
    '4 rows are left out: 3 without a time, 1 with a latitude beyond 90 degrees'
    """
    total = sum(counts.values())
    reasons = _by_reason(counts)
    if len(counts) == 1:
        reason = next(iter(counts))
        return f"{total} row{'s' * (total != 1)} {reason} {'is' if total == 1 else 'are'} left out"
    return f"{total} row{'s' * (total != 1)} {'is' if total == 1 else 'are'} left out: {reasons}"


def _by_reason(counts: Mapping[str, int]) -> str:
    found = sorted(counts.items(), key=lambda each: -each[1])
    said = [f"{count} {reason}" for reason, count in found[:_NAMED]]
    return ", ".join(said + [f"{sum(count for _, count in found[_NAMED:])} for other reasons"] * (len(found) > _NAMED))
