"""Read latitudes and longitudes in degrees, also where longitudes go from 0 to 360."""

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
"""How far longitudes go: from -180 to 180 degrees, or from 0 to 360."""

Error = Callable[[str, object, str], InputError]

# How degrees are written for people: with signs, letters, or another sign for minus.
_SIGNS = re.compile("[°º'\"′″\u2212\u2013()]|[0-9] *[nsewo] *$|^ *[nsewo] *[0-9]", re.IGNORECASE)
_PLAIN = ", of digits, a point, and a hyphen for south and west: no degree signs, minutes or letters"
# Such numbers are meters, or degrees times a power of ten.
_LARGE = 1000
_TIMES = "; if it is a multiple of degrees, such as latitudeE7, or in meters, convert it"
_EXCHANGE = "exchange the names of the two columns"


def errors_at(where: str) -> Error:
    """Return the function that makes an error about a row."""
    return lambda problem, value, bound: InputError(where, problem, value=value, bound=bound)


def place_in(texts: tuple[str, str], names: tuple[str, str], error: Error) -> tuple[float, float]:
    """Return the latitude and the longitude in two cells, the longitude as it is written: up to 360 degrees.

    `names` are those of the columns, and `error` makes an error of a problem, a value and a bound. Raises `RowError`
    for cells that hold no place.
    """
    latitude, longitude = map(as_float, texts)
    for text, name, value in zip(texts, names, (latitude, longitude), strict=True):
        if value is None or value != value:
            problem = f"{name} is missing" if not text.strip() else f"{name} is not a number"
            bound = "decimal degrees" + (_PLAIN if _SIGNS.search(text) else "")
            raise RowError(reasons.NO_PLACE, error(problem, cell(text), bound))
    assert latitude is not None
    assert longitude is not None
    # Not more than what a longitude may be, beside what a latitude may be.
    if not -90 <= latitude <= 90:
        bound = "between -90 and 90 degrees" + (_TIMES if abs(latitude) > _LARGE else "")
        fault = error(f"{names[0]} is out of range", cell(texts[0]), bound)
        raise RowError(reasons.LATITUDE, fault, -180 <= latitude <= 360 and -90 <= longitude <= 90)
    if not -180 <= longitude <= 360:
        fault = error(f"{names[1]} is out of range", cell(texts[1]), "between -180 and 180 degrees")
        raise RowError(reasons.LONGITUDE, fault)
    return latitude, longitude


def refused(row: RowError) -> InputError:
    """Return the error for a row that must not be left out; it says so where its degrees look interchanged."""
    error = row.error
    if row.reason != reasons.LATITUDE or not row.interchangeable:
        return error
    problem = f"{error.problem}: {INTERCHANGED}"
    return InputError(error.path, problem, value=error.value, bound=error.bound, remedy=_EXCHANGE)


def possible_longitudes(longitudes: Floats, how: Longitudes | None = None) -> Flags:
    """Return which of the longitudes of a column, between -180 and 360 degrees, are possible.

    Longitudes beyond 180 degrees are where none is negative, or where `how` says so; there negative ones are not.
    """
    if how == "360" or (how is None and not (longitudes < 0).any()):
        good: Flags = longitudes >= 0
        return good
    return longitudes <= 180


def within_180(longitudes: Floats) -> Floats:
    """Return longitudes between -180 and 180 degrees; those that are so already stay as they are."""
    return np.where(longitudes > 180, longitudes - 360, longitudes)


def say_beyond(source: Path, longitudes: Floats) -> None:
    """Tell the caller how many longitudes of a file are beyond 180 degrees, if any, and what they are taken for."""
    if beyond := int((longitudes > 180).sum()):
        many = "s are" if beyond > 1 else " is"
        say_recognised(source, f"{beyond} longitude{many} beyond 180 degrees, and taken as 360 degrees less")


def longitudes_note(longitudes: Floats, name: str) -> tuple[str, ...]:
    """Say how many longitudes of a column were taken for such beyond 180 degrees, if any."""
    beyond = int((longitudes > 180).sum())
    if not beyond:
        return ()
    said = f"{beyond} of {len(longitudes)} values in {name} are beyond 180 degrees, and taken as 360 degrees less"
    return (f'{said} (longitudes = "180" leaves them out)',)
