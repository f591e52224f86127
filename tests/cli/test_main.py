"""What all commands have in common: help, progress, and errors that name options, files and lines."""

from __future__ import annotations

import json
import os
import pty
import sys
import time

import click
import pytest
from cli_examples import assert_wrong_usage, run, well, write

import mechdesign as md
from mechdesign.base._deadline import Progress
from mechdesign.cli import main
from mechdesign.cli._console import progress


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
def test_progress_is_a_live_line_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    primary, secondary = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress() as report:
            report(Progress("HiGHS", 0.0, 7))
            report(Progress("2 of 3: round 2: 80 rows", 0.1, 2, lower=1.25))
            report(Progress("2 of 3: HiGHS", 0.0, 9))
            time.sleep(0.3)
        monkeypatch.undo()
    shown = os.read(primary, 10**6).decode()
    os.close(primary)
    assert "2 of 3 · round 2: 80 rows · HiGHS, iteration 9 · cost between 1.25 and …" in shown


def test_progress_is_a_line_every_few_seconds_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("mechdesign.cli._console.time.perf_counter", lambda: now[0])
    with progress() as report:
        for moment in range(20):
            now[0] = moment / 2
            report(Progress("2 of 3: block interior point", 0.0, moment, lower=1.0, upper=1.5))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"2 of 3 · block interior point, iteration {2 * second} · cost between 1 and 1.5 · {second} s"
        f" · about {2 * second} s left"
        for second in (3, 6, 9)
    ]
    # Who is done at once prints nothing.
    with progress() as report:
        report(Progress("HiGHS", 0.0, 1))
    assert capsys.readouterr() == ("", "")


def test_options_have_their_names() -> None:
    write("0.7,0.3\n0.4,0.6\n", "P.csv")
    assert_wrong_usage(
        {
            "leakage P.csv --epsilon -1 --steps 3": "error: --epsilon: is not accepted; found -1.0",
            "budget --alpha -1 --forward P.csv": "error: --alpha: leaves no budget",
            "ledger new l.json --epsilon -1": "error: --epsilon: must not be negative",
            "bench --suite nope": "error: --suite: is not known",
            "bench --solvers nope": "error: --solvers: is not known",
        }
    )
