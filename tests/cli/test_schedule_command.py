from __future__ import annotations

import csv
import dataclasses
import json
import os
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, run, write

from mechdesign.cli.design import _ranges
from mechdesign.errors import SolverInterruptedError
from mechdesign.leakage._recursion import temporal
from mechdesign.solve._contract import Status
from mechdesign.synthesis._settings import SolveSettings

SPECIFICATION = """
title = "Three releases"
domain.labels = ["a", "b", "c"]
prior.counts = [3, 2, 1]
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = { budgets = "budgets.csv" }, distance = "hamming" }]
"""


@pytest.fixture(autouse=True)
def _specified(_in_an_empty_folder):
    write(SPECIFICATION)
    write_budgets("0.5", "0.25", "0.25", "1.0")


def write_budgets(*epsilons):
    lines = [f"{step},{epsilon}" for step, epsilon in enumerate(epsilons)]
    Path("budgets.csv").write_text("\n".join(["step,epsilon", *lines]), encoding="utf-8")


def schedule():
    return list(csv.reader(Path("out/schedule.csv").read_text().splitlines()))


def test_a_certified_set_for_each_budget_and_a_schedule():
    result = run("design", "s.toml", "-o", "out", "--no-report")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "4 releases, 3 distinct ε" in result.stdout
    assert "1–2" in result.stdout
    names = schedule()
    assert names[0] == ["step", "epsilon", "folder"]
    assert [row[1] for row in names[1:]] == ["0.5", "0.25", "0.25", "1"]
    assert sorted(os.listdir("out")) == sorted({row[2] for row in names[1:]} | {"schedule.csv"})
    for _, epsilon, folder in names[1:]:
        verified = json.loads(run("verify", f"out/{folder}", "--json").stdout)
        assert verified["holds"]
        assert verified["requirements"][0]["nominal"] == epsilon


def test_from_a_target_to_channels_that_keep_it():
    Path("B.csv").write_text("0.8,0.2\n0.2,0.8\n")
    arguments = ["--alpha", "1", "--steps", "5", "--backward", "B.csv", "-o", "budgets.csv"]
    assert run("budget", *arguments).exit_code == 0
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 0
    realised = {}
    for _, _, folder in schedule()[1:]:
        verified = json.loads(run("verify", f"out/{folder}", "--json").stdout)
        realised[folder] = verified["requirements"][0]["realised"]
    spent = [realised[folder] for _, _, folder in schedule()[1:]]
    leaked = temporal(spent, [[0.8, 0.2], [0.2, 0.8]])
    assert leaked.max() <= 1
    assert leaked.min() == pytest.approx(1, rel=1e-9)


def test_json_is_a_list():
    answer = json.loads(run("design", "s.toml", "-o", "out", "--no-report", "--json").stdout)
    assert [entry["epsilon"] for entry in answer] == ["0.5", "0.25", "1"]
    assert [entry["steps"] for entry in answer] == [[0], [1, 2], [3]]
    for entry in answer:
        stored = json.loads(Path("out", entry["folder"], "certificate.json").read_text(encoding="utf-8"))
        assert entry["certificate"]["expected_cost_text"] == stored["certificate"]["expected_cost_text"]


def test_one_budget():
    write_budgets("0.5")
    result = run("design", "s.toml", "-o", "out", "--no-report")
    assert result.exit_code == 0, result.output
    assert "1 release, 1 distinct ε" in result.stdout
    assert sorted(os.listdir("out")) == ["epsilon-0.5", "schedule.csv"]


def test_an_older_schedule_is_replaced_and_other_files_are_not():
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 0
    write_budgets("0.5", "2")
    result = run("design", "s.toml", "-o", "out", "--no-report")
    assert result.exit_code == 0
    assert "does not use: epsilon-0.25, epsilon-1\n" in result.stderr
    assert [row[2] for row in schedule()[1:]] == ["epsilon-0.5", "epsilon-2"]
    Path("out/notes.txt").write_text("mine")
    refused = run("design", "s.toml", "-o", "out")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "out holds notes.txt, which does not belong to a schedule" in refused.stderr
    assert run("design", "s.toml", "-o", "out", "--no-report", "--force").exit_code == 0
    assert Path("out/notes.txt").read_text() == "mine"


def test_an_interrupted_run_leaves_no_schedule(monkeypatch):
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 0
    from mechdesign.synthesis._design import synthesise

    calls = []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise SolverInterruptedError("stopped")
        return synthesise(*arguments, **options)

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", interrupted)
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 130
    assert not Path("out/schedule.csv").exists()
    assert run("verify", "out/epsilon-0.5").exit_code == 0


def test_ctrl_c_ends_the_schedule_not_one_design_of_it(monkeypatch):
    from mechdesign.synthesis._design import synthesise

    calls = []

    def best_so_far(*arguments, **options):
        made = synthesise(*arguments, **options)
        calls.append(made)
        return made.noted(status=Status.INTERRUPTED) if len(calls) == 2 else made

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", best_so_far)
    result = run("design", "s.toml", "-o", "out", "--no-report")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "stopped in design 2 of 3; earlier designs are complete" in result.stderr
    assert os.listdir("out") == ["epsilon-0.5"]


def test_settings_are_the_same_for_all(monkeypatch):
    seen = []

    def record(*arguments, **options):
        seen.append(dataclasses.replace(arguments[1], progress=None))
        return synthesise(*arguments, **options)

    from mechdesign.synthesis._design import synthesise

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", record)
    arguments = ["--no-report", "--solver", "highs", "--tolerance", "1e-7", "--time-limit", "9", "--threads", "1"]
    assert run("design", "s.toml", "-o", "out", *arguments).exit_code == 0
    assert seen == [SolveSettings("highs", 1e-7, 9.0, "auto", 1)] * 3


def test_wrong_budgets_never_reach_a_solver():
    for epsilons, words in (
        (["0", "0.0"], "budgets.csv skips all releases"),
        (["0.5", "-1"], "is negative"),
        ([], "contains no budgets"),
    ):
        write_budgets(*epsilons)
        assert_wrong_usage({"design s.toml -o out": words})
        assert run("design", "s.toml").stderr.startswith("error: privacy[0].epsilon.budgets: ")


def test_releases_with_an_epsilon_of_0_are_left_out():
    write_budgets("0", "0.5", "0.0", "1", "0.5", "0")
    result = run("design", "s.toml", "-o", "out", "--no-report")
    assert result.exit_code == 0
    assert "3 releases, 2 distinct ε" in result.stdout
    assert "have no design: 0, 2, 5" in result.stderr
    assert [row[1:] for row in schedule()[1:]] == [
        ["0", ""], ["0.5", "epsilon-0.5"], ["0", ""], ["1", "epsilon-1"], ["0.5", "epsilon-0.5"], ["0", ""],
    ]  # fmt: skip
    assert sorted(os.listdir("out")) == ["epsilon-0.5", "epsilon-1", "schedule.csv"]
    assert "2 designs for 3 releases" in run("verify", "out").stdout
    shown = json.loads(run("verify", "out", "--json").stdout)
    assert [design["steps"] for design in shown] == [[1, 4], [3]]


def test_a_line_that_leaves_no_release_out_is_refused():
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 0
    for line in ("0,0,epsilon-1", "0,0.5,", "0,-0,", "1,0,"):
        write(f"step,epsilon,folder\n{line}\n1,1,epsilon-1\n", "out/schedule.csv")
        assert run("verify", "out").exit_code != 0, line


def test_ranges():
    assert _ranges([0, 2, 3, 4, 7]) == "0, 2–4, 7"
