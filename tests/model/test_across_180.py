"""Boxes across 180 degrees, and latitudes and longitudes that look interchanged."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.data.trajectories import Trajectory, to_grid
from mechdesign.errors import InputError, InputWarning
from mechdesign.model._answers import sample_at
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._locate import Lattice, wrap_longitudes

FIJI = {"columns": 4, "rows": 2, "south": -19.0, "north": -16.0, "west": 177.0}
# The same box, further west.
TWIN = Domain.geographic_grid(4, 2, -19.0, -16.0, 100.0, 105.0)


@each_row(("west", "east"), [(177.0, 182.0), (177.0, -178.0), (177.3, -177.7), (180.0, 190.0)])
def test_a_box_may_cross_180_degrees(west: float, east: float) -> None:
    box = BoundingBox(-19, -16, west, east)
    assert (box.west, box.east) == (west, east if east > 0 else round(east + 360, 9))
    assert str(box) == f"latitude -19 to -16, longitude {west:g} to {east - 360 * (east > 0):g}"
    # As it is stored.
    assert BoundingBox(box.south, box.north, box.west, box.east) == box


# Just inside what is refused.
def test_the_widest_boxes_are_taken() -> None:
    assert BoundingBox(-19, -16, 90.1, -90).east == 270
    assert BoundingBox(-89.9, -16, 177, -178).south == -89.9


def test_degrees_from_0_to_360_are_those_of_a_box() -> None:
    assert BoundingBox(35, 36, 285.7, 286.1) == BoundingBox(35, 36, -74.3, -73.9)


def test_a_box_across_180_degrees_is_the_plane_that_it_is_elsewhere() -> None:
    domain = Domain.geographic_grid(**FIJI, east=-178.0)
    np.testing.assert_allclose(md.distances.euclidean(domain), md.distances.euclidean(TWIN), rtol=1e-12)
    np.testing.assert_allclose(md.distances.haversine(domain), md.distances.haversine(TWIN), rtol=1e-12)
    assert domain.degrees is not None
    assert domain.degrees[:4, 1].tolist() == [177.625, 178.875, -179.875, -178.625]
    assert TWIN.degrees is TWIN.coordinates


def test_places_on_either_side_are_in_their_cells() -> None:
    domain = Domain.geographic_grid(**FIJI, east=182.0)
    assert domain.cell_of(np.full(5, -18.9), np.array([177.0, 179.99, -179.9, 180.1, -178.0])).tolist() == [
        0,
        2,
        2,
        2,
        3,
    ]
    for beyond in (176.9, -177.9, 0.0):
        with pytest.raises(InputError, match="lies outside the grid"):
            domain.cell_of(-18.9, beyond)
    visits = to_grid([Trajectory("u", [-18.9] * 4, [179.0, -179.9, -178.1, -170.0])], domain)
    assert ([cells.tolist() for cells in visits.cells], visits.outside) == ([[1, 2, 3]], 1)
    places = Domain.from_coordinates([-18.0, -17.0, -17.5], [179.5, -179.5, 180.0])
    assert places.degrees is not None
    assert places.degrees[:, 1].tolist() == [179.5, -179.5, 180.0]
    assert (places.cell_of(-17.0, -179.6), places.cell_of(-18.0, 179.4)) == (1, 0)


def test_anchors_across_180_degrees_weigh_as_elsewhere() -> None:
    domain, twin = (Domain.geographic_anchors(3, 3, -19, -16, west, west + 5) for west in (177.0, 100.0))
    assert isinstance(domain.lattice, Lattice)
    assert isinstance(twin.lattice, Lattice)
    assert domain.lattice.place(-18.5, -179.75) == twin.lattice.place(-18.5, 103.25)
    near = domain.lattice.corners(np.array([-18.5]), np.array([-179.75]))
    assert near.weights.tolist() == twin.lattice.corners(np.array([-18.5]), np.array([103.25])).weights.tolist()


def test_designs_across_180_degrees_show_degrees_within_180(tmp_path) -> None:
    domain = Domain.geographic_grid(**FIJI, east=182.0)
    distance = md.distances.haversine(domain)
    privacy = [md.MetricPrivacy(0.01, distance)]
    problem = md.Problem(md.Prior.uniform(8), distance, privacy, secrets=domain, observables=domain)
    md.save(md.design(problem, tolerance=0.01), tmp_path / "d", report=False)
    design = md.Design.load(tmp_path / "d")
    again, channel = design.problem, design.channel
    assert again.secrets is not None
    assert again.secrets.geographic == domain.geographic
    places = sample_at(again, channel, -18.9, -179.9, size=50, rng=1).place
    assert places is not None
    assert -180 <= places[:, 1].min() < 0 < places[:, 1].max() <= 180


def test_cells_of_geojson_are_cut_at_180_degrees() -> None:
    from mechdesign.synthesis.formats._geojson import _features

    domain = Domain.geographic_grid(**FIJI, east=182.0)
    shapes = [each["geometry"] for each in _features(domain, domain.labels, "secrets", prior=np.ones(8))]
    assert [shape["type"] for shape in shapes[:4]] == ["Polygon", "Polygon", "MultiPolygon", "Polygon"]
    numbers = np.array(json.loads(json.dumps([shapes[3]["coordinates"], *shapes[2]["coordinates"]])))
    assert numbers[..., 0].min() == -180
    assert numbers[..., 0].max() == 180


@each_row(
    ("west", "east", "expected"),
    [
        (-180, 180, [170, -170, -170, 180, -180]),
        (177, 182, [170, 190, 190, 180, 180]),
        (0, 90, [170, -170, -170, 180, -180]),
    ],
)
def test_longitudes_turn_to_a_box(west: float, east: float, expected: list[float]) -> None:
    assert wrap_longitudes(np.array([170.0, -170.0, 190.0, 180.0, -180.0]), west, east).tolist() == expected


# --- interchanged ------------------------------------------------------------------------------------------------


@each_row(
    "make",
    [
        lambda: BoundingBox(139, 140, 91, 92),
        lambda: BoundingBox(400, 401, 35, 36),
        lambda: Domain.from_coordinates([139.0, 400.0], [35.0, 36.0]),
        lambda: TWIN.cell_of(103.0, -118.0),
    ],
)
def test_what_is_wrong_either_way_is_not_said_to_be_interchanged(make) -> None:
    with pytest.raises(InputError) as raised:
        make()
    assert "interchanged" not in str(raised.value)


@each_row(
    ("box", "warned"),
    [
        ((-74.3, -73.7, 40.5, 41.0), True),
        ((-61, -60, -60, 75), True),
        ((-61, -59.9, 40, 41), False),
        ((-61, -60, -60.1, 75), False),
        ((-61, -60, 74, 75.1), False),
        ((40.5, 41.0, -74.3, -73.7), False),
    ],
)
def test_a_box_in_the_antarctic_is_doubted(box: tuple[float, float, float, float], warned: bool) -> None:
    south, north, west, east = box
    for make in (
        lambda: Domain.geographic_grid(2, 2, *box),
        lambda: Domain.geographic_anchors(2, 2, *box),
        lambda: Domain.from_coordinates([south, north], [west, east]),
    ):
        if warned:
            with pytest.warns(InputWarning, match="look interchanged"):
                make()
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                make()


@each_row("made", [md.Domain.geographic_grid, md.Domain.geographic_anchors])
def test_a_box_as_west_south_east_north_warns(made):
    with pytest.warns(InputWarning, match="look like west, south, east and north"):
        made(3, 3, -74.02, 40.70, -73.92, 40.80)


@each_row(
    "box",
    [(40.7, 40.8, -74.02, -73.92), (-56.0, 13.0, -82.0, -34.0), (-10.0, 10.0, -20.0, 20.0), (35.0, 71.0, -25.0, 45.0)],
)
def test_cities_and_continents_do_not_warn(box):
    assert md.Domain.geographic_grid(3, 3, *box).size == 9
