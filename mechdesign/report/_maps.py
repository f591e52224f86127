"""Maps and bars of numbers on the axes of a figure: norms, colours, extent, frame, ticks and marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.model._domain import Domain, Grid
from mechdesign.model._words import clip, short
from mechdesign.report._style import ACCENT, MUTED, RULE, WIDTH, ZERO, ink, is_ours

_NARROWEST, _FLATTEST = 1 / 3, 12.0
"""Ratios of width to height between which a map is drawn to scale; beyond them, one side would be hardly visible."""

COLOURS = LinearSegmentedColormap.from_list("places", ["#f3ead3", "#f0b27a", "#d35c5c", "#7d2f7a", "#231942"])
"""From light to dark with the number; the lightest colour differs from the white of the page."""

# Numbers below this share of the largest number are invisible on a linear scale. If more than half of the numbers are
# invisible, the scale is logarithmic, over this number of decades.
_INVISIBLE, _DECADES = 0.01, 4
# Largest numbers of labels along bars, and of bars that are drawn one by one.
_MOST_NAMES, _MOST_BARS = 36, 60
_HIGHEST = 3.6

Kind = Literal["grid", "points", "line", "labels"]


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


def find_norm(values: ArrayLike, start: float = 0.0) -> Normalize:
    """Return the norm of numbers: linear from `start`, or logarithmic if most of them would be invisible.

    Numbers below a logarithmic norm share its first colour.
    """
    array = np.asarray(values, dtype=np.float64)
    positive = array[np.isfinite(array) & (array > 0)]
    top = float(positive.max()) if positive.size else 1.0
    if not start and positive.size and float(np.mean(positive < _INVISIBLE * top)) > 0.5:
        return LogNorm(max(float(positive.min()), top * 10.0**-_DECADES), top, clip=True)
    return Normalize(start if start < top else 0.0, top)


def draw_map(
    axes: Axes,
    domain: Domain | None,
    values: ArrayLike,
    norm: Normalize | None = None,
    *,
    mark: int | None = None,
    ticks: bool = True,
) -> ScalarMappable | None:
    """Draw a number for each member of a domain: as colours of cells or places on a map, or as bars.

    Cells of exactly 0 are hatched, places of 0 are hollow, and bars of 0 are hollow dots. `Axes.legend` names
    this symbol.

    Args:
        axes: Axes of a figure.
        domain: The members, or None if they have neither places nor labels.
        values: One number for each member, shape (n,).
        norm: Map from numbers to [0, 1], shared by several maps; by default that of the values.
        mark: Index of a member that is outlined.
        ticks: Whether to show coordinates along a map, instead of a ruler only.

    Returns:
        The colours of a map, for `Figure.colorbar`; None for bars.

    Raises:
        InputError: If there is not one number for each member, or if the index is that of no member.

    Example:
        >>> from matplotlib.figure import Figure
        >>> import mechdesign as md
        >>> axes = Figure().subplots()
        >>> shown = draw_map(axes, md.Domain.grid(2, 2, 2.0, 2.0), [0.1, 0.2, 0.3, 0.4])
        >>> axes.figure.colorbar(shown).cmap.name
        'places'
    """
    require_kind(axes, Axes, "axes", "Matplotlib axes")
    numbers = named(values, "values", dtype=np.float64)
    if numbers.ndim != 1 or (domain is not None and len(numbers) != domain.size):
        bound = "one number for each member" if domain is None else f"{domain.size} numbers, one for each member"
        raise InputError("values", "has the wrong shape", value=numbers.shape, bound=bound)
    mark = None if mark is None else as_integer(mark, "mark", 0, len(numbers) - 1)
    norm = norm or find_norm(numbers)
    if domain is None or not is_map(domain):
        _draw_bars(axes, domain, numbers, norm, mark)
        return None
    # Colours keep numbers of 0 apart by a symbol, and a logarithmic norm would leave them out.
    shown = (_draw_cells if kind(domain) == "grid" else _draw_points)(axes, domain, numbers, norm)
    frame(axes, domain, ticks)
    if mark is not None:
        mark_place(axes, domain, mark)
    return shown


def draw_numbers(
    axes: Axes,
    domain: Domain | None,
    values: Floats,
    label: str,
    write: Callable[[float], str] = short,
    norm: Normalize | None = None,
) -> None:
    """Draw a number for each member of a domain, and name the numbers: on a colour bar below a map, or beside bars."""
    _draw_scale([axes], draw_map(axes, domain, values, norm), label, write)


def draw_panels(
    panels: Sequence[Axes],
    domain: Domain | None,
    rows: Floats,
    titles: Sequence[str],
    marks: Sequence[int | None],
    label: str,
    write: Callable[[float], str],
) -> None:
    """Draw numbers (k, m) of the members of a domain on k panels, on one scale."""
    norm = find_norm(rows)
    for panel, row, title, mark in zip(panels, rows, titles, marks, strict=True):
        shown = draw_map(panel, domain, row, norm, mark=mark, ticks=False)
        panel.set_title(title)
    _draw_scale(panels, shown, label, write)
    for panel in panels:
        panel.label_outer()


def _draw_scale(
    panels: Sequence[Axes], shown: ScalarMappable | None, label: str, write: Callable[[float], str]
) -> None:
    if shown is None:
        for panel in panels:
            panel.set_ylabel(label)
        return
    logarithmic = isinstance(shown.norm, LogNorm)
    extended = "min" if logarithmic else "neither"
    style: dict[str, Any] = {"location": "bottom", "extend": extended, "fraction": 0.05, "pad": 0.02, "aspect": 40}
    bar = panels[0].figure.colorbar(shown, ax=panels, **style)
    bar.outline.set_visible(False)
    bar.set_label(label + (" (log scale)" if logarithmic else ""))
    bar.formatter = FuncFormatter(lambda value, _: write(value))
    bar.long_axis.set_minor_formatter(NullFormatter())
    if not logarithmic:
        bar.locator = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
    bar.update_ticks()


def height_of_figure(domain: Domain | None) -> float:
    """Return the height in inches of a figure with one map, or with bars or a line."""
    return height_of(domain, WIDTH - 0.7) + (1.15 if is_map(domain) else 0.5)


def height_of_panels(domain: Domain | None, count: int) -> float:
    """Return the height in inches of a figure with panels, two of them beside each other."""
    columns, room = min(2, count), 0.3 if is_map(domain) else 0.6
    return -(-count // columns) * (height_of(domain, WIDTH / columns - 0.25) + room) + 0.85


def height_of(domain: Domain | None, width: float) -> float:
    """Return the height in inches of a map, or of bars, that is `width` inches wide."""
    if domain is None or not is_map(domain):
        return 0.55 * width
    west, east, south, north = extent(domain)
    ratio = (east - west) / (north - south)
    return min(width / ratio, _HIGHEST) if _NARROWEST <= ratio <= _FLATTEST else 0.5 * width


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


def frame(axes: Axes, domain: Domain, ticks: bool = True) -> None:
    """Show the map to scale, with degrees along its sides if the domain has degrees, and otherwise with the unit."""
    west, east, south, north = extent(domain)
    to_scale = _NARROWEST <= (east - west) / (north - south) <= _FLATTEST
    axes.set_aspect("equal" if to_scale else "auto")
    # The cells of a grid have visible borders, so a map of cells needs no frame.
    for spine in axes.spines.values() if is_ours(axes) else ():
        spine.set_visible(domain.cells is None)
        spine.set_color(RULE)
    degrees = _degree_ticks(domain) if ticks else [[], []]
    if degrees is None:
        note = "" if to_scale else ", not to scale"
        axes.set_xlabel(f"x{in_unit(domain.unit)}{note}")
        axes.set_ylabel(f"y{in_unit(domain.unit)}{note}")
        for axis in (axes.xaxis, axes.yaxis):
            number_axis(axis, 6, lambda value: short(value, 4))
        return
    across, up = degrees
    # A narrow panel has room for two longitudes, which fine steps bring close to its sides.
    across = across[:: max(1, len(across) - 1)]
    axes.set_xticks([place for place, _ in across], labels=[name for _, name in across])
    axes.set_yticks([place for place, _ in up], labels=[name for _, name in up])
    if to_scale and domain.unit:
        # Panels without ticks have titles above.
        _ruler(axes, domain.unit, below=not ticks)


def _degree_ticks(domain: Domain) -> list[list[tuple[float, str]]] | None:
    """Return ticks of longitude and of latitude, as positions in the unit of the domain with their texts.

    Returns None for a domain without degrees.
    """
    if domain.coordinates is None:
        return None
    angles, points = domain.coordinates[:, ::-1], domain.points
    spans, lengths = np.ptp(angles, axis=0), np.ptp(points, axis=0)
    if not ((spans > 0) & (lengths > 0)).all():
        return None
    rates = lengths / spans
    starts = angles.min(axis=0) - points.min(axis=0) / rates
    sides = []
    limits, steps = np.reshape(extent(domain), (2, 2)), ((8, "EW"), (4, "NS"))
    for start, rate, ends, (most, letters) in zip(starts, rates, limits, steps, strict=True):
        first, last = start + ends / rate
        nice = np.asarray(MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(first, last))
        # Keep ticks at the corners despite rounding.
        slack = 1e-6 * (last - first)
        kept = nice[(nice >= first - slack) & (nice <= last + slack)]
        decimals = max(0, math.ceil(-math.log10(nice[1] - nice[0]) - 1e-9))
        sides.append([
            (float((angle - start) * rate), f"{abs(shown):.{decimals}f}°{letters[0] if shown >= 0 else letters[1]}")
            for angle in kept.tolist()
            for shown in [angle if angle <= 180 else angle - 360]
        ])  # fmt: skip
    return sides


def _ruler(axes: Axes, unit: str, below: bool) -> None:
    """Draw a bar of a round length above or below the right corner of a map."""
    west, east = axes.get_xlim()
    length, place = ruler_length(east - west), axes.get_xaxis_transform()
    height, beyond, side = (-0.03, -0.05, "top") if below else (1.02, 1.03, "bottom")
    ends = [east - length, east]
    style: dict[str, Any] = {"color": ink(axes), "linewidth": 2, "clip_on": False, "solid_capstyle": "butt"}
    axes.plot(ends, [height, height], transform=place, **style)
    axes.text(east, beyond, f"{short(length)} {clip(unit)}", transform=place, ha="right", va=side, fontsize=8.0)


def ruler_length(width: float) -> float:
    """Return the longest round length that is at most a quarter of `width`.

    >>> ruler_length(9.0)
    2.0
    """
    exponent = 10.0 ** math.floor(math.log10(width / 4))
    return max(step * exponent for step in (1, 2, 5) if step * exponent <= width / 4)


def number_axis(axis: Axis, most: int, write: Callable[[float], str] = short) -> None:
    """Give an axis ticks with at most `most` intervals, whose length is 1, 2, 2.5 or 5 times a power of ten."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def in_unit(unit: str) -> str:
    """Return a unit in brackets, as a suffix for the name of an axis, or ""."""
    return f" ({clip(unit)})" if unit else ""


