"""Inspect a file of movement data: detect its kind, and the meaning of its columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.data._joining import Joined, PlacesTable, join, refers_to_places
from mechdesign.data._layout import dialect_of, to_nfc
from mechdesign.data._movement import Points, Written, read_points, read_trajectories
from mechdesign.data._text import column_text, columns_text, is_number, one_column_remedy, open_lines, read_rows
from mechdesign.data._times import TimeColumns, find_times, order_of
from mechdesign.data.trajectories import Trajectory

# Number of lines in the first sample, and in the largest. The sample grows while a column named like a time is blank in
# all lines of the sample.
_SAMPLE_LINES = 200
_MAX_SAMPLE_LINES = 200_000
# An error lists up to this number of folders.
_MAX_NAMED_FOLDERS = 5
_DAY_S = 86_400

# Usual names of columns, in lower case and letters only; the first name that occurs is used.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "latitude": ("latitude", "lat", "ylat", "venuelatitude", "startlatitude", "ycoordinate"),
    "longitude": ("longitude", "lon", "lng", "long", "xlon", "venuelongitude", "startlongitude", "xcoordinate"),
    "user": ("user", "userid", "uid", "username", "person", "personid", "driver", "driverid", "taxiid", "label"),
    "trace": ("trace", "traceid", "tid", "trajectory", "trajectoryid", "trip", "tripid", "session", "sessionid"),
}
_ESSENTIAL = ("latitude", "longitude")
# A cell that contains two coordinates.
_PAIR = re.compile(
    r"\s*(?:(?:SRID=\d+;)?POINT\b.*|[\[(]?\s*[+-]?\d+\.\d+°?\s*[,; ]\s*[+-]?\d+\.\d+°?\s*[\])]?)\s*", re.IGNORECASE
)

_Rows = list[tuple[int, list[str]]]


@dataclass(frozen=True, eq=False)
class DataSource:
    """The traces of a file, with all settings that are needed to read the file again.

    Attributes:
        path: The table or folder.
        columns: The column names for "latitude", "longitude" and, if present, "user", "date", "time" and "trace". With
            a table of places, "place" replaces latitude and longitude. Empty for a folder of trajectories (.plt).
        delimiter: The character between columns.
        traces: The traces.
        joined: The table of places, if there is one.
        unread: Sentences about columns that may be times but are not read.
        notes: Sentences about rows that are left out, and about settings that were recognised.
        said: The layout of times and longitudes that the user specified.
    """

    path: Path
    columns: Mapping[str, str]
    delimiter: str
    traces: tuple[Trajectory, ...]
    joined: Joined | None = None
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    said: Written = field(default_factory=Written)

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder of trajectories."""
        return not self.columns

    @property
    def order(self) -> str:
        """A sentence with the first and last time, and with the assumed order of the points."""
        return order_of([trace.time for trace in self.traces])


