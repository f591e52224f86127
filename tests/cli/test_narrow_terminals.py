"""At 80 columns no command breaks a word, and texts end their lines between words."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from cli_examples import run, well, write

SMALL = (
    "design s.toml -o {}again --no-report",
    "verify made",
    "inspect made",
    "attack made --pairwise",
    "compare made made",
    "audit m.csv --spec s.toml --epsilon 1/100 --header false --index false",
    "leakage --example traffic",
    "budget --alpha 1 --steps 10 --backward P.csv",
    "examples",
    "ledger new {}l.json --epsilon 1",
    "ledger show l.json",
    "cache",
)
LARGE = (
    "policy --example districts",
    "table plan --example admissions",
    "table --example admissions -o {}outcome --no-report --seed 1",
    "sweep sweep.toml -o {}swept --jobs 1",
    "attack made --all",
    "info",
)
SWEEP = """
domain.line = 3
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
sweep = { "privacy.0.epsilon" = [0.5, 1] }
"""
Width = Callable[[int], None]


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> Width:
    """Give a function that makes the terminal as wide as it is told."""
    for name, value in (("TTY_COMPATIBLE", "1"), ("TTY_INTERACTIVE", "0"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    return lambda columns: monkeypatch.setenv("COLUMNS", str(columns))


def words(text: str) -> set[str]:
    """Return the words of a text; numbers, such as times, are all the same word."""
    return set(re.sub(r"\d[\d.]*(e-\d+)?", "0", plain(text)).split())


def plain(text: str) -> str:
    """Return a text without the codes of the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.usefixtures("made", "spec", "blank_pictures")
@pytest.mark.usefixtures("made", "spec", "blank_pictures")
@pytest.mark.parametrize("commands", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)], ids=["small", "large"])
def test_no_word_is_broken_at_80_columns(width: Width, commands: tuple[str, ...]) -> None:
    np.savetxt("m.csv", np.eye(4) * 0.9 + 0.1 / 4, delimiter=",", fmt="%.6f")
    write("0.9,0.1\n0.2,0.8\n", "P.csv")
    write(SWEEP, "sweep.toml")
    well("ledger", "new", "l.json", "--epsilon", "1")
    for command in commands:
        width(1000)
        wide = run(*command.format("x").split())
        width(80)
        narrow = run(*command.format("y").split())
        assert wide.exit_code == narrow.exit_code, (command, narrow.output)
        assert wide.exit_code in (0, 1), (command, wide.output)
        known = words(wide.output)
        known |= {re.sub(r"\bx(?=again|l\.json|outcome|released|swept)", "y", word) for word in known}
        assert words(narrow.output) <= known, command
        for line in plain(narrow.stdout).splitlines():
            # A path is never broken, however long it is.
            fits = len(line.rstrip()) <= 80 or len(line.split()[-1]) > 60
            assert fits or line.startswith("mechdesign ") or " " not in line.strip(), (command, line)
