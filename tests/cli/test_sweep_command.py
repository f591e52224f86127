"""`mechdesign sweep`."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, run, well, write
from sweep_examples import text

import mechdesign as md
from mechdesign.data.matrices import read_budgets
from mechdesign.runs import sweep as module

RESPONSE = """
domain.labels = ["a", "b", "c"]
prior.counts = [3, 2, 1]
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
"""
LISTS = '"privacy.0.epsilon" = [0.5, 1]\n"cost.power" = [1, 2]'


pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture
def lists() -> str:
    return write(text(LISTS))


def test_a_table_and_what_is_next_are_shown(lists: str) -> None:
    shown = well("sweep", lists, "-o", "my out", "--jobs", 1).stdout
    assert "4 designs: 4 done" in shown
    rows = [line.split() for line in shown.partition("\ndesigns\n")[2].splitlines()[1:5]]
    for row, exact in zip(rows, csv.DictReader(Path("my out/results.csv").read_text().splitlines()), strict=True):
        cost, bound, epsilon = (float(exact[name]) for name in ("cost", "lower_bound", "tight_epsilon"))
        assert float(row[4]) <= bound <= cost <= float(row[3])
        assert epsilon <= float(row[6])
    following = shown[shown.index("\nnext") :]
    assert "'my out'/report.html" in following
    verify = next(line for line in following.splitlines() if line.startswith("mechdesign verify"))
    well(*shlex.split(verify, comments=True)[1:])
    before = {path: path.stat().st_mtime_ns for path in Path("my out").rglob("certificate.json")}
    Path("my out/.DS_Store").write_text("of a file manager")
    assert "4 designs: 4 done" in well("sweep", lists, "-o", "my out").stdout
    assert before == {path: path.stat().st_mtime_ns for path in Path("my out").rglob("certificate.json")}


def test_parts_say_so_and_make_no_table(lists: str) -> None:
    shown = well("sweep", lists, "-o", "out", "--jobs", 1, "--part", "2/3").stdout
    assert "1 of 4 designs: 1 done" in shown
    assert "results.csv" not in shown
    assert not Path("out/results.csv").exists()


def test_points_of_another_host_are_named_with_the_remedy(lists: str) -> None:
    name = md.sweep.points(lists)[2].name
    Path("out", name).mkdir(parents=True)
    Path("out", name, "claim-0").write_text('{"host": "elsewhere", "process": 12, "started": 0}')
    done = well("sweep", lists, "-o", "out", "--jobs", 1)
    assert "4 designs: 3 done, 1 missing" in done.stdout
    assert "1 missing: process 12 of elsewhere makes it; if it has ended, call again with --retry" in done.stderr
    assert "4 designs: 4 done" in well("sweep", lists, "-o", "out", "--jobs", 1, "--retry").stdout


def test_from_a_target_to_channels_that_keep_it() -> None:
    write("0.8,0.2\n0.2,0.8\n", "B.csv")
    well("budget", "--alpha", 1, "--steps", 5, "--backward", "B.csv", "-o", "budgets.csv")
    budgets = read_budgets("budgets.csv").tolist()
    write(RESPONSE + f'[sweep]\n"privacy.0.epsilon" = {sorted(set(budgets))}\n')
    well("sweep", "s.toml", "-o", "out", "--jobs", 1)
    rows = csv.DictReader(Path("out/results.csv").read_text().splitlines())
    designs = {float(row["privacy.0.epsilon"]): md.verify(f"out/{row['channel']}") for row in rows}
    spent = [designs[epsilon].requirements[0].realised for epsilon in budgets]
    leaked = md.leakage.temporal(spent, [[0.8, 0.2], [0.2, 0.8]])
    assert leaked.max() <= 1
    assert leaked.min() == pytest.approx(1, rel=1e-9)


def test_failed_rows_are_no_failure_of_the_command() -> None:
    floor = '[[privacy]]\nkind = "distortion"\nminimum = 1\ndistance = "euclidean"\n[sweep]'
    write(text('"privacy.1.minimum" = [0.1, 9]').replace("[sweep]", floor))
    assert "2 designs: 1 done, 1 failed" in well("sweep", "s.toml", "--jobs", 1).stdout


def test_ctrl_c_gives_130(lists: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, genuine = [], module._solve

    def stopped(task):
        calls.append(task)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return genuine(task)

    monkeypatch.setattr(module, "_solve", stopped)
    result = run("sweep", lists, "--jobs", 1)
    assert result.exit_code == 130
    assert "the same command makes the missing designs" in result.stderr
    assert "4 designs: 4 done" in well("sweep", lists, "--jobs", 1).stdout
    assert len(calls) == 5


def test_wrong_usage(lists: str) -> None:
    write(text().partition("[sweep]")[0], "single.toml")
    write(text('"privacy.0.epsilon" = [1, -2]'), "wrong.toml")
    assert_wrong_usage(
        {
            "sweep none.toml": "cannot be opened",
            "sweep s.toml -o ''": "'-o' / '--output': is empty",
            "sweep s.toml --jobs 0": "--jobs: is too small; found 0",
            "sweep s.toml --jobs 2 --dask tcp://127.0.0.1:1": "--jobs: cannot be combined with a Dask cluster",
            "sweep s.toml --part 3": "--part: is not a part; found '3'; must be a part such as \"3/16\"",
            "sweep single.toml": "Add [sweep]",
            "sweep wrong.toml": 'sweep."privacy.0.epsilon"[1]: privacy[0].epsilon',
        }
    )


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer(lists: str) -> None:
    pytest.importorskip("distributed")
    assert_wrong_usage({"sweep s.toml --dask nowhere": "--dask: does not answer"})
