"""Programs that are started: nothing is sent to, or read from, one that does not say that it is ours."""

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
import pytest
from linear_cases import HONEST

from mechdesign.base import _process as children
from mechdesign.errors import SolverError
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._worker import Task, run_in_worker
from mechdesign.solve import _apart as apart
from mechdesign.solve import _registry as registry
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._registry import Solver
from mechdesign.solve._solve import solve
from mechdesign.synthesis._settings import SolveSettings

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the other programs are shell scripts")


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let another program stand where Python is looked for."""
    monkeypatch.setitem(registry._SOLVERS, "deaf", Solver("deaf", deaf_solver.load, "numpy", apart=0, deaf=True))

    def put(script: str) -> Path:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return program

    return put


class Planted:
    def __reduce__(self):
        return Path.touch, (Path("planted"),)


def test_what_another_program_says_is_not_read_as_an_answer(other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "said").write_bytes(pickle.dumps(Planted()))
    other(f"cat {tmp_path / 'said'}; cat > {tmp_path / 'heard'}")
    with pytest.raises(SolverError, match=r"program, started to run deaf, did not identify itself as Python"):
        solve(HONEST.program, "deaf", Options())
    assert not Path("planted").exists()
    assert not (tmp_path / "heard").exists() or not (tmp_path / "heard").read_bytes()


def test_a_program_that_says_nothing_is_ended(other, tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "GREETING_S", 0.2)
    other(f"echo $$ > {tmp_path / 'number'}; exec sleep 600")
    with pytest.raises(SolverError, match="and was stopped"):
        solve(HONEST.program, "deaf", Options())
    if (tmp_path / "number").exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "number").read_text()), 0)


def test_a_time_limit_counts_before_the_greeting_too(other, monkeypatch):
    started = []

    def start(*given):
        started.append(children.start(*given))
        return started[-1]

    monkeypatch.setattr(apart, "start", start)
    # Nobody waits for a thread that reads from a program which has not been ended.
    monkeypatch.setattr(apart, "ENDING_S", 10.0)
    other("exec sleep 600")
    clock, before = time.perf_counter(), set(threading.enumerate())
    assert solve(HONEST.program, "deaf", Options(time_limit=0.1)).status is Status.TIME_LIMIT
    assert time.perf_counter() - clock < 9
    assert set(threading.enumerate()) <= before
    assert [child.process.returncode for child in started] == [-signal.SIGKILL]


def test_a_python_that_nobody_knows_is_an_error(monkeypatch, other):
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(SolverError, match="the running Python"):
        solve(HONEST.program, "deaf", Options())


def test_a_worker_of_a_benchmark_greets_too(other):
    other('echo \'{"ready": true, "done": true}\'; exec sleep 600')
    task = Task(FAMILIES["grid"], 9, 0, None, SolveSettings())
    found = run_in_worker(task, 60, 1)
    assert found.ended == "crash"
    assert "did not send the greeting" in found.found["message"]


def test_the_greeting_is_of_this_start_and_this_version(monkeypatch):
    child = children.start("sys", "exit", dict(os.environ), subprocess.DEVNULL)
    try:
        assert child.process.stdout is not None
        assert child.has_greeted(child.process.stdout.readline())
        assert not child.has_greeted(children._greeting("0" * 32))
        assert not child.has_greeted(b"")
        monkeypatch.setattr(children, "__version__", "0.0")
        assert not child.has_greeted(children._greeting(child.greeting.decode().split()[-1]))
    finally:
        child.end()
    assert child.process.poll() is not None
