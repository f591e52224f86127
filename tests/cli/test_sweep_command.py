"""`mechdesign sweep`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_examples import run
from sweep_examples import text

from mechdesign.runs import _engines as local
from mechdesign.runs._engines import solve

LISTS = '"privacy.0.epsilon" = [0.5, 1]\n"cost.power" = [1, 2]'


@pytest.fixture
def lists():
    Path("s.toml").write_text(text(LISTS), encoding="utf-8")
    return "s.toml"


def test_a_table_and_what_is_next_are_shown(lists):
    result = run("sweep", lists, "-o", "out", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "4 designs: 4 done" in result.stdout
    assert "privacy.0.epsilon" in result.stdout
    assert "out/report.html" in result.stdout[result.stdout.index("\nnext") :]
    assert run("verify", "out/channels/3").exit_code == 0
    assert {path.name for path in Path("out").iterdir()} >= {"results.csv", "report.html", "rows", "channels"}
    again = run("sweep", lists, "-o", "out", "--jobs", 1)
    assert again.exit_code == 2
    assert "Resume it" in again.stderr
    assert run("sweep", lists, "-o", "out", "--jobs", 1, "--resume").exit_code == 0


def test_failed_rows_are_no_failure_of_the_command():
    tables = text('"privacy.1.minimum" = [0.1, 9]').replace(
        "[sweep]", '[[privacy]]\nkind = "distortion"\nminimum = 1\ndistance = "euclidean"\n[sweep]'
    )
    Path("s.toml").write_text(tables, encoding="utf-8")
    result = run("sweep", "s.toml", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "2 designs: 1 done, 1 failed" in result.stdout


def test_ctrl_c_gives_130(lists, monkeypatch):
    calls = []

    def stopped(task):
        calls.append(task)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(task)

    monkeypatch.setattr(local, "solve", stopped)
    result = run("sweep", lists, "--jobs", 1)
    assert result.exit_code == 130
    assert "2 rows remain, which --resume runs" in result.stderr
    assert "2 done, 1 interrupted" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.toml"], "cannot be opened"),
        (["s.toml", "--jobs", 0], "--jobs: is too small; found 0"),
        (["s.toml", "--jobs", 2, "--dask", "tcp://127.0.0.1:1"], "--jobs: cannot be combined with a Dask cluster"),
        (["s.toml", "--dask", "nowhere"], "--dask: does not answer"),
        (["single.toml"], "Add [sweep]"),
        (["wrong.toml"], 'sweep."privacy.0.epsilon"[1]: privacy[0].epsilon'),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(lists, arguments, words):
    if "--dask" in arguments:
        pytest.importorskip("distributed")
    Path("single.toml").write_text(text().partition("[sweep]")[0], encoding="utf-8")
    Path("wrong.toml").write_text(text('"privacy.0.epsilon" = [1, -2]'), encoding="utf-8")
    result = run("sweep", *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert not Path("sweep").exists()
