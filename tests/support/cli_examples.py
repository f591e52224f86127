"""What tests of commands share: a small specification, how a command is run, and tables of wrong usage."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from matplotlib.figure import Figure

from mechdesign.cli import main

SPECIFICATION = """
title = "A line"
[domain]
points = [[0, 0], [1, 0], [2, 0], [3, 1]]
unit = "km"
labels = ["home", "work", "pub", "gym"]
[prior]
counts = [4, 3, 2, 1]
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.7
distance = "euclidean"
[[privacy]]
kind = "distortion"
minimum = 0.2
distance = "hamming"
"""


def run(*arguments: object, text: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def well(*arguments: object) -> Result:
    """Run a command that ends well."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    line = [sys.executable, "-m", "mechdesign", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=100, **options)


def write(text: str, name: str = "s.toml") -> str:
    """Write a file of this folder, and return its name."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    return name


def flat(text: str) -> str:
    """Return a text on one line, however it was wrapped."""
    return " ".join(text.split())


def contents(folder: Path | str = ".") -> dict[str, bytes]:
    """Return what the files in a folder and below it hold, by their paths."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def assert_wrong_usage(lines: Mapping[str, str], status: int = 2) -> None:
    """Fail with each line of a command that is accepted, says something else, shows a result or changes a file."""
    assert lines, "there is no line in the table"
    before = contents()
    faults = {line: said for line, says in lines.items() if (said := _fault(line, says, status, before))}
    assert not faults, faults


def _fault(line: str, says: str, status: int, before: Mapping[str, bytes]) -> str:
    result = run(*shlex.split(line))
    if result.exit_code != status:
        return f"ends with {result.exit_code}: {result.output}"
    if says not in flat(result.stderr):
        return f"does not say {says}: {result.stderr}"
    if result.stdout:
        return f"shows {result.stdout}"
    return "" if contents() == before else f"changes files: {sorted(contents())}"


def leave_pictures_blank(patched: pytest.MonkeyPatch) -> None:
    """Leave the pictures of pages blank: drawing them takes longer than all else that a command does."""
    patched.setattr("mechdesign.report._style._draw_anew", lambda *_: Figure())
    patched.setattr("mechdesign.report._page.page_svg", lambda *_: "")
