"""Exact noise on the integers: the two-sided geometric distribution and the discrete Gaussian.

Both distributions are defined by Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020).
The parameters of both distributions are rational. The draws follow the distributions exactly, as explained below. The
method `mass` encloses the probabilities with any number of bits.

Any symmetric distribution with a probability of k proportional to exp(-g(|k|)) is sampled exactly. The non-negative
integers are divided into blocks of 2**s consecutive numbers. Each draw takes three steps:

1. Draw block j with probability proportional to w_j = exp(-g(j·2**s)).
2. Draw a number k of the block uniformly. Accept it with probability exp(-(g(k) - g(j·2**s))); otherwise start again.
3. Draw a sign uniformly. Start again if the result is minus zero.

For each sign, k is accepted with a probability proportional to w_j · exp(-(g(k) - g(j·2**s))) = exp(-g(k)). Zero is
accepted with the positive sign only. With s = 0, step 2 accepts every number.

**Why it is exact.** Steps 1 and 2 compare a uniform real number U in [0, 1) with a real number t. In step 1, t = (w_0 +
… + w_j) / Σ w. In step 2, t = exp(-(g(k) - g(j·2**s))). The code computes, with rigorous rounding, integers low and
high with low <= 2**64·t <= high. The first 64 bits of U decide the comparison unless they lie between these bounds.
Otherwise, 64 more bits of U are drawn, and t is enclosed with 64 more bits, until the comparison is decided. No
comparison is approximate.

**Why it is fast.** One vectorised binary search compares the words of all draws with the thresholds. Let D = g((j +
1)·2**s) - g(j·2**s). In step 2, t >= 1 - D·(k - j·2**s)/2**s, because g is convex and exp(-x) >= 1 - x. Most words are
below this bound, so they are accepted without computing an exponential. The length of a block is at most 1/32 of the
scale. About one word in two thousand therefore needs an exponential.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arithmetic import decimals, in_own_arithmetic
from mechdesign.base._arrays import Flags, Integers
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, nearest

# The number of additional bits in `exp_minus`. The bounds low and high differ by 1 unless exp(-x) is
# near a multiple of 2**-bits.
_GUARD_DIGITS = 16


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers low and high with low <= 2**bits · exp(-x) <= high and high - low <= 2, for x >= 0.

    The `decimal` module rounds exp correctly. The argument of exp is x, rounded to `digits` digits. This rounding
    changes exp(-x) by a relative error of at most 2x·10**-digits, where x is below the number of bits. The sum of this
    error and of the error of exp is less than one unit of the last guard bit. The bounds allow for two units.
    """
    # For x >= bits, exp(-x) is below 2**-bits, because ln 2 < 1.
    if x.numerator >= bits * x.denominator:
        return 0, 1
    fine = bits + _GUARD_DIGITS
    digits = 10 + len(str(bits)) + fine * 30103 // 100000
    context = decimals(digits)
    power = context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    number = int(context.multiply(power, Decimal(1 << fine)))
    return max(number - 2, 0) >> _GUARD_DIGITS, min((number + 2 >> _GUARD_DIGITS) + 1, 1 << bits)


Words = Callable[[int], NDArray[np.uint64]]

# Draws of a larger magnitude are replaced by this number. Scales are at most 2**50, so such a draw has a probability
# below exp(-4000).
LARGEST_NOISE = 2**62

_WORD = 64
# The number of additional bits of the weights, which absorb the rounding errors of a few thousand terms and the error
# of the tail.
_GUARD = 40
# A block contains at most the scale divided by this number.
_FINENESS = 32


class Law(Protocol):
    """A hashable noise distribution with P(k) proportional to exp(-g(|k|))."""

    def exponent(self, k: int) -> Fraction:
        """Return g(k) for k >= 0; g is convex with g(0) = 0 and grows at least linearly."""
        ...

    @property
    def spread(self) -> int:
        """Return the scale of the distribution, rounded down; it determines the size of the blocks."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Thresholds:
    """Enclosures low[j] <= 2**bits · t_j <= high[j] of the probabilities t_j that the block is one of 0, …, j.

    The last entry covers its block and all later blocks. The upper bound of this entry is 2**bits, which exceeds every
    word.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]


def source(rng: np.random.Generator | int | None) -> Words:
    """Return a function that draws n random words from the operating system, or from a generator for rehearsals."""
    if rng is None:
        return lambda n: np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)
    generator = as_generator(rng)
    return lambda n: np.frombuffer(generator.bytes(8 * n), dtype=np.uint64)


def draw(law: Law, size: int, words: Words) -> Integers:
    """Return `size` independent draws from a distribution, by the three steps at the top of this file."""
    pieces: list[Integers] = []
    missing = size
    while missing > 0:
        kept = _candidates(law, missing + missing // 8 + 16, words)[:missing]
        pieces.append(kept)
        missing -= len(kept)
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)


def prepare(law: Law) -> None:
    """Compute and cache the tables that `draw` uses."""
    _arrays(law)
    if block_bits(law):
        _slopes(law)


