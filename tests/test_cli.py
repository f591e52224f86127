from __future__ import annotations

import csv
import importlib.resources
import io
import json
import os
import pty
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign import errors
from mechdesign.certify import bundle
from mechdesign.certify.certificate import certify
from mechdesign.cli import exit_code, main
from mechdesign.cli.console import progress
from mechdesign.solvers import Progress

SPECIFICATION = """
title = "A line"
[domain]
points = [[0, 0], [1, 0], [2, 0], [3, 1]]
unit = "km"
labels = ["home", "work", "pub", "gym"]
[prior]
counts = [4, 3, 2, 1]
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.7
distance = "euclidean"
[[privacy]]
kind = "distortion"
minimum = 0.2
distance = "hamming"
"""


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SPECIFICATION, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    result = run("design", folder / "s.toml", "-o", folder / "out", "--no-report")
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture
def made(original, tmp_path):
    """Give an export that may be damaged."""
    for path in original.iterdir():
        (tmp_path / "made").mkdir(exist_ok=True)
        (tmp_path / "made" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "made"


# --- the whole way, as a user walks it -------------------------------------------------------------------------------


def command(*arguments, **options):
    line = [sys.executable, "-m", "mechdesign", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=100, **options)


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
    assert sorted(os.listdir("mechanism")) == names
    verified = command("verify", "mechanism")
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "mechanism verifies" in verified.stdout
    drawn = command("sample", "mechanism", "--secret", "home", "--size", 5)
    assert set(drawn.stdout.split()) <= {"home", "work", "pub", "gym"}
    assert len(drawn.stdout.split()) == 5
    os.remove("mechanism/report.html")
    broken = command("verify", "mechanism")
    assert broken.returncode == 1
    assert broken.stdout == ""
    assert "report.html is missing" in broken.stderr
    assert "Traceback" not in broken.stderr


def test_the_default_in_fewer_cells_is_designed_and_verifies(tmp_path):
    text = importlib.resources.files("mechdesign.spec").joinpath("examples", "city.toml").read_text(encoding="utf-8")
    smaller = text.replace("columns = 20, rows = 15,", "columns = 10, rows = 6,")
    assert smaller != text
    (tmp_path / "smaller.toml").write_text(smaller, encoding="utf-8")
    designed = command("design", tmp_path / "smaller.toml", "--json", "--no-report")
    assert designed.returncode == 0, designed.stderr
    certificate = json.loads(designed.stdout)
    assert certificate["holds"]
    assert certificate["relative_gap"] < 1e-6
    # The floor binds.
    assert certificate["requirements"][1]["realised"] == pytest.approx(2, abs=1e-6)
    assert run("verify", "mechanism").exit_code == 0


def test_terminals_of_few_characters(made):
    verified = command("verify", made, env={**os.environ, "PYTHONIOENCODING": "ascii"}, encoding="utf-8")
    assert verified.returncode == 0, verified.stderr
    assert "ε ≤ 0.7" in verified.stdout


def test_verifying_imports_no_solver(made):
    code = (
        "import sys; from mechdesign.cli import main\n"
        "try: main(['verify', 'made'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "bad = {'highspy', 'cvxpy', 'scipy', 'networkx', 'matplotlib', 'mechdesign.synthesis'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# --- design --------------------------------------------------------------------------------------------------------


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
    assert "1e-17, was not reached" in result.stderr
    assert "private as certified" in result.stderr


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
        (("A", "A"), ["--tolerance", "0"], "--tolerance: is not positive"),
        (("A", "A"), ["--time-limit", "nan"], "--time-limit: is not positive"),
        (("A", "A"), ["--threads", "-1"], "--threads: is not positive"),
        (("A", "A"), ["--rows", "few"], "Invalid value for '--rows'"),
        (("A", "A"), ["-o", "s.toml"], "s.toml is not a folder"),
        (("A", "A"), ["-o", "s.toml/x"], "s.toml"),
        (("A", "A"), ["-o", "."], "not an export of mechdesign"),
        (("A", "A"), ["--frobnicate"], "No such option"),
    ],
)
def test_wrong_input_never_reaches_a_solver(spec, monkeypatch, change, arguments, words):
    monkeypatch.setattr("mechdesign.synthesis.design.design", _never)
    spec.write_text(SPECIFICATION.replace(*change), encoding="utf-8")
    before = sorted(os.listdir())
    result = run("design", spec, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert sorted(os.listdir()) == before


def test_a_specification_that_is_not_there(monkeypatch):
    monkeypatch.setattr("mechdesign.synthesis.design.design", _never)
    result = run("design", "none.toml")
    assert result.exit_code == 2
    assert "none.toml: cannot be opened" in result.stderr


def test_a_solver_that_is_not_installed(spec, monkeypatch):
    monkeypatch.setattr("mechdesign.synthesis.design.design", _never)
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
    assert result.stderr.startswith("error: solver.options.symmetry[0]: changes the problem")


def test_solver_trouble(spec, monkeypatch):
    def fail(*_, **__):
        raise errors.SolverError("highs-ipx said: no")

    monkeypatch.setattr("mechdesign.synthesis.design.design", fail)
    result = run("design", spec)
    assert (result.exit_code, result.stderr) == (3, "error: highs-ipx said: no\n")
    assert os.listdir() == ["s.toml"]


def test_ctrl_c_before_anything_is_certified(spec, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mechdesign.synthesis.design.design", stop)
    result = run("design", spec)
    assert (result.exit_code, result.stderr) == (130, "error: stopped\n")
    assert os.listdir() == ["s.toml"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.CertificateError("x"), 1),
        (errors.InputError("x", "y"), 2),
        (errors.SpecificationError("x", "y"), 2),
        (errors.InfeasibleError("x"), 2),
        (errors.ExportError("x"), 2),
        (errors.MissingDependencyError("x"), 2),
        (errors.SolverError("x"), 3),
        (errors.TimeLimitError("x"), 3),
        (errors.UnboundedError("x"), 3),
        (errors.SolverInterruptedError("x"), 130),
    ],
)
def test_exit_codes(error, code):
    assert exit_code(error) == code


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


# --- verify --------------------------------------------------------------------------------------------------------


def test_verify_as_json(made):
    result = run("verify", made, "--json")
    assert json.loads(result.stdout) == json.loads((made / "certificate.json").read_text())["certificate"]


def _rewrite(folder, change):
    """Change the arrays of the channel, and leave all digests as they were."""
    with np.load(folder / "channel.npz") as archive:
        arrays = dict(archive)
    change(arrays)
    with zipfile.ZipFile(folder / "channel.npz", "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())


def _shift(arrays):
    row = arrays["numerators"][2].copy()
    arrays["numerators"][2] = np.where(np.arange(4) == row.argmax(), 2**62, 0)


def _nearer(arrays):
    arrays["requirement_0_distance"] = arrays["requirement_0_distance"] / 2


def _prior(arrays):
    arrays["prior"] = arrays["prior"][::-1]


@pytest.mark.parametrize("change", [_shift, _nearer, _prior])
def test_what_was_tampered_with_is_found(made, change):
    _rewrite(made, change)
    result = run("verify", made)
    assert result.exit_code == 1
    assert "does not match its digest" in result.stderr
    found = json.loads(run("verify", made, "--json").stdout)
    assert found["holds"] is False
    if change is not _prior:
        s, t = found["pair"]
        labels = ["home", "work", "pub", "gym"]
        assert f"Worst pair: secrets {s} ({labels[s]}) and {t} ({labels[t]})" in result.stderr.replace("\n", " ")


def test_an_epsilon_that_was_changed(made):
    path = made / "certificate.json"
    path.write_text(path.read_text().replace('"epsilon": "0.7"', '"epsilon": "0.6"'))
    result = run("verify", made)
    assert result.exit_code == 1
    assert "does not match its own digest" in result.stderr
    assert "Worst pair" in result.stderr


def test_a_forger_who_repairs_the_digests_is_caught(made):
    evidence = bundle.read(made).evidence
    numerators = np.zeros_like(evidence.numerators)
    np.fill_diagonal(numerators, 2**62)
    forged = bundle.Evidence(
        numerators, 62, evidence.prior, evidence.cost, evidence.objective, evidence.requirements, evidence.multipliers
    )
    certificate = certify(forged)
    assert not certificate.holds
    claimed = bundle.read(made).certificate
    bundle.write(made, bundle.encode(forged, claimed))
    result = run("verify", made)
    assert result.exit_code == 1
    assert "requirements[0] (metric privacy, epsilon 0.7) does not hold" in result.stderr


@pytest.mark.parametrize("name", ["nowhere", "s.toml"])
def test_verify_needs_an_export(spec, name):
    result = run("verify", name)
    assert result.exit_code == 1
    assert "is not a folder" in result.stderr.replace("\n", "")


# --- attack --------------------------------------------------------------------------------------------------------


def test_attack(made):
    result = run("attack", made, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    channel = md.Channel.load(made)
    prior, error = [0.4, 0.3, 0.2, 0.1], 1 - np.eye(4)
    for name, value in found["errors"].items():
        assert value == pytest.approx(getattr(md.attack, name)(channel, prior, error).distortion, rel=1e-6)
    assert found["measure"] == "Hamming distance"
    shown = run("attack", made)
    for words in ("Hamming distance", "optimal", "Bayes", "prior-free", "min-max", "pairwise min-max"):
        assert words in shown.stdout


def test_attack_with_another_prior(made, tmp_path):
    (tmp_path / "p.csv").write_text("name,weight\na,1\nb,1\nc,1\nd,7\n")
    result = run("attack", made, "--prior", "p.csv", "--column", "weight", "--json")
    expected = md.attack.optimal(
        md.Channel.load(made), [0.1, 0.1, 0.1, 0.7], 1 - np.eye(4), truth=[0.4, 0.3, 0.2, 0.1]
    ).distortion
    assert json.loads(result.stdout)["errors"]["optimal"] == pytest.approx(expected)
    wrong = run("attack", made, "--prior", "p.csv")
    assert wrong.exit_code == 2
    assert "no column 'probability'" in wrong.stderr
    (tmp_path / "p.csv").write_text("probability\n1\n1\n")
    assert "found 2; must be 4" in run("attack", made, "--prior", "p.csv").stderr


def test_attacks_that_take_too_long(made, monkeypatch):
    def late(*_, **__):
        raise errors.TimeLimitError("late")

    monkeypatch.setattr("mechdesign.attacks.attack.pairwise_minimax", late)
    result = run("attack", made, "--time-limit", 5)
    assert result.exit_code == 0
    assert "not found in 5 s" in result.stdout
    assert run("attack", made, "--time-limit", 0).exit_code == 2


def test_attack_needs_a_whole_export(made):
    (made / "channel.csv").unlink()
    result = run("attack", made)
    assert result.exit_code == 1
    assert "channel.csv is missing" in result.stderr


# --- sample --------------------------------------------------------------------------------------------------------


def test_samples_are_those_of_the_channel(made):
    drawn = run("sample", made, "--secret", "pub", "--size", 200, "--seed", 7).stdout.splitlines()
    channel = md.Channel.load(made)
    expected = channel.sample("pub", 200, 7)
    assert drawn == [channel.observables[index] for index in expected]
    rows = list(
        csv.DictReader(io.StringIO(run("sample", made, "--secret", 2, "--size", 200, "--seed", 7, "--csv").stdout))
    )
    assert [int(row["observable_index"]) for row in rows] == expected.tolist()
    assert [row["observable"] for row in rows] == drawn
    assert run("sample", made, "--secret", "home").stdout.strip() in channel.observables
    assert run("sample", made, "--secret", "home", "--size", 0).stdout == ""


@pytest.mark.parametrize("secret", ["cinema", "4", "-1", "1.0", ""])
def test_samples_of_unknown_secrets(made, secret):
    result = run("sample", made, "--secret", secret)
    assert result.exit_code == 2
    assert "an index from 0 to 3, or a label such as home, work, pub" in result.stderr
    assert result.stdout == ""


def test_samples_need_a_size(made):
    assert run("sample", made, "--secret", "home", "--size", -1).exit_code == 2
    assert run("sample", made).exit_code == 2


# --- export --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "json", "npz", "parquet", "mps"])
def test_export_to_a_file_and_to_standard_output(made, form):
    printed = run("export", made, "--format", form)
    assert printed.exit_code == 0, printed.stderr
    assert run("export", made, "--format", form, "-o", f"f.{form}").exit_code == 0
    assert Path(f"f.{form}").read_bytes() == printed.stdout_bytes
    assert run("export", made, "-o", f"g.{form}").exit_code == 0
    assert Path(f"g.{form}").read_bytes() == printed.stdout_bytes
    start = {
        "csv": b"secret,home,work,pub,gym\n",
        "json": b'{\n "title": "A line"',
        "npz": b"PK",
        "parquet": b"PAR1",
        "mps": b"NAME A_line",
    }
    assert printed.stdout_bytes.startswith(start[form])


def test_the_exported_program_has_the_optimum_that_was_certified(made):
    highspy = pytest.importorskip("highspy")
    found = {}
    for name, arguments in (("few", []), ("all", ["--all-rows"])):
        assert run("export", made, "--format", "mps", "-o", f"{name}.mps", *arguments).exit_code == 0
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(f"{name}.mps")
        solver.run()
        found[name] = solver.getInfo().objective_function_value, solver.getNumRow()
    cost = md.verify(made).expected_cost
    assert found["few"][0] == pytest.approx(cost, rel=1e-7)
    assert found["all"][0] == pytest.approx(cost, rel=1e-7)
    assert found["all"][1] > found["few"][1]


def test_exports_that_cannot_be(made, tmp_path):
    unknown = run("export", made, "--format", "xml")
    assert unknown.exit_code == 2
    assert "is not known; found 'xml'; must be one of csv, json, npz, parquet, mps" in unknown.stderr
    assert run("export", made, "-o", "f.xml").exit_code == 2
    assert run("export", made).exit_code == 2
    assert run("export", made, "--format", "csv", "--all-rows").exit_code == 2
    assert run("export", made, "--format", "csv", "-o", tmp_path).exit_code == 2
    assert run("export", made, "--format", "csv", "-o", "none/f.csv").exit_code == 2
    assert not Path("none").exists()
    (made / "dual.npz").write_bytes(b"")
    result = run("export", made, "--format", "csv", "-o", "f.csv")
    assert result.exit_code == 1
    assert not Path("f.csv").exists()


def test_parquet_without_its_package(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("export", made, "--format", "parquet", "-o", "f.parquet")
    assert result.exit_code == 2
    assert "pip install 'mechdesign[parquet]'" in result.stderr
    assert not Path("f.parquet").exists()


# --- the rest ------------------------------------------------------------------------------------------------------


def test_info():
    found = json.loads(run("info", "--json").stdout)
    assert found["versions"]["mechdesign"] == md.__version__
    assert found["solvers"]["highs-simplex"]
    assert "cvxpy-clarabel" in found["solvers"]
    shown = run("info").stdout
    assert "highspy" in shown
    assert "cvxpy-clarabel" in shown


def test_version_and_citation():
    assert run("--version").stdout == f"mechdesign, version {md.__version__}\n"
    cited = run("--cite").stdout.replace("\n    ", " ")
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    titles = [
        line.partition("title: ")[2].strip('"') for line in text.splitlines() if line.strip().startswith("title: ")
    ]
    assert len(titles) == 6
    for title in titles:
        assert title in cited
    assert md.__version__ in cited


def test_help():
    shown = run("--help")
    assert shown.exit_code == 0
    for name in ("design", "verify", "attack", "sample", "export", "leakage", "budget", "info"):
        assert name in shown.stdout
        assert run(name, "--help").exit_code == 0
    assert "Did you mean 'verify'?" in run("verfy").stderr
    assert run("frobnicate").exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="no terminals")
def test_progress_is_shown_on_terminals_only(monkeypatch, capsys):
    with progress() as report:
        assert report is None
    assert capsys.readouterr() == ("", "")
    primary, secondary = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress() as report:
            report(Progress("HiGHS", 0.0, 7))
            report(Progress("round 2: 80 rows", 0.1, 2, lower=1.25))
            report(Progress("HiGHS", 0.0, 9))
            import time

            time.sleep(0.3)
        monkeypatch.undo()
    shown = os.read(primary, 10**6).decode()
    os.close(primary)
    assert "round 2: 80 rows · HiGHS, iteration 9 · cost between 1.25 and …" in shown


# --- after Ctrl-C, and on full disks -------------------------------------------------------------------------------


def test_a_stopped_design_does_not_replace_a_finished_one(made, monkeypatch):
    from mechdesign.solvers import Status
    from mechdesign.synthesis import design as module

    search = module.search

    def stopped(*arguments):
        for found in search(*arguments):
            yield replace(found, relaxed=replace(found.relaxed, status=Status.INTERRUPTED))

    monkeypatch.setattr(module, "search", stopped)
    before = (made / "certificate.json").read_bytes()
    (made.parent / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    result = run("design", "s.toml", "-o", made)
    assert result.exit_code == 130
    assert (made / "certificate.json").read_bytes() == before
    assert "interrupted" in result.stderr
    assert md.verify(f"{made}-interrupted").holds
    assert run("design", "s.toml", "-o", "fresh").exit_code == 130
    assert md.verify("fresh").holds


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [["verify"], ["export", "--format", "json"], ["sample", "--secret", "0"]])
def test_a_full_disk_is_not_a_failed_verification(made, command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mechdesign", command[0], str(made), *command[1:]],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
