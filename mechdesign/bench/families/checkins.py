"""d-privacy for a real user's check-ins, where data are given."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import numpy as np

from mechdesign.bench.families.family import Family
from mechdesign.data._movement import read_checkins
from mechdesign.base._errors import MechdesignError
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._metric import MetricPrivacy

__all__ = ["FAMILY", "VARIABLE"]

VARIABLE = "MECHDESIGN_DATA"
"""The environment variable that names the folder of data sets."""

EPSILON = "0.5"
_FILE = Path("foursquare_nyc_marc") / "specific_train.csv"


def make(n: int, seed: int) -> Problem:
    """Return d-privacy in kilometres on n places of one user of Foursquare in New York; the seed chooses the user.

    Secrets are the places visited most, rounded to a thousandth of a degree; the prior is how often. Users with the
    most places come first.
    """
    path = _path()
    if path is None:
        raise MechdesignError(f"the family checkins needs data: set {VARIABLE} to the folder that holds {_FILE}")
    found = []
    for trace in read_checkins(path, user="label", latitude="lat", longitude="lon"):
        coordinates = np.round(np.stack([trace.latitude, trace.longitude], axis=1), 3)
        places, counts = np.unique(coordinates, axis=0, return_counts=True)
        found.append((len(places), trace.user, places, counts))
    found.sort(key=lambda each: (-each[0], each[1]))
    _, user, places, counts = found[seed % len(found)]
    most = np.argsort(-counts, kind="stable")[:n]
    domain = Domain.from_coordinates(places[most, 0], places[most, 1])
    distance = distances.haversine(domain)
    prior = counts[most] / counts[most].sum()
    return Problem(prior, distance, [MetricPrivacy(EPSILON, distance)], title=f"check-ins of user {user}, {n} places")


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _path() -> Path | None:
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / _FILE if folder else None
    return path if path is not None and path.is_file() else None


def _data() -> str | None:
    path = _path()
    return None if path is None else _digest(path)


FAMILY = Family("checkins", "d-privacy for a real user's check-ins", {"epsilon": EPSILON}, make, _data)
