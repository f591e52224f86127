"""The optimal strategy for marginal tables under policies that treat all values of an attribute alike.

The mean of a feasible X = AᵀA over all exchanges of values within an attribute is feasible and has no larger error,
since tr(X⁺M) is convex. So some optimal X is Σ w_S P_S over sets S of attributes. P_S projects onto the functions of
these attributes that have the mean zero along each of them. With M P_S = m_S P_S, dim_S = tr P_S, and
c_S(D) = ‖P_S(e_x − e_y)‖² for two values that differ in the attributes D, the program is

    minimise Σ dim_S m_S / w_S  subject to  Σ w_S c_S(D) ≤ 1 for every D,

with one number for each set. By the inequality of Cauchy and Schwarz, every y ≥ 0 proves the lower bound
(Σ_S √(dim_S m_S Σ_D y_D c_S(D)))² / Σ y.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from mechdesign.base._arrays import Floats, Integers

Sets = tuple[tuple[int, ...], ...]

# The largest number of differences D times sets S; the program takes minutes there.
LARGEST_PROGRAM = 2**23
# Integers whose squares, summed with those of the other sets, need at most this number of bits.
_BITS = 61
_GAP = 1e-10
_UNIT = 2.0**-53


@dataclass(frozen=True)
class MarginalStrategy:
    """Noisy tables k_S R_S for sets S of attributes; R_S is a product of n_i I − J over S, and of sums elsewhere.

    Attributes:
        shape: the number of values of each attribute.
        sets: the sets S.
        multiples: the integers k_S.
        power: the exact squared ℓ2 sensitivity of all rows together.
        trace: the total squared error for noise of variance 1 on each row.
        bound: a proven lower bound on the error of every linear strategy with sensitivity 1 and noise of variance 1.
    """

    shape: tuple[int, ...]
    sets: Sets
    multiples: tuple[int, ...]
    power: int
    trace: float
    bound: float

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(math.prod(self.shape[i] for i in chosen) for chosen in self.sets)

    def rows(self) -> Integers:
        """Return the rows k_S R_S over the values, minus their first columns, int64 of shape (count, |T|)."""
        parts = [k * self._table(chosen) for k, chosen in zip(self.multiples, self.sets, strict=True)]
        rows: Integers = np.concatenate(parts)
        rows -= rows[:, :1].copy()
        return rows

    def decoding(self) -> Floats:
        """Return the pseudoinverse of all k_S R_S, float64 of shape (|T|, count)."""
        size = math.prod(self.shape)
        parts = []
        for k, chosen in zip(self.multiples, self.sets, strict=True):
            cells = math.prod(self.shape[i] for i in chosen)
            parts.append(self._table(chosen).T / (float(k) * cells * size))
        return np.concatenate(parts, axis=1)

    def _table(self, chosen: tuple[int, ...]) -> Integers:
        factors = [
            n * np.eye(n, dtype=np.int64) - 1 if i in chosen else np.ones((1, n), dtype=np.int64)
            for i, n in enumerate(self.shape)
        ]
        table: Integers = reduce(np.kron, factors)
        return table


def list_differences(shape: Sequence[int], *, one: bool) -> Sets:
    """Return the sets of attributes that can differ along an edge; with `one`, each set has one attribute."""
    varied = [i for i, n in enumerate(shape) if n > 1]
    return tuple(D for r in range(1, 2 if one else len(varied) + 1) for D in itertools.combinations(varied, r))


def list_sets(shape: Sequence[int], tables: Sets) -> Sets:
    """Return the sets of attributes whose differences some table shows."""
    varied = [frozenset(i for i in table if shape[i] > 1) for table in tables]
    found = {S for table in varied for r in range(1, len(table) + 1) for S in itertools.combinations(sorted(table), r)}
    return tuple(sorted(found, key=lambda S: (len(S), S)))


def solve_marginals(shape: tuple[int, ...], tables: Sets, sets: Sets, differences: Sets) -> MarginalStrategy:
    """Return the strategy with the least error, up to a relative 1e-10 and the rounding to integers, and its bound."""
    size = math.prod(shape)
    weights = [
        math.prod(shape[i] - 1 for i in S)
        * sum(size // math.prod(shape[i] for i in table) for table in tables if set(S) <= set(table))
        for S in sets
    ]
    # For k_S R_S, w_S is k_S² · cells · |T|, and the squared change is an integer.
    changes = [[_change(shape, S, D) for S in sets] for D in differences]
    units = [math.prod(shape[i] for i in S) * size for S in sets]
    costs = np.array([weight / unit for weight, unit in zip(weights, units, strict=True)])
    squares, prices = _minimise(costs, np.array(changes, dtype=np.float64))
    scale = 2.0 ** math.floor((_BITS - math.log2(max(np.array(changes, dtype=np.float64) @ squares))) / 2 - 1)
    multiples = tuple(max(1, round(math.sqrt(square) * scale)) for square in squares)
    power = max(sum(k * k * change for k, change in zip(multiples, row, strict=True)) for row in changes)
    trace = sum(Fraction(w, u * k * k) for w, u, k in zip(weights, units, multiples, strict=True))
    bound = _prove(weights, units, changes, prices)
    return MarginalStrategy(shape, sets, multiples, power, float(trace), bound)


def _change(shape: Sequence[int], chosen: Sequence[int], differing: Sequence[int]) -> int:
    """Return ‖R_S(e_x − e_y)‖² for two values that differ in the given attributes."""
    same = [shape[i] * (shape[i] - 1) for i in chosen]
    mixed = [-shape[i] if i in differing else shape[i] * (shape[i] - 1) for i in chosen]
    return 2 * (math.prod(same) - math.prod(mixed))


def _minimise(costs: Floats, changes: Floats) -> tuple[Floats, Floats]:
    """Minimise Σ costs/x over x > 0 with changes·x ≤ 1 by a barrier method; return x and multipliers of the rows."""
    x = np.sqrt(costs)
    x *= 0.5 / (changes @ x).max()
    weight = len(changes) / float((costs / x).sum())
    while True:
        for _ in range(100):
            slack = 1 - changes @ x
            inverse = changes.T / slack
            slope = -weight * costs / x + x * inverse.sum(axis=1)
            scaled = inverse * x[:, None]
            curvature = scaled @ scaled.T + np.diag(2 * weight * costs / x)
            step = np.linalg.solve(curvature, -slope)
            decrement = -float(slope @ step)
            if decrement < 1e-9:
                break
            # Within 1/(1 + √decrement), a step stays inside, and the barrier function falls; longer steps are tried.
            length, least = 1.0, 1 / (1 + math.sqrt(decrement))
            value = _barrier(costs, changes, weight, x)
            while length > least and not _barrier(costs, changes, weight, x * (1 + length * step)) < value:
                length = max(length / 2, least)
            x = x * (1 + length * step)
        if len(changes) <= _GAP * weight * float((costs / x).sum()):
            return x, 1 / slack
        weight *= 10


def _barrier(costs: Floats, changes: Floats, weight: float, x: Floats) -> float:
    """Return weight · Σ costs/x − Σ ln(1 − changes·x); infinity outside."""
    slack = 1 - changes @ x
    if not ((x > 0).all() and (slack > 0).all()):
        return math.inf
    return weight * float((costs / x).sum()) - float(np.log(slack).sum())


def _prove(weights: list[int], units: list[int], changes: list[list[int]], prices: Floats) -> float:
    """Return (Σ √(weight · Σ y·change / unit))² / Σ y, rounded down, for the multipliers y."""
    shares = [Fraction(price) for price in prices.tolist()]
    terms = []
    for weight, unit, column in zip(weights, units, zip(*changes, strict=True), strict=True):
        inner = weight * sum(y * change for y, change in zip(shares, column, strict=True)) / unit
        terms.append(math.sqrt(float(inner) * (1 - 2 * _UNIT)) * (1 - 2 * _UNIT))
    return math.fsum(terms) ** 2 / float(sum(shares)) * (1 - 16 * _UNIT)
