"""Which problems a suite has, and the limits of each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mechdesign.bench.families import FAMILIES
from mechdesign.base._errors import InputError
from mechdesign.base._check import require_kind

__all__ = ["SUITES", "Suite", "find_suite", "problems"]

_CHANNELS = ("grid", "roads", "blocks", "distortion", "joint", "worst-cost", "checkins")


@dataclass(frozen=True)
class Suite:
    """Problems and limits.

    Attributes:
        name: What users call it.
        sizes: The numbers of secrets for each family.
        seeds: The seeds for each size.
        time_limit: Seconds for building, solving and certifying one problem.
        memory: Most gigabytes for one run.
    """

    name: str
    sizes: Mapping[str, tuple[int, ...]]
    seeds: tuple[int, ...]
    time_limit: float
    memory: float


def _all(*sizes: int, rows: tuple[int, ...], **others: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType({name: others.get(name, sizes) for name in _CHANNELS} | {"row-pairs": rows})


SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        suite.name: suite
        for suite in (
            Suite("small", _all(16, rows=(20,)), (0,), 10.0, 4.0),
            Suite("medium", _all(49, rows=(100,), grid=(36, 64, 100), roads=(49, 100)), (0,), 20.0, 8.0),
            Suite("large", _all(100, rows=(200, 400), grid=(144,), roads=(144,), blocks=(144,)), (0,), 60.0, 8.0),
        )
    }
)
"""Every suite by name."""


def find_suite(name: str) -> Suite:
    """Look up a suite; raise `InputError` with those that there are."""
    require_kind(name, str, "suite", "the name of a suite")
    if name not in SUITES:
        raise InputError("suite", "is not known", value=name, bound=f"one of {', '.join(SUITES)}")
    return SUITES[name]


def problems(suite: Suite) -> list[tuple[str, int, int]]:
    """Return the problems of a suite as (family, n, seed), by size; families without their data are left out."""
    found = (
        (family, n, seed)
        for family, sizes in suite.sizes.items()
        if FAMILIES[family].available
        for n in sizes
        for seed in suite.seeds
    )
    return sorted(found, key=lambda each: each[1])
