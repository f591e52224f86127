"""Choose the spacing of anchors: extrapolate the cost from designs on two coarse grids."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from numpy.typing import ArrayLike

from mechdesign.base._check import as_integer, as_number
from mechdesign.base._errors import InputError, OutsideWarning, SpacingWarning
from mechdesign.base._warnings import suppress_warnings, warn
from mechdesign.certify._exact import nearest
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._continuous import ContinuousPrivacy, Distance
from mechdesign.synthesis._design import design

# Product of ε and the anchors' spacing on each of the two coarse grids. Designs on these grids are fast, and their cost
# is nearly linear in the spacing.
_TRIAL_STEPS = (1.0, 0.7)
# Smallest and largest number of anchors along the longer side of a coarse grid: fewer give a poor estimate, and more
# take a long time.
_MIN_TRIAL_ANCHORS, _MAX_TRIAL_ANCHORS = 4, 16
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class CoarseRun:
    """A design on a coarse grid of anchors.

    Attributes:
        columns: Number of columns of anchors.
        rows: Number of rows of anchors.
        step: The larger of the two spacings, in the unit of the points.
        cost: Certified expected cost.

    >>> CoarseRun(columns=4, rows=4, step=0.5, cost=0.31).step
    0.5
    """

    columns: int
    rows: int
    step: float
    cost: float


@dataclass(frozen=True, eq=False)
class AnchorPlan:
    """Anchors for a desired accuracy, with the coarse runs that determined them.

    Attributes:
        anchors: The domain of anchors.
        cost: Estimated cost with these anchors.
        limit: Estimated limit of the cost as the spacing of the anchors tends to 0.
        runs: The coarse runs, the coarsest first.
        reached: Whether the allowed number of anchors is expected to suffice for the accuracy.

    >>> import mechdesign as md
    >>> run = CoarseRun(columns=4, rows=4, step=0.5, cost=0.31)
    >>> plan = AnchorPlan(md.Domain.anchors(4, 4, 1.5, 1.5), 0.31, 0.3, (run,), True)
    >>> plan.anchors.size
    16
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
    """Choose the coarsest anchors for which finer anchors would lower the cost by less than the share `accuracy`.

    Channels are designed on two coarse grids of anchors with steps h, where ε·h is about 1 and 0.7. The rows of
    neighbours may differ by the factor 1 + ε·h, which is less than exp(ε·h). Therefore the excess of the cost over its
    limit for h → 0 is linear in h to first order. A line through the costs of both runs estimates this limit. The plan
    takes the largest step whose estimated cost exceeds this limit by at most the share `accuracy`.

    Args:
        epsilon: ε per unit of distance, as in `ContinuousPrivacy`.
        points: Visits, shape (k, 2), as in `Problem.from_visits`.
        observables: Domain of the answers.
        width: Width of the rectangle, in `unit`.
        height: Height of the rectangle, in `unit`.
        unit: Unit of all lengths.
        distance: Distance of the requirement: "euclidean", "manhattan" or "chebyshev".
        cost: Name of the distance that serves as the cost.
        weights: Weight of each visit, shape (k,); 1 by default.
        accuracy: Share of the cost that finer anchors may still save, in (0, 1).
        most: Largest number of anchors.

    Returns:
        The anchors, with their estimated cost and the coarse runs.

    Raises:
        InputError: An argument has the wrong type or shape, or is out of range.

    Warns:
        SpacingWarning: The largest number of anchors does not suffice for the accuracy.

    >>> import mechdesign as md
    >>> visits, answers = [[0.2, 0.3], [0.7, 0.6]], md.Domain.grid(2, 2, 1.0, 1.0)
    >>> plan = plan_anchors("1", visits, answers, width=1.0, height=1.0, accuracy=0.2)
    >>> plan.anchors.size, plan.reached
    (16, True)
    """
    number, share = positive(epsilon, "epsilon"), as_number(accuracy, "accuracy")
    if not 0 < share < 1:
        raise InputError("accuracy", "is out of range", value=accuracy, bound="between 0 and 1")
    allowed = as_integer(most, "most", 4)
    sides = as_number(width, "width"), as_number(height, "height")
    coarse_runs: list[CoarseRun] = []
    for columns, rows in _choose_coarse_grids(nearest(number), sides):
        anchors = Domain.anchors(columns, rows, *sides, unit=unit)
        # Each warning is issued at most once.
        with suppress_warnings(SpacingWarning, *([OutsideWarning] if coarse_runs else [])):
            required = ContinuousPrivacy(number, anchors, distance)
            problem = Problem.from_visits(points, observables, [required], cost, weights)
        found = design(problem, tolerance=_TOLERANCE).certificate.cost
        coarse_runs.append(CoarseRun(columns, rows, nearest(max(required.steps)), found))
    coarse, fine = coarse_runs
    slope = max(0.0, (coarse.cost - fine.cost) / (coarse.step - fine.step))
    limit = fine.cost - slope * fine.step
    step = share * limit / slope if slope > 0 and limit > 0 else coarse.step
    # The step is at most that of the coarsest run, because the runs give no estimate for larger steps.
    step = min(step, coarse.step)
    reached = True
    while _count_anchors(sides, step) > allowed:
        step, reached = step * 1.02, False
    columns, rows = _count_sides(sides, step)
    if not reached:
        missed = f"{allowed} anchors do not reach the accuracy {share:g}: finer ones may save more of the cost"
        warn(f"most: {missed}. Allow more, or accept less", SpacingWarning)
    return AnchorPlan(
        Domain.anchors(columns, rows, *sides, unit=unit), limit + slope * step, limit, tuple(coarse_runs), reached
    )


def _choose_coarse_grids(epsilon: float, sides: tuple[float, float]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of columns and rows of the two coarse grids, the coarser one first."""
    for scaled_step, fewest, most in zip(
        _TRIAL_STEPS,
        (_MIN_TRIAL_ANCHORS, _MIN_TRIAL_ANCHORS + 2),
        (_MAX_TRIAL_ANCHORS - 4, _MAX_TRIAL_ANCHORS),
        strict=True,
    ):
        along = min(max(math.ceil(max(sides) * epsilon / scaled_step) + 1, fewest), most)
        yield _count_sides(sides, max(sides) / (along - 1))


def _count_sides(sides: tuple[float, float], step: float) -> tuple[int, int]:
    columns, rows = (max(2, math.ceil(side / step - 1e-9) + 1) for side in sides)
    return columns, rows


def _count_anchors(sides: tuple[float, float], step: float) -> int:
    columns, rows = _count_sides(sides, step)
    return columns * rows
