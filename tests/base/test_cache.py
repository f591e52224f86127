from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from rows import each_row

from mechdesign.base import _cache as cache
from mechdesign.errors import CacheWarning, ExportError
from mechdesign.leakage import _loss as loss_module
from mechdesign.leakage._loss import LossFunction

KEY = "ab" * 32
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], dtype=np.int64)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(name="P")
def random_matrix() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(40), 40)


def test_gives_back_what_was_stored(folder: Path) -> None:
    assert cache.load("kind", KEY) is None
    cache.store("kind", KEY, ARRAYS)
    found = cache.load("kind", KEY)
    assert found is not None
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert [path.name for path in (folder / "kind").iterdir()] == [f"{KEY}.npz"]


def test_a_file_of_another_key_or_kind_is_not_taken(folder: Path) -> None:
    cache.store("kind", KEY, ARRAYS)
    path = cache.path_of("kind", KEY)
    assert path is not None
    path.rename(path.with_name("cd" * 32 + ".npz"))
    assert cache.load("kind", "cd" * 32) is None


@pytest.mark.slow
def test_damage_at_any_byte_is_noticed_or_harmless(folder: Path) -> None:
    cache.store("kind", KEY, ARRAYS)
    path = cache.path_of("kind", KEY)
    assert path is not None
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :])
        cache.MEMORY.clear()
        found = cache.load("kind", KEY)
        # Bytes of the archive's own bookkeeping may change without changing any array.
        assert found is None or all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length])
        cache.MEMORY.clear()
        assert cache.load("kind", KEY) is None


def test_no_pickles(folder: Path) -> None:
    with pytest.raises(TypeError, match="objects"):
        cache.store("kind", KEY, {"a": np.array([None])})
    path = cache.path_of("kind", KEY)
    assert path is not None
    folder.mkdir(0o700)
    path.parent.mkdir(0o700)
    np.savez(path, a=np.array([{}], dtype=object), content_digest=np.zeros(32, dtype=np.uint8))
    assert cache.load("kind", KEY) is None


@each_row("value", ["off", "OFF", "0", "none"])
def test_can_be_turning_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, value)
    assert cache.folder() is None
    cache.store("kind", KEY, ARRAYS)
    assert cache.load("kind", KEY) is None


def test_is_in_the_users_cache_directory_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    folder = cache.folder()
    assert folder is not None
    assert "mechdesign" in folder.name


def test_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, P: np.ndarray) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "below"))
    cache.store("kind", KEY, ARRAYS)
    cache.MEMORY.clear()
    assert cache.load("kind", KEY) is None
    assert LossFunction(P)(1.0) == LossFunction(P, cache=False)(1.0)


