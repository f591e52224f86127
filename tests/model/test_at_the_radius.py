"""A pair at exactly a radius is bounded, and one beyond what rounding may have done is not."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import at_the_radius
import numpy as np
import pytest

import mechdesign as md
from mechdesign import graphs
from mechdesign import specification as spec
from mechdesign.certify._stated import Stated
from mechdesign.errors import InputError, InputWarning

STREET = md.Domain.grid(columns=10, rows=1, width=1.0, height=0.1, unit="km")
# What floats alone give between the centres of such cells: 0.10000000000000003 for two of them.
CENTRES = (np.arange(10) + 0.5) * 0.1
FLOATS = np.abs(CENTRES[:, None] - CENTRES)


@pytest.mark.parametrize("norm", ["euclidean", "manhattan", "chebyshev", "shortest path"])
def test_every_pair_at_the_radius_of_a_grid_is_bounded_and_no_other(norm):
    count: Counter[str] = Counter()
    for n, side in ((2, "0.05"), (5, "0.35"), (7, "0.3"), (8, "0.7"), (6, "1.1"), (9, "1.99"), (13, "0.1")):
        count += at_the_radius.grid(n, Decimal(side), norm, n < 9)
    assert at_the_radius.wrong(count) == 0
    assert count["distance <= radius: pairs owed"] > 50_000
    assert count["requirement: pairs owed"] > 5000
    # Evidence that the care is needed.
    assert count["radii wrong in plain floats"] > 10


def test_points_far_from_the_origin_and_both_sides_of_the_margin():
    rng = np.random.default_rng(2)
    far = sum((at_the_radius.far(rng) for _ in range(3)), Counter())
    assert at_the_radius.wrong(far) == 0
    assert all(far[f"{name}: pairs owed"] > 1000 for name in ("decimals", "products", "running sums"))
    with pytest.warns(InputWarning, match="3 secrets has no edge: no two secrets are within"):
        sides = sum((at_the_radius.margins(rng) for _ in range(10)), Counter())
    assert at_the_radius.wrong(sides) == 0
    for name in ("matrix", "points"):
        assert sides[f"{name}: within the margin"] >= 20
        assert sides[f"{name}: beyond twice the margin"] >= 20


def test_the_script_notices_a_pair_that_is_missed(monkeypatch):
    monkeypatch.setattr(
        at_the_radius, "lengths", lambda n, side, norm, scale: at_the_radius.plain(n, side, norm) * scale
    )
    assert at_the_radius.wrong(at_the_radius.grid(10, Decimal("0.1"), "euclidean", False)) > 0


def test_a_street_of_ten_cells_in_kilometres_and_in_metres():
    metres = md.Domain.grid(columns=10, rows=1, width=1000.0, height=100.0, unit="m")
    neighbours = np.abs(np.subtract.outer(np.arange(10), np.arange(10))) == 1
    for domain, radius in ((STREET, 0.1), (STREET, "1/10"), (STREET, Decimal("0.1")), (metres, 100)):
        for distance in (md.distances.euclidean(domain), md.distances.manhattan(domain)):
            assert ((distance <= float(Fraction(radius))) ^ np.eye(10, dtype=bool) == neighbours).all()
            assert len(md.ThresholdPrivacy(1, distance, radius).claims()[0]) == 18
    made = md.design(md.Problem(md.Prior.uniform(10), FLOATS, [md.ThresholdPrivacy(1, FLOATS, 0.1)]))
    odds = made.channel.matrix[1:] / made.channel.matrix[:-1]
    assert max(odds.max(), 1 / odds.min()) <= math.e * (1 + 1e-9)


def test_distances_are_not_above_the_decimals_that_were_written():
    for side in ("0.1", "0.3", "0.7", "1.1"):
        points = [[float(Decimal(side) * k)] for k in range(12)]
        for norm in ("euclidean", "manhattan", "chebyshev"):
            for k, length in enumerate(getattr(md.distances, norm)(points)[0].tolist()):
                exact = Fraction(side) * k
                assert Fraction(length) <= exact
                assert Fraction(math.nextafter(length, math.inf)) > exact


def test_a_grid_is_measured_alike_as_points_as_a_part_and_beside_itself():
    domain = md.Domain.grid(7, 5, 2.1, 2.0)
    for norm in (md.distances.euclidean, md.distances.manhattan, md.distances.chebyshev):
        whole = norm(domain)
        np.testing.assert_array_equal(norm(domain.points), whole)
        members = [0, 3, 8, 20, 34]
        np.testing.assert_array_equal(norm(domain.part(members)), whole[np.ix_(members, members)])
        # The same places, though other objects.
        np.testing.assert_array_equal(norm(domain, md.Domain.grid(7, 5, 2.1, 2.0)), whole)
    anchors = md.Domain.anchors(4, 3, 0.9, 0.6)
    np.testing.assert_array_equal(md.distances.euclidean(anchors) <= 0.3, md.distances.euclidean(anchors.points) <= 0.3)
    assert ((md.distances.manhattan(anchors) <= 0.3).sum() - 12) // 2 == 17


def test_a_grid_with_sides_that_are_no_decimals_keeps_its_pairs():
    thirds = md.Domain.grid(columns=9, rows=9, width=1.0, height=1.0)
    distance = md.distances.euclidean(thirds)
    for radius, owed in (("1/9", 2 * 9 * 8), (1 / 9, 2 * 9 * 8), ("1/3", None)):
        bounded = len(md.ThresholdPrivacy(1, distance, radius).claims()[0]) // 2
        assert bounded == graphs.threshold(thirds, radius).number_of_edges()
        assert owed is None or bounded == owed


def test_a_geographic_grid_is_settled_by_the_rule_for_floats():
    domain = md.Domain.geographic_grid(9, 8, 39.8, 40.0, 116.2, 116.6)
    for measure in (md.distances.euclidean, md.distances.haversine):
        distance = measure(domain)
        up = distance[0, 9] * (1 + 3e-14)
        # One row apart: the same step everywhere, up to rounding.
        rows = {(i, i + 9) for i in range(63)}
        claim = md.ThresholdPrivacy(1, distance, float(up)).claims()[0]
        assert rows <= set(zip(claim.sources.tolist(), claim.targets.tolist(), strict=True))
    side = domain.cells.height / 8
    found = graphs.threshold(domain, side)
    assert all(found.has_edge(i, i + 9) for i in range(63))


@pytest.mark.parametrize(
    ("excess", "pairs"), [(-1e-9, 2), (0.0, 2), (1e-16, 2), (0.999e-9, 2), (2.01e-9, 0), (1e-8, 0), (1e-3, 0)]
)
def test_a_matrix_of_floats_on_both_sides_of_the_margin(excess, pairs):
    distance = np.array([[0.0, 0.7 * (1 + excess)], [0.7 * (1 + excess), 0.0]])
    requirement = md.ThresholdPrivacy(1, distance, 0.7)
    assert len(requirement.claims()[0]) == pairs
    graph = md.ThresholdPrivacy(1, distance, 0.7, margin=1e-3)
    assert len(graph.claims()[0]) == 2
    # What is stated is the radius, so that whoever compares with it comes to the same.
    assert (requirement.distance <= 0.7).sum() - 2 == pairs
    assert requirement.distance.max() <= distance.max()


def test_the_largest_distance_within_a_radius():
    assert md.distances.reach(0) == 0.0
    for radius in (0.1, "1/3", 3, Decimal("0.7"), 1e99):
        limit = Fraction(str(radius)) * (1 + Fraction(1, 10**9))
        found = md.distances.reach(radius)
        assert Fraction(found) <= limit < Fraction(math.nextafter(found, math.inf))
    assert md.distances.reach(1, 0.5) == pytest.approx(1.500000001, rel=1e-15)
    points = [[5e6, 1.0], [0.0, 0.0]]
    assert md.distances.margin(points) == md.distances.margin(md.Domain.from_points(points)) == 4 * np.spacing(5e6)
    assert md.distances.margin(md.Domain.from_labels(["a", "b"])) == 0.0
    assert md.distances.margin(md.Domain.from_coordinates([40.0, 40.1], [-74.0, -74.1])) < 1e-11


@pytest.mark.parametrize("radius", [-1, -0.1, math.inf, math.nan, "wide", None, True, "1/0"])
def test_wrong_radii_are_refused(radius):
    with pytest.raises(InputError, match="radius"):
        md.distances.reach(radius)
    with pytest.raises(InputError, match="radius"):
        md.distances.pairs_within([[0.0], [1.0]], radius)
    if radius not in (-1, -0.1):
        with pytest.raises(InputError, match="radius"):
            md.ThresholdPrivacy(1, FLOATS, radius)


@pytest.mark.parametrize("margin", [-1, -1e-300, math.nan, math.inf, "wide", True])
def test_wrong_margins_are_refused(margin):
    with pytest.raises(InputError, match="margin"):
        md.ThresholdPrivacy(1, FLOATS, 1, margin)
    with pytest.raises(InputError, match="margin"):
        graphs.threshold(distance=FLOATS, radius=1, margin=margin)


def test_what_is_stated_is_judged_by_its_pairs():
    old = md.ThresholdPrivacy.from_stated([Stated.threshold(Fraction(1), FLOATS, Fraction(1, 10))], 10)
    assert len(old.claims()[0]) == 10
    np.testing.assert_array_equal(old.stated()[0].arrays["distance"], FLOATS)
    new = md.ThresholdPrivacy(1, FLOATS, "0.1")
    again = md.ThresholdPrivacy.from_stated(new.stated(), 10)
    assert len(again.claims()[0]) == 18


SPECIFICATION = """
domain = {domain}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ {privacy} }}]
"""
WALK = {"points": [[5e6 + shift] for shift in (0.0, 0.1, 0.2, 0.30000000074505806, 0.4, 0.5)]}


@pytest.mark.parametrize(
    ("domain", "radius", "pairs"),
    [
        ("{ grid = { columns = 9, rows = 9, width = 0.9, height = 0.9 } }", "0.1", 144),
        ("{ grid = { columns = 8, rows = 8, width = 5.6, height = 5.6 } }", '"7/10"', 112),
        ("{ grid = { columns = 7, rows = 7, width = 2100.0, height = 2100.0, unit = 'm' } }", "300", 84),
        ("{ anchors = { columns = 4, rows = 4, width = 0.9, height = 0.9 } }", "0.3", 24),
        ("{ points = [[0.0], [0.1], [0.2], [0.30000000000000004]] }", "0.1", 3),
        # Coordinates that were computed millions of metres from their origin: the fourth is off by one unit.
        (f"{{ points = {WALK['points']} }}", "0.1", 5),
    ],
)
@pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
def test_specifications_bound_what_is_at_the_radius(domain, radius, pairs, distance):
    common = f'epsilon = 1, radius = {radius}, distance = "{distance}"'
    threshold = spec.parse(SPECIFICATION.format(domain=domain, privacy=f'kind = "threshold", {common}')).problem()
    graph = spec.parse(SPECIFICATION.format(domain=domain, privacy=f'kind = "graph", {common}')).problem()
    assert len(threshold.claims[0]) == len(graph.claims[0]) == 2 * pairs
