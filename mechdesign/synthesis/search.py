"""Carry out a plan, and another one where the first stalls."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from mechdesign.solvers import Options, Progress, Status
from mechdesign.synthesis.block import relax_block
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.plan import BLOCK, Plan, plan
from mechdesign.synthesis.relax import Relaxed, relax

__all__ = ["search"]

# Beyond this many pairs times observables (about 130 secrets) lazy rows take HiGHS more than some minutes.
_TOO_MANY = 2_200_000


def search(form: NormalForm, chosen: Plan, options: Options, tolerance: float) -> Relaxed:
    """Solve a normal form as planned, to a relative gap of `tolerance` where the method works by gaps.

    Where we chose the block method and it stalls, lazy rows on HiGHS take over, and the facts say so. Where the caller
    chose it, or HiGHS would need hours, what it found stands: it is certified like everything else, with its own gap.
    """
    if not form.floors and not np.isfinite(form.exponents).any():
        return _separate(form)
    if chosen.solver != BLOCK:
        return relax(form, chosen, options)
    clock = time.perf_counter()
    found = relax_block(form, replace(options, tolerance=tolerance / 2))
    if found.status is not Status.STALLED or not chosen.chosen or form.exponents.size * form.observables > _TOO_MANY:
        return found
    if options.report is not None:
        options.report(Progress(f"block {found.message}; HiGHS takes over", time.perf_counter() - clock))
    left = options.time_limit
    if left is not None:
        left = max(0.0, left - (time.perf_counter() - clock))
    other = relax(form, plan(form, "highs-ipx"), replace(options, time_limit=left))
    if other.status is not Status.OPTIMAL:
        return found
    return replace(other, facts={**other.facts, "fallback": f"block {found.message}"})


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
