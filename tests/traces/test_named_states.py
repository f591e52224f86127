"""Traces over states with names and without places."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputWarning
from mechdesign.graphs._exposure import protected_pairs

TOWN = md.Domain.from_labels(["home", "work", "gym", "pub"])
CHAIN = md.MarkovChain([[0.6, 0.3, 0.1, 0.0], [0.4, 0.3, 0.2, 0.1], [0.5, 0.3, 0.1, 0.1], [0.9, 0.0, 0.0, 0.1]])
COST = 1 - np.eye(4)


def trace(mechanism: str = "exponential", graph: nx.Graph | None = None, **changed: object) -> md.traces.Trace:
    asked = {"cost": COST, "repair": None, "rng": 1} | changed
    graph = nx.path_graph(4) if graph is None else graph
    return md.traces.Trace(TOWN, graph, 1, CHAIN, md.Prior.uniform(4), mechanism=mechanism, **asked)


@pytest.mark.parametrize("mechanism", ["lp", "exponential", "geometric", "randomised-response"])
def test_mechanisms_without_places_release_named_states(mechanism: str) -> None:
    made = trace(mechanism)
    released = [made.step(state) for state in (0, 1, 0)]
    assert all(release.output in range(4) for release in released)
    for release in released:
        stage = release.stage
        assert stage.hull is None
        assert stage.epsilon == Fraction(1)
        assert stage.certificate.holds
        for i, j in stage.graph.edges:
            one, other = stage.channel.matrix[[i, j]]
            assert (one <= np.e * other * (1 + 1e-12)).all()
            assert (other <= np.e * one * (1 + 1e-12)).all()
        assert stage.degrees.min() >= 2


def test_the_belief_follows_bayes_rule() -> None:
    made = trace()
    release = made.step(2)
    row = release.stage.channel.matrix[:, release.output] * 0.25
    assert np.allclose(release.posterior, row / row.sum(), rtol=1e-12)


def test_the_default_repair_is_left_out_and_said() -> None:
    with pytest.warns(InputWarning, match="a state that loses its last edge") as heard:
        assert trace(repair="area").step(0).stage.repair is None
    assert heard[0].filename == __file__
    assert "repair=" not in str(heard[0].message)


def test_the_left_out_repair_is_said_only_where_a_state_may_lose_its_last_edge() -> None:
    blurred, sure, path, star = np.full((4, 4), 0.25), np.eye(4), nx.path_graph(4), nx.star_graph(3)
    at_home, anywhere = [1.0, 0.0, 0.0, 0.0], [0.25] * 4
    for graph, chain, initial, said in (
        (path, blurred, anywhere, False),
        (path, blurred, at_home, False),
        (path, blurred, [0.5, 0.0, 0.5, 0.0], True),
        (path, blurred, [0.5, 0.5, 0.0, 0.0], False),
        (path, sure, anywhere, True),
        (path, [blurred, sure], anywhere, True),
        (path, [blurred, blurred], anywhere, False),
        (nx.complete_graph(4), sure, at_home, False),
        (nx.empty_graph(4), sure, at_home, False),
        (star, sure, anywhere, True),
    ):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            md.traces.Trace(TOWN, graph, 1, chain, initial, "exponential", cost=COST, rng=1)
        assert [each.category for each in heard] == [InputWarning] * said, (graph.edges, chain, initial)


def test_exposed_states_are_those_without_an_edge() -> None:
    graph = nx.Graph([(0, 1)])
    graph.add_nodes_from(range(4))
    assert md.graphs.exposed(TOWN, graph).tolist() == [2, 3]
    assert not md.graphs.exposed(TOWN, nx.path_graph(4)).size


def test_what_needs_places_says_so() -> None:
    path = nx.path_graph(4)
    assert_refused(
        [
            Mistake("K-norm noise", lambda: trace("planar-isotropic"), "mechanism", "places"),
            Mistake("Laplace noise", lambda: trace("laplace"), "mechanism", "'lp', 'exponential'"),
            Mistake("a repair by distance", lambda: trace(repair="nearest"), "repair", "places"),
            Mistake("an exhaustive repair", lambda: trace(repair="exhaustive"), "repair", "places"),
            Mistake("a δ-location set", lambda: trace(delta="0.1"), "delta", "places"),
            Mistake("no cost", lambda: trace(cost=None), "cost", "is missing"),
            Mistake("a cost of another size", lambda: trace(cost=np.eye(3)), "cost"),
            Mistake("a repair of a graph", lambda: md.graphs.repair(TOWN, path), "points", "labels"),
            Mistake("a hull", lambda: md.graphs.sensitivity_hull(TOWN, path), "points", "labels"),
            Mistake("degrees of protection", lambda: md.graphs.degree_of_protection(TOWN, path), "points", "labels"),
            Mistake("protected pairs", lambda: protected_pairs(TOWN, path), "points", "labels"),
            Mistake("a node that is no state", lambda: md.graphs.exposed(TOWN, nx.path_graph(5)), "graph"),
            Mistake("coordinates", lambda: trace(snap=False), "snap"),
        ]
    )


SPEC = """
domain.labels = ["home", "work", "gym", "pub"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "graph", epsilon = 1, edges = [[0, 1], [1, 2], [2, 3]] }]
release = { mechanism = "exponential", transition = { path = "chain.csv" } }
"""


@pytest.mark.slow
def test_the_command_releases_named_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("town.toml").write_text(SPEC)
    np.savetxt("chain.csv", CHAIN.matrix, delimiter=",")
    Path("true.csv").write_text("state\n0\n1\n0\n")
    done = CliRunner().invoke(main, ["release", "town.toml", "true.csv", "-o", "out"])
    assert done.exit_code == 0, done.output
    assert "no repair adds edges" in done.stderr
    rows = [line.split(",") for line in Path("out/released.csv").read_text().splitlines()]
    assert rows[0] == ["step", "state", "label"]
    assert all(TOWN.labels[int(state)] == label for _, state, label in rows[1:])
    steps = json.loads(Path("out/steps.json").read_text())
    assert '"hull": null' in json.dumps(steps)
