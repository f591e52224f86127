"""PGLP (Cao et al. 2020), section 6, on check-ins and on GeoLife: the releases behind its Figures 6 to 10.

G_k9, G_k16 and G_k25 join the cells of blocks of 3 × 3, 4 × 4 and 5 × 5, and G_poi joins cells of the same category
within 6 × 6 cells. Single locations are drawn from Manhattan. If a mechanism has a channel, its errors are exact
expectations.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.graphs._builders import components
from mechdesign.measures import _utility as metrics
from papers.experiments import Experiment, Row
from papers.traces import LOCATION_DATA, SAMPLED, means, measure, scene_of

__all__ = ["EXPERIMENTS", "REPAIRS", "REPAIR_EXAMPLE", "SINGLE", "TRACES"]

CHECKINS = "foursquare_nyc_marc/specific_train.csv"
MECHANISMS = {"P-LM": "laplace", "P-PIM": "planar-isotropic", "LP": "lp"}
BOX = {"south": 40.70, "north": 40.80, "west": -74.02, "east": -73.92}


def categories(folder: Path, domain: md.Domain) -> list[str]:
    """Return the category of each cell: the most frequent category of its check-ins, or "none" without check-ins."""
    counts: list[Counter[str]] = [Counter() for _ in range(domain.size)]
    cells = domain.cells
    with (folder / "specific_train.csv").open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            up = (float(line["lat"]) - BOX["south"]) / (BOX["north"] - BOX["south"])
            right = (float(line["lon"]) - BOX["west"]) / (BOX["east"] - BOX["west"])
            if 0 <= up < 1 and 0 <= right < 1:
                counts[int(up * cells.rows) * cells.columns + int(right * cells.columns)][line["category"]] += 1
    return [min(count, key=lambda name: (-count[name], name)) if count else "none" for count in counts]


def within_components(domain: md.Domain, graph: nx.Graph, epsilon: float) -> NDArray[np.float64]:
    """Return the matrix of P-PIM with outputs snapped to the nearest cell of the secret's own component."""
    matrix = np.zeros((domain.size, domain.size))
    for component in components(graph):
        mechanism = md.mechanisms.PlanarIsotropic(epsilon, domain, graph.subgraph(component))
        matrix[np.ix_(component, component)] = mechanism.channel(domain.points[component]).matrix
    return matrix


def channels(
    domain: md.Domain, graph: nx.Graph, epsilon: float, prior: md.Prior
) -> dict[str, md.Channel | NDArray[np.float64]]:
    """Return the channel of each mechanism; rows and columns are the cells of the map."""
    shared = {"graph": graph, "epsilon": epsilon, "prior": prior, "isolated": "release"}
    # Random graphs have isolated cells, as in the paper; these cells are revealed.
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        optimal = {
            name: md.design(md.graphs.problem(domain, within=within, **shared), tolerance=1e-6).channel
            for name, within in (("LP", "map"), ("LP, block", "component"))
        }
    return {
        "P-LM": md.mechanisms.Laplace(epsilon, domain, graph).channel(domain),
        "P-PIM": md.mechanisms.PlanarIsotropic(epsilon, domain, graph).channel(domain),
        "P-PIM, block": within_components(domain, graph, epsilon),
        **optimal,
    }


def single(folder: Path, *, side: int, epsilons: list[float], policies: list[str]) -> Iterator[Row]:
    """Release single locations, and yield E_eu in km, E_r for regions of 5 × 5 cells, and E_poi for categories."""
    path = folder / CHECKINS
    domain = md.Domain.geographic_grid(side, side, *BOX.values())
    traces = md.data.read_checkins(path, user="label", latitude="lat", longitude="lon")
    prior = md.Prior.from_counts(md.data.to_grid(traces, domain).counts(), smoothing=1.0)
    labels = categories(path.parent, domain)
    regions = metrics.regions(domain, 5)
    for policy in policies:
        graph = _policy(policy, domain, labels)
        for epsilon in epsilons:
            for name, channel in channels(domain, graph, epsilon, prior).items():
                yield {
                    "policy": policy,
                    "epsilon": epsilon,
                    "mechanism": name,
                    "E_eu": metrics.euclidean_error(channel, prior, domain),
                    "E_r": metrics.mismatch_error(channel, prior, regions),
                    "E_poi": metrics.mismatch_error(channel, prior, labels),
                    "largest": max(map(len, components(graph))),
                }


def _policy(name: str, domain: md.Domain, labels: list[str]) -> nx.Graph:
    if name == "G_poi":
        return md.graphs.categories(labels, metrics.regions(domain, 6).tolist())
    return md.graphs.blocks(domain, {"G_k9": 3, "G_k16": 4, "G_k25": 5}[name])


def repairs(
    folder: Path, *, blocks: list[int], sizes: list[int], draws: int, square: float, samples: int
) -> Iterator[Row]:
    """Repair policies on random constrained domains in a square of GeoLife's map, by least area and by nearest node.

    The error is E_eu of coordinates as drawn. It is the mean norm of samples of planar isotropic noise with the hull of
    the graph.
    """
    here = scene_of(folder, "GeoLife", 1, 2)
    for block in blocks:
        graph = md.graphs.categories(here.regions[block])
        for size in sizes:
            rng = np.random.default_rng(size)
            domains = [_within(here.domain, size, square, rng) for _ in range(draws)]
            for number, members in enumerate(domains, 1):
                row: Row = {"policy": f"G_k{block * block}", "size": size, "draw": number}
                yield row | _repaired(here.domain, md.graphs.constrain(graph, members), samples)


