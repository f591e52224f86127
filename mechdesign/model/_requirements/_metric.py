"""Metric privacy, also called d-privacy: the odds of two secrets change the less, the closer they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_indices
from mechdesign.base._check import require_kind
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._grammar import Distance, Epsilon, GraphTable, MatrixFile, Table, says
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._kind import Reading, RequirementKind, check_stated, square, with_fields
from mechdesign.model._words import Words

_IRREGULAR = {"feet": "foot", "inches": "inch"}


class MetricTable(Table, frozen=True, tag_field="kind", tag="metric"):
    """Metric privacy: p(o|s) ≤ exp(ε d(s, s')) p(o|s') for every answer o and every two secrets s and s'."""

    alternatives: ClassVar = ("distance", "matrix", "graph")

    epsilon: Annotated[
        Epsilon, says('ε in nats per unit of distance, exact: a number, a text such as "1/3", or a file of budgets.')
    ]
    distance: Annotated[Distance | None, says("the distance d by its name.")] = None
    matrix: Annotated[MatrixFile | None, says("the distance d from a file.")] = None
    graph: Annotated[GraphTable | None, says("the distance d as lengths of shortest paths.")] = None


# Beyond this exponent a factor says no more than its exponent.
_LARGEST_FACTOR = 13.0


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MetricPrivacy(RequirementKind):
    """Metric privacy: p(o|s) <= exp(ε d(s, s')) p(o|s') for all s, s', o (Privacy Games, equations 15 and 22b).

    `epsilon` is in nats per unit of distance; `distance` (n, n) is taken exactly as its float64 numbers, infinite
    where nothing is required. It need not be a metric: a matrix that is not warns with MetricWarning, and the channel
    is still right for the matrix as given.
    """

    kind: ClassVar[str] = "metric"
    joins_all: ClassVar[bool] = True
    table: ClassVar[type[Table]] = MetricTable
    epsilon: Fraction
    distance: Floats

    def __init__(self, epsilon: Number, distance: ArrayLike) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "distance", square(distance))
        distances.check_metric(self.distance, "distance")

    def __repr__(self) -> str:
        return f"MetricPrivacy(epsilon={exact_text(self.epsilon)}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> tuple[Stated, ...]:
        """State the bound on every ordered pair at finite distance."""
        return (Stated.metric(self.epsilon, self.distance),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated."""
        stated = check_stated(stated, 1)
        (only,) = stated
        return cls(only.numbers["epsilon"], only.arrays["distance"])

    @classmethod
    def from_table(cls, table: MetricTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        require_kind(table, cls.table, "table", cls.table.__name__)
        return cls(table.epsilon, reading.measure(table))

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Keep the distances between these secrets."""
        kept = as_indices(secrets, "secrets", self.size)
        return with_fields(self, distance=self.distance[np.ix_(kept, kept)])

    def title(self, words: Words) -> str:
        """Name the requirement, its unit and its distance."""
        found = words.measure(self.distance)
        name = f" ({found.name})" if found.name else ""
        return f"metric privacy, ε per {_one(found.unit) or 'unit of distance'}{name}"

    def promise(self, words: Words) -> str:
        """Say how much the odds of two secrets change, at a typical distance."""
        found = words.measure(self.distance)
        length, exponent = self._example()
        apart = words.number(length)
        apart = f"{found.with_unit(apart)} apart" if found.unit else f"at distance {apart}"
        factor = f"a factor of at most {words.factor(exponent)} (closer ones by less{self._farthest(words, exponent)})"
        return f"shift the odds between two secrets {apart} by {factor}"

    def _farthest(self, words: Words, exponent: float) -> str:
        """Say how much the odds of the two secrets that are farthest apart change, where that is more."""
        lengths = self.distance[np.isfinite(self.distance)]
        most = float(self.epsilon) * float(lengths.max(initial=0.0))
        if most <= exponent:
            return ""
        factor = f", a factor of about {float(f'{math.exp(most):.2g}'):,g}," if most < _LARGEST_FACTOR else ""
        return f", farther ones by more: up to e^{words.number(most)}{factor} across this map"

    def _example(self) -> tuple[float, float]:
        """Return a distance to give as an example, 1 where the secrets are at such distances, and ε times it."""
        lengths = self.distance[np.isfinite(self.distance) & (self.distance > 0)]
        length = 1.0
        if lengths.size and not lengths.min() / 2 <= 1.0 <= lengths.max():
            # The power of ten next to the typical distance.
            length = 10.0 ** round(math.log10(float(np.median(lengths))))
        return length, float(self.epsilon) * length


def _one(unit: str) -> str:
    """Return the name of one unit: "mile" for "miles"."""
    if unit in _IRREGULAR:
        return _IRREGULAR[unit]
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") and not unit.endswith(("ss", "us")) else unit
