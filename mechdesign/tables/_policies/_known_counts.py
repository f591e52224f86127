"""Constraints: publicly known counts of a table."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Flags, Integers, read_only
from mechdesign.base._check import as_list, require_kind, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.tables._domain import Domain
from mechdesign.tables._values import in_order_of_values


@dataclass(frozen=True, eq=False)
class Constraint:
    """A count query whose answer is publicly known.

    Attributes:
        counted: for each value, whether the query counts it, bool of shape (|T|,), read-only.
        known: the known count, or None if the count is publicly known but not given.

    >>> Constraint(np.array([True, False, True]), 3).known
    3
    """

    counted: Flags
    known: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return self.known == other.known and np.array_equal(self.counted, other.counted)

    def __hash__(self) -> int:
        return hash((self.known, self.counted.tobytes()))


def as_constraints(given: Iterable[object], domain: Domain) -> tuple[Constraint, ...]:
    """Return constraints, each given as a 0/1 array over the values, a pair (array, known count) or a `Constraint`."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError("constraints", "is not a list", value=given, bound="0/1 arrays, or pairs (array, count)")
    return tuple(_constraint(entry, domain, f"constraints[{index}]") for index, entry in enumerate(given))


def kinds_of(constraints: Sequence[Constraint], size: int, *, null: bool = False) -> tuple[Integers, Flags]:
    """Return the kind of each value, and a table that shows which constraints count each kind.

    Two values have the same kind if the same constraints count them. With `null`, the null node follows the values; no
    constraint counts the null node. The kinds have shape (|T|,), or (|T| + 1,) with `null`; the table has shape (kinds,
    constraints).
    """
    labels = np.zeros(size + null, dtype=np.int64)
    for constraint in constraints:
        member = np.append(constraint.counted, False) if null else constraint.counted
        labels = np.unique(2 * labels + member, return_inverse=True)[1].astype(np.int64)
    first = np.unique(labels, return_index=True)[1]
    counted = np.zeros((len(first), len(constraints)), dtype=bool)
    for index, constraint in enumerate(constraints):
        values = first < size
        counted[values, index] = constraint.counted[first[values]]
    return labels, counted


def marginal_constraints(
    domain: Domain, names: Sequence[str], table: ArrayLike | None = None
) -> list[Flags | tuple[Flags, int]]:
    """Return the constraints of a publicly known marginal table.

    >>> domain = Domain({"age": range(3), "sex": ["f", "m"]})
    >>> [array.astype(int).tolist() for array in marginal_constraints(domain, ["sex"])]
    [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]

    Args:
        domain: the domain of the records.
        names: the attributes of the marginal table.
        table: the counts, with one axis for each attribute. By default the counts are known but not given.

    Returns:
        One boolean array of shape (|T|,) for each cell, or a pair (array, known count), in the order of the cells.

    Raises:
        InputError: An attribute is unknown, or `table` has the wrong shape.
    """
    names = as_list(names, "names", "a list of attributes, at least one")
    require_kind(domain, Domain, "domain", "a Domain")
    if isinstance(names, str) or not names:
        raise InputError("names", "is not a list of attributes", value=names, bound="at least one")
    axes = [domain.names.index(domain.attribute(name).name) for name in names]
    shape = tuple(domain.shape[axis] for axis in axes)
    codes = np.unravel_index(np.arange(domain.size), domain.shape)
    cells = np.ravel_multi_index([codes[axis] for axis in axes], shape)
    arrays = [cells == cell for cell in range(int(np.prod(shape)))]
    if table is None:
        return list(arrays)
    known = named(table, "table", dtype=object)
    if known.shape != shape:
        raise InputError("table", "has the wrong shape", value=known.shape, bound=str(shape))
    return list(zip(arrays, known.ravel().tolist(), strict=True))


def _constraint(entry: object, domain: Domain, path: str) -> Constraint:
    size = domain.size
    if isinstance(entry, Constraint):
        entry = (entry.counted, entry.known)
    known: int | None = None
    # A pair must start with an array: a plain list of two numbers is a constraint on a domain of two values.
    if isinstance(entry, tuple | list) and len(entry) == 2 and np.ndim(entry[0]) == 1:
        entry, answer = entry
        known = None if answer is None else _check_count(answer, path)
    require_unmasked(entry, path)
    try:
        array = np.asarray(in_order_of_values(domain, entry, path))
    except ValueError as error:
        raise InputError(path, f"is not an array ({error})", bound=f"0/1 of shape ({size},)") from error
    if array.shape != (size,):
        remedy = "write constraints=[(array, count)], a list of pairs" if array.ndim == 0 else ""
        bound = f"({size},), one entry for each value"
        raise InputError(path, "has the wrong shape", value=array.shape, bound=bound, remedy=remedy)
    if array.dtype.kind not in "biuf":
        raise InputError(path, f"contains entries of type {array.dtype}", bound="only 0 and 1")
    good = (array == 0) | (array == 1)
    if not good.all():
        index = int(np.argmin(good))
        raise InputError(f"{path}[{index}]", "is neither 0 nor 1", value=array[index].item(), bound="0 or 1")
    counted = array.astype(bool)
    read_only(counted)
    return Constraint(counted, known)


def _check_count(answer: object, path: str) -> int:
    try:
        if isinstance(answer, bool | np.bool_):
            raise TypeError
        number = operator.index(answer)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "has a known count that is not an integer", value=answer, bound=">= 0") from error
    if number < 0:
        raise InputError(path, "has a negative known count", value=number, bound=">= 0")
    return number
