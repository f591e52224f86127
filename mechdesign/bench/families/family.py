"""What a family of problems is, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Family", "Instance", "RowPairs", "prior_on", "square"]


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Linear-fractional programs: the largest q·x / d·x for ordered pairs (q, d) of rows of a transition matrix.

    Attributes:
        matrix: Transition probabilities, (n, n).
        pairs: The ordered pairs of rows, (k, 2).
        alpha: No two entries of x differ by more than a factor e^alpha.
    """

    matrix: Floats
    pairs: Integers
    alpha: float


Instance = Problem | RowPairs


@dataclass(frozen=True)
class Family:
    """A family of problems.

    Attributes:
        name: What users and tables call it.
        title: What it is, in a few words.
        parameters: What its problems have in common, such as ε: part of the identity of every row.
        make: Returns the problem with n secrets (or states) and a seed; the same one every time.
        data: Returns the SHA-256 of the data that it reads, or None where they are not there; without data, "".
    """

    name: str
    title: str
    parameters: Mapping[str, object]
    make: Callable[[int, int], Instance]
    data: Callable[[], str | None] = field(default=lambda: "")

    @property
    def available(self) -> bool:
        """Whether its data are there."""
        return self.data() is not None


def square(n: int) -> Domain:
    """Return a grid of about n unit cells: the square of the nearest whole side."""
    side = max(2, round(n**0.5))
    return Domain.grid(columns=side, rows=side, width=float(side), height=float(side))


def prior_on(domain: Domain, seed: int) -> Floats:
    """Return a prior without symmetries: a Gaussian hill, cell by cell multiplied by a random factor of 1/2 to 2."""
    rng = np.random.default_rng(seed)
    size = np.ptp(domain.points, axis=0)
    centre = domain.points.min(axis=0) + size * rng.uniform(0.3, 0.7, domain.points.shape[1])
    spread = np.linalg.norm(size) / 4
    weights = np.exp(-((domain.points - centre) ** 2).sum(axis=1) / (2 * spread**2))
    weights *= 2.0 ** rng.uniform(-1, 1, domain.size)
    normalised: Floats = weights / weights.sum()
    return normalised
