"""Solve a normal form by programs of rows: all rows at once, a spanner's only, or few first and violated ones later.

The last is row generation, the method of cutting planes (Kelley 1960): every round is a relaxation, whose value and
multipliers are lower bounds; it ends when no row that was left out is violated.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.solve import _solve as solvers
from mechdesign.base._errors import InputError
from mechdesign.solve._contract import Options
from mechdesign.solve._contract import Progress
from mechdesign.solve._contract import Solution
from mechdesign.solve._contract import Status
from mechdesign.solve._blocks.parallel import LateError
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.plan import Plan
from mechdesign.synthesis.reduction import Candidate
from mechdesign.synthesis.row_program import RowInverse
from mechdesign.synthesis.row_program import RowReduction
from mechdesign.synthesis.row_program import Triples
from mechdesign.synthesis.row_program import permitted_triples
from mechdesign.synthesis.settings import SolveSettings
from mechdesign.synthesis.spanner import bounded_pairs
from mechdesign.synthesis.spanner import dilation
from mechdesign.synthesis.spanner import irreducible
from mechdesign.synthesis.summary import SolveSummary
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["NEAR_DILATION", "solve_rows"]


NEAR_DILATION = 1.0824
"""The spanner keeps pairs that no detour longer by this factor replaces: on a grid eight neighbours, at 1/cos(π/8)."""

_ROUNDS = 100
# Seconds that building a program and sending it to another process takes for each privacy row, and for each error in a
# floor's rows; and that this may be late.
_BUILDING, _BUILDING_ERRORS, _GRACE = 5e-7, 2e-7, 0.5
# Rows that are violated by less than the first are met; by the second, of the gap that the solver stops at.
_VIOLATED = 1e-11
_VIOLATED_SHARE = 1e-3


def solve_rows(form: NormalForm, plan: Plan, settings: SolveSettings, start: object = None) -> Candidate:
    """Solve a normal form as planned, within the time limit in all.

    ``lazy``: solve on a spanner, add the violated rows of the irreducible pairs, repeat until none is violated.
    ``near``: solve on a spanner at ε for the multipliers, and at ε divided by its dilation for the channel, which then
    meets every bound. A `start` is the earlier answer's of the same rows.
    """
    run = _Run(plan, settings.options_for_rows(), time.perf_counter())
    try:
        pairs = bounded_pairs(form, plan.rows, run.until)
        if plan.rows in ("all", "reduced"):
            found, _, _ = run.solve(form, run.listed(pairs, form), start)
            return found.noted(rounds=1)
        near = irreducible(form.exponents, NEAR_DILATION, run.until) & bounded_pairs(form, "all")
        return _near(form, near, run) if plan.rows == "near" else _lazy(form, pairs, near, run)
    except LateError:
        return _nothing(plan)


def _nothing(plan: Plan) -> Candidate:
    """Return what there is where time is over before a program is built: no channel, and nothing proved."""
    message = "time limit: no time to build the program"
    return Candidate(None, None, SolveSummary(Status.TIME_LIMIT, message, solver=plan.solver, rows_policy=plan.rows))


@dataclass(frozen=True)
class _Run:
    """What all programs of one plan have in common."""

    plan: Plan
    options: Options
    clock: float

    def solve(self, form: NormalForm, triples: Triples, start: object = None) -> tuple[Candidate, Solution, RowInverse]:
        """Solve one program in the time that is left.

        Raises LateError where it is too late to build it.
        """
        errors = sum(floor.error.size for floor in form.floors) * form.observables
        if time.perf_counter() + triples.size * _BUILDING + errors * _BUILDING_ERRORS > self.until:
            raise LateError
        program, inverse = RowReduction(triples, magnification=self.plan.magnification).apply(form)
        options = self.options.after(time.perf_counter() - self.clock)
        solution = solvers.solve(program, self.plan.solver, options, start)
        return inverse(solution).noted(rows_policy=self.plan.rows), solution, inverse

    @property
    def until(self) -> float:
        """When it is too late to go on preparing a program."""
        limit = self.options.time_limit
        return math.inf if limit is None else self.clock + limit + _GRACE

    def listed(self, pairs: Flags, form: NormalForm) -> Triples:
        """List the rows of these pairs."""
        return permitted_triples(pairs, form, self.until)


def _near(form: NormalForm, near: Flags, run: _Run) -> Candidate:
    factor = dilation(form.exponents, near, run.until)
    if not np.isfinite(factor):
        raise InputError("rows", "the near set does not join all pairs", value="near", remedy="use lazy or all rows")
    triples = run.listed(near, form)
    outer, _, _ = run.solve(form, triples)
    try:
        inner, _, _ = run.solve(replace(form, exponents=form.exponents / factor), triples)
    except LateError:
        inner = _nothing(run.plan)
    # The gap is that of the rows, and none that better multipliers could close.
    proof = outer.multipliers and replace(outer.multipliers, potentials=None)
    return replace(inner.noted(rounds=2, dilation=factor), multipliers=proof)


def _lazy(form: NormalForm, pairs: Flags, near: Flags, run: _Run) -> Candidate:
    triples = run.listed(near & pairs, form)
    loaded = np.zeros((form.groups, form.groups, form.observables), dtype=bool)
    loaded[triples.sources, triples.targets, triples.observables] = True
    sources, targets = np.nonzero(pairs)
    best = Candidate(None, None, SolveSummary(Status.FAILED, "no round was finished"))
    # The centre of the optimal face violates far fewer of the rows left out than a vertex of it does.
    run = replace(run, options=replace(run.options, vertex=False))
    start: object = None
    for rounds in range(1, _ROUNDS + 1):
        try:
            found, solution, inverse = run.solve(form, triples, start)
        except LateError:
            late = _nothing(run.plan)
            return best.noted(status=late.status, message=late.summary.message) if best.matrix is not None else late
        if solution.status in (Status.FAILED, Status.STALLED) and not run.options.vertex:
            run = replace(run, options=replace(run.options, vertex=True))
            found, solution, inverse = run.solve(form, triples, start)
        found = found.noted(rounds=rounds)
        if found.status is not Status.OPTIMAL or found.matrix is None:
            # What a stopped solver holds is seldom better than the round before; without one it is all there is.
            kept = best if best.matrix is not None else found
            return kept.noted(status=found.status, message=found.summary.message)
        best = found
        least = max(_VIOLATED, _VIOLATED_SHARE * run.options.relative_gap, 2 * solution.residuals.primal)
        fresh = _violated(form, found.matrix, sources, targets, loaded, least)
        if run.options.progress is not None:
            stage = f"round {rounds}: {triples.size} rows, {fresh.size} violated"
            elapsed = time.perf_counter() - run.clock
            run.options.progress(Progress(stage, elapsed, rounds, inverse.bound(solution)))
        if not fresh.size:
            return best
        start = solution.start
        loaded[fresh.sources, fresh.targets, fresh.observables] = True
        triples = triples.append(fresh)
    return best.noted(status=Status.ITERATION_LIMIT, message=f"rows were still violated after {_ROUNDS} rounds")


def _violated(
    form: NormalForm,
    matrix: Floats,
    sources: Integers,
    targets: Integers,
    loaded: Flags,
    tolerance: float,
) -> Triples:
    """Return the rows of the given pairs that `matrix` violates by more than `tolerance`, scaled as in the program."""
    roots = np.exp(form.exponents[sources, targets] / 2)[:, None]
    found: list[Triples] = []
    step = max(1, 2_000_000 // form.observables)
    for start in range(0, sources.size, step):
        part = slice(start, start + step)
        s, t = sources[part], targets[part]
        index, o = np.nonzero(matrix[s] / roots[part] - matrix[t] * roots[part] > tolerance)
        new = ~loaded[s[index], t[index], o]
        found.append(Triples(s[index][new], t[index][new], o[new]))
    empty = np.zeros(0, dtype=np.int64)
    result = Triples(empty, empty, empty)
    for part_found in found:
        result = result.append(part_found)
    return result
