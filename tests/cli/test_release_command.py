"""`mechdesign release`: what is published of a trace, what is not, and what is refused."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mechdesign import graphs
from mechdesign.base import _atomic as atomic
from mechdesign.cli import main
from mechdesign.errors import ExportError
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
from mechdesign.synthesis import _design as design
from mechdesign.traces import _planner as planner
from mechdesign.traces import _released as files
from mechdesign.traces._composition import compose
from mechdesign.traces._stage import Stage
from mechdesign.traces._trace import Trace

SPECIFICATION = """
title = "A walk"
[domain]
grid = { columns = 4, rows = 4, width = 4, height = 4 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.5
blocks = 2
[policy]
hull = "graph"
[release]
transition = { neighbours = 8 }
"""
WALK = "0\n1\n6\n6\n11\n"
PUBLIC = ["map.svg", "over-time.svg", "release.json", "released.csv", "report.html", "steps.json"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text=SPECIFICATION, walk=WALK):
    Path("s.toml").write_text(text, encoding="utf-8")
    Path("t.csv").write_text(walk, encoding="utf-8")
    return "s.toml", "t.csv"


def outputs(folder="released"):
    with (Path(folder) / "released.csv").open() as file:
        return list(csv.DictReader(file))


def steps(folder="released"):
    return json.loads((Path(folder) / "steps.json").read_text())


def present(folder="released"):
    return sorted(path.name for path in Path(folder).iterdir())


# --- what is published ---------------------------------------------------------------------------------------------


def test_a_trace_is_released():
    result = run("release", *write())
    assert result.exit_code == 0, result.output
    said = "no times are read: steps are in the order of the file (--time COLUMN, or the key time, names times)"
    assert result.stderr == f"note: trace: {said}\n"
    for words in ("A walk", "5 steps of 16 states, planar-isotropic", "2.5", "at most", "expects to be off by", "yes"):
        assert words in result.stdout
    assert present() == PUBLIC
    rows = outputs()
    assert [row["step"] for row in rows] == ["0", "1", "2", "3", "4"]
    domain = Domain.grid(4, 4, 4.0, 4.0)
    for row in rows:
        assert [float(row["x"]), float(row["y"])] == domain.points[int(row["state"])].tolist()
    for step in steps():
        assert (step["epsilon"], step["possible"], step["edges"], step["added"]) == ("0.5", "all", 24, [])
        assert step["certificate"]["holds"]
        assert step["certificate"]["requirements"][0]["nominal"] == "0.5"
        assert step["degree_of_protection"]["least"] >= 4


@pytest.mark.usefixtures("blank_pictures")
def test_states_that_the_policy_leaves_free_are_said():
    text = SPECIFICATION.replace("blocks = 2", "edges = [[0, 1], [1, 5]]")
    text = text.replace("transition = { neighbours", 'mechanism = "lp"\ntransition = { neighbours')
    result = run("release", *write(text, "0\n1\n"))
    assert result.exit_code == 0, result.output
    assert "states revealed for certain" in result.stdout
    assert "13 (2, 3, 4, 6, 7, …), at 2 of 2 steps" in result.stdout
    assert "13 (2, 3, 4, 6, 7, …), at 2 of 2 steps" in Path("released/report.html").read_text()
    free = [state for state in range(16) if state not in (0, 1, 5)]
    assert steps()[0]["certificate"]["revealed"] == free
    assert [step["added"] for step in steps()] == [[], []]
    everybody = text.replace('hull = "graph"', 'repaired = "all"')
    assert run("release", *write(everybody, "0\n1\n"), "--overwrite").exit_code == 0
    assert [step["certificate"]["revealed"] for step in steps()] == [[], []]
    assert "revealed for certain" not in Path("released/report.html").read_text()


def test_the_manifest_names_every_file():
    assert run("release", *write(), "--json").exit_code == 0
    described = json.loads(Path("released/release.json").read_text())
    assert described["schema"] == "mechdesign-release/1"
    assert described["randomness"] == "the operating system"
    assert sorted(described["files"]) == [name for name in PUBLIC if name != "release.json"]
    for name, digest in described["files"].items():
        assert hashlib.sha256(Path("released", name).read_bytes()).hexdigest() == digest
    assert described["composition"]["epsilon"] == "2.5"
    assert described["composition"]["common_edges"] == 24


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("mechanism", ["planar-isotropic", "laplace", "lp"])
def test_the_command_does_what_the_library_does(mechanism):
    text = SPECIFICATION + f'mechanism = "{mechanism}"\n'
    result = run("release", *write(text), "--seed", 3, "--json")
    assert result.exit_code == 0, result.output
    domain = Domain.grid(4, 4, 4.0, 4.0)
    chain = MarkovChain(_walk_matrix())
    trace = Trace(domain, graphs.blocks(domain, 2), "0.5", chain, np.full(16, 1 / 16), mechanism, hull="graph", rng=3)
    expected = [trace.step(int(state)) for state in WALK.split()]
    assert [int(row["state"]) for row in outputs()] == [release.output for release in expected]
    described = json.loads(result.stdout)
    together = compose(expected)
    level = described["composition"]["level"]
    assert level == (together.level if np.isfinite(together.level) else None)
    assert described["composition"]["realised"] == (together.realised if np.isfinite(together.realised) else None)


def _walk_matrix():
    matrix = np.zeros((16, 16))
    for i in range(16):
        for j in range(16):
            matrix[i, j] = max(abs(i // 4 - j // 4), abs(i % 4 - j % 4)) <= 1
    return matrix / matrix.sum(axis=1, keepdims=True)


def test_nothing_public_depends_on_the_truth_but_through_the_outputs(monkeypatch):
    """Two true traces with the same outputs give the same files, byte for byte, pictures included."""

    def draw(stage, state, rng=None):
        output = (3 * stage.time) % 16
        return output, stage.domain.points[output]

    monkeypatch.setattr(Stage, "draw", draw)
    text = SPECIFICATION.replace('hull = "graph"', "delta = 0.3")
    assert run("release", *write(text), "-o", "one").exit_code == 0
    # Many of these states are outside the likeliest set, and released as another one.
    assert run("release", *write(text, "15\n15\n0\n12\n3\n"), "-o", "other").exit_code == 0
    assert present("one") == present("other") == PUBLIC
    for name in PUBLIC:
        assert Path("one", name).read_bytes() == Path("other", name).read_bytes(), name


@pytest.mark.usefixtures("blank_pictures")
def test_the_truth_goes_elsewhere():
    assert run("release", *write(), "--truth", "mine").exit_code == 0
    assert present("mine") == ["true-map.svg", "true-over-time.svg", "true.csv"]
    assert present() == PUBLIC
    with Path("mine/true.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == WALK.split()
    places = Domain.grid(4, 4, 4.0, 4.0).points
    for row, released in zip(rows, outputs(), strict=True):
        apart = np.hypot(*(places[int(row["state"])] - places[int(released["state"])]))
        assert float(row["distance"]) == pytest.approx(apart)
    for folder in ("released", "released/mine", "."):
        result = run("release", "s.toml", "t.csv", "--overwrite", "--truth", folder)
        assert (result.exit_code, "--truth: is, contains or is inside" in result.stderr) == (2, True)


@pytest.mark.usefixtures("blank_pictures")
def test_the_channels_of_all_steps_verify():
    assert run("release", *write(SPECIFICATION + 'mechanism = "lp"\n'), "--channels").exit_code == 0
    assert present("released/channels") == [f"step-{step}" for step in range(5)]
    for step in range(5):
        assert run("verify", f"released/channels/step-{step}").exit_code == 0
    result = run("verify", "released")
    assert (result.exit_code, "must be one of released/channels/step-0, released" in result.stderr) == (2, True)
    # A shorter run leaves nothing of the one before; nor does one without channels, to which they would not belong.
    shorter = write(SPECIFICATION + 'mechanism = "lp"\n', "0\n1\n")
    assert run("release", *shorter, "--channels", "--overwrite").exit_code == 0
    assert present("released/channels") == ["step-0", "step-1"]
    Path("released/channels/step-0/notes.txt").write_text("mine")
    assert run("release", "s.toml", "t.csv", "--overwrite").exit_code == 0
    assert [path.name for path in Path("released/channels").rglob("*")] == ["step-0", "notes.txt"]


@pytest.mark.usefixtures("blank_pictures")
def test_seeds_are_for_rehearsals():
    result = run("release", *write(), "--seed", 1, "-o", "one")
    assert "never publish them" in result.stderr
    assert run("release", *write(SPECIFICATION + "seed = 1\n"), "-o", "other").exit_code == 0
    assert outputs("one") == outputs("other")
    assert run("release", "s.toml", "t.csv", "--seed", 2, "-o", "third").exit_code == 0
    everything = "".join(path.read_text() for path in Path("one").iterdir())
    assert "a rehearsal, not to be published" in everything
    assert '"seed"' not in everything


@pytest.mark.usefixtures("blank_pictures")
def test_each_step_may_have_its_own_budget():
    Path("b.csv").write_text("step,epsilon\n0,0.5\n1,0.25\n2,0.25\n3,1\n4,2\n5,9\n")
    text = SPECIFICATION.replace("epsilon = 0.5", 'epsilon = { budgets = "b.csv" }')
    result = run("release", *write(text), "--json")
    assert result.exit_code == 0, result.output
    assert [step["epsilon"] for step in steps()] == ["0.5", "0.25", "0.25", "1", "2"]
    assert json.loads(result.stdout)["composition"]["epsilon"] == "4"
    result = run("release", *write(text, WALK * 2), "--overwrite")
    assert result.exit_code == 2
    assert "ends before the trace; found 6; must be a budget for each of 10 steps" in result.stderr


@pytest.mark.usefixtures("blank_pictures")
def test_places_instead_of_states():
    result = run("release", *write(SPECIFICATION + "snap = false\n"), "--truth", "mine")
    assert result.exit_code == 0, result.output
    assert "They are a rehearsal; never publish them" in " ".join(result.stderr.split())
    randomness = json.loads(Path("released/release.json").read_text())["randomness"]
    assert randomness == "floating-point noise: a rehearsal, not to be published"
    assert list(outputs()[0]) == ["step", "x", "y"]
    assert steps()[0]["certificate"] is None
    (proved,) = (line for line in result.stdout.splitlines() if "proved in exact arithmetic" in line)
    assert proved.split()[-1] == "no"


def test_a_line_of_places():
    text = SPECIFICATION.replace("grid = { columns = 4, rows = 4, width = 4, height = 4 }", "line = 5")
    text = text.replace("blocks = 2", "line = true").replace("neighbours = 8", 'path = "p.csv"')
    Path("p.csv").write_text("\n".join(",".join(["0.2"] * 5) for _ in range(5)))
    assert run("release", *write(text, "state\n0\n4\n2\n")).exit_code == 0
    assert list(outputs()[0]) == ["step", "state", "label", "x"]
    assert present() == PUBLIC


@pytest.mark.slow
def test_a_real_trace(data_folder):
    path = data_folder / "foursquare_nyc_marc/specific_train.csv"
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "6"][:12]
    walk = "lat,lon,day\n" + "".join(f"{row['lat']},{row['lon']},{row['day']}\n" for row in rows)
    text = f"""
    [domain]
    grid = {{ columns = 12, rows = 9, south = 40.5, north = 41.0, west = -74.3, east = -73.6 }}
    [prior]
    checkins = {{ path = "{path}", user = "label", latitude = "lat", longitude = "lon" }}
    smoothing = 0.01
    [cost]
    distance = "euclidean"
    [[privacy]]
    kind = "graph"
    epsilon = 1
    blocks = 3
    [policy]
    delta = 0.05
    [release]
    mechanism = "lp"
    transition = {{ estimated = true, smoothing = 0.01 }}
    history = "others"
    """
    result = run("release", *write(text, walk), "--json")
    assert result.exit_code == 0, result.output
    assert "user(s) counted" in result.stderr
    assert json.loads(result.stdout)["steps"] == 12
    assert all(step["certificate"]["holds"] for step in steps())
    assert any(step["added"] for step in steps())
    assert set(outputs()[0]) == {"step", "state", "label", "x", "y", "latitude", "longitude"}


# --- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("blank_pictures")
def test_an_interrupted_run_never_looks_finished(monkeypatch):
    assert run("release", *write(), "--seed", 1).exit_code == 0
    step = Trace.step

    def stop(trace, state, **options):
        if state == 11:
            raise KeyboardInterrupt
        return step(trace, state, **options)

    monkeypatch.setattr(Trace, "step", stop)
    whole = {name: (Path("released") / name).read_bytes() for name in PUBLIC}
    result = run("release", "s.toml", "t.csv", "--truth", "mine")
    assert result.exit_code == 130
    assert "stopped after 4 of 5 steps: released-interrupted contains these steps" in result.stderr
    # A finished run is kept.
    assert {name: (Path("released") / name).read_bytes() for name in PUBLIC} == whole
    assert len(outputs("released-interrupted")) == 4
    assert present("released-interrupted") == [name for name in PUBLIC if name != "release.json"]
    assert not Path("mine").exists()
    assert len(present("mine-interrupted")) == 3
    assert run("release", "s.toml", "t.csv", "-o", "other").exit_code == 130
    assert len(outputs("other")) == 4
    assert not Path("other/release.json").exists()
    result = run("release", *write(walk="11\n1\n"), "-o", "none")
    assert result.exit_code == 130
    assert not Path("none").exists()


@pytest.mark.usefixtures("blank_pictures")
def test_a_run_that_cannot_be_written_never_looks_finished(monkeypatch):
    assert run("release", *write()).exit_code == 0
    whole = atomic.write_file

    def full(path, parts):
        if path.name == "steps.json":
            raise ExportError(f"{path} could not be written: no space left")
        whole(path, parts)

    monkeypatch.setattr(files, "write_file", full)
    result = run("release", "s.toml", "t.csv", "--overwrite")
    assert result.exit_code == 2
    assert "no space left" in result.stderr
    assert "release.json" not in present()


LEDGER = '[ledger]\npath = "ledger.json"\nepsilon = 100\n'


def _charged():
    return Ledger(path="ledger.json").spent.epsilon if Path("ledger.json").exists() else 0


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("failing", ["public_pictures", "steps_json"])
def test_pages_that_fail_leave_the_outputs_and_say_what_is_spent(failing, monkeypatch):
    place = "mechdesign.report._trace_figures" if failing == "public_pictures" else "mechdesign.traces._released"
    monkeypatch.setattr(f"{place}.{failing}", lambda *arguments: 1 / 0)
    result = run("release", *write(SPECIFICATION + LEDGER))
    assert result.exit_code == 2
    assert "ε = 2.5 is spent" in result.stderr.replace("\n", " ")
    assert len(outputs()) == 5
    assert _charged() == 2.5
    if failing == "public_pictures":
        # What the manifest vouches for is there.
        manifest = json.loads(Path("released/release.json").read_text())
        for name, digest in manifest["files"].items():
            assert hashlib.sha256(Path("released", name).read_bytes()).hexdigest() == digest
        assert sorted(manifest["files"]) == ["released.csv", "steps.json"]
    else:
        assert present() == ["released.csv"]


@pytest.mark.usefixtures("blank_pictures")
def test_the_truth_comes_last(monkeypatch):
    monkeypatch.setattr("mechdesign.report._trace_figures.private_files", lambda *arguments: 1 / 0)
    result = run("release", *write(SPECIFICATION + LEDGER), "--truth", "mine")
    assert result.exit_code == 2
    assert "ε = 2.5 is spent" in result.stderr
    assert present() == PUBLIC


@pytest.mark.usefixtures("blank_pictures")
def test_steps_that_were_charged_are_kept_where_a_later_one_fails():
    text = SPECIFICATION.replace("uniform = true", f"counts = {[1] + [0] * 15}") + LEDGER
    assert run("release", *write(SPECIFICATION), "--seed", 1).exit_code == 0
    # Nobody moves from the first cell to the last one.
    result = run("release", *write(text, "0\n1\n15\n"))
    assert result.exit_code == 2
    assert "step 2: cannot be the true state" in result.stderr
    assert "ε = 1 is spent" in result.stderr
    assert _charged() == 1
    assert len(outputs("released-interrupted")) == 2
    assert not Path("released-interrupted/release.json").exists()
    assert len(outputs()) == 5


@pytest.mark.parametrize("name", ["released.csv", "steps.json", "map.svg"])
def test_what_is_in_the_way_is_told_before_anything_is_charged(name):
    Path("released", name).mkdir(parents=True)
    for more in ((), ("--force",)):
        result = run("release", *write(SPECIFICATION + LEDGER), "--overwrite", *more)
        assert result.exit_code == 2
        assert name in result.stderr
    Path("other").symlink_to("nowhere/at/all")
    for more in (("-o", "other"), ("-o", "public", "--truth", "other"), ("-o", "x" * 300)):
        assert run("release", "s.toml", "t.csv", *more).exit_code == 2
    assert _charged() == 0


@pytest.mark.usefixtures("blank_pictures")
def test_an_interrupt_once_a_step_is_charged_waits_until_it_is_kept(monkeypatch):
    spend = Ledger.spend

    def interrupted(ledger, *arguments, **keywords):
        entry = spend(ledger, *arguments, **keywords)
        if len(ledger.entries) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return entry

    monkeypatch.setattr(Ledger, "spend", interrupted)
    assert run("release", *write(SPECIFICATION + LEDGER)).exit_code == 130
    assert len(outputs()) == 2
    assert _charged() == 1


@pytest.mark.usefixtures("blank_pictures")
def test_other_files_are_left_alone():
    Path("released").mkdir()
    Path("released/thesis.tex").write_text("mine")
    result = run("release", *write())
    assert result.exit_code == 2
    assert "holds thesis.tex, which does not belong to a released trace" in result.stderr
    assert run("release", "s.toml", "t.csv", "--force").exit_code == 0
    assert Path("released/thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    ("old", "new", "walk", "words"),
    [
        ("", "", "0\n16\n", "t.csv, line 2: is not a secret; found 99"),
        ("", "", "0\nhome\n", "t.csv, line 2: is not a secret; found aaaa"),
        ("", "", "x,y\n1,1\n9,1\n", "t.csv, line 3: lies outside the grid; found (9.9, 9.9)"),
        ("", "", "", "t.csv: is empty"),
        # Who is at 0 cannot be at 15 in one step; smoothing or a δ would help.
        ("uniform = true", "counts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "0\n15\n",
         "t.csv, step 1: cannot be the true state"),
        ("uniform = true", "counts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "1\n",
         "t.csv, step 0: cannot be the true state"),
        ("uniform = true", "counts = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", WALK,
         "prior.counts: are all zero"),
        ("[release]\n", "[release]\nmechanism = 'lq'\n", WALK, "release.mechanism: is not known"),
        ("transition = { neighbours = 8 }", "", WALK, "release.transition: is missing"),
        ("hull = \"graph\"", "support = [0, 1]", WALK, "policy.support: is not supported for a trace"),
        ("blocks = 2", "blocks = 2\n[[privacy]]\nkind = \"distortion\"\nminimum = 0\ndistance = \"hamming\"", WALK,
         "privacy[1].kind: is not supported for a trace; found 'distortion'"),
        ("[policy]", "[observables]\nline = 3\n[policy]", WALK, "observables: is not supported for a trace"),
        ("[[privacy]]", "objective = \"worst\"\n[[privacy]]", WALK, "cost.objective: is not supported for a trace"),
        ("grid = { columns = 4, rows = 4, width = 4, height = 4 }", "labels = [\"a\", \"b\"]", WALK, "domain"),
        ("[release]\n", "[release]\nsnap = false\nmechanism = \"lp\"\n", WALK, "release.snap"),
        ("epsilon = 0.5", "epsilon = 1e-15", WALK, "privacy.epsilon: is too small for an integer channel"),
        ("[release]\n", "[solver]\nname = \"abacus\"\n[release]\nmechanism = \"lp\"\n", WALK,
         "solver.name: is not known; found 'abacus'"),
    ],
)  # fmt: skip
def test_wrong_input(old, new, walk, words):
    text = SPECIFICATION.replace(old, new, 1) if old else SPECIFICATION
    if "labels" in new:
        text = text.replace("blocks = 2", "complete = true").replace("euclidean", "hamming")
        text = text.replace("neighbours = 8", 'path = "p.csv"')
        Path("p.csv").write_text("0.5,0.5\n0.5,0.5\n")
        walk = "a\nb\n"
    result = run("release", *write(text, walk))
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not Path("released").exists()


@pytest.mark.usefixtures("blank_pictures")
def test_steps_that_are_not_optimal_are_told(monkeypatch):
    text = SPECIFICATION.replace("[release]\n", '[release]\nmechanism = "lp"\n')
    assert "was asked for" not in run("release", *write(text, "0\n")).stderr
    synthesise = design.synthesise

    def hurried(*arguments):
        made = synthesise(*arguments)
        return replace(made, certificate=replace(made.certificate, relative_gap=2e-6))

    monkeypatch.setattr(planner, "synthesise", hurried)
    result = run("release", *write(text, "0\n"), "--overwrite")
    assert result.exit_code == 0
    assert (
        "at the worst step the cost is proved to within 2e-06 of the least possible; the tolerance is 1e-06"
        in result.stderr
    )


def test_a_file_is_no_folder():
    result = run("release", *write(), "-o", "s.toml")
    assert (result.exit_code, result.stderr) == (2, "error: s.toml is not a folder; choose another one\n")


@pytest.mark.usefixtures("blank_pictures")
def test_what_a_killed_run_leaves_is_no_hindrance():
    Path("out").mkdir()
    Path("out/.released.csv.0123abcd.partial").write_text("step")
    assert run("release", *write(), "-o", "out").exit_code == 0
    Path("out/.notes.csv.0123abcd.partial").write_text("mine")
    assert "holds .notes.csv.0123abcd.partial, which does not belong" in run("release", *write(), "-o", "out").stderr


def test_two_files_are_needed():
    assert run("release").exit_code == 2
    assert run("release", *write(), "--seed", -1).exit_code == 2
    assert run("release", "s.toml", "none.csv").exit_code == 2
    assert run("release", "s.toml", "t.csv", "--delimiter", "ab").exit_code == 2
