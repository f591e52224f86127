"""A released cumulative histogram, and the estimates from it: ranges, the distribution function and quantiles."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, interval_about
from mechdesign.tables._release import Release
from mechdesign.tables._values import (
    find_label,
    read_label,
)

_NONE = RangeNoise(None, None)


@dataclass(frozen=True, eq=False, repr=False)
class CumulativeRelease(Release):
    """Released cumulative counts; the `answers` never decrease and are between 0 and the number of records.

    `mechdesign.tables.range_query` and `mechdesign.tables.quantile` derive estimates from it.

    Attributes:
        description: the released quantity, the policy and the cost.
        labels: the values, an array of shape (|T|,) under the name of the attribute.
        answers: the cumulative counts, float64 of shape (|T|,).
        standard_errors: the standard errors of the unbiased estimates `linear`, float64 of shape (|T|,).
        low: the lower ends of the intervals, float64 of shape (|T|,).
        high: the upper ends of the intervals, float64 of shape (|T|,).
        linear: the unbiased estimates before isotonic regression, the centres of the intervals, float64 of shape
            (|T|,).
        records: the number of records, which is public.
        theta: θ, or |T| if the policy has no θ.
        block: the number of values from one measured cumulative count to the next; 0 if the counts were not measured by
            the ordered or a hierarchical mechanism.
        fanout: the fan-out of the trees within blocks.
        noise: the noise on the measured cumulative counts and on the nodes of the trees.
        factor: the half-width of an interval as a multiple of the standard error, if `block` is 0.

    >>> from mechdesign.tables import Cumulative, Domain, Policy
    >>> policy = Policy.threshold(Domain({"age": range(3)}), 1)
    >>> Cumulative().release(policy=policy, counts=[5, 0, 7], epsilon=100, rng=1).records
    12
    """

    kind: ClassVar[str] = "cumulative histogram"
    needed: ClassVar[tuple[str, ...]] = ("node_scale", "tree_scale")

    linear: Floats = field(repr=False)
    records: int
    theta: int = 0
    block: int = 0
    fanout: int = 0
    noise: RangeNoise = _NONE
    factor: float = 0.0

    @cached_property
    def structure(self) -> RangeTree:
        """Return the structure that computes the variances of the estimates by the three mechanisms."""
        return self.noise.structure(len(self), self.block, self.fanout)

    def _columns(self) -> dict[str, Floats]:
        return {**super()._columns(), "linear": self.linear}

    def _parameters(self) -> dict[str, Any]:
        scales = {name: getattr(self.noise, name) for name in self.needed}
        texts = {name: None if scale is None else exact_text(scale) for name, scale in scales.items()}
        numbers = {name: getattr(self, name) for name in ("records", "theta", "block", "fanout", "factor")}
        return {**numbers, **texts}

    def error_of_range(self, first: int, last: int) -> tuple[float, float]:
        """Return the standard error of the estimated count of a range, and the half-width of its interval.

        Without the structure of the three mechanisms, the error is the sum of the errors of the two cumulative counts,
        which is an upper bound.

        Args:
            first: the index of the first value.
            last: the index of the last value.

        Returns:
            The standard error and the half-width.
        """
        ends = [end for end in (first - 1, last) if 0 <= end < len(self) - 1]
        if not self.block:
            error = float(self.standard_errors[ends].sum())
            return error, self.factor * error
        variance = self.structure.variance(first, last) if self.noise and ends else 0.0
        # The estimate is the difference of at most two noisy cumulative counts: count them.
        width = self.noise.half_widths(np.array(variance), len(ends), self.description.confidence)
        return math.sqrt(variance), float(width)

    @classmethod
    def _read(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        texts = {name: parameters.pop(name) for name in cls.needed}
        scales = {name: None if text is None else exact(text, name) for name, text in texts.items()}
        return {**parameters, "noise": RangeNoise(**scales)}


@dataclass(frozen=True)
class Estimate:
    """An estimated count.

    Attributes:
        value: the estimate, after isotonic regression.
        standard_error: the standard error of the unbiased estimate before isotonic regression.
        low: the lower end of the interval.
        high: the upper end of the interval.
        confidence: the least probability with which the interval contains the true count.

    >>> float(Estimate(3.0, 1.0, 1.0, 5.0, Fraction(19, 20)))
    3.0
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
    """An estimated quantile: the least value at which the distribution function reaches a probability.

    Attributes:
        value: the value, as an int if it is an integer, else as a float.
        low: the lower end of the interval, which is a value.
        high: the upper end of the interval, which is a value.
        confidence: the least probability with which the interval contains the true quantile.

    >>> Quantile(34, 30, 41, Fraction(19, 20)).interval()
    (30, 41)
    """

    value: int | float
    low: int | float
    high: int | float
    confidence: Fraction

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def interval(self) -> tuple[int | float, int | float]:
        """Return the ends of the interval."""
        return self.low, self.high


