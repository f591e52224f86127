"""What all commands have in common: help, progress, and errors that name options, files and lines."""

from __future__ import annotations

import itertools
import json
import os
import pty
import sys
import time

import click
import pytest
from cli_examples import assert_wrong_usage, run, well, write
from click.testing import CliRunner

import mechdesign as md
from mechdesign.base._deadline import Progress
from mechdesign.cli import main
from mechdesign.cli._console import _ProgressLine, progress
from mechdesign.cli._found import Found, command


@pytest.fixture(scope="module")
def info() -> str:
    return well("info", "--json").stdout


def test_info_and_version(info: str) -> None:
    found = json.loads(info)
    assert found["versions"]["mechdesign"] == md.__version__
    assert {"highs-simplex", "cvxpy-clarabel"} <= {each["solver"] for each in found["solvers"]}
    assert "highspy" in well("info").stdout
    assert run("--version").stdout == f"mechdesign, version {md.__version__}\n"


def test_every_command_has_help() -> None:
    shown = well("--help").stdout
    names = main.list_commands(click.Context(main))
    assert len(names) > 10
    for name in names:
        assert name in shown
        well(name, "--help")
    assert "Did you mean 'verify'?" in run("verfy").stderr
    assert run("frobnicate").exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="no terminals")
def test_progress_is_a_bar_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    primary, secondary = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("mechdesign.cli._console._DELAY_S", 0.0)
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress() as report:
            report(Progress("1 of 3: HiGHS", 0.0, 7))
            report(Progress("2 of 3: round 2: 80 rows", 0.1, 2, lower=1.25))
            report(Progress("2 of 3: HiGHS", 0.0, 9))
            time.sleep(0.3)
        monkeypatch.undo()
    shown = os.read(primary, 10**6).decode()
    os.close(primary)
    assert "2 of 3 · round 2: 80 rows · HiGHS, iteration 9 · cost between 1.25 and … · 0 s · about 0 s left" in shown


def test_progress_is_a_line_every_few_seconds_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Who is done at once prints nothing.
    with progress() as report:
        report(Progress("HiGHS", 0.0, 1))
    assert capsys.readouterr() == ("", "")
    for name in ("_DELAY_S", "_LINE_INTERVAL_S"):
        monkeypatch.setattr(f"mechdesign.cli._console.{name}", 0.02)
    with progress("reading") as report:
        time.sleep(0.1)
        report(Progress("block interior point", 0.0, 5, lower=1.0, upper=1.5, left=60.0))
        time.sleep(0.1)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0] == "reading · 0 s"
    assert lines[-1] == "block interior point, iteration 5 · cost between 1 and 1.5 · 0 s · at most 60 s left"


def test_each_command_shows_its_progress_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DELAY_S", "_LINE_INTERVAL_S"):
        monkeypatch.setattr(f"mechdesign.cli._console.{name}", 0.02)

    @command
    def slow() -> Found:
        time.sleep(0.1)
        with progress("drawing"):
            time.sleep(0.1)
        return Found("done")

    shown = CliRunner().invoke(slow, [])
    stages = [line.partition(" · ")[0] for line in shown.stderr.splitlines()]
    assert list(dict.fromkeys(stages)) == ["starting", "drawing"]
    assert shown.stdout == "done\n"


def test_the_time_left_does_not_count_what_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 10.0)
    with monkeypatch.context() as patched:
        patched.setattr(time, "perf_counter", lambda: next(clock))
        line = _ProgressLine("starting")
        line.note(Progress("91 of 100: designing", 0.0))
        assert "left" not in line.text()
        line.note(Progress("93 of 100: designing", 0.0))
        # The two parts took 20 s.
        assert line.text() == "93 of 100 · designing · 30 s · about 80 s left"


def test_options_have_their_names() -> None:
    write("0.7,0.3\n0.4,0.6\n", "P.csv")
    assert_wrong_usage(
        {
            "leakage --backward P.csv --epsilon -1 --steps 3": "error: --epsilon: is not accepted; found -1.0",
            "budget --alpha -1 --forward P.csv": "error: --alpha: leaves no budget",
            "ledger new l.json --epsilon -1": "error: --epsilon: must not be negative",
            "bench --suite nope": "error: --suite: is not known",
            "bench --solvers nope": "error: --solvers: is not known",
        }
    )


def test_a_number_of_thousands_of_digits_is_not_repeated_whole() -> None:
    for digits in (101, 5000):
        said = run("sample", "-n", f"-{'7' * digits}", "folder").stderr
        assert f"{'7' * 100}…" in said
        assert len(said) < 500
    assert "7" * 100 + " " in run("sample", "-n", "-" + "7" * 100, "folder").stderr
