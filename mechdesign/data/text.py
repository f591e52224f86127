"""Read lines, columns and numbers from text files, with errors that name the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError

Floats = NDArray[np.float64]


def read_columns(path: Path, names: Sequence[str], delimiter: str = ",") -> dict[str, list[str]]:
    """Return the texts in the columns `names` of a file with a header line; blank lines are skipped."""
    rows = read_rows(path, delimiter)
    try:
        _, header = next(rows)
    except StopIteration:
        raise InputError(str(path), "is empty", bound="a header line and at least one line more") from None
    for name in names:
        if header.count(name) != 1:
            problem = "has no column" if name not in header else "has more than one column"
            raise InputError(str(path), f"{problem} {name!r}", bound=f"one of the columns {', '.join(header)}")
    places = {name: header.index(name) for name in names}
    columns: dict[str, list[str]] = {name: [] for name in names}
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{path}, line {line}",
                "has the wrong number of fields",
                value=len(row),
                bound=f"{len(header)} as in the header",
            )
        for name, place in places.items():
            columns[name].append(row[place])
    if not all(columns.values()):
        raise InputError(str(path), "has no lines below its header", bound="at least one line")
    return columns


def read_numbers(path: Path, name: str, delimiter: str = ",") -> Floats:
    """Return the numbers in column `name`, float64 of shape (lines,)."""
    texts = read_columns(path, [name], delimiter)[name]
    return np.array([number(text, f"{path}, row {row}") for row, text in enumerate(texts, 1)])


def number(text: str, path: str, remedy: str = "") -> float:
    """Return the number in `text`; infinities and NaN pass."""
    try:
        # Python reads 1_0 as 10.
        return float("x" if "_" in text else text)
    except ValueError:
        raise InputError(path, "is not a number", value=text, bound="a number", remedy=remedy) from None


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    return InputError(str(path), f"cannot be opened ({error.strerror or error})", bound="a file that exists")


def read_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not blank, and its fields."""
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound='one character, such as ","')
    with _opened(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}", f"cannot be read ({error})") from error


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line."""
    with _opened(path) as lines:
        yield from enumerate(lines, 1)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        # A byte order mark is not part of the first field.
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield lines
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not a text in UTF-8 ({error.reason})") from error
    except OSError as error:
        raise unreadable(path, error) from error
