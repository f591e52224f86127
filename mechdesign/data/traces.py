"""Read movement data, and turn it into visits to the cells of a grid.

All coordinates are WGS84 degrees, all times UTC; a time of day without a zone is taken as UTC.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.data.forms import cell, form_of
from mechdesign.data.text import as_float, check_column, fields_of, opened, read_columns
from mechdesign.data.times import Clock, rows_without_time
from mechdesign.errors import InputError, MissingTimeWarning, Shown, values_are_shown
from mechdesign.model.domain import BoundingBox, Domain
from mechdesign.model.places import interval
from mechdesign.validation import Floats, Integers, as_array, as_floats, as_indices, read_only, require
from mechdesign.warned import warn

__all__ = ["Points", "Trace", "Visits", "read_checkins", "read_places", "read_plt", "read_points", "to_grid"]


def __dir__() -> list[str]:
    return sorted(__all__)


Times = NDArray[np.datetime64]

# The user of a table that names none.
_EVERYBODY = "everybody"

_PLT_HEADER_LINES = 6
_PLT_FIELDS = 7


@dataclass(frozen=True, eq=False)
class Trace:
    """Where one user was, in order.

    `latitude` and `longitude` are degrees, float64 of shape (k,), k ≥ 1; `time` is datetime64[s] of shape (k,), or None
    when only the order is known. All are read-only.
    """

    user: str
    latitude: Floats
    longitude: Floats
    time: Times | None = None

    def __post_init__(self) -> None:
        """Check ranges and lengths, and freeze the arrays."""
        if not isinstance(self.user, str) or not self.user:
            raise InputError("user", "is not a name", value=self.user, bound="a text that is not empty")
        for name, limit in (("latitude", 90), ("longitude", 180)):
            degrees = as_floats(getattr(self, name), name, "(k,)")
            require(np.abs(degrees) <= limit, degrees, name, f"between -{limit} and {limit} degrees")
            object.__setattr__(self, name, degrees)
        k = len(self.latitude)
        if k == 0:
            raise InputError("latitude", f"the trace of user {self.user!r} is empty", bound="at least one point")
        if len(self.longitude) != k:
            raise InputError("longitude", "differs in length", value=len(self.longitude), bound=f"{k} values")
        if self.time is not None:
            if as_array(self.time, "time").dtype.kind in "biuf":
                bound = "datetime64: np.array(seconds, dtype='datetime64[s]') of seconds since 1970"
                raise InputError("time", "holds numbers", bound=bound)
            time = np.array(self.time, dtype="datetime64[s]")
            if time.shape != (k,):
                raise InputError("time", "has the wrong shape", value=time.shape, bound=f"({k},)")
            require(~np.isnat(time), time, "time", "a date and time")
            read_only(time)
            object.__setattr__(self, "time", time)

    def __len__(self) -> int:
        return len(self.latitude)


@dataclass(frozen=True, eq=False)
class Visits:
    """The cells of a grid that users visited.

    `cells` holds int64 arrays of cell indices, read-only, each a stretch of consecutive points inside the box, and
    `users` the user of each stretch. `inside` and `outside` count points; `domain` is the grid. `times` holds the times
    of each stretch, datetime64[s], or None, and is empty where nothing is known of them. `exits` says of each stretch
    whether the user then went on outside the box; it is empty where that is not known.
    """

    cells: tuple[Integers, ...]
    users: tuple[str, ...]
    inside: int
    outside: int
    domain: Domain
    times: tuple[Times | None, ...] = ()
    exits: tuple[bool, ...] = ()
    # Where the stretches of each user stand in `cells`.
    _stretches: dict[str, list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check and freeze the cells, and index the stretches by user."""
        # Copies, not views: a view would keep a whole trace in memory, and writable.
        cells = tuple(
            as_indices(stretch, f"cells[{index}]", self.domain.size) for index, stretch in enumerate(self.cells)
        )
        for stretch in cells:
            read_only(stretch)
        object.__setattr__(self, "cells", cells)
        if len(self.cells) != len(self.users):
            raise InputError("users", "differs in length", value=len(self.users), bound=f"{len(self.cells)} users")
        if self.times and [None if each is None else len(each) for each in self.times] != [
            None if each is None else len(stretch) for each, stretch in zip(self.times, self.cells, strict=False)
        ]:
            raise InputError("times", "do not fit the cells", value=len(self.times), bound="a time for each point")
        if self.exits and len(self.exits) != len(self.cells):
            raise InputError("exits", "differ in length", value=len(self.exits), bound=f"{len(self.cells)} stretches")
        stretches: dict[str, list[int]] = {}
        for index, user in enumerate(self.users):
            stretches.setdefault(user, []).append(index)
        object.__setattr__(self, "_stretches", stretches)

    def of(self, user: str) -> tuple[Integers, ...]:
        """Return the stretches of one user, in order; raise `InputError` for a user without any."""
        if user not in self._stretches:
            bound = f"one of the {len(self._stretches)} users with visits"
            raise InputError("user", "has no visits", value=user, bound=bound)
        return tuple(self.cells[index] for index in self._stretches[user])

    def counts(self, user: str | None = None) -> Integers:
        """Return how often each cell was visited, by one user or by all: int64 of shape (n,)."""
        total = np.zeros(self.domain.size, dtype=np.int64)
        for cells in self.cells if user is None else self.of(user):
            np.add.at(total, cells, 1)
        return total


