"""Tight epsilon of exact rows.

Floats find candidates, and exact fractions decide. Let u = 2**-53. The float ratio of two probabilities, apart from
powers of two, has a relative error of at most 8u, and its logarithm an error of at most 16u + 4u·|ln|. Pairs whose rate
is within `_RATE_ERROR` of the largest rate are candidates. Candidates with equal weights are compared as fractions, and
candidates with different weights by rigorous logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers, read_only, require
from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError, Shown
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._exact import float_up, nearest
from mechdesign.certify._exponential import ln_below, ln_upper
from mechdesign.model._channel import Channel

SUM_TOLERANCE = Fraction(1, 1000)
"""Largest difference of a row sum from 1, for probabilities rounded to three decimal places."""

# Every float64 is a multiple of 2**-1074.
_SMALLEST_EXPONENT = 1074

# Smaller floats are subnormal and have fewer digits.
_SMALLEST_NORMAL = 2.0**-1022

# Exponents are clipped to this magnitude: scaled by 2**-5000, every probability underflows to 0.
_MAX_EXPONENT = 5000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a channel before they are divided by their sums; negative entries are replaced by zeros.

    Attributes:
        floats: The entries rounded to nearest, float64 of shape (n, m), read-only; zero only for entries that are zero.
        entries: The exact entries: `floats` itself if they were floats, otherwise the given numbers.
        scale: The unit of the entries: 2**-62 for a `Channel`, otherwise 1.
        sums: The exact sums of the rows.
        negative: The number of entries below zero.

    >>> exact_rows([[0.75, 0.25]]).probability(0, 1)
    Fraction(1, 4)
    """

    floats: Floats
    entries: NDArray[Any]
    scale: Fraction
    sums: tuple[Fraction, ...]
    negative: int

    def entry(self, secret: int, observable: int) -> Fraction:
        """Return an exact entry, before its row is divided by its sum.

        Args:
            secret: The row.
            observable: The column.
        """
        if self.floats[secret, observable] == 0:
            return Fraction(0)
        value = self.entries[secret, observable]
        return Fraction(value.item() if isinstance(value, np.generic) else value) * self.scale

    def probability(self, secret: int, observable: int) -> Fraction:
        """Return the exact probability p(o|s).

        Args:
            secret: The row s.
            observable: The column o.
        """
        return self.entry(secret, observable) / self.sums[secret]

    @property
    def deviation(self) -> Fraction:
        """The largest difference of a row sum from 1."""
        return max(abs(total - 1) for total in self.sums)

    @cached_property
    def split(self) -> tuple[Floats, Integers]:
        """Mantissas x and exponents e, (n, m), with p(o|s) ≈ x·2**e up to a relative error of 3·2**-53."""
        mantissas, exponents = np.frexp(self.floats)
        exponents = exponents.astype(np.int64)
        if self.entries is not self.floats:
            for secret, observable in np.argwhere((self.floats > 0) & (self.floats < _SMALLEST_NORMAL)).tolist():
                found = _split(self.entry(secret, observable))
                mantissas[secret, observable], exponents[secret, observable] = found
        sums = [_split(total) for total in self.sums]
        mantissas /= np.array([mantissa for mantissa, _ in sums])[:, None]
        return mantissas, exponents - np.array([exponent for _, exponent in sums])[:, None]

    def normalised(self) -> Floats:
        """Return p(o|s) rounded to floats, (n, m); zero only for probabilities that are zero."""
        mantissas, exponents = self.split
        with np.errstate(under="ignore"):
            divided: Floats = np.ldexp(mantissas, exponents.clip(-_MAX_EXPONENT, _MAX_EXPONENT).astype(np.intc))
        divided[(divided == 0) & (self.floats > 0)] = np.nextafter(0, 1)
        return read_only(divided)


def exact_rows(matrix: Channel | ArrayLike, weights: bool = False) -> Rows:
    """Return the exact rows of a channel or a matrix.

    Args:
        matrix: A channel, or floats, integers or fractions (dtype object), (n, m).
        weights: Whether row sums may be any positive numbers. Otherwise they must be within `SUM_TOLERANCE` of 1.

    Returns:
        The rows.

    Raises:
        InputError: The argument is not a matrix of finite numbers, is empty, or has a row without a positive entry or
            with a wrong sum.

    >>> exact_rows([[3, 1], [0, 2]], weights=True).sums
    (Fraction(4, 1), Fraction(2, 1))
    """
    if isinstance(matrix, Channel):
        n = len(matrix.numerators)
        return Rows(matrix.matrix, matrix.numerators, Fraction(1, matrix.denominator), (Fraction(1),) * n, 0)
    given = _as_matrix(matrix)
    if given.dtype == object:
        floats = np.array([[nearest(Fraction(value)) for value in row] for row in given], dtype=np.float64)
        lost = np.array([[Fraction(value) > 0 for value in row] for row in given]) & (floats == 0)
        floats[lost] = np.nextafter(0, 1)
    else:
        floats = given.astype(np.float64)
    require(np.isfinite(floats), floats, "matrix", "a finite number")
    negative = int((floats < 0).sum())
    floats = np.maximum(floats, 0.0)
    if given.dtype.kind == "f":
        sums = tuple(_sum(row) for row in floats.tolist())
    else:
        sums = tuple(sum((Fraction(value) for value in row if value > 0), Fraction(0)) for row in given.tolist())
    for secret, total in enumerate(sums):
        if total == 0:
            remedy = "give the probabilities of answers for this secret, or leave the secret out"
            if negative:
                remedy = "give probabilities; apply exp to logarithms"
            raise InputError(
                f"matrix[{secret}]", "has no positive entry", bound="a row of probabilities", remedy=remedy
            )
        if not weights and abs(total - 1) > SUM_TOLERANCE:
            raise InputError(
                f"matrix[{secret}]",
                "does not sum to 1",
                value=Shown(f"{nearest(total):.6g}"),
                bound=f"1, to within {float(SUM_TOLERANCE):g}",
                remedy=_remedy(floats, total),
            )
    read_only(floats)
    return Rows(floats, floats if given.dtype.kind == "f" else given, Fraction(1), sums, negative)


