"""Threshold privacy: secrets within a radius of each other are indistinguishable, others are not bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.base._check import require_kind
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._grammar import Distance, Epsilon, GraphTable, MatrixFile, Table, says
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._kind import Reading, RequirementKind, check_stated, square
from mechdesign.model._words import Words


class ThresholdTable(Table, frozen=True, tag_field="kind", tag="threshold"):
    """Threshold privacy: p(o|s) ≤ exp(ε) p(o|s') for every two secrets at a distance of at most the radius."""

    alternatives: ClassVar = ("distance", "matrix", "graph")

    epsilon: Annotated[Epsilon, says('ε in nats, exact: a number, a text such as "1/3", or a file of budgets.')]
    radius: Annotated[Fraction, says("the radius in the unit of the distance, exact.")]
    distance: Annotated[Distance | None, says("the distance by its name.")] = None
    matrix: Annotated[MatrixFile | None, says("the distance from a file.")] = None
    graph: Annotated[GraphTable | None, says("the distance as lengths of shortest paths.")] = None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ThresholdPrivacy(RequirementKind):
    """Threshold privacy: p(o|s) <= e^ε p(o|s') wherever d(s, s') <= radius (Privacy Games, equations 14 and 23b).

    `epsilon` is in nats; `distance` (n, n) and `radius` share a unit. Rounding may have made a distance longer than a
    radius that it equals. What is at most `distances.reach(radius, margin)` = radius · (1 + 1e-9) + `margin` is
    therefore within the radius, and the attribute `distance` has the radius in its place: the requirement is then that
    d(s, s') <= radius, as stated. Give the `margin` of distances between coordinates that were computed, far from their
    origin: `distances.margin(domain)`.
    """

    kind: ClassVar[str] = "threshold"
    table: ClassVar[type[Table]] = ThresholdTable
    epsilon: Fraction
    distance: Floats
    radius: Fraction

    def __init__(self, epsilon: Number, distance: ArrayLike, radius: Number, margin: float = 0.0) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "radius", positive(radius, "radius"))
        given = square(distance)
        distances.check_metric(given, "distance")
        distances.warn_of_radius(self.radius, float(given[np.isfinite(given)].max(initial=0.0)))
        object.__setattr__(self, "distance", distances.down_to(given, self.radius, margin))

    def __repr__(self) -> str:
        numbers = f"epsilon={exact_text(self.epsilon)}, radius={exact_text(self.radius)}"
        return f"ThresholdPrivacy({numbers}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> tuple[Stated, ...]:
        """State the bound on every ordered pair within the radius."""
        return (Stated.threshold(self.epsilon, self.distance, self.radius),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated: on the pairs that it states, whatever rounding did to others."""
        stated = check_stated(stated, 1)
        (only,) = stated
        made = object.__new__(cls)
        for name, value in (*only.numbers.items(), *only.arrays.items()):
            object.__setattr__(made, name, value)
        return made

    def left_free(self, margin: float = 0.0) -> int:
        """Return how many ordered pairs lie at the radius, to within rounding, and are not bounded."""
        return int((self.distance != distances.down_to(self.distance, self.radius, margin)).sum())

    @classmethod
    def from_table(cls, table: ThresholdTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        require_kind(table, cls.table, "table", cls.table.__name__)
        return cls(table.epsilon, reading.measure(table), table.radius, reading.margin(table))

    def title(self, words: Words) -> str:
        """Name the requirement, its radius and its distance."""
        found = words.measure(self.distance)
        name = f" ({found.name})" if found.name else ""
        return f"threshold privacy, ε within {found.with_unit(words.decimal(self.radius))}{name}"

    def promise(self, words: Words) -> str:
        """Say how much the odds of two secrets within the radius change."""
        within = words.measure(self.distance).with_unit(words.decimal(self.radius))
        factor = words.factor(float(self.epsilon))
        return f"shift the odds between two secrets within {within} of each other by a factor of at most {factor}"
