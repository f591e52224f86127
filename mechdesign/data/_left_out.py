"""Count the rows of a file that are left out, by reason, and refuse a file with too many of these rows.

Unreadable rows may be left out where rows are merely counted: one bad row then does not affect the other rows. Rows
must not be left out if their position matters, as for the records of a table or the steps of a trace without times.
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
"""The default share of rows that may be left out."""

# Reasons for leaving out a row.
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

# A message lists the counts of at most this number of reasons.
_MAX_NAMED_REASONS = 6


class RowError(Exception):
    """A row cannot be read.

    Args:
        reason: The reason, one of the constants of this module; rows are counted by reason.
        error: The error for the row, with its position and value.
        interchangeable: For a latitude beyond 90°, whether the two coordinates would be valid if interchanged.
    """

    def __init__(self, reason: str, error: InputError, interchangeable: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.error, self.interchangeable = reason, error, interchangeable

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.error, self.interchangeable), vars(self)


class LeftOut:
    """The number of rows of a file that were read, and the numbers of rows left out by reason and by user.

    Args:
        missing: The share of rows that may be left out, in [0, 1].

    Attributes:
        kept: The number of rows that were read.

    >>> rows = LeftOut(missing=0.5)
    >>> rows.kept = 3
    >>> rows.add(RowError(USER, InputError("data.csv, line 2", "has no user")))
    >>> rows.check()
    >>> dict(rows.counts)
    {'without a user': 1}
    """

    def __init__(self, missing: float = MOST_LEFT_OUT) -> None:
        self.missing = as_share(missing)
        self.kept = 0
        self._counts: dict[str, Counter[str]] = {}
        self._first: dict[str, InputError] = {}
        self._interchangeable = True

    def add(self, row: RowError, user: str = "") -> None:
        """Count a row that is left out.

        Args:
            row: The reason and the error. The first error for each reason is kept for `check`.
            user: The user of the row, "" if unknown.
        """
        self._counts.setdefault(user, Counter())[row.reason] += 1
        self._first.setdefault(row.reason, row.error)
        if row.reason == LATITUDE:
            self._interchangeable &= row.interchangeable

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows left out for each reason."""
        return sum(self._counts.values(), Counter())

    def of(self, user: str) -> Mapping[str, int]:
        """Return the number of rows of one user left out for each reason.

        Args:
            user: The user.

        Returns:
            Counts by reason.
        """
        return self._counts.get(user, Counter())

    def check(self) -> None:
        """Raise `InputError` if the share of rows left out exceeds `missing`.

        The error describes the first row with the most frequent reason.
        """
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
        summary = f"{left_out} of {rows} row{'s' * (rows != 1)} would be left out: {_by_reason(counts)}"
        if self.kept > left_out:
            needed = math.ceil(100 * Fraction(left_out, rows)) / 100
            summary += f"; set --missing {needed:g} (missing = {needed:g}) to allow this"
        remedies.append(summary)
        remedy = "; ".join(filter(None, remedies))
        raise InputError(error.path, problem, value=error.value, bound=error.bound, remedy=remedy) from error


def as_share(missing: object, path: str = "missing") -> float:
    """Return the share of rows that may be left out; raise `InputError` unless it lies in [0, 1]."""
    share = as_number(missing, path)
    if not 0 <= share <= 1:
        raise InputError(path, "is not a share of rows", value=share, bound="between 0 and 1")
    return share


def describe_left_out(counts: Mapping[str, int]) -> str:
    """Return a sentence with the number of rows left out, and the reasons.

    >>> describe_left_out({"without a time": 3, "with a latitude beyond 90 degrees": 1})
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
    named = [f"{count} {reason}" for reason, count in found[:_MAX_NAMED_REASONS]]
    others = found[_MAX_NAMED_REASONS:]
    return ", ".join(named + [f"{sum(count for _, count in others)} for other reasons"] * bool(others))
