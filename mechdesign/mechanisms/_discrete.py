"""Noise on the integers: the two-sided geometric law and the discrete Gaussian, exactly.

Both laws are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020). Their
parameters are rational, their draws follow them exactly (`mechdesign.mechanisms._sampling` says why), and their masses
can be enclosed to any number of bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, nearest
from mechdesign.mechanisms._sampling import draw, exp_minus, prepare, source

LARGEST_VALUE = 2**61

_LARGEST_SCALE = 2**50
# Up to here sums over the whole law are taken term by term.
_SMALL = 64
_BITS = 128
_LEAST_OUTSIDE = Fraction(1, 10**12)


class DiscreteNoise(ABC):
    """A symmetric law on the integers, P(k) proportional to exp(-g(|k|))."""

    @abstractmethod
    def exponent(self, k: int) -> Fraction:
        """Return g(k) for k >= 0."""

    @property
    @abstractmethod
    def spread(self) -> int:
        """Return the scale of the law, rounded down."""

    @property
    @abstractmethod
    @in_own_arithmetic
    def variance(self) -> float:
        """Return the variance."""

    @abstractmethod
    @in_own_arithmetic
    def half_width(self, confidence: object = 0.95) -> int:
        """Return an integer t with P(|X| <= t) >= confidence, the least one where the law says so.

        Raises InputError unless 0 < confidence <= 1 - 1e-12.
        """

    @property
    def standard_deviation(self) -> float:
        """Return the square root of the variance."""
        return math.sqrt(self.variance)

    def sample(self, size: int, rng: np.random.Generator | int | None = None) -> Integers:
        """Draw independent numbers, exactly: int64 of shape (size,).

        Args:
            size: how many.
            rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        """
        return draw(self, as_integer(size, "size", 0), source(rng))

    def prepare(self) -> None:
        """Compute and cache the tables for drawing. Later draws can fail only if memory or random numbers run out."""
        prepare(self)

    def add(self, values: Integers, rng: np.random.Generator | int | None = None) -> Integers:
        """Return integer values with independent noise on each.

        The result is the sum clipped to ±`LARGEST_VALUE`. Draws too large for an int64 are saturated, and no sum with
        them is inside: so this is a function of the exact sum alone.

        Raises InputError for a value of magnitude above `LARGEST_VALUE`.
        """
        if values.size and max(int(values.max()), -int(values.min())) > LARGEST_VALUE:
            raise InputError(
                "values", "are too large to be protected", bound=f"at most 2**{LARGEST_VALUE.bit_length() - 1}"
            )
        noise = draw(self, values.size, source(rng)).reshape(values.shape)
        noisy: Integers = np.clip(values + noise, -LARGEST_VALUE, LARGEST_VALUE)
        return noisy

    def mass(self, k: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Enclose P(k): return fractions low <= P(k) <= high, about 2**-bits apart.

        Takes time in proportion to the scale.
        """
        weight_low, weight_high = exp_minus(self.exponent(abs(k)), bits)
        total_low, total_high = _total(self, bits)
        return Fraction(weight_low, total_high), Fraction(weight_high, total_low)


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """The two-sided geometric law of a rational scale b: P(k) = (1 - q)/(1 + q) · q**|k|, q = exp(-1/b).

    Added to integers of ℓ1-sensitivity Δ it gives ε-privacy with b = Δ/ε (Ghosh, Roughgarden and Sundararajan 2009).

    >>> noise = DiscreteLaplace(2)
    >>> round(noise.variance, 4), noise.half_width(0.95)
    (7.8354, 6)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive(self.scale, "scale", _LARGEST_SCALE))

    def exponent(self, k: int) -> Fraction:
        """Return k/b."""
        return k / self.scale

    @property
    def spread(self) -> int:
        """Return b, rounded down."""
        return int(self.scale)

    @property
    @in_own_arithmetic
    def variance(self) -> float:
        """Return 2q/(1 - q)² = 1/(2 sinh²(1/2b))."""
        half = nearest(1 / (2 * self.scale))
        return 0.0 if half > 350 else 0.5 / math.sinh(half) ** 2

    @in_own_arithmetic
    def half_width(self, confidence: object = 0.95) -> int:
        """Return the least integer t with P(|X| > t) = 2q**(t + 1)/(1 + q) <= 1 - confidence."""
        outside = 1 - as_confidence(confidence)
        _, one = exp_minus(1 / self.scale, _BITS)
        guess = float(self.scale) * math.log(2 / (float(outside) * (1 + math.exp(-nearest(1 / self.scale))))) - 1

        def covers(t: int) -> bool:
            _, power = exp_minus((t + 1) / self.scale, _BITS)
            # The denominator needs a lower bound of q: `one` is an upper bound, at most 2 units above q.
            return 2 * power * outside.denominator <= outside.numerator * ((1 << _BITS) + max(one - 2, 0))

        # The guess in floats is only the start of the search; `covers` decides exactly.
        t = max(0, round(guess))
        while not covers(t):
            t += 1
        while t and covers(t - 1):
            t -= 1
        return t

    def __str__(self) -> str:
        return f"two-sided geometric noise of scale {float(self.scale):.6g}"


@dataclass(frozen=True)
class DiscreteGaussian(DiscreteNoise):
    """The discrete Gaussian of a rational parameter σ²: P(k) proportional to exp(-k²/(2σ²)).

    Added to integers of ℓ2-sensitivity Δ it gives ρ-zCDP with σ² = Δ²/(2ρ) (Canonne, Kamath and Steinke 2020).
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", _positive(self.sigma_squared, "sigma_squared", _LARGEST_SCALE**2))

    def exponent(self, k: int) -> Fraction:
        """Return k²/(2σ²)."""
        return k * k / (2 * self.sigma_squared)

    @property
    def spread(self) -> int:
        """Return σ, rounded down."""
        return math.isqrt(int(self.sigma_squared))

    @property
    @in_own_arithmetic
    def variance(self) -> float:
        """Return the variance, which is below σ² (by a part of exp(-2π²σ²) or so: nothing from σ = 2 on)."""
        if self.sigma_squared >= 4:
            return float(self.sigma_squared)
        # exp(-700) is negligible compared with 1, so larger exponents are capped.
        numbers = np.arange(0, 100)
        weights = np.exp(-(numbers**2) * min(nearest(1 / (2 * self.sigma_squared)), 700.0))
        return float(2 * (numbers**2 * weights).sum() / (2 * weights.sum() - 1))

    @in_own_arithmetic
    def half_width(self, confidence: object = 0.95) -> int:
        """Return an integer t with P(|X| > t) <= 1 - confidence, the least one up to σ = 64.

        Beyond, it rests on P(X >= t + 1) <= P(N(0, σ²) >= t) (Canonne, Kamath and Steinke 2020, Proposition 25), and
        may be one more than needed.
        """
        outside = 1 - as_confidence(confidence)
        if self.spread >= _SMALL:
            tail = NormalDist().inv_cdf(float(outside) / 2)
            return math.ceil(-tail * math.sqrt(self.sigma_squared) * (1 + 1e-9))
        total_low, total_high = _total(self, _BITS)
        covered, t = 0, -1
        while total_high - covered > outside * total_low:
            t += 1
            low, _ = exp_minus(self.exponent(t), _BITS)
            covered += low if t == 0 else 2 * low
        return t

    def __str__(self) -> str:
        return f"discrete Gaussian noise of standard deviation {self.standard_deviation:.6g}"


