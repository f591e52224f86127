"""Distortion privacy: whoever guesses the secret from an answer errs by at least so much on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify.exact import exact, exact_text
from mechdesign.certify.stated import Stated
from mechdesign.data.tables import Distance, GraphTable, MatrixFile, Raw, Table, holds
from mechdesign.errors import InputError
from mechdesign.model.requirement import Words
from mechdesign.requirements.kind import Reading, RequirementKind, with_fields
from mechdesign.requirements.numbers import Number
from mechdesign.validation import Floats, Integers, as_floats, require

__all__ = ["DistortionPrivacy", "DistortionTable"]


class DistortionTable(Table, frozen=True):
    """Distortion privacy: whoever knows the prior and the channel still errs by the minimum on average.

    Attributes:
        kind: the kind of requirement.
        minimum: the least expected error of the best attack, in the unit of the error, exact.
        distance: the error of an estimate as a distance by its name.
        matrix: the error of every estimate from a file; rows are estimates, columns are secrets.
        graph: the error as lengths of shortest paths.
    """

    alternatives: ClassVar = ("distance", "matrix", "graph")

    kind: Literal["distortion"]
    minimum: Fraction
    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    graph: Annotated[Raw, holds(GraphTable)] | None = None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DistortionPrivacy(RequirementKind):
    """Distortion privacy: Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ, s) >= minimum (Privacy Games, equation 21).

    The best attack on the channel has at least this expected error. `distance` (k, n) is a(ŝ, s), estimates by
    secrets, in any unit; `minimum` is in that unit.
    """

    kind: ClassVar[str] = "distortion"
    number: ClassVar[str] = "minimum"
    table: ClassVar[type[Table]] = DistortionTable
    minimum: Fraction
    distance: Floats

    def __init__(self, minimum: Number, distance: ArrayLike) -> None:
        value = exact(minimum, "minimum")
        if value < 0:
            raise InputError("minimum", "is negative", value=minimum, bound="at least 0")
        matrix = as_floats(distance, "distance", "(k, n)")
        if 0 in matrix.shape:
            raise InputError("distance", "is empty", value=matrix.shape)
        require(np.isfinite(matrix) & (matrix >= 0), matrix, "distance", "a finite number >= 0")
        object.__setattr__(self, "minimum", value)
        object.__setattr__(self, "distance", matrix)

    def __repr__(self) -> str:
        return f"DistortionPrivacy(minimum={exact_text(self.minimum)}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[1])

    def stated(self) -> tuple[Stated, ...]:
        """State the floor on the adversary's expected error."""
        return (Stated.distortion(self.minimum, self.distance),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated."""
        (only,) = stated
        return cls(only.numbers["minimum"], only.arrays["error"])

    @classmethod
    def from_table(cls, table: DistortionTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        return cls(table.minimum, reading.measure(table, any_rows=True))

    def restrict(self, secrets: Integers) -> Self:
        """Keep the errors about these secrets, without a floor: what they add to it is not said for them alone."""
        return with_fields(self, minimum=Fraction(0), distance=self.distance[:, secrets])

    def condition(self, secrets: Integers) -> Self:
        """Keep the errors about these secrets, and the floor."""
        return with_fields(self, distance=self.distance[:, secrets])

    def title(self, words: Words) -> str:
        """Name the requirement, its unit and its distance."""
        found = words.measure(self.distance)
        unit, name = f" in {found.unit}" if found.unit else "", f" ({found.name})" if found.name else ""
        return f"distortion privacy, expected error{unit}{name}"

    def promise(self, words: Words) -> str:
        """Say how far off the best guess is."""
        least = words.measure(self.distance).with_unit(words.number(float(self.minimum), 4))
        return f"guess the secret, even knowing the prior, but is then off by at least {least} on average"
