"""Leakage pair by pair, by routes that share nothing with the package: all outputs of a chain, and all extreme rays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Matrix = list[list[Any]]


@dataclass(frozen=True)
class Releases:
    """A chain, the law of its first state, and a channel (states, outputs) for each release."""

    chain: np.ndarray
    initial: np.ndarray
    channels: list[np.ndarray]

    @property
    def bounds(self) -> list[np.ndarray]:
        """The largest ln p(o|s)/p(o|t) of each release."""
        return [log_ratios(channel) for channel in self.channels]

    @property
    def reached(self) -> list[np.ndarray]:
        """The states that can occur at each release."""
        laws = [self.initial]
        for _ in self.channels[1:]:
            laws.append(laws[-1] @ self.chain)
        return [np.flatnonzero(law) for law in laws]

    def leakages(self) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Return what releases until t, from t on, and all, reveal about each pair of states at t, over all outputs."""
        before = self._joint()
        after = self._later()
        with np.errstate(invalid="ignore"):
            given = [joint / law for joint, law in zip(before, self._laws(), strict=True)]
        ahead = [
            (channel[:, :, None] * later[:, None, :]).reshape(len(channel), -1)
            for channel, later in zip(self.channels, after, strict=True)
        ]
        total = [
            (one[:, :, None] * two[:, None, :]).reshape(len(one), -1) for one, two in zip(given, after, strict=True)
        ]
        return tuple([log_ratios(each) for each in way] for way in (given, ahead, total))  # type: ignore[return-value]

    def _laws(self) -> list[np.ndarray]:
        return [joint.sum(axis=1, keepdims=True) for joint in self._joint()]

    def _joint(self) -> list[np.ndarray]:
        """Return Pr(outputs until t, state at t) of all outputs, shape (states, sequences of outputs)."""
        joint = [self.initial[:, None] * self.channels[0]]
        for channel in self.channels[1:]:
            moved = self.chain.T @ joint[-1]
            joint.append((moved[:, :, None] * channel[:, None, :]).reshape(len(channel), -1))
        return joint

    def _later(self) -> list[np.ndarray]:
        """Return Pr(outputs after t | state at t) of all outputs, shape (states, sequences of outputs)."""
        later = [np.ones((len(self.chain), 1))]
        for channel in self.channels[:0:-1]:
            here = (channel[:, :, None] * later[0][:, None, :]).reshape(len(channel), -1)
            later.insert(0, self.chain @ here)
        return later


def log_ratios(channel: np.ndarray) -> np.ndarray:
    """Return the largest ln p(o|s)/p(o|t) over o, (states, states); 0 where no o is possible, as for lost states."""
    out = np.zeros((len(channel), len(channel)))
    for s, t in itertools.permutations(range(len(channel)), 2):
        seen = channel[s] > 0
        with np.errstate(divide="ignore"):
            out[s, t] = np.log(channel[s, seen] / channel[t, seen]).max(initial=0)
    return out


def random_releases(rng: np.random.Generator, most_states: int = 5, most_steps: int = 4) -> Releases:
    """Return a random chain with random channels; a third of them has zeros in rows or in channels."""
    n, outputs, T = int(rng.integers(2, most_states + 1)), int(rng.integers(2, 4)), int(rng.integers(1, most_steps + 1))
    zeros = rng.random() < 1 / 3
    chain = _rows(rng, n, n, 0.4 if zeros and rng.random() < 0.7 else 0.0)
    channels = [_rows(rng, n, outputs, 0.2 if zeros and rng.random() < 0.5 else 0.0) for _ in range(T)]
    return Releases(chain, _rows(rng, 1, n, 0.4 if zeros else 0.0)[0], channels)


def _rows(rng: np.random.Generator, rows: int, columns: int, zeros: float) -> np.ndarray:
    made = rng.dirichlet(np.full(columns, rng.choice([0.5, 1.0, 4.0])), rows)
    made = np.maximum(made, 1e-3)
    made[rng.random(made.shape) < zeros] = 0
    made[made.sum(axis=1) == 0, 0] = 1
    return made / made.sum(axis=1, keepdims=True)


def spanning_trees(n: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the edges of each tree on the nodes 0 to n − 1, each in an order that grows from node 0."""
    if n == 1:
        yield []
    pairs = list(itertools.combinations(range(n), 2))
    for edges in itertools.combinations(pairs, n - 1) if n > 1 else []:
        order, known, left = [], {0}, list(edges)
        while (edge := next((each for each in left if len(known & set(each)) == 1), None)) is not None:
            new = edge[0] if edge[1] in known else edge[1]
            order.append((new, edge[0] + edge[1] - new))
            known.add(new)
            left.remove(edge)
        if len(known) == n:
            yield order


def exact_leakage(P: Matrix, gains: Matrix) -> list[list[Fraction | float]]:
    """Return the largest (P_s·x)/(P_t·x) over x_j ≤ gains[j][k] x_k, which is attained at an extreme ray.

    An extreme ray has a tree of tight constraints, in either direction. All gains must be finite and closed along
    paths, so that every ray has positive entries.
    """
    n = len(P)
    best: list[list[Fraction | float]] = [[Fraction(1)] * n for _ in range(n)]
    for tree in spanning_trees(n):
        for upwards in itertools.product((True, False), repeat=n - 1):
            x = [Fraction(1)] * n
            for (new, old), above in zip(tree, upwards, strict=True):
                x[new] = x[old] * gains[new][old] if above else x[old] / gains[old][new]
            if any(x[j] > gains[j][k] * x[k] for j in range(n) for k in range(n)):
                continue
            values = [sum(map(Fraction.__mul__, row, x), Fraction(0)) for row in P]
            for s, t in itertools.permutations(range(n), 2):
                best[s][t] = max(best[s][t], values[s] / values[t] if values[t] else math.inf)
    return best


def leakage_by_rays(P: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the same in logarithms of floats: ln of the largest ratio, for bounds of any size."""
    n = len(P)
    with np.errstate(divide="ignore"):
        logs = np.log(P)
    trees = [
        (tree, upwards) for tree in spanning_trees(n) for upwards in itertools.product((True, False), repeat=n - 1)
    ]
    x = np.zeros((len(trees), n))
    for number, (tree, upwards) in enumerate(trees):
        for (new, old), above in zip(tree, upwards, strict=True):
            x[number, new] = x[number, old] + (bounds[new, old] if above else -bounds[old, new])
    inside = (x[:, :, None] <= bounds + x[:, None, :] + 1e-12 * (1 + bounds.max())).all(axis=(1, 2))
    values = np.logaddexp.reduce(logs[None] + x[inside][:, None, :], axis=2)
    return np.maximum((values[:, :, None] - values[:, None, :]).max(axis=0), 0.0)
