"""The kinds of requirements by name. A requirement of any other kind consists only of its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Self

from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import Claim, Floor
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._exact import nearest
from mechdesign.certify._stated import Stated
from mechdesign.model._requirements._continuous import ContinuousPrivacy
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._requirements._threshold import ThresholdPrivacy
from mechdesign.model._words import Words, short


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ClaimedPrivacy(Requirement):
    """A requirement that consists only of its claims.

    A requirement of a kind that this package does not know becomes a `ClaimedPrivacy` when its bundle is loaded.

    Args:
        statements: The statements of the requirement, at least one.
        secrets: The number of secrets.

    Raises:
        InputError: The list of statements is empty, or a statement is for a different number of secrets.

    >>> from mechdesign.model._requirements._graph import GraphPrivacy
    >>> import networkx as nx
    >>> ClaimedPrivacy(GraphPrivacy(1, nx.path_graph(3)).stated(), 3)
    ClaimedPrivacy(graph, 1 claims, 3 secrets)
    """

    statements: tuple[Stated, ...]
    secrets: int

    def __init__(self, statements: Sequence[Stated], secrets: int) -> None:
        if not statements:
            raise InputError("statements", "are missing", bound="at least one")
        object.__setattr__(self, "statements", tuple(statements))
        object.__setattr__(self, "secrets", as_integer(secrets, "secrets", 1))
        self.claims()

    def __repr__(self) -> str:
        return f"ClaimedPrivacy({self.kind}, {len(self.statements)} claims, {self.secrets} secrets)"

    @property
    def kind(self) -> str:
        """The name of the kind, as given in the statements."""
        return self.statements[0].name or self.statements[0].kind

    @property
    def size(self) -> int:
        """The number of secrets."""
        return self.secrets

    def stated(self) -> tuple[Stated, ...]:
        """Return the statements."""
        return self.statements

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with these statements.

        Args:
            stated: The statements.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """
        return cls(stated, secrets)

    def title(self, words: Words) -> str:
        """Return the name of the requirement.

        Args:
            words: This argument is not used, because claims have no named distance.

        Returns:
            The name for reports.
        """
        return f"{self.kind} privacy"

    def promise(self, words: Words) -> str:
        """Describe how far the claims limit an adversary.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        return "; they can ".join(_limit(claim, words) for claim in self.claims())


def _limit(claim: Claim, words: Words) -> str:
    if isinstance(claim, Floor):
        least = words.measure(claim.error).with_unit(short(nearest(claim.minimum), 4))
        whose = "even knowing the prior" if claim.prior is None else "with a prior belief of one's own"
        return f"guess the secret, {whose}, but then expects to be off by at least {least} on average"
    if isinstance(claim, Dithered):
        factor = words.factor(float(claim.epsilon))
        return f"shift the odds between two points at distance 1 of each other by a factor of at most {factor}"
    factor = words.factor(float(claim.exponents.max(initial=0.0)))
    return f"shift the odds between two secrets that a bound joins by a factor of at most {factor}"


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

    A requirement whose kind is not in `KINDS` becomes a `ClaimedPrivacy` with the same claims.

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
