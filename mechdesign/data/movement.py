"""Read movement data: check-ins and GPS traces become trajectories.

All coordinates are WGS84 degrees. Rows that cannot be read are left out, up to the share ``missing`` of all rows, and
counted by kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers, as_floats, require
from mechdesign.base._check import as_path, require_kind
from mechdesign.base._errors import InputError, InputWarning
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal
from mechdesign.data.table import Instants, Layout, Table, read_rows, read_table
from mechdesign.data.trajectories import Trajectory
from mechdesign.model._locate import INTERCHANGED

# The user of all rows of a table without a column of users.
_EVERYBODY = "everybody"
_COORDINATES = ("latitude", "longitude")
_PLT_HEADER_LINES = 6
_PLT_FIELDS = 7
# The kinds of rows with a cell that is no time or number, by the problem that `Table.no_time` or `no_number` states.
_KINDS = {
    "has no time": "without a time",
    "occurs twice or never, because clocks change": "at an hour that clocks repeat or skip",
    "is not a time": "with a time that cannot be read",
    "is empty": "without a place",
    "is not a number": "with a place that cannot be read",
}

Key = TypeVar("Key", bound=Hashable)

Places = Mapping[str, tuple[float, float]]
"""Latitude and longitude of each place, by key."""
Fault = tuple[str, Flags, Callable[[int], InputError]]
"""A kind of rows that are left out, a mask of these rows, and a function that returns the error for one of them."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table of check-ins, see `read_checkins`."""

    user: str | None
    latitude: str = "latitude"
    longitude: str = "longitude"
    time: str | None = None
    trace: str | None = None
    place: str | None = None
    places: Places | None = None

    def __post_init__(self) -> None:
        for key in ("user", "latitude", "longitude", "time", "trace", "place"):
            if not isinstance(name := getattr(self, key), str | None) or (name is None and key in _COORDINATES):
                raise InputError(key, "is not the name of a column", value=type(name).__name__, bound="a text")
        if self.places is not None:
            require_kind(self.places, Mapping, "places", "a mapping of keys to pairs, as read_places returns")
        if (self.place is None) != (self.places is None):
            name, bound = ("place", "a column of keys") if self.place is None else ("places", "as read_places returns")
            raise InputError(name, "is missing", bound=bound, remedy="give both place and places, or neither")
        if len(set(self.names())) < len(self.names()):
            raise InputError("source", "has a column of two meanings", value=self.names(), bound="different columns")

    def names(self) -> list[str]:
        """Return the names of the columns to read."""
        where = (self.latitude, self.longitude) if self.place is None else (self.place,)
        return [name for name in (self.user, *where, self.time, self.trace) if name is not None]


@dataclass(frozen=True, eq=False)
class Movement:
    """Trajectories, and the number of rows left out by kind.

    Attributes:
        traces: The trajectories.
        left_out: The number of rows of each kind, such as "without a time".

    >>> Movement((), {"without a time": 3, "with a latitude beyond 90 degrees": 1}).note
    '4 rows are left out: 3 without a time, 1 with a latitude beyond 90 degrees'
    """

    traces: tuple[Trajectory, ...]
    left_out: Mapping[str, int]

    @property
    def note(self) -> str:
        """A sentence with the numbers of rows left out; "" if there are none."""
        total = sum(self.left_out.values())
        return f"{_rows(total)} {'is' if total == 1 else 'are'} left out: {_by_kind(self.left_out)}" if total else ""


