"""The layout of text files (encoding, delimiter, decimal mark), and the masked form of cells in errors.

A table may contain true places, diagnoses or names, and other people may read the logs that contain its errors. An
error therefore contains the position of a cell and a mask of its content. `mechdesign.errors.showing_values`, or
``--show-values``, shows the content itself.

A setting that the user does not specify is inferred if only one interpretation is possible; a `RecognisedWarning`
reports it. If several interpretations are possible, an error requests the setting. `reading_as` sets the layout of all
files that are read in its block.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mechdesign.base._errors import CellForm, InputError, RecognisedWarning, Shown, Total, values_are_shown
from mechdesign.base._warnings import warn

# Maximum length of a mask, in characters.
_MAX_MASK_LENGTH = 40
# An error names at most this number of unexpected letters per cell; more letters would reveal the content.
_MAX_NAMED_LETTERS = 2


def form_of(text: str, known: str = "") -> CellForm:
    """Return the form of a text: a mask that shows digits as 9 and letters as a.

    Other non-ASCII characters, such as a no-break space or a zero-width mark, are shown as U+…. The `known` characters
    occur in accepted values, and are not shown as U+…. Digits of other scripts are shown as the digit nine of their
    script. One or two letters that are neither ASCII nor known are shown as U+…, because letters of several scripts
    look alike.

    >>> form_of("2022-5-2 7:05"), form_of("3\u200b"), form_of("l\u043ew"), form_of("")
    ('9999-9-9 9:99', '9U+200B', 'aU+043Ea', 'an empty cell')
    """
    if not text or text.isspace():
        return CellForm("an empty cell" if not text else "a blank cell")
    letters = [sign for sign in text if _is_letter(sign)]
    foreign = [sign for sign in letters if not sign.isascii() and sign not in known]
    named = foreign if len(foreign) <= min(_MAX_NAMED_LETTERS, len(letters) // 2) else ()
    shown = "".join(_mask_character(sign, named, known) for sign in text[:_MAX_MASK_LENGTH])
    return CellForm(shown if len(text) <= _MAX_MASK_LENGTH else f"{shown}…")


def _is_letter(sign: str) -> bool:
    """Return whether a character carries meaning: a letter, or a non-ASCII symbol such as ♀."""
    kind = unicodedata.category(sign)
    return kind[0] == "L" or (kind[0] == "S" and not sign.isascii())


def _mask_character(sign: str, named: list[str] | tuple[str, ...], known: str) -> str:
    kind = unicodedata.category(sign)
    if kind[0] == "N":
        # The digits of a script have consecutive code points, so the code of its nine follows from any digit.
        # Characters such as ½ have no digit.
        code = ord(sign) - unicodedata.digit(sign) + 9 if kind == "Nd" else ord("9")
        return "9" if code == ord("9") or sign in known else f"U+{code:04X}"
    if _is_letter(sign):
        return f"U+{ord(sign):04X}" if sign in named else "a"
    plain = sign.isascii() and sign.isprintable()
    return sign if plain or (sign in known and sign.isprintable()) else f"U+{ord(sign):04X}"


def cell(text: str, known: str = "") -> str:
    """Return the text that an error shows for a cell: its form, or the cell itself if values are shown."""
    return text if values_are_shown() else form_of(text, known)


def withheld(value: object, *, counts: bool = True) -> object:
    """Return the text that an error shows for a value from a file; `counts` leaves integers and shapes unmasked."""
    if values_are_shown() or value is None or isinstance(value, Shown | Total):
        return value
    if isinstance(value, Mapping):
        value = list(value.values())
    whole = all(isinstance(each, int) for each in value) if isinstance(value, list | tuple) else isinstance(value, int)
    if (whole and counts) or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return Shown(f"({', '.join(str(withheld(each, counts=counts)) for each in value)})")
    return form_of(str(value))


@contextmanager
def withholding(below: str = "", *, counts: bool = True) -> Iterator[None]:
    """Replace the value in every `InputError` of the block by its form, because the value may come from a file.

    If `below` is given, only errors whose paths begin with `below` are changed. With `counts`, integers are shown,
    because they are counts and not cells. The cause of an error is dropped as well, unless the file could not be
    opened.
    """
    try:
        yield
    except InputError as error:
        if not error.path.startswith(below):
            raise
        error.restate(withheld(error.value, counts=counts))
        if not isinstance(error.__cause__, OSError):
            # The exception that caused this error may contain the cell.
            error.__cause__ = error.__context__ = None
        raise


_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
# Byte order marks and their encodings, the longer marks first.
_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# A first line such as sep=; names the delimiter for spreadsheet programs.
_SEPARATOR = re.compile(r'(?i:sep=(?P<bare>[^\r\n"])|"sep=(?P<quoted>[^\r\n"])")(?:\r\n?|\n)')
_HEAD_LINES = 200
# Maximum length of a list of column names in an error, in characters.
_MAX_LIST_LENGTH = 200
# A field may be as long as a line, see `mechdesign.data._bounds`.
_MAX_FIELD_BYTES = 2**24

_WITH_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*")


def require_delimiter(delimiter: str | None) -> str | None:
    """Return the delimiter, or None; raise `InputError` unless it is a single character that can separate fields."""
    if delimiter is None:
        return None
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        bound, remedy = 'one character, such as ","', "a tab is $'\\t' in a shell, and \"\\t\" in a specification"
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound=bound, remedy=remedy)
    return delimiter


def _require_encoding(encoding: str) -> None:
    try:
        # Python also has codecs that do not encode text, such as hex; these fail here.
        "a".encode(encoding)
    except (LookupError, UnicodeError, ValueError, TypeError):
        bound = 'a text encoding, such as "utf-8", "utf-16", "windows-1252" or "gb18030"'
        raise InputError("encoding", "is not known", value=encoding, bound=bound) from None


@dataclass(frozen=True)
class FileLayout:
    """The user's settings for the layout of text files; a setting that is None is inferred.

    Attributes:
        delimiter: The character between columns.
        decimal: The decimal mark, "." or ",".
        encoding: The encoding, by its name in Python, such as "windows-1252".
        header: Whether the first line of a matrix names or numbers its columns.
        numbered: Whether the first column of a matrix names or numbers its rows.
        latitude: The column with the latitude, if it does not have a usual name.
        longitude: The column with the longitude, if it does not have a usual name.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    numbered: bool | None = None
    latitude: str | None = None
    longitude: str | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        require_delimiter(self.delimiter)
        if self.decimal not in (None, ".", ","):
            raise InputError("decimal", "is not a decimal mark", value=self.decimal, bound='"." or ","')
        if self.encoding is not None:
            _require_encoding(self.encoding)
        if self.delimiter is not None and self.delimiter == self.decimal:
            raise InputError("decimal", "is also the delimiter", value=self.decimal, bound="another character")


