"""The records of a release: a table, the positions of their values, or a count for each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.base._values import cached_property
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._answers import check_table
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._values import in_order_of_values


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
