"""Which places are outside: of a grid or some of its cells, of anchors, and of places within a reach of each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.certify._bundle import read
from mechdesign.errors import InputError
from mechdesign.synthesis._bundle import restore_domain
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._registry import FORMATS

LINE = md.Domain.from_points([[0, 0], [1, 0], [3, 0]], unit="km")
TOWNS = md.Domain.from_coordinates([52.5, 48.1, 53.6], [13.4, 11.6, 10.0], ["Berlin", "München", "Hamburg"])
CITY = md.Domain.geographic_grid(4, 3, 35.6, 35.8, 139.6, 139.9)
SOME = CITY.part([0, 1, 5, 6])
ANCHORS = md.Domain.anchors(3, 2, 0.1, 0.3)


def design(domain: md.Domain) -> md.Design:
    n = domain.size
    distance = md.distances.hamming(n)
    return md.design(md.Problem(md.Prior.uniform(n), distance, [md.MetricPrivacy(1, distance)], secrets=domain))


# Just inside and just outside: the reach of LINE is 2, from 1 to 3.
@each_row(
    ("domain", "inside", "beyond", "answer"),
    [
        (LINE, (5.0, 0.0), (5.00000001, 0.0), 2),
        (LINE, (0.0, -2.0), (0.0, -2.00000001), 0),
        (CITY, (35.6, 139.6), (math.nextafter(35.6, 0), 139.6), 0),
        (SOME, (35.6, 139.74), (35.6, 139.75), 1),
        (SOME, (35.7, 139.8), (35.7, 139.826), 3),
        (ANCHORS, (0.1, 0.3), (math.nextafter(0.1, 1), 0.3), 5),
        (ANCHORS, (0.0, 0.0), (-5e-324, 0.0), 0),
    ],
)
def test_at_the_border(
    domain: md.Domain, inside: tuple[float, float], beyond: tuple[float, float], answer: int
) -> None:
    assert domain.cell_of(*inside) == answer
    with pytest.raises(InputError, match=r"place: (lies|is far)"):
        domain.cell_of(*beyond)
    assert domain.cell_of(*beyond, outside="nearest") in range(domain.size)


@each_row(
    ("domain", "place", "message"),
    [
        (TOWNS, (-35.6, 139.8), "is far from every place of the domain; .* within 505.6 km of a place of the domain"),
        (TOWNS, (0, 0), "is far from every place"),
        (TOWNS, (11.6, 48.1), "Latitude and longitude look interchanged"),
        (SOME, (35.7, 139.61), "lies in a cell that is not a secret"),
        (SOME, (-35.61, 139.8), "lies outside the grid"),
        (SOME.part([0, 3]), (35.61, 139.7), "lies in a cell that is not a secret"),
        (ANCHORS, (-36, -139.7), "lies outside the anchors; .* x from 0 to 0.1, y from 0 to 0.3"),
        (md.Domain.anchors(2, 2, 1, 1).part([0, 3]), (9, 9), "is far from every place"),
        (md.Domain.geographic_anchors(2, 2, 10, 11, 10, 11), (40, 10.5), "lies outside the anchors; .* latitude from"),
        (LINE, ([0, 9, 9], [0, 0, 0]), r"place\[1\]: is far from every place of the domain, as are 1 others"),
    ],
)
def test_the_other_side_of_the_earth_is_refused(domain: md.Domain, place: tuple[object, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        domain.cell_of(*place)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        design(domain).sample_at(*place)  # type: ignore[arg-type]


def test_a_place_within_a_square_is_not_called_swapped() -> None:
    with pytest.raises(InputError, match=r"in a cell that is a secret. Leave it out, or take the nearest cell"):
        md.Domain.grid(2, 2, 2, 2).part([0]).cell_of(0.5, 1.5)


def test_a_reach_of_ones_own_in_the_unit_of_the_domain() -> None:
    assert LINE.cell_of(0, 4, reach=4) == 0
    with pytest.raises(InputError, match=r"within 3.999 km of a place of the domain"):
        LINE.cell_of(0, 4, reach=3.999)
    # A degree of a meridian is 111.195 km.
    assert TOWNS.cell_of(54.6, 10.0, reach=111.2) == 2
    with pytest.raises(InputError, match="is far"):
        TOWNS.cell_of(54.6, 10.0, reach=111.19)
    assert TOWNS.cell_of(-52.5, -166.6, reach=20_016) in range(3)
    for wrong, message in ((-1, "reach: is negative"), (math.nan, "is not finite"), ("2", "is not a number")):
        with pytest.raises(InputError, match=message):
            LINE.cell_of(0, 0, reach=wrong)  # type: ignore[arg-type]
    for domain in (CITY, SOME, ANCHORS):
        with pytest.raises(InputError, match="reach: does not apply to this domain"):
            domain.cell_of(0.0, 0.0, reach=1)


@each_row("points", [[[1, 1]], [[1, 1], [1, 1]]])
def test_without_two_places_apart_a_reach_must_be_given(points: list[list[float]]) -> None:
    one = md.Domain.from_points(points, unit="km")
    with pytest.raises(InputError, match=r"reach: is missing, .* must be a distance in km"):
        one.cell_of(1, 1)
    assert one.cell_of(1, 2, reach=1) == one.cell_of(9, 9, outside="nearest") == 0


def test_near_the_antimeridian_the_nearest_place_is_the_nearest_on_the_globe() -> None:
    fiji = md.Domain.from_coordinates([-17, -17, -17], [178.0, 179.0, 179.9])
    assert fiji.cell_of(-17, -179.9) == 2


def test_some_cells_of_a_grid_are_known_again_from_files(tmp_path) -> None:
    md.save(design(SOME), tmp_path, report=False)
    found = read(tmp_path)
    domain = restore_domain(found, "secrets", found.metadata["secrets"])
    assert domain is not None
    assert domain.within is not None
    assert domain.within.members.tolist() == [0, 1, 5, 6]
    assert domain.within.geographic == CITY.geographic
    # Files that do not say so keep a reach about each place.
    described = {name: value for name, value in found.metadata["secrets"].items() if name != "within"}
    older = restore_domain(found, "secrets", described)
    assert older is not None
    assert older.cell_of(35.63, 139.63) == 0
    with pytest.raises(InputError, match="is far from every place"):
        older.cell_of(-35.6, 139.8)


@each_row("step", [0.1, 0.7, 100.1])
@each_row("reach", [None, 1])
def test_a_place_at_exactly_the_reach_is_inside_whatever_rounding_did(step: float, reach: int | None) -> None:
    street = md.Domain.from_points([(k * step, 5e5) for k in range(8)], unit="m")
    for k in range(9):
        place = (7 * step + step, 5e5) if k == 8 else (k * step, 5e5 + step)
        assert street.cell_of(*place, reach=None if reach is None else step) == min(k, 7)
    with pytest.raises(InputError, match="is far"):
        street.cell_of(8.001 * step, 5e5, reach=None if reach is None else step)


@each_row("domain", [LINE, TOWNS, SOME, md.Domain.grid(4, 3, 4, 3).part([0, 5, 6, 11])])
def test_javascript_takes_the_same_places_for_the_same_secrets(domain: md.Domain) -> None:
    pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")
    from javascript import Module

    made = design(domain)
    module = Module(b"".join(FORMATS["js"].parts(Exported(made.problem, made.channel, made.certificate))).decode())
    rng = np.random.default_rng(3)
    known = domain.places(domain.axes)
    assert known is not None
    names = ("lat", "lon") if domain.coordinates is not None else ("x", "y")
    spread = np.ptp(known, axis=0) + 1e-3
    places = known.min(axis=0) + spread * rng.uniform(-1.2, 2.2, (60, 2))
    refused = 0
    for place in places.tolist():
        at = dict(zip(names, place, strict=True))
        nearest = domain.cell_of(*place, outside="nearest")
        assert module.call("cell", at, {"outside": "nearest"}) == nearest
        try:
            expected = domain.cell_of(*place)
        except InputError:
            refused += 1
            with pytest.raises(
                RuntimeError, match=r"from every secret|is outside the grid|is in a cell that is not a secret"
            ):
                module.call("cell", at, {})
        else:
            assert module.call("cell", at, {}) == expected
    assert 5 < refused < 60
    if domain.degrees is not None:
        for place in np.column_stack((rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60))).tolist():
            nearest = domain.cell_of(*place, outside="nearest")
            assert module.call("cell", dict(zip(names, place, strict=True)), {"outside": "nearest"}) == nearest
    if domain is LINE:
        # A place at the largest distance between neighbours is inside.
        assert module.call("cell", {"x": 5.0, "y": 0.0}, {}) == domain.cell_of(5.0, 0.0) == 2
        with pytest.raises(RuntimeError, match="the place is more than 2 km from every secret"):
            module.call("cell", {"x": 5.00001, "y": 0.0}, {})
