"""The tables of a specification, one after another."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import get_args, get_type_hints

import networkx as nx
import numpy as np
import pytest
from rows import each_row
from spec_examples import BOX, CHECKINS, EUCLIDEAN, GRID, LABELS, METRIC, document, failure, problem, requirement, write

from mechdesign import specification as spec
from mechdesign.data.movement import read_checkins, read_plt
from mechdesign.data.trajectories import to_grid
from mechdesign.errors import InfeasibleError, MetricWarning, SpecificationError
from mechdesign.model import distances
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._prior import Prior
from mechdesign.specification import examples
from mechdesign.specification._measures import scale_cost
from mechdesign.specification._read import Source
from mechdesign.specification._specification import read_spec
from mechdesign.synthesis._design import design
from mechdesign.synthesis._settings import Rows, SolveSettings


def test_grids():
    secrets = problem(domain='domain.grid = { columns = 3, rows = 2, width = 6.0, height = 1, unit = "m" }').secrets
    assert secrets.points.tolist() == Domain.grid(3, 2, 6, 1).points.tolist()
    assert (secrets.unit, secrets.cells.columns, secrets.cells.rows) == ("m", 3, 2)
    assert problem().secrets.unit == "km"


def test_geographic_grids():
    secrets = problem(domain=BOX).secrets
    expected = Domain.geographic_grid(2, 2, 40, 40.2, -74.2, -74)
    assert (secrets.points == expected.points).all()
    assert secrets.geographic == expected.geographic


@each_row(("form", "count"), [("grid", 4), ("anchors", 4)])
def test_a_grid_around_a_place(form, count):
    box = BoundingBox.around(40.1, -74.1, 8, 6)
    given = "columns = 2, rows = 2, latitude = 40.1, longitude = -74.1, width = 8, height = 6.0"
    domain = f"domain.{form} = {{ {given} }}"
    privacy = 'privacy = [{ kind = "continuous", epsilon = 0.1 }]' if form == "anchors" else METRIC
    secrets = problem(domain=domain, privacy=privacy, cost="cost.distance = 'haversine'").secrets
    make = Domain.geographic_anchors if form == "anchors" else Domain.geographic_grid
    assert secrets.size == count
    assert (secrets.degrees == make(2, 2, box.south, box.north, box.west, box.east).degrees).all()


def test_points_labels_and_lines():
    domain = 'domain = { points = [[0, 0], [1.5, 2]], labels = ["home", "work"], unit = "m" }'
    secrets = problem(domain=domain).secrets
    assert secrets.points.tolist() == [[0.0, 0.0], [1.5, 2.0]]
    assert (secrets.labels, secrets.unit) == (("home", "work"), "m")
    assert problem(domain=LABELS).secrets.labels == ("a", "b", "c")
    assert problem(domain="domain.line = 4").secrets.points.tolist() == [[0.0], [1.0], [2.0], [3.0]]


def test_places_from_files(tmp_path):
    write(tmp_path, "places.csv", "name,east,north\nhome,0,0\nwork,3,4\n\n")
    domain = 'domain.csv = { path = "places.csv", x = "east", y = "north", label = "name" }'
    found = problem(tmp_path, domain=domain + '\ndomain.unit = "km"', cost=EUCLIDEAN)
    assert found.secrets.labels == ("home", "work")
    assert found.secrets.unit == "km"
    assert found.cost.tolist() == [[0.0, 5.0], [5.0, 0.0]]
    write(tmp_path, "degrees.csv", "lat,lon\n40,-74\n40.1,-74.1\n")
    domain = 'domain.csv = { path = "degrees.csv", latitude = "lat", longitude = "lon" }'
    secrets = problem(tmp_path, domain=domain, cost='cost.distance = "haversine"').secrets
    assert secrets.coordinates.tolist() == [[40.0, -74.0], [40.1, -74.1]]
    assert secrets.unit == "km"


def test_observables_may_differ():
    rest = 'observables = { points = [[0.5, 0.5], [9, 9]], unit = "km" }'
    found = problem(cost=EUCLIDEAN, rest=rest)
    assert found.cost.shape == (6, 2)
    assert found.cost[0, 0] == 0
    assert found.observables.size == 2
    same = problem()
    assert same.observables is same.secrets
    by_label = problem(domain=LABELS, rest='observables.labels = ["b", "none"]')
    assert by_label.cost.tolist() == [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]


# --- priors --------------------------------------------------------------------------------------------------------


def test_priors_in_the_file():
    assert problem(domain=LABELS).prior.tolist() == [1 / 3] * 3
    given = problem(domain=LABELS, prior="prior.probabilities = [0.1, 0.2, 0.7]")
    assert given.prior.tolist() == [0.1, 0.2, 0.7]
    counted = problem(domain=LABELS, prior="prior.counts = [1, 2, 0]")
    assert counted.prior.tolist() == [1 / 3, 2 / 3, 0.0]
    smoothed = problem(domain=LABELS, prior="prior = { counts = [1, 2, 0], smoothing = 1 }")
    assert smoothed.prior.tolist() == [2 / 6, 3 / 6, 1 / 6]


def test_counts_from_files(tmp_path):
    write(tmp_path, "people.csv", "cell,people\n0,10\n1,30\n2,60\n")
    found = problem(
        tmp_path, domain=LABELS, prior='prior.csv = { path = "people.csv", column = "people", label = false }'
    )
    assert found.prior.tolist() == [0.1, 0.3, 0.6]


@each_row("only", ["6", '"6"'])
def test_checkins_of_one_user(tmp_path, only):
    write(tmp_path, "c.csv", CHECKINS)
    columns = 'user = "who", latitude = "lat", longitude = "lon", time = "at"'
    prior = f'prior = {{ checkins = {{ path = "c.csv", {columns}, only = {only} }}, smoothing = 0 }}'
    specification = spec.parse(document(domain=BOX, prior=prior, rest='files.time_format = "unix"'), tmp_path)
    assert specification.problem().prior.tolist() == [0.5, 0.0, 0.0, 0.5]
    assert specification.notes == (
        "2 points of 1 user(s) counted",
        "1 points outside the box are left out, 33% of all",
        "2 of 4 secrets never occur in the data",
    )


def test_a_cell_that_nobody_visited_needs_smoothing(tmp_path):
    write(tmp_path, "c.csv", CHECKINS)
    checkins = 'path = "c.csv", user = "who", latitude = "lat", longitude = "lon"'
    error = failure(document(domain=BOX, prior=f"prior.checkins = {{ {checkins} }}"), tmp_path)
    assert error.path == "prior.smoothing"
    assert "1 of the 4 cells were never visited (the first is cell 2)" in str(error)
    smoothed = f"prior = {{ checkins = {{ {checkins} }}, smoothing = 0.5 }}"
    assert problem(tmp_path, domain=BOX, prior=smoothed).prior.tolist() == [0.3, 0.3, 0.1, 0.3]


def test_a_simulated_city():
    centres = "centres = [{ x = 0.5, y = 0.5, spread = 0.5, weight = 3 }, { x = 2.5, y = 1.5, spread = 1 }]"
    prior = f"prior.simulated = {{ people = 1000, background = 0.1, {centres} }}"
    found = problem(prior=prior).prior * 1000
    assert found.argmax() == 0
    assert found.min() >= 1000 * 0.1 / 6 - 1
    far = problem(prior="prior.simulated = { centres = [{ x = 1e6, y = 0, spread = 1e-3 }] }").prior
    assert far.sum() == 1


# --- costs and requirements ----------------------------------------------------------------------------------------


@each_row("name", ["euclidean", "manhattan", "chebyshev", "hamming", "haversine"])
def test_distances_by_name(name):
    found = problem(domain=BOX, cost=f'cost.distance = "{name}"')
    assert (found.cost == getattr(distances, name)(found.secrets)).all()


def test_cost_settings(tmp_path):
    squared = problem(cost='cost = { distance = "manhattan", power = 2, scale = 0.5, objective = "worst" }')
    assert squared.objective == "worst"
    assert squared.cost[0].tolist() == [0.0, 0.5, 2.0, 0.5, 2.0, 4.5]
    write(tmp_path, "c.csv", "0,1\n1,0\n2,2.5\n")
    free = '{ path = "c.csv", header = false, index = false }'
    found = problem(tmp_path, domain=LABELS, cost=f"cost.matrix = {free}", rest='observables.labels = ["x", "y"]')
    assert found.cost.tolist() == [[0.0, 1.0], [1.0, 0.0], [2.0, 2.5]]
    np.save(tmp_path / "c.npy", np.eye(3, dtype=int))
    assert problem(tmp_path, domain=LABELS, cost='cost.matrix = { path = "c.npy" }').cost.tolist() == np.eye(3).tolist()
    steps = problem(domain=LABELS, cost="cost.graph.edges = [[0, 1], [1, 2]]")
    assert steps.cost.tolist() == [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def test_metric_privacy_is_exact():
    found = requirement('{ kind = "metric", epsilon = 0.1, distance = "euclidean" }')
    assert found.epsilon == Fraction(1, 10)
    assert found.kind == "metric"
    long = requirement('{ kind = "metric", epsilon = 0.1000000000000000000000001, distance = "euclidean" }')
    assert long.epsilon == Fraction("0.1000000000000000000000001")
    assert requirement('{ kind = "metric", epsilon = "1/3", distance = "euclidean" }').epsilon == Fraction(1, 3)
    assert requirement('{ kind = "metric", epsilon = 2, distance = "euclidean" }').epsilon == 2


def test_metric_privacy_from_a_file(tmp_path):
    write(tmp_path, "d.csv", "0,1,inf\n1,0,inf\ninf,inf,0\n")
    found = requirement('{ kind = "metric", epsilon = 1, matrix = { path = "d.csv" } }', tmp_path, LABELS)
    assert found.distance.tolist() == [[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]]
    write(tmp_path, "d.csv", "0,1,5\n1,0,1\n5,1,0\n")
    with pytest.warns(MetricWarning, match="triangle"):
        requirement('{ kind = "metric", epsilon = 1, matrix = { path = "d.csv" } }', tmp_path, LABELS)


def test_threshold_privacy():
    found = requirement('{ kind = "threshold", epsilon = 1.1, radius = 1.5, distance = "euclidean" }')
    assert (found.epsilon, found.radius) == (Fraction(11, 10), Fraction(3, 2))


@each_row(
    ("keys", "domain", "edges"),
    [
        ("edges = [[0, 1], [2, 1]]", LABELS, [(0, 1), (1, 2)]),
        ('edges = [["a", "b"], ["c", 1]]', LABELS, [(0, 1), (1, 2)]),
        ('edges_csv = { path = "e.csv" }', LABELS, [(0, 1), (1, 2)]),
        ('edges_csv = { path = "f.csv", source = "u", target = "v" }', LABELS, [(0, 2)]),
        ("neighbours = 4", GRID, [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]),
        (
            "neighbours = 8",
            GRID,
            [(0, 1), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (4, 5)],
        ),
        ('radius = 1.0, distance = "euclidean"', GRID, [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]),
        ('radius = 1, matrix = { path = "d.csv" }', LABELS, [(1, 2)]),
    ],
)
def test_graph_privacy(tmp_path, keys, domain, edges):
    write(tmp_path, "e.csv", "source,target\na,b\n1,2\n")
    write(tmp_path, "f.csv", "u,v,w\na,c,1\n")
    write(tmp_path, "d.csv", "0,2,2\n2,0,1\n2,1,0\n")
    found = requirement(f'{{ kind = "graph", epsilon = 1, {keys} }}', tmp_path, domain)
    assert [tuple(edge) for edge in found.edges.tolist()] == edges


def test_graphs_as_distances():
    found = requirement('{ kind = "metric", epsilon = 1, graph = { neighbours = 4 } }')
    assert (found.distance == distances.shortest_path(nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3)))).all()


def test_distortion_privacy(tmp_path):
    found = requirement('{ kind = "distortion", minimum = 0.1, distance = "euclidean" }')
    assert found.minimum == Fraction(1, 10)
    assert found.distance.shape == (6, 6)
    write(tmp_path, "a.csv", "1,1,0\n0,1,1\n")
    found = requirement('{ kind = "distortion", minimum = 0.1, matrix.path = "a.csv" }', tmp_path, LABELS)
    assert found.distance.shape == (2, 3)


def test_a_floor_out_of_reach_names_the_largest():
    privacy = 'privacy = [{ kind = "distortion", minimum = 0.9, distance = "hamming" }]'
    with pytest.raises(InfeasibleError, match=r"^privacy\[0\]\.minimum: .* largest possible error, .* is 0\.66666"):
        problem(domain=LABELS, privacy=privacy)


@each_row(("distance", "unit"), [("euclidean", " km"), ("manhattan", " km"), ("chebyshev", " km"), ("hamming", "")])
def test_floors_out_of_reach_are_told_with_their_unit(distance, unit):
    text = "domain.grid = { columns = 3, rows = 2, width = 3.0, height = 4.0, unit = 'km' }\nprior.uniform = true\n"
    text += f"cost.distance = '{distance}'\nprivacy = [{{ kind = 'distortion', minimum = 9, distance = '{distance}' }}]"
    with pytest.raises(InfeasibleError, match=rf"at 9{unit} under this prior; .* is [\d.]+{unit}\. "):
        spec.parse(text).problem()


@each_row("name", ["blok", "x"])
def test_an_unknown_solver_is_named_by_its_key(name):
    text = document(rest=f'solver.name = "{name}"')
    with pytest.raises(SpecificationError, match=r"^solver\.name: is not known") as caught:
        spec.parse(text).design()
    assert ("Did you mean block?" in str(caught.value)) == (name == "blok")


# --- the whole file ------------------------------------------------------------------------------------------------


def test_solver_settings():
    text = document(rest='[solver]\nname = "highs-ipx"\ntolerance = 1e-6\ntime_limit = 10\nrows = "lazy"\nthreads = 2')
    found = spec.parse(text + "\noptions = { presolve = false, alpha = 0.5, limit = 3 }").settings
    assert (found.solver, found.tolerance, found.time_limit) == ("highs-ipx", 1e-6, 10.0)
    assert (found.rows, found.threads) == ("lazy", 2)
    assert found.options == {"presolve": False, "alpha": 0.5, "limit": 3}
    assert isinstance(found.options["alpha"], float)
    assert spec.parse(document()).settings == SolveSettings()


def test_the_rows_are_those_of_the_solver():
    assert get_args(Rows) == get_args(get_type_hints(design)["rows"])


def test_files_are_relative_to_the_specification(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", "c.csv", "0,1,1\n1,0,1\n1,1,0\n")
    write(tmp_path / "inner", "s.toml", "﻿title = 'T'\n" + document(domain=LABELS, cost='cost.matrix.path = "c.csv"'))
    monkeypatch.chdir(tmp_path)
    specification = read_spec("inner/s.toml")
    assert specification.problem().title == specification.title == "T"
    assert "T" in repr(specification)


def test_the_large_city_is_a_real_problem():
    found = spec.parse(examples.find("city-300").text).problem()
    assert found.prior.size == 300
    assert [requirement.kind for requirement in found.requirements] == ["metric", "distortion"]
    assert found.prior.min() > 0


NEW_YORK = """
title = "Check-ins in New York"
[domain]
grid = { columns = 12, rows = 10, south = 40.70, north = 40.80, west = -74.02, east = -73.92 }   # projected to km
[prior]
checkins = { path = "specific_train.csv", user = "label", latitude = "lat", longitude = "lon", only = 6 }
smoothing = 0.01
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.6
distance = "euclidean"
[[privacy]]
kind = "distortion"
minimum = 1.0
distance = "euclidean"
"""


@pytest.mark.slow
def test_checkins_in_new_york(data_folder):
    folder = data_folder / "foursquare_nyc_marc"
    specification = spec.parse(NEW_YORK, folder)
    found = specification.problem()
    traces = [t for t in read_checkins(folder / "specific_train.csv", "label", "lat", longitude="lon") if t.user == "6"]
    visits = to_grid(traces, Domain.geographic_grid(12, 10, 40.70, 40.80, -74.02, -73.92))
    assert (found.prior == Prior.from_counts(visits.counts(), 0.01).probabilities).all()
    assert f"{visits.outside} points outside the box are left out, 77% of all" in specification.notes
    assert found.requirements[0].epsilon == Fraction(3, 5)
    assert found.requirements[1].minimum == 1


@pytest.mark.slow
def test_geolife(data_folder):
    folder = data_folder / "geolife_trackintel"
    domain = "domain.grid = { columns = 8, rows = 5, south = 39.7, north = 40.2, west = 116.0, east = 116.8 }"
    prior = 'prior = { plt = { path = "geolife_long_10_MB", only = "003" }, smoothing = 1 }'
    found = problem(folder, domain=domain, prior=prior)
    traces = [t for t in read_plt(folder / "geolife_long_10_MB") if t.user == "003"]
    visits = to_grid(traces, found.secrets)
    assert (found.prior == Prior.from_counts(visits.counts(), 1).probabilities).all()


@each_row(
    ("keys", "words"),
    [
        ('latitude = "lon", longitude = "lat"', "domain.csv.latitude is the column 'lon', which is named like"),
        ('x = "lon", y = "lat"', "on a plane, degrees are not distances"),
        ('latitude = "lat", longitude = "lon"', ""),
    ],
)
def test_columns_that_are_called_otherwise_are_told_of(tmp_path, keys, words):
    (tmp_path / "p.csv").write_text("lat,lon\n59.31,18.05\n59.33,18.07\n")
    text = f'domain.csv = {{ path = "p.csv", {keys} }}\nprior.uniform = true\ncost.distance = "euclidean"\n'
    given = spec.parse(f'{text}privacy = [{{ kind = "metric", epsilon = 1, distance = "euclidean" }}]\n', tmp_path)
    assert [note for note in given.notes if words in note] if words else not given.notes


@each_row(("first", "told"), [(1, True), (0, False)])
def test_costs_by_which_the_truth_is_not_the_cheapest_are_told_of(tmp_path, first, told):
    (tmp_path / "m.csv").write_text(f"{first},0.5\n0.5,{first}\n")
    text = 'domain.labels = ["a", "b"]\nprior.uniform = true\ncost.matrix.path = "m.csv"\n'
    given = spec.parse(f'{text}privacy = [{{ kind = "metric", epsilon = 1, distance = "hamming" }}]\n', tmp_path)
    assert any("less than the truth for 2 of 2" in note for note in given.notes) is told


@each_row(
    ("more", "key"),
    [("power = 1000", "power"), ("power = 2e5", "power"), ("scale = 1e308", "scale"), ("scale = 1e101", "scale")],
)
def test_costs_that_overflow_are_refused(more, key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = failure(document(cost=f'[cost]\ndistance = "euclidean"\n{more}', privacy="", rest=PRIVACY))
    assert found.path == f"cost.{key}"
    assert "makes costs too large" in str(found) or "is out of range" in str(found)


COST = Source() / "cost"
PRIVACY = '[[privacy]]\nkind = "metric"\nepsilon = 0.5\ndistance = "hamming"'


def test_the_largest_power_that_does_passes():
    cost = problem(cost='[cost]\ndistance = "euclidean"\npower = 200', privacy="", rest=PRIVACY).cost
    assert np.isfinite(cost).all()
    assert cost.max() == pytest.approx(5.0**100)


def test_just_inside_and_just_outside():
    distance = np.array([[0.0, 10.0]])
    assert scale_cost(distance, 99.0, 1.0, COST).tolist() == [[0.0, 1e99]]
    with pytest.raises(SpecificationError, match="too large"):
        scale_cost(distance, 100.5, 1.0, COST)


def test_costs_that_vanish_are_refused():
    with pytest.raises(SpecificationError, match="makes the costs of some positive distances 0"):
        scale_cost(np.array([[0.0, 0.1]]), 400.0, 1.0, COST)
    assert scale_cost(np.array([[0.0, 0.1]]), 40.0, 1.0, COST)[0, 1] > 0
