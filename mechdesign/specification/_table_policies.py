"""The ``[policy]`` table: what must not be told apart about one record, and what is publicly known."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from mechdesign.base._arrays import Flags
from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.data._text import read_columns
from mechdesign.model._grammar import EdgesFile, Raw, Table, holds
from mechdesign.specification._read import at, convert, in_file, one_of
from mechdesign.specification._records import value_numbers
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._known_counts import marginal_constraints
from mechdesign.tables._policy import Policy

Kind = Literal["full", "attribute", "partition", "threshold", "line", "graph"]

_ALLOWED = {
    "full": (),
    "attribute": (),
    "partition": ("blocks",),
    "threshold": ("theta", "attributes"),
    "line": (),
    "graph": ("edges", "edges_csv"),
}
_INDEX = re.compile(r"constraints\[(\d+)\]")


class BlocksTable(Table, frozen=True):
    """A division of the values into blocks.

    Attributes:
        labels: the block of each value, texts or numbers, in the order of the values.
        width: so many successive values are a block; for a single attribute.
        by: the names of attributes: values that agree on them are a block.
    """

    alternatives: ClassVar = ("labels", "width", "by")

    labels: list[int | str] | None = None
    width: int | None = None
    by: list[str] | None = None


class ConstraintTable(Table, frozen=True):
    """A count, or a table of counts, that is publicly known.

    Attributes:
        where: for each attribute that matters the values that are counted: a value, a list, or { low = …, high = … }.
        count: the known count; it may be left out where it is only said to be known.
        marginal: the names of attributes whose table of counts is known, instead of `where`.
        counts: its counts, the last attribute fastest; they may be left out.
    """

    alternatives: ClassVar = ("where", "marginal")

    where: Raw | None = None
    count: int | None = None
    marginal: list[str] | None = None
    counts: list[int] | None = None


class RecordPolicyTable(Table, frozen=True):
    """Which two values of a record must not be told apart, and what is publicly known.

    Attributes:
        kind: "full": all values from each other; "attribute": those that differ in one attribute; "partition": those of
            the same block; "threshold": those at a distance of at most theta; "line": each from the next; "graph":
            those that an edge joins.
        theta: the threshold θ on the sum of differences, in the unit of the attributes, exact.
        attributes: the attributes that may change under a threshold; all unless given.
        blocks: the blocks of a partition.
        edges: the edges of a graph: pairs of values, each a value or a list with one entry per attribute.
        edges_csv: a file of edges between values of the only attribute.
        constraints: what is publicly known.
        unbounded: whether a person may be added or removed, too.
    """

    kind: Kind
    theta: Fraction | None = None
    attributes: list[str] | None = None
    blocks: Annotated[Raw, holds(BlocksTable)] | None = None
    edges: list[tuple[Any, Any]] | None = None
    edges_csv: Annotated[Raw, holds(EdgesFile)] | None = None
    constraints: list[Annotated[Raw, holds(ConstraintTable)]] = msgspec.field(default_factory=list)
    unbounded: bool = False


def build_policy(raw: Raw, path: str, domain: Domain, folder: Path) -> Policy:
    """Return the policy that the table at `path` describes."""
    table = convert(raw, RecordPolicyTable, path)
    for name in ("theta", "attributes", "blocks", "edges", "edges_csv"):
        if getattr(table, name) is not None and name not in _ALLOWED[table.kind]:
            wanted = " or ".join(_ALLOWED[table.kind]) or "no further key"
            raise SpecificationError(f"{path}.{name}", f'does not go with kind = "{table.kind}"', bound=wanted)
    known, names = _constraints(table.constraints, f"{path}.constraints", domain)
    common = {"constraints": known, "unbounded": table.unbounded}
    try:
        with at(path, {"labels": "blocks", "graph": "edges", "domain": "kind", "attribute": "attributes"}):
            return _built(table, path, domain, folder, common)
    except SpecificationError as error:
        raise _renamed(error, names) from error


def blocks(raw: Raw, path: str, domain: Domain) -> Sequence[int | str]:
    """Return the block of each value that the table at `path` describes."""
    table = convert(raw, BlocksTable, path)
    form = one_of(table, path)
    if table.labels is not None:
        if len(table.labels) != domain.size:
            raise SpecificationError(
                f"{path}.labels",
                "has another length",
                value=len(table.labels),
                bound=f"one for each of {domain.size} values",
            )
        return table.labels
    if table.width is not None:
        if len(domain.attributes) > 1 or table.width < 1:
            raise SpecificationError(
                f"{path}.{form}", "does not divide the values", value=table.width, bound=">= 1, for a single attribute"
            )
        values = domain.attributes[0].values
        ends = [(start, min(start + table.width, domain.size) - 1) for start in range(0, domain.size, table.width)]
        return [
            f"{values[first]}" if first == last else f"{values[first]} to {values[last]}"
            for first, last in ends
            for _ in range(first, last + 1)
        ]
    chosen = table.by or []
    with at(f"{path}.by", {"attribute": ""}):
        axes = {name: domain.attribute(name) for name in chosen}
    return [
        ", ".join(f"{name} = {entry}" for name, entry in zip(domain.names, value, strict=True) if name in axes) or "all"
        for value in itertools.product(*(attribute.values for attribute in domain.attributes))
    ]


def _built(table: RecordPolicyTable, path: str, domain: Domain, folder: Path, common: dict[str, Any]) -> Policy:
    def partition() -> Policy:
        return Policy.partition(domain, blocks(_needed(table, "blocks", path), f"{path}.blocks", domain), **common)

    def threshold() -> Policy:
        return Policy.threshold(domain, _needed(table, "theta", path), attributes=table.attributes, **common)

    policies: dict[str, Callable[[], Policy]] = {
        "full": lambda: Policy.full(domain, **common),
        "attribute": lambda: Policy.attribute(domain, **common),
        "line": lambda: Policy.line(domain, **common),
        "partition": partition,
        "threshold": threshold,
        "graph": lambda: Policy.graph(domain, _edges(table, path, domain, folder), **common),
    }
    return policies[table.kind]()


def _edges(table: RecordPolicyTable, path: str, domain: Domain, folder: Path) -> list[tuple[int, int]]:
    if (table.edges is None) == (table.edges_csv is None):
        raise SpecificationError(
            path, "has no edges" if table.edges is None else "has edges twice", bound="edges or edges_csv"
        )
    if table.edges is not None:
        return [
            (_node(first, f"{path}.edges[{index}][0]", domain), _node(second, f"{path}.edges[{index}][1]", domain))
            for index, (first, second) in enumerate(table.edges)
        ]
    place = f"{path}.edges_csv"
    file = convert(table.edges_csv, EdgesFile, place)
    with in_file(place, file):
        columns = read_columns(folder / file.path, [file.source, file.target], file.delimiter)
    ends = [[_node(text, place, domain) for text in columns[name]] for name in (file.source, file.target)]
    return list(zip(*ends, strict=True))


def _node(value: object, path: str, domain: Domain) -> int:
    entries = value if isinstance(value, list) else [value]
    if len(entries) != len(domain.attributes):
        raise SpecificationError(
            path, "is no value", value=value, bound=f"an entry for each of {', '.join(domain.names)}"
        )
    node = 0
    for attribute, entry in zip(domain.attributes, entries, strict=True):
        node = node * attribute.size + value_numbers(attribute, [entry], path)[0]
    return node


def _needed(table: RecordPolicyTable, key: str, path: str) -> Any:
    value = getattr(table, key)
    if value is None:
        raise SpecificationError(f"{path}.{key}", "is missing", remedy=f"add {key} = …")
    return value


def _constraints(listed: Sequence[Raw], path: str, domain: Domain) -> tuple[list[Any], list[str]]:
    """Return the constraints, and for each the path of the key it comes from."""
    known: list[Any] = []
    names: list[str] = []
    for index, raw in enumerate(listed):
        place = f"{path}[{index}]"
        table = convert(raw, ConstraintTable, place)
        form = one_of(table, place)
        odd = "counts" if form == "where" else "count"
        if getattr(table, odd) is not None:
            raise SpecificationError(f"{place}.{odd}", f"does not go with {form}", remedy="leave it out")
        if table.where is not None:
            counted = _counted(table.where, f"{place}.where", domain)
            known.append(counted if table.count is None else (counted, table.count))
            names.append(place)
            continue
        with at(place, {"names": "marginal", "attribute": "marginal", "table": "counts"}):
            shape = tuple(domain.attribute(name).size for name in table.marginal or ())
            counts = None
            if table.counts is not None:
                counts = np.array(table.counts)
                if counts.size != np.prod(shape):
                    raise InputError("table", "has another length", value=counts.size, bound=f"{np.prod(shape)} counts")
                counts = counts.reshape(shape)
            cells = marginal_constraints(domain, table.marginal or (), counts)
        known += cells
        names += [f"{place}.counts[{cell}]" for cell in range(len(cells))]
    return known, names


def _counted(where: Raw, path: str, domain: Domain) -> Flags:
    masks = [np.ones(attribute.size, dtype=bool) for attribute in domain.attributes]
    for name, wanted in where.items():
        with at(path, {"attribute": ""}):
            attribute = domain.attribute(name)
        mask = np.zeros(attribute.size, dtype=bool)
        mask[value_numbers(attribute, wanted, f"{path}.{name}")] = True
        masks[domain.names.index(name)] = mask
    counted = masks[0]
    for mask in masks[1:]:
        counted = (counted[:, None] & mask).ravel()
    return counted


def _renamed(error: SpecificationError, names: Sequence[str]) -> SpecificationError:
    """Return an error that names constraints as the specification does."""

    def key(found: re.Match[str]) -> str:
        return names[int(found[1])] if int(found[1]) < len(names) else found[0]

    place = _INDEX.sub(key, error.path)
    value = _INDEX.sub(key, error.value) if isinstance(error.value, str) else error.value
    # The path of the table stands before the number already.
    place = re.sub(r"^policy\.policy\.", "policy.", place)
    return SpecificationError(place, error.problem, value=value, bound=error.bound, remedy=error.remedy)
