"""Approximate location as phones and browsers report it: a random offset, if any, and then a square grid.

The offset is normal, independent on the two axes, and cut off at `LARGEST_OFFSET` standard deviations. The probability
of a grid point is therefore a product of two masses of intervals. With G(z) = ∫₀ᶻ exp(−t²/2) dt, the mass of an
interval from a to b is (G(b) − G(a)) / (2 G(LARGEST_OFFSET)). The series G(z) = exp(−z²/2) Σ z^(2k+1) / (1·3·…·(2k+1))
has positive terms only, and decimals of 80 digits sum it. Masses of at least 1e-50 are thus correct to 25 digits
before they are rounded to the nearest float.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from mechdesign.base._arithmetic import decimals, in_own_arithmetic
from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._check import as_list
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.mechanisms._planar_laplace import require_plane
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, not_negative, positive
from mechdesign.model._plane import DEGREE_KM

LARGEST_OFFSET = 8
"""The largest offset on each axis, in standard deviations; a normal number exceeds it with probability 1.3e-15."""

BROWSER_SPACING = Fraction(5)
"""The spacing of the grid of `ApproximateLocation.browser`, in km."""

ANDROID_ACCURACY = Fraction(2)
"""The default accuracy of `ApproximateLocation.android`, in km."""

ANDROID_SHARE = Fraction(1, 4)
"""The standard deviation of the offset of `ApproximateLocation.android`, as a share of the accuracy."""

_CONTEXT = decimals(80)
# Smaller masses are set to zero. The absolute error of a mass is below 1e-75.
_LEAST_MASS = Fraction(1, 10**50)
# Terms below this share of the sum are omitted.
_NEGLIGIBLE = Decimal("1e-78")
# The largest number of grid points on an axis.
_MOST_POINTS = 10_000


class ApproximateLocation:
    """One report of an approximate location: a random offset, then rounding to the nearest point of a square grid.

    The channel describes a single report with a fresh offset. It does not describe several reports with the same
    offset. An observer who has learned the offset faces deterministic rounding to a shifted grid, which is
    ``ApproximateLocation(points, spacing, origin=...)``. The grid is regular in the plane of the points. Systems that
    scale the steps of longitude with the latitude shift the rows of this grid against each other.

    Args:
        points: n places in the plane.
        spacing: The spacing of the grid, > 0, in the unit of the points.
        deviation: The standard deviation of the offset on each axis, in the same unit; 0 for no offset.
        origin: A point of the grid, x and y, in the same unit.

    Attributes:
        points: The places.
        spacing: The exact spacing.
        deviation: The exact standard deviation.
        origin: The exact coordinates of a point of the grid.

    Raises:
        InputError: The points are not places in the plane, a number is out of range, or the grid is too fine.

    >>> home = Domain.from_points([[0.9, 0.0]], unit="km")
    >>> ApproximateLocation(home, spacing=2, deviation="0.1").matrix().round(4).tolist()
    [[0.8413, 0.1587]]
    """

    def __init__(
        self, points: Domain, spacing: Number, deviation: Number = 0, origin: Sequence[Number] = (0, 0)
    ) -> None:
        self.points = require_plane(points, "points")
        self.spacing = positive(spacing, "spacing")
        self.deviation = not_negative(deviation, "deviation")
        given = as_list(origin, "origin", "two numbers, x and y")
        if len(given) != 2:
            raise InputError("origin", "is not a place in the plane", value=len(given), bound="two numbers, x and y")
        self.origin = tuple(exact(number, f"origin[{axis}]") for axis, number in enumerate(given))
        reach = LARGEST_OFFSET * self.deviation
        for axis, extent in enumerate(np.ptp(self.points.points, axis=0).tolist()):
            count = (Fraction(extent) + 2 * reach) / self.spacing
            if count > _MOST_POINTS:
                raise InputError(
                    "spacing",
                    f"is too small for the {'xy'[axis]} coordinates: a grid would need {float(count):.3g} points",
                    value=float(self.spacing),
                    bound=f"at most {_MOST_POINTS} points on an axis",
                )

    @classmethod
    def browser(cls, points: Domain, spacing: Number | None = None) -> ApproximateLocation:
        """Return deterministic rounding to a grid, as described for approximate positions in browsers.

        An implementer of the W3C Geolocation API described a grid of about 5 km without randomness
        (github.com/w3c/geolocation, pull request 233, comment of 12 August 2026). The model leaves out the change of
        the steps of longitude with the latitude, and the reported accuracy.

        Args:
            points: n places in the plane.
            spacing: The spacing of the grid, in the unit of the points; 5 km by default.

        Returns:
            The mechanism.

        Raises:
            InputError: The unit of the points is not km, and no spacing is given.

        >>> ApproximateLocation.browser(Domain.grid(8, 6, 8.0, 6.0))
        ApproximateLocation(48 places, spacing=5, deviation=0)
        """
        return cls(points, _or_default(points, spacing, "spacing", BROWSER_SPACING))

    @classmethod
    def android(cls, points: Domain, accuracy: Number | None = None) -> ApproximateLocation:
        """Return a report with a fresh random offset, as the class LocationFudger of Android makes the first one.

        `LocationFudger.java` of the Android Open Source Project adds a normal offset to each axis. Its standard
        deviation is a quarter of the accuracy. The sum is rounded to a grid whose spacing is the accuracy.

        The model leaves out that the offset is kept, and that each hour a new offset enters with the weight 0.03. It
        leaves out the change of the steps of longitude with the latitude, and the cache of the last location. It is not
        about the variant whose grid depends on the population density.

        Args:
            points: n places in the plane.
            accuracy: The accuracy, in the unit of the points; 2 km by default. Android uses at least 0.2 km.

        Returns:
            The mechanism.

        Raises:
            InputError: The unit of the points is not km, and no accuracy is given.

        >>> ApproximateLocation.android(Domain.grid(8, 6, 8.0, 6.0))
        ApproximateLocation(48 places, spacing=2, deviation=0.5)
        """
        require_plane(points, "points")
        stated = positive(_or_default(points, accuracy, "accuracy", ANDROID_ACCURACY), "accuracy")
        return cls(points, stated, stated * ANDROID_SHARE)

    def __repr__(self) -> str:
        numbers = f"spacing={exact_text(self.spacing)}, deviation={exact_text(self.deviation)}"
        return f"ApproximateLocation({self.points.size} places, {numbers})"

    @cached_property
    def observables(self) -> Domain:
        """The m grid points that are reported with a positive probability, ordered by x and then by y."""
        (across, _), (up, _) = self._axes
        x, y = (
            np.array([nearest(self.origin[axis] + number * self.spacing) for number in numbers])
            for axis, numbers in enumerate((across, up))
        )
        places = np.column_stack([side.ravel() for side in np.meshgrid(x, y, indexing="ij")])[self._is_reported]
        plane = self.points.plane
        if plane is None:
            return Domain.from_points(places, unit=self.points.unit)
        latitude = plane.south + places[:, 1] / DEGREE_KM
        longitude = plane.west + places[:, 0] / (DEGREE_KM * plane.cosine)
        return Domain(
            plane.points(latitude, longitude),
            unit=self.points.unit,
            coordinates=np.column_stack((latitude, longitude)),
            plane=plane,
        )

    @in_own_arithmetic
    def matrix(self) -> Floats:
        """Return p(o|s) = Pr(o is the nearest grid point to s + offset).

        Without an offset, all entries are exactly 0 or 1. With an offset, an entry is zero if no offset within the
        cut-off leads to this grid point. An entry is also zero if the mass on an axis is below 1e-50. All other entries
        have a relative error below 2**-51. A place halfway between two grid points is rounded up.

        Returns:
            The probabilities, shape (n, m). The columns belong to `observables`.
        """
        return self._all[:, self._is_reported]

    @cached_property
    def _axes(self) -> tuple[tuple[list[int], Floats], tuple[list[int], Floats]]:
        """For each axis, the numbers of the grid points, and the probability of each for every place."""
        return self._axis(0), self._axis(1)

    def _axis(self, axis: int) -> tuple[list[int], Floats]:
        values, place = np.unique(self.points.points[:, axis], return_inverse=True)
        exactly = [Fraction(value) - self.origin[axis] for value in values.tolist()]
        reach = LARGEST_OFFSET * self.deviation
        first = self._find_nearest(min(exactly) - reach)
        last = self._find_nearest(max(exactly) + reach)
        numbers = list(range(first, last + 1))
        masses = np.zeros((len(values), len(numbers)))
        for line, value in enumerate(exactly):
            if not self.deviation:
                masses[line, self._find_nearest(value) - first] = 1.0
                continue
            low, high = self._find_nearest(value - reach), self._find_nearest(value + reach)
            borders = [(number - Fraction(1, 2)) * self.spacing - value for number in range(low, high + 2)]
            farthest = Fraction(LARGEST_OFFSET)
            ends = [min(max(border / self.deviation, -farthest), farthest) for border in borders]
            masses[line, low - first : high + 1 - first] = interval_masses(ends)
        return numbers, masses[place.ravel()]

    def _find_nearest(self, value: Fraction) -> int:
        """Return the number of the grid point nearest to a coordinate; a tie is rounded up."""
        return math.floor(value / self.spacing + Fraction(1, 2))

    @cached_property
    def _all(self) -> Floats:
        """The probabilities of all grid points in the box about the reports, (n, points)."""
        (_, across), (_, up) = self._axes
        return (across[:, :, None] * up[:, None, :]).reshape(len(across), -1)

    @cached_property
    def _is_reported(self) -> Flags:
        """Whether each grid point in the box is reported with a positive probability."""
        return np.asarray((self._all > 0).any(axis=0))


def _or_default(points: Domain, value: Number | None, path: str, default: Fraction) -> Number:
    """Return a length, or the default in km; raise `InputError` if the default is not in the unit of the points."""
    if value is not None:
        return value
    unit = require_plane(points, "points").unit
    if unit != "km":
        raise InputError(path, "is missing", value=f"points in {unit!r}", bound="a length, unless the unit is km")
    return default


def interval_masses(ends: Sequence[Fraction]) -> Floats:
    """Return the masses of consecutive intervals under the normal law cut off at ±`LARGEST_OFFSET`.

    Args:
        ends: The ends of the intervals, in standard deviations, ascending, within the cut-off.

    Returns:
        The float nearest to the mass of each interval, one fewer than there are ends; 0 for masses below 1e-50.

    >>> interval_masses([Fraction(-8), Fraction(0), Fraction(8)]).tolist()
    [0.5, 0.5]
    """
    sums = [Fraction(_integral(end)) for end in ends]
    whole = 2 * Fraction(_integral(Fraction(LARGEST_OFFSET)))
    masses = [(above - below) / whole for below, above in itertools.pairwise(sums)]
    return np.array([nearest(mass) if mass >= _LEAST_MASS else 0.0 for mass in masses])


def _integral(end: Fraction) -> Decimal:
    """Return G(z) = ∫₀ᶻ exp(−t²/2) dt, up to a relative error below 1e-75."""
    with decimal.localcontext(_CONTEXT):
        z = Decimal(end.numerator) / Decimal(end.denominator)
        term = total = z
        odd = 1
        while abs(term) > _NEGLIGIBLE * abs(total):
            odd += 2
            term = term * z * z / odd
            total += term
        return total * (-z * z / 2).exp()
