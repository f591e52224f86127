"""Names of members: labels, and positions where nothing else can be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign.data.forms import cell
from mechdesign.data.layout import composed
from mechdesign.base._errors import InputError

__all__ = ["Names"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
