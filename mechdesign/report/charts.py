"""Pictures as parts of a page: maps and bars that keep their type at every width, follow dark mode and can be asked.

Text is HTML, shapes are SVG; colours are classes of the style sheet (`mechdesign.report.scales.ramps`). The script of
the page (`report.js`) finds out from `data-` attributes what a picture shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from mechdesign.report.scales import Scale
from mechdesign.report.scales import levels
from mechdesign.report.scales import ticks
from mechdesign.report.views import TALLEST
from mechdesign.report.views import WIDTH
from mechdesign.report.views import View
from mechdesign.model._words import plain
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["HATCH", "Panel", "framed", "key", "panel", "panels"]


HATCH = (
    '<svg class="defs" aria-hidden="true"><defs><pattern id="hatch" width="18" height="18" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v18" class="hatch"/></pattern>'
    "</defs></svg>"
)
"""Defines, once for a page, how cells of probability zero are filled."""

# Cells with numbers in them are at least so wide on a phone that two digits can be read.
_MOST_NUMBERED, _MOST_COLUMNS = 64, 10
# Largest height of a picture among many, in rem.
_SMALL = 18.0
# The part of the bar of colours that its lower end takes where that stands for everything below, too.
_LOWER_END = 0.27


@dataclass(frozen=True, eq=False)
class Panel:
    """One picture: `values` (n,) of the members of a view.

    Attributes:
        view: Where the members are.
        values: A number for each, shape (n,).
        scale: Their colours.
        what: What the values are, for readers without eyes: "prior probability".
        title: Plain text above the picture.
        shows: What the script calls the values: "prior", "error" or "row 17".
        side: Whose members these are: "secrets" or "answers".
        mark: A member that is outlined.
        cross: A place in the box, marked by a cross.
        outline: Identifier of an outline, a path in the box of a map, that the page defines.
    """

    view: View
    values: Floats
    scale: Scale
    what: str
    title: str = ""
    shows: str = ""
    side: str = "secrets"
    mark: int | None = None
    cross: tuple[float, float] | None = None
    outline: str = ""


def framed(name: str, finding: str, body: Iterable[str], caption: str) -> str:
    """Return a figure: what is found as its title, the pictures, and its caption; `body` is HTML already."""
    title = f'<h3 class="finding">{escape(plain(finding))}</h3>'
    note = [f"<figcaption>{escape(plain(caption))}</figcaption>"] if caption else []
    return "\n".join([f'<figure id="{name}">', title, *body, *note, "</figure>"])


def panels(shown: Sequence[Panel]) -> str:
    """Return pictures side by side where there is room, else stacked."""
    return "\n".join(['<div class="panels">', *(panel(each, small=len(shown) > 1) for each in shown), "</div>"])


def panel(shown: Panel, small: bool = False) -> str:
    """Return one picture with its title, ticks and scale bar; small ones have ticks only where they are bars."""
    view = shown.view
    title = f'<p class="title">{escape(plain(shown.title))}</p>' if shown.title else ""
    if view.is_map:
        parts = [_svg(shown), *([] if small else _map_ticks(view)), _ruler(view)]
        limit = (_SMALL if small else TALLEST) * WIDTH / view.height
        style, kind = f"max-width:{limit:.1f}rem", "plot map" + (" bare" if small else "")
    else:
        parts = [_svg(shown), _side(_value_ticks(shown.scale)), _below(view)]
        style, kind = "", "plot bars"
    axis = f'<p class="axis">{escape(plain(view.axis))}</p>' if view.axis and not (small and view.is_map) else ""
    inside = "\n".join(part for part in (title, f'<div class="{kind}">', *parts, "</div>", axis) if part)
    return f'<div class="panel"{f" style={chr(34)}{style}{chr(34)}" if style else ""}>\n{inside}\n</div>'


def key(scale: Scale, zero: str = "", points: bool = False) -> str:
    """Return the bar of the colours of maps with its label, and how a `zero` is shown where that is said."""
    places = [(at, name) for at, name in ticks(scale) if at >= _LOWER_END or not scale.below]
    marks = "".join(f'<span style="left:{100 * at:.1f}%">{escape(name)}</span>' for at, name in places)
    below = f'<span class="below">≤ {escape(scale.write(float(scale.norm.vmin or 0.0)))}</span>' if scale.below else ""
    absent = f'<p class="zero"><i class="{"hollow" if points else "hatched"}"></i>{escape(zero)}</p>' if zero else ""
    return (
        f'<div class="key"><p class="label">{escape(plain(scale.label))}</p>'
        f'<div class="ramp ramp-{scale.hue}"></div><p class="ticks">{below}{marks}</p>{absent}</div>'
    )


def _svg(shown: Panel) -> str:
    view = shown.view
    shapes = [*_shapes(shown), *_numbers(shown)]
    if shown.outline:
        # A picture within the picture ends at its borders.
        shapes.append(
            f'<svg width="{WIDTH:g}" height="{view.height:.6g}"><use class="outline" href="#{shown.outline}"/></svg>'
        )
    shapes += _marks(shown)
    stretch = "" if view.is_map else ' preserveAspectRatio="none"'
    label = escape(plain(f"{shown.title + ': ' if shown.title else ''}{shown.what}, {_summary(shown)}"))
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {view.height:.6g}" role="img" tabindex="0" aria-label="{label}"{stretch}'
        f' data-shows="{shown.shows}" data-side="{shown.side}" data-hue="{shown.scale.hue}">\n'
        + "\n".join(shapes)
        + "\n</svg>"
    )


def _summary(shown: Panel) -> str:
    most = int(np.argmax(shown.values))
    domain = shown.view.domain
    name = plain(domain.labels[most]) if domain is not None else str(most)
    return f"{len(shown.values)} values, the largest {shown.scale.write(float(shown.values[most]))} at {name}"


def _shapes(shown: Panel) -> list[str]:
    """Return the cells, points or bars, those of one colour together."""
    view, scale = shown.view, shown.scale
    absent = (shown.values == 0) & scale.zeros
    if not view.is_map:
        return _bars(view, shown.values, scale, absent, shown.mark)
    of = levels(scale, shown.values)
    if view.form == "points":
        return _points(view, shown.values, scale, of, absent)
    columns, rows = view.cells
    size = f"scale({WIDTH / columns:.6g} {view.height / rows:.6g})"
    hatched = [f'<path class="absent" d="M0 0h{WIDTH:g}v{view.height:.6g}H0z"/>'] if absent.any() else []
    return [*hatched, f'<g class="values" transform="{size}">', *_cells(columns, rows, of, absent, scale.hue), "</g>"]


def _cells(
    columns: int, rows: int, of: Integers, absent: Flags, hue: str
) -> list[str]:  # fmt: skip
    """Return a path for each colour, of runs of cells in a row; the grid's row 0 is the lowest."""
    found: dict[int, list[str]] = {}
    coded = np.where(absent, -1, of).reshape(rows, columns)[::-1]
    for y, row in enumerate(coded):
        starts = np.flatnonzero(np.diff(row, prepend=-2))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), columns], strict=True):
            if row[start] >= 0:
                found.setdefault(int(row[start]), []).append(f"M{start} {y}h{end - start}v1h{start - end}z")
    return [f'<path class="{hue}{level}" d="{"".join(parts)}"/>' for level, parts in sorted(found.items())]


