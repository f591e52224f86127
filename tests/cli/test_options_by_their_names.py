"""Errors of the command line name options, files and lines, and no argument of a function of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mechdesign.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("P.csv").write_text("0.7,0.3\n0.4,0.6\n")
    Path("rising.csv").write_text("epsilon,cost\n0.1,3\n0.5,4\n")
    Path("falling.csv").write_text("epsilon,cost\n0.1,3\n0.5,1\n")
    Path("unsorted.csv").write_text("step,epsilon,cost\n0,0.1,3\n0,0.5,1\n1,0.5,3\n1,0.1,1\n")
    Path("c.toml").write_text("")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("leakage P.csv --epsilon -1 --steps 3", "error: --epsilon: is not accepted; found -1.0"),
        ("leakage P.csv --epsilon nan --steps 3", "error: --epsilon: is not accepted"),
        ("budget --alpha -1 --forward P.csv", "error: --alpha: leaves no budget"),
        ("budget --alpha -1 --steps 2 --forward P.csv --cost falling.csv", "error: --alpha: "),
        ("budget --alpha 1 --steps 2 --forward P.csv --cost falling.csv --window 9", "error: --window: is too large"),
        ("budget --alpha 1 --steps 2 --forward P.csv --cost rising.csv", "error: rising.csv, curve 0, point 1, cost: "),
        ("budget --alpha 1 --forward P.csv --cost unsorted.csv", "error: unsorted.csv, curve 1, point 1, epsilon: "),
        ("budget --alpha 1 --steps 3 --forward P.csv --tolerance 0.1", "give --cost with --weights, --window or"),
        ("ledger new l.json --epsilon -1", "error: --epsilon: must not be negative"),
        ("bench --suite nope", "error: --suite: is not known"),
        ("bench --solvers nope", "error: --solvers: is not known"),
    ],
)
def test_options_have_their_names(arguments: str, said: str) -> None:
    found = CliRunner().invoke(main, arguments.split())
    assert found.exit_code == 2
    assert said in found.stderr
    assert "[0]" not in found.stderr
