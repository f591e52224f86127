from __future__ import annotations

from fractions import Fraction
from typing import get_args, get_type_hints

import networkx as nx
import numpy as np
import pytest

from mechdesign import spec
from mechdesign.data.traces import read_checkins, read_plt, to_grid
from mechdesign.errors import InfeasibleError, MetricWarning, SpecificationError
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.model.prior import Prior
from mechdesign.spec import examples
from mechdesign.synthesis.design import design
from mechdesign.synthesis.settings import Rows, SolveSettings

GRID = "domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }"
BOX = "domain.grid = { columns = 2, rows = 2, south = 40.0, north = 40.2, west = -74.2, east = -74.0 }"
LABELS = 'domain.labels = ["a", "b", "c"]'
UNIFORM = "prior.uniform = true"
EUCLIDEAN = 'cost.distance = "euclidean"'
HAMMING = 'cost.distance = "hamming"'
METRIC = 'privacy = [{ kind = "metric", epsilon = 0.5, distance = "hamming" }]'
CHECKINS = "who,lat,lon,at\n6,40.05,-74.15,1\n6,40.15,-74.05,2\nbo,40.05,-74.05,3\n6,41.0,-74.05,4\n"


def document(domain=GRID, prior=UNIFORM, cost=HAMMING, privacy=METRIC, rest=""):
    # Keys before tables: `rest` may hold tables.
    return "\n".join([domain, prior, cost, privacy, rest])


def problem(folder=".", **parts):
    return spec.parse(document(**parts), folder).problem()


def requirement(table, folder=".", domain=GRID):
    return problem(folder, domain=domain, privacy=f"privacy = [{table}]").requirements[0]


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def failure(text, folder="."):
    with pytest.raises(SpecificationError) as raised:
        spec.parse(text, folder).problem()
    return raised.value


# --- domains -------------------------------------------------------------------------------------------------------


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


def test_points_labels_and_lines():
    domain = 'domain = { points = [[0, 0], [1.5, 2]], labels = ["home", "work"], unit = "m" }'
    secrets = problem(domain=domain).secrets
    assert secrets.points.tolist() == [[0.0, 0.0], [1.5, 2.0]]
    assert (secrets.labels, secrets.unit) == (("home", "work"), "m")
    assert problem(domain=LABELS).secrets.labels == ("a", "b", "c")
    assert problem(domain="domain.line = 4").secrets.points.tolist() == [[0.0], [1.0], [2.0], [3.0]]


def test_places_from_files(tmp_path):
    write(tmp_path, "places.csv", "name;east;north\nhome;0;0\n\nwork;3;4\n")
    domain = 'domain.csv = { path = "places.csv", x = "east", y = "north", label = "name", delimiter = ";" }'
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
    found = problem(tmp_path, domain=LABELS, prior='prior.csv = { path = "people.csv", column = "people" }')
    assert found.prior.tolist() == [0.1, 0.3, 0.6]


