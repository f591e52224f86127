"""The ``[domain]`` table of a release: the values of records, and the conversion of columns to them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, Shown
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.data._layout import cell, to_nfc
from mechdesign.data._text import plain_numbers, read_columns
from mechdesign.model._grammar import Table, says
from mechdesign.specification._read import Source
from mechdesign.tables._domain import Attribute, Domain

_MISSING = "fill in the value, or delete the record: records are never left out"
_EMPTY = 'fill in the value, or leave the cell empty, without blanks, for the value ""'
_TRUTHS = "write values = [true, false], without quotes, if the column contains truth values"
_TWO = ({"true", "false"}, {"1", "0"})
_OWN_VALUE = '; or add "" to values to treat a missing value as a separate value'

# Largest decimal exponent of a value, see docs/limits.md.
_MAX_EXPONENT = 400

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


@dataclass(frozen=True, eq=False)
class Records:
    """The possible records, and the conversion of tables to them.

    Attributes:
        domain: The possible records.
        rounded: The names of the attributes whose columns are rounded to the nearest value.
    """

    domain: Domain
    rounded: frozenset[str]

    def indices(self, table: object, delimiter: str | None = None) -> Integers:
        """Return the index in the domain of each record of a table.

        Args:
            table: A file with a header line, or any argument of `mechdesign.tables.Domain.indices`.
            delimiter: The character between columns of a file; recognised if None.

        Returns:
            Indices, int64 of shape (n,).

        Raises:
            InputError: A column is missing, or a value is outside the domain; the message names its row.
        """
        if isinstance(table, str | os.PathLike):
            return self._of_file(Path(table), delimiter)
        if not self.rounded:
            return self.domain.indices(table)
        read = self.domain.columns(table)
        for name in sorted(self.rounded):
            read[name] = _round_column(read[name], self.domain.attribute(name), f"data[{name!r}]")
        return self.domain.indices(read)

    def _of_file(self, source: Path, delimiter: str | None) -> Integers:
        # The policy decides whether an empty table may be released.
        columns = read_columns(source, self.domain.names, delimiter, may_be_empty=True)
        result = np.zeros(len(columns[self.domain.names[0]]), dtype=np.int64)
        for attribute in self.domain.attributes:
            texts = columns[attribute.name]
            if not any(isinstance(value, str) for value in attribute.values):
                texts = plain_numbers(texts, source, repr(attribute.name))
            # Look up each distinct text once.
            codes = _codes(sorted(set(texts)), attribute, attribute.name in self.rounded)
            missing = next((text for text, code in codes.items() if code is None), None)
            if missing is not None:
                row = min(texts.index(text) for text, code in codes.items() if code is None)
                where = f"{source}, row {row + 1}, column {attribute.name!r}"
                blank = not texts[row].strip()
                raise InputError(
                    where,
                    "has no value" if blank else "is outside the domain",
                    value=cell(texts[row], _signs(attribute)),
                    bound=_bound_text(attribute),
                    remedy=_missing(attribute) if blank else _remedy(attribute),
                )
            result *= attribute.size
            result += np.fromiter(map(codes.__getitem__, texts), dtype=np.int64, count=len(texts))
        return result


def _missing(attribute: Attribute) -> str:
    """Return the remedy for a cell without a value."""
    if isinstance(attribute.values, range):
        return _MISSING
    return _EMPTY if "" in attribute.values else _MISSING + _OWN_VALUE


def _remedy(attribute: Attribute) -> str:
    """Return the remedy for a value outside the domain if the domain has truth values, or texts that look like them."""
    if isinstance(attribute.values, range):
        return ""
    if not any(isinstance(value, bool) for value in attribute.values):
        spelled = {_value_text(value).lower() for value in attribute.values if value != ""}
        return _TRUTHS if spelled in _TWO else ""
    return 'list the values as they are spelled in the cells, such as values = [1, 0] or values = ["yes", "no"]'


def _signs(attribute: Attribute) -> str:
    """Return the characters in the values of an attribute, if these are listed."""
    return "" if isinstance(attribute.values, range) else "".join(map(str, attribute.values))


def build_records(table: RecordsTable, source: Source) -> Records:
    """Return the records described by the table at `source`."""
    place = source / "attributes"
    given = table.attributes.items()
    attributes = {name: _values(described, place / name) for name, described in given}
    rounded = [name for name, described in given if isinstance(described, AttributeTable) and described.round]
    with source.keys({f"domain[{name!r}]": f"attributes.{name}" for name in attributes} | {"domain": "attributes"}):
        domain = Domain(attributes)
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
            raise source.error("range", "ends before it begins", value=list(table.range))
        _check_size(last - first + 1, source / "range")
        return range(first, last + 1)
    if table.values is not None:
        return _read_listed(table.values, source / "values")
    return _compute_stepped(table, source)


def _read_listed(values: Sequence[Any], source: Source) -> Sequence[Any]:
    """Return the listed values of an attribute; decimals become floats."""
    for index, value in enumerate(values):
        if not isinstance(value, str | bool | int | Decimal):
            raise source.error(
                (index,),
                "is not a value of a column",
                value=str(value),
                bound="a string, a number, true or false",
                remedy="write it as a string, in quotes, as it is spelled in the cells",
            )
    _check_composed(values, source)
    return [
        _float(value, source / place) if isinstance(value, Decimal) else value for place, value in enumerate(values)
    ]


def _compute_stepped(table: AttributeTable, source: Source) -> Sequence[Any]:
    """Return the values from `low` to `high` at intervals of `step`."""
    for name in ("high", "step"):
        if getattr(table, name) is None:
            raise source.error(name, "is missing", remedy=f"add {name} = …")
    assert table.low is not None
    assert table.high is not None
    assert table.step is not None
    if table.step <= 0:
        raise source.error("step", "is not positive", value=exact_text(table.step), bound="> 0")
    count, remainder = divmod(table.high - table.low, table.step)
    if remainder or count < 0:
        raise source.error(
            "high",
            "is not low plus a number of steps",
            value=exact_text(table.high),
            remedy="adjust high or step",
        )
    _check_size(count + 1, source)
    if table.low.denominator == table.step.denominator == 1:
        return range(int(table.low), int(table.high) + 1, int(table.step))
    return [nearest(table.low + index * table.step) for index in range(count + 1)]


def _check_composed(values: Sequence[object], source: Source) -> None:
    """Raise `SpecificationError` if two texts are equal in Unicode form NFC, to which cells are normalised."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if isinstance(value, str) and values[earlier := first.setdefault(to_nfc(value), index)] != value:
            problem = f"repeats values[{earlier}] after Unicode normalisation (NFC)"
            raise source.error((index,), problem, value=value, bound="distinct from all others")


