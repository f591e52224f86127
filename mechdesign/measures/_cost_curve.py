"""The least cost of one release as a function of its ε, from certified designs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from mechdesign.base import _cache as caching
from mechdesign.base._arrays import Floats, as_nonnegative, require
from mechdesign.base._check import as_truth
from mechdesign.base._errors import InputError
from mechdesign.base._version import __version__
from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._budget_program import CostCurve
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._kind import with_fields
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.solve._registry import find
from mechdesign.synthesis._design import design
from mechdesign.synthesis._settings import SolveSettings

_KIND = "cost-curve-1"
# A bound of the relative error of sums of exponents along a path.
_ROUNDING = Fraction(1, 2**40)


def cost_curve(
    problem: Problem, epsilons: ArrayLike, *, tolerance: float = 1e-6, solver: str = "auto", cache: bool | None = None
) -> CostCurve:
    """Return the least cost C(ε) of a release under each budget ε, for `best_budgets`.

    The requirement with an ε is scaled to the budget: ln p(o|s) − ln p(o|t) is at most the budget for all secrets and
    answers. The scale follows from the longest of all shortest paths of bounded pairs. Other requirements, such as
    distortion floors, stay. Each value is the cost of a certified design (Privacy Games, equation 11 or 12). A design
    for a smaller ε also satisfies a larger one, so that costs never rise. Only the curve is cached, not the designs.

    Args:
        problem: The problem of one release, with exactly one requirement that bounds pairs by an ε.
        epsilons: Budgets in nats, rising, shape (k,). At 0 the answer does not depend on the secret; this needs the
            objective "expected" and no floors.
        tolerance: Relative gap of each design, in (0, 1).
        solver: Name of the solver of each design.
        cache: Whether to use the cache; None for yes.

    Returns:
        The curve.

    Raises:
        InputError: The budgets do not rise. Or the problem does not have exactly one requirement with an ε. Or some
            pair of secrets has no bound, so that no budget is finite.
        InfeasibleError: A floor cannot be kept under a budget.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(md.Domain.from_labels(["yes", "no"]))
    >>> problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)])
    >>> cost_curve(problem, [0.0, 1.0, 2.0]).costs.round(3).tolist()
    [0.5, 0.269, 0.119]
    """
    if not isinstance(problem, Problem):
        raise InputError("problem", "is not a problem", value=problem, bound="a Problem")
    budgets = as_nonnegative(epsilons, "epsilons", 1)
    if not len(budgets):
        raise InputError("epsilons", "are empty", bound="shape (k,) with k >= 1")
    rising = np.append(True, budgets[1:] > budgets[:-1])
    require(rising, budgets, "epsilons", "larger than the one before", "sort the budgets, each once")
    settings, cache = SolveSettings(solver, tolerance), True if cache is None else as_truth(cache, "cache")
    if settings.solver != "auto":
        find(settings.solver)
    place = _place_of_epsilon(problem)
    unit = _bound_per_epsilon(problem, place)
    if budgets[0] == 0:
        _require_constant_answer(problem)
    key = _digest(problem, budgets, settings)
    stored = _load_costs(key, len(budgets)) if cache else None
    if stored is not None:
        return CostCurve(budgets, stored, cached=True)
    costs = [
        design(_with_budget(problem, place, unit, budget), solver, tolerance).certificate.cost
        if budget
        else float((problem.prior @ problem.cost).min())
        for budget in budgets.tolist()
    ]
    falling = np.minimum.accumulate(np.array(costs))
    if cache:
        caching.store(_KIND, key, {"costs": falling})
    return CostCurve(budgets, falling)


def _place_of_epsilon(problem: Problem) -> int:
    """Return the place of the only requirement with an ε."""
    places = [place for place, each in enumerate(problem.requirements) if isinstance(_epsilon_of(each), Fraction)]
    others = [place for place, each in enumerate(problem.requirements) if each.pair_bounds and place not in places]
    if len(places) != 1 or others:
        raise InputError(
            "problem.requirements",
            "do not have a single ε to scale",
            value=len(places) + len(others),
            bound="exactly one requirement that bounds pairs, with an attribute epsilon",
            remedy="give the costs of other problems to CostCurve",
        )
    return places[0]


def _epsilon_of(requirement: Requirement) -> Any:
    return getattr(requirement, "epsilon", None) if requirement.pair_bounds else None


def _bound_per_epsilon(problem: Problem, place: int) -> Fraction:
    """Return the largest bound between two secrets, along the best path of pairs, per ε of the requirement."""
    n = len(problem.prior)
    requirement = problem.requirements[place]
    bounds = np.full((n, n), np.inf)
    for each in requirement.pair_bounds:
        np.minimum.at(bounds, (each.sources, each.targets), each.exponents)
    np.fill_diagonal(bounds, 0.0)
    # Dense input would take bounds of 0 for missing pairs.
    rows, columns = np.nonzero(np.isfinite(bounds) & ~np.eye(n, dtype=bool))
    lengths = np.maximum(bounds[rows, columns], np.finfo(float).tiny)
    largest = float(shortest_path(sparse.csr_array((lengths, (rows, columns)), shape=(n, n))).max(initial=0.0))
    if not math.isfinite(largest):
        raise InputError(
            f"problem.requirements[{place}]",
            "leaves secrets without a bound between them",
            bound="a path of bounded pairs between any two secrets",
            remedy="no budget is finite: add edges to the policy graph, or use another requirement",
        )
    epsilon: Fraction = _epsilon_of(requirement)
    return max(Fraction(largest) * (1 + _ROUNDING) / epsilon, Fraction(1, 2**300))


def _with_budget(problem: Problem, place: int, unit: Fraction, budget: float) -> Problem:
    """Return the problem whose largest bound between two secrets is at most `budget`."""
    scaled = with_fields(problem.requirements[place], epsilon=as_decimal(budget) / unit)
    requirements = (*problem.requirements[:place], scaled, *problem.requirements[place + 1 :])
    return replace(problem, requirements=requirements)


def _require_constant_answer(problem: Problem) -> None:
    if problem.objective != "expected" or problem.floors:
        raise InputError(
            "epsilons[0]",
            "is 0, which needs the objective expected and no floors",
            value=0.0,
            bound="above 0 for this problem",
            remedy="start with a small budget",
        )


def _load_costs(key: str, count: int) -> Floats | None:
    """Return the costs in the cache, or None without valid ones."""
    costs = (caching.load(_KIND, key) or {}).get("costs")
    if costs is None or costs.dtype != np.float64 or costs.shape != (count,):
        return None
    valid = np.isfinite(costs).all() and (costs >= 0).all() and (np.diff(costs) <= 0).all()
    return costs if valid else None


def _digest(problem: Problem, budgets: Floats, settings: SolveSettings) -> str:
    """Return the SHA-256 of the problem, the budgets, the settings and the version of the package."""
    arrays = {"prior": problem.prior, "cost": problem.cost, "epsilons": budgets}
    lines = [f"{__version__} {problem.objective} {float(settings.tolerance)!r} {settings.solver}"]
    for place, each in enumerate(problem.stated):
        lines.append(f"{each.kind} {each.name} {each.part} {sorted(each.numbers.items())}")
        arrays |= {f"{place}.{name}": np.asarray(array) for name, array in each.arrays.items()}
    return caching.hash_arrays("\n".join(lines), arrays).hexdigest()