@pytest.mark.parametrize("only", ["6", '"6"'])
def test_checkins_of_one_user(tmp_path, only):
    write(tmp_path, "c.csv", CHECKINS)
    columns = 'user = "who", latitude = "lat", longitude = "lon", time = "at"'
    prior = f'prior = {{ checkins = {{ path = "c.csv", {columns}, only = {only} }}, smoothing = 0 }}'
    specification = spec.parse(document(domain=BOX, prior=prior), tmp_path)
    assert specification.problem().prior.tolist() == [0.5, 0.0, 0.0, 0.5]
    assert specification.notes == (
        "2 points of 1 user(s) counted",
        "1 points outside the box left out",
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


def test_geolife_numbers_are_padded(tmp_path):
    for user, longitude in (("005", "-74.15"), ("006", "-74.05")):
        folder = tmp_path / "plt" / user / "Trajectory"
        folder.mkdir(parents=True)
        header = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
        write(folder, "1.plt", header + f"40.05,{longitude},0,492,39744.12,2008-10-23,02:53:04\n")
    found = problem(tmp_path, domain=BOX, prior='prior = { plt = { path = "plt", only = 6 }, smoothing = 0.0 }')
    assert found.prior.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_simulated_city():
    centres = "centres = [{ x = 0.5, y = 0.5, spread = 0.5, weight = 3 }, { x = 2.5, y = 1.5, spread = 1 }]"
    prior = f"prior.simulated = {{ people = 1000, background = 0.1, {centres} }}"
    found = problem(prior=prior).prior * 1000
    assert found.argmax() == 0
    assert found.min() >= 1000 * 0.1 / 6 - 1
    far = problem(prior="prior.simulated = { centres = [{ x = 1e6, y = 0, spread = 1e-3 }] }").prior
    assert far.sum() == 1


# --- costs and requirements ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev", "hamming", "haversine"])
def test_distances_by_name(name):
    found = problem(domain=BOX, cost=f'cost.distance = "{name}"')
    assert (found.cost == getattr(distances, name)(found.secrets)).all()


def test_cost_settings(tmp_path):
    squared = problem(cost='cost = { distance = "manhattan", power = 2, scale = 0.5, objective = "worst" }')
    assert squared.objective == "worst"
    assert squared.cost[0].tolist() == [0.0, 0.5, 2.0, 0.5, 2.0, 4.5]
    write(tmp_path, "c.csv", "0,1\n1,0\n2,2.5\n")
    found = problem(tmp_path, domain=LABELS, cost='cost.matrix.path = "c.csv"', rest='observables.labels = ["x", "y"]')
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


@pytest.mark.parametrize(
    ("keys", "domain", "edges"),
    [
        ("edges = [[0, 1], [2, 1]]", LABELS, [(0, 1), (1, 2)]),
        ('edges = [["a", "b"], ["c", 1]]', LABELS, [(0, 1), (1, 2)]),
        ('edges_csv = { path = "e.csv" }', LABELS, [(0, 1), (1, 2)]),
        ('edges_csv = { path = "f.csv", source = "u", target = "v", delimiter = ";" }', LABELS, [(0, 2)]),
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
    write(tmp_path, "f.csv", "u;v;w\na;c;1\n")
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
    with pytest.raises(InfeasibleError, match=r"^privacy\[0\]\.minimum: .* largest possible, .* is 0\.66666"):
        problem(domain=LABELS, privacy=privacy)


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
    specification = spec.read_spec("inner/s.toml")
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


def test_checkins_in_new_york(data_folder):
    folder = data_folder / "foursquare_nyc_marc"
    specification = spec.parse(NEW_YORK, folder)
    found = specification.problem()
    traces = [t for t in read_checkins(folder / "specific_train.csv", "label", "lat", "lon") if t.user == "6"]
    visits = to_grid(traces, Domain.geographic_grid(12, 10, 40.70, 40.80, -74.02, -73.92))
    assert (found.prior == Prior.from_counts(visits.counts(), 0.01).probabilities).all()
    assert f"{visits.outside} points outside the box left out" in specification.notes
    assert found.requirements[0].epsilon == Fraction(3, 5)
    assert found.requirements[1].minimum == 1


def test_geolife(data_folder):
    folder = data_folder / "geolife_trackintel"
    domain = "domain.grid = { columns = 8, rows = 5, south = 39.7, north = 40.2, west = 116.0, east = 116.8 }"
    prior = 'prior = { plt = { path = "geolife_long_10_MB", only = 3 }, smoothing = 1 }'
    found = problem(folder, domain=domain, prior=prior)
    traces = [t for t in read_plt(folder / "geolife_long_10_MB") if t.user == "003"]
    visits = to_grid(traces, found.secrets)
    assert (found.prior == Prior.from_counts(visits.counts(), 1).probabilities).all()


# --- what is wrong, and where --------------------------------------------------------------------------------------


def privacy(table):
    return document(privacy=f"privacy = [{table}]")


def second(table):
    return document(privacy=f'privacy = [{{ kind = "metric", epsilon = 1, distance = "hamming" }}, {table}]')


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        # The file.
        ("title = ", "specification", "not valid TOML"),
        ("a = " + "[" * 5000, "specification", ""),
        (document(rest="titel = 'x'"), "titel", "Did you mean title?"),
        (document(rest="version = 2"), "version", "must be 1"),
        (document(rest="title = 3"), "title", "found 3; must be a text"),
        (document(domain=""), "domain", "is missing"),
        (document(prior=""), "prior", "is missing"),
        (document(cost=""), "cost", "is missing"),
        (document(privacy=""), "privacy", "is missing"),
        (document(privacy="privacy = []"), "privacy", "at least one"),
        (document(privacy="privacy.kind = 'metric'"), "privacy", "must be a list"),
        (document(privacy="privacy = [1]"), "privacy[0]", "must be a table"),
        (document(domain="domain = 3"), "domain", "must be a table"),
        # The domain.
        (document(domain="domain = {}"), "domain", "exactly one of grid"),
        (document(domain="domain = { line = 3, points = [[0]] }"), "domain", "has points and line"),
        (document(domain="domain.gird = {}"), "domain.gird", "Did you mean grid?"),
        (document(domain="domain.grid = { columns = 3, rows = 2, width = 3 }"), "domain.grid.height", "is missing"),
        (
            document(domain="domain.grid = { columns = 0, rows = 2, width = 3, height = 1 }"),
            "domain.grid.columns",
            ">= 1",
        ),
        (
            document(domain="domain.grid = { columns = 2.5, rows = 2, width = 3, height = 1 }"),
            "domain.grid.columns",
            "2.5",
        ),
        (document(domain="domain.grid = { columns = 2, rows = 2, width = -3, height = 1 }"), "domain.grid.width", "-3"),
        (
            document(domain="domain.grid = { columns = 2, rows = 2, width = nan, height = 1 }"),
            "domain.grid.width",
            "nan",
        ),
        (document(domain="domain.grid = { columns = 999, rows = 999, width = 3, height = 1 }"), "domain.grid", "5000"),
        (
            document(domain="domain.grid = { columns = 2, rows = 2, width = 3, height = 1, south = 3 }"),
            "domain.grid",
            "both",
        ),
        (document(domain=BOX.replace("40.2", "39")), "domain.grid.south", "not below north"),
        (document(domain=BOX.replace("-74.2", "-742")), "domain.grid.west", "degrees"),
        (document(domain=BOX.replace("west", "wets")), "domain.grid.wets", "Did you mean west?"),
        (document(domain=GRID + "\ndomain.unit = 'm'"), "domain.unit", "into the grid"),
        (document(domain=LABELS + "\ndomain.unit = 'm'"), "domain.unit", "does not go with labels"),
        (document(domain="domain.labels = ['a', 'a']"), "domain.labels[1]", "repeats"),
        (document(domain="domain.labels = []"), "domain.labels", "empty"),
        (document(domain="domain.labels = ['a', 1]"), "domain.labels[1]", "must be a text"),
        (document(domain="domain.line = 0"), "domain.line", ">= 1"),
        (document(domain="domain.line = 5001"), "domain.line", "5000"),
        (document(domain="domain.points = []"), "domain.points", "is empty"),
        (document(domain="domain.points = [[]]"), "domain.points", "no columns"),
        (document(domain="domain.points = [[0, 1], [2]]"), "domain.points[1]", "coordinates"),
        (document(domain="domain.points = [[0, 1], [2, 'x']]"), "domain.points[1][1]", "must be a number"),
        (document(domain="domain.points = [[0, 1], [2, inf]]"), "domain.points[1,1]", "finite"),
        (document(domain="domain = { points = [[0], [1]], labels = ['a'] }"), "domain.labels", "2 labels"),
        (document(domain="domain.csv = { path = 'places.csv', x = 'x' }"), "domain.csv", "x and y"),
        (
            document(domain="domain.csv = { path = 'none.csv', x = 'x', y = 'y' }"),
            "domain.csv.path",
            "cannot be opened",
        ),
        (document(domain="domain.csv = { path = 'places.csv', x = 'x', y = 'z' }"), "domain.csv", "no column 'z'"),
        (document(domain="domain.csv = { path = 'places.csv', x = 'x', y = 'y' }"), "domain.csv", "row 2"),
        (document(domain="domain.csv = { path = '.', x = 'x', y = 'y' }"), "domain.csv.path", "cannot be opened"),
        (
            document(domain="domain = { csv = { path = 'places.csv', latitude = 'x', longitude = 'x' }, unit = 'm' }"),
            "domain.unit",
            "does not go",
        ),
        (document(rest="observables.line = -1"), "observables.line", "-1"),
        (document(rest="observables.lines = 1"), "observables.lines", "Did you mean line?"),
        # The prior.
        (document(prior="prior = {}"), "prior", "exactly one of uniform"),
        (document(prior="prior = { uniform = true, counts = [1] }"), "prior", "uniform and counts"),
        (document(prior="prior.uniform = false"), "prior.uniform", "must be true"),
        (document(prior="prior = { uniform = true, smoothing = 1 }"), "prior.smoothing", "does not go with uniform"),
        (document(prior="prior.probabilities = [0.5, 0.5]"), "prior.probabilities", "found 2; must be 6"),
        (document(LABELS, "prior.probabilities = [0.5, 0.5, 0.1]"), "prior.probabilities", "does not sum to 1"),
        (document(LABELS, "prior.probabilities = [0.5, -0.5, 1]"), "prior.probabilities[1]", "-0.5"),
        (document(LABELS, "prior.probabilities = [0.5, nan, 1]"), "prior.probabilities[1]", "nan"),
        (document(LABELS, "prior.probabilities = [0.5, 'x', 1]"), "prior.probabilities[1]", "must be a number"),
        (document(LABELS, "prior.counts = [1, 2]"), "prior.counts", "found 2; must be 3"),
        (document(LABELS, "prior.counts = [0, 0, 0]"), "prior.counts", "all zero"),
        (document(LABELS, "prior.counts = [1, -2, 0]"), "prior.counts[1]", "-2"),
        (document(LABELS, "prior = { counts = [1, 2, 0], smoothing = -1 }"), "prior.smoothing", "-1"),
        (document(LABELS, "prior.csv = { path = 'none.csv', column = 'x' }"), "prior.csv.path", "cannot be opened"),
        (document(LABELS, "prior.csv = { path = 'places.csv', column = 'z' }"), "prior.csv", "no column 'z'"),
        (document(LABELS, "prior.csv = { path = 'places.csv', column = 'y' }"), "prior.csv", "row 2"),
        (document(LABELS, "prior.csv = { path = 'places.csv', column = 'x' }"), "prior.csv.path", "found 2; must be 3"),
        (document(LABELS, "prior.csv = { path = 'bad.csv', column = 'x' }"), "prior.csv", "UTF-8"),
        (
            document(LABELS, "prior.csv = { path = 'places.csv', column = 'x', delimiter = '' }"),
            "prior.csv.delimiter",
            "",
        ),
        (document(prior="prior.checkins = { path = 'c.csv' }"), "prior.checkins", "latitudes and longitudes"),
        (document(BOX, "prior.checkins = { path = 'none.csv' }"), "prior.checkins.path", "cannot be opened"),
        (document(BOX, "prior.checkins = { path = 'c.csv' }"), "prior.checkins", "no column 'user'"),
        (
            document(BOX, "prior.checkins = { path = 'c.csv', only = 6.5 }"),
            "prior.checkins.only",
            "whole number or a text",
        ),
        (document(BOX, "prior.checkins = { path = 'c.csv', delimiter = ';;' }"), "prior.checkins.delimiter", ";;"),
        (
            document(
                BOX, "prior.checkins = { path = 'c.csv', user = 'who', latitude = 'lat', longitude = 'lon', only = 7 }"
            ),
            "prior.checkins.only",
            "one of the 2 users, such as 6, bo",
        ),
        (
            document(BOX, "prior.checkins = { path = 'c.csv', user = 'who', latitude = 'at', longitude = 'lon' }"),
            "prior.checkins",
            "is inside the box",
        ),
        (
            document(BOX, "prior.checkins = { path = 'c.csv', user = 'who', latitude = 'lon', longitude = 'who' }"),
            "prior.checkins",
            "line 4",
        ),
        (
            document(BOX, "prior.checkins = { path = 'empty.csv', user = 'x', latitude = 'x', longitude = 'x' }"),
            "prior.checkins",
            "no check-ins",
        ),
        (document(BOX, "prior.plt = { path = 'none' }"), "prior.plt.path", "not a folder"),
        (document(BOX, "prior.plt = { path = '.' }"), "prior.plt.path", "no trajectories"),
        (document(LABELS, "prior.simulated.centres = []"), "prior.simulated", "places in the plane"),
        (document(prior="prior.simulated.centres = []"), "prior.simulated.centres", "is empty"),
        (
            document(prior="prior.simulated.centres = [{ x = 1, y = 1 }]"),
            "prior.simulated.centres[0].spread",
            "missing",
        ),
        (
            document(prior="prior.simulated.centres = [{ x = 1, y = 1, spread = 0 }]"),
            "prior.simulated.centres[0].spread",
            "> 0",
        ),
        (
            document(prior="prior.simulated.centres = [{ x = inf, y = 1, spread = 1 }]"),
            "prior.simulated.centres[0].x",
            "finite",
        ),
        (document(prior="prior.simulated = { people = 0, centres = [] }"), "prior.simulated.people", "between 1"),
        (document(prior="prior.simulated = { background = 2, centres = [] }"), "prior.simulated.background", "0 and 1"),
        # The cost.
        (document(cost="cost = {}"), "cost", "exactly one of distance"),
        (document(cost="cost.distance = 'euclidian'"), "cost.distance", "Did you mean euclidean?"),
        (document(cost="cost.distance = 'haversine'"), "cost.distance", "latitudes and longitudes"),
        (document(domain=LABELS, cost=EUCLIDEAN), "cost.distance", "labels only"),
        (document(cost=EUCLIDEAN, rest="observables.line = 3"), "cost.distance", "dimensions"),
        (document(cost=EUCLIDEAN, rest="observables.points = [[0, 0]]"), "cost.distance", "another unit"),
        (document(cost=EUCLIDEAN, rest="observables.labels = ['x']"), "cost.distance", "labels only"),
        (
            document(cost="cost = { distance = 'hamming', objective = 'worse' }"),
            "cost.objective",
            "Did you mean worst?",
        ),
        (document(cost="cost = { distance = 'hamming', power = 0 }"), "cost.power", "> 0"),
        (document(cost="cost = { distance = 'hamming', scale = inf }"), "cost.scale", "finite"),
        (document(cost="cost.matrix = { path = 'none.csv' }"), "cost.matrix.path", "cannot be opened"),
        (document(cost="cost.matrix = { path = 'none.npy' }"), "cost.matrix.path", "cannot be opened"),
        (document(cost="cost.matrix = { path = 'bad.npy' }"), "cost.matrix", "not a NumPy file"),
        (document(cost="cost.matrix = { path = 'flat.npy' }"), "cost.matrix", "does not hold a matrix"),
        (document(cost="cost.matrix = { path = 'two.csv' }"), "cost.matrix", "6 rows and 6 columns"),
        (document(cost="cost.matrix = { path = 'ragged.csv' }"), "cost.matrix", "line 2"),
        (document(cost="cost.matrix = { path = 'places.csv' }"), "cost.matrix", "line 1"),
        (document(cost="cost.matrix = { path = 'blank.csv' }"), "cost.matrix", "is empty"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'negative.csv' }"), "cost.matrix[1,0]", "-1"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'nan.csv' }"), "cost.matrix[0,0]", "nan"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'inf.csv' }"), "cost.matrix", "finite"),
        (document(cost="cost.graph = { neighbours = 4 }", rest="observables.line = 2"), "cost.graph", "secrets only"),
        (document(cost="cost.graph = { neighbours = 4, edges = [] }"), "cost.graph", "edges and neighbours"),
        # The requirements.
        (privacy("{}"), "privacy[0].kind", "is missing"),
        (privacy("{ kind = 3 }"), "privacy[0].kind", "found 3"),
        (second("{ kind = 'metrik' }"), "privacy[1].kind", "Did you mean metric?"),
        (second("{ kind = 'metric', distance = 'hamming' }"), "privacy[1].epsilon", "is missing"),
        (second("{ kind = 'metric', epsilon = 0, distance = 'hamming' }"), "privacy[1].epsilon", "greater than 0"),
        (second("{ kind = 'metric', epsilon = -0.5, distance = 'hamming' }"), "privacy[1].epsilon", "found -0.5;"),
        (second("{ kind = 'metric', epsilon = nan, distance = 'hamming' }"), "privacy[1].epsilon", "finite number"),
        (second("{ kind = 'metric', epsilon = 'x', distance = 'hamming' }"), "privacy[1].epsilon", "found 'x'"),
        (second("{ kind = 'metric', epsilon = true, distance = 'hamming' }"), "privacy[1].epsilon", "found True"),
        (second("{ kind = 'metric', epsilon = 1e-999999999, distance = 'hamming' }"), "privacy[1].epsilon", "range"),
        (
            second("{ kind = 'metric', epsilom = 1, distance = 'hamming' }"),
            "privacy[1].epsilom",
            "Did you mean epsilon?",
        ),
        (second("{ kind = 'metric', epsilon = 1 }"), "privacy[1]", "exactly one of distance, matrix, graph"),
        (second("{ kind = 'metric', epsilon = 1, distance = 'haversine' }"), "privacy[1].distance", "latitudes"),
        (second("{ kind = 'metric', epsilon = 1, matrix = { path = 'two.csv' } }"), "privacy[1].matrix", "6 rows"),
        (second("{ kind = 'metric', epsilon = 1, matrix = 'two.csv' }"), "privacy[1].matrix", "must be a table"),
        (
            second("{ kind = 'metric', epsilon = 1, matrix = { file = 'x' } }"),
            "privacy[1].matrix.file",
            "not a known key",
        ),
        (second("{ kind = 'threshold', epsilon = 1, distance = 'hamming' }"), "privacy[1].radius", "is missing"),
        (
            second("{ kind = 'threshold', epsilon = 1, radius = 0, distance = 'hamming' }"),
            "privacy[1].radius",
            "greater than 0",
        ),
        (second("{ kind = 'graph', epsilon = 1 }"), "privacy[1]", "exactly one of edges"),
        (second("{ kind = 'graph', epsilon = 0, neighbours = 4 }"), "privacy[1].epsilon", "greater than 0"),
        (second("{ kind = 'graph', epsilon = 1, neighbours = 6 }"), "privacy[1].neighbours", "4 or 8"),
        (second("{ kind = 'graph', epsilon = 1, edges = [[0, 6]] }"), "privacy[1].edges[0][1]", "from 0 to 5"),
        (second("{ kind = 'graph', epsilon = 1, edges = [[0, -1]] }"), "privacy[1].edges[0][1]", "from 0 to 5"),
        (second("{ kind = 'graph', epsilon = 1, edges = [['x', 1]] }"), "privacy[1].edges[0][0]", "found 'x'"),
        (second("{ kind = 'graph', epsilon = 1, edges = [[0, 1, 2]] }"), "privacy[1].edges[0]", "length 2"),
        (
            second("{ kind = 'graph', epsilon = 1, edges_csv = { path = 'no.csv' } }"),
            "privacy[1].edges_csv.path",
            "opened",
        ),
        (second("{ kind = 'graph', epsilon = 1, edges_csv = { path = 'c.csv' } }"), "privacy[1].edges_csv", "'source'"),
        (second("{ kind = 'graph', epsilon = 1, radius = 0, distance = 'hamming' }"), "privacy[1].radius", "> 0"),
        (second("{ kind = 'graph', epsilon = 1, radius = 1 }"), "privacy[1]", "exactly one of distance, matrix"),
        (
            second("{ kind = 'graph', epsilon = 1, edges = [], distance = 'hamming' }"),
            "privacy[1].distance",
            "with edges",
        ),
        (second("{ kind = 'distortion', distance = 'hamming' }"), "privacy[1].minimum", "is missing"),
        (second("{ kind = 'distortion', minimum = -1, distance = 'hamming' }"), "privacy[1].minimum", "at least 0"),
        (
            second("{ kind = 'distortion', minimum = 1, matrix = { path = 'two.csv' } }"),
            "privacy[1].matrix",
            "any number",
        ),
        (second("{ kind = 'distortion', minimum = 1, epsilon = 1 }"), "privacy[1].epsilon", "not a known key"),
        (
            document(LABELS, privacy="privacy = [{ kind = 'graph', epsilon = 1, neighbours = 4 }]"),
            "privacy[0].neighbours",
            "grid",
        ),
        # The solver.
        (document(rest="solver.names = 'x'"), "solver.names", "Did you mean name?"),
        (document(rest="solver.tolerance = 0"), "solver.tolerance", "greater than 0"),
        (document(rest="solver.time_limit = -1"), "solver.time_limit", "greater than 0"),
        (document(rest="solver.threads = 0"), "solver.threads", ">= 1"),
        (document(rest="solver.rows = 'lasy'"), "solver.rows", "Did you mean lazy?"),
        (document(rest="solver.options = 3"), "solver.options", "must be a table"),
    ],
)
def test_wrong_specifications_are_refused(tmp_path, text, path, words):
    write(tmp_path, "places.csv", "x,y\n1,2\n3,four\n")
    write(tmp_path, "c.csv", CHECKINS)
    write(tmp_path, "empty.csv", "x\n")
    write(tmp_path, "blank.csv", "\n")
    write(tmp_path, "two.csv", "0,1\n1,0\n")
    write(tmp_path, "ragged.csv", "0,1\n1\n")
    write(tmp_path, "negative.csv", "0,1\n-1,0\n")
    write(tmp_path, "nan.csv", "nan,1\n1,0\n")
    write(tmp_path, "inf.csv", "inf,1\n1,0\n")
    write(tmp_path, "bad.npy", "no")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    (tmp_path / "bad.csv").write_bytes(b"x\n\xff\xfe\n")
    error = failure(text, tmp_path)
    assert error.path == path
    assert words in str(error)
    assert "Decimal" not in str(error)
    assert "Fraction" not in str(error)


