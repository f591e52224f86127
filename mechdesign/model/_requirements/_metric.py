"""Metric privacy, also called d-privacy: the closer two secrets are, the less an answer changes their odds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_indices
from mechdesign.base._names import Names
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._requirement import Requirement, check_stated, square, with_fields
from mechdesign.model._words import Words, short

_IRREGULAR = {"feet": "foot", "inches": "inch"}


# The largest exponent for which the text of `promise` also contains the factor.
_MAX_EXPONENT_WITH_FACTOR = 13.0


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MetricPrivacy(Requirement):
    """Metric privacy: p(o|s) <= exp(ε d(s, s')) p(o|s') for all s, s', o (Privacy Games, equations 15 and 22b).

    The matrix can violate the axioms of a metric. If it does, a `MetricWarning` is issued, and the bounds use the
    matrix as given.

    Args:
        epsilon: ε in nats per unit of distance, > 0.
        distance: Distances d >= 0, float64 of shape (n, n), which are used exactly. An infinite distance means that the
            requirement does not bound the pair.
        names: The names of the secrets, in the order of the distances; by default, those of a frame of distances.

    Raises:
        InputError: ε is not positive, or the matrix is not square or has negative entries.

    >>> MetricPrivacy("0.5", distances.hamming(3))
    MetricPrivacy(epsilon=0.5, 3 secrets)
    """

    kind: ClassVar[str] = "metric"
    epsilon: Fraction
    distance: Floats
    names: Names = ()

    def __init__(self, epsilon: Number, distance: ArrayLike, *, names: Names = ()) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        found, names = square(distance, names)
        object.__setattr__(self, "distance", found)
        object.__setattr__(self, "names", names)
        distances.check_metric(self.distance, "distance")

    def __repr__(self) -> str:
        return f"MetricPrivacy(epsilon={exact_text(self.epsilon)}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """The number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> tuple[Stated, ...]:
        """Return the statement that bounds all ordered pairs with finite distances."""
        return (Stated.metric(self.epsilon, self.distance),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements.

        Args:
            stated: A list of exactly one statement.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """
        stated = check_stated(stated, 1)
        (only,) = stated
        return cls(only.numbers["epsilon"], only.arrays["distance"])

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Return the requirement on a subset of the secrets, with the distances between them.

        Args:
            secrets: The ascending indices of the subset. The result numbers the secrets of the subset from 0.
            floors: This argument is not used, because the requirement has no floors.

        Returns:
            The requirement on the subset.
        """
        kept = as_indices(secrets, "secrets", self.size)
        return with_fields(self, distance=self.distance[np.ix_(kept, kept)], names=self._names_of(kept))

    def title(self, words: Words) -> str:
        """Return the name of the requirement with its unit and distance.

        Args:
            words: The object that names distances.

        Returns:
            The name for reports.
        """
        found = words.measure(self.distance)
        name = f" ({found.name})" if found.name else ""
        return f"metric privacy, ε per {_one(found.unit) or 'unit of distance'}{name}"

    def promise(self, words: Words) -> str:
        """Describe the largest change of the odds between two secrets at a typical distance.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        found = words.measure(self.distance)
        length, exponent = self._example()
        apart = short(length)
        apart = f"{found.with_unit(apart)} apart" if found.unit else f"at distance {apart}"
        factor = f"a factor of at most {words.factor(exponent)} (closer ones by less{self._farthest(words, exponent)})"
        return f"shift the odds between two secrets {apart} by {factor}"

    def _farthest(self, words: Words, exponent: float) -> str:
        """Describe the largest change of the odds between any two secrets, if its logarithm exceeds `exponent`."""
        lengths = self.distance[np.isfinite(self.distance)]
        most = float(self.epsilon) * float(lengths.max(initial=0.0))
        if most <= exponent:
            return ""
        factor = f", a factor of about {float(f'{math.exp(most):.2g}'):,g}," if most < _MAX_EXPONENT_WITH_FACTOR else ""
        return f", farther ones by more: up to e^{short(most)}{factor} across this map"

    def _example(self) -> tuple[float, float]:
        """Return an example distance and its product with ε; the distance is 1 if 1 lies in the range of distances."""
        lengths = self.distance[np.isfinite(self.distance) & (self.distance > 0)]
        length = 1.0
        if lengths.size and not lengths.min() / 2 <= 1.0 <= lengths.max():
            # The power of ten nearest to the median distance.
            length = 10.0 ** round(math.log10(float(np.median(lengths))))
        return length, float(self.epsilon) * length


def _one(unit: str) -> str:
    """Return the singular of a unit, such as "mile" for "miles"."""
    if unit in _IRREGULAR:
        return _IRREGULAR[unit]
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") and not unit.endswith(("ss", "us")) else unit
