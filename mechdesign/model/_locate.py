"""Location of points: the cell that contains a point, its nearest place, or the lattice corners around it.

Places in latitude and longitude are drawn and measured in a plane.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers, as_floats, read_only
from mechdesign.base._check import as_integer, as_number, as_positive, require_name
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import exact

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth (IUGG), in km."""

DEGREE_KM = math.radians(EARTH_RADIUS_KM)
"""Length of one degree of a great circle, in km."""

# Relative margin for the rounding errors, each below 2^-50, in the computation of the cosine.
_COSINE_MARGIN = 1e-14


@dataclass(frozen=True)
class Plane:
    """The plane x = R c (λ − west), y = R (φ − south), in km, with angles in radians and R = `EARTH_RADIUS_KM`.

    Attributes:
        south: Latitude of the origin, in degrees.
        west: Longitude of the origin, in degrees.
        cosine: The factor c, the length of a degree of longitude relative to a degree of latitude.
        shorter: Whether no distance in the plane exceeds the great-circle distance; see `over`.

    >>> Plane.over(south=46.0, north=47.0, west=7.0, east=8.0).shorter
    True
    """

    south: float
    west: float
    cosine: float
    shorter: bool

    @classmethod
    def over(cls, south: float, north: float, west: float, east: float) -> Plane:
        """Return the plane over a box in degrees, with its origin in the south-west corner.

        The factor c is cos φ_v, rounded down, with tan φ_v = tan φ_max / cos((east − west)/2). Here φ_max is the
        largest absolute latitude of the box. No great circle between two places of the box crosses the latitude φ_v.
        Along a great circle, a step dλ therefore has a length of at least R c dλ. No distance in the plane exceeds the
        great-circle distance. (The cosine of φ_max would be too large: a great circle between two northern places runs
        farther north than the places.)

        If the box touches a pole, or is half as wide as the globe, no positive c has this property. The plane then has
        c = cos((south + north)/2), for drawing only, and is not `shorter`.

        Args:
            south: The southern latitude in degrees.
            north: The northern latitude.
            west: The western longitude.
            east: The eastern longitude, at least `west`.

        Returns:
            The plane.
        """
        width = math.nextafter(float(east) - float(west), math.inf)
        height = max(abs(south), abs(north))
        across, up = _sine(90 - width / 2), _sine(90 - height)
        if width < 180 and across > 0 and up > 0:
            cosine = across * up / math.hypot(across * up, _sine(height))
            return cls(float(south), float(west), (1 - _COSINE_MARGIN) * cosine, True)
        return cls(float(south), float(west), math.cos(math.radians((south + north) / 2)), False)

    def points(self, latitude: Floats, longitude: Floats) -> Floats:
        """Return places in the plane: x and y in km, float64 of shape (n, 2), read-only.

        Args:
            latitude: Latitudes in degrees, (n,).
            longitude: Longitudes in degrees, (n,).

        Returns:
            The coordinates in the plane.
        """
        x = DEGREE_KM * self.cosine * (longitude - self.west)
        return read_only(np.column_stack((x, DEGREE_KM * (latitude - self.south))))


def _sine(degrees: float) -> float:
    return math.sin(math.radians(degrees))


Axes = tuple[str, str]
Borders = tuple[Floats, Floats]

DEGREES: Axes = ("latitude", "longitude")
"""The names of coordinates on the Earth, in degrees."""
PLANE: Axes = ("x", "y")
"""The names of coordinates on the plane, in the unit of the domain."""


def name_axes(dimension: int) -> list[str]:
    """Return the names of coordinates of points in a number of dimensions, for heads of tables."""
    return ["x", "y", "z"][:dimension] if dimension <= 3 else [f"x{axis}" for axis in range(dimension)]


INTERCHANGED = "latitude and longitude look interchanged"
"""The hint in errors about an invalid latitude that would be a valid longitude."""

Outside = Literal["refuse", "nearest"]
"""The treatment of outside places: an error ("refuse"), or the nearest cell, place or border point ("nearest")."""


# Relative tolerance for distances that exceed the reach only because of rounding.
_REACH_MARGIN = 1e-9

# Tolerance for distances between rounded coordinates, in units in the last place of the largest coordinate.
_COORDINATE_MARGIN_ULPS = 4

_LIMITS = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0)}


