"""Commands on a folder that holds no design, several, or those of a schedule."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, assert_wrong_usage, flat, run, well, write

COMMANDS = ("verify {}", "inspect {}", "compare {} made", "sample {} --secret 0", "attack {}", "export {} --format csv")
"""What takes the folder of a design; `audit` does, too, but also other files."""


def test_what_holds_no_design_is_wrong_usage(made: Path) -> None:
    for name in ("kept/one", "kept/two"):
        shutil.copytree(made, name)
    shutil.copytree(made, "above/one")
    write("title = 'x'", "file.toml")
    Path("empty").mkdir()
    for folder, file in (("table", "answers.csv"), ("trace", "released.csv")):
        write("x", f"{folder}/{file}")
        write("{}", f"{folder}/release.json")
    for command in (*COMMANDS, "audit {}"):
        said = {
            "missing": "missing",
            "kept/onf": "kept/onf" if command.startswith("audit") else "Did you mean kept/one?",
            "file.toml": "file.toml",
            "empty": "empty",
            "above": "above: is not a design, but holds one; must be above/one",
            "kept": "kept: holds 2 designs, not one; must be one of kept/one, kept/two",
            "table": "release",
            "trace": "trace",
        }
        assert_wrong_usage({command.format(folder): says for folder, says in said.items()})
    assert "not a design" in run("verify", "trace").stderr


# --- schedules ---


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scheduled")
    (folder / "b.csv").write_text("step,epsilon\n0,0.5\n1,1\n2,0.5\n")
    text = SPECIFICATION.replace("epsilon = 0.7", 'epsilon = { budgets = "b.csv" }')
    (folder / "many.toml").write_text(text)
    shown = well("design", folder / "many.toml", "-o", folder / "many", "--no-report").stdout
    assert "the joint leakage α of the releases is not" in flat(shown)
    return folder / "many"


@pytest.fixture
def schedule(scheduled: Path) -> Path:
    return Path(shutil.copytree(scheduled, "many"))


def test_a_schedule_is_not_one_design(schedule: Path) -> None:
    says = "Give many/epsilon-0.5 for ε = 0.5 (release 0), for example"
    assert_wrong_usage({command.format("many"): says for command in COMMANDS[3:]})
    well("attack", schedule / "epsilon-0.5")


def test_a_schedule_is_verified_as_a_whole(schedule: Path) -> None:
    shown = well("verify", schedule).stdout
    assert "many: every claim of 2 designs for 3 releases verified." in shown
    assert "The joint leakage of the releases" in flat(shown)
    found = json.loads(well("verify", schedule, "--json").stdout)
    steps = [(each["folder"], each["epsilon"], each["steps"]) for each in found]
    assert steps == [("epsilon-0.5", "0.5", [0, 2]), ("epsilon-1", "1", [1])]
    assert all(each["certificate"]["holds"] for each in found)
    assert all(any("joint leakage" in part for part in each["unproved"]) for each in found)


def test_a_damaged_schedule_is_found(schedule: Path) -> None:
    path = schedule / "schedule.csv"
    text = path.read_text()
    path.write_text(text.replace("1,1,epsilon-1", "1,1,epsilon-0.5"))
    assert "gives epsilon-0.5 a second ε" in run("verify", schedule).stderr
    path.write_text(text.replace("1,1,epsilon-1", "1,0.9,epsilon-1"))
    said = "many/epsilon-1 verifies, but not for ε = 0.9, its value in schedule.csv"
    assert_wrong_usage({"verify many": said}, status=1)
    for malformed in ("", "step,epsilon,folder\n", "step,epsilon,folder\n0,1,../other\n", "a,b\n1,2\n"):
        path.write_text(malformed)
        assert_wrong_usage({"verify many": "schedule.csv"})
    path.write_text(text)
    held = bytearray((schedule / "epsilon-1/channel.npz").read_bytes())
    held[-200] ^= 1
    (schedule / "epsilon-1/channel.npz").write_bytes(held)
    assert_wrong_usage({"verify many": "many/epsilon-1 does not verify"}, status=1)


FLOOR = '\n[[privacy]]\nkind = "distortion"\nminimum = 0.5\ndistance = "euclidean"\n'
GRAPH = '\n[[privacy]]\nkind = "graph"\nepsilon = 0.5\nedges = [["home", "work"]]\n'


def several(text: str, budgets: list[int]) -> None:
    """Make a schedule with several requirements, the first of which takes its ε from it."""
    write("step,epsilon\n" + "".join(f"{step},{each}\n" for step, each in enumerate(budgets)), "b.csv")
    write(SPECIFICATION.replace("epsilon = 0.7", 'epsilon = { budgets = "b.csv" }') + text, "several.toml")
    well("design", "several.toml", "-o", "several", "--no-report")


def test_a_floor_of_that_number_is_no_epsilon() -> None:
    several(FLOOR, [2])
    well("verify", "several")
    write("step,epsilon,folder\n0,0.5,epsilon-2\n", "several/schedule.csv")
    said = "verifies, but not for ε = 0.5, its value in schedule.csv"
    assert_wrong_usage({"verify several": said}, status=1)


def test_the_epsilon_of_a_schedule_is_that_of_one_requirement_in_designs_that_differ_in_nothing_else() -> None:
    several(GRAPH, [2, 1])
    shown = flat(well("verify", "several").stdout)
    assert "ε is the parameter of metric privacy." in shown
    assert "epsilon-2 also guarantees: distortion privacy, error 0.2, graph privacy, ε 0.5." in shown
    found = json.loads(well("verify", "several", "--json").stdout)
    assert [each["requirements"] for each in found] == [[0], [0]]
    # Of each design some requirement has this ε, but not the same one.
    kept = Path("several/schedule.csv").read_text()
    write("step,epsilon,folder\n0,2,epsilon-2\n1,0.5,epsilon-1\n", "several/schedule.csv")
    assert_wrong_usage({"verify several": "epsilon-1 verifies, but not for ε = 0.5"}, status=1)
    write(kept, "several/schedule.csv")
    text = SPECIFICATION.replace("0.7", "1") + GRAPH.replace("0.5", "0.25")
    well("design", write(text), "-o", "several/epsilon-1", "--no-report", "--overwrite")
    assert_wrong_usage({"verify several": "do not belong to one schedule"}, status=1)
