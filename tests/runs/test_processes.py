"""A sweep in several processes of one machine: the same rows, whoever is killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweep_examples import sweep, text, values

import mechdesign as md
from mechdesign.errors import InputError, SerialWarning
from mechdesign.runs import _engines as local
from mechdesign.runs import _engines as solve
from mechdesign.runs._store import State
from mechdesign.runs._tasks import prepare
from mechdesign.runs.sweep import run

pytestmark = pytest.mark.slow

FORKS = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")


def command(folder: Path, *more: object) -> subprocess.Popen[str]:
    """Start a sweep in a group of processes of its own, as a terminal does."""
    (folder / "s.toml").write_text(text(), encoding="utf-8")
    line = [sys.executable, "-m", "mechdesign", "sweep", folder / "s.toml", "-o", folder / "out", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(part) for part in line], start_new_session=True, **pipes)


def finished(folder: Path) -> int:
    rows = folder / "out" / "rows"
    return sum(path.suffix == ".json" for path in rows.iterdir()) if rows.is_dir() else 0


def wait_for(process: subprocess.Popen[str], folder: Path, rows: int) -> None:
    """Wait until there are so many rows, or the process has ended."""
    end = time.monotonic() + 90
    while process.poll() is None and finished(folder) < rows and time.monotonic() < end:
        time.sleep(0.02)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Give the table that one process makes."""
    folder = tmp_path_factory.mktemp("alone")
    run(sweep(), folder, jobs=1)
    return values(folder)


def test_two_processes_give_the_same_table(tmp_path, alone):
    result = run(sweep(), tmp_path, jobs=2)
    assert result.count(State.DONE) == 8
    assert values(tmp_path) == alone
    for row in result.rows[::3]:
        assert md.verify(tmp_path / row.values["channel"]).cost == row.values["cost"]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")
def test_a_killed_process_loses_no_row(tmp_path, alone):
    killed = []

    def kill_one(moment):
        if moment.done == 2 and not killed:
            killed.append(_workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    result = run(sweep(), tmp_path, jobs=2, progress=kill_one)
    assert killed
    assert result.count(State.DONE) == 8
    assert values(tmp_path) == alone


def _workers() -> list[int]:
    """Return the processes of joblib that this one has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line, status = path.read_bytes(), (path.parent / "status").read_text()
        except OSError:
            continue
        if b"popen_loky" in line and f"PPid:\t{os.getpid()}\n" in status:
            found.append(int(path.parent.name))
    return found


def _kill_own_process(task):
    if task.columns["cost.power"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return solve.solve(task)


@FORKS
def test_a_row_that_kills_its_process_each_time_fails_and_the_others_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_solve", _kill_own_process)
    monkeypatch.setattr(local, "_MAX_ATTEMPTS", 2)
    _, tasks = prepare(sweep('"cost.power" = [1, 2, 3]'))
    outcomes = {outcome.row.identity: outcome.row for outcome in local.in_processes(tasks.values(), 2)}
    states = [outcomes[key].state for key in tasks]
    assert states == [State.DONE, State.FAILED, State.DONE]
    assert "killed 2 times" in outcomes[list(tasks)[1]].values["message"]


@FORKS
def test_ctrl_c_ends_with_130_and_keeps_finished_rows(tmp_path, alone):
    process = command(tmp_path, "--jobs", 2)
    wait_for(process, tmp_path, 2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the sweep ended before Ctrl-C reached it")
    assert process.returncode == 130, errors
    assert "--resume runs" in errors
    assert "Traceback" not in errors
    kept = [row for row in values(tmp_path / "out") if row["status"] == "done"]
    assert len(kept) >= 2
    assert all(row in alone for row in kept)
    run(sweep(), tmp_path / "out", jobs=1, resume=True)
    assert values(tmp_path / "out") == alone


@pytest.mark.long
@FORKS
def test_kills_at_random_moments_lose_nothing(tmp_path, alone):
    moments = random.Random(12)
    for rows in (1, 5):
        process = command(tmp_path, "--jobs", 1, "--resume")
        wait_for(process, tmp_path, rows)
        time.sleep(moments.random() / 10)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    run(sweep(), tmp_path / "out", jobs=1, resume=True)
    assert values(tmp_path / "out") == alone
    assert len(list((tmp_path / "out" / "rows").glob("*.json"))) == 8
    for row in values(tmp_path / "out"):
        md.verify(tmp_path / "out" / row["channel"])


def test_a_number_of_processes_that_is_none_is_refused(tmp_path, monkeypatch):
    for value, jobs in (("abc", 2), ("0", None), ("1.5", None), ("", 2), ("-1", None)):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", value)
        with pytest.raises(InputError, match="LOKY_MAX_CPU_COUNT: is not a number of processes"):
            run(sweep(), tmp_path / "out", jobs=jobs)
        assert not (tmp_path / "out").exists(), value


def test_as_many_processes_as_processors(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    monkeypatch.setattr(local, "count_processors", lambda: 3)
    assert local.count_processes() == 3
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    assert local.count_processes() == 2
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "4")
    assert local.count_processes() == 3


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("can't start new thread"), AssertionError("refused")]
)
def test_where_processes_cannot_work_together_rows_are_solved_one_after_the_other(tmp_path, monkeypatch, alone, error):
    """Whether the system says so before the first row or after some."""
    genuine = solve.solve

    def outcomes(tasks, jobs):
        tasks = iter(tasks)
        yield genuine(next(tasks))
        next(tasks)
        raise error

    monkeypatch.setattr(local, "_outcomes", outcomes)
    with pytest.warns(SerialWarning, match="one after the other"):
        result = run(sweep(), tmp_path, jobs=2)
    assert result.count(State.DONE) == 8
    assert values(tmp_path) == alone


def test_without_shared_memory_rows_are_solved_one_after_the_other(tmp_path, monkeypatch, alone):
    import joblib.parallel

    monkeypatch.setattr(joblib.parallel, "mp", None)
    with pytest.warns(SerialWarning, match="shared memory"):
        run(sweep(), tmp_path, jobs=2)
    assert values(tmp_path) == alone


def test_what_gives_the_rows_may_fail_itself(monkeypatch):
    def rows():
        yield from ()
        raise OSError("the folder is gone")

    monkeypatch.setattr(local, "_outcomes", lambda tasks, _: map(solve.solve, tasks))
    monkeypatch.setattr(local.contextlib, "closing", contextlib.nullcontext)
    with pytest.raises(OSError, match="the folder is gone"):
        list(local.in_processes(rows(), 2))
