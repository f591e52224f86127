"""At 80 columns no command breaks a word, and texts end their lines between words."""

from __future__ import annotations

import re

import numpy as np
import pytest
import rich.text
from cli_examples import run

from mechdesign.cli._console import EscapedTable, Text, output, table, wrap_text

COMMANDS = (
    "design {spec} -o again --no-report",
    "design --example city --estimate",
    "verify made",
    "inspect made",
    "attack made --all",
    "attack made --pairwise",
    "compare made made",
    "audit m.csv --spec {spec} --epsilon 1/100 --no-header --no-numbered",
    "policy --example districts",
    "table plan --example admissions",
    "table --example admissions -o outcome --no-report --seed 1",
    "release --example walk -o outcome --seed 1",
    "leakage --example traffic",
    "budget --alpha 1 --steps 10 --backward P.csv",
    "sweep sweep.toml -o swept --jobs 1",
    "bench --list",
    "info",
    "examples",
    "ledger new l.json --epsilon 1",
    "ledger show l.json",
    "cache list",
)

SWEEP = """
domain.line = 3
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
sweep = { "privacy.0.epsilon" = [0.5, 1] }
"""


@pytest.fixture
def width(monkeypatch):
    """Give a function that makes the terminal as wide as it is told."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "0")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return lambda columns: monkeypatch.setenv("COLUMNS", str(columns))


@pytest.fixture
def files(made, spec, tmp_path):
    size = len(np.loadtxt(made / "channel.csv", delimiter=",", skiprows=1, usecols=1, ndmin=1))
    np.savetxt(tmp_path / "m.csv", np.eye(size) * 0.9 + 0.1 / size, delimiter=",", fmt="%.6f")
    (tmp_path / "P.csv").write_text("0.9,0.1\n0.2,0.8\n", encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    return spec


def words(text: str) -> set[str]:
    """Return the words of a text; numbers, such as times, are all the same word."""
    return set(re.sub(r"\d[\d.]*(e-\d+)?", "0", plain(text)).split())


def plain(text: str) -> str:
    """Return a text without the codes of the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_is_broken_at_80_columns(command, files, width):
    arguments = command.format(spec=files).split()
    if command.startswith("ledger show"):
        run("ledger", "new", "l.json", "--epsilon", "1")
    again = ["--overwrite"] if arguments[0] == "design" and "-o" in arguments else []
    width(1000)
    wide = run(*arguments, *again)
    for folder in ("outcome", "swept", "l.json"):
        if folder in arguments and not command.startswith("ledger show"):
            arguments[arguments.index(folder)] = f"x{folder[1:]}"
    width(80)
    narrow = run(*arguments, *again)
    assert narrow.exit_code == wide.exit_code, narrow.output
    assert wide.exit_code in (0, 1), wide.output
    known = words(wide.output)
    for old, new in (("outcome", "xutcome"), ("swept", "xwept"), ("l.json", "x.json")):
        known |= {word.replace(old, new) for word in known}
    assert words(narrow.output) <= known
    for line in plain(narrow.stdout).splitlines():
        # A path is never broken, however long it is.
        fits = len(line.rstrip()) <= 80 or len(line.split()[-1]) > 60
        assert fits or line.startswith("mechdesign ") or " " not in line.strip()


def test_texts_are_wrapped_below_their_start():
    said = rich.text.Text("files     city: channel.npz, certificate.json")
    assert wrap_text(said, 30).plain.splitlines() == ["files     city: channel.npz,", " " * 10 + "certificate.json"]
    said = rich.text.Text("- one two three")
    assert wrap_text(said, 9).plain.splitlines() == ["- one two", "  three"]


def test_commands_between_backticks_stay_on_one_line():
    wrapped = wrap_text(rich.text.Text("Then run `mechdesign verify city`."), 26).plain
    assert wrapped.splitlines() == ["Then run", "`mechdesign verify city`."]


@pytest.mark.parametrize("text", ["", " ", "a", "a" * 200, "\n", "a\n\nb", "  " * 80, "ε " * 100, "`" * 90, "` " * 90])
def test_awkward_texts_keep_their_words(text):
    for columns in (1, 2, 10, 80):
        assert wrap_text(rich.text.Text(text), columns).plain.split() == text.split()


def test_styles_survive_the_wrapping():
    said = Text.assemble(("Private.", "bold"), " Answers are far off")
    assert any(span.style == "bold" for span in wrap_text(said, 12).spans)


def test_tables_too_wide_for_their_words_become_blocks(width, capsys):
    width(20)
    shown: EscapedTable = table("name", "first number", "second")
    shown.add_row("a" * 15, "b" * 10, "c" * 10)
    output().print(shown)
    lines = [line.rstrip() for line in plain(capsys.readouterr().out).splitlines()]
    assert lines == ["a" * 15, "  first number:", "  " + "b" * 10, "  second: " + "c" * 10]
