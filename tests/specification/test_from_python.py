"""A specification in Python gives the same certificates, channels and files as the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError, SpecificationError
from mechdesign.report import _saving as saving

METRIC = """
title = "A line"
domain = { points = [[0, 0], [1, 0], [2, 0], [3, 1]], unit = "km", labels = ["home", "work", "pub", "gym"] }
prior.counts = [4, 3, 2, 1]
cost.distance = "euclidean"
privacy = [
    { kind = "metric", epsilon = 0.7, distance = "euclidean" },
    { kind = "distortion", minimum = 0.2, distance = "hamming" },
]
"""
POLICY = """
title = "Six places"
[domain]
points = [[0, 0], [1, 0], [0, 2], [4, 4], [5, 4], [9, 0]]
[prior]
counts = [5, 1, 9, 3, 2, 4]
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.5
edges = [[0, 1], [1, 2], [3, 4]]
[[privacy]]
kind = "distortion"
minimum = 0.3
distance = "euclidean"
[policy]
isolated = "repair"
repair = "nearest"
support = [0, 2, 3, 4, 5]
"""
WALK = """
title = "A walk"
[domain]
grid = { columns = 4, rows = 3, south = 40.0, north = 40.3, west = -74.4, east = -74.0 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.5
blocks = 2
[policy]
delta = 0.1
[release]
mechanism = "lp"
transition = { neighbours = 8 }
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text):
    Path("s.toml").write_text(text, encoding="utf-8")
    return md.read_spec("s.toml")


def facts(certificate):
    """Return a certificate without the parts that differ between runs."""
    found = certificate if isinstance(certificate, dict) else certificate.to_json()
    timeless = {name: value for name, value in found["provenance"].items() if "seconds" not in name}
    return {**found, "provenance": timeless}


@each_row("text", [METRIC, POLICY])
def test_designs(text):
    made = read(text).design()
    result = run("design", "s.toml", "--no-report", "--overwrite")
    assert result.exit_code == 0, result.output
    assert facts(made.certificate) == facts(json.loads(Path("s/certificate.json").read_text())["certificate"])
    assert (md.Channel.load("s").numerators == made.channel.numerators).all()


def test_what_is_changed_counts_more_than_the_table():
    stages = []
    given = read(METRIC + '[solver]\nname = "highs-simplex"\nrows = "reduced"\n')
    made = given.design(solver="scipy", rows="all", progress=stages.append)
    assert (made.summary.solver, made.summary.rows_policy) == ("scipy", "all")
    assert stages
    assert given.design().summary.solver == "highs-simplex"
    # Errors show the wrong value as it was written.
    for changed, path in (({"solver": "hihgs"}, "solver"), ({"tolerance": 0}, "tolerance")):
        with pytest.raises(InputError) as raised:
            given.design(**changed)
        assert raised.value.path == path
    with pytest.raises(SpecificationError, match=r"^solver\.name: is not known"):
        read(METRIC + '[solver]\nname = "hihgs"\n').design()
    with pytest.raises(SpecificationError, match=r"^solver\.options\.foo: "):
        read(METRIC + '[solver]\nname = "highs"\noptions = { foo = 1 }\n').design()
    with pytest.raises(InputError, match=r"^options\.foo: "):
        given.design(solver="highs", options={"foo": 1})


def test_isolated_secrets_are_refused_from_python_too():
    with pytest.raises(SpecificationError, match=r"^privacy: has nodes without an edge"):
        read(POLICY.replace('"repair"', '"refuse"')).design()


