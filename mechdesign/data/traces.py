"""Read movement data, and turn it into visits to the cells of a grid.

All coordinates are WGS84 degrees, all times UTC; a time of day without a zone is taken as UTC.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.model.domain import Domain
from mechdesign.model.places import interval
from mechdesign.validation import Floats, Integers, as_floats, as_indices, read_only, require

__all__ = ["Trace", "Visits", "read_checkins", "read_plt", "to_grid"]

Times = NDArray[np.datetime64]

# Years 1 to 9999, in seconds since 1970: what a date can show, and what milliseconds exceed.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_SECOND = timedelta(seconds=1)

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
    `users` the user of each stretch. `inside` and `outside` count points; `domain` is the grid.
    """

    cells: tuple[Integers, ...]
    users: tuple[str, ...]
    inside: int
    outside: int
    domain: Domain
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
        stretches: dict[str, list[int]] = {}
        for index, user in enumerate(self.users):
            stretches.setdefault(user, []).append(index)
        object.__setattr__(self, "_stretches", stretches)

    def of(self, user: str) -> tuple[Integers, ...]:
        """Return the stretches of one user, in order; raise `InputError` for a user without any."""
        if user not in self._stretches:
            some = ", ".join(list(self._stretches)[:5])
            raise InputError(
                "user", "has no visits", value=user, bound=f"one of the {len(self._stretches)} users, such as {some}"
            )
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
    user: str = "user",
    latitude: str = "latitude",
    longitude: str = "longitude",
    time: str | None = None,
    trace: str | None = None,
    delimiter: str = ",",
) -> tuple[Trace, ...]:
    """Read a text file with one check-in a line and a header line with the names of the columns.

    `user`, `latitude`, `longitude`, `time` and `trace` name columns. There is one trace for each user, or, if `trace`
    is given, for each user and value in that column, in the order in which they first occur. Points are put in order
    of time if there is one (ISO 8601, or seconds since 1970 as a number; parts of a second are dropped), and else keep
    the order of the file. Raises `InputError` naming the line.
    """
    source = Path(path)
    # For each trace: latitudes, longitudes and seconds, as compact arrays of numbers rather than of objects.
    points: dict[tuple[str, str], tuple[array[float], array[float], array[int]]] = {}
    wanted = [name for name in (user, latitude, longitude, time, trace) if name is not None]
    with _opened(source) as lines:
        rows = _Rows(source, lines, _checked_delimiter(delimiter), csv.QUOTE_MINIMAL)
        remaining = iter(rows)
        header = next(remaining, None)
        if header is None:
            raise InputError(str(source), "is empty", bound="a header line and at least one check-in")
        place = _columns(header, wanted, source)
        at_user, at_latitude, at_longitude = place[user], place[latitude], place[longitude]
        at_time = None if time is None else place[time]
        at_trace = None if trace is None else place[trace]
        for row in remaining:
            if len(row) != len(header):
                raise rows.error("has the wrong number of fields", len(row), f"{len(header)} as in the header")
            if not row[at_user]:
                raise rows.error(f"has no {user}", row[at_user], "a text that is not empty")
            key = (row[at_user], "" if at_trace is None else row[at_trace])
            found = points.get(key)
            if found is None:
                found = points[key] = (array("d"), array("d"), array("q"))
            found[0].append(_degrees(row[at_latitude], 90, latitude, rows.error))
            found[1].append(_degrees(row[at_longitude], 180, longitude, rows.error))
            if at_time is not None:
                found[2].append(_seconds(row[at_time], str(time), rows.error))
    if not points:
        raise InputError(str(source), "holds no check-ins", bound="at least one line after the header")
    return tuple(_trace(name, *found) for (name, _), found in points.items())


