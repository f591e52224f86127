"""The transition matrices that the leakage benchmarks share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def random_matrix(n: int, seed: int = 0) -> Matrix:
    """Return uniform random weights, normalised, as in Figure 6 of the paper."""
    weights = np.random.default_rng(seed).random((n, n))
    return weights / weights.sum(axis=1, keepdims=True)


def dirichlet(n: int, concentration: float = 0.1, seed: int = 0) -> Matrix:
    """Return rows drawn from a symmetric Dirichlet distribution: few probabilities are large, and many are tiny."""
    return np.random.default_rng(seed).dirichlet(np.full(n, concentration), n)


def gaussian(n: int, width: float = 0.3) -> Matrix:
    """Return a Gaussian kernel on a line of n states, whose width is a share of the line; all shifts are ties."""
    state = np.arange(n)
    weights = np.exp(-((state[:, None] - state) ** 2) / (2 * (width * n) ** 2))
    return weights / weights.sum(axis=1, keepdims=True)


KINDS = {
    "random": random_matrix,
    "Dirichlet(0.1)": dirichlet,
    "Gaussian 0.3": gaussian,
    "Gaussian 0.1": lambda n: gaussian(n, 0.1),
    "Gaussian 0.05": lambda n: gaussian(n, 0.05),
}
