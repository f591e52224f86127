"""Build the secrets and the observables of a specification."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from mechdesign.base._errors import InputError, Shown, SpecificationError, withholding_values
from mechdesign.certify._texts import require_plain
from mechdesign.data.labels import Names
from mechdesign.data.table import read_table
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._grammar import Members, PlacesFile, Table, says
from mechdesign.model._locate import INTERCHANGED, may_be_interchanged
from mechdesign.specification._read import Source

LARGEST = 5000
"""Largest number of secrets, or observables, of a specification: a larger channel would not fit into memory."""


_Count = Annotated[int, msgspec.Meta(ge=1)]
_Points = Annotated[list[list[float]], msgspec.Meta(min_length=1)]
_USUAL = {"latitude": ("latitude", "lat"), "longitude": ("longitude", "lon", "lng", "long")}
_BORDERS, _CENTRE, _SIZE = ("south", "north", "west", "east"), ("latitude", "longitude"), ("width", "height")


class GridTable(Table, frozen=True):
    """Cells of a rectangle, or anchors at their corners, numbered row by row from the south-west.

    The rectangle is in a plane, with a size; the first anchor is at (0, 0). Or it is a box on the Earth, projected to
    kilometres, with its borders, or with its centre and its size in km. Between anchors, distances in the plane never
    exceed great-circle distances.
    """

    columns: Annotated[int, says("the number of cells, or anchors, from west to east; at least 2 anchors.")]
    rows: Annotated[int, says("the number of cells, or anchors, from south to north; at least 2 anchors.")]
    width: Annotated[float | None, says("the width; on the Earth in km, at the latitude of the centre.")] = None
    height: Annotated[float | None, says("the height; on the Earth in km.")] = None
    unit: Annotated[str | None, says('the unit of width and height in a plane; "km" by default.')] = None
    south: Annotated[float | None, says("the southern border in degrees; goes with the other three borders.")] = None
    north: Annotated[float | None, says("the northern border in degrees.")] = None
    west: Annotated[float | None, says("the western border in degrees.")] = None
    east: Annotated[float | None, says("the eastern border in degrees.")] = None
    latitude: Annotated[float | None, says("the latitude of the centre in degrees; goes with `longitude`.")] = None
    longitude: Annotated[float | None, says("the longitude of the centre in degrees.")] = None


class DomainTable(Table, frozen=True):
    """The secrets, or the answers."""

    alternatives: ClassVar[tuple[str, ...]] = ("grid", "anchors", "points", "csv", "line", "labels")
    beside: ClassVar = MappingProxyType({"labels": "points"})

    grid: Annotated[GridTable | None, says("a grid of cells.")] = None
    anchors: Annotated[
        GridTable | None,
        says('the corners of a grid, for ``kind = "continuous"``: all real coordinates between them are secrets.'),
    ] = None
    points: Annotated[_Points | None, says("the coordinates of each place.")] = None
    csv: Annotated[PlacesFile | None, says("a file of places.")] = None
    labels: Annotated[list[str] | None, says("the names of members without coordinates, or of the `points`.")] = None
    line: Annotated[_Count | None, says("the number of places 0, 1, 2, … on a line.")] = None
    unit: Annotated[str | None, says("the unit of coordinates; a grid states its unit itself.")] = None


class ObservablesTable(DomainTable, frozen=True):
    """The answers, if they differ from the secrets."""

    alternatives: ClassVar[tuple[str, ...]] = ("subset", "blocks", *DomainTable.alternatives)

    subset: Annotated[Members | None, says("some of the secrets: strings are labels, integers are indices from 0.")] = (
        None
    )
    blocks: Annotated[
        int | tuple[int, int] | None,
        says("one answer for each block of cells of the secrets' grid: cells per side, or [across, up]."),
    ] = None


def doubts_of(table: DomainTable | None, source: Source) -> tuple[str, ...]:
    """Return a note for each column of coordinates whose name suggests another coordinate."""
    if table is None or table.csv is None:
        return ()
    notes = []
    for axis, wanted in (("latitude", "longitude"), ("longitude", "latitude"), ("x", ""), ("y", "")):
        column = getattr(table.csv, axis)
        named = next((name for name, usual in _USUAL.items() if str(column).strip().lower() in usual), None)
        if column is not None and named is not None and named == (wanted or named):
            end = "" if wanted else ": on a plane, degrees are not distances"
            place = source / "csv" / axis
            notes.append(f"{place} is the column {column!r}, which is named like a {named}{end}")
    return tuple(notes)


def build_observables(
    table: ObservablesTable, source: Source, secrets: Domain
) -> tuple[Domain, tuple[int, ...] | None]:
    """Return the answers described by the table at `source`, with their indices if the table selects secrets."""
    if table.form not in ("subset", "blocks"):
        return build_domain(table, source), None
    if table.unit is not None:
        raise source.error("unit", f"cannot be combined with {table.form}", remedy="remove the key")
    if table.blocks is not None:
        return _coarser(table.blocks, source / "blocks", secrets), None
    names = Names.of(secrets.labels)
    found: dict[int, int] = {}
    for place, name in enumerate(table.subset or ()):
        with source.keys():
            index = names.find(name, f"subset[{place}]")
        if index in found:
            raise source.error(("subset", place), f"repeats subset[{found[index]}]", value=name)
        found[index] = place
    members = sorted(found)
    return secrets.part(members), tuple(members)


def _coarser(blocks: int | tuple[int, int], source: Source, secrets: Domain) -> Domain:
    """Return the grid whose cells are blocks of cells of the secrets."""
    cells, box = secrets.cells, secrets.geographic
    if cells is None:
        raise source.error("", "needs secrets on a grid", value=Shown(secrets), bound="a domain with a grid")
    across, up = (blocks, blocks) if isinstance(blocks, int) else blocks
    for size, count, name in ((across, cells.columns, "columns"), (up, cells.rows, "rows")):
        if size < 1 or count % size:
            raise source.error(
                "",
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


def build_domain(table: DomainTable, source: Source) -> Domain:
    """Return the domain described by the table at `source`."""
    form = table.form
    if table.unit is not None and form in ("grid", "anchors", "labels"):
        remedy = "remove the key" if form == "labels" else f"write the unit into the {form}"
        raise source.error("unit", f"cannot be combined with {form}", remedy=remedy)
    grid = table.grid or table.anchors
    if grid is not None:
        return _grid(grid, source / form)
    if table.csv is not None:
        return _places(table.csv, source / "csv", table.unit or "")
    if table.line is not None:
        _check_size(table.line, source / "line")
        return Domain.from_points(np.arange(float(table.line))[:, None], unit=table.unit or "")
    if table.points is not None:
        _check_size(len(table.points), source / "points")
        for index, point in enumerate(table.points):
            if len(point) != len(table.points[0]):
                raise source.error(
                    ("points", index),
                    "has another number of coordinates",
                    value=point,
                    bound="the number of coordinates of the first point",
                )
        with source.keys():
            return Domain.from_points(np.array(table.points, ndmin=2), table.labels, table.unit or "")
    _check_size(len(table.labels or ()), source / "labels")
    with source.keys():
        return Domain.from_labels(table.labels or ())


def _grid(table: GridTable, source: Source) -> Domain:
    _check_size(max(0, table.columns) * max(0, table.rows), source)
    given = [name for name in (*_BORDERS, *_CENTRE, *_SIZE, "unit") if getattr(table, name) is not None]
    centred = bool(set(given) & set(_CENTRE))
    needed = _BORDERS if set(given) & set(_BORDERS) else (*_CENTRE, *_SIZE) if centred else _SIZE
    for name in given:
        if name not in needed and (name != "unit" or needed != _SIZE):
            bound = "a size, a centre and a size, or south, north, west and east"
            raise source.error(name, f"cannot be combined with {needed[0]}", bound=bound)
    values = {name: getattr(table, name) for name in needed}
    for name in needed:
        if values[name] is None:
            raise source.error(name, "is missing", remedy=f"add {name} = …")
    anchors = source.path[-1] == "anchors"
    with source.keys():
        if needed == _SIZE:
            made = Domain.anchors if anchors else Domain.grid
            return made(table.columns, table.rows, **values, unit=table.unit or "km")
        make = Domain.geographic_anchors if anchors else Domain.geographic_grid
        box = BoundingBox.around(**values) if centred else BoundingBox(**values)
        return make(table.columns, table.rows, box.south, box.north, box.west, box.east)


def _places(table: PlacesFile, source: Source, unit: str) -> Domain:
    given = [name for name in ("x", "y", "latitude", "longitude") if getattr(table, name) is not None]
    if given not in (["x", "y"], ["latitude", "longitude"]):
        raise source.error(
            "", f"names {', '.join(given) or 'no coordinates'}", bound="x and y, or latitude and longitude"
        )
    if unit and given[0] == "latitude":
        place = (*source.path[:-1], "unit")
        raise SpecificationError(place, "cannot be combined with latitudes", remedy="remove the key")
    names = [str(getattr(table, key)) for key in (*given, "label") if getattr(table, key) is not None]
    with source.file(table) as file:
        read = read_table(file, names, source.layout)
        _check_size(len(read), source / "path")
        first, second = (read.numbers(name) for name in names[:2])
        labels = read.texts(names[2]) if table.label is not None else None
        lines: dict[str, str] = {}
        for row, label in enumerate(labels or ()):
            where = read.where(row, names[2])
            with withholding_values():
                require_plain(label, where)
            if not label or lines.setdefault(label, where) != where:
                problem = f"repeats the label in {lines[label]}" if label else "is empty"
                raise InputError(where, problem, bound="a label of its own for each place")
        if given[0] == "x":
            return Domain.from_points(np.column_stack((first, second)), labels, unit)
        remedy = INTERCHANGED if may_be_interchanged(first, second) else ""
        for name, values, least, most in ((names[0], first, -90, 90), (names[1], second, -180, 360)):
            if (beyond := (values < least) | (values > most)).any():
                where, bound = read.where(int(np.argmax(beyond)), name), f"between {least} and {most} degrees"
                raise InputError(where, "is out of range", bound=bound, remedy=remedy)
        return Domain.from_coordinates(first, second, labels)


def _check_size(size: int, source: Source) -> None:
    if size > LARGEST:
        raise source.error(
            "",
            "has too many members",
            value=size,
            bound=f"at most {LARGEST}",
            remedy="use larger cells or fewer places: a channel needs a probability for every pair",
        )
