"""The tight ε of a channel, computed exactly.

Floating-point numbers select candidates for the tight ε, and exact fractions decide among them. Let u = 2**-53. Up to
powers of two, the float ratio of two probabilities is within 8u of the exact ratio. The logarithm of the float ratio is
within 16u + 4u·|ln| of the exact logarithm. Pairs whose rate is within `_BLUR` of the largest rate are compared
exactly. Pairs with equal weights are compared as fractions, other pairs by rigorous logarithms.
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
from mechdesign.base._errors import InputError, Shown
from mechdesign.base._names import named
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._exact import float_up, nearest
from mechdesign.certify._exponential import ln_below, ln_upper
from mechdesign.model._channel import Channel

SUM_TOLERANCE = Fraction(1, 1000)
"""The largest distance of a row sum from 1, which permits probabilities rounded to three decimals."""

# Every float64 is a multiple of 2**-1074. Floats below 2**-1022 are subnormal and less precise.
_SMALLEST = 1074
_PRECISE = 2.0**-1022
# The largest magnitude of an exponent of two; a probability with a smaller power of two is 0 as a float.
_FAR = 5000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a channel before division by their sums, with negative entries replaced by zeros.

    Attributes:
        floats: The entries rounded to nearest, float64 (n, m), read-only. Nonzero entries stay nonzero.
        entries: The exact entries: `floats` itself for float input, otherwise the given numbers.
        scale: The unit of the entries: 2**-62 for a `Channel`, otherwise 1.
        sums: The exact sums of the rows.
        negative: The number of negative entries.

    >>> exact_rows([[0.5, 0.5]]).sums
    (Fraction(1, 1),)
    """

    floats: Floats
    entries: NDArray[Any]
    scale: Fraction
    sums: tuple[Fraction, ...]
    negative: int

    def entry(self, secret: int, observable: int) -> Fraction:
        """Return the exact entry before its row is divided by its sum.

        Args:
            secret: The index of the row.
            observable: The index of the column.

        Returns:
            The entry.
        """
        if self.floats[secret, observable] == 0:
            return Fraction(0)
        value = self.entries[secret, observable]
        return Fraction(value.item() if isinstance(value, np.generic) else value) * self.scale

    def probability(self, secret: int, observable: int) -> Fraction:
        """Return the exact probability p(o|s).

        Args:
            secret: The index of the row.
            observable: The index of the column.

        Returns:
            The probability.
        """
        return self.entry(secret, observable) / self.sums[secret]

    @property
    def deviation(self) -> Fraction:
        """The largest distance of a row sum from 1."""
        return max(abs(total - 1) for total in self.sums)

    @cached_property
    def split(self) -> tuple[Floats, Integers]:
        """The arrays x and e, (n, m), with p(o|s) = x·2**e up to a relative error of 3·2**-53, without underflow."""
        mantissas, exponents = np.frexp(self.floats)
        exponents = exponents.astype(np.int64)
        if self.entries is not self.floats:
            for secret, observable in np.argwhere((self.floats > 0) & (self.floats < _PRECISE)).tolist():
                found = _split(self.entry(secret, observable))
                mantissas[secret, observable], exponents[secret, observable] = found
        sums = [_split(total) for total in self.sums]
        mantissas /= np.array([mantissa for mantissa, _ in sums])[:, None]
        return mantissas, exponents - np.array([exponent for _, exponent in sums])[:, None]

    def normalised(self) -> Floats:
        """Return p(o|s) rounded to floats (n, m). Nonzero probabilities stay nonzero."""
        mantissas, exponents = self.split
        with np.errstate(under="ignore"):
            divided: Floats = np.ldexp(mantissas, exponents.clip(-_FAR, _FAR).astype(np.intc))
        divided[(divided == 0) & (self.floats > 0)] = np.nextafter(0, 1)
        return read_only(divided)


