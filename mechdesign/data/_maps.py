"""Read places from tables."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, Shown
from mechdesign.data import _left_out as reasons
from mechdesign.data._degrees import error_of, errors_at, place_in, say_beyond, within_180
from mechdesign.data._layout import cell, names_of
from mechdesign.data._left_out import MOST_LEFT_OUT, LeftOut, RowError
from mechdesign.data._text import (
    as_float,
    check_column,
    columns_text,
    plain_numbers,
    read_columns,
    read_rows,
)
from mechdesign.model._locate import DEGREES, Axes

Suits = Callable[[list[str]], bool]

COLUMNS = {
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "x": ("x",),
    "y": ("y",),
}
"""Accepted column names, in lower case."""


def read_places(path: str | os.PathLike[str], axes: Axes, delimiter: str | None = None) -> tuple[Floats, Floats]:
    """Return the coordinates in a file with a header line.

    Other columns are ignored. Longitudes beyond 180 degrees are reduced by 360 degrees.

    Args:
        path: File to read.
        axes: The two coordinates: latitude and longitude, or x and y.
        delimiter: The character between columns; recognised if None.

    Returns:
        A float64 array for each axis.

    Raises:
        InputError: The file cannot be read, a column is missing, or an entry is not a finite number in range.
    """
    first, second, rows = _coordinates(Path(path), axes, delimiter, None)
    assert not rows.counts
    return first, second


def count_places(
    path: str | os.PathLike[str], axes: Axes, delimiter: str | None = None, missing: float = MOST_LEFT_OUT
) -> tuple[Floats, Floats, LeftOut]:
    """Return the coordinates that `read_places` returns, and the numbers of rows left out by reason.

    The caller only counts places, so unreadable rows may be left out. A row is unreadable if it is blank, has no place,
    has a latitude beyond 90 degrees, or has the wrong number of fields. At most the share `missing` of all rows may be
    left out.
    """
    left_out = LeftOut(missing)
    found = _coordinates(Path(path), axes, delimiter, left_out)
    left_out.check()
    return found


def _coordinates(
    source: Path, axes: Axes, delimiter: str | None, left_out: LeftOut | None
) -> tuple[Floats, Floats, LeftOut]:
    def suits(header: list[str]) -> bool:
        return all(len(_find_columns(header, axis)) == 1 for axis in axes)

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
                raise error_of(fault) from None
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
    """Return the texts in columns, and their row numbers; leave out rows that differ from the header in length."""
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
            bound = f"{len(header)} fields, as in the header"
            left_out.add(RowError(reasons.FIELDS, error("has the wrong number of fields", len(row), bound)))
        else:
            numbers.append(number)
            for name, place in places.items():
                columns[name].append(row[place])
    if not numbers and not left_out.counts:
        raise InputError(str(source), "has no lines below its header", bound="at least one line")
    return columns, numbers


def _point(texts: tuple[str, str], axes: Axes, names: tuple[str, str], where: str) -> tuple[float, float]:
    """Return the place in two cells; raise `RowError` if a coordinate is missing or not a number."""
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
    found = _find_columns(header, axis)
    if len(found) != 1:
        problem = f"has no column for the {axis}" if not found else f"has more than one column for the {axis}"
        bound = f"a header line with a column {' or '.join(names_of(axis, COLUMNS[axis]))}"
        remedy = f"name the column: {axis}, or --{axis} of the command" if axis in DEGREES else ""
        shown = Shown(columns_text(header, COLUMNS[axis]))
        raise InputError(str(source), problem, value=shown, bound=bound, remedy=remedy)
    return found[0]


def _find_columns(header: list[str], axis: str) -> list[str]:
    """Return the columns of a header with an accepted name for a coordinate."""
    return [name for name in header if name.strip().lower() in names_of(axis, COLUMNS[axis])]
