"""The tight ε of a channel of exact rows, and the pair of secrets that it is tight for.

Floats find candidates, exact fractions decide. With u = 2**-53 the float ratio of two probabilities, apart from powers
of two, is within 8u of the true one, and its logarithm within 16u + 4u·|ln|: pairs whose rate comes within `_BLUR` of
the largest are compared as fractions, those of one weight with each other, and by rigorous logarithms where weights
differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.rows import Rows
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._exact import float_up
from mechdesign.certify._exponential import ln_below
from mechdesign.certify._exponential import ln_upper
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["LARGEST", "Tight", "Witness", "rates", "tight", "unequal"]


def __dir__() -> list[str]:
    return sorted(__all__)


# How much a rate times its weight may be off in floats, and more; relative to 1 + |ln|.
_BLUR = 2.0**-46
LARGEST = math.nextafter(math.inf, 0)
"""What stands for rates that are larger, but finite."""
# A limit of 900 digits, times a weight, comes no closer to a logarithm than 60 · 2**6 digits tell, but by design.
_DOUBLINGS = 9
# Ratios worked on at a time.
_CHUNK = 2**21


class Witness(NamedTuple):
    """Where a bound is tight: the observable is likelier under the first secret of the pair than under the second."""

    pair: tuple[int, int]
    observable: int


@dataclass(frozen=True)
class Tight:
    """The least ε that a channel keeps.

    Attributes:
        epsilon: It, rounded up to a float; infinite where none holds.
        bound: It, rounded up to a fraction of some 38 digits; None where none holds.
        witness: Where it is tight, or fails; None where all rows that are bounded are the same.
        deciding: The ratios that may decide it, each with its weight: ε holds where none is above exp(ε·w).
    """

    epsilon: float
    bound: Fraction | None
    witness: Witness | None
    deciding: tuple[tuple[Fraction, Fraction], ...] = ()

    def holds(self, epsilon: Fraction) -> bool:
        """Decide whether the channel keeps ε, exactly."""
        return self.bound is not None and all(_is_at_most(ratio, epsilon * weight) for ratio, weight in self.deciding)


def tight(rows: Rows, bound: ExponentBound) -> Tight:
    """Return the least ε with p(o|s) <= exp(ε·w) p(o|t) for all observables and all pairs of `bound`."""
    best, _ = rates(rows, bound)
    if not len(best):
        return Tight(0.0, Fraction(0), None)
    if best.max() == math.inf:
        return Tight(math.inf, None, _broken(rows, bound, best))
    unequal = _unequal(rows, bound)
    if unequal is not None:
        return Tight(math.inf, None, unequal)
    found: dict[float, tuple[Fraction, Witness]] = {}
    for pair, observable in _candidates(rows, bound, best):
        s, t = int(bound.sources[pair]), int(bound.targets[pair])
        ratio = rows.entry(s, observable) * rows.sums[t] / (rows.entry(t, observable) * rows.sums[s])
        weight = float(bound.weights[pair])
        if ratio > 1 and (weight not in found or ratio > found[weight][0]):
            found[weight] = ratio, Witness((s, t), observable)
    if not found:
        return Tight(0.0, Fraction(0), None)
    epsilon, witness = max(
        ((ln_upper(ratio.numerator, ratio.denominator) / Fraction(weight), where)
         for weight, (ratio, where) in found.items()),
        key=lambda each: each[0],
    )  # fmt: skip
    deciding = tuple((ratio, Fraction(weight)) for weight, (ratio, _) in found.items())
    return Tight(float_up(epsilon), epsilon, witness, deciding)


def _is_at_most(ratio: Fraction, limit: Fraction) -> bool:
    """Decide whether ln(ratio) <= limit for a ratio above 1, whose logarithm is irrational."""
    for digits in (60 << doubled for doubled in range(_DOUBLINGS)):
        # ln(b/a) from below is ln(a/b) from above.
        above = -ln_below(ratio.denominator, ratio.numerator, digits)
        if above <= limit:
            return True
        if ln_below(ratio.numerator, ratio.denominator, digits) > limit:
            return False
    raise ArithmeticError(f"ln({ratio}) and {limit} are too close to each other")


def rates(rows: Rows, bound: ExponentBound) -> tuple[Floats, Integers]:
    """Return for each pair the least ε that it needs by itself, up to rounding, and the observable that needs it.

    Both have shape (k,). The ε is infinite where the second secret never gives what the first does, and only there; a
    pair of weight 0 needs 0 here.
    """
    best, places = np.zeros(len(bound)), np.zeros(len(bound), dtype=np.int64)
    for part in _parts(len(bound), rows.floats.shape[1]):
        gains = _gains(rows, bound, part)
        places[part] = gains.argmax(axis=1)
        top = gains[np.arange(len(gains)), places[part]]
        weights = bound.weights[part]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            finite = np.minimum(np.maximum(top, 0) / weights, LARGEST)
        best[part] = np.where(top == math.inf, math.inf, np.where(weights > 0, finite, 0.0))
    return best, places


def _gains(rows: Rows, bound: ExponentBound, part: slice | Integers) -> Floats:
    """Return ln p(o|s) − ln p(o|t), shape (pairs, m): −∞ where p(o|s) is 0, ∞ where only p(o|t) is."""
    mantissas, exponents = rows.split
    sources, targets = bound.sources[part], bound.targets[part]
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        # Without their powers of two no quotient overflows, or has too few digits.
        gains: Floats = np.log(mantissas[sources] / mantissas[targets])
        gains += (exponents[sources] - exponents[targets]) * math.log(2)
    gains[mantissas[sources] == 0] = -math.inf
    return gains


def _candidates(rows: Rows, bound: ExponentBound, best: Floats) -> set[tuple[int, int]]:
    """Return pairs and observables that may be where ε is tight, one for each combination of probabilities."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        blur = np.where(bound.weights > 0, _BLUR / bound.weights * (1 + best * bound.weights), 0.0)
        least = float((best - blur).max())
        near = np.flatnonzero((best + blur >= least) & (bound.weights > 0))
    known: dict[tuple[float, ...], tuple[int, int]] = {}
    numbers = {total: number for number, total in enumerate(dict.fromkeys(rows.sums))}
    sums = [numbers[total] for total in rows.sums]
    for part in _parts(len(near), rows.floats.shape[1]):
        chosen = near[part]
        gains = _gains(rows, bound, chosen)
        limit = (least - blur[chosen]) * bound.weights[chosen]
        for place, observable in np.argwhere((gains >= limit[:, None]) & (gains > -_BLUR)).tolist():
            pair = int(chosen[place])
            s, t = int(bound.sources[pair]), int(bound.targets[pair])
            a, b = float(rows.floats[s, observable]), float(rows.floats[t, observable])
            if a == b and rows.sums[s] == rows.sums[t] and rows.entry(s, observable) == rows.entry(t, observable):
                continue
            # Symmetric channels are tight in thousands of places with the same numbers.
            exactly = (a, b, sums[s], sums[t]) if rows.floats is rows.entries else (a, b, pair, observable)
            known.setdefault((float(bound.weights[pair]), *exactly), (pair, observable))
    return set(known.values())


