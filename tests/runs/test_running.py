"""Runs in processes of their own: limits, resumption, kills, and what the command says."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from types import MappingProxyType, SimpleNamespace

import pytest
from cli_examples import assert_wrong_usage, well
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import StateError
from mechdesign.runs import _worker as worker
from mechdesign.runs import bench as suites
from mechdesign.runs._worker import run_in_worker
from mechdesign.runs.bench import COLUMNS, Suite

pytestmark = pytest.mark.slow

TINY = Suite("tiny", {"grid": (4,), "distortion": (4,)}, (0,), 60.0, 4.0)
TASK = {"family": "grid", "n": 9, "seed": 0, "contestant": "highs-simplex", "threads": 1}
STABLE = ("family", "n", "seed", "solver", "settings", "claimed", "certified", "censored", "rounded", "rows")


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(suites, "SUITES", MappingProxyType({"tiny": TINY, "small": suites.SUITES["small"]}))


def stable(directory) -> list[tuple[str, ...]]:
    with (directory / "results.csv").open(newline="") as file:
        return [tuple(row[name] for name in STABLE) for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("family", "contestant"),
    [
        *(("grid", each) for each in ("auto", "block (NumPy)", "highs-simplex", "highs-ipx (no crossover)")),
        *((family, each) for family in ("joint", "worst-cost") for each in ("auto", "highs-simplex")),
    ],
)
def test_ours_and_theirs_agree_on_the_cost(family, contestant):
    found = {}
    for said in worker.run(TASK | {"family": family, "contestant": contestant}):
        found |= said
    best = md.design(md.bench.FAMILIES[family].make(9, 0), tolerance=1e-8).certificate
    assert found["rounded"] == "optimal"
    assert found["cost"] == pytest.approx(best.cost, rel=2e-5)
    assert found["lower_bound"] <= best.cost * (1 + 1e-12)
    assert json.loads(json.dumps(found))["done"]


def test_row_pairs_are_judged_by_their_closed_form():
    found = {}
    for said in worker.run(TASK | {"family": "row-pairs"}):
        found |= said
    assert found["certified"] == "optimal"
    assert found["cost"] == pytest.approx(found["lower_bound"], rel=1e-6)


def test_limits_end_a_run_and_keep_what_was_found():
    late = run_in_worker(TASK | {"n": 225}, 0.2, 4.0, 1)
    assert late.ended == "time"
    assert "ready" in late.found
    assert "solve_s" not in late.found
    assert run_in_worker(TASK, 60.0, 1e-3, 1).ended == "memory"


def test_a_worker_sets_an_alarm_for_its_limit(monkeypatch):
    asked = []
    monkeypatch.setattr(worker, "_set_alarm", asked.append)
    monkeypatch.setattr(worker, "run", lambda task: iter(()))
    monkeypatch.setattr(worker.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    line = b'{"time_limit": 12.5}\n'
    monkeypatch.setattr(worker.sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=lambda: line)))
    monkeypatch.setattr(worker.os, "dup2", lambda *_: None)
    worker.main()
    assert asked == [12.5]


def test_what_a_worker_cannot_do_is_an_error_and_no_crash():
    outcome = run_in_worker(TASK | {"contestant": "block (NumPy)", "family": "checkins", "n": 0}, 60.0, 4.0, 1)
    assert outcome.ended == "error"
    assert outcome.message


def test_a_run_can_be_resumed_and_gives_the_same_rows(tiny, tmp_path):
    class StopError(Exception):
        pass

    def stop(done: int, total: int, which: str) -> None:
        raise StopError

    with pytest.raises(StopError):
        md.bench.run("tiny", ["auto", "highs-simplex"], tmp_path, progress=stop)
    assert len(stable(tmp_path)) == 1
    with pytest.raises(StateError, match="Resume it"):
        md.bench.run("tiny", ["auto", "highs-simplex"], tmp_path)
    with pytest.raises(StateError, match="contestants was"):
        md.bench.run("tiny", ["auto"], tmp_path, resume=True)
    found = md.bench.run("tiny", ["auto", "highs-simplex"], tmp_path, resume=True)
    assert found.missing == 0
    assert [(row["family"], row["solver"]) for row in found.rows] == [
        ("grid", "auto"),
        ("grid", "highs-simplex"),
        ("distortion", "auto"),
        ("distortion", "highs-simplex"),
    ]
    assert all(row["rounded"] == "optimal" for row in found.rows)
    with (tmp_path / "results.csv").open(newline="") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "environment.json").exists()
    assert (tmp_path / "scores.csv").read_text().splitlines()[1].split(",")[1:3] == ["2", "2"]


SCRIPT = """
import sys
from types import MappingProxyType
from mechdesign.runs import bench as suites
from mechdesign.runs.bench import run
suites.SUITES = MappingProxyType({"tiny": suites.Suite("tiny", {"grid": (4, 9), "distortion": (4,)}, (0,), 60.0, 4.0)})
run("tiny", ["highs-simplex"], sys.argv[1], resume=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_at_a_random_moment_loses_no_row(tmp_path):
    def rows():
        return {path.name: path.read_bytes() for path in (tmp_path / "rows").glob("*.json")}

    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command) as process:
        while not rows() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(random.Random(3).random())
        process.kill()
    assert process.returncode == -signal.SIGKILL
    written = rows()
    assert 1 <= len(written) < 3
    subprocess.run(command, check=True, timeout=300)
    assert len(rows()) == len(stable(tmp_path)) == 3
    assert all(json.loads(content)["state"] == "done" for content in rows().values())
    # No row is lost, and none is written again.
    assert written.items() <= rows().items()


def test_a_killed_run_takes_its_worker_along():
    process = subprocess.Popen(
        [sys.executable, "-c", "from mechdesign.runs._worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdin.write(json.dumps(TASK | {"n": 225}).encode() + b"\n")
    process.stdin.flush()
    assert b"ready" in process.stdout.readline()
    # What the system does when whoever started it is killed.
    process.stdin.close()
    assert process.wait(20) == 1
    process.stdout.close()


def test_the_command_shows_scores(tiny, tmp_path):
    result = CliRunner().invoke(main, ["bench", "--suite", "tiny", "--solvers", "auto", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "2 of 2" in result.output
    assert (tmp_path / "out" / "report.html").exists()
    assert "row-pairs" in well("bench", "--list").stdout


def test_wrong_usage_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("")
    assert_wrong_usage(
        {
            "bench -o out --suite huge": "one of",
            "bench -o out --solvers nothing": "is not known",
            "bench -o out --solvers auto --time-limit -1": "must be positive",
            "bench -o letters --solvers auto": "letter.txt",
        }
    )


def test_a_full_disk_is_said_and_finished_rows_stay(tiny, tmp_path, monkeypatch):
    def full(path: object, row: object, description: object) -> None:
        raise md.errors.ExportError(f"{path} could not be written: No space left on device")

    monkeypatch.setattr("mechdesign.runs._store.write_row", full)
    result = CliRunner().invoke(main, ["bench", "--suite", "tiny", "--solvers", "auto", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert not list((tmp_path / "out" / "rows").iterdir())
