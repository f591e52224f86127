"""A sweep in one process: its files, what fails, what is interrupted, and what is resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from sweep_examples import LISTS, TABLES, sweep, values

import mechdesign as md
import mechdesign.base._atomic
from mechdesign.certify import _bundle as bundle
from mechdesign.errors import ExportError, StateError
from mechdesign.runs import _engines as local
from mechdesign.runs._engines import solve
from mechdesign.runs._store import State
from mechdesign.runs._tasks import prepare
from mechdesign.runs.sweep import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "out"
    return run(sweep(), folder, jobs=1)


def test_the_table_has_the_paths_as_written_then_the_results(made):
    with (made.folder / "results.csv").open(newline="") as file:
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
    assert (made.folder / "report.html").stat().st_size > 1000


def test_rows_are_what_single_designs_are(made):
    given = md.specification.parse(TABLES.replace("epsilon = 0.7", "epsilon = 0.5"))
    alone = given.design().certificate
    row = made.rows[2]
    assert row.values["cost"] == pytest.approx(alone.expected_cost, rel=1e-9)
    assert row.values["tight_epsilon"] <= 0.5
    assert row.values["lower_bound"] <= row.values["cost"]
    # Cost falls as ε grows.
    costs = [each.values["cost"] for each in made.rows[::2]]
    assert costs == sorted(costs, reverse=True)


def test_every_channel_verifies_and_says_what_the_table_says(made):
    for row in made.rows:
        certificate = md.verify(made.folder / row.values["channel"])
        assert certificate.cost == row.values["cost"]
        assert certificate.lower_bound == row.values["lower_bound"]
        assert certificate.requirements[0].realised == row.values["tight_epsilon"]


def test_progress_counts_rows(tmp_path):
    moments = []
    run(sweep('"privacy.0.epsilon" = [1, 2]'), tmp_path / "out", jobs=1, progress=moments.append)
    assert [moment.done for moment in moments] == [0, 1, 2]
    assert moments[0].left is None
    assert moments[1].left > 0
    assert moments[2].left == 0
    assert moments[2].rate > 0


def test_failed_and_censored_rows_are_in_the_table(tmp_path):
    lists = '"privacy.1.minimum" = [0.1, 5]\n"solver.time_limit" = [1e-9, 60]'
    tables = f'{TABLES}\n[[privacy]]\nkind = "distortion"\nminimum = 0.1\ndistance = "euclidean"'
    result = run(sweep(lists, tables), tmp_path, jobs=1)
    censored, done, failed, also = result.rows
    assert (done.state, failed.state, also.state) == (State.DONE, State.FAILED, State.FAILED)
    assert done.values["distortion"] >= 0.1
    assert "InfeasibleError" in failed.values["message"]
    assert failed.values.get("cost") is None
    # At its limit a row has the best channel so far, or none.
    assert censored.state is State.CENSORED
    assert "time limit" in censored.values["message"]
    assert result.count(State.FAILED) == 2
    assert "What did not end well" in (tmp_path / "report.html").read_text()


def test_finished_rows_are_never_run_again(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(local, "solve", lambda task: calls.append(task.key) or solve(task))
    run(sweep(), tmp_path, jobs=1)
    before = values(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    with pytest.raises(StateError, match="Resume it"):
        run(sweep(), tmp_path, jobs=1)
    run(sweep(), tmp_path, jobs=1, resume=True)
    assert len(calls) == len(set(calls)) == 8
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    assert values(tmp_path) == before


def test_rows_that_another_process_has_are_left_to_it(tmp_path):
    request, tasks = prepare(sweep())
    store = mechdesign.runs._store.Store(tmp_path, request)
    held = list(tasks)[3]
    with store.claim(held) as mine:
        assert mine
        result = run(sweep(), tmp_path, jobs=1, resume=True)
    assert len(result.rows) == 7
    assert len(run(sweep(), tmp_path, jobs=1, resume=True).rows) == 8


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    calls = []

    def stopped_at_the_third(task):
        calls.append(task.key)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(task)

    monkeypatch.setattr(local, "solve", stopped_at_the_third)
    result = run(sweep(), tmp_path, jobs=1)
    assert result.interrupted
    assert [row.state for row in result.rows] == [State.DONE, State.DONE, State.INTERRUPTED]
    assert len(values(tmp_path)) == 3
    result = run(sweep(), tmp_path, jobs=1, resume=True)
    assert not result.interrupted
    assert [row.state for row in result.rows] == [State.DONE] * 8
    # The interrupted one, and no other, was begun twice.
    assert sorted(map(calls.count, set(calls))) == [1] * 7 + [2]


ZIP = """
"privacy.0.epsilon" = [0.2, 0.5, 1, 2]
"cost.power" = [1, 2, 1, 2]
"solver.name" = ["auto", "auto", "block", "block"]
mode = "zip"
"""


def test_a_changed_specification_or_solver_is_refused(tmp_path, monkeypatch):
    request, _ = prepare(sweep())
    mechdesign.runs._store.Store(tmp_path, request)
    for lists, tables, said in (
        (LISTS.replace("0.5", "0.6"), TABLES, r"epsilon was \[0\.2, 0\.5, 1, 2\] and is now \[0\.2, 0\.6, 1, 2\]"),
        (LISTS, TABLES.replace("4, 3", "3, 4"), r"prior\.counts was \[4, 3, 2, 1\] and is now \[3, 4"),
        (ZIP, TABLES, "sweep.mode"),
    ):
        with pytest.raises(StateError, match=said) as raised:
            run(sweep(lists, tables), tmp_path, jobs=1, resume=True)
        assert "Choose another folder" in str(raised.value)
    monkeypatch.setattr("mechdesign.runs._tasks.find_version", lambda name: "99")
    with pytest.raises(StateError, match=r"version of numpy was .* and is now \"99\""):
        run(sweep(), tmp_path, jobs=1, resume=True)


def test_data_that_change_meanwhile_end_the_sweep(tmp_path):
    tables = TABLES.replace("counts = [4, 3, 2, 1]", 'csv = { path = "n.csv", column = "n" }')
    (tmp_path / "n.csv").write_text("n\n4\n3\n2\n1\n")

    def change(moment):
        if moment.done == 2:
            (tmp_path / "n.csv").write_text("n\n4\n3\n2\n2\n")

    asked = sweep('"privacy.0.epsilon" = [1, 2, 3, 4]', tables, tmp_path)
    with pytest.raises(StateError, match=r"n\.csv has changed since"):
        run(asked, tmp_path / "out", jobs=1, progress=change)
    assert len(values(tmp_path / "out")) == 2
    with pytest.raises(StateError, match=r"contents of n\.csv"):
        run(asked, tmp_path / "out", jobs=1, resume=True)
    (tmp_path / "n.csv").write_text("n\n4\n3\n2\n1\n")
    assert len(run(asked, tmp_path / "out", jobs=1, resume=True).rows) == 4


@pytest.mark.parametrize("where", ["row", "channel"])
def test_a_full_disk_ends_the_sweep_and_loses_nothing(tmp_path, monkeypatch, where):
    written = []

    def full(*arguments):
        written.append(arguments)
        if len(written) > 2:
            raise ExportError("No space left on device")
        return genuine(*arguments)

    if where == "row":
        genuine = mechdesign.runs._store.write_row
        monkeypatch.setattr(mechdesign.runs._store, "write_row", full)
    else:
        genuine = bundle.write
        monkeypatch.setattr(bundle, "write", full)
    with pytest.raises(ExportError, match="No space left"):
        run(sweep(), tmp_path, jobs=1)
    monkeypatch.undo()
    assert len(values(tmp_path)) == 2
    assert len(run(sweep(), tmp_path, jobs=1, resume=True).rows) == 8
    for row in values(tmp_path):
        md.verify(tmp_path / row["channel"])


def test_a_solver_that_breaks_down_fails_its_own_row_only(tmp_path, monkeypatch):
    genuine = md.specification.Specification.design

    def broken(self, **changed):
        if self.tables["cost"]["power"] == 2:
            raise MemoryError("too large")
        return genuine(self, **changed)

    monkeypatch.setattr(md.specification.Specification, "design", broken)
    result = run(sweep('"cost.power" = [1, 2, 3]'), tmp_path, jobs=1)
    assert [row.state for row in result.rows] == [State.DONE, State.FAILED, State.DONE]
    assert result.rows[1].values["message"] == "MemoryError: too large"


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


def test_a_specification_is_given_as_a_file_too(tmp_path):
    path = Path(tmp_path / "s.toml")
    path.write_text(TABLES + '\n[sweep]\n"cost.power" = [1]', encoding="utf-8")
    assert len(md.sweep.run(path, tmp_path / "out").rows) == 1
