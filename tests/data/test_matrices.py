"""Matrices and channels in files are read as they are declared, and everything else is refused."""

from __future__ import annotations

import gzip
import os
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import Mistake, assert_refused
from rows import each_row
from scipy import sparse

from mechdesign.data.matrices import has_labels, match_names, read_any_matrix, read_arrays, read_dense, read_labelled
from mechdesign.data.table import Layout
from mechdesign.errors import InputError

IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
NAMED = ",home,work\nhome,0,2.5\nwork,2.5,0\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read_matrix(name, header=None, index=None, **layout):
    return read_dense(Path(name), header, index, Layout(**layout))


def read(content, name="m.csv", **keys):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_matrix(name, **keys)


@each_row(
    ("content", "keys"),
    [
        ("1,0\n0,1\n", {}),
        ("1,0\r\n0,1\r\n\r\n", {}),
        ("\ufeff1;0\n0;1", {"delimiter": ";"}),
        ("1 0\n0 1\n", {"delimiter": " "}),
        ("1,0 ; 0e5\n0; +1,\n", {"delimiter": ";", "decimal": ","}),
        ("1,0\n0,1\n".encode("utf-16"), {"encoding": "utf-16"}),
        ('"1",0\n0,"1"\n', {}),
        (",a,b\nx,1,0\ny,0,1\n", {"header": "ignore", "index": "ignore"}),
        ("7,8\n1,0\n0,1\n", {"header": "ignore"}),
        ("7,1,0\n8,0,1\n", {"index": "ignore", "header": False}),
    ],
)
def test_texts(content, keys):
    found = read(content, **keys)
    assert (found.dtype, found.tolist()) == (np.float64, IDENTITY)


def test_packed_texts_and_infinities():
    assert read(gzip.compress(b"0,inf\n-inf,nan\n"), "m.csv.gz").tolist()[0] == [0, np.inf]


@each_row(
    ("text", "keys", "rows", "columns"),
    [
        (NAMED, {"header": True, "index": True}, ("home", "work"), ("home", "work")),
        (NAMED, {"header": True, "index": "ignore"}, (), ("home", "work")),
        (NAMED, {"header": "ignore", "index": True}, ("home", "work"), ()),
        # Texts 0, 1, … in any order are positions; other numbers are labels.
        (NAMED.replace("home", "1").replace("work", "0"), {"header": True, "index": True}, (1, 0), (1, 0)),
        (NAMED.replace("home", "1").replace("work", "2"), {"header": True, "index": True}, ("1", "2"), ("1", "2")),
    ],
)
def test_names(text, keys, rows, columns):
    found = read(text, **keys)
    assert (found.rows, found.columns, np.asarray(found).tolist()) == (rows, columns, [[0, 2.5], [2.5, 0]])


def test_names_are_matched_with_labels_and_errors_show_labels_only():
    found = read(NAMED, header=True, index=True)
    assert match_names(found, "D", ["work", "home"], ["home", "work"]).tolist() == [[2.5, 0], [0, 2.5]]
    assert match_names(np.eye(2), "D", ["a", "b"], ["a", "b"]).tolist() == IDENTITY
    for labels, words in ((["home", "pub"], "has a name that is no label"), (["home", "work", "pub"], "'pub'")):
        with pytest.raises(InputError, match=words) as caught:
            match_names(found, "D", labels, labels)
        assert "ignore" in str(caught.value)
        assert "work" not in str(caught.value.value)


@each_row(
    ("names", "labels", "first"),
    [
        ("0,1,2", "abc", 0.0),
        ("2,1,0", "abc", 2.0),
        ("2,1,0", "012", 2.0),
        ("2,1,0", "210", 0.0),
        ("0,1,2", "210", "in another order"),
        ("0,1,2", "123", "no label"),
        ("1,2,3", "123", 0.0),
        ("3,1,2", "123", 1.0),
        ("1,2,3", "abc", "no label"),
        ("0,1,2", "a1c", "no label"),
    ],
)
def test_numbers_as_names_are_labels_or_positions_and_never_both(names, labels, first):
    found = read(f"{names}\n0,1,2\n3,4,5\n", header=True)
    if isinstance(first, str):
        with pytest.raises(InputError, match=first):
            match_names(found, "D", None, list(labels))
    else:
        assert match_names(found, "D", None, list(labels))[0, 0] == first


