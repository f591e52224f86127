"""Use the symmetries of a problem in the ray method: one member represents each orbit of secrets or observables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.synthesis._rays.pricing import FloorAttack, RayProof

# Two rays are treated as images of each other if their means agree to this number of decimal digits.
_IMAGE_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Folding:
    """The orbits of secrets and observables under a group of symmetries.

    Attributes:
        symmetry: The group of symmetries, or None if it contains only the identity.
        orbit: Orbit of each secret, shape (k,).
        sizes: Number of secrets in each orbit.
        observables: A representative observable of each orbit.
        asymmetry: Largest difference between two exponents that are images of each other.
    """

    symmetry: Symmetry | None
    orbit: Integers
    sizes: Integers
    observables: Integers
    asymmetry: float

    @property
    def order(self) -> int:
        """The number of symmetries."""
        return 1 if self.symmetry is None else self.symmetry.order

    def fold(self, rays: Floats) -> Floats:
        """Return the means of rays, shape (count, k), over each orbit of secrets; images of a ray have equal means."""
        if self.symmetry is None:
            return rays
        order = np.argsort(self.orbit, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        means: Floats = np.add.reduceat(rays[:, order], starts, axis=1) / self.sizes
        return means

    def different(self, rays: Floats) -> Floats:
        """Return rays, shape (count, k), without images of other rays."""
        if self.symmetry is None:
            return rays
        first = np.unique(np.round(self.fold(rays), _IMAGE_DIGITS), axis=0, return_index=True)[1]
        return rays[np.sort(first)]

    def spread(self, multipliers: Floats) -> Floats:
        """Return the multiplier of every secret's row sum, shape (k,), given one multiplier for each orbit's mean."""
        spread: Floats = (multipliers / self.sizes)[self.orbit]
        return spread

    def largest(self, values: Floats) -> Floats:
        """Return for every secret, shape (k,), the largest value in its orbit."""
        if self.symmetry is None:
            return values
        found = np.full(self.sizes.size, -np.inf)
        np.maximum.at(found, self.orbit, values)
        return found[self.orbit]

    def mean(self, matrix: Floats) -> Floats:
        """Return the mean of all images of a channel (k, m)."""
        if self.symmetry is None:
            return matrix
        total = np.zeros_like(matrix)
        for rows, columns in zip(self.symmetry.rows, self.symmetry.columns, strict=True):
            total[np.ix_(rows, columns)] += matrix
        total /= self.symmetry.order
        return total

    def sum_over_orbits(self, shares: Floats) -> Floats:
        """Return for every observable, shape (m,), the sum of the shares in its orbit."""
        if self.symmetry is None:
            return shares
        least = self.symmetry.columns.min(axis=0)
        found: Floats = np.bincount(least, shares, shares.size)[least]
        return found

    def unfold(self, proofs: list[RayProof]) -> list[RayProof]:
        """Return the proofs of all observables in order, from proofs of `self.observables` in any order."""
        by = {proof.observable: proof for proof in proofs}
        symmetry = self.symmetry
        if symmetry is None:
            return [by[observable] for observable in sorted(by)]
        movers, orbits = symmetry.origins(symmetry.columns.shape[1])
        found = []
        for observable, (mover, orbit) in enumerate(zip(movers.tolist(), orbits.tolist(), strict=True)):
            proof = by[int(self.observables[orbit])]
            rows = symmetry.rows[mover]
            attacks = tuple(
                FloorAttack(images[mover][attack.estimates], attack.weights)
                for images, attack in zip(symmetry.estimates, proof.attacks, strict=True)
            )
            found.append(RayProof(observable, rows[proof.sources], rows[proof.targets], proof.values, attacks))
        return found


def find_orbits(metric: Floats, observables: int, symmetry: Symmetry | None) -> Folding:
    """Return the orbits of a symmetry group, for a metric (k, k) and a number of observables."""
    secrets = len(metric)
    if symmetry is None or symmetry.order == 1:
        single = np.ones(secrets, dtype=np.int64)
        return Folding(None, np.arange(secrets), single, np.arange(observables), 0.0)
    orbit, sizes = np.unique(symmetry.rows.min(axis=0), return_inverse=True, return_counts=True)[1:]
    asymmetry = max(float(np.abs(metric[np.ix_(rows, rows)] - metric).max()) for rows in symmetry.rows)
    return Folding(symmetry, orbit, sizes, symmetry.representatives(observables)[0], asymmetry)
