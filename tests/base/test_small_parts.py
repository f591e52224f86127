"""Small parts that many others use: steps of a path, the longest line, labelled priors, numbers of a sweep, alarms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base._errors import keys_of
from mechdesign.data import _bounds as bounds
from mechdesign.errors import InputError
from mechdesign.report._explorer import panel_attributes
from mechdesign.runs import _worker as worker
from mechdesign.runs._sweep_page import choose_layout


def test_paths_have_a_step_for_each_name_and_index() -> None:
    for path, steps in {
        "blood-type[1].values": ("blood-type", 1, "values"),
        "privacy[0].epsilon": ("privacy", 0, "epsilon"),
        "a": ("a",),
        "a-b.c-d": ("a-b", "c-d"),
        "folder/file.csv": ("folder/file.csv",),
    }.items():
        assert keys_of(path) == steps, path


def test_lines_up_to_sixteen_megabytes_are_read(tmp_path: Path) -> None:
    assert bounds._MAX_LINE_BYTES == 2**24
    path = tmp_path / "wide.csv"
    path.write_text("count," + "x" * 2**21 + "\n1,2\n")
    with pytest.raises(InputError) as caught:
        md.data.read_places(path, "id")
    assert "too long" not in str(caught.value)


class Series:
    """A series of numbers with an index, in the form that pandas gives it."""

    def __init__(self, values: list[float], index: list[object]) -> None:
        self.values, self.index, self.ndim = np.array(values), index, 1

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> np.ndarray:
        return self.values


def test_a_prior_with_positions_in_another_order_is_refused() -> None:
    with pytest.raises(InputError):
        md.Prior(Series([0.5, 0.3, 0.2], [2, 0, 1]))
    assert md.Prior(Series([0.5, 0.3, 0.2], [0, 1, 2])).probabilities.tolist() == [0.5, 0.3, 0.2]


def test_truth_values_are_no_numbers_of_an_axis() -> None:
    layout = choose_layout({"privacy.0.name": ["a", "b", "c"], "prior.flag": [False, True]}, "product")
    assert layout == choose_layout({"privacy.0.name": ["a", "b", "c"], "prior.flag": ["no", "yes"]}, "product")
    numbers = choose_layout({"privacy.0.name": ["a", "b", "c"], "prior.flag": [0, 1]}, "product")
    assert numbers != layout


def test_descriptions_of_maps_begin_with_their_title_if_there_is_one() -> None:
    for title in ("", "Error"):
        made = panel_attributes(np.array([1.0, 3.0]), None, "error", "secrets", "error", title, "km")
        assert made["aria-label"].startswith("Error: error" if title else "error, 2 values")


def test_a_worker_sets_an_alarm_for_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(worker, "_set_alarm", asked.append)
    monkeypatch.setattr(worker, "run", lambda task: iter(()))
    monkeypatch.setattr(worker.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    line = b'{"time_limit": 12.5}\n'
    monkeypatch.setattr(worker.sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=lambda: line)))
    monkeypatch.setattr(worker.os, "dup2", lambda *_: None)
    worker.main()
    assert asked == [12.5]
