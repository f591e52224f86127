"""Continuous geo-indistinguishability: d-privacy of every real coordinate, not only of the centres of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError, SpacingWarning
from mechdesign.base._warnings import warn
from mechdesign.certify._dithering import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Epsilon, Table, says
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._kind import Reading, RequirementKind, check_stated, with_fields
from mechdesign.model._words import Words

Distance = Literal["euclidean", "manhattan", "chebyshev"]

_NORMS = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}

# With ε·h beyond this the rows of neighbours allow factors of 1 + ε·h only where exp(ε·h) would be private.
_COARSE = 2
# About where finer anchors gain little.
_FINE = Fraction(1, 2)
# Numerators and denominators of factors have at most 18 digits, which 63 bits hold.
_LARGEST = 10**18


class ContinuousTable(Table, frozen=True, tag_field="kind", tag="continuous"):
    """Privacy of every real coordinate: p(o|x) ≤ exp(ε d(x, x')) p(o|x') for every answer o and all points x, x'.

    The secrets are anchors: the domain has the key ``anchors``.
    """

    epsilon: Annotated[
        Epsilon, says('ε in nats per unit of distance, exact: a number, a text such as "1/3", or a file of budgets.')
    ]
    distance: Annotated[Distance, says("the distance d between points.")] = "euclidean"
    split: Annotated[
        Fraction | None,
        says("the share of ε² (of ε for the Chebyshev distance) that goes to the x axis, between 0 and 1."),
    ] = None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ContinuousPrivacy(RequirementKind):
    """Continuous geo-indistinguishability: p(o|x) <= exp(ε d(x, x')) p(o|x') for all points x, x' of the plane.

    A channel from anchors (`Domain.anchors`) answers for a point by the row of a corner of its patch, drawn with
    bilinear weights (`Design.sample_at`). It is asked that neighbours a, b along x keep p(o|b) <= (1 + ε_x h_x) p(o|a),
    and along y likewise, which implies the above: with ε_x² + ε_y² = ε² for the Euclidean distance, ε_x = ε_y = ε for
    the Manhattan distance, and ε_x + ε_y = ε for the Chebyshev distance. All these numbers are rational, and rounded
    down where they must be. What the certificate says of the requirement is the least ε that holds for all points.

    Args:
        epsilon: ε in nats per unit of distance.
        domain: The anchors.
        distance: "euclidean", "manhattan" or "chebyshev".
        split: The share of ε² that goes to ε_x², for the Chebyshev distance that of ε; half unless given. The Manhattan
            distance needs none.

    Raises:
        InputError: The domain has no anchors, or another argument is wrong.

    Warns:
        SpacingWarning: Anchors are so far apart that the rows are of little use.

    >>> ContinuousPrivacy(0.5, Domain.anchors(columns=9, rows=9, width=8.0, height=8.0))
    ContinuousPrivacy(epsilon=0.5, 9 × 9 anchors, euclidean)
    """

    kind: ClassVar[str] = "continuous"
    table: ClassVar[type[Table]] = ContinuousTable
    epsilon: Fraction
    domain: Domain
    distance: Distance
    rates: tuple[Fraction, Fraction]

    def __init__(
        self, epsilon: Number, domain: Domain, distance: Distance = "euclidean", split: Number | None = None
    ) -> None:
        number = positive(epsilon, "epsilon")
        if not isinstance(domain, Domain) or domain.lattice is None:
            raise InputError("domain", "has no anchors", value=domain, remedy="make it with Domain.anchors")
        if distance not in _NORMS:
            raise InputError("distance", "is not known", value=distance, bound=" or ".join(_NORMS))
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
        """Number of anchors."""
        return self.domain.size

    @property
    def anchors(self) -> Domain:
        """The anchors."""
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
        """State the bound between all points, and those between neighbours along x and along y that imply it."""
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
        """Return the least ε with which a channel from these anchors, of whatever origin, protects all points.

        Exact, rounded up; infinite where there is none. The ε of the requirement does not enter.

        >>> anchors = Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
        >>> snapped = Channel.from_matrix([[0.75, 0.25], [0.5, 0.5], [0.75, 0.25], [0.5, 0.5]])
        >>> ContinuousPrivacy(1, anchors).least_epsilon(snapped)
        1.0
        """
        claim = self.claims().point_bounds[0]
        if channel.numerators.shape[0] != self.size:
            raise InputError("channel", "is not one from these anchors", value=channel, bound=f"{self.size} rows")
        return claim.least(claim.steepest(channel.numerators))

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated."""
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
        if any(
            each.claim(secrets) != own.claim(secrets) for each, own in zip(stated[:1], made.stated()[:1], strict=True)
        ):
            raise InputError("step_x", "is no decimal width over the number of patches", value=str(steps[0]))
        return made

    @classmethod
    def from_table(cls, table: ContinuousTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        require_kind(table, cls.table, "table", cls.table.__name__)
        if reading.secrets.lattice is None:
            raise InputError(
                "domain", "has no anchors", bound="a domain with anchors = { … }, where others have a grid"
            )
        return cls(table.epsilon, reading.secrets, table.distance, table.split)

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Keep all of it: between some anchors alone nothing is interpolated."""
        if len(secrets) != self.size:
            raise InputError("secrets", "are some of the anchors, and the requirement is about all", value=len(secrets))
        return with_fields(self)

    def title(self, words: Words) -> str:
        """Name the requirement, its unit and its distance."""
        unit = words.measure(distances.euclidean(self.domain)).unit
        return f"continuous privacy, ε per {unit or 'unit of distance'} ({_NAMES[self.distance]} distance, all points)"

    def titles(self, words: Words) -> tuple[str, ...]:
        """Name the bound between all points, and those between neighbouring anchors that imply it."""
        return self.title(words), "between neighbouring anchors along x", "between neighbouring anchors along y"

    def promise(self, words: Words) -> str:
        """Say how much the odds of two points change."""
        found = words.measure(distances.euclidean(self.domain))
        length = 1.0
        while float(self.epsilon) * length > 3:
            length /= 10
        apart = (
            f"{found.with_unit(words.number(length))} apart" if found.unit else f"at distance {words.number(length)}"
        )
        factor = words.factor(float(self.epsilon) * length)
        return f"shift the odds between any two points {apart} by a factor of at most {factor} (closer ones by less)"


_NAMES = {"euclidean": "Euclidean", "manhattan": "Manhattan", "chebyshev": "Chebyshev"}


def _rates(epsilon: Fraction, distance: str, split: Number | None) -> tuple[Fraction, Fraction]:
    """Return ε_x and ε_y, which together are at most ε in the norm dual to that of the distance."""
    if distance == "manhattan":
        if split is not None:
            raise InputError("split", "does not go with the Manhattan distance", value=split, remedy="leave it out")
        return epsilon, epsilon
    share = Fraction(1, 2) if split is None else exact(split, "split")
    if not 0 < share < 1:
        raise InputError("split", "is out of range", value=split, bound="between 0 and 1, both excluded")
    if distance == "chebyshev":
        return share * epsilon, (1 - share) * epsilon
    return _root_below(share * epsilon**2), _root_below((1 - share) * epsilon**2)


def _root_below(square: Fraction) -> Fraction:
    """Return the square root, rounded down to 18 significant decimal digits or more."""
    digits = 18 + max(0, (square.denominator.bit_length() - square.numerator.bit_length()) // 6)
    return Fraction(math.isqrt(square.numerator * 10 ** (2 * digits) // square.denominator), 10**digits)


def _factor(growth: Fraction) -> Fraction:
    """Return 1 + ε·h, rounded down where it has more digits than a factor may have."""
    factor = 1 + growth
    if max(factor.as_integer_ratio()) < _LARGEST:
        return factor
    if factor >= _LARGEST:
        return Fraction(_LARGEST)
    scale = _LARGEST // 10 ** len(str(int(factor)))
    return Fraction(int(factor * scale), scale)


def _check_spacing(epsilon: Fraction, step: Fraction, unit: str) -> None:
    if epsilon * step <= _COARSE:
        return
    behind = f" {unit}" if unit else ""
    warn(
        f"domain: anchors are {nearest(step):.4g}{behind} apart, and ε times that is {nearest(epsilon * step):.3g}: "
        f"neighbours may differ by a factor of {nearest(1 + epsilon * step):.3g} where exp(ε·h) would be "
        f"{math.exp(min(700.0, nearest(epsilon * step))):.3g}, and most of the cost is that of the spacing. Take "
        f"anchors at most {nearest(_COARSE / epsilon):.3g}{behind} apart, "
        f"better {nearest(_FINE / epsilon):.3g}{behind}",
        SpacingWarning,
        stacklevel=3,
    )
