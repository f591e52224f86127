"""A sweep in several processes of one machine: the same table, whoever is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest
from sweep_examples import DATA, sweep, text, values, write_counts

import mechdesign as md
from mechdesign.errors import ClusterError, SolverError, StateError
from mechdesign.runs import sweep as module
from mechdesign.runs.sweep import run

pytestmark = pytest.mark.slow

FORKS = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")


def command(folder: Path, *more: object) -> subprocess.Popen[str]:
    """Start a sweep in a group of processes of its own, as a terminal does."""
    (folder / "s.toml").write_text(text(), encoding="utf-8")
    line = [sys.executable, "-m", "mechdesign", "sweep", folder / "s.toml", "-o", folder / "out", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(part) for part in line], start_new_session=True, **pipes)


def wait_for(process: subprocess.Popen[str], folder: Path, done: int) -> None:
    """Wait until so many points are done, or the process has ended."""
    end = time.monotonic() + 90
    while process.poll() is None and len(list(folder.rglob("certificate.json"))) < done and time.monotonic() < end:
        time.sleep(0.02)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Give the table that one process makes."""
    folder = tmp_path_factory.mktemp("alone")
    run(sweep(), folder, jobs=1)
    return values(folder)


def test_two_processes_give_the_same_table(tmp_path, alone):
    moments = []
    rows = run(sweep(), tmp_path, jobs=2, progress=lambda *moment: moments.append(moment))
    assert values(tmp_path) == alone
    assert moments == [(done, 8) for done in range(9)]
    for row in rows[::3]:
        assert md.verify(tmp_path / row["channel"]).cost == row["cost"]


def _kill_own_process(task, parent):
    if task.point.values["cost.power"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return module._solve(task)


@FORKS
def test_a_point_that_kills_its_process_fails_and_the_next_call_makes_the_others(tmp_path, monkeypatch):
    asked = sweep('"cost.power" = [2, 1, 3, 4, 5, 6]')
    monkeypatch.setattr(module, "_solve_apart", _kill_own_process)
    with pytest.raises(SolverError, match="Call again for the other points"):
        run(asked, tmp_path, jobs=2)
    states = [row["status"] for row in values(tmp_path)]
    assert states[0] == "failed"
    # Answers that were on their way when the process was killed are lost as well.
    assert (failed := states.count("failed")) < 6
    assert "a process was killed" in values(tmp_path)[0]["message"]
    states = [row["status"] for row in run(asked, tmp_path, jobs=2)]
    assert (states.count("failed"), states.count("done")) == (failed, 6 - failed)
    monkeypatch.undo()
    assert [row["status"] for row in run(asked, tmp_path, jobs=1, retry=True)] == ["done"] * 6


@FORKS
def test_ctrl_c_ends_with_130_and_keeps_finished_points(tmp_path, alone):
    process = command(tmp_path, "--jobs", 2)
    wait_for(process, tmp_path, 2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the sweep ended before Ctrl-C reached it")
    assert process.returncode == 130, errors
    assert "the same command makes the missing designs" in errors
    assert "Traceback" not in errors
    kept = [row for row in values(tmp_path / "out") if row["status"] == "done"]
    assert len(kept) >= 2
    assert all(row in alone for row in kept)
    assert not list(tmp_path.rglob("claim-*"))
    run(sweep(), tmp_path / "out", jobs=1)
    assert values(tmp_path / "out") == alone


@FORKS
def test_kills_at_random_moments_lose_nothing(tmp_path, alone):
    moments, known = random.Random(12), {}
    for done in (1, 5):
        process = command(tmp_path, "--jobs", 1)
        wait_for(process, tmp_path, done)
        time.sleep(moments.random() / 10)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("certificate.json")}
        assert known.items() <= now.items()
        known = now
    run(sweep(), tmp_path / "out", jobs=1)
    assert known.items() <= {path: path.stat().st_mtime_ns for path in tmp_path.rglob("certificate.json")}.items()
    assert values(tmp_path / "out") == alone
    for row in values(tmp_path / "out"):
        md.verify(tmp_path / "out" / row["channel"])
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith((".", "claim"))]


@FORKS
def test_parts_at_the_same_time_share_the_work(tmp_path, alone):
    both = [command(tmp_path, "--jobs", 1, *part) for part in (("--part", "1/2"), ("--part", "2/2"), ())]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    run(sweep(), tmp_path / "out", jobs=1)
    assert values(tmp_path / "out") == alone


def test_what_a_worker_raises_ends_the_sweep(tmp_path):
    write_counts(tmp_path)

    def change(done, total):
        if done == 1:
            write_counts(tmp_path, "4 3 2 2")

    asked = sweep('"privacy.0.epsilon" = [1, 2, 3, 4, 5, 6, 7, 8]', DATA, tmp_path)
    with pytest.raises(StateError, match=r"n\.csv has changed since"):
        run(asked, tmp_path / "out", jobs=2, progress=change)
    assert not list(tmp_path.rglob("claim-*"))


def test_a_new_worker_has_the_module_that_errors_name():
    # Otherwise an error would arrive as an instance of another class.
    line = "import sys, mechdesign.runs.sweep; sys.exit('mechdesign.errors' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], check=False).returncode == 0


def test_what_claims_points_may_fail_itself(tmp_path, monkeypatch):
    genuine, calls = module.claiming, []

    def claiming(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise StateError("the folder is gone")
        return genuine(*arguments)

    monkeypatch.setattr(module, "claiming", claiming)
    with pytest.raises(StateError, match="the folder is gone"):
        run(sweep(), tmp_path, jobs=2)


def test_as_many_processes_as_processors(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    monkeypatch.setattr(module, "count_processors", lambda: 3)
    assert module._count_processes(None, None) == 3
    assert module._count_processes(5, None) == 5


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("can't start new thread"), AssertionError("refused")]
)
def test_processes_that_cannot_work_together_are_an_error(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(joblib.Parallel, "__call__", refuse)
    with pytest.raises(ClusterError, match="processes were lost"):
        run(sweep(), tmp_path, jobs=2)


@pytest.mark.filterwarnings("ignore:joblib backend")
def test_variables_that_keep_joblib_from_starting_are_named(tmp_path, monkeypatch):
    for name, value, said in (
        ("JOBLIB_MULTIPROCESSING", "0", "ThreadingBackend"),
        ("JOBLIB_MULTIPROCESSING", "two", "'two'"),
        ("LOKY_MAX_CPU_COUNT", "two", "'two'"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            for loaded in [each for each in sys.modules if each.partition(".")[0] == "joblib"]:
                patched.delitem(sys.modules, loaded)
            with pytest.raises(ClusterError, match=f"{said}.*--jobs 1"):
                run(sweep(), tmp_path, jobs=2)


def test_workers_use_one_thread(monkeypatch):
    monkeypatch.setattr(module, "_solve_apart", _count_threads)
    with module._engine(2, None) as solve_all:
        found = [*solve_all(iter([0, 1]))]
    assert {threads for each in found for threads in each} <= {1}


def _count_threads(*_):
    import numpy as np
    from threadpoolctl import threadpool_info

    np.linalg.norm(np.ones((2, 2)) @ np.ones((2, 2)))
    return [each["num_threads"] for each in threadpool_info()]
