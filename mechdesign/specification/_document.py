"""A whole specification, and its ``[solver]`` table."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Union, cast

import msgspec

from mechdesign.model._grammar import PriorTable, Raw, Table, says
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.specification._domains import DomainTable, ObservablesTable
from mechdesign.specification._ledgers import LedgerTable
from mechdesign.specification._measures import CostTable
from mechdesign.specification._policy import PolicyTable, ReleaseTable
from mechdesign.specification._read import VERSION, convert
from mechdesign.synthesis._settings import TOLERANCE, Rows

_LISTS = msgspec.Meta(
    description='lists of values for keys, for `mechdesign sweep`: the path of each, such as "privacy.0.epsilon", with '
    'its values; and the mode, "product" (each value with each) or "zip" (the first ones together, and so on).',
    extra_json_schema={
        "properties": {
            "mode": {"enum": ["product", "zip"], "default": "product", "description": "how lists go together"}
        },
        "additionalProperties": {"type": "array", "minItems": 1},
    },
)


class SolverTable(Table, frozen=True):
    """How programs are solved: the arguments of `mechdesign.design`."""

    name: Annotated[str, says('"auto", or a solver that `mechdesign info` lists.')] = "auto"
    tolerance: Annotated[float, says("the relative gap to ask for.")] = TOLERANCE
    time_limit: Annotated[float | None, says("the time limit in seconds.")] = None
    rows: Annotated[Rows, says("which privacy rows the solver sees.")] = "auto"
    threads: Annotated[int | None, says("how many threads the solver may use.")] = None
    options: Annotated[Raw, says("options of the solver, under its own names.")] = msgspec.field(default_factory=dict)


class Document(Table, frozen=True):
    """A specification: what the secrets are, how likely each is, what a wrong answer costs, what must be protected."""

    domain: Annotated[DomainTable, says("the secrets.")]
    prior: Annotated[PriorTable, says("how likely each secret is.")]
    cost: Annotated[CostTable, says("what an answer costs.")]
    privacy: list[Table]
    version: Annotated[int, says("the version of this grammar.")] = VERSION
    title: Annotated[str, says("what the mechanism is called in reports.")] = ""
    observables: Annotated[
        ObservablesTable | None,
        says("the answers, where they are others than the secrets: some of them, a coarser grid, or a domain."),
    ] = None
    policy: Annotated[PolicyTable, says("how a policy graph is kept.")] = msgspec.field(default_factory=PolicyTable)
    release: Annotated[ReleaseTable, says("how a trace is released.")] = msgspec.field(default_factory=ReleaseTable)
    ledger: Annotated[LedgerTable | None, says("where what a trace spends is recorded.")] = None
    solver: Annotated[SolverTable, says("how programs are solved.")] = msgspec.field(default_factory=SolverTable)
    sweep: Annotated[Raw, _LISTS] = msgspec.field(default_factory=dict)


ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: f"{table}.{name}"
            for table, kind in (("release", ReleaseTable), ("policy", PolicyTable), ("solver", SolverTable))
            for name in kind.__struct_fields__
        },
        "solver": "solver.name",
        # What a solver calls its own options.
        "options.extra": "solver.options",
        "graph": "privacy",
        "requirements": "privacy",
        "points": "domain",
        "method": "policy.repair",
    }
)
"""The keys that arguments of functions come from: a design, a trace and its steps are made by what these tables say."""


def document() -> type[Table]:
    """Return the structure of a specification with all kinds of requirement that are known now."""
    return _with_requirements(tuple(kind.table for kind in KINDS.values()))


@functools.cache
def _with_requirements(tables: tuple[type[Table], ...]) -> type[Table]:
    described = msgspec.Meta(
        description="what must be protected: at least one requirement, all of which are kept.",
        extra_json_schema={"minItems": 1},
    )
    stated: Any = Annotated[list[Union[tables]], described]  # type: ignore[valid-type]  # noqa: UP007
    keys: list[Any] = [
        (each.name, stated if each.name == "privacy" else each.type, _default(each))
        for each in msgspec.structs.fields(Document)
    ]
    made: Any = msgspec.defstruct("Document", keys, bases=(Table,), frozen=True, kw_only=True)
    made.__doc__ = Document.__doc__
    return cast(type[Table], made)


def _default(key: msgspec.structs.FieldInfo) -> Any:
    if key.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=key.default_factory)
    return msgspec.field(default=key.default)


def read_document(data: Raw) -> Document:
    """Return the tables of a specification; raise `SpecificationError` for a key that is not known, or not right."""
    found = convert(data, document())
    # Of a class with a name of its own, which other processes know.
    return Document(**{name: getattr(found, name) for name in found.__struct_fields__})