def _broken(rows: Rows, bound: ExponentBound, best: Floats) -> Witness:
    """Return where an answer of the first secret is never one of the second: the likeliest one, of the nearest pair."""
    most: tuple[float, float] = (-1.0, 0.0)
    found = Witness((0, 0), 0)
    matrix = rows.normalised()
    for part in _parts(len(bound), rows.floats.shape[1]):
        chosen = np.flatnonzero(best[part] == math.inf) + part.start
        alone = np.where(rows.floats[bound.targets[chosen]] == 0, matrix[bound.sources[chosen]], 0.0)
        if not alone.size:
            continue
        place = np.lexsort((bound.weights[chosen], -alone.max(axis=1)))[0]
        pair, observable = int(chosen[place]), int(alone[place].argmax())
        key = float(alone[place, observable]), -float(bound.weights[pair])
        if key > most:
            most, found = key, Witness((int(bound.sources[pair]), int(bound.targets[pair])), observable)
    return found


def _unequal(rows: Rows, bound: ExponentBound) -> Witness | None:
    """Return where two secrets at distance 0 differ, None where they do not."""
    return next(unequal(rows, bound), None)


def unequal(rows: Rows, bound: ExponentBound) -> Iterator[Witness]:
    """Yield the pairs of secrets at distance 0 that differ, each with the first observable that is likelier there."""
    for pair in np.flatnonzero(bound.weights == 0).tolist():
        s, t = int(bound.sources[pair]), int(bound.targets[pair])
        for observable in range(rows.floats.shape[1]):
            if rows.probability(s, observable) > rows.probability(t, observable):
                yield Witness((s, t), observable)
                break


def _parts(pairs: int, observables: int) -> list[slice]:
    size = max(1, _CHUNK // observables)
    return [slice(start, min(start + size, pairs)) for start in range(0, pairs, size)]
