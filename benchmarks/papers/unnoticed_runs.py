"""Results that the papers do not contain: designs and noise, dropped and kept bounds, the hull of loss functions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._solve import solve
from papers.experiments import Experiment, Row
from papers.privacy_games_runs import near_program, tight_epsilon

__all__ = ["BOUNDS", "EXPERIMENTS", "HULL", "NOISE", "POINTS"]

Floats = NDArray[np.float64]

# Mean distance from the centre of a uniform point in a square of half side 1.
_SQUARE = (math.sqrt(2) + math.asinh(1)) / 3


def noise(*, sides: list[int], epsilons: list[float]) -> Iterator[Row]:
    """Compare mechanisms for the complete graph on k × k cells with a uniform prior, by their mean error in cells.

    The hull of the graph is a square of half side k − 1. Planar isotropic noise is a Gamma(3, 1/ε) radius times a
    uniform point of this square, so that its mean length has a closed form.
    """
    for side in sides:
        domain = md.Domain.grid(columns=side, rows=side, width=float(side), height=float(side))
        graph = md.graphs.complete(domain.size)
        distance = md.distances.euclidean(domain)
        for epsilon in epsilons:
            same = {"side": side, "epsilon": epsilon}
            yield same | {"mechanism": "noise as drawn", "error": 3 / epsilon * (side - 1) * _SQUARE}
            clipped = md.mechanisms.PlanarIsotropic(epsilon, domain, graph).channel(domain).matrix
            yield same | {
                "mechanism": "noise snapped to the block",
                "error": float((clipped * distance).sum(axis=1).mean()),
            }
            problem = md.Problem(md.Prior.uniform(domain.size), distance, [md.GraphPrivacy(f"{epsilon:g}", graph)])
            found = md.design(problem, tolerance=1e-7).certificate
            yield same | {"mechanism": "least-cost channel", "error": found.expected_cost}


def bounds(*, columns: int, rows: int, epsilon: float, radii: list[float]) -> Iterator[Row]:
    """Design for metric privacy with bounds dropped beyond a radius, with a spanner, and with all bounds."""
    domain = md.Domain.grid(columns=columns, rows=rows, width=float(columns), height=float(rows))
    distance = md.distances.euclidean(domain)
    weights = np.exp(-((domain.points - domain.points.mean(axis=0)) ** 2).sum(axis=1) / 8)
    prior = weights / weights.sum()
    n = len(prior)
    hamming = 1.0 - np.eye(n)
    problem = md.Problem(prior, hamming, [md.MetricPrivacy(f"{epsilon:g}", distance)])
    for way in ("all", "near"):
        clock = time.perf_counter()
        found = md.design(problem, tolerance=1e-7, rows=way, **({"solver": "highs"} if way == "near" else {}))
        certificate = found.certificate
        yield {
            "way": {"all": "all bounds", "near": "spanner"}[way],
            "radius": 0.0,
            "cost": certificate.expected_cost,
            "lower_bound": certificate.lower_bound,
            "tight_epsilon": float(certificate.epsilon[0]),
            "seconds": time.perf_counter() - clock,
        }
    for radius in radii:
        clock = time.perf_counter()
        program = near_program(prior, distance, epsilon, 0.0, radius)
        found = solve(program, "highs-ipx", Options(1e-8, vertex=True))
        matrix = np.maximum(found.x[: n * n].reshape(n, n), 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        yield {
            "way": "dropped",
            "radius": radius,
            "cost": float((prior * (1 - np.diag(matrix))).sum()),
            "lower_bound": 0.0,
            "tight_epsilon": tight_epsilon(matrix, distance),
            "seconds": time.perf_counter() - clock,
        }


def prefixes(P: Floats) -> Floats:
    """Return (D, Q) of every prefix, in the order of the ratios, of every ordered pair of rows: shape (k, 2)."""
    found = []
    for i, j in permutations(range(len(P)), 2):
        q, d = P[i], P[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.where(d > 0, q / d, np.inf), kind="stable")
        found.append(np.column_stack([np.cumsum(d[order]), np.cumsum(q[order])]))
    return np.concatenate(found)


def random_matrix(n: int, seed: int) -> Floats:
    """Return a transition matrix of uniform weights, normalised."""
    weights = np.random.default_rng(seed).random((n, n))
    return weights / weights.sum(axis=1, keepdims=True)


def hull(*, states: list[int], seeds: int) -> Iterator[Row]:
    """Count prefixes of all pairs and pieces of L, and compare L with the maximum over all prefixes."""
    alphas = np.array([0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
    growth = np.expm1(alphas)
    for n in states:
        for seed in range(seeds):
            P = random_matrix(n, seed)
            L = md.leakage.LossFunction(P, cache=False)
            D, Q = prefixes(P).T
            brute = np.array([np.log((Q * A + 1) / (D * A + 1)).max() for A in growth])
            yield {
                "states": n,
                "seed": seed,
                "prefixes": len(D),
                "pieces": len(L.pieces.Q),
                "difference": float(abs(L(alphas) - brute).max()),
            }


def points(*, n: int, seed: int) -> Iterator[Row]:
    """Yield the prefixes of one matrix, and the pieces of its loss function."""
    P = random_matrix(n, seed)
    for index, (D, Q) in enumerate(prefixes(P)):
        yield {"kind": "prefix", "index": index, "D": float(D), "Q": float(Q)}
    pieces = md.leakage.LossFunction(P, cache=False).pieces
    for index, (D, Q) in enumerate(zip(pieces.D, pieces.Q, strict=True)):
        yield {"kind": "piece", "index": index, "D": float(D), "Q": float(Q)}


NOISE = Experiment(
    "unnoticed_noise",
    noise,
    small={"sides": [2, 3], "epsilons": [1.0]},
    full={"sides": [2, 3, 4, 5], "epsilons": [0.25, 0.5, 1.0, 2.0, 4.0]},
    keys=("side", "epsilon", "mechanism"),
    spread={"error": 1e-6},
)
BOUNDS = Experiment(
    "unnoticed_bounds",
    bounds,
    small={"columns": 3, "rows": 3, "epsilon": 0.6, "radii": [1.5]},
    full={"columns": 7, "rows": 6, "epsilon": 0.6, "radii": [1.1, 1.5, 2.1, 2.5, 3.1, 4.1]},
    keys=("way", "radius"),
    # The approximation may have several channels of least cost, so its ε is not compared.
    spread={"cost": 1e-5, "lower_bound": 1e-5},
)
HULL = Experiment(
    "unnoticed_hull",
    hull,
    small={"states": [3, 10], "seeds": 1},
    full={"states": [3, 5, 10, 20, 40, 80], "seeds": 5},
    keys=("states", "seed"),
    spread={"prefixes": 0, "pieces": 0, "difference": 1e-12},
)
POINTS = Experiment(
    "unnoticed_points",
    points,
    small={"n": 3, "seed": 1},
    full={"n": 6, "seed": 1},
    keys=("kind", "index"),
    spread={"D": 1e-12, "Q": 1e-12},
)
EXPERIMENTS = (NOISE, BOUNDS, HULL, POINTS)