_UNSPECIFIED = FileLayout()
_LAYOUT: ContextVar[FileLayout] = ContextVar("layout", default=_UNSPECIFIED)


def current_layout() -> FileLayout:
    """Return the layout that `reading_as` sets for the files that are read now."""
    return _LAYOUT.get()


@contextmanager
def reading_as(
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    numbered: bool | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
) -> Iterator[None]:
    """Set the layout of the text files that are read inside the ``with`` block.

    Arguments that are None are inferred from the text.

    Args:
        delimiter: The character between columns.
        decimal: The decimal mark, "." or ",".
        encoding: The encoding, by its name in Python, such as "windows-1252".
        header: Whether the first line of a matrix names or numbers its columns.
        numbered: Whether the first column of a matrix names or numbers its rows.
        latitude: The column with the latitude, if it does not have a usual name.
        longitude: The column with the longitude, if it does not have a usual name.

    Yields:
        None; the layout applies until the end of the block.

    Raises:
        InputError: The delimiter, the decimal mark or the encoding is not valid.

    >>> with reading_as(decimal=","):
    ...     current_layout().decimal
    ','
    """
    before = _LAYOUT.set(FileLayout(delimiter, decimal, encoding, header, numbered, latitude, longitude))
    try:
        yield
    finally:
        _LAYOUT.reset(before)


