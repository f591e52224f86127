"""Read places from tables, and outlines from GeoJSON files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, Shown
from mechdesign.data import _left_out as reasons
from mechdesign.data._bounds import content_of
from mechdesign.data._degrees import error_of, errors_at, place_in, say_beyond, within_180
from mechdesign.data._layout import cell, names_of, withholding
from mechdesign.data._left_out import MOST_LEFT_OUT, LeftOut, RowError
from mechdesign.data._text import (
    as_float,
    check_column,
    columns_text,
    plain_numbers,
    read_columns,
    read_rows,
    unreadable,
)
from mechdesign.model._locate import DEGREES, Axes

# Nesting depth of the lists of positions in each geometry type.
_DEPTHS = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}
_MEMBERS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}


@dataclass(frozen=True, eq=False)
class Outline:
    """Lines on a map.

    Attributes:
        lines: Arrays of shape (k, 2): longitude and latitude in degrees, or x and y on the plane.

    >>> Outline((np.array([[7.4, 46.9], [7.5, 47.0]]),)).lines[0].shape
    (2, 2)
    """

    lines: tuple[Floats, ...]


@withholding()
def read_outline(path: str | Path) -> Outline:
    """Read the lines, and the borders of polygons, from a GeoJSON file; points are ignored.

    Args:
        path: GeoJSON file.

    Returns:
        The lines, in the coordinates of the file.

    Raises:
        InputError: The file cannot be read, is not GeoJSON, or has no lines.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "river.json")
    ...     _ = file.write_text('{"type": "LineString", "coordinates": [[7.4, 46.9], [7.5, 47.0]]}')
    ...     read_outline(file).lines[0].tolist()
    [[7.4, 46.9], [7.5, 47.0]]
    """
    file = Path(path)
    try:
        document = json.loads(content_of(file).decode("utf-8"))
    except OSError as error:
        raise unreadable(file, error) from error
    except RecursionError:
        raise InputError(str(file), "is nested too deeply", bound="a GeoJSON file") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(file), f"is not JSON ({error})", bound="a GeoJSON file") from None
    try:
        lines = tuple(_lines(document, str(file)))
    except RecursionError:
        raise InputError(str(file), "is nested too deeply", bound="a GeoJSON file") from None
    if not lines:
        raise InputError(str(file), "contains no line", bound="lines or polygons")
    return Outline(lines)


def _lines(given: Any, path: str) -> Iterator[Floats]:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind in _MEMBERS:
        members = given.get(_MEMBERS[kind])
        if not isinstance(members, list):
            raise InputError(f"{path}, {kind}", f"has no list of {_MEMBERS[kind]}", bound="GeoJSON")
        for index, member in enumerate(members):
            yield from _lines(member, f"{path}, {_MEMBERS[kind]}[{index}]")
    elif kind == "Feature":
        if given.get("geometry") is not None:
            yield from _lines(given["geometry"], path)
    elif kind in _DEPTHS:
        yield from _positions(given.get("coordinates"), _DEPTHS[kind], path)
    elif kind not in ("Point", "MultiPoint"):
        raise InputError(
            path,
            "is not a supported GeoJSON object",
            value=_kind(kind),
            bound=f"one of {', '.join((*_MEMBERS, *_DEPTHS))}",
        )


def _kind(given: object) -> str:
    """Return the text that an error shows for the type of an object: a masked string, or its Python type."""
    return cell(given) if isinstance(given, str) else type(given).__name__


def _line(given: Any) -> Floats | None:
    try:
        # Ignore the altitude that a position may have.
        return np.array([position[:2] for position in given], dtype=np.float64)
    except (TypeError, ValueError, IndexError):
        return None


def _positions(given: Any, depth: int, path: str) -> Iterator[Floats]:
    if depth and isinstance(given, list):
        for index, part in enumerate(given):
            yield from _positions(part, depth - 1, f"{path}[{index}]")
        return
    line = _line(given)
    if line is None:
        raise InputError(path, "contains no positions", bound="lists of two or three numbers")
    if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
        raise InputError(path, "contains no positions", bound="lists of two or three finite numbers")
    if len(line) > 1:
        yield line


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
