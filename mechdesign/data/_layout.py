"""How a text is written: encoding, separators, decimals; and the form of a cell that errors show.

A table may hold true places, diagnoses or names, and errors end up in logs that others see. Where a cell stands tells
its owner enough; `mechdesign.errors.showing_values`, or ``--show-values``, shows the cell itself.

What is not said is recognised where only one reading is possible, and then told by a `RecognisedWarning`; the rest is
asked for. `reading_as` says it for all files that are read in a block.
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

# Of a text, so many signs are shown.
_SHOWN = 40
# So many letters that no value has are named beside others: more of them would spell the cell.
_MOST_FOREIGN = 2


def form_of(text: str, known: str = "") -> CellForm:
    """Return the form of a text, which shows digits as 9 and letters as a.

    What is neither, and not ASCII, is shown as U+… unless it is among the `known` signs, those of the values that are
    accepted: a space that is none, say, or a mark without width. Digits of other scripts are shown as the 9 of theirs.
    One or two letters that are neither ASCII nor known are named beside others: they look alike in several scripts.

    >>> form_of("2022-5-2 7:05"), form_of("3\u200b"), form_of("l\u043ew"), form_of("")
    ('9999-9-9 9:99', '9U+200B', 'aU+043Ea', 'an empty cell')
    """
    if not text or text.isspace():
        return CellForm("an empty cell" if not text else "a blank cell")
    letters = [sign for sign in text if _is_letter(sign)]
    foreign = [sign for sign in letters if not sign.isascii() and sign not in known]
    named = foreign if len(foreign) <= min(_MOST_FOREIGN, len(letters) // 2) else ()
    shown = "".join(_shown(sign, named, known) for sign in text[:_SHOWN])
    return CellForm(shown if len(text) <= _SHOWN else f"{shown}…")


def _is_letter(sign: str) -> bool:
    """Tell whether a sign may be read: a letter, or a symbol, such as one of a sex, that is not ASCII."""
    kind = unicodedata.category(sign)
    return kind[0] == "L" or (kind[0] == "S" and not sign.isascii())


def _shown(sign: str, named: list[str] | tuple[str, ...], known: str) -> str:
    kind = unicodedata.category(sign)
    if kind[0] == "N":
        # The nine of each script is so far after its zero, and signs such as ½ have none.
        code = ord(sign) - unicodedata.digit(sign) + 9 if kind == "Nd" else ord("9")
        return "9" if code == ord("9") or sign in known else f"U+{code:04X}"
    if _is_letter(sign):
        return f"U+{ord(sign):04X}" if sign in named else "a"
    plain = sign.isascii() and sign.isprintable()
    return sign if plain or (sign in known and sign.isprintable()) else f"U+{ord(sign):04X}"


def cell(text: str, known: str = "") -> str:
    """Return what an error shows of a cell: its form, or the cell where values are shown."""
    return text if values_are_shown() else form_of(text, known)


def withheld(value: object, *, counts: bool = True) -> object:
    """Return what an error shows of a value that came from a file; with `counts` integers, and shapes, stay."""
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
    """Show of a value that an `InputError` names, as it came from a file, its form only.

    `below` is the beginning of the paths that are about the file; with `counts` integers are no cells. What the error
    was raised from is left out, unless the file could not be opened.
    """
    try:
        yield
    except InputError as error:
        if not error.path.startswith(below):
            raise
        error.restate(withheld(error.value, counts=counts))
        if not isinstance(error.__cause__, OSError):
            # What was raised further down may hold the cell.
            error.__cause__ = error.__context__ = None
        raise


_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
# What a text begins with that says its encoding; the longer marks first.
_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# The line that tells spreadsheets what separates columns.
_SEPARATOR = re.compile(r'(?i:sep=(?P<bare>[^\r\n"])|"sep=(?P<quoted>[^\r\n"])")(?:\r\n?|\n)')
_HEAD_LINES = 200
# What names of columns may take in an error.
_LONGEST_LIST = 200
# As much as a line may take, see `mechdesign.data._bounds`.
_WIDEST_FIELD = 2**24

_WITH_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*")


def require_delimiter(delimiter: str | None) -> str | None:
    """Return a delimiter, or None; raise `InputError` for what cannot separate fields."""
    if delimiter is None:
        return None
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        bound, remedy = 'one character, such as ","', "a tab is $'\\t' in a shell, and \"\\t\" in a specification"
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound=bound, remedy=remedy)
    return delimiter


def _require_encoding(encoding: str) -> None:
    try:
        # Some of the names that Python knows are no encodings of texts.
        "a".encode(encoding)
    except (LookupError, UnicodeError, ValueError, TypeError):
        bound = 'an encoding of texts, such as "utf-8", "utf-16", "windows-1252" or "gb18030"'
        raise InputError("encoding", "is not known", value=encoding, bound=bound) from None


@dataclass(frozen=True)
class Layout:
    """What is said of how texts are written; None where it is to be recognised.

    Attributes:
        delimiter: The character between columns.
        decimal: The sign before decimals, "." or ",".
        encoding: The encoding, by its name in Python, such as "windows-1252".
        header: Whether the first line of a matrix names or numbers its columns.
        numbered: Whether the first column of a matrix names or numbers its rows.
        latitude: The column with the latitude, where columns are looked for by the names that they usually have.
        longitude: The column with the longitude.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    numbered: bool | None = None
    latitude: str | None = None
    longitude: str | None = None

    def __post_init__(self) -> None:
        """Check what is said."""
        require_delimiter(self.delimiter)
        if self.decimal not in (None, ".", ","):
            raise InputError("decimal", "is no sign of decimals", value=self.decimal, bound='"." or ","')
        if self.encoding is not None:
            _require_encoding(self.encoding)
        if self.delimiter is not None and self.delimiter == self.decimal:
            raise InputError("decimal", "is the delimiter, too", value=self.decimal, bound="another sign")


