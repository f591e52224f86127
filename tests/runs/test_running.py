"""Runs in processes of their own: limits, whose children end with them, solvers of users, kills, and the command."""

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import psutil
import pytest
from cli_examples import assert_wrong_usage, run, well

import mechdesign as md
from mechdesign.runs import _worker as worker
from mechdesign.runs import bench as suites
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._worker import Task, run_in_worker
from mechdesign.runs.bench import COLUMNS, Suite
from mechdesign.solve import _registry as registry
from mechdesign.synthesis._settings import SolveSettings

TINY = Suite("tiny", {"grid": (4,), "distortion": (4,)}, (0,), 60.0, 4.0)


def task(solver: str = "highs-simplex", family: str = "grid", n: int = 9) -> Task:
    known = None if solver == "auto" else registry.find(solver)
    return Task(FAMILIES[family], n, 0, known, SolveSettings(solver, 1e-6, threads=1))


def results(asked: Task) -> dict[str, object]:
    found = {}
    for said in worker.run(asked):
        found |= said
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("family", "solver"),
    [
        *(("grid", each) for each in ("auto", "block", "highs-simplex", "highs-ipx", "cvxpy-clarabel")),
        *((family, each) for family in ("joint", "worst-cost") for each in ("auto", "highs-simplex")),
    ],
)
def test_ours_and_theirs_agree_on_the_cost(family, solver):
    found = results(task(solver, family))
    best = md.design(FAMILIES[family].make(9, 0), tolerance=1e-8).certificate
    assert found["rounded"] == "optimal"
    assert found["cost"] == pytest.approx(best.cost, rel=2e-5)
    assert found["lower_bound"] <= best.cost * (1 + 1e-12)
    assert json.loads(json.dumps(found))["done"]
    assert 0 < found["processor_s"] < 30


@pytest.fixture
def registered(monkeypatch):
    """Forget what is registered in the test."""
    monkeypatch.setattr(registry, "_SOLVERS", dict(registry._SOLVERS))


@pytest.mark.usefixtures("registered")
def test_row_pairs_are_judged_by_their_closed_form():
    found = results(task(family="row-pairs"))
    assert found["certified"] == "optimal"
    assert found["cost"] == pytest.approx(found["lower_bound"], rel=1e-6)


@pytest.mark.usefixtures("registered")
def test_a_large_program_is_solved_in_the_process_of_the_run(monkeypatch):
    monkeypatch.setattr("mechdesign.solve._solve.solve_apart", None)
    asked = task("scipy")
    assert results(replace(asked, solver=replace(asked.solver, apart=0)))["rounded"] == "optimal"


@pytest.fixture
def sleeper(registered, tmp_path):
    """Register a solver of a script, which starts a process; return the file with the number of that process."""
    file = tmp_path / "child"

    def load():
        def solve(program, options, start):
            if program.columns <= 100:
                raise md.errors.SolverError("too small")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
            file.write_text(str(child.pid))
            __import__("ctypes").PyDLL(None).sleep(300)

        return solve

    registry.register(registry.Solver("sleeper", load, "numpy"))
    return file


