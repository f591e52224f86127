"""Every family gives sound problems, the same ones every time, and contestants are found by name."""

import csv
import importlib
import time

import highspy
import numpy as np
import pytest
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import MissingDependencyError
from mechdesign.leakage._row_pair import fractional
from mechdesign.runs import bench
from mechdesign.runs._contestants import CONTESTANTS, names, select_contestants
from mechdesign.runs._families import FAMILIES, VARIABLE, RowPairs
from mechdesign.runs._phases import channel_phases, fraction_phases, largest_leakage
from mechdesign.runs._worker import WorkerOutcome
from mechdesign.runs.bench import SUITES, export_mps, problems, request_of


@pytest.fixture(scope="module", autouse=True)
def _solvers_are_loaded() -> None:
    """Load the packages of all solvers and of the page once: that takes longer than the tests."""
    select_contestants(None)
    importlib.import_module("mechdesign.runs._bench_page")


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
    (contestant,) = select_contestants(["highs-simplex"])
    instances = {"rows": FAMILIES["grid"].make(4, 0), "fractions": FAMILIES["row-pairs"].make(4, 0)}
    for name, instance in instances.items():
        phases = fraction_phases if name == "fractions" else channel_phases
        clock, found = time.perf_counter(), {}
        for phase in phases(instance, contestant, 1):
            found |= phase
        passed = time.perf_counter() - clock
        assert found["rounded"] == "optimal", name
        seconds = [found[phase] for phase in ("build_s", "solve_s", "certify_s")]
        assert min(seconds) > 0, name
        assert sum(seconds) <= passed, name


def test_an_interrupted_benchmark_leaves_a_table_of_its_finished_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "SUITES", {"tiny": bench.Suite("tiny", {"grid": (4, 9)}, (0,), 60.0, 4.0)})
    ended = WorkerOutcome({"cost": 0.5, "rounded": "optimal"}, "done")
    monkeypatch.setattr("mechdesign.runs._worker.run_in_worker", lambda *_: ended)

    def stop(done: int, total: int, which: str) -> None:
        assert (done, total) == (1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run("tiny", ["highs-simplex"], tmp_path, progress=stop)
    with (tmp_path / "results.csv").open(newline="") as file:
        (kept,) = csv.DictReader(file)
    assert (kept["family"], kept["n"], kept["solver"], kept["cost"]) == ("grid", "4", "highs-simplex", "0.5")


def test_checkins_take_part_where_data_are(data_folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(data_folder))
    family = FAMILIES["checkins"]
    assert family.available
    problem = family.make(9, 0)
    assert problem.prior.size == 9
    assert len(family.data()) == 64


def test_checkins_stay_out_without_data(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert not FAMILIES["checkins"].available
    assert "checkins" not in {family for family, _, _ in problems(SUITES["small"])}
    with pytest.raises(md.errors.MechdesignError, match=VARIABLE):
        FAMILIES["checkins"].make(9, 0)


def test_what_cannot_run_is_refused():
    assert_refused(
        (
            Mistake("suite", lambda: request_of("tiny"), "suite", "must be one of small, medium, large"),
            Mistake(
                "solver", lambda: request_of("small", ["auto", "highs-simplx"]), "solvers", "Did you mean highs-simp"
            ),
            Mistake("no solver", lambda: request_of("small", []), "solvers", "list of names"),
            Mistake("no time", lambda: request_of("small", ["auto"], time_limit=0), "time_limit", "must be positive"),
            Mistake("no thread", lambda: request_of("small", ["auto"], threads=0), "threads"),
        )
    )
    missing = next((each.solver for each in CONTESTANTS if not each.installed and each.solver != "block"), None)
    if missing is not None and missing not in {each.solver for each in select_contestants(None)}:
        with pytest.raises(MissingDependencyError, match="not installed"):
            request_of("small", [missing])


def test_there_are_at_least_six_settings_and_rows_are_all_different():
    assert len(select_contestants(None)) >= 6
    assert len({each.name for each in CONTESTANTS}) == len(CONTESTANTS)
    request = request_of("small")
    assert len(set(request.identities)) == len(request.descriptions)
    assert set(names()) >= {"auto", "block", "highs-simplex", "clarabel", "scs", "scipy"}


def test_mps_files_hold_what_contestants_solve(tmp_path):
    files = export_mps("small", tmp_path)
    grid = next(path for path in files if path.name.startswith("grid"))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(grid))
    highs.run()
    made = md.design(FAMILIES["grid"].make(16, 0), tolerance=1e-8)
    assert highs.getInfo().objective_function_value == pytest.approx(made.certificate.cost, rel=1e-6)
