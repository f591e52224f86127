"""Blowfish (He, Machanavajjhala and Ding 2014): k-means and ranges on real data, as its Figures 1 and 2.

The data are those of ``benchmarks/papers/blowfish_figures.py``, which prints longer tables of the same experiments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.cluster.vq import kmeans2

from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._kmeans import kmeans
from papers import blowfish_figures as source
from papers.experiments import Experiment, Row

__all__ = ["EXPERIMENTS", "KINDS", "KMEANS", "LEMMA", "PRIVATE", "RANGES"]

PRIVATE, LEMMA = "sensitivity that holds", "by Lemma 6.1"
_CORNER = np.array([source.WEST["south"], source.WEST["west"]])


def checkins(folder: Path) -> tuple[Domain, np.ndarray, source.Policies]:
    """Return the grid of the western USA, the check-ins in it, and the policies of Figure 1(a)."""
    grid = Domain(
        {
            "latitude": [round(source.WEST["south"] + source.STEP * step, 2) for step in range(400)],
            "longitude": [round(source.WEST["west"] + source.STEP * step, 2) for step in range(300)],
        }
    )
    records = source.on_grid(grid, np.rint((source.checkins(folder) - _CORNER) / source.STEP).astype(np.int64))
    degrees = {
        f"θ = {km} km": round(round(km / source.KM_PER_DEGREE / source.STEP) * source.STEP, 2) for km in (500, 100)
    }
    return grid, records, source.thresholds(grid, degrees)


def skin(folder: Path, part: int) -> tuple[Domain, np.ndarray, source.Policies]:
    """Return the cube of colours, every `part`-th pixel of a shuffle, and the policies of Figures 1(b) and 1(d)."""
    colours = Domain(dict.fromkeys("bgr", range(256)))
    pixels = np.random.default_rng(2014).permutation(source.skin(folder))
    policies = source.thresholds(colours, {f"θ = {theta}": theta for theta in (128, 32)})
    return colours, source.on_grid(colours, pixels[: len(pixels) // part]), policies


def simulated(_folder: Path) -> tuple[Domain, np.ndarray, source.Policies]:
    """Return the unit cube of four dimensions, 1,000 points of four clusters, and the policies of Figure 1(c)."""
    hundredths = [round(step / 100, 2) for step in range(101)]
    cube = Domain(dict.fromkeys("wxyz", hundredths))
    rng = np.random.default_rng(2014)
    centres = rng.uniform(size=(source.CLUSTERS, 4))
    points = np.clip(centres[rng.integers(source.CLUSTERS, size=1000)] + rng.normal(0, 0.2, (1000, 4)), 0, 1)
    policies = source.thresholds(cube, {f"θ = {theta}": theta for theta in (0.5, 0.1)})
    return cube, source.on_grid(cube, np.rint(points * 100).astype(np.int64)), policies


DATA = {
    "check-ins": checkins,
    "skin, 1 %": lambda folder: skin(folder, 100),
    "skin, 10 %": lambda folder: skin(folder, 10),
    "skin, all": lambda folder: skin(folder, 1),
    "simulated": simulated,
}


def attributes(domain: Domain) -> source.Policies:
    """Return the full policy and the policy of single attributes, whose θ in Lemma 6.1 is the longest attribute."""
    longest = max(float(attribute.values[-1]) - float(attribute.values[0]) for attribute in domain.attributes)
    return source.thresholds(domain, {}) | {"attribute": (Policy.attribute(domain), longest)}


def partitions(domain: Domain, sides: list[int]) -> source.Policies:
    """Return policies of a number of uniform blocks along each side, whose θ in Lemma 6.1 is a block's diameter."""
    found = source.thresholds(domain, {})
    codes = np.indices(domain.shape).reshape(len(domain.shape), -1)
    for side in sides:
        steps = [-(-size // side) for size in domain.shape]
        blocks = [code // step for code, step in zip(codes, steps, strict=True)]
        labels = np.ravel_multi_index(
            blocks, [-(-size // step) for size, step in zip(domain.shape, steps, strict=True)]
        )
        spans = [
            float(attribute.values[step - 1]) - float(attribute.values[0])
            for attribute, step in zip(domain.attributes, steps, strict=True)
        ]
        found[f"{labels.max() + 1:,} blocks"] = (Policy.partition(domain, labels), sum(spans))
    return found


def clustering(folder: Path, *, names: list[str], epsilons: list[float], repeats: int) -> Iterator[Row]:
    """Yield mean and quartiles of the k-means objective as a multiple of the objective without privacy."""
    for name in names:
        yield from _clustered(name, *DATA[name](folder), epsilons, repeats)


def kinds(folder: Path, *, sides: dict[str, list[int]], epsilons: list[float], repeats: int) -> Iterator[Row]:
    """Yield the objectives under policies of single attributes, and of a number of blocks along each side."""
    for name, numbers in sides.items():
        domain, records, _ = DATA[name](folder)
        policies = attributes(domain) | partitions(domain, numbers)
        yield from _clustered(name, domain, records, policies, epsilons, repeats)


def _clustered(
    name: str, domain: Domain, records: np.ndarray, policies: source.Policies, epsilons: list[float], repeats: int
) -> Iterator[Row]:
    axes = [np.array([float(value) for value in attribute.values]) for attribute in domain.attributes]
    values, weights = np.unique(records, return_counts=True)
    codes = np.unravel_index(values, domain.shape)
    points = np.column_stack([axis[code] for axis, code in zip(axes, codes, strict=True)])
    ends = np.array([[axis[0] for axis in axes], [axis[-1] for axis in axes]])
    whole = np.repeat(points, weights, axis=0)
    starts = (kmeans2(whole, source.CLUSTERS, minit="++", iter=30, seed=seed)[0] for seed in range(10))
    best = min(source.objective(points, weights, centroids) for centroids in starts)
    rng = np.random.default_rng(1)
    for policy_name, (policy, theta) in policies.items():
        for epsilon in epsilons:
            for way in (PRIVATE, LEMMA):
                found = []
                for _ in range(repeats):
                    if way == PRIVATE:
                        centroids = kmeans(
                            None,
                            source.CLUSTERS,
                            policy,
                            epsilon=epsilon,
                            iterations=source.ITERATIONS,
                            rng=rng,
                            positions=records,
                        ).centroids
                    else:
                        centroids = source.by_the_lemma(points, weights, ends, theta, epsilon, rng)
                    found.append(source.objective(points, weights, centroids) / best)
                low, high = np.quantile(found, (0.25, 0.75))
                same = {"data": name, "records": len(records), "policy": policy_name, "epsilon": epsilon}
                yield same | {"way": way, "mean": float(np.mean(found)), "low": float(low), "high": float(high)}


def ranges(
    folder: Path, *, names: list[str], thetas: list[int], epsilons: list[float], repeats: int, queries: int
) -> Iterator[Row]:
    """Yield mean squared errors of random ranges by the ordered hierarchical mechanism; θ = 0 means no policy."""
    for name in names:
        if name == "capital loss":
            counts = source.capital_losses(folder)
        else:
            steps = np.rint((source.checkins(folder)[:, 0] - source.WEST["south"]) / source.STEP).astype(int)
            counts = np.bincount(steps, minlength=400)
        chosen = {str(theta): theta or len(counts) for theta in thetas if theta < len(counts)}
        for (theta, epsilon), errors in source.range_errors(counts, chosen, epsilons, repeats, queries).items():
            before, after, planned, formula = errors
            same = {"data": name, "values": len(counts), "theta": int(theta), "epsilon": epsilon}
            yield same | {"linear": before, "inferred": after, "planned": planned, "formula": formula}


_CHECKINS = ("gowalla_marc/train.csv", "gowalla_marc/test.csv")
KMEANS = Experiment(
    "blowfish_kmeans",
    clustering,
    small={"names": ["simulated"], "epsilons": [1.0], "repeats": 2},
    full={"names": list(DATA), "epsilons": [0.1, 0.4, 1.0], "repeats": 20},
    keys=("data", "policy", "epsilon", "way"),
    # Random numbers are the same in each run, but one record that changes its cluster changes all later values.
    spread={"mean": 0.2},
    data=("uci/Skin_NonSkin.txt", *_CHECKINS),
)
RANGES = Experiment(
    "blowfish_ranges",
    ranges,
    small={"names": ["capital loss"], "thetas": [0, 10], "epsilons": [1.0], "repeats": 2, "queries": 500},
    full={
        "names": ["capital loss", "latitude"],
        "thetas": [0, 1000, 100, 10, 1],
        "epsilons": [0.1, 0.2, 0.4, 0.7, 1.0],
        "repeats": 20,
        "queries": 5000,
    },
    keys=("data", "theta", "epsilon"),
    spread={"linear": 1e-6, "inferred": 1e-6, "planned": 1e-9, "formula": 1e-9},
    data=("uci/adult.csv", *_CHECKINS),
)
KINDS = Experiment(
    "blowfish_kinds",
    kinds,
    small={"sides": {"check-ins": [1000, 10], "simulated": []}, "epsilons": [1.0], "repeats": 2},
    full={
        "sides": {"check-ins": [1000, 100, 30, 10], "skin, 1 %": [], "simulated": []},
        "epsilons": [0.1, 0.4, 1.0],
        "repeats": 20,
    },
    keys=("data", "policy", "epsilon", "way"),
    spread={"mean": 0.2},
    data=("uci/Skin_NonSkin.txt", *_CHECKINS),
)
EXPERIMENTS = (KMEANS, KINDS, RANGES)
