"""Labels and positions: a string is a label, an integer is a position, and ambiguous names are refused."""

from __future__ import annotations

import pytest
from rows import each_row

from mechdesign.data._labels import Names
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
    assert names.find_in_specification(name, "edges[0][0]") == expected
    assert names.find_in_python(name, "trace[0]") == expected


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
        (HOUSES, 3, "may be meant as a label"),
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
        names.find_in_specification(name, "edges[0]")


def test_an_integer_in_python_is_a_position_whatever_the_labels_are():
    assert [HOUSES.find_in_python(name, "trace[0]") for name in (0, "0", 3, "3")] == [0, 3, 3, 0]
    for wrong in (4, -1, "4"):
        with pytest.raises(InputError, match="is not a secret"):
            HOUSES.find_in_python(wrong, "trace[0]")


@each_row(
    ("names", "text", "expected"),
    [(PLAIN, "work", 1), (PLAIN, "1", 1), (NUMBERED, "1", 1), (HOUSES, "3", 0), (FEW, "0", 1)],
)
def test_a_text_in_a_file_is_a_label_or_a_number(names, text, expected):
    assert names.find_in_file(text, "line 1") == expected


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
    ],
)
def test_other_texts_in_a_file_are_refused(names, text, words):
    with pytest.raises(InputError, match=rf"^line 1: .*{words}"):
        names.find_in_file(text, "line 1")


def test_a_number_that_spells_the_label_of_another_secret_is_no_position():
    mixed = Names.of(["A", "2", "1", "D"])
    assert [mixed.find_in_file(text, "p") for text in ("A", "2", "1", "0", "3", "03")] == [0, 1, 2, 0, 3, 3]
    for text in ("01", "002"):
        with pytest.raises(InputError, match="may be meant as the label of one secret or as the index of another"):
            mixed.find_in_file(text, "--secret")


def test_labels_that_are_the_same_once_letters_are_joined_are_refused():
    with pytest.raises(InputError, match=r"labels\[2\]: repeats labels\[0\]"):
        Names.of(["\u00e9", "B", "e\u0301"])
    assert Names.of(["e\u0301", "e"]).find_in_file("\u00e9", "p") == 0
