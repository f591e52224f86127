from __future__ import annotations

import itertools
import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

from mechdesign.errors import MetricWarning
from mechdesign.model import distances as md
from mechdesign.model._domain import Domain

# Exact comparisons of each example take long.
FEW = settings(max_examples=25)

# Zero, ordinary numbers, neighbours of each other, and the ends of the accepted range.
AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.1, 0.3, 1 / 3, 1 + 2**-52, 1 - 2**-53, 2.0**53, 2.0**53 + 2, 1e-100, -1e-100, 1e100]
coordinate = st.one_of(
    st.sampled_from(AWKWARD),
    st.integers(-50, 50).map(float),
    st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) >= 1e-100),
    st.floats(1e-100, 1e100),
    st.floats(-1e100, -1e-100),
)


def points_of(dimensions, smallest=1):
    return st.lists(st.lists(coordinate, min_size=dimensions, max_size=dimensions), min_size=smallest, max_size=6)


cloud = st.integers(1, 4).flatmap(points_of)
two_clouds = st.integers(1, 3).flatmap(lambda d: st.tuples(points_of(d), points_of(d)))


def exact_power(kind, x, y):
    """Return the distance of the printed decimals, squared for the Euclidean one, as a Fraction."""
    parts = [abs(Fraction(repr(float(a))) - Fraction(repr(float(b)))) for a, b in zip(x, y, strict=True)]
    return {"euclidean": sum(p * p for p in parts), "manhattan": sum(parts), "chebyshev": max(parts)}[kind]


def assert_rounded_down(kind, value, x, y):
    exact = exact_power(kind, x, y)
    power = 2 if kind == "euclidean" else 1
    assert value >= 0
    assert Fraction(value) ** power <= exact
    assert Fraction(math.nextafter(value, math.inf)) ** power > exact


KINDS = ["euclidean", "manhattan", "chebyshev"]


@each_row("kind", KINDS)
@FEW
@given(points=cloud)
def test_each_distance_is_the_largest_number_not_above_the_exact_one(kind, points):
    result = getattr(md, kind)(points)
    assert result.dtype == np.float64
    assert not result.flags.writeable
    np.testing.assert_array_equal(result, result.T)
    assert not np.diagonal(result).any()
    assert not np.signbit(result).any()
    for (i, x), (j, y) in itertools.product(enumerate(points), repeat=2):
        assert_rounded_down(kind, float(result[i, j]), x, y)


@each_row("kind", KINDS)
@FEW
@given(clouds=two_clouds)
def test_two_sets_of_points(kind, clouds):
    first, second = clouds
    function = getattr(md, kind)
    result = function(first, second)
    assert result.shape == (len(first), len(second))
    np.testing.assert_array_equal(result, function(second, first).T)
    for (i, x), (j, y) in itertools.product(enumerate(first), enumerate(second)):
        assert_rounded_down(kind, float(result[i, j]), x, y)


@each_row("kind", KINDS)
@each_row("scale", [1.0, 1e-90, 1e90])
def test_random_points(kind, scale):
    points = np.random.default_rng(7).normal(size=(20, 2)) * scale
    result = getattr(md, kind)(points)
    for i, j in itertools.product(range(20), repeat=2):
        assert_rounded_down(kind, float(result[i, j]), points[i], points[j])


def test_plain_floating_point_would_be_too_long():
    # Evidence that the care is needed: the ordinary formula exceeds the exact distance for many pairs.
    points = Domain.grid(20, 16, 15.0, 8.0).points
    naive = np.hypot(points[:, None, 0] - points[None, :, 0], points[:, None, 1] - points[None, :, 1])
    careful = md.euclidean(points)
    assert (naive > careful).mean() > 0.1
    assert (np.abs(naive - careful) <= 2 * np.spacing(naive)).all()


@given(st.integers(1, 100), st.integers(1, 100), st.integers(-8, 8))
def test_representable_distances_are_exact(m, n, exponent):
    # Every pair gives a Pythagorean triple.
    a, b, c = (math.ldexp(x, exponent) for x in (abs(m * m - n * n), 2 * m * n, m * m + n * n))
    assert md.euclidean([[0.0, 0.0], [a, b]])[0, 1] == c
    assert md.manhattan([[0.0, 0.0], [a, b]])[0, 1] == a + b
    assert md.chebyshev([[0.0, 0.0], [a, b]])[0, 1] == max(a, b)


