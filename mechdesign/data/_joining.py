"""A table of places that check-ins refer to by a key: which columns hold the key and the place, on either side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._errors import InputError
from mechdesign.data._movement import read_places
from mechdesign.data._text import columns_text

# What keys are called, without case and signs, in the table of places and in that of check-ins.
_PLACES = ("placeid", "poiid", "venueid", "locationid", "place", "poi", "venue", "location")
_KEYS = (*_PLACES, "key", "id")
_ENDINGS = {"latitude": ("latitude", "lat"), "longitude": ("longitude", "lon", "lng", "long")}


@dataclass(frozen=True)
class PlacesAsked:
    """A table of places as it was named, with the columns that are known already; others are looked for.

    Attributes:
        path: the table of places.
        key: its column with the key.
        place: the column of the check-ins with the key.
        latitude: the column of the table of places with the latitude.
        longitude: the one with the longitude.
    """

    path: Path
    key: str | None = None
    place: str | None = None
    latitude: str | None = None
    longitude: str | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """A table of places, found and read: its columns, the column `place` of the check-ins, and the places by key."""

    path: Path
    key: str
    place: str
    latitude: str
    longitude: str
    delimiter: str
    places: Mapping[str, tuple[float, float]]


def join(asked: PlacesAsked, header: Sequence[str], delimiter: str, checkins: tuple[Path, Sequence[str]]) -> Joined:
    """Return the table of places with its columns, and the column of the check-ins that refers to it.

    Args:
        asked: What is known.
        header: The columns of the table of places, with the character between them, `delimiter`.
        delimiter: The character between columns.
        checkins: The file of check-ins, and its columns.

    Raises:
        InputError: A column that was named is none, or one that was not named is not recognised.
    """
    path, columns = checkins
    named = {"key": asked.key, "latitude": asked.latitude, "longitude": asked.longitude}
    for option, column, among in (*((f"--{name}", each, header) for name, each in named.items()),
                                  ("--place", asked.place, columns)):  # fmt: skip
        if column is not None and column not in among:
            raise InputError(option, "is not a column", value=column, bound=f"one of {columns_text(among, [column])}")
    key = asked.key or _called(header, [*([_plain(asked.place)] if asked.place else []), *_KEYS])
    if key is None:
        raise InputError(
            str(asked.path), "has no column that looks like a key", bound=f"one of {columns_text(header)}",
            remedy="say --key",
        )  # fmt: skip
    place = asked.place or _called(columns, [_plain(key), *_PLACES])
    if place is None:
        problem = "has no column that looks like the key of a place"
        raise InputError(str(path), problem, bound=f"one of {columns_text(columns)}", remedy="say --place")
    degrees = {name: named[name] or _ending(header, name) for name in _ENDINGS}
    for name, column in degrees.items():
        if column is None:
            problem = f"has no column that looks like a {name}"
            bound = f"one of {columns_text(header)}"
            raise InputError(str(asked.path), problem, bound=bound, remedy=f"say --{name}")
    latitude, longitude = str(degrees["latitude"]), str(degrees["longitude"])
    places = read_places(asked.path, key, latitude, longitude=longitude, delimiter=delimiter)
    return Joined(asked.path, key, place, latitude, longitude, delimiter, places)


def refers_to_places(header: Sequence[str]) -> str | None:
    """Return the column that looks like the key of a place, or None."""
    return _called(header, _PLACES)


def _plain(column: str) -> str:
    return re.sub(r"[^a-z]", "", column.lower())


def _called(header: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the first column that has one of the names, in the order of the names."""
    plain = {_plain(column): column for column in reversed(header)}
    return next((plain[name] for name in names if name in plain), None)


def _ending(header: Sequence[str], name: str) -> str | None:
    """Return the one column whose name ends like that of a coordinate, such as poiLat."""
    for ending in _ENDINGS[name]:
        found = [column for column in header if _plain(column).endswith(ending)]
        if len(found) == 1:
            return found[0]
    return None