def read_plt(folder: str | PathLike[str]) -> tuple[Trace, ...]:
    """Read GeoLife trajectories: a trace for each ``<user>/Trajectory/*.plt`` below `folder`, sorted by name.

    A `folder` that holds .plt files itself is read as one user, named after it (or, if it is called ``Trajectory``,
    after the folder it is in). A file has six header lines, then lines of latitude, longitude, 0, altitude, days, date
    and time; points are put in order of time. Nothing deeper is searched. Raises `InputError` naming file and line.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError("folder", "is not a folder", value=str(root))
    own = _plt_files(root)
    if own:
        absolute = root.resolve()
        owner = absolute.parent if absolute.name == "Trajectory" else absolute
        return tuple(_read_plt_file(path, owner.name or "0") for path in own)
    traces = [
        _read_plt_file(path, user.name)
        for user in sorted(root.iterdir())
        if user.is_dir()
        for path in _plt_files(user / "Trajectory")
    ]
    if not traces:
        raise InputError(
            "folder",
            "holds no trajectories",
            value=str(root),
            bound="a folder with <user>/Trajectory/*.plt or *.plt",
            remedy="name the folder in which the users' folders are",
        )
    return tuple(traces)


def read_checkins(
    path: str | PathLike[str],
    user: str | None = "user",
    latitude: str = "latitude",
    longitude: str = "longitude",
    time: str | None = None,
    trace: str | None = None,
    delimiter: str = ",",
    *,
    place: str | None = None,
    places: Mapping[str, tuple[float, float]] | None = None,
    date: str | None = None,
    time_format: str | None = None,
) -> tuple[Trace, ...]:
    """Read a text file with one check-in a line and a header line with the names of the columns.

    `user`, `latitude`, `longitude`, `time` and `trace` name columns; without `user` all are one user's. There is one
    trace for each user, or, if `trace` is given, for each user and value in that column, in the order in which they
    first occur. Points are put in order of time if there is one, and else keep the order of the file; a row whose time
    is missing (blank, NaT, NULL, NaN, NA) is left out, with a `MissingTimeWarning`. The file may be compressed by gzip,
    or be Parquet. With `places`, which gives latitude and longitude by key, `place` names the column of the key, and
    `latitude` and `longitude` are not looked at.

    Times are ISO 8601 or another date with the year first or the month by name, such as "2022/5/2 7:05 PM" or "Tue Apr
    03 18:00:09 +0000 2012", or seconds since 1970 between 1980 and the end of next year; parts of a second are dropped.
    `date` names the column with the date, where `time` has the time of day. `time_format` says how both together are
    written: a pattern of `datetime.strptime`, such as "%Y%m%d", or "unix", "unix-ms", "unix-us" or "unix-ns" since
    1970. It is needed for numbers that may be dates as well as seconds, and for days and months in digits.

    Raises:
        InputError: The file cannot be read so; the path names the line.
    """
    found = read_points(
        *(path, user, latitude, longitude, time, trace, delimiter),
        place=place,
        places=places,
        date=date,
        time_format=time_format,
    )
    if left_out := sum(found.without_time.values()):
        warn(f"{path}: {rows_without_time(left_out)}", MissingTimeWarning, stacklevel=2)
    return found.traces


class Points(NamedTuple):
    """The traces of a table, and of each user how many rows were left out because their time is missing."""

    traces: tuple[Trace, ...]
    without_time: Mapping[str, int]


def read_points(
    path: str | PathLike[str],
    user: str | None,
    latitude: str,
    longitude: str,
    time: str | None,
    trace: str | None,
    delimiter: str,
    *,
    place: str | None = None,
    places: Mapping[str, tuple[float, float]] | None = None,
    date: str | None = None,
    time_format: str | None = None,
) -> Points:
    """Return what `read_checkins` reads, and count the rows whose time is missing in place of a warning."""
    source, character = Path(path), _checked_delimiter(delimiter)
    for name, value in (("date", date), ("time_format", time_format)):
        if value is not None and time is None:
            raise InputError(name, "does not go without a column of times", value=value, remedy="name it: time")
    # For each trace: latitudes, longitudes and seconds, as compact arrays of numbers rather than of objects.
    points: dict[tuple[str, str], tuple[array[float], array[float], array[int]]] = {}
    without_time: dict[str, int] = {}
    clock = Clock(time_format, " and ".join(filter(None, (date, time))))
    where = (latitude, longitude) if places is None else (place or "place",)
    wanted = [name for name in (user, *where, date, time, trace) if name is not None]
    with opened(source) as lines:
        rows = _Rows(source, lines, character, csv.QUOTE_MINIMAL)
        remaining = iter(rows)
        header = next(remaining, None)
        if header is None:
            raise InputError(str(source), "is empty", bound="a header line and at least one check-in")
        column = _columns(header, wanted, source)
        at_user, at_date, at_time, at_trace = (
            None if name is None else column[name] for name in (user, date, time, trace)
        )
        at_where = [column[name] for name in where]
        for row in remaining:
            if len(row) != len(header):
                raise rows.error("has the wrong number of fields", len(row), f"{len(header)} as in the header")
            who = _EVERYBODY if at_user is None else row[at_user]
            if not who:
                raise rows.error(f"has no {user}", cell(who), "a text that is not empty")
            seconds = None
            if at_time is not None:
                seconds = clock.seconds(row[at_time], rows.where, None if at_date is None else row[at_date])
                if seconds is None:
                    without_time[who] = without_time.get(who, 0) + 1
                    continue
            key = (who, "" if at_trace is None else row[at_trace])
            found = points.get(key)
            if found is None:
                found = points[key] = (array("d"), array("d"), array("q"))
            if places is not None:
                point = places.get(row[at_where[0]])
                if point is None:
                    raise rows.error(f"{where[0]} is not in the table of places", cell(row[at_where[0]]), "a key")
                found[0].append(point[0])
                found[1].append(point[1])
            else:
                given = [row[index] for index in at_where]
                found[0].append(_latitude(given[0], given[1], latitude, rows.error))
                found[1].append(_degrees(given[1], 180, longitude, rows.error))
            if seconds is not None:
                found[2].append(seconds)
    clock.check()
    if not points:
        problem, remedy = "holds no check-ins", ""
        if without_time:
            problem, remedy = f"{problem} with a time in the column {time}", "leave time out: the order is the file's"
        raise InputError(str(source), problem, bound="at least one line after the header", remedy=remedy)
    return Points(tuple(_trace(name, *found) for (name, _), found in points.items()), without_time)


def to_grid(traces: Iterable[Trace], domain: Domain) -> Visits:
    """Return the cells visited, for a domain made with `Domain.geographic_grid`.

    Column k covers the longitudes from west + k · (east − west) / columns on, up to but without the next such border;
    only the last column includes its eastern border. Rows likewise, from south to north. Points outside the box are
    left out, and a trace that leaves the box is split there: the points before and after become stretches of their own,
    so that no step of the user is invented. `Visits.exits` marks the stretches before. Raises `InputError` when no
    point is inside.
    """
    if domain.cells is None or domain.geographic is None:
        raise InputError("domain", "is not a geographic grid", value=Shown(domain), remedy="use Domain.geographic_grid")
    given = tuple(traces)
    box, grid = domain.geographic, domain.cells
    meridians = np.linspace(box.west, box.east, grid.columns + 1)
    parallels = np.linspace(box.south, box.north, grid.rows + 1)
    cells: list[Integers] = []
    users: list[str] = []
    times: list[Times | None] = []
    exits: list[bool] = []
    inside = outside = 0
    for trace in given:
        column = interval(trace.longitude, meridians)
        row = interval(trace.latitude, parallels)
        kept = np.flatnonzero((column >= 0) & (row >= 0))
        inside += len(kept)
        outside += len(trace) - len(kept)
        if len(kept) == 0:
            continue
        visited = row[kept] * grid.columns + column[kept]
        cuts = np.flatnonzero(np.diff(kept) > 1) + 1
        stretches = np.split(visited, cuts)
        cells += stretches
        times += [None] * len(stretches) if trace.time is None else np.split(trace.time[kept], cuts)
        users += [trace.user] * len(stretches)
        exits += [True] * len(cuts) + [bool(kept[-1] < len(trace) - 1)]
    if inside == 0:
        raise _all_outside(given, box)
    return Visits(tuple(cells), tuple(users), inside, outside, domain, tuple(times), tuple(exits))


def _all_outside(traces: Sequence[Trace], box: BoundingBox) -> InputError:
    """Return an error that says where the points are, and whether latitude and longitude are swapped."""
    points = sum(map(len, traces))
    if not points:
        return InputError("traces", "none of the 0 points is inside the box", bound="at least one trace")
    latitude = np.concatenate([trace.latitude for trace in traces])
    longitude = np.concatenate([trace.longitude for trace in traces])
    extent = BoundingBox.text(latitude.min(), latitude.max(), longitude.min(), longitude.max())
    swapped = (latitude >= box.west) & (latitude <= box.east) & (longitude >= box.south) & (longitude <= box.north)
    if swapped.mean() > 0.5:
        problem = f"none of the {points} points is inside the box: latitude and longitude are swapped"
        remedy = "exchange the names of the two columns"
    else:
        problem, remedy = (
            f"none of the {points} points is inside the box",
            "check the box: mechdesign init proposes one",
        )
    # Of one trace it may be the very place.
    shown = Shown(extent) if values_are_shown() else form_of(extent)
    return InputError("traces", problem, value=shown, bound=f"within {box}", remedy=remedy)


def _trace(user: str, latitude: array[float], longitude: array[float], seconds: array[int]) -> Trace:
    latitudes, longitudes = np.array(latitude), np.array(longitude)
    if not seconds:
        return Trace(user, latitudes, longitudes)
    times = np.array(seconds, dtype=np.int64).astype("datetime64[s]")
    order = np.argsort(times, kind="stable")
    return Trace(user, latitudes[order], longitudes[order], times[order])


def _plt_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.plt") if path.is_file())


def _read_plt_file(path: Path, user: str) -> Trace:
    latitudes, longitudes, seconds = array("d"), array("d"), array("q")
    with opened(path) as lines:
        rows = _Rows(path, lines, ",", csv.QUOTE_NONE, header_lines=_PLT_HEADER_LINES)
        clock = Clock(name="date and time")
        for row in rows:
            if len(row) != _PLT_FIELDS:
                raise rows.error("has the wrong number of fields", len(row), str(_PLT_FIELDS))
            latitudes.append(_degrees(row[0], 90, "latitude", rows.error))
            longitudes.append(_degrees(row[1], 180, "longitude", rows.error))
            moment = clock.seconds(f"{row[5]}T{row[6]}", rows.where)
            # A text with a T is never a missing one.
            assert moment is not None
            seconds.append(moment)
    if not latitudes:
        raise InputError(str(path), "holds no points", bound=f"{_PLT_HEADER_LINES} header lines, then points")
    return _trace(user, latitudes, longitudes, seconds)


_Error = Callable[[str, object, str], InputError]


class _Rows:
    """Rows of fields from a text file, after the header lines and without blank ones; errors name the line."""

    def __init__(
        self, path: Path, lines: TextIO, delimiter: str, quoting: Literal[0, 3], header_lines: int = 0
    ) -> None:
        self._path = path
        self._header_lines = header_lines
        self._reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for _ in range(self._header_lines):
                next(self._reader, None)
            yield from map(fields_of, filter(None, self._reader))
        except csv.Error as error:
            raise self.error(f"cannot be read ({error})", None, "a line of CSV, its quotes closed") from error

    def where(self) -> str:
        """Return the path of the row just read."""
        return f"{self._path}, line {self._reader.line_num}"

    def error(self, problem: str, value: object, bound: str) -> InputError:
        """Return an error about the row just read."""
        return InputError(self.where(), problem, value=value, bound=bound)


def _checked_delimiter(delimiter: str) -> str:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound='one character, such as ","')
    return delimiter


def _columns(header: list[str], wanted: list[str], path: Path) -> dict[str, int]:
    for name in wanted:
        check_column(name, header, path)
    return {name: header.index(name) for name in wanted}


def read_places(
    path: str | PathLike[str], key: str, latitude: str = "latitude", longitude: str = "longitude", delimiter: str = ","
) -> dict[str, tuple[float, float]]:
    """Read latitude and longitude of places by their key from a table with a header; raise `InputError` for others."""
    found: dict[str, tuple[float, float]] = {}
    rows = read_columns(Path(path), [key, latitude, longitude], delimiter)
    for row, texts in enumerate(zip(rows[key], rows[latitude], rows[longitude], strict=True), 1):

        def error(problem: str, value: object, bound: str, row: int = row) -> InputError:
            return InputError(f"{path}, row {row}", problem, value=value, bound=bound)

        point = _latitude(texts[1], texts[2], latitude, error), _degrees(texts[2], 180, longitude, error)
        if found.setdefault(texts[0], point) != point:
            raise error(f"{key} has another place in an earlier row", cell(texts[0]), "one place for each key")
    return found


def _latitude(text: str, longitude: str, name: str, error: _Error) -> float:
    value, other = as_float(text), as_float(longitude)
    if value is not None and other is not None and 90 < abs(value) <= 180 and abs(other) <= 90:
        problem = f"{name} is out of range, as if latitude and longitude were swapped"
        bound = "between -90 and 90 degrees: exchange the names of the two columns"
        raise error(problem, cell(text), bound)
    return _degrees(text, 90, name, error)


def _degrees(text: str, limit: int, name: str, error: _Error) -> float:
    value = as_float(text)
    if value is None:
        raise error(f"{name} is not a number", cell(text), "decimal degrees")
    # NaN compares false, so it is refused as well.
    if not -limit <= value <= limit:
        raise error(f"{name} is out of range", cell(text), f"between -{limit} and {limit} degrees")
    return value
