"""Check-ins, places and GeoLife: what is read, in which order, and what is left out or refused."""

from __future__ import annotations

import csv
import math
from collections import Counter
from datetime import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused
from rows import each_row

import mechdesign as md
from mechdesign.data.movement import Columns, LeftOut, read_checkins, read_movement, read_places, read_plt
from mechdesign.data.table import Layout, read_table
from mechdesign.data.trajectories import to_grid
from mechdesign.errors import InputError, InputWarning
from mechdesign.leakage import correlations_from_traces
from mechdesign.model._domain import Domain
from mechdesign.model._prior import Prior

BEIJING = {"south": 39.7, "north": 40.2, "west": 116.0, "east": 116.8}
PLT_HEADER = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
PLT_LINE = "39.9,116.4,0,492,39744.12,2008-10-23,02:53:04\n"
HEADER = "user,latitude,longitude,t\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- check-ins ---------------------------------------------------------------------------------------------------

CHECKINS = """user,latitude,longitude,when,trip
ann,1.5,2.5,2012-04-03T18:00:09Z,1
bob,-3.0,4.0,2012-04-03T18:00:00,1
ann,1.0,2.0,2012-04-03T20:00:08.9+02:00,2
"ann",0.5,1e0,2012-04-04,1
"""


def test_read_checkins(tmp_path):
    path = write(tmp_path / "c.csv", CHECKINS)
    ann, bob = read_checkins(path)
    assert (ann.user, bob.user) == ("ann", "bob")
    assert ann.latitude.tolist() == [1.5, 1.0, 0.5]
    assert ann.longitude.tolist() == [2.5, 2.0, 1.0]
    assert ann.time is None
    timed = read_checkins(str(path), time="when")[0]
    assert timed.latitude.tolist() == [1.0, 1.5, 0.5]
    assert timed.time.tolist() == [
        datetime(2012, 4, 3, 18, 0, 8),
        datetime(2012, 4, 3, 18, 0, 9),
        datetime(2012, 4, 4, 0, 0, 0),
    ]
    trips = read_checkins(path, trace="trip")
    assert [(trace.user, trace.latitude.tolist()) for trace in trips] == [
        ("ann", [1.5, 0.5]),
        ("bob", [-3.0]),
        ("ann", [1.0]),
    ]
    assert [len(trace) for trace in read_checkins(path, user=None)] == [4]


def test_a_mapping_is_read_as_the_file(tmp_path):
    path = write(tmp_path / "c.csv", CHECKINS)
    columns = dict(read_table(path).columns)
    typed = columns | {name: np.array(columns[name], dtype=float) for name in ("latitude", "longitude")}
    for source in (columns, typed):
        for found, expected in zip(read_checkins(source, time="when"), read_checkins(path, time="when"), strict=True):
            assert found.user == expected.user
            assert found.latitude.tolist() == expected.latitude.tolist()
            assert found.time.tolist() == expected.time.tolist()