def test_unit_grid_is_exact():
    domain = Domain.grid(6, 5, 6.0, 5.0)
    result = md.euclidean(domain)
    for i, j in itertools.product(range(30), repeat=2):
        square = (i % 6 - j % 6) ** 2 + (i // 6 - j // 6) ** 2
        if math.isqrt(square) ** 2 == square:
            assert result[i, j] == math.isqrt(square)
    np.testing.assert_array_equal(md.euclidean(domain, domain), result)


def test_blocks_join_up():
    # More pairs than one block holds, compared with single rows.
    points = np.random.default_rng(3).uniform(size=(200, 3))
    whole = md.euclidean(points)
    for i in (0, 81, 82, 163, 164, 199):
        np.testing.assert_array_equal(md.euclidean(points[i : i + 1], points)[0], whole[i])


def test_many_dimensions():
    points = np.random.default_rng(4).uniform(size=(4, 30))
    result = md.euclidean(points)
    for i, j in itertools.product(range(4), repeat=2):
        assert_rounded_down("euclidean", float(result[i, j]), points[i], points[j])


def test_same_box_in_other_cells_is_comparable():
    fine = Domain.geographic_grid(4, 4, 0, 1, 0, 1)
    coarse = Domain.geographic_grid(2, 2, 0, 1, 0, 1)
    assert md.euclidean(fine, coarse).shape == (16, 4)


def test_hamming():
    np.testing.assert_array_equal(md.hamming(3), 1 - np.eye(3))
    np.testing.assert_array_equal(md.hamming(Domain.from_labels(["a", "b"])), 1 - np.eye(2))
    mixed = md.hamming(Domain.from_labels(["a", "b"]), Domain.from_labels(["b", "c", "a"]))
    assert mixed.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert not mixed.flags.writeable


# --- great circles -----------------------------------------------------------------------------------------------

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def sine(x):
    """Taylor's series in 80 digits, for |x| up to a few."""
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -230:
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def exact_haversine_of_half_angle(p, q):
    """Return sin² of half the central angle between two places in degrees."""
    (lat1, lon1), (lat2, lon2) = ([Decimal(float(v)) * PI / 180 for v in place] for place in (p, q))
    cosine = [sine(PI / 2 - lat) for lat in (lat1, lat2)]
    return sine((lat1 - lat2) / 2) ** 2 + cosine[0] * cosine[1] * sine((lon1 - lon2) / 2) ** 2


latitude = st.one_of(
    st.sampled_from([0.0, 90.0, -90.0, 89.99999999999999, 45.0, -45.0, 1e-100]),
    st.floats(-90, 90).filter(lambda x: x == 0 or abs(x) >= 1e-60),
)
longitude = st.one_of(
    st.sampled_from([0.0, 180.0, -180.0, 179.99999999999997, -179.99999999999997, 90.0, -90.0, 1e-60]),
    st.floats(-180, 180).filter(lambda x: x == 0 or abs(x) >= 1e-60),
)
place = st.tuples(latitude, longitude)


@st.composite
def two_places(draw):
    first = draw(place)
    if draw(st.booleans()):
        return first, draw(place)
    # Near the first place, or near its antipode.
    step = st.sampled_from([0.0, 1e-14, 3e-13, -1e-9, 1e-6, -1e-3])
    second = [first[0] + draw(step), first[1] + draw(step)]
    if draw(st.booleans()):
        second = [-second[0], second[1] - math.copysign(180, second[1])]
    return first, (min(90.0, max(-90.0, second[0])), min(180.0, max(-180.0, second[1])))


def assert_haversine(value, p, q):
    """Check exact · (1 − 2e-14) ≤ value ≤ exact, through sin² of the half angle, which grows with the distance."""
    with localcontext() as context:
        context.prec = 80
        exact = exact_haversine_of_half_angle(p, q)
        half = Decimal(value) / (2 * Decimal("6371.0088"))
        # The series leave 1e-78 of absolute error where terms of size 1 cancel; distances are squared here.
        noise = Decimal(10) ** -76
        assert sine(half) ** 2 <= exact + noise
        longer = half * (1 + Decimal("2e-14"))
        assert longer > PI / 2 or sine(longer) ** 2 >= exact - noise


@given(two_places())
def test_haversine_is_below_the_exact_distance_by_hardly_anything(places):
    p, q = places
    # Sums near zero may have fallen below the accepted magnitudes.
    if any(v != 0 and abs(v) < 1e-100 for v in (*p, *q)):
        return
    result = md.haversine([p, q])
    assert result[0, 1] == result[1, 0]
    assert result[0, 0] == result[1, 1] == 0
    assert_haversine(float(result[0, 1]), p, q)


def test_haversine_of_many_random_places():
    generator = np.random.default_rng(5)
    places = np.column_stack((generator.uniform(-90, 90, 40), generator.uniform(-180, 180, 40)))
    result = md.haversine(places)
    for i in range(40):
        assert_haversine(float(result[i, (i + 1) % 40]), places[i], places[(i + 1) % 40])


def test_haversine_where_naive_formulas_fail():
    places = [(90.0, 0.0), (90.0, 123.0), (-90.0, 50.0), (0.0, 180.0), (0.0, -180.0), (0.0, 0.0)]
    result = md.haversine(places)
    half = math.pi * 6371.0088
    assert result[0, 1] == 0
    assert result[3, 4] == 0
    assert result[0, 2] == pytest.approx(half, rel=1e-13)
    assert result[3, 5] == pytest.approx(half, rel=1e-13)
    assert result[0, 2] < half
    # The difference of the longitudes, 360 - 2.8e-14, is not a float64.
    across = [(0.0, 179.99999999999997), (0.0, -180.0)]
    assert_haversine(float(md.haversine(across)[0, 1]), *across)
    assert md.haversine(across)[0, 1] > 0


def test_haversine_of_a_geographic_grid_is_near_the_projection():
    domain = Domain.geographic_grid(5, 4, 39.8, 40.0, 116.2, 116.6)
    round_earth, flat = md.haversine(domain), md.euclidean(domain)
    np.testing.assert_allclose(round_earth, flat, rtol=4e-3)
    # Both are rounded down, great circles by a little more.
    assert (flat <= round_earth * (1 + 2e-14)).all()
    np.testing.assert_array_equal(md.haversine(domain, domain), round_earth)
    np.testing.assert_array_equal(md.haversine(domain.coordinates), round_earth)


# --- the plane of a box ------------------------------------------------------------------------------------------


def assert_below_the_great_circle(value, p, q, margin=Decimal(0)):
    """Check value <= (1 − margin) · exact, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        exact = exact_haversine_of_half_angle(p, q)
        half = Decimal(float(value)) / (2 * Decimal("6371.0088")) / (1 - margin)
        assert half < PI / 2
        assert sine(half) ** 2 <= exact + Decimal(10) ** -76


@st.composite
def boxes(draw):
    width = draw(st.one_of(st.sampled_from([1e-9, 0.01, 1.0, 90.0, 179.0, 179.999]), st.floats(1e-6, 179)))
    south = draw(st.one_of(st.sampled_from([-89.9, -45.0, 0.0, 60.0, 89.0]), st.floats(-89, 89)))
    north = draw(st.floats(south, 89.9))
    west = draw(st.one_of(st.just(0.0), st.floats(-180, 180 - width)))
    return south, north, west, min(west + width, 180.0)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.InputWarning")
@FEW
@given(boxes(), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4))
def test_the_plane_distance_never_exceeds_the_great_circle(box, inside):
    south, north, west, east = box
    # The corners, between which the excess would be largest, and places inside.
    shares = [(0, 0), (0, 1), (1, 0), (1, 1), *inside]
    places = [(min(south + a * (north - south), north), min(west + b * (east - west), east)) for a, b in shares]
    if any(v != 0 and abs(v) < 1e-60 for place in places for v in place):
        return
    domain = Domain.from_coordinates(*zip(*places, strict=True))
    assert domain.plane.shorter
    result = md.euclidean(domain)
    np.testing.assert_array_equal(result, result.T)
    for i, j in itertools.combinations(range(len(places)), 2):
        assert_below_the_great_circle(result[i, j], places[i], places[j], Decimal("5e-15"))


def test_the_plane_distance_of_many_random_places():
    generator = np.random.default_rng(11)
    for south, north, west, east in [(40.5, 41.0, -74.3, -73.7), (-80, 80, -85, 85), (60, 60.001, 0, 1)]:
        places = np.column_stack((generator.uniform(south, north, 12), generator.uniform(west, east, 12)))
        result = md.euclidean(Domain.from_coordinates(*places.T))
        for i in range(12):
            p, q = places[i], places[(i + 1) % 12]
            assert_below_the_great_circle(result[i, (i + 1) % 12], p, q, Decimal("5e-15"))


def test_neither_the_middle_latitude_nor_the_northern_one_will_do():
    # The example of the cosine of the northern latitude: 55.5975 km in the plane against 55.5970 km on the globe.
    corners = [(60.0, 0.0), (60.0, 1.0)]
    globe = md.haversine(corners)[0, 1]
    degree = math.radians(6371.0088)
    assert degree * math.cos(math.radians(60)) == pytest.approx(55.5975, abs=1e-4)
    assert globe == pytest.approx(55.5970, abs=1e-4)
    assert degree * math.cos(math.radians(59.5)) > degree * math.cos(math.radians(60)) > globe
    plane = md.euclidean(Domain.from_coordinates(*zip(*corners, strict=True)))[0, 1]
    assert globe * (1 - 2e-4) < plane < globe


def test_places_too_close_for_their_points_to_tell_are_measured_by_their_coordinates():
    # Far from the origin of the plane, points in km are rounded to 2⁻⁴² or so.
    places = [(0.0, 0.0), (1e-13, 100.0), (0.0, 100.0)]
    result = md.euclidean(Domain.from_coordinates(*zip(*places, strict=True)))
    assert 0 < result[1, 2] <= math.radians(6371.0088) * 1e-13
    assert_below_the_great_circle(result[1, 2], places[1], places[2], Decimal("5e-15"))


def test_a_part_is_measured_like_the_whole():
    whole = Domain.geographic_grid(5, 4, 39.8, 40.0, 116.2, 116.6)
    part = whole.part([1, 7, 19])
    np.testing.assert_array_equal(md.euclidean(part), md.euclidean(whole)[np.ix_([1, 7, 19], [1, 7, 19])])
    np.testing.assert_array_equal(md.euclidean(part, whole), md.euclidean(whole)[[1, 7, 19]])


def test_pairs_within_a_radius_of_the_plane():
    domain = Domain.geographic_grid(9, 8, 39.8, 40.0, 116.2, 116.6)
    lengths = md.euclidean(domain)
    for radius in (0.0, 3.0, float(lengths[0, 1]), math.nextafter(float(lengths[0, 1]), 0)):
        expected = np.argwhere(np.triu(lengths <= md.reach(radius, md.margin(domain)), 1))
        np.testing.assert_array_equal(md.pairs_within(domain, radius), expected)


# --- graphs ------------------------------------------------------------------------------------------------------


def exact_shortest(graph, weight):
    """Floyd and Warshall in Fractions."""
    n = graph.number_of_nodes()
    best = [[Fraction(0) if i == j else None for j in range(n)] for i in range(n)]
    for a, b, attributes in graph.edges(data=True):
        length = Fraction(repr(attributes[weight]))
        for i, j in [(a, b)] if graph.is_directed() else [(a, b), (b, a)]:
            if best[i][j] is None or length < best[i][j]:
                best[i][j] = length
    for k, i, j in itertools.product(range(n), repeat=3):
        if best[i][k] is not None and best[k][j] is not None:
            through = best[i][k] + best[k][j]
            if best[i][j] is None or through < best[i][j]:
                best[i][j] = through
    return best


def test_unit_weights():
    result = md.shortest_path(nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5)))
    for i, j in itertools.product(range(20), repeat=2):
        assert result[i, j] == abs(i // 5 - j // 5) + abs(i % 5 - j % 5)
    assert not result.flags.writeable


def test_disconnected_and_single():
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    assert md.shortest_path(graph).tolist() == [[0, 1, math.inf], [1, 0, math.inf], [math.inf, math.inf, 0]]
    assert md.shortest_path(nx.empty_graph(2)).tolist() == [[0, math.inf], [math.inf, 0]]
    assert md.shortest_path(nx.empty_graph(1)).tolist() == [[0]]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 6),
            st.integers(0, 6),
            st.one_of(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 3.0, 1e-100, 1e100]), st.floats(0.01, 100)),
        ),
        max_size=20,
    ),
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
)
def test_weighted_paths_are_not_above_the_exact_lengths(edges, kind):
    graph = kind()
    graph.add_nodes_from(range(7))
    for a, b, length in edges:
        graph.add_edge(a, b, length=length)
    result = md.shortest_path(graph, weight="length")
    expected = exact_shortest(graph, "length")
    if not graph.is_directed():
        np.testing.assert_array_equal(result, result.T)
    for i, j in itertools.product(range(7), repeat=2):
        value, exact = float(result[i, j]), expected[i][j]
        if exact is None:
            assert value == math.inf
        else:
            assert Fraction(value) <= exact
            assert Fraction(value) >= exact * (1 - Fraction(3 * 7 + 3, 2**53))


def test_whole_weights_and_short_edges_are_exact():
    graph = nx.cycle_graph(9)
    for index, edge in enumerate(graph.edges):
        graph.edges[edge]["length"] = index * 0.5
    expected = exact_shortest(graph, "length")
    assert md.shortest_path(graph, "length").tolist() == [[float(value) for value in row] for row in expected]
    nx.set_edge_attributes(graph, 0.1, "length")
    result = md.shortest_path(graph, "length")
    # Whole tenths, rounded down: the float 0.1 lies above 1/10, and 0.3 below 3/10.
    assert result[0, 1] == math.nextafter(0.1, 0)
    assert result[0, 3] == 0.3


# --- matrices of the user ----------------------------------------------------------------------------------------


def test_matrix_keeps_what_is_given():
    values = [[0, math.inf], [0.1, 0]]
    result = md.matrix(values, n=2)
    assert result.tolist() == values
    assert not result.flags.writeable
    assert md.matrix([[1.0, 2.0, 3.0]]).shape == (1, 3)


def brute_force_worst(d):
    n = len(d)
    worst = 0.0
    for i, k, j in itertools.product(range(n), repeat=3):
        through = d[i, k] + d[k, j]
        if d[i, j] > through:
            worst = max(worst, math.inf if through == 0 else d[i, j] / through - 1)
    return worst


LENGTHS = st.one_of(st.integers(0, 9), st.just(math.inf))


@given(
    st.integers(2, 6).flatmap(lambda n: st.lists(LENGTHS, min_size=n * n, max_size=n * n)), st.sampled_from([1, 8, 99])
)
def test_check_metric_against_brute_force(entries, triples):
    n = math.isqrt(len(entries))
    d = np.array(entries, dtype=float).reshape(n, n)
    with warnings.catch_warnings(record=True) as caught, mock.patch.object(md, "_SUMS_PER_BLOCK", triples):
        warnings.simplefilter("always")
        md.check_metric(d, "d")
    messages = [str(item.message) for item in caught]
    assert all(item.category is MetricWarning for item in caught)
    assert any("itself" in m for m in messages) == bool(np.diagonal(d).any())
    assert any("symmetric" in m for m in messages) == bool((d != d.T).any())
    worst = brute_force_worst(d)
    triangle = [m for m in messages if "triangle" in m]
    assert bool(triangle) == (worst > 0)
    if triangle:
        # The message names a triple that violates by as much as the worst one.
        cells = [tuple(int(x) for x in part.split("]")[0].split(",")) for part in triangle[0].split("[")[1:]]
        (i, j), (i2, k), (k2, j2) = cells
        assert (i, j, k) == (i2, j2, k2)
        through = d[i, k] + d[k, j]
        assert (math.inf if through == 0 else d[i, j] / through - 1) == worst


@each_row(("excess", "warned"), [(0.9e-12, False), (1.1e-12, True)])
def test_both_sides_of_the_tolerance(excess, warned):
    long = 2.0 * (1 + excess)
    triangle = np.array([[0, 1, long], [1, 0, 1], [long, 1, 0]])
    lopsided = np.array([[0, 1], [1 + excess, 0]])
    for d, word in ((triangle, r"\[0,2\] is 2\.0.*\[0,1\] \+ \[1,2\] = 1.0 \+ 1.0"), (lopsided, r"\[1,0\] is 1\.0")):
        if warned:
            with pytest.warns(MetricWarning, match=word):
                md.check_metric(d, "d")
        else:
            md.check_metric(d, "d")


def test_infinite_distances():
    inf = math.inf
    md.check_metric([[0, inf], [inf, 0]])
    with pytest.warns(MetricWarning, match="triangle"):
        md.check_metric([[0, 1, inf], [1, 0, 1], [inf, 1, 0]])
    with pytest.warns(MetricWarning, match="symmetric"):
        md.check_metric([[0, inf], [1, 0]])
    md.check_metric([[0, 1.7e308], [1.7e308, 0]])


def test_our_own_distances_are_metrics():
    domain = Domain.geographic_grid(20, 15, 39.8, 40.0, 116.2, 116.6)
    for function in (md.euclidean, md.manhattan, md.chebyshev, md.haversine, md.hamming):
        md.check_metric(function(domain))
