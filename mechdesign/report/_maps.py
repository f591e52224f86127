"""Maps and bars of numbers: extent, frame, ticks, colours and marks."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from mechdesign.base._arrays import Floats
from mechdesign.model._domain import Domain, Grid
from mechdesign.model._words import clip, short
from mechdesign.report._canvas import Cells, Numbers
from mechdesign.report._scales import LEVELS, Scale
from mechdesign.report._style import ACCENT, INK, MUTED, RULE, is_on_page, is_slim, on_page_only

LONGEST = 12.0
"""Largest ratio of a map's sides at which it is drawn to scale; beyond it, the short side would be invisible."""


def borders(cells: Grid) -> tuple[Floats, Floats]:
    """Return the boundaries of the columns and of the rows of a grid."""
    return np.linspace(0, cells.width, cells.columns + 1), np.linspace(0, cells.height, cells.rows + 1)


def extent(domain: Domain) -> tuple[float, float, float, float]:
    """Return the western, eastern, southern and northern limits of the map of a domain in the plane."""
    if domain.cells is not None:
        return 0.0, domain.cells.width, 0.0, domain.cells.height
    (west, south), (east, north) = domain.points.min(axis=0), domain.points.max(axis=0)
    margin = 0.06 * (max(east - west, north - south) or 2.0)
    return float(west - margin), float(east + margin), float(south - margin), float(north + margin)


def frame(axes: Axes, domain: Domain, ticks: bool) -> None:
    """Show the map to scale, with degrees along its sides if the domain has degrees, and otherwise with the unit."""
    west, east, south, north = extent(domain)
    to_scale = 1 / LONGEST <= (east - west) / (north - south) <= LONGEST
    axes.set_aspect("equal" if to_scale else "auto")
    # The cells of a grid have visible borders, so a map of cells needs no frame.
    for spine in axes.spines.values():
        spine.set_visible(domain.cells is None)
        spine.set_color(RULE)
    if not ticks:
        axes.set_xticks([])
        axes.set_yticks([])
        # Drawing invisible axes would take most of the time of a page.
        axes.xaxis.set_visible(not is_on_page())
        axes.yaxis.set_visible(not is_on_page())
        return
    axes.tick_params(length=3)
    degrees = degree_ticks(domain, 4 if is_slim() else 5)
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
    """Return ticks of longitude and of latitude as pairs: the position in the unit of the domain, and the text.

    Returns None for a domain without degrees.
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
        # Keep ticks at the corners despite rounding.
        slack = 1e-6 * (last - first)
        kept = nice[(nice >= first - slack) & (nice <= last + slack)]
        decimals = max(0, math.ceil(-math.log10(nice[1] - nice[0]) - 1e-9))
        sides.append([
            ((angle - start) * per_degree, f"{abs(shown):.{decimals}f}°{letters[0] if shown >= 0 else letters[1]}")
            for angle in kept.tolist()
            for shown in [angle if angle <= 180 else angle - 360]
        ])  # fmt: skip
    return sides[0], sides[1]


def _degrees(domain: Domain) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return two pairs, for longitude and latitude: the degrees at 0 km and the km per degree; None without degrees."""
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


def _ruler(axes: Axes, unit: str, width: float, below: bool = False) -> None:
    """Draw a bar of a round length at the upper or lower right corner of a map."""
    length = ruler_length(width)
    place = axes.get_xaxis_transform()
    start = axes.get_xlim()[1] - length
    height, beyond, side = (-0.03, -0.05, "top") if below else (1.02, 1.03, "bottom")
    axes.plot(
        [start, start + length],
        [height, height],
        transform=place,
        color=INK,
        linewidth=2,
        clip_on=False,
        solid_capstyle="butt",
    )
    said = f"{short(length)} {clip(unit)}"
    axes.text(start + length, beyond, said, transform=place, ha="right", va=side, fontsize=8.5)


def ruler_length(width: float) -> float:
    """Return the longest round length that is at most a quarter of `width`.

    >>> ruler_length(9.0)
    2.0
    """
    exponent = 10.0 ** math.floor(math.log10(width / 4))
    return max(step * exponent for step in (1, 2, 5) if step * exponent <= width / 4)


