"""Read tables as they are declared: CSV with a header line (plain or gzip), Parquet, or an object with named columns.

Nothing is guessed. What does not fit the declared layout is refused with the line of the file, the column and the key
that would help; no error shows the content of a cell.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from functools import cache
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._check import as_number, as_path, require_unmasked
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._files import read_regular
from mechdesign.base._names import require_one_index
from mechdesign.certify._archive import max_unpacked_bytes
from mechdesign.certify._texts import from_cell

UNITS = {"unix": 1, "unix-ms": 10**3, "unix-us": 10**6, "unix-ns": 10**9}
"""Time formats for numbers since 1970, with their units per second."""

PANDAS = (
    "pandas can write the file in this form:\n"
    "    import pandas as pd\n"
    '    frame = pd.read_csv("{}", sep=";", decimal=",", encoding="latin-1")\n'
    '    frame.to_csv("new.csv", index=False)'
)
"""The remedy for a file with another layout that no specification declares."""

_NANOSECONDS = 10**9
# The years 1 to 9999 in seconds since 1970, the range of `datetime`.
_SECONDS = range(-62_135_596_800, 253_402_300_800)
# ISO 8601 with signs: date, time, digits below the second, and offset. `datetime` would also take digits alone, and
# would take an offset without a time of day as the time of day.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)(?:(?<=:\d\d:\d\d)[.,](\d+))?"
    r"((?<!-\d\d-\d\d)(?:Z|[+-]\d\d(?::?[0-5]\d)?))?",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN_DIRECTIVES = frozenset("YymdjHIMSfpbBaAz%")
# The directives that give a day of a year together.
_DAYS = tuple(map(set, ("j", "dm", "db", "dB")))
# Directives of numbers without a sign between them, and the digits of a number that are not two.
_TOGETHER = re.compile(r"(?:%[YymdjHIMSf]){2,}|%.|(?:\\\s)+", re.DOTALL)
_DIGITS = {"Y": "4", "j": "3", "f": "1,6"}
# Delimiters that a message proposes if they occur in a first line of one column.
_DELIMITERS = {";": '";"', "\t": r'"\t"', "|": '"|"', ",": '","'}


def _check_format(form: object) -> None:
    """Raise `InputError` unless a time format is known and determines an instant."""
    if form in UNITS:
        return
    parts = [each for each in _DIRECTIVE.findall(form) if each != "%"] if isinstance(form, str) else []
    bound = f'a pattern such as "%d/%m/%Y %H:%M:%S", or one of {", ".join(UNITS)}'
    problem = ""
    if not parts:
        problem = "is not a time format"
    elif not _KNOWN_DIRECTIVES.issuperset(parts):
        problem = "has a directive that is not supported"
        bound = f"a pattern of {', '.join('%' + each for each in sorted(_KNOWN_DIRECTIVES))}"
    elif len(parts) != len(set(parts)):
        problem = "contains a directive twice"
    elif len({"Y", "y"} & set(parts)) != 1:
        problem = "does not have one year"
    elif set("djmbB") & set(parts) not in _DAYS:
        problem = "does not have one day of the year"
    elif ("I" in parts) != ("p" in parts):
        problem, bound = "has one of %I and %p without the other", "%I and %p together, or %H for 24 hours"
    if problem:
        raise InputError("time_format", problem, value=form, bound=bound)


def _zone_of(name: object) -> tzinfo:
    """Return the zone with a name; raise `InputError` if it is unknown."""
    if name == "UTC":
        return UTC
    with suppress(ValueError, OSError, ZoneInfoNotFoundError):
        if isinstance(name, str):
            return ZoneInfo(name)
    remedy = "" if available_timezones() else "this machine has no zone database: pip install tzdata"
    bound = 'a name such as "UTC" or "Europe/Zurich"'
    raise InputError("time_zone", "is not a time zone", value=name, bound=bound, remedy=remedy)


@dataclass(frozen=True)
class Layout:
    """The layout of a file, as the keys of ``[files]`` declare it.

    Attributes:
        delimiter: The character between columns.
        decimal: The decimal sign, "." or ",".
        encoding: The encoding of the text; a byte order mark is skipped.
        time_format: A pattern of `datetime.strptime`, or "unix", "unix-ms", "unix-us" or "unix-ns"; ISO 8601 if None.
        time_zone: The zone of times without an offset, such as "Europe/Zurich".
        missing: The share of rows of movement data that may be left out, in [0, 1].
        declared: Whether a specification or a call declares the layout, so that an error names its keys.

    Raises:
        InputError: A value is not possible; the path is the key.

    >>> Layout(delimiter=";", decimal=",").encoding
    'utf-8'
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    time_format: str | None = None
    time_zone: str = "UTC"
    missing: float = 0.05
    declared: bool = True

    def __post_init__(self) -> None:
        one = isinstance(self.delimiter, str) and len(self.delimiter) == 1
        if not one or self.delimiter.isalnum() or self.delimiter in '"\r\n\0':
            bound = "one character that is neither a letter, a digit, a quote nor a line break"
            raise InputError("delimiter", "is not a delimiter", value=self.delimiter, bound=bound)
        if self.decimal not in (".", ","):
            raise InputError("decimal", "is not a decimal sign", value=self.decimal, bound='"." or ","')
        try:
            mark = "\ufeff".encode(self.encoding, "ignore")
            io.TextIOWrapper(io.BytesIO(mark), codecs.lookup(self.encoding).name).read()
        except (LookupError, ValueError, TypeError) as error:
            bound = 'an encoding that Python knows, such as "utf-8", "latin-1" or "gb18030"'
            raise InputError("encoding", "is not an encoding of texts", value=self.encoding, bound=bound) from error
        if self.time_format is not None:
            _check_format(self.time_format)
        _zone_of(self.time_zone)
        if not 0 <= as_number(self.missing, "missing") <= 1:
            raise InputError("missing", "is not a share of rows", value=self.missing, bound="between 0 and 1")

    def remedy(self, file: str | Path, key: str, why: str = "") -> str:
        """Return the remedy that declares a key, or the lines of pandas if nobody declares the layout of the file."""
        return f"set {key} in [files]" + (f": {why}" if why else "") if self.declared else PANDAS.format(file)


