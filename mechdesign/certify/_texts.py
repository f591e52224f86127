"""Texts from untrusted sources: how they are displayed, which texts bundles refuse, and how CSV files quote them.

A title or a label may come from an untrusted source. A control character moves the cursor of a terminal, and a
direction mark reverses words. A spreadsheet evaluates a text that begins with ``=``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping

from mechdesign.base._errors import InputError

# Control characters (C0, DEL and C1), marks that embed, override or isolate a writing direction, and surrogates.
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BLANKS = str.maketrans("\t\n\r", "   ")
_BOUND = "a text without control characters and marks of writing direction"

_STARTS = frozenset("=+-@\t\r")
_ONE = r"(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|nan))"
_NUMBERS = re.compile(rf"{_ONE}(?:, ?{_ONE})*", re.ASCII)


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object as a dict; raise `ValueError` if a key occurs twice.

    >>> unique_keys([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def escape(text: str, *, lines: bool = False) -> str:
    r"""Return a text with unprintable characters escaped as in Python; with `lines`, line ends are kept.

    >>> print(escape("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or (lines and sign == "\n") else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def require_plain(text: str, path: str, *, lines: bool = False) -> None:
    """Raise `InputError` for a text with a control character or a mark of writing direction.

    The refused characters are C0, DEL, C1, U+202A to U+202E, U+2066 to U+2069 and surrogates. With `lines`, tabs and
    line ends are accepted. Other marks, such as joiners and accents, are accepted because they occur in ordinary names.
    """
    found = _REFUSED.search(text.translate(_BLANKS) if lines else text)
    if found is not None:
        problem = f"contains U+{ord(found[0]):04X}, which is not displayed"
        raise InputError(path, problem, value=text, bound=_BOUND, remedy="remove that character")


def require_plain_texts(values: object, path: str, *, lines: bool = False) -> None:
    """Raise `InputError` if `require_plain` refuses a text or a key of JSON values.

    With `lines`, texts may contain tabs and line ends, but keys may not.
    """
    if isinstance(values, str):
        require_plain(values, path, lines=lines)
    elif isinstance(values, Mapping):
        for name, value in values.items():
            require_plain(str(name), f"{path}[{str(name)!r}]")
            require_plain_texts(value, f"{path}.{name}" if path else str(name), lines=lines)
    elif isinstance(values, list | tuple):
        for index, value in enumerate(values):
            require_plain_texts(value, f"{path}[{index}]", lines=lines)


def to_cell(text: str) -> str:
    """Return a text for CSV, with an apostrophe in front if a spreadsheet would evaluate it.

    A spreadsheet evaluates texts that begin with ``=``, ``+``, ``-``, ``@``, a tab or a return. Numbers and
    comma-separated lists of numbers stay unchanged. Texts that begin with an apostrophe get another apostrophe, so that
    `from_cell` restores every text.

    >>> [to_cell(text) for text in ("=1+1", "-0.5", "-1, 2", "'tis", "home")]
    ["'=1+1", '-0.5', '-1, 2', "''tis", 'home']
    """
    return f"'{text}" if _needs_apostrophe(text) else text


def from_cell(text: str) -> str:
    """Return the text that `to_cell` wrote; other texts, such as ``'s-Hertogenbosch``, stay unchanged."""
    return text[1:] if text[:1] == "'" and _needs_apostrophe(text[1:]) else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV; `to_cell` quotes texts, and other values are printed."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([to_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def _needs_apostrophe(text: str) -> bool:
    """Return whether `to_cell` adds an apostrophe to a text."""
    first = text[:1]
    return first == "'" or (first in _STARTS and first != "" and not _NUMBERS.fullmatch(text))