class LeftOut:
    """Counts of the rows that are left out of one table or several.

    Args:
        missing: The share of rows that may be left out, in [0, 1].

    Attributes:
        counts: The number of rows of each kind.
    """

    def __init__(self, missing: float) -> None:
        self.counts: Counter[str] = Counter()
        self._missing = float(missing)
        self._rows = 0
        self._first: dict[str, InputError] = {}

    def keep(self, table: Table, faults: Iterable[Fault]) -> Integers:
        """Return the rows without a fault; any other row counts under its first fault."""
        bad = np.zeros(len(table), dtype=bool)
        for kind, rows, error in faults:
            new = rows & ~bad
            if new.any():
                self.counts[kind] += int(new.sum())
                self._first.setdefault(kind, error(int(np.argmax(new))))
                bad |= new
        self._rows += len(table)
        return np.flatnonzero(~bad)

    def check(self) -> None:
        """Raise `InputError` for the first row of the most frequent kind if too many rows are left out."""
        bad = sum(self.counts.values())
        if bad <= as_decimal(float(self._missing)) * self._rows:
            return
        error = self._first[max(self.counts, key=self.counts.__getitem__)]
        remedy = f"{bad} of {_rows(self._rows)} would be left out: {_by_kind(self.counts)}"
        if 2 * bad < self._rows:
            remedy += f"; set missing = {math.ceil(100 * Fraction(bad, self._rows)) / 100:g} to allow this"
        remedy = "; ".join(filter(None, (error.remedy, remedy)))
        raise InputError(error.path, error.problem, bound=error.bound, remedy=remedy)


def read_checkins(
    source: Any,
    user: str | None = "user",
    latitude: str = "latitude",
    longitude: str = "longitude",
    *,
    time: str | None = None,
    trace: str | None = None,
    place: str | None = None,
    places: Places | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    time_format: str | None = None,
    time_zone: str = "UTC",
    missing: float = 0.05,
) -> tuple[Trajectory, ...]:
    r"""Read a table with one check-in per row.

    There is one trace for each user, or for each pair of a user and a value in the column `trace`. Points are sorted by
    time, including fractions of seconds. Points with equal times keep the order of the file, or the reverse order if
    the person's rows descend; if the rows do neither, `Trajectory.ties` counts them. Without `time`, points keep the
    order of the file. A row without a user, a time or a place is left out, and an `InputWarning` counts these rows.

    Args:
        source: A text file with a header line (.gz: compressed by gzip), a Parquet file (.parquet), a DataFrame, or a
            mapping of columns.
        user: Column with the user. If None, all rows belong to one person.
        latitude: Column with the latitude in degrees.
        longitude: Column with the longitude in degrees.
        time: Column with the time.
        trace: Column that distinguishes several traces of one user.
        place: Column with the key of a place in `places`.
        places: Latitude and longitude of each place by key, see `read_places`; they replace `latitude` and `longitude`.
        delimiter: The character between columns.
        decimal: The decimal sign, "." or ",".
        encoding: The encoding of the text.
        time_format: A pattern of `datetime.strptime`, such as "%d/%m/%Y %H:%M", or "unix", "unix-ms", "unix-us" or
            "unix-ns"; ISO 8601 if None.
        time_zone: Zone of times without an offset, such as "Europe/Zurich".
        missing: The share of rows that may be left out, in [0, 1].

    Returns:
        The traces, in the order in which users first occur.

    Raises:
        InputError: The table does not fit its layout, or too many rows cannot be read; the path names the line.

    >>> traces = read_checkins({"user": ["ada", "ada"], "latitude": [46.95, 46.96], "longitude": [7.44, 7.45]})
    >>> traces[0].user, traces[0].latitude.tolist()
    ('ada', [46.95, 46.96])
    """
    layout = Layout(delimiter, decimal, encoding, time_format, time_zone, missing)
    if time_format is not None and time is None:
        raise InputError("time_format", "requires a column of times", value=time_format, remedy="name it: time")
    found = read_movement(source, Columns(user, latitude, longitude, time, trace, place, places), layout)
    _warn_of(found, source)
    return found.traces


def _warn_of(found: Movement, source: Any) -> None:
    if found.left_out:
        name = source if isinstance(source, str | PathLike) else "source"
        warn(f"{name}: {found.note}", InputWarning, stacklevel=3)


def read_movement(source: Any, columns: Columns, layout: Layout) -> Movement:
    """Read a table as `read_checkins` does, but return the numbers of rows left out instead of a warning."""
    table, left_out = read_table(source, columns.names(), layout), LeftOut(layout.missing)
    traces = _trajectories(table, columns, left_out)
    left_out.check()
    if not traces:
        raise InputError(table.name or "source", "contains no check-ins", bound="at least one row")
    return Movement(traces, left_out.counts)


