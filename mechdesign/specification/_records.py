"""The ``[domain]`` and ``[table]`` tables of a release: the values of records, and the people behind the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar
from unicodedata import normalize

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError, Shown
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.data.table import Table as DataTable
from mechdesign.model._grammar import Table, says
from mechdesign.specification._read import Source
from mechdesign.tables._domain import Attribute, Domain, describe_values

_MISSING = 'fill in the value, delete the record, or add "" to values for records without one: none is left out'
_SPELLED = "list the values as they are spelled in the cells"

LARGEST = 2**24
"""Largest number of values of one attribute."""


class AttributeTable(Table, frozen=True):
    """The values of one column, in order."""

    alternatives: ClassVar = ("range", "values", "low")

    range: Annotated[tuple[int, int] | None, says("the first and the last of successive integers, both included.")] = (
        None
    )
    values: Annotated[list[Any] | None, says("the values, strings or numbers.")] = None
    low: Annotated[Fraction | None, says("the least value, with `step`: values are low, low + step, …")] = None
    high: Annotated[Fraction | None, says("the largest value.")] = None
    step: Annotated[Fraction | None, says("the step between values, exact.")] = None
    round: Annotated[
        bool, says("whether a number between two values is replaced by the nearest value, not refused.")
    ] = False


class RecordsTable(Table, frozen=True):
    """The possible records: every combination of the values of the attributes."""

    attributes: Annotated[
        dict[str, AttributeTable | list[Any]],
        says("the name and the values of each column that is used: a table, or the list of the values."),
    ]


class PeopleTable(Table, frozen=True):
    """The people behind the rows of the table."""

    person: Annotated[
        str | bool, says("the column with the person of each row, or false: each row is another person, as declared.")
    ]
    rows_per_person: Annotated[
        int,
        says(
            "the largest number k of rows of one person, which is published. A release costs a person k·ε, or k²·ρ; "
            "the ledger is charged this cost.",
            ge=1,
            le=2**40,
        ),
    ] = 1
    step: Annotated[
        str | None,
        says(
            "the column with the time step of each row: a row of another step than --step is refused. `mechdesign "
            "chain` reads it, too."
        ),
    ] = None


@dataclass(frozen=True, eq=False)
class Records:
    """The possible records, and the conversion of tables to them.

    Attributes:
        domain: The possible records.
        rounded: The names of the attributes whose columns are rounded to the nearest value.
    """

    domain: Domain
    rounded: frozenset[str]

    def indices(self, table: DataTable) -> Integers:
        """Return the index in the domain of each record of a table.

        Args:
            table: The table, with a column for each attribute.

        Returns:
            Indices, int64 of shape (n,).

        Raises:
            InputError: A value is outside the domain; the path is the place of its cell.
        """
        result = np.zeros(len(table), dtype=np.int64)
        for attribute in self.domain.attributes:
            rounds = attribute.name in self.rounded
            result = result * attribute.size + codes_of(table, attribute.name, attribute, rounds=rounds)
        return result


def codes_of(table: DataTable, column: str, attribute: Attribute, *, rounds: bool = False) -> Integers:
    """Return the index of the value in each cell of a column, int64 of shape (n,); raise `InputError` for others."""
    if rounds:
        codes = attribute.nearest_codes(table.floats(column)[0])
    else:
        texts, read = table.texts(column), _reader(attribute, table.layout.decimal)
        found = {text: read(text) for text in set(texts)}
        codes = np.fromiter(map(found.__getitem__, texts), np.int64, len(texts))
    if codes.min(initial=0) < 0:
        raise _outside(table, int(np.argmax(codes < 0)), column, attribute)
    return codes


def _reader(attribute: Attribute, decimal: str = ".") -> Callable[[str], int]:
    """Return a function from the text of a cell to the index of its value, or to −1 outside the domain."""
    values = attribute.values
    listed = () if isinstance(values, range) else values
    names = {normalize("NFC", value): code for code, value in enumerate(listed) if isinstance(value, str)}
    truths = {str(value).lower(): code for code, value in enumerate(listed) if isinstance(value, bool)}
    numbers = {exact(value): code for code, value in enumerate(listed) if not isinstance(value, str | bool)}

    def read(text: str) -> int:
        found = names.get(normalize("NFC", text), truths.get(text.strip().lower()))
        number = _number(text, decimal) if found is None and attribute.size > len(names) + len(truths) else None
        if number is None:
            return -1 if found is None else found
        if isinstance(values, range):
            return values.index(int(number)) if number.denominator == 1 and int(number) in values else -1
        return numbers.get(number, -1)

    return read


def _number(text: str, decimal: str) -> Fraction | None:
    """Return the exact number in a cell, or None."""
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".")
    if "/" in text:
        # A ratio, such as 4/2, may be a date.
        return None
    try:
        return exact(text.strip())
    except InputError:
        return None


def _outside(table: DataTable, row: int, column: str, attribute: Attribute) -> InputError:
    """Return the error for a cell that is not a value of an attribute."""
    bound = describe_values(attribute.values)
    if not table.texts(column)[row].strip():
        remedy = 'leave the cell empty, without blanks, for the value ""' if "" in attribute.values else _MISSING
        return InputError(table.where(row, column), "has no value", bound=bound, remedy=remedy)
    remedy = table.no_number(row, column).remedy if attribute.numeric else _SPELLED
    return InputError(table.where(row, column), "is outside the domain", bound=bound, remedy=remedy)


def build_records(table: RecordsTable, source: Source) -> Records:
    """Return the records described by the table at `source`."""
    place = source / "attributes"
    given = table.attributes.items()
    attributes = {name: _values(described, place / name) for name, described in given}
    with source.keys({f"domain[{name!r}]": f"attributes.{name}" for name in attributes} | {"domain": "attributes"}):
        domain = Domain(attributes)
    rounded = [name for name, described in given if isinstance(described, AttributeTable) and described.round]
    for name in rounded:
        if not domain.attribute(name).ascending:
            problem = "cannot be combined with these values"
            raise place.error((name, "round"), problem, bound="numbers in ascending order")
    return Records(domain, frozenset(rounded))


def _values(table: AttributeTable | list[Any], source: Source) -> Sequence[Any]:
    if isinstance(table, list):
        return _read_listed(table, source)
    if table.low is None and (table.high is not None or table.step is not None):
        raise source.error("", f"has {table.form} and also high or step", bound="low, high and step together")
    if table.range is not None:
        first, last = table.range
        if first > last:
            raise source.error("range", "ends before it begins", value=list(table.range), bound="first <= last")
        return range(first, _end(last - first, source / "range") + first)
    if table.values is not None:
        return _read_listed(table.values, source / "values")
    return _compute_stepped(table, source)


def _read_listed(values: Sequence[Any], source: Source) -> Sequence[Any]:
    """Return the listed values of an attribute; decimals become floats."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if not isinstance(value, str | bool | int | Decimal):
            bound = "a string, a number, true or false"
            remedy = "write it as a string, in quotes, as it is spelled in the cells"
            raise source.error((index,), "is not a value of a column", value=str(value), bound=bound, remedy=remedy)
        # The texts of cells are compared in this form.
        if isinstance(value, str) and values[earlier := first.setdefault(normalize("NFC", value), index)] != value:
            problem = f"repeats values[{earlier}] after Unicode normalisation (NFC)"
            raise source.error((index,), problem, value=value, bound="distinct from all others")
    return [
        _float(value, source / place) if isinstance(value, Decimal) else value for place, value in enumerate(values)
    ]


