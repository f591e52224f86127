"""Tables are read as they are declared, and nothing else is read."""

from __future__ import annotations

import gzip
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

from mechdesign.certify import _archive
from mechdesign.data.table import Layout, read_rows, read_table
from mechdesign.errors import InputError


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
        ("\ufeffa,b\n1,é\n".encode("utf-16-le"), Layout(encoding="utf-16-le"), "c.csv"),
        ("\ufeffa,b\n1,é\n".encode("utf-16-be"), Layout(encoding="UTF-16BE"), "c.csv"),
        ("\ufeffa,b\n1,é\n".encode(), Layout(encoding="UTF8"), "c.csv"),
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
    wrong += ["2026-01-31+05:30", "2026-01-31-05", "2026-01-31Z", "2026-01-31 09:30+05:60", "2026-01-31 09:30+0560"]
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
    for unit, beyond in (("D", [2**62, -(2**62)]), ("s", ["10000-01-01", "0000-12-31T23:59:59"]), ("Y", [8030])):
        for zone in ("UTC", "Europe/Zurich"):
            found = nanoseconds(np.array(beyond, dtype=f"datetime64[{unit}]"), time_zone=zone)
            assert found == [None] * len(beyond), unit
    assert nanoseconds(["9999-12-31 23:59"], time_zone="America/New_York") == [None]
    assert nanoseconds(["0001-01-01 00:00"], time_zone="Asia/Tokyo") == [None]
    inside = np.array(["0001-01-01", "9999-12-31T23:59:59"], dtype="datetime64[s]")
    assert nanoseconds(inside) == [-62_135_596_800 * 10**9, 253_402_300_799 * 10**9]


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
        "encoding": ["", "klingon", "rot13", None, 3, "hex", "idna"],
        "time_format": [
            "",
            "unix-s",
            "%d.%m",
            "%H:%M %Y %H",
            "%Q %Y",
            "%Y %I",
            3,
            "%d/%Y",
            "%Y-%M-%d",
            "%m/%Y",
            "%b %Y",
            "%Y %j %d",
            "%Y %m %b %d",
        ],
        "time_zone": ["", "Mars", None, "/etc/passwd", "../UTC"],
        "missing": [-0.1, 1.1, float("nan"), "x", None, True],
    }
    assert_refused(
        Mistake(f"{key} {value!r}", lambda key=key, value=value: Layout(**{key: value}), key, error=InputError)
        for key, values in wrong.items()
        for value in values
    )


# --- times against datetime ----------------------------------------------------------------------------------------

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
FORMS = ("%Y-%m-%dT%H:%M:%S.%f", "%d/%m/%Y %H:%M:%S.%f", "%f %S %M %H %j %Y")


def exact(text, **layout):
    """Return the nanoseconds since 1970 of a text, or None."""
    (seconds, parts), bad = read_table({"t": [text]}, layout=Layout(**layout)).times("t")
    return None if bad[0] else int(seconds[0]) * 10**9 + int(parts[0])


def since(moment):
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


@given(MOMENTS, st.integers(-14 * 60, 14 * 60), st.sampled_from(FORMS))
def test_what_is_written_is_read(moment, minutes, form):
    moment = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    offset = moment.strftime("%z")
    year = f"{moment.year:04d}"
    text = moment.strftime(form.replace("%Y", year))
    layout = {} if form == FORMS[0] else {"time_format": f"{form}%z"}
    assert exact(text + offset, **layout) == since(moment)


@given(MOMENTS, st.sampled_from(["Europe/Zurich", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]))
def test_times_without_an_offset_are_of_the_declared_zone(moment, name):
    moment = moment.replace(second=0, microsecond=0, tzinfo=ZoneInfo(name))
    found = exact(moment.strftime(f"{moment.year:04d}-%m-%d %H:%M"), time_zone=name)
    once = moment.utcoffset() == moment.replace(fold=1).utcoffset()
    assert found == (since(moment) if once else None)