_NOTHING = Layout()
_SAID: ContextVar[Layout] = ContextVar("layout", default=_NOTHING)


def said() -> Layout:
    """Return what is said of the files that are read now."""
    return _SAID.get()


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
    """Say how the files that are read in the block are written, see `Layout`; what is None is recognised.

    Raises `InputError` for what is no delimiter, no sign of decimals, or no encoding.

    >>> with reading_as(decimal=","):
    ...     said().decimal
    ','
    """
    before = _SAID.set(Layout(delimiter, decimal, encoding, header, numbered, latitude, longitude))
    try:
        yield
    finally:
        _SAID.reset(before)


def say_recognised(path: Path | str, what: str) -> None:
    """Tell the caller what was recognised of a file."""
    warn(f"{path}: {what}", RecognisedWarning, stacklevel=3)


def shortened(text: str) -> str:
    """Return a list of names for an error, cut where it is long."""
    return text if len(text) <= _LONGEST_LIST else f"{text[: _LONGEST_LIST - 1]}…"


def composed(text: str) -> str:
    """Return a text whose letters and marks are joined (Unicode's form NFC), so that equal texts are equal.

    >>> composed("Zu\u0308rich") == "Z\u00fcrich"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def names_of(axis: str, usual: Sequence[str]) -> tuple[str, ...]:
    """Return the names, in small letters, that the column of a coordinate may have: the one that is said, or usual."""
    given = getattr(said(), axis, None)
    return tuple(usual) if given is None else (composed(given).strip().lower(),)


def encoding_of(path: Path, start: bytes) -> str:
    """Return the encoding of a text with the first bytes `start`: as said, by its byte order mark, or UTF-8."""
    given = said().encoding
    if given is not None:
        return given
    found = next((name for mark, name in _ORDER_MARKS.items() if start.startswith(mark)), "utf-8-sig")
    if found != "utf-8-sig":
        say_recognised(path, f"is {found.upper()}, by its byte order mark; encoding says another one")
    return found


class Lines(Iterator[str]):
    """The lines of a text, whose letters and marks are joined; a first line such as ``sep=;`` is blank.

    `head` holds the first lines, `separator` the character in such a line, and `is_text` tells that it is not made of
    a file of another kind, such as Parquet.
    """

    def __init__(self, path: Path, lines: Iterator[str], is_text: bool) -> None:
        self.path = path
        self.is_text = is_text
        self._composed = False
        self._lines = lines
        self.head = [self._joined(line) for line in islice(lines, _HEAD_LINES)]
        found = _SEPARATOR.fullmatch(self.head[0]) if self.head and is_text else None
        self.separator = None if found is None else found["bare"] or found["quoted"]
        if found is not None:
            self.head[0] = "\n"
        self._first = iter(self.head)

    def first_rows(self, dialect: Dialect) -> list[list[str]]:
        """Return the rows in the first lines that are not blank."""
        return list(_rows(self.head, dialect))

    def __next__(self) -> str:
        line = next(self._first, None)
        return self._joined(next(self._lines)) if line is None else line

    def _joined(self, line: str) -> str:
        if line.isascii() or unicodedata.is_normalized("NFC", line):
            return line
        if not self._composed:
            self._composed = True
            say_recognised(self.path, "letters and marks that stand apart are joined (Unicode NFC)")
        return unicodedata.normalize("NFC", line)


@dataclass(frozen=True)
class Dialect:
    """How rows are written: what separates columns, and whether blanks around fields are left out."""

    delimiter: str
    padded: bool = False


def dialect_of(lines: Lines, delimiter: str | None = None, suits: Callable[[list[str]], bool] | None = None) -> Dialect:
    """Return how the rows of a text are written, and tell it where it was not said and is not CSV.

    `suits` tells whether fields are those of the first row that is looked for. Commas are taken where they suit; else
    what does, and where nothing does, what the first line has most of.
    """
    delimiter = said().delimiter if delimiter is None else delimiter
    if not lines.is_text:
        return Dialect(",")
    asked = delimiter or lines.separator
    found = [Dialect(each, padded) for each in ([asked] if asked else _DELIMITERS) for padded in (False, True)]
    if suits is None:
        counts = {each: len(_first_row(lines.head, each)) for each in found}
        best = max(found, key=counts.__getitem__)
        # Names of columns that all begin with a blank are written with one after each delimiter.
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
        say_recognised(lines.path, f"columns are separated by {name}; delimiter says another sign")
    if chosen.padded:
        say_recognised(lines.path, "blanks around its fields are left out")
    return chosen


def _by_count(head: Sequence[str], found: Sequence[Dialect]) -> Dialect:
    return max((each for each in found if not each.padded), key=lambda each: len(_first_row(head, each)))


def _first_row(head: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the fields of the first row that is not blank, as far as it can be read."""
    return next(_rows(head, dialect), [])


