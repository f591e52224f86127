"""Read lines, columns and numbers from text files, with errors that name the line."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.texts import escape, from_cell
from mechdesign.data.bounds import LimitedReader
from mechdesign.data.forms import cell, form_of, withholding
from mechdesign.errors import InputError, MissingDependencyError, values_are_shown

Floats = NDArray[np.float64]


_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
# What names of columns may take in an error.
_LONGEST_LIST = 200
# What names of columns do not hold, and data do: decimals, long numbers, dates, degrees, and many digits in one line.
_DECIMALS = re.compile(r"[0-9][.,][0-9]{2}|[0-9]{5}|[0-9]{1,4}[-/:][0-9]{1,2}(?![0-9])|°")
_MOST_DIGITS, _LONGEST_NAME = 20, 80
# What columns are usually called, in small letters: a first line with one of these names is no line of data.
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
_ALIKE = 0.75
# The fields of a blank line of a table with one column.
_BLANK = [""]

# How files of other formats begin, and what they are; the first that fits is taken.
_BEGINNING = 1000
_BUFFER_BYTES = 2**17
_OTHERS = {
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
        r"SQLite format 3": "a database of SQLite",
    }.items()
}


def read_columns(
    path: Path, names: Sequence[str], delimiter: str = ",", *, may_be_empty: bool = False
) -> dict[str, list[str]]:
    """Return the texts in the columns `names` of a file with a header line.

    A blank line is a row where the file has one column, as far as the last line break; with more columns it is refused,
    but before the header and at the end of the file. A file with nothing below its header is refused unless it
    `may_be_empty`.
    """
    rows = read_rows(path, delimiter, blanks=True)
    header = next((row for _, row in rows if row), None)
    if header is None:
        raise InputError(str(path), "is empty", bound="a header line and at least one line more")
    for name in names:
        check_column(name, header, path)
    places = {name: header.index(name) for name in names}
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
                bound=f"{len(header)} as in the header",
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


def check_column(name: str, header: Sequence[str], path: Path) -> None:
    """Raise `InputError` unless a header has one column of this name."""
    if header.count(name) != 1:
        problem = "has no column" if name not in header else "has more than one column"
        raise InputError(str(path), f"{problem} {name!r}", bound=f"one of {columns_text(header, [name])}")


def columns_text(header: Sequence[str], wanted: Sequence[str] = ()) -> str:
    """Return the names of columns for an error, as many as are short; only their forms where the line may hold data.

    It is taken for a line of names where one of them is usual, or like one that is `wanted`.

    >>> columns_text(["user", "lat", "lon"])
    'the columns user, lat, lon'
    >>> columns_text(["Ada", "46.9512"])
    'the columns in its first line, of which the form alone is shown, as it may hold data: aaa, 99.9999'
    """
    names = shortened(", ".join(map(escape, header)))
    if values_are_shown() or (_names_columns(header, wanted) and sum(map(str.isdigit, names)) <= _MOST_DIGITS):
        return f"the columns {names}"
    forms = shortened(", ".join(map(form_of, header)))
    return f"the columns in its first line, of which the form alone is shown, as it may hold data: {forms}"


def _names_columns(header: Sequence[str], wanted: Sequence[str]) -> bool:
    """Tell whether a first line names columns, as far as it tells itself."""
    if any(map(_may_be_data, header)):
        return False
    names = [name.strip().lower() for name in header]
    known = [name.lower() for name in wanted]
    return not _USUAL.isdisjoint(names) or any(get_close_matches(name, known, 1, _ALIKE) for name in names)


def _may_be_data(name: str) -> bool:
    """Tell whether a field of a first line may be something else than the name of a column."""
    return is_number(name) or len(name) > _LONGEST_NAME or _DECIMALS.search(name) is not None


def column_text(name: str) -> str:
    """Return the name of a column for a note, or its form where the line that it stands in may hold data."""
    return str(form_of(name)) if _may_be_data(name) and not values_are_shown() else shortened(escape(name))


def shortened(text: str) -> str:
    """Return a list of names for an error, cut where it is long."""
    return text if len(text) <= _LONGEST_LIST else f"{text[: _LONGEST_LIST - 1]}…"


def is_number(text: str) -> bool:
    """Tell whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_numbers(path: Path, name: str, delimiter: str = ",") -> Floats:
    """Return the numbers in column `name`, float64 of shape (lines,)."""
    texts = read_columns(path, [name], delimiter)[name]
    return np.array([number(text, f"{path}, row {row}, column {name}") for row, text in enumerate(texts, 1)])


