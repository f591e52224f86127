"""The kinds of requirement: one file each, and here one line.

A kind of another package is made known by `register`, and is then read from specifications, exported with its claims in
the open, verified, loaded and phrased in reports as those of this package are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

from mechdesign.certify.stated import Stated
from mechdesign.errors import InputError
from mechdesign.model.requirement import Requirement
from mechdesign.registry import Registry
from mechdesign.requirements.claimed import ClaimedPrivacy
from mechdesign.requirements.continuous import ContinuousPrivacy
from mechdesign.requirements.distortion import DistortionPrivacy
from mechdesign.requirements.graph import GraphPrivacy
from mechdesign.requirements.kind import RequirementKind
from mechdesign.requirements.metric import MetricPrivacy
from mechdesign.requirements.threshold import ThresholdPrivacy

__all__ = [
    "KINDS",
    "ContinuousPrivacy",
    "DistortionPrivacy",
    "GraphPrivacy",
    "MetricPrivacy",
    "ThresholdPrivacy",
    "load_requirements",
    "register",
]


def __dir__() -> list[str]:
    return sorted(__all__)


KINDS: Registry[type[RequirementKind]] = Registry("kind")
"""Every kind of requirement that a ``[[privacy]]`` table may state, by the name that stands under ``kind``."""

_K = TypeVar("_K", bound=RequirementKind)


def register(kind: type[_K]) -> type[_K]:
    """Make a kind of requirement known; use it as a decorator of the class.

    Raises:
        InputError: For what is no such class, and for a name that is taken.
    """
    if not (isinstance(kind, type) and issubclass(kind, RequirementKind)):
        raise InputError("kind", "is not a class derived from RequirementKind", value=kind)
    KINDS.register(kind.kind, kind)
    return kind


register(MetricPrivacy)
register(ThresholdPrivacy)
register(GraphPrivacy)
register(DistortionPrivacy)
register(ContinuousPrivacy)


def load_requirements(stated: Sequence[Stated], secrets: int) -> list[Requirement]:
    """Return the requirements on so many secrets that made these statements, in their order.

    A kind that is not registered comes back as `ClaimedPrivacy`, with the same claims. Raises `InputError` for
    statements that their kind did not make.
    """
    found: list[Requirement] = []
    starts = 0
    numbered: list[tuple[int, Stated]] = []
    for each in stated:
        starts += each.part == 0
        numbered.append((starts, each))
    for _, group in groupby(numbered, key=lambda item: item[0]):
        own = [each for _, each in group]
        name = own[0].name or own[0].kind
        if any((each.part, each.name) != (part, own[0].name) for part, each in enumerate(own)):
            raise InputError("part", f"is out of order among the claims of {name} privacy")
        found.append(KINDS[name].from_stated(own, secrets) if name in KINDS else ClaimedPrivacy(own, secrets))
    return found
