"""The claims of a mechanism: bounds between pairs of secrets, and floors on the error of attacks.

A `PairBound` has ordered pairs of secrets and a factor for each pair. An `ExponentBound` has factors exp(ε·w), and a
`RatioBound` has rational factors. Privacy is decided with lower bounds on the factors, and the cost is bounded with
upper bounds on the factors. A `Floor` is a lower bound on the expected error of the best attack. `Dithered`, in
`mechdesign.certify._dithering`, is a claim on all points between the corners of a grid. `mechdesign.certify._stated`
reduces every requirement to these claims.
"""

from __future__ import annotations

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
from mechdesign.certify._exact import exact, exact_text, float_above, nearest
from mechdesign.certify._exponential import SHIFT, exp_lower, exp_upper, ln_lower

# Limit on numerators and denominators, which the floating-point filter in `_privacy` requires.
_MAX_TERM = 2**63


class PairBound(ABC):
    """The claim p(o|s) <= g p(o|t) for all observables o and all listed ordered pairs (s, t), each with its factor g.

    Every factor is at least 1. A pair that is listed twice has two bounds.

    Attributes:
        kind: The name of the requirement.
        sources: The secrets s (k,), int64.
        targets: The secrets t (k,), int64.
        number: The name of the number that determines the factors; `nominal` is its value.

    >>> from fractions import Fraction
    >>> len(PairBound.metric(Fraction(1), [[0, 1], [1, 0]]))
    2
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
        """The exact value of the number that determines the factors, such as ε."""

    @property
    @abstractmethod
    def exponents(self) -> Floats:
        """The logarithms ln g as floats (k,), for solvers and figures; proofs use the factors only."""

    @property
    @abstractmethod
    def terms(self) -> tuple[Floats | Integers, ...]:
        """The arrays that determine the factors exactly, together with the pairs and the number `nominal`."""

    @abstractmethod
    def factors_below(self, exponent: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return lower bounds A/B on the factors.

        Args:
            exponent: The numerators of the channel are at most 2**exponent. A factor of at least 2**exponent therefore
                only requires p(o|s) = 0 wherever p(o|t) = 0.

        Returns:
            Python integers A and B, each (k,), with 1 <= A/B <= g, or A/B = 2**exponent if g is larger.
        """

    @abstractmethod
    def factors_above(self) -> Floats:
        """Return upper bounds on the factors g as exact float64 numbers (k,), or infinity."""

    @abstractmethod
    def sentence(self, place: int) -> str:
        """Return the factor of a pair as a formula for messages.

        Args:
            place: Index of the pair.

        Returns:
            The formula.
        """

    @staticmethod
    def metric(epsilon: Fraction, distance: ArrayLike) -> ExponentBound:
        """Bound every ordered pair of different secrets at a finite distance by ε times that distance.

        Args:
            epsilon: ε, above 0, in nats per unit of distance.
            distance: Distances (n, n). The diagonal is ignored, and an infinite distance is not a bound.

        Returns:
            The bound.
        """
        array = square(distance)
        sources, targets = np.nonzero(np.isfinite(array) & ~np.eye(len(array), dtype=np.bool_))
        return ExponentBound("metric", epsilon, sources, targets, array[sources, targets])

    @staticmethod
    def threshold(epsilon: Fraction, distance: ArrayLike, radius: Fraction) -> ExponentBound:
        """Bound every ordered pair of different secrets at a distance of at most `radius` by ε.

        Args:
            epsilon: ε, above 0, in nats.
            distance: Distances (n, n).
            radius: The radius, rounded to the nearest float64, so that a stored distance of 0.1 is within a radius of
                0.1.

        Returns:
            The bound.
        """
        array = square(distance)
        within = np.isfinite(array) & (array <= nearest(radius))
        sources, targets = np.nonzero(within & ~np.eye(len(array), dtype=np.bool_))
        return ExponentBound("threshold", epsilon, sources, targets, np.ones(len(sources)))

    @staticmethod
    def graph(epsilon: Fraction, n: int, edges: ArrayLike) -> ExponentBound:
        """Bound the two ends of every edge, in both directions, by ε.

        Args:
            epsilon: ε, above 0, in nats.
            n: Number of secrets.
            edges: Indices below `n`, shape (k, 2). Loops are ignored, and repeated edges count once.

        Returns:
            The bound.
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

    Args:
        kind: The name of the requirement.
        epsilon: ε, above 0.
        sources: The secrets s (k,), int64.
        targets: The secrets t (k,), int64.
        weights: w (k,), finite float64 >= 0, used as exact binary numbers.

    Raises:
        InputError: An argument is out of range, or lengths differ.

    >>> from fractions import Fraction
    >>> ExponentBound("metric", Fraction(1), [0], [1], [2.0]).sentence(0)
    'exp(1 · 2.0)'
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
        """ε·w, within one unit in the last place; infinite beyond the largest float."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            exponents: Floats = np.where(self.weights > 0, nearest(self.epsilon) * self.weights, 0.0)
        return exponents

    @property
    def terms(self) -> tuple[Floats | Integers, ...]:
        """The weights w of the pairs."""
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
    """A bound on pairs with rational factors, decided without exponentials: B·p(o|s) <= factor·A·p(o|t).

    Args:
        kind: The name of the requirement.
        factor: The common factor; its numerator and denominator are below 2**63.
        sources: The secrets s (k,), int64.
        targets: The secrets t (k,), int64.
        numerators: A (k,), int64 >= 1.
        denominators: B (k,), int64 >= 1. No channel could meet factor·A/B < 1, since all its rows sum to 1.

    Raises:
        InputError: An argument is out of range, or lengths differ.

    >>> from fractions import Fraction
    >>> RatioBound("ratios", Fraction(3, 2), [0], [1], [2], [1]).sentence(0)
    '3'
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
        if self.factor <= 0 or max(self.factor.as_integer_ratio()) >= _MAX_TERM:
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
        """Lower bounds on the logarithms ln g; a channel that meets them also meets the factors."""
        known: dict[Fraction, float] = {}
        for factor in (factors := self._factors()):
            known.setdefault(factor, ln_lower(*factor.as_integer_ratio()))
        return np.array([known[factor] for factor in factors], dtype=np.float64)

    @property
    def terms(self) -> tuple[Floats | Integers, ...]:
        """The numerators A and the denominators B of the factors."""
        return self.numerators, self.denominators

    def factors_below(self, exponent: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return the factors, which are rational, without rounding."""
        terms = np.array([factor.as_integer_ratio() for factor in self._factors()], dtype=object).reshape(-1, 2)
        return terms[:, 0], terms[:, 1]

    def factors_above(self) -> Floats:
        """Return the factors, rounded up."""
        return np.array([float_above(factor) for factor in self._factors()], dtype=np.float64)

    def sentence(self, place: int) -> str:
        """Return the factor of a pair."""
        return str(self._factors()[place])

    def _factors(self) -> list[Fraction]:
        terms = zip(self.numerators.tolist(), self.denominators.tolist(), strict=True)
        return [self.factor * Fraction(a, b) for a, b in terms]


@dataclass(frozen=True, eq=False)
class Floor:
    """The claim Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s) >= minimum: no attack has a smaller expected error.

    Args:
        minimum: The least expected error, at least 0.
        error: a (k, n), finite float64 >= 0, used as exact binary numbers; rows are estimates ŝ, columns are secrets s.
        kind: The name of the requirement.
        prior: The adversary's prior (n,), or None for the prior of the problem.

    Raises:
        InputError: An argument is out of range, or lengths differ.

    >>> from fractions import Fraction
    >>> Floor(Fraction(1, 2), [[0, 1], [1, 0]]).nominal
    Fraction(1, 2)
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
        """The exact value of `minimum`, the least expected error."""
        return self.minimum

    def prior_or(self, prior: Floats) -> Floats:
        """Return the adversary's prior.

        Args:
            prior: The prior of the problem (n,).

        Returns:
            The prior of the floor if it has one, else `prior`.
        """
        return prior if self.prior is None else self.prior


Claim = PairBound | Floor | Dithered


def square(distance: ArrayLike) -> Floats:
    """Return a square matrix of distances (n, n), which are not negative and may be infinite."""
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
