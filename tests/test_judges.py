"""Verdicts of figures: they come from the rows, and other rows give other verdicts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from papers import experiment, figure
from papers.experiments import Row
from papers.temporal_leakage_runs import EXAMPLE_4
from mechdesign import leakage


def falsified(name: str, **changes: float) -> tuple[int, int]:
    """Return how many cases of a figure hold, as stored and with some columns of all rows multiplied."""
    shown = figure(name)
    rows: list[Row] = shown.experiment.stored("small").rows
    other = [row | {column: row[column] * factor for column, factor in changes.items()} for row in rows]
    return shown.judge(rows).held, shown.judge(other).held


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("temporal_leakage_3", {"BPL": 1.1}),
        ("temporal_leakage_4", {"L": 1.1}),
        ("temporal_leakage_5", {"BPL": 2}),
        ("temporal_leakage_7", {"nearly": 10}),
        ("temporal_leakage_8", {"TPL": 1.01}),
        ("temporal_leakage_9", {"alone": 1000}),
        ("pglp_6", {"E_eu": -1}),
        ("dphmm_11", {"error": -1}),
        ("dphmm_12", {"error": -1}),
        ("dphmm_13", {"degree": -1}),
        ("dphmm_adversaries", {"level": 0.5}),
    ],
)
def test_other_rows_give_another_verdict(name, changes):
    held, other = falsified(name, **changes)
    assert other < held


def test_a_claim_that_fails_would_hold_on_other_rows():
    assert falsified("pglp_8_example", snapped=1) == (0, 0)
    shown = figure("pglp_8_example")
    rows = shown.experiment.stored("small").rows
    better = [row | {"snapped": 0.0} if row["method"] == "area" else row for row in rows]
    assert shown.judge(better).held == 1


def test_losses_of_pairs_are_those_of_the_linear_fractional_program():
    matrix = np.array(EXAMPLE_4)
    for row in experiment("temporal_leakage_loss").stored("small").rows:
        if row["kind"] == "curve" and row["alpha"] > 0:
            for q, d in permutations(range(3), 2):
                value = leakage.fractional(matrix[q], matrix[d], row["alpha"])
                assert row[f"({q + 1}, {d + 1})"] == pytest.approx(value, abs=1e-7)


def test_of_a_folder_of_data_every_file_counts(tmp_path, monkeypatch):
    traces = experiment("dphmm_traces")
    monkeypatch.setenv("MECHDESIGN_DATA", str(tmp_path))
    for name in traces.data:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / traces.data[0]).write_text("1")
    assert traces.missing_data == ("geolife_trackintel",)
    folder = tmp_path / "geolife_trackintel" / "a"
    folder.mkdir(parents=True)
    (folder / "b.plt").write_text("1")
    before = traces._digests()
    (folder / "c.plt").write_text("1")
    assert before != traces._digests()
    (folder / "c.plt").unlink()
    assert before == traces._digests()
    (folder / "b.plt").rename(folder / "d.plt")
    assert before != traces._digests()
