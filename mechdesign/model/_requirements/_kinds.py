"""The kinds of requirements by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from mechdesign.base._errors import InputError
from mechdesign.certify._stated import Stated
from mechdesign.model._requirements._claimed import ClaimedPrivacy
from mechdesign.model._requirements._continuous import ContinuousPrivacy
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._requirements._threshold import ThresholdPrivacy

KINDS: Mapping[str, type[Requirement]] = MappingProxyType(
    {
        "metric": MetricPrivacy,
        "threshold": ThresholdPrivacy,
        "graph": GraphPrivacy,
        "distortion": DistortionPrivacy,
        "continuous": ContinuousPrivacy,
    }
)
"""The kinds of requirements that a ``[[privacy]]`` table can state, by the value of its key ``kind``."""


def load_requirements(stated: Sequence[Stated], secrets: int) -> list[Requirement]:
    """Return the requirements that the statements of a bundle represent, in the order of the statements.

    A requirement of another kind than `KINDS` is returned as `ClaimedPrivacy`, with the same claims.

    Args:
        stated: The statements.
        secrets: The number of secrets.

    Returns:
        The requirements.

    Raises:
        InputError: The statements are inconsistent, or do not match their kind.

    >>> load_requirements(MetricPrivacy(1, [[0, 1], [1, 0]]).stated(), 2)
    [MetricPrivacy(epsilon=1, 2 secrets)]
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
            raise InputError("part", f"is out of order among the claims of {name} privacy", bound="0, 1, …, in order")
        found.append(KINDS[name].from_stated(own, secrets) if name in KINDS else ClaimedPrivacy(own, secrets))
    return found
