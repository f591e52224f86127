"""The interface of all requirements on a channel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_floats, as_indices, read_only, require
from mechdesign.base._check import as_list, rename_path, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, Names, labels_of, order_of, settled
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._stated import Stated
from mechdesign.model._claims import Claims
from mechdesign.model._domain import Domain
from mechdesign.model._words import Words

if TYPE_CHECKING:
    import networkx as nx

_R = TypeVar("_R", bound="Requirement")


class Requirement(ABC):
    """A requirement on a channel, with its exact claims and its description in words.

    >>> from mechdesign.model._requirements._metric import MetricPrivacy
    >>> isinstance(MetricPrivacy(1, [[0, 1], [1, 0]]), Requirement)
    True
    """

    number: ClassVar[str] = "epsilon"
    """The key of the main number of the requirement in specifications, such as "epsilon", "factor" or "minimum"."""

    names: Names = ()
    """The names of the secrets, if a frame of distances was given; otherwise empty."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the kind of requirement."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of secrets."""

    @property
    def anchors(self) -> Domain | None:
        """The domain of anchors, if the requirement bounds all points between anchors; otherwise None."""
        return None

    @abstractmethod
    def stated(self) -> tuple[Stated, ...]:
        """Return the statements for the verifier, one for each claim, in a fixed order."""

    @classmethod
    @abstractmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements; this method is the inverse of `stated`.

        Args:
            stated: The statements.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Requirement:
        """Return the requirement on a subset of the secrets.

        The number and order of statements are preserved. By default, floors get the minimum 0, because the contribution
        of a subset of secrets to a floor is not determined.

        Args:
            secrets: The ascending indices of the subset. The result numbers the secrets of the subset from 0.
            floors: Whether floors keep their minimum instead of getting 0, with the prior conditioned on the subset.

        Returns:
            The requirement on the subset.

        Raises:
            InputError: A floor is kept, and its prior gives the subset probability 0.
        """
        kept = as_indices(secrets, "secrets", self.size)
        made = self.from_stated([restricted(each, kept, floors=floors) for each in self._statements], len(kept))
        object.__setattr__(made, "names", self._names_of(kept))
        return made

    def _names_of(self, secrets: Integers) -> Names:
        """Return the names of a subset of the secrets, which are numbered from 0."""
        labels = labels_of(self.names, "distance")
        return tuple(labels[secret] for secret in secrets.tolist()) if labels else ()

    def arranged(self, labels: Labels) -> Requirement:
        """Return the requirement on secrets in the order of labels, with which its names are matched.

        Args:
            labels: The labels of the secrets; empty if they have none.

        Returns:
            The requirement; this requirement itself if it has no names.

        Raises:
            InputError: The names are not the labels.
        """
        order = order_of(self.names, labels, "distance")
        return self if order is None else self.restrict(order)

    @abstractmethod
    def title(self, words: Words) -> str:
        """Return the name of the requirement with its unit, such as "metric privacy, ε per km (Euclidean distance)".

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The name for reports.
        """

    def titles(self, words: Words) -> tuple[str, ...]:
        """Return a name for each statement; by default, each name is the title.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            One name for each statement.
        """
        return (self.title(words),) * len(self.stated())

    @abstractmethod
    def promise(self, words: Words) -> str:
        """Describe the limit on an adversary, as the end of the sentence "Anyone who sees an answer can …".

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence.
        """

    @property
    def graph(self) -> nx.Graph | None:
        """The graph to which `[policy]` applies; answers stay in its components. Only graph privacy has one."""
        return None

    def claims(self) -> Claims:
        """Return the claims of the requirement: bounds on pairs and on points, and floors on the adversary's error."""
        return self._claims

    @property
    def pair_bounds(self) -> tuple[PairBound, ...]:
        """The claims of the requirement that bound pairs of secrets."""
        return tuple(self._claims.pair_bounds.values())

    @property
    def floors(self) -> tuple[Floor, ...]:
        """The claims of the requirement that are floors on the adversary's error."""
        return tuple(self._claims.floors.values())

    @cached_property
    def _statements(self) -> tuple[Stated, ...]:
        return self.stated()

    @cached_property
    def _claims(self) -> Claims:
        return Claims(stated.claim(self.size) for stated in self._statements)


