"""Find secrets by label or by index, and match the rows of a file with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mechdesign.base._errors import InputError
from mechdesign.certify._texts import escape
from mechdesign.data._layout import cell, to_nfc
from mechdesign.data._text import check_column, column_text, read_columns, read_rows

# Numbers with enough digits for a coordinate. A text with two of these numbers may be a place.
_COORDINATE = re.compile(r"[0-9]{1,4}[.,][0-9]{2,}|[0-9]{5,}")
_MAX_NAME_LENGTH = 40
_WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")
_NOT_A_LABEL = "is not a label; it is not read as an index, since all labels are numbers"


@dataclass(frozen=True)
class Names:
    """An index of secrets (or other members) by label; positions count from 0.

    Attributes:
        places: The position of every label.
        numbers: Whether all labels are whole numbers that differ from the positions. In this case, numbers that are not
            labels are refused, because they may be mistyped labels.
    """

    places: Mapping[str, int]
    numbers: bool

    @classmethod
    def of(cls, labels: Sequence[str]) -> Names:
        """Return the index of members, given their labels in the order of their positions.

        >>> Names.of(["0", "1", "2"]).numbers, Names.of(["3", "1"]).numbers, Names.of(["home", "7"]).numbers
        (False, True, False)

        Raises `InputError` if two labels are equal in Unicode form NFC.
        """
        numbered = all(label == str(position) for position, label in enumerate(labels))
        whole = not numbered and all(map(_WHOLE.fullmatch, labels))
        places: dict[str, int] = {}
        for position, label in enumerate(labels):
            first = places.setdefault(to_nfc(label), position)
            if labels[first] != label:
                problem = f"repeats labels[{first}] after Unicode normalisation (NFC)"
                raise InputError(f"labels[{position}]", problem, value=label, bound="distinct from all others")
        return cls(places, whole)

    def find_in_specification(self, name: int | str, path: str) -> int:
        """Return the position of a member named in a specification: strings are labels, and integers are positions.

        Raises `InputError` at `path` for an unknown label or a position out of range. An integer is also refused if it
        may be a label: if labels are whole numbers, or if it is the label of another member.
        """
        if isinstance(name, str):
            found = self.places.get(to_nfc(name))
            if found is None:
                digits = name.isascii() and name.isdecimal() and not self.numbers
                remedy = "an index is written without quotes" if digits else ""
                raise InputError(path, "is not a secret", value=_mask_places(name), bound=self._labels, remedy=remedy)
            return found
        if self.numbers or self.places.get(str(name), name) != name:
            problem = "is an index, but may be meant as a label, since labels are whole numbers"
            raise InputError(path, problem, value=name, bound="a label, in quotes")
        return self.find_position(name, path)

    def find_in_file(self, text: str, path: str) -> int:
        """Return the position of a member named in a text file, by its label or by its position.

        Raises `InputError` at `path` for any other text. If labels are whole numbers, positions are refused as well.
        """
        if to_nfc(text) in self.places:
            return self.places[to_nfc(text)]
        digits = text.isascii() and text.isdecimal() and len(text) < 20
        if digits and self.numbers:
            raise InputError(path, _NOT_A_LABEL, value=_mask_places(text), bound="a label")
        if not digits or int(text) >= len(self.places):
            raise InputError(path, "is not a secret", value=_mask_places(text), bound=self._either)
        if self.places.get(str(int(text)), int(text)) != int(text):
            problem = "is not a label, and may be meant as the label of one secret or as the index of another"
            raise InputError(path, problem, value=_mask_places(text), bound="a label in its exact spelling")
        return int(text)

    def find_in_python(self, name: int | str, path: str) -> int:
        """Return the position of a member given in Python: integers are positions, and strings are labels."""
        return self.find_in_specification(name, path) if isinstance(name, str) else self.find_position(name, path)

    def find_position(self, number: int, path: str) -> int:
        """Return a position; raise `InputError` at `path` if it is out of range."""
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


def _mask_places(name: str) -> str:
    """Return the text that an error shows for an argument or a key: masked if it may contain true places."""
    places = len(name) > _MAX_NAME_LENGTH or len(_COORDINATE.findall(name)) > 1
    return cell(name) if places else name


_PADDED = re.compile(r"[0-9]{1,18}(\.0*)?")


class Matched(NamedTuple):
    """Columns of a file with a row for each secret, in the order of the secrets.

    Attributes:
        columns: The texts in each requested column.
        note: A sentence about the way in which rows were matched with secrets.
        rows: The row number of each secret in the file, from 1.
    """

    columns: Mapping[str, list[str]]
    note: str
    rows: tuple[int, ...]


def read_matched(
    path: Path, names: Sequence[str], labels: Sequence[str], label: str | None = None, delimiter: str | None = None
) -> Matched:
    """Return the columns `names` of a file with a header and a row for each secret, in the order of the secrets.

    Args:
        path: The file.
        names: The columns to read.
        labels: The labels of the secrets, in order.
        label: The column with the labels; "" if rows are in the order of the secrets. If None, the function looks for a
            column in which most texts are labels.
        delimiter: The character between columns; recognised if None.

    Returns:
        The columns, with a note about the matching.

    Raises:
        InputError: A column is missing, or several columns may contain labels. The error is also raised if a text is
            not a label, a label occurs twice, or a secret has no row.
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
            remedy = 'name one of them: label = "…"; label = "" uses the order of the rows'
            raise InputError(str(path), f"has several columns of labels, {shown}", remedy=remedy)
        label = found[0] if found else ""
        if label:
            _require_order(read[label], label, known, path)
        else:
            _require_no_other_spelling({name: read[name] for name in others}, known, path)
    file = escape(path.name)
    if label:
        order = _match_rows(read[label], label, known, path)
        columns = {name: [read[name][row] for row in order] for name in names}
        note = f"{file}: rows are matched with the secrets by the column {column_text(label)}"
        return Matched(columns, note, tuple(row + 1 for row in order))
    count = len(read[names[0]])
    note = f"{file}: it has no column of labels, so its rows are matched with the secrets in order"
    return Matched({name: read[name] for name in names}, note, tuple(range(1, count + 1)))


