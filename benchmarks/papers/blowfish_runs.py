"""Blowfish (He, Machanavajjhala and Ding 2014): k-means and ranges on real data, as its Figures 1 and 2.

The figures show SuLQ k-means with 4 clusters and 10 iterations. The full policy is differential privacy. Lemma 6.1 of
the paper uses 2θ as the sensitivity of the sums, which is not private. If an edge crosses the border between two
clusters, the sums change by the distances of both ends from the reference point. Therefore each policy is shown twice:
with the correct sensitivity, and with the lemma's sensitivity, as in the paper.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative import Cumulative
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._queries._trees import budget_split, choose_tree
from papers.experiments import Experiment, Row

__all__ = ["EXPERIMENTS", "KINDS", "KMEANS", "LEMMA", "PRIVATE", "RANGES"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Policies = dict[str, tuple[Policy, float]]

CLUSTERS, ITERATIONS = 4, 10
STEP = 0.05
WEST = {"south": 30.0, "north": 49.95, "west": -125.0, "east": -110.05}
KM_PER_DEGREE = 111.2
DP = "differential privacy"
PRIVATE, LEMMA = "sensitivity that holds", "by Lemma 6.1"
_CORNER = np.array([WEST["south"], WEST["west"]])


def places(folder: Path) -> Floats:
    """Return latitude and longitude of the check-ins in the box, (n, 2)."""
    found = []
    for name in ("train.csv", "test.csv"):
        with (folder / "gowalla_marc" / name).open(encoding="utf-8", newline="") as lines:
            found += [(float(line["lat"]), float(line["lon"])) for line in csv.DictReader(lines)]
    points = np.array(found)
    low, high = np.array([WEST["south"], WEST["west"]]), np.array([WEST["north"], WEST["east"]])
    return points[((points >= low) & (points <= high)).all(axis=1)]


def pixels(folder: Path) -> Integers:
    """Return the colours of the pixels, (n, 3), each from 0 to 255."""
    return np.loadtxt(folder / "uci" / "Skin_NonSkin.txt", delimiter=",", skiprows=1, dtype=np.int64, usecols=(0, 1, 2))


def capital_losses(folder: Path) -> Integers:
    """Return, for each amount of dollars, the number of people with this capital loss, (4357,)."""
    with (folder / "uci" / "adult.csv").open(encoding="utf-8", newline="") as lines:
        losses = [int(line["capital-loss"]) for line in csv.DictReader(lines)]
    return np.bincount(losses, minlength=4357)


def on_grid(domain: Domain, numbers: Integers) -> Integers:
    """Return the index of each record's value in the domain, given the indices (n, d) of its attributes' values."""
    return np.ravel_multi_index(tuple(numbers.T), domain.shape)


def objective(points: Floats, weights: Integers, centroids: Floats) -> float:
    """Return the sum of squared distances to the nearest centroid."""
    least = np.full(len(points), np.inf)
    for centroid in centroids:
        np.minimum(least, ((points - centroid) ** 2).sum(axis=1), out=least)
    return float((least * weights).sum())


def by_the_lemma(
    points: Floats, weights: Integers, ends: Floats, theta: float, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return the centroids of SuLQ k-means with the sensitivity 2θ of Lemma 6.1; **this is not private**."""
    # Sums are relative to the middle of the box, as in the package, so that only the sensitivity differs.
    middle = ends.mean(axis=0)
    points, ends = points - middle, ends - middle
    centroids = rng.uniform(*ends, (CLUSTERS, points.shape[1]))
    share = epsilon / ITERATIONS / 2
    for _ in range(ITERATIONS):
        apart = ((points[:, None, :] - centroids) ** 2).sum(axis=2)
        members = (np.argmin(apart, axis=1)[:, None] == np.arange(CLUSTERS)) * weights[:, None]
        # If θ is 0, the policy protects nothing, so the sizes of the clusters get no noise.
        sizes = members.sum(axis=0) + rng.laplace(0, 2 * (theta > 0) / share, CLUSTERS)
        sums = members.T @ points + rng.laplace(0, 2 * theta / share, centroids.shape)
        means = np.clip(sums / np.maximum(sizes, 1)[:, None], *ends)
        centroids = np.where(sizes[:, None] >= 1, means, centroids)
    return centroids + middle


def thresholds(domain: Domain, thetas: Mapping[str, float]) -> Policies:
    """Return policies by name, each with its θ: the full policy (differential privacy) and threshold policies."""
    diameter = sum(float(attribute.values[-1]) - float(attribute.values[0]) for attribute in domain.attributes)
    return {DP: (Policy.full(domain), diameter)} | {
        name: (Policy.threshold(domain, theta), theta) for name, theta in thetas.items()
    }


def range_errors(
    counts: Integers, thetas: Mapping[str, int], epsilons: Iterable[float], repeats: int, queries: int
) -> dict[tuple[str, float], tuple[float, float, float, float]]:
    """Return four mean squared errors of random ranges: before and after inference, planned, and by formula."""
    size = len(counts)
    rng = np.random.default_rng(7)
    low, high = np.sort(rng.integers(0, size, (2, queries)), axis=0)
    truth = _ranges(np.cumsum(counts).astype(np.float64), low, high)
    found = {}
    domain = Domain({"value": range(size)})
    for name, theta in thetas.items():
        policy = Policy.threshold(domain, theta) if theta < size - 1 else Policy.full(domain)
        for epsilon in epsilons:
            plan = choose_tree(size, theta, epsilon)
            query, errors = Cumulative(mechanism="ordered-hierarchical", fanout=plan.fanout), []
            for _ in range(repeats):
                release = query.release(policy=policy, counts=counts, epsilon=epsilon, rng=rng)
                errors.append(
                    [((_ranges(f, low, high) - truth) ** 2).mean() for f in (release.linear, release.answers)]
                )
            before, after = np.mean(errors, axis=0)
            formula = budget_split(size, theta, plan.fanout, epsilon=epsilon)[2]
            found[name, epsilon] = (float(before), float(after), plan.error, formula)
    return found


