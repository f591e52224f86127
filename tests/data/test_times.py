"""Unambiguous times are read, ambiguous ones refused, missing ones counted; errors show only the form."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from mechdesign.data._layout import form_of
from mechdesign.data._movement import Written, read_checkins, read_points
from mechdesign.data._states import as_steps
from mechdesign.data._times import Clock, find_times, order_of
from mechdesign.data.trajectories import Trajectory
from mechdesign.errors import InputError, InputWarning
from mechdesign.model._domain import Domain

NEXT_YEAR = datetime.now(UTC).year + 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read(text: str, form: str | None = None, day: str | None = None) -> str | None:
    """Return the instant of a text that is the only one in its column."""
    clock = Clock(form)
    seconds = clock.moment(text, lambda: "f, line 2", day)
    clock.check()
    return None if seconds is None else str(np.datetime64(seconds.seconds, "s"))


def since(*parts: int) -> int:
    return int((datetime(*parts, tzinfo=UTC) - EPOCH).total_seconds())


@each_row(
    ("text", "expected"),
    [
        ("2022-5-2 7:05:00", "2022-05-02T07:05:00"),
        ("2022/05/02 07:05", "2022-05-02T07:05:00"),
        ("2022.5.2", "2022-05-02T00:00:00"),
        ("2022-05-02 07:05:00 UTC", "2022-05-02T07:05:00"),
        ("2022-05-02 07:05:00.75 GMT", "2022-05-02T07:05:00"),
        ("2022-05-02T07:05:00Z", "2022-05-02T07:05:00"),
        ("2022-5-2 7:05 +0200", "2022-05-02T05:05:00"),
        ("2022-5-2 7:05 UTC-3:30", "2022-05-02T10:35:00"),
        ("2022-5-2 7:05:09 PM", "2022-05-02T19:05:09"),
        ("2022-5-2 12:05 am", "2022-05-02T00:05:00"),
        ("2022-5-2 12:05 p.m.", "2022-05-02T12:05:00"),
        ("20220502T070500Z", "2022-05-02T07:05:00"),
        ("Mon, 02 May 2022 07:05:00 GMT", "2022-05-02T07:05:00"),
        ("2 May 2022 7:05", "2022-05-02T07:05:00"),
        ("02-May-2022 07:05:00", "2022-05-02T07:05:00"),
        ("May 2, 2022, 7:05:00 AM", "2022-05-02T07:05:00"),
        ("Monday, September 5, 2022", "2022-09-05T00:00:00"),
        ("Tue Apr 03 18:00:09 +0000 2012", "2012-04-03T18:00:09"),
        ("Tue Apr  3 18:00:09 2012", "2012-04-03T18:00:09"),
        ("Tue Apr 03 2012 18:00:09 GMT+0200 (CEST)", "2012-04-03T16:00:09"),
        ("31.03.2023 7:05", "2023-03-31T07:05:00"),
        ("4.3.2023, 7:05 Uhr", "2023-03-04T07:05:00"),
        ("25/12/2022", "2022-12-25T00:00:00"),
        ("12/25/2022 7:05 PM", "2022-12-25T19:05:00"),
        ("05-05-2023", "2023-05-05T00:00:00"),
        ("2023-02-03 08:00 CET", "2023-02-03T07:00:00"),
        ("2023-02-03T08:00:00+01:00[Europe/Zurich]", "2023-02-03T07:00:00"),
        ("2016-12-31 23:59:60", "2017-01-01T00:00:00"),
        ("1680336000000", "2023-04-01T08:00:00"),
        ("1680336000999999", "2023-04-01T08:00:00"),
        ("1680336000999999999", "2023-04-01T08:00:00"),
        ("1680336000", "2023-04-01T08:00:00"),
        ("1680336000.9", "2023-04-01T08:00:00"),
        ("1.680336e9", "2023-04-01T08:00:00"),
        (str(since(1980, 1, 1)), "1980-01-01T00:00:00"),
        (str(since(NEXT_YEAR, 12, 31, 23, 59, 59)), f"{NEXT_YEAR}-12-31T23:59:59"),
        *(
            (blank, None)
            for blank in ("", "  ", "NaT", "NULL", "null", "NaN", "nan", "NA", "N/A", "None", "<NA>", "\\N")
        ),
    ],
)
def test_forms_that_mean_one_moment(text: str, expected: str | None) -> None:
    assert read(f" {text} ") == expected


@each_row(
    ("text", "words"),
    [
        ("20230401", '--time-format "%Y%m%d"'),
        ("20230401.0", '--time-format "%Y%m%d"'),
        ("202304", '--time-format "%Y%m"'),
        ("230401", '--time-format "%y%m%d"'),
        ("2023091", '--time-format "%Y%j"'),
        ("2023040108", '--time-format "%Y%m%d%H"'),
        ("2304010800", '--time-format "%y%m%d%H%M"'),
        ("202304010800", '--time-format "%Y%m%d%H%M"'),
        ("20230401080000", '--time-format "%Y%m%d%H%M%S"'),
        # As seconds, this is 2023-12-31 08:20:00.
        ("1704010800", '--time-format "%y%m%d%H%M" (time_format = "%y%m%d%H%M"), or --time-format "unix"'),
        ("0", "before 1980"),
        ("-5", "before 1980"),
        ("2023", "before 1980"),
        ("45017.25", "before 1980"),
        (str(since(1980, 1, 1) - 1), "before 1980"),
        (str(since(NEXT_YEAR + 1, 1, 1)), "after next year"),
        ("1e300", "after next year"),
        ("9" * 5000, "after next year"),
        ("04/03/2023 08:00", '"%d/%m/%Y %H:%M:%S"), or --time-format "%m/%d/%Y %H:%M:%S"'),
        ("31.03.23", '--time-format "%d.%m.%y %H:%M:%S"'),
        ("13/13/2023", "no such day or hour"),
        ("4-3-23 8:00 AM", "the day first or the month first"),
        ("08:00:12", "it has no day"),
        ("8:00 pm", "it has no day"),
        ("2023-02-29", "no such day or hour"),
        ("2023-2-3 13:00 pm", "no such day or hour"),
        ("2023-2-3 0:30 am", "no such day or hour"),
        ("2023-02-03 24:30", "no such day or hour"),
        ("2023-02-03 08:00 CST", "its zone is unknown or ambiguous"),
        ("2023-02", "is not a time"),
        ("2023-02/03", "is not a time"),
        ("May 2022", "is not a time"),
        ("yesterday", "is not a time"),
        ("inf", "is not a time"),
        ("２０２３", "is not a time"),
    ],
)
def test_what_may_mean_two_moments_or_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read(text)
    assert raised.value.path == "f, line 2"
    assert words in str(raised.value)
    # Errors show only the form.
    assert str(raised.value.value) == form_of(text)
    assert not set(str(raised.value.value).replace("U+FF19", "9")) & set("012345678")
    assert len(str(raised.value)) < 600


@each_row(
    ("text", "form", "expected"),
    [
        ("20230401", "%Y%m%d", "2023-04-01T00:00:00"),
        ("20230401.0", "%Y%m%d", "2023-04-01T00:00:00"),
        ("2023040108", "%Y%m%d%H", "2023-04-01T08:00:00"),
        ("1/4/2023 8:05 PM", "%d/%m/%Y %I:%M %p", "2023-04-01T20:05:00"),
        ("2023-04-01 08:00 +0200", "%Y-%m-%d %H:%M %z", "2023-04-01T06:00:00"),
        ("20230401080000250", "%Y%m%d%H%M%S%f", "2023-04-01T08:00:00"),
        ("20230401", "unix", "1970-08-23T03:33:21"),
        ("-0.5", "unix", "1969-12-31T23:59:59"),
        ("1680336000999", "unix-ms", "2023-04-01T08:00:00"),
        ("-1", "unix-ms", "1969-12-31T23:59:59"),
        ("1680336000999999", "unix-us", "2023-04-01T08:00:00"),
        ("1680336000999999999", "unix-ns", "2023-04-01T08:00:00"),
        ("", "%Y%m%d", None),
        ("NaT", "unix", None),
    ],
)
def test_a_form_that_is_said(text: str, form: str, expected: str | None) -> None:
    assert read(text, form) == expected


@each_row(
    ("text", "form"),
    [
        ("202341", "%Y%m%d"),
        ("2023041", "%Y%m%d"),
        ("2023-04-01", "%Y%m%d"),
        ("1680336000", "%Y%m%d"),
        ("2023-04-01", "unix"),
        ("1e400", "unix"),
        ("1" + "0" * 30, "unix-ns"),
        ("253402300800", "unix"),
        ("31/02/2023", "%d/%m/%Y"),
    ],
)
def test_texts_of_another_form_are_refused(text: str, form: str) -> None:
    with pytest.raises(InputError, match="is not a time") as raised:
        read(text, form)
    assert form in raised.value.bound


@each_row(
    ("form", "words"),
    [
        ("iso", "is not a time format"),
        ("", "is not a time format"),
        ("%%", "is not a time format"),
        (5, "is not a time format"),
        ("%c", "has %c, which is not supported"),
        ("%Y %Z", "has %Z, which is not supported; found '%Y %Z'"),
        ("%Y%", "has %, which is not supported"),
        ("%Y %Y", "contains a directive twice"),
        ("%H:%M", "has no year"),
        ("%Y %I", "one of %I and %p"),
        ("%Y %H %p", "one of %I and %p"),
    ],
)
def test_wrong_forms_are_refused(form: object, words: str) -> None:
    with pytest.raises(InputError) as raised:
        Clock(form)  # type: ignore[arg-type]
    assert raised.value.path == "time_format"
    assert words in str(raised.value)


def test_a_column_that_has_one_number_that_is_no_date_is_in_seconds() -> None:
    clock = Clock()
    for text in ("1704010800", "1704010860", "1704010799"):
        clock.moment(text, lambda: "line 2")
    # 17-04-01 07:99 is not a time of day.
    clock.check()
    doubtful = Clock()
    for line, text in enumerate(("1704010800", "1704010830"), 2):
        doubtful.moment(text, f"line {line}".__str__)
    with pytest.raises(InputError, match="line 2: time is a number that may be a date"):
        doubtful.check()


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(NEXT_YEAR, 12, 31)),
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT", "%b %d, %Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S"]),
    st.integers(-14 * 60, 14 * 60),
)
def test_what_is_written_is_read(moment: datetime, form: str, minutes: int) -> None:
    moment = moment.replace(microsecond=0)
    assert read(moment.strftime(form)) == moment.isoformat() == read(moment.strftime(form), form)
    apart = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    there = moment + timedelta(minutes=minutes)
    assert read(f"{there.strftime('%d %B %Y %H:%M:%S')} {apart}") == moment.isoformat()


@given(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)), st.sampled_from(["%Y%m%d", "%Y%m", "%Y%m%d%H"]))
def test_dates_in_digits_are_never_taken_for_seconds(moment: datetime, form: str) -> None:
    with pytest.raises(InputError, match="time-format"):
        read(moment.strftime(form))


# --- tables ------------------------------------------------------------------------------------------------------


def table(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


ROWS = [f"u,{{}},48.{index},16.{index}" for index in range(10, 35)]


def test_rows_without_a_time_are_left_out_and_counted(tmp_path: Path) -> None:
    times = ["2022-5-2 9:00", "", "2022-5-2 8:00", "NaT", "2022-5-2 7:00"]
    rows = [row.format(time) for row, time in zip(ROWS, times, strict=False)]
    path = table(tmp_path / "c.csv", "user,time,latitude,longitude", *rows, "v,NULL,x,")
    found = read_points(
        path,
        "user",
        "latitude",
        longitude="longitude",
        time="time",
        trace=None,
        delimiter=",",
        said=Written(missing=0.5),
    )
    assert (found.left_out.of("u"), found.left_out.of("v")) == ({"without a time": 2}, {"without a time": 1})
    (trace,) = found.traces
    assert trace.latitude.tolist() == [48.14, 48.12, 48.1]
    with pytest.warns(InputWarning, match=r"c\.csv: 3 rows without a time are left out"):
        read_checkins(path, time="time", missing=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_checkins(table(tmp_path / "d.csv", "user,time,latitude,longitude", rows[0]), time="time")


def test_the_date_may_stand_in_a_column_of_its_own(tmp_path: Path) -> None:
    path = table(tmp_path / "c.csv", "user,day,hour,latitude,longitude", "u,2022-5-2,7:05 PM,1,2", "u,2022-5-1,,1,2")
    with pytest.warns(InputWarning, match="1 row without a time is left out"):
        (trace,) = read_checkins(path, time="hour", date="day", missing=0.5)
    assert [str(time) for time in trace.time] == ["2022-05-02T19:05:00"]
    with pytest.warns(InputWarning):
        again = read_checkins(path, time="hour", date="day", time_format="%Y-%d-%m %I:%M %p", missing=0.5)
    assert str(again[0].time[0]) == "2022-02-05T19:05:00"
    with pytest.raises(InputError, match="line 2: hour is not a time: it has no day"):
        read_checkins(path, time="hour")
    for key in ("date", "time_format"):
        with pytest.raises(InputError, match=f"{key}: requires a column of times"):
            read_checkins(path, **{key: "%Y"})


NAMES = (
    *("tracked_at", "t", "tst", "fixTime", "local_time", "gps_time", "datetime_utc", "started_at", "event_time", "ts"),
    *("recorded_at", "timestamp (UTC)", "timestamp_utc", "Date and Time", "Zeitstempel", "time", "date"),
)


@each_row(
    ("header", "rows", "expected", "words"),
    [
        ("date,time", [("2022-05-02", "7:05")], ("time", "date"), ""),
        ("date,time", [("2022-05-02 00:00", "2022-05-02 7:05")], ("time", None), ""),
        ("time,ts", [("7", "1680336000")], ("ts", None), "the column time is not read: line 2: time is a number"),
        ("time,date", [("07:00", "02/05/2022")], (None, None), "time is not read: line 2: time is not a time"),
        ("date,x", [("20220502", "1")], (None, None), "line 2: date is a number that may be a date, or seconds"),
        (
            "stamp,x",
            [("2022-05-02", "1")],
            (None, None),
            "name the column, --time COLUMN, if the time is in one of these",
        ),
        ("eventDate,x", [("2022-05-02T08:00", "1")], (None, None), "if the time is in one of these: eventDate"),
        ("Datum,Uhrzeit", [("02.05.2022", "08:00")], (None, None), "if the time is in one of these: Datum"),
        (
            "stamp,x",
            [("1680336000", "1")],
            (None, None),
            "name the column, --time COLUMN, if the time is in one of these: stamp",
        ),
        ("stamp,x", [("20220502", "1")], (None, None), ""),
        ("time,x", [("", "1"), ("NaT", "2")], (None, None), "it contains no times in the first 2 lines"),
        ("time,x", [("", "1"), ("2022-05-02", "2")], ("time", None), ""),
    ],
)
def test_where_times_are(
    header: str, rows: list[tuple[str, str]], expected: tuple[str | None, str | None], words: str
) -> None:
    found = find_times(header.split(","), list(enumerate(rows, 2)))
    assert (found.time, found.date) == expected
    assert words in " ".join(found.notes)
    assert bool(found.notes) == bool(words)


def test_the_order_is_said() -> None:
    times = np.array(["2022-05-02", "2022-05-02", "2022-05-03"], dtype="datetime64[s]")
    assert order_of([times]) == (
        "times from 2022-05-02 00:00:00 to 2022-05-03 00:00:00 (UTC): points are in the order of their times; 1 "
        "of them are in the same second as the one before, and sorted by fractions of the second"
    )
    for nothing in ([None], [None, times], []):
        assert "no times are read: points are in the order of the file" in order_of(nothing)


@each_row("time", [[20230401, 20230402], [0.5, 1.5], np.array([5, 6])])
def test_numbers_are_no_times_of_a_trace(time: object) -> None:
    with pytest.raises(InputError, match="time: contains numbers; must be datetime64"):
        Trajectory("u", [1, 2], [1, 2], time)  # type: ignore[arg-type]


# --- traces to release -------------------------------------------------------------------------------------------

TOWN = Domain.from_labels(["home", "work", "pub"])


@each_row(
    ("text", "states", "words"),
    [
        (
            "time,state\n2022-5-2 7:00,home\n2022-5-2 8:00,work\n",
            [0, 1],
            "from 2022-05-02 07:00:00 to 2022-05-02 08:00:00",
        ),
        ("Timestamp,state\n2022-05-02,home\n2022-05-03,pub\n\n", [0, 2], "steps are in the order of their times"),
        ("date,time,state\n2022-05-02,7:00,home\n2022-05-02,8:00,pub\n", [0, 2], "from 2022-05-02 07:00:00"),
        ("t,state\n2,home\n1,pub\n", [0, 2], "no times are read: steps are in the order of the file"),
        ("home\npub\n", [0, 2], "no times are read: steps are in the order of the file"),
    ],
)
def test_times_of_a_trace(tmp_path: Path, text: str, states: list[int], words: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    found = as_steps(tmp_path / "t.csv", TOWN)
    assert found.states.tolist() == states
    assert words in found.notes[-1]
    assert (found.times is None) == ("no times" in words)


@each_row(
    ("text", "options", "words"),
    [
        ("time,state\n20230401,home\n20230402,pub\n", {}, "line 2: time is a number that may be a date"),
        ("tst,state\n2022-05-03,home\n2022-05-02,pub\n", {}, "step 1: is earlier than the step before it"),
        ("time,state\n7:00,home\n8:00,pub\n", {}, "line 2: time is not a time: it has no day"),
        ("time,state\nNaT,home\n,pub\n", {}, "has no step with a time"),
        ("time,state\n2022-05-02,home\n2022-05-02\n", {}, "line 3: has the wrong number of fields"),
        ("when,state\n2022-05-02,home\n", {"time": "at"}, "has no column 'at'"),
        ("home\npub\n", {"time_format": "unix"}, "time_format: requires a column of times"),
        ("state,x\nhome,1\n", {"time_format": "%H"}, "time_format: has no year"),
    ],
)
def test_wrong_times_of_a_trace(tmp_path: Path, text: str, options: dict[str, str], words: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        as_steps(tmp_path / "t.csv", TOWN, **options)  # type: ignore[arg-type]
    assert words in str(raised.value)


def test_times_of_a_trace_in_memory() -> None:
    given_steps = {"state": ["home", "work", "pub"], "time": [datetime(2022, 5, 2, 7), None, "2022-5-2 8:00 UTC"]}
    found = as_steps(given_steps, TOWN, missing=0.4)
    assert found.states.tolist() == [0, 2]
    assert found.notes == ("1 row without a time is left out",)
    with pytest.raises(InputError, match=r"trace\.time\[1\]: has no time.*1 of 3 rows would be left out"):
        as_steps(given_steps, TOWN)
    assert [str(time) for time in found.times] == ["2022-05-02T07:00:00", "2022-05-02T08:00:00"]
    missing = np.array(["2022-05-02", "NaT", "2022-05-03"], dtype="datetime64[ns]")
    assert as_steps(given_steps | {"time": missing}, TOWN, missing=0.4).states.tolist() == [0, 2]
    digits = {"state": ["home", "work"], "time": [20230401, 20230402]}
    with pytest.raises(InputError, match=r"trace\.time\[0\]: time is a number that may be a date"):
        as_steps(digits, TOWN)
    assert str(as_steps(digits, TOWN, time_format="%Y%m%d").times[1]) == "2023-04-02T00:00:00"