def test_a_first_line_or_column_that_counts_is_declared():
    for text in ("0,1,2\n1,0,1\n2,1,0\n", "0,1\n0.5,0.5\n", "1\n2\n3\n", "3,4,5\n.1,.2,.7\n", "0,2,1\n.5,.5,0\n"):
        assert read(text).shape == (text.count("\n"), text.split("\n")[0].count(",") + 1)
    for key, text in {
        "header": "0,1,2\n1,0,1.5\n2,1.5,0\n",
        "index": "1,0.5,0.5\n2,0.3,0.7\n3,0.1,0.9\n",
    }.items():
        with pytest.raises(InputError, match=rf"counts from .*set {key} = true, or .*; false if it holds numbers"):
            read(text)
        assert read(text, header=False, index=False).shape == (3, 3)


def test_arrays_of_numpy_and_scipy():
    np.save("m.npy", np.eye(2, dtype=np.int8))
    np.savez("one.npz", m=np.eye(2, dtype=bool))
    sparse.save_npz("sparse.npz", sparse.eye_array(2, format="coo"))
    for name in ("m.npy", "one.npz", "sparse.npz"):
        found = read_matrix(name)
        assert (found.dtype, found.tolist()) == (np.float64, IDENTITY)
    assert sparse.issparse(read_any_matrix(Path("sparse.npz")))
    assert list(read_arrays(Path("one.npz"))) == ["m"]


TEXTS = [
    ("header", "x,y\n1,2\n", "m.csv, line 1", "set header = true"),
    ("corner", NAMED, "m.csv, line 1", "the first column names the rows, set index = true"),
    ("corner of numbers", ",0,1\n0,1,0\n1,0,1\n", "m.csv, line 1", "set header = true"),
    ("one column", "x\n1\n", "m.csv, line 1", "set header = true"),
    ("index", "a,1\nb,2\n", "m.csv, line 1", "set index = true"),
    ("later index", "1,1\nb,2\n", "m.csv, line 2", "set index = true"),
    ("text", "1,x\n1,2.5\n", "m.csv, line 1", ""),
    ("text below", "1,2.5\n1,x\n", "m.csv, line 2, field 2", "a decimal number"),
    ("fraction", "0.5,1/2\n", "m.csv, line 1, field 2", "Write decimals"),
    ("per cent", "50%,50%\n25%,75%\n", "m.csv, line 1, field 1", "Write decimals"),
    ("trailing comma", "0.5,0.5,\n", "m.csv, line 1, field 3", "Remove the delimiter at the end"),
    ("empty field", "0.5,,0.5\n", "m.csv, line 1, field 2", "is empty"),
    ("underscore", "0.5,1_0\n", "m.csv, line 1, field 2", "is not a number"),
    ("other digits", "0.5,١\n", "m.csv, line 1, field 2", "is not a number"),
    ("overflow", "0.5,1e999\n", "m.csv, line 1, field 2", "is out of range"),
    ("overflow of the first", "1e999,0.5\n", "m.csv, line 1, field 1", "is out of range"),
    ("complex", "1j,0\n", "m.csv, line 1", ""),
    ("semicolons", "0.5;0.5\n", "m.csv, line 1, field 1", 'delimiter = "…"'),
    ("decimal comma", '"0,5",1\n', "m.csv, line 1, field 1", 'decimal = ","'),
    ("ragged", "1,0\n1\n", "m.csv, line 2", "2, as in the first line"),
    ("longer", "1,0\n1,0,1\n", "m.csv, line 2", "found 3"),
    ("blank line", "1,0\n\n0,1\n", "m.csv, line 2", "is blank"),
    ("nothing", "", "m.csv", "contains no numbers"),
    ("blank", "\n\n", "m.csv", "contains no numbers"),
    ("zero byte", "1,0\n1\0,0\n", "m.csv, line 2", "has a zero byte"),
    ("latin-1", b"1,\xe9\n", "m.csv, line 1", 'encoding = "…"'),
    ("quote", '1,"0\n1,0\n', "m.csv, line 1", "closed quotes"),
    ("json", "[[0.5, 0.5]]\n", "m.csv, line 1, field 1", "is not a number"),
    ("zip", b"PK\x03\x04junk\0", "m.csv", ""),
]
KEYS = [
    ("header without rows", "a,b\n", {"header": True}, "m.csv", "contains no numbers"),
    ("index alone", "a\nb\n", {"index": True}, "m.csv", "contains no numbers"),
    ("header that is none", "a,b\nc,d\n", {"header": True}, "m.csv, line 2, field 1", "is not a number"),
    ("short header", "a\nb,1,2\n", {"header": True, "index": True}, "m.csv, line 2", "found 3; must be 1"),
    ("point", "0.5;1\n", {"delimiter": ";", "decimal": ","}, "m.csv, line 1, field 1", "is not a number"),
    ("header", "1,2\n", {"header": 3}, "header", "true, false or"),
    ("index", "1,2\n", {"index": "yes"}, "index", "true, false or"),
    ("delimiter", "1,2\n", {"delimiter": ";;"}, "delimiter", ""),
    ("decimal", "1,2\n", {"decimal": ";"}, "decimal", ""),
    ("encoding", "1,2\n", {"encoding": "klingon"}, "encoding", ""),
]