@in_own_arithmetic
def range_query(
    release: CumulativeRelease, low: object = None, high: object = None, *, positions: tuple[int, int] | None = None
) -> Estimate:
    """Estimate the number of records with a value from `low` to `high`, including both ends.

    Args:
        release: a release of a `Cumulative` query, or of another query that estimates from cumulative counts.
        low: the first value, a value of the domain.
        high: the last value, a value of the domain.
        positions: the indices of the first and the last value, from 0 to |T| − 1, instead of `low` and `high`.

    Returns:
        The estimated count.

    Raises:
        InputError: An end is not a value of the domain, or `low` is above `high`.

    >>> from mechdesign.tables import Cumulative, Domain, Policy
    >>> ages = Policy.threshold(Domain({"age": range(17, 91)}), 1)
    >>> answer = range_query(Cumulative().release([30, 31, 60], ages, epsilon=100, rng=1), 17, 31)
    >>> float(answer), answer.interval()
    (2.0, (2.0, 2.0))
    """
    require_cumulative(release)
    if positions is not None:
        if low is not None or high is not None:
            raise InputError("positions", "are given together with low and high", bound="either of them")
        first, last = _check_positions(positions, len(release))
    else:
        labels = list_values(release)
        first, last = (_number(end, name, labels) for end, name in ((low, "low"), (high, "high")))
        if first > last:
            raise InputError("low", "is above high", value=low, bound=f"at most {high}", remedy="exchange the two")
    before = first - 1

    def difference(counts: Floats) -> float:
        return float(counts[last] - (counts[before] if first else 0.0))

    error, width = release.error_of_range(first, last)
    value = difference(release.answers)
    ends = interval_about(difference(release.linear), width, value, release.records)
    return Estimate(value, error, float(ends[0]), float(ends[1]), release.description.confidence)


@in_own_arithmetic
def quantile(release: CumulativeRelease, probability: object) -> Quantile:
    """Estimate the least value at which the distribution function is at least `probability`.

    The interval misses the true quantile v only in two cases. In the first case, the interval of the distribution
    function at v lies below the probability. In the second case, the interval of the distribution function at v − 1
    does not lie below the probability. Each case has at most half the error probability, because the noise is
    symmetric.

    Args:
        release: a release of a `Cumulative` query, or of another query that estimates from cumulative counts.
        probability: the probability, in (0, 1].

    Returns:
        The estimated quantile.

    Raises:
        InputError: The probability is out of range.

    >>> from mechdesign.tables import Cumulative, Domain, Policy
    >>> ages = Policy.threshold(Domain({"age": range(17, 91)}), 1)
    >>> quantile(Cumulative().release([30, 31, 60], ages, epsilon=100, rng=1), 0.5).value
    31
    """
    numbers, labels = quantile_numbers(release, probability), list_values(release)
    low, value, high = (read_label(labels[number]) for number in numbers)
    return Quantile(value, low, high, release.description.confidence)


def quantile_numbers(release: CumulativeRelease, probability: object) -> tuple[int, int, int]:
    """Return the indices of three values: the lower end of the interval, the quantile, and the upper end."""
    require_cumulative(release)
    share = as_probability(probability, "probability")
    # The least number of records whose share is at least the probability.
    needed = math.ceil(share * release.records)
    value = int(np.argmax(release.answers >= min(float(share * release.records), float(release.records))))
    low = int(np.argmax(release.high >= needed))
    short = np.flatnonzero(release.low < needed)
    high = min(int(short[-1]) + 1 if short.size else 0, len(release) - 1)
    return min(low, value), value, max(high, value)


def require_cumulative(release: object) -> CumulativeRelease:
    if not isinstance(release, CumulativeRelease):
        raise InputError(
            "release",
            "is not a cumulative histogram",
            value=type(release).__name__,
            bound="a release of a Cumulative query, with a public number of records",
        )
    return release


def list_values(release: CumulativeRelease) -> NDArray[Any]:
    """Return the labels of the values in ascending order, shape (|T|,)."""
    return next(iter(release.labels.values()))


def _number(value: object, path: str, labels: NDArray[Any]) -> int:
    if value is None:
        raise InputError(
            path, "is not given", bound="a value of the domain", remedy="give both low and high, or positions="
        )
    return find_label(labels, value, path)


def _check_positions(positions: object, size: int) -> tuple[int, int]:
    try:
        first, last = (operator.index(end) for end in positions)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InputError("positions", "are not a pair of integers", value=positions, bound="two integers") from error
    if any(isinstance(end, bool) for end in positions) or not 0 <= first <= last < size:  # type: ignore[attr-defined]
        bound = f"two integers with 0 <= first <= last <= {size - 1}"
        raise InputError("positions", "are not a range of values", value=positions, bound=bound)
    return first, last


@dataclass(frozen=True)
class NamedRange:
    """The estimated number of records in a named range of values.

    Attributes:
        first: the name of the first value.
        last: the name of the last value, included.
        estimate: the estimated count.

    >>> NamedRange("0", "17", Estimate(3.0, 1.0, 1.0, 5.0, Fraction(19, 20))).estimate.value
    3.0
    """

    first: str
    last: str
    estimate: Estimate


@dataclass(frozen=True)
class NamedQuantile:
    """An estimated quantile with the names of its values.

    Attributes:
        probability: the probability of the quantile, in (0, 1].
        value: the name of the value at which the distribution function reaches the probability.
        low: the name of the lower end of the interval.
        high: the name of the upper end of the interval.

    >>> NamedQuantile(Fraction(1, 2), "34", "30", "41").value
    '34'
    """

    probability: Fraction
    value: str
    low: str
    high: str


def as_probability(value: object, path: str) -> Fraction:
    """Return the exact probability of a quantile; raise `InputError` unless it is above 0 and at most 1."""
    share = exact(value, path)
    if not 0 < share <= 1:
        raise InputError(path, "is out of range", value=value, bound="above 0 and at most 1")
    return share
