"""Exit status 1 says that a claim does not hold; a bundle that cannot be used has another one."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cli_examples import flat, run
from click.exceptions import FileError

from mechdesign.base import _errors as errors
from mechdesign.certify import __main__ as kernel
from mechdesign.certify import second_verifier
from mechdesign.certify._bundle import CERTIFICATE, document_digest
from mechdesign.cli import _recognise, exit_code
from mechdesign.cli._console import use_streams

CODES = (
    (errors.CertificateError("x"), 2),
    (errors.UnverifiedError("x"), 2),
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
        assert bool(result.output) == bool(said), repr(raised)


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


def test_a_damaged_bundle_fails_its_verification_and_is_wrong_input_elsewhere(original: Path, made: Path) -> None:
    commands = {
        "inspect": ("inspect", original, made),
        "attack": ("attack", made),
        "audit": ("audit", made),
        "sample": ("sample", made, "--secret", "home"),
        "export": ("export", made, "-o", "x.csv"),
    }
    document = json.loads((made / CERTIFICATE).read_text())
    older, malformed = ({**document, "schema": "mechdesign-certificate/1"}, deepcopy(document))
    malformed["metadata"]["origin"] = {"name": "s.toml"}
    for name, text, says in (
        ("cut", json.dumps(document)[:-9], "is not valid JSON"),
        ("older", _with_digest(older), "Another version made it: design it again, or verify it"),
        ("malformed", _with_digest(malformed), "origin: is malformed"),
        ("missing", None, f"{CERTIFICATE} is missing"),
    ):
        (made / CERTIFICATE).unlink() if text is None else (made / CERTIFICATE).write_text(text)
        verified = run("verify", made)
        code = 2 if name == "missing" else 1
        assert (verified.exit_code, says in flat(verified.output)) == (code, True), (name, verified.output)
        for command, line in commands.items():
            result = run(*line)
            if (name, command) == ("malformed", "sample"):
                assert result.exit_code == 0, "a draw needs the channel alone"
                continue
            assert (result.exit_code, result.stdout) == (2, ""), (name, command)
            assert result.stderr.startswith(f"error: {made}"), (name, command, result.stderr)
            assert says in result.stderr, (name, command, result.stderr)


def test_a_certificate_of_another_problem_is_wrong_input(made: Path) -> None:
    document = json.loads((made / CERTIFICATE).read_text())
    for name, changed in (
        ("pair", {"holds": False, "reason": "told", "pair": [0, 99]}),
        ("revealed", {"revealed": [-1]}),
        ("requirements", {"requirements": []}),
    ):
        other = document | {"certificate": document["certificate"] | changed}
        (made / CERTIFICATE).write_text(_with_digest(other))
        result = run("inspect", made)
        assert (result.exit_code, result.stdout) == (2, ""), name
        assert "malformed certificate: it belongs to another problem" in flat(result.stderr), name
        assert run("verify", made).exit_code == 1, name


def _with_digest(document: dict[str, Any]) -> str:
    return json.dumps({**document, "digest": document_digest(document)})


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
    missing = errors.MissingDependencyError("numpy")
    assert _recognise(missing) is missing
    missing.__cause__ = KeyboardInterrupt()
    assert isinstance(_recognise(missing), KeyboardInterrupt)
    other = RuntimeError("another")
    assert _recognise(other) is other


def test_a_ctrl_c_that_python_cannot_raise_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    class Fragile:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    before = sys.unraisablehook
    sys.unraisablehook = sys.__unraisablehook__
    try:
        with use_streams():
            Fragile(KeyboardInterrupt())
            # The end of an object that an interrupt left without its attributes.
            Fragile.__new__(Fragile)
            assert capsys.readouterr().err == ""
            Fragile(ValueError("kept"))
            assert "ValueError: kept" in capsys.readouterr().err
        assert sys.unraisablehook is sys.__unraisablehook__
    finally:
        sys.unraisablehook = before
