"""The interactive map of a page.

Text is HTML, shapes are SVG; colours are classes of the style sheet (`mechdesign.report._scales.ramps`). The script of
the page (`report.js`) finds out from `data-` attributes what a picture shows.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.data._maps import Outline
from mechdesign.model._domain import Domain
from mechdesign.model._words import clip, plain, short
from mechdesign.report import _maps as maps
from mechdesign.report._maps import LONGEST, degree_ticks, extent, in_unit, plane_of, round_ticks, ruler_length
from mechdesign.report._scales import LEVELS, Scale, levels, probability_scale, ticks

WIDTH = 1000.0
"""Width of every picture, in its own units."""

TALLEST = 28.0
"""Largest height of a map on its own, in rem."""


Tick = tuple[float, str]

_BARS_HEIGHT = 360.0
_MOST_NAMES = 36
# Characters of all names together that stand side by side on the narrowest screen.
_NARROW = 44
# Width of a map on a phone, and of a character of its ticks, in rem.
_PHONE, _CHARACTER = 17.0, 0.5


@dataclass(frozen=True, eq=False)
class View:
    """Where n members are drawn in a box of `WIDTH` × `height`, its origin the upper left corner.

    Attributes:
        form: "grid", "points" or "bars".
        height: Of the box; pictures of bars are stretched to any width, maps keep their shape.
        places: Centres of the members, shape (n, 2).
        widths: Widths of bars, or of points the diameter of the largest, shape (n,).
        cells: Columns and rows of a grid, else (0, 0).
        across: Ticks below: the place as a part of the width, from the left, and its text.
        up: Ticks at the side: the place as a part of the height, from below, and its text.
        ruler: Length of the scale bar as a part of the width, and its text; None without one.
        axis: What is along the lower side.
        upright: Whether the names below are too long to be read side by side.
        domain: What is shown.
    """

    form: str
    height: float
    places: Floats
    widths: Floats
    cells: tuple[int, int] = (0, 0)
    across: tuple[Tick, ...] = ()
    up: tuple[Tick, ...] = ()
    ruler: Tick | None = None
    axis: str = ""
    upright: bool = False
    domain: Domain | None = None

    @property
    def size(self) -> int:
        """Return the number of members."""
        return len(self.places)

    @property
    def is_map(self) -> bool:
        """Whether this is a map, and not bars."""
        return self.form != "bars"

    def data(self) -> dict[str, Any]:
        """Return what the script of the page needs to find and to name members."""
        found: dict[str, Any] = {"form": self.form, "height": round(self.height, 2), "size": self.size}
        domain = self.domain
        numbered = domain is None or all(label == str(index) for index, label in enumerate(domain.labels))
        found["word"] = "cell " if domain is not None and domain.cells is not None else ""
        if domain is not None and not numbered:
            found["names"] = [clip(label, 60) for label in domain.labels]
        if self.form == "grid":
            found["cells"] = self.cells
        else:
            found["places"] = np.round(self.places, 1).tolist()
            found["widths"] = np.round(self.widths, 1).tolist() if self.form == "bars" else float(self.widths[0])
        if domain is not None and (degrees := domain.degrees) is not None:
            found["degrees"] = np.round(degrees, 5).tolist()
        elif domain is not None and domain.points.shape[1] in (1, 2):
            found["centres"] = [[float(f"{value:.6g}") for value in point] for point in domain.points.tolist()]
            found["unit"] = plain(domain.unit)
        return found

    def onto(self, points: Floats) -> Floats:
        """Return where `points` (k, 2), in the unit of the domain, are in the box of a map."""
        assert self.domain is not None
        return _onto(self.domain, self.height, points)


def view(domain: Domain | None, size: int) -> View:
    """Return where the members of a domain are on a page; without one, `size` bars side by side."""
    kind = maps.kind(domain)
    if domain is None or kind == "labels":
        return _named(domain, size)
    if kind == "line":
        return _line(domain)
    return _plane(domain)


def name_of(domain: Domain | None, index: int, length: int = 34) -> str:
    """Return what a member is called: its label, or its number, with "cell" before that of a cell.

    >>> name_of(Domain.grid(2, 1, 2.0, 1.0), 1), name_of(Domain.from_labels(["a", "b"]), 1)
    ('cell 1', 'b')
    """
    if domain is None:
        return str(index)
    cell = "cell " if domain.cells is not None and domain.labels[index] == str(index) else ""
    return cell + clip(domain.labels[index], length)


def _plane(domain: Domain) -> View:
    west, east, south, north = extent(domain)
    ratio = (north - south) / (east - west)
    to_scale = 1 / LONGEST <= ratio <= LONGEST
    height = WIDTH * (ratio if to_scale else 0.4 if ratio < 1 else 1.5)
    cells = (domain.cells.columns, domain.cells.rows) if domain.cells is not None else (0, 0)
    degrees = degree_ticks(domain, 4)
    axis = ""
    if degrees is None:
        across = [(float(value), short(value, 4)) for value in round_ticks(5).tick_values(west, east)]
        up = [(float(value), short(value, 4)) for value in round_ticks(5).tick_values(south, north)]
        axis = f"x and y{in_unit(domain.unit)}" + ("" if to_scale else ", not to scale")
    else:
        across, up = degrees
    # The picture and the names beside it share the room.
    beside = (max((len(name) for _, name in up), default=0) + 1) * _CHARACTER
    ruler = None
    if to_scale and domain.unit:
        length = ruler_length(east - west)
        ruler = (length / (east - west), f"{short(length)} {clip(domain.unit)}")
    return View(
        "grid" if domain.cells is not None else "points",
        height,
        _onto(domain, height, domain.points),
        np.full(domain.size, _diameter(domain.size, height)),
        cells,
        _apart(_within(across, west, east), min(_PHONE, TALLEST * WIDTH / height - beside)),
        _within(up, south, north),
        ruler,
        axis,
        domain=domain,
    )


def _apart(ticks: tuple[Tick, ...], width: float) -> tuple[Tick, ...]:
    """Return as many of evenly spaced ticks as stand side by side below a map so many rem wide."""
    if len(ticks) < 2:
        return ticks
    longest = (max(len(name) for _, name in ticks) + 2) * _CHARACTER
    step = math.ceil(longest / ((ticks[1][0] - ticks[0][0]) * max(width, 1.0)))
    return ticks[(len(ticks) - 1) % step // 2 :: step]


def _onto(domain: Domain, height: float, points: Floats) -> Floats:
    west, east, south, north = extent(domain)
    x, y = points.T
    return np.column_stack(((x - west) / (east - west) * WIDTH, (north - y) / (north - south) * height))


def _diameter(n: int, height: float) -> float:
    """Return the largest diameter of points that cover about a tenth of the picture between them, and can be seen."""
    return float(np.clip(2 * np.sqrt(0.1 * WIDTH * height / (np.pi * n)), 14, 70))


def _line(domain: Domain) -> View:
    positions, widths = maps.along(domain)
    margin = 0.6 * float(np.max(widths))
    low, high = float(positions.min()) - margin, float(positions.max()) + margin
    ticks = [(float(value), short(value, 4)) for value in round_ticks(6).tick_values(low, high)]
    return View(
        "bars",
        _BARS_HEIGHT,
        np.column_stack(((positions - low) / (high - low) * WIDTH, np.full(len(positions), _BARS_HEIGHT))),
        widths / (high - low) * WIDTH,
        across=_within(ticks, low, high),
        axis=f"position{in_unit(domain.unit)}",
        domain=domain,
    )


def _named(domain: Domain | None, size: int) -> View:
    step = WIDTH / size
    centres = (np.arange(size) + 0.5) * step
    numbered = domain is None or all(label == str(index) for index, label in enumerate(domain.labels))
    if domain is None or numbered or size > _MOST_NAMES:
        whole = [int(value) for value in round_ticks(6).tick_values(0, size - 1) if value == int(value)]
        across = tuple((centres[index] / WIDTH, str(index)) for index in dict.fromkeys(whole) if 0 <= index < size)
        axis, upright = "index", False
    else:
        names = [clip(label) for label in domain.labels]
        across = tuple((centre / WIDTH, name) for centre, name in zip(centres.tolist(), names, strict=True))
        axis, upright = "", max(map(len, names)) * size > _NARROW
    return View(
        "bars",
        _BARS_HEIGHT,
        np.column_stack((centres, np.full(size, _BARS_HEIGHT))),
        np.full(size, 0.8 * step),
        across=across,
        axis=axis,
        upright=upright,
        domain=domain,
    )


def _within(ticks: list[Tick], low: float, high: float) -> tuple[Tick, ...]:
    slack = 1e-6 * (high - low)
    return tuple(((place - low) / (high - low), name) for place, name in ticks if low - slack <= place <= high + slack)


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


_MOST_ENTRIES = 260_000
# A number of three digits is stored as 1 + (digits − 100) + 900 · exponent: 10⁻² is the exponent 0; zero is 0.
_DIGITS = 900


def encoded(values: ArrayLike) -> str:
    """Return numbers in [0, 1], any shape, rounded to three digits, as a text: 16 bits each, compressed, base64.

    >>> decoded(encoded([0.0, 1.0, 0.12345])).tolist()
    [0.0, 1.0, 0.123]
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    codes = np.zeros(len(numbers), dtype="<u2")
    positive = np.flatnonzero(numbers > 0)
    exponents = np.floor(np.log10(numbers[positive]))
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    # Rounding may lead to the next power of ten, and a logarithm to the one before.
    exponents = exponents + (digits >= 1000) - (digits < 100)
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    codes[positive] = 1 + (digits - 100) + _DIGITS * -exponents
    return base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()