@dataclass(frozen=True, eq=False)
class Area:
    """The places of the members of a domain, and the region inside the domain.

    A place is outside a grid if it lies beyond the box, or in a cell that is not a member. A place is outside a domain
    of anchors if it lies beyond their rectangle. A place is outside any other domain if the nearest member is farther
    away than a given distance, called the reach.

    Attributes:
        known: Coordinates of the members, (n, 2), in the order of `axes`.
        axes: `DEGREES` or `PLANE`.
        borders: The borders between the cells of a grid along each axis, or None.
        members: The index of the member in each cell of the grid, or −1 for no member, int64; None if all cells are
            members.
        corners: The two ends of the rectangle of anchors along each axis, or None.
        unit: The unit of the plane; distances between places in degrees are in km.

    >>> round(Area(np.array([[0.0, 0.0], [3.0, 4.0]]), PLANE).reach, 6)
    5.0
    """

    known: Floats
    axes: Axes
    borders: Borders | None = None
    members: Integers | None = None
    corners: Borders | None = None
    unit: str = ""

    @property
    def is_scattered(self) -> bool:
        """Whether the members are neither cells nor anchors, so that the reach decides which places are inside."""
        return self.borders is None and self.corners is None

    @functools.cached_property
    def reach(self) -> float | None:
        """The largest distance between a member and its nearest neighbour, or None if all distances are 0.

        By default, a place is inside if a member lies within this distance.
        """
        largest = 0.0
        for index, place in enumerate(self.known.tolist()):
            others = self.spread(place)
            others[index] = np.inf
            largest = max(largest, float(others.min())) if len(others) > 1 else 0.0
        return self._length(largest) or None

    def turn(self, places: Floats) -> Floats:
        """Return places with longitudes shifted to the range of the area, which may continue above 180 degrees.

        Args:
            places: Coordinates in the order of `axes`, (2, k).

        Returns:
            The places, float64 of shape (2, k).
        """
        if self.axes != DEGREES:
            return places
        box = self.borders or self.corners
        ends = self.known[:, 1] if box is None else box[1]
        return np.stack((places[0], wrap_longitudes(places[1], float(ends.min()), float(ends.max()))))

    def spread(self, place: list[float]) -> Floats:
        """Return an increasing function of the distance between a place and each member, (n,).

        On the plane, the function is the squared Euclidean distance. In degrees, the function is sin²(d / 2R), where d
        is the great-circle distance.

        Args:
            place: The two coordinates of the place, in the order of `axes`.

        Returns:
            The values for the n members, float64 of shape (n,), >= 0.
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
        """Return the largest value of `spread` between an inside place and its nearest member.

        Like `distances.reach`, the limit includes a margin, because rounding may have lengthened a distance equal to
        the reach.

        Args:
            reach: A distance in the unit of the area, >= 0; None means `Area.reach`.

        Returns:
            The limit, a value of `spread`.

        Raises:
            InputError: The reach is negative, it is None although all members coincide, or the area does not use a
                reach.
        """
        if reach is None:
            if self.reach is None:
                problem = "is missing, and has no default because all places of the domain coincide"
                raise InputError("reach", problem, bound=f"a distance{self._of_unit}")
            return self._spread_within(self.reach)
        self.check_reach(reach)
        length = as_number(reach, "reach")
        if length < 0:
            raise InputError("reach", "is negative", value=length, bound=">= 0")
        return self._spread_within(length)

    def _spread_within(self, length: float) -> float:
        margin = _COORDINATE_MARGIN_ULPS * float(np.spacing(np.abs(self.known).max()))
        longer = length * (1 + _REACH_MARGIN) + margin * (DEGREE_KM if self.axes == DEGREES else 1.0)
        if self.axes == PLANE:
            return longer * longer
        return math.sin(min(longer / (2 * EARTH_RADIUS_KM), math.pi / 2)) ** 2

    def _length(self, spread: float) -> float:
        """Return the distance, in the unit of the area, for a value of `spread`."""
        if self.axes == PLANE:
            return math.sqrt(spread)
        return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(spread)))

    def check_reach(self, reach: float | None) -> None:
        """Raise `InputError` if a reach is given for cells or anchors, which do not use a reach.

        Args:
            reach: The reach, or None if it is not given.
        """
        if reach is not None and not self.is_scattered:
            bound = "for domains that are neither a grid nor anchors"
            raise InputError("reach", "does not apply to this domain", value=reach, bound=bound, remedy="leave it out")

    def shown(self, limit: float) -> str:
        """Return the distance for a value of `spread`, with its unit.

        Args:
            limit: A value of `spread`.

        Returns:
            The distance with four significant digits and the unit.
        """
        unit = "km" if self.axes == DEGREES else self.unit
        return f"{self._length(limit):.4g} {unit}".rstrip()

    @property
    def _of_unit(self) -> str:
        unit = "km" if self.axes == DEGREES else self.unit
        return f" in {unit}" if unit else ""


def as_places(axes: Axes, first: object, second: object, x: object = None, y: object = None) -> Borders:
    """Convert the coordinates of places to two float64 arrays of one shape, in the order of `axes`.

    `first` and `second` are latitude and longitude, or x and y. On the plane, `x` and `y` may replace `first` and
    `second`.

    Args:
        axes: `DEGREES` for latitude and longitude, `PLANE` for x and y.
        first: The first coordinate, a number or an array.
        second: The second coordinate, of the same shape.
        x: Alternative name of the first coordinate on the plane.
        y: Alternative name of the second coordinate on the plane.

    Returns:
        The two coordinate arrays.

    Raises:
        InputError: Coordinates are missing, not finite, out of range, of different shapes, or given under the names of
            other axes.
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
    """Return the index of the interval that contains each value, or −1 if there is none.

    Intervals include their lower border; the last interval also includes its upper border.
    """
    index = np.searchsorted(borders, values, side="right") - 1
    last = len(borders) - 2
    index[values == borders[-1]] = last
    index[index > last] = -1
    return index


