"""Find the cell of a grid, or the nearest of some places, for coordinates."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from mechdesign.errors import InputError
from mechdesign.validation import Floats, Integers, as_array, as_floats

__all__ = [
    "DEGREES",
    "INTERCHANGED",
    "PLANE",
    "Axes",
    "Borders",
    "Outside",
    "given_places",
    "interval",
    "locate",
    "may_be_interchanged",
    "nearest_scale",
    "turned",
]

Axes = tuple[str, str]
Borders = tuple[Floats, Floats]

DEGREES: Axes = ("latitude", "longitude")
"""Places on the Earth, in degrees."""
PLANE: Axes = ("x", "y")
"""Places on the plane, in the unit of their domain."""

INTERCHANGED = "latitude and longitude look interchanged"
"""What errors say of a latitude that is none, and may be a longitude."""

Outside = Literal["refuse", "nearest"]
"""What becomes of a place outside a grid: an error, or the cell that is nearest along each axis."""

_LIMITS = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0)}


def given_places(axes: Axes, first: object, second: object, x: object = None, y: object = None) -> Borders:
    """Return coordinates along `axes`, float64 arrays of one shape, from the arguments of a call.

    `first` and `second` are latitude and longitude, or x and y on the plane, where they may have their own names too.

    Raises:
        InputError: Coordinates are of the other kind, missing, not finite, out of range, or of different shapes.
    """
    if axes == PLANE and first is None and second is None:
        first, second = x, y
    elif x is not None or y is not None:
        bound = "latitude and longitude" if axes == DEGREES else "x and y given once"
        raise InputError("y" if x is None else "x", "does not belong here", bound=bound)
    one, two = (_coordinates(value, name) for name, value in zip(axes, (first, second), strict=True))
    if one.shape != two.shape:
        raise InputError(axes[1], "has another shape", value=two.shape, bound=f"{one.shape}, as {axes[0]}")
    swapped = axes == DEGREES and may_be_interchanged(one, two)
    problem, remedy = "is not accepted", ""
    if swapped:
        problem, remedy = f"is not accepted: {INTERCHANGED}", "latitude comes first, then longitude"
    for name, value in zip(axes, (one, two), strict=True):
        low, high = _LIMITS.get(name, (-math.inf, math.inf))
        good = np.isfinite(value) & (low <= value) & (value <= high)
        if not good.all():
            index = int(np.argmin(good.reshape(-1)))
            bound = f"between {low:g} and {high:g} degrees" if math.isfinite(low) else "a finite number"
            path = f"{name}[{index}]" if value.ndim else name
            raise InputError(path, problem, value=value.reshape(-1)[index].item(), bound=bound, remedy=remedy)
    return one, two


def interval(values: Floats, borders: Floats) -> Integers:
    """Return the index of the interval each value is in, closed below; the last is closed above too; −1 outside."""
    index = np.searchsorted(borders, values, side="right") - 1
    last = len(borders) - 2
    index[values == borders[-1]] = last
    index[index > last] = -1
    return index


def turned(longitude: Floats, west: float, east: float) -> Floats:
    """Return longitudes as those of a box from `west` to `east`, which is beyond 180 degrees where it lies across them.

    Longitudes beyond 180 degrees are those 360 degrees less; with such a box they are the nearest to its middle.
    """
    within = np.where(longitude > 180, longitude - 360, longitude)
    return within if east <= 180 else np.where(within < (west + east) / 2 - 180, within + 360, within)


def may_be_interchanged(latitude: Floats, longitude: Floats) -> bool:
    """Tell whether some latitudes are none, and each of them may be the longitude, and its longitude the latitude."""
    wrong = np.abs(latitude) > 90
    swapped = (latitude >= -180) & (latitude <= 360) & (np.abs(longitude) <= 90)
    return bool(wrong.any() and swapped[wrong].all())


def nearest_scale(known: Floats, axes: Axes) -> float:
    """Return the length of a unit of the second axis in units of the first, where the nearest place is looked for.

    In degrees it is the cosine of the middle latitude: a degree of longitude is shorter than one of latitude.
    """
    if axes == PLANE:
        return 1.0
    return math.cos(math.radians(float(known[:, 0].min() + known[:, 0].max()) / 2))


def locate(
    known: Floats, borders: Borders | None, axes: Axes, places: Borders, outside: Outside = "refuse"
) -> tuple[Integers, int]:
    """Return the cell of each place, int64, shaped like the coordinates, and how many places lay outside the grid.

    Args:
        known: The members of the domain, (n, 2), along `axes`.
        borders: Those between the cells of a grid along each axis, or None: then a place is taken for the nearest
            member, the first of equals, with the second axis shortened by `nearest_scale`; nothing is outside.
        axes: `DEGREES` or `PLANE`.
        places: The coordinates, finite, along `axes`.
        outside: "refuse" places outside a grid, or take the "nearest" cell.

    Raises:
        InputError: A place lies outside the grid and is refused; the error names it, and counts the others.
    """
    if outside not in get_args(Outside):
        raise InputError("outside", "is not known", value=outside, bound=" or ".join(get_args(Outside)))
    shape = places[0].shape
    if axes == DEGREES:
        east = known[:, 1].max() if borders is None else borders[1][-1]
        west = known[:, 1].min() if borders is None else borders[1][0]
        places = places[0], turned(places[1], float(west), float(east))
    flat = np.stack([side.reshape(-1) for side in places])
    if borders is None:
        return _nearest(known, flat, nearest_scale(known, axes)).reshape(shape), 0
    low, high = (np.array([[side[end]] for side in borders]) for end in (0, -1))
    inside = ((low <= flat) & (flat <= high)).all(axis=0)
    if outside == "refuse" and not inside.all():
        index = int(np.argmin(inside))
        path = f"place[{index}]" if shape else "place"
        raise _refusal(flat[:, index].tolist(), path, int((~inside).sum()), borders, axes)
    at = [interval(value, side) for value, side in zip(np.clip(flat, low, high), borders, strict=True)]
    row, column = at if axes == DEGREES else at[::-1]
    columns = len(borders[axes == DEGREES]) - 1
    return (row * columns + column).reshape(shape), int((~inside).sum())


def _coordinates(value: object, name: str) -> Floats:
    if value is None:
        raise InputError(name, "is missing", bound="a number, or an array of numbers")
    given = as_array(value, name)
    if given.dtype.kind not in "iuf":
        raise InputError(name, "is not a number", value=value, bound="a number, or an array of numbers")
    flat = as_floats(given.reshape(-1), name, "(n,)")
    return flat.reshape(given.shape)


def _nearest(known: Floats, places: Floats, scale: float) -> Integers:
    # Place by place: memory grows with the domain alone.
    found = [int(((known[:, 0] - a) ** 2 + ((known[:, 1] - b) * scale) ** 2).argmin()) for a, b in places.T.tolist()]
    return np.array(found, dtype=np.int64)


def _refusal(place: list[float], path: str, missed: int, borders: Borders, axes: Axes) -> InputError:
    ranges = [f"{name} from {side[0]:g} to {side[-1]:g}" for name, side in zip(axes, borders, strict=True)]
    swapped = all(side[0] <= value <= side[-1] for value, side in zip(place[::-1], borders, strict=True))
    remedy = 'leave it out, use a larger grid, or take the nearest cell with outside="nearest"'
    if swapped:
        remedy = f"{axes[0]} and {axes[1]} look interchanged: {axes[0]} comes first"
    problem = "lies outside the grid" + (f", as do {missed - 1} others" if missed > 1 else "")
    return InputError(path, problem, value=tuple(place), bound=", ".join(ranges), remedy=remedy)
