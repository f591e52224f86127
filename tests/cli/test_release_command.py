"""`mechdesign release`: what is published of a trace, what is not, and what is refused."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, contents, flat, run, well
from cli_examples import write as write_file

from mechdesign import graphs
from mechdesign.base import _atomic as atomic
from mechdesign.errors import ExportError
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
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
LP = SPECIFICATION + 'mechanism = "lp"\n'
LEDGER = '[ledger]\npath = "ledger.json"\nepsilon = 100\n'
WALK = "state\n0\n1\n6\n6\n11\n"
PUBLIC = ["release.json", "released.csv", "report.html", "steps.json"]
pytestmark = pytest.mark.usefixtures("blank_pictures")


def write(text: str = SPECIFICATION, walk: str = WALK) -> tuple[str, str]:
    return write_file(text), write_file(walk, "t.csv")


def outputs(folder: str = "released") -> list[dict[str, str]]:
    with (Path(folder) / "released.csv").open() as file:
        return list(csv.DictReader(file))


def steps(folder: str = "released") -> list[dict[str, Any]]:
    return json.loads((Path(folder) / "steps.json").read_text())


def present(folder: str = "released") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def assert_manifest_holds(names: list[str]) -> None:
    """Fail if the manifest names other files, or other contents of one."""
    described = json.loads(Path("released/release.json").read_text())
    assert sorted(described["files"]) == names
    for name, digest in described["files"].items():
        assert hashlib.sha256(Path("released", name).read_bytes()).hexdigest() == digest, name


# --- what is published ---


def test_a_trace_is_released() -> None:
    result = well("release", *write())
    assert result.stderr.startswith("note: trace: no times are read: steps are in the order of the file")
    for words in ("title A walk", "steps 5 states 16 mechanism planar-isotropic", "exact arithmetic yes", "expected"):
        assert words in flat(result.stdout)
    assert present() == PUBLIC
    assert_manifest_holds([name for name in PUBLIC if name != "release.json"])
    described = json.loads(Path("released/release.json").read_text())
    assert described["schema"] == "mechdesign-release/1"
    assert described["randomness"] == "the operating system"
    assert (described["composition"]["epsilon"], described["composition"]["common_edges"]) == ("2.5", 24)
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


@pytest.mark.parametrize("mechanism", ["planar-isotropic", "laplace", "lp"])
def test_the_command_does_what_the_library_does(mechanism: str) -> None:
    text = SPECIFICATION + f'mechanism = "{mechanism}"\n'
    shown = json.loads(well("release", *write(text), "--seed", 3, "--json").stdout)
    described = json.loads(Path("released/release.json").read_text())
    domain = Domain.grid(4, 4, 4.0, 4.0)
    states = np.arange(16)
    rows, columns = (np.abs(np.subtract.outer(each, each)) for each in (states // 4, states % 4))
    near = (np.maximum(rows, columns) <= 1).astype(float)
    chain = MarkovChain(near / near.sum(axis=1, keepdims=True))
    trace = Trace(domain, graphs.blocks(domain, 2), "0.5", chain, np.full(16, 1 / 16), mechanism, hull="graph", rng=3)
    expected = [trace.step(int(state)) for state in WALK.split()[1:]]
    assert [int(row["state"]) for row in outputs()] == [release.output for release in expected]
    together = compose(expected)
    assert (shown["epsilon"], shown["steps"]) == (described["composition"]["epsilon"], len(expected))
    for name in ("level", "realised"):
        value = getattr(together, name)
        assert described["composition"][name] == (value if np.isfinite(value) else None)


def test_states_that_the_policy_leaves_free_are_said() -> None:
    text = LP.replace("blocks = 2", "edges = [[0, 1], [1, 5]]")
    shown = well("release", *write(text, "state\n0\n1\n")).stdout
    assert "states revealed for certain" in shown
    assert "13 (2, 3, 4, 6, 7, …), at 2 of 2 steps" in shown
    assert "13 (2, 3, 4, 6, 7, …), at 2 of 2 steps" in Path("released/report.html").read_text()
    assert steps()[0]["certificate"]["revealed"] == [state for state in range(16) if state not in (0, 1, 5)]
    everybody = text.replace('hull = "graph"', 'repaired = "all"')
    well("release", *write(everybody, "state\n0\n1\n"), "--overwrite")
    assert [step["certificate"]["revealed"] for step in steps()] == [[], []]
    assert "revealed for certain" not in Path("released/report.html").read_text()


def _draw_of_the_clock(stage: Stage, state: int, rng: object = None) -> tuple[int, Any]:
    output = (3 * stage.time) % 16
    return output, stage.domain.points[output]


def _assert_the_truth_shows_in_outputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if two true traces with the same outputs do not give the same files, byte for byte."""
    monkeypatch.setattr(Stage, "draw", _draw_of_the_clock)
    text = SPECIFICATION.replace('hull = "graph"', "delta = 0.3")
    well("release", *write(text), "-o", "one")
    # Many of these states are outside the likeliest set, and released as another one.
    well("release", *write(text, "state\n15\n15\n0\n12\n3\n"), "-o", "other")
    assert present("one") == PUBLIC
    assert contents("one") == contents("other")


