"""Look at data of movement as somebody left them: what kind of file it is, and which column is which."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mechdesign.data.text import opened
from mechdesign.data.traces import Trace, read_checkins, read_plt, seconds_of
from mechdesign.errors import InputError

__all__ = ["Found", "look_at"]

_DELIMITERS = (",", "\t", ";", "|")
_SAMPLE = 200
_NAMED = 5
_DAY = 86400

# What columns are called, without case and signs; the first that fits is taken.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "latitude": ("latitude", "lat", "ylat", "venuelatitude", "startlatitude", "ycoordinate"),
    "longitude": ("longitude", "lon", "lng", "long", "xlon", "venuelongitude", "startlongitude", "xcoordinate"),
    "user": ("user", "userid", "uid", "username", "person", "personid", "driver", "driverid", "taxiid", "label"),
    "time": ("time", "timestamp", "datetime", "utctime", "utctimestamp", "checkintime", "date", "createdat", "epoch"),
    "trace": ("trace", "traceid", "tid", "trajectory", "trajectoryid", "trip", "tripid", "session", "sessionid"),
}
_ESSENTIAL = ("latitude", "longitude")


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: the traces, and how to read them again.

    `columns` holds the names of the columns "latitude", "longitude" and, where they are, "user", "time" and "trace";
    it is empty for a folder of trajectories (.plt). `left_out` names columns that are called times, and are not.
    """

    path: Path
    columns: Mapping[str, str]
    delimiter: str
    traces: tuple[Trace, ...]
    left_out: tuple[str, ...] = ()

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of trajectories."""
        return not self.columns


def look_at(path: Path, given: Mapping[str, str | None] | None = None) -> Found:
    """Return what is in a table of check-ins, also gzipped or Parquet, or in a folder of trajectories.

    `given` names columns that are known already. Raises `InputError` where latitude and longitude cannot be found, with
    the columns that there are.
    """
    if path.is_dir():
        return Found(path, {}, ",", _trajectories(path))
    with opened(path) as lines:
        head = [line for _, line in zip(range(_SAMPLE), lines, strict=False)]
    if not head or not head[0].strip():
        raise InputError(str(path), "is empty", bound="a header line and at least one line more")
    delimiter = max(_DELIMITERS, key=head[0].count)
    rows = list(csv.reader(head, delimiter=delimiter))
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    known = {name: column for name, column in (given or {}).items() if column is not None}
    for name, column in known.items():
        if column not in header:
            raise InputError(f"--{name}", "is not a column", value=column, bound=f"one of {', '.join(header)}")
    for name, column in known.items():
        for other, second in known.items():
            if other != name and second == column:
                raise InputError(f"--{other}", "is the same column", value=column, bound=f"another one than --{name}")
    if not known and len(header) > 1 and any(_is_number(field) for field in header):
        raise InputError(
            str(path),
            "has no header line",
            value=head[0].strip(),
            remedy="add one that names the columns, such as user,time,latitude,longitude",
        )
    columns = dict(known)
    for name in _NAMES:
        recognised = _column(name, header, known)
        if name not in known and recognised is not None:
            columns[name] = recognised
    for name in _ESSENTIAL:
        if name not in columns:
            bound = f"one of the columns {', '.join(header)}"
            raise InputError(str(path), f"has no column that looks like a {name}", bound=bound, remedy=f"say --{name}")
    left_out: tuple[str, ...] = ()
    if "time" in columns and "time" not in known and not _are_times(columns["time"], header, body):
        left_out = (columns.pop("time"),)
    ordered: dict[str, str] = {
        name: columns[name] for name in ("user", "latitude", "longitude", "time", "trace") if name in columns
    }
    traces = _read(path, ordered, delimiter)
    for name in _ESSENTIAL:
        if all(float(degree).is_integer() for trace in traces for degree in getattr(trace, name)):
            raise InputError(
                f"{path}, column {ordered[name]}",
                "holds whole numbers only",
                bound=f"a {name} in decimal degrees",
                remedy=f"say --{name}, if it is another column",
            )
    if "time" in ordered and all(_is_counted_from_zero(trace) for trace in traces):
        column = ordered.pop("time")
        if "time" in known:
            raise InputError("--time", "is within a day of 1970-01-01 in every line", value=column, bound="times")
        left_out = (column,)
        traces = _read(path, ordered, delimiter)
    return Found(path, ordered, delimiter, traces, left_out)


def _trajectories(path: Path) -> tuple[Trace, ...]:
    """Return the trajectories in a folder; where there are none, say in which folders below it there are."""
    try:
        return read_plt(path)
    except InputError as error:
        levels = (sorted(path.glob(pattern)) for pattern in ("*", "*/*"))
        sets = ((each for each in level if each.is_dir() and any(each.glob("*/Trajectory/*.plt"))) for level in levels)
        within = next(filter(None, map(list, sets)), None)
        if within is None or error.problem != "holds no trajectories":
            raise
        some = ", ".join(str(each.relative_to(path)) for each in within[:_NAMED])
        more = f" and {len(within) - _NAMED} more" if len(within) > _NAMED else ""
        remedy = f"name one of the folders in it that do: {some}{more}"
        raise InputError(str(path), error.problem, remedy=remedy) from error


def _read(path: Path, columns: Mapping[str, str], delimiter: str) -> tuple[Trace, ...]:
    user, time, trace = (columns.get(name) for name in ("user", "time", "trace"))
    return read_checkins(path, user, columns["latitude"], columns["longitude"], time, trace, delimiter)


def _is_counted_from_zero(trace: Trace) -> bool:
    """Tell whether all times are within a day of 1970-01-01: hours of a day, or numbers of lines."""
    if trace.time is None:
        return False
    return bool((np.abs(trace.time.astype(np.int64)) < _DAY).all())


def _column(name: str, header: Sequence[str], known: Mapping[str, str]) -> str | None:
    plain = {re.sub(r"[^a-z]", "", column.lower()): column for column in reversed(header)}
    for candidate in _NAMES[name]:
        if candidate in plain and plain[candidate] not in known.values():
            return plain[candidate]
    return None


def _are_times(column: str, header: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    def error(problem: str, value: object, bound: str) -> InputError:
        return InputError(column, problem, value=value, bound=bound)

    place = header.index(column)
    try:
        for row in body:
            seconds_of(row[place], column, error)
    except InputError:
        return False
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
