"""A release and what was read from it: what a report shows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechdesign.blowfish.ranges import Estimate
from mechdesign.blowfish.release import Release

__all__ = ["NamedQuantile", "NamedRange", "Published"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class NamedRange:
    """How many records have a value from `first` to `last`, both included, which are written as in the table."""

    first: str
    last: str
    estimate: Estimate


@dataclass(frozen=True)
class NamedQuantile:
    """The value at which the distribution function reaches `probability`, and the ends of its interval."""

    probability: Fraction
    value: str
    low: str
    high: str


@dataclass(frozen=True, eq=False)
class Published:
    """A release with its title and what was read from it; nothing in it depends on the data but through the answers.

    Attributes:
        release: the answers, what was spent, and what is protected.
        title: what it is called.
        ranges: ranges read from a cumulative histogram.
        quantiles: quantiles read from a cumulative histogram.
    """

    release: Release
    title: str = ""
    ranges: tuple[NamedRange, ...] = ()
    quantiles: tuple[NamedQuantile, ...] = ()
