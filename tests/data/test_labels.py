"""A string is a label and an integer a position; rows of files are matched by the declared column of labels."""

from __future__ import annotations

import pytest
from refusals import Mistake, assert_refused
from rows import each_row

from mechdesign.data.labels import Names, read_matched
from mechdesign.data.table import Layout
from mechdesign.data.trajectories import find_state
from mechdesign.errors import InputError

PLAIN = Names.of(["home", "work", "pub"])
NUMBERED = Names.of(["0", "1", "2"])
HOUSES = Names.of(["3", "2", "1", "0"])
FEW = Names.of(["home", "0", "7"])


@each_row(
    ("names", "name", "expected"),
    [
        (PLAIN, "work", 1),
        (PLAIN, 1, 1),
        (NUMBERED, "1", 1),
        (NUMBERED, 1, 1),
        (HOUSES, "3", 0),
        (FEW, "0", 1),
        (FEW, 2, 2),
    ],
)
def test_a_text_is_a_label_and_an_integer_a_position(names, name, expected):
    assert names.find(name, "edges[0][0]") == expected
    assert find_state(names, name, "trace[0]") == expected


@each_row(
    ("names", "name", "words"),
    [
        (PLAIN, "1", "is not a secret.*An index is written without quotes"),
        (PLAIN, "pubs", "must be one of home, work, pub"),
        (PLAIN, 3, "an index from 0 to 2"),
        (PLAIN, -1, "an index from 0 to 2"),
        (NUMBERED, 3, "an index from 0 to 2"),
        (NUMBERED, "3", "is not a secret"),
        # Labels are whole numbers, so 0 may mean the label of the last member.
        (HOUSES, 0, "may be meant as a label"),
        (HOUSES, 9, "may be meant as a label"),
        (HOUSES, "9", "is not a secret"),
        (FEW, 0, "may be meant as a label"),
        (Names.of(["1.0", "2.0"]), 1, "may be meant as a label"),
        (Names.of(["-1", "+2"]), 1, "may be meant as a label"),
        (Names.of(["007", "008"]), 0, "may be meant as a label"),
    ],
)
def test_other_names_in_a_specification_are_refused(names, name, words):
    with pytest.raises(InputError, match=rf"^edges\[0\]: .*{words}"):
        names.find(name, "edges[0]")


def test_an_integer_in_python_is_a_position_whatever_the_labels_are():
    assert [find_state(HOUSES, name, "trace[0]") for name in (0, "0", 3, "3")] == [0, 3, 3, 0]
    for wrong in (4, -1, "4"):
        with pytest.raises(InputError, match="is not a secret"):
            find_state(HOUSES, wrong, "trace[0]")


def test_a_text_in_a_file_is_a_label_or_a_number():
    for names, text, expected in (
        (PLAIN, "work", 1),
        (PLAIN, "1", 1),
        (NUMBERED, "1", 1),
        (HOUSES, "3", 0),
        (FEW, "0", 1),
        (Names.of(["e\u0301", "e"]), "\u00e9", 0),
    ):
        assert names.find_text(text, "line 1") == expected
    mixed = Names.of(["A", "2", "1", "D"])
    assert [mixed.find_text(text, "p") for text in ("A", "2", "1", "0", "3", "03")] == [0, 1, 2, 0, 3, 3]


@each_row(
    ("names", "text", "words"),
    [
        (PLAIN, "3", "is not a secret"),
        (PLAIN, "1.0", "is not a secret"),
        (PLAIN, "", "is not a secret"),
        (PLAIN, "١", "is not a secret"),
        (HOUSES, "4", "not read as an index"),
        (HOUSES, "00", "not read as an index"),
        (Names.of(["1.0", "2.0"]), "1", "not read as an index"),
        (Names.of(["-1", "-2"]), "1", "not read as an index"),
        (Names.of(["A", "2", "1", "D"]), "01", "may be meant as the label of one secret or as the index of another"),
    ],
)
def test_other_texts_in_a_file_are_refused_and_not_shown(names, text, words):
    with pytest.raises(InputError, match=rf"^line 1: .*{words}") as caught:
        names.find_text(text, "line 1")
    assert caught.value.value is None


def test_the_ends_of_an_edge_differ():
    assert PLAIN.find_pair("pub", "0", "line 2") == (2, 0)
    for wrong in (("pub", "2"), ("0", "0"), ("pub", "bar")):
        with pytest.raises(InputError, match=r"^line 2(: is a self-loop|, field 2: is not a secret)"):
            PLAIN.find_pair(*wrong, "line 2")


