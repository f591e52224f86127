"""Privacy of every real coordinate: the slope of a channel that is interpolated between the corners of a grid.

The secrets are the corners of a rectangular grid, called *anchors*. A real point lies in a patch with four corners. A
corner a is drawn with the bilinear weights w_a(x), and the answer is drawn from its row: p(o|x) = Σ_a w_a(x) p(o|a).
The claim is p(o|x) <= exp(ε·d(x, x')) p(o|x') for all points x, x' of the rectangle and all observables.

In a patch the function f = p(o|·) is bilinear. Let δ_x = |∂f/∂x| / f, and define δ_y in the same way. The claim holds
if and only if the dual norm of (δ_x, δ_y) is at most ε everywhere. The condition suffices: integrate ln f along the
segment from x to x', which lies in the rectangle. The condition is necessary because nearby points come arbitrarily
close to the bound. For every direction θ the function D_θ f - ε f is bilinear, so that it is largest at a corner a of
the patch. At this corner δ_x = |f(b) - f(a)| / (h_x f(a)), where b is the neighbour of a along x; this is a rational
number. If f is 0 at a corner but not at its neighbour, the claim holds for no ε. (Andrés et al.,
Geo-indistinguishability, 2013, define the privacy; the interpolation is ours.)

Points outside the rectangle may be projected onto it: the projection increases neither the Euclidean nor the Manhattan
nor the Chebyshev distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal, exact, exact_text, least_float, nearest

CHEBYSHEV, MANHATTAN, EUCLIDEAN = 0, 1, 2
"""The orders of the norms of the three distances; 0 denotes the maximum norm."""

# For steps in this range, slopes and their squares can be represented as floats.
_MIN_STEP, _MAX_STEP = Fraction(1, 10**100), Fraction(10**100)


@dataclass(frozen=True)
class Slope:
    """The largest slope of a channel, and its place.

    Attributes:
        power: The least ε, squared for the Euclidean distance; None if the claim holds for no ε.
        anchor: The anchor with the largest slope.
        neighbour: The neighbour whose probability differs most from the anchor's.
        observable: The observable with the largest slope.

    >>> from fractions import Fraction
    >>> Slope(Fraction(1, 4), anchor=3).anchor
    3
    """

    power: Fraction | None
    anchor: int = 0
    neighbour: int = 0
    observable: int = 0


@dataclass(frozen=True)
class Dithered:
    """The claim that a channel, dithered between anchors, keeps p(o|x) <= exp(ε·d(x, x')) p(o|x') in their rectangle.

    Anchors are numbered row by row: `columns` · row + column.

    Args:
        kind: The name of the requirement.
        epsilon: ε, above 0, in nats per unit of distance.
        norm: The norm of the distance: 2 Euclidean, 1 Manhattan, 0 Chebyshev.
        columns: Number of columns, at least 2.
        rows: Number of rows, at least 2.
        step_x: Distance between neighbouring columns, from 1e-100 to 1e100.
        step_y: Distance between neighbouring rows, from 1e-100 to 1e100.

    Raises:
        InputError: An argument is out of range.

    >>> from fractions import Fraction
    >>> import numpy as np
    >>> claim = Dithered("continuous", Fraction(1), 2, 2, 2, Fraction(1), Fraction(1))
    >>> claim.holds(claim.steepest(np.array([[4, 4], [4, 4], [4, 4], [5, 3]])))
    True
    """

    kind: str
    epsilon: Fraction
    norm: int
    columns: int
    rows: int
    step_x: Fraction
    step_y: Fraction
    number: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        for name in ("epsilon", "step_x", "step_y"):
            number = exact(getattr(self, name), name)
            if number <= 0:
                raise InputError(name, "is not positive", value=str(number), bound="above 0")
            if name != "epsilon" and not _MIN_STEP <= number <= _MAX_STEP:
                raise InputError(name, "is out of range", value=exact_text(number), bound="between 1e-100 and 1e100")
            object.__setattr__(self, name, number)
        for name, least in (("norm", 0), ("columns", 2), ("rows", 2)):
            number = exact(getattr(self, name), name)
            if number.denominator != 1 or number < least:
                raise InputError(name, "is out of range", value=str(number), bound=f"a whole number >= {least}")
            object.__setattr__(self, name, int(number))
        if self.norm not in (CHEBYSHEV, MANHATTAN, EUCLIDEAN):
            raise InputError("norm", "is not known", value=self.norm, bound="0, 1 or 2")

    @property
    def nominal(self) -> Fraction:
        """The exact value of ε."""
        return self.epsilon

    def holds(self, found: Slope) -> bool:
        """Decide whether a slope is at most ε.

        Args:
            found: The slope.

        Returns:
            Whether the claim holds.
        """
        return found.power is not None and found.power <= (self.epsilon**2 if self.norm == EUCLIDEAN else self.epsilon)

    def least(self, found: Slope) -> float:
        """Return the least ε for a slope.

        Args:
            found: The slope.

        Returns:
            ε, rounded up so that the claim holds for its printed decimal; infinite if the claim holds for no ε.
        """
        if found.power is None:
            return math.inf
        value = found.power
        if self.norm != EUCLIDEAN:
            return _round_up(nearest(value), lambda number: number >= value)
        return _round_up(_root(value), lambda number: number * number >= value)

    def steepest(self, numerators: Integers) -> Slope:
        """Return the largest slope of a channel, exactly.

        Floating-point slopes select the corners that may have the largest slope. Differences of numerators are exact in
        int64, so that a floating-point slope has a relative error of at most 2**-48. Slopes within 2**-40 of the
        largest are compared exactly.

        Args:
            numerators: The channel (columns · rows, m), int64.

        Returns:
            The slope and its place.
        """
        own = numerators.reshape(self.rows, self.columns, numerators.shape[1])
        # An anchor belongs to up to four patches: each neighbour along x forms a patch with each neighbour along y.
        along_x, along_y = (_largest(np.abs(np.diff(own, axis=axis)), axis) for axis in (1, 0))
        vanishing = np.argwhere((own == 0) & ((along_x > 0) | (along_y > 0)))
        if len(vanishing):
            return self._slope(None, own, tuple(vanishing[0].tolist()))
        with np.errstate(divide="ignore", under="ignore"):
            inverse = np.where(own > 0, 1.0 / own, 0.0)
        slopes = self._norm(along_x * inverse / nearest(self.step_x), along_y * inverse / nearest(self.step_y))
        largest = float(slopes.max())
        if largest == 0:
            return Slope(Fraction(0))
        candidates: dict[tuple[int, int, int], tuple[int, ...]] = {}
        for place in zip(*(axis.tolist() for axis in np.nonzero(slopes >= largest * (1 - 2.0**-40))), strict=True):
            candidates.setdefault((int(own[place]), int(along_x[place]), int(along_y[place])), place)
        power, place = max(
            (
                (self._power(Fraction(dx, base) / self.step_x, Fraction(dy, base) / self.step_y), place)
                for (base, dx, dy), place in candidates.items()
            ),
            key=lambda found: found[0],
        )
        return self._slope(power, own, place)

    def _slope(self, power: Fraction | None, own: Integers, place: tuple[int, ...]) -> Slope:
        """Return the slope at `place` (row, column, observable), with the neighbour whose numerator differs most."""
        row, column, observable = place
        near = [(row, column - 1), (row, column + 1), (row - 1, column), (row + 1, column)]
        known = [(j, i) for j, i in near if 0 <= j < self.rows and 0 <= i < self.columns]
        other = max(known, key=lambda at: abs(int(own[(*at, observable)]) - int(own[place])))
        return Slope(power, row * self.columns + column, other[0] * self.columns + other[1], observable)

    def _norm(self, x: Floats, y: Floats) -> Floats:
        """Return the norm that is dual to the norm of the distance."""
        if self.norm == EUCLIDEAN:
            return np.hypot(x, y)
        return np.maximum(x, y) if self.norm == MANHATTAN else x + y

    def _power(self, x: Fraction, y: Fraction) -> Fraction:
        if self.norm == EUCLIDEAN:
            return x * x + y * y
        return max(x, y) if self.norm == MANHATTAN else x + y

    def sentence(self, found: Slope) -> str:
        """Describe the place of a violation.

        Args:
            found: The slope.

        Returns:
            A sentence.
        """
        if found.power is None:
            return (
                f"observable {found.observable} has probability 0 at anchor {found.anchor} but not at its neighbour "
                f"{found.neighbour}, so that no ε bounds their ratio"
            )
        return (
            f"between anchors {found.anchor} and {found.neighbour} the probability of observable {found.observable} "
            f"changes faster than exp({exact_text(self.epsilon)} · distance)"
        )


def _largest(steps: Integers, axis: int) -> Integers:
    """Return for each anchor the larger of the differences to its two neighbours along an axis."""
    edge = np.zeros_like(np.take(steps, [0], axis=axis))
    larger: Integers = np.maximum(np.concatenate([edge, steps], axis=axis), np.concatenate([steps, edge], axis=axis))
    return larger


def _root(value: Fraction) -> float:
    """Return an approximate square root, even if the nearest float of `value` is 0."""
    half = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(nearest(value / Fraction(4) ** half)), half) if value else 0.0


def _round_up(guess: float, enough: Callable[[Fraction], bool]) -> float:
    """Return the least float >= 0 whose printed decimal satisfies `enough`, starting from a nearby guess."""
    return least_float(guess, lambda number: number >= 0 and enough(as_decimal(number)))
