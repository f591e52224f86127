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
    assert "Give many/epsilon-0.5 for ε = 0.5 (release 0), for example" in result.stderr
    assert on(command, schedule / "epsilon-0.5").exit_code == 0


def test_a_schedule_is_verified_as_a_whole(schedule):
    result = run("verify", schedule)
    assert result.exit_code == 0, result.stderr
    assert "many: every claim of 2 designs for 3 releases verified." in result.stdout
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
    assert "gives epsilon-0.5 a second ε" in run("verify", schedule).stderr
    path.write_text(text.replace("1,1,epsilon-1", "1,0.9,epsilon-1"))
    result = run("verify", schedule)
    assert result.exit_code == 1
    assert "many/epsilon-1 verifies, but not for ε = 0.9, its value in schedule.csv" in result.stderr


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


def several(text):
    """Return a specification with several requirements, the first of which takes its ε from a schedule."""
    return SPECIFICATION.replace("epsilon = 0.7", 'epsilon = { budgets = "b.csv" }') + text


FLOOR = '\n[[privacy]]\nkind = "distortion"\nminimum = 0.5\ndistance = "euclidean"\n'
GRAPH = '\n[[privacy]]\nkind = "graph"\nepsilon = 0.5\nedges = [["home", "work"]]\n'


def made(text, budgets):
    Path("b.csv").write_text("step,epsilon\n" + "".join(f"{step},{each}\n" for step, each in enumerate(budgets)))
    Path("several.toml").write_text(several(text))
    result = run("design", "several.toml", "-o", "several", "--no-report")
    assert result.exit_code == 0, result.stderr
    return Path("several")


def test_a_floor_of_that_number_is_no_epsilon():
    folder = made(FLOOR, [2])
    assert run("verify", folder).exit_code == 0
    (folder / "schedule.csv").write_text("step,epsilon,folder\n0,0.5,epsilon-2\n")
    result = run("verify", folder)
    assert result.exit_code == 1
    assert "verifies, but not for ε = 0.5, its value in schedule.csv" in result.stderr.replace("\n", " ")


def test_the_epsilon_of_a_schedule_is_that_of_one_requirement():
    folder = made(GRAPH, [2, 1])
    shown = run("verify", folder).stdout.replace("\n", " ")
    assert "ε is the parameter of metric privacy." in shown
    assert "epsilon-2 also guarantees: distortion privacy, error 0.2, graph privacy, ε 0.5." in shown
    assert [each["requirements"] for each in json.loads(run("verify", folder, "--json").stdout)] == [[0], [0]]
    # Of each design some requirement has this ε, but not the same one.
    (folder / "schedule.csv").write_text("step,epsilon,folder\n0,2,epsilon-2\n1,0.5,epsilon-1\n")
    result = run("verify", folder)
    assert result.exit_code == 1
    assert "epsilon-1 verifies, but not for ε = 0.5" in result.stderr.replace("\n", " ")


def test_designs_that_differ_in_more_are_of_no_schedule():
    folder = made(GRAPH, [2, 1])
    Path("several.toml").write_text(several(GRAPH.replace("0.5", "0.25")).replace('{ budgets = "b.csv" }', "1"))
    assert run("design", "several.toml", "-o", "several/epsilon-1", "--no-report", "--overwrite").exit_code == 0
    result = run("verify", folder)
    assert result.exit_code == 1
    assert "do not belong to one schedule" in result.stderr.replace("\n", " ")


def test_a_schedule_says_that_nothing_proves_what_its_releases_leak(schedule):
    assert "The joint leakage of the releases" in run("verify", schedule).stdout.replace("\n", " ")
    for each in json.loads(run("verify", schedule, "--json").stdout):
        assert any("joint leakage" in part for part in each["unproved"])
    shown = run("design", "many.toml", "-o", "many", "--no-report").stdout.replace("\n", " ")
    assert "the joint leakage α of the releases is not" in shown


@pytest.mark.parametrize("tampered", [False, True])
def test_verify_opens_every_file_once(monkeypatch, tampered):
    assert run("design", "s.toml", "-o", "once").exit_code == 0
    if tampered:
        path = Path("once/certificate.json")
        path.write_text(path.read_text().replace('"epsilon": "0.7"', '"epsilon": "0.1"'))
    opened, before = [], Path.open

    def counted(self, *arguments, **named):
        opened.append(self.name)
        return before(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", counted)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("a file is read again"))
    result = run("verify", "once")
    assert result.exit_code == int(tampered)
    if tampered:
        assert "Worst pair: secrets" in result.stderr.replace("\n", " ")
    files = ["certificate.json", "channel.csv", "channel.npz", "dual.npz", "report.html"]
    assert sorted(name for name in opened if name in files) == files


def test_what_is_said_is_of_the_files_that_were_proved(monkeypatch):
    """A folder that is replaced while it is verified is not read again for what is said of it."""
    assert run("design", "s.toml", "-o", "once", "--no-report").exit_code == 0
    first = run("verify", "once").stdout
    Path("other.toml").write_text(SPECIFICATION.replace("epsilon = 0.7", "epsilon = 0.001"))
    from mechdesign.certify import _verify as verify

    before = verify.prove

    def replaced(*arguments):
        assert run("design", "other.toml", "-o", "once", "--no-report", "--overwrite").exit_code == 0
        return before(*arguments)

    monkeypatch.setattr("mechdesign.cli.verify.prove", replaced)
    assert run("verify", "once").stdout == first
