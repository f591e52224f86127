"""The records of a release: a table, the positions of their values, or a count for each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.base._names import opened
from mechdesign.base._values import cached_property
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._answers import check_table
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._values import find_position


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
    if isinstance(counts, Mapping):
        counts = _order_by_name(domain, list(counts), list(counts.values()), list(range(len(domain.names))))
    for place, count in enumerate(counts if isinstance(counts, list | tuple) else ()):
        # NumPy would read a truth value among integers as 0 or 1.
        if isinstance(count, bool | np.bool_):
            raise InputError(f"counts[{place}]", "is a truth value", value=count, bound="an integer")
    given = opened(counts, "counts")
    array = given.values
    if array.ndim == 1 and given.rows and not _are_numbers_of_rows(domain, counts, given.rows):
        array = np.array(_order_by_name(domain, given.rows, array.tolist(), _levels(domain, counts)), array.dtype)
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


def _are_numbers_of_rows(domain: Domain, counts: Any, names: tuple[Any, ...]) -> bool:
    """Return whether names are 0, 1, … in order and no values, because no value of the domain is a number."""
    if getattr(getattr(counts, "index", None), "name", None) is not None or names != tuple(range(len(names))):
        return False
    if len(domain.names) == 1 and set(names) == set(values := domain.attributes[0].values) and names != tuple(values):
        raise InputError(
            "counts",
            "are named 0, 1, …, and so are the values, in another order",
            bound="counts whose index is named like the attribute, or an array in the order of the values",
            remedy="name the index with rename_axis(), or drop it with to_numpy()",
        )
    return not any(each.numeric for each in domain.attributes)


def _levels(domain: Domain, counts: Any) -> list[int]:
    """Return the place of each attribute in the names of the counts; a series may name the levels of its index."""
    given = getattr(getattr(counts, "index", None), "names", ())
    names = [str(name) for name in given]
    if all(name is None for name in given):
        return list(range(len(domain.names)))
    if sorted(names) != sorted(domain.names):
        bound = f"a level for each of {', '.join(domain.names)}"
        raise InputError("counts", "have an index with other levels", value=names, bound=bound)
    return [names.index(name) for name in domain.names]


def _order_by_name(domain: Domain, names: Sequence[Any], counts: Sequence[Any], levels: list[int]) -> list[Any]:
    if len(counts) != domain.size:
        bound = f"a count for each of the {domain.size} values"
        remedy = "add 0 for each value that no record has, with reindex(values, fill_value=0)"
        raise InputError("counts", "have the wrong length", value=len(counts), bound=bound, remedy=remedy)
    found: list[Any] = [None] * domain.size
    for name, count in zip(names, counts, strict=True):
        entries = name if isinstance(name, tuple) else (name,)
        ordered = tuple(entries[level] for level in levels) if len(entries) == len(levels) else entries
        place = find_position(domain, ordered, "counts")
        if any(map(_is_only_truth, ordered, domain.value(place))):
            raise InputError("counts", "name a value by a truth value", value=name, bound="the value itself")
        if found[place] is not None:
            raise InputError("counts", "name a value twice", value=name, bound="one count for each value")
        found[place] = count
    return found


def _is_only_truth(given: object, value: object) -> bool:
    """Return whether a truth value is given for a value that is none, although the two are equal."""
    return isinstance(given, bool | np.bool_) and not isinstance(value, bool | np.bool_)
