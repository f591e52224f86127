from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from mechdesign.errors import InputError
from mechdesign.model._domain import BoundingBox, Domain, Grid
from mechdesign.model._plane import EARTH_RADIUS_KM, Plane


def test_grid_has_row_major_cell_centres():
    domain = Domain.grid(columns=20, rows=15, width=15.0, height=8.0, unit="km")
    assert domain.size == len(domain) == 300
    assert domain.cells == Grid(20, 15, 15.0, 8.0)
    assert domain.unit == "km"
    assert domain.points.dtype == np.float64
    assert domain.labels == tuple(str(i) for i in range(300))
    assert domain.geographic is None
    assert domain.coordinates is None
    for row in range(15):
        for column in range(20):
            x, y = domain.points[row * 20 + column]
            assert x == float(Fraction(2 * column + 1, 2) * 15 / 20)
            assert y == pytest.approx(float(Fraction(2 * row + 1, 2) * 8 / 15), rel=1e-15)


@given(st.integers(1, 40), st.integers(1, 40))
def test_unit_cells_have_exact_centres(columns, rows):
    points = Domain.grid(columns, rows, columns, rows).points
    assert set(points[:, 0]) == {column + 0.5 for column in range(columns)}
    assert set(points[:, 1]) == {row + 0.5 for row in range(rows)}


