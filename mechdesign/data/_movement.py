"""Read movement data: check-ins and GPS traces.

All coordinates are WGS84 degrees. All times are UTC; a time without a zone is read as UTC.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from mechdesign.base._arrays import Flags
from mechdesign.base._check import as_path
from mechdesign.base._errors import (
    InputError,
    InputWarning,
    RecognisedWarning,
)
from mechdesign.base._warnings import warn
from mechdesign.data import _left_out as reasons
from mechdesign.data._degrees import (
    Error,
    Longitudes,
    error_of,
    longitudes_note,
    place_in,
    possible_longitudes,
    within_180,
)
from mechdesign.data._layout import Dialect, Lines, Mark, cell, dialect_of, form_of, mark_of, require_delimiter
from mechdesign.data._left_out import MOST_LEFT_OUT, LeftOut, RowError, as_share, describe_left_out
from mechdesign.data._text import (
    as_float,
    check_column,
    fields_of,
    has_columns,
    open_lines,
    plain_numbers,
    read_columns,
)
from mechdesign.data._times import Clock, Instant, SetClockError, read_with
from mechdesign.data.trajectories import Trajectory
from mechdesign.model._locate import INTERCHANGED

# The user of all rows in a table without a column of users.
_EVERYBODY = "everybody"

_PLT_HEADER_LINES = 6
_PLT_FIELDS = 7


def read_plt(folder: str | PathLike[str], *, missing: float = MOST_LEFT_OUT) -> tuple[Trajectory, ...]:
    r"""Read GeoLife trajectories: one trace for each file ``<user>/Trajectory/*.plt``, sorted by name.

    A file has six header lines, then lines of latitude, longitude, 0, altitude, days, date and time. Points are sorted
    by time. Lines that cannot be read, and files without points, are left out with an `InputWarning`. Hidden files and
    deeper folders are ignored.

    Args:
        folder: The folder that contains a folder for each user. A folder that itself contains .plt files is read as one
            user. That user has the name of the folder, or of its parent if the folder is called ``Trajectory``.
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
    _warn_of(found, str(folder))
    return found.traces


def read_trajectories(folder: str | PathLike[str], missing: float = MOST_LEFT_OUT) -> Points:
    r"""Read GeoLife trajectories as `read_plt` does, but return the notes and the lines left out without a warning.

    Args:
        folder: The folder that contains a folder for each user, or the .plt files of one user.
        missing: The share of lines that may be left out, in [0, 1].

    Returns:
        The traces, the numbers of lines left out, and notes.

    Raises:
        InputError: The folder contains no trajectories, or too many lines cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = "46.95,7.44,0,492,39744.25,2008-10-23,06:00:00"
    ...     _ = Path(folder, "1.plt").write_text("\n".join([*["header"] * 6, *[line] * 30, "0,0"]))
    ...     points = read_trajectories(folder)
    >>> len(points.traces[0]), points.said()
    (30, ('1 row with another number of fields is left out',))
    """
    folder = as_path(folder, "folder")
    root = Path(folder)
    if not root.is_dir():
        bound = "a folder with <user>/Trajectory/*.plt or *.plt"
        raise InputError("folder", "is not a folder", value=str(root), bound=bound)
    own = _plt_files(root)
    absolute = root.resolve()
    owner = absolute.parent if absolute.name == "Trajectory" else absolute
    files = [(path, owner.name or "0") for path in own] or [
        (path, user.name)
        for user in sorted(root.iterdir())
        if user.is_dir() and not user.name.startswith(".")
        for path in _plt_files(user / "Trajectory")
    ]
    left_out = LeftOut(missing)
    read = [_read_plt_file(path, user, left_out) for path, user in files]
    traces = tuple(trace for trace in read if trace is not None)
    if not files:
        raise InputError(
            "folder",
            "contains no trajectories",
            value=str(root),
            bound="a folder with <user>/Trajectory/*.plt or *.plt",
            remedy="name the folder that contains a folder for each user",
        )
    left_out.check()
    if not traces:
        raise InputError(str(files[0][0]), "contains no points", bound=f"{_PLT_HEADER_LINES} header lines, then points")
    empty = len(read) - len(traces)
    notes = (f"{empty} file{'s' * (empty != 1)} without points {'is' if empty == 1 else 'are'} left out",)
    return Points(traces, left_out, notes if empty else ())


def _warn_of(found: Points, name: str) -> None:
    """Warn of rows that are left out, and of settings that were recognised."""
    counts = found.left_out.counts
    if counts:
        warn(f"{name}: {describe_left_out(counts)}", InputWarning, stacklevel=3)
    for note in found.notes:
        warn(f"{name}: {note}", RecognisedWarning, stacklevel=3)


def read_checkins(
    path: str | PathLike[str],
    user: str | None = "user",
    latitude: str = "latitude",
    *,
    longitude: str = "longitude",
    time: str | None = None,
    trace: str | None = None,
    delimiter: str = ",",
    place: str | None = None,
    places: Mapping[str, tuple[float, float]] | None = None,
    date: str | None = None,
    time_format: str | None = None,
    time_zone: str | None = None,
    longitudes: Longitudes | None = None,
    missing: float = MOST_LEFT_OUT,
) -> tuple[Trajectory, ...]:
    r"""Read a table with one check-in per row and a header line.

    The file is text, plain or compressed by gzip, or Parquet. There is one trace for each user, or for each pair of a
    user and a value in the column `trace`. Points are sorted by time, including fractions of seconds; without `time`
    they keep the order of the file. The layout (delimiter, decimal mark, encoding) is recognised; a `RecognisedWarning`
    reports unusual settings. `reading_as` specifies the layout.

    A row that cannot be read is left out, and an `InputWarning` counts these rows by reason. For example, a row cannot
    be read if it has no user or place, an unreadable or missing time (blank, NaT, NULL, NaN, NA), or a latitude beyond
    90 degrees. Blank lines are skipped.

    These times are recognised:

    - ISO 8601, and other dates with the year first, such as "2022/5/2 7:05 PM";
    - dates with the month by name, such as "Tue Apr 03 18:00:09 +0000 2012";
    - days and months in digits, if the column shows their order, or day.month.year with points;
    - seconds, milliseconds, microseconds or nanoseconds since 1970, from 1980 to the end of next year.

    Args:
        path: File to read.
        user: Column with the user. If None, all rows belong to one user.
        latitude: Column with the latitude in degrees.
        longitude: Column with the longitude in degrees.
        time: Column with the time.
        trace: Column that distinguishes several traces of one user.
        delimiter: The character between columns. With the default, a comma, other delimiters are also recognised.
        place: Column with the key of a place in `places`.
        places: Latitude and longitude of each place by key, see `read_places`; they replace `latitude` and `longitude`.
        date: Column with the date, if `time` contains only the time of day.
        time_format: Format of the times: a pattern of `datetime.strptime`, such as "%Y%m%d", or "unix", "unix-ms",
            "unix-us" or "unix-ns". The format is required if times are ambiguous.
        time_zone: Zone of times without a zone, such as "Europe/Zurich"; UTC if None.
        longitudes: "180" if longitudes go from -180 to 180 degrees, "360" if they go from 0 to 360. With None, the
            range ends at 360 if some longitudes exceed 180 and none is negative.
        missing: The share of rows that may be left out, in [0, 1].

    Returns:
        The traces, in the order in which users first occur.

    Raises:
        InputError: A column is missing, times are ambiguous, or too many rows cannot be read; the path names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "checkins.csv")
    ...     _ = file.write_text("user,latitude,longitude\nada,46.95,7.44\nada,46.96,7.45\n")
    ...     traces = read_checkins(file)
    >>> traces[0].user, traces[0].latitude.tolist()
    ('ada', [46.95, 46.96])
    """
    found = read_points(
        path,
        user,
        latitude,
        longitude=longitude,
        time=time,
        trace=trace,
        # With None, the delimiter is recognised, and commas are tried first.
        delimiter=None if delimiter == "," else delimiter,
        place=place,
        places=places,
        date=date,
        said=Written(time_format, time_zone, longitudes, missing),
    )
    _warn_of(found, str(path))
    _warn_of_interchange(found.traces, str(path))
    return found.traces


def _warn_of_interchange(traces: Sequence[Trajectory], source: str) -> None:
    """Warn if all points are in Antarctica, but would be in inhabited regions if their columns were exchanged."""
    if traces and all((each.latitude <= -60).all() and (abs(each.longitude - 7.5) <= 67.5).all() for each in traces):
        warn(
            f"{source}: all points are south of 60 degrees south: {INTERCHANGED}. Exchange the names of the columns",
            InputWarning,
            stacklevel=3,
        )


class Written(NamedTuple):
    """The user's settings for the layout of a table of check-ins.

    Attributes:
        time_format: Format of the times, see `read_checkins`.
        time_zone: Zone of times without a zone.
        longitudes: "180" or "360", the largest longitude in degrees.
        missing: The share of rows that may be left out, in [0, 1].

    >>> Written(time_format="unix").share
    0.05
    """

    time_format: str | None = None
    time_zone: str | None = None
    longitudes: Longitudes | None = None
    missing: float | None = None

    @property
    def share(self) -> float:
        """The share of rows that may be left out, with its default."""
        return MOST_LEFT_OUT if self.missing is None else as_share(self.missing)


class Points(NamedTuple):
    """The content of a table of check-ins.

    Attributes:
        traces: The traces.
        left_out: The numbers of rows that were read and left out.
        notes: Sentences about settings that were recognised.
        blank: The number of blank lines between rows.

    >>> Points((), LeftOut(), blank=2).said()
    ('2 blank lines between rows are skipped',)
    """

    traces: tuple[Trajectory, ...]
    left_out: LeftOut
    notes: tuple[str, ...] = ()
    blank: int = 0

    def said(self, user: str | None = None) -> tuple[str, ...]:
        """Return sentences about recognised settings, blank lines, and rows left out.

        Args:
            user: Count only the rows of this user; None counts all rows.

        Returns:
            The sentences, in this order.
        """
        counts = self.left_out.counts if user is None else self.left_out.of(user)
        many = self.blank != 1
        blank = f"{self.blank} blank line{'s' * many} between rows {'are' if many else 'is'} skipped"
        return (*self.notes, *([blank] if self.blank else []), *([describe_left_out(counts)] if counts else []))


def read_points(
    path: str | PathLike[str],
    user: str | None,
    latitude: str,
    *,
    longitude: str,
    time: str | None,
    trace: str | None,
    delimiter: str | None,
    place: str | None = None,
    places: Mapping[str, tuple[float, float]] | None = None,
    date: str | None = None,
    said: Written | None = None,
) -> Points:
    r"""Read a table as `read_checkins` does, but return the notes and the rows left out without a warning.

    Args:
        path: File to read.
        user: Column with the user. If None, all rows belong to one user.
        latitude: Column with the latitude in degrees.
        longitude: Column with the longitude in degrees.
        time: Column with the time, or None.
        trace: Column that distinguishes several traces of one user, or None.
        delimiter: The character between columns; recognised if None.
        place: Column with the key of a place in `places`.
        places: Latitude and longitude of each place by key; they replace `latitude` and `longitude`.
        date: Column with the date, if `time` contains only the time of day.
        said: Layout of times and longitudes, and the share of rows that may be left out.

    Returns:
        The traces, the numbers of rows left out, and notes.

    Raises:
        InputError: A column is missing, times are ambiguous, or too many rows cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "checkins.csv")
    ...     _ = file.write_text("lat,lon\n46.95,7.44\n46.96,7.45\n")
    ...     points = read_points(file, None, "lat", longitude="lon", time=None, trace=None, delimiter=None)
    >>> len(points.traces[0]), points.left_out.kept
    (2, 2)
    """
    source, said = as_path(path, "path"), said or Written()
    share = said.share
    require_delimiter(delimiter)
    if said.longitudes not in (None, *get_args(Longitudes)):
        raise InputError("longitudes", "is not known", value=said.longitudes, bound='"180" or "360"')
    for name, value in (("date", date), ("time_format", said.time_format), ("time_zone", said.time_zone)):
        if value is not None and time is None:
            raise InputError(name, "requires a column of times", value=value, remedy="name it: time")
    if place is not None and places is None:
        raise InputError("places", "are missing, but place is given", bound="the result of read_places")
    named = _Named(user, (latitude, longitude) if places is None else (place or "place",), date, time, trace)
    clock = Clock(said.time_format, " and ".join(filter(None, (date, time))), zone=said.time_zone)

    def read(clock: Clock) -> Points:
        return _points(source, delimiter, named, places, clock, said.longitudes, LeftOut(share))

    return read_with(clock, read)


class _Named(NamedTuple):
    """The column names of a table of check-ins; `where` contains latitude and longitude, or the key of a place."""

    user: str | None
    where: tuple[str, ...]
    date: str | None
    time: str | None
    trace: str | None


class _Found:
    """The points of a trace so far: latitudes, longitudes, seconds and nanoseconds in compact arrays."""

    def __init__(self) -> None:
        self.latitude, self.longitude = array("d"), array("d")
        self.seconds, self.nanoseconds = array("q"), array("l")

    def add(self, point: tuple[float, float], moment: Instant | None) -> None:
        self.latitude.append(point[0])
        self.longitude.append(point[1])
        if moment is not None:
            self.seconds.append(moment.seconds)
            self.nanoseconds.append(moment.nanoseconds)

    def trace(self, user: str, kept: Flags | None = None) -> Trajectory | None:
        """Return the trace of the points in the mask `kept`, sorted by time; None if no point is kept."""
        chosen = slice(None) if kept is None else kept
        latitudes, longitudes = np.array(self.latitude)[chosen], within_180(np.array(self.longitude)[chosen])
        if not len(latitudes):
            return None
        if not self.seconds:
            return Trajectory(user, latitudes, longitudes)
        seconds = np.array(self.seconds, dtype=np.int64)[chosen]
        # The sort is stable: points with equal times keep the order of the file.
        order = np.lexsort((np.array(self.nanoseconds, dtype=np.int64)[chosen], seconds))
        return Trajectory(user, latitudes[order], longitudes[order], seconds[order].astype("datetime64[s]"))


def _points(
    source: Path,
    delimiter: str | None,
    columns: _Named,
    places: Mapping[str, tuple[float, float]] | None,
    clock: Clock,
    longitudes: Longitudes | None,
    left_out: LeftOut,
) -> Points:
    points: dict[tuple[str, str], _Found] = {}
    beyond = _Beyond()
    with open_lines(source) as lines:
        wanted = [name for each in columns for name in (each if isinstance(each, tuple) else (each,)) if name]
        dialect = dialect_of(lines, delimiter, has_columns(wanted))
        rows = _Rows(source, lines, dialect, csv.QUOTE_MINIMAL)
        remaining = iter(rows)
        header = next(remaining, None)
        if header is None:
            raise InputError(str(source), "is empty", bound="a header line and at least one check-in")
        at = _columns(header, wanted, source)
        at_user, at_date, at_time, at_trace = (
            None if name is None else at[name] for name in (columns.user, columns.date, columns.time, columns.trace)
        )
        at_where = [at[name] for name in columns.where]
        first = [row for row in lines.first_rows(dialect)[1:] if len(row) == len(header)]
        marks = [
            Mark() if places is not None else mark_of([row[place] for row in first], f"{source}, column {name}", limit)
            for place, name, limit in zip(at_where, columns.where, (90, 360), strict=False)
        ]
        who = ""
        for row in remaining:
            try:
                who = _EVERYBODY if at_user is None else _user(row, at_user, len(header), rows.error, str(columns.user))
                if len(row) != len(header):
                    raise RowError(reasons.FIELDS, _wrong_fields(rows.error, row, header))
                day = None if at_date is None else row[at_date]
                moment = None if at_time is None else _moment(clock, row[at_time], day, rows)
                if places is None:
                    texts = [mark.plain(row[place]) for mark, place in zip(marks, at_where, strict=True)]
                    point = place_in((texts[0], texts[1]), columns.where, rows.error)  # type: ignore[arg-type]
                else:
                    point = _place(places, row[at_where[0]], columns.where[0], rows.error)
            except RowError as error:
                left_out.add(error, who)
                continue
            left_out.kept += 1
            beyond.note(point[1], who, rows, columns.where[-1])
            key = (who, "" if at_trace is None else row[at_trace])
            (points.get(key) or points.setdefault(key, _Found())).add(point, moment)
    return _of_traces(source, points, left_out, beyond, clock, columns, longitudes, rows.blank)


def _of_traces(
    source: Path,
    points: Mapping[tuple[str, str], _Found],
    left_out: LeftOut,
    beyond: _Beyond,
    clock: Clock,
    columns: _Named,
    longitudes: Longitudes | None,
    blank: int,
) -> Points:
    """Return the traces, with longitudes reduced to the range from -180 to 180 degrees."""
    notes = clock.notes
    kept: dict[tuple[str, str], Flags] = {}
    if (
        longitudes == "360"
        and not beyond.errors
        and any(min(found.longitude, default=0) < 0 for found in points.values())
    ):
        bound = '0 to 360 degrees, for longitudes = "360"'
        raise InputError(
            f"{source}, column {columns.where[-1]}", "is negative", bound=bound, remedy="remove the key longitudes"
        )
    if beyond.errors and points:
        every = np.concatenate([found.longitude for found in points.values()])
        if possible_longitudes(every, longitudes).all():
            notes += longitudes_note(every, columns.where[-1]) if longitudes is None else ()
        else:
            longest = "180" if longitudes is None else longitudes
            for key, found in points.items():
                kept[key] = good = possible_longitudes(np.array(found.longitude), longest)
                for _ in range(int((~good).sum())):
                    left_out.kept -= 1
                    left_out.add(RowError(reasons.LONGITUDE, beyond.errors[key[0]]), key[0])
    traces = [found.trace(key[0], kept.get(key)) for key, found in points.items()]
    if not any(traces) and (not left_out.counts or set(left_out.counts) == {reasons.NO_TIME}):
        problem, remedy = "contains no check-ins", ""
        if left_out.counts:
            problem = f"{problem} with a time in the column {columns.time}"
            remedy = "omit time; points then keep the order of the file"
        raise InputError(str(source), problem, bound="at least one line after the header", remedy=remedy)
    left_out.check()
    return Points(tuple(trace for trace in traces if trace is not None), left_out, notes, blank)


class _Beyond:
    """The error for each user's first longitude beyond 180 degrees, to be raised unless longitudes go from 0 to 360."""

    def __init__(self) -> None:
        self.errors: dict[str, InputError] = {}

    def note(self, longitude: float, user: str, rows: _Rows, name: str) -> None:
        if longitude > 180 and user not in self.errors:
            remedy = 'set longitudes = "360" if they go from 0 to 360 degrees'
            self.errors[user] = InputError(
                rows.where(),
                f"{name} is out of range",
                value=cell(f"{longitude:g}"),
                bound="between -180 and 180 degrees",
                remedy=remedy,
            )


def _user(row: Sequence[str], place: int, fields: int, error: Error, name: str) -> str:
    user = row[place] if place < len(row) else ""
    if not user.strip() and len(row) == fields:
        raise RowError(reasons.USER, error(f"has no {name}", cell(user), "a non-empty text"))
    return user


def _wrong_fields(error: Error, row: Sequence[str], header: Sequence[str]) -> InputError:
    return error("has the wrong number of fields", len(row), f"{len(header)} fields, as in the header")


def _moment(clock: Clock, text: str, day: str | None, rows: _Rows) -> Instant:
    """Return the time of a row; raise `RowError` if it is missing or cannot be read."""
    try:
        moment = clock.moment(text, rows.where, day)
    except SetClockError as error:
        raise RowError(reasons.SET_CLOCK, error) from None
    except InputError as error:
        raise RowError(reasons.UNREADABLE_TIME, error) from None
    if moment is None:
        raise RowError(reasons.NO_TIME, rows.error("has no time", cell(text), "a date and time"))
    return moment


def _place(places: Mapping[str, tuple[float, float]], key: str, name: str, error: Error) -> tuple[float, float]:
    point = places.get(key)
    if point is None:
        raise RowError(
            reasons.UNKNOWN_PLACE,
            error(
                f"{name} is not in the table of places", cell(key), f"a key, such as {form_of(next(iter(places), ''))}"
            ),
        )
    return point


def _plt_files(folder: Path) -> list[Path]:
    """Return the files in a folder that end in .plt or .PLT, without hidden files."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(
        path for path in paths if path.suffix.lower() == ".plt" and path.is_file() and not path.name.startswith(".")
    )


def _read_plt_file(path: Path, user: str, left_out: LeftOut) -> Trajectory | None:
    """Return the trace of a file, or None if it has no points; rows that cannot be read are counted."""
    found, clock = _Found(), Clock(name="date and time")
    with open_lines(path) as lines:
        rows = _Rows(path, lines, Dialect(","), csv.QUOTE_NONE, header_lines=_PLT_HEADER_LINES)
        for row in rows:
            try:
                if len(row) != _PLT_FIELDS:
                    fault = rows.error("has the wrong number of fields", len(row), str(_PLT_FIELDS))
                    raise RowError(reasons.FIELDS, fault)
                point = place_in((row[0], row[1]), ("latitude", "longitude"), rows.error)
                if point[1] > 180:
                    fault = rows.error("longitude is out of range", cell(row[1]), "between -180 and 180 degrees")
                    raise RowError(reasons.LONGITUDE, fault)
                moment = _moment(clock, f"{row[5]}T{row[6]}", None, rows)
            except RowError as error:
                left_out.add(error, user)
                continue
            left_out.kept += 1
            found.add(point, moment)
    return found.trace(user)


def _is_point(row: Sequence[str]) -> bool:
    """Return whether the fields of a row describe a point in a .plt file."""
    if len(row) != _PLT_FIELDS or any(as_float(text) is None for text in row[:2]):
        return False
    return "-" in row[5] and ":" in row[6]


class _Rows:
    """Rows of fields from a text file, without header lines and blank lines; errors name the line."""

    def __init__(
        self, path: Path, lines: Lines, dialect: Dialect, quoting: Literal[0, 3], header_lines: int = 0
    ) -> None:
        self._path = path
        self._header_lines = header_lines
        # The number of blank lines with a row after them.
        self.blank = 0
        self._dialect = dialect
        self._reader = csv.reader(
            lines, delimiter=dialect.delimiter, skipinitialspace=dialect.padded, quoting=quoting, strict=True
        )

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for _ in range(self._header_lines):
                if _is_point(next(self._reader, [])):
                    bound = f"{self._header_lines} header lines, then points"
                    raise self.error("is a point, although the header is expected here", None, bound)
            first, blank = True, 0
            for row in self._reader:
                if not row:
                    blank += not first
                    continue
                self.blank, blank, first = self.blank + blank, 0, False
                yield fields_of(row, self._dialect)
        except csv.Error as error:
            raise self.error(f"cannot be read ({error})", None, "a line of CSV with closed quotes") from error

    def where(self) -> str:
        """Return the file and line of the row that was read last."""
        return f"{self._path}, line {self._reader.line_num}"

    def error(self, problem: str, value: object, bound: str) -> InputError:
        """Return an error about the row that was read last."""
        return InputError(self.where(), problem, value=value, bound=bound)


def _columns(header: list[str], wanted: list[str], path: Path) -> dict[str, int]:
    return {name: check_column(name, header, path) for name in wanted}


def read_places(
    path: str | PathLike[str],
    key: str,
    latitude: str = "latitude",
    *,
    longitude: str = "longitude",
    delimiter: str | None = None,
) -> dict[str, tuple[float, float]]:
    r"""Read the coordinates of places from a table with a header line.

    Args:
        path: File to read.
        key: Column with the key.
        latitude: Column with the latitude in degrees.
        longitude: Column with the longitude in degrees.
        delimiter: The character between columns; recognised if None.

    Returns:
        Latitude and longitude by key, in degrees.

    Raises:
        InputError: A column is missing, a coordinate cannot be read, or a key has two places.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "places.csv")
    ...     _ = file.write_text("id,lat,lon\ncafe,46.95,7.44\n")
    ...     read_places(file, "id", "lat", longitude="lon")
    {'cafe': (46.95, 7.44)}
    """
    path = as_path(path, "path")
    found: dict[str, tuple[float, float]] = {}
    rows = read_columns(Path(path), [key, latitude, longitude], delimiter)
    rows |= {
        name: plain_numbers(rows[name], Path(path), name, limit) for name, limit in ((latitude, 90), (longitude, 360))
    }
    for row, texts in enumerate(zip(rows[key], rows[latitude], rows[longitude], strict=True), 1):

        def error(problem: str, value: object, bound: str, row: int = row) -> InputError:
            return InputError(f"{path}, row {row}", problem, value=value, bound=bound)

        try:
            latitude_, longitude_ = place_in((texts[1], texts[2]), (latitude, longitude), error)
        except RowError as fault:
            raise error_of(fault) from None
        point = latitude_, float(within_180(np.array(longitude_)))
        if found.setdefault(texts[0], point) != point:
            raise error(f"{key} has a different place in an earlier row", cell(texts[0]), "one place for each key")
    return found