def block_bits(law: Law) -> int:
    """Return s; each block contains 2**s numbers."""
    return max(0, (law.spread // _FINENESS).bit_length() - 1)


@lru_cache(maxsize=256)
def thresholds(law: Law, bits: int) -> Thresholds:
    """Return lower and upper bounds on the thresholds of step 1, multiplied by 2**bits and rounded to integers."""
    shift, work = block_bits(law), bits + _GUARD
    sums_low, sums_high = [0], [0]
    before = Fraction(0)
    while True:
        number = len(sums_low)
        low, high = exp_minus(before, work)
        sums_low.append(sums_low[-1] + low)
        sums_high.append(sums_high[-1] + high)
        after = law.exponent(number << shift)
        if high <= 1:
            break
        before = after
    # As g is convex, the ratios of consecutive weights do not increase. A geometric series bounds the later weights.
    _, ratio = exp_minus(after - before, _WORD)
    tail = -(-high * ratio // ((1 << _WORD) - ratio))
    total_low, total_high = sums_low[-1], sums_high[-1] + tail
    return Thresholds(
        tuple((one << bits) // total_high for one in sums_low[1:]),
        (*(min(-((-one << bits) // total_low), 1 << bits) for one in sums_high[1:-1]), 1 << bits),
    )


def _candidates(law: Law, size: int, words: Words) -> Integers:
    """Perform the three steps `size` times and return the accepted numbers in order."""
    blocks = _blocks(law, words(size), words)
    # The lowest bit of a word gives the sign; the next bits give the offset within the block.
    signs = words(size)
    shift = block_bits(law)
    if shift:
        offsets = (signs >> np.uint64(1)) & np.uint64((1 << shift) - 1)
        kept = _accept(law, blocks, offsets, words(size), words)
        magnitudes = (blocks << shift) + offsets.astype(np.int64)
        magnitudes[blocks > LARGEST_NOISE >> shift] = LARGEST_NOISE
    else:
        magnitudes = blocks
        kept = np.ones(size, dtype=np.bool_)
    negative = (signs & np.uint64(1)).astype(np.bool_)
    kept &= (magnitudes != 0) | ~negative
    return np.where(negative, -magnitudes, magnitudes)[kept]


def _blocks(law: Law, drawn: NDArray[np.uint64], words: Words) -> Integers:
    """Perform step 1: return the block of each word in `drawn`, which gives the first 64 bits of U."""
    low, last = _arrays(law)
    # Find the first block whose upper bound exceeds the word. If the word is not below the lower bound of this block,
    # more bits are needed.
    blocks: Integers = np.searchsorted(last, drawn, side="left").astype(np.int64)
    for place in np.flatnonzero(drawn >= low[blocks]).tolist():
        blocks[place] = min(_refine_block(law, int(drawn[place]), words), LARGEST_NOISE)
    return blocks


@lru_cache(maxsize=64)
def _arrays(law: Law) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the 64-bit lower bounds of the thresholds, and the largest words below their upper bounds."""
    table = thresholds(law, _WORD)
    return np.array(table.low, dtype=np.uint64), np.array([high - 1 for high in table.high], dtype=np.uint64)


def _refine_block(law: Law, number: int, words: Words) -> int:
    bits = _WORD
    while True:
        number, bits = number << _WORD | int(words(1)[0]), bits + _WORD
        table = thresholds(law, bits)
        block = bisect_right(table.high, number)
        if number < table.low[block]:
            return block


def _accept(law: Law, blocks: Integers, offsets: NDArray[np.uint64], drawn: NDArray[np.uint64], words: Words) -> Flags:
    """Perform step 2: return whether each offset is accepted; `drawn` gives the first 64 bits of U."""
    shift = block_bits(law)
    slopes = _slopes(law)
    # The lower bound 2**64 - slope·offset is computed modulo 2**64. The product slope·offset is below 2**64.
    steep = slopes[np.minimum(blocks, len(slopes) - 1)]
    sure = drawn < np.uint64(0) - steep * offsets
    sure &= (steep > 0) & (blocks < len(slopes))
    sure |= offsets == 0
    for place in np.flatnonzero(~sure).tolist():
        start = int(blocks[place]) << shift
        lost = law.exponent(start + int(offsets[place])) - law.exponent(start)
        sure[place] = _below_exp(int(drawn[place]), lost, words)
    return sure


@lru_cache(maxsize=64)
def _slopes(law: Law) -> NDArray[np.uint64]:
    """Return an upper bound on 2**64·D/2**s for each block; 0 for blocks with D >= 1/2, which do not use it."""
    shift = block_bits(law)
    edges = [law.exponent(block << shift) for block in range(len(thresholds(law, _WORD).low) + 1)]
    steps = [after - before for before, after in pairwise(edges)]
    return np.array([0 if 2 * d >= 1 else -(-d * 2 ** (_WORD - shift) // 1) for d in steps], dtype=np.uint64)


def _below_exp(number: int, x: Fraction, words: Words) -> bool:
    """Return whether U < exp(-x) for a uniform U whose first 64 bits are `number`; draw more bits if needed."""
    bits = _WORD
    while True:
        low, high = exp_minus(x, bits)
        if number < low:
            return True
        if number >= high:
            return False
        number, bits = number << _WORD | int(words(1)[0]), bits + _WORD


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

    @abstractmethod
    def describe(self, step: Fraction) -> str:
        """Return the name of the distribution, and its scale in the unit of a step.

        Args:
            step: The length of a step; the noise is an integer number of steps.

        Returns:
            The name and the scale.
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

    def describe(self, step: Fraction) -> str:
        return f"two-sided geometric noise of scale {float(self.scale * step):.6g}"


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

    def describe(self, step: Fraction) -> str:
        return f"discrete Gaussian noise of standard deviation {self.standard_deviation * float(step):.6g}"


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
