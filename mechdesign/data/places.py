"""Read places from a file: latitude and longitude, or x and y."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mechdesign.data import left_out as reasons
from mechdesign.data.degrees import errors_at
from mechdesign.data.degrees import place_in
from mechdesign.data.degrees import refused
from mechdesign.data.degrees import say_beyond
from mechdesign.data.degrees import within_180
from mechdesign.data.forms import cell
from mechdesign.data.layout import names_of
from mechdesign.data.left_out import MOST_LEFT_OUT
from mechdesign.data.left_out import LeftOut
from mechdesign.data.left_out import RowError
from mechdesign.data.text import as_float
from mechdesign.data.text import check_column
from mechdesign.data.text import columns_text
from mechdesign.data.text import plain_numbers
from mechdesign.data.text import read_columns
from mechdesign.data.text import read_rows
from mechdesign.base._errors import InputError
from mechdesign.base._errors import Shown
from mechdesign.model._locate import DEGREES
from mechdesign.model._locate import Axes
from mechdesign.base._arrays import Floats

__all__ = ["COLUMNS", "count_places", "read_places"]

Suits = Callable[[list[str]], bool]

COLUMNS = {
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "x": ("x",),
    "y": ("y",),
}
"""Names of columns that are understood, in capital or small letters."""


def read_places(path: str | os.PathLike[str], axes: Axes, delimiter: str | None = None) -> tuple[Floats, Floats]:
    """Return the coordinates in a file with a header line, a float64 array for each axis.

    Other columns are left alone. Longitudes beyond 180 degrees are taken as 360 degrees less.

    Raises:
        InputError: The file cannot be read, has no such columns, or has an entry that is no finite number in range.
    """
    first, second, rows = _coordinates(Path(path), axes, delimiter, None)
    assert not rows.counts
    return first, second


def count_places(
    path: str | os.PathLike[str], axes: Axes, delimiter: str | None = None, missing: float = MOST_LEFT_OUT
) -> tuple[Floats, Floats, LeftOut]:
    """Return what `read_places` does of a file in which places are counted, and what was left out.

    A row without a place, with a latitude beyond 90 degrees, or with another number of fields, and a blank line between
    rows, is left out: at most the share `missing` of all.
    """
    left_out = LeftOut(missing)
    found = _coordinates(Path(path), axes, delimiter, left_out)
    left_out.check()
    return found


def _coordinates(
    source: Path, axes: Axes, delimiter: str | None, left_out: LeftOut | None
) -> tuple[Floats, Floats, LeftOut]:
    def suits(header: list[str]) -> bool:
        return all(len(_named(header, axis)) == 1 for axis in axes)

    header = next((fields for _, fields in read_rows(source, delimiter, suits=suits)), [])
    chosen = [_column(source, header, axis) for axis in axes]
    if left_out is None:
        columns = read_columns(source, chosen, delimiter)
        lines = list(range(1, len(columns[chosen[0]]) + 1))
    else:
        columns, lines = _whole_rows(source, chosen, delimiter, suits, left_out)
    limits = (90, 360) if axes == DEGREES else (math.inf, math.inf)
    columns |= {
        name: plain_numbers(columns[name], source, name, limit) for name, limit in zip(chosen, limits, strict=True)
    }
    found: list[tuple[float, float]] = []
    rows = LeftOut() if left_out is None else left_out
    for row, *texts in zip(lines, columns[chosen[0]], columns[chosen[1]], strict=True):
        try:
            found.append(_point((texts[0], texts[1]), axes, (chosen[0], chosen[1]), f"{source}, row {row}"))
        except RowError as fault:
            if left_out is None:
                raise refused(fault) from None
            rows.add(fault)
    rows.kept = len(found)
    both = np.array(found, dtype=np.float64).reshape(-1, 2)
    if axes != DEGREES:
        return both[:, 0], both[:, 1], rows
    say_beyond(source, both[:, 1])
    return both[:, 0], within_180(both[:, 1]), rows


def _whole_rows(
    source: Path, names: list[str], delimiter: str | None, suits: Suits, left_out: LeftOut
) -> tuple[dict[str, list[str]], list[int]]:
    """Return the texts in columns, and the numbers of their rows; rows of another length are left out."""
    rows = list(read_rows(source, delimiter, blanks=True, suits=suits))
    filled = [index for index, (_, row) in enumerate(rows) if row]
    header = rows[filled[0]][1]
    places = {name: check_column(name, header, source) for name in names}
    columns: dict[str, list[str]] = {name: [] for name in names}
    numbers: list[int] = []
    for number, (line, row) in enumerate(rows[filled[0] + 1 : filled[-1] + 1], 1):
        error = errors_at(f"{source}, line {line}")
        if not row:
            left_out.add(RowError(reasons.BLANK, error("is blank", None, "a row of the table in every line")))
        elif len(row) != len(header):
            bound = f"{len(header)} as in the header"
            left_out.add(RowError(reasons.FIELDS, error("has the wrong number of fields", len(row), bound)))
        else:
            numbers.append(number)
            for name, place in places.items():
                columns[name].append(row[place])
    if not numbers and not left_out.counts:
        raise InputError(str(source), "has no lines below its header", bound="at least one line")
    return columns, numbers


def _point(texts: tuple[str, str], axes: Axes, names: tuple[str, str], where: str) -> tuple[float, float]:
    """Return the place in two cells; raise `RowError` where there is none."""
    if axes == DEGREES:
        return place_in(
            texts, names, lambda problem, value, bound: InputError(where, problem, value=value, bound=bound)
        )
    values = [as_float(text) for text in texts]
    for text, name, value in zip(texts, names, values, strict=True):
        if value is None or not math.isfinite(value):
            problem = "is not a number" if value is None else "is not finite"
            fault = InputError(f"{where}, column {name}", problem, value=cell(text), bound="a finite number")
            raise RowError(reasons.NO_PLACE, fault)
    return float(values[0] or 0.0), float(values[1] or 0.0)


def _column(source: Path, header: list[str], axis: str) -> str:
    found = _named(header, axis)
    if len(found) != 1:
        problem = f"has no column of the {axis}" if not found else f"has more than one column of the {axis}"
        bound = f"a header line with a column {' or '.join(names_of(axis, COLUMNS[axis]))}"
        remedy = f"name it: {axis}, or --{axis} of the command" if axis in DEGREES else ""
        shown = Shown(columns_text(header, COLUMNS[axis]))
        raise InputError(str(source), problem, value=shown, bound=bound, remedy=remedy)
    return found[0]


def _named(header: list[str], axis: str) -> list[str]:
    """Return the columns of a header that are called as the coordinate on an axis is."""
    return [name for name in header if name.strip().lower() in names_of(axis, COLUMNS[axis])]
