"""Count constraints: counts of a table that are publicly known."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.model._arrays import read_only

__all__ = ["Constraint", "as_constraints"]


@dataclass(frozen=True, eq=False)
class Constraint:
    """A count query whose answer is publicly known.

    Attributes:
        counted: which values it counts, bool of shape (|T|,), read-only.
        known: the known count, or None where it is only said to be known.
    """

    counted: NDArray[np.bool_]
    known: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return self.known == other.known and np.array_equal(self.counted, other.counted)

    def __hash__(self) -> int:
        return hash((self.known, self.counted.tobytes()))


def as_constraints(given: Iterable[object], size: int) -> tuple[Constraint, ...]:
    """Return constraints from 0/1 arrays over the values, pairs (array, known count) or constraints."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError("constraints", "is not a list", value=given, bound="0/1 arrays, or pairs (array, count)")
    return tuple(_constraint(entry, size, f"constraints[{index}]") for index, entry in enumerate(given))


def _constraint(entry: object, size: int, path: str) -> Constraint:
    if isinstance(entry, Constraint):
        entry = (entry.counted, entry.known)
    known: int | None = None
    # A pair holds an array first; a plain list of two numbers is the array of a domain of two values.
    if isinstance(entry, tuple | list) and len(entry) == 2 and np.ndim(entry[0]) == 1:
        entry, answer = entry
        known = None if answer is None else _known(answer, path)
    try:
        array = np.asarray(entry)
    except ValueError as error:
        raise InputError(path, f"is not an array ({error})", bound=f"0/1 of shape ({size},)") from error
    if array.shape != (size,):
        raise InputError(path, "has the wrong shape", value=array.shape, bound=f"({size},), one entry for each value")
    if array.dtype.kind not in "biuf":
        raise InputError(path, f"holds {array.dtype}", bound="0 and 1 only")
    good = (array == 0) | (array == 1)
    if not good.all():
        index = int(np.argmin(good))
        raise InputError(f"{path}[{index}]", "is neither 0 nor 1", value=array[index].item(), bound="0 or 1")
    counted = array.astype(bool)
    read_only(counted)
    return Constraint(counted, known)


def _known(answer: object, path: str) -> int:
    try:
        if isinstance(answer, bool | np.bool_):
            raise TypeError
        number = operator.index(answer)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "has a known count that is not a whole number", value=answer, bound=">= 0") from error
    if number < 0:
        raise InputError(path, "has a negative known count", value=number, bound=">= 0")
    return number
