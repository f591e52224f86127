"""From a candidate back to the problem: entries are rounded, multipliers carried over, and both certified."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechdesign.certify._claims import PairBound
from mechdesign.certify._costs import distortion
from mechdesign.certify._exact import exact
from mechdesign.certify._privacy import check
from mechdesign.base._errors import SolverError
from mechdesign.model._channel import EXPONENT
from mechdesign.solve._contract import Status
from mechdesign.solve._contract import GROSS
from mechdesign.synthesis.certified import Design
from mechdesign.synthesis.certified import certified
from mechdesign.synthesis.multipliers import carried
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.polish import polished
from mechdesign.synthesis.reduction import Candidate
from mechdesign.synthesis.reduction import FormMultipliers
from mechdesign.synthesis.rounding import Rounded
from mechdesign.synthesis.rounding import channel_cost
from mechdesign.synthesis.rounding import cheapest_constant
from mechdesign.synthesis.rounding import round_channel
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["recovered", "usable"]


_UNSOLVABLE = {
    Status.INFEASIBLE: "although a constant channel meets every requirement",
    Status.UNBOUNDED: "although costs are not negative",
}


def usable(candidate: Candidate, solver: str) -> tuple[Candidate, str]:
    """Return a candidate that can be certified, or what is wrong with it in words; the words are empty where it can.

    Where a solver's point keeps all rows, and only its multipliers are poor, the point is used: its certificate has the
    gap that these multipliers, mended, do prove.
    """
    summary = candidate.summary
    if summary.status in _UNSOLVABLE:
        return candidate, f"{solver} said: {summary.message} {_UNSOLVABLE[summary.status]}"
    if summary.status is not Status.FAILED:
        return candidate, ""
    residual = summary.primal_residual
    if candidate.matrix is None or residual is None or residual > GROSS:
        return candidate, f"{solver} is not to be trusted here: {summary.message}"
    message = f"multipliers that prove little beside a channel that keeps all bounds: {summary.message}"
    return candidate.noted(status=Status.STALLED, message=message), ""


def recovered(form: NormalForm, candidate: Candidate, tolerance: float, interior: Floats | None = None) -> Design:
    """Round a candidate to integers and certify what comes out; `interior` as `round_channel` has it.

    Multipliers are used as the solver gave them, and where that leaves a larger gap than `tolerance`, as `polished`
    mends them, if these prove more.
    """
    clock = time.perf_counter()
    rounded = _rounded(form, candidate, interior)
    ended = time.perf_counter()
    summary = replace(
        candidate.summary,
        privacy_weight=rounded.privacy_weight,
        floor_weight=rounded.floor_weight,
        rounding_seconds=round(ended - clock, 3),
    )

    def made(multipliers: FormMultipliers | None) -> Design:
        proof = None if multipliers is None else carried(form, multipliers)
        return certified(form.problem, rounded.numerators, proof, tolerance, summary)

    given = candidate.multipliers
    first = made(given)
    missed = exact(first.certificate.relative_gap) > exact(tolerance)
    if missed and given is not None and given.potentials is not None:
        second = made(polished(form, given))
        first = min(first, second, key=lambda design: design.certificate.relative_gap)
    return first.noted(certifying_seconds=round(time.perf_counter() - ended, 3))


def _rounded(form: NormalForm, candidate: Candidate, interior: Floats | None) -> Rounded:
    """Round what the solver found, or release a constant, or the interior channel, where that is cheaper."""
    problem = form.problem
    bounds = [claim for claim in problem.claims if isinstance(claim, PairBound)]

    def holds(numerators: Integers) -> bool:
        return all(check(numerators, EXPONENT, bound) is None for bound in bounds)

    def distortions(numerators: Integers) -> tuple[Fraction, ...]:
        floors = [floor.claim for floor in form.floors]
        return tuple(distortion(numerators, EXPONENT, floor.prior_or(problem.prior), floor.error) for floor in floors)

    if candidate.matrix is not None and candidate.relative_error is not None:
        # It costs no more than a constant, which is among the rays.
        made = round_channel(form, candidate.matrix, holds, distortions, relative_error=candidate.relative_error)
        if made is not None:
            return made
    matrices = [np.tile(cheapest_constant(form), (form.groups, 1)) if interior is None else interior]
    if candidate.matrix is not None:
        matrices.insert(0, candidate.matrix)
    found = [round_channel(form, matrix, holds, distortions, interior) for matrix in matrices]
    channels = [rounded for rounded in found if rounded is not None]
    if not channels:
        raise SolverError(f"the numbers of {candidate.summary.solver or 'the solver'} cannot be rounded to a channel")
    return min(channels, key=lambda rounded: channel_cost(form, rounded.numerators / 2.0**EXPONENT))