def _remedy(floats: Floats, total: Fraction) -> str:
    """Return the remedy for a matrix with a row that does not sum to 1."""
    if (np.abs(floats.sum(axis=0) - 1) <= float(SUM_TOLERANCE)).all():
        return "Transpose it, if its columns are secrets: each column sums to 1"
    if abs(total - 100) <= 100 * SUM_TOLERANCE:
        return "Divide percentages by 100"
    return "Divide each row by its sum, or declare that the entries are weights (weights=True, --weights)"


def _as_matrix(matrix: ArrayLike) -> NDArray[Any]:
    bound = "a matrix (n, m) of probabilities, a row for each secret"
    require_unmasked(matrix, "matrix")
    try:
        raw = np.asarray(matrix)
    except (TypeError, ValueError) as error:
        raise InputError("matrix", f"is not a matrix ({error})", bound=bound) from error
    if raw.ndim != 2 or 0 in raw.shape:
        raise InputError("matrix", "is not a matrix", value=raw.shape, bound=bound)
    if raw.dtype == object:
        if all(isinstance(value, int | Fraction) for value in raw.flat):
            return raw.copy()
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("matrix", "contains entries that are not numbers", bound=bound) from error
    if raw.dtype.kind in "iu":
        return raw.astype(object)
    if raw.dtype.kind != "f":
        raise InputError("matrix", f"has the type {raw.dtype}", bound=bound)
    # Narrower floats are exact in float64.
    return raw.astype(np.float64)


