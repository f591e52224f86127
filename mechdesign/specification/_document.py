"""The structure of a whole specification, its ``[solver]`` table, its JSON schema, and dotted paths to its keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.model._grammar import FilesTable, PriorTable, Raw, Table, says
from mechdesign.specification._domains import DomainTable, ObservablesTable
from mechdesign.specification._ledgers import LedgerTable
from mechdesign.specification._measures import CostTable, PrivacyTable
from mechdesign.specification._policy import PolicyTable
from mechdesign.specification._read import VERSION, Epsilon
from mechdesign.specification._steps import ReleaseTable
from mechdesign.synthesis._settings import TOLERANCE, Rows

_LISTS = msgspec.Meta(
    description='lists of values for keys, for `mechdesign sweep`: dotted paths such as "privacy.0.epsilon", with '
    'lists of values; and the mode, "product" (all combinations) or "zip" (the first values together, and so on).',
    extra_json_schema={
        "properties": {
            "mode": {"enum": ["product", "zip"], "default": "product", "description": "how lists are combined"}
        },
        "additionalProperties": {"type": "array", "minItems": 1},
    },
)


class SolverTable(Table, frozen=True):
    """Settings of the solver: arguments of `mechdesign.design`.

    >>> SolverTable(tolerance=1e-4).name
    'auto'

    Attributes:
        name: "auto", or a solver that `mechdesign info` lists.
        tolerance: Relative gap at which to stop.
        time_limit: Time limit in seconds, or None.
        rows: The privacy constraints that the solver gets.
        threads: Number of threads, or None for the solver's default.
        options: Options of the solver, by the solver's names for them.
    """

    name: Annotated[str, says('"auto", or a solver that `mechdesign info` lists.')] = "auto"
    tolerance: Annotated[float, says("the relative gap at which to stop.")] = TOLERANCE
    time_limit: Annotated[float | None, says("the time limit in seconds.")] = None
    rows: Annotated[Rows, says("the privacy constraints that the solver gets.")] = "auto"
    threads: Annotated[int | None, says("the number of threads.")] = None
    options: Annotated[Raw, says("options of the solver, by its own names.")] = msgspec.field(default_factory=dict)


class Document(Table, frozen=True):
    """A specification: the secrets, the prior, the costs of answers, and the privacy requirements.

    >>> sorted(Document.__struct_fields__)[:4]
    ['cost', 'domain', 'files', 'ledger']

    Attributes:
        domain: The secrets.
        prior: The probability of each secret.
        cost: The cost of each answer.
        privacy: The requirements, at least one. The channel meets all requirements.
        files: The layout of all files.
        version: The version of this grammar.
        title: The title of the mechanism in reports.
        observables: The answers, if they differ from the secrets.
        policy: The treatment of policy graphs.
        release: The release of a trace.
        ledger: The ledger that records the budget of a trace, or None.
        solver: The settings of the solver.
        sweep: Lists of values for keys, for `mechdesign sweep`.
    """

    domain: Annotated[DomainTable, says("the secrets.")]
    prior: Annotated[PriorTable, says("the probability of each secret.")]
    cost: Annotated[CostTable, says("the cost of each answer.")]
    privacy: Annotated[
        list[PrivacyTable],
        says("the privacy requirements, at least one; all of them are kept.", min_length=1),
    ]
    files: Annotated[FilesTable, says("the layout of all files.")] = msgspec.field(default_factory=FilesTable)
    version: Annotated[Literal[1], says("the version of this grammar.")] = VERSION
    title: Annotated[str, says("the title of the mechanism in reports.")] = ""
    observables: Annotated[
        ObservablesTable | None,
        says(
            "the answers, if they differ from the secrets: a subset of the secrets, a coarser grid, or another domain."
        ),
    ] = None
    policy: Annotated[PolicyTable, says("the treatment of policy graphs.")] = msgspec.field(default_factory=PolicyTable)
    release: Annotated[ReleaseTable, says("the release of a trace.")] = msgspec.field(default_factory=ReleaseTable)
    ledger: Annotated[LedgerTable | None, says("the ledger that records the budget of a trace.")] = None
    solver: Annotated[SolverTable, says("the settings of the solver.")] = msgspec.field(default_factory=SolverTable)
    sweep: Annotated[Raw, _LISTS] = msgspec.field(default_factory=dict)


ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: f"{table}.{name}"
            for table, kind in (("release", ReleaseTable), ("policy", PolicyTable), ("solver", SolverTable))
            for name in kind.__struct_fields__
        },
        "solver": "solver.name",
        # Names of options of a solver.
        "options.extra": "solver.options",
        "graph": "privacy",
        "requirements": "privacy",
        "points": "domain",
        "method": "policy.repair",
    }
)
"""The key of a specification for each argument of the functions that design channels and release traces."""


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{name}"
# Examples and lists of attributes in docstrings are not part of descriptions.
_SECTIONS = re.compile(r"\n\s*(?:>>>|Args:|Attributes:)")


def schema(document: type[Table] = Document) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of specifications.

    The schema does not contain conditions that depend on data, such as the number of probabilities.
    `Specification.problem` checks these conditions.

    Args:
        document: The outermost table: `Document` for designs and traces, or `ReleaseDocument` for tables.

    Returns:
        The schema, as a JSON object.

    Raises:
        InputError: The document is not a table.

    >>> sorted(schema()["required"])
    ['cost', 'domain', 'prior', 'privacy']
    """
    if not (isinstance(document, type) and issubclass(document, Table)):
        raise InputError(
            "document", "is not a table", value=type(document).__name__, bound="a class derived from Table"
        )
    _, found = msgspec.json.schema_components([document], schema_hook=_hook, ref_template=_REF)
    for table in _subclasses(Table):
        if table.__name__ in found:
            _describe(found[table.__name__], table)
    whole = found.pop(document.__name__)
    whole["title"] = f"mechdesign specification, version {VERSION}"
    cleaned: dict[str, Any] = _remove_nulls({"$schema": _DRAFT, **whole, "$defs": found})
    return cleaned