def test_specifications_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecificationError, match=r"missing\.toml: cannot be opened"):
        spec.read_spec(tmp_path / "missing.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecificationError, match="UTF-8"):
        spec.read_spec(tmp_path / "s.toml")


# --- ε from a file of budgets --------------------------------------------------------------------------------------

BUDGETS = 'privacy = [{ kind = "metric", epsilon = { budgets = "b.csv" }, distance = "hamming" }]'


def scheduled(folder, text, privacy=BUDGETS, **parts):
    write(folder, "b.csv", text)
    return spec.parse(document(privacy=privacy, **parts), folder)


def test_one_problem_for_each_distinct_budget(tmp_path):
    given = scheduled(tmp_path, "step,epsilon\n0,0.5\n1,0.1\n2,0.10\n3,0.75\n")
    assert given.schedule.epsilons == (Fraction(1, 2), Fraction(1, 10), Fraction(1, 10), Fraction(3, 4))
    assert given.schedule.distinct == (Fraction(1, 2), Fraction(1, 10), Fraction(3, 4))
    assert given.schedule.steps(Fraction(1, 10)) == [1, 2]
    problems = list(given.problems())
    assert [made.requirements[0].epsilon for made in problems] == list(given.schedule.distinct)
    assert problems[0].cost.tolist() == problems[2].cost.tolist()
    assert given.notes == ()
    with pytest.raises(SpecificationError, match=r"privacy\[0\].epsilon: holds 3 distinct ε"):
        given.problem()


def test_one_budget_is_one_problem(tmp_path):
    given = scheduled(tmp_path, "step,epsilon\n0,0.123456789012345678901\n1,0.123456789012345678901\n")
    assert given.problem() is next(given.problems())
    assert given.problem().requirements[0].epsilon == Fraction("0.123456789012345678901")
    assert spec.parse(document()).schedule is None
    assert [made.title for made in spec.parse(document()).problems()] == [""]


def test_the_other_requirements_stay(tmp_path):
    tables = """
    [[privacy]]
    kind = "graph"
    epsilon = 2
    neighbours = 4
    [[privacy]]
    kind = "threshold"
    epsilon = { budgets = "b.csv" }
    radius = 9
    distance = "euclidean"
    """
    given = scheduled(tmp_path, "step,epsilon\n0,1\n1,3\n", privacy="", rest=tables)
    found = [[float(requirement.epsilon) for requirement in made.requirements] for made in given.problems()]
    assert found == [[2, 1], [2, 3]]
    assert given.notes == ()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('kind = "metric", distance = "euclidean"', "up to 2.23607 units apart, so that a release may leak 2.23607 ε"),
        ('kind = "threshold", distance = "euclidean", radius = 1', "some pairs of secrets have no bound of their own"),
        ('kind = "graph", neighbours = 4', "some pairs of secrets have no bound of their own"),
        ('kind = "graph", radius = 9, distance = "euclidean"', None),
    ],
)
def test_what_budgets_do_not_account_for_is_noted(tmp_path, table, words):
    privacy = f'privacy = [{{ epsilon = {{ budgets = "b.csv" }}, {table} }}]'
    notes = scheduled(tmp_path, "step,epsilon\n0,0.5\n", privacy=privacy).notes
    assert notes == () if words is None else words in notes[0]


