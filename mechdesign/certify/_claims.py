"""What a mechanism claims: bounds between pairs of secrets, and floors on what an attacker can do.

A bound on pairs is either an `ExponentBound`, with factors exp(ε·w), or a `RatioBound`, with factors that are rational
numbers. Both are a `PairBound`: ordered pairs of secrets, and for each of them a factor that can be enclosed from below
(to decide whether a channel is private) and from above (to prove a lower bound of the cost). A `Floor` bounds the
expected error of the best attack from below. `Dithered`, in `mechdesign.certify._dithering`, is about all points
between secrets that are the corners of a grid. Proofs need no more than these; how requirements are written down, so
that they come to one of these, is in `mechdesign.certify._stated`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import (
    Floats,
    Integers,
    as_distribution,
    as_nonnegative,
    as_whole_numbers,
    require_below,
    require_same_length,
)
from mechdesign.base._errors import InputError
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.certify._exponential import SHIFT, exp_lower, exp_upper, ln_lower

# Numerators and denominators of exact factors: small enough for the floats that sift rows (see `privacy`).
_LARGEST_TERM = 2**63


class PairBound(ABC):
    """The claim p(o|s) <= g p(o|t) for all observables o and all listed ordered pairs (s, t), with a factor g for each.

    `sources` (s) and `targets` (t) are int64 of shape (k,), and every factor is at least 1. A pair listed twice has two
    bounds. `number` names what the factors follow from, which the claim states as `nominal`.
    """

    kind: str
    sources: Integers
    targets: Integers
    number: ClassVar[str]

    def __len__(self) -> int:
        return len(self.sources)

    @property
    @abstractmethod
    def nominal(self) -> Fraction:
        """The exact number that the claim states."""

    @property
    @abstractmethod
    def exponents(self) -> Floats:
        """The logarithms ln g as floats (k,), for solvers and pictures: what is proved rests on the factors alone."""

    @property
    @abstractmethod
    def terms(self) -> tuple[Floats | Integers, ...]:
        """The arrays that, beside the number and the pairs, say exactly what the factors are."""

    @abstractmethod
    def factors_below(self, exponent: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return Python integers A and B, each (k,), with 1 <= A/B <= g, or A/B = 2**exponent where g is above that.

        Between numerators of at most 2**exponent a factor of that size only says that zero goes with zero, as any
        larger one does.
        """

    @abstractmethod
    def factors_above(self) -> Floats:
        """Return float64 numbers (k,) that are at least g, as binary numbers; infinite where floats end."""

    @abstractmethod
    def sentence(self, place: int) -> str:
        """Write the factor of pair `place` as a formula for people."""

    @staticmethod
    def metric(epsilon: Fraction, distance: ArrayLike) -> ExponentBound:
        """Bound every ordered pair of different secrets at a finite distance by ε times that distance.

        `distance` has shape (n, n); its diagonal is ignored, and an infinite distance asks for nothing.
        """
        array = square(distance)
        sources, targets = np.nonzero(np.isfinite(array) & ~np.eye(len(array), dtype=np.bool_))
        return ExponentBound("metric", epsilon, sources, targets, array[sources, targets])

    @staticmethod
    def threshold(epsilon: Fraction, distance: ArrayLike, radius: Fraction) -> ExponentBound:
        """Bound every ordered pair of different secrets at a distance of at most `radius` by ε.

        Distances are compared with the float64 nearest to `radius`: a stored distance of 0.1 is within a radius of 0.1.
        """
        array = square(distance)
        within = np.isfinite(array) & (array <= nearest(radius))
        sources, targets = np.nonzero(within & ~np.eye(len(array), dtype=np.bool_))
        return ExponentBound("threshold", epsilon, sources, targets, np.ones(len(sources)))

    @staticmethod
    def graph(epsilon: Fraction, n: int, edges: ArrayLike) -> ExponentBound:
        """Bound the two ends of every edge, in both directions, by ε.

        `edges` has shape (k, 2) with indices below `n`; self-loops are ignored and repeated edges count once.
        """
        array = pairs(edges, "edges")
        require_below(array, n, "edges")
        keys = np.unique(np.concatenate([array[:, 0] * n + array[:, 1], array[:, 1] * n + array[:, 0]]))
        sources, targets = keys // n, keys % n
        proper = sources != targets
        return ExponentBound("graph", epsilon, sources[proper], targets[proper], np.ones(int(proper.sum())))


