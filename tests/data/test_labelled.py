"""Files with a row for each secret are matched by a column of labels or by order, with a note."""

from __future__ import annotations

import pytest
from rows import each_row

from mechdesign.data._labels import read_matched
from mechdesign.errors import InputError

LABELS = ("A", "B", "C")
IDS = ("30", "10", "20")
POSITIONS = ("0", "1", "2")


@pytest.fixture
def matched(tmp_path):
    def read(text, labels=LABELS, label=None):
        (tmp_path / "counts.csv").write_text(text, encoding="utf-8")
        return read_matched(tmp_path / "counts.csv", ["n"], labels, label)

    return read


BY_POSITION = "no column of labels"


@each_row(
    ("text", "labels", "label", "counts", "said"),
    [
        ("place,n\nC,3\nB,2\nA,1\n", LABELS, None, "123", "by the column place"),
        ("place,n\nC,3\nB,2\nA,1\n", LABELS, "place", "123", "by the column place"),
        ("place,n\nC,3\nB,2\nA,1\n", LABELS, "", "321", BY_POSITION),
        ("n,place\n3,C\n1,A\n2,B\n", LABELS, None, "123", "by the column place"),
        ("n\n3\n2\n1\n", LABELS, None, "321", BY_POSITION),
        ("n,city\n3,x\n2,y\n1,x\n", LABELS, None, "321", BY_POSITION),
        ("id,n\n10,2\n20,3\n30,1\n", IDS, None, "123", "by the column id"),
        ("id,n\n10,2\n20,3\n30,1\n", IDS, "id", "123", "by the column id"),
        # Repeated numbers are not labels, and neither are a few labels among other texts.
        ("size,n\n10,1\n10,2\n20,3\n", IDS, None, "123", BY_POSITION),
        ("size,n\n10,1\n11,2\n12,3\n", IDS, None, "123", BY_POSITION),
        ("cell,n\n0,1\n1,2\n2,3\n", POSITIONS, None, "123", "by the column cell"),
        ("cell,n\n2,3\n1,2\n0,1\n", POSITIONS, "cell", "123", "by the column cell"),
        ("cell,n\n2,3\n1,2\n0,1\n", POSITIONS, "", "321", BY_POSITION),
        ("rank,n\n1,1\n2,2\n3,3\n", POSITIONS, None, "123", BY_POSITION),
        ("cell,n\n0.0,1\n1.0,2\n2.0,3\n", POSITIONS, None, "123", BY_POSITION),
        ("place,n\nc,3\nb,2\na,1\n", LABELS, "", "321", BY_POSITION),
        # If the column is named, other columns do not matter.
        ("place,near,n\nC,A,3\nA,B,1\nB,C,2\n", LABELS, "place", "123", "by the column place"),
    ],
)
def test_rows_are_matched_by_labels_or_taken_in_order(matched, text, labels, label, counts, said):
    found = matched(text, labels, label)
    assert "".join(found.columns["n"]) == counts
    assert f"counts.csv: {'rows are matched' if 'by the' in said else 'it has no column'}" in found.note
    assert said in found.note
    lines = text.splitlines()
    head = lines[0].split(",").index("n")
    assert [lines[row].split(",")[head] for row in found.rows] == list(counts)


@each_row(
    ("text", "labels", "label", "words"),
    [
        ("place,n\nA,1\nB,2\nD,3\n", LABELS, None, "row 3, column place is not the label"),
        ("place,n\nA,1\nB,2\nD,3\n", LABELS, "place", "row 3, column place is not the label"),
        ("place,n\na,1\nb,2\nc,3\n", LABELS, "place", "row 1, column place is not the label"),
        ("place,n\nA,1\nB,2\nB,3\n", LABELS, None, "row 3, column place repeats the label of row 2"),
        ("place,n\nA,1\nB,2\n", LABELS, None, "has no row for the secret C"),
        ("place,n\nA,1\nB,2\nC,3\nA,4\n", LABELS, None, "row 4, column place repeats"),
        ("place,n\nA,1\nB,2\nC,3\nD,4\n", LABELS, "place", "row 4, column place is not the label"),
        ("id,n\n10,2\n20,3\n31,1\n", IDS, None, "row 3, column id is not the label"),
        ("id,n\n0,2\n1,3\n2,1\n", IDS, "id", "row 1, column id is not the label"),
        ("rank,n\n1,1\n2,2\n3,3\n", POSITIONS, "rank", "row 3, column rank is not the label"),
        ("place,near,n\nC,A,3\nA,B,1\nB,C,2\n", LABELS, None, "several columns of labels, place and near"),
        ("rank,n\n2,1\n0,2\n1,3\n", POSITIONS, None, "column rank that may number the secrets"),
        # Labels in another spelling, and row numbers from 1, are not matched by order.
        ("place,n\nc,1\nb,2\na,3\n", LABELS, None, "column place that may name the secrets"),
        ("place,n\n C,1\nB ,2\nA,3\n", LABELS, None, "column place that may name the secrets"),
        ("place,n\nC,1\nX,2\nY,3\n", LABELS, None, "column place that may name the secrets"),
        ("id,n\n10.0,2\n20.0,3\n30.0,1\n", IDS, None, "column id that may name the secrets"),
        ("id,n\n010,2\n020,3\n030,1\n", IDS, None, "column id that may name the secrets"),
        ("cell,n\n3,1\n2,2\n1,3\n", POSITIONS, None, "column cell that may name the secrets"),
        ("cell,n\n2.0,1\n1.0,2\n0.0,3\n", POSITIONS, None, "column cell that may name the secrets"),
        ("n\n1\n2\n3\n", LABELS, "place", "has no column 'place'"),
        ("place,place,n\nA,A,1\nB,B,2\nC,C,3\n", LABELS, "place", "more than one column 'place'"),
        ("m\n1\n2\n3\n", LABELS, None, "has no column 'n'"),
        ("", LABELS, None, "is empty"),
    ],
)
def test_the_first_mismatch_is_refused(matched, text, labels, label, words):
    with pytest.raises(InputError) as caught:
        matched(text, labels, label)
    assert words in str(caught.value).replace(": ", " ")


@each_row(
    ("text", "labels", "words"),
    [
        ("cell,n\n3,9\n2,4\n1,1\n", POSITIONS, "may name the secrets"),
        ("place,n\nc,3\na ,1\nB,2\n", LABELS, "may name the secrets"),
    ],
)
def test_columns_that_nearly_name_the_secrets_are_refused_in_another_order(matched, text, labels, words):
    with pytest.raises(InputError, match=words):
        matched(text, labels)
    assert BY_POSITION in matched(text, labels, "").note