def inspect_data(
    path: Path,
    given: Mapping[str, str | None] | None = None,
    said: Written | None = None,
    places: PlacesTable | None = None,
) -> DataSource:
    """Read a table of check-ins, or a folder of trajectories, and detect its columns.

    Args:
        path: Table (text, gzip or Parquet) or folder.
        given: The columns that the user named, by their meaning, such as "latitude".
        said: The layout of times and longitudes that the user specified.
        places: The table of places, if check-ins refer to places instead of coordinates.

    Returns:
        The traces, with the columns and notes.

    Raises:
        InputError: The columns of the coordinates cannot be found; the message lists the columns of the table.
    """
    said = said or Written()
    if path.is_dir():
        if places is not None:
            raise InputError("--places", "cannot be used with a folder of trajectories", value=str(places.path))
        points = _trajectories(path, said)
        return DataSource(path, {}, ",", points.traces, notes=points.said(), said=said)
    delimiter = _delimiter(path)
    header, body = _head(path, delimiter)
    known = {name: to_nfc(column) for name, column in (given or {}).items() if column is not None}
    _require_columns(known, header)
    if not known and len(header) > 1 and any(map(is_number, header)):
        raise InputError(
            str(path),
            "has no header line: its first line contains numbers",
            remedy="add a line with the names of the columns, such as user,time,latitude,longitude",
        )
    recognised = {name: column for name in _NAMES if (column := _column(name, header, known)) is not None}
    columns = known | {name: column for name, column in recognised.items() if name not in known}
    joined = None
    if places is not None:
        between = _delimiter(places.path)
        joined = join(places, _head(places.path, between)[0], between, (path, header))
        columns = {name: column for name, column in columns.items() if name not in _ESSENTIAL}
        columns["place"] = joined.place
    elif lacking := [name for name in _ESSENTIAL if name not in columns]:
        problem, bound = f"has no column that looks like a {lacking[0]}", f"one of {columns_text(header, below=body)}"
        raise InputError(str(path), problem, bound=bound, remedy=_suggest(lacking, header, body))
    taken = [column for name, column in columns.items() if name not in ("date", "time")]
    times = _times(path, header, body, delimiter, (said, known.get("time"), known.get("date"), taken))
    found = _read(path, columns, times, delimiter, said, joined)
    _require_decimals(found)
    if times.time is not None and all(_is_counted_from_zero(trace) for trace in found.traces):
        problem = "is within a day of 1970-01-01 in every line"
        if "time" in known:
            raise InputError("--time", problem, value=times.time, bound="times")
        times = TimeColumns(unread=(f"the column {times.time} is not read: it {problem}",))
        return _read(path, columns, times, delimiter, said._replace(time_format=None, time_zone=None), joined)
    return found


def _require_columns(known: Mapping[str, str], header: Sequence[str]) -> None:
    """Raise `InputError` if a column that the user named does not exist, or is named twice."""
    for name, column in known.items():
        if column not in header:
            bound = f"one of {columns_text(header, [column])}"
            raise InputError(f"--{name}", "is not a column", value=column, bound=bound)
    for (name, column), (other, second) in itertools.combinations(known.items(), 2):
        if second == column:
            raise InputError(f"--{other}", f"is also the column of --{name}", value=column, bound="another column")


def _suggest(lacking: Sequence[str], header: Sequence[str], body: _Rows) -> str:
    """Return the remedy for a table without a column that looks like a latitude or longitude."""
    if separated := one_column_remedy(header):
        return separated
    if (pair := _pair(header, body)) is not None:
        return f"write the latitude and longitude in {column_text(pair)} into separate columns"
    remedy = f"name them: {' and '.join(f'--{each} COLUMN' for each in lacking)}"
    if (key := refers_to_places(header)) is not None:
        remedy += f", or --places FILE for the table of places that {column_text(key)} refers to"
    return remedy


def _require_decimals(found: DataSource) -> None:
    """Raise `InputError` if all degrees are whole numbers, because the column probably does not contain degrees."""
    for name in _ESSENTIAL:
        if all(float(degree).is_integer() for trace in found.traces for degree in getattr(trace, name)):
            joined = found.joined
            raise InputError(
                f"{found.path}, column {found.columns[name]}" if joined is None else f"{joined.path}, column {name}",
                "contains only whole numbers",
                bound=f"a {name} in decimal degrees",
                remedy=f"name the right column: --{name}",
            )