def test_nothing_public_depends_on_the_truth_but_through_the_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    _assert_the_truth_shows_in_outputs_alone(monkeypatch)


@pytest.mark.slow
def test_nor_do_the_pictures(drawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _assert_the_truth_shows_in_outputs_alone(monkeypatch)
    assert b"rehearsal" not in Path("one/report.html").read_bytes()
    assert Path("one/report.html").stat().st_size > 10_000


def test_the_truth_goes_elsewhere() -> None:
    well("release", *write(), "--truth", "mine")
    assert present("mine") == ["true-map.svg", "true-over-time.svg", "true.csv"]
    assert present() == PUBLIC
    with Path("mine/true.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == WALK.split()[1:]
    places = Domain.grid(4, 4, 4.0, 4.0).points
    for row, released in zip(rows, outputs(), strict=True):
        apart = np.hypot(*(places[int(row["state"])] - places[int(released["state"])]))
        assert float(row["distance"]) == pytest.approx(apart)
    for folder in ("released", "released/mine", "."):
        says = "--truth: is, contains or is inside"
        assert_wrong_usage({f"release s.toml t.csv --overwrite --truth {folder}": says})
    (Path("others")).mkdir()
    Path("others/true.csv").write_text("mine")
    line = "release s.toml t.csv -o new --seed 1 --truth"
    assert_wrong_usage({f"{line} mine": "mine holds true states", f"{line} released": "of a design or of another"})
    assert_wrong_usage({f"{line} others --overwrite": "others holds true.csv, which does not belong to true states"})
    Path("others/true.csv").rename("others/mine.csv")
    assert_wrong_usage({f"{line} others": "others holds mine.csv, which does not belong to true states"})
    well(*f"{line} mine --overwrite".split())


def test_the_channels_of_all_steps_verify() -> None:
    well("release", *write(LP, "state\n0\n1\n6\n"), "--channels")
    assert present("released/channels") == [f"step-{step}" for step in range(3)]
    for step in range(3):
        well("verify", f"released/channels/step-{step}")
    assert_wrong_usage({"verify released": "must be one of released/channels/step-0, released"})
    # A shorter run leaves nothing of the one before; nor does one without channels, to which they would not belong.
    well("release", *write(LP, "state\n0\n1\n"), "--channels", "--overwrite")
    assert present("released/channels") == ["step-0", "step-1"]
    Path("released/channels/step-0/notes.txt").write_text("mine")
    well("release", "s.toml", "t.csv", "--overwrite")
    assert [path.name for path in Path("released/channels").rglob("*")] == ["step-0", "notes.txt"]


def test_seeds_are_for_rehearsals() -> None:
    assert "never publish them" in well("release", *write(), "--seed", 1, "-o", "one").stderr
    well("release", *write(SPECIFICATION + "seed = 1\n"), "-o", "other")
    assert outputs("one") == outputs("other")
    everything = b"".join(contents("one").values())
    assert b"a rehearsal, not to be published" in everything
    assert b'"seed"' not in everything


def test_places_instead_of_states() -> None:
    result = well("release", *write(SPECIFICATION + "snap = false\n"), "--truth", "mine")
    assert "They are a rehearsal; never publish them" in flat(result.stderr)
    randomness = json.loads(Path("released/release.json").read_text())["randomness"]
    assert randomness == "floating-point noise: a rehearsal, not to be published"
    assert list(outputs()[0]) == ["step", "x", "y"]
    assert steps()[0]["certificate"] is None
    (proved,) = (line for line in result.stdout.splitlines() if "proved in exact arithmetic" in line)
    assert proved.split()[-1] == "no"


def test_a_line_of_places() -> None:
    text = SPECIFICATION.replace("grid = { columns = 4, rows = 4, width = 4, height = 4 }", "line = 5")
    text = text.replace("blocks = 2", "line = true").replace("neighbours = 8", 'path = "p.csv"')
    write_file("\n".join(",".join(["0.2"] * 5) for _ in range(5)), "p.csv")
    well("release", *write(text, "state\n0\n4\n2\n"))
    assert list(outputs()[0]) == ["step", "state", "label", "x"]
    assert present() == PUBLIC


# --- what goes wrong ---


def test_an_interrupted_run_never_looks_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    well("release", *write(), "--seed", 1)
    step = Trace.step

    def stop(trace: Trace, state: int, **options: Any) -> object:
        if state == 11:
            raise KeyboardInterrupt
        return step(trace, state, **options)

    monkeypatch.setattr(Trace, "step", stop)
    whole = contents("released")
    result = run("release", "s.toml", "t.csv", "--truth", "mine")
    assert result.exit_code == 130
    assert "stopped after 4 of 5 steps: released-interrupted contains these steps" in result.stderr
    # A finished run is kept.
    assert contents("released") == whole
    assert len(outputs("released-interrupted")) == 4
    assert present("released-interrupted") == [name for name in PUBLIC if name != "release.json"]
    assert not Path("mine").exists()
    assert len(present("mine-interrupted")) == 3
    assert run("release", "s.toml", "t.csv", "-o", "other").exit_code == 130
    assert len(outputs("other")) == 4
    assert not Path("other/release.json").exists()
    assert run("release", *write(walk="state\n11\n1\n"), "-o", "none").exit_code == 130
    assert not Path("none").exists()


def test_a_run_that_cannot_be_written_never_looks_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    well("release", *write())
    whole = atomic.write_file

    def full(path: Path, parts: Any) -> None:
        if path.name == "steps.json":
            raise ExportError(f"{path} could not be written: no space left")
        whole(path, parts)

    monkeypatch.setattr(files, "write_file", full)
    result = run("release", "s.toml", "t.csv", "--overwrite")
    assert (result.exit_code, "no space left" in result.stderr) == (2, True)
    assert "release.json" not in present()


def _charged() -> float:
    return float(Ledger(path="ledger.json").spent.epsilon) if Path("ledger.json").exists() else 0.0


@pytest.mark.parametrize(
    ("failing", "left"),
    [
        ("report._trace_page.html", ["release.json", "released.csv", "steps.json"]),
        ("traces._released.steps_json", ["released.csv"]),
        # The truth comes last.
        ("report._trace_page.private_files", PUBLIC),
    ],
)
def test_pages_that_fail_leave_the_outputs_and_say_what_is_spent(
    monkeypatch: pytest.MonkeyPatch, failing: str, left: list[str]
) -> None:
    monkeypatch.setattr(f"mechdesign.{failing}", lambda *_: 1 / 0)
    result = run("release", *write(SPECIFICATION + LEDGER), "--truth", "mine")
    assert (result.exit_code, "ε = 2.5 is spent" in flat(result.stderr)) == (2, True)
    assert (len(outputs()), _charged()) == (5, 2.5)
    assert present() == left
    if "release.json" in left:
        assert_manifest_holds([name for name in left if name != "release.json"])


def test_steps_that_were_charged_are_kept_where_a_later_one_fails() -> None:
    text = SPECIFICATION.replace("uniform = true", f"counts = {[1] + [0] * 15}") + LEDGER
    well("release", *write(SPECIFICATION), "--seed", 1)
    # Nobody moves from the first cell to the last one.
    result = run("release", *write(text, "state\n0\n1\n15\n"))
    assert result.exit_code == 2
    assert "line 4: cannot be the true state" in result.stderr
    assert "ε = 1 is spent" in result.stderr
    assert _charged() == 1
    assert len(outputs("released-interrupted")) == 2
    assert not Path("released-interrupted/release.json").exists()
    assert len(outputs()) == 5


def test_an_interrupt_once_a_step_is_charged_waits_until_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    spend = Ledger.spend

    def interrupted(ledger: Ledger, *arguments: Any, **keywords: Any) -> object:
        entry = spend(ledger, *arguments, **keywords)
        if len(ledger.entries) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return entry

    monkeypatch.setattr(Ledger, "spend", interrupted)
    assert run("release", *write(SPECIFICATION + LEDGER)).exit_code == 130
    assert (len(outputs()), _charged()) == (2, 1)


def test_what_is_in_the_way_is_told_before_anything_is_charged() -> None:
    write(SPECIFICATION + LEDGER)
    for name in ("released.csv", "steps.json", "report.html"):
        Path(name, name).mkdir(parents=True)
        assert_wrong_usage({f"release s.toml t.csv -o {name} --overwrite": name})
    Path("other").symlink_to("nowhere/at/all")
    for more in ("-o other", "-o public --truth other", f"-o {'x' * 300}", "-o s.toml"):
        assert run("release", "s.toml", "t.csv", *more.split()).exit_code == 2
    assert not Path("ledger.json").exists()


def test_other_files_are_left_alone() -> None:
    write()
    write_file("mine", "released/thesis.tex")
    says = "holds thesis.tex, which does not belong to a released trace"
    assert_wrong_usage({"release s.toml t.csv": says, "release s.toml t.csv --overwrite": says})
    for name, text in {"released.csv": "step,artist\n", "release.json": '{"schema": "mine"}'}.items():
        write_file(text, f"own/{name}")
        assert_wrong_usage({"release s.toml t.csv -o own --overwrite": f"holds {name}, which does not belong"})
        Path("own", name).unlink()
    write_file("mine", "page/report.html")
    assert_wrong_usage({"release s.toml t.csv -o page": "holds report.html, which does not belong"})
    # What a killed run leaves is no hindrance.
    write_file("step", "out/.released.csv.0123abcd.partial")
    well("release", "s.toml", "t.csv", "-o", "out")
    write_file("mine", "out/.notes.csv.0123abcd.partial")
    says = "holds .notes.csv.0123abcd.partial, which does not belong"
    assert_wrong_usage({"release s.toml t.csv -o out --overwrite": says})


ONE = f"counts = {[1] + [0] * 15}"
FLOOR = 'blocks = 2\n[[privacy]]\nkind = "distortion"\nminimum = 0\ndistance = "hamming"'
GRID = "grid = { columns = 4, rows = 4, width = 4, height = 4 }"
TRACES = {
    "number": ("state\n0\n16\n", "number.csv, line 3, column state: is not a secret; must be"),
    "word": ("state\n0\nhome\n", "word.csv, line 3, column state: is not a secret; must be"),
    "outside": ("x,y\n1,1\n9,1\n", "outside.csv, line 3: lies outside the grid; must be"),
    "empty": ("", "empty.csv, line 1: is blank"),
    "bare": ("0\n1\n", "bare.csv: has no column of states; must be a column state"),
}
WRONG = {
    # Who is at 0 cannot be at 15 in one step; smoothing or a δ would help.
    "far": ("uniform = true", ONE, "t.csv, line 3: cannot be the true state"),
    "zero": ("uniform = true", f"counts = {[0] * 16}", "prior.counts: are all zero"),
    "mechanism": ("[release]\n", "[release]\nmechanism = 'lq'\n", "release.mechanism: is not known"),
    "transition": ("transition = { neighbours = 8 }", "", "release.transition: is missing"),
    "support": ('hull = "graph"', "support = [0, 1]", "policy.support: is not supported for a trace"),
    "floor": ("blocks = 2", FLOOR, "privacy[1].kind: is not supported for a trace; found 'distortion'"),
    "answers": ("[policy]", "[observables]\nline = 3\n[policy]", "observables: is not supported for a trace"),
    "worst": ("[[privacy]]", 'objective = "worst"\n[[privacy]]', "cost.objective: is not supported for a trace"),
    "labels": (GRID, 'labels = ["a", "b"]', "domain"),
    "snap": ("[release]\n", '[release]\nsnap = false\nmechanism = "lp"\n', "release.snap"),
    "epsilon": ("epsilon = 0.5", "epsilon = 1e-15", "privacy.epsilon: is too small for an integer channel"),
    "solver": (
        "[release]\n",
        '[solver]\nname = "abacus"\n[release]\nmechanism = "lp"\n',
        "solver.name: is not known; found 'abacus'",
    ),
}


def test_wrong_usage() -> None:
    write(walk="state\n0\n15\n")
    lines = {
        "release": "or --example NAME",
        "release s.toml t.csv --seed -1": "--seed",
        "release s.toml none.csv": "cannot be opened",
    }
    for name, (walk, says) in TRACES.items():
        write_file(walk, f"{name}.csv")
        lines[f"release s.toml {name}.csv"] = says
    write_file("state\na\nb\n", "ab.csv")
    write_file("0.5,0.5\n0.5,0.5\n", "p.csv")
    for name, (old, new, says) in WRONG.items():
        assert old in SPECIFICATION
        text = SPECIFICATION.replace(old, new, 1)
        if name == "labels":
            text = text.replace("blocks = 2", "complete = true").replace("euclidean", "hamming")
            text = text.replace("neighbours = 8", 'path = "p.csv"')
        write_file(text, f"{name}.toml")
        lines[f"release {name}.toml {'ab.csv' if name == 'labels' else 't.csv'}"] = says
    assert_wrong_usage(lines)
    write_file("state\n1\n", "t.csv")
    assert_wrong_usage({"release far.toml t.csv": "t.csv, line 2: cannot be the true state"})


def test_steps_that_are_not_optimal_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    synthesise = planner.synthesise

    def hurried(*arguments: Any) -> Any:
        made = synthesise(*arguments)
        return replace(made, certificate=replace(made.certificate, relative_gap=2e-06))

    monkeypatch.setattr(planner, "synthesise", hurried)
    said = well("release", *write(LP, "state\n0\n")).stderr
    assert "at the worst step the cost is proved to within 2e-06 of the least possible; the tolerance is 1e-06" in said


def test_a_trace_is_outside_the_series_of_its_ledger() -> None:
    ledger = Ledger(100, path="ledger.json")
    ledger.add_series(alpha=1, backward=None, forward=[[0.9, 0.1], [0.1, 0.9]], history="others")
    line = ["release", *write(SPECIFICATION + LEDGER)]
    assert_wrong_usage({" ".join(line): "--no-series"})
    assert "outside the series" not in flat(run(*line).stderr)
    assert not ledger.entries
    assert "outside the series" in flat(well(*line, "--no-series").stderr)
    assert "outside the series" in json.loads(Path("released/release.json").read_text())["composition"]["meaning"]
    assert [entry.series for entry in ledger.entries] == [False] * 5