def _compute_stepped(table: AttributeTable, source: Source) -> Sequence[Any]:
    """Return the values from `low` to `high` at intervals of `step`."""
    low, high, step = table.low, table.high, table.step
    for name, value in (("high", high), ("step", step)):
        if value is None:
            raise source.error(name, "is missing", remedy=f"add {name} = …")
    assert low is not None
    assert high is not None
    assert step is not None
    if step <= 0:
        raise source.error("step", "is not positive", value=exact_text(step), bound="> 0")
    steps, remainder = divmod(high - low, step)
    if remainder or steps < 0:
        bound = "low plus a number of steps"
        raise source.error("high", "is between two values, or below low", value=exact_text(high), bound=bound)
    end = _end(steps, source)
    if low.denominator == step.denominator == 1:
        return range(int(low), int(high) + 1, int(step))
    return [nearest(low + index * step) for index in range(end)]


def _float(value: Decimal, source: Source) -> float:
    """Return a decimal as a float; raise `SpecificationError` if it overflows or underflows."""
    found = nearest(Fraction(value)) if value.is_finite() and abs(value.adjusted()) < 400 else math.inf
    if not math.isfinite(found) or (found == 0) != (value == 0):
        raise source.error("", "is out of range", value=Shown(value), bound="0, or between 5e-324 and 1.7e308")
    return found


def _end(last: int, source: Source) -> int:
    """Return the number of values, whose last index is given; raise `SpecificationError` if there are too many."""
    if last >= LARGEST:
        raise source.error("", "has too many values", value=last + 1, bound=f"at most {LARGEST}")
    return last + 1


def value_numbers(attribute: Attribute, wanted: object, source: Source) -> list[int]:
    """Return the indices of the values that a key names: one value, a list, or a range { low, high }."""
    if isinstance(wanted, Mapping):
        if set(wanted) != {"low", "high"}:
            problem = "does not name values"
            raise source.error("", problem, value=sorted(wanted), bound="a value, a list, or low and high")
        first, last = (_place(attribute, wanted[name], source / name) for name in ("low", "high"))
        if first > last:
            raise source.error("", "ends before it begins", bound="low <= high")
        return list(range(first, last + 1))
    listed = wanted if isinstance(wanted, list) else [wanted]
    if not listed:
        raise source.error("", "does not name any value", bound="at least one")
    return [_place(attribute, value, source) for value in listed]


def _place(attribute: Attribute, value: object, source: Source) -> int:
    """Return the index of a value that is written in a specification."""
    code = _reader(attribute)(str(value))
    if code < 0:
        bound = describe_values(attribute.values)
        raise source.error("", f"is not a value of {attribute.name}", value=str(value), bound=bound)
    return code
