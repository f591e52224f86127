"""What all commands have in common: help, exit codes, progress."""

from __future__ import annotations

import json
import os
import pty
import sys

import pytest
from cli_examples import run
from click.exceptions import FileError

import mechdesign as md
from mechdesign.base import _errors as errors
from mechdesign.base._deadline import Progress
from mechdesign.cli import exit_code
from mechdesign.cli._console import progress


def test_info():
    found = json.loads(run("info", "--json").stdout)
    assert found["versions"]["mechdesign"] == md.__version__
    assert found["solvers"]["highs-simplex"]
    assert "cvxpy-clarabel" in found["solvers"]
    shown = run("info").stdout
    assert "highspy" in shown
    assert "cvxpy-clarabel" in shown


def test_version():
    assert run("--version").stdout == f"mechdesign, version {md.__version__}\n"


def test_help():
    shown = run("--help")
    assert shown.exit_code == 0
    for name in ("design", "verify", "attack", "sample", "export", "leakage", "budget", "info", "examples"):
        assert name in shown.stdout
        assert run(name, "--help").exit_code == 0
    assert "Did you mean 'verify'?" in run("verfy").stderr
    assert run("frobnicate").exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="no terminals")
def test_progress_is_a_live_line_on_terminals(monkeypatch):
    primary, secondary = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress() as report:
            report(Progress("HiGHS", 0.0, 7))
            report(Progress("round 2: 80 rows", 0.1, 2, lower=1.25))
            report(Progress("HiGHS", 0.0, 9))
            import time

            time.sleep(0.3)
        monkeypatch.undo()
    shown = os.read(primary, 10**6).decode()
    os.close(primary)
    assert "round 2: 80 rows · HiGHS, iteration 9 · cost between 1.25 and …" in shown


def test_progress_is_a_line_every_few_seconds_elsewhere(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("mechdesign.cli._console.time.perf_counter", lambda: now[0])
    with progress() as report:
        for moment in range(20):
            now[0] = moment / 2
            report(Progress("2 of 3: block interior point", 0.0, moment, lower=1.0, upper=1.5))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"2 of 3 · block interior point, iteration {2 * second} · cost between 1 and 1.5 · {second} s"
        for second in (3, 6, 9)
    ]
    # Who is done at once prints nothing.
    with progress() as report:
        report(Progress("HiGHS", 0.0, 1))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.CertificateError("x"), 1),
        (errors.InputError("x", "y"), 2),
        (errors.SpecificationError("x", "y"), 2),
        (errors.InfeasibleError("x"), 2),
        (errors.ExportError("x"), 2),
        (errors.MissingDependencyError("x"), 2),
        (errors.SolverError("x"), 3),
        (errors.TimeLimitError("x"), 3),
        (errors.UnboundedError("x"), 3),
        (errors.SolverInterruptedError("x"), 130),
    ],
)
def test_exit_codes(error, code):
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (errors.CertificateError("it does not hold"), 1, "it does not hold"),
        (errors.BudgetExceededError("nothing is left"), 2, "nothing is left"),
        (MemoryError(), 3, "not enough memory"),
        (OSError(12, "Cannot allocate memory"), 3, "not enough memory"),
        (ImportError("/x.so: failed to map segment from shared object"), 3, "not enough memory"),
        (ImportError("cannot import name 'x'"), 70, "this is a fault of mechdesign"),
        (errors.UnverifiedError("nothing stands there"), 2, "was not verified: nothing stands there"),
        (errors.VerifierMemoryError("it is large"), 3, "was not verified: it is large"),
        (ZeroDivisionError("division by zero"), 70, "this is a fault of mechdesign"),
        (RuntimeError("can't start new thread"), 70, "this is a fault of mechdesign"),
        (NotImplementedError("not yet"), 70, "this is a fault of mechdesign"),
        (RecursionError("too deep"), 70, "this is a fault of mechdesign"),
        (EOFError("ended"), 70, "this is a fault of mechdesign"),
        (FileError("x", "cannot be opened"), 2, "cannot be opened"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_exit_code_1_says_that_a_verification_failed_and_nothing_else(monkeypatch, raised, code, said):
    def fail(*_):
        raise raised

    monkeypatch.setattr("mechdesign.cli.verify.inspect", fail)
    monkeypatch.setattr("mechdesign.cli.divert", lambda _: None)
    monkeypatch.setattr("mechdesign.cli.verify.require_design", lambda _: None)
    result = run("verify", "anything")
    assert result.exit_code == code
    assert said in result.stderr


def test_what_fails_since_ctrl_c_came_is_a_stop():
    from mechdesign.cli import _after_interrupt

    error = RuntimeError("no compiled object yet")
    error.__context__ = KeyboardInterrupt()
    assert _after_interrupt(error)
    assert not _after_interrupt(RuntimeError("another"))


@pytest.mark.parametrize("where", ["mechdesign.cli.watch_signals", "mechdesign.cli._Commands.invoke"])
def test_ctrl_c_gives_130_wherever_it_comes(monkeypatch, where):
    """Also while the thread that watches for it starts, and between two steps of click's own."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    result = run("info")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.strip() == "error: stopped"


def test_the_help_of_commands_stands_where_docstrings_are_left_out(monkeypatch):
    from mechdesign.base._docstrings import docstring
    from mechdesign.cli import main
    from mechdesign.cli import verify as module

    monkeypatch.setattr(module.verify, "help", None)
    monkeypatch.setattr(module.verify.callback, "__doc__", None)
    monkeypatch.setattr(main, "help", None)
    monkeypatch.setattr(main.callback, "__doc__", None)
    shown = run("verify", "--help")
    assert "Prove a bundle again" in shown.stdout, shown.output
    assert "a small simulated city, in seconds" in run("--help").stdout
    assert docstring(lambda: None) == ""
    assert docstring(RuntimeError) == RuntimeError.__doc__
