"""A verifier whose result cannot be told does not end with 1, which says that a proof does not hold."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundles import made, put

from mechdesign.certify import __main__, second_verifier

BOTH = pytest.mark.parametrize("verifier", [__main__, second_verifier])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    put(tmp_path, made("expected cost"))
    return str(tmp_path)


@contextlib.contextmanager
def unread(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """Make a standard stream a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    # Python writes what is left when a stream is closed.
    with os.fdopen(writer, "w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, name, stream)
        yield


class Full(io.FileIO):
    """A file on a full disk."""

    encoding = "utf-8"

    def write(self, text: object) -> int:
        raise OSError(28, "No space left on device")


@BOTH
def test_nobody_reads_that_it_holds(monkeypatch: pytest.MonkeyPatch, folder: str, verifier) -> None:
    with unread(monkeypatch, "stdout"):
        assert verifier.main([folder]) == 141


@BOTH
def test_a_disk_is_full(monkeypatch: pytest.MonkeyPatch, folder: str, verifier) -> None:
    with Full(os.dup(1), "w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert verifier.main([folder]) == 2


@BOTH
def test_what_does_not_hold_is_1_all_the_same(monkeypatch: pytest.MonkeyPatch, folder: str, verifier) -> None:
    (Path(folder) / "channel.csv").write_text("another")
    with unread(monkeypatch, "stderr"):
        assert verifier.main([folder]) == 1


@BOTH
def test_streams_of_another_encoding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verifier) -> None:
    named = tmp_path / "Straße"
    named.mkdir()
    put(named, made("expected cost"))
    said = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(said, encoding="ascii"))
    assert verifier.main([str(named)]) == 0
    assert b"Stra\\xdfe" in said.getvalue()


@pytest.mark.parametrize(("raised", "code"), [(MemoryError(), 2), (ZeroDivisionError(), 70), (RuntimeError(), 70)])
def test_what_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys, folder: str, raised: Exception, code: int) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(__main__, "examine", fail)
    assert __main__.main([folder]) == code
    assert ("not enough memory" in capsys.readouterr().err) == (code == 2)


def test_memory_of_the_second_verifier(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(second_verifier, "prove", fail)
    assert second_verifier.main([folder]) == 2
