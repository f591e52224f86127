"""`mechdesign policy`, and what `mechdesign design` does with policy graphs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cli_examples import assert_wrong_usage, contents, flat, run, well, write

import mechdesign as md
from mechdesign import graphs
from mechdesign import specification as spec
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
BLOCKS = """
title = "Blocks"
[domain]
grid = { columns = 6, rows = 4, width = 6, height = 4 }
[prior]
simulated = { people = 1000, centres = [{ x = 2, y = 2, spread = 1.5 }] }
smoothing = 1
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 0.8
blocks = 2
"""


def facts(text: str) -> dict[str, Any]:
    return json.loads(well("policy", write(text), "--json").stdout)


def designed(text: str, *arguments: object) -> dict[str, Any]:
    well("design", write(text), "-o", "s", "--no-report", "--overwrite", *arguments)
    return json.loads(Path("s/certificate.json").read_text())["certificate"]


def edges_of(folder: str) -> list[list[int]]:
    return md.Design.load(folder).problem.requirements[-1].edges.tolist()


# --- policy ---


def test_json_agrees_with_the_library() -> None:
    found = facts(SPECIFICATION)
    assert (found["nodes"], found["edges"], found["epsilon"]) == (6, 3, "0.5")
    assert found["components"] == [[0, 1, 2], [3, 4], [5]]
    assert (found["isolated"], found["excluded"], found["disconnected"]) == ([5], [], [])
    hull = graphs.sensitivity_hull(PLACES, GRAPH)
    assert found["hull"] == {"dimension": 2, "volume": hull.volume, "vertices": hull.vertices.tolist()}
    assert found["exposed"] == {"component": [5], "graph": [5]}
    protected = graphs.degree_of_protection(PLACES, GRAPH, hull="component")
    assert found["degree_of_protection"] == {
        "hull": "component",
        "of": {str(node): count for node, count in protected.items()},
    }
    repaired = graphs.repair(PLACES, GRAPH, "area", hull="component")
    assert found["repair"]["added"] == [list(edge) for edge in repaired.added]
    assert found["repair"]["hull_after"]["volume"] == repaired.hull_after.volume
    shown = well("policy", "s.toml")
    assert (shown.stderr, [path.name for path in Path().iterdir()]) == ("", ["s.toml"])
    for words in ("6 secrets, 3 edges", "1 edge: f – ", "An optimal channel reveals secrets without"):
        assert words in shown.stdout
    assert facts(BLOCKS)["said"] == "Blocks: 24 secrets, 36 edges."


def test_the_policy_table_counts() -> None:
    found = facts(SPECIFICATION + '[policy]\nhull = "graph"\nrepair = "nearest"\nsupport = ["a", "c", "d", "e", "f"]\n')
    assert (found["excluded"], found["isolated"], found["disconnected"]) == ([1], [0, 2, 5], [0, 2])
    repaired = graphs.repair(PLACES, graphs.constrain(GRAPH, [0, 2, 3, 4, 5]), "nearest", hull="graph")
    assert found["repair"]["method"] == "nearest"
    assert found["repair"]["added"] == [list(edge) for edge in repaired.added]
    assert found["degree_of_protection"]["hull"] == "graph"


def test_the_likeliest_secrets_are_possible() -> None:
    text = SPECIFICATION.replace("uniform = true", "counts = [5, 1, 9, 3, 2, 0]") + "[policy]\ndelta = 0.2\n"
    assert facts(text)["excluded"] == [1, 4, 5]
    assert facts(text.replace("0.2", "0"))["excluded"] == [5]
    only = well("policy", write(SPECIFICATION + '[policy]\nsupport = ["a"]\n')).stdout
    assert "not repairable: only one secret is possible" in only
    assert "the origin alone: no noise" in only


def test_files_of_a_policy() -> None:
    well("policy", write(SPECIFICATION), "-o", "out")
    assert sorted(path.name for path in Path("out").iterdir()) == ["policy-edges.csv", "policy.json", "policy.svg"]
    with Path("out/policy-edges.csv").open() as file:
        rows = list(csv.DictReader(file))
    stated = {(row["source"], row["target"]) for row in rows if row["added"] == "no"}
    assert stated == {("a", "b"), ("b", "c"), ("d", "e")}
    # The repaired graph can be named in a specification, and needs no repair.
    edges = SPECIFICATION[: SPECIFICATION.index("[[privacy]]")]
    again = facts(edges + '[[privacy]]\nkind = "graph"\nepsilon = 1\nedges_csv = { path = "out/policy-edges.csv" }\n')
    assert again["edges"] == len(rows) == 4
    assert (again["exposed"]["component"], again["repair"]) == ([], None)


def test_a_policy_graph_goes_into_a_new_or_empty_folder(made: Path) -> None:
    well("policy", write(SPECIFICATION), "-o", "out")
    write("mine", "mine/policy.json")
    write("mine", "others/thesis.tex")
    says = {"out": "out holds policy-edges.csv", "mine": "mine holds policy.json", "others": "others holds thesis.tex"}
    own = "which does not belong to a new policy graph; choose another folder"
    lines = {f"policy s.toml -o {name}": f"{holds}, {own}" for name, holds in says.items()}
    lines["policy s.toml -o made"] = "made holds certificate.json of a design or of another release"
    lines["policy s.toml -o ''"] = "is empty"
    assert_wrong_usage(lines)
    Path("empty").mkdir()
    well("policy", "s.toml", "-o", "empty")
    assert contents("empty") == contents("out")


def test_labels_have_no_hull_and_no_picture() -> None:
    shown = well("policy", write(LABELS), "-o", "out").stdout
    assert ("2, of 2, 1 secrets" in shown, "area" in shown) == (True, False)
    assert sorted(path.name for path in Path("out").iterdir()) == ["policy-edges.csv", "policy.json"]
    assert facts(LABELS)["hull"] is None


def test_a_policy_graph_without_an_edge_warns_once() -> None:
    graph = 'kind = "graph"\nepsilon = 1\nradius = 0.05\ndistance = "euclidean"'
    text = BLOCKS.replace('kind = "graph"\nepsilon = 0.8\nblocks = 2', graph)
    said = flat(well("policy", write(text)).stderr)
    assert said.count("has no edge: no two secrets are within 0.05 of each other") == 1


def test_wrong_usage() -> None:
    metric = 'kind = "metric", epsilon = 1, distance = "hamming"'
    for name, text in {
        "s": SPECIFICATION,
        "labels": LABELS,
        "differs": SPECIFICATION.replace("0.5", "0.4", 1),
        "hull": SPECIFICATION + "[policy]\nhull = 'all'\n",
        "support": SPECIFICATION + "[policy]\nsupport = ['g']\n",
        "metric": LABELS.replace('kind = "graph", epsilon = 1.1, edges = [["yes", "no"]]', metric),
        "near": SPECIFICATION + '[policy]\nisolated = "hull"\n',
        "repair": LABELS + 'policy.isolated = "repair"\n',
        "solver": BLOCKS + '[solver]\nname = "highs-simplex"\noptions = { colour = 1 }\n',
        "answers": BLOCKS + "[observables]\ngrid = { columns = 2, rows = 2, width = 6, height = 4 }\n",
        "floor": BLOCKS + '[[privacy]]\nkind = "distortion"\nminimum = 9\ndistance = "euclidean"\n',
    }.items():
        write(text, f"{name}.toml")
    assert_wrong_usage(
        {
            "policy": "or --example NAME",
            "policy none.toml": "cannot be opened",
            "policy differs.toml": "privacy[1].epsilon: differs from privacy[0].epsilon",
            "policy hull.toml": "policy.hull: is not known",
            "policy support.toml": "policy.support[0]: is not a secret",
            "policy metric.toml": "privacy: has no policy graph",
            "policy s.toml -o s.toml": "s.toml",
            "design s.toml": 'with [policy] isolated = "hull" or [policy] isolated = "repair"',
            "design near.toml": "no other node within the sensitivity hull",
            "design repair.toml": "domain: is a domain of labels",
            "design solver.toml": "solver.options",
            "design answers.toml": "observables: differ from the secrets",
            "design floor.toml": "privacy[1].minimum: no channel keeps",
        }
    )
    refused = run("design", "near.toml").stderr
    assert ('[policy] isolated = "repair"' in refused, 'isolated = "hull"' in refused) == (True, False)


# --- design ---


def test_a_policy_graph_is_designed_component_by_component(blank_pictures: None) -> None:
    shown = well("design", write(BLOCKS), "-o", "out").stdout
    assert "6 independent parts" in shown
    well("verify", "out")
    problem = spec.parse(BLOCKS).problem()
    graph = graphs.blocks(problem.secrets, 2)
    made = md.design(graphs.problem(problem.secrets, graph=graph, epsilon="0.8", prior=problem.prior))
    found = json.loads(Path("out/certificate.json").read_text())["certificate"]
    assert found["expected_cost"] == pytest.approx(made.certificate.expected_cost, rel=1e-8)
    assert (found["forbidden"], found["provenance"]["within"]) == (24 * 20, "component")
    page = Path("out/report.html").read_text()
    assert '<figure id="graph">' in page
    assert "Answers of infinite cost are forbidden" in page
    # Answers anywhere cost no more.
    everywhere = designed(BLOCKS + '[policy]\nwithin = "map"\n')
    assert everywhere["forbidden"] == 0
    assert everywhere["expected_cost"] <= found["expected_cost"] * (1 + 1e-8)


def test_secrets_without_an_edge_may_be_told() -> None:
    assert designed(SPECIFICATION + '[policy]\nisolated = "release"\n')["provenance"]["edges_added"] == 0
    assert edges_of("s") == [[0, 1], [1, 2], [3, 4]]
    assert md.Channel.load("s").matrix[5].tolist() == [0, 0, 0, 0, 0, 1]


def test_a_repair_adds_the_edges_that_are_shown() -> None:
    for isolated, method in (("repair", "area"), ("repair", "nearest"), ("hull", "area")):
        # The edge of length 3 hides f from e: no edge is needed where noise is fitted to the whole graph.
        text = SPECIFICATION
        if isolated == "hull":
            text = text.replace("[9, 0]", "[5, 3]").replace('["b", "c"]', '["b", "c"], ["a", "d"]')
        text += f'[policy]\nisolated = "{isolated}"\nrepair = "{method}"\n'
        shown = facts(text)
        added = designed(text)["provenance"]["edges_added"]
        assert added > 0, (isolated, method)
        if isolated == "repair":
            assert (added, edges_of("s")) == (len(shown["repair"]["added"]), shown["repair"]["edges"]), method
        else:
            assert shown["exposed"] == {"component": [5], "graph": []}
            assert len(edges_of("s")) == 4 + added


def test_possible_secrets_keep_their_labels_and_their_floor() -> None:
    floor = '[[privacy]]\nkind = "distortion"\nminimum = 0.3\ndistance = "euclidean"\n'
    found = designed(SPECIFICATION + floor + '[policy]\nsupport = ["a", "b", "d", "e"]\n')
    assert [each["kind"] for each in found["requirements"]] == ["distortion", "graph"]
    assert found["requirements"][0]["nominal"] == "0.3"
    assert found["requirements"][0]["realised"] >= 0.3
    problem = md.Design.load("s").problem
    assert problem.secrets.labels == ("a", "b", "d", "e")
    assert problem.prior.tolist() == [0.25] * 4
