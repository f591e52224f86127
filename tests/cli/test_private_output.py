"""What commands write for the owner alone is readable by nobody else, and what others can write is not believed."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run

from mechdesign.base import _cache as cache
from mechdesign.data import _bounds as bounds

_TRACE = """
[domain]
grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 1
blocks = 3
[release]
mechanism = "lp"
transition = { neighbours = 4 }
"""

posix = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in folder.iterdir()}


@posix
@pytest.mark.usefixtures("blank_pictures")
def test_true_states_and_chains_are_their_owners_alone(tmp_path: Path, umask: int) -> None:
    (tmp_path / "s.toml").write_text(_TRACE)
    (tmp_path / "t.csv").write_text("1\n2\n")
    result = run("release", "s.toml", "t.csv", "-o", "out", "--truth", "in/mine", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "in" / "mine").iterdir())) > 1
    assert (modes(tmp_path / "in"), modes(tmp_path / "in" / "mine")) == ({0o700}, {0o600})
    assert modes(tmp_path / "out") == {0o666 & ~umask}
    assert run("chain", "s.toml", "-o", "chain").exit_code == 0
    assert ((tmp_path / "chain").stat().st_mode & 0o777, modes(tmp_path / "chain")) == (0o700, {0o600})
    if umask:
        return
    # Files of an earlier version keep their modes, and are named.
    (tmp_path / "chain").chmod(0o755)
    (tmp_path / "chain" / "forward.csv").chmod(0o644)
    said = run("chain", "s.toml", "-o", "chain").stderr
    assert said.count("chmod 600 chain/forward.csv") == said.count("chmod") == 1
    assert modes(tmp_path / "chain") == {0o644, 0o600}
    (tmp_path / "in" / "mine" / "true.csv").chmod(0o644)
    said = run("release", "s.toml", "t.csv", "-o", "out", "--truth", "in/mine", "--seed", 1).stderr
    assert said.count("chmod 600 in/mine/true.csv") == 1


@posix
def test_a_cache_that_others_can_write_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_WARNED", set())
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    np.savetxt(tmp_path / "P.csv", 0.9 * np.eye(40) + 0.1 / 40, delimiter=",")
    result = run("leakage", "P.csv", "--forward", "P.csv", "--epsilon", 1, "--steps", 2)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("is ignored") == 1
    assert not list((tmp_path / "cache").iterdir())


def test_memory_raises_the_bound_of_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_MAX_UNPACKED_BYTES", 2**9)
    monkeypatch.setattr(bounds, "_MAX_EXPANSION_RATIO", 1)
    np.savez_compressed(tmp_path / "a.npz", P=np.full((8, 8), 0.125))
    (tmp_path / "P.csv.gz").write_bytes(gzip.compress(b"0.5,0.5\n" + b"#\n" * 2**10 + b"0.5,0.5\n"))
    commands = (
        ("audit", "a.npz", "--distance", "hamming", "--no-optimum"),
        ("leakage", "P.csv.gz", "--epsilon", 1, "--steps", 2),
    )
    for command in commands:
        result = run(*command)
        assert result.exit_code == 2
        assert "unpacks to much more" in result.stderr
        assert "--memory" in result.stderr
        assert run(*command, "--memory", 1).exit_code == 0
        for wrong in (0, -1, "nan"):
            refused = run(*command, "--memory", wrong)
            assert refused.exit_code == 2
            assert "--memory" in refused.stderr


def test_memory_raises_the_bound_of_designs(original: Path) -> None:
    for command in ("inspect", "attack"):
        assert run(command, original, "--memory", 1e-6).exit_code == 3
        assert run(command, original, "--memory", 1).exit_code == 0