def test_warnings_of_a_schedule_are_given_once(tmp_path):
    write(tmp_path, "d.csv", "0,1,5\n1,0,1\n5,1,0\n")
    privacy = 'privacy = [{ kind = "metric", epsilon = { budgets = "b.csv" }, matrix = { path = "d.csv" } }]'
    given = scheduled(tmp_path, "step,epsilon\n0,1\n1,3\n2,4\n", privacy=privacy, domain=LABELS)
    with pytest.warns(MetricWarning) as caught:
        assert len(list(given.problems())) == 3
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step,epsilon\n0,0.5\n1,0\n", "b.csv, step 1 has no budget; found '0'; must be greater than 0. A budget of 0"),
        ("step,epsilon\n0,-1\n", "line 2 is negative; found '-1'"),
        ("step,epsilon\n0,nan\n", "line 2 is not a number; found 'nan'"),
        ("0.1\n", "has the wrong header"),
        ("step,epsilon\n", "holds no budgets"),
    ],
)
def test_budgets_that_are_none(tmp_path, text, words):
    write(tmp_path, "b.csv", text)
    error = failure(document(privacy=BUDGETS), tmp_path)
    assert error.path == "privacy[0].epsilon.budgets"
    assert words in str(error)


@pytest.mark.parametrize(
    ("privacy", "path", "words"),
    [
        (BUDGETS, "privacy[0].epsilon.budgets", "none/b.csv cannot be opened"),
        (BUDGETS.replace("budgets =", "budget ="), "privacy[0].epsilon.budget", "Did you mean budgets?"),
        (BUDGETS.replace('"b.csv"', "3"), "privacy[0].epsilon.budgets", "must be a text"),
        (BUDGETS.replace('budgets = "b.csv"', ""), "privacy[0].epsilon.budgets", "is missing"),
        (
            'privacy = [{ kind = "distortion", minimum = 0.1, distance = "hamming", epsilon = { budgets = "b.csv" } }]',
            "privacy[0].epsilon",
            "is not a known key",
        ),
        (
            BUDGETS.replace("}]", '}, { kind = "graph", epsilon = { budgets = "b.csv" }, neighbours = 4 }]'),
            "privacy[1].epsilon",
            "is taken from a file, as privacy[0].epsilon is",
        ),
    ],
)
def test_wrong_schedules(tmp_path, privacy, path, words):
    write(tmp_path, "b.csv", "step,epsilon\n0,1\n")
    error = failure(document(privacy=privacy), tmp_path / "none" if "none" in words else tmp_path)
    assert error.path == path
    assert words in str(error)
