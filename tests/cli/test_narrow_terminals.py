"""On a terminal of 40 columns every command ends as on a wide one, and loses no word but at the end of a line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cli_examples import run, write

COMMANDS = (
    "--help",
    "verify --help",
    "verify made",
    "verify none",
    "inspect made",
    "inspect made made",
    "attack made --pairwise",
    "audit m.csv --distance hamming --epsilon 1/100",
    "policy --example districts",
    "budget --alpha 1 --steps 10 --backward P.csv",
    "examples",
    "cache",
    "info",
)


def letters(text: str) -> str:
    """Return a text without codes of the terminal, blanks and numbers, such as times."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\s|[\d.]", "", text)


@pytest.mark.usefixtures("made")
def test_narrow_and_wide_terminals_show_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    np.savetxt("m.csv", np.eye(4) * 0.9 + 0.1 / 4, delimiter=",", fmt="%.6f")
    write("0.9,0.1\n0.2,0.8\n", "P.csv")
    for name, value in (("TTY_COMPATIBLE", "1"), ("TTY_INTERACTIVE", "0"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    for command in COMMANDS:
        shown = []
        for columns in ("1000", "40"):
            monkeypatch.setenv("COLUMNS", columns)
            done = run(*command.split())
            assert done.exit_code in (0, 1, 2), (command, done.output)
            assert "Traceback" not in done.output, command
            shown.append((done.exit_code, sorted(letters(done.output))))
        assert shown[0] == shown[1] or "help" in command, command
