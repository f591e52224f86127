"""Read columns and numbers from text files, and compute digests of files."""

from __future__ import annotations

import csv
import functools
import gzip
import hashlib
import io
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TextIO

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, MissingDependencyError, values_are_shown
from mechdesign.certify._texts import escape, from_cell
from mechdesign.data._bounds import LimitedReader
from mechdesign.data._layout import (
    Dialect,
    Lines,
    cell,
    current_layout,
    dialect_of,
    encoding_of,
    form_of,
    mark_of,
    require_delimiter,
    shorten,
    to_nfc,
    wide_fields,
    withholding,
)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder.

    The digest is cached while sizes and modification times stay the same. Raises `InputError` for unreadable files.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Reading a device or a pipe might never end.
            raise OSError(None, "it is not a regular file", str(path))
        inner = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        stamps = tuple((each, (found := each.stat()).st_size, found.st_mtime_ns) for each in inner)
        return _digest(path, stamps)
    except OSError as error:
        raise InputError(
            str(path), f"cannot be read ({error.strerror or error})", bound="a file that exists"
        ) from error


@functools.lru_cache(maxsize=64)
def _digest(path: Path, stamps: tuple[tuple[Path, int, int], ...]) -> str:
    if [each for each, *_ in stamps] == [path]:
        return _content(path)
    whole = hashlib.sha256()
    for inner, *_ in stamps:
        whole.update(f"{inner.relative_to(path).as_posix()}\n{_content(inner)}\n".encode())
    return whole.hexdigest()


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Rows = Sequence[tuple[int, Sequence[str]]]


