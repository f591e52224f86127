"""What `mechdesign design` does with policy graphs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
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


def designed(text, *arguments):
    result = run("design", write(text), "--json", "--no-report", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_policy_graph_is_designed_component_by_component():
    result = run("design", write(BLOCKS), "-o", "out")
    assert result.exit_code == 0, result.output
    assert "6 independent parts" in result.stdout
    assert "forbidden pairs of secret and answer" in result.stdout
    assert run("verify", "out").exit_code == 0
    problem = spec.parse(BLOCKS).problem()
    graph = graphs.blocks(problem.secrets, 2)
    made = md.design(graphs.problem(problem.secrets, graph=graph, epsilon="0.8", prior=problem.prior))
    found = json.loads(Path("out/certificate.json").read_text())["certificate"]
    assert found["expected_cost"] == pytest.approx(made.certificate.expected_cost, rel=1e-8)
    assert found["forbidden"] == 24 * 20
    assert found["provenance"]["within"] == "component"
    page = Path("out/report.html").read_text()
    assert '<figure id="graph">' in page
    assert "Answers of infinite cost are forbidden" in page


def test_answers_anywhere_cost_no_more():
    inside = designed(BLOCKS)
    everywhere = designed(BLOCKS + '[policy]\nwithin = "map"\n')
    assert everywhere["forbidden"] == 0
    assert everywhere["expected_cost"] <= inside["expected_cost"] * (1 + 1e-8)


def test_other_answers_than_the_secrets():
    text = BLOCKS + "[observables]\ngrid = { columns = 2, rows = 2, width = 6, height = 4 }\n"
    result = run("design", write(text))
    assert result.exit_code == 2
    assert "observables: differ from the secrets" in result.stderr
    assert designed(text + '[policy]\nwithin = "map"\n')["holds"]
    # As many answers as secrets, but others: they keep their places.
    text = BLOCKS + '[observables]\ngrid = { columns = 4, rows = 6, width = 6, height = 4 }\n[policy]\nwithin = "map"\n'
    designed(text, "-o", "out")
    assert md.Design.load("out").problem.observables.cells.columns == 4


def test_secrets_without_an_edge_may_be_told():
    found = designed(SPECIFICATION + '[policy]\nisolated = "release"\n')
    assert found["provenance"]["edges_added"] == 0
    assert md.Design.load("s").problem.requirements[-1].edges.tolist() == [[0, 1], [1, 2], [3, 4]]
    assert md.Channel.load("s").matrix[5].tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("method", ["area", "nearest", "best", "exhaustive"])
def test_a_repair_adds_the_edges_that_are_shown(method):
    text = SPECIFICATION + f'[policy]\nisolated = "repair"\nrepair = "{method}"\n'
    shown = facts(text)["repair"]
    found = designed(text)
    assert found["provenance"]["edges_added"] == len(shown["added"]) > 0
    assert md.Design.load("s").problem.requirements[-1].edges.tolist() == shown["edges"]


def test_secrets_within_the_hull_are_joined():
    # The edge of length 3 hides f from e: no edge is needed where noise is fitted to the whole graph.
    text = SPECIFICATION.replace("[9, 0]", "[5, 3]").replace('["b", "c"]', '["b", "c"], ["a", "d"]')
    assert facts(text)["exposed"] == {"component": [5], "graph": []}
    found = designed(text + '[policy]\nisolated = "hull"\n')
    pairs = md.Design.load("s").problem.requirements[-1].edges.tolist()
    assert found["provenance"]["edges_added"] == len(pairs) - 4 > 0
    assert all(5 in pair for pair in pairs if pair not in [[0, 1], [1, 2], [0, 3], [3, 4]])


def test_secrets_without_an_edge_are_refused():
    result = run("design", write(SPECIFICATION))
    assert result.exit_code == 2
    assert "privacy: has nodes without an edge" in result.stderr
    assert "found [5]" in result.stderr
    assert 'with [policy] isolated = "hull" or [policy] isolated = "repair"' in result.stderr
    assert "`mechdesign policy` shows them" in result.stderr
    assert not Path("s").exists()
    result = run("design", write(SPECIFICATION + '[policy]\nisolated = "hull"\n'))
    assert (result.exit_code, "no other node within the sensitivity hull" in result.stderr) == (2, True)
    assert '[policy] isolated = "repair"' in result.stderr
    assert 'isolated = "hull"' not in result.stderr
    result = run("design", write(LABELS + 'policy.isolated = "repair"\n'))
    assert (result.exit_code, "domain: is empty" in result.stderr) == (2, True)


def test_possible_secrets_keep_their_labels_and_their_floor():
    floor = '[[privacy]]\nkind = "distortion"\nminimum = 0.3\ndistance = "euclidean"\n'
    text = SPECIFICATION + floor + '[policy]\nsupport = ["a", "b", "d", "e"]\n'
    found = designed(text)
    assert [each["kind"] for each in found["requirements"]] == ["distortion", "graph"]
    assert found["requirements"][0]["nominal"] == "0.3"
    assert found["requirements"][0]["realised"] >= 0.3
    problem = md.Design.load("s").problem
    assert problem.secrets.labels == ("a", "b", "d", "e")
    assert problem.prior.tolist() == [0.25] * 4
    result = run("design", write(text.replace("0.3", "0.9")))
    assert result.exit_code == 2
    assert "privacy[2].minimum: no channel keeps" in result.stderr
    assert "2 sets with disjoint answers" in result.stderr


def test_edges_of_another_epsilon_are_kept_too():
    text = BLOCKS + '[[privacy]]\nkind = "graph"\nepsilon = 0.3\nedges = [[0, 1], [1, 2]]\n'
    found = designed(text)
    assert [each["nominal"] for each in found["requirements"]] == ["0.3", "0.8"]
    assert found["holds"]


def test_other_requirements_may_tie_components():
    text = BLOCKS + '[[privacy]]\nkind = "metric"\nepsilon = 1.5\ndistance = "euclidean"\n'
    assert designed(text)["forbidden"] == 0


def test_a_schedule_keeps_the_policy():
    Path("b.csv").write_text("step,epsilon\n0,0.5\n1,0.25\n")
    text = BLOCKS.replace("epsilon = 0.8", 'epsilon = { budgets = "b.csv" }')
    result = run("design", write(text), "--json", "--no-report")
    assert result.exit_code == 0, result.output
    assert [each["certificate"]["forbidden"] for each in json.loads(result.stdout)] == [480, 480]


def test_options_of_the_solver_pass_along():
    found = designed(BLOCKS, "--solver", "highs-ipx", "--rows", "all")
    assert found["provenance"]["solver"] == "highs-ipx"
    result = run("design", write(BLOCKS + '[solver]\nname = "highs-simplex"\noptions = { colour = 1 }\n'))
    assert (result.exit_code, "solver.options" in result.stderr) == (2, True)