def exact_rows(matrix: Channel | ArrayLike, weights: bool = False) -> Rows:
    """Return the rows of a channel, or of a matrix of floats, integers or fractions (dtype object).

    Args:
        matrix: The channel (n, m).
        weights: Whether row sums may be any positive numbers; otherwise they must be 1 within `SUM_TOLERANCE`.

    Returns:
        The rows.

    Raises:
        InputError: The matrix is empty or contains values that are not finite numbers, or a row has no positive entry
            or a wrong sum.

    >>> exact_rows([[1, 1]], weights=True).normalised()
    array([[0.5, 0.5]])
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
        wrong = not weights and abs(total - 1) > SUM_TOLERANCE
        if (total == 0 or wrong) and (least := min(row := given[secret].tolist())) < -SUM_TOLERANCE:
            raise InputError(
                f"matrix[{secret},{row.index(least)}]",
                "is negative",
                value=Shown(f"{float(least):.6g}"),
                bound="a probability",
                remedy="apply exp to logarithms",
            )
        if total == 0:
            remedy = "give the probabilities of this secret, or remove the secret"
            raise InputError(
                f"matrix[{secret}]", "has no positive entry", bound="a row of probabilities", remedy=remedy
            )
        if wrong:
            raise InputError(
                f"matrix[{secret}]",
                "does not sum to 1",
                value=Shown(f"{nearest(total):.6g}"),
                bound=f"1, to within {float(SUM_TOLERANCE):g}",
                remedy=_suggest_remedy(floats, total),
            )
    read_only(floats)
    return Rows(floats, floats if given.dtype.kind == "f" else given, Fraction(1), sums, negative)


def _suggest_remedy(floats: Floats, total: Fraction) -> str:
    """Return advice for a matrix with a wrong row sum."""
    if (np.abs(floats.sum(axis=0) - 1) <= float(SUM_TOLERANCE)).all():
        return "Transpose the matrix if its columns are secrets: each column sums to 1"
    if abs(total - 100) <= 100 * SUM_TOLERANCE:
        return "Divide percentages by 100"
    return "Divide each row by its sum, as weights=True does"


def _as_matrix(matrix: ArrayLike) -> NDArray[Any]:
    bound = "a matrix (n, m) of probabilities, a row for each secret"
    raw = named(matrix, "matrix", dtype=object)
    if raw.ndim != 2 or 0 in raw.shape:
        raise InputError("matrix", "is not a matrix", value=raw.shape, bound=bound)
    if raw.dtype == object:
        if all(isinstance(value, int | Fraction) for value in raw.flat):
            return raw.copy()
        raise InputError("matrix", "contains values that are not numbers", bound=bound)
    if raw.dtype.kind in "iu":
        return raw.astype(object)
    if raw.dtype.kind != "f":
        raise InputError("matrix", f"has the type {raw.dtype}", bound=bound)
    # Narrower floats convert to float64 exactly.
    return raw.astype(np.float64)


def _split(value: Fraction) -> tuple[float, int]:
    """Return x and e, where x·2**e is the float nearest to a positive number, with an unlimited exponent."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa, exponent = math.frexp(nearest(value / Fraction(2) ** shift))
    return mantissa, exponent + shift


def _sum(row: list[float]) -> Fraction:
    """Return the exact sum of floats that are not negative."""
    total = 0
    for value in row:
        if value:
            numerator, denominator = value.as_integer_ratio()
            total += numerator << (_SMALLEST + 1 - denominator.bit_length())
    return Fraction(total, 1 << _SMALLEST)


# A bound on the floating-point error of the product of a rate and its weight, relative to 1 + |ln|.
_BLUR = 2.0**-46
LARGEST = math.nextafter(math.inf, 0)
"""The largest finite rate; larger finite rates are replaced by this number."""
# The largest number of times that a precision of 60 digits is doubled. If ε has 900 digits, ε times a weight differs
# from a logarithm within 60 · 2**6 digits.
_DOUBLINGS = 9
# The number of ratios that are computed at a time.
_BLOCK_ENTRIES = 2**21


class Witness(NamedTuple):
    """The pair and the observable that attain a tight ε; the observable is more probable under the first secret.

    Attributes:
        pair: The secrets (s, t).
        observable: The observable.

    >>> Witness((0, 1), 2).pair
    (0, 1)
    """

    pair: tuple[int, int]
    observable: int


@dataclass(frozen=True)
class Tight:
    """The least ε for which the pair bounds hold for a channel.

    Attributes:
        epsilon: ε, rounded up to a float; infinite if the bounds hold for no ε.
        bound: ε, rounded up to a fraction of about 38 digits; None if the bounds hold for no ε.
        witness: The pair and the observable that attain ε; None if all bounded rows are equal.
        deciding: The ratios that may attain ε, with their weights w. The bounds hold for ε if every ratio is at most
            exp(ε·w).

    >>> from fractions import Fraction
    >>> Tight(0.0, Fraction(0), None).holds(Fraction(0))
    True
    """

    epsilon: float
    bound: Fraction | None
    witness: Witness | None
    deciding: tuple[tuple[Fraction, Fraction], ...] = ()

    def holds(self, epsilon: Fraction) -> bool:
        """Decide exactly whether the channel satisfies ε.

        Args:
            epsilon: The exact ε.

        Returns:
            Whether the bounds hold for ε.
        """
        return self.bound is not None and all(_is_at_most(ratio, epsilon * weight) for ratio, weight in self.deciding)


