"""Anchors: the corners of a rectangular grid, and where a point lies between them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.certify._exact import exact
from mechdesign.base._errors import InputError
from mechdesign.model.places import turned
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer
from mechdesign.base._check import as_number

__all__ = ["Between", "Corners", "Lattice"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
            number = as_number(getattr(self, name), name)
            if number <= 0:
                raise InputError(name, "is not positive", value=number, bound="> 0")
            object.__setattr__(self, name, number)

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
            # As `turned` does, exactly.
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
        return (turned(second, west, east) - west) / (east - west), (first - south) / (north - south)


def _cell(position: Floats, count: int) -> tuple[Integers, Floats]:
    cell = np.minimum(position.astype(np.int64), count - 2)
    return cell, position - cell


def _exact_cell(share: Fraction, count: int) -> tuple[int, Fraction]:
    position = min(max(share, Fraction(0)), Fraction(1)) * (count - 1)
    cell = min(int(position), count - 2)
    return cell, position - cell
