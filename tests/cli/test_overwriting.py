"""What commands replace, and what they do not; and what a person's traces have spent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import SPECIFICATION, run

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


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(SPECIFICATION)
    Path("walk.toml").write_text(WALK)
    Path("t.csv").write_text("0\n1\n4\n")


def release(*more):
    return run("release", "walk.toml", "t.csv", *more)


# --- designs ---------------------------------------------------------------------------------------------------------


def test_a_design_replaces_its_own_and_no_other():
    assert run("design", "a.toml", "-o", "out", "--no-report").exit_code == 0
    # The same file, changed, is the same specification.
    Path("a.toml").write_text(SPECIFICATION.replace("0.7", "0.8"))
    assert run("design", "a.toml", "-o", "out", "--no-report").exit_code == 0
    assert json.loads(Path("out/certificate.json").read_text())["requirements"][0]["epsilon"] == "0.8"
    Path("b.toml").write_text(SPECIFICATION.replace("A line", "Another line"))
    before = Path("out/certificate.json").read_bytes()
    refused = run("design", "b.toml", "-o", "out", "--no-report")
    assert refused.exit_code == 2
    assert "out holds the design of another specification (A line)" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert Path("out/certificate.json").read_bytes() == before
    assert run("design", "b.toml", "-o", "out", "--no-report", "--overwrite").exit_code == 0
    assert json.loads(Path("out/certificate.json").read_text())["metadata"]["title"] == "Another line"


def test_designs_of_a_schedule_are_not_replaced_by_those_of_another():
    Path("b.csv").write_text("step,epsilon\n0,0.5\n")
    scheduled = SPECIFICATION.replace("epsilon = 0.7", 'epsilon = { budgets = "b.csv" }')
    for name, title in (("one.toml", "One"), ("two.toml", "Two")):
        Path(name).write_text(scheduled.replace("A line", title))
    assert run("design", "one.toml", "-o", "out", "--no-report").exit_code == 0
    refused = run("design", "two.toml", "-o", "out", "--no-report")
    assert (refused.exit_code, "another specification (One)" in refused.stderr) == (2, True)
    assert run("design", "two.toml", "-o", "out", "--no-report", "--overwrite").exit_code == 0


def test_from_python_designs_are_replaced_unless_told_otherwise(tmp_path):
    distance = np.array([[0.0, 1.0], [1.0, 0.0]])
    made = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], title="By hand"))
    made.save("out")
    made.save("out")
    with pytest.raises(ExportError, match="By hand, of unknown origin"):
        made.save("out", overwrite=False)
    made.save("elsewhere", overwrite=False)
    assert md.verify("elsewhere").holds


# --- traces ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("blank_pictures")
def test_a_released_trace_is_not_replaced():
    assert release().exit_code == 0
    before = Path("released/released.csv").read_bytes()
    for more in ((), ("--seed", 1), ("--force",)):
        refused = release(*more)
        assert refused.exit_code == 2
        assert "released holds a released trace" in refused.stderr
    assert Path("released/released.csv").read_bytes() == before
    assert release("--overwrite").exit_code == 0
    found = md.read_spec("walk.toml").release("t.csv")
    found.save("released")
    with pytest.raises(ExportError, match="holds a released trace"):
        found.save("released", overwrite=False)


@pytest.mark.usefixtures("blank_pictures")
def test_an_unfinished_run_counts_as_released():
    assert release().exit_code == 0
    Path("released/release.json").unlink()
    assert release().exit_code == 2


@pytest.mark.usefixtures("blank_pictures")
def test_a_rehearsal_is_replaced():
    assert release("--seed", 1).exit_code == 0
    assert release().exit_code == 0


@pytest.mark.usefixtures("blank_pictures")
def test_the_truth_stands_beside_a_rehearsal_only():
    rehearsed = release("--seed", 1).stdout
    assert "utility: the released place" in rehearsed
    assert "is truly off by" in rehearsed
    released = release("-o", "other").stdout
    assert "expects to be off by" in released
    assert "truly" not in released


def test_what_is_expected_and_what_is_true_by_hand():
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


@pytest.mark.slow
def test_a_report_says_what_may_be_published():
    assert release().exit_code == 0
    page = Path("released/report.html").read_text()
    for words in (
        "A walk",
        "ε of all steps together",
        "Expects to be off by",
        "later steps are darker",
        "spread",
    ):
        assert words in page
    assert "rehearsal" not in page
    assert release("--seed", 1, "-o", "rehearsed").exit_code == 0
    assert "A rehearsal with a seed: publish nothing of it." in Path("rehearsed/report.html").read_text()


# --- ledgers ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("blank_pictures")
def test_a_ledger_keeps_what_was_spent_and_refuses_the_next_trace():
    md.Ledger(2, path="person.json").spend("earlier", "one person's place", epsilon="0.25")
    result = release("--ledger", "person.json")
    assert result.exit_code == 0, result.output
    assert "left      ε = 0.25" in result.stdout
    assert md.Ledger(path="person.json").spent.epsilon == md.Ledger(2).epsilon - md.Ledger("1/4").epsilon
    refused = release("--ledger", "person.json", "-o", "again")
    assert refused.exit_code == 2
    assert "a trace of 3 steps would spend ε = 1.5, but 0.25 of 2 is left" in refused.stderr
    assert not Path("again").exists()
    assert len(md.Ledger(path="person.json").entries) == 4


@pytest.mark.usefixtures("blank_pictures")
def test_rehearsals_are_charged_to_no_ledger():
    assert release("--ledger", "person.json", "--seed", 1).exit_code == 0
    assert not Path("person.json").exists()


@pytest.mark.parametrize(
    ("budget", "fits"),
    [("epsilon = 1.5", True), ("epsilon = 1.49", False), ("rho = 0.375", True), ("rho = 0.374", False)],
)
def test_the_ledger_of_a_specification_at_its_limit(budget, fits):
    Path("walk.toml").write_text(f'{WALK}\n[ledger]\npath = "ledger.json"\n{budget}\n')
    specification = md.read_spec("walk.toml")
    if fits:
        specification.release("t.csv")
        assert len(md.Ledger(path="ledger.json").entries) == 3
    with pytest.raises(BudgetExceededError):
        specification.release("t.csv")
    assert Path("ledger.json").exists() == fits


def test_a_damaged_ledger_is_refused():
    Path("person.json").write_text("{}")
    refused = release("--ledger", "person.json")
    assert (refused.exit_code, "is not a ledger" in refused.stderr) == (2, True)
    with pytest.raises(LedgerError):
        md.Ledger(path="person.json")


def test_files_that_belong_together_are_never_written_over(tmp_path):
    md.read_spec("a.toml").design().save("d")
    Path("B.csv").write_text("0.8,0.2\n0.1,0.9\n")
    for name in ("forward.csv", "chain-counts.json"):
        Path("chain").mkdir(exist_ok=True)
        (Path("chain") / name).write_text("kept")
    kept = {path: path.read_bytes() for folder in ("d", "chain") for path in Path(folder).iterdir()}
    for line in (
        "inspect d --report d/certificate.json",
        "audit B.csv --distance hamming -o d/dual.npz",
        "leakage B.csv --epsilon 0.1 --steps 3 -o chain/forward.csv",
        "budget --alpha 1 --steps 3 --backward B.csv -o d/channel.csv",
    ):
        result = run(*line.split())
        assert result.exit_code == 2
        assert "choose another name" in result.stderr
        assert {path: path.read_bytes() for path in kept} == kept
    assert run("leakage", "B.csv", "--epsilon", "0.1", "--steps", "3", "-o", "d/leakage.csv").exit_code == 0