def round_ticks(most: int) -> MaxNLocator:
    """Return a locator of at most `most` intervals whose length is 1, 2, 2.5 or 5 times a power of ten."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def in_unit(unit: str) -> str:
    """Return a unit in brackets, as a suffix for the name of an axis, or ""."""
    return f" ({clip(unit)})" if unit else ""


Kind = Literal["grid", "points", "line", "labels"]

_MOST_NAMES = 36
_MOST_BARS = 60
# Largest numbers of cells and of columns at which cells show their index, and the first level of colour that needs
# light text.
_MOST_NUMBERED, _MOST_COLUMNS, _DARK_LEVEL = 64, 10, 14
_LOWEST_BAR = 1.8
# Share of the colour bar, above the lowest tick, that has no other ticks if the first colour also represents smaller
# numbers.
_LOWER_END = 0.27
# Mean width of a character of tick labels, with some margin, in inches.
_CHARACTER = 0.08


def kind(domain: Domain | None) -> Kind:
    """Return how a domain is shown: as cells of a grid, points of a plane, places along a line, or labels."""
    if domain is None or domain.points.shape[1] not in (1, 2):
        return "labels"
    if domain.cells is not None and domain.points.shape[1] == 2:
        return "line" if 1 in (domain.cells.rows, domain.cells.columns) else "grid"
    return "line" if domain.points.shape[1] == 1 else "points"


def is_map(domain: Domain | None) -> bool:
    """Return whether a domain is shown as a map, and not as bars."""
    return kind(domain) in ("grid", "points")


def panel_size(domain: Domain | None, width: float, height: float) -> tuple[float, float]:
    """Return the size in inches, at most `width` × `height`, that fits the figure of a domain."""
    if not is_map(domain):
        return width, min(height, width * 0.62)
    west, east, south, north = extent(domain)  # type: ignore[arg-type]
    return fit_size((east - west) / (north - south), width, height)


def fit_size(ratio: float, width: float, height: float) -> tuple[float, float]:
    """Return the size in inches of a figure with this ratio of width to height, at most `width` × `height`."""
    if not 1 / LONGEST <= ratio <= LONGEST:
        return width, min(height, width * 0.4)
    return (width, width / ratio) if width / ratio <= height else (height * ratio, height)


def bar_room(domain: Domain | None, height: float) -> tuple[float, float]:
    """Return the width and the height that a `scale_bar` adds to a figure, in inches."""
    if not is_map(domain):
        return 0.0, 0.0
    return (1.0, 0.0) if height >= _LOWEST_BAR and not is_slim() else (0.0, 0.75)


def draw(
    axes: Axes,
    domain: Domain | None,
    values: Floats,
    scale: Scale,
    *,
    mark: int | None = None,
    ticks: bool = True,
) -> None:
    """Draw `values` (n,) for the n members of a domain, and mark one member.

    Cells and points get the colours of `scale`, and bars show its unit. If the scale has no colour for zeros, cells
    with 0 are hatched, points are hollow, and bars are replaced by hollow dots. `ticks` enables the numbers along maps.
    """
    axes.patch.set_gid(on_page_only("box"))
    form = kind(domain)
    if domain is None or not is_map(domain):
        positions, widths = bars(domain, len(values))
        _draw_bars(axes, positions, widths, values, scale, mark)
        if domain is not None and form == "line":
            axes.set_xlabel(f"position{in_unit(domain.unit)}")
        else:
            _name_bars(axes, domain, len(values))
        return
    if form == "grid":
        _draw_cells(axes, domain, values, scale)
    else:
        _draw_points(axes, domain, values, scale)
    frame(axes, domain, ticks)
    if is_on_page() and domain.unit and axes.get_aspect() != "auto" and (not ticks or _degrees(domain) is None):
        _ruler(axes, domain.unit, float(np.ptp(axes.get_xlim())), below=not ticks)
    if mark is not None:
        mark_place(axes, domain, mark)


def mark_place(axes: Axes, domain: Domain, index: int) -> None:
    """Mark a cell by its outline, or a point by a ring, visible on light and on dark colours."""
    if kind(domain) == "grid" and domain.cells is not None:
        columns, rows = borders(domain.cells)
        row, column = divmod(index, domain.cells.columns)
        corner = (columns[column], rows[row])
        size = (columns[column + 1] - columns[column], rows[row + 1] - rows[row])
        for colour, thickness in (("black", 2.8), ("white", 1.2)):
            style: dict[str, Any] = {"edgecolor": colour, "linewidth": thickness, "zorder": 5, "clip_on": False}
            axes.add_patch(Rectangle(corner, *size, fill=False, gid=on_page_only("mark"), **style))
        return
    x, y = domain.points[index]
    for colour, thickness in (("black", 3.6), ("white", 1.6)):
        ring = axes.scatter([x], [y], s=110, facecolor="none", edgecolor=colour, linewidth=thickness, zorder=5)
        ring.set_gid(on_page_only("mark"))


def scale_bar(figure: Figure, axes: list[Axes], scale: Scale, height: float) -> None:
    """Add a colour bar to the right of the panels, or below them if their `height` (in inches) is small."""
    upright = height >= _LOWEST_BAR and not is_slim()
    bar = figure.colorbar(
        ScalarMappable(scale.norm, scale.cmap),
        ax=axes,
        location="right" if upright else "bottom",
        extend="min" if scale.below else "neither",
        pad=0.015 if upright else 0.04,
        fraction=0.05,
        # The bar is 0.14 inches thick.
        aspect=height / 0.14 if upright else 30,
        shrink=0.96 if upright else 0.7,
    )
    bar.ax.set_gid(on_page_only("bar"))
    bar.outline.set_visible(False)
    assert bar.solids is not None
    bar.solids.set_gid(on_page_only("ramp"))
    bar.set_label(scale.label)
    bar.formatter = FuncFormatter(lambda value, _: scale.write(value))
    bar.long_axis.set_minor_formatter(NullFormatter())
    if not isinstance(scale.norm, LogNorm):
        bar.locator = round_ticks(6)
    bar.update_ticks()
    if is_slim() and scale.below:
        # The lowest tick has the sign ≤, because the first colour also represents all smaller numbers.
        low, top = scale.norm.vmin or 0.0, scale.norm.vmax or 1.0
        kept = [value for value in bar.get_ticks() if low * (top / low) ** _LOWER_END <= value <= top]
        bar.set_ticks([low, *kept], labels=[f"≤ {scale.write(low)}", *map(scale.write, kept)])


def zero_key(figure: Figure, domain: Domain | None, text: str) -> None:
    """Explain the symbol for zeros below the figure."""
    if kind(domain) == "grid":
        handle: Artist = _absent_patch()
    else:
        handle = Line2D([], [], linestyle="", marker="o", markersize=4, markerfacecolor="none", markeredgecolor=MUTED)
    figure.legend([handle], [text], loc="outside lower left", fontsize=8.5, handlelength=1.4, handleheight=1.0)


# The cache of hexadecimal colours remains small, because pages have few colours.
_hex = functools.lru_cache(to_hex)


def numbers_cells(domain: Domain) -> bool:
    """Return whether pages show the numbers of the cells of a domain."""
    cells = domain.cells
    return is_on_page() and cells is not None and domain.size <= _MOST_NUMBERED and cells.columns <= _MOST_COLUMNS


def _draw_cells(axes: Axes, domain: Domain, values: Floats, scale: Scale) -> None:
    assert domain.cells is not None
    columns, rows = borders(domain.cells)
    absent = (values == 0) & scale.zeros
    if absent.any():
        axes.add_patch(_absent_patch((columns[0], rows[0]), columns[-1], rows[-1]))
    if is_on_page():
        colours = map(_hex, map(tuple, scale.cmap(scale.norm(values)).tolist()))
        shown = ["" if hidden else colour for hidden, colour in zip(absent.tolist(), colours, strict=True)]
        axes.add_artist(Cells(columns, rows, shown))
        if numbers_cells(domain):
            _number_cells(axes, domain, values, scale)
    else:
        table = np.ma.masked_where(absent, values).reshape(domain.cells.rows, domain.cells.columns)
        axes.pcolormesh(columns, rows, table, norm=scale.norm, cmap=scale.cmap, rasterized=True, zorder=1)
    axes.set_xlim(columns[0], columns[-1])
    axes.set_ylim(rows[0], rows[-1])


def _number_cells(axes: Axes, domain: Domain, values: Floats, scale: Scale) -> None:
    """Write the index of each cell into the cell, in a light colour on dark cells."""
    assert domain.cells is not None
    inches = axes.bbox.width / axes.figure.dpi / domain.cells.columns
    dark = scale.norm(values) * LEVELS >= _DARK_LEVEL
    strong = dark & ~((values == 0) & scale.zeros)
    axes.add_artist(Numbers(domain.points, strong, min(8.5, 20 * inches)))


def _draw_points(axes: Axes, domain: Domain, values: Floats, scale: Scale) -> None:
    present = ~((values == 0) & scale.zeros)
    x, y = domain.points.T
    # All points together cover about a tenth of the figure, and each is visible.
    largest = float(np.clip(20000 / len(values), 24, 260))
    sizes = (
        largest * np.clip(values / (values.max() or 1.0), 0.12, 1.0)
        if scale.zeros
        else np.full(len(values), largest / 2)
    )
    absent = axes.scatter(x[~present], y[~present], s=14, facecolor="none", edgecolor=MUTED, linewidth=0.7, zorder=2)
    absent.set_gid(on_page_only("values"))
    order = np.flatnonzero(present)[np.argsort(-values[present], kind="stable")]
    axes.scatter(
        x[order],
        y[order],
        s=sizes[order],
        c=values[order],
        norm=scale.norm,
        cmap=scale.cmap,
        edgecolor=MUTED,
        linewidth=0.5,
        zorder=3,
        rasterized=len(values) > 400 and not is_on_page(),
        gid=on_page_only("values"),
    )
    west, east, south, north = extent(domain)
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)


def _draw_bars(axes: Axes, positions: Floats, width: Floats, values: Floats, scale: Scale, mark: int | None) -> None:
    colour = scale.cmap(0.62)
    if is_on_page():
        colours = [ACCENT if index == mark else colour for index in range(len(values))]
        across = positions[:, None] + np.multiply.outer(width / 2, [-1, -1, 1, 1])
        corners = np.stack([across, np.multiply.outer(values, [0, 1, 1, 0])], axis=-1)
        axes.add_collection(PolyCollection(list(corners), facecolors=colours, linewidth=0, gid="values", zorder=2))
    elif len(values) <= _MOST_BARS:
        bars = axes.bar(positions, values, width, color=colour, zorder=2)
        if mark is not None:
            bars[mark].set_color(ACCENT)
    else:
        # Draw all bars as one collection: hundreds of single bars would make a large file.
        axes.vlines(positions, 0, values, color=colour, linewidth=1.2, zorder=2)
        if mark is not None:
            axes.vlines(positions[mark], 0, values[mark], color=ACCENT, linewidth=2, zorder=3)
    if mark is not None:
        axes.plot(
            positions[mark],
            0,
            marker="^",
            markersize=7,
            color=ACCENT,
            clip_on=False,
            zorder=6,
            markeredgecolor="none",
            transform=axes.get_xaxis_transform(),
            gid=on_page_only("mark"),
        )
    absent = np.flatnonzero((values == 0) & scale.zeros)
    if absent.size:
        axes.plot(
            positions[absent],
            np.zeros(len(absent)),
            "o",
            markersize=3.2,
            markerfacecolor="none",
            markeredgecolor=MUTED,
            markeredgewidth=0.6,
            clip_on=False,
            zorder=4,
            gid=on_page_only("values"),
        )
    margin = 0.6 * float(np.max(width))
    axes.set_xlim(positions.min() - margin, positions.max() + margin)
    axes.set_ylim(0, float(scale.norm.vmax or 1.0) * 1.04)
    axes.yaxis.set_major_locator(round_ticks(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: scale.write(value)))
    axes.set_ylabel(scale.label.removesuffix(" (log scale)"))
    axes.grid(axis="y")


def _name_bars(axes: Axes, domain: Domain | None, n: int) -> None:
    numbered = domain is None or all(label == str(index) for index, label in enumerate(domain.labels))
    if domain is None or numbered or n > _MOST_NAMES:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}" if 0 <= value < n else ""))
        axes.set_xlabel("index")
        return
    names = [clip(label) for label in domain.labels]
    room = axes.get_position().width * (axes.figure.bbox.width / axes.figure.dpi) / n
    upright = max(map(len, names)) * _CHARACTER > room
    axes.set_xticks(range(n), names, rotation=90 if upright else 0)
    axes.tick_params(axis="x", length=0)


def along(domain: Domain) -> tuple[Floats, Floats]:
    """Return positions and widths of bars for a domain along a line."""
    if domain.cells is not None:
        columns, rows = borders(domain.cells)
        ends = columns if domain.cells.rows == 1 else rows
        return (ends[1:] + ends[:-1]) / 2, 0.9 * np.diff(ends)
    positions = domain.points[:, 0]
    gaps = np.diff(np.unique(positions))
    width = max(0.8 * float(gaps.min()), float(np.ptp(positions)) / 250) if gaps.size else 1.0
    return positions, np.full(len(positions), width)


def bars(domain: Domain | None, size: int) -> tuple[Floats, Floats]:
    """Return positions and widths of the bars of a domain that is not a map; without a domain, `size` equal bars."""
    if domain is not None and kind(domain) == "line":
        return along(domain)
    return np.arange(size, dtype=np.float64), np.full(size, 0.8)


def _absent_patch(corner: tuple[float, float] = (0.0, 0.0), width: float = 1.0, height: float = 1.0) -> Patch:
    return Rectangle(corner, width, height, facecolor="none", edgecolor=MUTED, hatch="//////", linewidth=0.4, zorder=0)
