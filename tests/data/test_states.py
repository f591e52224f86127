from __future__ import annotations

import numpy as np
import pytest
from rows import each_row

from mechdesign.data._movement import read_checkins
from mechdesign.data._states import as_states, as_steps, read_states
from mechdesign.data.trajectories import to_grid
from mechdesign.errors import InputError
from mechdesign.model._domain import Domain

BOX = Domain.geographic_grid(4, 3, 40, 41, -74, -73)
PLANE = Domain.grid(4, 3, 8.0, 3.0)
NAMES = Domain.from_labels(["home", "work", "7", "state"])
TOWNS = Domain.from_coordinates([1.0, 2.0, 60.0], [2.0, 3.0, 4.0])
PLACES = Domain.from_points([[0, 0], [1, 0], [5, 5]])


@pytest.fixture
def states(tmp_path):
    def read(text, domain, **options):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        return read_states(tmp_path / "t.csv", domain, **options).tolist()

    return read


@each_row(
    ("text", "domain", "expected"),
    [
        ("\n3\n11\n0\n\n", PLANE, [3, 11, 0]),
        ("home\nwork\n1\n", NAMES, [0, 1, 1]),
        # A label has priority over an index, and over the name of a column.
        ("7\nstate\n", NAMES, [2, 3]),
        ("time,State\n9:00,work\n9:05, home\n", NAMES, [1, 0]),
        ("state\n2\n", PLANE, [2]),
        ("x,y\n0,0\n2,1\n8,3\n", PLANE, [0, 5, 11]),
        ("y,x\n2.9,0\n", PLANE, [8]),
        ("x,y\n3,4\n.4,0\n.5,0\n", PLACES, [2, 0, 0]),
        ("lat,lon,at\n40.1,-73.9,3\n41,-73,4\n", BOX, [0, 11]),
        ("Longitude,Latitude\n-73.2,40.1\n", BOX, [3]),
        ("lat,lng\n59,4.2\n1.2,2.1\n", TOWNS, [2, 0]),
    ],
)
def test_states(states, text, domain, expected):
    assert states(text, domain) == expected


def test_a_text_is_no_index_where_all_labels_are_numbers(states):
    # Labels are house numbers: a file of indices would be read as a mixture of labels and indices.
    houses = Domain.from_labels(["1", "2", "3"])
    assert states("3\n1\n", houses) == [2, 0]
    with pytest.raises(InputError, match=r"line 1: is not a label; it is not read as an index"):
        states("0\n1\n2\n", houses)
    # An integer is always an index.
    assert as_states([0, np.int64(2), "2"], houses).tolist() == [0, 2, 1]


def test_other_delimiters(states):
    assert states("x;y\n1;1\n", PLANE, delimiter=";") == [4]


@each_row(
    ("text", "domain", "path", "words"),
    [
        ("0\n12\n", PLANE, "line 2", "found 99 (9 stands for any digit); must be a label, or an index from 0 to 11"),
        ("home\npub\n", NAMES, "line 2", "found aaa"),
        ("home\n-1\n", NAMES, "line 2", "found -9"),
        ("1_0\n", PLANE, "line 1", "found 9_9"),
        ("", PLANE, "t.csv", "is empty"),
        ("x,y\n", PLANE, "t.csv", "contains no steps"),
        ("state\n", PLANE, "t.csv", "contains no steps"),
        ("a,b\n1,2\n", PLANE, "line 1", "has no column of states"),
        ("lat,latitude,lon\n1,2,3\n", BOX, "line 1", "has no column of states"),
        ("x,y\n1,2\n1,2,3\n", PLANE, "line 3", "found 3; must be 2"),
        ("x,y\n1,two\n", PLANE, "line 2, column y", "found aaa"),
        ("3\n\n11\n0\n", PLANE, "line 2", "is blank; must be a state in every line. Delete the line if no state"),
        ("x,y\n1,1\n\n\n2,2\n", PLANE, "line 3", "is blank"),
        ("state\n\n2\n", PLANE, "line 2", "is blank"),
        ("x,y\n1,nan\n", PLANE, "line 2, column y", "found aaa; must be a finite number"),
        ("x,y\n1,4\n", PLANE, "line 2", "found (9.9, 9.9); must be x from 0 to 8, y from 0 to 3"),
        ("lat,lon\n40,-74.1\n", BOX, "line 2", "must be latitude from 40 to 41, longitude from -74 to -73"),
        ("lat,lon\n40,-74\n", PLANE, "line 1", "found latitude and longitude"),
        ("x,y\n1,4\n", NAMES, "line 1", "found x and y"),
    ],
)
def test_wrong_traces_name_the_line(states, text, domain, path, words):
    with pytest.raises(InputError) as raised:
        states(text, domain)
    assert raised.value.path.endswith(path)
    assert words in str(raised.value)


def test_missing_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: cannot be opened"):
        read_states(tmp_path / "none.csv", PLANE)


def test_places_are_those_of_the_check_ins(data_folder, tmp_path):
    """A trace is mapped to the same cells as the data of a prior."""
    domain = Domain.geographic_grid(20, 15, 40.5, 41.0, -74.3, -73.6)
    found = read_checkins(data_folder / "foursquare_nyc_marc/specific_train.csv", "label", "lat", longitude="lon")[0]
    rows = zip(found.latitude.tolist(), found.longitude.tolist(), strict=True)
    (tmp_path / "t.csv").write_text("lat,lon\n" + "".join(f"{a!r},{o!r}\n" for a, o in rows))
    expected = np.concatenate(to_grid([found], domain).cells)
    assert read_states(tmp_path / "t.csv", domain).tolist() == expected.tolist()


@each_row("values", [["home", "work", None], ["home", None, None], ["home", None, "work"], [None, "home"]])
def test_a_state_that_is_missing_in_parquet_is_refused_also_in_the_last_row(tmp_path, values):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"state": values}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=rf"t\.parquet, line {values.index(None) + 2}: is not a secret.*an empty cell"):
        read_states(tmp_path / "t.parquet", Domain.from_labels(["home", "work"]))
    parquet.write_table(pa.table({"state": ["home", "work"]}), tmp_path / "t.parquet")
    assert read_states(tmp_path / "t.parquet", Domain.from_labels(["home", "work"])).tolist() == [0, 1]


def test_a_trace_of_several_people_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    for header in ("User_ID,state", "time,uid,x,y"):
        cells = "2021-03-01T08:0{0}Z,{1},1,1" if "x" in header else "{1},0"
        for names, refused in ((("ann", "ann", "ann"), False), (("ann", "bob", "ann"), True)):
            lines = [cells.format(step, name) for step, name in enumerate(names)]
            path.write_text("\n".join([header, *lines, ""]))
            if not refused:
                assert len(as_steps(path, PLANE).states) == 3
                continue
            with pytest.raises(InputError, match="names several people; found 2 of them"):
                as_steps(path, PLANE)


def test_places_that_are_not_read_beside_states_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("state,x,y\n0,7.5,2.5\n1,0.5,0.5\n")
    found = as_steps(tmp_path / "t.csv", PLANE)
    assert found.states.tolist() == [0, 1]
    assert "states are read from the column state; x and y are not read" in found.notes
    (tmp_path / "t.csv").write_text("state,x\n0,7.5\n")
    assert not any("not read;" in note or "x and y" in note for note in as_steps(tmp_path / "t.csv", PLANE).notes)