def _float(value: Decimal, source: Source) -> float:
    """Return a decimal as a float; raise `SpecificationError` if it overflows or underflows."""
    found = math.nan
    if value.is_finite() and -_MAX_EXPONENT <= value.adjusted() <= _MAX_EXPONENT:
        found = nearest(Fraction(value))
    if not math.isfinite(found) or (found == 0) != (value == 0):
        raise source.error("", "is out of range", value=Shown(value), bound="0, or between 5e-324 and 1.7e308")
    return found


def _check_size(size: int, source: Source) -> None:
    if size > LARGEST:
        raise source.error("", "has too many values", value=size, bound=f"at most {LARGEST}")


def _codes(texts: Sequence[str], attribute: Attribute, rounded: bool) -> dict[str, int | None]:
    """Return the index of the value of each text, or None for a text outside the domain."""
    if rounded:
        numbers = np.array([_number(text) for text in texts])
        found = _nearest(numbers, attribute)
        return {text: None if code < 0 else code for text, code in zip(texts, found.tolist(), strict=True)}
    values = attribute.values
    if isinstance(values, range):
        whole = {text: _integer(text) for text in texts}
        return {
            text: None if value is None or value not in values else values.index(value) for text, value in whole.items()
        }
    names = {to_nfc(value): code for code, value in enumerate(values) if isinstance(value, str)}
    truths = {_value_text(value): code for code, value in enumerate(values) if isinstance(value, bool)}
    numbers_ = {exact(value): code for code, value in enumerate(values) if not isinstance(value, str | bool)}
    return {
        text: names.get(to_nfc(text), numbers_.get(number) if (number := _exact(text)) is not None else None)
        if (truth := truths.get(text.strip().lower())) is None or to_nfc(text) in names
        else truth
        for text in texts
    }


def _round_column(column: Any, attribute: Attribute, path: str) -> list[Any]:
    """Return a column of numbers, each rounded to the nearest value of the attribute."""
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        # The message of NumPy quotes a cell.
        raise InputError(path, "contains values that are not numbers", bound="numbers, for round = true") from None
    codes = _nearest(numbers, attribute)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"{path}, row {row}", "is outside the domain", value=numbers[row].item(), bound=_bound_text(attribute)
        )
    return [attribute.values[code] for code in codes.tolist()]


def _nearest(numbers: Floats, attribute: Attribute) -> Integers:
    """Return the index of the nearest value, or −1 for a number more than half a step beyond either end."""
    values = np.asarray(attribute.positions, dtype=np.float64) * float(attribute.unit)
    if len(values) == 1:
        return np.where(numbers == values[0], 0, -1)
    middles = (values[1:] + values[:-1]) / 2
    codes = np.searchsorted(middles, numbers, side="right")
    low, high = values[0] - (middles[0] - values[0]), values[-1] + (values[-1] - middles[-1])
    return np.where((numbers >= low) & (numbers <= high), codes, -1).astype(np.int64)


def _number(text: str) -> float:
    try:
        return float("nan" if "_" in text else text)
    except ValueError:
        return float("nan")


def _integer(text: str) -> int | None:
    # A fast path for plain digits; other spellings are read as exact fractions.
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) < 18:
        return int(stripped)
    number = _exact(stripped)
    return int(number) if number is not None and number.denominator == 1 else None


def _exact(text: str) -> Fraction | None:
    try:
        return exact(text.strip())
    except InputError:
        return None


def _value_text(value: object) -> str:
    """Return a value as it is written in a specification: truth values are true and false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bound_text(attribute: Attribute) -> str:
    values = attribute.values
    if len(values) <= 10:
        return "one of " + ", ".join(_value_text(value) or '""' for value in values)
    if attribute.ascending:
        step = values[1] - values[0] if isinstance(values, range) else None
        return f"from {values[0]} to {values[-1]}" + (f" in steps of {step}" if step not in (None, 1) else "")
    return f"one of the {len(values)} values {values[0]}, {values[1]}, ..., {values[-1]}"


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
    text = value if isinstance(value, str) else str(value)
    code = _codes([text], attribute, rounded=False)[text]
    if code is None:
        raise source.error("", f"is not a value of {attribute.name}", value=text, bound=_bound_text(attribute))
    return code