def test_a_declared_layout_is_the_one_that_is_read(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text("lat\tlon\tid\tt\n1,5\t2\tü\t60,9\n3\t4\tü\t-0.5\n5\t6\tü\t60\n", encoding="latin-1")
    layout = {"delimiter": "\t", "decimal": ",", "encoding": "latin-1", "time_format": "unix", "missing": 0.4}
    with pytest.warns(InputWarning, match=r"c\.tsv: 1 row is left out: 1 with a time that cannot be read"):
        (trace,) = read_checkins(path, "id", "lat", "lon", time="t", **layout)
    assert (trace.user, trace.latitude.tolist()) == ("ü", [3.0, 5.0])
    assert trace.time.astype(np.int64).tolist() == [-1, 60]


def test_places_by_key(tmp_path):
    path = write(tmp_path / "p.csv", "id,lat,lon\na,46,7\nb,47,-170\na,46,7\n")
    places = read_places(path, "id", "lat", "lon")
    assert places == {"a": (46.0, 7.0), "b": (47.0, -170.0)}
    checkins = {"user": ["u"] * 30, "v": ["a", "b", *["a"] * 27, "c"]}
    with pytest.warns(InputWarning, match="1 with a place that the table of places lacks"):
        (trace,) = read_checkins(checkins, place="v", places=places)
    assert trace.latitude.tolist() == [46.0, 47.0, *[46.0] * 27]
    assert trace.longitude.tolist() == [7.0, -170.0, *[7.0] * 27]
    checkins["v"][-1] = " "
    with pytest.warns(InputWarning, match="1 without a place"):
        assert len(read_checkins(checkins, place="v", places=places | {" ": (0.0, 0.0)})[0]) == 29


# --- the order of points -----------------------------------------------------------------------------------------

TOWN = Domain.geographic_grid(3, 1, south=0, north=1, west=0, east=3)
FORMS = {
    "dates, ten a day": lambda k: f"2023-03-{1 + k // 10:02d}",
    "seconds, two points in each": lambda k: f"2023-03-01T08:00:{k // 2:02d}Z",
    "minutes, two points in each": lambda k: f"2023-03-01 08:{k // 2:02d}",
    "parts of a second": lambda k: f"2023-03-01 08:00:00.{k:09d}",
}


def points(order, time, trace=None):
    """Return check-ins that walk through three cells, in the given order of rows."""
    columns = {"user": ["p"] * len(order), "latitude": [0.5] * len(order), "longitude": [k % 3 + 0.5 for k in order]}
    columns["t"] = [time(k) for k in order]
    return columns | ({} if trace is None else {"trip": [trace(k) for k in order]})


@each_row("name", list(FORMS))
def test_a_file_that_runs_backwards_gives_the_chain_of_the_file_that_runs_forwards(name):
    for trace in (None, "trip"):
        chains = []
        for order in (range(60), range(59, -1, -1)):
            # A day is a trace: all its times may be equal, and the person's other rows tell the order.
            table = points(order, FORMS[name], None if trace is None else lambda k: str(k // 10))
            traces = read_checkins(table, time="t", trace=trace)
            assert sum(each.ties for each in traces) == 0
            chains.append(correlations_from_traces(to_grid(traces, TOWN), 3).forward.matrix.tolist())
        assert chains[0] == chains[1], trace
        assert chains[0] == [[0, 1, 0], [0, 0, 1], [1, 0, 0]], trace


def test_rows_that_neither_ascend_nor_descend_leave_the_order_of_equal_times_open():
    mixed = [2, 3, 0, 1, 4, 5]
    (trace,) = read_checkins(points(mixed, FORMS["minutes, two points in each"]), time="t")
    assert trace.ties == 3
    visits = to_grid([trace], TOWN)
    # A prior does not depend on the order; a chain does.
    assert visits.counts().tolist() == [2, 2, 2]
    for refused in (visits, to_grid(md.data.resample([trace], md.data.Sampling(60))[0], TOWN)):
        with pytest.raises(InputError, match=r"traces: have 3 points at the time of the point before.*Sort the rows"):
            correlations_from_traces(refused, 3)
    # Equal places have no order, and distinct times have one.
    same = points(mixed, FORMS["minutes, two points in each"]) | {"longitude": [0.5] * 6}
    assert read_checkins(same, time="t")[0].ties == 0
    assert read_checkins(points(mixed, FORMS["parts of a second"]), time="t")[0].ties == 0
    # If all times of the file are equal, they tell nothing; without times the file has its own order.
    assert read_checkins(points(range(6), FORMS["dates, ten a day"]), time="t")[0].ties == 5
    assert read_checkins(points(range(6), FORMS["dates, ten a day"]))[0].ties == 0


def test_people_with_one_time_follow_the_order_of_all_people():
    for direction in (1, -1):
        table = {"user": ["a", "a", "b", "b"], "latitude": [0.5] * 4, "longitude": [0.5, 1.5, 0.5, 1.5]}
        table["t"] = ["2023-03-01", "2023-03-02", "2023-03-01", "2023-03-01"]
        table = {name: column[::direction] for name, column in table.items()}
        for trace in read_checkins(table, time="t"):
            assert (trace.longitude.tolist(), trace.ties) == ([0.5, 1.5], 0)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12))
def test_the_order_against_a_plain_sort(moments):
    instants = [(second, part) for second, part in moments]
    rows = range(len(instants))
    texts = [f"1970-01-01T00:00:{second:02d}.{part:09d}Z" for second, part in instants]
    table = {"user": ["u"] * len(texts), "latitude": [0.0] * len(texts), "longitude": list(rows), "t": texts}
    (trace,) = read_checkins(table, time="t")
    descends = len(set(instants)) > 1 and instants == sorted(instants, reverse=True)
    expected = sorted(rows, key=lambda row: (instants[row], -row if descends else row))
    assert trace.longitude.tolist() == expected
    mixed = instants not in (sorted(instants), sorted(instants, reverse=True)) or len(set(instants)) == 1
    assert trace.ties == (len(instants) - len(set(instants)) if mixed else 0)


# --- rows that are left out --------------------------------------------------------------------------------------


@each_row(
    ("line", "kind"),
    [
        (" ,1,2,2012-04-03", "without a user"),
        ("u,,2,2012-04-03", "without a place"),
        ("u,1,x,2012-04-03", "with a place that cannot be read"),
        ("u,1,1_0,2012-04-03", "with a place that cannot be read"),
        ("u,1,inf,2012-04-03", "with a place that cannot be read"),
        ("u,90.01,2,2012-04-03", "with a latitude beyond 90 degrees"),
        ("u,1,-180.01,2012-04-03", "with a longitude beyond 180 degrees"),
        ("u,1,2,", "without a time"),
        ("u,1,2,yesterday", "with a time that cannot be read"),
        ("u,1,2,2012-03-25 02:30", "at an hour that clocks repeat or skip"),
        ("u,1,2,2012-10-28 02:30", "at an hour that clocks repeat or skip"),
    ],
)
def test_one_bad_row_is_left_out_and_counted(tmp_path, line, kind):
    rows = "".join(f"u,{k},0,2012-04-03 08:00:{k}\n" for k in range(10, 29))
    path = write(tmp_path / "c.csv", HEADER + rows + line + "\n")
    layout = Layout(time_zone="Europe/Zurich")
    found = read_movement(path, Columns("user", time="t"), layout)
    assert (found.left_out, len(found.traces[0])) == ({kind: 1}, 19)
    assert found.note == f"1 row is left out: 1 {kind}"
    path = write(tmp_path / "c.csv", HEADER + rows + f"{line}\n" * 2)
    with pytest.raises(InputError, match=rf"2 of 21 rows would be left out: 2 {kind}; set missing = 0.1 ") as caught:
        read_movement(path, Columns("user", time="t"), layout)
    assert caught.value.path.startswith(f"{path}, line 21, column ")


def test_just_inside_and_just_outside_the_share():
    for missing, bad, rows, refused in ((0.05, 1, 20, False), (0.05, 1, 19, True), (0, 1, 99, True), (1, 9, 9, False)):
        left_out, table = LeftOut(missing), read_table({"a": [0] * rows})
        kept = left_out.keep(table, [("odd", np.arange(rows) < bad, lambda row: InputError(f"row {row}", "is odd"))])
        assert (kept.tolist(), dict(left_out.counts)) == (list(range(bad, rows)), {"odd": bad})
        if refused:
            with pytest.raises(InputError, match="row 0: is odd"):
                left_out.check()
        else:
            left_out.check()


def test_no_larger_share_is_proposed_where_most_rows_would_be_left_out():
    for bad, proposed in ((1, True), (3, False)):
        table = {"latitude": [95.0] * bad + [30.0] * 2, "longitude": [100.0] * (bad + 2)}
        with pytest.raises(InputError) as raised:
            read_checkins(table, None)
        assert ("set missing" in str(raised.value)) is proposed


# --- refusals ----------------------------------------------------------------------------------------------------


def test_wrong_checkins_name_the_line_the_column_and_the_key(tmp_path):
    texts = [
        ("", "line 1", "header line"),
        (HEADER, "", "contains no check-ins"),
        ("user,lat,longitude,t\nu,1,2,3\n", "line 1", "'latitude'"),
        ("user,latitude,longitude,t,t\nu,1,2,3,4\n", "line 1", "repeats the column 't'"),
        ("user;latitude;longitude;t\nu;1;2;3\n", "line 1", 'delimiter = ";"'),
        (HEADER + "u,1,2,2012-04-03\nu,1,2\n", "line 3", "fields; found 3; must be 4"),
        (HEADER + "u,1,2,2012-04-03\n\nu,1,2,2012-04-03\n", "line 3", "is blank"),
        (HEADER + "u,1,2,2012-04-03\n,1,2,2012-04-03\n", "line 3, column user", "is empty"),
        (HEADER + "u,1,2,2012-04-03\nu,one,2,2012-04-03\n", "line 3, column latitude", "is not a number"),
        (HEADER + '"u\nv",1,2,2012-04-03\nu,,2,2012-04-03\n', "line 4, column latitude", "is empty"),
        (HEADER + "u,1_0,2,2012-04-03\n", "line 2, column latitude", "is not a number"),
        (HEADER + 'u,"1,5",2,2012-04-03\n', "line 2, column latitude", 'decimal = ","'),
        (HEADER + "u,٤٦,2,2012-04-03\n", "line 2, column latitude", "is not a number"),
        (HEADER + "u,46°N,2,2012-04-03\n", "line 2, column latitude", "is not a number"),
        (HEADER + "u,90.01,200,2012-04-03\n", "line 2, column latitude", "is out of range"),
        (HEADER + "u,1,190,2012-04-03\n", "line 2, column longitude", "Subtract 360"),
        (HEADER + "u,100,46,2012-04-03\n", "line 2, column latitude", "look interchanged"),
        (HEADER + "u,1,2,1333476009\n", "line 2, column t", "time_format"),
        (HEADER + "u,1,2,03/04/2012\n", "line 2, column t", "time_format"),
        (HEADER + "u,1,2,20120403\n", "line 2, column t", "time_format"),
        (HEADER + "u,1,2,\n", "line 2, column t", "has no time"),
        (HEADER + 'u,1,2,"3\n', "line 2", "closed quotes"),
        (HEADER + "u,1,\0 2,2012-04-03\n", "line 2", "zero byte"),
    ]
    mistakes = []
    for place, (text, line, says) in enumerate(texts):
        path = write(tmp_path / f"{place}.csv", text)
        where = f"{path}, {line}" if line else str(path)
        mistakes.append(Mistake(text, lambda path=path: read_checkins(path, time="t"), where, says, InputError))
    good = write(tmp_path / "good.csv", CHECKINS)
    calls = {
        "time_format": lambda: read_checkins(good, time_format="unix"),
        "time_zone": lambda: read_checkins(good, time_zone="Mars/Phobos"),
        "delimiter": lambda: read_checkins(good, delimiter=",,"),
        "decimal": lambda: read_checkins(good, decimal=";"),
        "encoding": lambda: read_checkins(good, encoding="klingon"),
        "missing": lambda: read_checkins(good, missing=20),
        "places": lambda: read_checkins(good, place="user"),
        "place": lambda: read_checkins(good, places={}),
        "source": lambda: read_checkins(good, latitude="longitude"),
        "row 0, column v": lambda: read_checkins({"user": ["u"], "v": ["b"]}, place="v", places={"a": (0, 0)}),
        "user": lambda: read_checkins(good, ["user"]),
        "time": lambda: read_checkins(good, time=3),
        "latitude": lambda: read_checkins(good, latitude=None),
        "places: are not pairs": lambda: read_checkins({"user": ["u"], "v": ["x"]}, place="v", places={"x": (1, 2, 3)}),
        "places: has": lambda: read_checkins({"user": ["u"], "v": ["x"]}, place="v", places={"x": 1}),
        "places: has another": lambda: read_checkins({"v": ["x"]}, None, place="v", places=[("x", 1, 2)]),
        "places[0]": lambda: read_checkins({"user": ["u"], "v": ["a"]}, place="v", places={"a": (91, 0)}),
        str(tmp_path): lambda: read_checkins(tmp_path),
    }
    mistakes += [Mistake(path, make, *path.partition(": ")[::2], error=InputError) for path, make in calls.items()]
    assert_refused(mistakes)
    for mistake in mistakes:
        with pytest.raises(InputError) as caught:
            mistake.make()
        assert not {"yesterday", "1_0", "46°N", "٤٦", "1333476009"} & set(str(caught.value).split())


def test_wrong_tables_of_places_name_the_line(tmp_path):
    texts = {
        "d,91,7": ("line 4, column lat", "out of range"),
        "d,46,-181": ("line 4, column lon", "out of range"),
        "d,46,x": ("line 4, column lon", "is not a number"),
        "d,,7": ("line 4, column lat", "is empty"),
        "d,nan,7": ("line 4, column lat", "is not a number"),
        "a,46,8": ("line 4, column id", "a different place"),
        " ,46,8": ("line 4, column id", "is empty"),
        "d,46": ("line 4", "number of fields"),
    }
    mistakes = []
    for place, (text, (line, says)) in enumerate(texts.items()):
        path = write(tmp_path / f"{place}.csv", f"id,lat,lon\na,46,7\nb,46,7\n{text}\n")
        make = lambda path=path: read_places(path, "id", "lat", "lon")  # noqa: E731
        mistakes.append(Mistake(text, make, f"{path}, {line}", says, InputError))
    mistakes.append(Mistake("list of keys", lambda: read_places(path, ["id"]), "key", "another type", InputError))
    mistakes.append(Mistake("no key", lambda: read_places(path, "key", "lat", "lon"), f"{path}, line 1", "'key'"))
    assert_refused(mistakes)


# --- GeoLife -----------------------------------------------------------------------------------------------------


def test_read_plt(tmp_path):
    later = PLT_LINE.replace("39.9,", "39.8,").replace("02:53:04", "02:53:05")
    write(tmp_path / "001" / "Trajectory" / "b.plt", PLT_HEADER + later + PLT_LINE)
    write(tmp_path / "001" / "Trajectory" / "a.plt", PLT_HEADER.replace("\n", "\r\n") + PLT_LINE.replace("\n", "\r\n"))
    write(tmp_path / "000" / "Trajectory" / "c.plt", PLT_HEADER + PLT_LINE + "\n")
    write(tmp_path / "000" / "Trajectory" / "empty.plt", PLT_HEADER)
    write(tmp_path / "000" / "Trajectory" / ".hidden.plt", "hidden")
    write(tmp_path / "000" / "labels.txt", "ignored")
    (tmp_path / "again").symlink_to(tmp_path)
    traces = read_plt(tmp_path)
    assert [trace.user for trace in traces] == ["000", "001", "001"]
    assert [trace.latitude.tolist() for trace in traces] == [[39.9], [39.9], [39.9, 39.8]]
    assert traces[2].time.tolist() == [datetime(2008, 10, 23, 2, 53, 4), datetime(2008, 10, 23, 2, 53, 5)]
    # A line without a time of day is left out, and is not at midnight.
    lines = PLT_HEADER + PLT_LINE * 19 + PLT_LINE.replace("02:53:04", "")
    write(tmp_path / "timeless" / "e.plt", lines)
    with pytest.warns(InputWarning, match="1 row is left out: 1 without a time"):
        assert len(read_plt(tmp_path / "timeless")[0]) == 19
    # A folder of files is one user, named after the folder or its parent.
    assert [trace.user for trace in read_plt(tmp_path / "001" / "Trajectory")] == ["001", "001"]
    write(tmp_path / "phone" / "d.plt", PLT_HEADER + PLT_LINE)
    assert [trace.user for trace in read_plt(str(tmp_path / "phone"))] == ["phone"]


def test_wrong_plt_lines_are_named(tmp_path):
    rest = "0,0,0,2008-10-23,02:53:04\n"
    texts = {
        PLT_HEADER + PLT_LINE + "39.9,116.4,0,492\n": ("line 8", "fields; found 4"),
        PLT_HEADER + PLT_LINE + f"x,116.4,{rest}": ("line 8, column latitude", "is not a number"),
        PLT_HEADER + PLT_LINE + f"400.166667,116.4,{rest}": ("line 8, column latitude", "is out of range"),
        PLT_HEADER + PLT_LINE + f"39.9,181,{rest}": ("line 8, column longitude", "is out of range"),
        PLT_HEADER + PLT_LINE + f"39.9,nan,{rest}": ("line 8, column longitude", "is not a number"),
        PLT_HEADER + "39.9,116.4,0,0,0,2008-10-32,02:53:04\n": ("line 7, column time", "is not a time"),
        PLT_LINE * 8: ("line 1", "6 header lines"),
        PLT_HEADER[PLT_HEADER.index("\n") + 1 :] + PLT_LINE * 2: ("line 6", "6 header lines"),
        PLT_HEADER: ("", "contains no points"),
    }
    mistakes = []
    for place, (text, (line, says)) in enumerate(texts.items()):
        path = write(tmp_path / str(place) / "000" / "Trajectory" / "a.plt", text)
        where = f"{path}, {line}" if line else str(path)
        mistakes.append(Mistake(text, lambda place=place: read_plt(tmp_path / str(place)), where, says, InputError))
    path.write_bytes(PLT_HEADER.encode() + PLT_LINE.encode() + b"\xff\xfe,1,2\n")
    mistakes[-1] = Mistake("bytes", mistakes[-1].make, f"{path}, line 8", "utf-8", InputError)
    mistakes += [
        Mistake("missing", lambda: read_plt(tmp_path / "missing"), "folder", "contains no trajectories"),
        Mistake("share", lambda: read_plt(tmp_path, missing=2), "missing"),
        Mistake("kind", lambda: read_plt(3), "folder", "is not a path"),
    ]
    assert_refused(mistakes)


# --- real data ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_geolife(data_folder):
    folder = data_folder / "geolife_trackintel" / "geolife_long_10_MB"
    traces = read_plt(folder)
    # Count independently: parse the lines after the header, and compare the numbers with the box.
    lines, inside, files = Counter(), Counter(), 0
    for path in folder.glob("*/Trajectory/*.plt"):
        files += 1
        for line in path.read_text().splitlines()[6:]:
            latitude, longitude = (float(part) for part in line.split(",")[:2])
            user = path.parts[-3]
            lines[user] += 1
            inside[user] += 39.7 <= latitude <= 40.2 and 116.0 <= longitude <= 116.8
    assert len(traces) == files
    points = Counter()
    for trace in traces:
        points[trace.user] += len(trace)
        assert (np.diff(trace.time) >= np.timedelta64(0)).all()
        assert trace.ties == 0
    assert points == lines
    visits = to_grid(traces, Domain.geographic_grid(20, 15, **BEIJING))
    assert visits.inside == inside.total()
    assert visits.outside == lines.total() - inside.total()
    for user in set(visits.users):
        assert visits.counts(user).sum() == inside[user]
    assert set(visits.users) == {user for user, count in inside.items() if count}


@pytest.mark.slow
@each_row(("folder", "file"), [("foursquare_nyc_marc", "specific_train.csv"), ("gowalla_marc", "test.csv")])
def test_real_checkins(data_folder, folder, file):
    path = data_folder / folder / file
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    users = Counter(row["label"] for row in rows)
    trips = {(row["label"], row["tid"]) for row in rows}
    columns = {"user": "label", "latitude": "lat", "longitude": "lon"}
    traces = read_checkins(path, **columns)
    assert {trace.user: len(trace) for trace in traces} == users
    split = read_checkins(path, **columns, trace="tid")
    assert len(split) == len(trips)
    box = {"south": 40.7, "north": 40.8, "west": -74.02, "east": -73.93}
    inside = [row for row in rows if 40.7 <= float(row["lat"]) <= 40.8 and -74.02 <= float(row["lon"]) <= -73.93]
    domain = Domain.geographic_grid(9, 10, **box)
    visits = to_grid(split, domain)
    assert (visits.inside, visits.outside) == (len(inside), len(rows) - len(inside))
    busiest, count = Counter(row["label"] for row in inside).most_common(1)[0]
    assert visits.counts(busiest).sum() == count
    np.testing.assert_array_equal(to_grid(traces, domain).counts(), visits.counts())
    expected = Counter(
        (math.floor((Fraction(row["lat"]) - Fraction("40.7")) * 100) * 9)
        + math.floor((Fraction(row["lon"]) + Fraction("74.02")) * 100)
        for row in inside
    )
    # Rounding the borders to float64 moves hardly any point to another cell.
    difference = np.abs(visits.counts() - [expected[cell] for cell in range(90)]).sum()
    assert difference <= 2 * sum(
        Fraction(row["lat"]) * 100 % 1 == 0 or Fraction(row["lon"]) * 100 % 1 == 0 for row in inside
    )
    assert Prior.from_counts(visits.counts()).zeros.tolist() == np.flatnonzero(visits.counts() == 0).tolist()