def to_grid(traces: Iterable[Trace], domain: Domain) -> Visits:
    """Return the cells visited, for a domain made with `Domain.geographic_grid`.

    Column k covers the longitudes from west + k · (east − west) / columns on, up to but without the next such border;
    only the last column includes its eastern border. Rows likewise, from south to north. Points outside the box are
    left out, and a trace that leaves the box is split there: the points before and after become stretches of their own,
    so that no step of the user is invented. Raises `InputError` when no point is inside.
    """
    if domain.cells is None or domain.geographic is None:
        raise InputError("domain", "is not a geographic grid", value=domain, remedy="use Domain.geographic_grid")
    box, grid = domain.geographic, domain.cells
    meridians = np.linspace(box.west, box.east, grid.columns + 1)
    parallels = np.linspace(box.south, box.north, grid.rows + 1)
    cells: list[Integers] = []
    users: list[str] = []
    inside = outside = 0
    for trace in traces:
        column = interval(trace.longitude, meridians)
        row = interval(trace.latitude, parallels)
        kept = np.flatnonzero((column >= 0) & (row >= 0))
        inside += len(kept)
        outside += len(trace) - len(kept)
        if len(kept) == 0:
            continue
        visited = row[kept] * grid.columns + column[kept]
        stretches = np.split(visited, np.flatnonzero(np.diff(kept) > 1) + 1)
        cells += stretches
        users += [trace.user] * len(stretches)
    if inside == 0:
        raise InputError(
            "traces",
            f"none of the {outside} points is inside the box",
            value=box,
            remedy="check the box, and that latitude and longitude are not swapped",
        )
    return Visits(tuple(cells), tuple(users), inside, outside, domain)


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
    with _opened(path) as lines:
        rows = _Rows(path, lines, ",", csv.QUOTE_NONE, header_lines=_PLT_HEADER_LINES)
        for row in rows:
            if len(row) != _PLT_FIELDS:
                raise rows.error("has the wrong number of fields", len(row), str(_PLT_FIELDS))
            latitudes.append(_degrees(row[0], 90, "latitude", rows.error))
            longitudes.append(_degrees(row[1], 180, "longitude", rows.error))
            seconds.append(_seconds(f"{row[5]}T{row[6]}", "date and time", rows.error))
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
            yield from filter(None, self._reader)
        except UnicodeDecodeError as error:
            raise InputError(str(self._path), f"is not a text in UTF-8 ({error.reason})") from error
        except csv.Error as error:
            raise self.error(f"cannot be read ({error})", None, "") from error

    def error(self, problem: str, value: object, bound: str) -> InputError:
        """Return an error about the row just read."""
        return InputError(f"{self._path}, line {self._reader.line_num}", problem, value=value, bound=bound)


def _opened(path: Path) -> TextIO:
    try:
        # A byte order mark is not part of the first column's name.
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise InputError(str(path), f"cannot be opened ({error.strerror})", bound="a file that exists") from error


def _checked_delimiter(delimiter: str) -> str:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError("delimiter", "cannot separate fields", value=delimiter, bound='one character, such as ","')
    return delimiter


def _columns(header: list[str], wanted: list[str], path: Path) -> dict[str, int]:
    for name in wanted:
        if header.count(name) != 1:
            problem = "has no column" if name not in header else "has more than one column"
            raise InputError(str(path), f"{problem} {name!r}", bound=f"one of the columns {', '.join(header)}")
    return {name: header.index(name) for name in wanted}


def _degrees(text: str, limit: int, name: str, error: _Error) -> float:
    try:
        # Python reads 1_0 as 10.
        value = float("x" if "_" in text else text)
    except ValueError:
        raise error(f"{name} is not a number", text, "decimal degrees") from None
    # NaN compares false, so it is refused as well.
    if not -limit <= value <= limit:
        raise error(f"{name} is out of range", text, f"between -{limit} and {limit} degrees")
    return value


def _seconds(text: str, name: str, error: _Error) -> int:
    """Return seconds since 1970, rounded down, from a number of seconds or an ISO 8601 date and time."""
    try:
        try:
            # A float64 holds every whole second of these years exactly.
            seconds = math.floor(float("x" if "_" in text else text))
        except ValueError:
            moment = datetime.fromisoformat(text.strip())
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            seconds = (moment - _EPOCH) // _ONE_SECOND
    except (ValueError, OverflowError):
        raise error(f"{name} is not a time", text, "ISO 8601, or seconds since 1970") from None
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise error(f"{name} is out of range", text, "between the years 1 and 9999, in seconds, not milliseconds")
    return seconds