_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
# First bytes of binary files, and their kinds.
_BINARY = {
    b"\xd0\xcf\x11\xe0": "an old Office spreadsheet or document",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"ARROW1": "an Arrow or Feather file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"%PDF": "a PDF",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"Rar!\x1a": "a RAR archive",
    b"\x00\x00\x27\x0a": "a shapefile",
    b"fgb\x03fgb": "a FlatGeobuf file",
    b"Obj\x01": "an Avro file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
# Decimals, long numbers, dates or degrees: these occur in data, but not in column names.
_DECIMALS = re.compile(r"[0-9][.,][0-9]{2}|[0-9]{5}|[0-9]{1,4}[-/:][0-9]{1,2}(?![0-9])|°")
# A header line has at most this many digits, and a column name at most this many characters.
_MAX_HEADER_DIGITS = 20
_MAX_NAME_LENGTH = 80
# The first line is a header line if at least this number of columns below it are numeric.
_MIN_NUMERIC_COLUMNS = 2
# Usual column names, in lower case: a first line with one of these names is a header line.
_USUAL = frozenset(
    (
        *(
            "latitude",
            "lat",
            "longitude",
            "lon",
            "lng",
            "long",
            "x",
            "y",
            "z",
            "user",
            "id",
            "uid",
            "userid",
            "user id",
        ),
        *("user_id", "person", "time", "timestamp", "date", "datetime", "trace", "label", "state", "step", "epsilon"),
        *("cost", "weight", "count", "counts", "visits", "name", "place", "key", "source", "target", "category"),
        *(
            "region",
            "cell",
            "city",
            "country",
            "row",
            "value",
            "age",
            "sex",
            "secret",
            "observable",
            "answer",
            "altitude",
        ),
    )
)
# A column name is similar to the name of a requested column if their similarity, in [0, 1], is at least this number.
_MIN_SIMILARITY = 0.75
# The fields of a blank line of a table with one column.
_BLANK = [""]

_CSV = Dialect(",")
_COMMAS = (
    'remove thousands separators, or set decimal = "," (--decimal of the command) if the comma is the decimal mark'
)
_ENCODING = (
    "set its encoding (encoding, or --encoding of the command), such as windows-1252 in Western Europe or gb18030 in "
    "China; or save it as UTF-8"
)
_EXPORT = "export the data as CSV, with a header line and a row for each line"
_SEVERAL = re.compile(r"[^\w.()/-]")
_ONE_COLUMN = (
    "set delimiter (--delimiter of the command) if one of its characters separates columns, and delete all lines above "
    "the column names"
)
_UTF_16 = 'set its encoding: "utf-16-le" or "utf-16-be" (encoding, or --encoding of the command)'
_NESTED = "it contains lists, structures or bytes: write the required values into a separate column"

# Number of initial characters in which signs of other text formats are searched for.
_PREFIX_LENGTH = 1000
_BUFFER_BYTES = 2**17
# Patterns of the beginning of other text formats, and their names; the first match is used.
_OTHER_FORMATS = {
    re.compile(pattern, re.IGNORECASE | re.DOTALL): name
    for pattern, name in {
        r"\s*[\[{].*\"(?:FeatureCollection|Feature|GeometryCollection|coordinates)\"": "GeoJSON",
        r"\s*(?:\{\s*(?:[\"}]|$)|\[\s*(?:[\[{\"\]\d.-]|$))": "JSON",
        r"\s*<(?:.*<)?gpx\b": "GPX",
        r"\s*<(?:.*<)?kml\b": "KML",
        r"\s*<(?:.*<)?TrainingCenterDatabase\b": "TCX",
        r"\s*<(?:!doctype html|html)\b": "HTML",
        r"\s*<(?:[?!]|[\w:.-]+(?:\s[^>]*)?>\s*<)": "XML",
        r"\$G[A-Z]{4},": "NMEA",
        r"SQLite format 3": "an SQLite database",
        r"version https://git-lfs": "a Git LFS pointer instead of the file (git lfs pull fetches the file)",
    }.items()
}


def read_columns(
    path: Path, names: Sequence[str], delimiter: str | None = None, *, may_be_empty: bool = False
) -> dict[str, list[str]]:
    """Return the texts in the columns `names` of a file with a header line.

    In a file with one column, a blank line is a row. In a file with several columns, blank lines are refused, except
    before the header and at the end of the file. A file without rows is refused unless `may_be_empty` is true.
    """
    rows = read_rows(path, delimiter, blanks=True, suits=has_columns(names))
    header = next((row for _, row in rows if row), None)
    if header is None:
        raise InputError(str(path), "is empty", bound="a header line and at least one more line")
    places = {name: check_column(name, header, path) for name in names}
    columns: dict[str, list[str]] = {name: [] for name in names}
    blank = 0
    for line, row in rows:
        if not row and len(header) > 1:
            blank = blank or line
            continue
        if blank:
            raise _blank_line(path, blank)
        if len(row or _BLANK) != len(header):
            raise InputError(
                f"{path}, line {line}",
                "has the wrong number of fields",
                value=len(row),
                bound=f"{len(header)} fields, as in the header",
                remedy='set delimiter = ";" if the comma is the decimal mark' if len(header) == 1 else "",
            )
        for name, place in places.items():
            columns[name].append((row or _BLANK)[place])
    if not may_be_empty and not all(columns.values()):
        raise InputError(str(path), "has no lines below its header", bound="at least one line")
    return columns


def _blank_line(path: Path, line: int) -> InputError:
    """Return the error for a blank line between the rows of a table of several columns."""
    remedy = "delete the line if no row is missing there, or fill in its fields"
    return InputError(f"{path}, line {line}", "is blank", bound="a row of the table in every line", remedy=remedy)


def has_columns(names: Sequence[str]) -> Callable[[list[str]], bool]:
    """Return a function that tells whether a header has these columns."""
    return lambda header: all(to_nfc(name) in header for name in names)


def check_column(name: str, header: Sequence[str], path: Path) -> int:
    """Return the position of a column in a header; raise `InputError` unless exactly one column has the name."""
    plain = to_nfc(name)
    if header.count(plain) == 1:
        return header.index(plain)
    problem = "has no column" if plain not in header else "has more than one column"
    if plain not in header and plain in unread_columns(path):
        raise InputError(str(path), f"has no plain values in the column {name!r}", bound="plain values", remedy=_NESTED)
    bound = f"one of {columns_text(header, [name])}"
    raise InputError(str(path), f"{problem} {name!r}", bound=bound, remedy=one_column_remedy(header))


def one_column_remedy(header: Sequence[str]) -> str:
    """Return the remedy for a header with one name that contains a possible delimiter; "" for other headers."""
    return _ONE_COLUMN if len(header) == 1 and _SEVERAL.search(header[0]) else ""


def unread_columns(path: Path) -> tuple[str, ...]:
    """Return the columns of a Parquet file that do not contain plain values; nothing for other files."""
    if not is_parquet(path):
        return ()
    from mechdesign.data._parquet import columns_left_out

    return columns_left_out(path)


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file, according to its first bytes."""
    return path.is_file() and _start(path).startswith(_PARQUET)


def columns_text(header: Sequence[str], wanted: Sequence[str] = (), below: Rows = ()) -> str:
    """Return the column names for an error, truncated if long; only their forms if the first line may be data.

    The first line is a header if it contains a usual name or a name similar to a `wanted` name. The first line is also
    a header if it has no digits and every row `below` has at least two numbers.

    >>> columns_text(["user", "lat", "lon"])
    'the columns user, lat, lon'
    >>> columns_text(["Ada", "46.9512"])
    'the columns in its first line (only their form is shown, because they may be data): aaa, 99.9999'
    """
    names = shorten(", ".join(map(escape, header)))
    few_digits = sum(map(str.isdigit, names)) <= _MAX_HEADER_DIGITS
    if values_are_shown() or (_names_columns(header, wanted, below) and few_digits):
        return f"the columns {names}"
    forms = shorten(", ".join(map(form_of, header)))
    return f"the columns in its first line (only their form is shown, because they may be data): {forms}"


def _names_columns(header: Sequence[str], wanted: Sequence[str], below: Rows) -> bool:
    """Return whether a first line seems to be a header."""
    if any(map(_may_be_data, header)):
        return False
    names = [name.strip().lower() for name in header]
    known = [name.lower() for name in wanted]
    if below and not any(map(str.isdigit, "".join(names))):
        numbers = sum(all(is_number(row[place]) for _, row in below) for place in range(len(names)))
        if numbers >= _MIN_NUMERIC_COLUMNS:
            return True
    return not _USUAL.isdisjoint(names) or any(get_close_matches(name, known, 1, _MIN_SIMILARITY) for name in names)


def _may_be_data(name: str) -> bool:
    """Return whether a field of a first line may be data and not a column name."""
    return is_number(name) or len(name) > _MAX_NAME_LENGTH or _DECIMALS.search(name) is not None


def column_text(name: str) -> str:
    """Return the name of a column for a note, or its form if it may be data."""
    return str(form_of(name)) if _may_be_data(name) and not values_are_shown() else shorten(escape(name))


def is_number(text: str) -> bool:
    """Return whether a text is a number, with a decimal point or a decimal comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def read_numbers(path: Path, name: str, delimiter: str | None = None) -> Floats:
    """Return the numbers in column `name`, float64 of shape (rows,); infinities and NaN are accepted."""
    plain = plain_numbers(read_columns(path, [name], delimiter)[name], path, name)
    return np.array([number(text, f"{path}, row {row}, column {name}") for row, text in enumerate(plain, 1)])


def plain_numbers(texts: Sequence[str], path: Path, column: str, largest: float = float("inf")) -> list[str]:
    """Return the numbers of a column as texts with decimal points; see `mechdesign.data._layout.mark_of`."""
    mark = mark_of(texts, f"{path}, column {column}", largest)
    return [mark.plain(text) for text in texts]


def number(text: str, path: str, remedy: str = "") -> float:
    """Return the number in a text from a file; infinities and NaN are accepted."""
    value = as_float(text)
    if value is None:
        remedy = remedy or (_COMMAS if "," in text else "")
        raise InputError(path, "is not a number", value=cell(text), bound="a number", remedy=remedy)
    return value


def as_float(text: str) -> float | None:
    """Return the number in a text, or None if it is not a number."""
    try:
        # Python would read 1_0 as 10.
        return float("x" if "_" in text else text)
    except ValueError:
        return None


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    return InputError(str(path), f"cannot be opened ({error.strerror or error})", bound="a file that exists")


def read_rows(
    path: Path,
    delimiter: str | None = None,
    blanks: bool = False,
    suits: Callable[[list[str]], bool] | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row; blank lines are yielded without fields if `blanks` is true.

    `suits` returns whether a first row has the expected fields, see `mechdesign.data._layout.dialect_of`.
    """
    require_delimiter(delimiter)
    with open_lines(path) as lines:
        dialect = dialect_of(lines, delimiter, suits)
        reader = csv.reader(lines, delimiter=dialect.delimiter, skipinitialspace=dialect.padded, strict=True)
        try:
            for row in reader:
                if row or blanks:
                    yield reader.line_num, fields_of(row, dialect)
        except csv.Error as error:
            bound = "a line of CSV with closed quotes"
            raise InputError(f"{path}, line {reader.line_num}", f"cannot be read ({error})", bound=bound) from error


def fields_of(row: list[str], dialect: Dialect = _CSV) -> list[str]:
    """Return the fields of a row of CSV, without the apostrophes that prevent evaluation by spreadsheet programs."""
    if dialect.padded:
        row = [field.strip() for field in row]
    return list(map(from_cell, row)) if any(field.startswith("'") for field in row) else row


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line."""
    with open_lines(path) as lines:
        yield from enumerate(lines, 1)


@contextmanager
def open_lines(path: Path) -> Iterator[Lines]:
    """Open the lines of a text, plain or compressed by gzip; a Parquet file is converted to CSV with commas.

    The encoding is UTF-8 unless the layout or a byte order mark sets another encoding. Raises `InputError` for other
    files.
    """
    # Errors of other libraries may quote the content of the file.
    with withholding(), wide_fields():
        try:
            start = _start(path)
            _require_text(start, path)
            # A byte order mark is not part of the first field.
            with _text(path, start) as lines:
                is_text = not start.startswith(_PARQUET)
                _require_table(_first_signs(lines), path, is_text)
                lines.seek(0)
                yield Lines(path, lines, is_text)
        except UnicodeError as error:
            encoding = current_layout().encoding or "UTF-8"
            reason = error.reason if isinstance(error, UnicodeDecodeError) else "it has no byte order mark"
            problem = f"is not a text in {encoding} ({reason})"
            raise InputError(str(path), problem, bound="a text in UTF-8", remedy=_ENCODING) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(str(path), f"is compressed by gzip and damaged ({error})") from error
        except OSError as error:
            raise unreadable(path, error) from error


def _parquet(path: Path) -> TextIO:
    try:
        import pyarrow as arrow

        from mechdesign.data._parquet import csv_of
    except ImportError as error:
        raise MissingDependencyError(f"{path} is a Parquet file: pip install pyarrow, or save it as CSV") from error
    try:
        text = csv_of(path)
    except arrow.ArrowException as error:
        # The message of this error may quote the content of the file.
        raise InputError(str(path), f"is not a readable Parquet table ({type(error).__name__})") from None
    return io.TextIOWrapper(text, encoding="utf-8", newline="")


def _require_table(beginning: str, path: Path, is_text: bool) -> None:
    """Raise `InputError` if the beginning of a text shows that it is not a table."""
    for pattern, name in _OTHER_FORMATS.items():
        if pattern.match(beginning):
            raise InputError(str(path), f"is {name}", bound="a table such as CSV or Parquet", remedy=_EXPORT)
    if 1 / 4 < beginning.count("\0") / max(1, len(beginning)) < 3 / 4:
        raise InputError(str(path), "has zero bytes, like UTF-16", bound="a text", remedy=_UTF_16)
    if "\0" in beginning.rstrip("\0") and is_text:
        raise InputError(str(path), "has zero bytes", bound="a text, or Parquet", remedy=_EXPORT)


def _first_signs(lines: TextIO) -> str:
    """Return the beginning of a text, without leading blanks."""
    beginning = lines.read(_PREFIX_LENGTH)
    while beginning.isspace():
        beginning = lines.read(_PREFIX_LENGTH)
    return beginning + lines.read(_PREFIX_LENGTH)


def _start(path: Path) -> bytes:
    """Return the first bytes of a file; raise `InputError` for a pipe or a device, which can be read only once."""
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        # A pipe that is opened a second time would block forever.
        remedy = f"write its content to a file first: cat {path} > data.csv"
        raise InputError(str(path), "is a pipe or a device, but data are read twice", bound="a file", remedy=remedy)
    with path.open("rb") as file:
        return file.read(8)


def _require_text(start: bytes, path: Path) -> None:
    """Raise `InputError` if a file is not plain text, text compressed by gzip, or Parquet."""
    remedy = "unpack it, or save the table as CSV"
    if start.startswith(_ZIP):
        bound = "a text, which may be compressed by gzip, or Parquet"
        raise InputError(str(path), "is a ZIP archive, or a spreadsheet", bound=bound, remedy=remedy)
    for mark, name in _BINARY.items():
        if start.startswith(mark):
            raise InputError(str(path), f"is {name}", bound="a text, or Parquet", remedy=remedy)


def _text(path: Path, start: bytes) -> TextIO:
    if start.startswith(_PARQUET):
        return _parquet(path)
    content = LimitedReader(path, packed=start.startswith(_GZIP))
    try:
        encoding = encoding_of(path, content.read(4) or b"")
        content.decode("" if encoding == "utf-8-sig" else encoding)
    except BaseException:
        content.close()
        raise
    return io.TextIOWrapper(io.BufferedReader(content, _BUFFER_BYTES), encoding="utf-8-sig", newline="")
