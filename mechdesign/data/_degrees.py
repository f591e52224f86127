"""Read latitudes and longitudes in degrees; longitudes go from -180 to 180, or from 0 to 360."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._errors import InputError
from mechdesign.data import _left_out as reasons
from mechdesign.data._layout import cell, say_recognised
from mechdesign.data._left_out import RowError
from mechdesign.data._text import as_float
from mechdesign.model._locate import INTERCHANGED

Longitudes = Literal["180", "360"]
"""The range of longitudes: from -180 to 180 degrees, or from 0 to 360."""

Error = Callable[[str, object, str], InputError]

# Other notations of degrees: degree signs, compass letters, or typographic minus signs.
_SIGNS = re.compile("[°º'\"′″\u2212\u2013()]|[0-9] *[nsewo] *$|^ *[nsewo] *[0-9]", re.IGNORECASE)
_PLAIN = ", in digits with a decimal point, and with a hyphen for south and west, but without degree signs or letters"
# Larger numbers are probably meters, or degrees times a power of ten.
_MAX_DEGREES = 1000
_CONVERT = "; if it is a multiple of degrees, such as latitudeE7, or in meters, convert it"
_EXCHANGE = "exchange the names of the two columns"


def errors_at(where: str) -> Error:
    """Return a function that creates an `InputError` at the path `where` from a problem, a value and a bound."""
    return lambda problem, value, bound: InputError(where, problem, value=value, bound=bound)


def place_in(texts: tuple[str, str], names: tuple[str, str], error: Error) -> tuple[float, float]:
    """Return the latitude and the longitude of two cells; the longitude may be up to 360 degrees.

    Args:
        texts: The two cells.
        names: The names of the two columns.
        error: A function that creates an error from a problem, a value and a bound.

    Returns:
        Latitude in [-90, 90] and longitude in [-180, 360], in degrees; the longitude is not reduced by 360 degrees.

    Raises:
        RowError: A cell is empty, not a number, or out of range.
    """
    latitude, longitude = map(as_float, texts)
    for text, name, value in zip(texts, names, (latitude, longitude), strict=True):
        if value is None or value != value:
            problem = f"{name} is missing" if not text.strip() else f"{name} is not a number"
            bound = "decimal degrees" + (_PLAIN if _SIGNS.search(text) else "")
            raise RowError(reasons.NO_PLACE, error(problem, cell(text), bound))
    assert latitude is not None
    assert longitude is not None
    # If each value is in the range of the other coordinate, the columns may be interchanged.
    if not -90 <= latitude <= 90:
        bound = "between -90 and 90 degrees" + (_CONVERT if abs(latitude) > _MAX_DEGREES else "")
        fault = error(f"{names[0]} is out of range", cell(texts[0]), bound)
        raise RowError(reasons.LATITUDE, fault, -180 <= latitude <= 360 and -90 <= longitude <= 90)
    if not -180 <= longitude <= 360:
        fault = error(f"{names[1]} is out of range", cell(texts[1]), "between -180 and 180 degrees")
        raise RowError(reasons.LONGITUDE, fault)
    return latitude, longitude


def error_of(row: RowError) -> InputError:
    """Return the error for a row that must be readable; its message tells if the columns seem to be interchanged."""
    error = row.error
    if row.reason != reasons.LATITUDE or not row.interchangeable:
        return error
    problem = f"{error.problem}: {INTERCHANGED}"
    return InputError(error.path, problem, value=error.value, bound=error.bound, remedy=_EXCHANGE)


def possible_longitudes(longitudes: Floats, how: Longitudes | None = None) -> Flags:
    """Return a mask of the valid longitudes in a column whose values lie between -180 and 360 degrees.

    The range is 0 to 360 degrees if `how` is "360", or if `how` is None and no longitude is negative. In all other
    cases the range is -180 to 180 degrees.
    """
    if how == "360" or (how is None and not (longitudes < 0).any()):
        good: Flags = longitudes >= 0
        return good
    return longitudes <= 180


def within_180(longitudes: Floats) -> Floats:
    """Return the longitudes, reduced by 360 degrees if they exceed 180 degrees."""
    return np.where(longitudes > 180, longitudes - 360, longitudes)


def say_beyond(source: Path, longitudes: Floats) -> None:
    """Warn the caller if longitudes of a file exceed 180 degrees and are therefore reduced by 360 degrees."""
    if beyond := int((longitudes > 180).sum()):
        many = "s are" if beyond > 1 else " is"
        say_recognised(source, f"{beyond} longitude{many} beyond 180 degrees, and reduced by 360 degrees")


def longitudes_note(longitudes: Floats, name: str) -> tuple[str, ...]:
    """Return a sentence with the number of longitudes above 180 degrees in a column; "" if there are none."""
    beyond = int((longitudes > 180).sum())
    if not beyond:
        return ()
    note = f"{beyond} of {len(longitudes)} values in {name} are beyond 180 degrees, and reduced by 360 degrees"
    return (f'{note} (longitudes = "180" leaves them out)',)