def _within(domain: md.Domain, size: int, square: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `size` random cells of a random square that contains at least `size` cells."""
    while True:
        centre = domain.points[rng.integers(domain.size)]
        near = np.flatnonzero((np.abs(domain.points - centre) < square / 2).all(axis=1))
        if len(near) >= size:
            return np.asarray(rng.choice(near, size, replace=False))


def _repaired(domain: md.Domain, graph: nx.Graph, samples: int) -> Row:
    row: Row = {}
    for method in ("area", "nearest"):
        clock = time.process_time()
        after = md.graphs.repair(domain, graph, method)
        seconds = time.process_time() - clock
        mechanism = md.mechanisms.PlanarIsotropic(1, domain, after.graph, hull="graph")
        # All nodes have the same hull, so the noise does not depend on the node.
        node = int(mechanism.nodes[0])
        noise = mechanism.sample(node, samples, rng=0) - domain.points[node]
        row |= {f"{method}_error": float(np.linalg.norm(noise, axis=1).mean()), f"{method}_seconds": seconds}
    return row


def repair_example(*, side: int, block: int, members: list[int], epsilon: float, samples: int) -> Iterator[Row]:
    """Repair one small constrained domain in both ways; the errors of drawn outputs are sampled."""
    domain = md.Domain.grid(side, side, float(side), float(side))
    graph = md.graphs.constrain(md.graphs.blocks(domain, block), members)
    for method in ("area", "nearest"):
        after = md.graphs.repair(domain, graph, method)
        mechanism = md.mechanisms.PlanarIsotropic(epsilon, domain, after.graph, hull="graph")
        channel = mechanism.channel(domain)
        uniform = np.full(len(mechanism.nodes), 1 / len(mechanism.nodes))
        node = int(mechanism.nodes[0])
        noise = mechanism.sample(node, samples, rng=0) - domain.points[node]
        yield {
            "method": method,
            "area": float(mechanism.hull(node).volume),
            "snapped": metrics.euclidean_error(channel, uniform, domain.points[mechanism.nodes], observables=domain),
            "drawn": float(np.linalg.norm(noise, axis=1).mean()),
            "edges": " ".join(f"{a}–{b}" for a, b in sorted(after.graph.edges)),
        }


def traces(
    folder: Path,
    *,
    data: list[str],
    trajectories: int,
    steps: int,
    blocks: list[int],
    epsilon: float,
    mechanisms: Sequence[str] = ("P-LM", "P-PIM"),
) -> Iterator[Row]:
    """Release trajectories with the hulls of components; step 0 is the mean over all steps."""
    for name in data:
        here = scene_of(folder, name, trajectories, steps)
        for block in blocks:
            graph = md.graphs.categories(here.regions[block])
            for mechanism in mechanisms:
                found = measure(here, graph, epsilon, MECHANISMS[mechanism])
                own: Row = {"data": name, "policy": f"G_k{block * block}", "mechanism": mechanism, "epsilon": epsilon}
                yield from means(own, found, every_step=True)


# The LP channel minimises E_eu, so E_r and E_poi depend on the choice among several optimal channels.
_ERRORS = {"E_eu": 1e-4, "E_r": 0.05, "E_poi": 0.05}

SINGLE = Experiment(
    "pglp_single",
    single,
    small={"side": 6, "epsilons": [1.0], "policies": ["G_k9", "G_k25", "G_poi"]},
    full={"side": 12, "epsilons": [0.5, 1.0, 2.0], "policies": ["G_k9", "G_k16", "G_k25", "G_poi"]},
    keys=("policy", "epsilon", "mechanism"),
    spread=_ERRORS,
    data=(CHECKINS,),
)
REPAIRS = Experiment(
    "pglp_repairs",
    repairs,
    small={"blocks": [3], "sizes": [10], "draws": 2, "square": 8.0, "samples": 500},
    full={"blocks": [3, 4, 5], "sizes": [10, 20, 30, 40, 50], "draws": 5, "square": 8.0, "samples": 2000},
    keys=("policy", "size", "draw"),
    spread={"area_error": 0.15, "nearest_error": 0.15},
    data=("geolife_trackintel",),
)
REPAIR_EXAMPLE = Experiment(
    "pglp_repair_example",
    repair_example,
    small={"side": 6, "block": 3, "members": [2, 18, 22, 29], "epsilon": 1, "samples": 2000},
    full={"side": 6, "block": 3, "members": [2, 18, 22, 29], "epsilon": 1, "samples": 100000},
    keys=("method",),
    spread={"area": 1e-6, "snapped": 1e-6, "drawn": 0.1},
)
TRACES = Experiment(
    "pglp_traces",
    traces,
    small={"data": ["check-ins"], "trajectories": 2, "steps": 4, "blocks": [3, 5], "epsilon": 1.0},
    full={"data": ["GeoLife", "check-ins"], "trajectories": 4, "steps": 25, "blocks": [3, 4, 5], "epsilon": 1.0},
    keys=("data", "policy", "mechanism", "step"),
    spread=SAMPLED,
    data=LOCATION_DATA,
)
EXPERIMENTS = (SINGLE, REPAIRS, REPAIR_EXAMPLE, TRACES)
