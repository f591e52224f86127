"""The sides of a map: its extent, its scale, and ticks in degrees or in the unit of the domain."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from mechdesign.model._domain import Domain
from mechdesign.model._domain import Grid
from mechdesign.model._locate import turned
from mechdesign.model._words import short
from mechdesign.report.style import INK
from mechdesign.report.style import RULE
from mechdesign.model._words import clip
from mechdesign.base._arrays import Floats

__all__ = [
    "LONGEST",
    "borders",
    "degree_ticks",
    "extent",
    "frame",
    "in_unit",
    "plane_of",
    "round_ticks",
    "ruler_length",
]


LONGEST = 12.0
"""A map longer than this, in widths, is not drawn to scale: its short side could not be seen."""


def borders(cells: Grid) -> tuple[Floats, Floats]:
    """Return where the columns and the rows of a grid begin and end."""
    return np.linspace(0, cells.width, cells.columns + 1), np.linspace(0, cells.height, cells.rows + 1)


def extent(domain: Domain) -> tuple[float, float, float, float]:
    """Return west, east, south and north of the picture of a domain in the plane."""
    if domain.cells is not None:
        return 0.0, domain.cells.width, 0.0, domain.cells.height
    (west, south), (east, north) = domain.points.min(axis=0), domain.points.max(axis=0)
    margin = 0.06 * (max(east - west, north - south) or 2.0)
    return float(west - margin), float(east + margin), float(south - margin), float(north + margin)


def frame(axes: Axes, domain: Domain, ticks: bool) -> None:
    """Show the map to scale, with degrees along its sides where there are any, else with its unit."""
    west, east, south, north = extent(domain)
    to_scale = 1 / LONGEST <= (east - west) / (north - south) <= LONGEST
    axes.set_aspect("equal" if to_scale else "auto")
    # Cells make a frame themselves.
    for spine in axes.spines.values():
        spine.set_visible(domain.cells is None)
        spine.set_color(RULE)
    if not ticks:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    axes.tick_params(length=3)
    degrees = degree_ticks(domain)
    if degrees is None:
        note = "" if to_scale else ", not to scale"
        axes.set_xlabel(f"x{in_unit(domain.unit)}{note}")
        axes.set_ylabel(f"y{in_unit(domain.unit)}{note}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(round_ticks(6))
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value, 4)))
        return
    across, up = degrees
    axes.set_xticks([place for place, _ in across], labels=[name for _, name in across])
    axes.set_yticks([place for place, _ in up], labels=[name for _, name in up])
    if to_scale:
        _ruler(axes, domain.unit, east - west)


def degree_ticks(domain: Domain, most: int = 5) -> tuple[list[tuple[float, str]], list[tuple[float, str]]] | None:
    """Return ticks of longitude and of latitude: where each is, in the unit of the domain, and its text.

    Without degrees there are none.
    """
    degrees = _degrees(domain)
    if degrees is None:
        return None
    (start_x, per_x), (start_y, per_y) = degrees
    west, east, south, north = extent(domain)
    sides = []
    for start, per_degree, low, high, letters in (
        (start_x, per_x, west, east, "EW"),
        (start_y, per_y, south, north, "NS"),
    ):
        first, last = start + low / per_degree, start + high / per_degree
        nice = np.asarray(MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(first, last))
        # Rounding must not cost the ticks at the corners.
        slack = 1e-6 * (last - first)
        kept = nice[(nice >= first - slack) & (nice <= last + slack)]
        decimals = max(0, math.ceil(-math.log10(nice[1] - nice[0]) - 1e-9))
        sides.append([
            ((angle - start) * per_degree, f"{abs(shown):.{decimals}f}°{letters[0] if shown >= 0 else letters[1]}")
            for angle in kept.tolist()
            for shown in [angle if angle <= 180 else angle - 360]
        ])  # fmt: skip
    return sides[0], sides[1]


def plane_of(domain: Domain, positions: Floats) -> Floats:
    """Return where longitudes and latitudes (k, 2) are in the unit of the domain; without degrees, the same."""
    degrees = _degrees(domain)
    if degrees is None:
        return positions
    (start_x, per_x), (start_y, per_y) = degrees
    assert domain.coordinates is not None
    west, east = (float(end) for end in (domain.coordinates[:, 1].min(), domain.coordinates[:, 1].max()))
    positions = np.column_stack((turned(positions[:, 0], west, east), positions[:, 1]))
    return (positions - [start_x, start_y]) * [per_x, per_y]


def _degrees(domain: Domain) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return, for longitude and latitude, the degrees at 0 km and the km per degree, or None without degrees."""
    if domain.geographic is not None and domain.cells is not None:
        box = domain.geographic
        return (
            (box.west, domain.cells.width / (box.east - box.west)),
            (box.south, domain.cells.height / (box.north - box.south)),
        )
    if domain.coordinates is None:
        return None
    spans = np.ptp(domain.coordinates, axis=0)[::-1]
    lengths = np.ptp(domain.points, axis=0)
    if not (spans > 0).all() or not (lengths > 0).all():
        return None
    starts = domain.coordinates.min(axis=0)[::-1] - domain.points.min(axis=0) * spans / lengths
    rates = lengths / spans
    return (float(starts[0]), float(rates[0])), (float(starts[1]), float(rates[1]))


def _ruler(axes: Axes, unit: str, width: float) -> None:
    """Draw a bar of a round length below the lower left corner of a map."""
    length = ruler_length(width)
    place = axes.get_xaxis_transform()
    start = axes.get_xlim()[1] - length
    axes.plot(
        [start, start + length],
        [1.02, 1.02],
        transform=place,
        color=INK,
        linewidth=2,
        clip_on=False,
        solid_capstyle="butt",
    )
    axes.text(
        start + length, 1.03, f"{short(length)} {clip(unit)}", transform=place, ha="right", va="bottom", fontsize=8.5
    )


def ruler_length(width: float) -> float:
    """Return the longest round length that is at most a quarter of `width`.

    >>> ruler_length(9.0)
    2.0
    """
    exponent = 10.0 ** math.floor(math.log10(width / 4))
    return max(step * exponent for step in (1, 2, 5) if step * exponent <= width / 4)


def round_ticks(most: int) -> MaxNLocator:
    """Return at most `most` steps between ticks, of 1, 2, 2.5 or 5 times a power of ten."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def in_unit(unit: str) -> str:
    """Return a unit in brackets, to be put behind the name of an axis."""
    return f" ({clip(unit)})" if unit else ""
