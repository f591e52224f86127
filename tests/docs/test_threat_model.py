"""The threat model names files and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def rows() -> list[list[str]]:
    """Return the cells of the table that says by what, and where tested, each promise is kept."""
    text = (ROOT / "docs" / "threat_model.md").read_text(encoding="utf-8")
    lines = text.partition("| by | tested in |\n")[2].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def missing(row: list[str]) -> list[str]:
    """Return what a row names in its last two columns and is not there."""
    code = [name if name.startswith("benchmarks/") else f"mechdesign/{name}" for name in _named(row[2])]
    return [name for name in (*code, *_named(row[3])) if not (ROOT / name).exists()]


def _named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_each_promise_names_code_and_tests_that_exist(row: list[str]) -> None:
    assert len(row) == 4
    assert all(name.startswith("tests/") for name in _named(row[3]))
    assert _named(row[2])
    assert _named(row[3])
    assert missing(row) == []


def test_a_name_of_nothing_is_found() -> None:
    assert len(rows()) > 15
    assert missing(["", "", "`cli/none.py`", "`tests/none.py`"]) == ["mechdesign/cli/none.py", "tests/none.py"]