def as_requirements(values: Any, n: int, whose: str = "", labels: Labels = ()) -> tuple[Requirement, ...]:
    """Return requirements as a tuple, in the order of labels with which their names are matched.

    Raises `InputError` for invalid values, a wrong number of secrets, or names that are not the labels.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError("requirements", "is not a list", value=values, bound="a list of requirements")
    found: list[Requirement] = []
    for index, requirement in enumerate(values):
        path = f"requirements[{index}]"
        if not isinstance(requirement, Requirement):
            raise InputError(path, "is not a requirement", value=requirement, bound="MetricPrivacy, …")
        if requirement.size != n:
            problem = "has another number of secrets"
            raise InputError(path, problem, value=requirement.size, bound=f"{n}{whose}")
        try:
            found.append(requirement.arranged(labels))
        except InputError as error:
            raise rename_path(error, f"{path}.{error.path}", error.path) from error
    return tuple(found)


def restricted(stated: Stated, secrets: Integers, *, floors: bool = False) -> Stated:
    """Return a statement restricted to a subset of the secrets.

    Args:
        stated: The statement.
        secrets: The ascending indices of the subset. The result numbers the secrets of the subset from 0.
        floors: Whether floors keep their minimum instead of getting 0. In both cases, the prior of a floor is
            conditioned on the subset.

    Returns:
        The statement on the subset.

    Raises:
        InputError: The statement requires all anchors, or a floor is kept and its prior gives the subset probability 0.

    >>> from mechdesign.model._requirements._graph import GraphPrivacy
    >>> import networkx as nx
    >>> (graph,) = GraphPrivacy(1, nx.path_graph(4)).stated()
    >>> restricted(graph, np.array([1, 2])).arrays["edges"].tolist()
    [[0, 1]]
    """
    if stated.kind == "dithered" and len(secrets) != stated.numbers["columns"] * stated.numbers["rows"]:
        raise InputError(
            "secrets", f"do not include all anchors of {stated.name} privacy", value=len(secrets), bound="all anchors"
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
        arrays["prior"] = _condition_prior(np.asarray(arrays["prior"], dtype=np.float64), secrets, floors)
    numbers = dict(stated.numbers)
    if not floors and "minimum" in numbers:
        numbers["minimum"] = Fraction(0)
    return Stated(stated.kind, numbers, arrays, stated.name, stated.part)


def _condition_prior(prior: Floats, secrets: Integers, required: bool) -> Floats:
    total = prior[secrets].sum()
    if total > 0:
        given: Floats = prior[secrets] / total
        return given
    if required:
        raise InputError("prior", "is zero on every possible secret", bound="above 0 on at least one secret")
    return np.full(secrets.size, 1 / secrets.size)


def check_stated(stated: Sequence[Stated], count: int | None = None) -> list[Stated]:
    """Return statements as a list; raise `InputError` for another type or number, where None means at least one."""
    found = as_list(stated, "stated", "a list of Stated")
    for index, each in enumerate(found):
        require_kind(each, Stated, f"stated[{index}]", "a Stated")
    if not found or (count is not None and len(found) != count):
        raise InputError("stated", "has the wrong length", value=len(found), bound=str(count or "at least 1"))
    return found


def with_fields(requirement: _R, **changes: object) -> _R:
    """Return a copy of a requirement with changed fields and read-only arrays, without the checks of its class."""
    made = object.__new__(type(requirement))
    for item in fields(requirement):  # type: ignore[arg-type]
        value = changes.get(item.name, getattr(requirement, item.name))
        if isinstance(value, np.ndarray):
            read_only(value)
        object.__setattr__(made, item.name, value)
    return made


def square(values: ArrayLike, names: Names) -> tuple[Floats, Names]:
    """Return distances (n, n) as read-only float64, and the names of the secrets, which distances may have.

    Raises `InputError` if they are negative or not square, or if rows and columns have different names.
    """
    given = settled(values, "distance", names)
    matrix = as_floats(given.values, "distance", "(n, n)")
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n)")
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity for a pair without a bound")
    return matrix, given.rows
