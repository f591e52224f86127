"""Domains: finite sets of secrets or observables, with labels and optional places."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import LARGEST_GRID, Floats, Integers, as_floats, as_indices, read_only, require
from mechdesign.base._check import as_integer, as_list, as_number, as_positive
from mechdesign.base._errors import InputError, InputWarning
from mechdesign.base._names import labels_of, opened, require_one_index
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal, nearest
from mechdesign.model import _expansions as expansions
from mechdesign.model._locate import (
    DEGREE_KM,
    DEGREES,
    INTERCHANGED,
    PLANE,
    Area,
    Axes,
    Borders,
    Lattice,
    Outside,
    Plane,
    as_places,
    locate,
    may_be_interchanged,
    wrap_longitudes,
)


@dataclass(frozen=True)
class Grid:
    """A rectangle of `width` × `height`, cut into `columns` × `rows` equal cells.

    Cells are numbered row by row: index = row · columns + column, row 0 at the bottom (south), column 0 at the left.

    Attributes:
        columns: The number of columns, at least 1.
        rows: The number of rows, at least 1.
        width: The width of the rectangle, > 0, in the unit of its domain.
        height: The height of the rectangle, > 0, in the same unit.

    >>> Grid(columns=2, rows=1, width=4.0, height=1.0).points().tolist()
    [[1.0, 0.5], [3.0, 0.5]]
    """

    columns: int
    rows: int
    width: float
    height: float

    def __post_init__(self) -> None:
        """Check the counts and the sizes."""
        for name in ("columns", "rows"):
            object.__setattr__(self, name, as_integer(getattr(self, name), name, 1))
        if self.size > LARGEST_GRID:
            raise InputError("columns", "make too many cells", value=self.size, bound=f"{LARGEST_GRID} at most")
        for name in ("width", "height"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return self.columns * self.rows

    def points(self) -> Floats:
        """Return the centres of the cells, float64 (n, 2): (column + 1/2) · width / columns, …, rounded to nearest."""
        row, column = np.divmod(np.arange(self.size), self.columns)
        x, y = (_middles(count, side) for count, side in ((self.columns, self.width), (self.rows, self.height)))
        return read_only(np.column_stack((x[column], y[row])))


@dataclass(frozen=True)
class BoundingBox:
    """A box in latitude and longitude (WGS84 degrees), closed on all sides.

    A box may cross the 180th meridian if it is narrower than 180 degrees and does not touch a pole. For such a box, the
    argument `east` may be below `west` or above 180; the stored value of `east` is above 180.

    Attributes:
        south: The southern latitude, from -90 to 90 and below `north`.
        north: The northern latitude, from -90 to 90.
        west: The western longitude, from -180 to 360.
        east: The eastern longitude, from -180 to 360.

    >>> BoundingBox(south=-20, north=-15, west=175, east=-175).east
    185.0
    """

    south: float
    north: float
    west: float
    east: float

    def __post_init__(self) -> None:
        """Check the ranges and the order of the sides."""
        south, north, west, east = (as_number(getattr(self, name), name) for name in ("south", "north", "west", "east"))
        swapped = may_be_interchanged(np.array([south, north]), np.array([west, east]))
        for name, value, low, high in (
            *(("south", south, -90, 90), ("north", north, -90, 90)),
            *(("west", west, -180, 360), ("east", east, -180, 360)),
        ):
            if not low <= value <= high:
                problem = f"is out of range: {INTERCHANGED}" if swapped else "is out of range"
                remedy = "exchange south and north with west and east" if swapped else ""
                bound = f"between {low} and {high} degrees"
                raise InputError(name, problem, value=value, bound=bound, remedy=remedy)
        if south >= north:
            raise InputError("south", "is not below north", value=south, bound=f"less than {north}")
        given = west, east
        if 180 < west < east:
            west, east = _less_360(west), _less_360(east)
        elif east <= west <= 180:
            east = nearest(as_decimal(east) + 360)
        across = east > 180
        if not west < east or given[0] == given[1] or (across and not east - west < 180):
            remedy = "a box across the 180th meridian must be narrower than 180 degrees"
            raise InputError("west", "is not below east", value=given[0], bound=f"less than {given[1]}", remedy=remedy)
        if across and not Plane.over(south, north, west, east).shorter:
            problem = "is a pole, in a box across the 180th meridian"
            raise InputError("north", problem, value=north, bound="less than 90 degrees")
        for name, value in (("south", south), ("north", north), ("west", west), ("east", east)):
            object.__setattr__(self, name, value)

    @classmethod
    def around(cls, latitude: float, longitude: float, width: float, height: float) -> BoundingBox:
        """Return the box of a given size around a place.

        The sides are latitude ± height/2 and longitude ± width/2, in degrees. A degree of latitude has the length
        `DEGREE_KM`; a degree of longitude is shorter by the factor cos(latitude).

        Args:
            latitude: The latitude of the centre in degrees, between −90 and 90.
            longitude: The longitude of the centre in degrees, between −180 and 180.
            width: The width at the latitude of the centre, in km, positive and less than half the circumference there.
            height: The height in km, positive; the box ends before the poles.

        Returns:
            The box. One across the 180th meridian has an `east` above 180.

        Raises:
            InputError: A number is not finite or out of range, or the box is too large.

        >>> print(BoundingBox.around(45.757, 4.832, width=8, height=6))
        latitude 45.73 to 45.784, longitude 4.78044 to 4.88356
        """
        latitude, longitude = as_number(latitude, "latitude"), as_number(longitude, "longitude")
        for name, value, limit in (("latitude", latitude, 90), ("longitude", longitude, 180)):
            if abs(value) > limit:
                problem = f"is out of range: {INTERCHANGED}" if limit == 90 and abs(value) <= 180 else "is out of range"
                raise InputError(name, problem, value=value, bound=f"between {-limit} and {limit} degrees")
        half_height = as_positive(height, "height") / (2 * DEGREE_KM)
        if not abs(latitude) + half_height < 90:
            bound = f"less than {2 * DEGREE_KM * (90 - abs(latitude)):.6g} km"
            raise InputError("height", "reaches a pole", value=height, bound=bound)
        cosine = math.cos(math.radians(latitude))
        half_width = as_positive(width, "width") / (2 * DEGREE_KM * cosine)
        if not half_width < 90:
            bound = f"less than {180 * DEGREE_KM * cosine:.6g} km"
            raise InputError("width", "is half the circumference or more", value=width, bound=bound)
        west = longitude - half_width + (360 if longitude < half_width - 180 else 0)
        return cls(latitude - half_height, latitude + half_height, west, west + 2 * half_width)

    def __str__(self) -> str:
        """Return the sides of the box in words."""
        return self.text(self.south, self.north, self.west, self.east)

    @staticmethod
    def text(south: float, north: float, west: float, east: float) -> str:
        """Return the sides of a box in words: "latitude 40.5 to 41, longitude -74.3 to -73.7".

        Args:
            south: The southern latitude in degrees.
            north: The northern latitude.
            west: The western longitude.
            east: The eastern longitude, which is above 180 in a box across the 180th meridian.

        Returns:
            The text, with six significant digits and an eastern longitude of at most 180.
        """
        east = east if east <= 180 else east - 360
        return f"latitude {south:.6g} to {north:.6g}, longitude {west:.6g} to {east:.6g}"

    @property
    def plane(self) -> Plane:
        """Return the plane over the box, with its origin in the south-west corner."""
        return Plane.over(self.south, self.north, self.west, self.east)


@dataclass(frozen=True, eq=False)
class GridPart:
    """The cells of a grid that belong to a domain returned by `Domain.part`, in ascending order.

    Attributes:
        cells: The whole grid.
        members: Indices of the selected cells in the grid, int64 (n,), ascending.
        geographic: The `BoundingBox` that the grid covers, or None.

    >>> Domain.grid(columns=2, rows=2, width=1.0, height=1.0).part([0, 3]).within.members.tolist()
    [0, 3]
    """

    cells: Grid
    members: Integers
    geographic: BoundingBox | None = None

    def __post_init__(self) -> None:
        """Check the members."""
        chosen = as_indices(self.members, "members", self.cells.size)
        if (np.diff(chosen) <= 0).any():
            raise InputError(
                "members", "are not in ascending order", value=chosen.tolist(), bound="ascending, each once"
            )
        object.__setattr__(self, "members", read_only(chosen))


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """A finite, ordered set of secrets (or of observables).

    Two domains are equal only if they are the same object.

    Attributes:
        points: Places, float64 of shape (n, d) in `unit`, read-only; d = 0 for a domain without places.
        labels: n distinct, non-empty names; ``"0"``, ``"1"``, … by default.
        unit: The unit of `points`, such as ``"km"``; empty if the points have no unit.
        cells: The `Grid` whose cell centres are the points, or None.
        geographic: The `BoundingBox` that the grid covers, or None.
        coordinates: Latitude and longitude of the points in degrees, float64 of shape (n, 2), read-only, or None. In a
            domain across the 180th meridian, longitudes continue above 180; see `degrees`.
        plane: The `Plane` that contains the points, or None. If there is a plane, distances are computed from
            `coordinates`, because the points are rounded.
        lattice: The `Lattice` whose anchors are the points, or None.
        within: The `GridPart` that selects the points from the cells of a grid, or None.

    >>> Domain.from_points([[0.0, 0.0], [3.0, 4.0]], labels=["home", "work"], unit="km")
    Domain(size: 2, dimensions: 2, unit: km)
    """

    points: Floats
    labels: tuple[str, ...] = ()
    unit: str = ""
    cells: Grid | None = None
    geographic: BoundingBox | None = None
    coordinates: Floats | None = None
    plane: Plane | None = None
    lattice: Lattice | None = None
    within: GridPart | None = None

    def __post_init__(self) -> None:
        """Check that numbers are finite and sizes match, and freeze the arrays."""
        points = as_floats(self.points, "points", "(n, d)")
        if len(points) == 0:
            raise InputError("points", "is empty", value=points.shape, bound="at least one row")
        require(np.isfinite(points), points, "points", "a finite number")
        object.__setattr__(self, "points", points)
        n = len(points)
        labels = _check_labels(self.labels) if self.labels else tuple(str(index) for index in range(n))
        if len(labels) != n:
            raise InputError("labels", f"does not match the {n} points", value=len(labels), bound=f"{n} labels")
        object.__setattr__(self, "labels", labels)
        if not isinstance(self.unit, str):
            raise InputError("unit", "is not a text", value=self.unit, bound='a text such as "km"')
        if self.cells is not None and self.cells.size != n:
            raise InputError(
                "cells", f"does not have one cell for each of the {n} points", value=self.cells, bound=f"{n} cells"
            )
        if self.lattice is not None and self.lattice.size != n:
            raise InputError(
                "lattice",
                f"does not have one anchor for each of the {n} points",
                value=self.lattice,
                bound=f"{n} anchors",
            )
        if self.within is not None and len(self.within.members) != n:
            raise InputError(
                "within", f"does not have one cell for each of the {n} points", value=self.within, bound=f"{n} cells"
            )
        if self.coordinates is not None:
            coordinates = as_floats(self.coordinates, "coordinates", "(n, 2)")
            if coordinates.shape != (n, 2):
                raise InputError("coordinates", "has the wrong shape", value=coordinates.shape, bound=f"({n}, 2)")
            require(_on_earth(coordinates), coordinates, "coordinates", _ON_EARTH)
            object.__setattr__(self, "coordinates", coordinates)
        elif self.plane is not None:
            raise InputError("plane", "is given without coordinates", value=self.plane, bound="given with coordinates")

    @property
    def size(self) -> int:
        """Return the number n of secrets."""
        return len(self.points)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        """Return the number and kind of secrets, without the arrays."""
        return f"Domain({', '.join(f'{name}: {value}' for name, value in [('size', self.size), *self._facts()])})"

    def _facts(self) -> list[tuple[str, str]]:
        if self.points.shape[1] == 0:
            return [("labels", "only")]
        unit = f" {self.unit}" if self.unit else ""
        facts = []
        if self.lattice is not None:
            facts.append(("lattice", str(self.lattice)))
        if self.cells is not None:
            facts.append(("cells", f"{self.cells.columns} × {self.cells.rows}"))
            facts.append(("box", f"{self.cells.width:.4g} × {self.cells.height:.4g}{unit}"))
        else:
            facts.append(("dimensions", str(self.points.shape[1])))
            facts += [("unit", self.unit)] if self.unit else []
        if self.geographic is not None:
            box = self.geographic
            facts.append(("latitude", f"{box.south:.6g} to {box.north:.6g}"))
            facts.append(("longitude", f"{box.west:.6g} to {box.east - 360 * (box.east > 180):.6g}"))
        return facts

    def __str__(self) -> str:
        """Return a short description of the domain."""
        if self.cells is None:
            return f"{self.size} {'places' if self.points.shape[1] else 'labels'}"
        size = f"{self.cells.columns} × {self.cells.rows} cells"
        if self.geographic is not None:
            return f"{size} over {self.geographic}"
        return f"{size} over {self.cells.width:g} × {self.cells.height:g} {self.unit}".rstrip()

    def part(self, members: ArrayLike) -> Domain:
        """Return the domain of the selected members, with their labels; if all are selected, return this domain itself.

        Args:
            members: Indices of members, ascending, shape (k,) with k >= 1.

        Returns:
            A domain of size k.

        Raises:
            InputError: `members` is empty, out of range, or not in ascending order.

        >>> Domain.from_labels(["a", "b", "c"]).part([0, 2]).labels
        ('a', 'c')
        """
        chosen = as_indices(members, "members", self.size)
        if not chosen.size:
            raise InputError("members", "is empty", bound="at least one index")
        if (np.diff(chosen) <= 0).any():
            raise InputError(
                "members", "are not in ascending order", value=chosen.tolist(), bound="ascending, each once"
            )
        if len(chosen) == self.size:
            return self
        labels = tuple(self.labels[index] for index in chosen.tolist())
        coordinates = None if self.coordinates is None else self.coordinates[chosen]
        within = None
        if self.cells is not None:
            within = GridPart(self.cells, chosen, self.geographic)
        elif self.within is not None:
            within = replace(self.within, members=self.within.members[chosen])
        return Domain(self.points[chosen], labels, self.unit, coordinates=coordinates, plane=self.plane, within=within)

    @property
    def degrees(self) -> Floats | None:
        """Return `coordinates` with longitudes between -180 and 180 degrees, for display."""
        if self.coordinates is None or self.coordinates[:, 1].max() <= 180:
            return self.coordinates
        return np.column_stack((self.coordinates[:, 0], wrap_longitudes(self.coordinates[:, 1], -180, 180)))

    @property
    def axes(self) -> Axes:
        """Return the names of coordinates: latitude and longitude if the domain has them, otherwise x and y.

        Raises InputError for a domain without places in two dimensions.
        """
        for axes in (DEGREES, PLANE):
            if self.places(axes) is not None:
                return axes
        raise InputError(
            "domain",
            "has no places in two dimensions",
            value=self,
            bound="a grid, or places with x and y, or with latitude and longitude",
            remedy="name a member by its index or its label",
        )

    def places(self, axes: Axes) -> Floats | None:
        """Return the coordinates of the members, float64 (n, 2), or None if the domain has no coordinates of this kind.

        Args:
            axes: `DEGREES` for latitude and longitude, `PLANE` for x and y.

        Returns:
            The coordinates in the order of `axes`, or None.
        """
        _check_axes(axes)
        known = self.coordinates if axes == DEGREES else self.points
        return known if known is not None and known.shape[1] == 2 else None

    def borders(self, axes: Axes) -> Borders | None:
        """Return the borders between the cells of a grid as two ascending arrays, or None for other domains.

        Args:
            axes: `DEGREES` for latitude and longitude, `PLANE` for x and y.

        Returns:
            The borders along each axis, in the order of `axes`, or None.
        """
        return None if self.cells is None else _borders(self.cells, self.geographic, axes)

    def area(self, axes: Axes) -> Area | None:
        """Return the `Area` that the members cover, or None if the domain has no coordinates of this kind.

        Args:
            axes: `DEGREES` for latitude and longitude, `PLANE` for x and y.

        Returns:
            The area, or None.
        """
        known = self.places(axes)
        if known is None:
            return None
        borders, members, corners = self.borders(axes), None, None
        if borders is None and self.within is not None:
            borders = _borders(self.within.cells, self.within.geographic, axes)
            members = np.full(self.within.cells.size, -1, dtype=np.int64)
            members[self.within.members] = np.arange(self.size)
        if self.lattice is not None:
            if axes == DEGREES or self.lattice.box is None:
                ends = self.lattice.ends
            else:
                ends = (0.0, self.lattice.width), (0.0, self.lattice.height)
            corners = np.array(ends[0]), np.array(ends[1])
        return Area(known, axes, borders, members if borders is not None else None, corners, self.unit)

    def cell_of(
        self,
        latitude: ArrayLike | None = None,
        longitude: ArrayLike | None = None,
        *,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        outside: Outside = "refuse",
        reach: float | None = None,
    ) -> int | Integers:
        """Return the index of the cell that contains a place, or of the nearest member if the domain has no cells.

        A cell includes its southern and western borders; the last row and column also include the border of the grid.
        If the domain has no cells, the first of several equally near members is returned.

        A place is outside a grid if it lies beyond the box, or in a cell that is not a member. A place is outside a
        domain of anchors if it lies beyond their rectangle. A place is outside any other domain if the nearest member
        is farther away than `reach`.

        Args:
            latitude: Latitude in degrees, or x on the plane; a number or an array.
            longitude: Longitude in degrees, or y on the plane; same shape.
            x: Alternative name of the first argument, for places on the plane.
            y: Alternative name of the second argument, for places on the plane.
            outside: "refuse" raises an error for outside places; "nearest" returns the nearest member.
            reach: The largest distance between an inside place and its nearest member, in the unit of the domain (km
                for places in degrees). This limit applies only to domains without cells and anchors. None means the
                largest distance between a member and its nearest neighbour; if all members coincide, a value is
                required.

        Returns:
            An index, or an int64 array of the shape of the coordinates.

        Raises:
            InputError: The members have no places, a coordinate is invalid, or a place is outside and `outside` is
                "refuse".

        >>> Domain.grid(columns=4, rows=3, width=4.0, height=3.0).cell_of(2.5, 1.5)
        6
        """
        axes = self.axes
        area, places = self.area(axes), as_places(axes, latitude, longitude, x, y)
        assert area is not None
        cells, _ = locate(area, places, outside, reach)
        return cells if cells.ndim else int(cells)

    @classmethod
    def grid(cls, columns: int, rows: int, width: float, height: float, unit: str = "km") -> Domain:
        """Return the domain of the cell centres of a rectangle, cut into `columns` × `rows` cells.

        Cell (row, column) has index row · columns + column, and its centre lies at ((column + 1/2) · width / columns,
        (row + 1/2) · height / rows).

        Args:
            columns: The number of columns, at least 1.
            rows: The number of rows, at least 1.
            width: The width of the rectangle, > 0, in `unit`.
            height: The height of the rectangle, > 0, in `unit`.
            unit: The unit of length.

        Returns:
            A domain of columns · rows cells.

        >>> Domain.grid(columns=2, rows=1, width=4.0, height=1.0).points.tolist()
        [[1.0, 0.5], [3.0, 0.5]]
        """
        cells = Grid(columns, rows, width, height)
        return cls(cells.points(), unit=unit, cells=cells)

    @classmethod
    def anchors(cls, columns: int, rows: int, width: float, height: float, unit: str = "km") -> Domain:
        """Return the corners of a grid over a rectangle: the anchors that `ContinuousPrivacy` needs.

        Anchor (row, column) has index row · columns + column and lies at (column · width / (columns − 1), row · height
        / (rows − 1)).

        Args:
            columns: The number of columns of anchors, at least 2.
            rows: The number of rows of anchors, at least 2.
            width: The width of the rectangle, > 0, in `unit`.
            height: The height of the rectangle, > 0, in `unit`.
            unit: The unit of length.

        Returns:
            A domain of columns · rows anchors.

        >>> Domain.anchors(columns=2, rows=2, width=4.0, height=1.0).points.tolist()
        [[0.0, 0.0], [4.0, 0.0], [0.0, 1.0], [4.0, 1.0]]
        """
        lattice = Lattice(columns, rows, width, height)
        return cls(lattice.points(), unit=unit, lattice=lattice)

    @classmethod
    def geographic_grid(cls, columns: int, rows: int, south: float, north: float, west: float, east: float) -> Domain:
        """Return the domain of the cell centres of a box in latitude and longitude, projected to km.

        Row 0 is the southernmost row, column 0 the westernmost column. The plane is `Plane.over` the box, with its
        origin in the south-west corner. Distances in this plane never exceed great-circle distances, unless the box
        touches a pole or is half as wide as the globe.

        Args:
            columns: The number of columns, at least 1.
            rows: The number of rows, at least 1.
            south: The southern latitude in degrees.
            north: The northern latitude.
            west: The western longitude.
            east: The eastern longitude, which is below `west` or above 180 in a box across the 180th meridian.

        Returns:
            A domain of columns · rows cells, with coordinates in degrees.

        >>> Domain.geographic_grid(2, 1, south=46.0, north=47.0, west=7.0, east=9.0).degrees.tolist()
        [[46.5, 7.5], [46.5, 8.5]]
        """
        box = BoundingBox(south, north, west, east)
        _warn_of_interchange(box)
        _warn_of_order(box)
        plane = box.plane
        width = DEGREE_KM * plane.cosine * (box.east - box.west)
        cells = Grid(columns, rows, width, DEGREE_KM * (box.north - box.south))
        angles = Grid(cells.columns, cells.rows, box.east - box.west, box.north - box.south).points()
        coordinates = np.column_stack((box.south + angles[:, 1], box.west + angles[:, 0]))
        return cls(cells.points(), unit="km", cells=cells, geographic=box, coordinates=coordinates, plane=plane)

    @classmethod
    def geographic_anchors(
        cls, columns: int, rows: int, south: float, north: float, west: float, east: float
    ) -> Domain:
        """Return the corners of a grid over a box in latitude and longitude, for `ContinuousPrivacy` with ε per km.

        Anchor (row, column) has index row · columns + column; anchor 0 is the south-west corner. The relative position
        of a point between anchors is computed in degrees. The guarantee uses distances in `BoundingBox.plane`, which
        never exceed great-circle distances. The guarantee applies to points inside the box: the projection of an
        outside point onto the border may lengthen its distances on the globe.

        Args:
            columns: The number of columns of anchors, at least 2.
            rows: The number of rows of anchors, at least 2.
            south: The southern latitude in degrees.
            north: The northern latitude.
            west: The western longitude.
            east: The eastern longitude, which is below `west` or above 180 in a box across the 180th meridian.

        Returns:
            A domain of columns · rows anchors, with coordinates in degrees.

        Raises:
            InputError: The box touches a pole or is half as wide as the globe, so no plane keeps all distances below
                great-circle distances.
        """
        box = BoundingBox(south, north, west, east)
        _warn_of_interchange(box)
        _warn_of_order(box)
        plane = box.plane
        if not plane.shorter:
            raise InputError(
                "north", "belongs to a box without a plane whose distances are at most great-circle distances",
                value=(south, north, west, east),
                bound="a box away from the poles, and narrower than 180 degrees",
            )  # fmt: skip
        # The steps are rounded down, because steps that are too long would weaken the guarantee.
        width = DEGREE_KM * plane.cosine * (box.east - box.west) * (1 - 2.0**-49)
        height = DEGREE_KM * (box.north - box.south) * (1 - 2.0**-49)
        lattice = Lattice(columns, rows, width, height, (box.south, box.north, box.west, box.east))
        latitude = np.linspace(box.south, box.north, lattice.rows)
        longitude = np.linspace(box.west, box.east, lattice.columns)
        row, column = np.divmod(np.arange(lattice.size), lattice.columns)
        coordinates = np.column_stack((latitude[row], longitude[column]))
        points = plane.points(coordinates[:, 0], coordinates[:, 1])
        return cls(points, unit="km", geographic=box, coordinates=coordinates, plane=plane, lattice=lattice)

    @classmethod
    def from_points(cls, points: ArrayLike, labels: Iterable[str] | None = None, unit: str = "") -> Domain:
        """Return a domain of places.

        Args:
            points: Coordinates, (n, d) with n, d ≥ 1, in `unit`.
            labels: n distinct names, with which names of rows are matched. None takes the names of the rows if they are
                texts; otherwise places are labelled with their numbers.
            unit: The unit of the coordinates, such as "km".

        Returns:
            A domain of n places.
        """
        array, names = _with_labels(points, "points", "(n, d)", _as_labels(labels))
        if array.shape[1] == 0:
            raise InputError("points", "has no columns", value=array.shape, remedy="use Domain.from_labels")
        return cls(array, labels=names, unit=unit)

    @classmethod
    def from_coordinates(cls, latitude: ArrayLike, longitude: ArrayLike, labels: Iterable[str] | None = None) -> Domain:
        """Return a domain of places in latitude and longitude, projected to km.

        The plane is `Plane.over` the smallest box that contains the places.

        Args:
            latitude: Latitudes in degrees, (n,), from -90 to 90.
            longitude: Longitudes in degrees, (n,), from -180 to 360.
            labels: n distinct names, as in `from_points`.

        Returns:
            A domain of n places.

        Raises:
            InputError: A coordinate is out of range, or the places span more than 180 degrees of longitude.
        """
        rows = [opened(latitude, "latitude").rows, opened(longitude, "longitude").rows]
        if any(set(each) != set(range(len(each))) and not labels_of(each, "longitude") for each in rows):
            # Numbers of selected rows are matched with nothing.
            require_one_index({"latitude": latitude, "longitude": longitude})
        latitudes, names = _with_labels(latitude, "latitude", "(n,)", _as_labels(labels))
        longitudes, names = _with_labels(longitude, "longitude", "(n,)", names)
        if len(latitudes) != len(longitudes):
            raise InputError(
                "longitude", "does not match latitude", value=len(longitudes), bound=f"{len(latitudes)} values"
            )
        if len(latitudes) == 0:
            raise InputError("latitude", "is empty", bound="at least one value")
        swapped = may_be_interchanged(latitudes, longitudes)
        remedy = f"{INTERCHANGED}: exchange them" if swapped else ""
        require(np.abs(latitudes) <= 90, latitudes, "latitude", "between -90 and 90 degrees", remedy)
        good = (longitudes >= -180) & (longitudes <= 360)
        require(good, longitudes, "longitude", "between -180 and 360 degrees")
        longitudes = wrap_longitudes(longitudes, -180, 180)
        if np.ptp(longitudes) > 180:
            # The places may be closer together across the 180th meridian.
            longitudes = np.where(longitudes < 0, longitudes + 360, longitudes)
        south, north, west, east = latitudes.min(), latitudes.max(), longitudes.min(), longitudes.max()
        if east - west > 180:
            raise InputError(
                "longitude",
                "spans more than half of the globe, which is too wide for a local projection",
                value=float(east - west),
                bound="at most 180 degrees",
                remedy="split the places, or project them yourself and use Domain.from_points",
            )
        if south < north and west < east:
            _warn_of_interchange(BoundingBox(south, north, west, east))
        plane = Plane.over(south, north, west, east)
        coordinates = np.column_stack((latitudes, longitudes))
        points = plane.points(latitudes, longitudes)
        return cls(points, labels=names, unit="km", coordinates=coordinates, plane=plane)

    @classmethod
    def from_labels(cls, labels: Iterable[str]) -> Domain:
        """Return a domain that has labels but no places: `points` has shape (n, 0).

        Args:
            labels: n distinct, non-empty names, n >= 1.

        Returns:
            A domain of size n.
        """
        names = _as_labels(labels)
        return cls(np.zeros((len(names), 0)), labels=names)


def _check_axes(axes: object) -> None:
    """Raise `InputError` unless `axes` is `DEGREES` or `PLANE`."""
    if not isinstance(axes, tuple) or axes not in (DEGREES, PLANE):
        raise InputError("axes", "are not known", value=axes, bound=f"{DEGREES} or {PLANE}")


_ON_EARTH = "a latitude between -90 and 90 and a longitude between -180 and 360 degrees"

# Range of latitudes with human settlements, in degrees.
_SOUTHERNMOST, _NORTHERNMOST = -60.0, 75.0

# A warning is issued if the same numbers in another order give a box whose area is smaller by more than this factor.
_SUSPICIOUS_AREA_RATIO = 1000.0


def _less_360(degrees: float) -> float:
    """Subtract 360 from the decimal in the repr of `degrees`, and round the result to float64."""
    return nearest(as_decimal(degrees) - 360)


def _warn_of_interchange(box: BoundingBox) -> None:
    """Warn about a box in Antarctica that would lie in a settled region if latitude and longitude were exchanged."""
    if box.north <= _SOUTHERNMOST and box.west >= _SOUTHERNMOST and box.east <= _NORTHERNMOST:
        other = BoundingBox.text(box.west, box.east, box.south, box.north)
        warn(
            f"{box} is south of 60 degrees south: {INTERCHANGED}. After an exchange, the box would be {other}",
            InputWarning,
            stacklevel=3,
        )


def _warn_of_order(box: BoundingBox) -> None:
    """Warn about a box whose numbers, read as west, south, east and north, give a far smaller box."""
    if (box.north - box.south) * (box.east - box.west) > _SUSPICIOUS_AREA_RATIO * _reorder_area(box):
        warn(
            f"{box} is large: the numbers look like west, south, east and north. The expected order is south, north, "
            "west, east",
            InputWarning,
            stacklevel=3,
        )


def _reorder_area(box: BoundingBox) -> float:
    """Return the area, in square degrees, of a box whose numbers are read as west, south, east and north."""
    west, south, east, north = box.south, box.north, box.west, box.east
    possible = west < east and -90 <= south < north <= 90
    return (east - west) * (north - south) if possible else math.inf


def _borders(cells: Grid, box: BoundingBox | None, axes: Axes) -> Borders | None:
    _check_axes(axes)
    if axes == PLANE:
        return np.linspace(0.0, cells.width, cells.columns + 1), np.linspace(0.0, cells.height, cells.rows + 1)
    if box is None:
        return None
    return np.linspace(box.south, box.north, cells.rows + 1), np.linspace(box.west, box.east, cells.columns + 1)


def _on_earth(coordinates: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    # Comparisons with NaN are false, so NaN is rejected as well.
    good: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (coordinates >= [-90, -180]) & (coordinates <= [90, 360])
    return good


def _middles(count: int, side: float) -> Floats:
    """Return the rounded midpoints of `count` equal parts of a side, which is read as the decimal in its repr."""
    number = np.arange(count, dtype=np.float64) + 0.5
    rest = float(as_decimal(side) - Fraction(side))
    high, low = expansions.two_product(number, np.full(count, side))
    found = high / count
    back, error = expansions.two_product(found, np.full(count, float(count)))
    middles: Floats = found + ((high - back) - error + (low + number * rest)) / count
    return middles


def _with_labels(values: ArrayLike, path: str, shape: str, labels: tuple[str, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Return an array in the order of labels, and the labels, which may be the names of its rows."""
    given = opened(values, path)
    own = labels_of(given.rows, path)
    if not own and set(given.rows) != set(range(len(given.rows))):
        # Rows that were selected keep their numbers in pandas.
        return as_floats(given.values, path, shape), labels
    labels = labels or tuple(map(str, own))
    return as_floats(given.arranged(path, labels), path, shape), labels


def _as_labels(labels: Iterable[str] | None) -> tuple[str, ...]:
    if labels is None:
        return ()
    if isinstance(labels, str):
        raise InputError("labels", "is one text", value=labels, bound="a list of texts")
    names = tuple(as_list(labels, "labels", "a list of texts"))
    if not names:
        raise InputError("labels", "is empty", bound="at least one label")
    return names


def _check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    names = _as_labels(labels)
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InputError(f"labels[{index}]", "is not a name", value=name, bound="a non-empty text")
        if name in first:
            raise InputError(
                f"labels[{index}]", f"repeats labels[{first[name]}]", value=name, bound="distinct from all others"
            )
        # Convert NumPy strings, which cannot be written as JSON.
        first[str(name)] = index
    return tuple(first)
