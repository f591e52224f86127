"""Carry out a plan, and try other ways where the first does not get close enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.solvers import Options, Progress, Status
from mechdesign.synthesis.block_program import relax_block
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm, normalise
from mechdesign.synthesis.plan import BLOCK, Plan, plan
from mechdesign.synthesis.row_generation import Relaxed, relax
from mechdesign.synthesis.summary import SolveSummary

__all__ = ["Found", "search"]

# Pairs times observables up to which lazy rows take HiGHS seconds (about 100 secrets, 50 with floors), and minutes.
_SECONDS = 1_100_000
_FLOORS_COST = 9
_MINUTES = 2_200_000
# Bounds with smaller exponents hardly let two rows differ, by less than solvers resolve: they are made equal.
_ALIKE = 1e-6
_STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True, eq=False)
class Found:
    """An answer, the form that it is one to, the name of the solver, and in words what the search has tried so far."""

    form: NormalForm
    relaxed: Relaxed
    solver: str
    tried: tuple[str, ...]


def search(form: NormalForm, chosen: Plan, options: Options, tolerance: float) -> Iterator[Found]:
    """Yield answers to a normal form, as planned first, then by other ways.

    The caller takes the next one when the certificate of the last is not good enough. Where secrets are nearly alike,
    by bounds with exponents below 1e-6, making them alike comes next. Where we chose the solver, the block method
    follows the simplex method, and lazy rows on HiGHS follow the block method where they take seconds, or where it
    stalled far from the optimum and they take minutes; the facts say so. `tolerance` is the relative gap that the block
    method aims at.
    """
    bounded = bool(form.floors) or bool(np.isfinite(form.exponents).any())
    # The worst cost over a group is no cost of the group's: it takes a program.
    if not bounded and (form.problem.objective == "expected" or not form.ties):
        yield Found(form, _separate(form), "closed form", ())
        return
    clock = time.perf_counter()
    relaxed = _solve(form, chosen, options, tolerance)
    tried: tuple[str, ...] = (f"{chosen.solver}: {relaxed.summary.message}",)
    yield Found(form, relaxed, chosen.solver, tried)
    first = relaxed
    for other, second in _others(form, chosen, first):
        elapsed = time.perf_counter() - clock
        limit = options.time_limit
        if relaxed.status in _STOPPED or (limit is not None and limit <= elapsed):
            return
        if options.progress is not None:
            options.progress(Progress(f"{tried[-1]}; {second.solver} takes over", elapsed))
        left = None if limit is None else limit - elapsed
        relaxed = _solve(other, second, replace(options, time_limit=left), tolerance)
        reason = f"{second.reason}, after {'; '.join(tried)}"
        tried = (*tried, f"{second.solver}: {relaxed.summary.message}")
        yield Found(other, relaxed.noted(plan=reason), second.solver, tried)


def _solve(form: NormalForm, chosen: Plan, options: Options, tolerance: float) -> Relaxed:
    if chosen.solver == BLOCK:
        return relax_block(form, replace(options, gap=tolerance / 2))
    return relax(form, chosen, options)


def _others(form: NormalForm, chosen: Plan, first: Relaxed) -> Iterator[tuple[NormalForm, Plan]]:
    """Yield the ways that are left after the first, each a form and how to solve it."""
    alike = (chosen.chosen or chosen.solver == BLOCK) and bool((form.exponents < _ALIKE).any())
    merged = normalise(form.problem, _ALIKE) if alike else form
    if alike:
        yield merged, _merging(plan(merged, "auto" if chosen.chosen else chosen.solver))
    if not chosen.chosen:
        return
    if chosen.solver != BLOCK:
        yield form, plan(form, BLOCK)
        if alike:
            yield merged, _merging(plan(merged, BLOCK))
        return
    size = form.exponents.size * form.observables
    seconds = size * (_FLOORS_COST if form.floors else 1) <= _SECONDS
    if seconds or (first.status is Status.STALLED and size <= _MINUTES):
        yield form, plan(form, "highs-ipx")


def _merging(chosen: Plan) -> Plan:
    return replace(chosen, reason=f"{chosen.reason}, secrets at exponents below {_ALIKE:g} made alike")


def _separate(form: NormalForm) -> Relaxed:
    """Give every group its cheapest answer, which is optimal where nothing ties groups together."""
    problem = form.problem
    worst = problem.objective == "worst"
    cost = problem.cost if worst else form.gather(problem.prior[:, None] * problem.cost)
    matrix = np.zeros((form.groups, form.observables))
    matrix[np.arange(form.groups), cost.argmin(axis=1)] = 1.0
    weights = (np.arange(form.groups) == cost.min(axis=1).argmax()).astype(np.float64) if worst else None
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    multipliers = problem_multipliers(form, (none, none, none, nothing), (), weights)
    summary = SolveSummary(Status.OPTIMAL, "no two secrets are tied together", solver="closed form")
    return Relaxed(matrix, multipliers, summary)
