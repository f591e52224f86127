"""Convert the values of a specification to its tables, and explain errors about keys.

Numbers on which a proof depends (ε, radius, minimum) become exact fractions. All other numbers become float64, rounded
once from the decimal number in the file.
"""

from __future__ import annotations

import difflib
import functools
import math
import operator
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

from mechdesign.base._check import LARGEST_NUMBER, LEAST_NUMBER, as_path, require_kind, suggest
from mechdesign.base._errors import InfeasibleError, InputError, Keys, Shown, SpecificationError, keys_of, path_of
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.data._layout import reading_as, withheld
from mechdesign.data.table import Layout
from mechdesign.model._grammar import Either, FilesTable, Raw, Table

# The remedy in errors about a text that is not TOML.
TOML = "write lines such as key = value, strings in quotes, and tables as [name]; `mechdesign examples city` prints one"

AnyTable = TypeVar("AnyTable", bound=Table)

_UNCHANGED: Mapping[str, str] = MappingProxyType({})
_WHERE = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<where>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_CHOICE = re.compile(r"Invalid (?:enum )?value .*", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?P<length> of length \d+)?, got .*", re.DOTALL)
# Keys for the layout of a file, see `mechdesign.data._layout`.
_LAYOUT = ("delimiter", "decimal", "encoding", "header", "numbered", "latitude", "longitude")
# Keys that are also the names of arguments of functions that read files.
_KEYS = (*_LAYOUT, "date", "time_format", "time_zone", "longitudes", "missing")
# Range of exact numbers, the same as in the verifier.
_EXACT = ("1e-400", "1e+400")
# Messages of msgspec contain this text instead of the key of a table with free names.
_ANY = "[...]"
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "a table",
    "str": "a string",
}


@dataclass(frozen=True)
class Source:
    """The place of a value in a specification: the keys that lead to it, and the folder and the layout of its files.

    A builder gets the place of its table, and raises `error` for a key there. `keys` is the one place where errors of
    other functions about their arguments become errors about keys, and `file` does so for the file of a table.

    >>> print(Source() / "privacy" / 1 / "epsilon")
    privacy[1].epsilon
    """

    path: Keys = ()
    folder: Path = Path()
    layout: Layout = field(default_factory=Layout)

    def __truediv__(self, key: str | int) -> Source:
        return replace(self, path=(*self.path, *(keys_of(key) if isinstance(key, str) else (key,))))

    def with_layout(self, files: FilesTable) -> Source:
        """Return this place with the layout that the table ``[files]`` declares."""
        with (self / "files").keys():
            return replace(self, layout=Layout(**structs.asdict(files)))

    def __str__(self) -> str:
        return path_of(self.path)

    def error(
        self, key: str | Keys, problem: str, *, value: object = None, bound: str = "", remedy: str = ""
    ) -> SpecificationError:
        """Return an error about a key below this place, or about the place itself if `key` is empty."""
        return SpecificationError((*self.path, *keys_of(key)), problem, value=value, bound=bound, remedy=remedy)

    @contextmanager
    def keys(self, renamed: Mapping[str, str] = _UNCHANGED) -> Iterator[None]:
        """Turn errors about arguments into errors about keys at or below this place.

        Keys have the same names as arguments of functions; `renamed` maps the other arguments to their keys.
        """
        try:
            yield
        except SpecificationError:
            raise
        except InputError as error:
            found = error.under(self.path, renamed)
            found.restate(_show_number(found.value))
            raise found from error
        except InfeasibleError as error:
            raise error.under(self.path, renamed) from error

    @contextmanager
    def file(self, table: object = None, name: str | None = None, key: str = "path") -> Iterator[Path]:
        """Yield the file `name`, by default the `path` of a table here; errors about it become errors about this place.

        An error about a file that cannot be opened names `key`. Errors about cells do not show them.
        """
        path = self.folder / (name if name is not None else getattr(table, "path", ""))
        given = {each: getattr(table, each, None) for each in _LAYOUT}
        for each in ("delimiter", "decimal", "encoding"):
            if given[each] is None and getattr(self.layout, each) != getattr(Layout(), each):
                given[each] = getattr(self.layout, each)
        try:
            with reading_as(**given):
                yield path
        except SpecificationError:
            raise
        except InputError as error:
            at, problem, value = "", error.problem, withheld(_show_number(error.value))
            if error.path in _KEYS:
                at, value = error.path, _show_number(error.value)
            elif error.path == "folder" or isinstance(error.__cause__, OSError):
                at, value = key, error.path if isinstance(error.__cause__, OSError) else error.value
            else:
                problem = f"{error.path} {problem}"
            error.restate(value)
            raise self.error(at, problem, value=value, bound=error.bound, remedy=error.remedy) from error