def _trajectories(table: Table, columns: Columns, left_out: LeftOut) -> tuple[Trajectory, ...]:
    """Return the trajectories of a table; rows with a fault are counted in `left_out`."""
    users, faults = [_EVERYBODY] * len(table), list[Fault]()
    if columns.user is not None:
        users = table.texts(columns.user)
        faults.append(blank(table, columns.user, "user"))
    instants = None
    if columns.time is not None:
        instants, bad = table.times(columns.time)
        faults += time_faults(table, columns.time, bad)
    if columns.place is None or columns.places is None:
        north, east = degrees_of(table, (columns.latitude, columns.longitude), faults)
    else:
        north, east = _located(table, columns.place, columns.places, faults)
    kept = left_out.keep(table, faults)
    users = [users[row] for row in kept]
    if instants is not None:
        instants = Instants(instants.seconds[kept], instants.nanoseconds[kept])
    traces = [""] * len(kept)
    if columns.trace is not None:
        named = table.texts(columns.trace)
        traces = [named[row] for row in kept]
    return _sorted(users, traces, north[kept], east[kept], instants)


def _sorted(
    users: Sequence[str], traces: Sequence[str], north: Floats, east: Floats, instants: Instants | None
) -> tuple[Trajectory, ...]:
    """Return the trajectories of rows in the order of the file: one for each user and trace, in the order of time."""
    groups = _grouped(list(zip(users, traces, strict=True)))
    if instants is None:
        return tuple(Trajectory(user, north[rows], east[rows]) for (user, _), rows in groups.items())
    people = {user: _direction(instants, rows) for user, rows in _grouped(users).items()}
    known = set(people.values()) - {None}
    everybody = known.pop() if len(known) == 1 else 0
    found = []
    for (user, _), rows in groups.items():
        # Where all times of a trace are equal, the person's other rows tell the order, and else those of all people.
        others = everybody if people[user] is None else people[user]
        rows, unknown = order_in_time(instants, rows, others or 0)
        unknown &= (np.diff(north[rows], prepend=np.nan) != 0) | (np.diff(east[rows], prepend=np.nan) != 0)
        time = instants.seconds[rows].astype("datetime64[s]")
        found.append(Trajectory(user, north[rows], east[rows], time, int(unknown.sum())))
    return tuple(found)


def order_in_time(instants: Instants, rows: Integers, direction: int = 0) -> tuple[Integers, Flags]:
    """Return rows in the order of time, and which of them have the time of the row before in an order that is unknown.

    Rows with equal times keep their order if rows ascend, and have the reverse order if they descend. If all times are
    equal, `direction` tells whether they ascend (1), descend (-1), or neither (0).
    """
    own = _direction(instants, rows)
    direction = direction if own is None else own
    rows = rows[:: direction or 1]
    rows = rows[np.lexsort((instants.nanoseconds[rows], instants.seconds[rows]))]
    equal = np.zeros(len(rows), dtype=bool)
    if not direction:
        seconds, parts = instants.seconds[rows], instants.nanoseconds[rows]
        equal[1:] = (np.diff(seconds) == 0) & (np.diff(parts) == 0)
    return rows, equal


def _grouped(keys: Sequence[Key]) -> dict[Key, Integers]:
    """Return the positions of each key, in the order in which keys first occur."""
    codes: dict[Key, int] = {}
    code = np.fromiter((codes.setdefault(key, len(codes)) for key in keys), np.int64, len(keys))
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(1, len(codes)))
    return dict(zip(codes, np.split(order, ends), strict=True)) if codes else {}


def _direction(instants: Instants, rows: Integers) -> int | None:
    """Return 1 if rows ascend in time, -1 if they descend, 0 if they do both, and None if all times are equal."""
    apart = np.diff(instants.seconds[rows])
    apart = np.where(apart == 0, np.diff(instants.nanoseconds[rows]), apart)
    up, down = bool((apart > 0).any()), bool((apart < 0).any())
    return up - down if up or down else None


def blank(table: Table, column: str, what: str) -> Fault:
    """Return the fault of the rows whose cell is blank."""
    rows = np.array([not text.strip() for text in table.texts(column)], dtype=bool)
    return f"without a {what}", rows, _error(table, column, "is empty", f"a {what}")


