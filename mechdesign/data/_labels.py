"""Rows and members by label, or by position."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mechdesign.base._errors import InputError
from mechdesign.certify._texts import escape
from mechdesign.data._layout import cell, composed
from mechdesign.data._text import check_column, column_text, read_columns, read_rows

# Numbers with as many digits as coordinates have: two of them in a text may be a place.
_COORDINATE = re.compile(r"[0-9]{1,4}[.,][0-9]{2,}|[0-9]{5,}")
_LONGEST = 40
_WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")
_SAID = "is no label; it is not taken for an index, since all labels are numbers"


@dataclass(frozen=True)
class Names:
    """The names of members: their labels, and their positions from 0 on.

    Attributes:
        places: the position of every label.
        numbers: whether all labels are whole numbers, and others than the positions themselves. A number that is no
            label is then not taken for a position: it may be meant as a label.
    """

    places: Mapping[str, int]
    numbers: bool

    @classmethod
    def of(cls, labels: Sequence[str]) -> Names:
        """Return the names of members with these labels, in order.

        >>> Names.of(["0", "1", "2"]).numbers, Names.of(["3", "1"]).numbers, Names.of(["home", "7"]).numbers
        (False, True, False)

        Raises InputError for labels that differ only in letters and marks that stand apart.
        """
        numbered = all(label == str(position) for position, label in enumerate(labels))
        whole = not numbered and all(map(_WHOLE.fullmatch, labels))
        places: dict[str, int] = {}
        for position, label in enumerate(labels):
            first = places.setdefault(composed(label), position)
            if labels[first] != label:
                problem = f"repeats labels[{first}], once letters and marks are joined (Unicode NFC)"
                raise InputError(f"labels[{position}]", problem, value=label, bound="distinct from all others")
        return cls(places, whole)

    def find_typed(self, name: int | str, path: str) -> int:
        """Return the position of a member named in a specification: a text is a label, an integer a position.

        Raises InputError, naming `path`, for a text that is no label, for an integer that is no position, and for one
        that may be meant as a label: any where labels are whole numbers, and one that is the label of another member.
        """
        if isinstance(name, str):
            found = self.places.get(composed(name))
            if found is None:
                digits = name.isascii() and name.isdecimal() and not self.numbers
                remedy = "an index is written without quotes" if digits else ""
                raise InputError(path, "is not a secret", value=_shown(name), bound=self._labels, remedy=remedy)
            return found
        if self.numbers or self.places.get(str(name), name) != name:
            problem = "is an index, and may be meant as a label, since labels are whole numbers"
            raise InputError(path, problem, value=name, bound="a label, in quotes")
        return self.find_position(name, path)

    def find_written(self, text: str, path: str) -> int:
        """Return the position of a member named in a file of text: by its label, or by its position.

        Raises InputError, naming `path`, for any other text, and for a number that is no label where labels are whole
        numbers.
        """
        if composed(text) in self.places:
            return self.places[composed(text)]
        digits = text.isascii() and text.isdecimal() and len(text) < 20
        if digits and self.numbers:
            raise InputError(path, _SAID, value=_shown(text), bound="a label")
        if not digits or int(text) >= len(self.places):
            raise InputError(path, "is not a secret", value=_shown(text), bound=self._either)
        if self.places.get(str(int(text)), int(text)) != int(text):
            problem = "is no label, and may be meant as the label of one secret or as the index of another"
            raise InputError(path, problem, value=_shown(text), bound="a label, as it is spelled")
        return int(text)

    def find_given(self, name: int | str, path: str) -> int:
        """Return the position of a member given in Python: an integer is a position, a text a label."""
        return self.find_typed(name, path) if isinstance(name, str) else self.find_position(name, path)

    def find_position(self, number: int, path: str) -> int:
        """Return a position itself; raise InputError, naming `path`, where there is no such member."""
        if not 0 <= number < len(self.places):
            raise InputError(path, "is not a secret", value=number, bound=self._either)
        return number

    @property
    def _labels(self) -> str:
        some = ", ".join(list(self.places)[:3])
        return f"a label such as {some}" if len(self.places) > 3 else f"one of {some}"

    @property
    def _either(self) -> str:
        named = any(label != str(position) for label, position in self.places.items())
        some = f" such as {', '.join(list(self.places)[:3])}" if named else ""
        return f"a label{some}, or an index from 0 to {len(self.places) - 1}"


def _shown(name: str) -> str:
    """Return what an error shows of an argument or a key: the form of a text that may hold true places."""
    places = len(name) > _LONGEST or len(_COORDINATE.findall(name)) > 1
    return cell(name) if places else name


_PADDED = re.compile(r"[0-9]{1,18}(\.0*)?")


class Matched(NamedTuple):
    """Columns of a file with a row for each secret, in the order of the secrets.

    Attributes:
        columns: the texts in each column that was asked for.
        note: how rows were matched with secrets.
        rows: the number of the row, from 1, that each secret has in the file.
    """

    columns: Mapping[str, list[str]]
    note: str
    rows: tuple[int, ...]


def read_matched(
    path: Path, names: Sequence[str], labels: Sequence[str], label: str | None = None, delimiter: str | None = None
) -> Matched:
    """Return the columns `names` of a file with a header and a row for each secret, in the order of the secrets.

    Args:
        path: the file.
        names: the columns to be read.
        labels: the labels of the secrets, in order.
        label: the column that holds labels; "" where rows are in the order of the secrets. Unless it is given, a column
            that holds labels is found: one in which most texts are labels.
        delimiter: the character between columns; recognised unless given.

    Raises:
        InputError: a missing column, a text that is no label, a label twice or without a row, more or fewer rows than
            secrets where they are matched by labels, or several columns that may hold labels.
    """
    _, header = next(read_rows(path, delimiter), (0, []))
    others = [name for name in dict.fromkeys(header) if name not in names and header.count(name) == 1]
    if label:
        check_column(label, header, path)
    read = read_columns(path, list(dict.fromkeys((*names, *([label] if label else others)))), delimiter)
    known = Names.of(labels)
    if label is None:
        found = [name for name in others if _holds_labels(read[name], known)]
        if len(found) > 1:
            shown = " and ".join(map(column_text, found))
            remedy = 'name one of them: label = "…"; label = "" takes the rows in order'
            raise InputError(str(path), f"has several columns of labels, {shown}", remedy=remedy)
        label = found[0] if found else ""
        if label:
            _require_order(read[label], label, known, path)
        else:
            _require_no_other_spelling({name: read[name] for name in others}, known, path)
    file = escape(path.name)
    if label:
        order = _matched_rows(read[label], label, known, path)
        columns = {name: [read[name][row] for row in order] for name in names}
        note = f"{file}: rows are matched with the secrets by the column {column_text(label)}"
        return Matched(columns, note, tuple(row + 1 for row in order))
    count = len(read[names[0]])
    note = f"{file}: without a column of labels, its rows are taken for the secrets in their order"
    return Matched({name: read[name] for name in names}, note, tuple(range(1, count + 1)))


def _holds_labels(texts: Sequence[str], known: Names) -> bool:
    """Tell whether a column seems to hold labels: numbers must be distinct, and the positions themselves complete."""
    distinct = set(map(composed, texts))
    if _are_positions(known):
        return distinct == known.places.keys() and len(distinct) == len(texts)
    if known.numbers and len(distinct) < len(texts):
        return False
    return 2 * len(distinct & known.places.keys()) > len(distinct)


def _are_positions(known: Names) -> bool:
    return all(label == str(position) for label, position in known.places.items())


def _require_order(texts: Sequence[str], label: str, known: Names, path: Path) -> None:
    """Raise `InputError` where a column that nobody named would number rows in another order than the file's."""
    if _are_positions(known) and list(texts) != list(known.places):
        raise InputError(
            str(path),
            f"has a column {column_text(label)} that may number the secrets, in another order than its rows",
            remedy=f'say label = "{escape(label)}" if it does, and label = "" if rows are in the order of the secrets',
        )


