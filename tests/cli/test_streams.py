"""Standard streams that are closed, full, or read by nobody: a command ends with its own status."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.cli._console import divert, use_open_streams

SPECIFICATION = """
domain.labels = ["a", "b"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    md.specification.parse(SPECIFICATION).design().save(folder / "out")
    return folder


class Broken(io.StringIO):
    """A stream that nothing can be written to."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


def status(*arguments) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def pipe_without_reader() -> io.TextIOWrapper:
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


@pytest.mark.parametrize(
    "line", [["verify", "{}/out"], ["info"], ["inspect", "{}/out"], ["--help"], ["verify", "--help"], ["--version"]]
)
def test_a_pipe_that_nobody_reads_ends_a_command_with_141(made, monkeypatch, line):
    stream = pipe_without_reader()
    monkeypatch.setattr(sys, "stdout", stream)
    assert status(*(part.format(made) for part in line)) == 141
    stream.close()


@pytest.mark.parametrize("error", [BrokenPipeError(32, "gone"), OSError(28, "full"), OSError(9, "closed")])
def test_notes_that_cannot_be_written_change_no_status(made, monkeypatch, error):
    monkeypatch.setattr(sys, "stderr", Broken(error))
    assert status("design", made / "nothing.toml") == 2
    assert status("verify", made / "out", "--json") == 0


def test_a_disk_that_is_full_is_told_from_a_failed_proof(made, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "full")))
    assert status("verify", made / "out") == 2


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_not_there_is_done_without(made, monkeypatch, closed):
    monkeypatch.setattr(sys, closed, None)
    assert status("verify", made / "out") == 0
    assert status("verify", made / "nothing") == 2
    assert getattr(sys, closed) is None


def test_a_stream_that_was_closed_is_done_without(made, monkeypatch):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stdout", stream)
    assert status("verify", made / "out") == 0


def test_streams_are_put_back_and_what_has_no_descriptor_is_left():
    before = sys.stdin, sys.stdout, sys.stderr
    with use_open_streams():
        assert sys.stderr is not before[2]
    assert (sys.stdin, sys.stdout, sys.stderr) == before
    divert(io.StringIO())
    divert(None)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="closes a descriptor between two processes")
def test_without_output_and_from_a_notebook_a_design_is_written(made):
    environment = {**os.environ, "MPLBACKEND": "module://nobody.has.this"}
    line = [sys.executable, "-m", "mechdesign", "design", "s.toml", "-o", "noted"]
    done = subprocess.run(
        line, cwd=made, env=environment, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), timeout=60
    )
    assert (done.returncode, b"error" in done.stderr) == (0, False), done.stderr
    assert Path(made / "noted" / "report.html").exists()


def test_a_command_whose_parts_cannot_be_loaded_is_a_fault(monkeypatch, capsys):
    from mechdesign.__main__ import run

    monkeypatch.setitem(sys.modules, "mechdesign.cli", None)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 70
    assert "mechdesign.cli" in capsys.readouterr().err
