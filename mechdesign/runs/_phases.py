"""Phases of a benchmark run: build the program, solve it, certify the result, and judge the returned numbers."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from mechdesign.base._arithmetic import own_arithmetic
from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._errors import CertificateError, SolverError
from mechdesign.certify._claims import ExponentBound
from mechdesign.leakage._loss_by_programs import row_pair_program
from mechdesign.measures._tight import exact_rows, tight
from mechdesign.model._problem import Problem
from mechdesign.runs._families import RowPairs
from mechdesign.solve._contract import Answer, BackEnd, Status
from mechdesign.solve._fractional import CharnesCooper, charnes_cooper
from mechdesign.solve._registry import find
from mechdesign.synthesis._attempts import first_attempt
from mechdesign.synthesis._design import find_strategy, synthesise
from mechdesign.synthesis._normal import ChannelCandidate, NormalForm, normalise
from mechdesign.synthesis._recovery import recover_design
from mechdesign.synthesis._settings import SolveSettings

OURS = ("auto", "block")
"""The contestants of this package."""

OPTIMAL_GAP = 1e-5
"""Largest relative distance from a proved lower bound at which a cost counts as optimal."""

SLACK = 1e-6
"""Tolerance for a returned matrix: relative for ε and floors, absolute for row sums and signs.

A matrix of floats cannot meet a tight bound exactly. A matrix counts as not private only if it violates a bound by more
than this tolerance.
"""


class Verdict(enum.StrEnum):
    """A solver's claim about its result, or the result of checking it."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    NOT_PRIVATE = "not-private"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    TIMEOUT = "timeout"


_CLAIMS = {
    Status.OPTIMAL: Verdict.OPTIMAL,
    Status.STATED: Verdict.FEASIBLE,
    Status.INFEASIBLE: Verdict.INFEASIBLE,
    Status.TIME_LIMIT: Verdict.TIMEOUT,
}


def read_claim(status: Status) -> Verdict:
    """Return a solver's claim; an unlisted status is a failure."""
    return _CLAIMS.get(status, Verdict.FAILED)


@dataclass(frozen=True)
class ReturnedMatrix:
    """A matrix as returned by a solver, with rows divided by their sums.

    Attributes:
        cost: Cost of the matrix.
        tight_epsilon: The smallest ε that meets the pair bound, rounded up. The ε is infinite if an entry of at most 0
            is in the column of a positive entry, and None without a pair bound.
        fault: NOT_PRIVATE or INFEASIBLE, or None for a matrix without a fault.
    """

    cost: float
    tight_epsilon: float | None
    fault: Verdict | None

    def verdict(self, lower_bound: float) -> Verdict:
        """Return the verdict on the matrix, given a proved lower bound."""
        if self.fault is not None:
            return self.fault
        close = self.cost - lower_bound <= OPTIMAL_GAP * max(abs(self.cost), 1e-300)
        return Verdict.OPTIMAL if close else Verdict.FEASIBLE


def judge_matrix(problem: Problem, matrix: Floats) -> ReturnedMatrix:
    """Judge a matrix (n, m) for a problem, with the tolerance `SLACK`."""
    if not np.isfinite(matrix).all():
        return ReturnedMatrix(math.inf, math.inf if _bounds(problem) else None, Verdict.INFEASIBLE)
    sums = matrix.sum(axis=1)
    positive = np.maximum(matrix, 0.0)
    weights = positive.sum(axis=1)
    if (weights <= 0).any():
        return ReturnedMatrix(math.inf, math.inf if _bounds(problem) else None, Verdict.INFEASIBLE)
    rows = positive / weights[:, None]
    each = (rows * problem.cost).sum(axis=1)
    cost = float(each.max() if problem.objective == "worst" else problem.prior @ each)
    found = [(tight_epsilon(matrix, bound), float(bound.epsilon)) for bound in _bounds(problem)]
    fault = None
    if any(tight > asked * (1 + SLACK) for tight, asked in found):
        fault = Verdict.NOT_PRIVATE
    elif np.abs(sums - 1).max() > SLACK or matrix.min() < -SLACK or not all(_check_floors(rows, problem)):
        fault = Verdict.INFEASIBLE
    return ReturnedMatrix(cost, max(tight for tight, _ in found) if found else None, fault)


