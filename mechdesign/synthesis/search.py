"""Carry out a plan, and a more laborious one where the first does not get close enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mechdesign.solvers import Options, Progress, Status
from mechdesign.synthesis.block import relax_block
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.plan import BLOCK, Plan, plan
from mechdesign.synthesis.relax import Relaxed, relax

__all__ = ["search"]

# Pairs times observables up to which lazy rows take HiGHS seconds (about 100 secrets, 50 with floors), and minutes.
_SECONDS = 1_100_000
_FLOORS_COST = 9
_MINUTES = 2_200_000


def search(form: NormalForm, chosen: Plan, options: Options, tolerance: float) -> Iterator[Relaxed]:
    """Yield answers to a normal form, as planned, each from a more laborious method than the one before.

    The caller takes the next one when the certificate of the last is not good enough. There is more than one only
    where we chose the block method: lazy rows on HiGHS follow it where they take seconds, or where it stalled far from
    the optimum and they take minutes; the facts say so. `tolerance` is the relative gap that the block method aims at.
    """
    if not form.floors and not np.isfinite(form.exponents).any():
        yield _separate(form)
        return
    if chosen.solver != BLOCK:
        yield relax(form, chosen, options)
        return
    clock = time.perf_counter()
    found = relax_block(form, replace(options, tolerance=tolerance / 2))
    yield found
    size = form.exponents.size * form.observables
    seconds = size * (_FLOORS_COST if form.floors else 1) <= _SECONDS
    minutes = found.status is Status.STALLED and size <= _MINUTES
    if not chosen.chosen or found.status not in (Status.OPTIMAL, Status.STALLED) or not (seconds or minutes):
        return
    elapsed = time.perf_counter() - clock
    left = options.time_limit
    if left is not None and left <= elapsed:
        return
    if options.report is not None:
        options.report(Progress(f"block method: {found.message}; HiGHS takes over", elapsed))
    second = plan(form, "highs-ipx")
    other = relax(form, second, replace(options, time_limit=None if left is None else left - elapsed))
    reason = f"{second.reason}, after the block method: {found.message}"
    yield replace(other, facts={**other.facts, "plan": reason})


def _separate(form: NormalForm) -> Relaxed:
    """Give every secret its cheapest answer, which is optimal where nothing ties secrets together."""
    problem = form.problem
    matrix = np.zeros((form.groups, form.observables))
    matrix[np.arange(form.groups), problem.cost.argmin(axis=1)] = 1.0
    weights = None
    if problem.objective == "worst":
        weights = np.zeros(form.groups)
        weights[problem.cost.min(axis=1).argmax()] = 1.0
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    multipliers = problem_multipliers(form, (none, none, none, nothing), (), weights)
    return Relaxed(Status.OPTIMAL, matrix, multipliers, "no two secrets are tied together", {"solver": "closed form"})