def _points(
    view: View, values: Floats, scale: Scale, of: Integers, absent: Flags
) -> list[str]:  # fmt: skip
    largest = float(view.widths[0]) / 2
    part = np.clip(values / (values.max() or 1.0), 0.12, 1.0) if scale.zeros else np.full(len(values), 0.5)
    lines = ['<g class="values">']
    # The smallest last, so that none is hidden; those without a colour below all.
    for index in np.lexsort((-values, ~absent)).tolist():
        x, y = view.places[index]
        kind = "hollow" if absent[index] else f"{scale.hue}{of[index]}"
        radius = largest * (0.3 if absent[index] else float(part[index]) ** 0.5)
        lines.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
    return [*lines, "</g>"]


def _bars(
    view: View, values: Floats, scale: Scale, absent: Flags, mark: int | None
) -> list[str]:  # fmt: skip
    top = float(scale.norm.vmax or 1.0)
    rules = "".join(f"M0 {view.height * (1 - at):.1f}h{WIDTH:g}" for at, _ in _value_ticks(scale))
    shapes = [f'<path class="rules" d="{rules}"/>']
    drawn: dict[str, list[str]] = {"bar": [], "bar mark": [], "none": []}
    for index, (x, _) in enumerate(view.places.tolist()):
        width, height = float(view.widths[index]), view.height * float(values[index]) / top
        kind = "none" if absent[index] else "bar mark" if index == mark else "bar"
        if kind == "none":
            drawn[kind].append(f"M{x:.1f} {view.height:g}h0")
        else:
            drawn[kind].append(f"M{x - width / 2:.1f} {view.height:g}v{-height:.1f}h{width:.1f}v{height:.1f}z")
    shapes.append('<g class="values">')
    shapes += [f'<path class="{kind}" d="{"".join(parts)}"/>' for kind, parts in drawn.items() if parts]
    shapes.append("</g>")
    return shapes