@pytest.mark.parametrize("in_memory", [True, False])
def test_loss_functions_are_shared(
    folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    first = LossFunction(P)
    assert len(list(folder.rglob("*.npz"))) == 1
    if not in_memory:
        cache.MEMORY.clear()

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
        cache.MEMORY.clear()
        assert LossFunction(P).lines == first.lines
        # A damaged file has been replaced.
        cache.MEMORY.clear()
        assert path.read_bytes() == content or cache.load("loss-function-1", first.digest) is not None


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
        cache.MEMORY.clear()
        if LossFunction(P).lines != expected:
            return False
        path = cache.path_of("loss-function-1", LossFunction(P).digest)
        if path is not None and seed % 2:
            path.unlink(missing_ok=True)
    return True


@pytest.mark.slow
def test_many_processes_at_once(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert all(pool.map(_store_and_load, range(3)))
    assert not list(folder.rglob("*.tmp"))


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
    cache.store("loss-function-1", truth.digest, arrays)
    assert LossFunction(P).lines == truth.lines
    found = cache.load("loss-function-1", truth.digest)
    assert found is not None
    assert found["G"].tolist() == [line.G for line in truth.lines]


def test_the_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(cache.VARIABLE, "~/kept")
    assert cache.folder() == tmp_path / "kept"


def test_results_in_memory_are_found_without_the_disk(
    folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = LossFunction(P)
    monkeypatch.setattr(cache, "_content", None)
    monkeypatch.setattr(cache, "_is_ignored", None)
    assert LossFunction(P).lines == first.lines


def test_memory_keeps_the_results_used_last(folder: Path) -> None:
    cache.MEMORY.clear()
    for number in range(cache.MAX_REMEMBERED):
        cache.store("kind", f"{number:064x}", ARRAYS)
    assert cache.MEMORY.find(folder / "kind" / f"{0:064x}.npz") is not None
    cache.store("kind", KEY, ARRAYS)
    assert len(cache.MEMORY) == cache.MAX_REMEMBERED == 64
    assert cache.MEMORY.find(folder / "kind" / f"{0:064x}.npz") is not None
    assert cache.MEMORY.find(folder / "kind" / f"{1:064x}.npz") is None


def test_results_in_memory_cannot_be_changed(folder: Path) -> None:
    given = {"a": np.arange(3.0)}
    cache.store("kind", KEY, given)
    given["a"][0] = 7.0
    found = cache.load("kind", KEY)
    assert found is not None
    assert found["a"].tolist() == [0.0, 1.0, 2.0]
    assert not found["a"].flags.writeable


def test_turning_off_inside_a_block(folder: Path, P: np.ndarray) -> None:
    LossFunction(P)
    with cache.turning_off():
        assert not LossFunction(P).cached
        assert cache.entries() == []
        assert cache.clear() == ([], [])
    assert LossFunction(P).cached


def entry(folder: Path, number: int, age_s: float) -> Path:
    """Store an entry with random content that was last used some seconds ago."""
    key = f"{number:064x}"
    cache.store(cache.KINDS[0], key, {"a": np.arange(100.0)})
    path = folder / cache.KINDS[0] / f"{key}.npz"
    past = path.stat().st_mtime - age_s
    os.utime(path, (past, past))
    return path


def test_entries_are_listed_by_their_last_use(folder: Path) -> None:
    older, newer = entry(folder, 1, 1000.0), entry(folder, 2, 500.0)
    assert [each.path for each in cache.entries()] == [older, newer]
    cache.MEMORY.clear()
    assert cache.load(cache.KINDS[0], older.stem) is not None
    assert [each.path for each in cache.entries()] == [newer, older]
    assert all(each.size == each.path.stat().st_size for each in cache.entries())


def test_clear_removes_known_entries_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    ours = entry(folder, 1, 0.0)
    target = tmp_path / "mine.npz"
    target.write_bytes(b"mine")
    (folder / "notes.txt").write_text("mine")
    (folder / "other-kind-9").mkdir()
    (folder / "other-kind-9" / f"{KEY}.npz").write_bytes(b"")
    (folder / cache.KINDS[0] / f"{KEY}.npz").symlink_to(target)
    (folder / cache.KINDS[0] / "notes.txt").write_text("mine")
    (folder / "limit-bytes").mkdir()
    (folder / cache.KINDS[1]).symlink_to(tmp_path)
    removed, left = cache.clear()
    assert [each.path for each in removed] == [ours]
    assert not ours.exists()
    assert target.read_bytes() == b"mine"
    assert {path.relative_to(folder).as_posix() for path in left} == {
        "limit-bytes",
        "notes.txt",
        "other-kind-9",
        cache.KINDS[1],
        f"{cache.KINDS[0]}/{KEY}.npz",
        f"{cache.KINDS[0]}/notes.txt",
    }
    assert len(cache.MEMORY) == 0


def test_clear_removes_old_unfinished_files_only(folder: Path) -> None:
    entry(folder, 1, 0.0)
    place = folder / cache.KINDS[0]
    old, new = (place / f".{KEY}.npz.{name}.partial" for name in ("0123abcd", "89ab0123"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0.0, 0.0))
    cache.clear()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_limit_removes_the_entries_unused_for_longest(folder: Path) -> None:
    paths = [entry(folder, number, 1000.0 - number) for number in range(4)]
    size = paths[0].stat().st_size
    removed = cache.set_limit(3 * size)
    assert [each.path for each in removed] == paths[:1]
    assert not paths[0].exists()
    assert all(path.exists() for path in paths[1:])
    fifth = entry(folder, 9, 0.0)
    assert fifth.exists()
    assert not paths[1].exists()
    assert cache.read_limit() == 3 * size
    cache.set_limit(None)
    assert cache.read_limit() is None


def test_an_entry_above_the_limit_does_not_stay(folder: Path) -> None:
    cache.set_limit(10)
    assert not entry_exists(folder)


def entry_exists(folder: Path) -> bool:
    cache.store(cache.KINDS[0], KEY, ARRAYS)
    return (folder / cache.KINDS[0] / f"{KEY}.npz").exists()


@each_row("content", [b"", b"x", b"-5", b"1e9", bytes(9)])
def test_a_damaged_limit_is_no_limit(folder: Path, content: bytes) -> None:
    cache.set_limit(10)
    (folder / "limit-bytes").write_bytes(content)
    assert cache.read_limit() is None
    assert entry_exists(folder)


def test_a_full_disk_loses_nothing(folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_file", full)
    assert LossFunction(P)(1.0) == LossFunction(P, cache=False)(1.0)
    assert LossFunction(P).cached
    assert cache.entries() == []


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


def test_a_folder_that_others_can_write_is_left_alone(folder: Path) -> None:
    path = entry(folder, 1, 0.0)
    old = path.with_name(f".{KEY}.npz.0123abcd.partial")
    old.write_bytes(b"half")
    os.utime(old, (0.0, 0.0))
    folder.chmod(0o777)
    cache._WARNED.discard(folder)
    with pytest.warns(CacheWarning, match="it is ignored"):
        assert cache.entries() == []
    assert cache.clear() == ([], [])
    with pytest.raises(ExportError, match="the limit is not stored"):
        cache.set_limit(5)
    assert path.exists()
    assert old.exists()
    folder.chmod(0o700)
    assert len(cache.entries()) == 1


def test_a_kind_behind_a_link_is_not_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    folder.mkdir(0o700)
    (folder / "kind").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="contains kind, which is a link"):
        cache.store("kind", KEY, ARRAYS)
    assert not list((tmp_path / "elsewhere").iterdir())
