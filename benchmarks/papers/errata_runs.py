"""Errata found by computation: the statement of each paper, and the computed result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import mechdesign as md
from mechdesign.tables._sensitivity._constrained import constraint_sensitivity
from papers.experiments import Experiment, Row

__all__ = ["ERRATA", "NOTES"]

Found = tuple[float, float]

# The three-state matrix of Example 4 in Cao et al. (2019).
_EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]


def joint_cost() -> Found:
    """Privacy Games, abstract: the joint cost is not larger than the cost of either mechanism."""
    places = np.arange(3.0)
    distance = abs(places[:, None] - places)
    asked = [md.MetricPrivacy(1, distance), md.DistortionPrivacy("0.55", distance)]
    # Distortion privacy alone bounds no pair, which causes a warning.
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        costs = [
            md.design(md.Problem([0.5, 0.3, 0.2], 1 - np.eye(3), chosen)).certificate
            for chosen in (asked[:1], asked[1:], asked)
        ]
    return max(costs[0].expected_cost, costs[1].expected_cost), costs[2].lower_bound


def naive_loss() -> Found:
    """Cao et al. (2019), Algorithm 1 as printed, in floating point at α = 20 to 50: the largest value that it loses.

    "Drop the columns of ratio at most (qA + 1)/(dA + 1) until none is left to drop" ends with the right prefix in real
    numbers. In doubles the right-hand side rounds to the ratio itself.
    """
    worst = (0.0, 0.0)
    for seed in range(20):
        weights = np.random.default_rng(seed).random((4, 4))
        P = weights / weights.sum(axis=1, keepdims=True)
        L = md.leakage.LossFunction(P, cache=False)
        for alpha in (20.0, 30.0, 40.0, 50.0):
            printed = printed_loss(P, alpha)
            if float(L(alpha)) - printed > worst[1] - worst[0]:
                worst = printed, float(L(alpha))
    return worst


def printed_loss(P: np.ndarray, alpha: float) -> float:
    """Return L(α) by Algorithm 1 as printed."""
    return max(_printed_pair(P[i], P[j], alpha) for i in range(len(P)) for j in range(len(P)) if i != j)


def _printed_pair(q: np.ndarray, d: np.ndarray, alpha: float) -> float:
    """Return the loss of a pair of rows by the printed algorithm."""
    kept = [(a, b) for a, b in zip(q.tolist(), d.tolist(), strict=True) if a > b]
    A = math.exp(alpha) - 1
    while True:
        Q, D = sum(a for a, _ in kept), sum(b for _, b in kept)
        bound = (Q * A + 1) / (D * A + 1)
        left = [(a, b) for a, b in kept if b == 0 or a / b > bound]
        if len(left) == len(kept):
            return math.log(bound)
        kept = left


def divergence() -> Found:
    """Cao et al. (2019): iteration until the leakage stops rising. It still rises after 3,000 steps."""
    L = md.leakage.LossFunction([[0.8, 0.2], [0.0, 1.0]], cache=False)
    return float(md.leakage.backward(np.full(3000, 0.2231), L)[-1]), float(L.supremum(0.2231))


def fixed_point() -> Found:
    """Cao et al. (2019), Theorem 11: results with the maximal (q, d) at α = ε, and at the fixed point."""
    L = md.leakage.LossFunction(_EXAMPLE_4, cache=False)
    epsilon = 1.0
    A = math.expm1(epsilon)
    Q, D = max(zip(L.pieces.Q, L.pieces.D, strict=True), key=lambda piece: (piece[0] * A + 1) / (piece[1] * A + 1))
    e = math.exp(epsilon)
    half = D + Q * e - 1
    return math.log((math.sqrt(4 * D * e * (1 - Q) + half**2) + half) / (2 * D)), float(L.supremum(epsilon))


def snapped() -> Found:
    """PGLP, section 5: Bayes' rule with densities where answers are snapped to two nodes, ε = 1."""
    mechanism = md.mechanisms.PlanarIsotropic(1, [[0.0, 0.0], [1.0, 0.0]], md.graphs.complete(2))
    matrix = mechanism.channel(mechanism.points).matrix
    density = mechanism.likelihood([0.0, 0.0])
    return float(density[0] / density.sum()), float(matrix[0, 0] / matrix[:, 0].sum())


def repair() -> Found:
    """PGLP, Figure 8: repair by least area is always better. Mean error (snapped, cells) of nearest and least area."""
    domain = md.Domain.grid(columns=6, rows=6, width=6.0, height=6.0)
    graph = md.graphs.constrain(md.graphs.blocks(domain, 3), [2, 18, 22, 29])
    members = sorted(graph)
    errors = []
    for way in ("nearest", "area"):
        repaired = md.graphs.repair(domain, graph, way).graph
        matrix = md.mechanisms.PlanarIsotropic(1, domain, repaired, hull="graph").channel(domain).matrix
        rows = matrix if len(matrix) == len(members) else matrix[members]
        errors.append(float((rows * md.distances.euclidean(domain)[members]).sum(axis=1).mean()))
    return errors[0], errors[1]


def kmeans() -> Found:
    """Blowfish, Lemma 6.1: k-means sums under a line policy have the sensitivity 2, but an edge crosses a border."""
    line = md.tables.Policy.threshold(md.tables.Domain({"x": range(10)}), 1)
    return 2.0, float(line.sensitivity("kmeans-sum", clusters=[0] * 5 + [1] * 5, origins=[[0], [0]]))


def constrained() -> Found:
    """Blowfish, section 8: with |Q| = 2 sparse count constraints a histogram's sensitivity is at most 2 max(|Q|, 1)."""
    queries = [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]]
    policy = md.tables.Policy.threshold(md.tables.Domain({"x": range(6)}), 1, constraints=queries)
    return 2.0 * len(queries), float(constraint_sensitivity(policy).value)


CHECKS: dict[str, tuple[str, Callable[[], Found], str]] = {
    "joint cost": ("Privacy Games", joint_cost, "cost"),
    "Algorithm 1 in doubles": ("Temporal leakage", naive_loss, "L(α), nats"),
    "iterating to the limit": ("Temporal leakage", divergence, "leakage, nats"),
    "Theorem 11 read at α = ε": ("Temporal leakage", fixed_point, "supremum, nats"),
    "density for mass": ("PGLP", snapped, "posterior"),
    "repair by least area": ("PGLP", repair, "mean error, cells"),
    "k-means sums": ("Blowfish", kmeans, "sensitivity"),
    "count constraints": ("Blowfish", constrained, "sensitivity"),
}
NOTES = {name: (check.__doc__ or "").splitlines()[0] for name, (_, check, _) in CHECKS.items()}


def errata(*, names: list[str]) -> Iterator[Row]:
    """Yield the stated value and the true value of each statement."""
    for name in names:
        paper, check, unit = CHECKS[name]
        stated, true = check()
        yield {"name": name, "paper": paper, "unit": unit, "stated": stated, "true": true}


ERRATA = Experiment(
    "unnoticed_errata",
    errata,
    small={"names": list(CHECKS)},
    full={"names": list(CHECKS)},
    keys=("name",),
    spread={"stated": 1e-6, "true": 1e-6},
)
