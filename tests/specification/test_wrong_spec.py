"""Errors in a specification name the key and the problem."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row
from spec_examples import BOX, CHECKINS, EUCLIDEAN, GRID, LABELS, document, failure, write

from mechdesign import specification as spec
from mechdesign.errors import SpecificationError


def privacy(table):
    return document(privacy=f"privacy = [{table}]")


def second(table):
    return document(privacy=f'privacy = [{{ kind = "metric", epsilon = 1, distance = "hamming" }}, {table}]')


@each_row(
    ("text", "path", "words"),
    [
        # The file.
        ("title = ", "specification", "not valid TOML"),
        ("a = " + "[" * 5000, "specification", ""),
        (document(rest="titel = 'x'"), "titel", "Did you mean title?"),
        (document(rest="version = 2"), "version", "must be 1"),
        (document(rest="title = 3"), "title", "found 3; must be a string"),
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
            document(domain="domain.grid = { columns = 3, rows = 2, latitude = 40, width = 3, height = 1 }"),
            "domain.grid.longitude",
            "is missing",
        ),
        (
            document(domain="domain.grid = { columns = 3, rows = 2, latitude = 40, longitude = 4, width = 3 }"),
            "domain.grid.height",
            "is missing",
        ),
        (
            document(domain="domain.grid = { columns = 3, rows = 2, latitude = 40, south = 4, width = 3 }"),
            "domain.grid",
            "has both latitude and the border south",
        ),
        (
            document(
                domain="domain.grid = { columns = 3, rows = 2, latitude = 4, longitude = 4, width = 3, height = 1, "
                "unit = 'm' }"
            ),
            "domain.grid.unit",
            "is not a known key",
        ),
        (
            document(
                domain="domain.grid = { columns = 3, rows = 2, latitude = 139, longitude = 4, width = 3, height = 1 }"
            ),
            "domain.grid.latitude",
            "look interchanged",
        ),
        (
            document(
                domain="domain.anchors = { columns = 3, rows = 2, latitude = 39, longitude = 4, width = 3, height = 0 }"
            ),
            "domain.anchors.height",
            "is not positive",
        ),
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
        (document(domain=LABELS + "\ndomain.unit = 'm'"), "domain.unit", "cannot be combined with labels"),
        (document(domain="domain.labels = ['a', 'a']"), "domain.labels[1]", "repeats"),
        (document(domain="domain.labels = []"), "domain.labels", "empty"),
        (document(domain="domain.labels = ['a', 1]"), "domain.labels[1]", "must be a string"),
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
            "cannot be combined",
        ),
        (document(rest="observables.line = -1"), "observables.line", "-1"),
        (document(rest="observables.lines = 1"), "observables.lines", "Did you mean line?"),
        # The prior.
        (document(prior="prior = {}"), "prior", "exactly one of uniform"),
        (document(prior="prior = { uniform = true, counts = [1] }"), "prior", "uniform and counts"),
        (document(prior="prior.uniform = false"), "prior.uniform", "must be true"),
        (document(prior="prior = { uniform = true, smoothing = 1 }"), "prior.smoothing", "combined with uniform"),
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
        (document(prior="prior.checkins = { path = 'c.csv' }"), "prior.checkins", "requires a geographic grid"),
        (document(BOX, "prior.checkins = { path = 'none.csv' }"), "prior.checkins.path", "cannot be opened"),
        (document(BOX, "prior.checkins = { path = 'c.csv' }"), "prior.checkins", "no column 'user'"),
        (
            document(BOX, "prior.checkins = { path = 'c.csv', only = 6.5 }"),
            "prior.checkins.only",
            "integer or a string",
        ),
        (document(BOX, "prior.checkins = { path = 'c.csv', delimiter = ';;' }"), "prior.checkins.delimiter", ";;"),
        (
            document(
                BOX, "prior.checkins = { path = 'c.csv', user = 'who', latitude = 'lat', longitude = 'lon', only = 7 }"
            ),
            "prior.checkins.only",
            "one of the 2 users in the data",
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
        (document(cost="cost.matrix = { path = 'flat.npy' }"), "cost.matrix", "does not contain a matrix"),
        (document(cost="cost.matrix = { path = 'two.csv' }"), "cost.matrix", "6 rows and 6 columns"),
        (document(cost="cost.matrix = { path = 'ragged.csv' }"), "cost.matrix", "line 2"),
        (document(cost="cost.matrix = { path = 'places.csv' }"), "cost.matrix", "line 1"),
        (document(cost="cost.matrix = { path = 'blank.csv' }"), "cost.matrix", "is empty"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'negative.csv' }"), "cost.matrix[1,0]", "-9"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'nan.csv' }"), "cost.matrix[0,0]", "nan"),
        (document("domain.line = 2", cost="cost.matrix = { path = 'inf.csv' }"), "cost.matrix", "finite"),
        (document(cost="cost.graph = { neighbours = 4 }", rest="observables.line = 2"), "cost.graph", "secrets only"),
        (document(cost="cost.graph = { neighbours = 4, edges = [] }"), "cost.graph", "edges and neighbours"),
        # The requirements.
        (document(privacy="[privacy]\nkind = 'metric'"), "privacy", "Write [[privacy]] instead of [privacy]"),
        (privacy("{}"), "privacy[0].kind", "is missing"),
        (privacy("{ kind = 3 }"), "privacy[0].kind", "found 3"),
        (second("{ kind = 'metrik' }"), "privacy[1].kind", "Did you mean metric?"),
        (second("{ kind = 'metric', distance = 'hamming' }"), "privacy[1].epsilon", "is missing"),
        (second("{ kind = 'metric', epsilon = 0, distance = 'hamming' }"), "privacy[1].epsilon", "greater than 0"),
        (second("{ kind = 'metric', epsilon = -0.5, distance = 'hamming' }"), "privacy[1].epsilon", "found -0.5;"),
        (second("{ kind = 'metric', epsilon = nan, distance = 'hamming' }"), "privacy[1].epsilon", "finite number"),
        (second("{ kind = 'metric', epsilon = -1e350, distance = 'hamming' }"), "privacy[1].epsilon", "must be"),
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
        # Remedies never name a function of Python.
        (
            document(domain="domain.line = 4", privacy="privacy = [{ kind = 'graph', epsilon = 1, blocks = 2 }]"),
            "privacy[0].blocks",
            "must be a domain with grid = { … }. Use categories",
        ),
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
