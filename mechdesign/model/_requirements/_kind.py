"""What a kind of requirement is made of, beside what every requirement can do.

A kind is one file: a class derived from `RequirementKind` that holds its fields and their checks, says what it states
(`stated`) and builds itself from that again (`from_stated`), reads itself from a ``[[privacy]]`` table (`table`,
`from_table`), and puts itself in words (`title`, `promise`). One line in `mechdesign.model._requirements._kinds`, or
`register` from another package, makes it known to specifications, exports and reports.
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
    """What a specification offers to the kind that reads one of its tables; errors name the key that is wrong."""

    @property
    def secrets(self) -> Domain:
        """The secrets."""

    def secret(self, name: int | str, key: str) -> int:
        """Return the index of a secret that the key `key` gives: a text is its label, an integer its position."""

    def measure(self, table: Any, *, any_rows: bool = False) -> Floats:
        """Return the matrix (n, n) that the key ``distance``, ``matrix`` or ``graph`` of a table describes.

        With `any_rows` that of a file has any number of rows.
        """

    def margin(self, table: Any) -> float:
        """Return by how much rounding may have lengthened what a table measures; see `distances.margin`."""

    def prior(self, table: PriorTable, key: str) -> Prior:
        """Return the prior over the secrets that a table with the keys of ``[prior]`` describes."""

    def policy_graph(self, table: Any) -> nx.Graph:
        """Return the graph on the secrets 0..n-1 that a table with the keys of a policy graph describes."""


class RequirementKind(Requirement):
    """A requirement that specifications can state and that exported sets give back."""

    kind: ClassVar[str]
    table: ClassVar[type[Table]]
    """The keys of its ``[[privacy]]`` table: a field for each, beside the tag ``kind``, which is the name of the kind.

    A field of type `Fraction` is an exact number: the decimal in the file, or a text such as "1/3"."""

    joins_all: ClassVar[bool] = False
    """Whether a named distance between secrets ties all of them together, so that they make one program."""

    @classmethod
    @abstractmethod
    def from_table(cls, table: Any, reading: Reading) -> Self:
        """Return the requirement that a ``[[privacy]]`` table states, given as an instance of `table`.

        Raises `InputError` for wrong arguments; a path that is the name of an argument is taken for the key.
        """


def check_stated(stated: Sequence[Stated], count: int | None = None) -> list[Stated]:
    """Return statements as a list; raise `InputError` unless they are statements, and as many as a kind makes."""
    found = as_list(stated, "stated", "a list of Stated")
    for index, each in enumerate(found):
        require_kind(each, Stated, f"stated[{index}]", "a Stated")
    if not found or (count is not None and len(found) != count):
        raise InputError("stated", "are not those of this kind", value=len(found), bound=str(count or "at least 1"))
    return found


def with_fields(requirement: _R, **changes: object) -> _R:
    """Change fields without the checks of the constructor: what was found of all secrets holds for some."""
    made = object.__new__(type(requirement))
    for item in fields(requirement):  # type: ignore[arg-type]
        value = changes.get(item.name, getattr(requirement, item.name))
        if isinstance(value, np.ndarray):
            read_only(value)
        object.__setattr__(made, item.name, value)
    return made


def square(values: ArrayLike) -> Floats:
    """Return distances between secrets, (n, n), infinite where nothing is required."""
    matrix = as_floats(values, "distance", "(n, n)")
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n)")
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity where nothing is required")
    return matrix
