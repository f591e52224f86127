"""Look at data of movement as somebody left them: what kind of file it is, and which column is which."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechdesign.data.text import opened
from mechdesign.data.traces import Trace, read_checkins, read_plt, seconds_of
from mechdesign.errors import InputError

__all__ = ["Found", "look_at"]

_DELIMITERS = (",", "\t", ";", "|")
_SAMPLE = 200

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
    it is empty for a folder of trajectories (.plt). `left_out` names columns that look like times and cannot be read.
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
        return Found(path, {}, ",", read_plt(path))
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
    traces = read_checkins(
        path,
        ordered.get("user"),
        ordered["latitude"],
        ordered["longitude"],
        ordered.get("time"),
        ordered.get("trace"),
        delimiter,
    )
    return Found(path, ordered, delimiter, traces, left_out)


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