@pytest.mark.slow
def test_traces():
    given = read(WALK)
    Path("t.csv").write_text("latitude,longitude\n40.05,-74.35\n40.15,-74.25\n40.25,-74.15\n")
    released = given.release("t.csv", seed=4)
    assert run("release", "s.toml", "t.csv", "--seed", 4, "-o", "out", "--channels", "--truth", "mine").exit_code == 0
    md.save(released, "again", channels=True)
    saving.save_truth(released, "mine-again", given.steps("t.csv").states)
    names = ["report.html", "released.csv", "mine/true.csv"]
    for name in names:
        here, there = (Path(name.replace("mine", folder)) for folder in ("mine", "mine-again"))
        if not name.startswith("mine"):
            here, there = Path("out", name), Path("again", name)
        assert here.read_bytes() == there.read_bytes(), name
    with Path("out/released.csv").open() as file:
        assert [int(row["state"]) for row in csv.DictReader(file)] == released.outputs.tolist()
    steps = json.loads(Path("out/steps.json").read_text())
    proofs = [release.certificate for release in released.releases]
    assert [facts(step["certificate"]) for step in steps] == [facts(proof) for proof in proofs]
    assert [step["epsilon"] for step in steps] == ["0.5"] * 3
    assert md.verify("again/channels/step-1").holds
    assert (released.finished, released.seeded, released.certified) == (True, True, True)
    assert "3 steps of 12 states" in repr(released)


def test_traces_are_given_in_many_ways():
    given = read(WALK)
    expected = [0, 5, 10]
    points = given.problem().secrets.points
    for trace in (
        expected,
        np.array(expected),
        ["0", "5", "10"],
        points[expected],
        points[expected].tolist(),
        {"latitude": [40.05, 40.15, 40.25], "longitude": [-74.35, -74.25, -74.15]},
        {"x": points[expected, 0], "y": points[expected, 1]},
        {"state": expected},
    ):
        assert given.steps(trace).states.tolist() == expected
    assert given.release(expected, seed=1).outputs.tolist() == given.release(points[expected], seed=1).outputs.tolist()


@each_row(
    ("trace", "path", "words"),
    [
        ([0, 12], "trace[1]", "is not a secret; found 12"),
        ({"state": [0, 12]}, "row 1, column state", "is not a secret; found 12"),
        ({"state": [0, None]}, "row 1, column state", "is empty"),
        ({"state": [0, 1], "day": [1, 2]}, "release.user", "is missing, since trace has further columns"),
        ({"state": [0, 1], "x": [1, 2], "y": [1, 2]}, "trace", "gives states in several ways"),
        ([0, "home"], "trace[1]", "is not a secret; found 'home'"),
        ([True], "trace[0]", "is not a secret"),
        ([1.5], "trace[0]", "is not a secret"),
        ([], "trace", "contains no steps"),
        ([[1.0, 1.0], [99.0, 1.0]], "trace[1]", "lies outside the grid"),
        ([[1.0, float("nan")]], "trace[0,1]", "finite"),
        ([[1.0, 1.0, 1.0]], "trace", "has the wrong shape"),
        ({"day": [1]}, "trace", "has no column of states"),
        ({"x": [1.0], "y": [1.0, 2.0]}, "source, column y", "has another length"),
    ],
)
def test_wrong_traces(trace, path, words):
    with pytest.raises(InputError) as raised:
        read(WALK).release(trace)
    assert raised.value.path == path
    assert words in str(raised.value)


def test_a_state_that_cannot_be_the_true_one():
    text = WALK.replace("uniform = true", "counts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]").replace("delta = 0.1", "")
    with pytest.raises(InputError, match=r"^trace, step 1: cannot be the true state"):
        read(text).release([0, 11])


def test_after_ctrl_c_the_steps_so_far_are_kept(monkeypatch):
    from mechdesign.traces._trace import Trace

    step = Trace.step

    def stop(trace, state, **options):
        if state == 10:
            raise KeyboardInterrupt
        return step(trace, state, **options)

    monkeypatch.setattr(Trace, "step", stop)
    released = read(WALK).release([0, 5, 10])
    assert not released.finished
    assert len(released.releases) == 2
    md.save(released, "out", report=False)
    assert not Path("out/release.json").exists()
    with pytest.raises(KeyboardInterrupt):
        read(WALK).release([10])


def test_the_policy_is_shown_from_python_too():
    given = read(POLICY)
    found = json.loads(run("policy", "s.toml", "--json").stdout)
    shown = json.loads(json.dumps(given.overview().to_json()))
    assert {name: found[name] for name in shown} == shown
    assert given.overview(repair=False).geometry.repair is None
