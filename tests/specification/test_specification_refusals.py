"""Errors in a specification name the key and the problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spec_examples import (
    BOX,
    CHECKINS,
    EUCLIDEAN,
    GRID,
    LABELS,
    assert_refused_texts,
    document,
    failure,
    problem_of,
    write,
)

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.errors import InputError, SpecificationError
from mechdesign.specification._specification import read_spec


def privacy(table):
    return document(privacy=f"privacy = [{table}]")


def second(table):
    return privacy(f'{{ kind = "metric", epsilon = 1, distance = "hamming" }}, {{ {table} }}')


# Each row: what is written, the path of the error, and a part of its message where the path does not say it all.

WHOLE = [
    ("title = ", "specification", "not valid TOML"),
    (document(domain=""), "domain", "is missing"),
    (document(prior=""), "prior", "is missing"),
    (document(cost=""), "cost", "is missing"),
    (document(privacy=""), "privacy", "is missing"),
    (document(privacy="privacy = []"), "privacy", "length >= 1"),
    (document(privacy="privacy.kind = 'metric'"), "privacy", "must be a list"),
    (document(privacy="privacy = [1]"), "privacy[0]", "must be a table"),
    (document(domain=BOX.replace("40.2", "39")), "domain.grid.south", "not below north"),
    (document(domain=BOX.replace("-74.2", "-742")), "domain.grid.west", "degrees"),
    (document(domain=BOX.replace("west", "wets")), "domain.grid.wets", "Did you mean west?"),
    (document(domain=GRID + "\ndomain.unit = 'm'"), "domain.unit", "into the grid"),
    (document(domain=LABELS + "\ndomain.unit = 'm'"), "domain.unit", "cannot be combined with labels"),
    (document(domain=LABELS, cost=EUCLIDEAN), "cost.distance", "has no places"),
    (document(cost=EUCLIDEAN, rest="observables.line = 3"), "cost.distance", "dimensions"),
    (document(cost=EUCLIDEAN, rest="observables.points = [[0, 0]]"), "cost.distance", "another unit"),
    (document(cost=EUCLIDEAN, rest="observables.labels = ['x']"), "cost.distance", "has no places"),
    (
        document("domain.line = 2", cost="cost.matrix = { path = 'negative.csv' }"),
        "cost.matrix[1,0]",
        "must be a number >= 0",
    ),
    (
        document("domain.line = 2", cost="cost.matrix = { path = 'nan.csv' }"),
        "cost.matrix[0,0]",
        "must be a number >= 0",
    ),
    (document("domain.line = 2", cost="cost.matrix = { path = 'inf.csv' }"), "cost.matrix", "finite"),
    (document(cost="cost.graph = { neighbours = 4 }", rest="observables.line = 2"), "cost.graph", "secrets only"),
    (document(privacy="[privacy]\nkind = 'metric'"), "privacy", "Write [[privacy]] instead of [privacy]"),
    (privacy("{}"), "privacy[0].kind", "is missing"),
    (privacy("{ kind = 3 }"), "privacy[0].kind", "found 3"),
    (
        document(domain="domain.line = 4", privacy="privacy = [{ kind = 'graph', epsilon = 1, blocks = 2 }]"),
        "privacy[0].blocks",
    ),
    (document(LABELS, privacy="privacy = [{ kind = 'graph', epsilon = 1, neighbours = 4 }]"), "privacy[0].neighbours"),
]
DOMAINS = [
    ("domain = 3", "domain", "must be a table"),
    ("domain = {}", "domain", "exactly one of grid"),
    ("domain = { line = 3, points = [[0]] }", "domain", "has points and line"),
    ("domain.gird = {}", "domain.gird", "Did you mean grid?"),
    ("domain.grid = { CELLS, width = 3 }", "domain.grid.height", "is missing"),
    ("domain.grid = { CELLS, latitude = 40, width = 3, height = 1 }", "domain.grid.longitude", "is missing"),
    ("domain.grid = { CELLS, latitude = 40, longitude = 4, width = 3 }", "domain.grid.height", "is missing"),
    ("domain.grid = { CELLS, latitude = 40, south = 4, width = 3 }", "domain.grid.latitude", "with south"),
    ("domain.grid = { CELLS, latitude = 4, longitude = 4, width = 3, height = 1, unit = 'm' }", "domain.grid.unit"),
    ("domain.grid = { CELLS, latitude = 139, longitude = 4, width = 3, height = 1 }", "domain.grid.latitude"),
    ("domain.anchors = { CELLS, latitude = 39, longitude = 4, width = 3, height = 0 }", "domain.anchors.height"),
    ("domain.grid = { columns = 0, rows = 2, width = 3, height = 1 }", "domain.grid.columns", ">= 1"),
    ("domain.grid = { columns = 2.5, rows = 2, width = 3, height = 1 }", "domain.grid.columns", "2.5"),
    ("domain.grid = { CELLS, width = -3, height = 1 }", "domain.grid.width", "-3"),
    ("domain.grid = { CELLS, width = nan, height = 1 }", "domain.grid.width", "nan"),
    ("domain.grid = { columns = 999, rows = 999, width = 3, height = 1 }", "domain.grid", "5000"),
    ("domain.grid = { CELLS, width = 3, height = 1, south = 3 }", "domain.grid.width", "with south"),
    ("domain.labels = ['a', 'a']", "domain.labels[1]", "repeats"),
    ("domain.labels = []", "domain.labels", "empty"),
    ("domain.labels = ['a', 1]", "domain.labels[1]", "must be a string"),
    ("domain.line = 0", "domain.line", ">= 1"),
    ("domain.line = 5001", "domain.line", "5000"),
    ("domain.points = []", "domain.points", "length >= 1"),
    ("domain.points = [[]]", "domain.points", "no columns"),
    ("domain.points = [[0, 1], [2]]", "domain.points[1]", "coordinates"),
    ("domain.points = [[0, 1], [2, 'x']]", "domain.points[1][1]", "must be a number"),
    ("domain.points = [[0, 1], [2, inf]]", "domain.points[1,1]", "finite"),
    ("domain = { points = [[0], [1]], labels = ['a'] }", "domain.labels", "2 labels"),
    ("domain.csv = { path = 'places.csv', x = 'x' }", "domain.csv", "x and y"),
    ("domain.csv = { path = 'none.csv', x = 'x', y = 'y' }", "domain.csv.path", "cannot be opened"),
    ("domain.csv = { path = 'places.csv', x = 'x', y = 'z' }", "domain.csv", "no column 'z'"),
    ("domain.csv = { path = 'places.csv', x = 'x', y = 'y' }", "domain.csv", "line 3, column y"),
    (
        "domain.csv = { path = 'names.csv', x = 'x', y = 'y', label = 'l' }",
        "domain.csv",
        "line 3, column l repeats the",
    ),
    ("domain.csv = { path = 'names.csv', x = 'x', y = 'y', label = 'm' }", "domain.csv", "line 3, column m is empty"),
    (
        "domain.csv = { path = 'names.csv', latitude = 'y', longitude = 'x' }",
        "domain.csv",
        "line 2, column y is out of",
    ),
    ("domain.csv = { path = '.', x = 'x', y = 'y' }", "domain.csv.path", "cannot be opened"),
    ("domain.csv = { path = '', x = 'x', y = 'y' }", "domain.csv.path", "is empty"),
    ("domain = { csv = { path = 'places.csv', latitude = 'x', longitude = 'x' }, unit = 'm' }", "domain.unit"),
]
PRIORS = [
    ("prior = {}", "prior", "exactly one of uniform"),
    ("prior = { uniform = true, counts = [1] }", "prior", "uniform and counts"),
    ("prior.uniform = false", "prior.uniform", "must be true"),
    ("prior = { uniform = true, smoothing = 1 }", "prior.smoothing", "combined with uniform"),
    ("prior.probabilities = [0.5, 0.5]", "prior.probabilities", "found 2; must be 6"),
    ("prior.checkins = { path = 'c.csv', user = false }", "prior.checkins", "requires a geographic grid"),
    ("prior.simulated.centres = []", "prior.simulated.centres", "length >= 1"),
    ("prior.simulated.centres = [{ x = 1, y = 1 }]", "prior.simulated.centres[0].spread", "missing"),
    ("prior.simulated.centres = [{ x = 1, y = 1, spread = 0 }]", "prior.simulated.centres[0].spread", "> 0"),
    ("prior.simulated.centres = [{ x = inf, y = 1, spread = 1 }]", "prior.simulated.centres[0].x", "<= 1e+100"),
    ("prior.simulated = { people = 0, centres = [] }", "prior.simulated.people", "an integer >= 1"),
    ("prior.simulated = { background = 2, centres = [] }", "prior.simulated.background", "a number <= 1"),
]
PRIORS_OF_LABELS = [
    ("prior.probabilities = [0.5, 0.5, 0.1]", "prior.probabilities", "does not sum to 1"),
    ("prior.probabilities = [0.5, -0.5, 1]", "prior.probabilities[1]", "-0.5"),
    ("prior.probabilities = [0.5, nan, 1]", "prior.probabilities[1]", "nan"),
    ("prior.probabilities = [0.5, 'x', 1]", "prior.probabilities[1]", "must be a number"),
    ("prior.counts = [1, 2]", "prior.counts", "found 2; must be 3"),
    ("prior.counts = [0, 0, 0]", "prior.counts", "all zero"),
    ("prior.counts = [1, -2, 0]", "prior.counts[1]", "-2"),
    ("prior = { counts = [1, 2, 0], smoothing = -1 }", "prior.smoothing", "-1"),
    ("prior.csv = { path = 'none.csv', column = 'x' }", "prior.csv.path", "cannot be opened"),
    ("prior.csv = { path = 'places.csv', column = 'z' }", "prior.csv", "no column 'z'"),
    ("prior.csv = { path = 'places.csv', column = 'x' }", "prior.csv.label", "false for rows in their order"),
    ("prior.csv = { path = 'places.csv', column = 'x', label = true }", "prior.csv.label", "or false"),
    ("prior.csv = { path = 'places.csv', column = 'x', label = '' }", "prior.csv", "no column ''"),
    ("prior.csv = { path = 'places.csv', column = 'x', label = false }", "prior.csv", "found 2; must be 3"),
    ("prior.csv = { path = 'three.csv', column = 'y' }", "prior.csv", "line 3, column y"),
    ("prior.csv = { path = 'bad.csv', column = 'x' }", "prior.csv", "utf-8"),
    ("prior.csv = { path = 'places.csv', column = 'x', delimiter = ';' }", "prior.csv.delimiter"),
    (
        "prior.simulated.centres = [{ x = 1, y = 1, spread = 1 }]",
        "prior.simulated",
        "places in the plane",
    ),
]
PRIORS_OF_PLACES = [
    ("prior.checkins = { path = 'none.csv', user = 'who' }", "prior.checkins.path", "cannot be opened"),
    ("prior.checkins = { path = 'c.csv' }", "prior.checkins.user", "or false: all rows are one person's"),
    ("prior.checkins = { path = 'c.csv', user = true }", "prior.checkins.user", "cannot be true"),
    ("prior.checkins = { path = 'c.csv', user = 'user' }", "prior.checkins", "line 1 has no column 'user'"),
    ("prior.checkins = { path = 'c.csv', user = '' }", "prior.checkins", "no column ''"),
    ("prior.checkins = { path = 'c.csv', user = 'who', only = 6.5 }", "prior.checkins.only", "integer or a string"),
    (
        "prior.checkins = { path = 'c.csv', user = 'who', delimiter = ';' }",
        "prior.checkins.delimiter",
        "Write it in [files]",
    ),
    ("prior.checkins = { path = 'c.csv', user = 'who', WHERE, only = 7 }", "prior.checkins.only", "one of the 2 users"),
    ("prior.checkins = { path = 'c.csv', user = 'who', WHERE, time = 'when' }", "prior.checkins", "no column 'when'"),
    ("prior.checkins = { path = 'c.csv', user = 'who', WHERE, time = 'at' }", "prior.checkins", "line 2, column at"),
    ("prior.checkins = { path = 'c.csv', user = 'who', WHERE, every = '1 min' }", "prior.checkins.time", "is missing"),
    ("prior.checkins = { path = 'c.csv', user = 'who', WHERE, gap = 'a lot' }", "prior.checkins.gap", "length of time"),
    ("prior.checkins = { path = 'c.csv', user = 'who', place = 'at' }", "prior.checkins.places", "is missing"),
    ("prior.checkins = { path = 'c.csv', user = 'who', places = { path = 'c.csv' } }", "prior.checkins.places.key"),
    (
        "prior.checkins = { path = 'c.csv', user = 'who', place = 'at', places = { path = 'no.csv', key = 'k' } }",
        "prior.checkins.places.path",
    ),
    (
        "prior.checkins = { path = 'c.csv', user = 'who', place = 'at', places = { path = 'c.csv', key = 'k' } }",
        "prior.checkins.places",
        "no column 'k'",
    ),
    ("prior.checkins = { path = 'c.csv', user = false, latitude = 'at', longitude = 'lon' }", "prior.checkins"),
    (
        "prior.checkins = { path = 'c.csv', user = false, latitude = 'lon', longitude = 'lat' }",
        "prior.checkins",
        "interchanged",
    ),
    (
        "prior.checkins = { path = 'c.csv', user = 'lon', latitude = 'lon', longitude = 'who' }",
        "prior.checkins",
        "two meanings",
    ),
    ("prior.checkins = { path = 'empty.csv', user = 'x', latitude = 'x', longitude = 'x' }", "prior.checkins"),
    ("prior.plt = { path = 'none' }", "prior.plt.path", "no trajectories"),
    ("prior.plt = { path = '.' }", "prior.plt.path", "no trajectories"),
    ("prior.plt = { path = '' }", "prior.plt.path", "is empty"),
]
COSTS = [
    ("cost = {}", "cost", "exactly one of distance"),
    ("cost.distance = 'euclidian'", "cost.distance", "Did you mean euclidean?"),
    ("cost.distance = 'haversine'", "cost.distance", "latitudes and longitudes"),
    ("cost = { distance = 'hamming', objective = 'worse' }", "cost.objective", "Did you mean worst?"),
    ("cost = { distance = 'hamming', power = 0 }", "cost.power", "> 0"),
    ("cost = { distance = 'hamming', scale = inf }", "cost.scale", "<= 1e+100"),
    ("cost.matrix = { path = 'none.csv' }", "cost.matrix.path", "cannot be opened"),
    ("cost.matrix = { path = 'none.npy' }", "cost.matrix.path", "cannot be opened"),
    ("cost.matrix = { path = 'flat.npy' }", "cost.matrix", "does not contain a matrix"),
    ("cost.matrix = { path = 'two.csv' }", "cost.matrix", "6 rows and 6 columns"),
    ("cost.matrix = { path = 'ragged.csv' }", "cost.matrix", "line 2"),
    ("cost.matrix = { path = 'places.csv' }", "cost.matrix", "line 1"),
    ("cost.matrix = { path = 'blank.csv' }", "cost.matrix", "contains no numbers"),
    ("cost.graph = { neighbours = 4, edges = [] }", "cost.graph", "edges and neighbours"),
]
REQUIREMENTS = [
    ("kind = 'metrik'", "privacy[1].kind", "Did you mean metric?"),
    ("kind = 'metric', distance = 'hamming'", "privacy[1].epsilon", "is missing"),
    ("kind = 'metric', epsilon = 0, distance = 'hamming'", "privacy[1].epsilon", "greater than 0"),
    ("kind = 'metric', epsilon = -0.5, distance = 'hamming'", "privacy[1].epsilon", "found -0.5;"),
    ("kind = 'metric', epsilon = nan, distance = 'hamming'", "privacy[1].epsilon", "finite number"),
    ("kind = 'metric', epsilon = -1e350, distance = 'hamming'", "privacy[1].epsilon", "must be"),
    ("kind = 'metric', epsilon = 'x', distance = 'hamming'", "privacy[1].epsilon", "found 'x'"),
    ("kind = 'metric', epsilon = true, distance = 'hamming'", "privacy[1].epsilon", "found True"),
    ("kind = 'metric', epsilon = 1e-999999999, distance = 'hamming'", "privacy[1].epsilon", "range"),
    ("kind = 'metric', epsilom = 1, distance = 'hamming'", "privacy[1].epsilom", "Did you mean epsilon?"),
    ("kind = 'metric', epsilon = 1", "privacy[1]", "exactly one of distance, matrix, graph"),
    ("kind = 'metric', epsilon = 1, distance = 'haversine'", "privacy[1].distance", "latitudes"),
    ("kind = 'metric', epsilon = 1, matrix = { path = 'two.csv' }", "privacy[1].matrix", "6 rows"),
    ("kind = 'metric', epsilon = 1, matrix = 'two.csv'", "privacy[1].matrix", "must be a table"),
    ("kind = 'metric', epsilon = 1, matrix = { file = 'x' }", "privacy[1].matrix.file", "not a known key"),
    ("kind = 'threshold', epsilon = 1, distance = 'hamming'", "privacy[1].radius", "is missing"),
    ("kind = 'threshold', epsilon = 1, radius = 0, distance = 'hamming'", "privacy[1].radius", "greater than 0"),
    ("kind = 'graph', epsilon = 1", "privacy[1]", "exactly one of edges"),
    ("kind = 'graph', epsilon = 0, neighbours = 4", "privacy[1].epsilon", "greater than 0"),
    ("kind = 'graph', epsilon = 1, neighbours = 6", "privacy[1].neighbours", "one of 4, 8"),
    ("kind = 'graph', epsilon = 1, edges = [[0, 6]]", "privacy[1].edges[0][1]", "from 0 to 5"),
    ("kind = 'graph', epsilon = 1, edges = [[0, -1]]", "privacy[1].edges[0][1]", "from 0 to 5"),
    ("kind = 'graph', epsilon = 1, edges = [['x', 1]]", "privacy[1].edges[0][0]", "found 'x'"),
    ("kind = 'graph', epsilon = 1, edges = [[0, 1, 2]]", "privacy[1].edges[0]", "length 2"),
    ("kind = 'graph', epsilon = 1, edges_csv = { path = 'no.csv' }", "privacy[1].edges_csv.path", "opened"),
    ("kind = 'graph', epsilon = 1, edges_csv = { path = 'c.csv' }", "privacy[1].edges_csv", "'source'"),
    ("kind = 'graph', epsilon = 1, radius = 0, distance = 'hamming'", "privacy[1].radius", "> 0"),
    ("kind = 'graph', epsilon = 1, radius = 1", "privacy[1]", "exactly one of distance, matrix"),
    ("kind = 'graph', epsilon = 1, edges = [], distance = 'hamming'", "privacy[1].distance", "with edges"),
    ("kind = 'distortion', distance = 'hamming'", "privacy[1].minimum", "is missing"),
    ("kind = 'distortion', minimum = -1, distance = 'hamming'", "privacy[1].minimum", "at least 0"),
    ("kind = 'distortion', minimum = 1, matrix = { path = 'two.csv' }", "privacy[1].matrix", "any number"),
    ("kind = 'distortion', minimum = 1, epsilon = 1", "privacy[1].epsilon", "not a known key"),
]
OTHERS = [
    ("titel = 'x'", "titel", "Did you mean title?"),
    ("version = 2", "version", "must be one of 1"),
    ("title = 3", "title", "found 3; must be a string"),
    ("observables.line = -1", "observables.line", "-1"),
    ("observables.lines = 1", "observables.lines", "Did you mean line?"),
    ("solver.names = 'x'", "solver.names", "Did you mean name?"),
    ("solver.tolerance = 0", "solver.tolerance", "greater than 0"),
    ("solver.time_limit = -1", "solver.time_limit", "greater than 0"),
    ("solver.threads = 0", "solver.threads", ">= 1"),
    ("solver.rows = 'lasy'", "solver.rows", "Did you mean lazy?"),
    ("solver.options = 3", "solver.options", "must be a table"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for name, text in {
        "places.csv": "x,y\n1,2\n3,four\n",
        "c.csv": CHECKINS,
        "names.csv": "x,y,l,m\n1,99,a,b\n2,3,a,\n",
        "three.csv": "y\n2\nfour\n1\n",
        "empty.csv": "x\n",
        "blank.csv": "\n",
        "two.csv": "0,1\n1,0\n",
        "ragged.csv": "0,1\n1\n",
        "negative.csv": "0,1\n-1,0\n",
        "nan.csv": "nan,1\n1,0\n",
        "inf.csv": "inf,1\n1,0\n",
        "bad.npy": "no",
    }.items():
        write(made, name, text)
    np.save(made / "flat.npy", np.zeros(3))
    (made / "bad.csv").write_bytes(b"x\n\xff\xfe\n")
    return made


def parts(name, *others):
    """Return how a document is made whose part of this name is a text."""
    return lambda text, folder: problem_of(document(*others, **{name: text}), folder)


def test_wrong_documents(folder):
    assert_refused_texts(WHOLE, folder=folder)
    assert_refused_texts(OTHERS, parts("rest"), folder)
    error = failure("a = " + "[" * 5000)
    assert error.path == "specification"


def test_wrong_domains(folder):
    rows = [(text.replace("CELLS", "columns = 3, rows = 2"), *row) for text, *row in DOMAINS]
    assert_refused_texts(rows, parts("domain"), folder)


def test_wrong_priors(folder):
    assert_refused_texts(PRIORS, parts("prior"), folder)
    assert_refused_texts(PRIORS_OF_LABELS, parts("prior", LABELS), folder)
    rows = [(text.replace("WHERE", "latitude = 'lat', longitude = 'lon'"), *row) for text, *row in PRIORS_OF_PLACES]
    assert_refused_texts(rows, parts("prior", BOX), folder)


def test_wrong_costs(folder):
    assert_refused_texts(COSTS, parts("cost"), folder)
    error = failure(document(cost="cost.matrix = { path = 'bad.npy' }"), folder)
    assert error.path == "cost.matrix"
    assert "has another format" in str(error)


def test_wrong_requirements(folder):
    assert_refused_texts(REQUIREMENTS, lambda text, folder: problem_of(second(text), folder), folder)


def test_specifications_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecificationError, match=r"missing\.toml: cannot be opened"):
        read_spec(tmp_path / "missing.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecificationError, match="UTF-8"):
        read_spec(tmp_path / "s.toml")


def test_what_is_at_a_wrong_place(tmp_path):
    with pytest.raises(SpecificationError, match="use read_spec"):
        spec.parse("city.toml")
    for name in ("epsilon", "toleranze"):
        with pytest.raises(InputError, match=f"{name}: is not a setting of a solver.*tolerance"):
            spec.parse(document()).design(**{name: 1})
    asked = md.sweep.parse(document(rest='sweep = { "privacy.0.epsilon" = [1, 2] }'))
    with pytest.raises(InputError, match="dask: has another type; found 'bool'"):
        md.sweep.run(asked, tmp_path / "swept", dask=True)
