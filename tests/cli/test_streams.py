"""Standard streams that are closed, full, or read by nobody: a command ends with its own status."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, write

from mechdesign.__main__ import run as run_module
from mechdesign.cli import main
from mechdesign.cli._console import divert, use_streams


class Broken(io.StringIO):
    """A stream that nothing can be written to."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


def status(*arguments: object) -> object:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def test_a_pipe_that_nobody_reads_ends_a_command_with_141(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in ("verify made", "examples", "inspect made", "--help", "verify --help", "--version"):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            assert status(*line.split()) == 141, line


def test_notes_that_cannot_be_written_change_no_status(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (BrokenPipeError(32, "gone"), OSError(28, "full"), OSError(9, "closed")):
        monkeypatch.setattr(sys, "stderr", Broken(error))
        assert [status("design", "nothing.toml"), status("verify", made, "--json")] == [2, 0], repr(error)


def test_a_disk_that_is_full_is_told_from_a_failed_proof(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "full")))
    assert status("verify", made) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_stream_without_a_buffer_loses_nothing_in_silence(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for device, code in (("/dev/full", 2), (writer, 141)):
        with open(device, "wb", buffering=0) as raw:
            # As Python makes it with PYTHONUNBUFFERED.
            unbuffered = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)  # type: ignore[type-var]
            monkeypatch.setattr(sys, "stdout", unbuffered)
            assert status("verify", made) == code
            assert sys.stdout is unbuffered
            unbuffered.detach()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_device_is_not_a_failed_verification(made: Path) -> None:
    for line in ("--version", "--help", "--cite", "verify --help", "verify made", "export made --format json"):
        with Path("/dev/full").open("w") as full:
            words = [sys.executable, "-m", "mechdesign", *line.split()]
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2, line
        assert "cannot be written" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_closed_stream_is_done_without(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for closed in ("stdin", "stdout", "stderr"):
        with monkeypatch.context() as patched:
            patched.setattr(sys, closed, None)
            assert [status("verify", made), status("verify", "nothing")] == [0, 2], closed
            getattr(sys, closed).close()


def test_streams_are_put_back_and_what_has_no_descriptor_is_left() -> None:
    before = sys.stdin, sys.stdout, sys.stderr
    with use_streams():
        assert sys.stderr is not before[2]
    assert (sys.stdin, sys.stdout, sys.stderr) == before
    divert(io.StringIO())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="closes a descriptor between two processes")
def test_without_output_and_from_a_notebook_a_design_is_written() -> None:
    environment = {**os.environ, "MPLBACKEND": "module://nobody.has.this"}
    line = [sys.executable, "-m", "mechdesign", "design", write(SPECIFICATION), "-o", "noted"]
    done = subprocess.run(line, env=environment, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), timeout=60)
    assert (done.returncode, b"error" in done.stderr) == (0, False), done.stderr
    assert Path("noted/report.html").exists()


def test_a_command_whose_parts_cannot_be_loaded_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # This process goes on, and so must what it does at Ctrl-C.
    monkeypatch.setattr("mechdesign.__main__.signal.signal", lambda *_: None)
    monkeypatch.setattr("mechdesign.__main__.atexit.register", lambda *_: None)
    monkeypatch.setitem(sys.modules, "mechdesign.cli", None)
    with pytest.raises(SystemExit) as ended:
        run_module()
    assert ended.value.code == 70
    assert "mechdesign.cli" in capsys.readouterr().err
