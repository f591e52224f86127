"""Mechanisms from the literature that do not guarantee what they were said to, as finite channels."""

from __future__ import annotations

import math

import numpy as np

import mechdesign as md


def cluster_sums(epsilon: float, values: int = 10, border: int = 5) -> np.ndarray:
    """Noisy sums of two clusters of one value, scaled for a sensitivity of 2 (Blowfish, He et al. 2014, Lemma 6.1).

    Under a threshold of 1 a value that moves from 4 to 5 changes cluster: it leaves one sum and enters the other, which
    change by 4 + 5 = 9. Sums are clipped to 0..9, which only helps.
    """
    noise = md.mechanisms.Geometric(epsilon / 2, values).matrix()
    sums = [(value, 0) if value < border else (0, value) for value in range(values)]
    return np.array([np.outer(noise[first], noise[second]).ravel() for first, second in sums])


def noise_on_rays(epsilon: float, side: int = 7, reach: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Noise of random length in one of eight directions: a sampler that takes points of a hull from a finite grid.

    Returns the channel from the cells of the middle to all, and the distances of the secrets.
    """
    cells = [(x, y) for y in range(side) for x in range(side)]
    secrets = [(x, y) for x, y in cells if reach <= x < side - reach or reach <= y < side - reach]
    secrets = [(x, y) for x, y in secrets if abs(x - side // 2) <= 1 and abs(y - side // 2) <= 1]
    matrix = np.zeros((len(secrets), side * side))
    steps = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
    for row, (x, y) in enumerate(secrets):
        for length in range(reach + 1):
            for dx, dy in steps:
                u, v = x + length * dx, y + length * dy
                if 0 <= u < side and 0 <= v < side:
                    matrix[row, v * side + u] += math.exp(-epsilon * length)
    places = np.array(secrets, dtype=float)
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    return matrix / matrix.sum(axis=1, keepdims=True), np.floor(apart * 2**40) / 2**40


def far_pairs_dropped(epsilon: float, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The optimal channel when only near pairs are bounded (Privacy Games, Shokri 2015, appendix C), on 4 × 4 cells."""
    domain = md.Domain.grid(4, 4, 4.0, 4.0)
    distance = md.distances.euclidean(domain)
    near = md.graphs.threshold(domain, radius)
    prior = md.Prior.from_counts(np.arange(1, 17))
    made = md.design(md.Problem(prior, distance, [md.GraphPrivacy(epsilon, near)]), tolerance=1e-6)
    return made.channel.matrix, distance
