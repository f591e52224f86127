"""A hidden Markov model by enumeration of all its paths: slow, and obviously right."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def enumerate_paths(initial: Floats, matrix: Floats, likelihoods: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return priors, posteriors and smoothed beliefs, all (T, n), and the probability of all observations.

    Sums of exact fractions over all n^T paths.
    """
    steps, n = likelihoods.shape
    start = [Fraction(p) for p in initial]
    move = [[Fraction(p) for p in row] for row in matrix]
    seen = [[Fraction(p) for p in row] for row in likelihoods]

    def marginals(observed: int, length: int) -> list[list[Fraction]]:
        total = [[Fraction(0)] * n for _ in range(length)]
        for path in itertools.product(range(n), repeat=length):
            weight = start[path[0]]
            for t in range(1, length):
                weight *= move[path[t - 1]][path[t]]
            for t in range(observed):
                weight *= seen[t][path[t]]
            for t in range(length):
                total[t][path[t]] += weight
        return total

    def normalised(row: list[Fraction]) -> list[float]:
        return [float(value / sum(row)) for value in row]

    priors = np.array([normalised(marginals(t, t + 1)[t]) for t in range(steps)])
    posteriors = np.array([normalised(marginals(t + 1, t + 1)[t]) for t in range(steps)])
    whole = marginals(steps, steps)
    return priors, posteriors, np.array([normalised(row) for row in whole]), float(sum(whole[0]))


def random_model(rng: np.random.Generator, n: int, steps: int, zeros: float = 0.3) -> tuple[Floats, Floats, Floats]:
    """Return an initial belief, a chain and likelihoods, with some zeros, in which not everything is impossible."""
    matrix = rng.random((n, n)) * (rng.random((n, n)) > zeros) + 1e-3 * np.eye(n)
    initial = rng.random(n) * (rng.random(n) > zeros)
    initial[rng.integers(n)] += 0.1
    matrix /= matrix.sum(axis=1, keepdims=True)
    initial /= initial.sum()
    likelihoods = rng.random((steps, n)) * (rng.random((steps, n)) > zeros)
    # Follow one path, whose observations are possible.
    state = int(rng.choice(n, p=initial))
    for t in range(steps):
        likelihoods[t, state] = max(likelihoods[t, state], 0.2)
        state = int(rng.choice(n, p=matrix[state]))
    return initial, matrix, likelihoods
