from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import FrozenInstanceError
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

import mechdesign as md
from mechdesign.data._degrees import possible_longitudes, within_180
from mechdesign.data._movement import read_checkins, read_places, read_plt
from mechdesign.data.trajectories import Trajectory, Visits, to_grid
from mechdesign.errors import InputError, InputWarning
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
from mechdesign.model._prior import Prior

BEIJING = {"south": 39.7, "north": 40.2, "west": 116.0, "east": 116.8}
PLT_HEADER = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
PLT_LINE = "39.9,116.4,0,492,39744.12,2008-10-23,02:53:04\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- traces ------------------------------------------------------------------------------------------------------


def test_a_trace_cannot_be_changed():
    latitude = np.array([1.0, 2.0])
    trace = Trajectory("ann", latitude, [3.0, 4.0], np.array([5, 6], dtype="datetime64[s]"))
    latitude[0] = 9.0
    assert trace.latitude.tolist() == [1.0, 2.0]
    assert len(trace) == 2
    for held in (trace.latitude, trace.longitude, trace.time):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = held[1]
    with pytest.raises(FrozenInstanceError):
        trace.user = "bob"


@each_row(
    ("build", "path", "words"),
    [
        (lambda: Trajectory("", [0], [0]), "user", "not a name"),
        (lambda: Trajectory("a", [], []), "latitude", "empty"),
        (lambda: Trajectory("a", [0, 90.001], [0, 0]), "latitude[1]", "90.001"),
        (lambda: Trajectory("a", [0, 0], [0, -180.001]), "longitude[1]", "-180.001"),
        (lambda: Trajectory("a", [0, math.nan], [0, 0]), "latitude[1]", "nan"),
        (lambda: Trajectory("a", [0], [0, 0]), "longitude", "another length"),
        (lambda: Trajectory("a", [0], [0], np.array([1, 2], dtype="datetime64[s]")), "time", "(1,)"),
        (lambda: Trajectory("a", [0], [0], np.array(["NaT"], dtype="datetime64[s]")), "time[0]", "date and time"),
    ],
)
def test_wrong_traces_are_refused(build, path, words):
    with pytest.raises(InputError) as raised:
        build()
    assert raised.value.path == path
    assert words in str(raised.value)


# --- GeoLife -----------------------------------------------------------------------------------------------------


def test_read_plt(tmp_path):
    later = PLT_LINE.replace("39.9,", "39.8,").replace("02:53:04", "02:53:05")
    write(tmp_path / "001" / "Trajectory" / "b.plt", PLT_HEADER + later + PLT_LINE)
    write(tmp_path / "001" / "Trajectory" / "a.plt", PLT_HEADER.replace("\n", "\r\n") + PLT_LINE.replace("\n", "\r\n"))
    write(tmp_path / "000" / "Trajectory" / "c.plt", PLT_HEADER + PLT_LINE + "\n")
    write(tmp_path / "000" / "labels.txt", "ignored")
    traces = read_plt(tmp_path)
    assert [trace.user for trace in traces] == ["000", "001", "001"]
    assert [trace.latitude.tolist() for trace in traces] == [[39.9], [39.9], [39.9, 39.8]]
    assert traces[2].time.tolist() == [datetime(2008, 10, 23, 2, 53, 4), datetime(2008, 10, 23, 2, 53, 5)]
    # A folder of files is one user, named after the folder or its parent.
    assert [trace.user for trace in read_plt(tmp_path / "001" / "Trajectory")] == ["001", "001"]
    write(tmp_path / "phone" / "d.plt", PLT_HEADER + PLT_LINE)
    assert [trace.user for trace in read_plt(str(tmp_path / "phone"))] == ["phone"]


def test_a_folder_inside_itself_does_not_loop(tmp_path):
    write(tmp_path / "000" / "Trajectory" / "a.plt", PLT_HEADER + PLT_LINE)
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "000" / "Trajectory" / "again").symlink_to(tmp_path)
    assert len(read_plt(tmp_path)) == 1


@each_row(
    ("line", "place", "words"),
    [
        ("39.9,116.4,0,492\n", "line 8", "number of fields; found 4"),
        ("x,116.4,0,0,0,2008-10-23,02:53:04\n", "line 8", "latitude is not a number"),
        ("400.166667,116.4,0,0,0,2008-10-23,02:53:04\n", "line 8", "latitude is out of range"),
        ("39.9,181,0,0,0,2008-10-23,02:53:04\n", "line 8", "longitude is out of range"),
        ("39.9,nan,0,0,0,2008-10-23,02:53:04\n", "line 8", "longitude is not a number"),
        ("39.9,116.4,0,0,0,2008-10-32,02:53:04\n", "line 8", "there is no such day or hour; found 9999-99-99a99:99:99"),
    ],
)
def test_wrong_plt_lines_are_named(tmp_path, line, place, words):
    write(tmp_path / "000" / "Trajectory" / "a.plt", PLT_HEADER + PLT_LINE + line)
    with pytest.raises(InputError) as raised:
        read_plt(tmp_path)
    assert raised.value.path.endswith(f"a.plt, {place}")
    assert words in str(raised.value)


