"""Outlines of a map, such as a coast or streets, from GeoJSON (RFC 7946)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.data.bounds import content_of
from mechdesign.data.forms import cell
from mechdesign.data.forms import withholding
from mechdesign.data.text import unreadable
from mechdesign.base._errors import InputError
from mechdesign.base._arrays import Floats

__all__ = ["Outline", "read_outline"]

# How deep the positions of the lines of each type are.
_DEPTHS = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}
_MEMBERS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}


@dataclass(frozen=True, eq=False)
class Outline:
    """Lines on a map: each an array (k, 2) of longitude and latitude in degrees, or of x and y on the plane."""

    lines: tuple[Floats, ...]


@withholding()
def read_outline(path: str | Path) -> Outline:
    """Return the lines, and the borders of the polygons, in a GeoJSON file; points in it are left out.

    Raises:
        InputError: The file cannot be read, is not GeoJSON, or holds no line.
    """
    file = Path(path)
    try:
        document = json.loads(content_of(file).decode("utf-8"))
    except OSError as error:
        raise unreadable(file, error) from error
    except RecursionError:
        raise InputError(str(file), "is nested too deeply", bound="a GeoJSON file") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(file), f"is not JSON ({error})", bound="a GeoJSON file") from None
    try:
        lines = tuple(_lines(document, str(file)))
    except RecursionError:
        raise InputError(str(file), "is nested too deeply", bound="a GeoJSON file") from None
    if not lines:
        raise InputError(str(file), "holds no line", bound="lines or polygons")
    return Outline(lines)


def _lines(given: Any, path: str) -> Iterator[Floats]:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind in _MEMBERS:
        members = given.get(_MEMBERS[kind])
        if not isinstance(members, list):
            raise InputError(f"{path}, {kind}", f"has no list of {_MEMBERS[kind]}", bound="GeoJSON")
        for index, member in enumerate(members):
            yield from _lines(member, f"{path}, {_MEMBERS[kind]}[{index}]")
    elif kind == "Feature":
        if given.get("geometry") is not None:
            yield from _lines(given["geometry"], path)
    elif kind in _DEPTHS:
        yield from _positions(given.get("coordinates"), _DEPTHS[kind], path)
    elif kind not in ("Point", "MultiPoint"):
        raise InputError(
            path, "is no GeoJSON object", value=_kind(kind), bound=f"one of {', '.join((*_MEMBERS, *_DEPTHS))}"
        )


def _kind(given: object) -> str:
    """Return what an error shows of the type of an object: its form, where it is a text at all."""
    return cell(given) if isinstance(given, str) else type(given).__name__


def _line(given: Any) -> Floats | None:
    try:
        # A position may have a height.
        return np.array([position[:2] for position in given], dtype=np.float64)
    except (TypeError, ValueError, IndexError):
        return None


def _positions(given: Any, depth: int, path: str) -> Iterator[Floats]:
    if depth and isinstance(given, list):
        for index, part in enumerate(given):
            yield from _positions(part, depth - 1, f"{path}[{index}]")
        return
    line = _line(given)
    if line is None:
        raise InputError(path, "holds no positions", bound="lists of two or three numbers")
    if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
        raise InputError(path, "holds no positions", bound="lists of two or three finite numbers")
    if len(line) > 1:
        yield line