def _subclasses(kind: type[Table]) -> Iterator[type[Table]]:
    """Yield a class of tables, and all classes derived from it."""
    yield kind
    for each in kind.__subclasses__():
        yield from _subclasses(each)


def _hook(kind: type) -> dict[str, Any]:
    if kind in (Fraction, Epsilon):
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}
    raise TypeError(f"a table of a specification contains a {kind.__name__}, which has no JSON schema")


def _describe(described: dict[str, Any], table: type[Table]) -> None:
    """Add the summary of a table's docstring to its schema, and state which keys exclude each other."""
    described["description"] = " ".join(_SECTIONS.split(table.__doc__ or "")[0].split())
    if (tag := table.__struct_config__.tag_field) is not None:
        described["properties"][tag]["description"] = "the kind of the table."
    if table.alternatives:
        described["oneOf"] = [
            {"required": [name]} | ({"not": {"required": [table.beside[name]]}} if name in table.beside else {})
            for name in table.alternatives
        ]


def _remove_nulls(value: Any) -> Any:
    """Remove the default value null and the type null from a schema, because TOML has no null."""
    if isinstance(value, list):
        return [_remove_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _remove_nulls(each)
        for name, each in value.items()
        if (name, each) != ("default", None) and name != "discriminator"
    }
    if "anyOf" in kept:
        choices = [choice for choice in kept.pop("anyOf") if choice != {"type": "null"}]
        kept = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **kept}
    return kept


_WITHOUT_FILES = ("ledger", "solver", "sweep", "title")


def with_value(data: Raw, key: str, value: object, path: str) -> Raw:
    """Return the tables `data` with `value` at the dotted path `key`; missing tables are added.

    Raises `SpecificationError` at `path` if the key leads through a value that is not a table, or past the end of a
    list.
    """
    # Tables and lists along the path are copied, and no others.
    changed: Any = {"": data}
    above: Any = changed
    place: Any = ""
    step: Any
    for depth, step in enumerate(steps := key.split(".")):
        here, found = ".".join(steps[:depth]), above[place]
        copied: Any
        if isinstance(found, list):
            if not (step.isdecimal() and step.isascii() and int(step) < len(found)):
                bound = f"between 0 and {len(found) - 1}" if found else "an index of the list, which is empty"
                raise SpecificationError(path, f"has no {here}.{step} in the specification", value=step, bound=bound)
            copied, step = [*found], int(step)
        elif isinstance(found, dict):
            copied = {**found}
            copied.setdefault(step, {})
        else:
            problem, remedy = f"leads through {here}, which has a value in the specification", f"sweep {here} itself"
            raise SpecificationError(path, problem, value=str(found), remedy=remedy)
        above[place] = copied
        above, place = copied, step
    above[place] = value
    result: Raw = changed[""]
    return result


def files(data: object) -> Iterator[str]:
    """Yield the names of all data files and folders in the tables of a specification."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == "path" and isinstance(value, str):
                yield value
            elif key == "paths" and isinstance(value, list):
                yield from value
            elif key not in _WITHOUT_FILES:
                yield from files(value)
    elif isinstance(data, list):
        for value in data:
            yield from files(value)