def _numbers(shown: Panel) -> list[str]:
    """Return the numbers of cells where there are few."""
    view = shown.view
    columns, rows = view.cells
    if view.form != "grid" or columns * rows > _MOST_NUMBERED or columns > _MOST_COLUMNS:
        return []
    size = min(0.3 * WIDTH / columns, 0.42 * view.height / rows, 48.0)
    of = np.where((shown.values == 0) & shown.scale.zeros, -1, levels(shown.scale, shown.values))
    lines = [f'<g class="numbers" font-size="{size:.3g}">']
    for index, (x, y) in enumerate(view.places.tolist()):
        strong = ' class="on"' if of[index] >= 14 else ""
        lines.append(f'<text x="{x:.4g}" y="{y + 0.36 * size:.4g}"{strong}>{index}</text>')
    return [*lines, "</g>"]


def _marks(shown: Panel) -> list[str]:
    view = shown.view
    if not view.is_map:
        return []
    if shown.cross is not None:
        x, y = shown.cross
        path = f'd="M{x - 14:.1f} {y - 14:.1f}l28 28m0 -28l-28 28"'
        return [f'<path class="mark outer" {path}/>', f'<path class="mark" {path}/>']
    if shown.mark is None:
        return []
    x, y = view.places[shown.mark]
    if view.form == "points":
        radius = 0.62 * float(view.widths[0])
        circle = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
        return [f'<circle class="mark outer" {circle}/>', f'<circle class="mark" {circle}/>']
    width, height = WIDTH / view.cells[0], view.height / view.cells[1]
    cell = f'x="{x - width / 2:.2f}" y="{y - height / 2:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return [f'<rect class="mark outer" {cell}/>', f'<rect class="mark" {cell}/>']


def _map_ticks(view: View) -> list[str]:
    return [_side(view.up), _below(view)]


def _value_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Return ticks at the side of bars, which are never on a logarithmic scale."""
    linear = scale if not scale.logarithmic else scale.from_zero()
    return ticks(linear)


def _side(places: Iterable[tuple[float, str]]) -> str:
    # The longest text makes room for all: the others have places of their own.
    listed = list(places)
    longest = max((name for _, name in listed), key=len, default="")
    marks = "".join(f'<span style="bottom:{100 * at:.1f}%">{escape(name)}</span>' for at, name in listed)
    return f'<div class="side" aria-hidden="true"><b>{escape(longest)}</b>{marks}</div>'


def _below(view: View) -> str:
    kind = "below upright" if view.upright else "below"
    marks = "".join(f'<span style="left:{100 * at:.1f}%">{escape(plain(name))}</span>' for at, name in view.across)
    longest = max((name for _, name in view.across), key=len, default="") if view.upright else ""
    room = f"<b>{escape(plain(longest))}</b>" if longest else ""
    return f'<div class="{kind}" aria-hidden="true">{room}{marks}</div>'


def _ruler(view: View) -> str:
    if view.ruler is None:
        return ""
    length, name = view.ruler
    return f'<p class="ruler"><i style="width:{100 * length:.2f}%"></i>{escape(plain(name))}</p>'