def tight_epsilon(matrix: Floats, bound: ExponentBound) -> float:
    """Return the smallest ε, rounded up, for which a matrix of floats with normalised rows meets a bound.

    Negative entries are replaced by 0. A pair with exactly one entry of 0 needs an infinite ε. Rows of secrets at
    distance 0 may differ by `SLACK`. `mechdesign.measures._tight` computes the ε of the other pairs.
    """
    positive = np.maximum(matrix, 0.0)
    weighted = bound.weights > 0
    if not weighted.all() and _has_different_rows(positive, bound, ~weighted):
        return math.inf
    arrays = {name: getattr(bound, name)[weighted] for name in ("sources", "targets", "weights")}
    return tight(exact_rows(matrix, weights=True), replace(bound, **arrays)).epsilon


def _has_different_rows(positive: Floats, bound: ExponentBound, pairs: Flags) -> bool:
    """Return whether rows of secrets at distance 0 differ by more than the tolerance for rounding."""
    rows = positive / positive.sum(axis=1, keepdims=True)
    return bool((np.abs(rows[bound.sources[pairs]] - rows[bound.targets[pairs]]) > SLACK).any())


def _bounds(problem: Problem) -> list[ExponentBound]:
    return list(problem.claims.exponent_bounds.values())


def _check_floors(rows: Floats, problem: Problem) -> Iterator[bool]:
    """Yield, for each floor, whether the adversary's expected error is above it."""
    for floor in problem.floors.values():
        error = float(((floor.error * problem.prior) @ rows).min(axis=0).sum())
        yield error >= float(floor.minimum) * (1 - SLACK)


TOLERANCE = OPTIMAL_GAP / 10
"""The tolerance of each solver, as in `mechdesign.design`: a tenth of the gap that counts as optimal."""

Phase = dict[str, Any]


def channel_phases(problem: Problem, settings: SolveSettings) -> Iterator[Phase]:
    """Yield the values of a row after each phase: build, solve, certify.

    Each solver gets the rows, the tolerances and the units of `mechdesign.design`. `certified`,
    `tight_epsilon` and `cost_returned` describe the returned numbers. `rounded`, `cost`, `lower_bound` and
    `relative_gap` describe the exact channel after rounding.
    """
    if settings.solver == "auto":
        yield from design_phases(problem, settings)
        return
    clock = time.perf_counter()
    form = normalise(problem)
    attempt = first_attempt(form, settings.solver, settings.rows)
    yield {"build_s": time.perf_counter() - clock}
    clock = time.perf_counter()
    with own_arithmetic():
        candidate = find_strategy(attempt)(attempt, settings, settings.deadline(), None)
    claim, summary = read_claim(candidate.summary.status), candidate.summary
    if claim is Verdict.OPTIMAL and attempt.rows == "lazy":
        # The solver claims nothing about the rows that it did not get.
        claim = Verdict.FEASIBLE
    yield {
        "solve_s": time.perf_counter() - clock,
        "claimed": claim,
        "iterations": summary.iterations,
        "given": attempt.rows,
        "rows": summary.program_rows,
        "columns": summary.program_columns,
        "message": summary.message,
        "version": summary.solver_version,
    }
    clock = time.perf_counter()
    found = _certify(form, candidate)
    yield {"certify_s": time.perf_counter() - clock, **found}
    if candidate.matrix is None:
        # A claim of infeasibility is always wrong: a constant channel meets all bounds.
        yield {"certified": Verdict.TIMEOUT if claim is Verdict.TIMEOUT else Verdict.FAILED}
        return
    judged = judge_matrix(problem, candidate.matrix[form.group])
    yield {
        "certified": judged.verdict(found.get("lower_bound", 0.0)),
        "tight_epsilon": judged.tight_epsilon,
        "cost_returned": judged.cost,
    }


def design_phases(problem: Problem, settings: SolveSettings) -> Iterator[Phase]:
    """Yield the values of a row for `mechdesign.design`, whose channel is exact and needs no rounding."""
    clock = time.perf_counter()
    made = synthesise(problem, settings)
    total, solved = time.perf_counter() - clock, made.summary.seconds or 0.0
    certificate, summary = made.certificate, made.summary
    verdict = Verdict.OPTIMAL if certificate.relative_gap <= OPTIMAL_GAP else Verdict.FEASIBLE
    stated = Verdict.OPTIMAL if made.status is Status.OPTIMAL else Verdict.FEASIBLE
    yield {
        "build_s": 0.0,
        "solve_s": solved,
        "certify_s": total - solved,
        "claimed": stated,
        "certified": verdict,
        "rounded": verdict,
        "tight_epsilon": max(certificate.epsilon, default=None),
        "cost": certificate.cost,
        "cost_returned": certificate.cost,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
        "iterations": summary.iterations,
        "rows": summary.program_rows,
        "columns": summary.program_columns,
        "message": summary.plan or "",
        "version": summary.solver_version,
    }


