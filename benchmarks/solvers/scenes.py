"""The problems that the benchmarks share: grids of unit cells with a Gaussian prior, and real check-ins."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.runs._families import prior_on, square

# Cost and kind of each scene of `problem`.
SCENES = {
    "differential": ("euclidean", "differential"),
    "differential, Hamming": ("hamming", "differential"),
    "joint": ("euclidean", "joint"),
    "joint, Hamming": ("hamming", "joint"),
    "distortion": ("euclidean", "distortion"),
    "distortion, Hamming": ("hamming", "distortion"),
    "worst cost": ("euclidean", "worst"),
}
CHECKINS = "check-ins, joint"
BOX = {"south": 40.70, "north": 40.80, "west": -74.02, "east": -73.92}


def problem(columns: int, rows: int, cost: str = "euclidean", kind: str = "differential") -> md.Problem:
    """Return a problem on a unit grid: Gaussian prior, ε = 0.6 per cell, a floor at 0.8 of the largest distortion."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    places = np.c_[x.ravel(), y.ravel()].astype(float)
    squared = ((places - places.mean(axis=0)) ** 2).sum(axis=1)
    prior = np.exp(-squared / (2 * (max(columns, rows) / 4) ** 2))
    prior /= prior.sum()
    distance = md.distances.euclidean(places)
    costs = distance if cost == "euclidean" else (distance > 0).astype(float)
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = []
    if kind in ("differential", "joint", "worst"):
        requirements.append(md.MetricPrivacy("0.6", distance))
    if kind in ("joint", "distortion"):
        requirements.append(md.DistortionPrivacy(0.8 * float((distance @ prior).min()), distance))
    return md.Problem(prior, costs, requirements, objective="worst" if kind == "worst" else "expected")


def squared(n: int, seed: int, floor: bool = False) -> md.Problem:
    """Return a problem on a grid of n cells of 1 km, without symmetry: ε = 1 per km, squared error, perhaps a floor."""
    domain = square(n)
    prior, distance = prior_on(domain, seed), md.distances.euclidean(domain)
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = [md.MetricPrivacy(1, distance)]
    if floor:
        requirements.append(md.DistortionPrivacy(round(0.8 * float((distance @ prior).min()), 6), distance))
    return md.Problem(prior, np.asarray(distance) ** 2, requirements)


def checkins(folder: Path, columns: int, rows: int) -> md.Problem:
    """Return the joint problem for the check-ins of the Foursquare user with the most check-ins in New York.

    On 20 × 15 cells, a cell has 0.42 × 0.74 km. ε is 1 per km, the cost is squared, and the floor is 0.8 of the largest
    distortion.
    """
    path = folder / "foursquare_nyc_marc" / "specific_train.csv"
    traces = md.data.read_checkins(path, user="label", latitude="lat", longitude="lon")
    domain = md.Domain.geographic_grid(columns, rows, **BOX)
    visits = md.data.to_grid(traces, domain)
    most = max(dict.fromkeys(visits.users), key=lambda user: visits.counts(user).sum())
    prior = md.Prior.from_counts(visits.counts(most), smoothing=0.01)
    distance = md.distances.euclidean(domain)
    floor = 0.8 * float((distance @ prior.probabilities).min())
    requirements = [md.MetricPrivacy("1", distance), md.DistortionPrivacy(floor, distance)]
    return md.Problem(prior, distance**2, requirements)