def as_confidence(value: object, path: str = "confidence") -> Fraction:
    """Return a confidence as a fraction; raise InputError unless it is above 0 and at most 1 - 1e-12."""
    number = exact(value, path)
    if not 0 < number <= 1 - _LEAST_OUTSIDE:
        raise InputError(path, "is out of range", value=value, bound="above 0 and at most 1 - 1e-12")
    return number


@lru_cache(maxsize=64)
def _total(law: DiscreteNoise, bits: int) -> tuple[int, int]:
    """Enclose 2**bits · Σ exp(-g(|k|)) over all integers k."""
    low = high = -(1 << bits)
    k = 0
    while True:
        weight_low, weight_high = exp_minus(law.exponent(k), bits)
        low, high = low + 2 * weight_low, high + 2 * weight_high
        k += 1
        if weight_high <= 1:
            break
    # As in `sampling.thresholds`: from here on a geometric series at worst.
    _, ratio = exp_minus(law.exponent(k) - law.exponent(k - 1), 64)
    return low, high + 2 * -(-weight_high * ratio // ((1 << 64) - ratio))


def _positive(value: object, path: str, largest: int) -> Fraction:
    number = exact(value, path)
    if not 0 < number <= largest:
        raise InputError(
            path, "is out of range", value=value, bound=f"above 0 and at most 2**{largest.bit_length() - 1}"
        )
    return number
