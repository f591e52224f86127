"""Build the secrets, or the observables, that a specification describes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np

from mechdesign.base._errors import Shown, SpecificationError
from mechdesign.certify._texts import require_plain
from mechdesign.data._degrees import say_beyond
from mechdesign.data._labels import Names
from mechdesign.data._layout import cell
from mechdesign.data._maps import COLUMNS
from mechdesign.data._text import column_text, number, plain_numbers, read_columns
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import PlacesFile, Raw, Table, holds
from mechdesign.model._locate import DEGREES
from mechdesign.specification._read import at, convert, in_file, one_of

LARGEST = 5000
"""Most secrets, or observables, of a specification: a channel between more would not fit into memory."""


class PlaneGrid(Table, frozen=True):
    """A rectangle of cells, numbered from the south-west, row by row.

    Attributes:
        columns: how many cells from west to east.
        rows: how many cells from south to north.
        width: the width of the whole rectangle.
        height: the height of the whole rectangle.
        unit: the unit of width and height.
    """

    columns: int
    rows: int
    width: float
    height: float
    unit: str = "km"


class GeographicGrid(Table, frozen=True):
    """A box of cells on the Earth, projected to kilometres.

    Attributes:
        columns: how many cells from west to east.
        rows: how many cells from south to north.
        south: the southern border in degrees.
        north: the northern border in degrees.
        west: the western border in degrees.
        east: the eastern border in degrees.
    """

    columns: int
    rows: int
    south: float
    north: float
    west: float
    east: float


class PlaneAnchors(Table, frozen=True):
    """The corners of a grid over a rectangle, numbered from the south-west, row by row; the first stands at (0, 0).

    Attributes:
        columns: how many anchors from west to east, at least 2.
        rows: how many anchors from south to north, at least 2.
        width: the width of the rectangle.
        height: the height of the rectangle.
        unit: the unit of width and height.
    """

    columns: int
    rows: int
    width: float
    height: float
    unit: str = "km"


class GeographicAnchors(Table, frozen=True):
    """The corners of a grid over a box on the Earth, in kilometres of a plane that never exceed the great circle.

    Attributes:
        columns: how many anchors from west to east, at least 2.
        rows: how many anchors from south to north, at least 2.
        south: the southern border in degrees.
        north: the northern border in degrees.
        west: the western border in degrees.
        east: the eastern border in degrees.
    """

    columns: int
    rows: int
    south: float
    north: float
    west: float
    east: float


class DomainTable(Table, frozen=True):
    """The secrets, or the answers.

    Attributes:
        grid: a grid of cells.
        anchors: the corners of a grid, for ``kind = "continuous"``: real coordinates between them are secrets, too.
        points: the coordinates of each place.
        csv: a file of places.
        labels: the names of members without places, or of the `points`.
        line: the number of places 0, 1, 2, … on a line.
        unit: the unit of coordinates; a grid has its own.
    """

    alternatives: ClassVar[tuple[str, ...]] = ("grid", "anchors", "points", "csv", "line", "labels")
    beside: ClassVar = MappingProxyType({"labels": "points"})

    grid: Annotated[Raw, holds(PlaneGrid, GeographicGrid)] | None = None
    anchors: Annotated[Raw, holds(PlaneAnchors, GeographicAnchors)] | None = None
    points: list[list[float]] | None = None
    csv: Annotated[Raw, holds(PlacesFile)] | None = None
    labels: list[str] | None = None
    line: int | None = None
    unit: str | None = None


class ObservablesTable(DomainTable, frozen=True):
    """The answers, where they are others than the secrets.

    Attributes:
        subset: some of the secrets: texts are labels, integers positions from 0 on.
        blocks: one answer for each block of so many cells of the secrets' grid, in each direction or [across, up].
        grid: a grid of cells.
        anchors: the corners of a grid.
        points: the coordinates of each place.
        csv: a file of places.
        labels: the names of members without places, or of the `points`.
        line: the number of places 0, 1, 2, … on a line.
        unit: the unit of coordinates; a grid has its own.
    """

    alternatives: ClassVar[tuple[str, ...]] = ("subset", "blocks", *DomainTable.alternatives)

    subset: list[int | str] | None = None
    blocks: int | tuple[int, int] | None = None


def doubts_of(raw: Raw, path: str) -> tuple[str, ...]:
    """Say which columns of a file of places are called otherwise than they are taken."""
    named = raw.get("csv")
    given = named if isinstance(named, Mapping) else {}
    notes = []
    for axis, wanted in (("latitude", "longitude"), ("longitude", "latitude"), ("x", ""), ("y", "")):
        column = given.get(axis)
        says = next((name for name in DEGREES if str(column).strip().lower() in COLUMNS[name]), None)
        if column is not None and says is not None and says == (wanted or says):
            end = "" if wanted else ": on a plane, degrees are no distances"
            notes.append(f"{path}.csv.{axis} is the column {column_text(str(column))}, whose name says {says}{end}")
    return tuple(notes)


def build_observables(raw: Raw, path: str, secrets: Domain, folder: Path) -> tuple[Domain, tuple[int, ...] | None]:
    """Return the answers that the table at `path` describes, and their indices where they are some of the secrets."""
    table = convert(raw, ObservablesTable, path)
    form = one_of(table, path)
    if form not in ("subset", "blocks"):
        return build_domain(raw, path, folder), None
    if table.unit is not None:
        raise SpecificationError(f"{path}.unit", f"does not go with {form}", remedy="leave it out")
    if table.blocks is not None:
        return _coarser(table.blocks, f"{path}.blocks", secrets), None
    names = Names.of(secrets.labels)
    found: dict[int, int] = {}
    for place, name in enumerate(table.subset or ()):
        with at(path):
            index = names.find_typed(name, f"subset[{place}]")
        if index in found:
            raise SpecificationError(f"{path}.subset[{place}]", f"repeats subset[{found[index]}]", value=name)
        found[index] = place
    if not found:
        raise SpecificationError(f"{path}.subset", "is empty", bound="at least one secret")
    members = sorted(found)
    return secrets.part(members), tuple(members)


def _coarser(blocks: int | tuple[int, int], path: str, secrets: Domain) -> Domain:
    """Return the grid whose cells are blocks of those of the secrets."""
    cells, box = secrets.cells, secrets.geographic
    if cells is None:
        raise SpecificationError(path, "needs secrets on a grid", value=Shown(secrets), bound="a domain with a grid")
    across, up = (blocks, blocks) if isinstance(blocks, int) else blocks
    for size, count, name in ((across, cells.columns, "columns"), (up, cells.rows, "rows")):
        if size < 1 or count % size:
            raise SpecificationError(
                path,
                f"does not divide the {count} {name}",
                value=size,
                bound=f"one of {', '.join(str(each) for each in range(1, count + 1) if count % each == 0)}",
            )
    columns, rows = cells.columns // across, cells.rows // up
    if (columns, rows) == (cells.columns, cells.rows):
        return secrets
    if box is not None:
        return Domain.geographic_grid(columns, rows, box.south, box.north, box.west, box.east)
    return Domain.grid(columns, rows, cells.width, cells.height, secrets.unit)


def build_domain(raw: Raw, path: str, folder: Path) -> Domain:
    """Return the domain that the table at `path` describes; file names are relative to `folder`."""
    table = convert(raw, DomainTable, path)
    form = one_of(table, path)
    if table.unit is not None and form in ("grid", "anchors", "labels"):
        remedy = "leave it out" if form == "labels" else f"write the unit into the {form}"
        raise SpecificationError(f"{path}.unit", f"does not go with {form}", remedy=remedy)
    unit = table.unit or ""
    if table.grid is not None:
        return _grid(table.grid, f"{path}.grid")
    if table.anchors is not None:
        return _grid(table.anchors, f"{path}.anchors", anchors=True)
    if table.csv is not None:
        return _places(convert(table.csv, PlacesFile, f"{path}.csv"), f"{path}.csv", unit, folder)
    if table.line is not None:
        if table.line < 1:
            raise SpecificationError(f"{path}.line", "is too small", value=table.line, bound="an integer >= 1")
        _check_size(table.line, f"{path}.line")
        return Domain.from_points(np.arange(float(table.line))[:, None], unit=unit)
    if table.points is not None:
        _check_size(len(table.points), f"{path}.points")
        if not table.points:
            raise SpecificationError(f"{path}.points", "is empty", bound="at least one point")
        for index, point in enumerate(table.points):
            if len(point) != len(table.points[0]):
                raise SpecificationError(
                    f"{path}.points[{index}]", "has another number of coordinates", value=point, bound="as the first"
                )
        with at(path):
            return Domain.from_points(np.array(table.points, ndmin=2), table.labels, unit)
    _check_size(len(table.labels or ()), f"{path}.labels")
    with at(path):
        return Domain.from_labels(table.labels or ())


def _grid(raw: Raw, path: str, anchors: bool = False) -> Domain:
    if not {"width", "height", "unit"} & set(raw) and {"south", "north", "west", "east"} & set(raw):
        box: GeographicGrid | GeographicAnchors
        box = convert(raw, GeographicAnchors, path) if anchors else convert(raw, GeographicGrid, path)
        _check_size(max(0, box.columns) * max(0, box.rows), path)
        with at(path):
            made = Domain.geographic_anchors if anchors else Domain.geographic_grid
            return made(box.columns, box.rows, box.south, box.north, box.west, box.east)
    if {"width", "height"} & set(raw) and (mixed := {"south", "north", "west", "east"} & set(raw)):
        raise SpecificationError(
            path,
            f"has both a size and {min(mixed)}",
            bound="either width and height, or south, north, west and east",
        )
    plane: PlaneGrid | PlaneAnchors
    plane = convert(raw, PlaneAnchors, path) if anchors else convert(raw, PlaneGrid, path)
    _check_size(max(0, plane.columns) * max(0, plane.rows), path)
    with at(path):
        return (Domain.anchors if anchors else Domain.grid)(
            plane.columns, plane.rows, plane.width, plane.height, plane.unit
        )


def _places(table: PlacesFile, path: str, unit: str, folder: Path) -> Domain:
    given = [name for name in ("x", "y", "latitude", "longitude") if getattr(table, name) is not None]
    if given not in (["x", "y"], ["latitude", "longitude"]):
        raise SpecificationError(
            path, f"names the columns {', '.join(given) or 'of no place'}", bound="x and y, or latitude and longitude"
        )
    if unit and given[0] == "latitude":
        raise SpecificationError(f"{path.rpartition('.')[0]}.unit", "does not go with latitudes", remedy="leave it out")
    names = [str(getattr(table, key)) for key in (*given, "label") if getattr(table, key) is not None]
    source = folder / table.path
    with in_file(path, table):
        columns = read_columns(source, names, table.delimiter)
        limits = (90, 360) if given[0] == "latitude" else (math.inf, math.inf)
        first, second = (
            [
                _finite(text, f"{source}, row {row}, column {name}")
                for row, text in enumerate(plain_numbers(columns[name], source, name, limit), 1)
            ]
            for name, limit in zip(names[:2], limits, strict=True)
        )
        _check_size(len(first), f"{path}.path")
        labels = columns[names[2]] if table.label is not None else None
        for row, label in enumerate(labels or (), 1):
            require_plain(label, f"{source}, row {row}, column {names[2]}")
        if given[0] == "latitude":
            say_beyond(source, np.array(second))
            return Domain.from_coordinates(first, second, labels)
        return Domain.from_points(np.column_stack((first, second)), labels, unit)


def _finite(text: str, path: str) -> float:
    value = number(text, path)
    if not math.isfinite(value):
        raise SpecificationError(path, "is not finite", value=cell(text), bound="a finite number")
    return value


def _check_size(size: int, path: str) -> None:
    if size > LARGEST:
        raise SpecificationError(
            path,
            "describes too many",
            value=size,
            bound=f"at most {LARGEST}",
            remedy="use larger cells or fewer places: a channel needs a probability for every pair",
        )
