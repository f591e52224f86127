"""The file of a trace: its columns, its times, its person, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import Mistake, assert_refused
from rows import each_row

from mechdesign.data.movement import read_checkins
from mechdesign.data.trajectories import as_states, to_grid
from mechdesign.errors import InputError
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import FilesTable
from mechdesign.specification._read import Source
from mechdesign.specification._steps import ReleaseTable, read_steps

BOX = Domain.geographic_grid(4, 3, 40, 41, -74, -73)
PLANE = Domain.grid(4, 3, 8.0, 3.0)
NAMES = Domain.from_labels(["home", "work", "7", "state"])
TOWNS = Domain.from_coordinates([1.0, 2.0, 60.0], [2.0, 3.0, 4.0])
PLACES = Domain.from_points([[0, 0], [1, 0], [5, 5]])


@pytest.fixture
def steps(tmp_path):
    def read(text, domain, layout=(), **keys):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        source = Source(("release",)).with_layout(FilesTable(**dict(layout)))
        return read_steps(tmp_path / "t.csv", ReleaseTable(**keys), source, domain)

    return read


@each_row(
    ("text", "domain", "keys", "expected"),
    [
        ("state\n3\n11\n0\n", PLANE, {}, [3, 11, 0]),
        ("state\nhome\nwork\n1\n", NAMES, {}, [0, 1, 1]),
        # A label has priority over an index, and over the name of a column.
        ("state\n7\nstate\n", NAMES, {}, [2, 3]),
        ("at,State\n9,work\n9,home\n", NAMES, {"state": "State", "user": False}, [1, 0]),
        ("x,y\n0,0\n2,1\n8,3\n", PLANE, {}, [0, 5, 11]),
        ("y,x\n2.9,0\n", PLANE, {}, [8]),
        ("x,y\n3,4\n.4,0\n.5,0\n", PLACES, {}, [2, 0, 0]),
        ("latitude,longitude,who\n40.1,-73.9,ann\n41,-73,ann\n", BOX, {"user": "who"}, [0, 11]),
        ("lat,lng\n59,4.2\n1.2,2.1\n", TOWNS, {"latitude": "lat", "longitude": "lng"}, [2, 0]),
        ("lat,longitude\n59,4.2\n", TOWNS, {"latitude": "lat"}, [2]),
        ("step,state,x,y\n0,2,0,0\n", PLANE, {"state": "state", "user": False}, [2]),
    ],
)
def test_columns_of_states(steps, text, domain, keys, expected):
    assert steps(text, domain, **keys).states.tolist() == expected


def test_files_are_read_as_declared(steps):
    layout = {"delimiter": ";", "decimal": ",", "time_format": "%d.%m.%Y %H:%M", "time_zone": "Europe/Zurich"}
    found = steps("x;y;time\n1,5;0,5;02.03.2026 09:05\n7;2,5;02.03.2026 09:00\n", PLANE, layout)
    assert found.states.tolist() == [11, 0]
    assert [str(time) for time in found.times] == ["2026-03-02T08:00:00", "2026-03-02T08:05:00"]


@each_row(
    ("times", "expected"),
    [
        (["00:00:01", "00:00:02", "00:00:02"], [0, 1, 2]),
        # Rows that descend have equal times in reverse.
        (["00:00:02", "00:00:02", "00:00:01"], [2, 1, 0]),
        # Fractions of a second order steps.
        (["00:00:01.75", "00:00:01.5", "00:00:01.625"], [1, 2, 0]),
        (["00:00:03", "00:00:01", "00:00:02"], [1, 2, 0]),
        (["00:00:02", "00:00:01", "00:00:02"], "leaves the order of 1 steps open"),
        (["00:00:01", "00:00:01", "00:00:01"], "leaves the order of 2 steps open"),
    ],
)
def test_steps_are_in_the_order_of_their_times(steps, times, expected):
    text = "state,time\n" + "".join(f"{state},2026-01-01 {time}\n" for state, time in enumerate(times))
    if isinstance(expected, list):
        assert steps(text, PLANE).states.tolist() == expected
        return
    with pytest.raises(InputError, match=expected):
        steps(text, PLANE)
    # The order within one state does not matter.
    assert steps(text.replace("1,", "2,").replace("0,", "2,"), PLANE).states.tolist() == [2, 2, 2]


def test_rows_left_out_are_counted_by_kind(steps):
    rows = [f"{k % 12},2026-01-01 00:00:{k:02d}" for k in range(30)]
    found = steps("\n".join(["state,time", *rows, "5,", ",2026-01-01 01:00"]), PLANE, {"missing": 0.1})
    assert len(found.states) == 30
    assert found.notes == ("2 rows are left out: 1 without a time, 1 without a state",)
    with pytest.raises(InputError, match=r"line 32, column time: has no time.*2 of 32 rows would be left out"):
        steps("\n".join(["state,time", *rows, "5,", ",2026-01-01 01:00"]), PLANE)


def test_a_text_is_no_index_where_all_labels_are_numbers(steps):
    # Labels are house numbers: a file of indices would be read as a mixture of labels and indices.
    houses = Domain.from_labels(["1", "2", "3"])
    assert steps("state\n3\n1\n", houses).states.tolist() == [2, 0]
    with pytest.raises(InputError, match="line 2, column state: is not a label; it is not read as an index"):
        steps("state\n0\n1\n2\n", houses)
    # An integer is always an index.
    assert as_states([0, np.int64(2), "2"], houses).tolist() == [0, 2, 1]


@each_row(
    ("text", "domain", "keys", "path", "words"),
    [
        ("0\n12\n", PLANE, {}, "t.csv", "has no column of states"),
        ("state\n0\n12\n", PLANE, {}, "t.csv, line 3, column state", "must be a label, or an index from 0 to 11"),
        ("state\nhome\npub\n", NAMES, {}, "line 3, column state", "is not a secret"),
        ("state\nhome\n work\n", NAMES, {}, "line 3, column state", "is not a secret"),
        ("state\n-1\n", NAMES, {}, "line 2, column state", "is not a secret"),
        ("state\n1_0\n", PLANE, {}, "line 2, column state", "is not a secret"),
        ("", PLANE, {}, "t.csv, line 1", "is blank"),
        ("x,y\n", PLANE, {}, "t.csv", "contains no steps"),
        ("state\n\n2\n", PLANE, {}, "line 2, column state", "is empty"),
        ("latitude,latitude,longitude\n1,2,3\n", BOX, {}, "t.csv, line 1", "repeats the column"),
        ("state,x,y\n1,2,3\n", PLANE, {}, "t.csv", "in several ways"),
        ("step,state,label\n0,0,3\n", PLANE, {"user": False}, "t.csv", "in several ways"),
        ("x,y\n1,2\n1,2,3\n", PLANE, {}, "t.csv, line 3", "found 3; must be 2"),
        ("x,y\n1,two\n", PLANE, {}, "line 2, column y", "is not a number"),
        ("x,y\n1,1\n\n2,2\n", PLANE, {}, "line 3", "is blank"),
        ("x,y\n1,nan\n", PLANE, {}, "line 2, column y", "must be a finite number"),
        ("x,y\n1,4\n", PLANE, {}, "line 2", "must be x from 0 to 8, y from 0 to 3"),
        ("x;y\n1;4\n", PLANE, {}, "t.csv", "set delimiter in [files]"),
        ("latitude,longitude\n40,-74.1\n", BOX, {}, "line 2", "latitude from 40 to 41, longitude from -74 to -73"),
        ("latitude,longitude\n95,-74\n", BOX, {}, "line 2, column latitude", "between -90 and 90"),
        ("latitude,longitude\n40,-74\n", PLANE, {}, "t.csv", "coordinates that the domain does not have"),
        ("x,y\n1,4\n", NAMES, {}, "t.csv", "coordinates that the domain does not have"),
        ("state,day\n1,4\n", NAMES, {}, "release.user", "t.csv has further columns"),
        ("state,day\n1,4\n", NAMES, {"user": True}, "release.user", "cannot be true"),
        ("state,day\n1,4\n", NAMES, {"user": "who"}, "release.user", "is not a column of"),
        ("state,day\n1,4\n", NAMES, {"time": "at"}, "release.time", "is not a column of"),
        ("state\n1\n", NAMES, {"state": "where"}, "release.state", "is not a column of"),
        ("state,who\n1,ann\n1,bob\n", NAMES, {"user": "who"}, "t.csv, column who", "several people; found 2 of them"),
        ("state,who\n1,ann\n1, \n", NAMES, {"user": "who"}, "t.csv, line 3, column who", "is empty"),
        ("state,who\n1,\n1,\n", NAMES, {"user": "who"}, "t.csv, line 2, column who", "is empty"),
        ("state,lat\n1,4\n", NAMES, {"state": "state", "latitude": "lat"}, "release.state", "cannot be combined"),
        ("state,time\n1,08:00\n", NAMES, {}, "line 2, column time", "is not a time"),
        ("state,time\n1,1700000000\n", NAMES, {}, "line 2, column time", "set time_format"),
    ],
)
def test_wrong_traces(steps, text, domain, keys, path, words):
    with pytest.raises(InputError) as caught:
        steps(text, domain, **keys)
    assert caught.value.path.endswith(path), caught.value
    assert words.lower() in str(caught.value).lower()


def test_wrong_layouts():
    """Each key of [files] is checked where it stands."""
    values = {
        "delimiter": ["", ";;", "a", "1", '"', "\n", 3],
        "decimal": ["", ";", "..", 0],
        "encoding": ["", "utf-9", "zip", "rot13", 8],
        "time_format": ["", "iso", "%d.%m", "%Y%Y", "unix-min", 7],
        "time_zone": ["", "Zurich", "+25:00", "../UTC", 2],
        "missing": [-0.1, 1.5, float("nan"), "5 %", True],
        "header": [True],
    }
    mistakes = [
        Mistake(f"{key} = {value!r}", lambda key=key, value=value: layout(key, value), f"files.{key}")
        for key, listed in values.items()
        for value in listed
    ]
    assert len(mistakes) > 20
    assert_refused(mistakes)


def layout(key, value):
    from mechdesign.specification._specification import from_tables

    privacy = [{"kind": "metric", "epsilon": 1, "distance": "hamming"}]
    data = {"domain": {"labels": ["a", "b"]}, "prior": {"uniform": True}, "cost": {"distance": "hamming"}}
    return from_tables({**data, "privacy": privacy, "files": {key: value}})


def test_places_are_those_of_the_check_ins(data_folder, steps):
    """A trace is mapped to the same cells as the data of a prior."""
    domain = Domain.geographic_grid(20, 15, 40.5, 41.0, -74.3, -73.6)
    found = read_checkins(data_folder / "foursquare_nyc_marc/specific_train.csv", "label", "lat", "lon")[0]
    rows = zip(found.latitude.tolist(), found.longitude.tolist(), strict=True)
    text = "latitude,longitude\n" + "".join(f"{a!r},{o!r}\n" for a, o in rows)
    assert steps(text, domain).states.tolist() == np.concatenate(to_grid([found], domain).cells).tolist()


def test_a_state_that_is_missing_in_parquet_is_refused(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"state": ["home", "work", None]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet, row 2, column state: is empty"):
        read_steps(tmp_path / "t.parquet", ReleaseTable(), Source(), NAMES)


def test_tables_in_memory_are_read_as_declared_too():
    days = np.array(["2026-01-02", "2026-01-01"], dtype="datetime64[s]")
    source = Source(("release",)).with_layout(FilesTable(time_format="unix"))
    for times in (days, days.astype(np.int64), [str(each) for each in days.astype(np.int64)]):
        found = read_steps({"state": [0, 1], "time": times}, ReleaseTable(), source, PLANE)
        assert found.states.tolist() == [1, 0]
        assert found.times.tolist() == sorted(days.tolist())


def test_a_data_frame_is_a_trace():
    days = np.array(["2026-01-02", "2026-01-01"], dtype="datetime64[s]")
    frame = pytest.importorskip("pandas").DataFrame({"x": [1.5, 7.0], "y": [0.5, 2.5], "time": days})
    assert read_steps(frame, ReleaseTable(), Source(), PLANE).states.tolist() == [11, 0]
