"""Build, solve and certify one problem by one contestant, phase by phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mechdesign.bench.contestants import Contestant
from mechdesign.bench.verdicts import OPTIMAL_GAP
from mechdesign.bench.verdicts import Verdict
from mechdesign.bench.verdicts import claimed
from mechdesign.bench.verdicts import returned
from mechdesign.base._errors import CertificateError
from mechdesign.base._errors import SolverError
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import BackEnd
from mechdesign.solve._contract import Status
from mechdesign.solve._solve import block_back_end
from mechdesign.solve._registry import find
from mechdesign.solve._contract import measure
from mechdesign.synthesis._blocks import BlockReduction
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._normal import NormalForm
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._recovery import recovered
from mechdesign.synthesis._normal import Candidate
from mechdesign.synthesis._rows import RowReduction
from mechdesign.synthesis._rows import all_triples
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._pairs import bounded_pairs

__all__ = ["design_phases", "phases"]

# What `mechdesign.synthesis._design.design` is asked for: a tenth of what still counts as optimal.
_GAP = OPTIMAL_GAP / 10

Found = dict[str, Any]


def phases(problem: Problem, contestant: Contestant, threads: int) -> Iterator[Found]:
    """Yield what is known of a row after each phase: build, solve, certify.

    `certified`, `tight_epsilon` and `cost_returned` are about the numbers as returned; `rounded`, `cost`, `lower_bound`
    and `relative_gap` about the exact channel that rounding makes of them.
    """
    if contestant.route == "design":
        yield from design_phases(problem, threads)
        return
    clock = time.perf_counter()
    form = normalise(problem)
    solve = _by_blocks if contestant.route == "blocks" else _by_rows
    steps = solve(form, contestant, threads)
    size = next(steps)
    yield {"build_s": time.perf_counter() - clock, **cast(Found, size)}
    clock = time.perf_counter()
    claim, candidate = cast("tuple[Verdict, Candidate]", next(steps))
    summary = candidate.summary
    yield {
        "solve_s": time.perf_counter() - clock,
        "claimed": claim,
        "iterations": summary.iterations,
        "message": summary.message,
        "version": summary.solver_version,
        "primal_residual": summary.primal_residual,
    }
    clock = time.perf_counter()
    found = _certified(form, candidate)
    yield {"certify_s": time.perf_counter() - clock, **found}
    if candidate.matrix is None:
        # Whoever says that there is no channel is wrong: a constant one keeps all bounds.
        yield {"certified": Verdict.TIMEOUT if claim is Verdict.TIMEOUT else Verdict.FAILED}
        return
    judged = returned(problem, candidate.matrix[form.group])
    yield {
        "certified": judged.verdict(found.get("lower_bound", 0.0)),
        "tight_epsilon": judged.tight_epsilon,
        "cost_returned": judged.cost,
    }


def design_phases(problem: Problem, threads: int) -> Iterator[Found]:
    """Yield the same for the whole road, whose channel is exact and needs no rounding."""
    clock = time.perf_counter()
    made = synthesise(problem, SolveSettings(tolerance=_GAP, threads=threads))
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


def _by_rows(form: NormalForm, contestant: Contestant, threads: int) -> Iterator[object]:
    """Yield the size of the raw linear program, as `mechdesign.synthesis.mps` writes it, and the solver's answer."""
    triples = all_triples(bounded_pairs(form, "reduced"), form.observables)
    program, inverse = RowReduction(triples, scaled=False).apply(form)
    yield {"rows": program.rows, "columns": program.columns, "nonzeros": int(program.matrix.nnz)}
    clock = time.perf_counter()
    back_end = cast(BackEnd, find(contestant.back_end).load())
    answer = back_end(program, contestant.options(threads), None)
    solution = measure(program, answer, solver=contestant.solver, seconds=time.perf_counter() - clock)
    yield claimed(answer.status), inverse(solution)


def _by_blocks(form: NormalForm, contestant: Contestant, threads: int) -> Iterator[object]:
    program, inverse = BlockReduction().apply(form)
    rows = int(np.isfinite(form.exponents).sum()) * form.observables
    yield {"rows": rows, "columns": form.groups * form.observables}
    options = contestant.options(threads)
    solution = block_back_end(contestant.back_end)(program, options, gap=options.relative_gap)
    yield claimed(solution.status), inverse(solution)


def _certified(form: NormalForm, candidate: Candidate) -> Found:
    """Return what rounding makes of an answer, and what its multipliers prove."""
    if candidate.matrix is None and candidate.multipliers is None:
        return {"rounded": Verdict.FAILED}
    try:
        made = recovered(form, replace(candidate, summary=replace(candidate.summary, status=Status.STALLED)), _GAP)
    except (SolverError, CertificateError) as error:
        return {"rounded": Verdict.FAILED, "message": str(error)}
    certificate = made.certificate
    return {
        "rounded": Verdict.OPTIMAL if certificate.relative_gap <= OPTIMAL_GAP else Verdict.FEASIBLE,
        "cost": certificate.cost,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
    }
