"""What every requirement on a channel can do; the kinds of requirement are in `mechdesign.requirements`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np

from mechdesign.base._arrays import Floats, Integers, as_indices
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._stated import Stated
from mechdesign.model._claims import Claims
from mechdesign.model._domain import Domain
from mechdesign.model._words import Words


class Requirement(ABC):
    """A requirement on a channel: it knows what it claims, exactly, and how it is put in words."""

    number: ClassVar[str] = "epsilon"
    """What its number is called in specifications: "epsilon", "factor" or "minimum", say."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the kind."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of secrets."""

    @property
    def anchors(self) -> Domain | None:
        """The anchors that the secrets are, for a requirement about all points between them; else None."""
        return None

    @abstractmethod
    def stated(self) -> tuple[Stated, ...]:
        """Return the requirement in the words of the verifier: one statement for each claim, always in one order."""

    @classmethod
    @abstractmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement on so many secrets that gave these statements: the inverse of `stated`."""

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Requirement:
        """Return what the requirement says of some secrets alone, given by ascending indices, numbered anew from 0.

        As many statements remain, in their order. Those of floors have the minimum 0, since what the secrets add to the
        floor is not said for them alone. With `floors` they keep it, under the prior given that the secret is one of
        these: only these are then possible. Raises `InputError` for a prior of its own under which none of them is.
        """
        kept = as_indices(secrets, "secrets", self.size)
        return self.from_stated([restricted(each, kept, floors=floors) for each in self._statements], len(kept))

    @abstractmethod
    def title(self, words: Words) -> str:
        """Name the requirement and what its number means, such as "metric privacy, ε per km (Euclidean distance)"."""

    def titles(self, words: Words) -> tuple[str, ...]:
        """Name each of the statements: they share the title, unless they are about different things."""
        return (self.title(words),) * len(self.stated())

    @abstractmethod
    def promise(self, words: Words) -> str:
        """Say what whoever sees an answer can do at most, after "Whoever sees an answer can"."""

    def left_free(self, margin: float = 0.0) -> int:
        """Return how many ordered pairs lie at a radius, to within rounding, and are not bounded.

        Only requirements that an earlier version stated leave such pairs. `margin` is by how much, beside 1e-9 of the
        radius, rounding may have lengthened distances; see `distances.margin`.
        """
        return 0

    @property
    def policy_graph(self) -> nx.Graph | None:
        """The graph whose edges the requirement bounds, by the ε of its statement, and nothing else; else None."""
        return None

    def claims(self) -> Claims:
        """Return what the requirement claims of a channel: bounds on pairs, floors on the adversary's error."""
        return self._claims

    @property
    def pair_bounds(self) -> tuple[PairBound, ...]:
        """Its bounds on pairs of secrets."""
        return tuple(self._claims.pair_bounds.values())

    @property
    def floors(self) -> tuple[Floor, ...]:
        """Its floors on the adversary's error."""
        return tuple(self._claims.floors.values())

    @cached_property
    def _statements(self) -> tuple[Stated, ...]:
        return self.stated()

    @cached_property
    def _claims(self) -> Claims:
        return Claims(stated.claim(self.size) for stated in self._statements)


def as_requirements(values: Any, n: int, whose: str = "") -> tuple[Requirement, ...]:
    """Return requirements on n secrets; raise `InputError` for what is none, or is about another number of them."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError("requirements", "is not a list", value=values, bound="a list of requirements")
    for index, requirement in enumerate(values):
        path = f"requirements[{index}]"
        if not isinstance(requirement, Requirement):
            raise InputError(path, "is not a requirement", value=requirement, bound="MetricPrivacy, …")
        if requirement.size != n:
            problem = "speaks of another number of secrets"
            raise InputError(path, problem, value=requirement.size, bound=f"{n}{whose}")
    return tuple(values)


def restricted(stated: Stated, secrets: Integers, *, floors: bool = False) -> Stated:
    """Return what a statement says of some secrets alone, given by ascending indices and numbered anew from 0.

    Floors become 0 unless `floors` are to be kept; their own prior, if any, is that given that the secret is one of
    these. Raises `InputError` for a floor that is kept where no such secret is possible.
    """
    if stated.kind == "dithered" and len(secrets) != stated.numbers["columns"] * stated.numbers["rows"]:
        raise InputError(
            "secrets", f"are some of the anchors, and {stated.name} privacy is about all of them", value=len(secrets)
        )
    arrays = dict(stated.arrays)
    for name in ("edges", "pairs"):
        if name in arrays:
            kept = np.isin(arrays[name], secrets).all(axis=1)
            for beside in arrays.keys() & {"weights", "numerators", "denominators"}:
                arrays[beside] = arrays[beside][kept]
            arrays[name] = np.searchsorted(secrets, arrays[name][kept])
    if "distance" in arrays:
        arrays["distance"] = arrays["distance"][np.ix_(secrets, secrets)]
    if "error" in arrays:
        arrays["error"] = arrays["error"][:, secrets]
    if "prior" in arrays:
        arrays["prior"] = _given(np.asarray(arrays["prior"], dtype=np.float64), secrets, floors)
    numbers = dict(stated.numbers)
    if not floors and "minimum" in numbers:
        numbers["minimum"] = Fraction(0)
    return Stated(stated.kind, numbers, arrays, stated.name, stated.part)


def _given(prior: Floats, secrets: Integers, required: bool) -> Floats:
    total = prior[secrets].sum()
    if total > 0:
        given: Floats = prior[secrets] / total
        return given
    if required:
        raise InputError("prior", "is zero on every secret that is possible", bound="above 0 on at least one")
    return np.full(secrets.size, 1 / secrets.size)
