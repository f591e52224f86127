"""The JSON schema of specifications, and dotted paths to their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.model._grammar import Raw, Table
from mechdesign.specification._document import Document
from mechdesign.specification._read import VERSION, Epsilon

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
