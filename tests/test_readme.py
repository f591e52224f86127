"""The README's examples run as they stand."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
sys.path += [str(PROJECT / "docs"), str(PROJECT / "docs" / "_ext")]

from stored import load, with_tables  # noqa: E402


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


@pytest.mark.slow
def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)
    assert names["design"].certificate.holds
    assert names["design"].certificate.relative_gap <= 1e-6
    assert md.verify(tmp_path / "city").holds


@pytest.mark.slow
def test_the_specification_designs_and_verifies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (specification,) = blocks("toml")
    rng = np.random.default_rng(0)
    rows = [f"ann,{40.75 + rng.normal(0, 0.02)},{-73.97 + rng.normal(0, 0.02)}" for _ in range(300)]
    (tmp_path / "checkins.csv").write_text("\n".join(["user,lat,lon", *rows]))
    # The README's map has 120 cells; a coarser one says the same in a tenth of the time.
    (tmp_path / "city.toml").write_text(specification.replace("columns = 12, rows = 10", "columns = 5, rows = 4"))
    commands = re.findall(r"^mechdesign (.*?) *(?:#.*)?$", README, flags=re.M)
    assert len(commands) == 6
    for command in commands:
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 0, result.output


def test_measured_numbers_are_those_that_are_stored():
    assert "<!-- results" in README
    assert with_tables(README) == README


def test_the_table_of_solvers_is_that_of_the_stored_runs():
    import measure

    columns, rows, values = measure.compare_solvers()
    stored = load("solvers")
    assert (stored["table"], stored["values"]) == ({"columns": columns, "rows": rows}, values)