def _rows(head: Sequence[str], dialect: Dialect) -> Iterator[list[str]]:
    """Yield the rows of some lines that are not blank, as far as they can be read."""
    try:
        for row in filter(None, csv.reader(head, delimiter=dialect.delimiter, skipinitialspace=dialect.padded)):
            yield [field.strip() for field in row] if dialect.padded else row
    except csv.Error:
        # Whoever reads all rows tells what is wrong with this one.
        return


@dataclass(frozen=True)
class Mark:
    """The sign before decimals in a column of numbers."""

    sign: str = "."

    def plain(self, text: str) -> str:
        """Return a number with a point; one with a point where commas are the sign is no number afterwards."""
        return text if self.sign == "." else text.replace(".", "..").replace(",", ".")


def mark_of(texts: Sequence[str], path: str, largest: float = float("inf")) -> Mark:
    """Return the sign before decimals in the numbers of a column, or matrix, at `path`: as said, or recognised.

    Commas are recognised where one of them cannot part thousands: it has not three digits after it, or a zero before
    it, or the number would be above `largest`. Raises `InputError` where all may part thousands, or points stand in
    other numbers.
    """
    given = said().decimal
    commas = [text for text in texts if "," in text and _WITH_COMMA.fullmatch(text)]
    if given is not None:
        if given == "," and (point := next(filter(_WITH_POINT.fullmatch, texts), None)) is not None:
            raise InputError(path, "has a point, where decimals have a comma", value=cell(point), bound="a comma")
        return Mark(given)
    if not commas:
        return Mark()
    remedy = 'say decimal = "," (--decimal of the command) if it stands before decimals; else leave it out'
    if any(map(_WITH_POINT.fullmatch, texts)):
        problem = "has a comma in a number, and points in others"
        raise InputError(path, problem, value=cell(commas[0]), bound="one sign before decimals", remedy=remedy)
    if all(_THOUSANDS.fullmatch(text) and abs(float(text.replace(",", ""))) <= largest for text in commas):
        problem = "has a comma that may part thousands, or stand before decimals"
        raise InputError(path, problem, value=cell(commas[0]), bound="a number with a point", remedy=remedy)
    say_recognised(path, 'commas stand before decimals; decimal = "." says otherwise')
    return Mark(",")


_LIMIT_LOCK = threading.Lock()
_limits: list[int] = []


@contextmanager
def wide_fields() -> Iterator[None]:
    """Let fields of CSV be as long as a line may be: the limit of the process is put back by the last that needs it."""
    with _LIMIT_LOCK:
        _limits.append(csv.field_size_limit())
        csv.field_size_limit(max(_limits[-1], _WIDEST_FIELD))
    try:
        yield
    finally:
        with _LIMIT_LOCK:
            before = _limits[0]
            _limits.pop()
            if not _limits:
                csv.field_size_limit(before)
