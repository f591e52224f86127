from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from mechdesign.base import _cache as cache
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
        found = cache.load("kind", KEY)
        # Bytes of the archive's own bookkeeping may change without changing any array.
        assert found is None or all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length])
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


@pytest.mark.parametrize("value", ["off", "OFF", "0", "none"])
def test_can_be_turned_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert cache.load("kind", KEY) is None
    assert LossFunction(P)(1.0) == LossFunction(P, cache=False)(1.0)


def test_loss_functions_are_shared(folder: Path, P: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LossFunction(P)
    assert len(list(folder.rglob("*.npz"))) == 1

    def fail(matrix: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(loss_module, "_lines", fail)
    second = LossFunction(P)
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
        # What was damaged has been replaced.
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


@pytest.mark.parametrize(
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
