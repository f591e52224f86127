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
from mechdesign.model._locate import EARTH_RADIUS_KM, Plane


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


def test_a_box_may_almost_reach_half_the_circumference_and_a_pole():
    assert BoundingBox.around(0, 0, 20015, 1).east == pytest.approx(90, abs=1e-3)
    assert BoundingBox.around(89.9, 0, 1, 22.2).north < 90
