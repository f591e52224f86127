"""Exact noise on the integers: the two-sided geometric distribution and the discrete Gaussian.

Both distributions are defined by Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020).
The parameters of both distributions are rational. The draws follow the distributions exactly, as
`mechdesign.mechanisms._sampling` explains. The method `mass` encloses the probabilities with any number of bits.
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
# Below this standard deviation, the probabilities of a discrete Gaussian are summed term by term.
_SMALL = 64
_BITS = 128
_LEAST_OUTSIDE = Fraction(1, 10**12)


class DiscreteNoise(ABC):
    """A symmetric noise distribution on the integers with P(k) proportional to exp(-g(|k|)).

    >>> noise = DiscreteGaussian(4)
    >>> isinstance(noise, DiscreteNoise), noise.standard_deviation
    (True, 2.0)
    """

    @abstractmethod
    def exponent(self, k: int) -> Fraction:
        """Return g(k) for k >= 0.

        Args:
            k: A non-negative integer.

        Returns:
            The exact value g(k).
        """

    @property
    @abstractmethod
    def spread(self) -> int:
        """Return the scale of the distribution as an integer, rounded down."""

    @property
    @abstractmethod
    @in_own_arithmetic
    def variance(self) -> float:
        """Return the variance."""

    @abstractmethod
    @in_own_arithmetic
    def half_width(self, confidence: object = 0.95) -> int:
        """Return an integer t with P(|X| <= t) >= confidence.

        The least such integer is returned for `DiscreteLaplace`, and for `DiscreteGaussian` with σ < 64.

        Args:
            confidence: The confidence, above 0 and at most 1 - 1e-12.

        Returns:
            The integer t.

        Raises:
            InputError: The confidence is out of range.
        """

    @property
    def standard_deviation(self) -> float:
        """Return the square root of the variance."""
        return math.sqrt(self.variance)

    def sample(self, size: int, rng: np.random.Generator | int | None = None) -> Integers:
        """Draw independent integers that follow the distribution exactly.

        Args:
            size: The number of draws.
            rng: A NumPy generator or a seed, for rehearsals only. By default the operating system supplies the random
                bits.

        Returns:
            The draws, int64 of shape (size,).
        """
        return draw(self, as_integer(size, "size", 0), source(rng))

    def prepare(self) -> None:
        """Compute and cache the tables for sampling.

        Afterwards `sample` and `add` can fail only if memory or the source of random numbers is exhausted.
        """
        prepare(self)

    def add(self, values: Integers, rng: np.random.Generator | int | None = None) -> Integers:
        """Add independent noise to integer values.

        The sums are clipped to the range ±2**61. Draws beyond ±2**62 are replaced by ±2**62 before the addition. This
        replacement changes no result, because the sums that contain such draws are clipped in either case.

        Args:
            values: Integers of any shape, with magnitudes of at most 2**61.
            rng: A NumPy generator or a seed, for rehearsals only. By default the operating system supplies the random
                bits.

        Returns:
            The clipped sums, int64, in the shape of the values.

        Raises:
            InputError: The magnitude of a value exceeds 2**61.
        """
        if values.size and max(int(values.max()), -int(values.min())) > LARGEST_VALUE:
            raise InputError(
                "values",
                "are too large for the addition of noise",
                bound=f"at most 2**{LARGEST_VALUE.bit_length() - 1}",
            )
        noise = draw(self, values.size, source(rng)).reshape(values.shape)
        noisy: Integers = np.clip(values + noise, -LARGEST_VALUE, LARGEST_VALUE)
        return noisy

    def mass(self, k: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Return a lower and an upper bound on P(k).

        The running time of this method is proportional to the scale of the distribution.

        Args:
            k: An integer.
            bits: The number of bits. The bounds differ by about 2**-bits.

        Returns:
            The fractions low and high with low <= P(k) <= high.
        """
        weight_low, weight_high = exp_minus(self.exponent(abs(k)), bits)
        total_low, total_high = _total(self, bits)
        return Fraction(weight_low, total_high), Fraction(weight_high, total_low)


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """The two-sided geometric distribution P(k) = (1 - q)/(1 + q) · q**|k| with q = exp(-1/b) and a rational scale b.

    Added to integers with ℓ1-sensitivity Δ, this noise guarantees ε-differential privacy if b = Δ/ε (Ghosh, Roughgarden
    and Sundararajan 2009).

    Attributes:
        scale: The scale b, above 0 and at most 2**50.

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
            # The denominator 1 + q needs a lower bound on q. The upper bound `one` exceeds q by at most 2 units.
            return 2 * power * outside.denominator <= outside.numerator * ((1 << _BITS) + max(one - 2, 0))

        # The search starts at a guess in floats; `covers` decides exactly.
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
    """The discrete Gaussian distribution with P(k) proportional to exp(-k²/(2σ²)) and a rational parameter σ².

    Added to integers with ℓ2-sensitivity Δ, this noise guarantees ρ-zero-concentrated differential privacy if
    σ² = Δ²/(2ρ) (Canonne, Kamath and Steinke 2020).

    Attributes:
        sigma_squared: The parameter σ², above 0 and at most 2**100.

    >>> noise = DiscreteGaussian(4)
    >>> noise.variance, noise.half_width(0.95)
    (4.0, 4)
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
        """Return the variance.

        The variance is below σ² by a relative difference of about exp(-2π²σ²), which is negligible for σ >= 2.
        """
        if self.sigma_squared >= 4:
            return float(self.sigma_squared)
        # exp(-700) is negligible compared with 1, so larger exponents are capped.
        numbers = np.arange(0, 100)
        weights = np.exp(-(numbers**2) * min(nearest(1 / (2 * self.sigma_squared)), 700.0))
        return float(2 * (numbers**2 * weights).sum() / (2 * weights.sum() - 1))

    @in_own_arithmetic
    def half_width(self, confidence: object = 0.95) -> int:
        """Return an integer t with P(|X| > t) <= 1 - confidence.

        For σ < 64, t is the least such integer. For larger σ, t follows from the bound P(X >= t + 1) <= P(N(0, σ²) >=
        t) (Canonne, Kamath and Steinke 2020, Proposition 25). For these σ, t can exceed the least such integer by 1.
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


def as_confidence(value: object) -> Fraction:
    """Return a confidence as a fraction; raise InputError unless it is above 0 and at most 1 - 1e-12."""
    number = exact(value, "confidence")
    if not 0 < number <= 1 - _LEAST_OUTSIDE:
        raise InputError("confidence", "is out of range", value=value, bound="above 0 and at most 1 - 1e-12")
    return number


@lru_cache(maxsize=64)
def _total(law: DiscreteNoise, bits: int) -> tuple[int, int]:
    """Return integers that enclose 2**bits · Σ exp(-g(|k|)), where the sum runs over all integers k."""
    low = high = -(1 << bits)
    k = 0
    while True:
        weight_low, weight_high = exp_minus(law.exponent(k), bits)
        low, high = low + 2 * weight_low, high + 2 * weight_high
        k += 1
        if weight_high <= 1:
            break
    # As in `_sampling.thresholds`, a geometric series bounds the remaining weights.
    _, ratio = exp_minus(law.exponent(k) - law.exponent(k - 1), 64)
    return low, high + 2 * -(-weight_high * ratio // ((1 << 64) - ratio))


def _positive(value: object, path: str, largest: int) -> Fraction:
    number = exact(value, path)
    if not 0 < number <= largest:
        raise InputError(
            path, "is out of range", value=value, bound=f"above 0 and at most 2**{largest.bit_length() - 1}"
        )
    return number
