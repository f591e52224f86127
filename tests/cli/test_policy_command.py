"""`mechdesign policy`, and what `mechdesign design` does with policy graphs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mechdesign import graphs
from mechdesign import specification as spec
from mechdesign.cli import main
from mechdesign.model._domain import Domain

SPECIFICATION = """
title = "Six places"
[domain]
points = [[0, 0], [1, 0], [0, 2], [4, 4], [5, 4], [9, 0]]
labels = ["a", "b", "c", "d", "e", "f"]
unit = "km"
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.5
edges = [["a", "b"], ["b", "c"]]
[[privacy]]
kind = "graph"
epsilon = 0.5
edges = [["d", "e"]]
"""
PLACES = Domain.from_points([[0, 0], [1, 0], [0, 2], [4, 4], [5, 4], [9, 0]], unit="km")
GRAPH = graphs.from_edges(6, [[0, 1], [1, 2], [3, 4]])
LABELS = """
domain.labels = ["yes", "no", "maybe"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "graph", epsilon = 1.1, edges = [["yes", "no"]] }]
"""


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text, name="s.toml"):
    Path(name).write_text(text, encoding="utf-8")
    return name


def facts(text):
    result = run("policy", write(text), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# --- policy --------------------------------------------------------------------------------------------------------


def test_a_policy_is_described():
    result = run("policy", write(SPECIFICATION))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for words in (
        "Six places",
        "6 secrets, 3 edges, ε = 0.5 per edge",
        "3, of 3, 2, 1 secrets",
        "1: f",
        "exposed by the hull of each component",
        "1 edge: f – ",
        "km²",
        "An optimal channel reveals secrets without an edge",
    ):
        assert words in result.stdout
    assert not list(Path().glob("policy*"))


def test_json_agrees_with_the_library():
    found = facts(SPECIFICATION)
    assert (found["nodes"], found["edges"], found["epsilon"]) == (6, 3, "0.5")
    assert found["components"] == [[0, 1, 2], [3, 4], [5]]
    assert (found["isolated"], found["excluded"], found["disconnected"]) == ([5], [], [])
    hull = graphs.sensitivity_hull(PLACES, GRAPH)
    assert found["hull"] == {"dimension": 2, "volume": hull.volume, "vertices": hull.vertices.tolist()}
    assert found["exposed"] == {"component": [5], "graph": [5]}
    assert found["degree_of_protection"] == {
        "hull": "component",
        "of": {
            str(node): count for node, count in graphs.degree_of_protection(PLACES, GRAPH, hull="component").items()
        },
    }
    repaired = graphs.repair(PLACES, GRAPH, "area", hull="component")
    assert found["repair"]["added"] == [list(edge) for edge in repaired.added]
    assert found["repair"]["hull_after"]["volume"] == repaired.hull_after.volume


def test_the_policy_table_counts():
    found = facts(SPECIFICATION + '[policy]\nhull = "graph"\nrepair = "nearest"\nsupport = ["a", "c", "d", "e", "f"]\n')
    assert (found["excluded"], found["isolated"], found["disconnected"]) == ([1], [0, 2, 5], [0, 2])
    repaired = graphs.repair(PLACES, graphs.constrain(GRAPH, [0, 2, 3, 4, 5]), "nearest", hull="graph")
    assert found["repair"]["method"] == "nearest"
    assert found["repair"]["added"] == [list(edge) for edge in repaired.added]
    assert found["degree_of_protection"]["hull"] == "graph"


def test_the_likeliest_secrets_are_possible():
    text = SPECIFICATION.replace("uniform = true", "counts = [5, 1, 9, 3, 2, 0]") + "[policy]\ndelta = 0.2\n"
    assert facts(text)["excluded"] == [1, 4, 5]
    assert facts(text.replace("0.2", "0"))["excluded"] == [5]
    result = run("policy", write(text))
    assert "3 of 6 secrets possible" in result.stdout
    assert "note: 1 of 6 secrets never occur in the data" in result.stderr


def test_a_single_possible_secret_cannot_be_repaired():
    result = run("policy", write(SPECIFICATION + '[policy]\nsupport = ["a"]\n'))
    assert result.exit_code == 0
    assert "not repairable: only one secret is possible" in result.stdout
    assert "the origin alone: no noise" in result.stdout


def test_a_repair_need_not_be_looked_for():
    result = run("policy", write(SPECIFICATION), "--no-repair", "--json")
    assert json.loads(result.stdout)["repair"] is None
    assert json.loads(result.stdout)["exposed"]["component"] == [5]
    assert "repaired" not in run("policy", "s.toml", "--no-repair").stdout


def test_budgets_are_no_matter_of_the_graph():
    Path("b.csv").write_text("step,epsilon\n0,0.5\n1,0.25\n")
    assert facts(LABELS.replace("epsilon = 1.1", 'epsilon = { budgets = "b.csv" }'))["epsilon"] == "0.5"


def test_files_of_a_policy():
    assert run("policy", write(SPECIFICATION), "-o", "out", "--plot", "p.png").exit_code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["policy-edges.csv", "policy.json", "policy.svg"]
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    with Path("out/policy-edges.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["source"], row["target"]) for row in rows if row["added"] == "no"} == {
        ("a", "b"), ("b", "c"), ("d", "e"),
    }  # fmt: skip
    # The repaired graph can be named in a specification, and needs no repair.
    edges = SPECIFICATION[: SPECIFICATION.index("[[privacy]]")]
    again = facts(edges + '[[privacy]]\nkind = "graph"\nepsilon = 1\nedges_csv = { path = "out/policy-edges.csv" }\n')
    assert again["edges"] == len(rows) == 4
    assert again["exposed"]["component"] == []
    assert again["repair"] is None


def test_labels_have_no_hull():
    assert run("policy", write(SPECIFICATION), "-o", "out").exit_code == 0
    # Nothing is left of the run before, which had a picture.
    result = run("policy", write(LABELS), "-o", "out")
    assert result.exit_code == 0
    assert "2, of 2, 1 secrets" in result.stdout
    assert "hull" not in result.stdout
    assert sorted(path.name for path in Path("out").iterdir()) == ["policy-edges.csv", "policy.json"]
    assert facts(LABELS)["hull"] is None
    result = run("policy", "s.toml", "--plot", "p.svg")
    assert result.exit_code == 2
    assert "--plot: cannot be drawn" in result.stderr


def test_a_real_city(data_folder):
    path = data_folder / "foursquare_nyc_marc/specific_train.csv"
    text = f"""
    [domain]
    grid = {{ columns = 20, rows = 15, south = 40.5, north = 41.0, west = -74.3, east = -73.6 }}
    [prior]
    checkins = {{ path = "{path}", user = "label", latitude = "lat", longitude = "lon" }}
    smoothing = 0
    [cost]
    distance = "euclidean"
    [[privacy]]
    kind = "graph"
    epsilon = 1
    blocks = 3
    [policy]
    delta = 0.1
    """
    found = facts(text)
    problem = spec.parse(text).problem()
    possible = graphs.delta_set(problem.prior, 0.1)
    graph = graphs.constrain(graphs.blocks(problem.secrets, 3), possible)
    assert found["nodes"] == len(possible) == 300 - len(found["excluded"])
    assert found["exposed"]["component"] == graphs.exposed(problem.secrets, graph, "component").tolist()
    assert np.isclose(found["hull"]["volume"], graphs.sensitivity_hull(problem.secrets, graph).volume)
    assert run("policy", write(text), "--plot", "p.svg").exit_code == 0


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (SPECIFICATION.replace("0.5", "0.4", 1), (), "privacy[1].epsilon: differs from privacy[0].epsilon"),
        (SPECIFICATION + "[policy]\nhull = 'all'\n", (), "policy.hull: is not known"),
        (SPECIFICATION + "[policy]\nsupport = ['g']\n", (), "policy.support[0]: is not a secret"),
        (SPECIFICATION, ("--plot", "p.gif"), "has an unknown suffix"),
        (SPECIFICATION, ("--plot", "s.toml/p.svg"), "s.toml is not a folder"),
        (SPECIFICATION, ("-o", "s.toml"), "s.toml"),
        (LABELS.replace('kind = "graph", epsilon = 1.1, edges = [["yes", "no"]]',
                        'kind = "metric", epsilon = 1, distance = "hamming"'), (), "privacy: has no policy graph"),
    ],
)  # fmt: skip
def test_wrong_policies(text, arguments, words):
    result = run("policy", write(text), *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_a_specification_is_needed():
    assert run("policy").exit_code == 2
    result = run("policy", "none.toml")
    assert (result.exit_code, "cannot be opened" in result.stderr) == (2, True)