def unread_times(path: Path, delimiter: str | None, taken: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each column that may contain times, with the reason why it is not read.

    The columns in `taken` are skipped, because they have another meaning.
    """
    header, body = _head(path, delimiter)
    found = _times(path, header, body, delimiter, (Written(), None, None, taken))
    if found.time is not None:
        return (f"the column {column_text(found.time)} contains times, but was not selected",)
    return found.notes


# Options for times: their layout, the column with the time, the column with the date, and all columns that have another
# meaning.
_TimeOptions = tuple[Written, str | None, str | None, Sequence[str]]


def _times(path: Path, header: Sequence[str], body: _Rows, delimiter: str | None, options: _TimeOptions) -> TimeColumns:
    """Return the columns with the times; the sample grows while a column named like a time is blank in it."""
    size, before = _SAMPLE_LINES, 0
    said, time, date, taken = options

    def look(body: _Rows) -> TimeColumns:
        return find_times(header, body, said.time_format, time, date, taken, said.share)

    while (found := look(body)).blank and before < len(body) and size < _MAX_SAMPLE_LINES:
        size, before = 10 * size, len(body)
        _, body = _head(path, delimiter, size)
    return found


def _delimiter(path: Path) -> str:
    """Return the character between columns."""
    with open_lines(path) as lines:
        dialect = dialect_of(lines)
        if not lines.first_rows(dialect):
            raise InputError(str(path), "is empty", bound="a header line and at least one more line")
        return dialect.delimiter


def _head(path: Path, delimiter: str | None, size: int = _SAMPLE_LINES) -> tuple[list[str], _Rows]:
    """Return the header, and the first rows below it with their line numbers."""
    rows = list(itertools.islice(read_rows(path, delimiter), size))
    header = rows[0][1] if rows else []
    return header, [row for row in rows[1:] if len(row[1]) == len(header)]


def _trajectories(path: Path, said: Written) -> Points:
    """Return the trajectories in a folder; if there are none, the error names subfolders with trajectories."""
    try:
        return read_trajectories(path, said.share)
    except InputError as error:
        levels = (sorted(path.glob(pattern)) for pattern in ("*", "*/*"))
        sets = ((each for each in level if each.is_dir() and any(each.glob("*/Trajectory/*.plt"))) for level in levels)
        within = next(filter(None, map(list, sets)), None)
        if within is None or error.problem != "contains no trajectories":
            raise
        some = ", ".join(str(each.relative_to(path)) for each in within[:_MAX_NAMED_FOLDERS])
        more = f" and {len(within) - _MAX_NAMED_FOLDERS} more" if len(within) > _MAX_NAMED_FOLDERS else ""
        remedy = f"name one of its subfolders with trajectories: {some}{more}"
        raise InputError(str(path), error.problem, remedy=remedy) from error


def _read(
    path: Path,
    columns: Mapping[str, str],
    times: TimeColumns,
    delimiter: str,
    said: Written,
    joined: Joined | None = None,
) -> DataSource:
    for key in ("time_format", "time_zone"):
        if (value := getattr(said, key)) is not None and times.time is None:
            remedy = "; ".join(times.notes) or "name the column: --time COLUMN"
            raise InputError(key, "does not match any column of times", value=value, remedy=remedy)
    named = {**columns, "date": times.date, "time": times.time}
    ordered = {
        name: column
        for name in ("user", "place", "latitude", "longitude", "date", "time", "trace")
        if (column := named.get(name)) is not None
    }
    user, time, trace = (ordered.get(name) for name in ("user", "time", "trace"))
    points = read_points(
        path,
        user,
        columns.get("latitude", ""),
        longitude=columns.get("longitude", ""),
        time=time,
        trace=trace,
        delimiter=delimiter,
        place=columns.get("place"),
        places=None if joined is None else joined.places,
        date=times.date,
        said=said,
    )
    notes = (*_describe_interchange(columns), *points.said())
    return DataSource(path, ordered, delimiter, points.traces, joined, times.notes, notes, said)


def _describe_interchange(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each column that is read as a latitude but named like a longitude, or the reverse."""
    return tuple(
        f"the column {column_text(columns[name])} is read as the {name}, although it is named like a {other}"
        for name, other in (_ESSENTIAL, _ESSENTIAL[::-1])
        if name in columns and _column(other, [columns[name]], {}) is not None
    )


def _is_counted_from_zero(trace: Trajectory) -> bool:
    """Return whether all times are within a day of 1970-01-01: such times are probably hours, or line numbers."""
    if trace.time is None:
        return False
    return bool((np.abs(trace.time.astype(np.int64)) < _DAY_S).all())


def _pair(header: Sequence[str], body: _Rows) -> str | None:
    """Return the column whose cells contain two coordinates each, such as POINT (7.44 46.95), or None."""
    for place, name in enumerate(header):
        if body and all(_PAIR.fullmatch(row[place]) for _, row in body):
            return name
    return None


def _column(name: str, header: Sequence[str], known: Mapping[str, str]) -> str | None:
    plain = {re.sub(r"[^a-z]", "", column.lower()): column for column in reversed(header)}
    for candidate in _NAMES[name]:
        if candidate in plain and plain[candidate] not in known.values():
            return plain[candidate]
    return None
