"""GeoJSON (RFC 7946) for maps: the domain, the prior, and the probability of each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES
from mechdesign.synthesis._bundle import label_names
from mechdesign.synthesis.formats._format import Exported, Format


def _contents(exported: Exported) -> Iterator[bytes]:
    """Yield a FeatureCollection: cells of a grid are polygons, and other places are points.

    Each feature has the properties `index` and `label`. Secrets have the `prior`, and observables the
    `answer_probability` Σ_s π_s p(o|s), rounded to float64. If secrets and observables have the same domain, each
    feature has both properties. If the domains differ, the property `role` distinguishes secrets from observables.
    Raises InputError if secrets or observables have no latitude and longitude.
    """
    problem, channel = exported.problem, exported.channel
    secrets, observables = label_names(channel)
    answers = problem.prior @ channel.matrix
    if problem.secrets is problem.observables:
        features = _features(problem.secrets, secrets, "secrets", prior=problem.prior, answer_probability=answers)
    else:
        features = [
            *_features(problem.secrets, secrets, "secrets", "secret", prior=problem.prior),
            *_features(problem.observables, observables, "observables", "observable", answer_probability=answers),
        ]
    lines = ",\n".join(json.dumps(feature) for feature in features)
    yield f'{{"type": "FeatureCollection", "title": {json.dumps(problem.title)}, "features": [\n{lines}\n]}}\n'.encode()


def _features(
    domain: Domain | None, labels: tuple[str, ...], path: str, role: str = "", **columns: Floats
) -> list[dict[str, Any]]:
    """Return the features of a domain; each of the `columns` is a property of the features."""
    known = None if domain is None else domain.degrees
    if domain is None or known is None:
        raise InputError(
            path,
            "have no latitude and longitude, which GeoJSON needs",
            bound="a geographic grid, or places with latitude and longitude",
            remedy="export csv or json instead",
        )
    borders = domain.borders(DEGREES)
    rows = np.column_stack(list(columns.values())).tolist()
    sides = None if borders is None else [side.tolist() for side in borders]
    features: list[dict[str, Any]] = []
    for index, (label, row) in enumerate(zip(labels, rows, strict=True)):
        properties: dict[str, Any] = {"role": role} if role else {}
        properties |= {"index": index, "label": label, **dict(zip(columns, row, strict=True))}
        geometry = _point(*known[index].tolist()) if sides is None else _cell(index, *sides)
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    return features


def _point(latitude: float, longitude: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [longitude, latitude]}


def _cell(index: int, parallels: list[float], meridians: list[float]) -> dict[str, Any]:
    """Return the rectangle of a cell, counter-clockwise as RFC 7946 requires."""
    row, column = divmod(index, len(meridians) - 1)
    south, north = parallels[row : row + 2]
    west, east = meridians[column : column + 2]
    if west < 180 < east:
        # A cell across the 180th meridian is cut there (RFC 7946, section 3.1.9).
        rings = [[_ring(south, north, west, 180.0)], [_ring(south, north, -180.0, east - 360)]]
        return {"type": "MultiPolygon", "coordinates": rings}
    west, east = (west - 360, east - 360) if west >= 180 else (west, east)
    return {"type": "Polygon", "coordinates": [_ring(south, north, west, east)]}


def _ring(south: float, north: float, west: float, east: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


GEOJSON = Format("geojson", "domain, prior and answers, for maps", (".geojson",), _contents)
