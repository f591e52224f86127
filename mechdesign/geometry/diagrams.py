"""Which places are nearest to which site: Voronoi diagrams, and their sections by lines and planes.

A section of a Voronoi diagram by a flat is a power diagram: with y the projections of the sites on the flat and h their
squared distances from it, the cell of site i is where |z - y_i|² + h_i is least. Where several sites are equally near
the one of the lowest index counts, also when only rounding tells them apart (relative to the extent of everything,
`ROUNDING`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mechdesign.model._components import connected
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["PlaneDiagram", "Rectangles", "all_pairs", "line_diagram", "nearest", "plane_diagram", "rectangles"]


ROUNDING = 1e-12

# Sites closer to one line than this, relative to their extent along it, are on it.
_COLLINEAR = 1e-9

# Numbers worked on at a time.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class PlaneDiagram:
    """A power diagram of the plane: sites (m, 2), squared heights (m,), and what bounds each cell.

    `owners` are the sites whose cells are not empty, those with the most neighbours first, and `neighbours`
    (len(owners), most) the sites on the other sides of their boundaries, -1 where there are no more.
    """

    sites: Floats
    heights: Floats
    owners: Integers
    neighbours: Integers


@dataclass(frozen=True, eq=False)
class Rectangles:
    """The Voronoi diagram of sites that form a grid: a rectangle for each pair of a column and a row.

    `columns` and `rows` hold the boundaries, from -inf to inf; `column` and `row` (m,) the place of each site.
    """

    columns: Floats
    rows: Floats
    column: Integers
    row: Integers


def nearest(places: Floats, sites: Floats) -> Integers:
    """Return the index of the site (m, d) nearest to each place (n, d), of equally near ones the lowest."""
    result = np.empty(len(places), dtype=np.int64)
    step = max(1, _BLOCK // sites.size)
    for start in range(0, len(places), step):
        difference = places[start : start + step, None] - sites
        squares = (difference**2).sum(axis=2)
        # Two units of rounding of the coordinates themselves, for sites as far away as they are large.
        least = squares.min(axis=1, keepdims=True)
        noise = ROUNDING * (least + np.sqrt(least) * np.abs(sites).max())
        result[start : start + step] = (squares <= least + noise).argmax(axis=1)
    return result


def line_diagram(sites: Floats, heights: Floats) -> tuple[Integers, Floats]:
    """Return the sites that own a piece of the line, from left to right, and the boundaries between them.

    `sites` (m,) are positions along the line, `heights` (m,) squared distances from it. Minus twice their positions
    are the slopes of lines, of which the pieces form the lower envelope.
    """
    extent = float(np.sqrt(np.ptp(sites) ** 2 + heights.max()))
    order = np.argsort(sites, kind="stable")
    group = np.concatenate(([0], np.cumsum(np.diff(sites[order]) > ROUNDING * extent)))
    least = np.full(group[-1] + 1, np.inf)
    np.minimum.at(least, group, heights[order])
    lowest = heights[order] <= least[group] + ROUNDING * extent**2
    first = np.full(len(least), len(sites))
    np.minimum.at(first, group[lowest], order[lowest])
    owners: list[int] = []
    boundaries: list[float] = []
    position, height = sites.tolist(), heights.tolist()
    for site in first.tolist():
        while owners:
            other = owners[-1]
            gap = position[site] - position[other]
            boundary = (position[site] + position[other]) / 2 + (height[site] - height[other]) / (2 * gap)
            # A piece that is only a rounding long would have another mass from every place.
            if len(owners) > 1 and boundary <= boundaries[-1] + ROUNDING * extent:
                owners.pop()
                boundaries.pop()
                continue
            boundaries.append(boundary)
            break
        owners.append(site)
    return np.array(owners), np.array(boundaries)


def plane_diagram(sites: Floats, heights: Floats) -> PlaneDiagram:
    """Return the power diagram of sites (m, 2) at squared heights (m,).

    Neighbours are the edges of the lower hull of the sites lifted to |y|² + h; collinear sites follow one another.
    Where that fails, every site counts as a neighbour of every other one.
    """
    distinct = _distinct(sites, heights)
    try:
        pairs = _neighbours(sites[distinct], heights[distinct])
    except QhullError:
        return all_pairs(sites, heights)
    return _diagram(sites, heights, distinct[pairs], distinct)


def all_pairs(sites: Floats, heights: Floats) -> PlaneDiagram:
    """Return the power diagram with every site as a neighbour of every other: slow, and always right."""
    distinct = _distinct(sites, heights)
    return _diagram(sites, heights, distinct[np.column_stack(np.triu_indices(len(distinct), 1))], distinct)


def rectangles(sites: Floats) -> Rectangles | None:
    """Return the Voronoi diagram of sites (m, 2) that form a full grid of columns and rows, None if they do not."""
    axes, places = [], []
    tolerance = ROUNDING * float(np.ptp(sites, axis=0).max())
    for coordinate in sites.T:
        order = np.argsort(coordinate, kind="stable")
        group = np.concatenate(([0], np.cumsum(np.diff(coordinate[order]) > tolerance)))
        place = np.empty(len(sites), dtype=np.int64)
        place[order] = group
        axes.append(coordinate[order][np.concatenate(([True], np.diff(group) > 0))])
        places.append(place)
    if len(axes[0]) * len(axes[1]) != len(sites):
        return None
    if len(np.unique(places[0] * len(axes[1]) + places[1])) != len(sites):
        return None
    columns, rows = (np.concatenate(([-np.inf], (axis[1:] + axis[:-1]) / 2, [np.inf])) for axis in axes)
    return Rectangles(columns, rows, places[0], places[1])


def _distinct(sites: Floats, heights: Floats) -> Integers:
    """Return the indices of the sites left when of those at one place only the nearest to the flat are kept."""
    extent = float(np.sqrt((np.ptp(sites, axis=0) ** 2).sum() + heights.max()))
    pairs = cKDTree(sites).query_pairs(ROUNDING * extent, output_type="ndarray")
    group = connected(len(sites), pairs)
    least = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(least, group, heights)
    lowest = np.flatnonzero(heights <= least[group] + ROUNDING * extent**2)
    return lowest[np.unique(group[lowest], return_index=True)[1]]


def _neighbours(sites: Floats, heights: Floats) -> Integers:
    """Return pairs (k, 2) of sites whose cells touch, and all that do along a side."""
    if len(sites) == 1:
        return np.zeros((0, 2), dtype=np.int64)
    centred = sites - sites.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    if len(sites) == 2 or lengths[1] <= _COLLINEAR * lengths[0]:
        owners, _ = line_diagram(centred @ directions[0], heights)
        return np.column_stack((owners[:-1], owners[1:]))
    scale = float(np.abs(centred).max())
    centred /= scale
    lifted = (centred**2).sum(axis=1) + (heights - heights.min()) / scale**2
    # One point high above closes the hull, also where all lifted sites are on one plane.
    apex = [0.0, 0.0, 4 * float(lifted.max())]
    hull = ConvexHull(np.vstack((np.column_stack((centred, lifted)), apex)), qhull_options="Qt")
    lower = hull.simplices[(hull.simplices < len(sites)).all(axis=1) & (hull.equations[:, 2] < 0)]
    sides = np.concatenate((lower[:, [0, 1]], lower[:, [1, 2]], lower[:, [2, 0]]))
    pairs: Integers = np.unique(np.sort(sides, axis=1), axis=0).astype(np.int64)
    return pairs


def _diagram(sites: Floats, heights: Floats, pairs: Integers, distinct: Integers) -> PlaneDiagram:
    """Gather the neighbours of each owner; a site without any owns a cell only when it is alone."""
    both = np.concatenate((pairs, pairs[:, ::-1]))
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    counts = np.bincount(both[:, 0], minlength=len(sites))
    owners = np.flatnonzero(counts) if len(distinct) > 1 else distinct
    owners = owners[np.argsort(-counts[owners], kind="stable")]
    neighbours = np.full((len(owners), int(counts.max(initial=0))), -1, dtype=np.int64)
    rank = np.empty(len(sites), dtype=np.int64)
    rank[owners] = np.arange(len(owners))
    slot = np.arange(len(both)) - np.searchsorted(both[:, 0], both[:, 0])
    neighbours[rank[both[:, 0]], slot] = both[:, 1]
    return PlaneDiagram(sites, heights, owners, neighbours)