def _require_no_other_spelling(columns: Mapping[str, Sequence[str]], known: Names, path: Path) -> None:
    """Raise `InputError` where a column seems to hold labels that are spelled otherwise, or numbers from 1 on."""
    labels = set(map(_simplified, known.places))
    for name, texts in columns.items():
        simple = list(map(_simplified, texts))
        found = set(simple)
        if _are_positions(known):
            # In order, rows are where these numbers would lead them.
            counted = found == set(map(str, range(1, len(texts) + 1))) and simple != sorted(simple, key=int)
            alike = counted or (found == labels and simple != list(known.places))
        elif known.numbers:
            alike = len(found) == len(simple) and 2 * len(found & labels) > len(found)
        else:
            alike = any(text in labels and not text.isdecimal() for text in found)
        if alike and len(texts) > 1:
            raise InputError(
                str(path),
                f"has a column {column_text(name)} that may name the secrets, and most of it is no label",
                bound="the labels as they are spelled, or none",
                remedy=f'correct it and say label = "{escape(name)}", or label = "" if rows are in the secrets\' order',
            )


def _simplified(text: str) -> str:
    """Return a text in small letters and without blanks around it, and a whole number without what stands for none."""
    plain = composed(text).strip().casefold()
    return str(int(plain.split(".")[0])) if _PADDED.fullmatch(plain) else plain


def _matched_rows(texts: Sequence[str], label: str, known: Names, path: Path) -> list[int]:
    """Return which row each secret has; raise `InputError` for the first mismatch."""
    rows: dict[int, int] = {}
    for row, text in enumerate(texts):
        where = f"{path}, row {row + 1}, column {label}"
        position = known.places.get(composed(text))
        if position is None:
            remedy = "correct it, or say which column holds the labels"
            raise InputError(where, "is no label of a secret", value=cell(text), bound="a label", remedy=remedy)
        if position in rows:
            raise InputError(
                where, f"repeats the label of row {rows[position] + 1}", value=cell(text), bound="one row each"
            )
        rows[position] = row
    if len(rows) < len(known.places):
        missing = next(name for name, position in known.places.items() if position not in rows)
        raise InputError(
            f"{path}, column {label}", f"has no row for the secret {escape(missing)}", bound="a row for each"
        )
    return [rows[position] for position in range(len(rows))]