def say_recognised(path: Path | str, what: str) -> None:
    """Warn the caller that a setting of a file was recognised."""
    warn(f"{path}: {what}", RecognisedWarning, stacklevel=3)


def shorten(text: str) -> str:
    """Return a list of names for an error, truncated if it is long."""
    return text if len(text) <= _MAX_LIST_LENGTH else f"{text[: _MAX_LIST_LENGTH - 1]}…"


def to_nfc(text: str) -> str:
    """Return a text in Unicode normalisation form NFC, so that texts that look equal compare equal.

    >>> to_nfc("Zu\u0308rich") == "Z\u00fcrich"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def names_of(axis: str, usual: Sequence[str]) -> tuple[str, ...]:
    """Return the accepted names of a coordinate's column, in lower case: the name from the layout, or `usual`."""
    given = getattr(current_layout(), axis, None)
    return tuple(usual) if given is None else (to_nfc(given).strip().lower(),)


def encoding_of(path: Path, start: bytes) -> str:
    """Return the encoding of a text that begins with the bytes `start`.

    The encoding of the layout has priority; without it, a byte order mark has priority over UTF-8.
    """
    given = current_layout().encoding
    if given is not None:
        return given
    found = next((name for mark, name in _ORDER_MARKS.items() if start.startswith(mark)), "utf-8-sig")
    if found != "utf-8-sig":
        say_recognised(path, f"is {found.upper()}, by its byte order mark; encoding overrules it")
    return found


class Lines(Iterator[str]):
    """The lines of a text, in Unicode form NFC; a first line such as ``sep=;`` is replaced by a blank line.

    `head` contains the first lines, and `separator` the character from a line ``sep=;``. `is_text` is False for text
    that was converted from another format, such as Parquet.
    """

    def __init__(self, path: Path, lines: Iterator[str], is_text: bool) -> None:
        self.path = path
        self.is_text = is_text
        self._composed = False
        self._lines = lines
        self.head = [self._compose(line) for line in islice(lines, _HEAD_LINES)]
        found = _SEPARATOR.fullmatch(self.head[0]) if self.head and is_text else None
        self.separator = None if found is None else found["bare"] or found["quoted"]
        if found is not None:
            self.head[0] = "\n"
        self._first = iter(self.head)

    def first_rows(self, dialect: Dialect) -> list[list[str]]:
        """Return the rows of `head`, without blank lines."""
        return list(_rows(self.head, dialect))

    def __next__(self) -> str:
        line = next(self._first, None)
        return self._compose(next(self._lines)) if line is None else line

    def _compose(self, line: str) -> str:
        if line.isascii() or unicodedata.is_normalized("NFC", line):
            return line
        if not self._composed:
            self._composed = True
            say_recognised(self.path, "letters and separate accents are joined (Unicode NFC)")
        return unicodedata.normalize("NFC", line)


@dataclass(frozen=True)
class Dialect:
    """The delimiter between columns, and whether blanks around fields are stripped."""

    delimiter: str
    padded: bool = False


def dialect_of(lines: Lines, delimiter: str | None = None, suits: Callable[[list[str]], bool] | None = None) -> Dialect:
    """Return the dialect of a text; warn if it was inferred from the text and is not plain CSV.

    `suits` returns whether a first row has the expected fields. Commas are tried first, then the other delimiters. If
    no delimiter gives a suitable first row, the delimiter with the most fields in this row is chosen.
    """
    delimiter = current_layout().delimiter if delimiter is None else delimiter
    if not lines.is_text:
        return Dialect(",")
    asked = delimiter or lines.separator
    found = [Dialect(each, padded) for each in ([asked] if asked else _DELIMITERS) for padded in (False, True)]
    if suits is None:
        counts = {each: len(_first_row(lines.head, each)) for each in found}
        best = max(found, key=counts.__getitem__)
        # If all column names but the first begin with a blank, each delimiter is followed by a blank.
        names = _first_row(lines.head, best)
        padded = len(names) > 1 and all(name[:1] == " " for name in names[1:])
        chosen = Dialect(best.delimiter, padded)
    else:
        chosen = next((each for each in found if suits(_first_row(lines.head, each))), _by_count(lines.head, found))
    if delimiter is None and lines.separator is not None:
        say_recognised(
            lines.path,
            f"its first line says that {lines.separator!r} separates columns; delimiter overrules it",
        )
    elif delimiter is None and chosen.delimiter != ",":
        name = _DELIMITERS[chosen.delimiter]
        say_recognised(lines.path, f"columns are separated by {name}; delimiter overrules it")
    if chosen.padded:
        say_recognised(lines.path, "blanks around its fields are removed")
    return chosen


