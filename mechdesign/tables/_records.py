"""The records of a release, the rows of each person, and the true answers.

Records are given as a table, the positions of their values, or a count for each value. Checks of a table do not
distinguish two neighbouring tables. If records may be added or removed, the number of records is private. Empty and
very large tables are accepted if the number of records is private, and answers too large for the noise are clipped.
Clipping never increases the distance between two answers, so the sensitivities remain valid.

A release changes the rows of one person together. A release that costs ε for two neighbouring tables costs at most k·ε
for all rows of a person with at most k rows, and k²·ρ instead of ρ. Let two tables differ in rows of one person, each
of which changes along an edge of the policy:

- Without known counts, the rows change one after another, which is a chain of at most k neighbours.
- Under known counts other records change too, so that both tables agree with the counts. The changes split into
  smallest parts that keep every count. A part without a row of the person may be left out. Each other part has a record
  that changes along an edge, so it joins two neighbours, and there are at most k such parts.

Along a chain of k neighbours, the logarithms of ratios add up to at most k·ε, and ρ grows to at most k²·ρ (Bun and
Steinke 2016, Proposition 1.9). The argument uses no property of a query, a strategy or a noise.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.base._values import cached_property
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._values import in_order_of_values


def check_table(policy: Policy, counts: Integers, largest: int = 1, path: str = "data", name: str = "data") -> None:
    """Raise `InputError` if a table may not be released under a policy.

    Args:
        policy: the Blowfish policy that the release must satisfy.
        counts: the histogram of the table, shape (|T|,). Without known counts, only the sum of the histogram is used.
        largest: the largest number of steps by which one record changes an answer.
        path: the path that an error names if the answers are too large.
        name: the path that an error names if the table is empty.

    Raises:
        InputError: The table violates a known count. Or the number of records is public, and the table is empty or has
            answers that may exceed 2^61 steps.
    """
    if policy.constraints:
        policy.check_counts(counts)
    if policy.unbounded:
        return
    records = int(counts.sum())
    if records == 0:
        raise InputError(
            name,
            "contains no record, and the number of records is public under this policy",
            bound="at least one record",
            remedy="set unbounded of the policy if records may be added or removed",
        )
    if largest * records > LARGEST_VALUE:
        steps = largest * records
        raise InputError(path, "may have answers that are too large", value=steps, bound="at most 2^61 steps")


def true_answers(rows: Integers, counts: Integers) -> Integers:
    """Return rows @ counts, computed exactly and clipped to ±2^61, int64 of shape (q,).

    Args:
        rows: integers of shape (q, n).
        counts: the number of records for each column, shape (n,).

    Returns:
        The answers.
    """
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0)))
    if largest * int(counts.sum()) <= LARGEST_VALUE:
        answers: Integers = rows @ counts
        return answers
    columns = np.flatnonzero(counts)
    sums = [sum(int(row[x]) * int(counts[x]) for x in columns) for row in rows]
    return np.array([min(max(total, -LARGEST_VALUE), LARGEST_VALUE) for total in sums], dtype=np.int64)


_KEYS = "a text or an integer for each row, in the order of the rows"
# More rows would make costs that no budget can hold.
_MOST_ROWS = 2**40


def as_rows(rows_per_person: object) -> int:
    """Return the largest number of rows of one person, an integer from 1 to 2^40.

    >>> as_rows(20)
    20
    """
    return as_integer(rows_per_person, "rows_per_person", 1, _MOST_ROWS)


def check_people(person: Any, rows: int, count: Callable[[], int]) -> None:
    """Raise `InputError` if a person has more than `rows` rows, or if `person` does not name one person for each row.

    Args:
        person: the key of the person of each row.
        rows: the largest number of rows of one person.
        count: a function that returns the number of rows of the table.

    >>> check_people(["Ada", "Ada ", "Carl"], 2, lambda: 3)
    """
    keys = _list_keys(person)
    if len(keys) != (wanted := count()):
        raise InputError("person", "has the wrong length", value=len(keys), bound=f"{wanted}, one key for each row")
    found: Counter[object] = Counter()
    for key, number in Counter(keys).items():
        # Two spellings of one key must not pass as two people.
        found[unicodedata.normalize("NFC", key).strip() if isinstance(key, str) else key] += number
    if not all(map(_is_key, found)) or len({isinstance(key, str) for key in found}) > 1:
        raise InputError("person", "has a key that is missing, or is of another kind than the others", bound=_KEYS)
    most = max([0, *found.values()])
    if most > rows:
        raise InputError(
            "person",
            "has more rows of one person than declared",
            value=most,
            bound=f"at most {rows}",
            remedy="set rows_per_person to a bound that holds for everybody, or keep fewer rows of each person. The "
            "bound is published: take it from the way in which the rows were collected, not from this table",
        )


def _list_keys(person: Any) -> list[Hashable]:
    require_unmasked(person, "person")
    if isinstance(person, str | bytes | Mapping | Set) or not hasattr(person, "__len__") or hasattr(person, "columns"):
        remedy = f"give the column itself, such as data[{person!r}]" if isinstance(person, str) else ""
        raise InputError("person", "is not a column", value=type(person).__name__, bound=_KEYS, remedy=remedy)
    keys = list(person) if isinstance(person, list | tuple) else np.asarray(person).tolist()
    if not isinstance(keys, list) or not all(isinstance(key, Hashable) for key in keys):
        raise InputError("person", "does not have one key in each row", value=type(person).__name__, bound=_KEYS)
    return keys


def _is_key(key: Any) -> bool:
    """Return whether a key is a text or an integer; a column of integers may have become one of floats."""
    if isinstance(key, str):
        return bool(key)
    if isinstance(key, float | np.floating):
        return float(key).is_integer() and abs(float(key)) < 2**53
    return isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_)


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a release as the caller gave them; they are read when a method is called.

    Attributes:
        domain: the domain of the records.
        data: the table, in any form that `Domain.indices` accepts.
        positions: the indices of the records' values, instead of `data`.
        counts: an array of shape (|T|,) or a mapping with the number of records for each value, instead of `data`.
    """

    domain: Domain
    data: object = None
    positions: ArrayLike | None = None
    counts: object = None

    def __post_init__(self) -> None:
        given = [name for name in ("data", "positions", "counts") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(given[1], f"are given together with {given[0]}", bound="one of data, positions and counts")

    @property
    def name(self) -> str:
        """Return the name of the argument that contains the records."""
        return "data" if self.counts is None else "counts"

    def count_rows(self) -> int:
        """Return the number of rows of the table; raise `InputError` for counts, which have no rows."""
        if self.counts is not None:
            remedy = "leave out person: rows_per_person then bounds the rows of a person as declared"
            raise InputError("person", "is given together with counts", bound="rows with a key each", remedy=remedy)
        if self.positions is not None:
            return len(self.domain.indices(positions=self.positions))
        return len(next(iter(self.domain.columns(self.data).values())))

    def histogram(self) -> Integers:
        """Return the number of records with each value, int64 of shape (|T|,)."""
        return self.domain.counts(self.data, positions=self.positions) if self.counts is None else self._given

    def checked(self, policy: Policy, largest: int = 1, path: str = "data") -> Integers:
        """Return the histogram, after the checks of `check_table`."""
        found = self.histogram()
        check_table(policy, found, largest, path, self.name)
        return found

    def along(self, axis: int) -> Integers:
        """Return the number of records with each value of one attribute, int64."""
        shape = self.domain.shape
        if self.counts is not None:
            others = tuple(other for other in range(len(shape)) if other != axis)
            return np.asarray(self._given.reshape(shape).sum(axis=others), dtype=np.int64)
        numbers = self.domain.indices(self.data, positions=self.positions)
        return np.bincount(np.unravel_index(numbers, shape)[axis], minlength=shape[axis]).astype(np.int64)

    def weighted(self) -> tuple[Integers, Integers]:
        """Return the indices of the values that occur, and the number of records with each of them."""
        if self.counts is None:
            return np.unique(self.domain.indices(self.data, positions=self.positions), return_counts=True)
        values = np.flatnonzero(self._given)
        return values, self._given[values]

    @cached_property
    def _given(self) -> Integers:
        return _read_counts(self.domain, self.counts)


def _read_counts(domain: Domain, counts: Any) -> Integers:
    """Return given counts in the order of the values; names travel: a mapping or series is read by its names."""
    bound = f"one count for each of the {domain.size} values, of shape ({domain.size},)"
    counts = in_order_of_values(domain, counts, "counts")
    for place, count in enumerate(counts if isinstance(counts, list | tuple) else ()):
        # NumPy would read a truth value among integers as 0 or 1.
        if isinstance(count, bool | np.bool_):
            raise InputError(f"counts[{place}]", "is a truth value", value=count, bound="an integer")
    array = named(counts, "counts")
    if array.shape != (domain.size,):
        raise InputError("counts", "have the wrong shape", value=array.shape, bound=bound)
    if array.dtype.kind not in "iuf":
        raise InputError("counts", f"are of type {array.dtype}", bound="integers")
    good = (array >= 0) & (array <= LARGEST_VALUE)
    if array.dtype.kind == "f":
        good &= array == np.rint(array)
    if not good.all():
        place = int(np.argmin(good))
        bound = "an integer from 0 to 2^61"
        raise InputError(f"counts[{place}]", "is not a count", value=array[place].item(), bound=bound)
    if sum(map(int, array.tolist())) > LARGEST_VALUE:
        raise InputError("counts", "contain too many records", bound="at most 2^61 records")
    return array.astype(np.int64)
