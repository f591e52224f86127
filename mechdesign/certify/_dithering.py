"""Privacy of every real coordinate: the slope of a channel that is interpolated between the corners of a grid.

The secrets are the corners of a rectangular grid, *anchors*. For a real point the four corners of its patch are drawn
with bilinear weights w_a(x), and the row of the one drawn is sampled, so that p(o|x) = Σ_a w_a(x) p(o|a). What is
claimed is p(o|x) <= exp(ε·d(x, x')) p(o|x') for all points x, x' of the rectangle, and all observables.

In a patch f = p(o|·) is bilinear. With δ_x = |∂f/∂x| / f and δ_y likewise, the claim holds if and only if the norm of
(δ_x, δ_y) that is dual to d is at most ε everywhere: integrate ln f along the way from x to x', which lies in the
rectangle; and two points that are close together come arbitrarily close to it. For every direction θ the function
D_θ f - ε f is bilinear, too, so that it is largest at a corner of the patch. There δ_x = |f(b) - f(a)| / (h_x f(a)),
with b the neighbour of corner a along x: a rational number. A corner where f is 0 next to one where it is not has no ε.
(Andrés et al., Geo-indistinguishability, 2013, define the privacy; the interpolation is ours.)

Points outside the rectangle may be projected onto it, which shortens all three distances.
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
from mechdesign.certify._exact import exact, exact_text, least_float, nearest, printed

CHEBYSHEV, MANHATTAN, EUCLIDEAN = 0, 1, 2
"""The distances between points by the order of their norm; 0 stands for the infinite one."""

# Steps whose slopes, and the squares of these, are floats.
_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)


@dataclass(frozen=True)
class Slope:
    """The steepest place of a channel: at the corner `anchor`, for `observable`; None where no observable varies.

    `power` is the square of the least ε for the Euclidean distance, and the least ε for the others; None where there is
    none.
    """

    power: Fraction | None
    anchor: int = 0
    neighbour: int = 0
    observable: int = 0


@dataclass(frozen=True)
class Dithered:
    """The claim that a channel dithered between anchors keeps exp(ε·d) for every two points of their rectangle.

    Anchors are numbered row by row, `columns` · row + column, and are `step_x` and `step_y` apart. `norm` is that of
    the distance: 2 Euclidean, 1 Manhattan, 0 Chebyshev. Raises `InputError` for anything else.
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
            if name != "epsilon" and not _SMALLEST <= number <= _LARGEST:
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
        """The exact number that the claim states."""
        return self.epsilon

    def holds(self, found: Slope) -> bool:
        """Decide whether a slope is at most ε."""
        return found.power is not None and found.power <= (self.epsilon**2 if self.norm == EUCLIDEAN else self.epsilon)

    def least(self, found: Slope) -> float:
        """Return the least ε, rounded up so that its printed decimal holds; infinite where there is none."""
        if found.power is None:
            return math.inf
        value = found.power
        if self.norm != EUCLIDEAN:
            return _rounded_up(nearest(value), lambda number: number >= value)
        return _rounded_up(_root(value), lambda number: number * number >= value)

    def steepest(self, numerators: Integers) -> Slope:
        """Return where a channel, int64 numerators (columns · rows, m), is steepest; exact.

        Floats find the corners that may decide: differences of numerators are exact in int64, so that a slope in
        floats is within 2**-48 of the exact one. Those within 2**-40 of the largest are compared exactly.
        """
        own = numerators.reshape(self.rows, self.columns, numerators.shape[1])
        # An anchor is a corner of up to four patches, which pair each neighbour along x with each along y.
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
        """Return a slope at `place`, row, column and observable, with the neighbour that differs most."""
        row, column, observable = place
        beside = [(row, column - 1), (row, column + 1), (row - 1, column), (row + 1, column)]
        known = [(j, i) for j, i in beside if 0 <= j < self.rows and 0 <= i < self.columns]
        other = max(known, key=lambda near: abs(int(own[(*near, observable)]) - int(own[place])))
        return Slope(power, row * self.columns + column, other[0] * self.columns + other[1], observable)

    def _norm(self, x: Floats, y: Floats) -> Floats:
        """Return the norm dual to that of the distance."""
        if self.norm == EUCLIDEAN:
            return np.hypot(x, y)
        return np.maximum(x, y) if self.norm == MANHATTAN else x + y

    def _power(self, x: Fraction, y: Fraction) -> Fraction:
        if self.norm == EUCLIDEAN:
            return x * x + y * y
        return max(x, y) if self.norm == MANHATTAN else x + y

    def sentence(self, found: Slope) -> str:
        """Say where the claim fails."""
        if found.power is None:
            return (
                f"observable {found.observable} has probability 0 at anchor {found.anchor} and not at its neighbour "
                f"{found.neighbour}, so that no ε holds between them"
            )
        return (
            f"between anchors {found.anchor} and {found.neighbour} the probability of observable {found.observable} "
            f"changes faster than exp({exact_text(self.epsilon)} · distance)"
        )


def _largest(steps: Integers, axis: int) -> Integers:
    """Return for each anchor the larger of the differences to the one before and the one after it along an axis."""
    edge = np.zeros_like(np.take(steps, [0], axis=axis))
    larger: Integers = np.maximum(np.concatenate([edge, steps], axis=axis), np.concatenate([steps, edge], axis=axis))
    return larger


def _root(value: Fraction) -> float:
    """Return about the square root, also where that of the nearest float would be 0."""
    half = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(nearest(value / Fraction(4) ** half)), half) if value else 0.0


def _rounded_up(guess: float, enough: Callable[[Fraction], bool]) -> float:
    """Return the least float >= 0 whose printed decimal is enough, from a guess next to it."""
    return least_float(guess, lambda number: number >= 0 and enough(printed(number)))