def test_what_is_no_matrix_of_numbers_is_refused():
    mistakes = [
        Mistake(name, lambda content=content: read(content), path, says, InputError)
        for name, content, path, says in TEXTS
    ]
    mistakes += [
        Mistake(f"declared {name}", lambda text=text, keys=keys: read(text, **keys), path, says, InputError)
        for name, text, keys, path, says in KEYS
    ]
    mistakes += [
        Mistake("no file", lambda: read_matrix("none.csv"), "none.csv", "cannot be opened", InputError),
        Mistake("folder", lambda: read_matrix("."), "", "cannot be opened", InputError),
    ]
    assert_refused(mistakes)


def array_file(header: str, content: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header.encode() + content


HEADERS = {
    # NumPy reads headers of Python 2 with the tokenizer of Python, which fails for these.
    "unfinished": "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2",
    "no text": "{'descr': '<f8\0', 'fortran_order': False, 'shape': (2, 2), }\n",
    "forged": "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999, 999999999), }\n",
    "overflowing": "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }\n",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }\n",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }\n",
    "nested": "(" * 9000,
    "no type": "{'descr': 'float9', 'fortran_order': False, 'shape': (2, 2), }\n",
}


@each_row("name", HEADERS)
@each_row("version", [b"\1\0", b"\3\0", b"\x09\0"])
def test_damaged_headers_and_forged_shapes_are_refused(name, version):
    content = array_file(HEADERS[name], bytes(32), version)
    Path("m.npy").write_bytes(content)
    with zipfile.ZipFile("m.npz", "w") as archive:
        archive.writestr("data.npy", content)
    for file in ("m.npy", "m.npz"):
        with pytest.raises(InputError, match="is damaged"):
            read_matrix(file)


ARRAYS = {
    "one axis": np.zeros(3),
    "texts": np.array([["a"]]),
    "complex numbers": np.zeros((1, 1), dtype=complex),
    "no rows": np.zeros((0, 2)),
    "three axes": np.zeros((1, 2, 2)),
    "times": np.zeros((1, 1), dtype="M8[s]"),
}


