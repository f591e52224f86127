"""Solve a normal form: all rows at once, or few rows first and the violated ones as they show."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign import solvers
from mechdesign.certify.evidence import Multipliers
from mechdesign.errors import InputError
from mechdesign.solvers import Options, Progress, ProgressCallback, Solution, Status
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.plan import Plan, bounded_pairs
from mechdesign.synthesis.row_program import ChannelProgram, Triples, all_triples, formulate
from mechdesign.synthesis.spanner import irreducible, stretch
from mechdesign.synthesis.summary import SolveSummary

__all__ = ["NEAR_STRETCH", "Relaxed", "relax"]

Floats = NDArray[np.float64]

NEAR_STRETCH = 1.0824
"""The near set keeps pairs that no detour of this stretch replaces: on a grid the eight neighbours, at 1/cos(π/8)."""

_ROUNDS = 100
# Rows that are violated by less than the first are met; by the second, of the gap that the solver stops at.
_VIOLATED = 1e-11
_VIOLATED_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What solving gave: p(o|group) (k, m) or None, multipliers or None, and how it went.

    The status is OPTIMAL when the last program was solved and none of the rows that it left out is violated.
    """

    matrix: Floats | None
    multipliers: Multipliers | None
    summary: SolveSummary

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return self.summary.status

    def noted(self, **changes: object) -> Relaxed:
        """Return this answer with other facts in its summary."""
        return replace(self, summary=replace(self.summary, **changes))  # type: ignore[arg-type]


def relax(form: NormalForm, plan: Plan, options: Options) -> Relaxed:
    """Solve a normal form as planned, within ``options.time_limit`` seconds in all.

    ``lazy``: solve on the near set, add the violated rows of the irreducible pairs, repeat until none is violated;
    every round's value and multipliers are lower bounds. ``near``: solve on the near set at ε for the multipliers,
    and at ε divided by its stretch for the channel, which then meets every bound.
    """
    clock = time.perf_counter()
    pairs = bounded_pairs(form, plan.rows)
    if plan.rows in ("all", "reduced"):
        built = formulate(form, all_triples(pairs, form.observables))
        return _read(built, _run(built, plan.solver, options, clock), plan, rounds=1)
    near = irreducible(form.exponents, NEAR_STRETCH) & bounded_pairs(form, "all")
    if plan.rows == "near":
        return _near(form, near, plan, options, clock)
    return _lazy(form, pairs, near, plan, options, clock)


def _near(form: NormalForm, near: NDArray[np.bool_], plan: Plan, options: Options, clock: float) -> Relaxed:
    guaranteed = stretch(form.exponents, near)
    if not np.isfinite(guaranteed):
        raise InputError("rows", "the near set does not join all pairs", value="near", remedy="use lazy or all rows")
    triples = all_triples(near, form.observables)
    below = formulate(form, triples)
    outer = _read(below, _run(below, plan.solver, options, clock), plan, rounds=1)
    tightened = formulate(replace(form, exponents=form.exponents / guaranteed), triples)
    inner = _read(tightened, _run(tightened, plan.solver, options, clock), plan, rounds=2)
    return replace(inner.noted(dilation=guaranteed), multipliers=outer.multipliers)


def _lazy(
    form: NormalForm,
    pairs: NDArray[np.bool_],
    near: NDArray[np.bool_],
    plan: Plan,
    options: Options,
    clock: float,
) -> Relaxed:
    triples = all_triples(near & pairs, form.observables)
    loaded = np.zeros((form.groups, form.groups, form.observables), dtype=bool)
    loaded[triples.sources, triples.targets, triples.observables] = True
    sources, targets = np.nonzero(pairs)
    best = Relaxed(None, None, SolveSummary(Status.FAILED, "no round was finished"))
    # The centre of the optimal face violates far fewer of the rows left out than a vertex of it does.
    options = replace(options, vertex=False)
    start: object = None
    for rounds in range(1, _ROUNDS + 1):
        built = formulate(form, triples)
        solution = _run(built, plan.solver, options, clock, start)
        if solution.status in (Status.FAILED, Status.STALLED) and not options.vertex:
            options = replace(options, vertex=True)
            solution = _run(built, plan.solver, options, clock, start)
        found = _read(built, solution, plan, rounds=rounds)
        if found.status is not Status.OPTIMAL or found.matrix is None:
            # What a stopped solver holds is seldom better than the round before; without one it is all there is.
            kept = best if best.matrix is not None else found
            return kept.noted(status=found.status, message=found.summary.message)
        best = found
        least = max(_VIOLATED, _VIOLATED_SHARE * options.relative_gap, 2 * solution.residuals.primal)
        fresh = _violated(form, found.matrix, sources, targets, loaded, least)
        _tell(options.progress, rounds, clock, built, solution, fresh.size)
        if not fresh.size:
            return best
        start = solution.start
        loaded[fresh.sources, fresh.targets, fresh.observables] = True
        triples = triples.append(fresh)
    return best.noted(status=Status.ITERATION_LIMIT, message=f"rows were still violated after {_ROUNDS} rounds")


def _violated(
    form: NormalForm,
    matrix: Floats,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    loaded: NDArray[np.bool_],
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


def _run(built: ChannelProgram, solver: str, options: Options, clock: float, start: object = None) -> Solution:
    limit = options.time_limit
    if limit is not None:
        limit = max(0.0, limit - (time.perf_counter() - clock))
    return solvers.solve(built.program, solver, replace(options, time_limit=limit), start)


def _read(built: ChannelProgram, solution: Solution, plan: Plan, *, rounds: int) -> Relaxed:
    finite = bool(np.isfinite(solution.x).all())
    dual = bool(np.isfinite(solution.row_dual).all())
    summary = SolveSummary(
        solution.status,
        solution.message,
        solver=solution.solver,
        solver_version=solution.version,
        rows_policy=plan.rows,
        program_rows=built.program.rows,
        program_columns=built.program.columns,
        rounds=rounds,
        iterations=solution.iterations,
        primal_residual=solution.residuals.primal,
        dual_residual=solution.residuals.dual,
    )
    return Relaxed(
        built.channel(solution.x) if finite else None,
        built.multipliers(solution.row_dual) if dual else None,
        summary,
    )


def _tell(
    progress: ProgressCallback | None,
    rounds: int,
    clock: float,
    built: ChannelProgram,
    solution: Solution,
    violated: int,
) -> None:
    if progress is not None:
        lower = solution.residuals.bound / built.scale
        stage = f"round {rounds}: {built.triples.size} rows, {violated} violated"
        progress(Progress(stage, time.perf_counter() - clock, rounds, lower))