@dataclass(frozen=True, eq=False)
class ExponentBound(PairBound):
    """A bound on pairs with factors exp(ε·w): p(o|s) <= exp(ε·w) p(o|t).

    Arrays of shape (k,): `sources` (s) and `targets` (t), int64, and `weights` (w), finite float64 >= 0 taken exactly.
    `epsilon` is positive. Raises `InputError` for anything else.
    """

    kind: str
    epsilon: Fraction
    sources: Integers
    targets: Integers
    weights: Floats
    number: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, "epsilon"))
        if self.epsilon <= 0:
            raise InputError("epsilon", "is not positive", value=str(self.epsilon), bound="above 0")
        object.__setattr__(self, "sources", as_whole_numbers(self.sources, "sources", 1))
        object.__setattr__(self, "targets", as_whole_numbers(self.targets, "targets", 1))
        object.__setattr__(self, "weights", as_nonnegative(self.weights, "weights", 1))
        require_same_length("pairs", sources=self.sources, targets=self.targets, weights=self.weights)

    @property
    def nominal(self) -> Fraction:
        """ε."""
        return self.epsilon

    @property
    def exponents(self) -> Floats:
        """ε·w to the nearest float or next to it, infinite beyond the largest one."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            exponents: Floats = np.where(self.weights > 0, nearest(self.epsilon) * self.weights, 0.0)
        return exponents

    @property
    def terms(self) -> tuple[Floats | Integers, ...]:
        """The weights."""
        return (self.weights,)

    def factors_below(self, exponent: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return lower bounds of exp(ε·w) as multiples of 2**-SHIFT."""
        return exp_lower(self.epsilon, self.weights, exponent), np.full(len(self), 1 << SHIFT, dtype=object)

    def factors_above(self) -> Floats:
        """Return exp(ε·w), rounded up."""
        return exp_upper(self.epsilon, self.weights)

    def sentence(self, place: int) -> str:
        """Return exp(ε · w)."""
        return f"exp({exact_text(self.epsilon)} · {float(self.weights[place])!r})"


