"""Read movement data, and turn it into visits to the cells of a grid.

All coordinates are WGS84 degrees, all times UTC; a time of day without a zone is taken as UTC.
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
    InterchangedWarning,
    LeftOutWarning,
    MissingTimeWarning,
    RecognisedWarning,
)
from mechdesign.base._warnings import warn
from mechdesign.data import _left_out as reasons
from mechdesign.data._degrees import (
    Error,
    Longitudes,
    longitudes_note,
    place_in,
    possible_longitudes,
    refused,
    within_180,
)
from mechdesign.data._layout import Dialect, Lines, Mark, cell, dialect_of, form_of, mark_of, require_delimiter
from mechdesign.data._left_out import MOST_LEFT_OUT, LeftOut, RowError, as_share, left_out_text
from mechdesign.data._text import as_float, check_column, fields_of, has_columns, opened, plain_numbers, read_columns
from mechdesign.data._times import Clock, Moment, SetClockError, read_with
from mechdesign.data._trajectories import Trajectory
from mechdesign.model._locate import INTERCHANGED

# The user of a table that names none.
_EVERYBODY = "everybody"

_PLT_HEADER_LINES = 6
_PLT_FIELDS = 7


def read_plt(folder: str | PathLike[str], *, missing: float = MOST_LEFT_OUT) -> tuple[Trajectory, ...]:
    """Read GeoLife trajectories: a trace for each ``<user>/Trajectory/*.plt`` below `folder`, sorted by name.

    A `folder` that holds .plt files itself is read as one user, named after it (or, if it is called ``Trajectory``,
    after the folder it is in). A file has six header lines, then lines of latitude, longitude, 0, altitude, days, date
    and time; points are put in order of time. Nothing deeper is searched, and hidden files are not read. Lines that
    cannot be read, and files without points, are left out, with a `LeftOutWarning`; at most the share `missing` of all.
    Raises `InputError` naming file and line.
    """
    found = read_trajectories(folder, missing)
    _warn_of(found, str(folder))
    return found.traces


def read_trajectories(folder: str | PathLike[str], missing: float = MOST_LEFT_OUT) -> Points:
    """Return what `read_plt` reads, and count what is left out in place of a warning."""
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
            "holds no trajectories",
            value=str(root),
            bound="a folder with <user>/Trajectory/*.plt or *.plt",
            remedy="name the folder in which the users' folders are",
        )
    left_out.check()
    if not traces:
        raise InputError(str(files[0][0]), "holds no points", bound=f"{_PLT_HEADER_LINES} header lines, then points")
    empty = len(read) - len(traces)
    notes = (f"{empty} file{'s' * (empty != 1)} without points {'is' if empty == 1 else 'are'} left out",)
    return Points(traces, left_out, notes if empty else ())


def _warn_of(found: Points, name: str) -> None:
    """Warn of rows that are left out, and of what was recognised."""
    counts = found.left_out.counts
    if counts:
        kind = MissingTimeWarning if set(counts) == {reasons.NO_TIME} else LeftOutWarning
        warn(f"{name}: {left_out_text(counts)}", kind, stacklevel=3)
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
    """Read a text file with one check-in a line and a header line with the names of the columns.

    `user`, `latitude`, `longitude`, `time` and `trace` name columns; without `user` all are one user's. There is one
    trace for each user, or, if `trace` is given, for each user and value in that column, in the order in which they
    first occur. Points are put in order of time if there is one, and else keep the order of the file. The file may be
    compressed by gzip, or be Parquet. Where commas separate no such columns, other delimiters are recognised; decimal
    commas and encodings are by `mechdesign.data._layout.reading_as`, too. With `places`, which gives latitude and
    longitude by key, `place` names the column of the key, and `latitude` and `longitude` are not looked at.

    A row that cannot be counted is left out, with a `LeftOutWarning` that counts them by reason: its time is missing
    (blank, NaT, NULL, NaN, NA; where there is no other reason the warning is a `MissingTimeWarning`) or cannot be read,
    its user or place is missing, or its latitude is beyond 90 degrees, say. Where that is more than the share `missing`
    of all rows, the file is refused. Blank lines are no rows.

    Times are ISO 8601 or another date with the year first or the month by name, such as "2022/5/2 7:05 PM" or "Tue Apr
    03 18:00:09 +0000 2012"; days and months in digits where a column tells which stands first, or between points the
    day; or seconds since 1970, or thousandths, millionths or billionths, between 1980 and the end of next year. Points
    are in the order of the parts of seconds, too, which `Trace.time` does not keep. A time without a zone is one of
    `time_zone`, such as "Europe/Zurich", and else UTC. `date` names the column with the date, where `time` has the time
    of day. `time_format` says how both together are written: a pattern of `datetime.strptime`, such as "%Y%m%d", or
    "unix", "unix-ms", "unix-us" or "unix-ns" since 1970. It is needed for what may mean two moments.

    `longitudes` says whether they go to "180" or to "360" degrees: to 360 where some are beyond 180 and none is
    negative, unless it is given. What was recognised so is said by a `RecognisedWarning`.

    Raises:
        InputError: The file cannot be read so; the path names the line.
    """
    found = read_points(
        path,
        user,
        latitude,
        longitude=longitude,
        time=time,
        trace=trace,
        # Commas are what is tried first.
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
    """Warn where all points are in the Antarctic, and would be where people live with their columns exchanged."""
    if traces and all((each.latitude <= -60).all() and (abs(each.longitude - 7.5) <= 67.5).all() for each in traces):
        warn(
            f"{source}: all points are south of 60 degrees south: {INTERCHANGED}. Exchange the names of the columns",
            InterchangedWarning,
            stacklevel=3,
        )


class Written(NamedTuple):
    """How a table of check-ins is written, as far as it is given: see `read_checkins`.

    `missing` is the share of rows that may be left out.
    """

    time_format: str | None = None
    time_zone: str | None = None
    longitudes: Longitudes | None = None
    missing: float | None = None

    @property
    def share(self) -> float:
        """The share of rows that may be left out."""
        return MOST_LEFT_OUT if self.missing is None else as_share(self.missing)


class Points(NamedTuple):
    """The traces of a table, the rows that were left out, what was recognised, and how many lines are blank."""

    traces: tuple[Trajectory, ...]
    left_out: LeftOut
    notes: tuple[str, ...] = ()
    blank: int = 0

    def said(self, user: str | None = None) -> tuple[str, ...]:
        """Say what was recognised, and which rows are left out: all, or those of one user."""
        counts = self.left_out.counts if user is None else self.left_out.of(user)
        many = self.blank != 1
        blank = f"{self.blank} blank line{'s' * many} between rows {'are' if many else 'is'} skipped"
        return (*self.notes, *([blank] if self.blank else []), *([left_out_text(counts)] if counts else []))


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
    """Return what `read_checkins` reads, and count the rows that are left out in place of a warning."""
    source, said = as_path(path, "path"), said or Written()
    share = said.share
    require_delimiter(delimiter)
    if said.longitudes not in (None, *get_args(Longitudes)):
        raise InputError("longitudes", "is not known", value=said.longitudes, bound='"180" or "360"')
    for name, value in (("date", date), ("time_format", said.time_format), ("time_zone", said.time_zone)):
        if value is not None and time is None:
            raise InputError(name, "does not go without a column of times", value=value, remedy="name it: time")
    if place is not None and places is None:
        raise InputError("places", "are missing, which place refers to", bound="what read_places returns")
    named = _Named(user, (latitude, longitude) if places is None else (place or "place",), date, time, trace)
    clock = Clock(said.time_format, " and ".join(filter(None, (date, time))), zone=said.time_zone)

    def read(clock: Clock) -> Points:
        return _points(source, delimiter, named, places, clock, said.longitudes, LeftOut(share))

    return read_with(clock, read)


class _Named(NamedTuple):
    """The names of the columns of a table of check-ins: `where` are those of the place, or that of its key."""

    user: str | None
    where: tuple[str, ...]
    date: str | None
    time: str | None
    trace: str | None


class _Found:
    """The points of a trace: latitudes, longitudes, seconds and nanoseconds, as compact arrays of numbers."""

    def __init__(self) -> None:
        self.latitude, self.longitude = array("d"), array("d")
        self.seconds, self.nanoseconds = array("q"), array("l")

    def add(self, point: tuple[float, float], moment: Moment | None) -> None:
        self.latitude.append(point[0])
        self.longitude.append(point[1])
        if moment is not None:
            self.seconds.append(moment.seconds)
            self.nanoseconds.append(moment.nanoseconds)

    def trace(self, user: str, kept: Flags | None = None) -> Trajectory | None:
        """Return the trace of the points that are `kept`, in the order of their times; None where there is none."""
        chosen = slice(None) if kept is None else kept
        latitudes, longitudes = np.array(self.latitude)[chosen], within_180(np.array(self.longitude)[chosen])
        if not len(latitudes):
            return None
        if not self.seconds:
            return Trajectory(user, latitudes, longitudes)
        seconds = np.array(self.seconds, dtype=np.int64)[chosen]
        # Stable: equal moments keep the order of the file.
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
    with opened(source) as lines:
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
    """Return the traces, after longitudes were taken to be between -180 and 180 degrees."""
    notes = clock.notes
    kept: dict[tuple[str, str], Flags] = {}
    if (
        longitudes == "360"
        and not beyond.errors
        and any(min(found.longitude, default=0) < 0 for found in points.values())
    ):
        bound = "0 to 360 degrees, as longitudes says"
        raise InputError(
            f"{source}, column {columns.where[-1]}", "is negative", bound=bound, remedy="leave longitudes out"
        )
    if beyond.errors and points:
        every = np.concatenate([found.longitude for found in points.values()])
        if possible_longitudes(every, longitudes).all():
            notes += longitudes_note(every, columns.where[-1]) if longitudes is None else ()
        else:
            as_they_are = "180" if longitudes is None else longitudes
            for key, found in points.items():
                kept[key] = good = possible_longitudes(np.array(found.longitude), as_they_are)
                for _ in range(int((~good).sum())):
                    left_out.kept -= 1
                    left_out.add(RowError(reasons.LONGITUDE, beyond.errors[key[0]]), key[0])
    traces = [found.trace(key[0], kept.get(key)) for key, found in points.items()]
    if not any(traces) and (not left_out.counts or set(left_out.counts) == {reasons.NO_TIME}):
        problem, remedy = "holds no check-ins", ""
        if left_out.counts:
            problem = f"{problem} with a time in the column {columns.time}"
            remedy = "leave time out: the order is the file's"
        raise InputError(str(source), problem, bound="at least one line after the header", remedy=remedy)
    left_out.check()
    return Points(tuple(trace for trace in traces if trace is not None), left_out, notes, blank)


class _Beyond:
    """The first longitude of each user that may be beyond what longitudes may be, by an error about it."""

    def __init__(self) -> None:
        self.errors: dict[str, InputError] = {}

    def note(self, longitude: float, user: str, rows: _Rows, name: str) -> None:
        if longitude > 180 and user not in self.errors:
            remedy = 'say longitudes = "360" if they go from 0 to 360 degrees'
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
        raise RowError(reasons.USER, error(f"has no {name}", cell(user), "a text that is not empty"))
    return user


def _wrong_fields(error: Error, row: Sequence[str], header: Sequence[str]) -> InputError:
    return error("has the wrong number of fields", len(row), f"{len(header)} as in the header")


def _moment(clock: Clock, text: str, day: str | None, rows: _Rows) -> Moment:
    """Return the moment of a row; raise `RowError` where it has none."""
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
    """Return the trajectories in a folder, whatever the case of their ending; hidden files are none."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(
        path for path in paths if path.suffix.lower() == ".plt" and path.is_file() and not path.name.startswith(".")
    )


def _read_plt_file(path: Path, user: str, left_out: LeftOut) -> Trajectory | None:
    """Return the points of a file, None where it has none; rows that cannot be read are counted."""
    found, clock = _Found(), Clock(name="date and time")
    with opened(path) as lines:
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
    """Tell whether a row is a point of a trajectory, by its fields."""
    if len(row) != _PLT_FIELDS or any(as_float(text) is None for text in row[:2]):
        return False
    return "-" in row[5] and ":" in row[6]


class _Rows:
    """Rows of fields from a text file, after the header lines and without blank ones; errors name the line."""

    def __init__(
        self, path: Path, lines: Lines, dialect: Dialect, quoting: Literal[0, 3], header_lines: int = 0
    ) -> None:
        self._path = path
        self._header_lines = header_lines
        # The lines of the header, once the first row was asked for.
        # Blank lines with a row after them.
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
                    raise self.error("is a point, where the header is", None, bound)
            first, blank = True, 0
            for row in self._reader:
                if not row:
                    blank += not first
                    continue
                self.blank, blank, first = self.blank + blank, 0, False
                yield fields_of(row, self._dialect)
        except csv.Error as error:
            raise self.error(f"cannot be read ({error})", None, "a line of CSV, its quotes closed") from error

    def where(self) -> str:
        """Return the path of the row just read."""
        return f"{self._path}, line {self._reader.line_num}"

    def error(self, problem: str, value: object, bound: str) -> InputError:
        """Return an error about the row just read."""
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
    """Read latitude and longitude of places by their key from a table with a header; raise `InputError` for others."""
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
            raise refused(fault) from None
        point = latitude_, float(within_180(np.array(longitude_)))
        if found.setdefault(texts[0], point) != point:
            raise error(f"{key} has another place in an earlier row", cell(texts[0]), "one place for each key")
    return found
