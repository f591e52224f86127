"""Join check-ins with a separate table of places: find the columns with the key and the coordinates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._errors import InputError
from mechdesign.data._movement import read_places
from mechdesign.data._text import columns_text

# Usual names of key columns, in lower case and letters only, in the check-ins (_PLACES) and in the table of places.
_PLACES = ("placeid", "poiid", "venueid", "locationid", "place", "poi", "venue", "location")
_KEYS = (*_PLACES, "key", "id")
_ENDINGS = {"latitude": ("latitude", "lat"), "longitude": ("longitude", "lon", "lng", "long")}


@dataclass(frozen=True)
class PlacesTable:
    """A table of places that the user named; columns that are None are detected.

    Attributes:
        path: The table of places.
        key: The key column of the table of places.
        place: The key column of the check-ins.
        latitude: The latitude column of the table of places.
        longitude: The longitude column of the table of places.
    """

    path: Path
    key: str | None = None
    place: str | None = None
    latitude: str | None = None
    longitude: str | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """A table of places that was read.

    Attributes:
        path: The table of places.
        key: The key column of the table of places.
        place: The key column of the check-ins.
        latitude: The latitude column of the table of places.
        longitude: The longitude column of the table of places.
        delimiter: The character between the columns of the table of places.
        places: Latitude and longitude by key, in degrees.
    """

    path: Path
    key: str
    place: str
    latitude: str
    longitude: str
    delimiter: str
    places: Mapping[str, tuple[float, float]]


def join(asked: PlacesTable, header: Sequence[str], delimiter: str, checkins: tuple[Path, Sequence[str]]) -> Joined:
    """Find the columns that join check-ins with a table of places, and read that table.

    Args:
        asked: The table of places, with the columns that the user named.
        header: The columns of the table of places.
        delimiter: The character between the columns of the table of places.
        checkins: The file of check-ins, and its columns.

    Returns:
        The table of places with all its columns.

    Raises:
        InputError: A column that the user named does not exist, or a column that the user did not name is not
            recognised.
    """
    path, columns = checkins
    named = {"key": asked.key, "latitude": asked.latitude, "longitude": asked.longitude}
    for option, column, among in (*((f"--{name}", each, header) for name, each in named.items()),
                                  ("--place", asked.place, columns)):  # fmt: skip
        if column is not None and column not in among:
            raise InputError(option, "is not a column", value=column, bound=f"one of {columns_text(among, [column])}")
    key = asked.key or _find_by_name(header, [*([_plain(asked.place)] if asked.place else []), *_KEYS])
    if key is None:
        raise InputError(
            str(asked.path), "has no column that looks like a key", bound=f"one of {columns_text(header)}",
            remedy="name it: --key",
        )  # fmt: skip
    place = asked.place or _find_by_name(columns, [_plain(key), *_PLACES])
    if place is None:
        problem = "has no column that looks like the key of a place"
        raise InputError(str(path), problem, bound=f"one of {columns_text(columns)}", remedy="name it: --place")
    degrees = {name: named[name] or _ending(header, name) for name in _ENDINGS}
    for name, column in degrees.items():
        if column is None:
            problem = f"has no column that looks like a {name}"
            bound = f"one of {columns_text(header)}"
            raise InputError(str(asked.path), problem, bound=bound, remedy=f"name it: --{name}")
    latitude, longitude = str(degrees["latitude"]), str(degrees["longitude"])
    places = read_places(asked.path, key, latitude, longitude=longitude, delimiter=delimiter)
    return Joined(asked.path, key, place, latitude, longitude, delimiter, places)


def refers_to_places(header: Sequence[str]) -> str | None:
    """Return the column that looks like the key of a place, or None."""
    return _find_by_name(header, _PLACES)


def _plain(column: str) -> str:
    return re.sub(r"[^a-z]", "", column.lower())


def _find_by_name(header: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column whose name comes first in `names`; None if no column has one of these names."""
    plain = {_plain(column): column for column in reversed(header)}
    return next((plain[name] for name in names if name in plain), None)


def _ending(header: Sequence[str], name: str) -> str | None:
    """Return the only column whose name ends like a coordinate, such as poiLat; None if there is not exactly one."""
    for ending in _ENDINGS[name]:
        found = [column for column in header if _plain(column).endswith(ending)]
        if len(found) == 1:
            return found[0]
    return None
