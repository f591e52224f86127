"""What all tables of a specification have in common: how they are converted, and what an error about a key says.

A table is converted on its own, with the path at which it stands, so that an error names the key as the reader wrote
it: ``privacy[1].epsilon``. Numbers that a proof rests on (ε, radius, minimum) become exact fractions; all others become
float64, rounded once from the decimal in the file. The docstrings of the tables are the reference of the grammar: the
JSON schema takes its descriptions from them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from mechdesign.base._check import LARGEST_NUMBER, LEAST_NUMBER
from mechdesign.base._errors import InputError, Keys, Shown, SpecificationError, keys_of
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.data._layout import reading_as, withheld
from mechdesign.model._grammar import Table

# What a specification looks like, for errors about a text that is none.
TOML = "lines are key = value with texts in quotes, and [names] of tables; `mechdesign examples city` prints one"

AnyTable = TypeVar("AnyTable", bound=Table)

_WHERE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<where>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_CHOICE = re.compile(r"Invalid enum value .*", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?P<length> of length \d+)?, got .*", re.DOTALL)
# How a file is written, as its table says it, see `mechdesign.data._layout`.
_LAYOUT = ("delimiter", "decimal", "encoding", "header", "numbered", "latitude", "longitude")
# Arguments of readers of files that are keys of the same name.
_KEYS = (*_LAYOUT, "date", "time_format", "time_zone", "longitudes", "missing")
# Exact numbers, as the verifier reads them.
_EXACT = ("1e-400", "1e+400")
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "a table",
    "str": "a string",
}


def convert(data: object, kind: type[AnyTable], path: str) -> AnyTable:
    """Return the table `data`, which stands at `path`, as a `kind`; raise `SpecificationError` naming the key."""
    try:
        table = msgspec.convert(data, kind, dec_hook=_number)
    except msgspec.ValidationError as error:
        raise _explained(error, data, kind, path) from None
    for name in table.__struct_fields__:
        _check_sizes(getattr(table, name), join(path, name))
    return table


def _check_sizes(value: object, path: str) -> None:
    """Raise `SpecificationError` for a number that floats, or integers of 64 bits, cannot be reckoned with.

    Infinities and NaN pass: a key says itself whether it takes them.
    """
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _check_sizes(each, f"{path}[{index}]")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise SpecificationError(path, "is out of range", value=_short(value), bound="an integer of 64 bits")
    elif isinstance(value, float | Fraction) and not _is_of_usual_size(value):
        least, largest = _EXACT if isinstance(value, Fraction) else ("1e-100", "1e+100")
        bound = f"0, or between {least} and {largest} in absolute value"
        raise SpecificationError(path, "is out of range", value=_short(value), bound=bound)


def _is_of_usual_size(value: float | Fraction) -> bool:
    if isinstance(value, float):
        return not value or not math.isfinite(value) or LEAST_NUMBER <= abs(value) <= LARGEST_NUMBER
    return not value or Fraction(_EXACT[0]) <= abs(value) <= Fraction(_EXACT[1])


def _short(value: float | Fraction) -> object:
    """Return what an error shows of a number, which may have thousands of digits."""
    ratio = Fraction(value)
    bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if isinstance(value, float) or abs(bits) < 64:
        return _shown(value)
    return Shown(f"about {'-' if value < 0 else ''}1e{math.floor(bits * math.log10(2))}")


def one_of(table: Table, path: str, names: Sequence[str] = ()) -> str:
    """Return which of the alternatives, or of `names`, is there; raise `SpecificationError` unless exactly one is."""
    names = names or table.alternatives
    given = [
        name
        for name in names
        if getattr(table, name) is not None and (name not in table.beside or getattr(table, table.beside[name]) is None)
    ]
    if len(given) == 1:
        return given[0]
    problem = "is incomplete" if not given else f"has {' and '.join(given)}, which exclude each other"
    raise SpecificationError(path, problem, bound=f"given by exactly one of {', '.join(names)}")


def choice(value: str, choices: Iterable[str], path: str) -> str:
    """Return `value` if it is one of `choices`; raise `SpecificationError`, with the nearest of them, otherwise."""
    names = list(choices)
    if value in names:
        return value
    raise _unknown(value, names, path)


@contextmanager
def at(path: str | Keys, renamed: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Turn any `InputError` into a `SpecificationError` about a key at or below `path`.

    Arguments of functions and keys of tables are called alike; `renamed` lists the exceptions: argument to key.
    """
    try:
        yield
    except SpecificationError:
        raise
    except InputError as error:
        found = error.under(keys_of(path), renamed)
        found.restate(_shown(found.value))
        raise found from error


@contextmanager
def named(keys: Mapping[str, str]) -> Iterator[None]:
    """Turn an `InputError` about an argument of a function into a `SpecificationError` about the key it came from.

    `keys` lists the arguments that have another name, or place, in a specification.
    """
    with at("", keys):
        yield


