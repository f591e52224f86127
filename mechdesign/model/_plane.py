"""The plane in which places given by latitude and longitude are drawn and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, read_only

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth (IUGG), in km."""

DEGREE_KM = math.radians(EARTH_RADIUS_KM)
"""Length of one degree of a great circle, in km."""

# Covers the rounding of the few operations that give the cosine, each below 2^-50.
_COSINE_MARGIN = 1e-14


@dataclass(frozen=True)
class Plane:
    """The plane x = R c (λ − west), y = R (φ − south), in km, with angles in radians and R = `EARTH_RADIUS_KM`.

    Attributes:
        south: latitude of the origin, in degrees.
        west: longitude of the origin, in degrees.
        cosine: the factor c, by which degrees of longitude are shorter than degrees of latitude.
        shorter: whether no distance in the plane exceeds that along the great circle; see `over`.
    """

    south: float
    west: float
    cosine: float
    shorter: bool

    @classmethod
    def over(cls, south: float, north: float, west: float, east: float) -> Plane:
        """Return the plane over a box in degrees, with its origin in the south-west corner.

        c is cos φ_v, rounded down, with tan φ_v = tan φ_max / cos((east − west)/2) and φ_max the largest absolute
        latitude of the box. A great circle between two places of the box, wherever it runs, does not go beyond the
        latitude φ_v. Along it dλ is thus worth at least R c dλ, and no distance in the plane exceeds the way on the
        globe. (The cosine of φ_max itself would be too large: the way between two places in the north leads further
        north.) Where the box touches a pole, or is half as wide as the globe, there is no such c > 0; the plane then
        has c = cos((south + north)/2), for drawing, and is not `shorter`.
        """
        width = math.nextafter(float(east) - float(west), math.inf)
        height = max(abs(south), abs(north))
        across, up = _sine(90 - width / 2), _sine(90 - height)
        if width < 180 and across > 0 and up > 0:
            cosine = across * up / math.hypot(across * up, _sine(height))
            return cls(float(south), float(west), (1 - _COSINE_MARGIN) * cosine, True)
        return cls(float(south), float(west), math.cos(math.radians((south + north) / 2)), False)

    def points(self, latitude: Floats, longitude: Floats) -> Floats:
        """Return the places in the plane: x and y in km, float64 of shape (n, 2), read-only."""
        x = DEGREE_KM * self.cosine * (longitude - self.west)
        return read_only(np.column_stack((x, DEGREE_KM * (latitude - self.south))))


def _sine(degrees: float) -> float:
    return math.sin(math.radians(degrees))