def _split(value: Fraction) -> tuple[float, int]:
    """Return x and e such that x·2**e is a positive number rounded to 53 bits, for any exponent e."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa, exponent = math.frexp(nearest(value / Fraction(2) ** shift))
    return mantissa, exponent + shift


def _sum(row: list[float]) -> Fraction:
    """Return the exact sum of nonnegative floats."""
    total = 0
    for value in row:
        if value:
            numerator, denominator = value.as_integer_ratio()
            total += numerator << (_SMALLEST_EXPONENT + 1 - denominator.bit_length())
    return Fraction(total, 1 << _SMALLEST_EXPONENT)


# Bound on the error of a rate times its weight in floats, relative to 1 + |ln|.
_RATE_ERROR = 2.0**-46

LARGEST = math.nextafter(math.inf, 0)
"""The value for finite rates above the largest float."""

# Largest number of doublings of the 60 digits of a logarithm; a limit of 900 digits needs at most 6 in practice.
_MAX_DOUBLINGS = 9

# Number of ratios processed at a time.
_RATIOS_PER_BLOCK = 2**21


class Witness(NamedTuple):
    """The pair of secrets and the observable for which a bound is tight or violated.

    Attributes:
        pair: The secrets (s, t), with p(o|s) > p(o|t).
        observable: The observable o.

    >>> Witness(pair=(0, 1), observable=2)
    Witness(pair=(0, 1), observable=2)
    """

    pair: tuple[int, int]
    observable: int


@dataclass(frozen=True)
class Tight:
    """The least ε that a channel keeps.

    Attributes:
        epsilon: The least ε, rounded up to a float; infinite if no ε holds.
        bound: The least ε, rounded up to a fraction with about 38 digits; None if no ε holds.
        witness: The pair and observable with the tight or violated bound; None if all bounded rows are equal.
        deciding: Ratios with their weights w; ε holds if every ratio is at most exp(ε·w).

    >>> Tight(0.0, Fraction(0), None).holds(Fraction(0))
    True
    """

    epsilon: float
    bound: Fraction | None
    witness: Witness | None
    deciding: tuple[tuple[Fraction, Fraction], ...] = ()

    def holds(self, epsilon: Fraction) -> bool:
        """Return whether the channel keeps ε, by exact arithmetic.

        Args:
            epsilon: ε >= 0.
        """
        return self.bound is not None and all(_is_at_most(ratio, epsilon * weight) for ratio, weight in self.deciding)


def tight(rows: Rows, bound: ExponentBound) -> Tight:
    """Return the least ε with p(o|s) <= exp(ε·w) p(o|t) for all observables and all pairs of a bound.

    Args:
        rows: The rows of the channel.
        bound: The pairs (s, t) with their weights w.

    Returns:
        The least ε, with a witness.

    >>> from mechdesign.certify._claims import PairBound
    >>> bound = PairBound.metric(Fraction(1), np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> round(tight(exact_rows([[0.75, 0.25], [0.25, 0.75]]), bound).epsilon, 6)
    1.098612
    """
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
    """Return whether ln(ratio) <= limit, for a rational ratio above 1, whose logarithm is irrational."""
    for digits in (60 << doubled for doubled in range(_MAX_DOUBLINGS)):
        # A lower bound on ln(b/a) gives an upper bound on ln(a/b).
        above = -ln_below(ratio.denominator, ratio.numerator, digits)
        if above <= limit:
            return True
        if ln_below(ratio.numerator, ratio.denominator, digits) > limit:
            return False
    raise ArithmeticError(f"ln({ratio}) and {limit} are too close to each other")


def rates(rows: Rows, bound: ExponentBound) -> tuple[Floats, Integers]:
    """Return the least ε for each pair alone, up to rounding, and the observable with the largest ratio.

    Args:
        rows: The rows of the channel.
        bound: k pairs (s, t) with their weights.

    Returns:
        ε, float64 (k,): infinite if and only if some p(o|s) > 0 = p(o|t), and 0 for a pair of weight 0. Observables,
        int64 (k,).

    >>> from mechdesign.certify._claims import PairBound
    >>> bound = PairBound.metric(Fraction(1), np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> rates(exact_rows([[0.75, 0.25], [0.25, 0.75]]), bound)[0].round(3).tolist()
    [1.099, 1.099]
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
    """Return ln p(o|s) − ln p(o|t), (pairs, m): −∞ if p(o|s) is 0, and ∞ if only p(o|t) is 0."""
    mantissas, exponents = rows.split
    sources, targets = bound.sources[part], bound.targets[part]
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        # Quotients of mantissas neither overflow nor lose digits.
        gains: Floats = np.log(mantissas[sources] / mantissas[targets])
        gains += (exponents[sources] - exponents[targets]) * math.log(2)
    gains[mantissas[sources] == 0] = -math.inf
    return gains


def _candidates(rows: Rows, bound: ExponentBound, best: Floats) -> set[tuple[int, int]]:
    """Return pairs and observables at which ε may be tight, one for each combination of probabilities."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        blur = np.where(bound.weights > 0, _RATE_ERROR / bound.weights * (1 + best * bound.weights), 0.0)
        least = float((best - blur).max())
        near = np.flatnonzero((best + blur >= least) & (bound.weights > 0))
    known: dict[tuple[float, ...], tuple[int, int]] = {}
    numbers = {total: number for number, total in enumerate(dict.fromkeys(rows.sums))}
    sums = [numbers[total] for total in rows.sums]
    for part in _parts(len(near), rows.floats.shape[1]):
        chosen = near[part]
        gains = _gains(rows, bound, chosen)
        limit = (least - blur[chosen]) * bound.weights[chosen]
        for place, observable in np.argwhere((gains >= limit[:, None]) & (gains > -_RATE_ERROR)).tolist():
            pair = int(chosen[place])
            s, t = int(bound.sources[pair]), int(bound.targets[pair])
            a, b = float(rows.floats[s, observable]), float(rows.floats[t, observable])
            if a == b and rows.sums[s] == rows.sums[t] and rows.entry(s, observable) == rows.entry(t, observable):
                continue
            # Symmetric channels may be tight for thousands of pairs with the same numbers; one is enough.
            exactly = (a, b, sums[s], sums[t]) if rows.floats is rows.entries else (a, b, pair, observable)
            known.setdefault((float(bound.weights[pair]), *exactly), (pair, observable))
    return set(known.values())


def _broken(rows: Rows, bound: ExponentBound, best: Floats) -> Witness:
    """Return a pair and an observable with p(o|s) > 0 = p(o|t): the likeliest one, then the nearest pair."""
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
    """Return a pair of secrets at distance 0 with different rows, or None."""
    return next(unequal(rows, bound), None)


def unequal(rows: Rows, bound: ExponentBound) -> Iterator[Witness]:
    """Yield the pairs of secrets at distance 0 with different rows, each with the first observable likelier for s."""
    for pair in np.flatnonzero(bound.weights == 0).tolist():
        s, t = int(bound.sources[pair]), int(bound.targets[pair])
        for observable in range(rows.floats.shape[1]):
            if rows.probability(s, observable) > rows.probability(t, observable):
                yield Witness((s, t), observable)
                break


def _parts(pairs: int, observables: int) -> list[slice]:
    size = max(1, _RATIOS_PER_BLOCK // observables)
    return [slice(start, min(start + size, pairs)) for start in range(0, pairs, size)]