def test_wrong_plt_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        read_plt(tmp_path / "missing")
    with pytest.raises(InputError, match="contains no trajectories"):
        read_plt(tmp_path)
    write(tmp_path / "000" / "Trajectory" / "a.plt", PLT_HEADER)
    with pytest.raises(InputError, match=r"a\.plt: contains no points"):
        read_plt(tmp_path)
    (tmp_path / "000" / "Trajectory" / "a.plt").write_bytes(PLT_HEADER.encode() + b"\xff\xfe,1,2\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_plt(tmp_path)


@pytest.mark.slow
def test_geolife(data_folder):
    folder = data_folder / "geolife_trackintel" / "geolife_long_10_MB"
    traces = read_plt(folder)
    # Count independently: parse the lines after the header, and compare the numbers with the box.
    lines = Counter()
    inside = Counter()
    files = 0
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
    assert points == lines
    visits = to_grid(traces, Domain.geographic_grid(20, 15, **BEIJING))
    assert visits.inside == inside.total()
    assert visits.outside == lines.total() - inside.total()
    assert visits.counts().sum() == inside.total()
    for user in set(visits.users):
        assert visits.counts(user).sum() == inside[user]
    assert set(visits.users) == {user for user, count in inside.items() if count}
    chain = MarkovChain.from_traces(visits.cells, visits.domain.size, smoothing=0.1)
    assert chain.size == 300


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


def test_other_columns_delimiters_epochs_and_a_byte_order_mark(tmp_path):
    path = write(tmp_path / "c.tsv", "\ufefflat\tlon\tid\tt\n1\t2\tu\t60.9\n3\t4\tu\t-0.5\n5\t6\tu\t60\n")
    (trace,) = read_checkins(
        path, user="id", latitude="lat", longitude="lon", time="t", delimiter="\t", time_format="unix"
    )
    assert trace.latitude.tolist() == [3.0, 5.0, 1.0]
    assert trace.time.astype(np.int64).tolist() == [-1, 60, 60]


def test_equal_times_keep_the_order_of_the_file(tmp_path):
    path = write(
        tmp_path / "c.csv", "user,latitude,longitude,t\n" + "".join(f"u,{i},0,2012-04-03\n" for i in range(50))
    )
    assert read_checkins(path, time="t")[0].latitude.tolist() == list(range(50))


HEADER = "user,latitude,longitude,t\n"


@each_row(
    ("text", "place", "words"),
    [
        ("", "", "is empty"),
        (HEADER, "", "contains no check-ins"),
        ("user,lat,longitude,t\nu,1,2,3\n", "", "one of the columns user, lat, longitude, t"),
        ("user,latitude,longitude,t,t\nu,1,2,3,4\n", "", "more than one column 't'"),
        (HEADER + "u,1,2,2012-04-03\nu,1,2\n", ", line 3", "number of fields; found 3; must be 4"),
        (HEADER + "u,1,2,2012-04-03\n,1,2,3\n", ", line 3", "has no user"),
        (HEADER + "u,1,2,2012-04-03\nu,one,2,2012-04-03\n", ", line 3", "latitude is not a number; found aaa"),
        (
            HEADER + '"u\nv",1,2,2012-04-03\nu,,2,2012-04-03\n',
            ", line 4",
            "latitude is missing; found an empty cell",
        ),
        (HEADER + "u,1_0,2,2012-04-03\n", ", line 2", "latitude is not a number"),
        (HEADER + "u,90.01,2,2012-04-03\n", ", line 2", "latitude is out of range"),
        (HEADER + "u,1,-180.01,2012-04-03\n", ", line 2", "longitude is out of range"),
        (HEADER + "u,nan,2,2012-04-03\n", ", line 2", "latitude is not a number"),
        (HEADER + "u,1,inf,2012-04-03\n", ", line 2", "longitude is out of range"),
        (HEADER + "u,1,2,yesterday\n", ", line 2", "t is not a time; found aaaaaaaaa"),
        (HEADER + "u,1,2,inf\n", ", line 2", "t is not a time"),
        (HEADER + "u,1,2,nan\n", "", "contains no check-ins with a time in the column t"),
        (HEADER + "u,1,2,\n", "", "contains no check-ins with a time in the column t"),
        (HEADER + "u,1,2,1333476009000\nu,1,2,1333476009\n", ", line 3", "in seconds, but earlier lines are in millis"),
        (HEADER + 'u,1,2,"3\n', ", line 2", "cannot be read"),
    ],
)
def test_wrong_checkins_are_named(tmp_path, text, place, words):
    path = write(tmp_path / "c.csv", text)
    with pytest.raises(InputError) as raised:
        read_checkins(path, time="t")
    assert raised.value.path == f"{path}{place}"
    assert words in str(raised.value)


def test_wrong_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"missing\.csv: cannot be opened"):
        read_checkins(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="cannot be opened"):
        read_checkins(tmp_path)
    path = tmp_path / "c.csv"
    path.write_bytes(b"user,latitude,longitude\n\xff,1,2\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_checkins(path)
    for delimiter in ("", ",,", "\n", '"'):
        with pytest.raises(InputError, match="delimiter"):
            read_checkins(path, delimiter=delimiter)


def test_many_rows_are_read(tmp_path):
    path = write(
        tmp_path / "c.csv",
        HEADER + "".join(f"u{i % 50},{i % 90},{i % 180},2012-04-03T18:00:{i % 60:02}\n" for i in range(20_000)),
    )
    traces = read_checkins(path, time="t")
    assert sum(len(trace) for trace in traces) == 20_000


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
    assert visits.inside == len(inside)
    assert visits.outside == len(rows) - len(inside)
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


# --- grids -------------------------------------------------------------------------------------------------------

UNIT = Domain.geographic_grid(columns=4, rows=2, south=0, north=2, west=0, east=4)


def test_cell_centres_are_in_their_own_cells():
    for domain in (UNIT, Domain.geographic_grid(20, 15, **BEIJING)):
        visits = to_grid([Trajectory("u", domain.coordinates[:, 0], domain.coordinates[:, 1])], domain)
        assert visits.cells[0].tolist() == list(range(domain.size))


@each_row(
    ("latitude", "longitude", "cell"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (math.nextafter(1, 0), math.nextafter(1, 0), 0),
        (1, 1, 5),
        (2, 4, 7),
        (2, 0, 4),
        (0, 4, 3),
        (0, math.nextafter(4, 5), None),
        (math.nextafter(2, 3), 0, None),
        (-5e-324, 0, None),
        (0, -5e-324, None),
    ],
)
def test_borders(latitude, longitude, cell):
    # This point is always inside the box.
    visits = to_grid([Trajectory("u", [0.5, latitude], [0.5, longitude])], UNIT)
    assert visits.cells[0].tolist() == ([0] if cell is None else [0, cell])
    assert visits.outside == (cell is None)


def test_traces_are_split_where_they_leave_the_box():
    ann = Trajectory("ann", [0.5, 0.5, 9, 1.5, 9, 9, 1.5, 1.5], [0.5, 1.5, 0, 3.5, 0, 0, 0.5, 0.5])
    away = Trajectory("away", [9.0], [9.0])
    bob = Trajectory("bob", [9.0, 0.5], [0.0, 2.5])
    visits = to_grid(iter([ann, away, bob]), UNIT)
    assert [cells.tolist() for cells in visits.cells] == [[0, 1], [7], [4, 4], [2]]
    assert visits.users == ("ann", "ann", "ann", "bob")
    assert (visits.inside, visits.outside) == (6, 5)
    assert visits.counts().tolist() == [1, 1, 1, 0, 2, 0, 0, 1]
    assert visits.counts().dtype == np.int64
    assert visits.counts("bob").tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert [cells.tolist() for cells in visits.of("ann")] == [[0, 1], [7], [4, 4]]
    with pytest.raises(ValueError, match="read-only"):
        visits.cells[0][0] = 1
    with pytest.raises(InputError, match=r"found 'away'; must be one of the 2 users with visits$"):
        visits.of("away")
    with pytest.raises(InputError, match="has no visits"):
        visits.counts("carl")


point = st.tuples(st.integers(-1, 5).map(lambda x: x / 2), st.integers(-1, 9).map(lambda x: x / 2))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(point, min_size=1, max_size=12)), max_size=4))
def test_to_grid_against_a_plain_loop(raw):
    steps, counts, outside = Counter(), Counter(), 0
    for user, points in raw:
        cells = []
        for latitude, longitude in points:
            inside = 0 <= latitude <= 2 and 0 <= longitude <= 4
            cells.append(min(int(latitude), 1) * 4 + min(int(longitude), 3) if inside else None)
        outside += cells.count(None)
        counts.update((user, cell) for cell in cells if cell is not None)
        steps.update((user, a, b) for a, b in pairwise(cells) if a is not None and b is not None)
    traces = [Trajectory(user, [p[0] for p in points], [p[1] for p in points]) for user, points in raw]
    if not counts:
        with pytest.raises(InputError, match="inside the box"):
            to_grid(traces, UNIT)
        return
    visits = to_grid(traces, UNIT)
    assert (visits.inside, visits.outside) == (counts.total(), outside)
    found = Counter(
        (user, int(a), int(b))
        for user, cells in zip(visits.users, visits.cells, strict=True)
        for a, b in pairwise(cells)
    )
    assert found == steps
    for user in set(visits.users):
        assert visits.counts(user).tolist() == [counts[user, cell] for cell in range(8)]


