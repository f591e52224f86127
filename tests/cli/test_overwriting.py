"""What commands replace, and what they do not; and what a person's traces have spent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_examples import SPECIFICATION, assert_wrong_usage, contents, flat, run, well, write
from click.testing import Result

import mechdesign as md
from mechdesign.errors import BudgetExceededError, ExportError, LedgerError
from mechdesign.traces._released import accuracy

WALK = """
title = "A walk"
[domain]
grid = { columns = 3, rows = 3, width = 3, height = 3 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.5
complete = true
[release]
transition = { neighbours = 8 }
"""
pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture(autouse=True)
def _files(_in_an_empty_folder: None) -> None:
    write(SPECIFICATION, "a.toml")
    write(WALK, "walk.toml")
    write("state\n0\n1\n4\n", "t.csv")


def release(*more: object) -> Result:
    return run("release", "walk.toml", "t.csv", *more)


# --- designs ---


def test_a_design_replaces_its_own_and_no_other() -> None:
    well("design", "a.toml", "-o", "out", "--no-report")
    # A file of the same name with another content is another specification.
    write(SPECIFICATION.replace("0.7", "0.8"), "a.toml")
    says = "out holds a design (A line): the specification changed; choose another folder, or use --overwrite"
    assert_wrong_usage({"design a.toml -o out --no-report": says})
    well("design", "a.toml", "-o", "out", "--no-report", "--overwrite")
    assert json.loads(Path("out/certificate.json").read_text())["requirements"][0]["epsilon"] == "0.8"
    write(SPECIFICATION.replace("A line", "Another line"), "b.toml")
    assert_wrong_usage({"design b.toml -o out --no-report": says})
    well("design", "b.toml", "-o", "out", "--no-report", "--overwrite")
    assert json.loads(Path("out/certificate.json").read_text())["metadata"]["title"] == "Another line"


def test_from_python_designs_are_replaced_unless_told_otherwise() -> None:
    distance = np.array([[0.0, 1.0], [1.0, 0.0]])
    made = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], title="By hand"))
    md.save(made, "out", report=False)
    md.save(made, "out", report=False)
    with pytest.raises(ExportError, match=r"holds a design \(By hand\)"):
        md.save(made, "out", overwrite=False, report=False)
    md.save(made, "elsewhere", overwrite=False, report=False)
    assert md.verify("elsewhere").holds


def test_files_that_belong_together_are_never_written_over() -> None:
    md.save(md.read_spec("a.toml").design(), "d", report=False)
    write("0.8,0.2\n0.1,0.9\n", "B.csv")
    for name in ("forward.csv", "states.csv"):
        write("kept", f"chain/{name}")
    lines = (
        "audit B.csv --distance hamming -o d/dual.npz",
        "leakage --backward B.csv --epsilon 0.1 --steps 3 -o chain/forward.csv",
        "budget --alpha 1 --steps 3 --backward B.csv -o d/channel.csv",
    )
    before = contents()
    for line in lines:
        refused = run(*line.split())
        assert (refused.exit_code, "choose another name" in flat(refused.stderr)) == (2, True), line
        assert contents() == before
    well("leakage", "--backward", "B.csv", "--epsilon", "0.1", "--steps", "3", "-o", "d/leakage.csv")


# --- traces ---


def test_a_released_trace_is_not_replaced_and_a_rehearsal_is() -> None:
    assert release("--seed", 1).exit_code == 0
    assert release().exit_code == 0
    says = "released holds a released trace"
    assert_wrong_usage({f"release walk.toml t.csv{more}": says for more in ("", " --seed 1")})
    assert release("--overwrite").exit_code == 0
    found = md.read_spec("walk.toml").release("t.csv")
    md.save(found, "released", report=False)
    with pytest.raises(ExportError, match="holds a released trace"):
        md.save(found, "released", overwrite=False, report=False)
    # An unfinished run counts as released.
    Path("released/release.json").unlink()
    assert_wrong_usage({"release walk.toml t.csv": says})


def test_the_truth_stands_beside_a_rehearsal_only() -> None:
    rehearsed = release("--seed", 1).stdout
    assert " true\n" in rehearsed
    released = release("-o", "other").stdout
    assert " expected\n" in released
    assert " true\n" not in released


def test_what_is_expected_and_what_is_true_by_hand() -> None:
    found = md.read_spec("walk.toml").release("t.csv", seed=1)
    truth = np.array([0, 1, 4])
    useful, at_once, whole = accuracy(found, truth)
    places = found.domain.points
    apart = np.array([np.hypot(*(found.places[t] - places[truth[t]])) for t in range(3)])
    assert useful.true == pytest.approx(apart.mean())
    between = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    smoothed = found.beliefs.smoothed
    assert useful.expected == pytest.approx((smoothed * between[found.outputs]).sum(axis=1).mean())
    assert whole.expected == pytest.approx((smoothed @ between).min(axis=1).mean())
    guesses = (found.beliefs.posteriors @ between).argmin(axis=1)
    assert at_once.true == pytest.approx(between[guesses, truth].mean())
    assert [row.true for row in accuracy(found)] == [None, None, None]


def test_a_report_says_what_may_be_published() -> None:
    assert release().exit_code == 0
    page = Path("released/report.html").read_text()
    assert "Expects to be off by" in page
    assert "rehearsal" not in page
    assert release("--seed", 1, "-o", "rehearsed").exit_code == 0
    assert (
        "<strong>A rehearsal with a seed:</strong> publish nothing of it." in Path("rehearsed/report.html").read_text()
    )


# --- ledgers ---


def test_a_ledger_keeps_what_was_spent_and_refuses_the_next_trace() -> None:
    md.Ledger(2, path="person.json").spend("earlier", "one person's place", epsilon="0.25")
    result = release("--ledger", "person.json")
    assert result.exit_code == 0, result.output
    assert re.search("\nleft +ε = 0.25\n", result.stdout)
    assert md.Ledger(path="person.json").remaining_epsilon * 4 == 1
    says = "a trace of 3 steps would spend ε = 1.5, but 0.25 of 2 is left"
    assert_wrong_usage({"release walk.toml t.csv --ledger person.json -o again": says})
    assert len(md.Ledger(path="person.json").entries) == 4
    # Rehearsals are charged to no ledger.
    assert release("--ledger", "rehearsed.json", "--seed", 1, "-o", "rehearsed").exit_code == 0
    assert not Path("rehearsed.json").exists()


def test_the_ledger_of_a_specification_at_its_limit() -> None:
    for number, (budget, fits) in enumerate(
        (("epsilon = 1.5", True), ("epsilon = 1.49", False), ("rho = 0.375", True), ("rho = 0.374", False))
    ):
        path = Path(f"ledger-{number}.json")
        specification = md.read_spec(write(f'{WALK}\n[ledger]\npath = "{path}"\n{budget}\n', "walk.toml"))
        if fits:
            specification.release("t.csv")
            assert len(md.Ledger(path=path).entries) == 3
        with pytest.raises(BudgetExceededError):
            specification.release("t.csv")
        assert path.exists() == fits, budget


def test_a_damaged_ledger_is_refused() -> None:
    write("{}", "person.json")
    assert_wrong_usage({"release walk.toml t.csv --ledger person.json": "is not a ledger"})
    with pytest.raises(LedgerError):
        md.Ledger(path="person.json")