@dataclass(frozen=True, eq=False)
class RatioBound(PairBound):
    """A bound on pairs with rational factors, decided without any exponential: B·p(o|s) <= factor·A·p(o|t).

    Arrays of shape (k,): `sources` (s), `targets` (t), and `numerators` (A) and `denominators` (B), int64 >= 1.
    `factor` has terms below 2**63, and factor·A/B is nowhere below 1, which no channel could meet: its rows have equal
    sums. Raises `InputError` for anything else.
    """

    kind: str
    factor: Fraction
    sources: Integers
    targets: Integers
    numerators: Integers
    denominators: Integers
    number: ClassVar[str] = "factor"

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", exact(self.factor, "factor"))
        if self.factor <= 0 or max(self.factor.as_integer_ratio()) >= _LARGEST_TERM:
            bound = "above 0, with a numerator and a denominator below 2**63"
            raise InputError("factor", "is out of range", value=str(self.factor), bound=bound)
        for name, least in (("sources", 0), ("targets", 0), ("numerators", 1), ("denominators", 1)):
            object.__setattr__(self, name, as_whole_numbers(getattr(self, name), name, 1, minimum=least))
        require_same_length(
            "pairs",
            sources=self.sources,
            targets=self.targets,
            numerators=self.numerators,
            denominators=self.denominators,
        )
        for place, factor in enumerate(self._factors()):
            if factor < 1:
                raise InputError(f"pairs[{place}]", "has a factor below 1", value=str(factor), bound="at least 1")

    @property
    def nominal(self) -> Fraction:
        """The factor that all pairs share."""
        return self.factor

    @property
    def exponents(self) -> Floats:
        """Lower bounds of the logarithms, so that whoever keeps them keeps the factors."""
        known: dict[Fraction, float] = {}
        for factor in (factors := self._factors()):
            known.setdefault(factor, ln_lower(*factor.as_integer_ratio()))
        return np.array([known[factor] for factor in factors], dtype=np.float64)

    @property
    def terms(self) -> tuple[Floats | Integers, ...]:
        """Numerators and denominators."""
        return self.numerators, self.denominators

    def factors_below(self, exponent: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return the factors themselves."""
        terms = np.array([factor.as_integer_ratio() for factor in self._factors()], dtype=object).reshape(-1, 2)
        return terms[:, 0], terms[:, 1]

    def factors_above(self) -> Floats:
        """Return the factors, rounded up."""
        return np.array([_float_above(factor) for factor in self._factors()], dtype=np.float64)

    def sentence(self, place: int) -> str:
        """Return the factor of a pair."""
        return str(self._factors()[place])

    def _factors(self) -> list[Fraction]:
        terms = zip(self.numerators.tolist(), self.denominators.tolist(), strict=True)
        return [self.factor * Fraction(a, b) for a, b in terms]


@dataclass(frozen=True, eq=False)
class Floor:
    """The claim Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s) >= minimum: no attack has a smaller expected error.

    `error` holds a, float64 of shape (k, n): rows are estimates ŝ, columns secrets s; finite, not negative, taken
    exactly. `minimum` is not negative. `prior` (n,) is what the adversary believes, or None where that is the prior of
    the problem. Raises `InputError` for anything else.
    """

    minimum: Fraction
    error: Floats
    kind: str = "distortion"
    prior: Floats | None = None
    number: ClassVar[str] = "minimum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", exact(self.minimum, "minimum"))
        if self.minimum < 0:
            raise InputError("minimum", "is negative", value=str(self.minimum), bound="at least 0")
        object.__setattr__(self, "error", as_nonnegative(self.error, "error", 2))
        if not len(self.error):
            raise InputError("error", "has no rows", value=self.error.shape, bound="at least one estimate")
        if self.prior is not None:
            object.__setattr__(self, "prior", as_distribution(self.prior, "prior"))
            if len(self.prior) != self.error.shape[1]:
                raise InputError("prior", "has another length", value=len(self.prior), bound=f"{self.error.shape[1]}")

    @property
    def nominal(self) -> Fraction:
        """The exact number that the claim states."""
        return self.minimum

    def prior_or(self, prior: Floats) -> Floats:
        """Return the floor's own prior where it has one, else `prior`, that of the problem."""
        return prior if self.prior is None else self.prior


Claim = PairBound | Floor | Dithered


def square(distance: ArrayLike) -> Floats:
    """Return a matrix of distances (n, n), not negative, infinite ones among them."""
    array = as_nonnegative(distance, "distance", 2, infinite=True)
    if array.shape[0] != array.shape[1]:
        raise InputError("distance", "is not square", value=array.shape, bound="an array of shape (n, n)")
    return array


def pairs(values: ArrayLike, path: str) -> Integers:
    """Return pairs of secrets, int64 of shape (k, 2)."""
    array = as_whole_numbers(values, path, 2)
    if array.shape[1] != 2:
        raise InputError(path, "are not pairs", value=array.shape, bound="an array of shape (k, 2)")
    return array


def _float_above(fraction: Fraction) -> float:
    """Return the least float64 that is not below a positive fraction."""
    number = nearest(fraction)
    return number if number == math.inf or Fraction(number) >= fraction else math.nextafter(number, math.inf)