VERSION = 1
"""The version of the grammar; specifications with another version are refused."""


def read_text(path: str | os.PathLike[str]) -> str:
    """Read the text of a specification.

    Args:
        path: File to read, in UTF-8.

    Returns:
        The text, without a byte order mark.

    Raises:
        SpecificationError: The file cannot be opened, or is not in UTF-8.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "city.toml")
    ...     _ = file.write_text('title = "City"')
    ...     read_text(file)
    'title = "City"'
    """
    path = as_path(path, "path")
    source = Path(path)
    try:
        return source.read_text(encoding="utf-8-sig")
    except OSError as error:
        others = {each.stem: each for each in source.parent.glob("*.toml")}
        near = difflib.get_close_matches(source.name.removesuffix(".toml"), others, n=1)
        remedy = f"did you mean {others[near[0]]}?" if near and not source.exists() else ""
        problem = f"cannot be opened ({error.strerror})"
        raise SpecificationError(str(source), problem, bound="a file in TOML", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SpecificationError(str(source), f"is not a text in UTF-8 ({error.reason})") from error


def tables_of(text: str, source: str = "specification") -> Raw:
    """Parse a text in TOML, with decimal numbers as `decimal.Decimal`.

    Args:
        text: The text.
        source: The file of the text, for errors.

    Returns:
        The tables as nested dictionaries.

    Raises:
        SpecificationError: The text is not valid TOML.

    >>> tables_of("solver.tolerance = 0.1")
    {'solver': {'tolerance': Decimal('0.1')}}
    """
    require_kind(text, str, "text", "a text in TOML")
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        remedy = "this is the name of a file: use read_spec" if _names_file(text) else TOML
        raise SpecificationError(source, f"is not valid TOML: {error}", remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise SpecificationError(source, f"cannot be read: {error}") from error


def _names_file(text: str) -> bool:
    return text.strip().endswith(".toml") and len(text.split()) == 1


def check_version(data: Mapping[str, Any]) -> None:
    """Raise `SpecificationError` for another version of the grammar."""
    found = data.get("version", VERSION)
    if isinstance(found, int) and found != VERSION:
        raise SpecificationError("version", "is not known", value=found, bound=str(VERSION))


def convert(data: object, kind: type[AnyTable], path: str | Keys = ()) -> AnyTable:
    """Convert the tables `data` at `path` to the structure `kind`; errors name the key."""
    try:
        table = msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _explain(error, data, kind, keys_of(path)) from None
    _check_sizes(table, keys_of(path))
    return table


def _decode(kind: type, value: object) -> object:
    """Convert a value to a type that msgspec does not support."""
    if kind is Fraction:
        return exact(value, "")
    if issubclass(kind, Either):
        chosen = kind.kind_of(value)
        try:
            return msgspec.convert(value, chosen, dec_hook=_decode)
        except msgspec.ValidationError as error:
            # `_explain` turns this into an error with the place of the value.
            raise ValueError("does not match any kind", chosen) from error
    # msgspec expects this error for a type that the hook does not support.
    raise NotImplementedError(kind)


def _check_sizes(value: object, path: Keys) -> None:
    """Raise `SpecificationError` for a number outside the range of floats or 64-bit integers.

    Infinities and NaN are accepted here; each key has its own check.
    """
    if isinstance(value, Table):
        for name in value.__struct_fields__:
            _check_sizes(getattr(value, name), (*path, name))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _check_sizes(each, (*path, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, Table | list):
                _check_sizes(each, (*path, key))
    elif isinstance(value, int | float | Fraction) and (bound := _find_passed_bound(value)):
        raise SpecificationError(path, "is out of range", value=_short(value), bound=bound)


def _find_passed_bound(value: float | Fraction) -> str:
    """Return the allowed range of a number that is out of range, or "" if it is in range."""
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**63 else "an integer of 64 bits"
    if isinstance(value, float):
        usual = not math.isfinite(value) or LEAST_NUMBER <= abs(value) <= LARGEST_NUMBER
    else:
        usual = Fraction(_EXACT[0]) <= abs(value) <= Fraction(_EXACT[1])
    least, largest = _EXACT if isinstance(value, Fraction) else ("1e-100", "1e+100")
    return "" if usual or not value else f"0, or between {least} and {largest} in absolute value"


def _short(value: float | Fraction) -> object:
    """Return a short text of a number for an error, since it may have thousands of digits."""
    ratio = Fraction(value)
    bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if isinstance(value, float) or abs(bits) < 64:
        return _show_number(value)
    return Shown(f"about {'-' if value < 0 else ''}1e{math.floor(bits * math.log10(2))}")


def choice(value: str, choices: Iterable[str], path: str | Keys) -> str:
    """Return `value` if it is one of `choices`; otherwise raise `SpecificationError` with the most similar choice."""
    names = list(choices)
    if value in names:
        return value
    raise _unknown(value, names, path)


def parts(hint: Any) -> Iterator[Any]:
    """Yield the types that a value with the type `hint` may have, without None."""
    if get_origin(hint) is Annotated:
        yield from parts(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for each in get_args(hint):
            yield from parts(each)
    elif isinstance(hint, type) and issubclass(hint, Either):
        yield from hint.choices
    elif hint is not NoneType:
        yield hint


def is_table(hint: object) -> bool:
    """Return whether a type is a table of a specification."""
    return isinstance(hint, type) and issubclass(hint, Table)


def below(hints: Iterable[Any], key: str | int) -> list[Any]:
    """Return the types of the values at a key, or list index, in a value of one of the types `hints`."""
    found: list[object] = []
    for hint in hints:
        inner = get_args(hint)
        if is_table(hint):
            found += [each for name, each in get_type_hints(hint, include_extras=True).items() if name == key]
        elif get_origin(hint) is dict:
            found.append(inner[1])
        elif get_origin(hint) in (list, tuple) and isinstance(key, int):
            found.append(inner[key] if get_origin(hint) is tuple and key < len(inner) else inner[0])
    return [part for each in found for part in parts(each)]


def names_of(table: type[Table]) -> list[str]:
    """Return the keys of a table, with the key for its kind first."""
    tag = table.__struct_config__.tag_field
    return [*([tag] if tag else []), *table.__struct_fields__]


def _explain(error: msgspec.ValidationError, data: object, kind: Any, path: Keys) -> SpecificationError:
    match = _WHERE.fullmatch(str(error))
    problem, where = (match["problem"], match["where"] or "") if match else (str(error), "")
    hints: list[Any] = [*parts(kind)]
    tables: list[type[Table]] = []
    value: Any = data
    inside: Keys = ()
    for step in keys_of(f"specification{where}")[1:]:
        if step == _ANY:
            return _explain_inside(value, hints, (*path, *inside))
        tables = [hint for hint in hints if is_table(hint)]
        hints, value, inside = below(_like(hints, value), step), _at(value, step), (*inside, step)
    place = (*path, *inside)
    here = [hint for hint in _like(hints, value) if is_table(hint)]
    if found := _UNKNOWN.fullmatch(problem):
        return _unknown_key(found["key"], here[0], place)
    if found := _MISSING.fullmatch(problem):
        key = found["key"]
        tags = _tags(here) if key == here[0].__struct_config__.tag_field else ""
        return SpecificationError((*place, key), "is missing", bound=tags, remedy="" if tags else f"add {key} = …")
    cause = error.__cause__
    if cause is not None and isinstance(cause.__cause__, msgspec.ValidationError):
        return _explain(cause.__cause__, value, cause.args[1], place)
    if isinstance(cause, InputError):
        shown = None if cause.value is None else _show_number(value)
        return SpecificationError(place, cause.problem, value=shown, bound=cause.bound, remedy=cause.remedy)
    value = _show_number(value)
    if tables and place and place[-1] == tables[0].__struct_config__.tag_field:
        names = [str(table.__struct_config__.tag) for table in tables]
        if isinstance(value, str):
            return _unknown(value, names, place)
        return SpecificationError(place, "is not a kind", value=value, bound=f"one of {', '.join(names)}")
    if _CHOICE.fullmatch(problem):
        return _unknown(str(value), next(get_args(hint) for hint in hints if get_origin(hint) is Literal), place)
    return _wrong_type(problem, value, place or ("specification",))


def _explain_inside(values: Any, hints: Sequence[Any], place: Keys) -> SpecificationError:
    """Return the error about the first wrong value in a table with free names."""
    hint: Any = functools.reduce(operator.or_, below(hints, ""))
    for key, value in values.items():
        try:
            msgspec.convert(value, hint, dec_hook=_decode)
        except msgspec.ValidationError as error:
            return _explain(error, value, hint, (*place, key))
    raise AssertionError("msgspec accepts a value that it has refused")


def _wrong_type(problem: str, value: object, place: Keys) -> SpecificationError:
    found = _EXPECTED.fullmatch(problem)
    if found is None:
        return SpecificationError(place, f"is not accepted ({problem})", value=value)
    kinds = [_KINDS.get(name, name) for name in found["kinds"].split(" | ") if name != "null"]
    bound = " or ".join(kinds) + (found["length"] or "")
    remedy, written = "", path_of(place)
    if found["kinds"] == "array" and isinstance(value, Mapping):
        remedy = f"write [[{written}]] instead of [{written}]: there may be several"
    if "a table" in kinds and isinstance(value, list) and value and isinstance(value[0], Mapping):
        remedy = f"write [{written}] instead of [[{written}]]: there is only one"
    return SpecificationError(place, "has the wrong type", value=value, bound=bound, remedy=remedy)


def _unknown_key(key: str, table: type[Table], place: Keys) -> SpecificationError:
    """Return the error about an unknown key; its remedy is the right table or a similar key."""
    names = names_of(table)
    remedy = suggest(key, names)
    for name in table.__struct_fields__:
        if any(is_table(inner) and key in inner.__struct_fields__ for inner in below([table], name)):
            remedy = f"write it inside {name}: {name} = {{ …, {key} = … }}"
            break
    return SpecificationError((*place, key), "is not a known key", bound=f"one of {', '.join(names)}", remedy=remedy)


def _like(hints: Sequence[Any], value: object) -> list[Any]:
    """Return the tables of the kind that a value names, or all `hints` if the value names no kind."""
    tagged = [hint for hint in hints if is_table(hint) and hint.__struct_config__.tag is not None]
    if len(tagged) < 2 or not isinstance(value, Mapping):
        return list(hints)
    named = [hint for hint in tagged if value.get(hint.__struct_config__.tag_field) == hint.__struct_config__.tag]
    return named or list(hints)


def _tags(tables: Sequence[type[Table]]) -> str:
    return f"one of {', '.join(str(table.__struct_config__.tag) for table in tables)}"


def _at(value: Any, step: str | int) -> Any:
    """Return the value at a key or an index of another value, or None if there is none."""
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _unknown(value: str, names: Sequence[str], path: str | Keys) -> SpecificationError:
    bound, remedy = f"one of {', '.join(names)}", suggest(value, names)
    return SpecificationError(path, "is not known", value=value, bound=bound, remedy=remedy)


def _show_number(value: object) -> object:
    """Return a number as it is written in the file, not as Decimal('0.1')."""
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
        return {key: _show_number(each) for key, each in value.items()}
    return [_show_number(each) for each in value] if isinstance(value, list) else value
