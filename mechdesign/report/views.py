"""Where members of a domain are on a page: cells, points or bars in a box 1000 units wide, with ticks and a ruler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.model._domain import Domain
from mechdesign.report import maps
from mechdesign.report.frame import LONGEST
from mechdesign.report.frame import degree_ticks
from mechdesign.report.frame import extent
from mechdesign.report.frame import in_unit
from mechdesign.report.frame import round_ticks
from mechdesign.report.frame import ruler_length
from mechdesign.model._words import short
from mechdesign.model._words import clip
from mechdesign.model._words import plain
from mechdesign.base._arrays import Floats

__all__ = ["TALLEST", "WIDTH", "View", "name_of", "view"]

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