def _holds_labels(texts: Sequence[str], known: Names) -> bool:
    """Return whether a column seems to contain labels.

    Most texts of the column must be labels. If the texts are numbers, they must also be distinct; if they are
    positions, all positions must occur.
    """
    distinct = set(map(to_nfc, texts))
    if _are_positions(known):
        return distinct == known.places.keys() and len(distinct) == len(texts)
    if known.numbers and len(distinct) < len(texts):
        return False
    return 2 * len(distinct & known.places.keys()) > len(distinct)


def _are_positions(known: Names) -> bool:
    return all(label == str(position) for label, position in known.places.items())


def _require_order(texts: Sequence[str], label: str, known: Names, path: Path) -> None:
    """Raise `InputError` if a column, not chosen by the user, numbers the secrets in another order than the rows."""
    if _are_positions(known) and list(texts) != list(known.places):
        raise InputError(
            str(path),
            f"has a column {column_text(label)} that may number the secrets, but not in the order of its rows",
            remedy=f'set label = "{escape(label)}" if this column numbers the secrets, '
            'or label = "" if rows are in the order of the secrets',
        )


def _require_no_other_spelling(columns: Mapping[str, Sequence[str]], known: Names, path: Path) -> None:
    """Raise `InputError` if a column seems to contain labels in another spelling, or numbers that count from 1."""
    labels = set(map(_simplify, known.places))
    for name, texts in columns.items():
        simple = list(map(_simplify, texts))
        found = set(simple)
        if _are_positions(known):
            # Numbers in increasing order agree with the order of the rows, so they are harmless.
            counted = found == set(map(str, range(1, len(texts) + 1))) and simple != sorted(simple, key=int)
            alike = counted or (found == labels and simple != list(known.places))
        elif known.numbers:
            alike = len(found) == len(simple) and 2 * len(found & labels) > len(found)
        else:
            alike = any(text in labels and not text.isdecimal() for text in found)
        if alike and len(texts) > 1:
            raise InputError(
                str(path),
                f"has a column {column_text(name)} that may name the secrets, but most of its entries are not labels",
                bound="the labels in their exact spelling, or no labels",
                remedy=f'correct the column and set label = "{escape(name)}", '
                'or label = "" if rows are in the order of the secrets',
            )


def _simplify(text: str) -> str:
    """Return a text in lower case without outer blanks; a whole number also loses leading and decimal zeros."""
    plain = to_nfc(text).strip().casefold()
    return str(int(plain.split(".")[0])) if _PADDED.fullmatch(plain) else plain


def _match_rows(texts: Sequence[str], label: str, known: Names, path: Path) -> list[int]:
    """Return the row of each secret; raise `InputError` for an unknown, repeated or missing label."""
    rows: dict[int, int] = {}
    for row, text in enumerate(texts):
        where = f"{path}, row {row + 1}, column {label}"
        position = known.places.get(to_nfc(text))
        if position is None:
            remedy = "correct the label, or name the column with the labels"
            raise InputError(where, "is not the label of a secret", value=cell(text), bound="a label", remedy=remedy)
        if position in rows:
            raise InputError(
                where, f"repeats the label of row {rows[position] + 1}", value=cell(text), bound="one row each"
            )
        rows[position] = row
    if len(rows) < len(known.places):
        missing = next(name for name, position in known.places.items() if position not in rows)
        raise InputError(
            f"{path}, column {label}", f"has no row for the secret {escape(missing)}", bound="a row for each secret"
        )
    return [rows[position] for position in range(len(rows))]
