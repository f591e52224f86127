"""The ``[domain]`` table: what values the records of a table may have, and how columns are read into them."""

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

_MISSING = "fill it in, or delete the record: none is left out"
_EMPTY = 'fill it in, or leave the cell empty, without blanks, as the value "" is'
_TRUTHS = "write values = [true, false], without quotes, if the column holds truth values"
_TWO = ({"true", "false"}, {"1", "0"})
_OWN_VALUE = '; or add "" to values, where a missing value is a value of its own'

# Of the decimals that values may be, see docs/limits.md.
_LARGEST_EXPONENT = 400

LARGEST = 2**24
"""Most values of one attribute."""


class AttributeTable(Table, frozen=True):
    """The values of one column, in order."""

    alternatives: ClassVar = ("range", "values", "low")

    range: Annotated[tuple[int, int] | None, says("the first and the last of successive integers, both included.")] = (
        None
    )
    values: Annotated[list[Any] | None, says("the values themselves, texts or numbers.")] = None
    low: Annotated[Fraction | None, says("the least value, beside `step`: values are low, low + step, …")] = None
    high: Annotated[Fraction | None, says("the largest value.")] = None
    step: Annotated[Fraction | None, says("the step between values, exact.")] = None
    round: Annotated[bool, says("read a number between two values as the nearest one, instead of refusing it.")] = False


class RecordsTable(Table, frozen=True):
    """The values that a record of the table may have: every combination of the values of its attributes."""

    attributes: Annotated[dict[str, AttributeTable], says("for each column that is used, its name and its values.")]


@dataclass(frozen=True, eq=False)
class Records:
    """What records may be, and how a table is read.

    Attributes:
        domain: the values.
        rounded: the names of the attributes whose columns are rounded to the nearest value.
    """

    domain: Domain
    rounded: frozenset[str]

    def indices(self, table: object, delimiter: str | None = None) -> Integers:
        """Return the numbers of the values of the records of a table, int64 of shape (n,).

        Args:
            table: a CSV file with a header, or anything that `mechdesign.tables.Domain.indices` takes.
            delimiter: the character between columns of a file; recognised unless given.

        Raises:
            InputError: a missing column, or a value outside the domain, named with its row.
        """
        if isinstance(table, str | os.PathLike):
            return self._of_file(Path(table), delimiter)
        if not self.rounded:
            return self.domain.indices(table)
        read = self.domain.columns(table)
        for name in sorted(self.rounded):
            read[name] = _rounded(read[name], self.domain.attribute(name), f"data[{name!r}]")
        return self.domain.indices(read)

    def _of_file(self, source: Path, delimiter: str | None) -> Integers:
        # Whether an empty table is released is up to the policy.
        columns = read_columns(source, self.domain.names, delimiter, may_be_empty=True)
        result = np.zeros(len(columns[self.domain.names[0]]), dtype=np.int64)
        for attribute in self.domain.attributes:
            texts = columns[attribute.name]
            if not any(isinstance(value, str) for value in attribute.values):
                texts = plain_numbers(texts, source, repr(attribute.name))
            # Each distinct text is looked up once.
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
                    bound=_accepted(attribute),
                    remedy=_missing(attribute) if blank else _remedy(attribute),
                )
            result *= attribute.size
            result += np.fromiter(map(codes.__getitem__, texts), dtype=np.int64, count=len(texts))
        return result


def _missing(attribute: Attribute) -> str:
    """Return what to do about a cell without a value."""
    if isinstance(attribute.values, range):
        return _MISSING
    return _EMPTY if "" in attribute.values else _MISSING + _OWN_VALUE


def _remedy(attribute: Attribute) -> str:
    """Return what to do about other cells where values are truth values, or may stand for them."""
    if isinstance(attribute.values, range):
        return ""
    if not any(isinstance(value, bool) for value in attribute.values):
        spelled = {_written(value).lower() for value in attribute.values if value != ""}
        return _TRUTHS if spelled in _TWO else ""
    return 'state the values as the cells spell them, such as values = [1, 0] or values = ["yes", "no"]'


def _signs(attribute: Attribute) -> str:
    """Return the signs that the values of an attribute have, where these are listed."""
    return "" if isinstance(attribute.values, range) else "".join(map(str, attribute.values))


def build_records(table: RecordsTable, source: Source) -> Records:
    """Return what the table at `source` says of the records."""
    place = source / "attributes"
    attributes = {name: _values(described, place / name) for name, described in table.attributes.items()}
    rounded = [name for name, described in table.attributes.items() if described.round]
    with source.keys({f"domain[{name!r}]": f"attributes.{name}" for name in attributes} | {"domain": "attributes"}):
        domain = Domain(attributes)
    for name in rounded:
        if not domain.attribute(name).ascending:
            raise place.error((name, "round"), "does not go with these values", bound="numbers in ascending order")
    return Records(domain, frozenset(rounded))