def is_gone(pid: int, seconds: float = 10.0) -> bool:
    """Return whether a process is gone, or a zombie that nobody waits for, within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_the_limit_of_time_is_that_of_all_phases_together(monkeypatch):
    def say():
        for said in ("greeting", {"n": 4}, {"build_s": 0.2}, {"solve_s": 0.2}, {"done": True}):
            yield json.dumps(said).encode()
            time.sleep(0.2)

    process = SimpleNamespace(stdin=io.BytesIO(), stdout=say(), pid=os.getpid(), returncode=0)
    child = SimpleNamespace(process=process, has_greeted=lambda line: True, end=lambda: None)
    monkeypatch.setattr(worker, "start", lambda *_: child)
    outcome = run_in_worker(task(), 0.25, 64.0)
    assert (outcome.ended, outcome.found["message"]) == ("time", "passed 0.25 s")


@pytest.mark.slow
def test_the_limit_of_time_ends_the_processes_that_a_solver_started(sleeper):
    outcome = run_in_worker(task("sleeper", n=16), 1.0, 4.0)
    assert (outcome.ended, outcome.found["message"]) == ("time", "passed 1 s")
    assert "build_s" in outcome.found
    assert "solve_s" not in outcome.found
    assert is_gone(int(sleeper.read_text()))


def test_the_memory_of_children_counts():
    line = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        alone, its = (psutil.Process(pid).memory_info().rss for pid in (os.getpid(), child.pid))
        assert worker._resident(os.getpid()) > alone + its / 2
        child.stdin.close()


@pytest.mark.slow
def test_the_limit_of_memory_ends_a_run():
    outcome = run_in_worker(task(), 60.0, 1e-3)
    assert (outcome.ended, outcome.found["message"]) == ("memory", "passed 0.001 GB")
    assert outcome.found["peak_mb"] > 1


@pytest.mark.slow
def test_what_a_solver_cannot_do_is_an_error_and_its_end_a_crash(registered):
    def load():
        return lambda program, options, start: os._exit(3) if program.columns == 81 else os.kill(os.getpid(), 9)

    registry.register(registry.Solver("broken", load, "numpy"))
    crash = run_in_worker(task("broken"), 60.0, 4.0)
    assert (crash.ended, crash.found["message"]) == ("crash", "the process ended with code 3")
    error = run_in_worker(task(family="checkins", n=0), 60.0, 4.0)
    assert error.ended == "error"
    assert error.found["message"]


BENCH = """
import sys, time
from mechdesign.runs.bench import Suite, run
run(Suite("tiny", {"grid": (4, 9), "distortion": (4,)}, (0,), 60.0, 4.0), ["highs-simplex"], sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_at_a_random_moment_loses_nothing_and_leaves_no_process(tmp_path):
    chance = random.Random(3)
    known, kills = {}, 0
    while len(known) < 3:
        process = psutil.Popen([sys.executable, "-c", BENCH, str(tmp_path)])
        count, children = len(known), []
        while process.poll() is None and len(known) == count:
            children += [child for child in process.children() if child not in children]
            now = {path.name: path.read_bytes() for path in (tmp_path / "rows").glob("[!.]*")}
            # Nothing is lost, and nothing is written again.
            assert known.items() <= now.items()
            known = now
        time.sleep(0.3 * chance.random())
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        assert children
        assert all(is_gone(child.pid) for child in children)
    assert kills > 0
    assert all(json.loads(content)["ended"] == "done" for content in known.values())


@pytest.mark.slow
def test_a_killed_benchmark_takes_the_processes_of_its_solver_along(sleeper):
    pid = os.fork()
    if not pid:
        run_in_worker(task("sleeper", n=16), 300.0, 4.0)
        os._exit(0)
    while not (sleeper.exists() and sleeper.read_text()):
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert is_gone(int(sleeper.read_text()))


@pytest.mark.slow
def test_the_command_shows_scores_and_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(suites, "SUITES", MappingProxyType({"tiny": TINY}))
    line = ("bench", "--suite", "tiny", "--solvers", "auto,highs-simplex", "-o", tmp_path / "out")
    well(*line)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "rows").iterdir()}
    assert f"4 runs are in {tmp_path / 'out'}" in well(*line).stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "rows").iterdir()} == before
    scores = json.loads(well(*line, "--json").stdout)["solvers"]
    assert {each["solver"]: (each["solved"], each["runs"]) for each in scores} == {
        "auto": (2, 2),
        "highs-simplex": (2, 2),
    }
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
    assert (tmp_path / "out" / "scores.csv").read_text().splitlines()[1].split(",")[1:3] == ["2", "2"]
    assert "Performance profile" in (tmp_path / "out" / "report.html").read_text()


def test_wrong_usage_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_wrong_usage(
        {
            "bench -o out --suite huge": "one of",
            "bench -o out --solvers nothing": "is not known",
            "bench -o out --solvers auto --time-limit -1": "is not positive",
        }
    )


def test_a_full_disk_is_said_and_finished_runs_stay(monkeypatch, tmp_path):
    def full(path: object, parts: object) -> None:
        raise md.errors.ExportError(f"{path} could not be written: No space left on device")

    monkeypatch.setattr(suites, "SUITES", MappingProxyType({"tiny": TINY}))
    monkeypatch.setattr(suites, "run_in_worker", lambda *_: worker.Outcome("done", {}))
    monkeypatch.setattr(suites, "write_file", full)
    result = run("bench", "--suite", "tiny", "--solvers", "auto", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert not list((tmp_path / "out" / "rows").iterdir())
