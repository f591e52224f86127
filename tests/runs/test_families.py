"""Every family gives sound problems, the same ones every time, and contestants are found by name."""

import csv
import time
from dataclasses import replace

import numpy as np
import pytest
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import MissingDependencyError, StateError
from mechdesign.leakage._loss_by_programs import fractional
from mechdesign.runs import bench
from mechdesign.runs._families import FAMILIES, VARIABLE, RowPairs
from mechdesign.runs._phases import channel_phases, fraction_phases, largest_leakage
from mechdesign.runs._scores import is_solved
from mechdesign.runs._worker import Outcome, Task
from mechdesign.runs.bench import SUITES, problems, select_solvers
from mechdesign.solve import _registry as registry
from mechdesign.synthesis._settings import SolveSettings

CHANNELS = sorted(set(FAMILIES) - {"row-pairs", "checkins"})


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_family_is_the_same_every_time_and_another_with_another_seed():
    assert len(CHANNELS) > 4
    for name in CHANNELS:
        first, again, other = (FAMILIES[name].make(9, seed) for seed in (0, 0, 1))
        assert np.array_equal(first.prior, again.prior), name
        assert np.array_equal(first.cost, again.cost), name
        assert not np.array_equal(first.prior, other.prior), name
        assert first.prior.size == 9
        assert md.design(first, tolerance=1e-6).certificate.relative_gap <= 1e-6, name


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_both_requirements_of_the_joint_family_count():
    joint = FAMILIES["joint"].make(9, 0)
    costs = [
        md.design(md.Problem(joint.prior, joint.cost, kept), tolerance=1e-6).certificate.cost
        for kept in (joint.requirements, joint.requirements[:1], joint.requirements[1:])
    ]
    assert costs[0] > 1.01 * max(costs[1:])


def test_row_pairs_have_a_closed_form():
    pairs = FAMILIES["row-pairs"].make(6, 0)
    assert isinstance(pairs, RowPairs)
    for q, d in pairs.pairs[:4].tolist():
        exact = largest_leakage(pairs.matrix[q], pairs.matrix[d], pairs.alpha)
        assert fractional(pairs.matrix[q], pairs.matrix[d], pairs.alpha) == pytest.approx(exact, rel=1e-7)


def test_phases_take_the_seconds_that_pass():
    settings = SolveSettings("highs-simplex", threads=1)
    instances = {"rows": FAMILIES["grid"].make(4, 0), "fractions": FAMILIES["row-pairs"].make(4, 0)}
    for name, instance in instances.items():
        phases = fraction_phases if name == "fractions" else channel_phases
        clock, found = time.perf_counter(), {}
        for phase in phases(instance, settings):
            found |= phase
        passed = time.perf_counter() - clock
        assert found["rounded"] == "optimal", name
        seconds = [found[phase] for phase in ("build_s", "solve_s", "certify_s")]
        assert min(seconds) > 0, name
        assert sum(seconds) <= passed, name


def test_a_solver_that_gets_some_rows_claims_nothing_about_the_others():
    problem = FAMILIES["grid"].make(9, 0)
    claims = {}
    for rows in ("reduced", "lazy"):
        found = {}
        for phase in channel_phases(problem, SolveSettings("highs-ipx", rows=rows, threads=1)):
            found |= phase
        claims[rows] = (found["given"], found["claimed"], found["rounded"])
    assert claims == {"reduced": ("reduced", "optimal", "optimal"), "lazy": ("lazy", "feasible", "optimal")}


TINY = bench.Suite("tiny", {"grid": (4, 9)}, (0,), 60.0, 4.0)


@pytest.fixture
def ended(monkeypatch):
    """Let every run end at once; return the tasks that were run."""
    tasks = []
    found = {"cost": 0.5, "rounded": "optimal", "tight_epsilon": float("inf"), "solve_s": 0.1}

    def end(task, seconds, gigabytes):
        tasks.append(f"{task.family.name}, {task.n}, {task.settings.solver}, {seconds:g}")
        return Outcome("done", found)

    monkeypatch.setattr(bench, "run_in_worker", end)
    monkeypatch.setattr("mechdesign.runs._profile.html", lambda *_: "")
    return tasks