def mark_place(axes: Axes, domain: Domain, index: int) -> None:
    """Mark a cell by its outline, or a point by a ring, visible on light and on dark colours."""
    x, y = domain.points[index]
    for colour, thickness in (("black", 2.8), ("white", 1.2)):
        if domain.cells is not None:
            width, height = domain.cells.width / domain.cells.columns, domain.cells.height / domain.cells.rows
            style: dict[str, Any] = {"edgecolor": colour, "linewidth": thickness, "zorder": 5, "clip_on": False}
            axes.add_patch(Rectangle((x - width / 2, y - height / 2), width, height, fill=False, **style))
        else:
            axes.scatter([x], [y], s=110, facecolor="none", edgecolor=colour, linewidth=thickness, zorder=5)


def _draw_cells(axes: Axes, domain: Domain, values: Floats, norm: Normalize) -> ScalarMappable:
    """Draw cells as the pixels of an image, which readers of SVG enlarge without blurring."""
    cells = domain.cells
    assert cells is not None
    if (values == 0).any():
        style: dict[str, Any] = {"edgecolor": MUTED, "hatch": "//////", "linewidth": 0.4, "zorder": 0}
        axes.add_patch(Rectangle((0, 0), cells.width, cells.height, facecolor="none", label=ZERO, **style))
    table = np.ma.masked_equal(values, 0).reshape(cells.rows, cells.columns)
    limits = (0.0, cells.width, 0.0, cells.height)
    return axes.imshow(table, norm=norm, cmap=COLOURS, origin="lower", extent=limits, interpolation="none", zorder=1)


