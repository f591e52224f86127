"""The grammar of specifications as a JSON schema, for editors, for other programs and for the reference."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, get_args, get_type_hints

import msgspec

from mechdesign.model._grammar import Table
from mechdesign.base._docstrings import docstring
from mechdesign.base._errors import InputError
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.spec.document import VERSION
from mechdesign.spec.document import Document

__all__ = ["held", "schema"]


def __dir__() -> list[str]:
    return sorted(__all__)


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE = re.compile(r"^    (?P<name>\w+): (?P<text>.*(?:\n     +.*)*)", re.MULTILINE)


def schema(document: type[Table] = Document) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the specification that TOML stands for.

    `document` is its outermost table: that of a channel, or `mechdesign.spec.blowfish.specification.ReleaseDocument`.

    What depends on data, such as the number of probabilities, is no part of it: `Specification.problem` checks that.

    >>> sorted(schema()["required"])
    ['cost', 'domain', 'prior', 'privacy']
    """
    if not (isinstance(document, type) and issubclass(document, Table)):
        raise InputError("document", "is no table", value=type(document).__name__, bound="a class derived from Table")
    kinds: list[type[Table]] = [kind.table for kind in KINDS.values()] if document is Document else []
    outer: list[type[Table]] = [document, *kinds]
    tables = list(dict.fromkeys(inner for table in outer for inner in _tables(table)))
    _, found = msgspec.json.schema_components(tables, schema_hook=_hook, ref_template="#/$defs/{name}")
    for table in tables:
        _describe(found[table.__name__], table)
    whole = found.pop(document.__name__)
    whole["properties"]["version"]["const"] = VERSION
    if kinds:
        # Which kinds there are is known only now: other packages register some.
        required = {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]}
        whole["properties"]["privacy"] |= {"minItems": 1, "items": required}
    whole["title"] = f"mechdesign specification, version {VERSION}"
    cleaned: dict[str, Any] = _cleaned({"$schema": _DRAFT, **whole, "$defs": found})
    return cleaned


def _tables(table: type[Table]) -> Iterator[type[Table]]:
    """Yield a table and all that may stand in it."""
    yield table
    for hint in get_type_hints(table, include_extras=True).values():
        for inner in held(hint):
            yield from _tables(inner)


def held(hint: object) -> Iterator[type[Table]]:
    """Yield the tables that may stand at a key whose type is `hint`, or in a list there."""
    for meta in getattr(hint, "__metadata__", ()):
        yield from meta.extra["tables"]
    for each in get_args(hint):
        yield from held(each)


def _hook(kind: type) -> dict[str, Any]:
    if kind is Fraction:
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}
    raise TypeError(f"a table of a specification holds a {kind.__name__}, which has no JSON schema")


def _describe(described: dict[str, Any], table: type[Table]) -> None:
    """Add what the docstring of a table says of it and its keys, and which keys exclude each other."""
    summary, _, attributes = inspect.cleandoc(docstring(table)).partition("\nAttributes:\n")
    described["description"] = _joined(summary)
    for found in _ATTRIBUTE.finditer(attributes):
        described["properties"][found["name"]]["description"] = _joined(found["text"])
    if table.alternatives:
        described["oneOf"] = [
            {"required": [name]} | ({"not": {"required": [table.beside[name]]}} if name in table.beside else {})
            for name in table.alternatives
        ]


def _cleaned(value: Any) -> Any:
    """Leave out what stands for a key that is not there: TOML has no null."""
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _cleaned(each) for name, each in value.items() if (name, each) != ("default", None)}
    if "anyOf" in kept:
        choices = [choice for choice in kept.pop("anyOf") if choice != {"type": "null"}]
        kept = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **kept}
    return kept


def _joined(text: str) -> str:
    return " ".join(text.split())
