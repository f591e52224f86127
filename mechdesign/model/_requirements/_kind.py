"""The base class for kinds of requirements that specifications can state and bundles can store.

A kind is defined in one file by a class derived from `RequirementKind`. The class defines fields and checks their
values. The method `stated` returns the statements of the requirement, and `from_stated` is its inverse. The method
`from_table` reads a ``[[privacy]]`` table, whose keys are defined by the attribute `table`. The methods `title` and
`promise` describe the requirement in words. Specifications, bundles and reports accept a kind after it is registered in
`mechdesign.model._requirements._kinds`, or by another package with `register`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Protocol, Self, TypeVar

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_floats, read_only, require
from mechdesign.base._check import as_list, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._stated import Stated
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import PriorTable, Table
from mechdesign.model._prior import Prior
from mechdesign.model._requirements._requirement import Requirement

_R = TypeVar("_R", bound=Requirement)


class Reading(Protocol):
    """The values that a specification provides to a kind of requirement; errors name the key of the invalid value."""

    @property
    def secrets(self) -> Domain:
        """The domain of the secrets."""

    def secret(self, name: int | str, key: str) -> int:
        """Return the index of a secret.

        Args:
            name: The label of the secret, or its index as an integer.
            key: The key that contains the secret; error messages name this key.

        Returns:
            The index, from 0.
        """

    def measure(self, table: Any, *, any_rows: bool = False) -> Floats:
        """Return the matrix (n, n) that the key ``distance``, ``matrix`` or ``graph`` of a table describes.

        Args:
            table: The table.
            any_rows: Whether a matrix from a file may have a number of rows other than n.

        Returns:
            The matrix, float64.
        """

    def margin(self, table: Any) -> float:
        """Return a bound on the rounding errors of the distances of a table; see `distances.margin`.

        Args:
            table: The table.

        Returns:
            The bound in the unit of the distances.
        """

    def prior(self, table: PriorTable, key: str) -> Prior:
        """Return the prior over the secrets that a table describes.

        Args:
            table: A table with the keys of ``[prior]``.
            key: The key that contains the table; error messages name this key.

        Returns:
            The prior.
        """

    def policy_graph(self, table: Any) -> nx.Graph:
        """Return the graph on the secrets 0, …, n−1 that a table describes.

        Args:
            table: A table with the keys of a policy graph.

        Returns:
            The graph.
        """


class RequirementKind(Requirement):
    """A requirement that specifications can state and bundles can store.

    >>> from mechdesign.model import KINDS
    >>> KIND = KINDS["metric"]
    >>> issubclass(KIND, RequirementKind), KIND.kind
    (True, 'metric')
    """

    kind: ClassVar[str]
    table: ClassVar[type[Table]]
    """The class of the ``[[privacy]]`` table of the kind, with one field for each key.

    The tag ``kind`` of the class is the name of the kind. A field of type `Fraction` is an exact number, which the file
    contains as a decimal or as a text such as "1/3"."""

    joins_all: ClassVar[bool] = False
    """Whether a requirement with a named distance joins all secrets by bounds, so that the problem cannot be split."""

    @classmethod
    @abstractmethod
    def from_table(cls, table: Any, reading: Reading) -> Self:
        """Return the requirement that a table of a specification describes.

        Implementations raise `InputError` for an invalid value, with the name of the key as the path.

        Args:
            table: A ``[[privacy]]`` table, an instance of the class attribute `table`.
            reading: The domain, distances and priors of the specification.

        Returns:
            The requirement.
        """


def check_stated(stated: Sequence[Stated], count: int | None = None) -> list[Stated]:
    """Check the type and number of statements and return the statements as a list.

    Args:
        stated: The statements.
        count: The required number of statements; None means at least one.

    Returns:
        The statements.

    Raises:
        InputError: An entry is not a statement, or the number of statements is wrong.

    >>> from mechdesign.model import MetricPrivacy
    >>> len(check_stated(MetricPrivacy(1, [[0, 1], [1, 0]]).stated(), 1))
    1
    """
    found = as_list(stated, "stated", "a list of Stated")
    for index, each in enumerate(found):
        require_kind(each, Stated, f"stated[{index}]", "a Stated")
    if not found or (count is not None and len(found) != count):
        raise InputError("stated", "has the wrong length", value=len(found), bound=str(count or "at least 1"))
    return found


def with_fields(requirement: _R, **changes: object) -> _R:
    """Return a copy of a requirement with changed fields, without the checks of the constructor.

    Args:
        requirement: A requirement that is a dataclass.
        **changes: The new values, by field name. Arrays become read-only.

    Returns:
        The copy.

    >>> from mechdesign.model import MetricPrivacy
    >>> with_fields(MetricPrivacy(1, [[0, 1], [1, 0]]), distance=np.zeros((1, 1)))
    MetricPrivacy(epsilon=1, 1 secrets)
    """
    made = object.__new__(type(requirement))
    for item in fields(requirement):  # type: ignore[arg-type]
        value = changes.get(item.name, getattr(requirement, item.name))
        if isinstance(value, np.ndarray):
            read_only(value)
        object.__setattr__(made, item.name, value)
    return made


def square(values: ArrayLike) -> Floats:
    """Check a matrix of distances between secrets and return it.

    Args:
        values: Distances >= 0, shape (n, n). An infinite distance means that the requirement does not bound the pair.

    Returns:
        The matrix, float64, read-only.

    Raises:
        InputError: The matrix is not square or has negative entries.

    >>> square([[0, 2], [2, 0]]).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    matrix = as_floats(values, "distance", "(n, n)")
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n)")
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity for a pair without a bound")
    return matrix
