"""Tables are read as they are declared, and nothing else is read."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import numpy as np
import pytest

from mechdesign.data.table import Layout, read_table
from mechdesign.errors import InputError
from tests.support.refusals import Mistake, assert_refused


@pytest.fixture
def table(tmp_path):
    def read(content, columns=None, layout=Layout(), name="c.csv"):  # noqa: B008
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(path, columns, layout)

    return read


def test_a_text_has_columns_and_the_line_of_each_row(table):
    found = table('\ufeffuser,note,lat\nada,"two\nlines",46.5\nbob,,47\n\n\n', ["lat", "user"])
    assert dict(found.columns) == {"lat": ("46.5", "47"), "user": ("ada", "bob")}
    assert list(found.lines) == [2, 4]
    assert found.where(1, "lat").endswith("c.csv, line 4, column lat")
    assert found.numbers("lat").tolist() == [46.5, 47.0]


def test_gzip_and_line_breaks_and_encodings(table):
    for content, layout, name in (
        (gzip.compress(b"a,b\r\n1,\xc3\xa9\r\n"), Layout(), "c.csv.gz"),
        (b"a;b\r1;\xe9\r", Layout(delimiter=";", encoding="latin-1"), "c.txt"),
        ("a|b\n1|é\n".encode("utf-16"), Layout(delimiter="|", encoding="utf-16"), "c.dat"),
    ):
        assert dict(table(content, None, layout, name).columns) == {"a": ("1",), "b": ("é",)}, name


def test_numbers_are_finite_and_in_ascii_digits_with_the_declared_sign(table):
    texts = ["1", " -2.5 ", "1e3", "", "1_0", "nan", "inf", "1e999", "٣", "1,5", "0x1"]
    numbers, bad = read_table({"a": texts}).floats("a")
    assert numbers[:3].tolist() == [1, -2.5, 1000]
    assert bad.tolist() == [False] * 3 + [True] * 8
    numbers, bad = read_table({"a": ["1,5", "1.5", "1.000,5"]}, layout=Layout(decimal=",")).floats("a")
    assert (numbers[0], bad.tolist()) == (1.5, [False, True, True])


def test_times_are_exact_and_nothing_is_guessed():
    def nanoseconds(texts, **layout):
        (seconds, rest), bad = read_table({"t": texts}, layout=Layout(**layout)).times("t")
        return [None if b else s * 10**9 + r for s, r, b in zip(seconds.tolist(), rest.tolist(), bad, strict=True)]

    base = int(datetime(2026, 1, 31, 9, 30, tzinfo=UTC).timestamp()) * 10**9
    good = ["2026-01-31 09:30", "2026-01-31T10:30:00.000000001+01:00", "2026-01-31T09:30:00Z", "2026-01-31"]
    assert nanoseconds(good) == [base, base + 1, base, base - 34_200 * 10**9]
    wrong = ["", "20260131", "20260131T0930", "31.01.2026", "2026-02-30", "1769851800", "2026-01-31 09", "now", "NaT"]
    assert nanoseconds(wrong) == [None] * len(wrong)
    assert nanoseconds(["1.5", "-1", "1e3", "x", "nan", "1_0"], time_format="unix") == [
        15 * 10**8, -(10**9), 10**12, None, None, None,
    ]  # fmt: skip
    assert nanoseconds(["1", "1769851800000000001"], time_format="unix-ns") == [1, base + 1]
    assert nanoseconds(["31/01/2026 09:30", "1/31/2026 09:30"], time_format="%d/%m/%Y %H:%M") == [base, None]
    summer = ["2026-03-29 02:30", "2026-10-25 02:30", "2026-01-31 10:30"]
    assert nanoseconds(summer, time_zone="Europe/Zurich") == [None, None, base]
    array = np.array(["1969-12-31T23:59:59.5", "NaT", "2026-01-31T09:30"], dtype="datetime64[ns]")
    assert nanoseconds(array) == [-5 * 10**8, None, base]
    assert nanoseconds(array, time_zone="Europe/Zurich")[2] == base - 3600 * 10**9


def test_what_does_not_fit_is_refused_with_the_line_and_the_key(table, tmp_path):
    cases = [
        ("ragged", "a,b\n1,2\n3\n", "line 3", "delimiter"),
        ("too many fields", "a,b\n1,2,3\n", "line 2", "delimiter"),
        ("blank between", "a,b\n1,2\n\n3,4\n", "line 3", "blank"),
        ("blank first", "\na,b\n1,2\n", "line 1", "header"),
        ("empty", "", "line 1", "header"),
        ("repeated", "a,a\n1,2\n", "line 1", "repeats"),
        ("no column", "c,d\n1,2\n", "line 1", "'a'"),
        ("delimiter", "a;b\n1;2\n", "line 1", 'delimiter = ";"'),
        ("zero", "a,b\n1,2\n\0,3\n", "line 3", "utf-16"),
        ("quote", 'a,b\n1,2\n"3,4\n5,6\n', "line 3", "quotes"),
        ("encoding", b"a,b\n1,2\n\xe9,3\n", "line 3", "encoding"),
        ("long field", f"a,b\n1,{'x' * 200_000}\n", "line 2", "131072"),
    ]
    mistakes = [
        Mistake(name, lambda content=content: table(content, ["a"]), f"{tmp_path}/c.csv, {line}", says, InputError)
        for name, content, line, says in cases
    ]
    packed = gzip.compress(b"a,b\n1,2\n")
    for name, content in (
        ("cut gzip", packed[:-9]),
        ("damaged gzip", packed[:12] + b"x" + packed[13:]),
        ("text", b"a"),
    ):
        mistakes.append(Mistake(name, lambda content=content: table(content, name="c.gz"), str(tmp_path), "gzip"))
    mistakes += [
        Mistake("folder", lambda: read_table(tmp_path), str(tmp_path), "cannot be opened"),
        Mistake("nothing", lambda: read_table(tmp_path / "no.csv"), f"{tmp_path}/no.csv", "cannot be opened"),
        Mistake("number", lambda: table("a,b\n1,2\n1;5,3\n").numbers("a"), f"{tmp_path}/c.csv, line 3, column a"),
        Mistake("comma", lambda: table('a\n"1,5"\n').numbers("a"), f"{tmp_path}/c.csv, line 2", 'decimal = ","'),
        Mistake("point", lambda: table("a;b\n1.5;2\n", layout=Layout(";", ",")).numbers("a"), str(tmp_path), "decimal"),
        Mistake("lengths", lambda: read_table({"a": [1], "b": [1, 2]}), "source, column b", "length"),
        Mistake("scalar", lambda: read_table({"a": "text"}), "source, column a", "not a column"),
        Mistake("two axes", lambda: read_table({"a": np.zeros((2, 2))}), "source, column a", "axes"),
        Mistake("no table", lambda: read_table(3), "source", "not a table"),
    ]
    assert_refused(mistakes)


def test_no_message_shows_a_cell(table):
    for content in ("a,b\nsecret,1\n", "secret\n1\n", "a,b\nsecret\n", 'a,b\n"secret\n', "a,b\n1,2\nse\0cret,3\n"):
        with pytest.raises(InputError) as found:
            table(content, ["a"]).numbers("a")
        assert "secret" not in str(found.value), content


def test_files_without_a_declared_layout_show_the_lines_of_pandas(table):
    with pytest.raises(InputError, match=r"(?s)import pandas as pd.*read_csv.*to_csv"):
        table("a;b\n1;2\n", ["a"], None)


def test_layouts_refuse_impossible_keys():
    wrong = {
        "delimiter": ["", ";;", "a", "1", '"', "\n", None, 3],
        "decimal": ["", ";", "..", None],
        "encoding": ["", "klingon", "rot13", None, 3, "hex"],
        "time_format": ["", "unix-s", "%d.%m", "%H:%M %Y %H", "%Q %Y", "%Y %I", 3],
        "time_zone": ["", "Mars", None, "/etc/passwd", "../UTC"],
        "missing": [-0.1, 1.1, float("nan"), "x", None, True],
    }
    assert_refused(
        Mistake(f"{key} {value!r}", lambda key=key, value=value: Layout(**{key: value}), key, error=InputError)
        for key, values in wrong.items()
        for value in values
    )