@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(0, 10**9 - 1))
def test_numbers_since_1970_are_exact(seconds, part):
    whole = seconds * 10**9 + part
    assert exact(str(whole), time_format="unix-ns") == whole
    sign = "-" if whole < 0 else ""
    assert exact(f"{sign}{abs(whole) // 10**9}.{abs(whole) % 10**9:09d}", time_format="unix") == whole
    assert exact(f"{whole}e-3", time_format="unix-us") == whole
    assert exact(str(253_402_300_800 + seconds % 9), time_format="unix") is None


def test_digits_of_a_pattern_have_their_leading_zeros():
    # `strptime` would read both as dates.
    assert exact("20200112", time_format="%Y%m%d") == since(datetime(2020, 1, 12, tzinfo=UTC))
    for wrong in ("2020112", "202011", "\u0662\u0660\u0662\u0660\u0660\u0661\u0661\u0662", "20200112.0"):
        assert exact(wrong, time_format="%Y%m%d") is None
    for form, good, wrong in (
        ("%Y%m%d %H%M", "20230401  0111", "20230401 111"),
        ("%y%jT%H:%M", "23091t1:11", "2391T1:11"),
        ("%Y-%m-%d %H:%M:%S%f", "2023-4-1 1:11:005", "2023-4-1 1:11:0"),
        ("%Y/%b/%d %H%M%z", "2023/apr/1 0111Z", "2023/Apr/1 111+00:00"),
    ):
        assert exact(good, time_format=form) is not None, good
        assert exact(wrong, time_format=form) is None, wrong


# --- objects, Parquet and limits -----------------------------------------------------------------------------------


class Series:
    """A column as pandas and polars have it."""

    def __init__(self, values, **facts):
        self.values = np.asarray(values)
        self.__dict__ |= facts

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class Lazy:
    """A plan of polars."""

    columns = ("a",)

    def collect(self):
        """Read the plan."""


class Repeating:
    """A table whose columns repeat a name."""

    columns = ("user", "x", "x")


def test_columns_of_frames_are_taken_as_they_are():
    utc = Series(["2026-01-31T09:30", "NaT"], dtype=type("Dtype", (), {"tz": "UTC"})())
    utc.values = utc.values.astype("datetime64[us]")
    frame = {"user": Series(np.array(["ada", None], dtype=object)), "t": utc, "n": Series([1, 2]), "m": ["a", np.nan]}
    table = read_table(frame)
    assert (table.texts("user"), table.texts("n"), table.texts("m")) == (["ada", ""], ["1", "2"], ["a", ""])
    for layout in (Layout(), Layout(time_zone="Asia/Tokyo")):
        (seconds, _), bad = read_table(frame, ["t"], layout).times("t")
        assert (int(seconds[0]), bad.tolist()) == (
            int(datetime(2026, 1, 31, 9, 30, tzinfo=UTC).timestamp()),
            [False, True],
        )
    with pytest.raises(InputError, match=r"time_format: is given for a column of times.*Remove time_format"):
        read_table({"t": np.array(["2026"], dtype="datetime64[s]")}, layout=Layout(time_format="unix")).times("t")
    wrong = {
        "masked": lambda: read_table({"a": np.ma.array([1, 2])}),
        "bytes": lambda: read_table({"a": [b"x"]}),
        "nested": lambda: read_table({"a": [[1, 2], [3, 4]]}),
        "missing": lambda: read_table({"a": [1]}, ["b"]),
        "iterator": lambda: read_table({"a": iter([1])}),
        "a list": lambda: read_table([1, 2]),
        "repeated": lambda: read_table(Repeating()),
        "a class": lambda: read_table(Repeating),
        "a set": lambda: read_table({"a": {"x", "y"}}),
        "a frozen set": lambda: read_table({"a": frozenset("xy")}),
        "a plan": lambda: read_table(Lazy()),
        "ragged": lambda: read_table({"a": [[1, 2], [3]]}),
        "arrays": lambda: read_table({"a": [np.zeros(2), np.zeros(1)]}),
        "bytes of an array": lambda: read_table({"a": np.array([b"x"])}),
        "indexes": lambda: read_table({"a": Series([1, 2], index=(0, 1)), "b": Series([1, 2], index=(1, 0))}),
    }
    assert_refused(Mistake(name, make, "source", error=InputError) for name, make in wrong.items())