def test_what_is_there_is_not_run_again(ended, tmp_path):
    def stop(done: int, total: int, which: str) -> None:
        assert (done, total) == (1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run(TINY, ["highs-simplex"], tmp_path, progress=stop)
    with (tmp_path / "results.csv").open(newline="") as file:
        (kept,) = csv.DictReader(file)
    assert (kept["family"], kept["n"], kept["solver"], kept["cost"]) == ("grid", "4", "highs-simplex", "0.5")
    (first,) = (tmp_path / "rows").iterdir()
    stamp = first.stat().st_mtime_ns
    rows = bench.run(TINY, ["highs-simplex"], tmp_path)
    assert [row["tight_epsilon"] for row in rows] == [float("inf")] * 2
    assert first.stat().st_mtime_ns == stamp
    assert bench.run(TINY, ["highs-simplex"], tmp_path) == rows
    assert ended == ["grid, 4, highs-simplex, 60", "grid, 9, highs-simplex, 60"]
    # Another solver, another limit, another number of threads: only what is new is run, and the table is of this call.
    for solvers, others in (
        (["highs-simplex", "scipy"], {}),
        (["scipy"], {"time_limit": 9}),
        (["scipy"], {"threads": 2}),
    ):
        before = len(ended)
        assert len(bench.run(TINY, solvers, tmp_path, **others)) == 2 * len(solvers)
        limit = others.get("time_limit", 60)
        assert ended[before:] == [f"grid, 4, scipy, {limit}", f"grid, 9, scipy, {limit}"]


def test_the_name_of_a_result_depends_on_all_that_the_result_depends_on():
    grid, settings = FAMILIES["grid"], SolveSettings("auto")
    families = [grid, replace(grid, data=lambda: "a"), replace(grid, data=lambda: "b"), replace(grid, parameters={})]
    tasks = [
        *(Task(family, 4, 0, None, settings) for family in families),
        Task(grid, 5, 0, None, settings),
        Task(grid, 4, 1, None, settings),
        *(Task(grid, 4, 0, None, replace(settings, **other)) for other in ({"tolerance": 0.5}, {"rows": "all"})),
    ]
    asked = [*((task, 1.0, 1.0) for task in tasks), (tasks[0], 2.0, 1.0), (tasks[0], 1.0, 2.0)]
    assert len({bench._identity(*each) for each in asked}) == len(asked)


def test_the_unfinished_phase_takes_the_rest_of_the_limit(ended, monkeypatch, tmp_path):
    for number, (found, seconds) in enumerate(
        (
            ({}, (9.0, None, None)),
            ({"build_s": 1.0}, (1.0, 8.0, None)),
            ({"build_s": 1.0, "solve_s": 2.0}, (1.0, 2.0, 6.0)),
            ({"build_s": 1.0, "solve_s": 2.0, "certify_s": 3.0, "rounded": "optimal"}, (1.0, 2.0, 3.0)),
        )
    ):
        monkeypatch.setattr(bench, "run_in_worker", lambda *_, found=found: Outcome("time", found))
        row, _ = bench.run(TINY, ["scipy"], tmp_path / str(number), time_limit=9)
        assert (row["build_s"], row["solve_s"], row["certify_s"]) == seconds, found
        assert row["claimed"] == row["certified"] == "timeout", found
        assert not is_solved(row), found


def test_other_files_and_damaged_results_are_refused(ended, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("")
    with pytest.raises(StateError, match=r"letter\.txt"):
        bench.run(TINY, ["scipy"], tmp_path / "letters")
    bench.run(TINY, ["scipy"], tmp_path / "out")
    damaged = next((tmp_path / "out" / "rows").iterdir())
    for content in (b"", damaged.read_bytes()[:50], b"[]", b"{}"):
        damaged.write_bytes(content)
        with pytest.raises(StateError, match="Delete it"):
            bench.run(TINY, ["scipy"], tmp_path / "out")
    damaged.unlink()
    assert len(bench.run(TINY, ["scipy"], tmp_path / "out")) == 2
    assert len(ended) == 3


def test_checkins_take_part_where_data_are(data_folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(data_folder))
    family = FAMILIES["checkins"]
    assert family.available
    problem = family.make(9, 0)
    assert problem.prior.size == 9
    assert len(family.data()) == 64


def test_a_folder_without_checkins_is_refused(monkeypatch, tmp_path):
    for folder in (tmp_path, tmp_path / "nosuch"):
        monkeypatch.setenv(VARIABLE, str(folder))
        refused = Mistake(
            str(folder), lambda: bench.run(solvers=["auto"], folder=tmp_path / "out"), VARIABLE, "specific_train.csv"
        )
        assert_refused((refused,))
    assert not (tmp_path / "out").exists()


def test_checkins_stay_out_without_data(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not FAMILIES["checkins"].available
    assert "checkins" not in {family for family, _, _ in problems(SUITES["small"])}
    with pytest.raises(md.errors.MechdesignError, match=VARIABLE):
        FAMILIES["checkins"].make(9, 0)


def test_what_cannot_run_is_refused(tmp_path):
    def run(suite="small", solvers=("auto",), **others):
        return lambda: bench.run(suite, list(solvers), tmp_path / "out", **others)

    assert_refused(
        (
            Mistake("suite", run("tiny"), "suite", "must be one of small, medium, large"),
            Mistake("suite's kind", run(3), "suite", "one of small"),
            Mistake("solver", run(solvers=["auto", "highs-simplx"]), "solver", "Did you mean highs-simp"),
            Mistake("CVXPY's", run(solvers=["cvxpy-nobody"]), "solver", "is unknown to CVXPY"),
            Mistake("no solver", run(solvers=[]), "solvers", "list of names"),
            Mistake("no time", run(time_limit=0), "time_limit", "is not positive"),
            Mistake("no memory", run(memory=-1), "memory", "is not positive"),
            Mistake("no thread", run(threads=0), "threads"),
            Mistake("rows", run(rows="some"), "rows", "is not known"),
        )
    )
    with pytest.raises(MissingDependencyError, match="not installed"):
        bench.run("small", ["cvxpy-nag"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_solvers_take_part_by_their_registration(ended, monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_SOLVERS", dict(registry._SOLVERS))
    names = select_solvers(None)
    assert set(names) >= {"auto", "block", "highs-simplex", "highs-ipx", "scipy", "cvxpy-clarabel", "cvxpy-scs"}
    assert len(set(names)) == len(names)
    registry.register(replace(registry.find("scipy"), name="mine"))
    assert {*select_solvers(None)} == {*names, "mine"}
    rows = bench.run(replace(TINY, sizes={"grid": (4,), "row-pairs": (4,)}), ["auto", "block", "mine"], tmp_path)
    # The pairs of rows are for solvers of rows.
    assert [(row["family"], row["solver"]) for row in rows] == [
        ("grid", "auto"), ("grid", "block"), ("grid", "mine"), ("row-pairs", "mine"),
    ]  # fmt: skip
