"""Where a point lies: cell, nearest place, corners of a lattice."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from mechdesign.base._arrays import Floats, Integers, as_array, as_floats
from mechdesign.base._check import as_integer, as_number, as_positive
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.model._plane import DEGREE_KM, EARTH_RADIUS_KM

Axes = tuple[str, str]
Borders = tuple[Floats, Floats]

DEGREES: Axes = ("latitude", "longitude")
"""Places on the Earth, in degrees."""
PLANE: Axes = ("x", "y")
"""Places on the plane, in the unit of their domain."""

INTERCHANGED = "latitude and longitude look interchanged"
"""What errors say of a latitude that is none, and may be a longitude."""

Outside = Literal["refuse", "nearest"]
"""What becomes of a place outside: an error, or the nearest cell, place or point of the rectangle of anchors."""

_Truths = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

# By what share, and by how many units in the last place of coordinates, a distance at exactly the reach may be longer.
_REACH_MARGIN, _MARGIN = 1e-9, 4

_LIMITS = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0)}


@dataclass(frozen=True, eq=False)
class Area:
    """Where the members of a domain are, and what is outside.

    Outside is, of a grid, what is beyond its box or in a cell that is no member; of anchors, what is beyond their
    rectangle; of other places, what is farther from the nearest one than a reach.

    Attributes:
        known: The members, (n, 2), along `axes`.
        axes: `DEGREES` or `PLANE`.
        borders: Those between the cells of a grid along each axis, or None.
        members: The member that each cell of the grid is, int64, and −1 for a cell that is none; None for all in order.
        corners: The sides of the rectangle of anchors, each with its two ends, or None.
        unit: That of the plane; distances of places in degrees are in km.
    """

    known: Floats
    axes: Axes
    borders: Borders | None = None
    members: Integers | None = None
    corners: Borders | None = None
    unit: str = ""

    @property
    def is_scattered(self) -> bool:
        """Whether the members are places without a box about them, to which a reach belongs."""
        return self.borders is None and self.corners is None

    @functools.cached_property
    def reach(self) -> float | None:
        """The largest distance of a member from its nearest neighbour, in the unit; None where that is nowhere > 0.

        It is the distance from the nearest member at which places without a box about them are still inside.
        """
        largest = 0.0
        for index, place in enumerate(self.known.tolist()):
            others = self.spread(place)
            others[index] = np.inf
            largest = max(largest, float(others.min())) if len(others) > 1 else 0.0
        return self._length(largest) or None

    def turn(self, places: Floats) -> Floats:
        """Return places (2, k) with longitudes that go on beyond 180 degrees where the area lies across it."""
        if self.axes != DEGREES:
            return places
        box = self.borders or self.corners
        ends = self.known[:, 1] if box is None else box[1]
        return np.stack((places[0], wrap_longitudes(places[1], float(ends.min()), float(ends.max()))))

    def spread(self, place: list[float]) -> Floats:
        """Return how far all members are from a place, (n,), in a measure that grows with distance.

        That is the square of the Euclidean distance; in degrees sin²(d / 2R), for the distance d on the globe.
        """
        first, second = self.known[:, 0] - place[0], self.known[:, 1] - place[1]
        if self.axes == PLANE:
            with np.errstate(over="ignore", under="ignore"):
                squares: Floats = first**2 + second**2
            return squares
        up, across = np.sin(np.radians(first) / 2), np.sin(np.radians(second) / 2)
        halves: Floats = up**2 + self._cosines * math.cos(math.radians(place[0])) * across**2
        return halves

    @functools.cached_property
    def _cosines(self) -> Floats:
        cosines: Floats = np.cos(np.radians(self.known[:, 0]))
        return cosines

    def limit(self, reach: float | None) -> float:
        """Return a reach as `spread` measures it: one that was given in `unit`, or that of the members.

        It is longer by what rounding may have added to a distance of exactly the reach, as `distances.reach` is.

        Raises:
            InputError: None is given, and no two members lie apart; or it is negative, or does not belong here.
        """
        if reach is None:
            if self.reach is None:
                problem = "is not given, and the domain has no two places apart that tell how far places may be"
                raise InputError("reach", problem, bound=f"a distance{self._of_unit}")
            return self._spread_within(self.reach)
        self.check_reach(reach)
        length = as_number(reach, "reach")
        if length < 0:
            raise InputError("reach", "is negative", value=length, bound=">= 0")
        return self._spread_within(length)

    @property
    def margin(self) -> float:
        """By how much rounding of coordinates may have lengthened a distance: 4 units in their last place."""
        return _MARGIN * float(np.spacing(np.abs(self.known).max())) * (DEGREE_KM if self.axes == DEGREES else 1.0)

    def _spread_within(self, length: float) -> float:
        longer = length * (1 + _REACH_MARGIN) + self.margin
        if self.axes == PLANE:
            return longer * longer
        return math.sin(min(longer / (2 * EARTH_RADIUS_KM), math.pi / 2)) ** 2

    def _length(self, spread: float) -> float:
        """Return the distance, in the unit, that `spread` measures."""
        if self.axes == PLANE:
            return math.sqrt(spread)
        return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(spread)))

    def check_reach(self, reach: float | None) -> None:
        """Raise `InputError` for a reach where cells or anchors say what is outside."""
        if reach is not None and not self.is_scattered:
            bound = "places that are no grid and no anchors"
            raise InputError("reach", "does not belong to this domain", value=reach, bound=bound, remedy="leave it out")

    def shown(self, limit: float) -> str:
        """Say a distance that `spread` measures, in the unit."""
        unit = "km" if self.axes == DEGREES else self.unit
        return f"{self._length(limit):.4g} {unit}".rstrip()

    @property
    def _of_unit(self) -> str:
        unit = "km" if self.axes == DEGREES else self.unit
        return f" in {unit}" if unit else ""


def as_places(axes: Axes, first: object, second: object, x: object = None, y: object = None) -> Borders:
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


def wrap_longitudes(longitude: Floats, west: float, east: float) -> Floats:
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


def locate(
    area: Area, places: Borders, outside: Outside = "refuse", reach: float | None = None
) -> tuple[Integers, int]:
    """Return the member that each place belongs to, int64, shaped like the coordinates, and how many were outside.

    A place belongs to the cell of a grid that it lies in; where there are none, to the nearest member, the first of
    equals.

    Args:
        area: Where the members are.
        places: The coordinates, finite, along the axes of the area.
        outside: "refuse" places outside, or take the "nearest" member; of a whole grid the cell that is nearest along
            each axis.
        reach: How far places may be from the nearest member where there are neither cells nor anchors, in the unit of
            the area; else it is `Area.reach`.

    Raises:
        InputError: A place lies outside and is refused; the error names it, and counts the others.
    """
    _check_outside(outside)
    limit = math.inf
    if reach is not None or (area.is_scattered and (outside == "refuse" or area.reach is not None)):
        limit = area.limit(reach)
    shape = places[0].shape
    flat = area.turn(np.stack([side.reshape(-1) for side in places]))
    if area.borders is None:
        found, apart = _nearest(area, flat)
        inside = apart <= limit if area.corners is None else _within(flat, area.corners)
    else:
        found, inside = _in_cells(area, area.borders, flat)
    return found.reshape(shape), _count_missed(~inside, flat, shape, area, limit, outside)


def count_outside(area: Area, places: Borders, outside: Outside = "refuse") -> int:
    """Return how many places lie beyond the rectangle of anchors; raise `InputError` where they are refused."""
    assert area.corners is not None
    _check_outside(outside)
    flat = area.turn(np.stack([side.reshape(-1) for side in places]))
    return _count_missed(~_within(flat, area.corners), flat, places[0].shape, area, math.inf, outside)


def _count_missed(
    missed: _Truths, flat: Floats, shape: tuple[int, ...], area: Area, limit: float, outside: Outside
) -> int:
    if outside == "refuse" and missed.any():
        index = int(np.argmax(missed))
        path = f"place[{index}]" if shape else "place"
        raise _refusal(flat[:, index].tolist(), path, int(missed.sum()), area, limit)
    return int(missed.sum())


def _check_outside(outside: object) -> None:
    """Raise `InputError` for a value that is no `Outside`."""
    if outside not in get_args(Outside):
        raise InputError("outside", "is not known", value=outside, bound=" or ".join(get_args(Outside)))


def _within(flat: Floats, borders: Borders) -> _Truths:
    low, high = (np.array([[side[end]] for side in borders]) for end in (0, -1))
    inside: _Truths = np.asarray(((low <= flat) & (flat <= high)).all(axis=0))
    return inside


def _in_cells(area: Area, borders: Borders, flat: Floats) -> tuple[Integers, _Truths]:
    """Return the member for each place, and which places are in a cell that is one."""
    inside = _within(flat, borders)
    at = [interval(np.clip(value, side[0], side[-1]), side) for value, side in zip(flat, borders, strict=True)]
    row, column = at if area.axes == DEGREES else at[::-1]
    cells = row * (len(borders[area.axes == DEGREES]) - 1) + column
    if area.members is None:
        return cells, inside
    found = area.members[cells]
    inside[found < 0] = False
    found[~inside] = _nearest(area, flat[:, ~inside])[0]
    return found, inside


def _coordinates(value: object, name: str) -> Floats:
    if value is None:
        raise InputError(name, "is missing", bound="a number, or an array of numbers")
    given = as_array(value, name)
    if given.dtype.kind not in "iuf":
        raise InputError(name, "is not a number", value=value, bound="a number, or an array of numbers")
    flat = as_floats(given.reshape(-1), name, "(n,)")
    return flat.reshape(given.shape)


def _nearest(area: Area, places: Floats) -> tuple[Integers, Floats]:
    """Return the nearest member to each place, and how far it is."""
    found, apart = np.zeros(places.shape[1], dtype=np.int64), np.zeros(places.shape[1])
    # Place by place: memory grows with the domain alone.
    for index, place in enumerate(places.T.tolist()):
        spread = area.spread(place)
        found[index] = spread.argmin()
        apart[index] = spread[found[index]]
    return found, apart


def _refusal(place: list[float], path: str, missed: int, area: Area, limit: float) -> InputError:
    nearest = 'take the nearest cell with outside="nearest"'
    box, turned, swapped = area.borders or area.corners, place[::-1], False
    if box is None:
        problem, bound = "is far from every place of the domain", f"within {area.shown(limit)} of one of them"
        remedy = 'leave it out, give a larger reach, or take the nearest place with outside="nearest"'
        swapped = _may_be(turned, area.axes) and float(area.spread(turned).min()) <= limit
    elif _holds(box, place):
        problem, bound = "lies in a cell that is no secret", "in a cell that is a secret"
        remedy = f"leave it out, or {nearest}"
    else:
        kind = "grid" if area.corners is None else "anchors"
        problem, bound = f"lies outside the {kind}", _ranges(area.axes, box)
        remedy = f"leave it out, use a larger grid, or {nearest}"
        if area.corners is not None:
            remedy = 'leave it out, or have it projected to the border with outside="nearest"'
        swapped = _holds(box, turned)
    if missed > 1:
        problem += f", as {'are' if box is None else 'do'} {missed - 1} others"
    if swapped:
        remedy = f"{area.axes[0]} and {area.axes[1]} look interchanged: {area.axes[0]} comes first"
    return InputError(path, problem, value=tuple(place), bound=bound, remedy=remedy)


def _holds(box: Borders, place: list[float]) -> bool:
    return all(side[0] <= value <= side[-1] for value, side in zip(place, box, strict=True))


def _may_be(place: list[float], axes: Axes) -> bool:
    limits = (_LIMITS.get(name, (-math.inf, math.inf)) for name in axes)
    return all(low <= value <= high for value, (low, high) in zip(place, limits, strict=True))


def _ranges(axes: Axes, borders: Borders) -> str:
    return ", ".join(f"{name} from {side[0]:g} to {side[-1]:g}" for name, side in zip(axes, borders, strict=True))


Between = tuple[int, Fraction]
"""Where a coordinate lies: the index of a column or row, and the share of the way to the next."""


@dataclass(frozen=True, eq=False)
class Corners:
    """Where points lie between anchors: the corners of the patch of each, with the bilinear weight of each corner.

    Attributes:
        indices: The anchors, int64 (k, 4): south-west, south-east, north-west, north-east.
        weights: Their weights, float64 (k, 4); each row sums to 1, up to rounding.
        outside: Which points were projected onto the rectangle, (k,).
    """

    indices: Integers
    weights: Floats
    outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Lattice:
    """The corners of a grid: `columns` × `rows` anchors at the borders and in the middle of a rectangle.

    Anchor (row, column) has index row · columns + column; the first stands at (0, 0). `width` and `height` of the
    rectangle mean the decimals that they print. With `box`, (south, north, west, east) in degrees, points are latitudes
    and longitudes: they are placed in proportion to the sides of the box, and `width` and `height` are lower bounds of
    its sides.
    """

    columns: int
    rows: int
    width: float
    height: float
    box: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        """Check the counts and the sizes."""
        for name in ("columns", "rows"):
            count = as_integer(getattr(self, name), name, 1)
            if count == 1:
                raise InputError(
                    name,
                    "puts all anchors in a line",
                    value=1,
                    bound="an integer >= 2",
                    remedy="points beside the line would lie between no anchors: give two at least in each direction",
                )
            object.__setattr__(self, name, count)
        for name in ("width", "height"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    @property
    def size(self) -> int:
        """Number of anchors."""
        return self.columns * self.rows

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """The distances between neighbours along x and along y, exact."""
        return exact(self.width) / (self.columns - 1), exact(self.height) / (self.rows - 1)

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ends of the rectangle along the first and the second coordinate of a point."""
        if self.box is None:
            return (0.0, self.width), (0.0, self.height)
        south, north, west, east = self.box
        return (south, north), (west, east)

    def points(self) -> Floats:
        """Return the anchors in the plane, float64 (n, 2)."""
        row, column = np.divmod(np.arange(self.size), self.columns)
        # Multiply before dividing: the last anchor then stands at the border exactly.
        x, y = column * self.width / (self.columns - 1), row * self.height / (self.rows - 1)
        points: Floats = np.column_stack((x, y))
        return points

    def corners(self, first: Floats, second: Floats) -> Corners:
        """Return where points lie, in floating point: x and y, or with a box latitude and longitude, (k,) each."""
        across, up = self._shares(first, second)
        inside = (across >= 0) & (across <= 1) & (up >= 0) & (up <= 1)
        column, x = _cell(np.clip(across, 0, 1) * (self.columns - 1), self.columns)
        row, y = _cell(np.clip(up, 0, 1) * (self.rows - 1), self.rows)
        south_west = row * self.columns + column
        indices = np.column_stack(
            (south_west, south_west + 1, south_west + self.columns, south_west + self.columns + 1)
        )
        weights = np.column_stack(((1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y))
        return Corners(indices, weights, ~inside)

    def place(self, first: float, second: float) -> tuple[Between, Between, bool]:
        """Return where one point lies, exactly: column and share of the way to the next one, row and share likewise.

        The last entry tells whether the point was outside, and projected. `first` and `second` are as for `corners`;
        they are taken as the binary numbers that they are.
        """
        if self.box is None:
            across, up = Fraction(first) / exact(self.width), Fraction(second) / exact(self.height)
        else:
            south, north, west, east = map(Fraction, self.box)
            # As `wrap_longitudes` does, exactly.
            turned = Fraction(second) - 360 * (second > 180)
            turned += 360 * (east > 180 and turned < (west + east) / 2 - 180)
            across, up = (turned - west) / (east - west), (Fraction(first) - south) / (north - south)
            second = float(turned)
        # A coordinate that is written as the side is inside, though its binary number may be beyond the decimal.
        (left, right), (low, high) = self.ends
        outside = not (left <= first <= right and low <= second <= high)
        return _exact_cell(across, self.columns), _exact_cell(up, self.rows), outside

    def _shares(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        if self.box is None:
            return first / self.width, second / self.height
        south, north, west, east = self.box
        return (wrap_longitudes(second, west, east) - west) / (east - west), (first - south) / (north - south)


def _cell(position: Floats, count: int) -> tuple[Integers, Floats]:
    cell = np.minimum(position.astype(np.int64), count - 2)
    return cell, position - cell


def _exact_cell(share: Fraction, count: int) -> tuple[int, Fraction]:
    position = min(max(share, Fraction(0)), Fraction(1)) * (count - 1)
    cell = min(int(position), count - 2)
    return cell, position - cell
