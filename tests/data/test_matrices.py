"""Specifications, chains and the leakage commands read matrices in the same way."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from rows import each_row
from scipy import sparse

from mechdesign.data._matrices import read_any_matrix, read_matrix
from mechdesign.errors import InputError

IDENTITY = [[1.0, 0.0], [0.0, 1.0]]


@each_row(
    ("text", "delimiter"),
    [
        ("1,0\n0,1\n", ","),
        ("1,0\r\n\r\n0,1", None),
        ("# from the survey\n1 0 # stays\n0\t1\n", None),
        ("1; 0\n0; 1\n", None),
        ("\ufeff1|0\n0|1\n", "|"),
    ],
)
def test_texts(tmp_path: Path, text: str, delimiter: str | None) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8", newline="")
    assert read_matrix(tmp_path / "m.csv", delimiter).tolist() == IDENTITY


def test_arrays_of_numpy_and_scipy(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.eye(2, dtype=np.int8))
    sparse.save_npz(tmp_path / "m.npz", sparse.eye_array(2, format="coo"))
    for name in ("m.npy", "m.npz"):
        found = read_matrix(tmp_path / name)
        assert found.dtype == np.float64
        assert found.tolist() == IDENTITY
    assert sparse.issparse(read_any_matrix(tmp_path / "m.npz"))


def test_infinities_pass(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("0,inf\n")
    assert read_matrix(tmp_path / "m.csv", ",").tolist() == [[0, np.inf]]


@each_row(
    ("name", "content", "problem"),
    [
        ("m.csv", b"a,b\n", r"m\.csv, line 1, field 1: is not a number; found a; .*Remove names of columns"),
        (
            "m.csv",
            b"x,y\n1,2\n",
            r"m\.csv, line 1: is a header; found 2 texts; must be numbers.* Remove names of columns",
        ),
        ("m.csv", b"x\n1\n", r"m\.csv, line 1: is a header; found 1 text;"),
        ("m.csv", b"x,1\n1,2\n", r"m\.csv, line 1, field 1: is not a number; found a"),
        ("m.csv", b"x,y\nz,t\n", r"m\.csv, line 1, field 1: is not a number; found a"),
        ("m.csv", b"1,0\n1\n", r"m\.csv, line 2: has the wrong number of fields; found 1; must be 2"),
        ("m.csv", b"1_0\n", "is not a number"),
        ("m.csv", b"# nothing\n", "is empty"),
        ("m.csv", b"\xff", "is not a text in UTF-8"),
        ("m.npy", b"junk", "is not a NumPy file"),
        ("m.npz", b"PK\x03\x04junk", "is not a sparse matrix of SciPy"),
        ("none.csv", None, r"none\.csv: cannot be opened"),
        ("none.npz", None, r"none\.npz: cannot be opened"),
    ],
)
def test_what_holds_no_matrix(tmp_path: Path, name: str, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_matrix(tmp_path / name)


def test_arrays_that_are_no_matrix_of_numbers(tmp_path: Path) -> None:
    for number, array in enumerate((np.zeros(3), np.array([["a"]]), np.zeros((1, 1), dtype=complex))):
        np.save(tmp_path / f"{number}.npy", array)
        with pytest.raises(InputError, match="does not contain a matrix of numbers"):
            read_matrix(tmp_path / f"{number}.npy")


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
def test_damaged_headers_and_forged_shapes_are_refused(tmp_path: Path, name: str, version: bytes) -> None:
    content = array_file(HEADERS[name], bytes(32), version)
    (tmp_path / "m.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("data.npy", content)
    for file, words in (("m.npy", "is not a NumPy file"), ("m.npz", "is not a sparse matrix")):
        with pytest.raises(InputError, match=words):
            read_matrix(tmp_path / file)


@each_row("form", ["csr", "csc", "bsr", "coo"])
def test_sparse_indices_beyond_the_shape_are_not_followed(tmp_path: Path, form: str) -> None:
    sparse.save_npz(tmp_path / "good.npz", sparse.eye_array(4, format=form))
    with np.load(tmp_path / "good.npz") as archive:
        arrays = dict(archive)
    name = "coords" if "coords" in arrays else "row" if "row" in arrays else "indices"
    arrays[name] = arrays[name] + 10**6
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(InputError, match="is not a sparse matrix"):
        read_matrix(tmp_path / "m.npz")


@pytest.mark.slow
def test_a_small_sparse_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "m.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6)))
    with pytest.raises(InputError, match=r"is too large; found \(1000000, 1000000\)"):
        read_matrix(tmp_path / "m.npz")
    zeros = array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (38000000,), }\n", bytes(8 * 38 * 10**6))
    with zipfile.ZipFile(tmp_path / "z.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("data.npy", zeros)
    with pytest.raises(InputError, match="unpacks to much more than its own size"):
        read_matrix(tmp_path / "z.npz")


def test_files_of_numpy_say_what_they_hold_instead_of_a_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "complex.npy", np.eye(2) * (1 + 0j))
    np.save(tmp_path / "objects.npy", np.array([[0.5, "a"]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=np.eye(2), b=np.eye(2))
    for name, words in (("complex.npy", "complex128"), ("objects.npy", "Python objects"), ("two.npz", "2 arrays")):
        with pytest.raises(InputError, match=words):
            read_matrix(tmp_path / name)