def tight(rows: Rows, bound: ExponentBound) -> Tight:
    """Return the least ε for which p(o|s) <= exp(ε·w) p(o|t) for all observables and all bounded pairs.

    Args:
        rows: The rows of the channel.
        bound: The pairs and their weights.

    Returns:
        The tight ε.

    >>> from fractions import Fraction
    >>> from mechdesign.certify._claims import PairBound
    >>> bound = PairBound.metric(Fraction(1), [[0, 1], [1, 0]])
    >>> tight(exact_rows([[0.75, 0.25], [0.25, 0.75]]), bound).witness
    Witness(pair=(0, 1), observable=0)
    """
    best, _ = rates(rows, bound)
    if not len(best):
        return Tight(0.0, Fraction(0), None)
    if best.max() == math.inf:
        return Tight(math.inf, None, _find_broken(rows, bound, best))
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
        # A lower bound of ln(b/a) gives an upper bound of ln(a/b).
        above = -ln_below(ratio.denominator, ratio.numerator, digits)
        if above <= limit:
            return True
        if ln_below(ratio.numerator, ratio.denominator, digits) > limit:
            return False
    raise ArithmeticError(f"ln({ratio}) and {limit} are too close to decide")


def rates(rows: Rows, bound: ExponentBound) -> tuple[Floats, Integers]:
    """Return the least ε of each pair, up to rounding, and the observable that attains it.

    Args:
        rows: The rows of the channel.
        bound: The pairs and their weights.

    Returns:
        The values of ε (k,) and the observables (k,). ε is infinite if and only if an observable of the first secret
        never occurs for the second. For a pair of weight 0, ε is 0.

    >>> from fractions import Fraction
    >>> from mechdesign.certify._claims import PairBound
    >>> rates(exact_rows([[1, 0], [0, 1]]), PairBound.metric(Fraction(1), [[0, 1], [1, 0]]))[0]
    array([inf, inf])
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
    """Return ln p(o|s) − ln p(o|t) (pairs, m): −∞ if p(o|s) is 0, and ∞ if only p(o|t) is 0."""
    mantissas, exponents = rows.split
    sources, targets = bound.sources[part], bound.targets[part]
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        # Quotients of mantissas neither overflow nor underflow.
        gains: Floats = np.log(mantissas[sources] / mantissas[targets])
        gains += (exponents[sources] - exponents[targets]) * math.log(2)
    gains[mantissas[sources] == 0] = -math.inf
    return gains


def _candidates(rows: Rows, bound: ExponentBound, best: Floats) -> set[tuple[int, int]]:
    """Return the pairs and observables that may attain ε, with one representative for equal probabilities."""
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
            # In symmetric channels, thousands of pairs with equal numbers may attain ε.
            exactly = (a, b, sums[s], sums[t]) if rows.floats is rows.entries else (a, b, pair, observable)
            known.setdefault((float(bound.weights[pair]), *exactly), (pair, observable))
    return set(known.values())


def _find_broken(rows: Rows, bound: ExponentBound, best: Floats) -> Witness:
    """Return the pair and the observable with the largest p(o|s) for which p(o|t) = 0; in ties, the nearest pair."""
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
    """Return the first pair of secrets at distance 0 with different rows, or None."""
    return next(unequal(rows, bound), None)


def unequal(rows: Rows, bound: ExponentBound) -> Iterator[Witness]:
    """Yield the pairs (s, t) at distance 0 with different rows, and the first observable with p(o|s) > p(o|t)."""
    for pair in np.flatnonzero(bound.weights == 0).tolist():
        s, t = int(bound.sources[pair]), int(bound.targets[pair])
        for observable in range(rows.floats.shape[1]):
            if rows.probability(s, observable) > rows.probability(t, observable):
                yield Witness((s, t), observable)
                break


def _parts(pairs: int, observables: int) -> list[slice]:
    size = max(1, _BLOCK_ENTRIES // observables)
    return [slice(start, min(start + size, pairs)) for start in range(0, pairs, size)]
