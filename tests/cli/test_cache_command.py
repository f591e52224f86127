"""``mechdesign cache``, and what commands print about cached results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mechdesign.base import _cache as cache
from mechdesign.cli import main
from mechdesign.leakage import LossFunction


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(name="P")
def random_matrix() -> Any:
    return np.random.default_rng(0).dirichlet(np.ones(40), 40)


def run(*words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(words), input=text)


def test_list_path_and_clear(folder: Path, P: Any) -> None:
    assert run("cache", "path").output == f"{folder}\n"
    assert "0 entries, 0 bytes, no limit" in run("cache", "list").output
    loss = LossFunction(P)
    listed = run("cache", "list").output
    assert loss.digest[:12] in listed
    assert "1 entry" in listed
    (folder / "notes.txt").write_text("mine")
    refused = run("cache", "clear", text="n\n")
    assert refused.exit_code == 130
    assert cache.entries()
    cleared = run("cache", "clear", "--yes")
    assert cleared.exit_code == 0
    assert "removed 1 entry" in cleared.output
    assert f"left      {folder / 'notes.txt'}" in cleared.output
    assert not cache.entries()


def test_limit(folder: Path, P: Any) -> None:
    assert run("cache", "limit", "500MB").output == "limit 500,000,000 bytes\n"
    LossFunction(P)
    assert "limit 500,000,000 bytes" in run("cache", "list").output
    assert "removed 1 entry" in run("cache", "limit", "100 B").output
    assert run("cache", "limit", "1.5KiB").output == "limit 1,536 bytes\n"
    assert run("cache", "limit", "none").output == "no limit\n"
    assert "no limit" in run("cache", "list").output


@pytest.mark.parametrize(
    "size",
    [
        "",
        "0",
        "0MB",
        "MB",
        "-5",
        "5XB",
        "5 5",
        "1e3MB",
        "nan",
        "inf",
        "٥MB",
        "500MB;",
        "9" * 400,
        "0.1B",
        "2000000000GB",
    ],
)
def test_wrong_sizes_are_refused(folder: Path, size: str) -> None:
    result = run("cache", "limit", "--", size)
    assert result.exit_code == 2
    assert "SIZE: is not a size" in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize("words", [("list",), ("path",), ("clear",), ("clear", "--yes"), ("limit", "5MB")])
def test_all_say_that_the_cache_is_off(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    result = run("cache", *words)
    assert result.exit_code == 0
    assert result.output == "the cache is off (MECHDESIGN_CACHE=off)\n"


def test_the_home_folder_of_an_unknown_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "~nobody-of-this-name/cache")
    result = run("cache", "list")
    assert result.exit_code == 2
    assert "MECHDESIGN_CACHE: names the home folder of an unknown user" in result.stderr


def test_limits_keep_every_digit(folder: Path) -> None:
    assert run("cache", "limit", "9007199254740993").output == "limit 9,007,199,254,740,993 bytes\n"


def test_commands_say_cached_but_files_do_not(folder: Path, P: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "P.npy", P)
    words = ("leakage", str(tmp_path / "P.npy"), "--epsilon", "0.1", "--steps", "2", "-o")
    first = run(*words, str(tmp_path / "first.csv"))
    second = run(*words, str(tmp_path / "second.csv"))
    third = run(*words, str(tmp_path / "third.csv"), "--no-cache")
    assert ["cached" in each.stderr for each in (first, second, third)] == [False, True, False]
    assert first.stdout == second.stdout == third.stdout
    files = {(tmp_path / name).read_bytes() for name in ("first.csv", "second.csv", "third.csv")}
    assert len(files) == 1
    assert b"cached" not in files.pop()


def test_no_cache_neither_reads_nor_writes(folder: Path, P: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "P.npy", P)
    words = ("budget", "--alpha", "1", "--backward", str(tmp_path / "P.npy"))
    assert run(*words, "--no-cache").exit_code == 0
    assert not folder.exists()
    assert run(*words).exit_code == 0
    assert len(cache.entries()) == 1
