"""Paths into a specification, such as ``privacy.0.epsilon``: whether the grammar knows them, and what stands there."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from mechdesign.model._grammar import Raw
from mechdesign.model._grammar import Table
from mechdesign.model._grammar import holds
from mechdesign.base._errors import SpecificationError
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.spec.document import Document
from mechdesign.spec.grammar import held

__all__ = ["check_key", "files", "with_value"]

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
