"""Exact draws.

The magnitude |k| is drawn by inversion, a block of 2**s numbers at a time:

1. block j of the non-negative numbers, with probability proportional to w_j = exp(-g(j·2**s));
2. a number k of the block, uniformly, kept with probability exp(-(g(k) - g(j·2**s))), else start again;
3. a sign, uniformly; minus zero starts again.

An accepted number has probability proportional to w_j · exp(-(g(k) - g(j·2**s))) = exp(-g(k)) for each sign. Zero is
accepted with one sign only, so it counts once. This is the stated law. With s = 0, step 2 accepts every number.

**Why it is exact.** Steps 1 and 2 compare a uniform real number U in [0, 1) with a real number t. More random bits of U
can always be drawn, and t can be computed to any precision. In step 1, t = (w_0 + … + w_j) / Σ w. In step 2, t =
exp(-(g(k) - g(j·2**s))). An enclosure [low, high] of 2**64·t has integer bounds from rigorous rounding. The first 64
bits of U decide unless they lie in the enclosure. Then 64 more bits are drawn and t is enclosed as precisely, until
they decide. No floating-point number is used, and no step stops with an approximation. Each decision is exactly that of
U < t.

**Why it is fast.** The words of a million draws are compared with the thresholds by one binary search. Let D = g((j +
1)·2**s) - g(j·2**s). In step 2 most words are below 1 - D·(k - j·2**s)/2**s. This is a lower bound of t, because g is
convex and exp(-x) >= 1 - x. Such words need no exponential. As 2**s is at most 1/32 of the scale, about one word in two
thousand needs one.
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

# Additional bits: the two bounds are then neighbours unless a multiple of 2**-bits is near.
_GUARD_DIGITS = 16


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with low <= 2**bits · exp(-x) <= high and high - low at most 2, for x >= 0.

    The `decimal` module rounds exp correctly. Its argument is the rational x rounded to `digits` digits. This changes
    exp(-x) by a relative error of at most 2x·10**-digits, and x is below the number of bits. Both errors together are
    less than one unit of the last guard bit; the bounds allow two.
    """
    # ln 2 < 1, so that beyond this the power is below 2**-bits.
    if x.numerator >= bits * x.denominator:
        return 0, 1
    fine = bits + _GUARD_DIGITS
    digits = 10 + len(str(bits)) + fine * 30103 // 100000
    context = decimals(digits)
    power = context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    number = int(context.multiply(power, Decimal(1 << fine)))
    return max(number - 2, 0) >> _GUARD_DIGITS, min((number + 2 >> _GUARD_DIGITS) + 1, 1 << bits)


Words = Callable[[int], NDArray[np.uint64]]

# Larger draws are given as this number (a scale of at most 2**50 reaches it with a probability below exp(-4000)).
LARGEST_NOISE = 2**62

_WORD = 64
# Extra bits of the weights, to absorb the errors of a few thousand terms and of the tail.
_GUARD = 40
# Blocks are at most this fraction of the scale.
_FINENESS = 32


class Law(Protocol):
    """A hashable description of a law with P(k) proportional to exp(-g(|k|))."""

    def exponent(self, k: int) -> Fraction:
        """Return g(k) for k >= 0: convex, g(0) = 0, growing at least linearly."""
        ...

    @property
    def spread(self) -> int:
        """Return the scale of the law, rounded down; it determines the size of the blocks."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Thresholds:
    """Enclosures low[j] <= 2**bits · t_j <= high[j] of the probabilities t_j that the block is one of 0, …, j.

    The last of them is for all blocks from there on: its upper bound is 2**bits, which no word reaches.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]


def source(rng: np.random.Generator | int | None) -> Words:
    """Return a function that gives n random words: from the operating system, or from a generator for rehearsals."""
    if rng is None:
        return lambda n: np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)
    generator = as_generator(rng)
    return lambda n: np.frombuffer(generator.bytes(8 * n), dtype=np.uint64)


def draw(law: Law, size: int, words: Words) -> Integers:
    """Return `size` independent draws of the law; see the head of this file."""
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
    """Return the enclosures of the thresholds of step 1 to `bits` bits."""
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
    # By convexity of g later weights fall at least as fast as from this block to the next: a geometric series.
    _, ratio = exp_minus(after - before, _WORD)
    tail = -(-high * ratio // ((1 << _WORD) - ratio))
    total_low, total_high = sums_low[-1], sums_high[-1] + tail
    return Thresholds(
        tuple((one << bits) // total_high for one in sums_low[1:]),
        (*(min(-((-one << bits) // total_low), 1 << bits) for one in sums_high[1:-1]), 1 << bits),
    )


def _candidates(law: Law, size: int, words: Words) -> Integers:
    """Return the accepted draws of `size` trials of the three steps, in order."""
    blocks = _blocks(law, words(size), words)
    # The lowest bit of a word is the sign, those above it the number within the block.
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
    """Perform step 1 for the first words `drawn`."""
    low, last = _arrays(law)
    # The first block whose threshold the word has not surely passed; the word may be within that enclosure.
    blocks: Integers = np.searchsorted(last, drawn, side="left").astype(np.int64)
    for place in np.flatnonzero(drawn >= low[blocks]).tolist():
        blocks[place] = min(_refine_block(law, int(drawn[place]), words), LARGEST_NOISE)
    return blocks


@lru_cache(maxsize=64)
def _arrays(law: Law) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the lower bounds of the thresholds to 64 bits, and the last words that do not pass the upper bounds."""
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
    """Perform step 2 for the first words `drawn`."""
    shift = block_bits(law)
    slopes = _slopes(law)
    # 2**64 - slope·offset, modulo 2**64; the product is below 2**64 wherever the slope is.
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
    """Return upper bounds of 2**64·D/2**s for the blocks of the table, or 0 if D >= 1/2, where the bound is useless."""
    shift = block_bits(law)
    edges = [law.exponent(block << shift) for block in range(len(thresholds(law, _WORD).low) + 1)]
    steps = [after - before for before, after in pairwise(edges)]
    return np.array([0 if 2 * d >= 1 else -(-d * 2 ** (_WORD - shift) // 1) for d in steps], dtype=np.uint64)


def _below_exp(number: int, x: Fraction, words: Words) -> bool:
    """Decide U < exp(-x) for the uniform number U whose first 64 bits are `number`."""
    bits = _WORD
    while True:
        low, high = exp_minus(x, bits)
        if number < low:
            return True
        if number >= high:
            return False
        number, bits = number << _WORD | int(words(1)[0]), bits + _WORD