def _ranges(cumulative: Floats, low: Integers, high: Integers) -> Floats:
    sums = np.concatenate([[0.0], cumulative])
    return sums[high + 1] - sums[low]


def checkins(folder: Path) -> tuple[Domain, np.ndarray, Policies]:
    """Return the grid of the western USA, the check-ins in it, and the policies of Figure 1(a)."""
    grid = Domain(
        {
            "latitude": [round(WEST["south"] + STEP * step, 2) for step in range(400)],
            "longitude": [round(WEST["west"] + STEP * step, 2) for step in range(300)],
        }
    )
    records = on_grid(grid, np.rint((places(folder) - _CORNER) / STEP).astype(np.int64))
    degrees = {f"θ = {km} km": round(round(km / KM_PER_DEGREE / STEP) * STEP, 2) for km in (500, 100)}
    return grid, records, thresholds(grid, degrees)


def skin(folder: Path, part: int) -> tuple[Domain, np.ndarray, Policies]:
    """Return the cube of colours, every `part`-th pixel of a shuffle, and the policies of Figures 1(b) and 1(d)."""
    colours = Domain(dict.fromkeys("bgr", range(256)))
    shuffled = np.random.default_rng(2014).permutation(pixels(folder))
    policies = thresholds(colours, {f"θ = {theta}": theta for theta in (128, 32)})
    return colours, on_grid(colours, shuffled[: len(shuffled) // part]), policies


def simulated(_folder: Path) -> tuple[Domain, np.ndarray, Policies]:
    """Return the unit cube of four dimensions, 1,000 points of four clusters, and the policies of Figure 1(c)."""
    hundredths = [round(step / 100, 2) for step in range(101)]
    cube = Domain(dict.fromkeys("wxyz", hundredths))
    rng = np.random.default_rng(2014)
    centres = rng.uniform(size=(CLUSTERS, 4))
    points = np.clip(centres[rng.integers(CLUSTERS, size=1000)] + rng.normal(0, 0.2, (1000, 4)), 0, 1)
    policies = thresholds(cube, {f"θ = {theta}": theta for theta in (0.5, 0.1)})
    return cube, on_grid(cube, np.rint(points * 100).astype(np.int64)), policies


DATA = {
    "check-ins": checkins,
    "skin, 1 %": lambda folder: skin(folder, 100),
    "skin, 10 %": lambda folder: skin(folder, 10),
    "skin, all": lambda folder: skin(folder, 1),
    "simulated": simulated,
}


def attributes(domain: Domain) -> Policies:
    """Return the full policy and the policy of single attributes, whose θ in Lemma 6.1 is the longest attribute."""
    longest = max(float(attribute.values[-1]) - float(attribute.values[0]) for attribute in domain.attributes)
    return thresholds(domain, {}) | {"attribute": (Policy.attribute(domain), longest)}


def partitions(domain: Domain, sides: list[int]) -> Policies:
    """Return policies of a number of uniform blocks along each side, whose θ in Lemma 6.1 is a block's diameter."""
    found = thresholds(domain, {})
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
    name: str, domain: Domain, records: np.ndarray, policies: Policies, epsilons: list[float], repeats: int
) -> Iterator[Row]:
    axes = [np.array([float(value) for value in attribute.values]) for attribute in domain.attributes]
    values, weights = np.unique(records, return_counts=True)
    codes = np.unravel_index(values, domain.shape)
    points = np.column_stack([axis[code] for axis, code in zip(axes, codes, strict=True)])
    ends = np.array([[axis[0] for axis in axes], [axis[-1] for axis in axes]])
    whole = np.repeat(points, weights, axis=0)
    starts = (kmeans2(whole, CLUSTERS, minit="++", iter=30, seed=seed)[0] for seed in range(10))
    best = min(objective(points, weights, centroids) for centroids in starts)
    rng, query = np.random.default_rng(1), KMeans(CLUSTERS, ITERATIONS)
    for policy_name, (policy, theta) in policies.items():
        for epsilon in epsilons:
            for way in (PRIVATE, LEMMA):
                found = []
                for _ in range(repeats):
                    if way == PRIVATE:
                        found_clusters = query.release(policy=policy, positions=records, epsilon=epsilon, rng=rng)
                        centroids = found_clusters.centroids
                    else:
                        centroids = by_the_lemma(points, weights, ends, theta, epsilon, rng)
                    found.append(objective(points, weights, centroids) / best)
                low, high = np.quantile(found, (0.25, 0.75))
                same = {"data": name, "records": len(records), "policy": policy_name, "epsilon": epsilon}
                yield same | {"way": way, "mean": float(np.mean(found)), "low": float(low), "high": float(high)}


def ranges(
    folder: Path, *, names: list[str], thetas: list[int], epsilons: list[float], repeats: int, queries: int
) -> Iterator[Row]:
    """Yield mean squared errors of random ranges by the ordered hierarchical mechanism; θ = 0 means no policy."""
    for name in names:
        if name == "capital loss":
            counts = capital_losses(folder)
        else:
            steps = np.rint((places(folder)[:, 0] - WEST["south"]) / STEP).astype(int)
            counts = np.bincount(steps, minlength=400)
        chosen = {str(theta): theta or len(counts) for theta in thetas if theta < len(counts)}
        for (theta, epsilon), errors in range_errors(counts, chosen, epsilons, repeats, queries).items():
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
