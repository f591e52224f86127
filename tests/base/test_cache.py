from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from rows import each_row

from mechdesign.base import _cache as cache
from mechdesign.leakage import _loss as loss_module
from mechdesign.leakage._loss import LossFunction

KEY = "ab" * 32
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], dtype=np.int64)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "above" / "cache"))
    return tmp_path / "above" / "cache"


@pytest.fixture(name="P")
def random_matrix() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(40), 40)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_gives_back_what_was_stored(folder: Path) -> None:
    assert cache.load(KEY) is None
    cache.store(KEY, ARRAYS)
    found = cache.load(KEY)
    assert found is not None
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    (path,) = folder.iterdir()
    assert path.name == f"{KEY}.npz"
    assert (mode(folder.parent), mode(folder), mode(path)) == (0o700, 0o700, 0o600)
    assert cache.entries() == [(path, path.stat().st_size)]


@pytest.mark.slow
def test_damage_at_any_byte_is_noticed_or_harmless(folder: Path) -> None:
    cache.store(KEY, ARRAYS)
    path = folder / f"{KEY}.npz"
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :])
        found = cache.load(KEY)
        # Bytes of the archive's own bookkeeping may change without changing any array.
        assert found is None or set(found) != set(ARRAYS) or all((found[name] == ARRAYS[name]).all() for name in ARRAYS)
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length])
        assert cache.load(KEY) is None


def test_no_pickles(folder: Path) -> None:
    folder.mkdir(0o700, parents=True)
    np.savez(folder / f"{KEY}.npz", a=np.array([{}], dtype=object))
    assert cache.load(KEY) is None


def test_off(folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    LossFunction(P)
    assert LossFunction(P).cached
    for value in ("off", "OFF", " off "):
        monkeypatch.setenv(cache.VARIABLE, value)
        assert cache.folder() is None
        cache.store(KEY, ARRAYS)
        assert cache.load(KEY) is None
        assert cache.entries() == []


def test_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(cache.VARIABLE, "~/kept")
    assert cache.folder() == tmp_path / "kept"
    monkeypatch.delenv(cache.VARIABLE)
    folder = cache.folder()
    assert folder is not None
    assert "mechdesign" in folder.name


def test_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, P: np.ndarray) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "below"))
    cache.store(KEY, ARRAYS)
    assert cache.load(KEY) is None
    assert LossFunction(P)(1.0) == LossFunction(P, cache=False)(1.0)


