"""``mechdesign cache``, and what commands print about cached results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, run, well

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


def test_list_path_and_clear(folder: Path, P: Any) -> None:
    assert run("cache", "path").output == f"{folder}\n"
    assert "0 entries, 0 bytes, no limit" in run("cache", "list").output
    loss = LossFunction(P)
    listed = run("cache", "list").output
    assert loss.digest[:12] in listed
    assert "1 entry" in listed
    (folder / "notes.txt").write_text("mine")
    assert run("cache", "clear", text="n\n").exit_code == 130
    assert cache.entries()
    cleared = well("cache", "clear", "--yes").output
    assert "removed 1 entry" in cleared
    # What is not of the cache stays.
    assert f"left      {folder / 'notes.txt'}" in cleared
    assert not cache.entries()


def test_limit(folder: Path, P: Any) -> None:
    # Every digit counts: the last number is no float.
    for size, said in (("500MB", "500,000,000"), ("1.5KiB", "1,536"), ("9007199254740993", "9,007,199,254,740,993")):
        assert run("cache", "limit", size).output == f"limit {said} bytes\n"
    LossFunction(P)
    assert "limit 9,007,199,254,740,993 bytes" in run("cache", "list").output
    assert "removed 1 entry" in run("cache", "limit", "100 B").output
    assert run("cache", "limit", "none").output == "no limit\n"
    assert "no limit" in run("cache", "list").output


def test_wrong_usage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ["''", "0", "0MB", "MB", "-5", "5XB", "'5 5'", "1e3MB", "nan", "inf", "٥MB", "'500MB;'", "9" * 400]
    sizes += ["0.1B", "2000000000GB"]
    assert_wrong_usage({f"cache limit -- {size}": "SIZE: is not a size" for size in sizes})
    monkeypatch.setenv(cache.VARIABLE, "~nobody-of-this-name/cache")
    assert_wrong_usage({"cache list": "MECHDESIGN_CACHE: names the home folder of an unknown user"})


def test_all_say_that_the_cache_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    for words in ("list", "path", "clear", "clear --yes", "limit 5MB"):
        assert well("cache", *words.split()).output == "the cache is off (MECHDESIGN_CACHE=off)\n", words


def test_commands_say_cached_but_files_do_not(folder: Path, P: Any) -> None:
    words = ("leakage", "P.npy", "--epsilon", "0.1", "--steps", "2", "-o")
    first, second = (run(*words, name) for name in ("first.csv", "second.csv"))
    third = run(*words, "third.csv", "--no-cache")
    assert ["cached" in each.stderr for each in (first, second, third)] == [False, True, False]
    assert first.stdout == second.stdout == third.stdout
    (written,) = {Path(name).read_bytes() for name in ("first.csv", "second.csv", "third.csv")}
    assert b"cached" not in written


def test_no_cache_neither_reads_nor_writes(folder: Path, P: Any) -> None:
    words = ("budget", "--alpha", "1", "--backward", "P.npy")
    well(*words, "--no-cache")
    assert not folder.exists()
    well(*words)
    assert len(cache.entries()) == 1
