"""Convert the values of a specification to its tables, and explain errors about keys.

Numbers on which a proof depends (ε, radius, minimum) become exact fractions. All other numbers become float64, rounded
once from the decimal number in the file.
"""

from __future__ import annotations

import difflib
import functools
import io
import math
import operator
import os
import re
import tomllib
from abc import ABC
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

from mechdesign.base._check import LARGEST_NUMBER as _LARGEST
from mechdesign.base._check import LEAST_NUMBER as _LEAST
from mechdesign.base._check import as_path, require_kind, suggest
from mechdesign.base._errors import InfeasibleError, InputError, Keys, Shown, SpecificationError, keys_of, path_of
from mechdesign.base._files import read_regular
from mechdesign.certify._exact import exact, exact_text
from mechdesign.data.table import Layout
from mechdesign.model._grammar import FilesTable, Raw, Table

# The remedy in errors about a text that is not TOML.
TOML = "write lines such as key = value, strings in quotes, and tables as [name]; `mechdesign examples city` prints one"

AnyTable = TypeVar("AnyTable", bound=Table)

_UNCHANGED: Mapping[str, str] = MappingProxyType({})
_FIELD = re.compile(r"Object (?P<fault>contains unknown|missing required) field `(?P<key>.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?P<more>.*?)(?P<got>, got .*)?", re.DOTALL)
_DECIMAL = re.compile(r"Decimal\('([^']*)'\)")
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

    def user_column(self, user: str | bool | None, wider: str = "") -> str | None:
        """Return the column of a key `user`, None for one person's rows; `wider` is a file with further columns."""
        problem = "cannot be true" if user is True else f"is missing, since {wider} has further columns"
        if user is True or (user is None and wider):
            raise self.error("user", problem, value=user, bound="a column, or false: all rows are one person's")
        return None if user is False else user

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
            found.value = _as_written(found.value)
            raise found from error
        except InfeasibleError as error:
            raise error.under(self.path, renamed) from error

    @contextmanager
    def file(self, table: Any, name: str | None = None, key: str = "") -> Iterator[Path]:
        """Yield the file `name`, by default the path of the table here; errors about it become errors about its keys.

        Errors about the content of the file become errors about `key`, by default about this place.
        """
        given = table.path if name is None else name
        if not given:
            raise self.error(key or "path", "is empty", bound="the name of a file")
        try:
            yield self.folder / given
        except SpecificationError:
            raise
        except InputError as error:
            problem, value = f"{error.path} {error.problem}", error.value
            if error.path in table.__struct_fields__:
                key, problem = error.path, error.problem
            elif error.path == "folder" or isinstance(error.__cause__, OSError):
                key, problem, value = key or "path", error.problem, error.value or error.path
            raise self.error(key, problem, value=value, bound=error.bound, remedy=error.remedy) from error