def wrap_longitudes(longitude: Floats, west: float, east: float) -> Floats:
    """Return longitudes shifted to the range of a box, whose `east` exceeds 180 if it crosses the 180th meridian.

    Longitudes above 180 degrees are first reduced by 360. For a box across the 180th meridian, 360 is then added if
    that brings a longitude closer to the middle of the box.
    """
    within = np.where(longitude > 180, longitude - 360, longitude)
    return within if east <= 180 else np.where(within < (west + east) / 2 - 180, within + 360, within)


def may_be_interchanged(latitude: Floats, longitude: Floats) -> bool:
    """Return whether some latitudes are invalid, and an exchange of coordinates makes each of these places valid."""
    wrong = np.abs(latitude) > 90
    swapped = (latitude >= -180) & (latitude <= 360) & (np.abs(longitude) <= 90)
    return bool(wrong.any() and swapped[wrong].all())


def locate(
    area: Area, places: Borders, outside: Outside = "refuse", reach: float | None = None
) -> tuple[Integers, int]:
    """Return the member to which each place belongs, and the number of outside places.

    A place belongs to the grid cell that contains it. If the area has no cells, a place belongs to the nearest member,
    or to the first of several equally near members.

    Args:
        area: The places of the members.
        places: Two arrays of one shape with finite coordinates, in the order of the axes of the area.
        outside: "refuse" raises an error for outside places; "nearest" takes the nearest member. In a complete grid,
            the nearest member is the cell that is nearest along each axis.
        reach: The largest distance between an inside place and its nearest member, in the unit of the area. This limit
            applies only to areas without cells and anchors; None means `Area.reach`.

    Returns:
        Indices of members, int64, shaped like the coordinates, and the number of outside places.

    Raises:
        InputError: Some places are outside, and `outside` is "refuse"; the message names the first outside place.

    >>> from mechdesign.model._domain import Domain
    >>> area = Domain.grid(columns=4, rows=3, width=4.0, height=3.0).area(PLANE)
    >>> locate(area, (np.array([2.5]), np.array([1.5])))[0].tolist()
    [6]
    """
    require_name(outside, get_args(Outside), "outside")
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
    """Return the number of places beyond the rectangle of anchors; raise `InputError` if `outside` refuses them."""
    assert area.corners is not None
    require_name(outside, get_args(Outside), "outside")
    flat = area.turn(np.stack([side.reshape(-1) for side in places]))
    return _count_missed(~_within(flat, area.corners), flat, places[0].shape, area, math.inf, outside)


def _count_missed(
    missed: Flags, flat: Floats, shape: tuple[int, ...], area: Area, limit: float, outside: Outside
) -> int:
    if outside == "refuse" and missed.any():
        index = int(np.argmax(missed))
        path = f"place[{index}]" if shape else "place"
        raise _refusal(flat[:, index].tolist(), path, int(missed.sum()), area, limit)
    return int(missed.sum())


def _within(flat: Floats, borders: Borders) -> Flags:
    low, high = (np.array([[side[end]] for side in borders]) for end in (0, -1))
    inside: Flags = np.asarray(((low <= flat) & (flat <= high)).all(axis=0))
    return inside


def _in_cells(area: Area, borders: Borders, flat: Floats) -> tuple[Integers, Flags]:
    """Return the member for each place, and a mask of the places that lie in the cell of a member."""
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
    given = named(value, name, dtype=object)
    if given.dtype.kind not in "iuf":
        raise InputError(name, "is not a number", value=value, bound="a number, or an array of numbers")
    flat = as_floats(given.reshape(-1), name, "(n,)")
    return flat.reshape(given.shape)


