"""Commands on a folder that holds no design, several, or those of a schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, run

COMMANDS = [("verify",), ("sample", "--secret", "0"), ("attack",), ("export", "--format", "csv")]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SPECIFICATION)


@pytest.fixture
def schedule():
    Path("b.csv").write_text("step,epsilon\n0,0.5\n1,1\n2,0.5\n")
    Path("many.toml").write_text(SPECIFICATION.replace("epsilon = 0.7", 'epsilon = { budgets = "b.csv" }'))
    assert run("design", "many.toml", "-o", "many", "--no-report").exit_code == 0
    return Path("many")


def on(command, folder):
    return run(command[0], folder, *command[1:])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each[0])
def test_a_name_that_does_not_exist(command):
    assert run("design", "s.toml", "-o", "kept/mechanism", "--no-report").exit_code == 0
    result = on(command, "kept/mechanisn")
    assert result.exit_code == 2
    assert "kept/mechanisn: does not exist" in result.stderr
    assert "Did you mean kept/mechanism?" in result.stderr
    assert "Did you mean" not in on(command, "elsewhere").stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each[0])
def test_a_folder_of_designs(command):
    for name in ("one", "two"):
        assert run("design", "s.toml", "-o", f"kept/{name}", "--no-report").exit_code == 0
    result = on(command, "kept")
    assert result.exit_code == 2
    assert "kept: holds 2 designs, not one; must be one of kept/one, kept/two" in result.stderr


@pytest.mark.parametrize("command", COMMANDS[1:], ids=lambda each: each[0])
def test_a_schedule_is_not_one_design(schedule, command):
    result = on(command, schedule)
    assert result.exit_code == 2
    assert "holds the designs of a schedule" in result.stderr
    assert "Name many/epsilon-0.5, say, for ε = 0.5 (release 0)" in result.stderr
    assert on(command, schedule / "epsilon-0.5").exit_code == 0


def test_a_schedule_is_verified_as_a_whole(schedule):
    result = run("verify", schedule)
    assert result.exit_code == 0, result.stderr
    assert "many verifies: 2 designs for 3 releases." in result.stdout
    found = json.loads(run("verify", schedule, "--json").stdout)
    assert [(each["folder"], each["epsilon"], each["steps"]) for each in found] == [
        ("epsilon-0.5", "0.5", [0, 2]),
        ("epsilon-1", "1", [1]),
    ]
    assert all(each["certificate"]["holds"] for each in found)


def test_a_design_of_a_schedule_for_another_budget_is_found(schedule):
    path = schedule / "schedule.csv"
    text = path.read_text()
    path.write_text(text.replace("1,1,epsilon-1", "1,1,epsilon-0.5"))
    assert "gives epsilon-0.5 two ε" in run("verify", schedule).stderr
    path.write_text(text.replace("1,1,epsilon-1", "1,0.9,epsilon-1"))
    result = run("verify", schedule)
    assert result.exit_code == 1
    assert "many/epsilon-1 verifies, but not for ε = 0.9, which schedule.csv says it is for" in result.stderr


@pytest.mark.parametrize("change", ["", "step,epsilon,folder\n", "step,epsilon,folder\n0,1,../other\n", "a,b\n1,2\n"])
def test_a_schedule_that_is_malformed(schedule, change):
    (schedule / "schedule.csv").write_text(change)
    result = run("verify", schedule)
    assert (result.exit_code, "schedule.csv" in result.stderr) == (2, True)


def test_a_damaged_design_of_a_schedule(schedule):
    held = bytearray((schedule / "epsilon-1/channel.npz").read_bytes())
    held[-200] ^= 1
    (schedule / "epsilon-1/channel.npz").write_bytes(held)
    result = run("verify", schedule)
    assert result.exit_code == 1
    assert "many/epsilon-1 does not verify" in result.stderr