@contextmanager
def in_file(path: str, table: object = None) -> Iterator[None]:
    """Turn any `InputError` about the contents of a file into a `SpecificationError` about the table at `path`.

    Of what stands in the file it shows the form only; see `mechdesign.data._layout`. How it is written is what the
    `table` says of it.
    """
    layout = {key: getattr(table, key, None) for key in _LAYOUT}
    try:
        with reading_as(**layout):
            yield
    except SpecificationError:
        raise
    except InputError as error:
        if error.path in _KEYS:
            place, problem = join(path, error.path), error.problem
        elif error.path == "folder" or isinstance(error.__cause__, OSError):
            place, problem = join(path, "path"), error.problem
        else:
            place, problem = path, f"{error.path} {error.problem}"
        value: object = error.path
        if not isinstance(error.__cause__, OSError):
            value = _shown(error.value) if place != path else withheld(_shown(error.value))
            error.restate(value)
        raise SpecificationError(place, problem, value=value, bound=error.bound, remedy=error.remedy) from error


def join(path: str, key: str) -> str:
    """Return the path of `key` below `path`."""
    return path + key if not path or not key or key.startswith("[") else f"{path}.{key}"


def _number(kind: type, value: object) -> object:
    if kind is Fraction:
        return exact(value, "")
    # What msgspec expects of a hook that is asked for a type it does not know.
    raise NotImplementedError(kind)


def _explained(error: msgspec.ValidationError, data: object, kind: type[Table], path: str) -> SpecificationError:
    match = _WHERE.fullmatch(str(error))
    what, where = (match["what"], match["where"] or "") if match else (str(error), "")
    place = path + where if path else where.removeprefix(".")
    names = [field.name for field in msgspec.structs.fields(kind)]
    if found := _UNKNOWN.fullmatch(what):
        return SpecificationError(
            join(place, found["key"]),
            "is not a known key",
            bound=f"one of {', '.join(names)}",
            remedy=_inner(found["key"], kind, where) or _suggestion(found["key"], names),
        )
    if found := _MISSING.fullmatch(what):
        return SpecificationError(join(place, found["key"]), "is missing", remedy=f"add {found['key']} = …")
    value = _shown(_inside(data, where))
    if _CHOICE.fullmatch(what):
        return _unknown(str(value), _choices(kind, where.removeprefix(".")), place)
    if isinstance(error.__cause__, InputError):
        return SpecificationError(place, error.__cause__.problem, value=value, bound=error.__cause__.bound)
    if found := _EXPECTED.fullmatch(what):
        kinds = [_KINDS.get(name, name) for name in found["kinds"].split(" | ") if name != "null"]
        bound = " or ".join(kinds) + (found["length"] or "")
        remedy = ""
        if found["kinds"] == "array" and isinstance(value, Mapping):
            remedy = f"write [[{place}]] in place of [{place}]: there may be several"
        if found["kinds"] == "object" and isinstance(value, list) and value and isinstance(value[0], Mapping):
            remedy = f"write [{place}] in place of [[{place}]]: there is one"
        return SpecificationError(
            place or "specification", "has the wrong type", value=value, bound=bound, remedy=remedy
        )
    return SpecificationError(place or "specification", f"is not accepted ({what})", value=value)


def _unknown(value: str, names: Sequence[str], path: str) -> SpecificationError:
    bound, remedy = f"one of {', '.join(names)}", _suggestion(value, names)
    return SpecificationError(path, "is not known", value=value, bound=bound, remedy=remedy)


def _choices(kind: type[Table], key: str) -> tuple[str, ...]:
    """Return the texts that a key accepts which is one of a few."""
    of = get_type_hints(kind)[key]
    return next(get_args(each) for each in (of, *get_args(of)) if get_origin(each) is Literal)


def _inside(data: object, where: str) -> object:
    """Return what stands at the path `where` in `data`."""
    for step in _STEP.finditer(where):
        try:
            data = data[step["key"] if step["key"] is not None else int(step["index"])]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _inner(key: str, kind: type[Table], where: str) -> str:
    """Return in which table below, if any, a key belongs that is unknown here."""
    if where:
        return ""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        held = [meta.extra["tables"] for each in (hint, *get_args(hint)) for meta in getattr(each, "__metadata__", ())]
        if any(key in inner.__struct_fields__ for tables in held for inner in tables):
            return f"write it inside {name}: {name} = {{ …, {key} = … }}"
    return ""


def _suggestion(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _shown(value: object) -> object:
    """Return a number as the reader wrote it, rather than as Decimal('0.1')."""
    if isinstance(value, Decimal) and value.is_finite():
        value = Fraction(value) if abs(value.adjusted()) < 400 else str(value)
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        near = nearest(value)
        return near if math.isfinite(near) and Fraction(repr(near)) == value else exact_text(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value
