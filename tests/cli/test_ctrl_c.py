"""Ctrl-C, once or twice, at any moment from the first import of a command until Python has ended: the code is 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION
from sweep_examples import text

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="needs signals")]

MOMENTS_S = (0.02, 0.1, 0.3, 0.8, 1.5)
# The signal comes to the whole group, as from a terminal; the first byte says that the command has its own handler.
PROGRAM = """
import signal, sys
from mechdesign.__main__ import run

own = signal.signal

def announce(*handler):
    own(*handler)
    signal.signal = own
    sys.stdout.write("!")
    sys.stdout.flush()

signal.signal = announce
run()
"""
TABLE = """
table.person = false
domain.attributes.age = { range = [0, 9] }
policy = { kind = "threshold", theta = 1 }
release = { kind = "ranges", epsilon = 1, ranges = [[0, 2], [3, 9]] }
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("inputs")
    many = '"privacy.0.epsilon" = [{}]'.format(", ".join(str(n / 100) for n in range(1, 200)))
    for name, said in (("s.toml", text(many)), ("d.toml", SPECIFICATION), ("t.toml", TABLE), ("t.csv", "age\n3\n1\n")):
        (folder / name).write_text(said, encoding="utf-8")
    return {
        "sweep": ["sweep", f"{folder}/s.toml", "--jobs", "1"],
        "design": ["design", f"{folder}/d.toml"],
        "table": ["table", f"{folder}/t.toml", f"{folder}/t.csv"],
        "help": ["--help"],
    }


@pytest.mark.parametrize("again_s", [None, 0.0, 0.1])
@pytest.mark.parametrize("name", ["sweep", "design", "table", "help"])
def test_ctrl_c_ends_with_130_and_no_traceback(
    name: str, again_s: float | None, lines: dict[str, list[str]], tmp_path: Path
) -> None:
    stopped = False
    for moment in MOMENTS_S:
        folder = tmp_path / str(moment)
        folder.mkdir()
        command = [sys.executable, "-c", PROGRAM, *lines[name]]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes)
        assert process.stdout is not None
        assert process.stdout.read(1) == "!"
        for pause in (moment,) if again_s is None else (moment, again_s):
            time.sleep(pause)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 130), (moment, process.returncode, errors)
        assert "Traceback" not in errors, moment
        assert process.returncode == 0 or "error: stopped" in errors, moment
        stopped |= process.returncode == 130
    # Help may be shown before the signal comes.
    assert stopped or name == "help"
