"""Places with exact decimal coordinates, and lengths between them, rounded down.

The float of a coordinate is read as the decimal in its repr; coordinates of a grid are multiples of the exact step.
Lengths are computed in double-double arithmetic with an error bound. If this bound cannot decide on which side of a
float64 the exact length lies, integer arithmetic decides. Each result is the largest float64 that is at most the exact
length.
"""

from __future__ import annotations

import itertools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.certify._exact import as_decimal, is_flushing, nearest
from mechdesign.model import _expansions as expansions
from mechdesign.model._domain import Domain

# Largest number of float64 steps between a rounded root and the largest float64 below the exact root.
_MAX_STEPS = 4
_LEAST_NORMAL = Fraction(2) ** (sys.float_info.min_exp - 1)

# Integers up to this magnitude, and their differences, are exact in float64.
_LARGEST_WHOLE = 2.0**51

# In double-double arithmetic, the relative error of a sum of k products is below (k + 4) times this constant.
_PRODUCT_ERROR = 2.0**-100

# The error of the double-double difference of coordinates x and y is below (|x| + |y|) times this constant.
_DIFFERENCE_ERROR = 2.0**-100


@dataclass(frozen=True, eq=False)
class Places:
    """Places with exact coordinates.

    Attributes:
        floats: Coordinates rounded to float64, (n, d).
        rest: Exact coordinates minus `floats`, rounded to float64, (n, d).
        whole: Exact coordinates times `scale`, (n, d): integral float64 if all products are small enough, otherwise
            Python integers.
        scale: The positive integer by which the exact coordinates are multiplied to give `whole`.
    """

    floats: Floats
    rest: Floats
    whole: NDArray[Any]
    scale: int

    @classmethod
    def of_points(cls, points: Floats) -> Places:
        """Return places whose exact coordinates are the decimals in the repr of the given floats."""
        axes = []
        for column in points.T:
            values, index = np.unique(column, return_inverse=True)
            axes.append(([as_decimal(value) for value in values.tolist()], index))
        return cls.of_axes(points, axes)

    @classmethod
    def of_axes(cls, points: Floats, axes: Sequence[tuple[Sequence[Fraction], Integers]]) -> Places:
        """Return places with exact coordinates near `points`.

        For each axis, `axes` contains distinct exact numbers, and for each place the index of its number.
        """
        scale = math.lcm(*{value.denominator for values, _ in axes for value in values})
        whole = [[value.numerator * (scale // value.denominator) for value in values] for values, _ in axes]
        kind = _kind(itertools.chain.from_iterable(whole), scale)
        rest = np.empty(points.shape)
        for axis, (values, index) in enumerate(axes):
            # Places with the same exact number also have the same float.
            near = np.zeros(len(values))
            near[index] = points[:, axis]
            missing = [nearest(value - Fraction(each)) for value, each in zip(values, near.tolist(), strict=True)]
            rest[:, axis] = np.array(missing)[index]
        columns = [np.array(numbers, dtype=kind)[index] for numbers, (_, index) in zip(whole, axes, strict=True)]
        return cls(points, rest, np.column_stack(columns), scale)

    def rescale(self, scale: int) -> Places:
        """Return the same places with another scale, a multiple of the present scale."""
        if scale == self.scale:
            return self
        factor = scale // self.scale
        whole = np.array([[int(number) * factor for number in row] for row in self.whole.tolist()], dtype=object)
        return Places(self.floats, self.rest, whole.astype(_kind(whole.ravel().tolist(), scale)), scale)


def places_of(domain: Domain | Floats) -> Places:
    """Return the places of a domain, or points (n, d), with their exact decimal coordinates."""
    if isinstance(domain, Domain) and (steps := steps_of(domain)) is not None:
        columns, rows = shape_of(domain)
        row, column = np.divmod(np.arange(domain.size), columns)
        # The centre of a cell is half a step from its corner.
        start = Fraction(1, 2) if domain.cells is not None else Fraction(0)
        x, y = (
            [(number + start) * step for number in range(count)]
            for step, count in zip(steps, (columns, rows), strict=True)
        )
        return Places.of_axes(domain.points, [(x, column), (y, row)])
    return Places.of_points(domain.points if isinstance(domain, Domain) else domain)


def steps_of(domain: Domain) -> tuple[Fraction, Fraction] | None:
    """Return the exact distances between neighbouring places of a grid along x and y, or None for other places."""
    cells, lattice = domain.cells, domain.lattice
    if cells is not None and np.array_equal(domain.points, cells.points()):
        return as_decimal(cells.width) / cells.columns, as_decimal(cells.height) / cells.rows
    if lattice is not None and lattice.box is None and np.array_equal(domain.points, lattice.points()):
        return lattice.steps
    return None


def shape_of(grid: Domain) -> tuple[int, int]:
    """Return the numbers of columns and rows of a grid."""
    shape = grid.cells or grid.lattice
    assert shape is not None
    return shape.columns, shape.rows


def table_of_steps(steps: tuple[Fraction, Fraction], columns: int, rows: int, norm: Norm) -> Floats:
    """Return the lengths of grid displacements, (rows, columns); entry (j, i) belongs to i steps in x and j in y."""
    row, column = np.divmod(np.arange(columns * rows), columns)
    exactly = [[number * step for number in range(count)] for step, count in zip(steps, (columns, rows), strict=True)]
    axes = list(zip(exactly, (column, row), strict=True))
    floats = np.column_stack([np.array([nearest(value) for value in values])[index] for values, index in axes])
    ends = Places.of_axes(floats, axes)
    lengths = norm.lengths(ends, ends, np.zeros((1, 1), dtype=np.int64), np.arange(columns * rows)[None, :])
    return lengths.reshape(rows, columns)


class Norm(ABC):
    """A norm of displacements, computed in double-double arithmetic, or in integer arithmetic in doubtful cases."""

    power: int = 1

    @abstractmethod
    def near(self, differences: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """Return lengths from differences, both as double-double numbers (pairs of float64)."""

    @abstractmethod
    def terms(self, differences: list[Floats]) -> list[Floats]:
        """Return terms whose exact sum is length^power, for integral differences."""

    @abstractmethod
    def exact(self, differences: Sequence[int]) -> int:
        """Return length^power, for integer differences."""

    def lengths(self, first: Places, second: Places, rows: Integers, columns: Integers) -> Floats:
        """Return the lengths between the places `rows` of `first` and `columns` of `second`, with broadcasting.

        Both sets of places must have the same scale. Each result is the largest float64 that is at most the exact
        length.
        """
        slack: Floats = np.zeros(np.broadcast_shapes(rows.shape, columns.shape))
        differences = []
        for axis in range(first.floats.shape[1]):
            x, y = first.floats[rows, axis], second.floats[columns, axis]
            high, low = expansions.two_sum(x, -y)
            differences.append(expansions.two_sum(high, low + (first.rest[rows, axis] - second.rest[columns, axis])))
            slack += np.abs(x) + np.abs(y)
        value, rest = self.near(differences)
        value, rest = expansions.two_sum(value, rest)
        error = (len(differences) + 4) * _PRODUCT_ERROR * value + _DIFFERENCE_ERROR * slack
        found = np.where(rest < 0, np.nextafter(value, 0), value)
        # If the error bound is large relative to a unit in the last place, `value` may be wrong by more than one
        # float64.
        hard = 8 * error > np.spacing(value)
        doubtful = np.flatnonzero(((np.abs(rest) <= error) | hard) & (value > 0))
        if doubtful.size:
            i, j = (np.broadcast_to(some, found.shape).ravel()[doubtful] for some in (rows, columns))
            flat = found.ravel()
            flat[doubtful] = self._decide(first, second, i, j, value.ravel()[doubtful], hard.ravel()[doubtful])
            found = flat.reshape(found.shape)
        return found

    def _decide(self, first: Places, second: Places, i: Integers, j: Integers, value: Floats, hard: Flags) -> Floats:
        """Return the largest float64 not above each length; unless `hard`, this is `value` or the float64 below it."""
        pairs = list(zip(first.whole.T, second.whole.T, strict=True))
        scale = first.scale
        found = np.empty(len(i))
        easy, rest = np.flatnonzero(~hard), np.flatnonzero(hard)
        if first.whole.dtype == object or second.whole.dtype == object:
            whole = (np.abs(_integers(a[i[easy]]) - _integers(b[j[easy]])).tolist() for a, b in pairs)
            lengths = map(self.exact, zip(*whole, strict=True))
            above = np.fromiter(
                (
                    _is_above(near, length, scale, self.power)
                    for near, length in zip(value[easy].tolist(), lengths, strict=True)
                ),
                dtype=np.bool_,
                count=len(easy),
            )
        else:
            terms = self.terms([a[i[easy]] - b[j[easy]] for a, b in pairs])
            high, low = expansions.two_product(value[easy], np.full(easy.size, float(scale)))
            above = expansions.is_negative(expansions.exact_sum(terms + self._minus(high, low)))
        found[easy] = np.where(above, np.nextafter(value[easy], 0), value[easy])
        for index in rest.tolist():
            differences = [abs(int(a[i[index]]) - int(b[j[index]])) for a, b in pairs]
            found[index] = _floor(self.exact(differences), scale, self.power)
        return found

    @staticmethod
    def _minus(high: Floats, low: Floats) -> list[Floats]:
        """Return terms whose exact sum is −(high + low)^power."""
        return [-low, -high]


class _Euclidean(Norm):
    power = 2

    def near(self, differences: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        total, rest = np.zeros_like(differences[0][0]), np.zeros_like(differences[0][0])
        for high, low in differences:
            square, error = expansions.two_product(high, high)
            total, carried = expansions.two_sum(total, square)
            rest += carried + (error + (2 * high + low) * low)
        total, rest = expansions.two_sum(total, rest)
        root = np.sqrt(total)
        square, error = expansions.two_product(root, root)
        with np.errstate(invalid="ignore", under="ignore"):
            return root, np.where(root > 0, ((total - square) - error + rest) / (2 * root), 0.0)

    def terms(self, differences: list[Floats]) -> list[Floats]:
        products = (expansions.two_product(difference, difference) for difference in differences)
        return [term for high, low in products for term in (low, high)]

    def exact(self, differences: Sequence[int]) -> int:
        return sum(difference * difference for difference in differences)

    @staticmethod
    def _minus(high: Floats, low: Floats) -> list[Floats]:
        squares = (*expansions.two_product(low, low), *expansions.two_product(2 * high, low))
        return [-term for term in (*squares, *expansions.two_product(high, high)[::-1])]


class _Manhattan(Norm):
    def near(self, differences: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        total, rest = np.zeros_like(differences[0][0]), np.zeros_like(differences[0][0])
        for high, low in differences:
            total, carried = expansions.two_sum(total, np.abs(high))
            rest += carried + np.where(high < 0, -low, low)
        return total, rest

    def terms(self, differences: list[Floats]) -> list[Floats]:
        return [np.abs(difference) for difference in differences]

    def exact(self, differences: Sequence[int]) -> int:
        return sum(differences)


class _Chebyshev(Norm):
    def near(self, differences: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        largest, rest = np.zeros_like(differences[0][0]), np.zeros_like(differences[0][0])
        for high, low in differences:
            value, more = np.abs(high), np.where(high < 0, -low, low)
            longer = (value > largest) | ((value == largest) & (more > rest))
            largest, rest = np.where(longer, value, largest), np.where(longer, more, rest)
        return largest, rest

    def terms(self, differences: list[Floats]) -> list[Floats]:
        return [np.abs(np.array(differences)).max(axis=0)]

    def exact(self, differences: Sequence[int]) -> int:
        return max(differences)


EUCLIDEAN, MANHATTAN, CHEBYSHEV = _Euclidean(), _Manhattan(), _Chebyshev()


def _kind(whole: Iterable[int], scale: int) -> type[float] | type[object]:
    """Return the array type in which the given integers, their differences and the scale are exact."""
    return float if scale <= _LARGEST_WHOLE and all(abs(number) <= _LARGEST_WHOLE for number in whole) else object


def _integers(whole: NDArray[Any]) -> NDArray[Any]:
    """Return integral numbers as Python integers."""
    return whole if whole.dtype == object else whole.astype(np.int64).astype(object)


def _is_above(near: float, length: int, scale: int, power: int) -> bool:
    """Return whether near^power > length / scale^power."""
    numerator, denominator = near.as_integer_ratio()
    return bool((numerator * scale) ** power > length * denominator**power)


def _floor(length: int, scale: int, power: int) -> float:
    """Return the largest float64 x with x^power <= length / scale^power."""
    limit = Fraction(length, scale**power)
    if limit < _LEAST_NORMAL**power and is_flushing():
        return 0.0
    found = nearest(limit) if power == 1 else math.sqrt(nearest(limit))
    # The one or two roundings above move the result by at most one float64 step.
    for _ in range(_MAX_STEPS):
        if Fraction(found) ** power <= limit:
            break
        found = math.nextafter(found, 0)
    for _ in range(_MAX_STEPS):
        if Fraction(above := math.nextafter(found, math.inf)) ** power > limit:
            break
        found = above
    return found