def _draw_points(axes: Axes, domain: Domain, values: Floats, norm: Normalize) -> ScalarMappable:
    # Points of one size are one shape in a file. All together cover about a tenth of the figure, and each is visible.
    size, present = float(np.clip(4000 / len(values), 16, 90)), values != 0
    x, y = domain.points.T
    hollow: dict[str, Any] = {"facecolor": "none", "edgecolor": MUTED, "linewidth": 0.7, "zorder": 2}
    axes.scatter(x[~present], y[~present], s=size, label="" if present.all() else ZERO, **hollow)
    # The largest numbers are on top.
    order = np.flatnonzero(present)[np.argsort(values[present], kind="stable")]
    style: dict[str, Any] = {"norm": norm, "cmap": COLOURS, "edgecolor": MUTED, "linewidth": 0.5, "zorder": 3}
    shown = axes.scatter(x[order], y[order], s=size, c=values[order], rasterized=len(values) > 400, **style)
    west, east, south, north = extent(domain)
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    return shown


def _draw_bars(axes: Axes, domain: Domain | None, values: Floats, norm: Normalize, mark: int | None) -> None:
    positions, width = bars(domain, len(values))
    if len(values) <= _MOST_BARS:
        drawn = axes.bar(positions, values, width, color=MUTED, zorder=2)
        if mark is not None:
            drawn[mark].set_color(ACCENT)
    else:
        # Draw all bars as one collection: hundreds of single bars would make a large file.
        axes.vlines(positions, 0, values, color=MUTED, linewidth=1.2, zorder=2)
    if mark is not None:
        style: dict[str, Any] = {"color": ACCENT, "clip_on": False, "zorder": 6, "markeredgecolor": "none"}
        axes.plot(positions[mark], 0, "^", markersize=7, transform=axes.get_xaxis_transform(), **style)
    # An empty line would break the layout.
    if len(absent := positions[values == 0]):
        hollow: dict[str, Any] = {"markersize": 3.2, "markerfacecolor": "none", "markeredgecolor": MUTED, "label": ZERO}
        axes.plot(absent, np.zeros(len(absent)), "o", markeredgewidth=0.6, clip_on=False, zorder=4, **hollow)
    margin = 0.6 * float(np.max(width))
    axes.set_xlim(positions.min() - margin, positions.max() + margin)
    axes.set_ylim(0, float(norm.vmax or 1.0) * 1.04)
    number_axis(axes.yaxis, 5)
    axes.grid(axis="y")
    if domain is not None and kind(domain) == "line":
        axes.set_xlabel(f"position{in_unit(domain.unit)}")
    else:
        _name_bars(axes, domain, len(values))


