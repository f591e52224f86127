"""Values as notebooks show them: small tables and pictures in HTML, in the colours of the notebook; data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._errors import MissingDependencyError

# One colour whose opacity says how much: it can be seen on light paper and on dark.
_COLOUR = "#8250c4"
_LEVELS = 12
_MOST_CELLS = 64
_SIDE = 220.0


def card(title: str, facts: Iterable[tuple[str, str]], picture: str = "") -> str:
    """Return a title, a table of facts, all plain text, and beside it a picture that is HTML already.

    >>> card("Prior", [("secrets", "<3")]).count("&lt;3")
    1
    """
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:normal;opacity:.7;padding:1px 14px 1px 0">{escape(name)}</th>'
        f'<td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div style="margin:4px 0"><div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:12px 24px;align-items:flex-start">'
        f'<table style="border-collapse:collapse;margin:0">{rows}</table>{picture}</div></div>'
    )


def heat_map(values: ArrayLike, what: str, ratio: float = 1.0) -> str:
    """Return a matrix as a picture, row 0 above; large ones are averaged. `ratio` is height by width."""
    matrix = np.asarray(values, dtype=np.float64)
    for axis in (0, 1):
        if matrix.shape[axis] > _MOST_CELLS:
            parts = np.array_split(np.arange(matrix.shape[axis]), _MOST_CELLS)
            matrix = np.stack([matrix.take(part, axis).mean(axis=axis) for part in parts], axis=axis)
    rows, columns = matrix.shape
    steps = np.ceil(matrix / (matrix.max() or 1.0) * _LEVELS).astype(np.int64)
    paths = []
    for step in range(1, _LEVELS + 1):
        places = np.argwhere(steps == step).tolist()
        if places:
            path = "".join(f"M{x} {y}h1v1h-1z" for y, x in places)
            paths.append(f'<path fill-opacity="{step / _LEVELS:.2f}" d="{path}"/>')
    return _svg(columns, rows, f'<g fill="{_COLOUR}" shape-rendering="crispEdges">{"".join(paths)}</g>', what, ratio)


def points_plot(points: ArrayLike, what: str) -> str:
    """Return points of the plane (n, 2) as a picture to scale."""
    places = np.asarray(points, dtype=np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    width, height = np.maximum((high - low) / span, 0.15) * 100
    shown = (places - low) / span * 100
    radius = float(np.clip(30 / len(places) ** 0.5, 0.8, 4))
    dots = "".join(f'<circle cx="{x:.2f}" cy="{height - y:.2f}" r="{radius:.1f}"/>' for x, y in shown[:2000].tolist())
    return _svg(float(width), float(height), f'<g fill="{_COLOUR}" fill-opacity=".75">{dots}</g>', what, height / width)


def outline_plot(vertices: ArrayLike, what: str) -> str:
    """Return a polygon about the origin, vertices (k, 2) in order, as a picture to scale."""
    corners = np.asarray(vertices, dtype=np.float64)
    reach = float(np.abs(corners).max(initial=0.0)) or 1.0
    shown = " ".join(f"{50 + 46 * x / reach:.2f},{50 - 46 * y / reach:.2f}" for x, y in corners.tolist())
    shape = (
        f'<polygon points="{shown}" fill="{_COLOUR}" fill-opacity=".25" stroke="{_COLOUR}"/>'
        '<path d="M47 50h6M50 47v6" stroke="currentColor"/>'
    )
    return _svg(100, 100, shape, what, 1.0)


def line_plot(values: ArrayLike, what: str) -> str:
    """Return values (k,) from 0 upwards as a line over equal steps."""
    numbers = np.asarray(values, dtype=np.float64)
    top = float(numbers.max(initial=0.0)) or 1.0
    along = np.linspace(0, 100, max(len(numbers), 2)).tolist()
    points = " ".join(f"{x:.2f},{58 - 56 * y / top:.2f}" for x, y in zip(along, numbers.tolist(), strict=False))
    axes = '<path d="M0 0v59h100" fill="none" stroke="currentColor" stroke-opacity=".5" stroke-width=".6"/>'
    line = f'<polyline points="{points}" fill="none" stroke="{_COLOUR}" stroke-width="1.4"/>'
    return _svg(100, 60, axes + line, what, 0.6)


def data_frame(columns: Mapping[str, Any] | ArrayLike, index: Any = None, names: Any = None) -> Any:
    """Return a pandas data frame: columns by name, or an array (n, m) with `names` for its columns.

    Raises MissingDependencyError where pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("data frames need pandas: pip install pandas") from error
    return pandas.DataFrame(columns, index=index, columns=names)


def _svg(width: float, height: float, inside: str, what: str, ratio: float) -> str:
    tall = min(_SIDE, _SIDE * ratio)
    size = f"width:{tall / ratio:.0f}px;height:{tall:.0f}px"
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" role="img" aria-label="{escape(what)}" '
        f'style="{size};flex:none;outline:1px solid rgba(128,128,128,.4)">{inside}</svg>'
    )
