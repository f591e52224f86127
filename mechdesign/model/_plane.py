"""The plane for drawing and measuring places in latitude and longitude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, read_only

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