VERSION: Literal[1] = 1
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
        # A pipe would make this process wait.
        return io.TextIOWrapper(io.BytesIO(read_regular(source)), encoding="utf-8-sig").read()
    except OSError as error:
        others = {each.stem: each for each in source.parent.glob("*.toml")}
        near = difflib.get_close_matches(source.name.removesuffix(".toml"), others, n=1)
        remedy = f"did you mean {others[near[0]]}?" if near and not source.exists() else ""
        problem = f"cannot be opened ({error.strerror})"
        raise SpecificationError(str(source), problem, bound="a file in TOML", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SpecificationError(str(source), "is not a text in UTF-8", remedy="save it as UTF-8") from error


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
        # Python advises to raise its limit on the digits of a number.
        raise SpecificationError(source, f"cannot be read: {str(error).partition('; use sys')[0]}") from error


def _names_file(text: str) -> bool:
    return text.strip().endswith(".toml") and len(text.split()) == 1


PLANNED = "planned"


class Epsilon(ABC):  # noqa: B024
    """An exact ε, or "planned"."""


Epsilon.register(Fraction)
Epsilon.register(str)


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
    if kind is Epsilon:
        return value if value == PLANNED else exact(value, "")
    # msgspec expects this error for a type that the hook does not support.
    raise NotImplementedError(kind)


def _check_sizes(value: object, path: Keys) -> None:
    """Raise `SpecificationError` for a number outside the range of floats or 64-bit integers.

    Infinities and NaN are accepted here; each key has its own check. `exact` checked the exact numbers.
    """
    if isinstance(value, Table):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        for key, each in value.items():
            _check_sizes(each, (*path, key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _check_sizes(each, (*path, index))
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        shown = Shown(f"about {'-' if value < 0 else ''}1e{math.floor(value.bit_length() * math.log10(2))}")
        raise SpecificationError(path, "is out of range", value=shown, bound="an integer of 64 bits")
    elif isinstance(value, float) and value and math.isfinite(value) and not _LEAST <= abs(value) <= _LARGEST:
        bound = f"0, or between {_LEAST:g} and {_LARGEST:g} in absolute value"
        raise SpecificationError(path, "is out of range", value=value, bound=bound)


def parts(hint: Any) -> Iterator[Any]:
    """Yield the types that a value with the type `hint` may have, without None."""
    if get_origin(hint) is Annotated:
        yield from parts(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for each in get_args(hint):
            yield from parts(each)
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


def _explain(error: msgspec.ValidationError, data: Any, kind: Any, path: Keys) -> SpecificationError:
    """Return the error about a key: the sentence of msgspec, with the accepted names, kinds and values."""
    problem, _, where = str(error).partition(" - at `$")
    value, hints, above, place = data, [*parts(kind)], [], path
    for step in keys_of(f"specification{where.removesuffix('`')}")[1:]:
        if step == _ANY:
            return _explain_inside(value, hints, place)
        above, hints = hints, below(_like(hints, value), step)
        value, place = _at(value, step), (*place, step)
    tables = [hint for hint in _like(hints, value) if is_table(hint)]
    if isinstance(cause := error.__cause__, InputError):
        shown = None if cause.value is None else _as_written(value)
        return SpecificationError(
            (*place, *cause.keys), cause.problem, value=shown, bound=cause.bound, remedy=cause.remedy
        )
    if found := _FIELD.fullmatch(problem):
        key, names = found["key"], names_of(tables[0])
        if found["fault"] == "missing required":
            bound = f"one of {', '.join(_tags(tables))}"
            if key != tables[0].__struct_config__.tag_field:
                bound = get_type_hints(tables[0], include_extras=True)[key].__metadata__[0].description.rstrip(".")
            return SpecificationError((*place, key), "is missing", bound=bound)
        remedy = "write it in [files]" if key in FilesTable.__struct_fields__ else suggest(key, names)
        return SpecificationError(
            (*place, key), "is not a known key", bound=f"one of {', '.join(names)}", remedy=remedy
        )
    if problem.startswith("Invalid"):
        choices = [str(name) for hint in hints if get_origin(hint) is Literal for name in get_args(hint)]
        return _unknown(value, choices or _tags([hint for hint in above if is_table(hint)]), place)
    found = _EXPECTED.fullmatch(problem)
    kinds = found["kinds"].split(" | ") if found else []
    bound = " or ".join(_KINDS.get(name, name) for name in kinds if name != "null")
    bound += found["more"] if found else ""
    name = path_of(place)
    remedy = f"write [[{name}]] instead of [{name}]" if kinds == ["array"] and isinstance(value, Mapping) else ""
    problem = ("has the wrong type" if found["got"] else "is out of range") if found else f"is not accepted ({problem})"
    return SpecificationError(
        place or ("specification",), problem, value=_as_written(value), bound=bound, remedy=remedy
    )


def _explain_inside(values: Any, hints: Sequence[Any], place: Keys) -> SpecificationError:
    """Return the error about the first wrong value in a table with free names."""
    hint: Any = functools.reduce(operator.or_, below(hints, ""))
    for key, value in values.items():
        try:
            msgspec.convert(value, hint, dec_hook=_decode)
        except msgspec.ValidationError as error:
            return _explain(error, value, hint, (*place, key))
    raise AssertionError("msgspec accepts a value that it has refused")


def _like(hints: Sequence[Any], value: object) -> list[Any]:
    """Return the tables of the kind that a value names, or all `hints` if the value names no kind."""
    named = []
    if isinstance(value, Mapping):
        configs = [(hint, hint.__struct_config__) for hint in hints if is_table(hint)]
        named = [hint for hint, config in configs if config.tag and value.get(config.tag_field) == config.tag]
    return named or list(hints)


def _tags(tables: Sequence[type[Table]]) -> list[str]:
    return [str(table.__struct_config__.tag) for table in tables]


def _at(value: Any, step: str | int) -> Any:
    """Return the value at a key or an index of another value, or None if there is none."""
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _unknown(value: object, names: Sequence[str], path: str | Keys) -> SpecificationError:
    bound, remedy = f"one of {', '.join(names)}", suggest(value, names)
    return SpecificationError(path, "is not known", value=value, bound=bound, remedy=remedy)


def _as_written(value: object) -> object:
    """Return a value whose numbers an error shows as they are written, not as Decimal('0.1') or Fraction(1, 10)."""
    if isinstance(value, Fraction):
        return Shown(exact_text(value))
    text = repr(value)
    return Shown(_DECIMAL.sub(r"\1", text)) if "Decimal(" in text else value