FIXED = Layout(declared=False)
"""The layout of files that no specification names."""


class Instants(NamedTuple):
    """Instants: whole seconds since 1970, rounded down, and nanoseconds of the second, int64 of shape (rows,)."""

    seconds: Integers
    nanoseconds: Integers


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, with the line of the file where each row begins.

    Attributes:
        name: The file, or "" for an object in memory.
        columns: The columns by name: texts of a file, or values of an object.
        lines: The line of each row; None for Parquet files and for objects, whose rows are counted from 0.
        layout: The layout of the file.
        others: The names of the columns that were not read.

    >>> table = read_table({"lat": ["46.95", "north"]})
    >>> table.floats("lat")[1].tolist(), table.where(1, "lat")
    ([False, True], 'row 1, column lat')
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int] | None
    layout: Layout = FIXED
    others: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int, column: str = "") -> str:
        """Return the place of a row or a cell, for an error."""
        place = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return ", ".join(filter(None, (self.name, place, column and f"column {column}")))

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column; a missing value of an object is an empty text."""
        values = self.columns[column]
        return [value if isinstance(value, str) else _text_of(value) for value in values]

    def floats(self, column: str) -> tuple[Floats, Flags]:
        """Return the numbers of a column, and which of its cells are not finite numbers."""
        values = self.columns[column]
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            numbers = values.astype(np.float64)
        else:
            numbers = _to_floats(self._plain(self.texts(column)))
        return numbers, ~np.isfinite(numbers)

    def numbers(self, column: str) -> Floats:
        """Return the numbers of a column; raise `InputError` for the first cell that is not a finite number."""
        numbers, bad = self.floats(column)
        if bad.any():
            raise self.no_number(int(np.argmax(bad)), column)
        return numbers

    def times(self, column: str) -> tuple[Instants, Flags]:
        """Return the instants of a column, exact to the nanosecond, and which of its cells are not times."""
        values = self.columns[column]
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            if self.layout.time_format is not None:
                bound, remedy = "no time_format for a column of times", "remove time_format"
                raise InputError("time_format", "is given for a column of times", bound=bound, remedy=remedy)
            if self.layout.time_zone == "UTC":
                bad = are_no_times(values)
                return _instants_of(values, bad), bad
        read, found = _reader(self.layout), array("q")
        for text in self.texts(column):
            try:
                found.extend(read(text.strip()))
            except (ValueError, OverflowError):
                found.extend((0, -1))
        both = np.array(found, dtype=np.int64).reshape(-1, 2)
        return Instants(both[:, 0], both[:, 1]), (both[:, 1] < 0) | are_no_times(both[:, 0].astype("datetime64[s]"))

    def no_number(self, row: int, column: str) -> InputError:
        """Return the error for a cell that is not a finite number."""
        text = _text_of(self.columns[column][row])
        problem = "is not a number" if text.strip() else "is empty"
        other = {".": ",", ",": "."}[self.layout.decimal]
        remedy = ""
        if other in text and np.isfinite(_to_floats([text.replace(other, ".")])[0]):
            remedy = self.layout.remedy(self.name, f'decimal = "{other}"')
        return InputError(self.where(row, column), problem, bound="a finite number", remedy=remedy)

    def no_time(self, row: int, column: str) -> InputError:
        """Return the error for a cell that is not a time."""
        form = self.layout.time_format
        bound = "ISO 8601, such as 2026-01-31 09:30" if form is None else f"in the format {form!r}"
        problem, remedy = "is not a time", self.layout.remedy(self.name, 'time_format = "…"', "the format of the times")
        try:
            text = _text_of(self.columns[column][row]).strip()
            if not text:
                problem, remedy = "has no time", ""
            _reader(self.layout)(text)
        except _ClockChangeError:
            problem = "occurs twice or never, because clocks change"
            remedy = self.layout.remedy(
                self.name, 'time_zone = "…"', "the zone of the times; or write offsets, such as +01:00"
            )
        except (ValueError, OverflowError):
            pass
        return InputError(self.where(row, column), problem, bound=bound, remedy=remedy)

    def _plain(self, texts: list[str]) -> list[str]:
        """Return texts with decimal points; a point in a number with a decimal comma becomes a fault."""
        if self.layout.decimal == ".":
            return texts
        return ["" if "." in text else text.replace(",", ".") for text in texts]


def read_table(source: Any, columns: Iterable[str] | None = None, layout: Layout | None = None) -> Table:
    """Read a table.

    Args:
        source: A path of a text (.gz: compressed by gzip) or a Parquet file (.parquet), a DataFrame, or a mapping.
        columns: The names of the columns to read; None reads all columns.
        layout: The layout; None is that of files that no specification names.

    Returns:
        The columns and the lines of their rows; a table may have no rows.

    Raises:
        InputError: The table does not fit the layout, lacks a column or repeats one.
        MissingDependencyError: A Parquet file is read without PyArrow.

    >>> read_table({"user": ["ada", "bob"], "age": [36, None]}).texts("age")
    ['36', '']
    """
    wanted, layout = None if columns is None else list(dict.fromkeys(columns)), layout or FIXED
    if not isinstance(source, str | PathLike):
        return _of_object(source, wanted, "source", Table("", {}, None, layout))
    path = as_path(source, "path")
    return _of_parquet(path, wanted, layout) if path.suffix.lower() == ".parquet" else _of_text(path, wanted, layout)


def content_of(path: Path) -> bytes:
    """Return the bytes of a regular file, unpacked if its name ends in .gz; raise `InputError` if it cannot be read."""
    try:
        content = read_regular(path)
        if path.suffix.lower() != ".gz":
            return content
        limit = max_unpacked_bytes(len(content))
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(content)).read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(str(path), "is not a whole gzip file", bound="a file that gzip wrote") from error
    except MemoryError as error:
        raise InputError(str(path), "does not fit into memory", bound="a smaller file") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(str(path), f"cannot be opened ({reason})", bound="a file that exists") from error
    if len(unpacked) > limit:
        raise InputError(str(path), "unpacks to too much", bound=f"at most {limit} bytes", remedy="unpack it first")
    return unpacked


def read_rows(path: Path, layout: Layout | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of a CSV text where each row begins, and its fields; a blank line has no fields."""
    layout, line = layout or FIXED, 0
    content, encoding = content_of(path), layout.encoding
    try:
        content = content.removeprefix("\ufeff".encode(encoding, "ignore"))
        lines: Iterable[str] = io.TextIOWrapper(io.BytesIO(content), encoding, newline="")
        if b"\0" in content:
            lines = _without_zeros(lines, path, layout)
        # Files of this package escape what a spreadsheet would evaluate.
        escaped = b"'" in content
        reader = csv.reader(lines, delimiter=layout.delimiter, strict=True)
        for row in reader:
            yield line + 1, list(map(from_cell, row)) if escaped else row
            line = reader.line_num
    except UnicodeError:
        where = f"{path}, line {_first_undecodable(content, encoding)}"
        remedy = layout.remedy(path, 'encoding = "…"', "the encoding of the file, such as latin-1 or utf-16")
        bound = f"a text in {encoding}"
        raise InputError(where, f"is not a text in {encoding}", bound=bound, remedy=remedy) from None
    except csv.Error as error:
        remedy = f"a field has at most {csv.field_size_limit()} characters" if "limit" in str(error) else ""
        where, bound = f"{path}, line {line + 1}", "a row of CSV, with closed quotes"
        raise InputError(where, f"cannot be read ({error})", bound=bound, remedy=remedy) from error