def _values(table: AttributeTable, source: Source) -> Sequence[Any]:
    if table.low is None and (table.high is not None or table.step is not None):
        raise source.error("", f"has {table.form} beside high or step", bound="low, high and step together")
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
    """Return values that are listed, with decimals as floats."""
    for index, value in enumerate(values):
        if not isinstance(value, str | bool | int | Decimal):
            raise source.error(
                (index,),
                "is no value of a column",
                value=str(value),
                bound="a text, a number, true or false",
                remedy="write it as a text, in quotes, as the cells spell it",
            )
    _check_composed(values, source)
    return [
        _float(value, source / place) if isinstance(value, Decimal) else value for place, value in enumerate(values)
    ]


def _compute_stepped(table: AttributeTable, source: Source) -> Sequence[Any]:
    """Return the values from `low` to `high`, a step apart."""
    for name in ("high", "step"):
        if getattr(table, name) is None:
            raise source.error(name, "is missing", remedy=f"add {name} = …")
    assert table.low is not None
    assert table.high is not None
    assert table.step is not None
    if table.step <= 0:
        raise source.error("step", "is not positive", value=exact_text(table.step), bound="> 0")
    count, rest = divmod(table.high - table.low, table.step)
    if rest or count < 0:
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
    """Raise `SpecificationError` for a text that no cell can be told from, as letters and marks of cells are joined."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if isinstance(value, str) and values[earlier := first.setdefault(to_nfc(value), index)] != value:
            problem = f"repeats values[{earlier}], once letters and marks are joined (Unicode NFC)"
            raise source.error((index,), problem, value=value, bound="distinct from all others")


def _float(value: Decimal, source: Source) -> float:
    """Return a decimal as a float; raise `SpecificationError` where there is none near it."""
    found = math.nan
    if value.is_finite() and -_LARGEST_EXPONENT <= value.adjusted() <= _LARGEST_EXPONENT:
        found = nearest(Fraction(value))
    if not math.isfinite(found) or (found == 0) != (value == 0):
        raise source.error("", "is out of range", value=Shown(value), bound="0, or between 5e-324 and 1.7e308")
    return found


def _check_size(size: int, source: Source) -> None:
    if size > LARGEST:
        raise source.error("", "has too many values", value=size, bound=f"at most {LARGEST}")


def _codes(texts: Sequence[str], attribute: Attribute, rounded: bool) -> dict[str, int | None]:
    """Return the number of the value that each text stands for, None where it stands for none."""
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
    truths = {_written(value): code for code, value in enumerate(values) if isinstance(value, bool)}
    numbers_ = {exact(value): code for code, value in enumerate(values) if not isinstance(value, str | bool)}
    return {
        text: names.get(to_nfc(text), numbers_.get(number) if (number := _exact(text)) is not None else None)
        if (truth := truths.get(text.strip().lower())) is None or to_nfc(text) in names
        else truth
        for text in texts
    }


def _rounded(column: Any, attribute: Attribute, path: str) -> list[Any]:
    """Return a column of numbers with each replaced by the nearest value of the attribute."""
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        # What NumPy says quotes a cell.
        raise InputError(
            path, "holds values that are no numbers", bound="numbers, as round = true needs them"
        ) from None
    codes = _nearest(numbers, attribute)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"{path}, row {row}", "is outside the domain", value=numbers[row].item(), bound=_accepted(attribute)
        )
    return [attribute.values[code] for code in codes.tolist()]


def _nearest(numbers: Floats, attribute: Attribute) -> Integers:
    """Return the number of the nearest value, −1 for what lies farther beyond the ends than half a step."""
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
    # Almost all numbers are written so; the others are read exactly.
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


def _written(value: object) -> str:
    """Return a value as a specification writes it: a truth value is true or false, which cells spell in either case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _accepted(attribute: Attribute) -> str:
    values = attribute.values
    if len(values) <= 10:
        return "one of " + ", ".join(_written(value) or '""' for value in values)
    if attribute.ascending:
        step = values[1] - values[0] if isinstance(values, range) else None
        return f"from {values[0]} to {values[-1]}" + (f" in steps of {step}" if step not in (None, 1) else "")
    return f"one of the {len(values)} values {values[0]}, {values[1]}, ..., {values[-1]}"


def value_numbers(attribute: Attribute, wanted: object, source: Source) -> list[int]:
    """Return the numbers of the values of an attribute that a key names: one value, a list, or { low, high }."""
    if isinstance(wanted, Mapping):
        if set(wanted) != {"low", "high"}:
            raise source.error("", "names no values", value=sorted(wanted), bound="a value, a list, or low and high")
        first, last = (_place(attribute, wanted[name], source / name) for name in ("low", "high"))
        if first > last:
            raise source.error("", "ends before it begins", bound="low <= high")
        return list(range(first, last + 1))
    listed = wanted if isinstance(wanted, list) else [wanted]
    if not listed:
        raise source.error("", "names no values", bound="at least one")
    return [_place(attribute, value, source) for value in listed]


def _place(attribute: Attribute, value: object, source: Source) -> int:
    """Return the number of a value as a specification writes it."""
    text = value if isinstance(value, str) else str(value)
    code = _codes([text], attribute, rounded=False)[text]
    if code is None:
        raise source.error("", f"is no value of {attribute.name}", value=text, bound=_accepted(attribute))
    return code