def test_a_full_disk_loses_nothing(folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_file", full)
    assert LossFunction(P)(1.0) == LossFunction(P, cache=False)(1.0)
    assert cache.entries() == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only POSIX says who can access a file")
def test_a_folder_or_entry_that_is_not_its_owners_alone_is_not_used(
    folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = LossFunction(P, cache=False)
    cache.store(true.digest, {"G": np.array([0.0]), "D": np.array([0.0]), "rest": np.array([1.0])})
    path = folder / f"{true.digest}.npz"
    # What lies in one's own folder is believed: the check is of who can write it.
    assert LossFunction(P)(1.0) == 0 < true(1.0)
    content = path.read_bytes()
    for place, opened, closed in ((folder, 0o750, 0o700), (folder, 0o701, 0o700), (path, 0o606, 0o600)):
        place.chmod(opened)
        assert LossFunction(P, cache=True)(1.0) == true(1.0)
        if place == folder:
            assert (cache.folder(), cache.entries(), path.read_bytes()) == (None, [], content)
        place.chmod(closed)
    assert LossFunction(P)(1.0) == true(1.0)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.folder() is None


def test_an_entry_that_is_a_link_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    cache.store(KEY, ARRAYS)
    entry, moved = folder / f"{KEY}.npz", tmp_path / "moved"
    entry.rename(moved)
    content = moved.read_bytes()
    entry.symlink_to(moved)
    assert cache.load(KEY) is None
    cache.store(KEY, {"x": np.zeros(2)})
    assert moved.read_bytes() == content
    assert not entry.is_symlink()


def test_the_oldest_entries_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for number in range(4):
        cache.store(f"{number:064x}", ARRAYS)
        paths.append(folder / f"{number:064x}.npz")
        os.utime(paths[-1], (1000.0 + number, 1000.0 + number))
    mine = folder / "mine.npz"
    mine.write_bytes(b"mine")
    size = paths[0].stat().st_size
    assert [path for path, _ in cache.entries()] == paths
    monkeypatch.setattr(cache, "_MAX_BYTES", 3 * size)
    cache.store(KEY, ARRAYS)
    assert [path for path, _ in cache.entries()] == [*paths[2:], folder / f"{KEY}.npz"]
    monkeypatch.setattr(cache, "_MAX_BYTES", size - 1)
    cache.store(KEY, ARRAYS)
    assert cache.entries() == []
    assert mine.exists()


def test_loss_functions_are_shared(folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LossFunction(P)
    assert len(list(folder.rglob("*.npz"))) == 1

    def fail(matrix: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(loss_module, "_lines", fail)
    second = LossFunction(P)
    assert (first.cached, second.cached) == (False, True)
    assert ", cached" in repr(second)
    assert second.lines == first.lines
    np.testing.assert_array_equal(second.pieces.start, first.pieces.start)
    with pytest.raises(AssertionError, match="computed again"):
        LossFunction(P, cache=False)


def test_deleted_or_damaged_loss_functions_are_computed_again(folder: Path, P: np.ndarray) -> None:
    first = LossFunction(P)
    path = next(folder.rglob("*.npz"))
    content = path.read_bytes()
    for damaged in (None, b"", b"PK", content[:-30], content[: len(content) // 2] + b"x" * (len(content) // 2)):
        if damaged is None:
            path.unlink()
        else:
            path.write_bytes(damaged)
        assert LossFunction(P).lines == first.lines
        # A damaged file has been replaced.
        assert LossFunction(P).cached


def test_another_matrix_is_another_file(folder: Path, P: np.ndarray) -> None:
    LossFunction(P)
    LossFunction(P[::-1])
    assert len(list(folder.rglob("*.npz"))) == 2


def test_small_matrices_are_stored_only_when_asked(folder: Path) -> None:
    small = [[0.8, 0.2], [0.2, 0.8]]
    LossFunction(small)
    assert not list(folder.rglob("*.npz"))
    LossFunction(small, cache=True)
    assert len(list(folder.rglob("*.npz"))) == 1
    assert LossFunction(small, cache=True)(1.0) == LossFunction(small)(1.0)


def _store_and_load(seed: int) -> bool:
    P = np.random.default_rng(0).dirichlet(np.ones(40), 40)
    expected = LossFunction(P, cache=False).lines
    for _ in range(10):
        if LossFunction(P).lines != expected:
            return False
        for path, _ in cache.entries() if seed % 2 else ():
            path.unlink(missing_ok=True)
    return True


@pytest.mark.slow
def test_many_processes_at_once(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert all(pool.map(_store_and_load, range(3)))
    assert not list(folder.rglob("*.partial"))


@each_row(
    "arrays",
    [
        {"G": np.zeros((2, 2)), "D": np.zeros(2), "rest": np.zeros(2)},
        {"G": np.array([0.5]), "D": np.array([0.5, 0.1]), "rest": np.array([0.1])},
        {"G": np.array([0.1, 0.2]), "D": np.array([0.2, 0.1]), "rest": np.array([0.1, 0.1])},
        {"G": np.array([np.nan]), "D": np.array([0.2]), "rest": np.array([0.1])},
        {"G": np.zeros(0), "D": np.zeros(0), "rest": np.zeros(0)},
        {"G": np.array([1]), "D": np.array([0]), "rest": np.array([0])},
        {"G": np.array([0.1])},
    ],
)
def test_what_is_no_loss_function_is_computed_again(folder: Path, P: np.ndarray, arrays: dict) -> None:
    truth = LossFunction(P)
    cache.store(truth.digest, arrays)
    assert LossFunction(P).lines == truth.lines
    found = cache.load(truth.digest)
    assert found is not None
    assert found["G"].tolist() == [line.G for line in truth.lines]


@pytest.mark.parametrize("n", [6, 40])
def test_sparse_and_dense_forms_share_one_entry(folder: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    P = rng.random((n, n)) * (rng.random((n, n)) < 0.4) + np.eye(n)
    P /= P.sum(axis=1, keepdims=True)
    dense, other = LossFunction(P, cache=True), LossFunction(sparse.csr_array(P), cache=True)
    assert other.digest == dense.digest
    assert other.cached
    assert other.lines == dense.lines
    assert sparse.issparse(other.matrix)
    assert len(list(folder.rglob("*.npz"))) == 1


def test_large_sparse_matrices_keep_their_own_digest() -> None:
    steps, n = np.random.default_rng(1).random((3, 1600)), 1600
    steps /= steps.sum(axis=0)
    state = np.arange(n)
    columns = np.concatenate([state, (state + 1) % n, (state + 2) % n])
    chain = sparse.csr_array((steps.ravel(), (np.tile(state, 3), columns)), shape=(n, n))
    as_sparse, as_dense = LossFunction(chain, cache=False), LossFunction(chain.toarray(), cache=False)
    assert as_sparse.digest != as_dense.digest
    alphas = np.array([0.01, 0.1, 1.0, 10.0])
    np.testing.assert_allclose(as_sparse(alphas), as_dense(alphas), rtol=1e-14, atol=1e-14)
