"""The ``[policy]`` table of a release: the values that must be indistinguishable, and the public constraints."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from mechdesign.base._arrays import Flags
from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.data.table import read_table
from mechdesign.model._grammar import EdgesFile, Raw, Table, says
from mechdesign.specification._read import Source
from mechdesign.specification._records import codes_of, value_numbers
from mechdesign.tables._domain import Domain
from mechdesign.tables._known_counts import marginal_constraints
from mechdesign.tables._policy import Policy

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
