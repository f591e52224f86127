"""``mechdesign cache``, and what commands print about cached results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import run, well

from mechdesign.base import _cache as cache
from mechdesign.leakage import LossFunction


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(name="P")
def random_matrix() -> Any:
    matrix = np.random.default_rng(0).dirichlet(np.ones(40), 40)
    np.save("P.npy", matrix)
    return matrix


def test_shows_and_clears(folder: Path, P: Any) -> None:
    assert shown() == {"folder": str(folder), "entries": 0, "bytes": 0}
    LossFunction(P)
    (folder / "notes.npz").write_text("mine")
    ((_, size),) = cache.entries()
    assert shown() == {"folder": str(folder), "entries": 1, "bytes": size}
    assert shown("--clear") == {
        "said": "These entries were removed.",
        "folder": str(folder),
        "entries": 1,
        "bytes": size,
    }
    assert [each.name for each in folder.iterdir()] == ["notes.npz"]
    folder.chmod(0o755)
    assert well("cache").output.startswith(
        "the cache is off: MECHDESIGN_CACHE says so, or others can access its folder"
    )


def shown(*options: str) -> dict[str, object]:
    return json.loads(well("cache", *options, "--json").stdout)


def test_says_that_the_cache_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    for words in ((), ("--clear",)):
        assert well("cache", *words).output.startswith("the cache is off: "), words


def test_commands_say_cached_but_files_do_not(folder: Path, P: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("leakage", "--backward", "P.npy", "--epsilon", "0.1", "--steps", "2", "-o")
    first, second = (run(*words, name) for name in ("first.csv", "second.csv"))
    with monkeypatch.context() as patched:
        patched.setenv(cache.VARIABLE, "off")
        third = run(*words, "third.csv")
    assert ["cached" in each.stderr for each in (first, second, third)] == [False, True, False]
    (written,) = {Path(name).read_bytes() for name in ("first.csv", "second.csv", "third.csv")}
    assert b"cached" not in written


def test_without_a_cache_nothing_is_read_or_written(folder: Path, P: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("budget", "--alpha", "1", "--backward", "P.npy")
    with monkeypatch.context() as patched:
        patched.setenv(cache.VARIABLE, "off")
        well(*words)
    assert not folder.exists()
    well(*words)
    assert len(cache.entries()) == 1
