"""Continuous geo-indistinguishability: d-privacy for all points of the plane, not only for the centres of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError, SpacingWarning
from mechdesign.base._warnings import warn
from mechdesign.certify._dithering import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._requirement import Requirement, check_stated, with_fields
from mechdesign.model._words import Words, short

Distance = Literal["euclidean", "manhattan", "chebyshev"]

_NORMS = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}

# A warning is issued if the product of ε and the spacing h exceeds this value. Neighbouring anchors get the
# bound 1 + ε·h, which is then far below the factor exp(ε·h) that d-privacy allows. Between cells this far apart, the
# answer is often the true cell.
_MAX_EPSILON_SPACING = 2

# The recommended product of ε and the spacing; finer anchors reduce the cost only a little.
_GOOD_EPSILON_SPACING = Fraction(1, 2)

# Numerators and denominators of factors have at most 18 digits, which fit into 63 bits.
_LARGEST = 10**18


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ContinuousPrivacy(Requirement):
    """Continuous geo-indistinguishability: p(o|x) <= exp(ε d(x, x')) p(o|x') for all points x, x' of the plane.

    For a point, `Design.sample_at` draws one of the four surrounding anchors with bilinear weights, and then draws the
    answer from the row of this anchor. The requirement bounds anchors a, b that are neighbours along x by
    p(o|b) <= (1 + ε_x h_x) p(o|a), where h_x is their distance. Anchors that are neighbours along y have the same bound
    with ε_y h_y. These bounds imply the bound for all points if ε_x² + ε_y² = ε² (Euclidean), ε_x = ε_y = ε
    (Manhattan), or ε_x + ε_y = ε (Chebyshev). The numbers ε_x and ε_y are rational and rounded down if necessary. The
    certificate contains the least ε for which the bound for all points holds.

    Args:
        epsilon: ε in nats per unit of distance, > 0.
        domain: The domain of anchors; see `Domain.anchors`.
        distance: The distance d: "euclidean", "manhattan" or "chebyshev".
        split: The ratio ε_x² / ε² (Euclidean) or ε_x / ε (Chebyshev), between 0 and 1. None means 1/2. For the
            Manhattan distance, this argument is an error.

    Raises:
        InputError: The domain has no anchors, or another argument is invalid.

    Warns:
        SpacingWarning: The anchors are too far apart for a useful channel.

    >>> ContinuousPrivacy(0.5, Domain.anchors(columns=9, rows=9, width=8.0, height=8.0))
    ContinuousPrivacy(epsilon=0.5, 9 × 9 anchors, euclidean)
    """

    kind: ClassVar[str] = "continuous"
    epsilon: Fraction
    domain: Domain
    distance: Distance
    rates: tuple[Fraction, Fraction]

    def __init__(
        self, epsilon: Number, domain: Domain, distance: Distance = "euclidean", split: Number | None = None
    ) -> None:
        number = positive(epsilon, "epsilon")
        if not isinstance(domain, Domain) or domain.lattice is None:
            raise InputError("domain", "has no anchors", value=domain, remedy="create the domain with Domain.anchors")
        require_name(distance, _NORMS, "distance")
        object.__setattr__(self, "epsilon", number)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "rates", _rates(number, distance, split))
        _check_spacing(number, max(self.steps), domain.unit)

    def __repr__(self) -> str:
        shape = f"{self._lattice_shape[0]} × {self._lattice_shape[1]} anchors"
        return f"ContinuousPrivacy(epsilon={exact_text(self.epsilon)}, {shape}, {self.distance})"

    @property
    def size(self) -> int:
        """The number of anchors."""
        return self.domain.size

    @property
    def anchors(self) -> Domain:
        """The domain of anchors."""
        return self.domain

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """The distances between neighbouring anchors along x and y."""
        assert self.domain.lattice is not None
        return self.domain.lattice.steps

    @property
    def _lattice_shape(self) -> tuple[int, int]:
        assert self.domain.lattice is not None
        return self.domain.lattice.columns, self.domain.lattice.rows

    def stated(self) -> tuple[Stated, ...]:
        """Return the statement for all points and the two statements on neighbouring anchors that imply it."""
        columns, rows = self._lattice_shape
        anchors = np.arange(columns * rows).reshape(rows, columns)
        edges = (
            np.column_stack((anchors[:, :-1].ravel(), anchors[:, 1:].ravel())),
            np.column_stack((anchors[:-1].ravel(), anchors[1:].ravel())),
        )
        neighbours = (
            Stated.ratios(self.kind, _factor(rate * step), np.concatenate([pairs, pairs[:, ::-1]]), part=part)
            for part, (rate, step, pairs) in enumerate(zip(self.rates, self.steps, edges, strict=True), 1)
        )
        between = Stated.dithered(self.kind, self.epsilon, _NORMS[self.distance], (columns, rows), self.steps)
        return (between, *neighbours)

    def least_epsilon(self, channel: Channel) -> float:
        """Return the least ε for which a channel from these anchors satisfies the bound for all points.

        The exact value is rounded up to float64. The value is infinite if no ε suffices. The ε of the requirement has
        no influence on the value.

        Args:
            channel: A channel with one row for each anchor.

        Returns:
            The least ε in nats per unit of distance, or infinity.

        >>> anchors = Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
        >>> snapped = Channel.from_matrix([[0.75, 0.25], [0.5, 0.5], [0.75, 0.25], [0.5, 0.5]])
        >>> ContinuousPrivacy(1, anchors).least_epsilon(snapped)
        1.0
        """
        claim = self.claims().point_bounds[0]
        if channel.numerators.shape[0] != self.size:
            raise InputError("channel", "does not match the anchors", value=channel, bound=f"{self.size} rows")
        return claim.least(claim.steepest(channel.numerators))

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements.

        Args:
            stated: The three statements of the requirement.
            secrets: The number of anchors.

        Returns:
            The requirement.
        """
        stated = check_stated(stated, 3)
        between, along_x, along_y = stated
        numbers = between.numbers
        columns, rows = int(numbers["columns"]), int(numbers["rows"])
        steps = numbers["step_x"], numbers["step_y"]
        width, height = (nearest(step * (count - 1)) for step, count in zip(steps, (columns, rows), strict=True))
        made: Self = object.__new__(cls)
        object.__setattr__(made, "epsilon", numbers["epsilon"])
        object.__setattr__(made, "domain", Domain.anchors(columns, rows, width, height, unit=""))
        names = {norm: name for name, norm in _NORMS.items()}
        object.__setattr__(made, "distance", names[int(numbers["norm"])])
        rates = tuple((each.numbers["factor"] - 1) / step for each, step in zip((along_x, along_y), steps, strict=True))
        object.__setattr__(made, "rates", rates)
        if between.claim(secrets) != made.stated()[0].claim(secrets):
            bound = "a decimal width divided by the number of patches"
            raise InputError("step_x", "is not a step of anchors", value=str(steps[0]), bound=bound)
        return made

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Return a copy of the requirement; raise `InputError` unless the subset contains all anchors.

        Args:
            secrets: The indices of all anchors.
            floors: This argument is not used, because the requirement has no floors.

        Returns:
            An unchanged copy of the requirement.
        """
        if len(secrets) != self.size:
            problem = "do not include all anchors, which the requirement needs"
            raise InputError("secrets", problem, value=len(secrets), bound=f"all {self.size} anchors")
        return with_fields(self)

    def title(self, words: Words) -> str:
        """Return the name of the requirement with its unit and distance.

        Args:
            words: The object that names distances.

        Returns:
            The name for reports.
        """
        unit = words.measure(distances.euclidean(self.domain)).unit
        return f"continuous privacy, ε per {unit or 'unit of distance'} ({_NAMES[self.distance]} distance, all points)"

    def titles(self, words: Words) -> tuple[str, ...]:
        """Return the names of the bound for all points and of the two bounds on neighbouring anchors.

        Args:
            words: The object that names distances.

        Returns:
            One name for each of the three statements.
        """
        return self.title(words), "between neighbouring anchors along x", "between neighbouring anchors along y"

    def promise(self, words: Words) -> str:
        """Describe the largest change of the odds between two points.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        found = words.measure(distances.euclidean(self.domain))
        length = 1.0
        while float(self.epsilon) * length > 3:
            length /= 10
        apart = f"{found.with_unit(short(length))} apart" if found.unit else f"at distance {short(length)}"
        factor = words.factor(float(self.epsilon) * length)
        return f"shift the odds between any two points {apart} by a factor of at most {factor} (closer ones by less)"


_NAMES = {"euclidean": "Euclidean", "manhattan": "Manhattan", "chebyshev": "Chebyshev"}


def _rates(epsilon: Fraction, distance: str, split: Number | None) -> tuple[Fraction, Fraction]:
    """Return ε_x and ε_y such that the dual norm of (ε_x, ε_y) is at most ε."""
    if distance == "manhattan":
        if split is not None:
            raise InputError("split", "is not allowed with the Manhattan distance", value=split, remedy="omit split")
        return epsilon, epsilon
    share = Fraction(1, 2) if split is None else exact(split, "split")
    if not 0 < share < 1:
        raise InputError("split", "is out of range", value=split, bound="between 0 and 1, both excluded")
    if distance == "chebyshev":
        return share * epsilon, (1 - share) * epsilon
    return _root_below(share * epsilon**2), _root_below((1 - share) * epsilon**2)


def _root_below(square: Fraction) -> Fraction:
    """Return the square root, rounded down to at least 18 significant decimal digits."""
    digits = 18 + max(0, (square.denominator.bit_length() - square.numerator.bit_length()) // 6)
    return Fraction(math.isqrt(square.numerator * 10 ** (2 * digits) // square.denominator), 10**digits)


def _factor(growth: Fraction) -> Fraction:
    """Return 1 + ε·h, rounded down if the exact number has too many digits."""
    factor = 1 + growth
    if max(factor.as_integer_ratio()) < _LARGEST:
        return factor
    if factor >= _LARGEST:
        return Fraction(_LARGEST)
    scale = _LARGEST // 10 ** len(str(int(factor)))
    return Fraction(int(factor * scale), scale)


def describe_spacing(places: str, epsilon: Fraction, step: Fraction, unit: str, effect: str) -> str:
    """Return sentences on places that are too far apart for ε, with the effect and the remedy, or an empty text."""
    if epsilon * step <= _MAX_EPSILON_SPACING:
        return ""
    behind = f" {unit}" if unit else ""
    return (
        f"{places} are {nearest(step):.4g}{behind} apart, and ε times this spacing is {nearest(epsilon * step):.3g}. "
        f"{effect}. Keep {places} at most {nearest(_MAX_EPSILON_SPACING / epsilon):.3g}{behind} apart, "
        f"preferably {nearest(_GOOD_EPSILON_SPACING / epsilon):.3g}{behind}"
    )


def _check_spacing(epsilon: Fraction, step: Fraction, unit: str) -> None:
    effect = (
        f"The probabilities of neighbouring anchors may differ by a factor of {nearest(1 + epsilon * step):.3g} "
        f"instead of exp(ε·h) = {math.exp(min(700.0, nearest(epsilon * step))):.3g}, and the spacing causes most of "
        "the cost"
    )
    if said := describe_spacing("anchors", epsilon, step, unit, effect):
        warn(f"domain: {said}", SpacingWarning, stacklevel=3)
