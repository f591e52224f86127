"""Find the columns of a table that hold its times: by their names, and by what is in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.data.layout import shortened
from mechdesign.data.left_out import MOST_LEFT_OUT
from mechdesign.data.text import column_text
from mechdesign.data.times import Clock
from mechdesign.data.times import read_with
from mechdesign.base._errors import InputError

__all__ = ["TimeColumns", "find_times"]

Rows = Sequence[tuple[int, Sequence[str]]]

# What columns with a time are called, without case and signs; the first that fits is taken.
_TIME_NAMES = (
    *("time", "timestamp", "datetime", "dateandtime", "datetimeutc", "timestamputc", "timeutc", "utctime"),
    *("utctimestamp", "utcdatetime", "gpstime", "gpstimestamp", "gpsdatetime", "fixtime", "devicetime", "localtime"),
    *("localtimestamp", "localdatetime", "trackedat", "recordedat", "eventtime", "eventtimestamp", "checkintime"),
    *("checkinat", "observedat", "loggedat", "measuredat", "capturedat", "visitedat", "visittime", "startedat"),
    *("starttime", "starttimestamp", "startdatetime", "pickupdatetime", "arrivaltime", "arrivedat", "recordtime"),
    *("recordingtime", "samplingtime", "timestampms", "timems", "timestamps", "epoch", "epochtime", "epochms"),
    *("unixtime", "unixtimestamp", "createdat", "tst", "ts", "t", "utc", "when", "zeit", "zeitstempel", "date"),
)
# What columns are called that may hold the date where another one holds the time of day.
_DATE_NAMES = ("date", "utcdate", "dateutc", "gpsdate", "localdate", "eventdate", "startdate", "day", "datum")
_NO_TIMES = "it holds no times"


@dataclass(frozen=True)
class TimeColumns:
    """Where the times of a table are.

    Attributes:
        time: the column with the time; None where none is found.
        date: the column with the date, where `time` holds the time of day only.
        unread: a sentence about each column that is called a time and cannot be read.
        others: columns that may hold times under a name that is not known.
        blank: whether a column that is called a time is blank in all rows that were looked at.
    """

    time: str | None = None
    date: str | None = None
    unread: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blank: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not read, in sentences."""
        if not self.others:
            return self.unread
        names = shortened(", ".join(map(column_text, self.others)))
        return (*self.unread, f"say --time COLUMN if the time is in one of these: {names}")


def find_times(
    header: Sequence[str],
    rows: Rows,
    form: str | None = None,
    time: str | None = None,
    date: str | None = None,
    taken: Sequence[str] = (),
    missing: float = MOST_LEFT_OUT,
) -> TimeColumns:
    """Return the columns that hold the times, as far as some `rows`, line and fields, tell.

    `form` says how times are written, as `Clock` takes it; `time` and `date` are columns that are known already, and
    those in `taken` hold something else. A `time` that is given is taken whatever it holds. At most the share `missing`
    of the texts in a column may be unreadable.
    """
    free = [column for column in dict.fromkeys(header) if column not in taken]
    dates = _named(free, _DATE_NAMES) if date is None else [date]
    unread: list[str] = []
    for column in _named(free, _TIME_NAMES) if time is None else [time]:
        days: list[str | None] = [day for day in dates if day != column]
        problem = ""
        for day in (None, *days) if date is None else days:
            said = _problem(header, rows, column, day, form, missing)
            if not said:
                return TimeColumns(column, day, tuple(unread))
            problem = problem or said
        unread.append(f"the column {column_text(column)} is not read: {problem}")
    if time is not None:
        return TimeColumns(time, date)
    tried = _named(free, _TIME_NAMES)
    others = [name for name in free if name not in tried and not _problem(header, rows, name, None, form, missing)]
    return TimeColumns(None, None, tuple(unread), tuple(others), any(_NO_TIMES in said for said in unread))


def _named(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns of these names, in the order of the names."""
    plain = {_plain(column): column for column in reversed(header)}
    return [plain[name] for name in names if name in plain]


def _plain(column: str) -> str:
    """Return the name of a column as `_TIME_NAMES` has it."""
    return re.sub(r"[^a-z]", "", column.lower())


def _problem(header: Sequence[str], rows: Rows, column: str, day: str | None, form: str | None, missing: float) -> str:
    """Say why the texts in a column cannot be read as times; return nothing where all but a few can."""
    place, at_day = header.index(column), None if day is None else header.index(day)

    def read(clock: Clock) -> int:
        known, errors = 0, []
        for line, row in rows:
            text = None if at_day is None else row[at_day]
            try:
                known += clock.moment(row[place], f"line {line}".__str__, text) is not None
            except InputError as error:
                errors.append(error)
        if len(errors) > missing * (known + len(errors)):
            raise errors[0]
        return known

    clock = Clock(form, column if day is None else f"{day} and {column}")
    try:
        known = read_with(clock, read)
    except InputError as error:
        return f"{error.path}: {error.problem}; found {error.value}" + (f"; {error.remedy}" if error.remedy else "")
    return "" if known else f"{_NO_TIMES} in the first {len(rows)} lines"
