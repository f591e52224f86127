"""The problems that the benchmarks share: square grids with unit cells, a Gaussian prior, Euclidean metric privacy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import mechdesign as md

EPSILON = 0.6


@dataclass(frozen=True)
class Scene:
    """A problem on k × k cells, with a name for tables."""

    name: str
    problem: md.Problem


def prior(domain: md.Domain, k: float) -> NDArray[np.float64]:
    """Return a Gaussian prior around the centre, with a standard deviation of k/4 cells."""
    centred = domain.points - domain.points.mean(axis=0)
    weights = np.exp(-(centred**2).sum(axis=1) / (2 * (k / 4) ** 2))
    normalised: NDArray[np.float64] = weights / weights.sum()
    return normalised


def scene(k: int, cost: str = "euclidean", kind: str = "metric", epsilon: float = EPSILON) -> Scene:
    """Return the scene with the given cost ("euclidean" or "hamming") and requirements ("metric" or "joint")."""
    domain = md.Domain.grid(columns=k, rows=k, width=float(k), height=float(k))
    distance = md.distances.euclidean(domain)
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = [md.MetricPrivacy(epsilon, distance)]
    weights = prior(domain, k)
    if kind == "joint":
        requirements.append(md.DistortionPrivacy(float(0.9 * (distance @ weights).min()), distance))
    costs = distance if cost == "euclidean" else md.distances.hamming(domain)
    return Scene(f"{k * k} secrets, {cost}, {kind}", md.Problem(weights, costs, requirements))


def side_by_side(contestants: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time all methods alternately, in `repeats` rounds, so that drifts of the machine affect all of them equally."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            clock = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - clock)
    return seconds


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)