def _first_undecodable(content: bytes, encoding: str) -> int:
    """Return the line of the first byte that is not of the encoding."""
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        content = content[: error.start]
    except UnicodeError:
        return 1
    text = content.decode(encoding, errors="ignore")
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


def _without_zeros(lines: Iterable[str], path: Path, layout: Layout) -> Iterator[str]:
    """Yield the lines of a text; raise `InputError` for the first line with a zero byte."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            remedy = layout.remedy(path, 'encoding = "utf-16"', "if the file is in UTF-16; other files are no texts")
            raise InputError(f"{path}, line {number}", "has a zero byte", bound="a text", remedy=remedy)
        yield line


def _of_text(path: Path, wanted: list[str] | None, layout: Layout) -> Table:
    """Return the columns of a CSV text with a header line."""
    given = read_rows(path, layout)
    _, header = next(given, (1, []))
    if not header:
        raise InputError(f"{path}, line 1", "is blank", bound="a header line with the names of the columns")
    names, places = _places_of(header, wanted, f"{path}, line 1", layout)
    pick: Callable[[list[str]], Sequence[str]] = lambda row: [row[place] for place in places]  # noqa: E731
    if len(places) > 1:
        pick = itemgetter(*places)
    width, blank, lines, rows = len(header), 0, array("q"), list[Sequence[str]]()
    for line, row in given:
        if blank or len(row) != width:
            # Blank lines may end a table; in a table of one column, a blank line is a row.
            row = row or [""]
            if row == [""] and width > 1:
                blank = blank or line
                continue
            if blank or len(row) != width:
                raise _ragged(path, blank or line, 0 if blank else len(row), width, layout)
        lines.append(line)
        rows.append(pick(row))
    columns: list[Sequence[str]] = list(zip(*rows, strict=True)) or [()] * len(names)
    others = tuple(name for name in header if name not in names)
    return Table(str(path), dict(zip(names, columns, strict=True)), lines, layout, others)


def _places_of(
    header: Sequence[str], wanted: list[str] | None, where: str, layout: Layout = FIXED
) -> tuple[list[str], list[int]]:
    """Return the columns to read and their positions; raise `InputError` if one is missing or repeated."""
    names = list(header) if wanted is None else wanted
    for name in names:
        if header.count(name) > 1:
            remedy = "rename one of them"
            raise InputError(where, f"repeats the column {name!r}", bound="each column once", remedy=remedy)
        if name not in header:
            # Other names are not shown, because a first line may be data.
            remedy = "names of columns are compared exactly, with capitals and spaces"
            others = [sign for sign in _DELIMITERS if len(header) == 1 and sign in header[0]]
            if others:
                remedy = layout.remedy(where.rsplit(", line", 1)[0], f"delimiter = {_DELIMITERS[others[0]]}")
            bound = f"one of its {len(header)} columns"
            raise InputError(where, f"has no column {name!r}", bound=bound, remedy=remedy)
    return names, [header.index(name) for name in names]


def _ragged(path: Path, line: int, fields: int, width: int, layout: Layout) -> InputError:
    """Return the error for a line with another number of fields than the header."""
    where, bound = f"{path}, line {line}", f"{width} fields, as in the header"
    if not fields:
        remedy = "delete the line if no row is missing there, or fill in its fields"
        return InputError(where, "is blank", bound=bound, remedy=remedy)
    remedy = layout.remedy(path, 'delimiter = "…"', "the character between columns; or quote fields that contain it")
    return InputError(where, "has the wrong number of fields", value=fields, bound=bound, remedy=remedy)


def _of_parquet(path: Path, wanted: list[str] | None, layout: Layout) -> Table:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError(f"{path} is a Parquet file: pip install pyarrow, or save it as CSV") from error
    content = content_of(path)
    try:
        with parquet.ParquetFile(io.BytesIO(content)) as file:
            names, _ = _places_of(file.schema_arrow.names, wanted, str(path))
            found, limit = file.metadata, max_unpacked_bytes(len(content))
            unpacked = sum(found.row_group(group).total_byte_size for group in range(found.num_row_groups))
            if max(unpacked, found.num_rows * len(names)) > limit:
                raise InputError(str(path), "unpacks to too much", bound=f"at most {limit} bytes")
            others = tuple(name for name in file.schema_arrow.names if name not in names)
            columns = file.read(columns=names, use_threads=False)
            return _of_object(columns, names, str(path), Table(str(path), {}, None, layout, others))
    except (arrow.ArrowException, OSError, UnicodeError, MemoryError) as error:
        # The message of this error may quote the content of the file.
        problem = f"is not a readable Parquet table ({type(error).__name__})"
        raise InputError(str(path), problem, bound="a Parquet file") from None


def _of_object(source: Any, wanted: list[str] | None, name: str, table: Table) -> Table:
    """Return the columns of an object with named columns; each becomes a list or an array."""
    header = source.keys() if isinstance(source, Mapping) else getattr(source, "column_names", None)
    header = getattr(source, "columns", None) if header is None else header
    lazy = callable(getattr(type(source), "collect", None))
    if header is None or lazy or isinstance(source, type):
        bound, remedy = "a path, a DataFrame, or a mapping of columns", "read it first: collect()" if lazy else ""
        raise InputError(name, "is not a table", value=type(source).__name__, bound=bound, remedy=remedy)
    names, _ = _places_of(list(header), wanted, name)
    if isinstance(source, Mapping):
        require_one_index({f"{name}, column {each}": source[each] for each in names})
    columns = {each: _values_of(source[each], f"{name}, column {each}") for each in names}
    for each in names[1:]:
        if len(columns[each]) != len(columns[names[0]]):
            bound = f"{len(columns[names[0]])} rows, as in the column {names[0]}"
            raise InputError(f"{name}, column {each}", "has another length", value=len(columns[each]), bound=bound)
    return replace(table, columns=columns, others=table.others or tuple(each for each in header if each not in names))


def _values_of(column: Any, path: str) -> Sequence[Any]:
    """Return a column as an array of numbers or times, or as a list; times with a zone become texts with offsets."""
    require_unmasked(column, path)
    if isinstance(column, str | bytes | Mapping | set | frozenset) or not hasattr(column, "__len__"):
        raise InputError(path, "is not a column", value=type(column).__name__, bound="a list of values")
    kind = getattr(column, "dtype", getattr(column, "type", None))
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    if not isinstance(kind, np.dtype) and re.search("int|categ|dict", str(kind).lower()):
        # With missing values, integers of frames would become decimal numbers.
        column = list(column.to_pylist() if hasattr(column, "to_pylist") else column)
    elif hasattr(column, "__array__"):
        column = np.asarray(column)
    # In an array of texts, a missing value of a list would become a text.
    values = column if isinstance(column, np.ndarray) else np.array(list(column), dtype=object)
    kinds = set(map(type, values if values.dtype.kind == "O" else ()))
    nested = any(hasattr(each, "__len__") and not issubclass(each, str) for each in kinds)
    if values.ndim != 1 or nested or values.dtype.kind in "SV":
        bound = "a list of texts, numbers or times"
        raise InputError(path, "is not a column", value=f"{values.ndim} axes of {values.dtype}", bound=bound)
    if values.dtype.kind == "M" and zone is not None:
        return [f"{text}Z" if text != "NaT" else "" for text in np.datetime_as_string(values).tolist()]
    return cast("Sequence[Any]", values if values.dtype.kind in "iufM" else values.tolist())


def _text_of(value: object) -> str:
    """Return a value of an object as the text that a file would contain; "" for a missing value."""
    if isinstance(value, str):
        return value
    try:
        missing = value is None or bool(value != value)
    except TypeError:
        # pandas.NA is neither equal nor unequal.
        missing = True
    if missing:
        return ""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _to_floats(texts: Sequence[str]) -> Floats:
    """Return the numbers in texts; NaN for a text that is not a number."""
    together = "".join(texts)
    # Python would read 1_0 as 10, and the digits of every script.
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            return np.fromiter(map(float, texts), np.float64, len(texts))
    return np.fromiter(map(_to_float, texts), np.float64, len(texts))


def _to_float(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else float("nan")
    except ValueError:
        return float("nan")


class _ClockChangeError(ValueError):
    """A time of day that occurs twice, or never, because clocks change."""


def _reader(layout: Layout) -> Callable[[str], tuple[int, int]]:
    """Return a function that reads an instant; it raises `ValueError` or `OverflowError` for another text."""
    form, zone = layout.time_format, _zone_of(layout.time_zone)
    if form in UNITS:
        return lambda text: _number_since(text, UNITS[form])
    if form is not None:
        return lambda text: _since(_strictly(text, form), zone)
    return lambda text: _iso(text, zone)


def _iso(text: str, zone: tzinfo) -> tuple[int, int]:
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError
    moment, part, offset = found.groups()
    seconds, _ = _since(datetime.fromisoformat(moment + (offset or "")), zone)
    return seconds, int(part[:9].ljust(9, "0")) if part else 0


def _strictly(text: str, form: str) -> datetime:
    """Parse a text with `datetime.strptime`; digits are ASCII, with all leading zeros where no sign parts numbers."""
    if re.search(r"[^\D0-9]", text) or not _spelling(form).fullmatch(text):
        raise ValueError
    return datetime.strptime(text, form)


@cache
def _spelling(form: str) -> re.Pattern[str]:
    """Return the spelling of times in a format, with the number of digits where no sign parts numbers."""

    def expand(found: re.Match[str]) -> str:
        if not found[0].startswith("%"):
            return r"\s+"
        digits = (f"\\d{{{_DIGITS.get(each, '2')}}}" for each in found[0][1::2])
        return "".join(digits) if len(found[0]) > 2 else ".+"

    return re.compile(_TOGETHER.sub(expand, re.escape(form)), re.IGNORECASE | re.DOTALL)


def _since(moment: datetime, zone: tzinfo) -> tuple[int, int]:
    """Return seconds since 1970 and nanoseconds; a time without an offset is in `zone`."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if zone is not UTC and moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise _ClockChangeError
    part = moment.microsecond
    # Whole seconds of `datetime` are exact as floats.
    return int((moment.replace(microsecond=0) if part else moment).timestamp()), 1000 * part


def _number_since(text: str, units: int) -> tuple[int, int]:
    if not _NUMBER.fullmatch(text) or len(text) > 50:
        raise ValueError
    seconds, rest = divmod(int(text) if text.isdecimal() else Fraction(text), units)
    if seconds not in _SECONDS:
        raise OverflowError
    return int(seconds), int(rest * _NANOSECONDS // units)


def are_no_times(values: np.ndarray[Any, Any]) -> Flags:
    """Return which values of an array of datetime64 are missing, or beyond the years 1 to 9999."""
    years = values.astype("datetime64[Y]").astype(np.int64) + 1970
    bad: Flags = np.isnat(values) | (years < 1) | (years > 9999)
    return bad


def _instants_of(values: np.ndarray[Any, Any], bad: Flags) -> Instants:
    """Return the instants of an array of datetime64; a bad one becomes 1970."""
    values = np.where(bad, np.zeros(1, dtype=values.dtype), values)
    seconds = values.astype("datetime64[s]")
    rest = (values - seconds).astype("timedelta64[ns]").astype(np.int64)
    return Instants(seconds.astype(np.int64) - (rest < 0), rest % _NANOSECONDS)
