"""Observables in a specification: a subset of the secrets, or a coarser grid."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row
from spec_examples import LABELS, assert_refused_texts

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.errors import SpecificationError

GRID = "domain.grid = { columns = 4, rows = 2, width = 4.0, height = 2.0 }"
BOX = "domain.grid = { columns = 4, rows = 2, south = 40.0, north = 40.02, west = -74.02, east = -73.98 }"


def read(observables: str, domain: str = GRID, cost: str = 'distance = "euclidean"') -> md.Problem:
    metric = f'{{ kind = "metric", epsilon = 1, distance = "{"hamming" if domain == LABELS else "euclidean"}" }}'
    text = (
        f"{domain}\nprior.uniform = true\ncost = {{ {cost} }}\nobservables = {{ {observables} }}\nprivacy = [{metric}]"
    )
    return spec.parse(text).problem()


def test_some_of_the_secrets() -> None:
    problem = read('subset = [6, "1"]')
    whole = read("blocks = 1")
    assert problem.observables.labels == ("1", "6")
    np.testing.assert_array_equal(problem.cost, whole.cost[:, [1, 6]])
    steps = read("subset = [1, 6]", cost="graph = { neighbours = 4 }")
    assert steps.cost[0].tolist() == [1.0, 3.0]
    assert read('subset = ["c", "a"]', LABELS, 'distance = "hamming"').cost.tolist() == [[0, 1], [1, 1], [1, 0]]
    assert md.design(problem).certificate.holds


def test_all_of_the_secrets_are_the_secrets() -> None:
    for observables in ("subset = [0, 1, 2, 3, 4, 5, 6, 7]", "blocks = 1"):
        problem = read(observables)
        assert problem.observables is problem.secrets


@each_row("domain", [GRID, BOX])
def test_a_coarser_grid(domain: str) -> None:
    problem = read("blocks = 2", domain)
    found, cells = problem.observables, problem.secrets
    assert (found.cells.columns, found.cells.rows, found.size) == (2, 1, 2)
    # Each answer is the centre of its block.
    for answer, block in enumerate(([0, 1, 4, 5], [2, 3, 6, 7])):
        np.testing.assert_allclose(found.points[answer], cells.points[block].mean(axis=0))
    assert problem.cost.shape == (8, 2)
    wide = read("blocks = [4, 1]", domain).observables
    assert (wide.cells.columns, wide.cells.rows) == (1, 2)
    assert md.design(problem).certificate.holds


WRONG = [
    ("subset = []", "observables.subset", "length >= 1"),
    ("subset = [8]", "observables.subset[0]", "0 to 7"),
    ('subset = [1, "1"]', "observables.subset[1]", "repeats subset[0]"),
    ("blocks = 3", "observables.blocks", "does not divide the 4 columns; found 3; must be one of 1, 2, 4"),
    ("blocks = [2, 0]", "observables.blocks", "does not divide the 2 rows"),
    ("blocks = 2, subset = [1]", "observables", "exclude each other"),
    ('blocks = 2, unit = "km"', "observables.unit", "cannot be combined with blocks"),
]


def test_wrong_observables() -> None:
    assert_refused_texts(WRONG, lambda text, folder: read(text))
    words = "needs secrets on a grid; found 3 labels"
    assert_refused_texts(
        [("blocks = 2", "observables.blocks", words)], lambda text, folder: read(text, LABELS, 'distance = "hamming"')
    )


ANSWERS = "grid = { columns = 4, rows = 2, south = 40.0, north = 40.02, west = -74.02, east = -73.98 }"
IN_PLANE = "grid = { columns = 4, rows = 2, width = 30.0, height = 20.0 }"
ANCHORS = "domain.anchors = { columns = 3, rows = 3, width = 4.0, height = 2.0 }"
CONTINUOUS = 'privacy = [{ kind = "continuous", epsilon = 1 }]'


@each_row("distance", ["euclidean", "manhattan", "chebyshev"])
@each_row(
    ("domain", "observables"),
    [
        (GRID, ANSWERS),
        (BOX, IN_PLANE),
        ('domain.points = [[0, 0], [3, 3]]\ndomain.unit = "km"', ANSWERS),
        (BOX, 'points = [[0, 0], [3, 3]], unit = "km"'),
    ],
)
def test_a_plane_and_degrees_have_no_distance(distance: str, domain: str, observables: str) -> None:
    with pytest.raises(SpecificationError, match=r"cost\.distance: has a different kind of coordinates"):
        read(observables, domain, f'distance = "{distance}"')


def test_anchors_on_a_plane_have_no_answers_in_degrees() -> None:
    prior = "prior.uniform = true"
    text = f'{ANCHORS}\n{prior}\ncost.distance = "euclidean"\nobservables.{ANSWERS}\n{CONTINUOUS}\n'
    with pytest.raises(SpecificationError, match="has a different kind of coordinates"):
        spec.parse(text).problem()


def test_a_matrix_of_costs_needs_no_common_places(tmp_path) -> None:
    (tmp_path / "c.csv").write_text("\n".join(",".join("1" * 8) for _ in range(8)) + "\n")
    text = f'{GRID}\nprior.uniform = true\ncost.matrix = {{ path = "c.csv" }}\nobservables.{ANSWERS}\n'
    metric = 'privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]'
    assert spec.parse(text + metric, tmp_path).problem().cost.shape == (8, 8)