def test_labels_that_are_the_same_once_letters_are_joined_are_refused():
    with pytest.raises(InputError, match=r"labels\[2\]: repeats labels\[0\]"):
        Names.of(["\u00e9", "B", "e\u0301"])


# --- rows of files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def matched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text, label, labels=("A", "B", "C"), **layout):
        (tmp_path / "counts.csv").write_text(text, encoding="utf-8")
        table, rows = read_matched("counts.csv", ["n"], label, labels, Layout(**layout))
        return "".join(table.texts("n")[row] for row in rows)

    return read


@each_row(
    ("text", "label", "counts"),
    [
        ("place,n\nC,3\nB,2\nA,1\n", "place", "123"),
        ("place,n\nC,3\nB,2\nA,1\n", False, "321"),
        ("n,place\n3,C\n1,A\n2,B\n", "place", "123"),
        ("n\n3\n2\n1\n", None, "321"),
        ("n\n3\n2\n1\n", False, "321"),
        # If the column is named, other columns do not matter.
        ("place,near,n\nC,A,3\nA,B,1\nB,C,2\n", "place", "123"),
        ("place,place,n,p\nC,A,3,A\nA,B,1,B\nB,C,2,C\n", "p", "312"),
    ],
)
def test_rows_are_matched_by_the_declared_column_or_taken_in_order(matched, text, label, counts):
    assert matched(text, label) == counts


def test_labels_that_are_numbers_or_positions_are_matched_too(matched):
    assert matched("id,n\n10,2\n20,3\n30,1\n", "id", ("30", "10", "20")) == "123"
    assert matched("cell,n\n2,3\n1,2\n0,1\n", "cell", ("0", "1", "2")) == "123"
    assert matched("cell;n\n2;3\n1;2\n0;1\n", "cell", ("0", "1", "2"), delimiter=";") == "123"


def test_the_first_mismatch_is_refused_by_its_line(matched):
    rows = [
        ("undeclared", "place,n\nC,3\nB,2\nA,1\n", None, "label", "label = false"),
        ("true", "place,n\nC,3\nB,2\nA,1\n", True, "label", "or false"),
        ("no name", "place,n\nC,3\nB,2\nA,1\n", "", "counts.csv, line 1", "no column ''"),
        ("foreign", "place,n\nA,1\nB,2\nD,3\n", "place", "counts.csv, line 4, column place", "is not the label"),
        ("capitals", "place,n\na,1\nB,2\nC,3\n", "place", "counts.csv, line 2, column place", "is not the label"),
        ("padded", "place,n\n A,1\nB,2\nC,3\n", "place", "counts.csv, line 2, column place", "is not the label"),
        ("empty", "place,n\nA,1\n,2\nC,3\n", "place", "counts.csv, line 3, column place", "is not the label"),
        ("position", "place,n\nA,1\n1,2\nC,3\n", "place", "counts.csv, line 3, column place", "is not the label"),
        (
            "repeated",
            "place,n\nA,1\nB,2\nB,3\n",
            "place",
            "counts.csv, line 4",
            "stands in counts.csv, line 3",
        ),
        ("missing", "place,n\nA,1\nB,2\n", "place", "counts.csv, column place", "has no row for 'C'"),
        ("more", "place,n\nA,1\nB,2\nC,3\nA,4\n", "place", "counts.csv, line 5, column place", "repeats 'A'"),
        ("no column", "n\n1\n2\n3\n", "place", "counts.csv, line 1", "no column 'place'"),
        ("repeated column", "place,place,n\nA,A,1\n", "place", "counts.csv, line 1", "repeats the column 'place'"),
        ("no counts", "m\n1\n2\n3\n", None, "counts.csv, line 1", "no column 'n'"),
        ("too few", "n\n1\n2\n", None, "counts.csv", "found 2; must be 3"),
        ("too many", "n\n1\n2\n3\n4\n", False, "counts.csv", "found 4; must be 3"),
        ("ragged", "place,n\nA,1\nB,2,3\nC,3\n", "place", "counts.csv, line 3", "number of fields"),
        ("blank line", "place,n\nA,1\n\nB,2\nC,3\n", "place", "counts.csv, line 3", "is blank"),
        ("semicolons", "place;n\nA;1\nB;2\nC;3\n", "place", "counts.csv, line 1", 'delimiter = ";"'),
        ("nothing", "", "place", "counts.csv, line 1", ""),
    ]
    assert_refused(
        Mistake(name, lambda text=text, label=label: matched(text, label), path, says, InputError)
        for name, text, label, path, says in rows
    )
