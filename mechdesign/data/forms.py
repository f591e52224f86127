"""What an error shows of a cell of a file: its form, in which no digit and no letter can be read.

A table may hold true places, diagnoses or names, and errors end up in logs that others see. Where a cell stands tells
its owner enough; `mechdesign.base._errors.showing_values`, or ``--show-values``, shows the cell itself.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mechdesign.base._errors import Form
from mechdesign.base._errors import InputError
from mechdesign.base._errors import Shown
from mechdesign.base._errors import Total
from mechdesign.base._errors import values_are_shown

__all__ = ["cell", "form_of", "withheld", "withholding"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Of a text, so many signs are shown.
_SHOWN = 40
# So many letters that no value has are named beside others: more of them would spell the cell.
_MOST_FOREIGN = 2


def form_of(text: str, known: str = "") -> Form:
    """Return the form of a text, which shows digits as 9 and letters as a.

    What is neither, and not ASCII, is shown as U+… unless it is among the `known` signs, those of the values that are
    accepted: a space that is none, say, or a mark without width. Digits of other scripts are shown as the 9 of theirs.
    One or two letters that are neither ASCII nor known are named beside others: they look alike in several scripts.

    >>> form_of("2022-5-2 7:05"), form_of("3\u200b"), form_of("l\u043ew"), form_of("")
    ('9999-9-9 9:99', '9U+200B', 'aU+043Ea', 'an empty cell')
    """
    if not text or text.isspace():
        return Form("an empty cell" if not text else "a blank cell")
    letters = [sign for sign in text if _is_letter(sign)]
    foreign = [sign for sign in letters if not sign.isascii() and sign not in known]
    named = foreign if len(foreign) <= min(_MOST_FOREIGN, len(letters) // 2) else ()
    shown = "".join(_shown(sign, named, known) for sign in text[:_SHOWN])
    return Form(shown if len(text) <= _SHOWN else f"{shown}…")


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
