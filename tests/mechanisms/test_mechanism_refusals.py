"""Wrong input to mechanisms: each mistake is refused where it is, with something to go on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from refusals import Row, assert_closed, each

import mechdesign as md
from mechdesign.mechanisms._discrete import LARGEST_VALUE, DiscreteGaussian, DiscreteLaplace
from mechdesign.mechanisms._planar_laplace import planar_laplace

Exponential, Geometric, Response = md.mechanisms.Exponential, md.mechanisms.Geometric, md.mechanisms.RandomisedResponse
Isotropic = md.mechanisms.PlanarIsotropic

TRIANGLE = np.array([[0.0, 0.0], [2.0, 0.3], [0.7, 1.5]])
CITY = md.Domain.grid(6, 3, 6.0, 3.0)


def noise_in_space() -> list[Row]:
    changes: list[tuple[dict[str, Any], str, str]] = [
        ({"epsilon": -1}, "epsilon", "is out of range"),
        ({"epsilon": 0}, "epsilon", "is out of range"),
        ({"epsilon": math.nan}, "epsilon", ""),
        ({"points": [[0.0, math.nan], [1.0, 1.0], [2.0, 2.0]]}, "points[0,1]", ""),
        ({"points": [0.0, 1.0, 2.0]}, "points", "has 1 axes"),
        ({"points": md.Domain.from_labels(["a", "b", "c"])}, "points", "has no places"),
        ({"graph": nx.complete_graph(4)}, "graph", "has an unknown node"),
        ({"graph": nx.DiGraph([(0, 1)])}, "graph", "is directed"),
        ({"graph": nx.Graph([(0, 0)])}, "graph", "has a self-loop"),
        ({"graph": nx.Graph()}, "graph", "has no nodes"),
        ({"hull": "whole"}, "hull", "component, graph"),
    ]
    model: dict[str, Any] = {"epsilon": 1, "points": TRIANGLE, "graph": md.graphs.complete(3)}
    return [
        (f"{kind.__name__} {change}", lambda kind=kind, change=change: kind(**(model | change)), path, says)
        for kind in (md.mechanisms.Laplace, Isotropic)
        for change, path, says in changes
    ]


def observables() -> list[Row]:
    mechanism = Isotropic(1, TRIANGLE, md.graphs.complete(3))
    sites: dict[str, tuple[Any, str, str]] = {
        "none": (np.zeros((0, 2)), "observables", "is empty"),
        "dimension": ([[0.0, 0.0, 0.0]], "observables", "have another dimension than the points"),
        "infinite": ([[0.0, math.inf]], "observables[0,1]", ""),
        "twice": ([[0.0, 1.0], [2.0, 2.0], [0.0, 1.0]], "observables[2]", "the same coordinates as observables[0]"),
        "labels": (md.Domain.from_labels(["a"]), "observables", "has no places"),
    }
    city = Isotropic(1, CITY, md.graphs.blocks(CITY, 3))
    alone = Isotropic(1, TRIANGLE, md.graphs.constrain(md.graphs.complete(3), [0, 2]))
    solid = Isotropic(1, np.eye(4)[:, :3], md.graphs.complete(4))
    tiny = Isotropic("1e-13", TRIANGLE, md.graphs.complete(3))
    return [
        *[(f"{name} {method.__name__}", lambda method=method, given=given: method(given), path, says)
          for name, (given, path, says) in sites.items() for method in (mechanism.channel, mechanism.matrix)],
        ("other places", lambda: city.channel(CITY.points[:9], within="component"), "observables", "the places that"),
        ("within", lambda: city.channel(CITY, within="block"), "within"),  # type: ignore[arg-type]
        ("no node", lambda: mechanism.sample(3, 2), "node", "is not a node"),
        ("constrained node", lambda: alone.sample(1, 3), "node", "is not a node of the graph"),
        ("negative node", lambda: mechanism.sample(-1, 2), "node", "is too small"),
        ("half a node", lambda: mechanism.hull(1.5), "node", "is not a whole number"),  # type: ignore[arg-type]
        ("size", lambda: mechanism.sample(0, -2), "size", "is too small"),
        ("shape", lambda: mechanism.density([0.0, 0.0, 0.0], 0), "z", "has the wrong shape"),
        ("nan", lambda: mechanism.density([0.0, math.nan], 0), "z[1]"),
        ("three axes", lambda: mechanism.likelihood([0.0, 0.0, 0.0]), "z", "has the wrong shape"),
        ("three dimensions", lambda: solid.channel(np.eye(3)), "observables", "Draw coordinates"),
        ("too small", lambda: tiny.channel(TRIANGLE), "epsilon", "at least 2.0e-12"),
    ]  # fmt: skip


def discrete() -> list[Row]:
    scales, one = (0, -1, "nan", math.inf, True), DiscreteLaplace(1)
    return [
        *each("Laplace", (*scales, None, 2**51), DiscreteLaplace, ""),
        *each("Gaussian", (*scales, None, 2**101), DiscreteGaussian, ""),
        *each("confidence", (0, 1, -0.1, True), one.half_width, "confidence"),
        ("size", lambda: one.sample(-1), "size"),
        ("too large", lambda: one.add(np.array([LARGEST_VALUE + 1])), "values", "too large"),
    ]


def finite() -> list[Row]:
    walls = [[0, 1, math.inf], [1, 0, 1], [math.inf, 1, 0]]
    pair = Exponential(1, [[0.0, 1.0], [1.0, 0.0]])
    far = md.Domain.from_points([[0.0, 0.0], [1e6, 0.0]])
    line = md.Domain.from_points([[1.0], [2.0]])
    answers = (np.zeros((2, 0)), np.zeros((3, 2)), [0.0, 1.0], [[-1.0], [0.0]], [["a"], ["b"]])
    return [
        ("ε", lambda: Geometric(0, 3), "epsilon"),
        ("n", lambda: Geometric(1, 0), "n"),
        ("not symmetric", lambda: Exponential(1, [[0, 1], [2, 0]]), "distance[0,1]"),
        ("not square", lambda: Exponential(1, np.zeros((2, 3))), "distance"),
        ("no triangle", lambda: Exponential(1, walls), "distance"),
        ("tiny", lambda: Response("1e-18", 5).channel(), "epsilon"),
        ("circle", lambda: Geometric.of_graph(1, nx.cycle_graph(4)), "graph"),
        ("star", lambda: Geometric.of_graph(1, nx.star_graph(3)), "graph"),
        ("columns", lambda: Geometric(1, 4).channel(line), "observables", "do not include all nodes"),
        ("node", lambda: Response.of_graph(1, nx.Graph([(2, 5)])).sample(3), "node", "not a node"),
        *each("interchanged", (md.mechanisms.PlanarLaplace, Exponential), lambda kind: kind(far, 1.0), "epsilon"),
        *each("spacing", (1e-16, 1e-320), lambda step: md.mechanisms.snapping(line, step), "spacing", "too small"),
        *each("answers", answers, lambda given: pair.matrix(answers=given), "answers"),
    ]


def planar() -> list[Row]:
    return [
        *each("ε", (0.0, math.inf), lambda epsilon: planar_laplace(epsilon, TRIANGLE, TRIANGLE), "epsilon"),
        ("places", lambda: planar_laplace(1.0, TRIANGLE[:, :1], TRIANGLE), "places"),
        ("sites", lambda: planar_laplace(1.0, TRIANGLE, TRIANGLE[[0, 0]]), "sites"),
    ]


DOORS = [noise_in_space, observables, discrete, finite, planar]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_mistakes_are_refused(door: Callable[[], list[Row]]) -> None:
    assert_closed(door())
