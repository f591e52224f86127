"""Budgets of least cost for the releases that a specification describes: what an ε costs is found by designing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify._exact import exact_text
from mechdesign.base._errors import SpecificationError
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._best_budgets import BestBudgets
from mechdesign.leakage._best_budgets import best_budgets
from mechdesign.leakage._transitions import as_target
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.spec.designing import design_problem
from mechdesign.spec.specification import Specification
from mechdesign.spec.specification import beyond_budgets
from mechdesign.base._arrays import as_nonnegative

__all__ = ["PricedBudgets", "price_budgets"]


_SHARES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))
_MORE, _ROUNDS = 6, 5
# An ε is written with so many digits that there are at least this many below α.
_DISTINCT = 200


@dataclass(frozen=True, eq=False)
class PricedBudgets:
    """Budgets for the releases of a specification, and the certified costs that they were chosen by.

    Attributes:
        best: The budgets; each ε is one of `costs`, or 0. The lower bound is about costs linear between those designs.
        costs: The certified cost of one release for each ε that was designed for, and at 0 that of no release.
        notes: What a user should know, such as that a release may leak more than its ε.
    """

    best: BestBudgets
    costs: Mapping[Fraction, float]
    notes: tuple[str, ...]


def price_budgets(
    specification: Specification,
    alpha: float,
    weights: ArrayLike,
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    window: int = 1,
    tolerance: float = 0.01,
    told: Callable[[str], None] | None = None,
    **changed: Any,
) -> PricedBudgets:
    """Return budgets of least cost for releases that a specification describes; see `mechdesign.leakage._best_budgets.best_budgets`.

    Designs are made and certified at a few ε, then at those that the budgets ask for, until every ε that is spent has
    a design and the total is within `tolerance` of what the curve promises.

    Args:
        specification: It has one ``epsilon``, which is varied.
        alpha: What each release, or window, may leak, in nats.
        weights: How much each release counts, shape (T,).
        backward: Pr(state before | state now), or None.
        forward: Pr(next state | state now), or None.
        window: How many successive releases are bounded together.
        tolerance: When to stop, as a share of the cost.
        told: Called with a sentence before each design.
        changed: Fields of `SolveSettings`, as for `Specification.design`.

    Raises:
        SpecificationError: The specification has no ε, or several.
    """
    alpha, counts = as_target(alpha), as_nonnegative(weights, "weights", 1)
    place = _place(specification)
    costs: dict[Fraction, float] = {Fraction(0): _unreleased(specification, place, alpha)}
    quantum = Fraction(10) ** math.floor(math.log10(alpha / _DISTINCT))
    wanted = sorted({max(math.floor(Fraction(alpha) * share / quantum), 1) * quantum for share in _SHARES})
    found: BestBudgets | None = None
    for _ in range(_ROUNDS):
        for epsilon in wanted:
            if told is not None:
                told(f"design {len(costs)}, ε = {exact_text(epsilon)}")
            costs[epsilon] = _at(specification, place, epsilon, changed).certificate.cost
        known = sorted(costs)
        # A channel for less ε serves for more as well.
        falling = np.minimum.accumulate([costs[epsilon] for epsilon in known])
        axis = np.array([float(epsilon) for epsilon in known])
        curves = [(axis, weight * falling) for weight in counts]
        best = best_budgets(alpha, curves, backward, forward, window=window, tolerance=tolerance)
        places = np.searchsorted(axis, best.epsilons, side="right") - 1
        total = math.fsum((counts * falling[places]).tolist()) * (1 + 2.0**-44)
        if found is None or total < found.cost:
            found = replace(best, epsilons=axis[places], cost=total)
        found = replace(found, lower_bound=min(best.lower_bound, found.cost))
        missing = sorted(
            {math.floor(Fraction(value) / quantum) * quantum for value in best.epsilons.tolist()} - set(costs)
        )
        if not missing or found.cost <= best.cost * (1 + tolerance):
            break
        spread = np.unique(np.linspace(0, len(missing) - 1, _MORE).round().astype(int))
        wanted = [missing[index] for index in spread.tolist()]
    assert found is not None
    notes = beyond_budgets(
        _varied(specification, place, Fraction(1)).problem().requirements[place], f"privacy[{place}]"
    )
    return PricedBudgets(found, ReadOnlyMapping(dict(sorted(costs.items()))), notes)


def _place(specification: Specification) -> int:
    """Return which ``[[privacy]]`` table has the ε."""
    places = [place for place, raw in enumerate(specification.document.privacy) if "epsilon" in raw]
    if len(places) != 1:
        raise SpecificationError(
            "privacy", f"has {len(places)} tables with epsilon", bound="one, whose epsilon the budgets vary"
        )
    return places[0]


def _varied(specification: Specification, place: int, epsilon: Fraction) -> Specification:
    tables = [
        {**raw, "epsilon": exact_text(epsilon)} if i == place else raw
        for i, raw in enumerate(specification.document.privacy)
    ]
    varied = replace(specification, document=msgspec.structs.replace(specification.document, privacy=tables))
    return varied.with_data_of(specification)


def _at(specification: Specification, place: int, epsilon: Fraction, changed: Mapping[str, Any]) -> Any:
    varied = _varied(specification, place, epsilon)
    return design_problem(varied.problem(), varied.policy_settings, replace(specification.settings, **changed), changed)


def _unreleased(specification: Specification, place: int, alpha: float) -> float:
    """Return the cost of releasing nothing: that of the best single answer."""
    problem = _varied(specification, place, Fraction(alpha)).problem()
    each = problem.cost.max(axis=0) if problem.objective == "worst" else problem.prior @ problem.cost
    return float(each.min()) * (1 + 2.0**-40)
