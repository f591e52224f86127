"""Counts beside the matrices that were estimated from them: found again for their matrices, and refused if changed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused_at

from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_file, counts_of, direction_of
from mechdesign.model._markov import MarkovChain

COUNTS = np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0], [0.0, 5.0, 4.0]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chain = MarkovChain.from_counts(COUNTS, smoothing=0.5)
    files = {"forward.csv": b"forward", "backward.csv": b"backward"}
    files[CHAIN_COUNTS] = counts_file(chain, files)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "other.csv").write_bytes(b"other")
    return tmp_path


def test_each_matrix_finds_its_counts(folder: Path) -> None:
    # The counts of steps back are the transpose of those forward.
    for name, expected in (("forward", COUNTS), ("backward", COUNTS.T)):
        found = counts_of(folder / f"{name}.csv")
        assert found is not None
        assert (found.counts.tolist(), found.smoothing) == (expected.tolist(), 0.5)
        assert direction_of(folder / f"{name}.csv") == name
    assert counts_of(folder / "other.csv") is None
    assert direction_of(folder / "other.csv") == ""
    # A matrix that was changed is another one.
    (folder / "forward.csv").write_bytes(b"forwards")
    assert counts_of(folder / "forward.csv") is None


def test_a_link_finds_the_counts_of_its_target(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "mine.csv"
    link.symlink_to(folder / "backward.csv")
    found = counts_of(link)
    assert found is not None
    assert found.counts.tolist() == COUNTS.T.tolist()
    assert direction_of(link) == "backward"


def test_without_counts_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "forward.csv").write_bytes(b"forward")
    assert counts_of(tmp_path / "forward.csv") is None
    assert direction_of(tmp_path / "forward.csv") == ""
    assert_refused_at([(lambda: counts_file(MarkovChain(np.eye(2)), {}), "chain", "has no counts")])


def test_what_is_no_file_of_counts_is_refused(folder: Path) -> None:
    path = folder / CHAIN_COUNTS
    whole = json.loads(path.read_text())
    two = [[0, 1, 3.0], [1, 0, 2.0]]
    changes = (
        {"schema": "mechdesign-chain-counts/2"}, {"smoothing": -0.5}, {"smoothing": "1"}, {"smoothing": float("nan")},
        {"smoothing": float("inf")}, {"smoothing": True}, {"states": 2}, {"states": 0}, {"states": 3.0},
        {"states": 20_001}, {"matrices": {"forward": "x"}}, {"matrices": {"forward": 1, "backward": 2}},
        {"steps": [*two, [0, 0, 0.0]]}, {"steps": [*two, [0, 0, -1.0]]}, {"steps": [*two, [0, 0, float("nan")]]},
        {"steps": [*two, [3, 0, 1.0]]}, {"steps": [*two, [0, -1, 1.0]]}, {"steps": [*two, [0, 0.5, 1.0]]},
        {"steps": [[0, 1]]}, {"steps": "x"},
    )  # fmt: skip
    for change in changes:
        path.write_text(json.dumps({**whole, **change}))
        assert_refused_at([(lambda: counts_of(folder / "forward.csv"), str(path))])
    for content in (b"", b"[]", b"{", b"\xff", b"[" * 100_000):
        path.write_bytes(content)
        assert_refused_at([(lambda: counts_of(folder / "forward.csv"), str(path))])
    # The largest number of states, and no smoothing, are taken.
    path.write_text(json.dumps({**whole, "smoothing": 0, "steps": two}))
    found = counts_of(folder / "forward.csv")
    assert found is not None
    assert (found.smoothing, found.counts.sum()) == (0.0, 5.0)