def number(text: str, path: str, remedy: str = "") -> float:
    """Return the number in `text`, which stands in a file; infinities and NaN pass."""
    value = as_float(text)
    if value is None:
        raise InputError(path, "is not a number", value=cell(text), bound="a number", remedy=remedy)
    return value


def as_float(text: str) -> float | None:
    """Return the number in a text, None where there is none."""
    try:
        # Python reads 1_0 as 10.
        return float("x" if "_" in text else text)
    except ValueError:
        return None


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    return InputError(str(path), f"cannot be opened ({error.strerror or error})", bound="a file that exists")


def read_rows(path: Path, delimiter: str, blanks: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line, and its fields; blank lines, without fields, only where `blanks` says so."""
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound='one character, such as ","')
    with opened(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row or blanks:
                    yield reader.line_num, fields_of(row)
        except csv.Error as error:
            bound = "a line of CSV, its quotes closed"
            raise InputError(f"{path}, line {reader.line_num}", f"cannot be read ({error})", bound=bound) from error


def fields_of(row: list[str]) -> list[str]:
    """Return the texts that stand in a row of CSV, without the apostrophes that shield some from spreadsheets."""
    return list(map(from_cell, row)) if any(field.startswith("'") for field in row) else row


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line."""
    with opened(path) as lines:
        yield from enumerate(lines, 1)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text in UTF-8, also one that gzip compressed, or a Parquet file as if it were one, with commas.

    Raises `InputError` for what is neither.
    """
    # What other libraries raise may hold what stands in the file.
    with withholding():
        try:
            start = _start(path)
            if start.startswith(_ZIP):
                remedy = "unpack it, or save the table as CSV"
                bound = "a text in UTF-8, also compressed by gzip, or Parquet"
                raise InputError(str(path), "is a ZIP archive, or a spreadsheet", bound=bound, remedy=remedy)
            # A byte order mark is not part of the first field.
            with _text(path, start) as lines:
                beginning = _first_signs(lines)
                for pattern, name in _OTHERS.items():
                    if pattern.match(beginning):
                        remedy = "export the data as CSV, with a header line and a row for each line"
                        raise InputError(str(path), f"is {name}", bound="a table such as CSV or Parquet", remedy=remedy)
                lines.seek(0)
                yield lines
        except UnicodeDecodeError as error:
            remedy = 'save it as UTF-8: iconv -f LATIN1 -t UTF-8, or encoding="utf-8" where it is written'
            raise InputError(str(path), f"is not a text in UTF-8 ({error.reason})", remedy=remedy) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(str(path), f"is compressed by gzip and damaged ({error})") from error
        except OSError as error:
            raise unreadable(path, error) from error


def _parquet(path: Path) -> TextIO:
    try:
        import pyarrow as arrow

        from mechdesign.data.parquet import csv_of
    except ImportError as error:
        raise MissingDependencyError(f"{path} is a Parquet file: pip install pyarrow, or write it as CSV") from error
    try:
        text = csv_of(path)
    except arrow.ArrowException as error:
        # What it says may hold what stands in the file.
        raise InputError(str(path), f"is no table of Parquet that can be read ({type(error).__name__})") from None
    return io.TextIOWrapper(text, encoding="utf-8", newline="")


def _first_signs(lines: TextIO) -> str:
    """Return the beginning of a text, without the blanks before it."""
    beginning = lines.read(_BEGINNING)
    while beginning.isspace():
        beginning = lines.read(_BEGINNING)
    return beginning + lines.read(_BEGINNING)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _text(path: Path, start: bytes) -> TextIO:
    if start.startswith(_GZIP):
        return _lines_of(LimitedReader(path, packed=True))
    if start.startswith(_PARQUET):
        return _parquet(path)
    return _lines_of(LimitedReader(path, packed=False))


def _lines_of(content: io.RawIOBase) -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(content, _BUFFER_BYTES), encoding="utf-8-sig", newline="")
