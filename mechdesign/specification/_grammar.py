"""JSON schema; dotted paths."""

from __future__ import annotations

import difflib
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from mechdesign.base._docstrings import docstring
from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.model._grammar import Raw, Table, holds
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.specification._document import VERSION, Document

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE = re.compile(r"^    (?P<name>\w+): (?P<text>.*(?:\n     +.*)*)", re.MULTILINE)


def schema(document: type[Table] = Document) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the specification that TOML stands for.

    `document` is its outermost table: that of a channel, or `mechdesign.specification.ReleaseDocument`.

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


# In every table that has them these keys name a file, or a folder, of data.
_FILES = ("path", "budgets")
# In every table that has them these keys list such names.
_LISTS = ("paths",)
# What is not about one design.
_FIXED = ((Document, "sweep"), (Document, "version"))
_WITHOUT_FILES = ("ledger", "solver", "sweep", "title")


def check_key(key: str, path: str) -> None:
    """Raise `SpecificationError`, which names `path`, unless the grammar knows the dotted path `key`.

    Keys that a specification may leave out are known, too; steps into lists are numbers, counted from 0.
    """
    hints: list[object] = []
    tables: tuple[type[Table], ...] = (Document,)
    steps = key.split(".")
    for depth, step in enumerate(steps):
        before = ".".join(steps[:depth])
        items = [item for hint in hints if get_origin(hint) in (list, tuple) for item in get_args(hint)]
        names = {name for table in tables for name in _names(table)}
        if items and step.isdecimal() and step.isascii():
            hints = items
        elif step in names:
            hints = [_hint(table, step) for table in tables if step in _names(table)]
        elif names:
            raise _unknown(path, f"{before}.{step}" if before else step, step, sorted(names))
        elif items:
            remedy = f"count from 0, as in {before}.0"
            raise SpecificationError(path, f"{before} is a list, and {step!r} no place in it", remedy=remedy)
        elif not any(get_origin(hint) is dict for hint in hints):
            raise SpecificationError(path, f"{before} is a value without keys", remedy=f"sweep {before} itself")
        else:
            # Such as the options of a solver, which have names of its own.
            return
        hints = [part for hint in hints for part in _alternatives(hint)]
        tables = tuple(dict.fromkeys(table for hint in hints if get_origin(hint) is not list for table in held(hint)))


def with_value(data: Raw, key: str, value: object, path: str) -> Raw:
    """Return the tables `data` with `value` at the dotted path `key`; tables on the way that are not there are made.

    Raises `SpecificationError`, which names `path`, where the way leads through what is no table, or past a list's end.
    """
    step, _, rest = key.partition(".")
    changed: Raw = _replaced(data, step, rest, value, "", path)
    return changed


def files(data: object) -> Iterator[str]:
    """Yield the names of all files, and folders, of data in the tables of a specification."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key in _FILES and isinstance(value, str):
                yield value
            elif key in _LISTS and isinstance(value, list):
                yield from value
            elif key not in _WITHOUT_FILES:
                yield from files(value)
    elif isinstance(data, list):
        for value in data:
            yield from files(value)


def _replaced(data: Any, step: str, rest: str, value: object, before: str, path: str) -> Any:
    here = f"{before}.{step}" if before else step
    if isinstance(data, list):
        if not (step.isdecimal() and step.isascii() and int(step) < len(data)):
            bound = f"between 0 and {len(data) - 1}" if data else "a place in the list, which is empty"
            raise SpecificationError(path, f"has no {here} in the specification", value=step, bound=bound)
        place: Any = int(step)
        inner: Any = data[place]
        copied: Any = [*data]
    elif isinstance(data, dict):
        place, inner, copied = step, data.get(step, {}), {**data}
    else:
        raise SpecificationError(
            path,
            f"leads through {before}, which has a value in the specification",
            value=str(data),
            remedy=f"sweep {before} itself",
        )
    if rest:
        following, _, rest = rest.partition(".")
        value = _replaced(inner, following, rest, value, here, path)
    copied[place] = value
    return copied


def _names(table: type[Table]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(table) if (table, field.name) not in _FIXED]


def _hint(table: type[Table], name: str) -> object:
    if (table, name) == (Document, "privacy"):
        # Which kinds there are is known only now: other packages register some.
        return list[Annotated[Raw, holds(*(kind.table for kind in KINDS.values()))]]
    return get_type_hints(table, include_extras=True)[name]


def _alternatives(hint: object) -> tuple[object, ...]:
    """Return what a union is one of, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _unknown(path: str, key: str, step: str, names: list[str]) -> SpecificationError:
    close = difflib.get_close_matches(step, names, n=1)
    remedy = f"did you mean {close[0]}?" if close else ""
    return SpecificationError(
        path, f"{key} is not a key of a specification", value=step, bound=f"one of {', '.join(names)}", remedy=remedy
    )
