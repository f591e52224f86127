"""`mechdesign design`: one channel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, command, run

import mechdesign as md
from mechdesign.base import _errors as errors
from mechdesign.cli._console import describe_gap


def test_from_a_specification_to_files_that_verify(spec):
    designed = command("design", spec)
    assert designed.returncode == 0, designed.stderr
    assert designed.stderr == ""
    for words in (
        "A line",
        "4 secrets, 4 observables",
        "ε ≤ 0.7",
        "≥ 0.2",
        "relative gap",
        "highs-simplex",
        "report.html",
    ):
        assert words in designed.stdout
    names = ["certificate.json", "channel.csv", "channel.npz", "dual.npz", "report.html"]
    assert sorted(os.listdir("s")) == names
    verified = run("verify", "s")
    assert (verified.exit_code, verified.stderr) == (0, "")
    assert "s: every claim verified." in verified.stdout
    drawn = run("sample", "s", "--secret", "home", "--size", 5)
    assert set(drawn.stdout.split()) <= {"home", "work", "pub", "gym"}
    assert len(drawn.stdout.split()) == 5
    os.remove("s/report.html")
    broken = command("verify", "s")
    assert broken.returncode == 1
    assert broken.stdout == ""
    assert "report.html is missing" in broken.stderr
    assert "Traceback" not in broken.stderr


@pytest.mark.slow
def test_the_default_is_a_small_city_and_needs_no_numba():
    code = "import sys; sys.modules['numba'] = None; from mechdesign.cli import main; main(['design'])"
    designed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert designed.returncode == 0, designed.stderr
    # What was made, where to look, and what to try next.
    end = designed.stdout[designed.stdout.index("\nnext") :]
    for words in (
        "mechanism/report.html",
        "mechdesign verify mechanism",
        "mechdesign sample mechanism --at",
        "mechdesign examples city > my.toml",
    ):
        assert words in end
    certificate = json.loads(Path("mechanism/certificate.json").read_text())["certificate"]
    assert certificate["holds"]
    assert certificate["relative_gap"] < 1e-6
    # Both requirements bind, and the cost is not the floor itself.
    assert certificate["requirements"][0]["realised"] == pytest.approx(1, abs=1e-6)
    assert certificate["requirements"][1]["realised"] == pytest.approx(2, abs=1e-6)
    assert certificate["expected_cost"] > 4.1
    assert run("verify", "mechanism").exit_code == 0


def test_json_is_the_certificate_and_nothing_else(spec):
    result = run("design", spec, "--json", "--no-report", "-o", "out")
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["holds"] is True
    assert printed == json.loads(Path("out/certificate.json").read_text())["certificate"]


def test_notes_about_the_data_are_shown(tmp_path):
    text = SPECIFICATION.replace("counts = [4, 3, 2, 1]", "counts = [4, 3, 2, 0]")
    (tmp_path / "s.toml").write_text(text)
    result = run("design", "s.toml", "--no-report")
    assert result.exit_code == 0
    assert "note: 1 of 4 secrets never occur in the data" in result.stderr


def test_options_count_more_than_the_specification(spec, tmp_path):
    text = SPECIFICATION + '[solver]\nname = "highs-simplex"\ntolerance = 1e-3\nrows = "reduced"\n'
    (tmp_path / "t.toml").write_text(text)
    result = run("design", "t.toml", "--solver", "scipy", "--rows", "all", "--json", "--no-report")
    facts = json.loads(result.stdout)["provenance"]
    assert facts["solver"] == "scipy"
    assert facts["rows_policy"] == "all"
    result = run("design", "t.toml", "--json", "--no-report", "--tolerance", "1e-6", "--threads", 1, "--time-limit", 60)
    assert json.loads(result.stdout)["provenance"]["solver"] == "highs-simplex"


def test_a_gap_above_the_tolerance_is_said_plainly(spec):
    result = run("design", spec, "--tolerance", "1e-17", "--no-report")
    assert result.exit_code == 0
    assert "of the least possible; the tolerance is 1e-17. Privacy does not depend on the gap" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_a_bound_no_distance_to_the_optimum_is_claimed():
    assert "not bounded from below; the tolerance is 1e-06" in describe_gap(1.0, 1e-6)


def test_an_older_export_is_replaced_and_others_are_not(spec):
    assert run("design", spec, "-o", "out").exit_code == 0
    Path("out/notes.txt").write_text("mine")
    assert run("design", spec, "-o", "out", "--no-report").exit_code == 0
    assert Path("out/notes.txt").read_text() == "mine"
    assert not Path("out/report.html").exists()
    assert run("verify", "out").exit_code == 0
    Path("theirs").mkdir()
    Path("theirs/report.html").write_text("theirs")
    result = run("design", spec, "-o", "theirs")
    assert result.exit_code == 2
    assert "not an export of mechdesign" in result.stderr
    assert os.listdir("theirs") == ["report.html"]
    assert run("design", spec, "-o", "theirs", "--no-report", "--force").exit_code == 0
    assert Path("theirs/report.html").read_text() == "theirs"


def _never(*_, **__):
    raise AssertionError("wrong input reached the solver")


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        (("epsilon = 0.7", "epsilon = 0"), [], "privacy[0].epsilon: must be positive; found 0; must be greater than 0"),
        (("epsilon", "epsilom"), [], "privacy[0].epsilom: is not a known key"),
        (("minimum = 0.2", "minimum = 0.61"), [], "privacy[1].minimum: no channel keeps"),
        (("[4, 3, 2, 1]", "[4, 3, 2]"), [], "prior.counts"),
        (("title = ", "title "), [], "not valid TOML"),
        (("A", "A"), ["--solver", "hihgs"], "--solver: is not known; found 'hihgs'"),
        (("[cost]", '[solver]\nname = "x"\n[cost]'), [], "solver.name: is not known; found 'x'"),
        (("A", "A"), ["--tolerance", "0"], "--tolerance: must be positive"),
        (("A", "A"), ["--tolerance", "5"], "--tolerance: must be below 1"),
        (("A", "A"), ["--time-limit", "nan"], "--time-limit: is not a number; found nan"),
        (("A", "A"), ["--threads", "-1"], "--threads: must be a number of threads"),
        (("A", "A"), ["--rows", "few"], "Invalid value for '--rows'"),
        (("A", "A"), ["-o", "s.toml"], "s.toml is not a folder"),
        (("A", "A"), ["-o", "s.toml/x"], "s.toml"),
        (("A", "A"), ["-o", "."], "not an export of mechdesign"),
        (("A", "A"), ["--frobnicate"], "No such option"),
    ],
)
def test_wrong_input_never_reaches_a_solver(spec, monkeypatch, change, arguments, words):
    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", _never)
    spec.write_text(SPECIFICATION.replace(*change), encoding="utf-8")
    before = sorted(os.listdir())
    result = run("design", spec, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert sorted(os.listdir()) == before


def test_a_specification_that_is_not_there(monkeypatch):
    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", _never)
    result = run("design", "none.toml")
    assert result.exit_code == 2
    assert "none.toml: cannot be opened" in result.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('kind = "metric"', 'kind = "metrc"', "privacy[0].kind: is not known; found 'metrc'"),
        ('distance = "euclidean"\n[[privacy]]', 'distance = "euclidian"\n[[privacy]]', "cost.distance"),
        ("counts = [4, 3, 2, 1]", "counts = [4, 3, 2]", "prior.counts"),
        ("minimum = 0.2", "minimum = 0.9", "privacy[1]"),
        ("[prior]", "[policy]\nisolated = 'none'\n[prior]", "policy.isolated"),
    ],
)
def test_what_is_wrong_in_a_specification_is_told_before_its_folder(spec, right, wrong, said):
    text = spec.read_text()
    assert right in text
    Path("two.toml").write_text(text.replace(right, wrong, 1))
    Path("full").mkdir()
    Path("full/of.txt").write_text("other things")
    result = run("design", "two.toml", "-o", "full")
    assert result.exit_code != 0
    assert said in result.stderr
    assert "full" not in result.stderr


def test_each_specification_has_a_folder_of_its_own(spec):
    text = Path(spec).read_text()
    Path("below").mkdir()
    Path("below/other.v2.toml").write_text(text.replace("A line", "Another line"))
    for name, folder in ((spec, "s"), ("below/other.v2.toml", "other.v2")):
        assert run("design", name, "--no-report").exit_code == 0
        assert run("verify", folder).exit_code == 0
    assert not Path("mechanism").exists()
    near = run("design", "below/other.v3.toml")
    assert (near.exit_code, "Did you mean below/other.v2.toml?" in near.stderr) == (2, True)
    assert "Did you mean" not in run("design", "elsewhere.toml").stderr


def test_a_solver_that_is_not_installed(spec, monkeypatch):
    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", _never)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("design", spec, "--solver", "cvxpy")
    assert result.exit_code == 2
    assert "pip install" in result.stderr
    assert os.listdir() == ["s.toml"]


def test_an_option_that_the_solver_does_not_know(spec):
    spec.write_text(SPECIFICATION + '[solver]\nname = "highs"\noptions = { foo = 1 }\n', encoding="utf-8")
    result = run("design", spec)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: solver.options.foo: is refused by HiGHS")
    assert os.listdir() == ["s.toml"]


def test_symmetries_that_do_not_fit_are_named_as_specified(spec):
    options = '[solver]\nname = "block"\noptions = { symmetry = [[1, 0, 2, 3]] }\n'
    spec.write_text(SPECIFICATION + options, encoding="utf-8")
    result = run("design", spec)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: solver.options.symmetry[0]: changes the prior")


def test_solver_trouble(spec, monkeypatch):
    def fail(*_, **__):
        raise errors.SolverError("highs-ipx said: no")

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", fail)
    result = run("design", spec)
    assert (result.exit_code, result.stderr) == (3, "error: highs-ipx said: no\n")
    assert os.listdir() == ["s.toml"]


def test_ctrl_c_before_anything_is_certified(spec, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", stop)
    result = run("design", spec)
    assert (result.exit_code, result.stderr) == (130, "error: stopped\n")
    assert os.listdir() == ["s.toml"]


def test_a_distance_that_is_no_metric_is_a_warning(tmp_path):
    (tmp_path / "d.csv").write_text("0,1,5,5\n1,0,1,5\n5,1,0,1\n5,5,1,0\n")
    metric = 'epsilon = 0.7\nmatrix = { path = "d.csv" }'
    text = SPECIFICATION.replace('epsilon = 0.7\ndistance = "euclidean"', metric)
    (tmp_path / "s.toml").write_text(text)
    result = run("design", "s.toml", "--no-report", "-o", "out")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: distance violates the triangle inequality")
    assert "Warning" not in result.stderr


def test_a_disk_that_fills_up(spec, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    result = run("design", spec, "-o", "out", "--no-report")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr


def test_a_stopped_design_does_not_replace_a_finished_one(made, monkeypatch):
    from mechdesign.solve._contract import Status
    from mechdesign.synthesis import _design as module

    answers = module._run_attempts

    def stopped(*arguments):
        for attempt, answer in answers(*arguments):
            yield attempt, answer.with_facts(status=Status.INTERRUPTED)

    monkeypatch.setattr(module, "_run_attempts", stopped)
    before = (made / "certificate.json").read_bytes()
    (made.parent / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    result = run("design", "s.toml", "-o", made, "--no-report")
    assert result.exit_code == 130
    assert (made / "certificate.json").read_bytes() == before
    assert "interrupted" in result.stderr
    assert md.verify(f"{made}-interrupted").holds
    assert run("design", "s.toml", "-o", "fresh", "--no-report").exit_code == 130
    assert md.verify("fresh").holds


def test_rays_that_stall_are_said_first_and_exit_with_3(spec, monkeypatch):
    monkeypatch.setattr("mechdesign.synthesis._rays.generation._MAX_ROUNDS", 1)
    Path("stalling.toml").write_text(SPECIFICATION.replace('"metric"', '"threshold"\nradius = 100'))
    stalling = run("design", "stalling.toml", "--rows", "rays", "--tolerance", "1e-3", "-o", "wide", "--no-report")
    assert stalling.exit_code == 3
    assert stalling.stderr.startswith("warning: rays stalled: the least cost lies between")
    assert run("verify", "wide").exit_code == 0
    near = run("design", "stalling.toml", "--rows", "rays", "--tolerance", "0.9", "-o", "close", "--no-report")
    assert (near.exit_code, near.stderr) == (0, "")


def test_an_estimate_measures_this_machine(monkeypatch, spec):
    from mechdesign.synthesis import _sizes as speed

    monkeypatch.setattr(speed, "_MEASUREMENT_S", 0.005)
    result = run("design", "--example", "city-300", "--estimate")
    assert result.exit_code == 0
    assert "times are for this machine at its current load" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(("epsilon", "told"), [("1e-9", True), ("1", False)])
def test_a_channel_that_tells_nothing_is_told_of(tmp_path, epsilon, told):
    path = tmp_path / "s.toml"
    path.write_text(
        "domain.line = 3\nprior.uniform = true\ncost.distance = 'euclidean'\n"
        f"privacy = [{{ kind = 'metric', epsilon = {epsilon}, distance = 'euclidean' }}]\n"
    )
    result = run("design", path, "-o", tmp_path / "out", "--no-report")
    assert ("the channel reveals nothing about it" in result.stderr) is told


def test_specifications_of_the_other_kind_say_which_command_takes_them(tmp_path):
    table = (
        "domain.attributes.age = { range = [0, 9] }\npolicy.kind = 'line'\nrelease = { kind = 'cdf', epsilon = 1 }\n"
    )
    (tmp_path / "ages.toml").write_text(table)
    (tmp_path / "city.toml").write_text(SPECIFICATION)
    (tmp_path / "ages.csv").write_text("age\n1\n")
    assert "mechdesign blowfish" in run("design", tmp_path / "ages.toml").stderr
    assert "mechdesign design" in run("blowfish", tmp_path / "city.toml", tmp_path / "ages.csv").stderr
    assert "ages.csv: is not valid TOML" in run("blowfish", tmp_path / "ages.csv", tmp_path / "ages.toml").stderr
