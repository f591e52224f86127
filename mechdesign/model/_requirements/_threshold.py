"""Threshold privacy: secrets are indistinguishable if their distance is at most a radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.base._names import Names
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._requirement import Requirement, check_stated, square
from mechdesign.model._words import Words


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ThresholdPrivacy(Requirement):
    """Threshold privacy: p(o|s) <= e^ε p(o|s') if d(s, s') <= radius (Privacy Games, equations 14 and 23b).

    Rounding may have lengthened a distance that equals the radius. Distances up to `distances.reach(radius, margin)` =
    radius · (1 + 1e-9) + `margin` are therefore treated as equal to the radius if they exceed it. The attribute
    `distance` contains the radius in place of such a distance.

    Args:
        epsilon: ε in nats, > 0.
        distance: Distances d >= 0, shape (n, n), in the unit of the radius. An infinite distance means that the
            requirement does not bound the pair.
        radius: The exact radius, > 0.
        margin: A bound on the rounding errors of distances between computed coordinates; see `distances.margin`.
        names: The names of the secrets, in the order of the distances; by default, those of a frame of distances.

    Raises:
        InputError: ε or the radius is not positive, or the matrix is not square or has negative entries.

    >>> ThresholdPrivacy(1, [[0, 1, 2], [1, 0, 1], [2, 1, 0]], radius=1)
    ThresholdPrivacy(epsilon=1, radius=1, 3 secrets)
    """

    kind: ClassVar[str] = "threshold"
    epsilon: Fraction
    distance: Floats
    radius: Fraction
    names: Names = ()

    def __init__(
        self, epsilon: Number, distance: ArrayLike, radius: Number, margin: float = 0.0, *, names: Names = ()
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "radius", positive(radius, "radius"))
        given, names = square(distance, names)
        distances.check_metric(given, "distance")
        distances.warn_of_radius(self.radius, float(given[np.isfinite(given)].max(initial=0.0)))
        object.__setattr__(self, "distance", distances.down_to(given, self.radius, margin))
        object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        numbers = f"epsilon={exact_text(self.epsilon)}, radius={exact_text(self.radius)}"
        return f"ThresholdPrivacy({numbers}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """The number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> tuple[Stated, ...]:
        """Return the statement that bounds all ordered pairs within the radius."""
        return (Stated.threshold(self.epsilon, self.distance, self.radius),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements, without correcting distances for rounding.

        Args:
            stated: A list of exactly one statement.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """
        stated = check_stated(stated, 1)
        (only,) = stated
        made = object.__new__(cls)
        for name, value in (*only.numbers.items(), *only.arrays.items()):
            object.__setattr__(made, name, value)
        return made

    def title(self, words: Words) -> str:
        """Return the name of the requirement with its radius and distance.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The name for reports.
        """
        found = words.measure(self.distance)
        name = f" ({found.name})" if found.name else ""
        return f"threshold privacy, ε within {found.with_unit(exact_text(self.radius))}{name}"

    def promise(self, words: Words) -> str:
        """Describe the largest change of the odds between two secrets within the radius.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        within = words.measure(self.distance).with_unit(exact_text(self.radius))
        factor = words.factor(float(self.epsilon))
        return f"shift the odds between two secrets within {within} of each other by a factor of at most {factor}"
