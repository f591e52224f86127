"""The ``[domain]``, ``[table]`` and ``[policy]`` tables of a release.

They state the values of records, the people behind the rows, the values that must be indistinguishable, and the public
constraints.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal
from unicodedata import normalize

import msgspec
import numpy as np

from mechdesign.base._arrays import Flags, Integers
from mechdesign.base._errors import InputError, Shown, SpecificationError
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.data.table import Table as DataTable
from mechdesign.data.table import read_table
from mechdesign.model._grammar import EdgesFile, Raw, Table, says
from mechdesign.specification._read import Source
from mechdesign.tables._domain import Attribute, Domain, describe_values
from mechdesign.tables._known_counts import marginal_constraints
from mechdesign.tables._policy import Policy

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


Kind = Literal["full", "attribute", "partition", "threshold", "graph"]

_ALLOWED = {
    "full": (),
    "attribute": ("theta",),
    "partition": ("blocks",),
    "threshold": ("theta",),
    "graph": ("edges", "edges_csv"),
}


_CONSTRAINT = re.compile(r"constraints\[\d+\]")


class BlocksTable(Table, frozen=True):
    """A division of the values into blocks."""

    alternatives: ClassVar = ("labels", "width", "by")

    labels: Annotated[
        list[int | str] | None, says("the block of each value, strings or numbers, in the order of the values.")
    ] = None
    width: Annotated[int | None, says("the number of successive values in a block; for a single attribute.")] = None
    by: Annotated[list[str] | None, says("names of attributes: values that agree on them form a block.")] = None


class ConstraintTable(Table, frozen=True):
    """A count, or a table of counts, that is publicly known."""

    alternatives: ClassVar = ("where", "marginal")

    where: Annotated[
        Raw | None,
        says("the counted values of each relevant attribute: a value, a list, or { low = …, high = … }."),
    ] = None
    count: Annotated[int | None, says("the known count; omit it if only its being public matters.")] = None
    marginal: Annotated[
        list[str] | None, says("the names of attributes whose table of counts is known, instead of `where`.")
    ] = None
    counts: Annotated[
        list[int] | None, says("the counts of that table, the last attribute varying fastest; optional.")
    ] = None


class RecordPolicyTable(Table, frozen=True):
    """The pairs of values of a record that must be indistinguishable, and the public constraints."""

    kind: Annotated[
        Kind,
        says(
            'the indistinguishable pairs. "full": all pairs; "attribute": values that differ in one attribute, by at '
            'most its theta; "partition": values in the same block; "threshold": values whose differences in all '
            'attributes add up to at most theta; "graph": values joined by an edge.'
        ),
    ]
    theta: Annotated[
        Any,
        says(
            "the threshold θ on the sum of differences, in the unit of the attributes, exact. For the kind "
            '"attribute" a table with a θ for some attributes, such as { age = 5 }: "next" joins neighbouring values, '
            "0 says that the attribute is public. All other attributes change to any value."
        ),
        msgspec.Meta(extra_json_schema={"type": ["number", "string", "object"]}),
    ] = None
    blocks: Annotated[BlocksTable | None, says("the blocks of a partition.")] = None
    edges: Annotated[
        list[tuple[Any, Any]] | None,
        says("the edges of a graph: pairs of values; each is a value, or a list with one entry per attribute."),
    ] = None
    edges_csv: Annotated[EdgesFile | None, says("a file of edges between values of the only attribute.")] = None
    constraints: Annotated[list[ConstraintTable], says("the publicly known counts.")] = msgspec.field(
        default_factory=list
    )
    unbounded: Annotated[bool, says("whether the policy also protects the presence of a person.")] = False


def build_policy(table: RecordPolicyTable, source: Source, domain: Domain) -> Policy:
    """Return the policy described by the table at `source`."""
    for name in ("theta", "blocks", "edges", "edges_csv"):
        if getattr(table, name) is not None and name not in _ALLOWED[table.kind]:
            wanted = " or ".join(_ALLOWED[table.kind]) or "no further key"
            raise source.error(name, f'cannot be combined with kind = "{table.kind}"', bound=wanted)
    known, names = _constraints(table.constraints, source / "constraints", domain)
    keys = {"labels": "blocks.labels", "graph": "edges", "domain": "kind"}
    keys |= {f"constraints[{index}]": name for index, name in enumerate(names)}
    keys |= {f"theta[{name!r}]": f"theta.{name}" for name in (table.theta if isinstance(table.theta, dict) else ())}
    common = {"constraints": known, "unbounded": table.unbounded}
    try:
        with source.keys(keys):
            return _build_kind(table, source, domain, common)
    except SpecificationError as error:
        if isinstance(error.value, str):
            # The error's value lists contradictory counts; replace names of arguments in it by keys.
            error.value = _CONSTRAINT.sub(lambda found: str(source / keys.get(found[0], found[0])), error.value)
        raise


def blocks(table: BlocksTable, source: Source, domain: Domain) -> Sequence[int | str]:
    """Return the block of each value, as described by the table at `source`."""
    if table.labels is not None:
        return table.labels
    if table.width is not None:
        if len(domain.attributes) > 1 or table.width < 1:
            bound = ">= 1, for a single attribute"
            raise source.error("width", "does not divide the values", value=table.width, bound=bound)
        values = domain.attributes[0].values
        ends = [(start, min(start + table.width, domain.size) - 1) for start in range(0, domain.size, table.width)]
        return [
            f"{values[first]}" if first == last else f"{values[first]} to {values[last]}"
            for first, last in ends
            for _ in range(first, last + 1)
        ]
    with (source / "by").keys({"attribute": ""}):
        axes = {name: domain.attribute(name) for name in table.by or ()}
    return [
        ", ".join(f"{name} = {entry}" for name, entry in zip(domain.names, value, strict=True) if name in axes) or "all"
        for value in itertools.product(*(attribute.values for attribute in domain.attributes))
    ]


def _build_kind(table: RecordPolicyTable, source: Source, domain: Domain, common: dict[str, Any]) -> Policy:
    if table.kind == "full":
        return Policy.full(domain, **common)
    if table.kind == "attribute":
        return Policy.attribute(domain, theta=table.theta, **common)
    if table.kind == "threshold":
        return Policy.threshold(domain, _require(table, "theta", source), **common)
    if table.kind == "graph":
        return Policy.graph(domain, _edges(table, source, domain), **common)
    return Policy.partition(domain, blocks(_require(table, "blocks", source), source / "blocks", domain), **common)


def _edges(table: RecordPolicyTable, source: Source, domain: Domain) -> list[tuple[int, int]]:
    if (table.edges is None) == (table.edges_csv is None):
        raise source.error("", "has no edges" if table.edges is None else "has edges twice", bound="edges or edges_csv")
    if table.edges_csv is None:
        place = source / "edges"
        return [
            (_node(first, place / index / 0, domain), _node(second, place / index / 1, domain))
            for index, (first, second) in enumerate(table.edges or ())
        ]
    place, given = source / "edges_csv", table.edges_csv
    if len(domain.attributes) > 1:
        raise place.error("", "joins single values", bound="edges = [[…, …], …], with an entry for each attribute")
    with place.file(given) as file:
        names = (given.source, given.target)
        found = read_table(file, names, source.layout)
        ends = [codes_of(found, name, domain.attributes[0]).tolist() for name in names]
    return list(zip(*ends, strict=True))


def _node(value: object, source: Source, domain: Domain) -> int:
    entries = value if isinstance(value, list) else [value]
    if len(entries) != len(domain.attributes):
        raise source.error("", "is not a value", value=value, bound=f"an entry for each of {', '.join(domain.names)}")
    node = 0
    for attribute, entry in zip(domain.attributes, entries, strict=True):
        node = node * attribute.size + value_numbers(attribute, [entry], source)[0]
    return node


def _require(table: RecordPolicyTable, key: str, source: Source) -> Any:
    value = getattr(table, key)
    if value is None:
        raise source.error(key, "is missing", remedy=f"add {key} = …")
    return value


def _constraints(listed: Sequence[ConstraintTable], source: Source, domain: Domain) -> tuple[list[Any], list[str]]:
    """Return the constraints, and their keys relative to the policy."""
    known: list[Any] = []
    names: list[str] = []
    for index, table in enumerate(listed):
        place, name = source / index, f"constraints[{index}]"
        other = "counts" if table.form == "where" else "count"
        if getattr(table, other) is not None:
            raise place.error(other, f"cannot be combined with {table.form}", remedy="remove the key")
        if table.where is not None:
            counted = _select_values(table.where, place / "where", domain)
            known.append(counted if table.count is None else (counted, table.count))
            names.append(name)
            continue
        with place.keys({"names": "marginal", "attribute": "marginal", "table": "counts"}):
            shape = tuple(domain.attribute(name).size for name in table.marginal or ())
            counts = None
            if table.counts is not None:
                counts = np.array(table.counts)
                if counts.size != np.prod(shape):
                    raise InputError("table", "has another length", value=counts.size, bound=f"{np.prod(shape)} counts")
                counts = counts.reshape(shape)
            cells = marginal_constraints(domain, table.marginal or (), counts)
        known += cells
        names += [f"{name}.counts[{cell}]" for cell in range(len(cells))]
    return known, names


def _select_values(where: Raw, source: Source, domain: Domain) -> Flags:
    """Return the mask of the values that a constraint counts."""
    masks = [np.ones(attribute.size, dtype=bool) for attribute in domain.attributes]
    for name, wanted in where.items():
        with source.keys({"attribute": ""}):
            attribute = domain.attribute(name)
        mask = np.zeros(attribute.size, dtype=bool)
        mask[value_numbers(attribute, wanted, source / name)] = True
        masks[domain.names.index(name)] = mask
    counted = masks[0]
    for mask in masks[1:]:
        counted = (counted[:, None] & mask).ravel()
    return counted