def _nearest(area: Area, places: Floats) -> tuple[Integers, Floats]:
    """Return the member nearest to each place, and the value of `Area.spread` between the two."""
    found, apart = np.zeros(places.shape[1], dtype=np.int64), np.zeros(places.shape[1])
    # Process one place at a time, so that memory use grows only with the size of the domain.
    for index, place in enumerate(places.T.tolist()):
        spread = area.spread(place)
        found[index] = spread.argmin()
        apart[index] = spread[found[index]]
    return found, apart


def _refusal(place: list[float], path: str, missed: int, area: Area, limit: float) -> InputError:
    nearest = 'take the nearest cell with outside="nearest"'
    box, exchanged, swapped = area.borders or area.corners, place[::-1], False
    if box is None:
        problem, bound = "is far from every place of the domain", f"within {area.shown(limit)} of a place of the domain"
        remedy = 'leave it out, give a larger reach, or take the nearest place with outside="nearest"'
        swapped = _may_be(exchanged, area.axes) and float(area.spread(exchanged).min()) <= limit
    elif _holds(box, place):
        problem, bound = "lies in a cell that is not a secret", "in a cell that is a secret"
        remedy = f"leave it out, or {nearest}"
    else:
        kind = "grid" if area.corners is None else "anchors"
        problem, bound = f"lies outside the {kind}", _ranges(area.axes, box)
        remedy = f"leave it out, use a larger grid, or {nearest}"
        if area.corners is not None:
            remedy = 'leave it out, or project it onto the border with outside="nearest"'
        swapped = _holds(box, exchanged)
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
"""A position between two columns or rows: the index of the first, and the relative distance from it, in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Corners:
    """The four anchors around each point, with the bilinear weight of each anchor.

    Attributes:
        indices: The anchors around each point, int64 (k, 4): south-west, south-east, north-west, north-east.
        weights: The weights of these anchors, float64 (k, 4); each row sums to 1, up to rounding.
        outside: A mask, (k,), of the points that lay outside the rectangle and were projected onto it.

    >>> corners = Lattice(2, 2, 1.0, 1.0).corners(np.array([0.25]), np.array([0.0]))
    >>> corners.weights.tolist()
    [[0.75, 0.25, 0.0, 0.0]]
    """

    indices: Integers
    weights: Floats
    outside: Flags


@dataclass(frozen=True)
class Lattice:
    """The corners of a grid over a rectangle: `columns` × `rows` anchors, including the anchors on the border.

    Anchor (row, column) has index row · columns + column; anchor 0 is at (0, 0).

    Attributes:
        columns: The number of columns of anchors, at least 2.
        rows: The number of rows of anchors, at least 2.
        width: The width of the rectangle; a float is read as the decimal in its repr.
        height: The height of the rectangle.
        box: (south, north, west, east) in degrees, or None. With a box, points are latitudes and longitudes, and their
            relative positions are computed in degrees. `width` and `height` are then lower bounds on the lengths of the
            sides of the box.

    >>> Lattice(columns=3, rows=2, width=1.0, height=1.0).steps
    (Fraction(1, 2), Fraction(1, 1))
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
                    remedy="give at least two anchors in each direction, so that other points lie between anchors",
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
        """The exact distances between neighbouring anchors along x and along y."""
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
        # Multiply before dividing, so that the last anchor is exactly on the border.
        x, y = column * self.width / (self.columns - 1), row * self.height / (self.rows - 1)
        points: Floats = np.column_stack((x, y))
        return points

    def corners(self, first: Floats, second: Floats) -> Corners:
        """Return the four anchors around each point, and their weights in floating point.

        Args:
            first: x, or latitude if the lattice has a box; shape (k,).
            second: y, or longitude; shape (k,).

        Returns:
            The indices and weights of four anchors for each point, and whether the point is outside the rectangle.
        """
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
        """Return the exact position of one point: its column, its row, and whether the point is outside.

        The column and the row are given as `Between` values. Coordinates are treated as exact binary numbers.

        Args:
            first: x, or latitude if the lattice has a box.
            second: y, or longitude.

        Returns:
            The position between two columns, the position between two rows, and whether the point is outside.
        """
        if self.box is None:
            across, up = Fraction(first) / exact(self.width), Fraction(second) / exact(self.height)
        else:
            south, north, west, east = map(Fraction, self.box)
            # The next two lines compute `wrap_longitudes` in exact arithmetic.
            turned = Fraction(second) - 360 * (second > 180)
            turned += 360 * (east > 180 and turned < (west + east) / 2 - 180)
            across, up = (turned - west) / (east - west), (Fraction(first) - south) / (north - south)
            second = float(turned)
        # A coordinate that equals the float of a side is inside, even if this float exceeds the decimal value of the
        # side.
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
