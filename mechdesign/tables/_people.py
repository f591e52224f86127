"""The rows of one person, which a release changes together.

A release that costs ε for two neighbouring tables costs at most k·ε for all rows of a person with at most k rows, and
k²·ρ instead of ρ. Let two tables differ in rows of one person, each of which changes along an edge of the policy:

- Without known counts, the rows change one after another, which is a chain of at most k neighbours.
- Under known counts other records change too, so that both tables agree with the counts. The changes split into
  smallest parts that keep every count. A part without a row of the person may be left out. Each other part has a record
  that changes along an edge, so it joins two neighbours, and there are at most k such parts.

Along a chain of k neighbours, the logarithms of ratios add up to at most k·ε, and ρ grows to at most k²·ρ (Bun and
Steinke 2016, Proposition 1.9). The argument uses no property of a query, a strategy or a noise.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Set
from typing import Any

import numpy as np

from mechdesign.base._check import as_integer, require_unmasked
from mechdesign.base._errors import InputError

_KEYS = "a text or an integer for each row, in the order of the rows"
# More rows would make costs that no budget can hold.
_MOST_ROWS = 2**40


def as_rows(rows_per_person: object) -> int:
    """Return the largest number of rows of one person, an integer from 1 to 2^40.

    >>> as_rows(20)
    20
    """
    return as_integer(rows_per_person, "rows_per_person", 1, _MOST_ROWS)


def check_people(person: Any, rows: int, count: Callable[[], int]) -> None:
    """Raise `InputError` if a person has more than `rows` rows, or if `person` does not name one person for each row.

    Args:
        person: the key of the person of each row.
        rows: the largest number of rows of one person.
        count: a function that returns the number of rows of the table.

    >>> check_people(["Ada", "Ada ", "Carl"], 2, lambda: 3)
    """
    keys = _list_keys(person)
    if len(keys) != (wanted := count()):
        raise InputError("person", "has the wrong length", value=len(keys), bound=f"{wanted}, one key for each row")
    found: Counter[object] = Counter()
    for key, number in Counter(keys).items():
        # Two spellings of one key must not pass as two people.
        found[unicodedata.normalize("NFC", key).strip() if isinstance(key, str) else key] += number
    if not all(map(_is_key, found)) or len({isinstance(key, str) for key in found}) > 1:
        raise InputError("person", "has a key that is missing, or is of another kind than the others", bound=_KEYS)
    most = max([0, *found.values()])
    if most > rows:
        raise InputError(
            "person",
            "has more rows of one person than declared",
            value=most,
            bound=f"at most {rows}",
            remedy="set rows_per_person to a bound that holds for everybody, or keep fewer rows of each person. The "
            "bound is published: take it from the way in which the rows were collected, not from this table",
        )


def _list_keys(person: Any) -> list[Hashable]:
    require_unmasked(person, "person")
    if isinstance(person, str | bytes | Mapping | Set) or not hasattr(person, "__len__") or hasattr(person, "columns"):
        remedy = f"give the column itself, such as data[{person!r}]" if isinstance(person, str) else ""
        raise InputError("person", "is not a column", value=type(person).__name__, bound=_KEYS, remedy=remedy)
    keys = list(person) if isinstance(person, list | tuple) else np.asarray(person).tolist()
    if not isinstance(keys, list) or not all(isinstance(key, Hashable) for key in keys):
        raise InputError("person", "does not have one key in each row", value=type(person).__name__, bound=_KEYS)
    return keys


def _is_key(key: Any) -> bool:
    """Return whether a key is a text or an integer; a column of integers may have become one of floats."""
    if isinstance(key, str):
        return bool(key)
    if isinstance(key, float | np.floating):
        return float(key).is_integer() and abs(float(key)) < 2**53
    return isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_)
