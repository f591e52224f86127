"""Which array library solves a program: Numba where its passes are compiled, or where compiling them pays."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import SimpleNamespace

import pytest

from mechdesign.solve._blocks import kernels

SMALL, SOME, MANY = 249_999, 250_000, 2_500_000


def library(rows: int, limit: float | None = None, *, name: str | None = None, sparse: bool = False) -> str:
    return kernels.choose(name, rows, sparse=sparse, time_limit=limit).__module__.rpartition(".")[2]


@pytest.mark.parametrize("compiled", [False, True])
def test_numba_is_chosen_where_it_saves_time(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    module = importlib.import_module("mechdesign.solve._blocks.kernels.numba")
    monkeypatch.setattr(module, "is_compiled", lambda: compiled)
    where_compiled = "numba" if compiled else "numpy"
    for rows, limit, expected in [
        (SMALL, None, "numpy"),
        (SOME, None, where_compiled),
        (MANY - 1, None, where_compiled),
        (MANY, None, "numba"),
        (MANY, 60.0, "numba"),
        (MANY, 59.9, where_compiled),
        (SOME, 3.0, where_compiled),
    ]:
        assert library(rows, limit) == expected, (rows, limit)
    # Who asks for Numba by name waits for the compilation.
    assert library(SMALL, 3.0, name="numba") == "numba"
    assert library(MANY, sparse=True) == "sparse"


def test_numpy_does_the_work_where_numba_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.importlib, "util", SimpleNamespace(find_spec=lambda name: None))
    assert library(MANY) == "numpy"


def test_passes_that_lie_compiled_on_disk_are_seen_before_they_are_loaded(monkeypatch, tmp_path) -> None:
    pytest.importorskip("numba")
    module = importlib.import_module("mechdesign.solve._blocks.kernels.numba")
    stored = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path)), signatures=[], __name__="_advance")
    monkeypatch.setattr(module, "_advance", stored)
    assert not module.is_compiled()
    index = tmp_path / "numba._advance-300.py311.nbi"
    index.touch()
    assert module.is_compiled()
    # What was compiled from an earlier version of the file is compiled again.
    os.utime(index, (0, 0))
    assert not module.is_compiled()