@each_row(
    ("call", "path", "words"),
    [
        (lambda: to_grid([], Domain.grid(2, 2, 1, 1)), "domain", "geographic_grid"),
        (lambda: to_grid([], UNIT), "traces", "none of the 0 points"),
        (lambda: to_grid([Trajectory("u", [3.5], [1.0])], UNIT), "traces", "latitude and longitude look interchanged"),
        (
            lambda: to_grid([Trajectory("u", [40.0], [-74.0])], UNIT),
            "traces",
            "none of the 1 points is inside the box; found latitude 99 to 99, longitude -99 to -99; must be within "
            "latitude 0 to 2, longitude 0 to 4. Check the box",
        ),
        (lambda: Visits((np.array([0, 8]),), ("u",), 2, 0, UNIT), "cells[0][1]", "between 0 and 7"),
        (lambda: Visits((np.array([0]),), (), 1, 0, UNIT), "users", "another length"),
    ],
)
def test_wrong_grids_are_refused(call, path, words):
    with pytest.raises(InputError) as raised:
        call()
    assert raised.value.path == path
    assert words in str(raised.value)


def test_trajectories_with_an_ending_in_capitals_are_read(tmp_path):
    write(tmp_path / "000" / "Trajectory" / "a.plt", PLT_HEADER + PLT_LINE)
    write(tmp_path / "000" / "Trajectory" / "b.PLT", PLT_HEADER + PLT_LINE)
    assert len(read_plt(tmp_path)) == 2
    write(tmp_path / "phone" / "c.Plt", PLT_HEADER + PLT_LINE)
    assert [trace.user for trace in read_plt(tmp_path / "phone")] == ["phone"]