def _error(table: Table, column: str, problem: str, bound: str, remedy: str = "") -> Callable[[int], InputError]:
    """Return a function that returns the error for a cell of a row."""
    return lambda row: InputError(table.where(row, column), problem, bound=bound, remedy=remedy)


def time_faults(table: Table, column: str, bad: Flags) -> list[Fault]:
    """Return the kinds of cells in a column that are not times."""
    return _faults(bad, partial(table.no_time, column=column))


def _faults(bad: Flags, error: Callable[[int], InputError]) -> list[Fault]:
    """Return the kinds of faulty cells by the problems that their errors state."""
    faults: dict[str, Flags] = {}
    for row in np.flatnonzero(bad).tolist():
        faults.setdefault(_KINDS[error(row).problem], np.zeros_like(bad))[row] = True
    return [(kind, rows, error) for kind, rows in faults.items()]


def numbers_of(table: Table, names: tuple[str, str], faults: list[Fault]) -> tuple[Floats, Floats]:
    """Return the numbers in two columns of coordinates, and add the faults of their cells."""
    (first, bad), (second, worse) = map(table.floats, names)
    for name, rows in zip(names, (bad, worse), strict=True):
        faults += _faults(rows, partial(table.no_number, column=name))
    return first, second


def degrees_of(table: Table, names: tuple[str, str], faults: list[Fault]) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes, and add the faults of their cells."""
    north, east = numbers_of(table, names, faults)
    beyond = (np.abs(north) > 90, np.abs(east) > 180)
    swapped = beyond[0].any() and bool((np.abs(east[beyond[0]]) <= 90).all() and not beyond[1].any())
    for name, kind, rows, limit in zip(names, _COORDINATES, beyond, (90, 180), strict=True):
        problem, remedy = "is out of range", ""
        if kind == "latitude" and swapped:
            problem, remedy = f"{problem}: {INTERCHANGED}", "exchange the names of the two columns"
        elif kind == "longitude" and (east[rows] <= 360).all():
            remedy = "subtract 360 from longitudes beyond 180 degrees"
        error = _error(table, name, problem, f"between -{limit} and {limit} degrees", remedy)
        faults.append((f"with a {kind} beyond {limit} degrees", rows, error))
    return north, east


def _located(table: Table, column: str, places: Places, faults: list[Fault]) -> tuple[Floats, Floats]:
    """Return the latitudes and longitudes of places, and add the fault of an unknown key."""
    degrees = as_floats([places[key] for key in places], "places", "(k, 2)") if places else np.zeros((0, 2))
    if degrees.shape[1] != 2:
        raise InputError("places", "are not pairs", value=degrees.shape[1], bound="a latitude and a longitude by key")
    for axis, limit in enumerate((90, 180)):
        bound = f"between -{limit} and {limit} degrees"
        require(np.abs(degrees[:, axis]) <= limit, degrees[:, axis], "places", bound)
    positions = {key: position for position, key in enumerate(places)}
    keys = table.texts(column)
    faults.append(blank(table, column, "place"))
    found = np.array([positions.get(key, -1) for key in keys], dtype=np.int64)
    error = _error(table, column, "is not in the table of places", f"one of its {len(places)} keys")
    faults.append(("with a place that the table of places lacks", found < 0, error))
    north, east = np.vstack((degrees, np.zeros((1, 2))))[found].T
    return north, east


def read_places(
    source: Any,
    key: str,
    latitude: str = "latitude",
    longitude: str = "longitude",
    *,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
) -> dict[str, tuple[float, float]]:
    r"""Read the coordinates of places.

    Args:
        source: A file, a DataFrame or a mapping, as in `read_checkins`.
        key: Column with the key.
        latitude: Column with the latitude in degrees.
        longitude: Column with the longitude in degrees.
        delimiter: The character between columns.
        decimal: The decimal sign, "." or ",".
        encoding: The encoding of the text.

    Returns:
        Latitude and longitude by key, in degrees.

    Raises:
        InputError: The table does not fit its layout, a coordinate is missing or out of range, or a key has two places.

    >>> read_places({"id": ["cafe"], "lat": [46.95], "lon": [7.44]}, "id", "lat", "lon")
    {'cafe': (46.95, 7.44)}
    """
    for name, column in (("key", key), ("latitude", latitude), ("longitude", longitude)):
        require_kind(column, str, name, "the name of a column")
    layout = Layout(delimiter, decimal, encoding, missing=0)
    table, left_out, faults = read_table(source, [key, latitude, longitude], layout), LeftOut(0), list[Fault]()
    north, east = degrees_of(table, (latitude, longitude), faults)
    faults.append(blank(table, key, "key"))
    left_out.keep(table, faults)
    left_out.check()
    found: dict[str, tuple[float, float]] = {}
    for row, (name, *point) in enumerate(zip(table.texts(key), north.tolist(), east.tolist(), strict=True)):
        if found.setdefault(name, (point[0], point[1])) != (point[0], point[1]):
            raise _error(table, key, "has a different place in an earlier row", "one place for each key")(row)
    return found


def read_plt(folder: str | PathLike[str], missing: float = 0.05) -> tuple[Trajectory, ...]:
    r"""Read GeoLife trajectories: one trace for each file ``<user>/Trajectory/*.plt``, sorted by name.

    A file has six header lines, then lines of latitude, longitude, 0, altitude, days, date and time. Points are sorted
    by time. Lines without a place or a time are left out, and an `InputWarning` counts them. A file without points is
    no trace.

    Args:
        folder: The folder that contains a folder for each user, or the .plt files of one user. That user has the name
            of the folder, or of its parent if the folder is called ``Trajectory``.
        missing: The share of lines that may be left out, in [0, 1].

    Returns:
        The traces.

    Raises:
        InputError: The folder contains no trajectories, or too many lines cannot be read; the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "ada").mkdir()
    ...     line = "46.95,7.44,0,492,39744.25,2008-10-23,06:00:00"
    ...     file = Path(folder, "ada", "1.plt")
    ...     _ = file.write_text("\n".join([*["header"] * 6, line]))
    ...     trace = read_plt(file.parent)[0]
    >>> trace.user, len(trace), str(trace.time[0])
    ('ada', 1, '2008-10-23T06:00:00')
    """
    found = read_trajectories(folder, missing)
    _warn_of(found, folder)
    return found.traces


def read_trajectories(folder: str | PathLike[str], missing: float) -> Movement:
    """Read GeoLife trajectories as `read_plt` does, but return the numbers of lines left out instead of a warning."""
    root, layout = as_path(folder, "folder"), Layout(missing=missing)
    own = root.resolve().parent if root.resolve().name == "Trajectory" else root.resolve()
    files = [(path.parts[-3], path) for path in sorted(root.glob("[!.]*/Trajectory/[!.]*.plt"))]
    files = [(own.name, path) for path in sorted(root.glob("[!.]*.plt"))] or files
    if not files:
        bound = "a folder with <user>/Trajectory/*.plt or *.plt"
        raise InputError("folder", "contains no trajectories", value=str(root), bound=bound)
    columns, left_out = Columns(None, time="time"), LeftOut(missing)
    found = [
        replace(trace, user=user)
        for user, path in files
        for trace in _trajectories(_plt_table(path, layout), columns, left_out)
    ]
    left_out.check()
    if not found:
        raise InputError(str(files[0][1]), "contains no points", bound=f"{_PLT_HEADER_LINES} header lines, then points")
    return Movement(tuple(found), left_out.counts)


def _plt_table(path: Path, layout: Layout) -> Table:
    """Return the points of a .plt file."""
    points, lines = list[list[str]](), list[int]()
    for number, (line, row) in enumerate(read_rows(path, layout)):
        if not row:
            continue
        if (len(row) == _PLT_FIELDS) != (number >= _PLT_HEADER_LINES):
            bound = f"{_PLT_HEADER_LINES} header lines, then points of {_PLT_FIELDS} fields"
            raise InputError(f"{path}, line {line}", "has the wrong number of fields", value=len(row), bound=bound)
        if number >= _PLT_HEADER_LINES:
            lines.append(line)
            points.append(row)
    texts = {
        "latitude": [row[0] for row in points],
        "longitude": [row[1] for row in points],
        # A date alone would be midnight.
        "time": [f"{row[5]} {row[6]}" if row[6].strip() else "" for row in points],
    }
    return Table(str(path), texts, lines, layout)


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _by_kind(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda each: -each[1]))
