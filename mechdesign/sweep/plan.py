"""What a sweep asks for: a specification, and lists of values for some of its keys."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

from mechdesign.model._grammar import Raw
from mechdesign.base._errors import SpecificationError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.model._problem import counted_keys
from mechdesign.report._private import COUNTED
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.specification._grammar import check_key
from mechdesign.specification._grammar import with_value
from mechdesign.specification._specification import read_text
from mechdesign.specification._specification import tables_of

__all__ = ["MOST_ROWS", "Mode", "Sweep", "parse", "read"]


def __dir__() -> list[str]:
    return sorted(__all__)


Mode = Literal["product", "zip"]

MOST_ROWS = 100_000
"""Most designs of a sweep."""

_TABLE = "sweep"


@dataclass(frozen=True, eq=False)
class Sweep:
    """A specification, and lists of values for some of its keys.

    Attributes:
        tables: The specification, as it was written, without the lists.
        values: The path of each key, such as ``privacy.0.epsilon``, with its values, as they were written.
        mode: "product", each value with each, or "zip", the first values together, the second ones, and so on.
        folder: What file names are relative to.
    """

    tables: Raw
    values: Mapping[str, Sequence[Any]]
    mode: Mode
    folder: Path

    def __len__(self) -> int:
        """Return the number of designs."""
        sizes = [len(values) for values in self.values.values()]
        return math.prod(sizes) if self.mode == "product" else sizes[0]

    @property
    def title(self) -> str:
        """What the specification is called."""
        return str(self.tables.get("title", ""))

    @property
    def private(self) -> str:
        """What the folder tells of data, as a sentence without a full stop; empty where nothing was counted."""
        return COUNTED if any(not key.endswith("counts") for key in counted_keys(self.tables)) else ""

    def points(self) -> Iterator[Mapping[str, Any]]:
        """Yield the values of the keys for each design; in a product those of the last key change first."""
        combine = itertools.product if self.mode == "product" else zip
        return (dict(zip(self.values, point, strict=True)) for point in combine(*self.values.values()))

    def tables_at(self, point: Mapping[str, Any]) -> Raw:
        """Return the tables of one design."""
        tables = self.tables
        for key, value in point.items():
            tables = with_value(tables, key, value, place(key))
        return tables


def read(path: str | os.PathLike[str]) -> Sweep:
    """Read a specification with a ``[sweep]`` table from a file; see `parse`."""
    return _parsed(read_text(path), Path(path).parent, os.fspath(path))


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Sweep:
    """Read a specification with a ``[sweep]`` table from a text; names of files in it are relative to `base_folder`.

    Raises:
        SpecificationError: The text is no TOML; or in ``[sweep]`` a path is not known to the grammar, a list is empty,
            or lists that go together differ in length. What the values do to the specification is looked at by `run`.

    >>> sweep = parse('''
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
    ... sweep = { "privacy.0.epsilon" = [0.5, 1, 2], "cost.power" = [1, 2] }
    ... ''')
    >>> len(sweep), list(sweep.points())[1]
    (6, {'privacy.0.epsilon': Decimal('0.5'), 'cost.power': 2})
    """
    return _parsed(text, base_folder)


def _parsed(text: str, base_folder: str | os.PathLike[str], source: str = "specification") -> Sweep:
    tables = tables_of(text, source)
    table = tables.pop(_TABLE, None)
    if not isinstance(table, dict) or not set(table) - {"mode"}:
        raise SpecificationError(
            _TABLE,
            "is missing" if table is None else "names no key",
            value=table,
            bound="a table with a list of values for at least one key",
            remedy='add [sweep] with "privacy.0.epsilon" = [0.5, 1, 2], say',
        )
    _look_for_kinds(tables, table)
    mode = table.pop("mode", "product")
    if mode not in get_args(Mode):
        raise SpecificationError(f"{_TABLE}.mode", "is not known", value=mode, bound='"product" or "zip"')
    for key, values in table.items():
        _check_values(key, values)
    _check_apart(list(table))
    lengths = {key: len(values) for key, values in table.items()}
    if mode == "zip" and len(set(lengths.values())) > 1:
        first, second = next((a, b) for a, b in itertools.pairwise(lengths) if lengths[a] != lengths[b])
        raise SpecificationError(
            place(second),
            f"differs in length from {place(first)}",
            value=lengths[second],
            bound=f"{lengths[first]} values",
            remedy='make them equally long, or write mode = "product"',
        )
    sweep = Sweep(tables, ReadOnlyMapping(table), mode, Path(base_folder))
    if len(sweep) > MOST_ROWS:
        raise SpecificationError(_TABLE, "asks for too many designs", value=len(sweep), bound=f"at most {MOST_ROWS}")
    for key, values in table.items():
        with_value(tables, key, values[0], place(key))
    return sweep


def _look_for_kinds(tables: Raw, swept: Mapping[str, Any]) -> None:
    """Let kinds of other packages be loaded, where they are to be: their keys are then known."""
    stated = tables.get("privacy")
    names = [raw.get("kind") for raw in stated if isinstance(raw, dict)] if isinstance(stated, list) else []
    lists = [values for key, values in swept.items() if key.endswith(".kind") and isinstance(values, list)]
    names += [name for values in lists for name in values]
    for name in names:
        # Looking for it loads it.
        _ = name in KINDS


def place(key: str) -> str:
    """Return where the values of a key stand."""
    return f'{_TABLE}."{key}"'


def _check_values(key: str, values: object) -> None:
    where = place(key)
    if isinstance(values, dict):
        raise SpecificationError(
            f"{_TABLE}.{key}", "is a table", bound="a list of values", remedy="write the whole path in quotes"
        )
    check_key(key, where)
    if not isinstance(values, list):
        shown = float(values) if isinstance(values, Decimal) else values
        raise SpecificationError(where, "is no list", value=shown, bound="a list of values", remedy="write it in [ ]")
    if not values:
        raise SpecificationError(where, "is empty", bound="at least one value")


def _check_apart(keys: Sequence[str]) -> None:
    """Refuse two keys of which one is a part of the other."""
    for outer, inner in itertools.permutations(keys, 2):
        if inner.startswith(f"{outer}."):
            raise SpecificationError(
                place(inner), f"is a part of {outer}, which is swept, too", remedy="leave one of them out"
            )