def _certify(form: NormalForm, candidate: ChannelCandidate) -> Phase:
    """Return the result of rounding an answer, and the lower bound that its multipliers prove."""
    if candidate.matrix is None and candidate.multipliers is None:
        return {"rounded": Verdict.FAILED}
    try:
        made = recover_design(
            form, replace(candidate, summary=replace(candidate.summary, status=Status.STALLED)), TOLERANCE
        )
    except (SolverError, CertificateError) as error:
        return {"rounded": Verdict.FAILED, "message": str(error)}
    certificate = made.certificate
    return {
        "rounded": Verdict.OPTIMAL if certificate.relative_gap <= OPTIMAL_GAP else Verdict.FEASIBLE,
        "cost": certificate.cost,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
    }


def fraction_phases(pairs: RowPairs, settings: SolveSettings) -> Iterator[Phase]:
    """Yield the values of a row after each phase; the cost is minus the mean leakage, which is maximised.

    For each pair, the linear program of Charnes and Cooper (1962) is solved. `certified` describes the returned x:
    ratios of its entries must be at most e^α, and its fraction must be close to the exact maximum.
    """
    clock = time.perf_counter()
    programs = reduce_pairs(pairs)
    rows, columns = (sum(getattr(each.program, name) for each in programs) for name in ("rows", "columns"))
    yield {"build_s": time.perf_counter() - clock, "rows": rows, "columns": columns}
    clock = time.perf_counter()
    back_end = cast(BackEnd, find(settings.solver).load())
    options = settings.options_for_rows(settings.deadline())
    answers = [back_end(each.program, options, None) for each in programs]
    claims = {read_claim(answer.status) for answer in answers}
    yield {
        "solve_s": time.perf_counter() - clock,
        "claimed": next((claim for claim in reversed(Verdict) if claim in claims), Verdict.FAILED),
        "iterations": sum(answer.iterations for answer in answers),
        "message": answers[-1].message,
        "version": answers[-1].version,
    }
    clock = time.perf_counter()
    exact = [largest_leakage(pairs.matrix[q], pairs.matrix[d], pairs.alpha) for q, d in pairs.pairs.tolist()]
    found = [_value(pairs, index, programs[index], answer) for index, answer in enumerate(answers)]
    lower = -math.fsum(exact) / len(exact)
    yield {"certify_s": time.perf_counter() - clock, "lower_bound": lower}
    if any(value is None for value, _ in found):
        yield {"certified": Verdict.FAILED}
        return
    cost = -math.fsum(cast(float, value) for value, _ in found) / len(found)
    gap = max(abs(cast(float, value) - best) / best for (value, _), best in zip(found, exact, strict=True))
    spread = max(ratio for _, ratio in found)
    if spread > pairs.alpha * (1 + SLACK):
        verdict = Verdict.INFEASIBLE
    else:
        verdict = Verdict.OPTIMAL if gap <= OPTIMAL_GAP else Verdict.FEASIBLE
    yield {"certified": verdict, "rounded": verdict, "cost": cost, "cost_returned": cost, "relative_gap": gap}


def reduce_pairs(pairs: RowPairs) -> list[CharnesCooper]:
    """Return the linear program of each pair."""
    return [
        charnes_cooper(row_pair_program(pairs.matrix[q], pairs.matrix[d], pairs.alpha)) for q, d in pairs.pairs.tolist()
    ]


def largest_leakage(q: Floats, d: Floats, alpha: float) -> float:
    """Return max ln(q·x / d·x) in closed form: x is e^α where q/d is largest, and 1 elsewhere.

    >>> round(largest_leakage(np.array([0.8, 0.2]), np.array([0.2, 0.8]), 1.0), 6)
    0.569445
    """
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        order = np.argsort(-np.where(d > 0, q / d, np.inf), kind="stable")
    growth = math.expm1(alpha)
    above, below = np.cumsum(q[order]) * growth, np.cumsum(d[order]) * growth
    return float((np.log1p(above) - np.log1p(below)).max(initial=0.0))


def _value(pairs: RowPairs, index: int, program: CharnesCooper, answer: Answer) -> tuple[float | None, float]:
    """Return the leakage at the returned x, and the logarithm of the largest ratio of two of its entries."""
    x = None if answer.x is None or not np.isfinite(answer.x).all() else program.invert(answer.x)
    if x is None:
        return None, math.inf
    q, d = pairs.matrix[pairs.pairs[index]]
    above, below = float(q @ x), float(d @ x)
    if above <= 0 or below <= 0:
        return None, math.inf
    spread = math.log(float(x.max() / x.min())) if x.min() > 0 else math.inf
    return math.log(above / below), spread
