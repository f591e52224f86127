"""A small file cannot exhaust the memory: compressed files, long lines and false sizes are refused early."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mechdesign.data._matrices import read_matrix, read_only_array
from rows import each_row
from scipy import sparse

import mechdesign as md
from mechdesign.data import _bounds as bounds
from mechdesign.data._bounds import allowing_memory, max_unpacked_bytes
from mechdesign.data._text import file_digest, read_columns, read_numbers, read_rows
from mechdesign.errors import InputError

MUCH = "unpacks to much more.*raise the limit in GiB: --memory"
KIB = 2**10


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits to 64 KiB or 100 times the file, and to lines of 4 KiB."""
    monkeypatch.setattr(bounds, "_MAX_UNPACKED_BYTES", 64 * KIB)
    monkeypatch.setattr(bounds, "_MAX_LINE_BYTES", 4 * KIB)


def npz(path: Path, size: int, kind: int = zipfile.ZIP_DEFLATED, claim: tuple[int, ...] | None = None) -> Path:
    """Write an archive of one array with `size` zero bytes, whose header claims a shape."""
    head = io.BytesIO()
    shape = (1, size // 8) if claim is None else claim
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("P.npy", head.getvalue() + bytes(size), compresslevel=1)
    return path


def test_the_bound_is_that_of_bundles() -> None:
    from mechdesign.certify import _archive

    for size in (0, 2**20, 2**22, 2**40):
        assert max_unpacked_bytes(size) == _archive.max_unpacked_bytes(size)
    with allowing_memory(3):
        assert [max_unpacked_bytes(size) for size in (0, 2**40)] == [3 * 2**30, 100 * 2**40]
    assert max_unpacked_bytes(0) == 2**28
    for wrong in (0, -1, np.nan, np.inf, "1", None, True):
        with pytest.raises(InputError, match="memory"), allowing_memory(wrong):
            pass


@pytest.mark.slow
def test_archives(tmp_path: Path) -> None:
    bomb = npz(tmp_path / "b.npz", 2**28 + 8)
    assert bomb.stat().st_size < 2**21
    tracemalloc.start()
    for read in (read_matrix, read_only_array):
        with pytest.raises(InputError, match=MUCH):
            read(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_archives_within_and_beyond(tmp_path: Path, small: None) -> None:
    head = 128
    inside, beyond = npz(tmp_path / "a.npz", 64 * KIB - head), npz(tmp_path / "b.npz", 64 * KIB - head + 8)
    assert read_only_array(inside).shape == (1, 8 * KIB - 16)
    with pytest.raises(InputError, match=MUCH):
        read_only_array(beyond)
    with allowing_memory(1):
        assert read_only_array(beyond).shape == (1, 8 * KIB - 15)
    # Uncompressed content may have any size.
    assert read_only_array(npz(tmp_path / "c.npz", 640 * KIB, zipfile.ZIP_STORED)).shape == (1, 80 * KIB)


@each_row("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_unpack_at_once_are_refused(tmp_path: Path, kind: int) -> None:
    path = npz(tmp_path / "a.npz", 800, kind)
    for read in (read_matrix, read_only_array):
        with pytest.raises(InputError, match="compressed by a method"):
            read(path)


@each_row("shape", [(2**40, 1), (1, 2**62), (2**31, 2**31), (200, 1)])
def test_headers_that_claim_more_than_there_is(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = npz(tmp_path / "a.npz", 800, claim=shape)
    with zipfile.ZipFile(path) as archive:
        (tmp_path / "a.npy").write_bytes(archive.read("P.npy"))
    for read, name in ((read_only_array, "a.npz"), (read_matrix, "a.npy")):
        with pytest.raises(InputError, match="claims the shape"):
            read(tmp_path / name)


@each_row("shape", [(2**60, 1), (1, 2**60), (2**28, 2)])
def test_sparse_matrices_of_huge_shapes(tmp_path: Path, shape: tuple[int, int]) -> None:
    place = np.zeros(1, dtype=np.int64)
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array((np.ones(1), (place, place)), shape=shape))
    with pytest.raises(InputError, match=MUCH):
        read_matrix(tmp_path / "a.npz")


@pytest.mark.skipif(os.name == "nt", reason="devices are those of POSIX")
def test_files_with_holes(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(InputError, match=f"{MUCH}|cannot be opened"):
        read_matrix(path)
    with pytest.raises(InputError, match="too long"):
        list(read_rows(path, ","))
    (tmp_path / "pipe.npy").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        read_matrix(tmp_path / "pipe.npy")
    with pytest.raises(InputError, match="not a regular file"):
        file_digest(tmp_path / "pipe.npy")


@each_row("packed", [False, True])
@each_row("end", ["\n", "\r\n", "\r"])
def test_lines(tmp_path: Path, small: None, packed: bool, end: str) -> None:
    digits = np.random.default_rng(1).bytes(150 * KIB).hex()

    def written(length: int) -> Path:
        path = tmp_path / "a.csv"
        content = f"b{end}{'1' * 4}{end}{digits[:length]}{end}7{end}".encode()
        path.write_bytes(gzip.compress(content) if packed else content)
        return path

    assert [len(text) for text in read_columns(written(4 * KIB), ["b"])["b"]] == [4, 4 * KIB, 1]
    with pytest.raises(InputError, match=r"line that is too long; must be at most 4096 bytes.*--memory") as caught:
        # Line breaks are found in chunks of 128 KiB.
        read_columns(written(300 * KIB), ["b"])
    assert caught.value.path == str(tmp_path / "a.csv")
    with allowing_memory(1):
        assert len(read_columns(written(100 * KIB), ["b"])["b"][1]) == 100 * KIB


def test_one_line_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        for _ in range(20):
            file.write(b"a," * 2**20)
    tracemalloc.start()
    with pytest.raises(InputError, match="too long"):
        read_matrix(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27


@each_row("pack", [bz2.compress, lzma.compress])
def test_other_packings_are_not_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.csv").write_bytes(pack(b"a\n" + b"1\n" * 1000))
    with pytest.raises(InputError):
        read_numbers(tmp_path / "a.csv", "a")


def test_parquet(tmp_path: Path, small: None) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def written(**columns: object) -> Path:
        path = tmp_path / "a.parquet"
        parquet.write_table(arrow.table(columns), path)
        return path

    def repeated(kind: object, stored: bool) -> Path:
        one = arrow.DictionaryArray.from_arrays(np.zeros(5000, dtype=np.int32), arrow.array(["a" * 2000], kind))
        path = tmp_path / "a.parquet"
        parquet.write_table(arrow.table({"a": one}), path, store_schema=stored)
        return path

    table = {"a": ["x", None, "y,z"], "b": [1.5, 2.0, None], "c": [True, None, False], "d": arrow.nulls(3)}
    assert read_columns(written(**table), list("abcd")) == {
        "a": ["x", "", "y,z"],
        "b": ["1.5", "2", ""],
        "c": ["true", "", "false"],
        "d": ["", "", ""],
    }
    for kind in (arrow.string(), arrow.large_string()):
        for stored in (False, True):
            with pytest.raises(InputError, match=MUCH):
                read_columns(repeated(kind, stored), ["a"])
    with allowing_memory(1):
        assert len(read_columns(repeated(arrow.string(), False), ["a"])["a"]) == 5000
    with pytest.raises(InputError, match=MUCH):
        read_columns(written(a=np.zeros(2_000_000)), ["a"])
    for nested in ([[1], [2]], [{"x": 1}]):
        with pytest.raises(InputError, match="contains only lists, structures and bytes"):
            read_columns(written(a=nested), ["a"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_pipes_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader, writer = os.pipe()
    try:
        os.write(writer, b"a\n1\n")
        for path in (pipe, *([Path(f"/dev/fd/{reader}")] if Path("/dev/fd").is_dir() else [])):
            with pytest.raises(InputError, match=r"is a pipe or a device.* cat .* > data\.csv"):
                read_columns(path, ["a"])
    finally:
        os.close(reader)
        os.close(writer)


def test_lines_up_to_sixteen_megabytes_are_read(tmp_path: Path) -> None:
    assert bounds._MAX_LINE_BYTES == 2**24
    path = tmp_path / "wide.csv"
    path.write_text("count," + "x" * 2**21 + "\n1,2\n")
    with pytest.raises(InputError) as caught:
        md.data.read_places(path, "id")
    assert "too long" not in str(caught.value)