def _name_bars(axes: Axes, domain: Domain | None, n: int) -> None:
    if domain is None or n > _MOST_NAMES or all(label == str(index) for index, label in enumerate(domain.labels)):
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}" if 0 <= value < n else ""))
        axes.set_xlabel("index")
        return
    names = [clip(label) for label in domain.labels]
    axes.set_xticks(range(n), names, rotation=90 if sum(map(len, names)) > 40 else 0)
    axes.tick_params(axis="x", length=0)


def bars(domain: Domain | None, size: int) -> tuple[Floats, Floats]:
    """Return positions and widths of the bars of a domain that is not a map; without a domain, `size` equal bars."""
    if domain is None or kind(domain) != "line":
        return np.arange(size, dtype=np.float64), np.full(size, 0.8)
    if domain.cells is not None:
        columns, rows = borders(domain.cells)
        ends = columns if domain.cells.rows == 1 else rows
        return (ends[1:] + ends[:-1]) / 2, 0.9 * np.diff(ends)
    positions = domain.points[:, 0]
    gaps = np.diff(np.unique(positions))
    width = max(0.8 * float(gaps.min()), float(np.ptp(positions)) / 250) if gaps.size else 1.0
    return positions, np.full(len(positions), width)


def name_of(domain: Domain | None, index: int) -> str:
    """Return the name of a member: its label or number, with "cell" before a number of a grid cell.

    >>> name_of(Domain.grid(2, 1, 2.0, 1.0), 1), name_of(Domain.from_labels(["a", "b"]), 1)
    ('cell 1', 'b')
    """
    if domain is None:
        return str(index)
    cell = "cell " if domain.cells is not None and domain.labels[index] == str(index) else ""
    return cell + domain.labels[index]
