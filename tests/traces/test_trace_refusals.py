"""Wrong input to traces and to those who watch them: each mistake is refused where it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from refusals import Row, assert_closed
from trace_examples import ANSWERS, FIGURE_3B, ring, strip

import mechdesign as md
from mechdesign.graphs._exposure import hull_level
from mechdesign.measures import _utility as metrics
from mechdesign.model._markov import VaryingChain
from mechdesign.traces import ReleasedTrace
from mechdesign.traces._adversary import Adversary, adversarial_privacy, expected_error
from mechdesign.traces._composition import compose, compose_graphs
from mechdesign.traces._hmm import forward
from mechdesign.traces._trace import Trace

TRACE: list[tuple[dict[str, Any], str]] = [
    ({"domain": np.zeros((3, 2))}, "domain"),
    ({"domain": md.Domain.from_labels(["a", "b", "c"])}, "mechanism"),
    ({"domain": "a user"}, "domain"),
    ({"graph": nx.path_graph(4)}, "graph"),
    ({"graph": nx.path_graph(2)}, "graph"),
    ({"graph": nx.Graph([("a", "b")])}, "graph"),
    ({"graph": nx.Graph([(0, 0), (1, 2)])}, "graph"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"transition": np.eye(4)}, "transition"),
    ({"transition": np.ones((3, 3))}, "transition[0]"),
    ({"initial": [0, 0, 0]}, "initial"),
    ({"initial": [0.5, 0.5]}, "initial"),
    ({"initial": [0.5, 0.6, -0.1]}, "initial[2]"),
    ({"mechanism": "gaussian"}, "mechanism"),
    ({"delta": 1}, "delta"),
    ({"delta": -0.1}, "delta"),
    ({"repair": "magic"}, "repair"),
    ({"repaired": "some"}, "repaired"),
    ({"repaired": None}, "repaired"),
    ({"hull": "convex"}, "hull"),
    ({"within": "town"}, "within"),
    ({"mechanism": "lp", "snap": False}, "snap"),
    ({"tolerance": 0}, "tolerance"),
    ({"snap": "no"}, "snap"),
    ({"rng": "seed"}, "rng"),
    ({"rng": -1}, "rng"),
    ({"settings": {"tolerance": 1e-6}}, "settings"),
    ({"settings": md.SolveSettings(), "tolerance": 1e-6}, "tolerance"),
    ({"cost": np.zeros((2, 2))}, "cost"),
    ({"cost": np.full((3, 3), -1.0)}, "cost[0,0]"),
]


def trace(**changed: Any) -> Trace:
    model: dict[str, Any] = {"domain": strip(3), "graph": nx.path_graph(3), "epsilon": 1, "transition": ring(3)}
    return Trace(**(model | {"initial": [1, 0, 0]} | changed))


def traces() -> list[Row]:
    return [(f"{changed}", lambda changed=changed: trace(**changed), path) for changed, path in TRACE]


def stages() -> list[Row]:
    stage, plain = trace(mechanism="lp").table(1)[0], trace(snap=False).table(1)[0]
    return [
        ("output", lambda: stage.log_likelihood(2), "output", "is not an observable"),
        ("state", lambda: stage.draw(1), "state", "cannot be the true state"),
        ("no coordinates", lambda: plain.log_likelihood(None), "coordinates"),
        ("same time", lambda: trace().step(0, same_time=True), "same_time"),
        ("unreachable", lambda: trace().step(2), "true_state", "delta"),
        ("beyond the chain", lambda: beyond().step(2), "transition", "ends before the trace"),
        ("no folder", lambda: ReleasedTrace.load(5), "folder"),  # type: ignore[arg-type]
        ("None as a folder", lambda: ReleasedTrace.load(None), "folder"),  # type: ignore[arg-type]
        ("bytes as a folder", lambda: ReleasedTrace.load(b"x"), "folder"),  # type: ignore[arg-type]
        ("a list as a folder", lambda: ReleasedTrace.load(["a"]), "folder"),  # type: ignore[arg-type]
        ("a folder without a trace", lambda: ReleasedTrace.load(Path("/none")), "folder"),
    ]


def beyond() -> Trace:
    made = trace(transition=np.array([ring(3)]), rng=3)
    made.step(0)
    made.step(1)
    return made


def filters() -> list[Row]:
    eye, zeros = np.eye(2), np.zeros((1, 2))
    rows: list[tuple[Any, Any, Any, str]] = [
        ([0.0, 0.0], eye, zeros, "initial"),
        ([0.5, -0.5], eye, zeros, "initial[1]"),
        ([1.0], eye, zeros, "initial"),
        ([0.5, 0.5], [[0.5, 0.4], [0, 1]], zeros, "transition[0]"),
        ([0.5, 0.5], eye, np.zeros((1, 3)), "log_likelihoods"),
        ([0.5, 0.5], eye, [[0.0, np.nan]], "log_likelihoods[0,1]"),
        ([0.5, 0.5], eye, [[0.0, np.inf]], "log_likelihoods[0,1]"),
    ]
    return [(f"{given} {path}", lambda given=given: forward(*given), path) for *given, path in rows]


def chains() -> list[Row]:
    return [
        ("none", lambda: VaryingChain(()), "chains"),
        ("a matrix", lambda: VaryingChain((np.eye(2),)), "chains[0]"),  # type: ignore[arg-type]
        ("sizes", lambda: VaryingChain.of([np.eye(2), np.eye(3)]), "chains[1]"),
        ("sums", lambda: VaryingChain.of([np.eye(2), [[1.0, 1.0], [0.0, 1.0]]]), "chains[1][0]"),
    ]


def compositions() -> list[Row]:
    line = md.graphs.line(2)
    return [
        ("none", lambda: compose([]), "releases", "must not be empty"),
        ("a number", lambda: compose([3]), "releases[0]"),  # type: ignore[list-item]
        ("lengths", lambda: compose_graphs([1], [line] * 2), "epsilons", "do not match"),
        ("directed", lambda: compose_graphs([1, 1], [line, nx.DiGraph([(0, 1)])]), "graphs[1]", "is directed"),
        ("a text", lambda: compose_graphs([1, "x"], [line] * 2), "epsilons[1]"),
        ("negative", lambda: compose_graphs([1, -1], [line] * 2), "epsilons[1]", "must be positive"),
        ("ε", lambda: hull_level(ANSWERS, md.graphs.sensitivity_hull(ANSWERS, FIGURE_3B), 0), "epsilon"),
    ]


def adversaries() -> list[Row]:
    initial = np.array([0.4, 0.3, 0.2, 0.1])
    walk = trace(domain=strip(4), graph=md.graphs.line(4), transition=ring(4), initial=initial, rng=1)
    releases = [walk.step(state) for state in (0, 1, 1, 2)]
    adversary, other, channel = Adversary(ring(4), initial), trace().step(0), releases[0].stage.channel
    beliefs = adversary.watch(releases)
    return [
        ("order", lambda: adversary.watch(releases[1:]), "releases[0].stage.time", "out of order"),
        ("domain", lambda: adversary.watch([releases[0], other]), "releases[1]", "belongs to another domain"),
        ("a stage", lambda: adversary.watch([releases[0].stage]), "releases[0]"),  # type: ignore[list-item]
        ("length", lambda: beliefs.mass([0, 1]), "truth"),
        ("state", lambda: beliefs.mass([0, 1, 2, 4]), "truth[3]"),
        ("which", lambda: beliefs.expected_error(np.zeros((4, 4)), "future"), "which"),  # type: ignore[arg-type]
        ("distance", lambda: beliefs.expected_error(np.zeros((4, 5))), "distance"),
        ("initial", lambda: Adversary(np.eye(3), initial), "initial"),
        ("belief", lambda: expected_error([[0.5, np.nan]], np.eye(2)), "beliefs[0,1]"),
        ("belief's sum", lambda: adversarial_privacy(channel, [0.5, 0.5, 0.5, 0]), "belief", "does not sum to 1"),
        ("belief's length", lambda: adversarial_privacy(channel, [0.5, 0.5]), "belief", "has the wrong length"),
    ]


def utilities() -> list[Row]:
    channel, prior, mismatch = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]], [0.5, 0.25, 0.25], "abc"
    euclidean = metrics.euclidean_error
    return [
        ("prior", lambda: euclidean(channel, [0.5, 0.5], [[0.0], [1.0]]), "prior"),
        ("points", lambda: euclidean(channel, prior, [[0.0], [1.0]]), "points"),
        ("observables", lambda: euclidean(channel, prior, np.eye(3), observables=[[0.0], [1.0]]), "observables"),
        ("labels", lambda: metrics.mismatch_error(channel, prior, ["a", "b"]), "labels"),
        ("no labels", lambda: metrics.mismatch_error(channel, prior, 5), "labels", "is not a list of values"),
        ("lists", lambda: metrics.mismatch_error(channel, prior, [[x] for x in mismatch]), "labels[0]"),
        ("no grid", lambda: metrics.regions(md.Domain.from_points([[0.0]])), "domain", "is not a grid"),
        ("a number", lambda: metrics.regions(5), "domain", "is not a grid"),  # type: ignore[arg-type]
        ("negative", lambda: metrics.mismatch_error([[-1.0]], [1.0], ["a"]), "channel[0,0]"),
        ("sum", lambda: metrics.mismatch_error([[1.0] * 2], [1.0], ["a"], observables=["a", "b"]), "channel[0]"),
    ]


DOORS = [traces, stages, filters, chains, compositions, adversaries, utilities]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_mistakes_are_refused(door: Callable[[], list[Row]]) -> None:
    assert_closed(door())
