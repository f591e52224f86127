"""Shared parts of the pictures: marks that are distinguishable in grey, axes with units, and legends below."""

from __future__ import annotations

import textwrap
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from mechdesign.model._words import short
from mechdesign.report._style import new_figure

__all__ = ["COLOURS", "DASHES", "MARKERS", "finish", "headline", "label", "line", "logarithmic", "panels"]

# Okabe and Ito's palette, alternately dark and light, so that successive lines also differ in grey.
COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)))


def panels(columns: int = 1, rows: int = 1, width: float = 4.3, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of `width` × `height` inches and a list of the panels, row by row."""
    figure = new_figure(columns * width, rows * height + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [axes for row in grid for axes in row]


def line(kind: int, *, markers: bool = True, lines: bool = True) -> dict[str, object]:
    """Return the keywords of `Axes.plot` for series number `kind`; from the eighth series on, marks are hollow."""
    return {
        "markerfacecolor": "white" if kind >= len(COLOURS) else COLOURS[kind],
        "color": COLOURS[kind % len(COLOURS)],
        "marker": MARKERS[kind % len(MARKERS)] if markers else None,
        "linestyle": DASHES[kind % len(DASHES)] if lines else "none",
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def logarithmic(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at powers of ten; if these are few, also at 2 and 5 times."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high < 200 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Name the axes, with units, and the panel."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left")
    axes.grid(True, axis="y")


def finish(figure: Figure, text: str, *, legend: Axes | None = None, columns: int = 4) -> Figure:
    """Put the headline above the figure, and the legend of one of its panels below."""
    if legend is not None:
        figure.legend(*legend.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8.5)
    headline(figure, text)
    return figure


def headline(figure: Figure, text: str) -> None:
    """Put a headline above the whole figure, aligned to the left; a character is about 0.0875 inches wide."""
    filled = textwrap.fill(text, max(20, int((figure.get_figwidth() - 0.2) / 0.0875)))
    figure.suptitle(filled, x=0.005, ha="left", size=11.0, weight="bold", linespacing=1.25)
