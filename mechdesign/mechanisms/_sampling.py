"""Exact sampling from symmetric noise distributions on the integers.

The probability of an integer k is proportional to exp(-g(|k|)). The non-negative integers are divided into blocks of
2**s consecutive numbers. Each draw takes three steps:

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

import secrets
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arithmetic import decimals
from mechdesign.base._arrays import Flags, Integers
from mechdesign.base._check import as_generator

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
