"""The layout of text files: recognised settings, ambiguous settings, and settings by the user."""

from __future__ import annotations

import csv
import gc
import gzip
import threading
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest
from mechdesign.data._labels import Names
from mechdesign.data._maps import read_places
from mechdesign.data._matrices import read_matrix
from rows import each_row

from mechdesign.data import _layout as layout
from mechdesign.data._layout import FileLayout, current_layout, mark_of, reading_as
from mechdesign.data._movement import read_checkins
from mechdesign.data._movement import read_places as read_keys
from mechdesign.data._states import read_states
from mechdesign.data._text import read_columns, read_numbers, read_rows
from mechdesign.data.budgets import read_budgets
from mechdesign.errors import InputError, RecognisedWarning
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES

ROWS = "user;lat;lon\nann;46,9512;7,44\nbob;46,96;7,4512\n"


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def told(read: object) -> tuple[object, list[str]]:
    """Return the result of a function, and the settings that it warns to have recognised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read()  # type: ignore[operator]
    assert {each.category for each in caught} <= {RecognisedWarning}
    return found, [str(each.message).partition("t.csv")[2] for each in caught]


@each_row("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_recognised_and_told(tmp_path: Path, delimiter: str) -> None:
    path = written(tmp_path, "user,lat,lon\nann,46.5,7.5\n".replace(",", delimiter))
    for read in (
        lambda: read_numbers(path, "lat").tolist(),
        lambda: read_places(path, DEGREES)[0].tolist(),
        lambda: read_checkins(path, "user", "lat", longitude="lon")[0].latitude.tolist(),
        lambda: [lat for lat, _ in read_keys(path, "user", "lat", longitude="lon").values()],
    ):
        found, notes = told(read)
        assert found == [46.5]
        assert any("separated by" in note for note in notes) is (delimiter != ",")
        with reading_as(delimiter=delimiter):
            assert told(read) == ([46.5], [])
    with reading_as(delimiter="#"), pytest.raises(InputError, match="no column"):
        read_numbers(path, "lat")


def test_commas_are_taken_wherever_they_suit(tmp_path: Path) -> None:
    path = written(tmp_path, "a;b;c,n\n1;2;3,4\n")
    assert told(lambda: read_columns(path, ["n", "a;b;c"])) == ({"n": ["4"], "a;b;c": ["1;2;3"]}, [])
    labels = written(tmp_path, "A;B\nC\n", "states.csv")
    assert told(lambda: read_states(labels, Domain.from_labels(["C", "A;B"])).tolist()) == ([1, 0], [])


@each_row("first", ["sep=;\n", "SEP=;\n", "sep=;\r\n", '"sep=;"\r', "sep=|\n", "sep=\t\n"])
def test_a_first_line_for_spreadsheets_is_skipped(tmp_path: Path, first: str) -> None:
    sign = first.strip('"\r\n')[-1]
    path = written(tmp_path, first + "user;lat\nann;1.5\nbob;x\n".replace(";", sign))
    found, notes = told(lambda: read_columns(path, ["lat"]))
    assert found == {"lat": ["1.5", "x"]}
    assert len(notes) == 1
    assert "its first line says" in notes[0]
    with pytest.warns(RecognisedWarning), pytest.raises(InputError, match="row 2, column lat"):
        read_numbers(path, "lat")
    matrix = written(tmp_path, first + "0.5;0.5\n0;1\n".replace(";", sign), "m.csv")
    assert read_matrix(matrix, sign).shape == (2, 2)


def test_only_a_first_line_is_one_for_spreadsheets(tmp_path: Path) -> None:
    path = written(tmp_path, "a\nsep=;\n")
    assert told(lambda: read_columns(path, ["a"])) == ({"a": ["sep=;"]}, [])
    assert told(lambda: read_columns(written(tmp_path, "sep=ab\n1\n"), ["sep=ab"])) == ({"sep=ab": ["1"]}, [])


@each_row("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-8"])
@each_row("packed", [False, True])
def test_encodings_by_their_byte_order_mark(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = "Ort,lat,lon\nZürich 城,46.5,7.5\n" + "b,1,2\n" * 3000
    content = text.encode(encoding)
    path = written(tmp_path, gzip.compress(content) if packed else content)
    found, notes = told(lambda: read_columns(path, ["Ort"])["Ort"])
    assert isinstance(found, list)
    assert (found[0], len(found)) == ("Zürich 城", 3001)
    assert any("byte order mark" in note for note in notes) is (encoding in ("utf-16", "utf-32"))


@each_row(("encoding", "text"), [("gbk", "城市"), ("latin-1", "Zürich"), ("utf-16-le", "Zürich")])
def test_other_encodings_are_asked_for(tmp_path: Path, encoding: str, text: str) -> None:
    path = written(tmp_path, f"{text},n\nx,1\n".encode(encoding))
    with pytest.raises(InputError, match=r"(?i)encoding") as caught:
        read_numbers(path, "n")
    assert "LATIN1" not in str(caught.value)
    with reading_as(encoding=encoding):
        assert read_columns(path, [text, "n"]) == {text: ["x"], "n": ["1"]}


def test_the_mark_itself_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, "n\n1\n".encode("utf-16"))
    with reading_as(encoding="utf-16-le"):
        assert read_numbers(path, "n").tolist() == [1]


@each_row("content", [b"\xff\xfea", b"\xff\xfe\x00\xd8", "n\n1\n".encode("utf-16")[:-1]])
def test_damaged_utf_16_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.warns(RecognisedWarning), pytest.raises(InputError, match="is not a text in"):
        read_numbers(written(tmp_path, content), "n")


def test_decimal_commas_of_files_of_numbers(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecognisedWarning)
        assert read_budgets(written(tmp_path, "step;epsilon\n0;0,5\n1;0,25\n")).tolist() == [0.5, 0.25]
        with pytest.raises(InputError, match=r"line 2.*Set delimiter"):
            read_numbers(written(tmp_path, "weight\n1,5\n2\n"), "weight")
        with reading_as(delimiter=";"):
            assert read_numbers(written(tmp_path, "weight\n1,5\n2\n"), "weight").tolist() == [1.5, 2]
        for text in ("0,5;0,5\n0,25;0,75\n", "0,5\t0,5\n0,25\t0,75\n", "0,5 0,5\n0,25 0,75\n"):
            assert read_matrix(written(tmp_path, text)).tolist() == [[0.5, 0.5], [0.25, 0.75]]
        grid = Domain.grid(2, 1, 2, 1, "km")
        assert read_states(written(tmp_path, "x;y\n0,5;0,5\n1,5;0,25\n"), grid).tolist() == [0, 1]


@each_row(
    ("texts", "largest", "sign"),
    [
        (["1.5", "2"], np.inf, "."),
        (["1,5", "2"], np.inf, ","),
        (["0,125"], np.inf, ","),
        (["46,951"], 90, ","),
        (["1,234", "1,2345"], np.inf, ","),
        (["-1,5e3", ""], np.inf, ","),
        (["NaN", "inf"], np.inf, "."),
        (["1,234,567"], np.inf, "."),
    ],
)
def test_the_sign_before_decimals(texts: list[str], largest: float, sign: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecognisedWarning)
        assert mark_of(texts, "t.csv, column a", largest).sign == sign


@each_row("texts", [["1,234"], ["12,345", "1,000"], ["1,5", "1.5"], ["-1,234"]])
def test_what_may_part_thousands_is_asked_for(texts: list[str]) -> None:
    with pytest.raises(InputError, match=r'column a.*Set decimal = ","') as caught:
        mark_of(texts, "t.csv, column a")
    assert "234" not in str(caught.value)
    with reading_as(decimal="."):
        assert mark_of(texts, "t.csv, column a").sign == "."
    with reading_as(decimal=","):
        if "1.5" in texts:
            with pytest.raises(InputError, match="has a decimal point"):
                mark_of(texts, "t.csv, column a")
        else:
            assert mark_of(texts, "t.csv, column a").plain("1,234") == "1.234"


def test_letters_and_marks_are_joined(tmp_path: Path) -> None:
    apart = unicodedata.normalize("NFD", "Zürich")
    path = written(tmp_path, f"{apart},n\n{apart},1\nZürich,2\n")
    for name in ("Zürich", apart):
        found, notes = told(lambda name=name: read_columns(path, [name]))
        assert found == {name: ["Zürich", "Zürich"]}
        assert len(notes) == 1
        assert "NFC" in notes[0]
    assert [
        Names.of(labels).find_in_file(name, "") for labels in (["Zürich"], [apart]) for name in (apart, "Zürich")
    ] == [0] * 4
    users = written(tmp_path, f"user,lat,lon\n{apart},1.5,2\nZürich,1,2\n")
    with pytest.warns(RecognisedWarning):
        assert [len(trace) for trace in read_checkins(users, "user", "lat", longitude="lon")] == [2]
    with pytest.warns(RecognisedWarning):
        assert read_states(written(tmp_path, f"Bern\n{apart}\n"), Domain.from_labels(["Bern", apart])).tolist() == [
            0,
            1,
        ]


def test_wide_fields_are_read_and_the_limit_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Readers that an earlier test abandoned keep the limit raised until they are collected.
    gc.collect()
    limit = csv.field_size_limit()
    wide = ", ".join(["7.4 46.9"] * 20_000)
    path = written(tmp_path, f'n,route\n1,"{wide}"\n2,x\n3,"{wide}\n{wide}"\n')
    assert read_numbers(path, "n").tolist() == [1, 2, 3]
    threads = [threading.Thread(target=read_columns, args=(path, ["route"])) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert csv.field_size_limit() == limit
    # An open quote makes a field as long as a line may be.
    monkeypatch.setattr(layout, "_MAX_FIELD_BYTES", 2**18)
    with pytest.raises(InputError, match=r"field larger than field limit.*closed quotes"):
        list(read_rows(written(tmp_path, 'n\n"' + ("x" * 99 + "\n") * 2**12 + "y\n"), ","))
    assert csv.field_size_limit() == limit


def test_columns_of_parquet_that_hold_no_values_are_left_out(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {
        "lat": [1.5, 2.5],
        "lon": [3.0, 4.0],
        "geometry": [b"\x01\xff", b"\x00"],
        "tags": [["a"], []],
        "key": arrow.array([b"a", b"b"], arrow.binary()),
        "id": arrow.array([b"\xff" * 4, b"b" * 4], arrow.binary(4)),
        "at": [{"x": 1}, {"x": 2}],
    }
    path = tmp_path / "t.csv"
    parquet.write_table(arrow.table(table), path)
    found, notes = told(lambda: read_columns(path, ["lat", "key"]))
    assert found == {"lat": ["1.5", "2.5"], "key": ["a", "b"]}
    assert notes == [": columns that contain lists, structures or bytes are left out: geometry, tags, id, at"]
    for name in ("geometry", "tags", "id", "at"):
        with (
            pytest.warns(RecognisedWarning),
            pytest.raises(InputError, match=f"no plain values in the column '{name}'"),
        ):
            read_columns(path, [name])
    with pytest.warns(RecognisedWarning), pytest.raises(InputError, match="no column 'none'"):
        read_columns(path, ["none"])


NUMBERED = {
    "header": "0,1,2\n0.5,0.25,0.25\n0.25,0.5,0.25\n0.25,0.25,0.5\n",
    "numbered": "1,0.5,0.25\n2,0.25,0.5\n3,0.5,0.5\n",
}


@each_row("key", NUMBERED)
def test_what_may_number_a_matrix_is_asked_about(tmp_path: Path, key: str) -> None:
    path = written(tmp_path, NUMBERED[key])
    with pytest.raises(InputError, match=f"may number.*{key} = true.*--no-{key}"):
        read_matrix(path)
    with reading_as(**{key: False}):  # type: ignore[arg-type]
        assert read_matrix(path).shape == (3 + (key == "header"), 3)
    with reading_as(**{key: True}):  # type: ignore[arg-type]
        assert read_matrix(path).shape == (3, 3 - (key == "numbered"))
    # The matrix has the expected number of rows or columns.
    assert read_matrix(path, shape=(4 if key == "header" else None, 3)).shape[1] == 3


@each_row(
    "text",
    [
        ",0,1\n0,0.5,0.5\n1,0.25,0.75\n",
        '"","V1","V2"\n"1",0.5,0.5\n"2",0.25,0.75\n',
        "state;a;b\na;0,5;0,5\nb;0,25;0,75\n",
    ],
)
def test_names_of_rows_and_columns_are_asked_about(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match="--header, --numbered"):
        told(lambda: read_matrix(path))
    with reading_as(header=True, numbered=True, decimal="," if ";" in text else None):
        assert read_matrix(path).tolist() == [[0.5, 0.5], [0.25, 0.75]]


@each_row(
    "text",
    [
        "0,1,2\n1,0,1\n2,1,0\n",
        "0,1\n1,0\n",
        "0,0\n1,0\n2,0\n3,1\n",
        "0,1\n1,2\n2,3\n",
        "0,1,3\n5,6,7\n",
        "2,3,4\n5,6,8\n9,1,1\n",
    ],
)
def test_matrices_that_number_nothing(tmp_path: Path, text: str) -> None:
    assert len(read_matrix(written(tmp_path, text))) == text.count("\n")


@each_row(
    ("key", "value"),
    [
        ("delimiter", ""),
        ("delimiter", ";;"),
        ("delimiter", "\n"),
        ("delimiter", '"'),
        ("decimal", ";"),
        ("decimal", ""),
        ("encoding", "none"),
        ("encoding", "rot13"),
        ("encoding", "base64"),
        ("encoding", ""),
    ],
)
def test_wrong_layouts_are_refused(key: str, value: str) -> None:
    with pytest.raises(InputError, match=key), reading_as(**{key: value}):  # type: ignore[arg-type]
        pass
    assert current_layout() == FileLayout()


def test_a_delimiter_is_no_sign_of_decimals() -> None:
    with pytest.raises(InputError, match="also the delimiter"):
        FileLayout(delimiter=",", decimal=",")
