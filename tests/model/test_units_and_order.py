"""Numbers that are possible and hardly meant: boxes in another order, radii in metres, costs that are similarities."""

import warnings

import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InterchangedWarning, MetricWarning

CITY = md.Domain.grid(3, 2, 3.0, 2.0)
APART = md.distances.euclidean(CITY)


def _design(cost):
    problem = md.Problem([1 / 6] * 6, cost, [md.MetricPrivacy(1, APART)], secrets=CITY, observables=CITY)
    return md.design(problem)


@each_row("made", [md.Domain.geographic_grid, md.Domain.geographic_anchors])
def test_a_box_as_west_south_east_north_warns(made):
    with pytest.warns(InterchangedWarning, match="look like west, south, east and north"):
        made(3, 3, -74.02, 40.70, -73.92, 40.80)


@each_row(
    "box",
    [(40.7, 40.8, -74.02, -73.92), (-56.0, 13.0, -82.0, -34.0), (-10.0, 10.0, -20.0, 20.0), (35.0, 71.0, -25.0, 45.0)],
)
def test_cities_and_continents_do_not_warn(box):
    assert md.Domain.geographic_grid(3, 3, *box).size == 9


@each_row(
    "stated",
    [
        lambda radius: md.ThresholdPrivacy(1, APART, radius),
        lambda radius: md.graphs.threshold(CITY, radius),
        lambda radius: md.graphs.threshold(distance=APART, radius=radius),
    ],
)
def test_a_radius_in_metres_between_kilometres_warns(stated):
    with pytest.warns(MetricWarning, match="check its unit"):
        stated(1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated(100)