def test_whole_numbers_with_missing_values_are_exact():
    numbers, expected = [2**53 + 1, None, 2**53], [str(2**53 + 1), "", str(2**53)]
    columns = []
    if arrow := pytest.importorskip("pyarrow"):
        columns += [arrow.array(numbers), arrow.chunked_array([numbers]), arrow.array(numbers).dictionary_encode()]
    with suppress(ImportError):
        import pandas

        columns += [pandas.array(numbers, dtype="Int64"), pandas.Series(numbers, dtype="Int64")]
        columns += [pandas.Series(numbers, dtype="int64[pyarrow]"), pandas.Series(pandas.Categorical(numbers))]
    for column in columns:
        assert read_table({"a": column}).texts("a") == expected, type(column)
    days = arrow.array([datetime(2026, 1, 31, tzinfo=UTC).date(), None])
    assert read_table({"a": days, "b": arrow.array(["x", None])}).texts("a") == ["2026-01-31", ""]


def test_parquet_is_read_like_text(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = [datetime(2026, 1, 31, 9, 30, 0, 250_000, tzinfo=UTC), None]
    columns = {
        "user": ["ada", None],
        "lat": [46.5, None],
        "n": [1, None],
        "t": arrow.array(times, arrow.timestamp("us", tz="Asia/Tokyo")),
    }
    path = tmp_path / "c.parquet"
    parquet.write_table(arrow.table(columns | {"raw": [b"x", b"y"]}), path)
    table = read_table(path, ["t", "user", "lat", "n"])
    assert (table.texts("user"), table.texts("n"), table.others) == (["ada", ""], ["1", ""], ("raw",))
    assert table.floats("lat")[1].tolist() == [False, True]
    (seconds, parts), bad = table.times("t")
    assert (seconds[0], parts[0], bad.tolist()) == (times[0].timestamp() // 1, 250_000_000, [False, True])
    mistakes = [
        Mistake("bytes", lambda: read_table(path), f"{path}, column raw", "not a column", InputError),
        Mistake("name", lambda: read_table(path, ["lon"]), str(path), "'lon'", InputError),
        Mistake("cell", lambda: table.numbers("lat"), f"{path}, row 1, column lat", "is empty", InputError),
    ]
    (tmp_path / "d.parquet").write_bytes(path.read_bytes()[:-20])
    mistakes.append(Mistake("cut", lambda: read_table(tmp_path / "d.parquet"), str(tmp_path), "Parquet", InputError))
    assert_refused(mistakes)


def test_a_small_file_cannot_fill_the_memory(tmp_path, table, monkeypatch):
    monkeypatch.setattr(_archive, "_MAX_TOTAL_BYTES", 2**16)
    for rows, refused in ((2**13 - 1, False), (2**14, True)):
        packed = gzip.compress(b"a,b\n" + b"1,22222\n" * rows)
        assert len(packed) * 100 < 2**16
        if refused:
            with pytest.raises(InputError, match=r"c\.csv\.gz: unpacks to too much; must be at most 65536 bytes"):
                table(packed, ["a"], Layout(), "c.csv.gz")
        else:
            assert len(table(packed, ["a"], Layout(), "c.csv.gz")) == rows
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="it is not a regular file"):
        read_table(tmp_path / "zero.csv")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": np.zeros(2**20)}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match="unpacks to too much"):
        read_table(tmp_path / "c.parquet")


def test_rows_without_a_header_have_their_lines(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("1,2\n\n\"'=x\ny\",'s\n")
    assert list(read_rows(path)) == [(1, ["1", "2"]), (2, []), (3, ["=x\ny", "'s"])]


def test_damaged_parquet_is_refused(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    parquet.write_table(arrow.table({"user": ["a", "b"] * 50, "lat": [1.0, 2.0] * 50}), path)
    content, places = path.read_bytes(), []
    for place in range(4, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            read_table(path, ["user", "lat"])
        except InputError as error:
            places.append(error.path)
    assert len(places) > 50
    assert all(place.startswith(str(path)) for place in places)
