"""Solvers in a process of their own: limits, Ctrl-C and deaths; and programs on which solvers came to no end."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import deaf_solver
import numpy as np
import pytest
from linear_cases import ALL, HONEST, metric_program, with_a_row
from rows import each_row

import mechdesign as md
from mechdesign.base._deadline import Deadline, Progress
from mechdesign.errors import InputError, SolverError, SpecificationError
from mechdesign.solve import _registry as registry
from mechdesign.solve._apart import SolverState, wait
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._registry import Solver
from mechdesign.solve._solve import solve

pytestmark = pytest.mark.slow

# Beyond what is promised, for machines on which others are at work.
ROOM = 20.0


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, deaf in (("deaf", True), ("hearing", False)):
        solver = Solver(name, deaf_solver.load, "numpy", apart=0, deaf=deaf)
        monkeypatch.setitem(registry._SOLVERS, name, solver)


def gone(folder: Path) -> bool:
    """Tell whether the process that wrote where it is has ended, and its temporary files are removed."""
    number, left_over = (folder / "begun").read_text().split(maxsplit=1)
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return not Path(left_over).parent.exists()
    return False


def test_a_solver_that_hears_nothing_is_ended_at_the_limit(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    clock = time.perf_counter()
    asked = Options(time_limit=0.5, extra={"does": "sleep", "trace": str(tmp_path)})
    solution = solve(HONEST.program, "deaf", asked)
    assert 0.5 <= time.perf_counter() - clock <= 0.5 * 1.1 + 2 + ROOM
    assert solution.status is Status.TIME_LIMIT
    assert "time limit" in solution.message
    assert np.isnan(solution.x).all()
    # On a machine where others are at work the process may not have come so far.
    assert not (tmp_path / "begun").exists() or gone(tmp_path)
    assert set(threading.enumerate()) <= before


def test_a_design_is_certified_at_the_limit_whatever_the_solver_does() -> None:
    problem = md.Problem([0.6, 0.4], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
    made = md.design(problem, solver="deaf", time_limit=0.2, options={"does": "sleep"})
    assert made.certificate.holds
    assert made.status is Status.TIME_LIMIT


def test_the_time_that_the_start_took_is_counted() -> None:
    told: list[Progress] = []
    solution = solve(HONEST.program, "deaf", Options(time_limit=60.0, progress=told.append), start="before")
    assert solution.status is Status.FAILED
    assert 0 < solution.x[0] < 60
    assert not solution.message.startswith(f"from {os.getpid()},")
    assert solution.message.endswith("after before")


def test_a_solver_that_hears_runs_here_unless_there_is_a_limit() -> None:
    assert solve(HONEST.program, "hearing").message.startswith(f"from {os.getpid()},")
    assert not solve(HONEST.program, "hearing", Options(time_limit=60.0)).message.startswith(f"from {os.getpid()},")


def test_small_programs_are_solved_here() -> None:
    for name in ("highs", "scipy", "cvxpy"):
        assert registry.find(name).apart > 1000
    small, large = metric_program(4), metric_program(24)
    assert small.matrix.nnz < registry.find("scipy").apart < large.matrix.nnz < registry.find("highs").apart


def test_a_process_that_dies_is_a_failure() -> None:
    assert "ended with code 9" in solve(HONEST.program, "deaf", Options(extra={"does": "die"})).message
    problem = md.Problem([0.6, 0.4], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
    with pytest.raises(SolverError, match="ended with code 9"):
        md.design(problem, solver="deaf", options={"does": "die"})


def test_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SolverError, match="no process could be started"):
        solve(HONEST.program, "deaf")


def test_errors_come_back_as_they_were() -> None:
    with pytest.raises(InputError) as caught:
        solve(HONEST.program, "deaf", Options(extra={"does": "refuse"}))
    error = caught.value
    assert (error.path, error.value, error.bound) == ("options.extra.does", "refuse", "another")
    assert str(error).endswith("must be another. Ask for less")
    assert "ZeroDivisionError" in solve(HONEST.program, "deaf", Options(extra={"does": "fail"})).message


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(InputError, match=r"options\.extra: cannot be sent"):
        solve(HONEST.program, "deaf", Options(extra={"does": lambda: 1}))


@each_row("kind", [InputError, SpecificationError])
def test_input_errors_survive_pickling(kind: type[InputError]) -> None:
    error = kind("a[1].b", "is wrong", value=3, bound="4", remedy="take 4")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), vars(again)) == (str(error), vars(error))


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import deaf_solver
from linear_cases import HONEST
from mechdesign.solve import Options, Solver, register
from mechdesign.solve._solve import solve
register(Solver("deaf", deaf_solver.load, "numpy", apart=0, deaf=True))
register(Solver("hearing", deaf_solver.load, "numpy", apart=0))
extra = {{"does": "sleep", "trace": {trace!r}, "hears": True}}
solution = solve(HONEST.program, {name!r}, Options(time_limit=100, extra=extra))
print(solution.status.name, solution.message, solution.seconds < 90, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize(("name", "words"), [("deaf", "stopped by the user"), ("hearing", "stopped, with numbers")])
def test_ctrl_c_ends_it(name: str, words: str, tmp_path: Path) -> None:
    script = SCRIPT.format(folder=str(Path(__file__).parent), trace=str(tmp_path), name=name)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            ended = time.monotonic() + 100
            while not (tmp_path / "begun").exists():
                assert time.monotonic() < ended
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout is not None
            assert process.stdout.read() == f"INTERRUPTED {words} True\n"
            assert process.wait(10) == 0
            assert gone(tmp_path)
        finally:
            process.kill()


@pytest.mark.parametrize("solver", ["highs-simplex", "scipy"])
def test_the_answer_is_the_same_from_another_process(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = metric_program(6)
    here = solve(program, solver)
    monkeypatch.setitem(
        registry._SOLVERS, solver, Solver(solver, registry.find(solver).load, "numpy", apart=0, deaf=True)
    )
    there = solve(program, solver)
    assert there.status is here.status is Status.OPTIMAL
    assert there.residuals.objective == pytest.approx(here.residuals.objective, rel=1e-9)
    assert there.version == here.version
    if solver == "highs-simplex":
        assert solve(with_a_row(program), solver, start=there.start).iterations == 0


# Two secrets whose costs differ by nine orders of magnitude: rounding keeps interior points from a gap of 1e-10.
STEEP = md.Problem([0.6, 0.4], [[0, 10.0], [7e7, 1.0]], [md.MetricPrivacy("0.01", [[0, 1], [1, 0]])])


@pytest.mark.parametrize("solver", ["block", *ALL])
def test_rounding_ends_no_solver_without_an_answer(solver: str) -> None:
    # The limit is for versions that do not end.
    made = md.design(STEEP, solver=solver, tolerance=1e-9, time_limit=30)
    assert made.certificate.holds
    assert made.status in (Status.OPTIMAL, Status.STALLED)
    assert made.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("solver", ["highs-ipx", "scipy"])
def test_an_iteration_limit_that_is_asked_for_is_kept(solver: str) -> None:
    name = "ipm_iteration_limit" if solver == "highs-ipx" else "maxiter"
    options = Options(extra={name: 3, "presolve": "off" if solver == "highs-ipx" else False})
    solution = solve(metric_program(5), solver, options)
    assert (solution.status, solution.iterations) == (Status.ITERATION_LIMIT, 3)


def test_a_wish_to_stop_that_is_acknowledged_elsewhere_stops_the_wait():
    deadline, done, stopped = Deadline(), threading.Event(), []
    deadline.cancel()
    deadline.acknowledge()

    def stop():
        stopped.append(True)
        done.set()

    assert wait(done, SolverState("solver"), deadline, stop)
    assert stopped == [True]