def decoded(text: str) -> Floats:
    """Return the numbers in a text that `encoded` made, shape (k,)."""
    codes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u2").astype(np.float64)
    exponents, digits = np.divmod(codes - 1, _DIGITS)
    # A quotient of whole numbers is the nearest float.
    return np.where(codes > 0, (100 + digits) / 10.0 ** (2 + exponents), 0.0)


def beliefs(matrix: ArrayLike, prior: ArrayLike) -> Floats:
    """Return, shape (n, n), what an adversary on average believes: row s is Σ_o p(o|s) Pr(t|o) for each secret t.

    The adversary knows the prior (n,) and the channel (n, m). Rows sum to 1; a secret that never occurs is never
    believed in.
    """
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    joint = channel * probabilities[:, None]
    total = joint.sum(axis=0)
    posterior = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    # An observable of probability 0 says nothing: the belief stays the prior.
    posterior[:, total == 0] = probabilities[:, None]
    found: Floats = channel @ posterior.T
    return found


@dataclass(frozen=True, eq=False)
class Explored:
    """What can be shown for each secret: its row of the channel, and what an adversary then believes."""

    secrets: View
    answers: View
    matrix: Floats
    prior: Floats
    beliefs: Floats
    scale: Scale
    first: int
    same: bool

    def rows(self) -> tuple[list[int], bool]:
        """Return the secrets that a page has room for, the likeliest ones, and whether they are all."""
        n, m = self.matrix.shape
        if n * m <= _MOST_ENTRIES:
            return list(range(n)), True
        most = max(1, _MOST_ENTRIES // (n + m))
        return sorted(np.argsort(-self.prior, kind="stable")[:most].tolist()), False


def explore(secrets: View, answers: View, matrix: ArrayLike, prior: ArrayLike, first: int, same: bool) -> Explored:
    """Return what a page shows of each secret; `same` says that the answers are secrets."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    believed = beliefs(channel, probabilities)
    scale = probability_scale(np.concatenate((channel.ravel(), believed.ravel())), "probability")
    return Explored(secrets, answers, channel, probabilities, believed, scale, first, same)


def explorer(shown: Explored, outlines: tuple[str, str] = ("", "")) -> str:
    """Return the figure that the script of the page changes; without a script it shows the first secret."""
    domain = shown.secrets.domain
    name = name_of(domain, shown.first)
    pictures = [
        Panel(shown.answers, shown.matrix[shown.first], shown.scale, "probability of each answer", "Its answers",
              "answers", "secrets" if shown.same else "answers", shown.first if shown.same else None,
              outline=outlines[1]),
        Panel(shown.secrets, shown.beliefs[shown.first], shown.scale, "the adversary’s mean belief",
              "What it is mistaken for", "beliefs", "secrets", shown.first, outline=outlines[0]),
    ]  # fmt: skip
    chooser = (
        '<p class="chooser" hidden><label>Secret <select></select></label> '
        "<span>or choose one in any picture: click, or use the arrow keys and Enter.</span></p>"
    )
    zero = "never" if (shown.matrix == 0).any() or (shown.beliefs == 0).any() else ""
    bar = key(shown.scale, zero, shown.secrets.form == "points") if shown.answers.is_map or shown.secrets.is_map else ""
    some = "" if shown.rows()[1] else f" This page holds the {len(shown.rows()[0])} likeliest secrets."
    return framed(
        "secret",
        f"One secret at a time: {name}",
        [chooser, panels(pictures), bar],
        "Left: how likely each answer is for the chosen secret. Right: how much an adversary who knows the prior and "
        "the mechanism then believes in each secret, on average over these answers; the chosen one is marked." + some,
    )


def data_block(shown: Explored, series: dict[str, tuple[ArrayLike, str]]) -> str:
    """Return the element with the data of a page; `series` has values and their unit (or "%") for other pictures."""
    rows, whole = shown.rows()
    data: dict[str, Any] = {
        "secrets": shown.secrets.data(),
        "answers": None if shown.same else shown.answers.data(),
        "rows": rows,
        "channel": encoded(shown.matrix[rows]),
        "beliefs": None if whole else encoded(shown.beliefs[rows]),
        "prior": _rounded_numbers(shown.prior),
        "scale": {
            "levels": LEVELS,
            "log": shown.scale.logarithmic,
            "low": float(shown.scale.norm.vmin or 0.0),
            "top": float(shown.scale.norm.vmax or 1.0),
        },
        "first": shown.first,
        "series": {name: {"values": _rounded_numbers(values), "unit": unit} for name, (values, unit) in series.items()},
    }
    return _block(data)


def series_block(views: Mapping[str, View], series: Mapping[str, tuple[ArrayLike, str, str]]) -> str:
    """Return the data of a page whose pictures can be asked, and no more.

    `views` are by the `side` of the panels, `series` by what they show: values, their unit, and what they are called.
    """
    return _block({
        "views": {name: each.data() for name, each in views.items()},
        "series": {
            name: {"values": _rounded_numbers(values), "unit": unit, "said": said}
            for name, (values, unit, said) in series.items()
        },
    })  # fmt: skip


def _block(data: dict[str, Any]) -> str:
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # No text in the data can end the element, nor, in older JavaScript, a line.
    for sign in "<\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="data">{written}</script>'


def _rounded_numbers(values: ArrayLike) -> Sequence[float | None]:
    """Return numbers rounded to five digits: enough for what is shown."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64)]


_MOST_POINTS = 12_000


def outline_path(outline: Outline | None, view: View) -> str:
    """Return the path of an outline in the box of a map: empty where there is no map, or nothing of it is there.

    Degrees are projected as those of the domain; without degrees, the numbers are x and y. Points closer together than
    the eye can see are left out, and more of them the more there are.
    """
    if outline is None or view.domain is None or not view.is_map:
        return ""
    lines = [view.onto(plane_of(view.domain, line)) for line in outline.lines]
    lines = [part for line in lines for part in _seen(line, view.height)]
    apart = 1.5
    while sum(map(len, thinned := [_thinned(line, apart) for line in lines])) > _MOST_POINTS:
        apart *= 1.5
    return "".join(_path(line) for line in thinned)


def _seen(line: Floats, height: float) -> list[Floats]:
    """Return the parts of a line of which an end of each segment, or what is between, may be in the box."""
    box = np.array([WIDTH, height])
    low, high = np.minimum(line[1:], line[:-1]), np.maximum(line[1:], line[:-1])
    near = ((high >= 0) & (low <= box)).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], near, [False])).astype(np.int8)))
    return [line[start : end + 1] for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _thinned(line: Floats, apart: float) -> Floats:
    kept = [0]
    for index in range(1, len(line) - 1):
        if np.abs(line[index] - line[kept[-1]]).max() >= apart:
            kept.append(index)
    return line[[*kept, len(line) - 1]]


def _path(line: Floats) -> str:
    # Far corners need not be exact: they are outside the box.
    points = np.rint(np.clip(line, -20 * WIDTH, 20 * WIDTH)).astype(np.int64)
    x, y = points[0].tolist()
    return f"M{x} {y}l" + " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0).tolist())
