"""Probability masses of Voronoi cells, and exact channels computed from them.

The noisy output for the place f has density rate^k / (k! vol K) exp(-rate ‖z - f‖_K) on the flat f + span K of
dimension k. This density is integrated in closed form over the Voronoi cells of the sites, including the unbounded
cells. All terms are positive, so small masses have the same relative accuracy as large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._errors import CertificateError, InputError
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._privacy import check
from mechdesign.graphs._cells import (
    PlaneDiagram,
    Rectangles,
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
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import label_components

_LEAST_GAP = 2.0**-42
_TRIES = 5

# The largest share of a row sum that the added constants may use.
_LARGEST_SHARE = 1e-6


def certify_numerators(
    masses: Callable[[float], Floats],
    bound: ExponentBound,
    observables: int,
    filled: Flags | None = None,
) -> Integers:
    """Return numerators N (n, m) over 2**62 with N[s,o] <= e^{ε w} N[t,o] exactly for the pairs (s, t) of `bound`.

    The function `masses` returns the probabilities (n, m) at a given ε, up to rounding errors. Two corrections
    compensate for these errors. To compensate for relative errors, the masses are computed at an ε' that is about 1e-12
    below ε. To compensate for rounding to integers, a constant c is added to the numerators. The constant is added only
    in columns that at least one row of the same connected component uses.

    Let g = e^{ε w} for the least positive w, and c >= (2 g + 1) / (g - 1). If P_s <= g P_t, then N_s <= g N_t for all
    integers N at most 1 above and at most 2 below P + c. A row with a true entry in `filled` (n,) uses all columns,
    even if some of its masses underflow to 0. Exact arithmetic then decides whether the rounded numerators meet the
    bound. If the bound is violated, ε' is reduced and the rounding is repeated, up to a fixed number of trials.

    Raises `InputError` if ε is so small that c would dominate the masses. Raises `CertificateError` if no trial gives
    numerators that meet the bound.
    """
    nominal = float(bound.epsilon)
    shortest = float(bound.weights.min(initial=1.0, where=bound.weights > 0))
    least = 3 * observables / (_LARGEST_SHARE * 2.0**EXPONENT)
    if nominal * shortest < least:
        raise InputError(
            "epsilon",
            f"is too small for an integer channel over 2**{EXPONENT} with {observables} observables",
            value=nominal * shortest,
            bound=f"at least {least:.1e}",
            remedy="draw coordinates with the method sample",
        )
    constant = 2 + math.ceil(3 / math.expm1(min(nominal * shortest, 700.0)))
    gap = _LEAST_GAP * (1 + nominal)
    violation = None
    for _ in range(_TRIES):
        rows = masses(nominal - min(gap, nominal / 4))
        numerators = _numerators(
            rows, constant, bound, np.zeros(len(rows), dtype=np.bool_) if filled is None else filled
        )
        violation = check(numerators, EXPONENT, bound)
        if violation is None:
            return numerators
        gap *= 16
    assert violation is not None
    raise CertificateError(f"the masses cannot be rounded to a channel: {violation.sentence}", violation.pair)


def _numerators(rows: Floats, constant: int, bound: ExponentBound, filled: Flags) -> Integers:
    """Round each row to integers whose sum is 2**62.

    Each integer is at most 1 above and at most 2 below the scaled mass plus the constant. A column stays 0 in a
    connected component if no row of the component uses it. A component that uses only one column needs no constant.
    """
    member = label_components(len(rows), np.column_stack((bound.sources, bound.targets)))
    used = np.zeros((int(member.max()) + 1, rows.shape[1]), dtype=np.bool_)
    np.logical_or.at(used, member, (rows > 0) | filled[:, None])
    counts = used.sum(axis=1)
    added = used * np.where(counts > 1, constant, 0)[:, None]
    whole = (1 << EXPONENT) - added.sum(axis=1)[member]
    numerators: Integers = np.floor(rows * whole[:, None]).astype(np.int64)
    # The units lost by rounding down are distributed in proportion to the row, and the remaining units one by one.
    missing = whole - numerators.sum(axis=1)
    numerators += np.floor(rows * missing[:, None]).astype(np.int64)
    missing = whole - numerators.sum(axis=1)
    positive = rows > 0
    number = positive.sum(axis=1)
    share, rest = np.divmod(missing, number)
    numerators += np.where(positive, share[:, None] + (np.cumsum(positive, axis=1) <= rest[:, None]), 0)
    return numerators + added[member]


LARGEST_DIMENSION = 2
"""The largest affine dimension of K for which masses are computed."""

# The largest accepted deviation of a row sum from 1. Rows are divided by their sums.
_MAX_SUM_ERROR = 1e-10

# The largest number of polygons that are processed together.
_MAX_POLYGONS = 2**17

# Two grid boundaries are treated as equal if they differ by at most this share of the extent of the grid.
_SAME = 2.0**-46


@in_own_arithmetic
def cell_masses(hull: SensitivityHull, rate: float, places: Floats, sites: Floats) -> Floats:
    """Return Pr(the nearest site is o | place s), shape (n, m), for places (n, d) and distinct sites (m, d).

    The noise has density proportional to exp(-rate ‖·‖_K) with rate > 0. All places must lie on one flat parallel to K.
    A point that is equally near to several sites, up to rounding, belongs to the site with the lowest index. The row
    sums are 1 up to a few rounding errors. Raises `InputError` if K has more than two dimensions.
    """
    if hull.dimension == 0:
        masses = np.zeros((len(places), len(sites)))
        masses[np.arange(len(places)), nearest(places, sites)] = 1.0
        return masses
    if hull.dimension == 1:
        return _along_line(hull, rate, places, sites)
    if hull.dimension > LARGEST_DIMENSION:
        raise InputError(
            "observables",
            f"cannot be used: the noise has {hull.dimension} dimensions, and cell masses are computed for at most 2",
            remedy="draw coordinates with the method sample, or project the points onto a plane",
        )
    grid = rectangles(sites) if sites.shape[1] == 2 else None
    corners = hull.vertices @ hull.basis.T
    if grid is not None:
        return _normalise(_on_grid(corners, rate, places @ hull.basis.T, grid))
    origin = places[0]
    flat, heights = _project(hull, sites - origin)
    within = (places - origin) @ hull.basis.T
    masses = _in_plane(corners, rate, within, plane_diagram(flat, heights))
    if not _has_unit_sums(masses):
        masses = _in_plane(corners, rate, within, all_pairs(flat, heights))
    return _normalise(masses)


def _project(hull: SensitivityHull, vectors: Floats) -> tuple[Floats, Floats]:
    """Return the coordinates of vectors in the span of K, and their squared distances from this span."""
    flat = vectors @ hull.basis.T
    if hull.dimension == vectors.shape[1]:
        return flat, np.zeros(len(vectors))
    heights: Floats = ((vectors - flat @ hull.basis) ** 2).sum(axis=1)
    return flat, heights


def _has_unit_sums(masses: Floats) -> bool:
    return bool((np.abs(masses.sum(axis=1) - 1) <= _MAX_SUM_ERROR).all())


def _normalise(masses: Floats) -> Floats:
    sums = masses.sum(axis=1)
    if not _has_unit_sums(masses):
        worst = int(np.abs(sums - 1).argmax())
        raise CertificateError(f"the masses of the cells sum to {float(sums[worst])!r} instead of 1 for place {worst}")
    normalised: Floats = masses / sums[:, None]
    return normalised


def _along_line(hull: SensitivityHull, rate: float, places: Floats, sites: Floats) -> Floats:
    """Integrate rate/2 exp(-rate |t|) over the cells of a line; t is the signed K-norm."""
    flat, heights = _project(hull, sites - places[0])
    owners, boundaries = line_diagram(flat[:, 0], heights)
    unit = np.abs(hull.vertices @ hull.basis.T).max()
    at = ((places - places[0]) @ hull.basis.T)[:, :1]
    edges = np.concatenate(([-np.inf], boundaries, [np.inf]))
    t = (edges - at) * (rate / unit)
    low, high = t[:, :-1], t[:, 1:]
    across = (low < 0) & (high > 0)
    # Intervals left of 0 are reflected to the right, where exp(-near) (1 - exp(near - far)) loses no digits.
    near, far = np.where(high <= 0, -high, low), np.where(high <= 0, -low, high)
    near = np.where(across, 0.0, near)
    one_side = np.exp(-near) * -np.expm1(near - far)
    both = -np.expm1(np.minimum(low, 0)) - np.expm1(-np.maximum(high, 0))
    masses = np.zeros((len(places), len(sites)))
    masses[:, owners] = np.where(across, both, one_side) / 2
    return _normalise(masses)


def _in_plane(corners: Floats, rate: float, places: Floats, diagram: PlaneDiagram) -> Floats:
    """Integrate the density around each place over the cells of a power diagram, separately for each sector of K."""
    masses = np.zeros((len(places), len(diagram.sites)))
    step = max(1, _MAX_POLYGONS // (len(corners) * len(diagram.owners)))
    for start in range(0, len(places), step):
        _add_cells(masses[start : start + step], corners, rate, places[start : start + step], diagram)
    return masses


def _add_cells(masses: Floats, corners: Floats, rate: float, places: Floats, diagram: PlaneDiagram) -> None:
    """Add the integrals over all cells to the `masses` of the given places."""
    own, other = diagram.owners[:, None], diagram.neighbours
    exists = other >= 0
    # Arrays are indexed by cell and neighbour; normal · z <= offset is the half-plane that contains the cell.
    normals = np.where(exists[..., None], diagram.sites[other] - diagram.sites[own], 0.0)
    middles = (diagram.sites[other] + diagram.sites[own]) / 2
    heights = np.where(exists, diagram.heights[other] - diagram.heights[own], 0.0) / 2
    offsets = ((middles[:, None] - places[:, None]) * normals[:, None]).sum(axis=-1) + heights[:, None]
    # A single bisector separates most sectors from the cell, so only the other sectors are processed.
    away = normals @ corners.T >= 0
    away &= np.roll(away, -1, axis=-1)
    meets = ~((offsets < 0)[..., None] & away[:, None]).any(axis=2)
    cell, place, facet = np.nonzero(meets)
    polygons = quadrants(len(cell))
    for slot in range(other.shape[1]):
        # Cells are sorted by decreasing number of neighbours, so the cells without further neighbours come last.
        left = int(np.searchsorted(~exists[cell, slot], True))
        _gather(masses, polygons[left:], corners, place[left:], diagram.owners[cell[left:]], facet[left:])
        cell, place, facet = cell[:left], place[:left], facet[:left]
        planes = _halfplanes(corners, rate, facet, normals[cell, slot], offsets[cell, place, slot])
        polygons, kept = clip(polygons[:left], planes)
        cell, place, facet = cell[kept], place[kept], facet[kept]
    _gather(masses, polygons, corners, place, diagram.owners[cell], facet)


def _gather(
    masses: Floats, polygons: Floats, corners: Floats, place: Integers, cell: Integers, facet: Integers
) -> None:
    """Add the integrals over polygons to the masses of their cells."""
    if len(polygons):
        np.add.at(masses, (place, cell), integrate(polygons) * _shares(corners)[facet])


def _shares(corners: Floats) -> Floats:
    """Return, for the sector of each side of K, its share of the area of K, which is also its probability."""
    following = np.roll(corners, -1, axis=0)
    twice = corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]
    shares: Floats = twice / twice.sum()
    return shares


def _halfplanes(corners: Floats, rate: float, facet: Integers, normal: Floats, offset: Floats) -> Floats:
    """Return the half-plane normal · z <= offset in the coordinates (a, b) of a sector.

    The coordinates satisfy z = (a v + b v') / rate, where v and v' are the two corners of K in the sector.
    """
    first = (normal * corners[facet]).sum(axis=1)
    second = (normal * np.roll(corners, -1, axis=0)[facet]).sum(axis=1)
    planes = np.column_stack((first, second, rate * offset))
    planes /= np.abs(planes).max(axis=1, keepdims=True)
    return planes


def _on_grid(corners: Floats, rate: float, places: Floats, grid: Rectangles) -> Floats:
    """Integrate over the rectangles of a grid; rectangles with equal sizes and offsets are integrated only once."""
    spans, index = zip(
        *(_intervals(places[:, axis], boundaries) for axis, boundaries in enumerate((grid.columns, grid.rows))),
        strict=True,
    )
    needed = np.zeros((len(spans[0]), len(spans[1])), dtype=np.bool_)
    rows = [(index[0][place][grid.column], index[1][place][grid.row]) for place in range(len(places))]
    for pair in rows:
        needed[pair] = True
    table = np.zeros(needed.shape)
    x, y = np.nonzero(needed)
    table[x, y] = _rectangle_masses(corners, rate, spans[0][x], spans[1][y])
    return np.array([table[pair] for pair in rows])


def _intervals(coordinate: Floats, boundaries: Floats) -> tuple[Floats, Integers]:
    """Return the distinct grid intervals (k, 2) relative to the places, and their indices (n, m) for each place."""
    seen = boundaries - coordinate[:, None]
    pairs = np.stack((seen[:, :-1], seen[:, 1:]), axis=2).reshape(-1, 2)
    finite = np.concatenate((boundaries[1:-1], coordinate))
    unit = _SAME * max(float(np.ptp(finite)), np.finfo(float).tiny / _SAME)
    _, first, inverse = np.unique(np.round(pairs / unit), axis=0, return_index=True, return_inverse=True)
    return pairs[first], inverse.reshape(len(coordinate), -1)


def _rectangle_masses(corners: Floats, rate: float, x: Floats, y: Floats) -> Floats:
    """Return the masses (k,) of rectangles [x0, x1] × [y0, y1] relative to the place; bounds may be infinite."""
    masses = np.zeros(len(x))
    facets = len(corners)
    step = max(1, _MAX_POLYGONS // facets)
    for start in range(0, len(x), step):
        some = np.arange(start, min(start + step, len(x)))
        rectangle, facet = np.repeat(some, facets), np.tile(np.arange(facets), len(some))
        polygons = quadrants(len(rectangle))
        for axis, bounds in enumerate((x, y)):
            for side, sign in ((0, -1.0), (1, 1.0)):
                normal = np.zeros((len(rectangle), 2))
                normal[:, axis] = sign
                offset = sign * bounds[rectangle, side]
                bounded = np.isfinite(offset)
                cut = _halfplanes(corners, rate, facet, normal, np.where(bounded, offset, 0.0))
                # An infinite bound is replaced by the inequality 0 <= 1, which all points satisfy, even points at
                # infinity.
                cut[~bounded] = (0.0, 0.0, 1.0)
                polygons, kept = clip(polygons, cut)
                rectangle, facet = rectangle[kept], facet[kept]
        np.add.at(masses, rectangle, integrate(polygons) * _shares(corners)[facet])
    return masses
