"""Range queries, distribution functions and quantiles, read from a released cumulative histogram."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.blowfish.cumulative import CumulativeRelease
from mechdesign.blowfish.range_noise import interval_about
from mechdesign.certify.exact import exact
from mechdesign.errors import InputError

__all__ = ["Distribution", "Estimate", "Quantile", "cdf", "quantile", "range_query"]


def __dir__() -> list[str]:
    return sorted(__all__)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimated count.

    Attributes:
        value: the estimate, after inference.
        standard_error: of the unbiased estimate before isotonic regression.
        low: lower end of the interval.
        high: upper end of the interval.
        confidence: the probability with which the interval contains the true count, at least.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: Fraction

    def __float__(self) -> float:
        return self.value

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True)
class Quantile:
    """An estimated quantile: the number of the least value at which the distribution function reaches a probability.

    Attributes:
        value: the number of the value.
        low: lower end of the interval.
        high: upper end of the interval.
        confidence: the probability with which the interval contains the true quantile, at least.
    """

    value: int
    low: int
    high: int
    confidence: Fraction

    def __int__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def interval(self) -> tuple[int, int]:
        """Return the ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution function: the share of records at or below each value, with an interval for each.

    Attributes:
        values: float64 (|T|,).
        low: lower ends of the intervals.
        high: upper ends of the intervals.
        confidence: the probability with which any one interval contains the true share, at least.
    """

    values: Floats
    low: Floats
    high: Floats
    confidence: Fraction


def range_query(release: CumulativeRelease, low: int, high: int) -> Estimate:
    """Estimate how many records have a value from number `low` to number `high`, both included.

    Args:
        release: what `ordered`, `hierarchical` or `ordered_hierarchical` returned.
        low: number of the first value, from 0.
        high: number of the last value, at most |T| − 1.

    Raises:
        InputError: an end that is no value, or `low` above `high`.

    >>> from mechdesign.blowfish.cumulative import ordered
    >>> answer = range_query(ordered([5, 0, 0, 7, 1], theta=1, epsilon=100, rng=1), 1, 3)
    >>> float(answer), answer.interval()
    (7.0, (7.0, 7.0))
    """
    _check(release)
    first, last = _number(low, "low", len(release)), _number(high, "high", len(release))
    if first > last:
        raise InputError("low", "is above high", value=low, bound=f"at most {high}", remedy="exchange the two")
    before = first - 1

    def difference(counts: Floats) -> float:
        return float(counts[last] - (counts[before] if first else 0.0))

    # Ends that are not known exactly.
    nodes = (first > 0) + (last < len(release) - 1)
    variance = release.structure.variance(first, last) if release.noise and nodes else 0.0
    width = release.noise.half_widths(np.array(variance), nodes, release.description.confidence)
    value = difference(release.answers)
    ends = interval_about(difference(release.linear), width, value, release.records)
    return Estimate(value, math.sqrt(variance), float(ends[0]), float(ends[1]), release.description.confidence)


def cdf(release: CumulativeRelease) -> Distribution:
    """Return the distribution function of the records over the values."""
    _check(release)
    records = release.records
    return Distribution(
        release.answers / records, release.low / records, release.high / records, release.description.confidence
    )


def quantile(release: CumulativeRelease, probability: object) -> Quantile:
    """Estimate the least value at which the distribution function is at least `probability`.

    If the true quantile is v, its interval misses v only where the interval of the cumulative count at v lies below the
    probability, or that at v − 1 not below it: each has half the error probability, as the noise is symmetric.

    Args:
        release: what `ordered`, `hierarchical` or `ordered_hierarchical` returned.
        probability: above 0 and at most 1.

    Raises:
        InputError: another probability.
    """
    _check(release)
    share = exact(probability, "probability")
    if not 0 < share <= 1:
        raise InputError("probability", "is out of range", value=probability, bound="above 0 and at most 1")
    # The least whole number of records that is a share of at least this.
    needed = math.ceil(share * release.records)
    value = int(np.argmax(release.answers >= min(float(share * release.records), float(release.records))))
    low = int(np.argmax(release.high >= needed))
    short = np.flatnonzero(release.low < needed)
    high = min(int(short[-1]) + 1 if short.size else 0, len(release) - 1)
    return Quantile(value, min(low, value), max(high, value), release.description.confidence)


def _check(release: object) -> None:
    if not isinstance(release, CumulativeRelease):
        raise InputError(
            "release",
            "is no cumulative histogram",
            value=type(release).__name__,
            bound="what ordered, hierarchical or ordered_hierarchical returned",
        )


def _number(value: object, path: str, size: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "is no number of a value", value=value, bound=f"from 0 to {size - 1}") from error
    if isinstance(value, bool) or not 0 <= number < size:
        raise InputError(path, "is no number of a value", value=value, bound=f"from 0 to {size - 1}")
    return number
