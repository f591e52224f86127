"""A sweep in one process: its files, what fails, what is interrupted, and what the next call makes."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from sweep_examples import DATA, FLOOR, TABLES, sweep, values, write_counts

import mechdesign as md
from mechdesign.certify import _bundle as bundle
from mechdesign.errors import ExportError, ReportError, StateError
from mechdesign.runs import sweep as module
from mechdesign.runs._sweep_figure import html
from mechdesign.runs.sweep import points, run
from mechdesign.synthesis._folders import Wanted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "out"
    return folder, run(sweep(), folder, jobs=1)


@pytest.fixture
def calls(monkeypatch):
    """Give the names of the points that are designed, in order."""
    found, genuine = [], module._solve
    monkeypatch.setattr(module, "_solve", lambda task: found.append(task.point.name) or genuine(task))
    return found


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*/*")}


def test_the_table_has_the_paths_as_written_then_the_results(made):
    folder, _ = made
    with (folder / "results.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [
        "privacy.0.epsilon", "cost.power", "solver.name", "status", "cost", "lower_bound", "relative_gap",
        "tight_epsilon", "revealed", "solver", "solve_seconds", "iterations", "message", "channel",
    ]  # fmt: skip
    assert [row[:4] for row in rows[:3]] == [
        ["0.2", "1", "auto", "done"],
        ["0.2", "2", "auto", "done"],
        ["0.5", "1", "auto", "done"],
    ]
    assert len(rows) == 8
    names = {point.name for point in points(sweep())}
    assert {path.name for path in folder.iterdir()} == {"results.csv", "report.html"} | names


def test_the_page_says_what_the_designs_cost():
    asked = sweep('"privacy.0.epsilon" = [1, 2]')
    for costs, said in (
        ((0.25, 0.125), "<strong>2 of 2 designs are made:</strong> they cost 0.125 to 0.25."),
        ((0.25, 0.25), "<strong>2 of 2 designs are made:</strong> they cost 0.25."),
        ((0.25, None), "<strong>1 of 2 designs are made:</strong> it costs 0.25."),
        ((None, None), "<strong>0 of 2 designs are made.</strong>"),
    ):
        rows = [
            {"privacy.0.epsilon": epsilon, "status": "failed"}
            if cost is None
            else {"privacy.0.epsilon": epsilon, "status": "done", "cost": cost, "lower_bound": cost}
            for epsilon, cost in zip((1, 2), costs, strict=True)
        ]
        assert said in html(asked, rows), costs


def test_rows_are_what_single_designs_are(made):
    folder, rows = made
    for point, row in zip(points(sweep()), rows, strict=True):
        certificate = point.specification.design(threads=1).certificate
        assert certificate.cost == row["cost"]
        found = md.verify(folder / row["channel"])
        assert not found.differences(certificate)
        assert (found.lower_bound, found.requirements[0].realised) == (row["lower_bound"], row["tight_epsilon"])
    # Cost falls as ε grows.
    costs = [row["cost"] for row in rows[::2]]
    assert costs == sorted(costs, reverse=True)


def test_progress_counts_points(tmp_path):
    moments = []
    for _ in range(2):
        run(sweep('"privacy.0.epsilon" = [1, 2]'), tmp_path, jobs=1, progress=lambda *moment: moments.append(moment))
    assert moments == [(0, 2), (1, 2), (2, 2), (2, 2)]


def test_failed_and_censored_points_are_in_the_table_and_tried_again_on_demand(tmp_path, calls):
    asked = sweep('"privacy.1.minimum" = [0.1, 5]\n"solver.time_limit" = [1e-9, 60]', FLOOR)
    rows = run(asked, tmp_path, jobs=1)
    assert [row["status"] for row in rows] == ["censored", "done", "failed", "failed"]
    assert rows[1]["distortion"] >= 0.1
    assert "InfeasibleError" in rows[2]["message"]
    assert "cost" not in rows[2]
    # At its limit a design has the best channel so far.
    assert "time limit" in rows[0]["message"]
    names = [point.name for point in points(asked)]
    said = json.loads((tmp_path / names[2] / "failed.json").read_text())
    assert said["reason"] == rows[2]["message"]
    assert said["version"] == md.__version__
    # results.csv is made from the folders.
    before = (tmp_path / "results.csv").read_text()
    (tmp_path / "results.csv").unlink()
    run(asked, tmp_path, jobs=1)
    assert (tmp_path / "results.csv").read_text() == before
    assert calls == names
    run(asked, tmp_path, jobs=1, retry=True)
    assert calls == names + names[2:]


def test_a_retry_that_succeeds_leaves_no_failure(tmp_path, monkeypatch):
    genuine = md.specification.Specification.design

    def broken(self, **changed):
        if self.tables["cost"]["power"] == 2:
            raise MemoryError("too large")
        return genuine(self, **changed)

    monkeypatch.setattr(md.specification.Specification, "design", broken)
    asked = sweep('"cost.power" = [1, 2, 3]')
    rows = run(asked, tmp_path, jobs=1)
    assert [row["status"] for row in rows] == ["done", "failed", "done"]
    assert rows[1]["message"] == "MemoryError: too large"
    monkeypatch.undo()
    assert [row["status"] for row in run(asked, tmp_path, jobs=1)] == ["done", "failed", "done"]
    assert [row["status"] for row in run(asked, tmp_path, jobs=1, retry=True)] == ["done"] * 3
    assert not list(tmp_path.rglob("failed.json"))


def test_finished_points_are_never_made_again_and_values_may_be_added(tmp_path, calls):
    asked = sweep('"privacy.0.epsilon" = [0.2, 1]\n"cost.power" = [1, 2]')
    rows = run(asked, tmp_path, jobs=1)
    before = stamps(tmp_path)
    assert run(asked, tmp_path, jobs=1) == rows
    more = run(sweep('"cost.power" = [3, 1, 2]\n"privacy.0.epsilon" = [0.20, 0.5, 1]'), tmp_path, jobs=1)
    assert len(calls) == len({*calls}) == 9
    assert before.items() <= stamps(tmp_path).items()
    assert len(more) == len(values(tmp_path)) == 9
    assert {row["channel"]: row["cost"] for row in more}.items() >= {
        row["channel"]: row["cost"] for row in rows
    }.items()
    fewer = run(sweep('"privacy.0.epsilon" = [1]\n"cost.power" = [2]'), tmp_path, jobs=1)
    assert [row["cost"] for row in fewer] == [rows[3]["cost"]]


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    calls, genuine = [], module._solve

    def stopped_at_the_third(task):
        calls.append(task.point.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return genuine(task)

    monkeypatch.setattr(module, "_solve", stopped_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(sweep(), tmp_path, jobs=1)
    assert [row["status"] for row in values(tmp_path)] == ["done"] * 2 + ["missing"] * 6
    assert not list(tmp_path.rglob("claim-*"))
    assert [row["status"] for row in run(sweep(), tmp_path, jobs=1)] == ["done"] * 8
    # The interrupted point, and no other, was begun twice.
    assert sorted(map(calls.count, {*calls})) == [1] * 7 + [2]


def test_a_stopped_design_is_not_kept(tmp_path, monkeypatch):
    from mechdesign.solve._contract import Status

    genuine = md.specification.Specification.design
    monkeypatch.setattr(
        md.specification.Specification,
        "design",
        lambda self, **changed: genuine(self, **changed).noted(status=Status.INTERRUPTED),
    )
    with pytest.raises(KeyboardInterrupt):
        run(sweep(), tmp_path, jobs=1)
    assert not list(tmp_path.rglob("certificate.json"))


def test_a_changed_specification_or_version_is_refused(tmp_path, monkeypatch, calls):
    asked = sweep('"privacy.0.epsilon" = [0.2, 0.5]')
    run(asked, tmp_path, jobs=1)
    before = stamps(tmp_path)
    other = sweep('"privacy.0.epsilon" = [7, 0.2]', TABLES.replace("4, 3", "3, 4"))
    with pytest.raises(StateError, match="the specification changed"):
        run(other, tmp_path, jobs=1)
    # The notation of a number, the order of keys and the value that is swept do not matter.
    run(sweep('"privacy.0.epsilon" = [2e-1, 0.50]', TABLES.replace("0.7", "9")), tmp_path, jobs=1)
    monkeypatch.setattr("mechdesign.runs.sweep.__version__", "99")
    monkeypatch.setattr("mechdesign.runs.sweep.Wanted", partial(Wanted, version="99"))
    with pytest.raises(StateError, match="made it, and this is 99"):
        run(asked, tmp_path, jobs=1)
    assert len(calls) == 2
    assert stamps(tmp_path) == before


def test_a_damaged_or_forged_design_is_refused(tmp_path, calls):
    asked = sweep('"privacy.0.epsilon" = [0.2, 1]')
    row, _ = run(asked, tmp_path, jobs=1)
    table, certificate = tmp_path / row["channel"] / "channel.csv", tmp_path / row["channel"] / "certificate.json"
    kept = table.read_text()
    table.write_text("")
    with pytest.raises(StateError, match=r"could not be verified: .*channel\.csv"):
        run(asked, tmp_path, jobs=1)
    table.write_text(kept)
    assert run(asked, tmp_path, jobs=1)[0] == row
    document = json.loads(certificate.read_text())
    document["certificate"]["expected_cost"] /= 2
    document["digest"] = bundle.document_digest(document)
    certificate.write_text(json.dumps(document))
    before = stamps(tmp_path)
    results = (tmp_path / "results.csv").read_bytes()
    with pytest.raises(StateError, match=f"{row['channel']} holds a design, but it could not be verified: .* claims"):
        run(asked, tmp_path, jobs=1, retry=True)
    assert (stamps(tmp_path), (tmp_path / "results.csv").read_bytes()) == (before, results)
    assert len(calls) == 2
    certificate.unlink()
    assert run(asked, tmp_path, jobs=1)[0]["cost"] == row["cost"]


def test_an_outdated_failure_is_tried_again(tmp_path):
    counted = FLOOR.replace("counts = [4, 3, 2, 1]", 'csv = { path = "n.csv", column = "n" }')
    asked = sweep('"privacy.1.minimum" = [0.9]', counted, tmp_path)
    for counts, status in (("1000 1 1 1", "failed"), ("1 1 1 1", "done")):
        write_counts(tmp_path, counts)
        assert [row["status"] for row in run(asked, tmp_path / "out", jobs=1)] == [status]


def test_data_that_change_are_noticed(tmp_path):
    write_counts(tmp_path)

    def change(done, total):
        if done == 2:
            write_counts(tmp_path, "4 3 2 2")

    asked = sweep('"privacy.0.epsilon" = [1, 2, 3, 4]', DATA, tmp_path)
    with pytest.raises(StateError, match=r"n\.csv has changed since"):
        run(asked, tmp_path / "out", jobs=1, progress=change)
    assert [row["status"] for row in values(tmp_path / "out")] == ["done"] * 2 + ["missing"] * 2
    with pytest.raises(StateError, match=r"the contents of n\.csv changed"):
        run(asked, tmp_path / "out", jobs=1)
    write_counts(tmp_path)
    assert [row["status"] for row in run(asked, tmp_path / "out", jobs=1)] == ["done"] * 4


def test_data_that_change_while_they_are_read_are_noticed(tmp_path, monkeypatch):
    write_counts(tmp_path)
    genuine = md.specification.Specification.design

    def late(self, **changed):
        made = genuine(self, **changed)
        write_counts(tmp_path, "4 3 2 2")
        return made

    monkeypatch.setattr(md.specification.Specification, "design", late)
    with pytest.raises(StateError, match=r"n\.csv has changed since"):
        run(sweep('"privacy.0.epsilon" = [1]', DATA, tmp_path), tmp_path / "out", jobs=1)
    assert not list((tmp_path / "out").rglob("certificate.json"))


def test_a_full_disk_ends_the_sweep_and_loses_nothing(tmp_path, monkeypatch):
    written, genuine = [], bundle.write

    def full(*arguments):
        written.append(arguments)
        if len(written) > 2:
            raise ExportError("No space left on device")
        return genuine(*arguments)

    monkeypatch.setattr(bundle, "write", full)
    with pytest.raises(ExportError, match="No space left"):
        run(sweep(), tmp_path, jobs=1)
    monkeypatch.undo()
    assert [row["status"] for row in values(tmp_path)] == ["done"] * 2 + ["missing"] * 6
    assert [row["status"] for row in run(sweep(), tmp_path, jobs=1)] == ["done"] * 8


def test_a_page_that_cannot_be_made_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("mechdesign.runs._sweep_figure.html", lambda *_: 1 / 0)
    with pytest.raises(ReportError, match=r"only report\.html is missing"):
        run(sweep('"cost.power" = [1]'), tmp_path, jobs=1)
    assert [row["status"] for row in values(tmp_path)] == ["done"]


def test_threads_are_one_unless_told(tmp_path, monkeypatch):
    genuine, seen = md.specification.Specification.design, []

    def watched(self, **changed):
        from threadpoolctl import threadpool_info

        blas = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
        seen.append((changed["threads"], blas))
        return genuine(self, **changed)

    monkeypatch.setattr(md.specification.Specification, "design", watched)
    run(sweep('"cost.power" = [1]'), tmp_path / "a", jobs=1)
    run(sweep('"solver.threads" = [2]'), tmp_path / "b", jobs=1)
    assert [threads for threads, _ in seen] == [1, 2]
    assert seen[0][1] <= {1}


def test_parts_share_a_folder_and_the_last_call_makes_the_table(tmp_path, calls):
    whole = points(sweep())
    for part in ("2/3", "1/3"):
        rows = run(sweep(), tmp_path, jobs=1, part=part)
        assert [row["channel"] for row in rows] == [point.name for point in whole[int(part[0]) - 1 :: 3]]
        assert not (tmp_path / "results.csv").exists()
    assert len(calls) == 6
    rows = run(sweep(), tmp_path, jobs=1)
    assert len(calls) == len({*calls}) == 8
    assert [row["status"] for row in rows] == [row["status"] for row in values(tmp_path)] == ["done"] * 8
    assert run(sweep(), tmp_path, jobs=1, part="9/9") == ()


def test_a_specification_is_given_as_a_file_too(tmp_path):
    path = Path(tmp_path / "s.toml")
    path.write_text(TABLES + '\n[sweep]\n"cost.power" = [1]', encoding="utf-8")
    assert len(md.sweep.points(path)) == len(md.sweep.run(path, tmp_path / "out")) == 1


def test_a_table_of_lists_that_spreadsheets_would_evaluate_is_quoted(tmp_path):
    run(sweep('"title" = ["=1+1"]'), tmp_path, jobs=1)
    assert values(tmp_path)[0]["title"] == "'=1+1"