def test_values_cannot_be_changed():
    given_points = np.zeros((2, 2))
    domain = Domain.from_points(given_points)
    given_points[0, 0] = 9.0
    assert domain.points[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        domain.points[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        domain.unit = "m"
    coordinates = Domain.geographic_grid(2, 2, 0, 1, 0, 1).coordinates
    with pytest.raises(ValueError, match="read-only"):
        coordinates[0, 0] = 1.0


def test_geographic_grid_projects_at_the_latitude_that_great_circles_reach():
    domain = Domain.geographic_grid(columns=4, rows=2, south=39.8, north=40.0, west=116.2, east=116.6)
    degree = math.pi * EARTH_RADIUS_KM / 180
    assert domain.unit == "km"
    assert domain.geographic == BoundingBox(39.8, 40.0, 116.2, 116.6)
    assert domain.cells.height == pytest.approx(0.2 * degree)
    reached = math.atan(math.tan(math.radians(40.0)) / math.cos(math.radians(0.2)))
    assert domain.cells.width == pytest.approx(0.4 * degree * math.cos(reached), rel=1e-13)
    assert domain.cells.width < 0.4 * degree * math.cos(reached)
    assert domain.plane == Plane.over(39.8, 40.0, 116.2, 116.6)
    np.testing.assert_allclose(domain.coordinates[0], [39.85, 116.25])
    np.testing.assert_allclose(domain.coordinates[-1], [39.95, 116.55])
    # Row 0 is the southernmost: latitude grows with y, longitude with x, both by the scale of the projection.
    scale = np.array([degree * math.cos(reached), degree])
    np.testing.assert_allclose(domain.points, (domain.coordinates[:, ::-1] - [116.2, 39.8]) * scale, rtol=1e-9)


def test_grid_from_coordinates_agrees_with_geographic_grid():
    box = Domain.geographic_grid(columns=5, rows=3, south=-10, north=-9, west=20, east=22)
    again = Domain.from_coordinates(box.coordinates[:, 0], box.coordinates[:, 1])
    # The places lie in a smaller box, whose plane is a little wider.
    np.testing.assert_allclose(again.points, box.points - box.points[0], rtol=1e-2)
    np.testing.assert_array_equal(again.coordinates, box.coordinates)
    assert again.unit == "km"
    assert again.cells is None


def test_one_place_at_a_pole_is_a_domain():
    assert Domain.from_coordinates([90.0], [180.0]).points.tolist() == [[0.0, 0.0]]


def test_a_box_without_a_plane_below_the_great_circle_is_drawn_at_its_middle():
    for box in [(0, 90, 0, 1), (-90, 0, 0, 1), (0, 1, 0, 180), (-90, 90, -180, 180)]:
        domain = Domain.geographic_grid(2, 2, *box)
        assert not domain.plane.shorter
        assert domain.plane.cosine == math.cos(math.radians((box[0] + box[1]) / 2))
        assert np.isfinite(domain.points).all()


def test_labels_only():
    domain = Domain.from_labels(["flu", "cold"])
    assert domain.points.shape == (2, 0)
    assert domain.labels == ("flu", "cold")
    assert Domain.from_labels(name for name in "ab").labels == ("a", "b")
    assert [type(name) for name in Domain.from_labels(np.array(["a", "b"])).labels] == [str, str]


def test_repr_is_short():
    assert repr(Domain.grid(2, 1, 2, 1)) == "Domain(size: 2, cells: 2 × 1, box: 2 × 1 km)"
    assert "latitude: 0 to 1" in repr(Domain.geographic_grid(1, 1, 0, 1, 0, 1))


@each_row(
    ("build", "path", "words"),
    [
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
        (lambda: Domain.from_points([[None]]), "points[0,0]", "nan"),
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
    ],
)
def test_wrong_inputs_are_refused_by_name(build, path, words):
    with pytest.raises(InputError) as raised:
        build()
    assert raised.value.path == path
    assert words in str(raised.value)


def test_the_bounds_themselves_are_accepted():
    whole = Domain.geographic_grid(1, 1, -90, 90, -180, 180)
    assert whole.coordinates.tolist() == [[0.0, 0.0]]
    assert Domain.from_coordinates([-90, 90], [0, 180]).size == 2


def test_a_part_keeps_labels_units_and_coordinates() -> None:
    domain = Domain.geographic_grid(3, 2, 40.0, 41.0, -74.0, -73.0)
    part = domain.part([1, 4])
    assert (part.labels, part.unit, part.cells) == (("1", "4"), "km", None)
    np.testing.assert_array_equal(part.points, domain.points[[1, 4]])
    assert domain.coordinates is not None
    np.testing.assert_array_equal(part.coordinates, domain.coordinates[[1, 4]])
    assert domain.part(range(6)) is domain
    for wrong in ([4, 1], [1, 1], [6], []):
        with pytest.raises(InputError):
            domain.part(wrong)


@each_row(("latitude", "longitude"), [(0.0, 0.0), (45.757, 4.832), (-33.9, 151.2), (70.0, -180.0), (-80.0, 180.0)])
def test_a_box_around_a_place_has_the_given_size(latitude, longitude):
    box = BoundingBox.around(latitude, longitude, width=8, height=6)
    assert (box.south + box.north) / 2 == pytest.approx(latitude, abs=1e-12)
    turns = ((box.west + box.east) / 2 - longitude) / 360
    assert turns == pytest.approx(round(turns), abs=1e-12)
    # Great-circle lengths, by the law of haversines.
    degree = math.radians(1) * EARTH_RADIUS_KM
    assert (box.north - box.south) * degree == pytest.approx(6, rel=1e-9)
    half = math.sin(math.radians(box.east - box.west) / 2) * math.cos(math.radians(latitude))
    assert 2 * EARTH_RADIUS_KM * math.asin(half) == pytest.approx(8, rel=1e-5)
    assert box.plane.shorter


@each_row(
    ("given", "path", "words"),
    [
        ((91, 0, 1, 1), "latitude", "look interchanged"),
        ((-139.7, 35.7, 1, 1), "latitude", "look interchanged"),
        ((400, 0, 1, 1), "latitude", "between -90 and 90"),
        ((0, 180.5, 1, 1), "longitude", "between -180 and 180"),
        ((math.nan, 0, 1, 1), "latitude", "not finite"),
        ((0, math.inf, 1, 1), "longitude", "not finite"),
        (("45", 0, 1, 1), "latitude", "not a number"),
        ((True, 0, 1, 1), "latitude", "not a number"),
        ((0, None, 1, 1), "longitude", "not a number"),
        ((0, 0, 0, 1), "width", "not positive"),
        ((0, 0, 1, 0), "height", "not positive"),
        ((0, 0, -1, 1), "width", "not positive"),
        ((0, 0, 1, -1), "height", "not positive"),
        ((0, 0, math.inf, 1), "width", "not finite"),
        ((0, 0, 1, math.nan), "height", "not finite"),
        ((0, 0, "8 km", 1), "width", "not a number"),
        ((89.9, 0, 1, 30), "height", "less than 22.239 km"),
        ((90, 0, 1, 1), "height", "reaches a pole"),
        ((0, 0, 20016, 1), "width", "less than 20015.1 km"),
        ((-89.999, 0, 1, 0.1), "width", "half the circumference"),
    ],
)
def test_wrong_boxes_around_a_place(given, path, words):
    with pytest.raises(InputError, match=words) as refused:
        BoundingBox.around(*given)
    assert refused.value.path == path


def test_a_box_may_almost_reach_half_the_circumference_and_a_pole():
    assert BoundingBox.around(0, 0, 20015, 1).east == pytest.approx(90, abs=1e-3)
    assert BoundingBox.around(89.9, 0, 1, 22.2).north < 90
