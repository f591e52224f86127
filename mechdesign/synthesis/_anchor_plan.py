"""How far apart anchors should be: the cost against their spacing, planned from coarse runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from numpy.typing import ArrayLike

from mechdesign.base._check import as_integer, as_number
from mechdesign.base._errors import InputError, OutsideWarning, SpacingWarning
from mechdesign.base._warnings import silenced
from mechdesign.certify._exact import nearest
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._continuous import ContinuousPrivacy, Distance
from mechdesign.synthesis._design import design

# ε times the spacings that are tried: coarse enough to be quick, fine enough for the cost to follow a line.
_TRIAL_STEPS = (1.0, 0.7)
# Fewer anchors along a side say little, and more take long.
_MIN_TRIAL_ANCHORS, _MAX_TRIAL_ANCHORS = 4, 16
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class CoarseRun:
    """A design on coarse anchors: how many, the larger of their two steps, and the certified cost."""

    columns: int
    rows: int
    step: float
    cost: float


@dataclass(frozen=True, eq=False)
class AnchorPlan:
    """Anchors for a wanted accuracy, and the coarse runs that the choice rests on.

    Attributes:
        anchors: The domain of anchors.
        cost: The cost to be expected with these anchors, an estimate.
        limit: The cost to be expected with ever finer anchors, an estimate.
        runs: The coarse runs, the coarsest first.
        reached: Whether the accuracy is expected to be reached with as many anchors as are allowed.
    """

    anchors: Domain
    cost: float
    limit: float
    runs: tuple[CoarseRun, ...]
    reached: bool


def plan_anchors(
    epsilon: Number,
    points: ArrayLike,
    observables: Domain,
    *,
    width: float,
    height: float,
    unit: str = "km",
    distance: Distance = "euclidean",
    cost: str = "euclidean",
    weights: ArrayLike | None = None,
    accuracy: float = 0.05,
    most: int = 900,
) -> AnchorPlan:
    """Choose anchors so that finer ones would save less than a wanted part of the cost.

    Channels are designed on two coarse grids of anchors, with ε·h about 1 and 0.7. Neighbours may differ by 1 + ε·h,
    which falls short of exp(ε·h) by a part that is linear in the step h, and so is what the cost has above the one that
    ever finer anchors tend to. The line through the two runs gives that limit, and the largest step is taken at which
    the cost is above it by no more than `accuracy`.

    Args:
        epsilon: ε per unit of distance, as in `ContinuousPrivacy`.
        points: Visits, (k, 2), as in `Problem.from_visits`.
        observables: The places that are answered.
        width: The width of the rectangle.
        height: Its height.
        unit: The unit of both.
        distance: The distance of the requirement.
        cost: The cost of an answer: a distance by its name.
        weights: How often each visit counts, (k,).
        accuracy: The part of the cost that finer anchors may still save.
        most: The largest number of anchors.

    Returns:
        The anchors, with what they are expected to cost.

    Raises:
        InputError: An argument is wrong.
    """
    number, wanted = positive(epsilon, "epsilon"), as_number(accuracy, "accuracy")
    if not 0 < wanted < 1:
        raise InputError("accuracy", "is out of range", value=accuracy, bound="between 0 and 1")
    allowed = as_integer(most, "most", 4)
    sides = as_number(width, "width"), as_number(height, "height")
    made: list[CoarseRun] = []
    for columns, rows in _choose_coarse_grids(nearest(number), sides):
        anchors = Domain.anchors(columns, rows, *sides, unit=unit)
        # Said once.
        with silenced(SpacingWarning, *([OutsideWarning] if made else [])):
            required = ContinuousPrivacy(number, anchors, distance)
            problem = Problem.from_visits(points, observables, [required], cost, weights)
        found = design(problem, tolerance=_TOLERANCE).certificate.cost
        made.append(CoarseRun(columns, rows, nearest(max(required.steps)), found))
    coarse, fine = made
    slope = max(0.0, (coarse.cost - fine.cost) / (coarse.step - fine.step))
    limit = fine.cost - slope * fine.step
    step = wanted * limit / slope if slope > 0 and limit > 0 else coarse.step
    # No coarser than what was tried, where nothing is known, and no more anchors than allowed.
    step = min(step, coarse.step)
    reached = True
    while _count_anchors(sides, step) > allowed:
        step, reached = step * 1.02, False
    columns, rows = _count_sides(sides, step)
    return AnchorPlan(
        Domain.anchors(columns, rows, *sides, unit=unit), limit + slope * step, limit, tuple(made), reached
    )


def _choose_coarse_grids(epsilon: float, sides: tuple[float, float]) -> Iterator[tuple[int, int]]:
    """Yield two numbers of columns and rows, the second larger."""
    for tried, fewest, most in zip(
        _TRIAL_STEPS,
        (_MIN_TRIAL_ANCHORS, _MIN_TRIAL_ANCHORS + 2),
        (_MAX_TRIAL_ANCHORS - 4, _MAX_TRIAL_ANCHORS),
        strict=True,
    ):
        along = min(max(math.ceil(max(sides) * epsilon / tried) + 1, fewest), most)
        yield _count_sides(sides, max(sides) / (along - 1))


def _count_sides(sides: tuple[float, float], step: float) -> tuple[int, int]:
    columns, rows = (max(2, math.ceil(side / step - 1e-9) + 1) for side in sides)
    return columns, rows


def _count_anchors(sides: tuple[float, float], step: float) -> int:
    columns, rows = _count_sides(sides, step)
    return columns * rows