def _by_count(head: Sequence[str], found: Sequence[Dialect]) -> Dialect:
    return max((each for each in found if not each.padded), key=lambda each: len(_first_row(head, each)))


def _first_row(head: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the fields of the first row that is not blank, or nothing if it cannot be read."""
    return next(_rows(head, dialect), [])


def _rows(head: Sequence[str], dialect: Dialect) -> Iterator[list[str]]:
    """Yield the rows of some lines, up to the first row that cannot be read; skip blank lines."""
    try:
        for row in filter(None, csv.reader(head, delimiter=dialect.delimiter, skipinitialspace=dialect.padded)):
            yield [field.strip() for field in row] if dialect.padded else row
    except csv.Error:
        # The function that reads the whole file reports this error.
        return


@dataclass(frozen=True)
class Mark:
    """The decimal mark in a column of numbers."""

    sign: str = "."

    def plain(self, text: str) -> str:
        """Return a number with a decimal point; if the mark is a comma, make a text with a point unreadable."""
        return text if self.sign == "." else text.replace(".", "..").replace(",", ".")


def mark_of(texts: Sequence[str], path: str, largest: float = float("inf")) -> Mark:
    """Return the decimal mark in the numbers of a column, or matrix, at `path`: set by the layout, or inferred.

    Commas are decimal marks if some comma cannot separate thousands. A comma cannot separate thousands if it follows a
    zero, precedes more or fewer than three digits, or makes the number exceed `largest`. Raises `InputError` if every
    comma may separate thousands, or if other numbers have a point.
    """
    given = current_layout().decimal
    commas = [text for text in texts if "," in text and _WITH_COMMA.fullmatch(text)]
    if given is not None:
        if given == "," and (point := next(filter(_WITH_POINT.fullmatch, texts), None)) is not None:
            raise InputError(path, "has a decimal point", value=cell(point), bound="a decimal comma")
        return Mark(given)
    if not commas:
        return Mark()
    remedy = 'set decimal = "," (--decimal of the command) if it is the decimal mark; otherwise remove the comma'
    if any(map(_WITH_POINT.fullmatch, texts)):
        problem = "has a comma in one number and a point in another"
        raise InputError(path, problem, value=cell(commas[0]), bound="a single decimal mark", remedy=remedy)
    if all(_THOUSANDS.fullmatch(text) and abs(float(text.replace(",", ""))) <= largest for text in commas):
        problem = "has a comma that may separate thousands or be the decimal mark"
        raise InputError(path, problem, value=cell(commas[0]), bound="a number with a point", remedy=remedy)
    say_recognised(path, 'commas are read as decimal marks; decimal = "." overrules it')
    return Mark(",")


_LIMIT_LOCK = threading.Lock()
_limits: list[int] = []


@contextmanager
def wide_fields() -> Iterator[None]:
    """Raise the field size limit of `csv` to the limit of a line; the last concurrent block restores the old limit."""
    with _LIMIT_LOCK:
        _limits.append(csv.field_size_limit())
        csv.field_size_limit(max(_limits[-1], _MAX_FIELD_BYTES))
    try:
        yield
    finally:
        with _LIMIT_LOCK:
            before = _limits[0]
            _limits.pop()
            if not _limits:
                csv.field_size_limit(before)
