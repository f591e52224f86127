"""Masses of Voronoi cells: against closed forms, exact arithmetic, adaptive quadrature and slower ways to them."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from long import mostly_long
from numpy.typing import NDArray
from scipy.integrate import quad

from mechdesign.errors import CertificateError, InputError
from mechdesign.graphs._builders import from_edges
from mechdesign.graphs._cells import (
    _second_difference,
    all_pairs,
    clip,
    integrate,
    line_diagram,
    nearest,
    plane_diagram,
    quadrants,
    rectangles,
)
from mechdesign.graphs._hull import SensitivityHull
from mechdesign.mechanisms import _masses as masses_module
from mechdesign.mechanisms._knorm import PlanarIsotropic
from mechdesign.mechanisms._masses import cell_masses
from mechdesign.model._domain import Domain

Floats = NDArray[np.float64]

SQUARE = SensitivityHull.of([[1.0, 1.0], [1.0, -1.0]])
DIAMOND = SensitivityHull.of([[1.0, 0.0], [0.0, 1.0]])
OBLIQUE = SensitivityHull.of([[2.0, 0.3], [1.1, 1.7], [-0.4, 1.0]])
HULLS = {"square": SQUARE, "diamond": DIAMOND, "oblique": OBLIQUE}


def numeric(hull: SensitivityHull, rate: float, place: Floats, sites: Floats, cell: int) -> float:
    """Integrate the density over a cell with sides by adaptive quadrature, a line at a time.

    On a vertical line the density is integrated with a break wherever the nearest site or the side of K changes.
    """
    normals, reach = hull.facets, 40 * hull.radius / rate
    others = np.delete(sites, cell, axis=0)
    slopes = others - sites[cell]
    offsets = ((others**2).sum(axis=1) - (sites[cell] ** 2).sum()) / 2

    def along(x: float) -> float:
        rest = offsets - slopes[:, 0] * x
        vertical = slopes[:, 1] == 0
        if (rest[vertical] < 0).any():
            return 0.0
        ends = rest[~vertical] / slopes[~vertical, 1]
        low = max(ends[slopes[~vertical, 1] < 0], default=-reach)
        high = min(ends[slopes[~vertical, 1] > 0], default=reach)
        if low >= high:
            return 0.0
        heights = normals[:, 0] * (x - place[0])
        breaks = [
            place[1] + (heights[j] - heights[i]) / (normals[i, 1] - normals[j, 1])
            for i, j in itertools.combinations(range(len(normals)), 2)
            if normals[i, 1] != normals[j, 1]
        ]
        cuts = np.array(sorted({low, high, *(y for y in breaks if low < y < high)}))
        # Between two cuts the norm is linear.
        norm = hull.norm(np.column_stack((np.full(len(cuts), x), cuts)) - place)
        change = rate * np.diff(norm)
        safe = np.where(np.abs(change) > 1e-9, change, 1.0)
        mean = np.where(np.abs(change) > 1e-9, -np.expm1(-safe) / safe, 1 - change / 2)
        return float((np.exp(-rate * norm[:-1]) * mean * np.diff(cuts)).sum())

    xs = {place[0] - reach, place[0] + reach, *(place[0] + hull.vertices[:, 0])}
    for (a, c), (b, d) in itertools.combinations(zip(slopes, offsets, strict=True), 2):
        if abs(np.linalg.det([a, b])) > 1e-12:
            xs.add(float(np.linalg.solve([a, b], [c, d])[0]))
    cuts = sorted(x for x in xs if abs(x - place[0]) <= reach)
    total = sum(quad(along, a, b, epsabs=1e-13, epsrel=1e-11, limit=100)[0] for a, b in itertools.pairwise(cuts))
    return float(total * rate**2 / (2 * hull.volume))


def laplace_interval(low: float, high: float) -> float:
    """Return the mass of [low, high] under the density exp(-|t|) / 2."""
    if low < 0 < high:
        return 1 - (math.exp(low) + math.exp(-high)) / 2
    near, far = (low, high) if low >= 0 else (-high, -low)
    return -math.exp(-near) * math.expm1(near - far) / 2


def test_divided_differences_are_accurate_to_the_last_bits() -> None:
    rng = np.random.default_rng(1)
    for spread in (1e-9, 1e-5, 1e-2, 0.9, 1.1, 30.0):
        for _ in range(40):
            heights = np.sort(rng.exponential() + spread * rng.uniform(size=3))
            a, b, c = (Decimal(float(height)) for height in heights)
            if len({a, b, c}) < 3:
                continue
            with localcontext() as context:
                context.prec = 80
                true = (-a).exp() / ((b - a) * (c - a)) + (-b).exp() / ((a - b) * (c - b))
                true += (-c).exp() / ((a - c) * (b - c))
                found = Decimal(float(_second_difference(heights[None])[0]))
                assert abs(found / true - 1) < Decimal("2e-15"), (spread, heights)


def test_equal_heights_give_half_the_value() -> None:
    assert _second_difference(np.array([[2.0, 2.0, 2.0]]))[0] == pytest.approx(math.exp(-2) / 2, rel=1e-15)
    assert _second_difference(np.array([[0.0, 0.0, 5.0]]))[0] == pytest.approx((5 - 1 + math.exp(-5)) / 25, rel=1e-15)


def test_the_whole_quadrant_has_mass_one_and_strips_theirs() -> None:
    assert integrate(quadrants(1)).tolist() == [1.0]
    strip, kept = clip(quadrants(2), np.array([[1.0, 0.0, 0.7], [-1.0, 0.0, -0.7]]))
    assert kept.tolist() == [0, 1]
    assert integrate(strip) == pytest.approx([-math.expm1(-0.7), math.exp(-0.7)], rel=1e-15)
    triangle, _ = clip(quadrants(1), np.array([[1.0, 1.0, 3.0]]))
    assert integrate(triangle)[0] == pytest.approx(1 - 4 * math.exp(-3), rel=1e-15)
    nothing, kept = clip(quadrants(1), np.array([[1.0, 1.0, -1e-3]]))
    assert len(nothing) == len(kept) == 0


@settings(max_examples=30)
@given(
    arrays(np.float64, (5, 2), elements=st.floats(-3, 3, width=16)),
    arrays(np.float64, 5, elements=st.floats(-1, 4, width=16)),
)
def test_a_polygon_and_what_is_cut_from_it_make_the_whole(normals: Floats, offsets: Floats) -> None:
    polygons, before = quadrants(1), 1.0
    for normal, offset in zip(normals, offsets, strict=True):
        plane = np.array([[*normal, offset]])
        if np.abs(normal).max() < 1e-3:
            continue
        inside, _ = clip(polygons, plane)
        outside, _ = clip(polygons, -plane)
        assert integrate(inside).sum() + integrate(outside).sum() == pytest.approx(before, rel=1e-12, abs=1e-100)
        if not len(inside):
            return
        polygons, before = inside, float(integrate(inside)[0])


def test_laplace_masses_on_a_grid_are_products_also_far_away() -> None:
    domain = Domain.grid(columns=30, rows=20, width=30.0, height=20.0)
    rate, place = 1.9, np.array([[4.5, 7.5]])
    found = cell_masses(DIAMOND, rate, place, domain.points)[0].reshape(20, 30)
    columns, rows = (np.array([-np.inf, *range(1, n), np.inf]) for n in (30, 20))
    x = [laplace_interval(rate * (a - 4.5), rate * (b - 4.5)) for a, b in itertools.pairwise(columns)]
    y = [laplace_interval(rate * (a - 7.5), rate * (b - 7.5)) for a, b in itertools.pairwise(rows)]
    assert found == pytest.approx(np.outer(y, x), rel=2e-13, abs=0)
    assert found.min() < 1e-28


def test_concentric_squares_under_the_square_hull_follow_the_gamma_law() -> None:
    domain = Domain.grid(columns=21, rows=21, width=21.0, height=21.0)
    found = cell_masses(SQUARE, 0.8, domain.points[[220]], domain.points)[0]
    ring = np.abs(domain.points - domain.points[220]).max(axis=1)
    for k in range(9):
        t = 0.8 * (k + 0.5)
        assert found[ring <= k].sum() == pytest.approx(1 - (1 + t) * math.exp(-t), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("hull", mostly_long([OBLIQUE, SQUARE, DIAMOND]), ids=["oblique", "square", "diamond"])
@pytest.mark.parametrize("rate", [2.0])
def test_masses_against_quadrature(hull: SensitivityHull, rate: float) -> None:
    rng = np.random.default_rng(5)
    sites = rng.uniform(-2, 2, size=(6, 2))
    place = rng.uniform(-1, 1, size=2)
    found = cell_masses(hull, rate, place[None], sites)[0]
    for cell in range(6):
        assert found[cell] == pytest.approx(numeric(hull, rate, place, sites, cell), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("hull", HULLS.values(), ids=HULLS)
def test_grids_agree_with_general_cells_and_with_all_pairs(hull: SensitivityHull) -> None:
    domain = Domain.grid(columns=5, rows=4, width=7.0, height=3.0)
    places = np.concatenate((domain.points[::3], [[0.1, 8.0]]))
    fast = cell_masses(hull, 0.7, places, domain.points)
    for build in (plane_diagram, all_pairs):
        slow = masses_module._in_plane(hull.vertices, 0.7, places, build(domain.points, np.zeros(20)))
        assert slow == pytest.approx(fast, rel=1e-12, abs=0)
    order = np.random.default_rng(0).permutation(20)
    assert cell_masses(hull, 0.7, places, domain.points[order]) == pytest.approx(fast[:, order], rel=1e-13, abs=0)


def test_uneven_grids_are_grids_too() -> None:
    x, y = np.array([0.0, 1.0, 5.0]), np.array([-2.0, 0.0])
    sites = np.array([[a, b] for a in x for b in y])
    found = rectangles(sites)
    assert found is not None
    assert found.columns.tolist() == [-np.inf, 0.5, 3.0, np.inf]
    assert found.rows.tolist() == [-np.inf, -1.0, np.inf]
    fast = cell_masses(OBLIQUE, 1.0, sites[:2], sites)
    slow = masses_module._in_plane(OBLIQUE.vertices, 1.0, sites[:2], all_pairs(sites, np.zeros(6)))
    assert fast == pytest.approx(slow, rel=1e-13)
    assert rectangles(sites[:5]) is None
    assert rectangles(sites @ np.array([[0.8, -0.6], [0.6, 0.8]])) is None


@settings(max_examples=25)
@given(
    arrays(np.float64, (3, 2), elements=st.floats(-2, 2, width=32)),
    arrays(np.float64, (7, 2), elements=st.floats(-5, 5, width=16), unique=True),
    st.floats(0.05, 20),
)
def test_rows_sum_to_one_and_neighbouring_places_keep_the_bound(edges: Floats, sites: Floats, rate: float) -> None:
    hull = SensitivityHull.of(np.concatenate((edges, [[0.5, 0.1], [-0.2, 0.4]])))
    places = np.concatenate((np.zeros((1, 2)), hull.vertices))
    found = cell_masses(hull, rate, places, np.unique(sites, axis=0))
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-13)
    assert (found >= 0).all()
    assert (found[1:] <= math.exp(rate) * found[0] * (1 + 1e-9) + 1e-15).all()
    assert (found[0] <= math.exp(rate) * found[1:] * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize("sites", [1, 2, 3, 8])
def test_few_or_cocircular_sites_share_by_symmetry(sites: int) -> None:
    """The hull and the sites are both turned by 1/8: all sites are alike, as far as 8 is a multiple of their number."""
    turns = np.arange(8) * math.pi / 4
    hull = SensitivityHull.of(np.column_stack((np.cos(turns), np.sin(turns))))
    angles = 0.3 + 2 * math.pi * np.arange(sites) / sites
    found = cell_masses(hull, 1.3, np.zeros((1, 2)), np.column_stack((np.cos(angles), np.sin(angles))))
    assert found.sum() == pytest.approx(1, abs=1e-14)
    if sites != 3:
        assert found[0] == pytest.approx(np.full(sites, 1 / sites), rel=1e-13)


def test_collinear_sites_cut_the_plane_into_strips() -> None:
    """The facets of the diamond are at the distance 1/√2 from the origin: turned by 45 degrees it is a small square."""
    direction = np.array([1.0, 1.0]) / math.sqrt(2)
    sites = np.array([-3.0, 0.0, 1.0, 2.5])[:, None] * direction
    found = cell_masses(DIAMOND, 1.0, np.zeros((1, 2)), sites)[0]
    beyond = [_square_tail(edge * math.sqrt(2)) for edge in (1.5, 0.5, 1.75)]
    expected = [beyond[0], 1 - beyond[0] - beyond[1], beyond[1] - beyond[2], beyond[2]]
    assert found == pytest.approx(expected, rel=1e-12)


def _square_tail(t: float) -> float:
    """Return Pr(X > t) for the density exp(-max(|x|, |y|)) / 8 of the plane, t >= 0: ∫_t^∞ (x + 1) exp(-x) / 4 dx."""
    return (t + 2) * math.exp(-t) / 4


def test_nearly_coincident_sites_split_their_cell() -> None:
    rng = np.random.default_rng(2)
    sites = rng.uniform(-2, 2, size=(9, 2))
    doubled = np.concatenate((sites, sites[:3] + 1e-7))
    whole = cell_masses(OBLIQUE, 1.0, sites[:2], sites)
    parts = cell_masses(OBLIQUE, 1.0, sites[:2], doubled)
    assert parts[:, :3] + parts[:, 9:] == pytest.approx(whole[:, :3], abs=1e-6)


@pytest.mark.parametrize("rate", [1e-7, 1e-3, 1e3, 1e9])
def test_extreme_rates(rate: float) -> None:
    sites = np.random.default_rng(8).uniform(-1, 1, size=(12, 2))
    found = cell_masses(OBLIQUE, rate, sites, sites)
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-13)
    if rate >= 1e3:
        assert found == pytest.approx(np.eye(12), abs=1e-12)


def test_a_segment_in_space_cuts_cells_along_its_line() -> None:
    hull = SensitivityHull.of([[2.0, 0.0, 0.0]])
    sites = np.array([[-1.0, 0, 0], [1.0, 5.0, 0], [1.0, 0, 3.0], [4.0, 1.0, 1.0], [2.0, 0, 90.0]])
    places = np.array([[0.0, 0, 0], [3.0, 0, 0]])
    found = cell_masses(hull, 0.9, places, sites)
    # On the line the sites compete with -2x·p + p² + h: the first, 2x + 1, and the fourth, -8x + 18, meet at 1.7, where
    # the others are above.
    t = [0.9 * (1.7 - x) / 2 for x in (0.0, 3.0)]
    expected = [[laplace_interval(-np.inf, end), laplace_interval(end, np.inf)] for end in t]
    assert found[:, [0, 3]] == pytest.approx(np.array(expected), rel=1e-14)
    assert (found[:, [1, 2, 4]] == 0).all()


@pytest.mark.slow
@settings(max_examples=40)
@given(arrays(np.float64, (6, 3), elements=st.floats(-3, 3)), st.floats(0.1, 5))
def test_a_segment_agrees_with_a_fine_search_along_the_line(sites: Floats, rate: float) -> None:
    hull = SensitivityHull.of([[1.0, 2.0, -0.5]])
    sites = np.unique(np.round(sites, 3), axis=0)
    t = np.linspace(-30, 30, 60001) / rate
    owner = nearest(t[:, None] * hull.vertices[0] + 0.25, sites)
    middle = (t[1:] + t[:-1]) / 2
    weights = np.exp(-rate * np.abs(middle)) * rate / 2 * np.diff(t)
    coarse = np.bincount(owner[:-1], weights=weights, minlength=len(sites))
    found = cell_masses(hull, rate, np.full((1, 3), 0.25), sites)[0]
    assert found == pytest.approx(coarse / coarse.sum(), abs=1e-3)


def test_a_plane_in_space_sees_only_what_is_in_it() -> None:
    """A flat turned in space: the same masses as in the plane, with far sites under others owning nothing."""
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0][:2]
    sites = rng.uniform(-2, 2, size=(8, 2))
    flat = cell_masses(OBLIQUE, 0.8, sites[:3], sites)
    lifted = SensitivityHull.of(OBLIQUE.vertices @ turn)
    found = cell_masses(lifted, 0.8, sites[:3] @ turn, sites @ turn)
    assert found == pytest.approx(flat, rel=1e-10)
    normal = np.linalg.svd(turn)[2][3]
    shifted = cell_masses(lifted, 0.8, sites[:3] @ turn, np.concatenate((sites @ turn + 3 * normal, [9 * normal])))
    assert shifted[:, :8] == pytest.approx(flat, rel=1e-9)
    assert (shifted[:, 8] == 0).all()


def test_sites_at_different_distances_from_the_plane_make_a_power_diagram() -> None:
    hull = SensitivityHull.of([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    sites = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    found = cell_masses(hull, 1.0, np.zeros((1, 3)), sites)[0]
    # Equally near where (x + 1)² = (x - 1)² + 1.
    assert found == pytest.approx([1 - _square_tail(0.25), _square_tail(0.25)], rel=1e-13)


def test_ties_go_to_the_lowest_index() -> None:
    floors = np.array([[0.0, 0.0, 1.0], [3.0, 0.0, -1.0], [0.0, 0.0, -1.0], [3.0, 0.0, 1.0]])
    plane = SensitivityHull.of([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    line = SensitivityHull.of([[1.0, 0.0, 0.0]])
    point = SensitivityHull.of(np.zeros((1, 3)))
    for hull in (plane, line, point):
        found = cell_masses(hull, 1.0, np.zeros((1, 3)), floors)[0]
        assert (found[2:] == 0).all()
        assert found.sum() == pytest.approx(1, abs=1e-15)
        assert found[0] > 0.5
        swapped = cell_masses(hull, 1.0, np.zeros((1, 3)), floors[[2, 3, 0, 1]])[0]
        assert swapped == pytest.approx(found, rel=1e-14)
    grid = Domain.grid(columns=10, rows=10, width=1.0, height=1.0).points
    corners = cell_masses(SensitivityHull.of(np.zeros((1, 2))), 1.0, np.array([[0.3, 0.7], [0.1, 0.1]]), grid)
    assert corners.argmax(axis=1).tolist() == [62, 0]
    along = cell_masses(SensitivityHull.of([[0.1, 0.0]]), 1.0, np.array([[0.35, 0.7], [0.05, 0.7]]), grid)
    assert along[:, :60].max() == along[:, 70:].max() == 0
    assert along[:, 60:70].sum(axis=1) == pytest.approx([1, 1], abs=1e-14)


def test_line_diagrams_keep_only_the_envelope() -> None:
    owners, boundaries = line_diagram(np.array([0.0, 1.0, 2.0, 1.0]), np.array([0.0, 0.5, 0.0, 9.0]))
    assert owners.tolist() == [0, 1, 2]
    assert boundaries.tolist() == [0.75, 1.25]
    owners, boundaries = line_diagram(np.array([2.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.5]))
    assert owners.tolist() == [1, 0]
    assert boundaries.tolist() == [1.0]


def test_three_dimensions_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"^observables: .*3 dimensions.*sample"):
        cell_masses(SensitivityHull.of(np.eye(3)), 1.0, np.zeros((1, 3)), np.eye(3))


def test_wrong_neighbours_are_noticed_and_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = np.random.default_rng(4).uniform(-1, 1, size=(9, 2))
    right = cell_masses(OBLIQUE, 1.0, sites, sites)

    def forgetful(sites: Floats, heights: Floats) -> object:
        diagram = plane_diagram(sites, heights)
        diagram.neighbours[-1, 1:] = -1
        return diagram

    monkeypatch.setattr(masses_module, "plane_diagram", forgetful)
    assert cell_masses(OBLIQUE, 1.0, sites, sites) == pytest.approx(right, rel=1e-12)
    monkeypatch.setattr(masses_module, "all_pairs", forgetful)
    with pytest.raises(CertificateError, match="instead of 1"):
        cell_masses(OBLIQUE, 1.0, sites, sites)


def test_cells_that_a_line_only_touches_at_a_corner_get_no_mass() -> None:
    # On a grid in degrees corners lie on the diagonal up to rounding only, and each place would round its own way.
    domain = Domain.geographic_grid(10, 10, south=40.70, north=40.80, west=-74.02, east=-73.92)
    channel = PlanarIsotropic(0.5, domain, from_edges(100, [(65, 92)]).subgraph([65, 92])).channel(domain)
    crossed = {divmod(cell, 10) for cell in np.flatnonzero(channel.numerators.any(axis=0)).tolist()}
    diagonal = {(11 - column, column) for column in range(2, 10)}
    # Beyond the border the line crosses the unbounded cells of the last row and of the last column.
    assert crossed == diagonal | {(9, 0), (9, 1), (0, 9), (1, 9)}
