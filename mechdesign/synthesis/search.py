"""Carry out a plan, and try other ways where the first does not get close enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base import _interrupts as interrupts
from mechdesign.solve import _registry as registry
from mechdesign.solve._contract import Status
from mechdesign.synthesis.block_program import solve_blocks
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.normal import normalise
from mechdesign.synthesis.plan import LARGE
from mechdesign.synthesis.plan import LAZY
from mechdesign.synthesis.plan import RAYS
from mechdesign.synthesis.plan import Plan
from mechdesign.synthesis.plan import plan
from mechdesign.synthesis.plan import takes_blocks
from mechdesign.synthesis.rays.generation import solve_rays
from mechdesign.synthesis.reduction import Candidate
from mechdesign.synthesis.reduction import FormMultipliers
from mechdesign.synthesis.rounding import tight
from mechdesign.synthesis.row_generation import solve_rows
from mechdesign.synthesis.settings import SolveSettings
from mechdesign.synthesis.summary import SolveSummary

__all__ = ["Found", "search"]

# Pairs times observables up to which lazy rows take HiGHS seconds (about 100 secrets, 50 with floors), and minutes;
# floors alone, with estimates for one end of the pairs, are as quick as bounds alone.
_SECONDS = 1_100_000
_FLOORS_COST = 9
_MINUTES = 2_200_000
# Bounds with smaller exponents hardly let two rows differ, by less than solvers resolve: they are made equal.
_ALIKE = 1e-6
# The factor of the objective at which reduced costs that a solver takes for 0 are 0 for the certificate, too.
_MAGNIFICATION = 1e6
_STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)

Strategy = Callable[[NormalForm, Plan, SolveSettings, object], Candidate]

_STRATEGIES: dict[str, Strategy] = {"rows": solve_rows, "blocks": solve_blocks, RAYS: solve_rays}
"""How to solve a normal form: by rays, or by what the solver takes (`mechdesign.solve._registry.Solver.takes`)."""


@dataclass(frozen=True, eq=False)
class Found:
    """A candidate, the form that it answers, the name of the solver, and in words what the search has tried so far."""

    form: NormalForm
    candidate: Candidate
    solver: str
    tried: tuple[str, ...]


def search(form: NormalForm, chosen: Plan, settings: SolveSettings) -> Iterator[Found]:
    """Yield answers to a normal form, as planned first, then by other ways.

    The caller takes the next one when the certificate of the last is not good enough. After an exact solver that saw
    all its rows comes the same program with its objective magnified, for better multipliers, and, where we chose it and
    they are few, a program with the rows of all pairs. Where secrets are nearly
    alike, by bounds with exponents below 1e-6, making them alike comes next. Where we chose the solver, the block
    method follows the simplex method, and lazy rows on HiGHS follow the block method where they take seconds, or where
    they take minutes and it stalled far from the optimum, as it does at floors near the largest possible; the summary
    says so.
    """
    bounded = bool(form.floors) or bool(np.isfinite(form.exponents).any())
    # The worst cost over a group is no cost of the group's: it takes a program.
    if not bounded and (form.problem.objective == "expected" or not form.ties):
        yield Found(form, _separate(form), "closed form", ())
        return
    clock = time.perf_counter()
    found = _solve(form, chosen, settings)
    tried: tuple[str, ...] = (f"{_name(chosen)}: {found.summary.message}",)
    yield Found(form, found, chosen.solver, tried)
    first, start = found, found.start
    for other, second in _others(form, chosen, first):
        elapsed = time.perf_counter() - clock
        if found.status in _STOPPED or (settings.time_limit is not None and settings.time_limit <= elapsed):
            return
        settings.tell(f"{tried[-1]}; {_name(second)} takes over", elapsed)
        interrupts.check()
        again = other is form and (second.solver, second.rows) == (chosen.solver, chosen.rows)
        found = _solve(other, second, settings.after(elapsed), start if again else None)
        reason = f"{second.reason}, after {'; '.join(tried)}"
        tried = (*tried, f"{_name(second)}: {found.summary.message}")
        yield Found(other, found.noted(plan=reason), second.solver, tried)


def _solve(form: NormalForm, chosen: Plan, settings: SolveSettings, start: object = None) -> Candidate:
    taken = RAYS if chosen.rows == RAYS else registry.find(chosen.solver).takes
    return _STRATEGIES[taken](form, chosen, settings, start)


def _name(chosen: Plan) -> str:
    if chosen.magnification == 1:
        return chosen.solver
    return f"{chosen.solver} with a magnified objective and {chosen.rows} rows"


def _others(form: NormalForm, chosen: Plan, first: Candidate) -> Iterator[tuple[NormalForm, Plan]]:
    """Yield the ways that are left after the first, each a form and how to solve it."""
    if chosen.rows == RAYS:
        return
    forbidden = bool(form.forbidden.any())
    # Secrets with different permitted answers cannot be made alike.
    near_alike = bool((form.exponents < _ALIKE).any()) and not forbidden
    blocks = takes_blocks(chosen.solver)
    if registry.find(chosen.solver).exact and chosen.rows in ("all", "reduced") and not near_alike:
        yield form, replace(chosen, magnification=_MAGNIFICATION)
        everything = plan(form, chosen.solver, "all")
        # Chains of many steep bounds imply a bound only up to the rounding of each.
        if chosen.chosen and everything.small:
            yield form, replace(everything, chosen=True, magnification=_MAGNIFICATION)
    alike = (chosen.chosen or blocks) and near_alike
    merged = normalise(form.problem, _ALIKE) if alike else form
    if alike:
        yield merged, _merging(plan(merged, "auto" if chosen.chosen else chosen.solver))
    if not chosen.chosen:
        return
    if forbidden:
        if chosen.solver != LAZY:
            yield form, plan(form, LAZY)
        return
    if not blocks:
        yield form, plan(form, LARGE)
        if alike:
            yield merged, _merging(plan(merged, LARGE))
        return
    bounds = int(np.isfinite(form.exponents).sum())
    size = max(bounds, *(floor.error.size for floor in form.floors), 0) * form.observables
    seconds = size * (_FLOORS_COST if form.floors and bounds else 1) <= _SECONDS
    if seconds or ((first.status is Status.STALLED or tight(form)) and size <= _MINUTES):
        yield form, plan(form, LAZY)


def _merging(chosen: Plan) -> Plan:
    return replace(chosen, reason=f"{chosen.reason}, secrets at exponents below {_ALIKE:g} made alike")


def _separate(form: NormalForm) -> Candidate:
    """Give every group its cheapest answer, which is optimal where nothing ties groups together."""
    problem = form.problem
    worst = problem.objective == "worst"
    cost = problem.cost if worst else form.gather(problem.prior[:, None] * form.finite_cost)
    cost = np.where(form.forbidden, np.inf, cost)
    matrix = np.zeros((form.groups, form.observables))
    matrix[np.arange(form.groups), cost.argmin(axis=1)] = 1.0
    weights = (np.arange(form.groups) == cost.min(axis=1).argmax()).astype(np.float64) if worst else None
    none = np.zeros(0, dtype=np.int64)
    summary = SolveSummary(Status.OPTIMAL, "no two secrets are tied together", solver="closed form")
    return Candidate(matrix, FormMultipliers(none, none, none, np.zeros(0), weights=weights), summary)