def test_arrays_that_are_no_matrix_are_refused():
    mistakes = []
    for name, array in ARRAYS.items():
        np.save(f"{name}.npy", array)
        np.savez(f"{name}.npz", a=array)
        for file in (f"{name}.npy", f"{name}.npz"):
            mistakes.append(Mistake(file, lambda file=file: read_matrix(file), file, "", InputError))
    np.save("good.npy", np.eye(2))
    np.save("objects.npy", np.array([[0.5, "a"]], dtype=object), allow_pickle=True)
    np.savez("two.npz", a=np.eye(2), b=np.eye(2))
    np.savez("none.npz")
    sparse.save_npz("complex.npz", sparse.eye_array(2, dtype=complex))
    sparse.save_npz("wide.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6)))
    sparse.save_npz("long.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(2**28, 2)))
    Path("junk.npy").write_bytes(b"junk")
    Path("junk.npz").write_bytes(b"PK\x03\x04junk")
    for file, says in {
        "objects.npy": "Python objects",
        "two.npz": "found 2; must be one array",
        "none.npz": "found 0",
        "complex.npz": "real numbers",
        "wide.npz": "found (1000000, 1000000)",
        "long.npz": "is too large",
        "junk.npy": "is damaged",
        "some.parquet": "is a table, and not a matrix",
        "junk.npz": "is damaged",
        "missing.npy": "cannot be opened",
    }.items():
        mistakes.append(Mistake(file, lambda file=file: read_matrix(file), file, says, InputError))
    for key in ("header", "index"):
        mistakes.append(
            Mistake(key, lambda key=key: read_matrix("good.npy", **{key: True}), key, "no names", InputError)
        )
    assert_refused(mistakes)


@each_row("form", ["csr", "csc", "bsr", "coo"])
def test_sparse_indices_beyond_the_shape_are_not_followed(form):
    sparse.save_npz("good.npz", sparse.eye_array(4, format=form))
    with np.load("good.npz") as archive:
        arrays = dict(archive)
    name = "coords" if "coords" in arrays else "row" if "row" in arrays else "indices"
    arrays[name] = arrays[name] + 10**6
    np.savez("m.npz", **arrays)
    with pytest.raises(InputError, match="is damaged"):
        read_matrix("m.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr("mechdesign.data.matrices.max_unpacked_bytes", lambda size: 10 * size)
    with zipfile.ZipFile("z.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "data.npy", array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (9, 9), }\n", bytes(648))
        )
        archive.writestr("more.npy", bytes(10**5))
    with pytest.raises(InputError, match=r"z\.npz: unpacks to too much"):
        read_matrix("z.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_pipes_and_devices_are_no_matrices():
    for name in ("m.npy", "m.npz"):
        os.mkfifo(name)
        with pytest.raises(InputError, match=r"m\.np.: cannot be opened .*not a regular file"):
            read_matrix(name)
        assert not has_labels(Path(name))
    Path("zero.npy").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        read_matrix("zero.npy")


def test_channels_with_labels_keep_their_exact_values():
    Path("c.csv").write_text("\ufeffsecret,yes,no\nyes,1/3,2/3\nno,0.1,0.9\n", encoding="utf-8")
    found = read_labelled("c.csv")
    assert has_labels(Path("c.csv"))
    assert (found.rows, found.columns) == (("yes", "no"), ("yes", "no"))
    assert found.values.tolist() == [[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 10), Fraction(9, 10)]]
    mistakes = []
    for text, path in {
        "secret,a\nx,1,0\n": "c.csv, line 2",
        "secret,a\nx\n": "c.csv, line 2",
        "secret,a\nx,\n": "c.csv, line 2, column 2",
        "secret,a\nx,nan\n": "c.csv, line 2, column 2",
        "secret,a,b\nx,1,0\ny,1,half\n": "c.csv, line 3, column 3",
        "secret,a\nx,1/0\n": "c.csv, line 2, column 2",
        "secret,a\n": "c.csv",
        "secret\nx\n": "c.csv",
        "": "c.csv",
    }.items():

        def make(text=text):
            Path("c.csv").write_text(text)
            return read_labelled("c.csv")

        mistakes.append(Mistake(text, make, path, "", InputError))
    assert_refused(mistakes)
    Path("c.csv").write_text("secret,a\nx,my diagnosis\n")
    with pytest.raises(InputError) as caught:
        read_labelled("c.csv")
    assert "diagnosis" not in str(caught.value)
