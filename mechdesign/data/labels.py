"""Find secrets by label or by position, and match the rows of a table with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.data.table import FIXED, Layout, Table, read_table

_WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")


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
            first = places.setdefault(normalize("NFC", label), position)
            if labels[first] != label:
                problem = f"repeats labels[{first}] after Unicode normalisation (NFC)"
                raise InputError(f"labels[{position}]", problem, value=label, bound="distinct from all others")
        return cls(places, whole)

    def find(self, name: int | str, path: str) -> int:
        """Return the position of a member: strings are labels, and integers are positions.

        Raises `InputError` at `path` for an unknown label or a position out of range. An integer is also refused if it
        may be a label: if labels are whole numbers, or if it is the label of another member.
        """
        if isinstance(name, str):
            found = self.places.get(normalize("NFC", name))
            if found is None:
                digits = name.isascii() and name.isdecimal() and not self.numbers
                remedy = "an index is written without quotes" if digits else ""
                raise InputError(path, "is not a secret", value=name, bound=self._labels, remedy=remedy)
            return found
        if self.numbers or self.places.get(str(name), name) != name:
            problem = "is an index, but may be meant as a label, since labels are whole numbers"
            raise InputError(path, problem, value=name, bound="a label, in quotes")
        return self.find_position(name, path)

    def find_text(self, text: str, path: str) -> int:
        """Return the position of a member named in a text, by its label or by its position.

        Raises `InputError` at `path` for any other text, which the error does not show. If labels are whole numbers,
        positions are refused as well.
        """
        if normalize("NFC", text) in self.places:
            return self.places[normalize("NFC", text)]
        digits = text.isascii() and text.isdecimal() and len(text) < 20
        if digits and self.numbers:
            problem = "is not a label; it is not read as an index, since all labels are numbers"
            raise InputError(path, problem, bound=self._labels)
        if not digits or int(text) >= len(self.places):
            raise InputError(path, "is not a secret", bound=self._either)
        if self.places.get(str(int(text)), int(text)) != int(text):
            problem = "is not a label, and may be meant as the label of one secret or as the index of another"
            raise InputError(path, problem, bound="a label in its exact spelling")
        return int(text)

    def find_pair(
        self, first: str, second: str, path: str, fields: tuple[str, str] = (", field 1", ", field 2")
    ) -> tuple[int, int]:
        """Return the positions of two members named in a line, as `find_text` does; they must differ."""
        pair = self.find_text(first, path + fields[0]), self.find_text(second, path + fields[1])
        if pair[0] == pair[1]:
            raise InputError(path, "is a self-loop", bound="an edge between two secrets", remedy="leave it out")
        return pair

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


def read_matched(
    path: Path,
    wanted: Sequence[str],
    label: str | bool | None,
    labels: Sequence[str],
    layout: Layout = FIXED,
) -> tuple[Table, Integers]:
    """Read columns of a file with a row for each secret, and find the row of each secret.

    Args:
        path: The file.
        wanted: The columns to read.
        label: The column with the labels of the secrets, which match rows to secrets; False if the rows are in the
            order of the secrets. It may be None if the file has no other columns; its rows are then in this order.
        labels: The labels of the secrets, in order.
        layout: The layout of the file.

    Returns:
        The table, and the row of each secret, int64 (n,).

    Raises:
        InputError: The column of labels is not declared, or a label is missing, foreign or repeated.
    """
    if label is True:
        raise InputError("label", "is true", bound="the name of a column, or false")
    table = read_table(path, [*wanted, label] if isinstance(label, str) else wanted, layout)
    if label is None and table.others:
        bound = 'label = "COLUMN" with the labels of the secrets, or label = false for rows in their order'
        raise InputError("label", f"is missing, since {path} has further columns", bound=bound)
    if not isinstance(label, str):
        if len(table) != len(labels):
            bound = f"{len(labels)}, one for each secret"
            raise InputError(str(path), "has another number of rows", value=len(table), bound=bound)
        return table, np.arange(len(labels))
    places = Names.of(labels).places
    rows: dict[int, int] = {}
    for row, text in enumerate(table.texts(label)):
        position = places.get(normalize("NFC", text))
        if position is None:
            raise InputError(table.where(row, label), "is not the label of a secret", bound="a label")
        if position in rows:
            problem = f"repeats {labels[position]!r}, which stands in {table.where(rows[position])}"
            raise InputError(table.where(row, label), problem, bound="one row for each secret")
        rows[position] = row
    missing = next((name for position, name in enumerate(labels) if position not in rows), None)
    if missing is not None:
        raise InputError(f"{path}, column {label}", f"has no row for {missing!r}", bound="one row for each secret")
    return table, np.array([rows[position] for position in range(len(labels))], dtype=np.int64)


def read_counts(
    path: Path, column: str, label: str | bool | None, labels: Sequence[str], layout: Layout = FIXED
) -> Floats:
    """Read the count of each secret as `read_matched` does; raise `InputError` for the first line below 0."""
    table, rows = read_matched(path, [column], label, labels, layout)
    counts = table.numbers(column)
    if (counts < 0).any():
        raise InputError(table.where(int(np.argmax(counts < 0)), column), "is negative", bound="a count >= 0")
    return counts[rows]
