"""What the model refuses: each mistake at the argument that makes it, with a value, a bound or a remedy."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from refusals import assert_refused_at

import mechdesign as md
from mechdesign.errors import CertificateError, InputError
from mechdesign.model import distances as d
from mechdesign.model._domain import BoundingBox, Domain, Grid
from mechdesign.model._markov import MarkovChain, smooth
from mechdesign.model._prior import Prior

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
HAMMING = 1.0 - np.eye(4)
DEGREE = Domain.geographic_grid(1, 1, 0, 1, 0, 1)
# A box of Fiji's size, elsewhere.
PLACES = Domain.geographic_grid(4, 2, -19.0, -16.0, 100.0, 105.0)


ONE = 1 << 62
ABC = Domain.from_labels(["a", "b", "c"])
TOKYO = Domain.geographic_grid(columns=5, rows=4, south=35.6, north=35.8, west=139.6, east=139.9)


def channel(*rows, **labels):
    return md.Channel(np.array(rows, dtype=np.int64), **labels)


HOME = channel([ONE, 0], [0, ONE], secrets=("home", "work"))


def believing(prior):
    return md.DistortionPrivacy(0.5, HAMMING, prior=prior)


DISTANCES = [
    (lambda: d.euclidean(Domain.from_labels(["a"])), "domain", "hamming"),
    (lambda: d.euclidean([1.0, 2.0]), "domain", "1 axes"),
    (lambda: d.euclidean(np.zeros((0, 2))), "domain", "empty"),
    (lambda: d.euclidean([[1.0]], [[1.0, 2.0]]), "other", "1 as in domain"),
    (lambda: d.euclidean([[1.0]], [[math.inf]]), "other[0,0]", "inf"),
    (lambda: d.euclidean(Domain.grid(1, 1, 1, 1, "km"), Domain.grid(1, 1, 1, 1, "m")), "other", "another unit"),
    (lambda: d.euclidean(DEGREE, Domain.geographic_grid(1, 1, 0, 1, 0, 2)), "other", "haversine"),
    (lambda: d.euclidean(Domain.from_coordinates([1], [2]), Domain.from_coordinates([1], [3])), "other", "haversine"),
    (lambda: d.euclidean(Domain.geographic_grid(2, 2, 0, 90, 0, 1)), "domain", "haversine"),
    (lambda: d.euclidean(Domain.geographic_grid(2, 2, 0, 1, 0, 180)), "domain", "haversine"),
    (lambda: d.haversine(Domain.grid(1, 1, 1, 1)), "domain", "geographic_grid"),
    (lambda: d.haversine([[0.0, 0.0, 0.0]]), "domain", "(n, 2)"),
    (lambda: d.haversine([[0.0, 0.0], [90.5, 0.0]]), "domain[1,0]", "90.5"),
    (lambda: d.haversine([[0.0, 0.0]], [[0.0, math.nan]]), "other[0,1]", "nan"),
    (lambda: d.haversine([[0.0, 1e-300]]), "domain[0,1]", "1e-300"),
    (lambda: d.hamming(0), "domain", "too small"),
    (lambda: d.hamming(2, Domain.from_labels(["a"])), "other", "two domains"),
    (lambda: d.hamming(1.5), "domain", "whole number"),
    (lambda: d.matrix([[0.0, -1.0]]), "distances[0,1]", "-1.0"),
    (lambda: d.matrix([[0.0, math.nan]]), "distances[0,1]", "nan"),
    (lambda: d.matrix([[0.0, 1.0]], n=2), "distances", "(2, 2)"),
    (lambda: d.matrix([0.0]), "distances", "1 axes"),
    (lambda: d.matrix(np.zeros((0, 0))), "distances", "empty"),
    (lambda: d.check_metric([[0.0, 1.0]], "d"), "d", "not square"),
    (lambda: d.check_metric([[0.0, math.nan], [1.0, 0.0]], "d"), "d[0,1]", "nan"),
    (lambda: d.check_metric([[0.0, -1.0], [1.0, 0.0]], "d"), "d[0,1]", "-1.0"),
    (lambda: d.shortest_path(nx.Graph()), "graph", "no nodes"),
    (lambda: d.shortest_path(nx.Graph([(1, 2)])), "graph", "has no node 0"),
    (lambda: d.shortest_path(nx.Graph([("a", "b")])), "graph", "domain.labels.index(str(node))"),
    (lambda: d.shortest_path(nx.Graph([(0, 1, {"x": -1.0})]), "x"), "graph.edges[0,1].x", "-1.0"),
    (lambda: d.shortest_path(nx.Graph([(0, 1, {"x": math.nan})]), "x"), "graph.edges[0,1].x", "nan"),
    (lambda: d.shortest_path(nx.Graph([(0, 1, {"x": math.inf})]), "x"), "graph.edges[0,1].x", "inf"),
    (lambda: d.shortest_path(nx.Graph([(0, 1, {"x": 1e101})]), "x"), "graph.edges[0,1].x", "1e+101"),
    (lambda: d.shortest_path(nx.Graph([(0, 1, {"x": "far"})]), "x"), "graph.edges[0,1].x", "real numbers"),
]
DOMAINS = [
    (lambda: Domain.grid(0, 1, 1, 1), "columns", "too small"),
    (lambda: Domain.grid(1, -1, 1, 1), "rows", "too small"),
    (lambda: Domain.grid(1.5, 1, 1, 1), "columns", "not a whole number"),
    (lambda: Domain.grid(True, 1, 1, 1), "columns", "not a whole number"),
    (lambda: Domain.grid(1, 1, 0, 1), "width", "not positive"),
    (lambda: Domain.grid(1, 1, 1, -2.0), "height", "not positive"),
    (lambda: Domain.grid(1, 1, math.inf, 1), "width", "not finite"),
    (lambda: Domain.grid(1, 1, math.nan, 1), "width", "not finite"),
    (lambda: Domain.grid(1, 1, "1", 1), "width", "not a number"),
    (lambda: Domain.geographic_grid(1, 1, 1, 1, 0, 1), "south", "not below north"),
    (lambda: Domain.geographic_grid(1, 1, 0, 1, 1, 1), "west", "not below east"),
    (lambda: Domain.geographic_grid(1, 1, 0, 90.0001, 0, 1), "north", "out of range"),
    (lambda: Domain.geographic_grid(1, 1, -91, 1, 0, 1), "south", "out of range"),
    (lambda: Domain.geographic_grid(1, 1, 0, 1, 0, 361), "east", "out of range"),
    (lambda: Domain.geographic_grid(1, 1, math.nan, 1, 0, 1), "south", "not finite"),
    (lambda: Domain.from_points([]), "points", "axes"),
    (lambda: Domain.from_points(np.zeros((0, 2))), "points", "is empty"),
    (lambda: Domain.from_points(np.zeros((3, 0))), "points", "from_labels"),
    (lambda: Domain.from_points([0.0, 1.0]), "points", "1 axes"),
    (lambda: Domain.from_points([[0.0], [1.0, 2.0]]), "points", "real numbers"),
    (lambda: Domain.from_points([["a"]]), "points", "real numbers"),
    (lambda: Domain.from_points([[1j]]), "points", "real numbers"),
    (lambda: Domain.from_points([[0.0, 1.0], [2.0, math.nan]]), "points[1,1]", "nan"),
    (lambda: Domain.from_points([[0.0], [math.inf]]), "points[1,0]", "inf"),
    (lambda: Domain.from_points([[None]]), "points", "holds object"),
    (lambda: Domain.from_points([[0.0], [1.0]], labels=["a"]), "labels", "2 labels"),
    (lambda: Domain.from_points([[0.0], [1.0]], labels=[]), "labels", "empty"),
    (lambda: Domain.from_points([[0.0]], unit=3), "unit", "not a text"),
    (lambda: Domain.from_labels([]), "labels", "empty"),
    (lambda: Domain.from_labels("ab"), "labels", "one text"),
    (lambda: Domain.from_labels(["a", "b", "a"]), "labels[2]", "repeats labels[0]"),
    (lambda: Domain.from_labels(["a", ""]), "labels[1]", "not a name"),
    (lambda: Domain.from_labels(["a", 1]), "labels[1]", "not a name"),
    (lambda: Domain.from_coordinates([0, 91], [0, 0]), "latitude[1]", "between -90 and 90"),
    (lambda: Domain.from_coordinates([0, 0], [0, -181]), "longitude[1]", "between -180"),
    (lambda: Domain.from_coordinates([0, math.nan], [0, 0]), "latitude[1]", "nan"),
    (lambda: Domain.from_coordinates([0, 1], [0]), "longitude", "does not match latitude"),
    (lambda: Domain.from_coordinates([], []), "latitude", "empty"),
    (lambda: Domain.from_coordinates([0, 1, 0], [-120, 0, 120]), "longitude", "half of the globe"),
    (lambda: Domain(np.zeros((2, 1)), cells=Grid(3, 1, 1, 1)), "cells", "one cell for each"),
    (lambda: Domain(np.zeros((2, 1)), coordinates=np.zeros((3, 2))), "coordinates", "(2, 2)"),
    (lambda: Domain(np.zeros((2, 1)), coordinates=[[0, 0], [91, 0]]), "coordinates[1,0]", "latitude"),
    (lambda: BoundingBox.around(91, 0, 1, 1), "latitude", "look interchanged"),
    (lambda: BoundingBox.around(-139.7, 35.7, 1, 1), "latitude", "look interchanged"),
    (lambda: BoundingBox.around(400, 0, 1, 1), "latitude", "between -90 and 90"),
    (lambda: BoundingBox.around(0, 180.5, 1, 1), "longitude", "between -180 and 180"),
    (lambda: BoundingBox.around(math.nan, 0, 1, 1), "latitude", "not finite"),
    (lambda: BoundingBox.around(0, math.inf, 1, 1), "longitude", "not finite"),
    (lambda: BoundingBox.around("45", 0, 1, 1), "latitude", "not a number"),
    (lambda: BoundingBox.around(True, 0, 1, 1), "latitude", "not a number"),
    (lambda: BoundingBox.around(0, None, 1, 1), "longitude", "not a number"),
    (lambda: BoundingBox.around(0, 0, 0, 1), "width", "not positive"),
    (lambda: BoundingBox.around(0, 0, 1, 0), "height", "not positive"),
    (lambda: BoundingBox.around(0, 0, -1, 1), "width", "not positive"),
    (lambda: BoundingBox.around(0, 0, 1, -1), "height", "not positive"),
    (lambda: BoundingBox.around(0, 0, math.inf, 1), "width", "not finite"),
    (lambda: BoundingBox.around(0, 0, 1, math.nan), "height", "not finite"),
    (lambda: BoundingBox.around(0, 0, "8 km", 1), "width", "not a number"),
    (lambda: BoundingBox.around(89.9, 0, 1, 30), "height", "less than 22.239 km"),
    (lambda: BoundingBox.around(90, 0, 1, 1), "height", "reaches a pole"),
    (lambda: BoundingBox.around(0, 0, 20016, 1), "width", "less than 20015.1 km"),
    (lambda: BoundingBox.around(-89.999, 0, 1, 0.1), "width", "half the circumference"),
    (lambda: BoundingBox(-19, -16, 177, 177), "west", "is not below east"),
    (lambda: BoundingBox(-19, -16, 10, 5), "west", "is not below east"),
    (lambda: BoundingBox(-19, -16, 90, -90), "west", "narrower than 180 degrees"),
    (lambda: BoundingBox(-90, -16, 177, -178), "north", "is a pole, in a box across the 180th meridian"),
    (lambda: BoundingBox(-19, -16, 181, 139), "west", "is not below east"),
    (lambda: BoundingBox(-19, -16, 177, 361), "east", "is out of range"),
    (lambda: BoundingBox(-19, -16, -181, 3), "west", "is out of range"),
    (lambda: BoundingBox(139, 140, 35, 36), "south", "look interchanged"),
    (lambda: BoundingBox(89, 140, 35, 36), "north", "look interchanged"),
    (lambda: Domain.geographic_anchors(2, 2, 139, 140, 35, 36), "south", "look interchanged"),
    (lambda: Domain.from_coordinates([139.0, 140.0], [35.0, 36.0]), "latitude[0]", "look interchanged"),
    (lambda: PLACES.cell_of(103.0, -18.0), "latitude", "look interchanged"),
    (lambda: PLACES.cell_of([-17, 103.0], [103, -18.0]), "latitude[1]", "look interchanged"),
    (lambda: Domain.grid(4, 3, 4.0, 3.0).part([1, 0]), "members"),
    (lambda: Domain.grid(4, 3, 4.0, 3.0).part([0, 12]), "members[1]"),
    (lambda: Domain.grid(4, 3, 4.0, 3.0).part([-1]), "members[0]"),
]
PRIORS = [
    (lambda: Prior.bootstrap([1, 0.5], samples=2), "counts[1]"),
    (lambda: Prior.bootstrap([1, 2], samples=0), "samples"),
    (lambda: Prior([]), "prior", "sum to 1"),
    (lambda: Prior([[1.0]]), "prior", "2 axes"),
    (lambda: Prior(["a"]), "prior", "real numbers"),
    (lambda: Prior([1.5, -0.5]), "prior[1]", "-0.5"),
    (lambda: Prior([1.0, math.nan]), "prior[1]", "nan"),
    (lambda: Prior([1.0, math.inf]), "prior[1]", "inf"),
    (lambda: Prior([1.0, 2.0]), "prior", "found 3.0"),
    (lambda: Prior.uniform(0), "n", "too small"),
    (lambda: Prior.from_counts([]), "counts", "empty"),
    (lambda: Prior.from_counts([1, -1]), "counts[1]", "-1"),
    (lambda: Prior.from_counts([1, math.nan]), "counts[1]", "nan"),
    (lambda: Prior.from_counts([1, 1.1e100]), "counts[1]", "1e+100"),
    (lambda: Prior.from_counts([1], smoothing=-1), "smoothing", "out of range"),
    (lambda: Prior.from_counts([1], smoothing=math.nan), "smoothing", "not finite"),
    (lambda: Prior.from_counts([1], smoothing=1.1e100), "smoothing", "out of range"),
]
CHAINS = [
    (lambda: MarkovChain.from_traces([0, 1, 0], n=2), "traces", "is a single trace"),
    (lambda: MarkovChain([[1.0, 0.0]]), "matrix", "(1, 2)"),
    (lambda: MarkovChain(np.zeros((0, 0))), "matrix", "wrong shape"),
    (lambda: MarkovChain([1.0]), "matrix", "1 axes"),
    (lambda: MarkovChain([[1.0, 0.0], [1.5, -0.5]]), "matrix[1,1]", "-0.5"),
    (lambda: MarkovChain([[1.0, 0.0], [math.nan, 1.0]]), "matrix[1,0]", "nan"),
    (lambda: MarkovChain([[1.0, 0.0], [math.inf, 1.0]]), "matrix[1,0]", "inf"),
    (lambda: MarkovChain([[1.7e308, 1.7e308], [0.0, 1.0]]), "matrix[0]", "inf"),
    (lambda: MarkovChain.from_traces([np.array([0, 1]), np.array([0, 2])], 2), "traces[1][1]", "between 0 and 1"),
    (lambda: MarkovChain.from_traces([np.array([0.5])], 2), "traces[0]", "integers"),
    (lambda: MarkovChain.from_traces([], 2), "traces", "1 on the diagonal"),
    (lambda: MarkovChain.from_traces([], 0), "n", "too small"),
    (lambda: MarkovChain.from_traces([], 2, smoothing=-1.0), "smoothing", "out of range"),
    (lambda: MarkovChain([[1.0]]).reverse([0.5, 0.5]), "initial", "1 probabilities"),
    (lambda: MarkovChain([[1.0]]).reverse([0.5]), "initial", "sum"),
    (lambda: smooth([[1.0]], -0.1), "s", "out of range"),
    (lambda: smooth([[1.0]], math.inf), "s", "not finite"),
    (lambda: smooth([[0.5]], 1.0), "matrix[0]", "sum"),
]
PROBLEMS = [
    ({"prior": [0.5, 0.25, 0.2]}, "prior"),
    ({"prior": [0.5, 0.75, -0.25]}, "prior[2]"),
    ({"prior": [0.5, 0.5, np.nan]}, "prior[2]"),
    ({"prior": [0.5, 0.5]}, "cost"),
    ({"cost": -LINE}, "cost[0,1]"),
    ({"cost": LINE + np.nan}, "cost[0,0]"),
    ({"cost": LINE + np.inf}, "cost[0]"),
    ({"cost": LINE[0]}, "cost"),
    ({"cost": np.zeros((3, 0))}, "cost"),
    ({"objective": "best"}, "objective"),
    ({"requirements": [md.GraphPrivacy(1, nx.path_graph(4))]}, "requirements[0]"),
    ({"requirements": [md.DistortionPrivacy(1, np.ones((3, 4)))]}, "requirements[0]"),
    ({"requirements": ["metric"]}, "requirements[0]"),
    ({"requirements": md.MetricPrivacy(1, LINE)}, "requirements"),
    ({"secrets": md.Domain.from_labels(["a", "b"])}, "secrets"),
    ({"observables": md.Domain.from_labels(["a", "b"])}, "observables"),
    ({"facts": {"seconds": 1}}, "facts", "has an unknown key"),
    ({"facts": ["within"]}, "facts"),
]
REQUIREMENTS = [
    (lambda: md.GraphPrivacy(1, nx.DiGraph([(0, 1)])), "graph"),
    (lambda: md.GraphPrivacy(1, nx.Graph([("a", "b")])), "graph"),
    (lambda: md.GraphPrivacy(1, nx.Graph([(1, 2)])), "graph"),
    (lambda: md.GraphPrivacy(1, nx.Graph()), "graph"),
    (lambda: md.GraphPrivacy(1, "a graph"), "graph"),
    (lambda: md.MetricPrivacy(1, np.zeros((2, 3))), "distance"),
    (lambda: md.MetricPrivacy(1, np.zeros((0, 0))), "distance"),
    (lambda: md.MetricPrivacy(1, [[0, -1], [-1, 0]]), "distance[0,1]"),
    (lambda: md.MetricPrivacy(1, [[0, np.nan], [np.nan, 0]]), "distance[0,1]"),
    (lambda: md.MetricPrivacy(1, "far"), "distance"),
    (lambda: md.MetricPrivacy(1, [1, 2]), "distance"),
    (lambda: md.DistortionPrivacy(-0.1, LINE), "minimum"),
    (lambda: md.DistortionPrivacy("x", LINE), "minimum"),
    (lambda: md.DistortionPrivacy(1, [[0, np.inf]]), "distance[0,1]"),
    (lambda: md.DistortionPrivacy(1, [[]]), "distance"),
    (lambda: believing(md.Prior.uniform(3)), "prior", "found 3; must be 4"),
    (lambda: believing([md.Prior.uniform(4), md.Prior.uniform(5)]), "prior[1]", "found 5"),
    (lambda: believing([0.5, 0.5, 0.5, 0.5]), "prior", "does not sum to 1; found 2"),
    (lambda: believing(np.array([[0.25] * 4, [0.5, 0.5, 0.5, -0.5]])), "prior[1][3]", "found -0.5"),
    (lambda: believing([]), "prior"),
    (lambda: believing("uniform"), "prior"),
]


CHANNELS = [
    *(
        (lambda row=row: channel([0, ONE], row), "numerators[1]")
        for row in ([ONE - 1, 0], [ONE, 1], [2**61, 2**61 - 1])
    ),
    # These numbers sum to 2^62 modulo 2^64.
    (lambda: channel([ONE] * 5), "numerators[0]", "another sum"),
    (lambda: channel([ONE + 1, -1]), "numerators[0, 1]", "is negative"),
    (lambda: md.Channel(np.array([[2**63, 2**62]], dtype=np.uint64)), "numerators[0, 0]", "negative"),
    (lambda: md.Channel(np.ones((2, 2))), "numerators"),
    (lambda: md.Channel(np.zeros(3, dtype=np.int64)), "numerators"),
    (lambda: md.Channel(np.zeros((0, 2), dtype=np.int64)), "numerators"),
    (lambda: channel([ONE, 0], secrets=("a", "b")), "secrets"),
    (lambda: channel([ONE, 0], observables=("a", "a")), "observables"),
    *((lambda secret=secret: HOME.sample(secret), "secret") for secret in ("gym", 2, -1, 0.5)),
    (lambda: HOME.sample([0, 2]), "secret"),
    *((lambda size=size: HOME.sample(0, size), "size") for size in (-1, 1.5, (2, -1))),
    (lambda: HOME.sample([0, 1], 2), "size"),
    (lambda: md.Channel.from_matrix([[0.5, 0.5 + 2e-6]]), "matrix[0]"),
    (lambda: md.Channel.from_matrix([[1.5, -0.5]]), "matrix[0,1]"),
    (lambda: md.Channel.from_matrix([1.0]), "matrix"),
]
CELLS = [
    (lambda: TOKYO.cell_of(139.75, 35.68), "latitude", "look interchanged; found 139.75"),
    (lambda: TOKYO.cell_of(35.0, 139.7), "place", "found (35.0, 139.7); must be latitude from 35.6 to 35.8"),
    (lambda: TOKYO.cell_of([35.7, 30, 31], [139.7] * 3), "place[1]", "lies outside the grid, as do 1 others"),
    (lambda: TOKYO.cell_of(35.7), "longitude", "is missing"),
    (lambda: TOKYO.cell_of(math.nan, 139.7), "latitude", "is not accepted"),
    (lambda: TOKYO.cell_of("35.7", 139.7), "latitude", "is not a number"),
    (lambda: TOKYO.cell_of(True, 139.7), "latitude", "is not a number"),
    (lambda: TOKYO.cell_of(35.7, 361), "longitude", "is not accepted"),
    (lambda: TOKYO.cell_of(35.7, [139.7, 139.8]), "longitude", "has another shape"),
    (lambda: TOKYO.cell_of(139.7, 35.7), "latitude", "look interchanged"),
    (lambda: Domain.geographic_grid(2, 2, 10, 20, 30, 40).cell_of(35.0, 15.0), "place", "look interchanged"),
    (lambda: TOKYO.cell_of(x=1.0, y=2.0), "x", "does not belong here; must be latitude and longitude"),
    (lambda: Domain.from_labels(["a", "b"]).cell_of(0, 0), "domain", "has no places in two dimensions"),
    (lambda: TOKYO.cell_of(35.7, 139.7, outside="drop"), "outside", "is not known; found 'drop'"),
    (lambda: ABC.part([True, False, True]), "members", "numpy.flatnonzero"),
    (lambda: ABC.part([0.0, 2.0]), "members", "astype"),
    (lambda: ABC.part([0.5, 2.0]), "members", "Give positions"),
    (lambda: ABC.part([]), "members", "is empty"),
    (lambda: Domain.grid(columns=10**400, rows=2, width=1.0, height=1.0), "columns", "too many cells"),
    (lambda: Domain.geographic_grid(10**6, 10**6, 0, 1, 0, 1), "columns", "too many cells"),
]


def test_a_message_shows_numbers_of_numpy_as_numbers():
    for value, shown in (
        (np.float64(0.5), "0.5"),
        (10**5000, "int"),
        ((np.float64(2.0), np.int64(-1)), "(2.0, -1)"),
        ([np.True_, np.str_("a")], "[True, 'a']"),
        ("np.float", "'np.float'"),
    ):
        assert str(InputError("x", "is wrong", value=value)) == f"x: is wrong; found {shown}"


@pytest.mark.parametrize("room", ["graphs", "leakage", "mechanisms", "model", "traces"])
def test_an_error_says_what_is_accepted_or_what_to_do(room):
    silent = []
    for file in (Path(md.__file__).parent / room).rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "InputError":
                named = {each.arg for each in call.keywords}
                silent += [] if named & {"bound", "remedy", None} else [f"{file.name}:{call.lineno}"]
    assert not silent


def test_wrong_distances():
    assert_refused_at(DISTANCES)
    with pytest.raises(InputError, match=r"^graph\.edges\[0,1\]: has no length"):
        d.shortest_path(nx.Graph([(0, 1)]), "x")
    for kind in (d.euclidean, d.manhattan, d.chebyshev):
        for bad in (5e-324, 9.99e-101, 1.001e100, math.nan):
            assert_refused_at([(lambda kind=kind, bad=bad: kind([[0.0], [bad], [-bad]]), "domain[1,0]")])


def test_wrong_domains():
    assert_refused_at(DOMAINS)


def test_wrong_priors():
    assert_refused_at(PRIORS)


def test_wrong_chains():
    assert_refused_at(CHAINS)


def test_wrong_problems():
    good = {"prior": [0.5, 0.25, 0.25], "cost": LINE, "requirements": [md.MetricPrivacy(1, LINE)]}
    md.Problem(**good)
    assert_refused_at((lambda change=change: md.Problem(**{**good, **change}), *row) for change, *row in PROBLEMS)


def test_wrong_requirements():
    assert_refused_at(REQUIREMENTS)
    for value in (0, -1, 0.0, "nan", float("inf"), None, True, "much"):
        assert_refused_at(
            [
                (lambda value=value: md.MetricPrivacy(value, LINE), "epsilon"),
                (lambda value=value: md.ThresholdPrivacy(value, LINE, radius=1), "epsilon"),
                (lambda value=value: md.GraphPrivacy(value, nx.path_graph(3)), "epsilon"),
            ]
        )


def test_wrong_channels(tmp_path):
    assert_refused_at(CHANNELS)
    path = tmp_path / "channel.npz"
    for place in (tmp_path, path):
        with pytest.raises(CertificateError, match="missing"):
            md.Channel.load(place)
    path.write_bytes(b"PK\x03\x04 truncated")
    with pytest.raises(CertificateError, match=r"channel\.npz"):
        md.Channel.load(path)
    np.savez(path, numerators=np.array([[1, 2]]), exponent=np.int64(62))
    with pytest.raises(CertificateError, match="another sum"):
        md.Channel.load(path)
    (tmp_path / "certificate.json").write_text("{}")
    with pytest.raises(InputError, match=r"is not a channel; found 'certificate\.json'; must be channel\.npz"):
        md.Channel.load(tmp_path / "certificate.json")


def test_wrong_places():
    assert_refused_at(CELLS)