def test_points_in_place_of_a_header_are_not_skipped(tmp_path):
    path = tmp_path / "000" / "Trajectory" / "a.plt"
    write(path, PLT_LINE * 8)
    with pytest.raises(InputError, match=r"a\.plt, line 1: is a point, although the header is"):
        read_plt(tmp_path)
    write(path, "\n".join(PLT_HEADER.split("\n")[:5]) + "\n" + PLT_LINE * 2)
    with pytest.raises(InputError, match=r"a\.plt, line 6: is a point"):
        read_plt(tmp_path)
    # A header may have the same number of fields.
    write(path, PLT_HEADER.replace("Reserved 3", "0,2,255,a,0,0,2") + PLT_LINE)
    assert len(read_plt(tmp_path)[0]) == 1


@each_row(
    ("latitude", "words"),
    [
        ("46.95\N{DEGREE SIGN}", "but without degree signs or letters"),
        ("46.95 N", "without degree signs"),
        ("\N{MINUS SIGN}46.95", "a hyphen for south and west"),
        ("469512000", "such as latitudeE7, or in meters, convert it"),
        ("x1", "must be decimal degrees. "),
        ("100", "between -90 and 90 degrees. "),
    ],
)
def test_degrees_that_are_written_for_people_have_their_remedy(tmp_path, latitude, words):
    lines = "".join(f"u,{latitude},7.44{k}\n" for k in range(3))
    (tmp_path / "p.csv").write_text("user,latitude,longitude\n" + lines, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_checkins(tmp_path / "p.csv")
    assert words in str(caught.value)
    assert "46.9" not in str(caught.value)
    assert "469" not in str(caught.value)


@each_row(
    ("text", "line"),
    [(PLT_LINE * 8, "line 1"), ("latitude,longitude,zero,altitude,days,date,time\n" + PLT_LINE * 8, "line 2")],
)
def test_points_among_the_header_lines_of_a_trajectory_are_refused(tmp_path, text, line):
    write(tmp_path / "000" / "Trajectory" / "a.plt", text)
    with pytest.raises(InputError, match="is a point") as raised:
        read_plt(tmp_path)
    assert f"a.plt, {line}" in raised.value.path


def test_negative_longitudes_are_refused_where_they_are_said_to_go_to_360(tmp_path):
    write(tmp_path / "c.csv", "user,latitude,longitude\na,30.2,-97.7\na,30.3,-97.8\n")
    with pytest.raises(InputError, match="is negative"):
        read_checkins(tmp_path / "c.csv", longitudes="360")
    assert len(read_checkins(tmp_path / "c.csv", longitudes="180")[0]) == 2


def test_a_key_that_no_place_has_is_told_the_form_of_keys(tmp_path):
    write(tmp_path / "c.csv", "user,v\na,19959\n")
    with pytest.raises(InputError, match=r"a key, such as 99999\.9"):
        read_checkins(tmp_path / "c.csv", place="v", places={"19959.0": (30.2, -97.7)})


def test_no_larger_share_is_proposed_where_most_rows_would_be_left_out(tmp_path):
    for bad, proposed in ((1, True), (3, False)):
        rows = "a,95.0,1\n" * bad + "a,30.0,1\n" * 2
        write(tmp_path / "c.csv", "user,latitude,longitude\n" + rows)
        with pytest.raises(InputError) as raised:
            read_checkins(tmp_path / "c.csv")
        assert ("--missing" in str(raised.value)) is proposed


CITY = md.Domain.geographic_grid(2, 2, 40.7, 40.8, -74.0, -73.9)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("user,lat,lon\n6,40.75,-73.95\n6,40.76,-73.94\n")
    return path


def test_columns_that_are_interchanged_warn(table):
    with pytest.warns(InputWarning, match="visits.csv: all points are south of 60 degrees south"):
        md.data.read_checkins(table, latitude="lon", longitude="lat")
    assert len(md.data.read_checkins(table, latitude="lat", longitude="lon")) == 1


def test_one_trace_and_other_things_are_refused(table):
    traces = md.data.read_checkins(table, latitude="lat", longitude="lon")
    with pytest.raises(InputError, match=r"traces: is not a list; found 'Trajectory'.*\[trace\]"):
        md.data.to_grid(traces[0], CITY)
    with pytest.raises(InputError, match=r"traces\[0\]: has another type; found 'tuple'"):
        md.data.to_grid([(40.75, -73.95)], CITY)
    visits = md.data.to_grid(traces, CITY)
    assert visits.counts("6").sum() == 2
    with pytest.raises(InputError, match=r"user: has no visits; found 6; .*as a string"):
        visits.counts(6)


def test_a_key_of_places_needs_the_places(table):
    with pytest.raises(InputError, match="places: are missing"):
        md.data.read_checkins(table, place="user")


def test_budgets_in_another_order_say_how_steps_are_counted(tmp_path):
    path = tmp_path / "budgets.csv"
    path.write_text("step,epsilon\n1,0.1\n2,0.2\n")
    with pytest.raises(InputError, match=r"line 2: is out of order.*(?i:write one line for each step from 0)"):
        md.leakage.read_budgets(path)


def test_which_longitudes_are_possible_by_their_definition():
    kinds = ([-180.0, -0.5, 0.0, 179.0, 180.0, 180.5, 360.0], [0.0, 180.0, 180.5, 359.9, 360.0], [180.5], [-0.5])
    for column in kinds:
        for how in ("180", "360", None):
            # Without a negative longitude, or where it is said, they may go from 0 to 360 degrees.
            east = how == "360" or (how is None and min(column) >= 0)
            expected = [0 <= x <= 360 if east else -180 <= x <= 180 for x in column]
            assert possible_longitudes(np.array(column), how).tolist() == expected, (column, how)
        turned = [x - 360 if x > 180 else x for x in column]
        assert within_180(np.array(column)).tolist() == turned


def test_places_by_key_name_the_row_that_is_wrong(tmp_path):
    for wrong, says in (("d,91,7", "lat"), ("d,46,x", "lon is not a number"), ("a,46,8", "has a different place")):
        path = write(tmp_path / "p.csv", f"id,lat,lon\na,46,7\nb,46,7\n{wrong}\n")
        with pytest.raises(InputError, match=says) as raised:
            read_places(path, "id", "lat", longitude="lon")
        assert raised.value.path == f"{path}, row 3"
    path = write(tmp_path / "p.csv", "id,lat,lon\na,46,7\nb,47,190\na,46,7\n")
    assert read_places(path, "id", "lat", longitude="lon") == {"a": (46.0, 7.0), "b": (47.0, -170.0)}
