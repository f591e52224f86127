"""Unreadable rows are left out, by reason and up to a share; records and steps without times never are."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mechdesign.data._maps import count_places, read_places
from rows import each_row

import mechdesign as md
from mechdesign.data._left_out import LeftOut, RowError, as_share, describe_left_out
from mechdesign.data._movement import Written, read_checkins, read_plt, read_points
from mechdesign.data._states import as_steps
from mechdesign.data._text import read_columns, read_numbers
from mechdesign.data._times import Clock
from mechdesign.errors import InputError, InputWarning, RecognisedWarning, SpecificationError
from mechdesign.specification._specification import parse
from mechdesign.specification._table_specification import parse as parse_release

HEADER = "user,time,latitude,longitude"


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def rows(count: int, time: Callable[[int], str] = lambda k: f"2023-04-01 08:{k:02d}:00") -> list[str]:
    return [f"u,{time(k)},{46.9 + k * 1e-3:.3f},{7.4 + k * 1e-3:.3f}" for k in range(count)]


# --- the share ---------------------------------------------------------------------------------------------------


@each_row(("left_out", "kept", "missing", "refused"), [
    (1, 19, 0.05, False), (1, 18, 0.05, True), (2, 18, 0.1, False), (1, 9, 0.0, True), (0, 1, 0.0, False),
    (5, 1, 1.0, False),
    # 0.07 · 100 is 7.000000000000001 in floating point, but the share is an exact decimal.
    (7, 93, 0.07, False), (8, 92, 0.07, True),
])  # fmt: skip
def test_just_inside_and_just_outside_the_share(left_out: int, kept: int, missing: float, refused: bool) -> None:
    counted = LeftOut(missing)
    counted.kept = kept
    for _ in range(left_out):
        counted.add(RowError("without a time", InputError("f, line 2", "has no time", bound="a time")), "u")
    if refused:
        with pytest.raises(InputError, match=f"line 2: has no time.*{left_out} of {left_out + kept} rows"):
            counted.check()
    else:
        counted.check()


@each_row("missing", [-0.01, 1.01, float("nan"), "0.2", None, True])
def test_what_is_no_share_is_refused(missing: object) -> None:
    with pytest.raises(InputError, match="missing: "):
        as_share(missing)
    assert (as_share(0), as_share(1)) == (0, 1)


def test_the_remedy_names_a_share_that_would_do() -> None:
    counted = LeftOut()
    counted.kept = 89
    for _ in range(11):
        counted.add(RowError("without a time", InputError("f", "has no time")))
    with pytest.raises(InputError, match=r"set --missing 0\.11 \(missing = 0\.11\)"):
        counted.check()
    counted.missing = 0.11
    counted.check()


def test_reasons_are_counted() -> None:
    assert describe_left_out({"without a time": 1}) == "1 row without a time is left out"
    assert describe_left_out({"a": 1, "b": 3}) == "4 rows are left out: 3 b, 1 a"


# --- check-ins ---------------------------------------------------------------------------------------------------

WRONG = {
    "without a time": "u,NaT,46.9,7.4",
    "with a time that cannot be read": "u,yesterday,46.9,7.4",
    "without a place": "u,2023-04-01 08:00,,7.4",
    "with a latitude beyond 90 degrees": "u,2023-04-01 08:00,400.17,7.4",
    "with a longitude beyond 180 degrees": "u,2023-04-01 08:00,46.9,-181",
    "without a user": ",2023-04-01 08:00,46.9,7.4",
    "with another number of fields": "u,2023-04-01 08:00,46.9",
}


@each_row("reason", WRONG)
@each_row("packed", [False, True])
def test_one_bad_row_is_left_out_and_counted(tmp_path: Path, reason: str, packed: bool) -> None:
    path = write(tmp_path / "c.csv", HEADER, *rows(15), WRONG[reason], *rows(15))
    if packed:
        path = tmp_path / "c.csv.gz"
        path.write_bytes(gzip.compress((tmp_path / "c.csv").read_bytes()))
    found = read_points(path, "user", "latitude", longitude="longitude", time="time", trace=None, delimiter=",")
    assert found.said() == (f"1 row {reason} is left out",)
    assert sum(map(len, found.traces)) == 30
    with pytest.warns(InputWarning, match="1 row"):
        read_checkins(path, time="time")
    with pytest.raises(InputError, match=r"line 17: .*1 of 31 rows would be left out: 1 with"):
        read_checkins(path, time="time", missing=0.03)


def test_reasons_stand_together_and_each_user_has_their_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.csv", HEADER, *rows(50), WRONG["without a time"], WRONG["without a place"], "v,2023-04-01,x,7"
    )
    found = read_points(
        path,
        "user",
        "latitude",
        longitude="longitude",
        time="time",
        trace=None,
        delimiter=",",
        said=Written(missing=0.1),
    )
    assert found.said() == ("3 rows are left out: 2 without a place, 1 without a time",)
    assert found.said("v") == ("1 row without a place is left out",)


def test_blank_lines_between_rows_are_no_rows(tmp_path: Path) -> None:
    body = rows(4)
    path = write(tmp_path / "c.csv", "", HEADER, "", *body[:2], "", *body[2:], "", "")
    found = read_points(
        path, "user", "latitude", longitude="longitude", time="time", trace=None, delimiter=",", said=Written(missing=0)
    )
    assert (len(found.traces[0]), found.said()) == (4, ("2 blank lines between rows are skipped",))


@each_row(("line", "said"), [("u,2023-04-01,139.7,35.6", True), ("u,2023-04-01,139.7,95", False)])
def test_where_latitudes_are_longitudes_it_is_said(tmp_path: Path, line: str, said: bool) -> None:
    path = write(tmp_path / "c.csv", HEADER, *rows(20), "u,2023-04-01,139.7,35.6", line)
    with pytest.raises(InputError, match="latitude is out of range") as raised:
        read_checkins(path, time="time")
    assert ("latitude and longitude look interchanged" in str(raised.value)) == said
    # Within the share there is no error.
    with pytest.warns(InputWarning, match="2 rows with a latitude beyond 90 degrees"):
        read_checkins(path, time="time", missing=0.1)


def test_a_bad_point_a_hidden_file_and_an_empty_one_do_not_end_a_folder(tmp_path: Path) -> None:
    head = ["head"] * 6
    points = [f"{39.9 + k * 1e-3},116.3,0,160,39745.1,2009-10-24,02:{k:02d}:00" for k in range(40)]
    folder = tmp_path / "020" / "Trajectory"
    folder.mkdir(parents=True)
    write(folder / "a.plt", *head, *points[:20], points[20].replace("39.92", "400.17"), *points[21:])
    write(folder / "._a.plt", "Mac OS X")
    write(folder / "b.plt", *head)
    with pytest.warns() as caught:
        (trace,) = read_plt(tmp_path)
    assert len(trace) == 39
    assert sorted(str(each.message).partition(": ")[2] for each in caught) == [
        "1 file without points is left out", "1 row with a latitude beyond 90 degrees is left out",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"a\.plt, line 27: latitude is out of range"):
        read_plt(tmp_path, missing=0.01)


def test_keys_of_places_that_are_unknown_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", "user,place", *["u,a"] * 19, "u,b")
    with pytest.warns(InputWarning, match="1 row with a place that the table of places lacks"):
        read_checkins(path, place="place", places={"a": (1.0, 2.0)})


# --- longitudes --------------------------------------------------------------------------------------------------


def with_longitudes(path: Path, *degrees: float) -> Path:
    return write(path, "user,latitude,longitude", *(f"u,-17,{each}" for each in degrees))


def test_longitudes_to_360_degrees_are_recognised_and_said(tmp_path: Path) -> None:
    path = with_longitudes(tmp_path / "c.csv", 177.5, 179.9, 180.1, 182, 360)
    with pytest.warns(RecognisedWarning, match="3 of 5 values in longitude are beyond 180 degrees"):
        (trace,) = read_checkins(path)
    np.testing.assert_allclose(trace.longitude, [177.5, 179.9, -179.9, -178, 0], atol=1e-9)
    (trace,) = read_checkins(path, longitudes="360")
    assert trace.longitude[3] == -178
    with pytest.warns(InputWarning, match="3 rows with a longitude beyond 180"):
        (trace,) = read_checkins(path, longitudes="180", missing=0.6)
    assert trace.longitude.tolist() == [177.5, 179.9]


def test_beside_negative_longitudes_those_beyond_180_are_none(tmp_path: Path) -> None:
    path = with_longitudes(tmp_path / "c.csv", *[-74.0] * 30, 285.7)
    with pytest.warns(InputWarning, match="1 row with a longitude beyond 180"):
        assert len(read_checkins(path)[0]) == 30
    with pytest.raises(InputError, match=r'line 32: longitude is out of range.*longitudes = "360"'):
        read_checkins(path, missing=0.03)
    with pytest.raises(InputError, match="30 of 31 rows would be left out"):
        read_checkins(path, longitudes="360")
    with pytest.raises(InputError, match="longitudes: is not known"):
        read_checkins(path, longitudes="540")  # type: ignore[arg-type]


# --- times -------------------------------------------------------------------------------------------------------


@each_row("form", ["{}00{:03d}", "{}00.{:03d}", "2023-04-01 08:00:00.{1:03d}", "01.04.2023 08:00:00,{1:03d}"])
def test_parts_of_a_second_are_kept_in_the_order(tmp_path: Path, form: str) -> None:
    parts = [900, 100, 500, 300]
    path = write(tmp_path / "c.csv", "user;time;latitude;longitude", *(
        f"u;{form.format(16803360, part)};1;{part / 10}" for part in parts
    ))  # fmt: skip
    (trace,) = read_points(
        path, "user", "latitude", longitude="longitude", time="time", trace=None, delimiter=";"
    ).traces
    assert trace.longitude.tolist() == [10.0, 30.0, 50.0, 90.0]
    assert set(map(str, trace.time)) == {"2023-04-01T08:00:00"}


def test_a_column_tells_whether_the_day_or_the_month_stands_first(tmp_path: Path) -> None:
    for dates, first in (
        (["04.03.2023", "05.03.2023"], "2023-03-04"),
        (["04/03/2023", "25/03/2023"], "2023-03-04"),
        (["04/03/2023", "04/25/2023"], "2023-04-03"),
        (["04.03.2023", "04.25.2023"], "2023-04-03"),
    ):
        path = write(tmp_path / "c.csv", HEADER, *(f"u,{date},1,2" for date in dates))
        with pytest.warns(RecognisedWarning, match="comes first in time"):
            (trace,) = read_checkins(path, time="time")
        assert str(trace.time[0])[:10] == first
    path = write(tmp_path / "c.csv", HEADER, "u,04/03/2023,1,2", "u,05/03/2023,1,2")
    with pytest.raises(InputError, match=r"line 2: time may have the day first or the month first"):
        read_checkins(path, time="time")
    path = write(tmp_path / "c.csv", HEADER, "u,25/03/2023,1,2", "u,03/25/2023,1,2")
    with pytest.raises(InputError, match=r"line 3: time has another order of day and month than earlier lines"):
        read_checkins(path, time="time")


def test_numbers_are_of_one_unit(tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", HEADER, *rows(20, lambda k: f"{1680336000000 + k}"), "u,1680336000,1,2")
    found = read_points(path, "user", "latitude", longitude="longitude", time="time", trace=None, delimiter=",")
    assert "milliseconds since 1970" in found.notes[0]
    assert found.said()[1] == "1 row with a time that cannot be read is left out"


@each_row(("text", "zone", "expected"), [
    ("2023-07-01 12:00", "+05:30", "2023-07-01T06:30:00"), ("2023-07-01 12:00", "utc-3", "2023-07-01T15:00:00"),
    ("2023-07-01 12:00Z", "+05:30", "2023-07-01T12:00:00"), ("1680336000", "+05:30", "2023-04-01T08:00:00"),
])  # fmt: skip
def test_times_that_say_no_zone_are_of_the_one_given(text: str, zone: str, expected: str) -> None:
    moment = Clock(zone=zone).moment(text, "f".__str__)
    assert moment is not None
    assert str(np.datetime64(moment.seconds, "s")) == expected


def test_hours_that_clocks_repeat_or_skip_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("tzdata")
    times = ["2023-10-29 01:59", "2023-10-29 02:30", "2023-03-26 02:30", "2023-10-29 03:00"]
    path = write(tmp_path / "c.csv", HEADER, *(f"u,{time},1,2" for time in times))
    said = Written(time_zone="Europe/Zurich", missing=0.5)
    found = read_points(
        path, "user", "latitude", longitude="longitude", time="time", trace=None, delimiter=",", said=said
    )
    assert found.said()[1] == "2 rows at an hour that clocks repeat or skip are left out"
    assert list(map(str, found.traces[0].time)) == ["2023-10-28T23:59:00", "2023-10-29T02:00:00"]


@each_row("zone", ["Mars/Olympus", "../zone", "", "+99:00", "+1:2:3", 5, "Europe"])
def test_what_is_no_zone_is_refused(zone: object) -> None:
    with pytest.raises(InputError, match="time_zone: is not a time zone"):
        Clock(zone=zone)  # type: ignore[arg-type]


# --- traces to release -------------------------------------------------------------------------------------------

TOWN = md.Domain.from_labels(["home", "work", "pub"])
BOX = md.Domain.geographic_grid(4, 3, 40, 41, -74, -73)


def steps(count: int) -> list[str]:
    return [f"2022-05-02 07:{k:02d}:00,{'home' if k % 2 else 'pub'}" for k in range(count)]


@each_row(("line", "reason"), [
    (",home", "without a time"), ("2022-05-02 07:20:30,", "without a state"), ("", "without anything"),
    ("2022-05-02 07:20:30", "with another number of fields"), ("soon,home", "with a time that cannot be read"),
])  # fmt: skip
def test_steps_of_a_trace_with_times_are_left_out_and_counted(tmp_path: Path, line: str, reason: str) -> None:
    path = write(
        tmp_path / "t.csv", "time,state", *steps(20), line, *[each.replace("07:", "08:") for each in steps(20)]
    )
    found = as_steps(path, TOWN)
    assert (len(found.states), found.notes[0]) == (40, f"1 row {reason} is left out")
    with pytest.raises(InputError, match=r"line 22: .*1 of 41 rows"):
        as_steps(path, TOWN, missing=0.02)
    path = write(tmp_path / "t.csv", "time,state", *steps(20), line, "2022-05-02 08:00,nowhere")
    with pytest.raises(InputError, match="line 23: is not a secret"):
        as_steps(path, TOWN)


@each_row(("lines", "words"), [
    (["state", "home", "", "pub"], "line 3: is blank"), (["state", "home", " ", "pub"], "line 3: is not a secret"),
    (["state,x", "home,1", ",1"], "line 3: is not a secret"),
    (["state,x", "home,1", "pub"], "line 3: has the wrong nu"),
    (["lat,lon", "40.5,-73.5", ",-73.5"], "line 3, column lat: is not a number"),
    (["lat,lon", "40.5,-73.5", "nan,-73.5"], "line 3, column lat: is not finite"),
    (["lat,lon", "40.5,-73.5", "97,-73.5"], "line 3: lies outside the grid"),
])  # fmt: skip
def test_steps_without_times_are_never_left_out(tmp_path: Path, lines: list[str], words: str) -> None:
    path = write(tmp_path / "t.csv", *lines)
    with pytest.raises(InputError, match=words):
        as_steps(path, BOX if "lat" in lines[0] else TOWN, missing=0.9)


def test_places_of_a_trace_are_left_out_by_reason(tmp_path: Path) -> None:
    body = [f"2022-05-02 07:{k:02d}:00,40.5,-73.5" for k in range(40)]
    path = write(tmp_path / "t.csv", "time,lat,lon", *body, "2022-05-02 08:00,97,-73.5", "2022-05-02 08:01,,-73.5")
    found = as_steps(path, BOX)
    assert found.notes[0] == "2 rows are left out: 1 with a latitude beyond 90 degrees, 1 without a place"
    # Longitudes up to 360 degrees denote the same places.
    write(path, "time,lat,lon", *(line.replace("-73.5", "286.5") for line in body))
    with pytest.warns(RecognisedWarning, match="40 longitudes are beyond 180 degrees"):
        assert as_steps(path, BOX).states.tolist() == found.states.tolist()


def test_parts_of_a_second_count_in_the_order_of_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "time,state", "2022-05-02 07:00:00.9,home", "2022-05-02 07:00:00.1,pub")
    with pytest.raises(InputError, match="step 1: is earlier than the step before it"):
        as_steps(path, TOWN)
    write(path, "time,state", "2022-05-02 07:00:00.1,home", "2022-05-02 07:00:00.9,pub")
    assert as_steps(path, TOWN).states.tolist() == [0, 2]


def test_missing_steps_in_memory_are_counted() -> None:
    day = np.datetime64("2022-05-02T00:00") + np.arange(40).astype("timedelta64[m]")
    states: list[object] = ["home"] * 39 + [None]
    found = as_steps({"state": states, "time": day}, TOWN)
    assert (len(found.states), found.notes) == (39, ("1 row without a state is left out",))
    with pytest.raises(InputError, match=r"trace\[39\]: has no state"):
        as_steps({"state": states, "time": day}, TOWN, missing=0.01)


# --- tables ------------------------------------------------------------------------------------------------------


def test_each_line_of_one_column_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text, expected in (("a\nx\n\ny\n", ["x", "", "y"]), ("a\nx\n\n", ["x", ""]), ("a\r\nx\r\n\r\n", ["x", ""]),
                           ("a\nx", ["x"]), ("\n\na\n\nx\n", ["", "x"]), ('a\n""\n', [""])):  # fmt: skip
        path.write_text(text, newline="")
        assert read_columns(path, ["a"])["a"] == expected
    path.write_text("n\n1\n\n3\n")
    with pytest.raises(InputError, match="row 2, column n: is not a number; found an empty cell"):
        read_numbers(path, "n")


def test_a_blank_line_of_several_columns_is_refused_but_at_the_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b", "1,2", "", "3,4")
    with pytest.raises(InputError, match=r"a\.csv, line 3: is blank"):
        read_columns(path, ["a"])
    write(path, "", "a,b", "1,2", "3,4", "", "", "")
    assert read_columns(path, ["a"])["a"] == ["1", "3"]


RECORDS = 'policy.kind = "full"\nrelease = { kind = "histogram", epsilon = 300 }\n[domain.attributes]\n'


@each_row("form", ["csv", "parquet", "two.parquet"])
def test_records_without_a_value_are_refused_or_a_value_of_their_own(tmp_path: Path, form: str) -> None:
    values = ["x"] * 5 + ["y"] * 3 + [None] * 4
    path = tmp_path / f"t.{form}"
    if form == "csv":
        write(path, "a", *(value or "" for value in values))
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"a": values} if form == "parquet" else {"a": values, "k": list(range(12))}
        parquet.write_table(arrow.table(columns), path)
    records = parse_release(RECORDS + 'a = { values = ["x", "y", ""] }\n').records
    assert np.bincount(records.indices(path)).tolist() == [5, 3, 4]
    for values_ in (
        'values = ["x", "y"]',
        "range = [0, 9]",
        "low = 0, high = 1, step = 0.5",
        "values = [1, 2], round = true",
    ):
        records = parse_release(RECORDS + f"a = {{ {values_} }}\n").records
        with pytest.raises(InputError, match=r"row \d+, column 'a'"):
            records.indices(path)
    with pytest.raises(InputError, match=r"row 9, column .a.: has no value.*add .. to values"):
        parse_release(RECORDS + 'a = { values = ["x", "y"] }\n').records.indices(path)


def test_places_in_which_people_are_counted_may_be_missing_and_those_to_answer_for_not(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", "lat,lon", *["40.5,-73.5"] * 38, "97,-73.5", ",-73.5")
    first, _, left_out = count_places(path, ("latitude", "longitude"))
    assert (len(first), sum(left_out.counts.values())) == (38, 2)
    with pytest.raises(InputError, match="2 of 40 rows would be left out"):
        count_places(path, ("latitude", "longitude"), missing=0.04)
    with pytest.raises(InputError, match="row 39: lat is out of range: latitude and longitude look interchanged"):
        read_places(path, ("latitude", "longitude"))


# --- specifications ----------------------------------------------------------------------------------------------

GRID = "domain.grid = { columns = 4, rows = 3, south = 46.8, north = 47.0, west = 7.3, east = 7.5 }\n"
REST = 'cost.distance = "euclidean"\n[[privacy]]\nkind = "metric"\nepsilon = 1\ndistance = "euclidean"\n'


def test_the_share_is_a_key(tmp_path: Path) -> None:
    write(tmp_path / "c.csv", HEADER, *rows(8), WRONG["without a time"], WRONG["without a place"])
    prior = 'prior = { checkins = { path = "c.csv", time = "time"%s }, smoothing = 1 }\n'
    with pytest.raises(SpecificationError, match=r"2 of 10 rows.*set --missing 0\.2 \(missing = 0\.2\)"):
        parse(GRID + prior % "" + REST, tmp_path).problem()
    found = parse(GRID + prior % ", missing = 0.2" + REST, tmp_path)
    assert "prior.checkins: 2 rows are left out: 1 without a time, 1 without a place" in found.notes
    for key in ("missing = 2", 'time_zone = "x"', 'longitudes = "270"'):
        name = key.partition(" ")[0]
        with pytest.raises(SpecificationError, match=rf"prior\.checkins\.{name}"):
            parse(GRID + prior % f", {key}" + REST, tmp_path).problem()


@each_row(
    "sides", ["south = 7.3, north = 107.5, west = 46.8, east = 47.0", "south = 139, north = 140, west = 35, east = 36"]
)
def test_a_box_that_looks_interchanged_is_refused_at_once(sides: str) -> None:
    for form in ("grid", "anchors"):
        text = f"domain.{form} = {{ columns = 4, rows = 3, {sides} }}\nprior.uniform = true\n" + REST
        with pytest.raises(
            SpecificationError, match=rf"domain\.{form}\.\w+: .*latitude and longitude look interchanged"
        ):
            parse(text).problem()


HUGE = "9999999999999999999999"
SIMULATED = (
    "domain.grid = {{ columns = 4, rows = 3, width = 4, height = 3 }}\nprior.smoothing = 1\n"
    "prior.simulated = {{ people = {}, centres = [{{ x = {}, y = 1, spread = {}, weight = {} }}] }}\n"
)
KEYS = {
    "prior.simulated.centres[0].spread": SIMULATED.format(10, 1, "1e308", 1) + REST,
    "prior.simulated.centres[0].x": SIMULATED.format(10, "1e200", 1, 1) + REST,
    "prior.simulated.centres[0].weight": SIMULATED.format(10, 1, 1, "1e-308") + REST,
    "prior.simulated.people": SIMULATED.format(HUGE, 1, 1, 1) + REST,
    "privacy[0].blocks": 'domain.grid = { columns = 2, rows = 2, width = 1, height = 1 }\nprior.uniform = true\n'
    f'cost.distance = "euclidean"\n[[privacy]]\nkind = "graph"\nepsilon = 1\nblocks = {HUGE}\n',
    "privacy[0].radius": 'domain.line = 3\nprior.uniform = true\ncost.distance = "euclidean"\n[[privacy]]\n'
    'kind = "graph"\nepsilon = 1\ndistance = "euclidean"\nradius = "1/' + "9" * 500 + '"\n',
    "domain.line": f"domain.line = {HUGE}\nprior.uniform = true\n" + REST,
    "cost.power": GRID + "prior.uniform = true\n" + REST.replace("[[privacy]]", "cost.power = 1e300\n[[privacy]]"),
    "privacy[0].epsilon": GRID + "prior.uniform = true\n" + REST.replace("epsilon = 1", "epsilon = 1e400"),
}  # fmt: skip


@each_row("key", KEYS)
def test_numbers_beyond_all_reckoning_are_refused_by_their_key(key: str) -> None:
    with pytest.raises(SpecificationError) as raised:
        parse(KEYS[key]).problem()
    assert raised.value.path == key
    assert len(str(raised.value)) < 300


def test_the_largest_numbers_pass() -> None:
    assert parse(SIMULATED.format(10, "1e100", "1e100", "1e-100") + REST).problem().prior.size == 12
    for value in ("inf", "1e309", "1e999999999"):
        text = RECORDS + f"a = {{ values = [1, {value}] }}\n"
        with pytest.raises(SpecificationError, match=r"domain\.attributes\.a\.values\[1\]: is out of range"):
            parse_release(text)


# --- visits ------------------------------------------------------------------------------------------------------


VISITS = """
domain.anchors = { columns = 2, rows = 2, %s }
observables.grid = { columns = 2, rows = 2, %s }
prior.visits = { path = "v.csv" }
cost.distance = "euclidean"
privacy = [{ kind = "continuous", epsilon = "0.1" }]
"""
DEGREES_BOX = "south = 46.9, north = 47.0, west = 7.4, east = 7.5"


def test_rows_of_visits_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plane = VISITS % (("width = 2.0, height = 2.0",) * 2)
    good = [f"{k / 40},{k / 40}" for k in range(58)]
    write(tmp_path / "v.csv", "x,y", *good[:9], "0.5", "", *good[9:], end="\n\n")
    given = parse(plane)
    given.problem()
    notes = " ".join(given.notes)
    assert "58 visits are used" in notes
    assert "2 rows are left out: 1 with another number of fields, 1 without anything" in notes
    write(tmp_path / "v.csv", "x,y", *good, "0.5", "0.5,1,2", "1,", "3")
    with pytest.raises(SpecificationError, match=r"v\.csv, line 60 has the wrong number of fields.*4 of 62 rows would"):
        parse(plane).problem()
    write(tmp_path / "v.csv", "x,y")
    with pytest.raises(SpecificationError, match="has no lines below its header"):
        parse(plane).problem()


def test_visits_that_are_all_elsewhere_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    box = VISITS % ((DEGREES_BOX,) * 2)
    points = [(46.9 + k / 1000, 7.4 + k / 1000) for k in range(40)]
    write(tmp_path / "v.csv", "lat,lon", *(f"{b:.3f},{a:.3f}" for a, b in points))
    with pytest.raises(
        SpecificationError, match=r"none of its 40 points in the box of the anchors: .*look interchanged"
    ):
        parse(box).problem()
    checkins = box.replace(
        'visits = { path = "v.csv" }', 'checkins = { path = "v.csv", latitude = "lat", longitude = "lon", user = "" }'
    )
    with pytest.raises(SpecificationError, match="look interchanged"):
        parse(checkins).problem()
    write(tmp_path / "v.csv", "lat,lon", *(f"{a - 10:.3f},{b:.3f}" for a, b in points))
    with pytest.raises(SpecificationError, match=r"none of its 40 points.*Check the box") as caught:
        parse(box).problem()
    assert "interchanged" not in str(caught.value)
    write(tmp_path / "v.csv", "lat,lon", *(f"{b:.3f},{a:.3f}" for a, b in points[1:]), "46.95,7.45")
    given = parse(box)
    given.problem()
    assert "39 of 40 visits outside" in " ".join(given.notes)


def test_longitudes_beyond_180_degrees_are_told_wherever_they_stand(tmp_path: Path) -> None:
    box = md.Domain.geographic_grid(2, 2, 40.6, 40.8, -74, -73.8)
    path = write(tmp_path / "v.csv", "lat,lon", "40.65,286.05", "40.65,286.15", "40.65,-73.95")
    with pytest.warns(RecognisedWarning, match="2 longitudes are beyond 180 degrees, and reduced by 360 degrees"):
        assert read_places(path, ("latitude", "longitude"))[1].tolist() == pytest.approx([-73.95, -73.85, -73.95])
    with pytest.warns(RecognisedWarning, match="2 longitudes are beyond"):
        assert as_steps(path, box).states.tolist() == [0, 1, 0]
    places = f'domain.csv = {{ path = "{path}", latitude = "lat", longitude = "lon" }}\n' + (
        'prior.uniform = true\ncost.distance = "haversine"\n'
        'privacy = [{ kind = "metric", epsilon = "0.1", distance = "haversine" }]'
    )
    with pytest.warns(RecognisedWarning, match="2 longitudes are beyond"):
        parse(places).problem()
    read_places(write(tmp_path / "w.csv", "lat,lon", "40.65,180", "40.65,-180"), ("latitude", "longitude"))
