"""Small figures of values for the cards of `mechdesign.base._display`, as images that untrusted notebooks show, too."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html import escape

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike

from mechdesign.report._style import ACCENT, MUTED, RULE, in_report_style, new_figure, on_page
from mechdesign.report._svg import inline_svg

# One colour with varying opacity, and greys, are visible on light and on dark backgrounds.
_COLOUR = "#8250c4"
_LEVELS, _MOST_CELLS, _MOST_POINTS = 12, 64, 2000
_SIDE = 2.3
_VARIABLES = f"--ink:#808080;--muted:#808080;--rule:#80808066;--accent:{_COLOUR};--font:sans-serif"
_WIDTH = re.compile(r' style="width: ([\d.]+)rem"')


def heat_map(values: ArrayLike, what: str, ratio: float = 1.0) -> str:
    """Return a matrix as a figure with row 0 on top; large matrices are averaged. `ratio` is height / width."""
    matrix = np.asarray(values, dtype=np.float64)
    for axis in (0, 1):
        if matrix.shape[axis] > _MOST_CELLS:
            parts = np.array_split(np.arange(matrix.shape[axis]), _MOST_CELLS)
            matrix = np.stack([matrix.take(part, axis).mean(axis=axis) for part in parts], axis=axis)
    colours = ListedColormap([(*to_rgb(_COLOUR), step / _LEVELS) for step in range(_LEVELS + 1)])
    top = float(matrix.max()) or 1.0

    def draw(axes: Axes) -> None:
        axes.pcolormesh(np.ceil(matrix[::-1] / top * _LEVELS), cmap=colours, vmin=0, vmax=_LEVELS, rasterized=True)

    return _picture(draw, what, ratio)


def points_plot(points: ArrayLike, what: str) -> str:
    """Return points of the plane (n, 2) as a figure to scale."""
    places = np.asarray(points, dtype=np.float64)
    spans = np.ptp(places, axis=0)
    width, height = np.maximum(spans / (float(spans.max()) or 1.0), 0.15).tolist()
    shown = places[:_MOST_POINTS]
    size = float(np.clip(3000 / len(places), 1, 40))

    def draw(axes: Axes) -> None:
        axes.scatter(
            shown[:, 0], shown[:, 1], s=size, color=ACCENT, alpha=0.75, linewidth=0, rasterized=len(shown) > _MOST_CELLS
        )

    return _picture(draw, what, height / width)


def outline_plot(vertices: ArrayLike, what: str) -> str:
    """Return a polygon around the origin, with vertices (k, 2) in order, as a figure to scale."""
    corners = np.asarray(vertices, dtype=np.float64)
    reach = 1.08 * float(np.abs(corners).max(initial=0.0)) or 1.0

    def draw(axes: Axes) -> None:
        axes.add_patch(Polygon(corners, facecolor=ACCENT, edgecolor="none", alpha=0.25))
        axes.add_patch(Polygon(corners, fill=False, edgecolor=ACCENT))
        axes.plot(0, 0, "+", color=MUTED)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))

    return _picture(draw, what, 1.0)


def line_plot(values: ArrayLike, what: str) -> str:
    """Return nonnegative values (k,) as a line over equal steps."""
    numbers = np.asarray(values, dtype=np.float64)

    def draw(axes: Axes) -> None:
        axes.plot(numbers, color=ACCENT)
        axes.set_ylim(0, 1.05 * float(numbers.max(initial=0.0)) or 1.0)

    return _picture(draw, what, 0.6)


def _picture(draw: Callable[[Axes], None], what: str, ratio: float) -> str:
    height = min(_SIDE, _SIDE * ratio)
    with on_page("panels"):
        made = _figure(draw, height / ratio, height)
    drawn = inline_svg(made, "card", what)
    width = _WIDTH.search(drawn)
    assert width is not None
    # Notebooks that are not trusted remove SVG elements, but not images.
    start = f'<svg xmlns="http://www.w3.org/2000/svg" style="{_VARIABLES}"'
    whole = start + _WIDTH.sub("", drawn, 1).removeprefix("<svg")
    content = base64.b64encode(whole.encode()).decode()
    size = f"width:{width.group(1)}rem;max-width:100%;flex:none"
    return f'<img alt="{escape(what)}" src="data:image/svg+xml;base64,{content}" style="{size}"/>'


@in_report_style
def _figure(draw: Callable[[Axes], None], width: float, height: float) -> Figure:
    made = new_figure(width, height)
    axes = made.subplots()
    draw(axes)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=RULE)
    return made
