"""Exit status 1 says that a verification failed, whichever command it is; what was not verified has another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import run
from click.exceptions import FileError

from mechdesign.base import _errors as errors
from mechdesign.certify import __main__ as kernel
from mechdesign.certify import second_verifier
from mechdesign.cli import _recognise, exit_code

CODES = (
    (errors.CertificateError("x"), 1),
    (errors.InputError("x", "y"), 2),
    (errors.SpecificationError("x", "y"), 2),
    (errors.InfeasibleError("x"), 2),
    (errors.ExportError("x"), 2),
    (errors.MissingDependencyError("x"), 2),
    (errors.SolverError("x"), 3),
    (errors.TimeLimitError("x"), 3),
    (errors.TooLargeError("x"), 2),
    (errors.UnboundedError("x"), 3),
    (errors.SolverInterruptedError("x"), 130),
    (errors.ClosedPipeError("x"), 141),
)
FAULT = "this is a fault of mechdesign"
RAISED = (
    (errors.CertificateError("it does not hold"), 1, "it does not hold"),
    (errors.BudgetExceededError("nothing is left"), 2, "nothing is left"),
    (MemoryError(), 2, "not enough memory"),
    (OSError(12, "Cannot allocate memory"), 2, "not enough memory"),
    (ImportError("/x.so: failed to map segment from shared object"), 2, "not enough memory"),
    (ImportError("cannot import name 'x'"), 70, FAULT),
    (ModuleNotFoundError("No module named 'a.b'", name="a.b"), 2, "the package a is missing: install it"),
    (ModuleNotFoundError("No module named 'mechdesign.x'", name="mechdesign.x"), 70, FAULT),
    (ModuleNotFoundError("without a name"), 70, FAULT),
    (errors.UnverifiedError("nothing stands there"), 2, "was not verified: nothing stands there"),
    (errors.VerifierMemoryError("it is large"), 2, "was not verified: it is large"),
    (ZeroDivisionError("division by zero"), 70, FAULT),
    (RuntimeError("can't start new thread"), 70, FAULT),
    (NotImplementedError("a fault of the package"), 70, FAULT),
    (RecursionError("too deep"), 70, FAULT),
    (EOFError("ended"), 70, FAULT),
    (FileError("x", "cannot be opened"), 2, "cannot be opened"),
    (BrokenPipeError(), 141, ""),
    (KeyboardInterrupt(), 130, "stopped"),
)


def test_errors_have_their_status() -> None:
    for error, code in CODES:
        assert exit_code(error) == code, repr(error)


def test_status_1_says_that_a_verification_failed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.cli.divert", lambda _: None)
    monkeypatch.setattr("mechdesign.cli.verify.require_design", lambda _: None)
    for raised, code, said in RAISED:

        def fail(*_: object, error: BaseException = raised) -> None:
            raise error

        monkeypatch.setattr("mechdesign.cli.verify.inspect", fail)
        result = run("verify", "anything")
        assert (result.exit_code, said in result.output) == (code, True), repr(raised)


def test_too_little_memory_is_no_failed_verification(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHDESIGN_MEMORY", "0.0001")
    refused = run("verify", made)
    assert (refused.exit_code, "was not verified" in refused.stderr) == (2, True)
    for main in (kernel.main, second_verifier.main):
        assert main([str(made)]) == 2
    monkeypatch.setenv("MECHDESIGN_MEMORY", "1")
    assert run("verify", made).exit_code == 0


def test_the_verifiers_alone_keep_to_it(original: Path, tmp_path: Path) -> None:
    for main in (kernel.main, second_verifier.main):
        assert main([str(original)]) == 0
        assert main([str(tmp_path / "missing")]) == 2
        assert main([str(tmp_path)]) == 2
    done = subprocess.run([sys.executable, "-m", "mechdesign.certify", "missing"], check=False, capture_output=True)
    assert done.returncode == 2


def test_a_missing_file_of_a_bundle_is_a_failed_verification(made: Path) -> None:
    (made / "certificate.json").unlink()
    assert [run(command, made).exit_code for command in ("verify", "inspect")] == [1, 1]


@pytest.mark.parametrize("where", ["mechdesign.cli.watch_signals", "mechdesign.cli._Commands.invoke"])
def test_ctrl_c_gives_130_wherever_it_comes(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Also while the thread that watches for it starts, and between two steps of click's own."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    result = run("info")
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (130, "", "error: stopped")


def test_what_fails_since_ctrl_c_came_is_a_stop() -> None:
    error = RuntimeError("no compiled object yet")
    error.__context__ = KeyboardInterrupt()
    assert isinstance(_recognise(error), KeyboardInterrupt)
    other = RuntimeError("another")
    assert _recognise(other) is other
