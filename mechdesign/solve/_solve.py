"""The entry point: find a solver, run it, and measure its answer.

If a solver reports that a program has no point, or that its objective falls without end, a proof must show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.base._machine import is_webassembly
from mechdesign.solve._apart import solve_apart
from mechdesign.solve._block import BlockBackEnd
from mechdesign.solve._contract import Answer, BackEnd, Options, Solution, Status, measure
from mechdesign.solve._linear import LinearProgram, residuals, scale
from mechdesign.solve._registry import find

# Violations and slopes of a program in units near 1: below the first number they are rounding, above the second they
# are facts.
_ROUNDING = 1e-8
_FACT = 1e-7
# Multipliers with a residual prove only that no point is within the inverse of this number.
_DUAL_SHARE = 1e-6


def decide_status(program: LinearProgram, answer: Answer, run: Callable[[LinearProgram], Answer]) -> Answer:
    """Return the answer with a status that is proved if a solver reports that the program has no optimum.

    Solvers decide this by their tolerances, and some confuse infeasible with unbounded programs. The least sum of
    violations has multipliers that prove infeasibility (Farkas). A point and a direction of falling objective prove
    that the program is unbounded.
    """
    relaxed = _relax(program)
    least = run(relaxed)
    if least.status is not Status.OPTIMAL or least.x is None or least.row_dual is None:
        return _give_up(answer, least)
    x = np.clip(least.x[: program.columns], program.lower, program.upper)
    proof = residuals(relaxed, least.x, least.row_dual)
    if proof.bound > _FACT and proof.dual <= _DUAL_SHARE * proof.bound:
        return replace(answer, status=Status.INFEASIBLE)
    if not residuals(program, x, np.zeros(program.rows)).primal <= _ROUNDING:
        return _give_up(answer, least)
    cone = _find_cone(program)
    steepest = run(cone)
    if steepest.status is not Status.OPTIMAL or steepest.x is None:
        return _give_up(answer, steepest)
    slope = residuals(cone, steepest.x, np.zeros(program.rows))
    if slope.primal <= _ROUNDING and slope.objective < -_FACT * np.abs(program.cost).max(initial=0.0):
        return replace(answer, status=Status.UNBOUNDED)
    return _give_up(answer, steepest)


def _give_up(answer: Answer, other: Answer) -> Answer:
    stopped = other.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    message = f"the solver reports {answer.status.name}, which its tolerances cannot decide; {answer.message}"
    return replace(answer, status=other.status if stopped else Status.FAILED, message=message)


def _relax(program: LinearProgram) -> LinearProgram:
    """Return the program of the least sum of violations of the rows."""
    below = np.flatnonzero(np.isfinite(program.row_lower))
    above = np.flatnonzero(np.isfinite(program.row_upper))
    count = below.size + above.size
    signs = np.repeat([1.0, -1.0], [below.size, above.size])
    places = np.concatenate([below, above]), np.arange(count)
    return LinearProgram(
        np.repeat([0.0, 1.0], [program.columns, count]),
        sparse.hstack([program.matrix, sparse.csr_array((signs, places), (program.rows, count))], format="csr"),
        program.row_lower,
        program.row_upper,
        np.concatenate([program.lower, np.zeros(count)]),
        np.concatenate([program.upper, np.full(count, np.inf)]),
    )


def _find_cone(program: LinearProgram) -> LinearProgram:
    """Return the program of the steepest descent among directions in which no row or bound ends.

    In every column, the objective changes by at most its largest cost.
    """

    def directions(low: Floats, high: Floats, size: Floats) -> tuple[Floats, Floats]:
        return np.where(np.isfinite(low), 0.0, -size), np.where(np.isfinite(high), 0.0, size)

    costs = np.abs(program.cost)
    sizes = np.where(costs > 0, costs.max(initial=0.0) / np.where(costs > 0, costs, 1.0), 1.0)
    return LinearProgram(
        program.cost,
        program.matrix,
        *directions(program.row_lower, program.row_upper, np.full(program.rows, np.inf)),
        *directions(program.lower, program.upper, sizes),
    )


def solve(
    program: LinearProgram, solver: str = "highs", options: Options | None = None, start: object = None
) -> Solution:
    """Solve a linear program and measure the answer.

    Objective and residuals are recomputed from the returned numbers. Missing or non-finite numbers give infinite
    residuals. If an "optimal" answer has a residual over 1e-3, relative to the size of the data, its status becomes
    FAILED.

    The solver receives the program in units in which its numbers are near 1. All factors are powers of two, so the
    answer is mapped back without rounding. If the solver reports that the program is infeasible or unbounded,
    multipliers or a direction must prove it; else the status is FAILED too.

    Large programs run in a separate process if the solver would exceed its time limit or ignore Ctrl-C (`Solver.apart`,
    `Solver.deaf`). The process is killed after the limit plus a grace period of one second and 5 % of the limit. In
    WebAssembly, which has no processes, all programs are solved in this process.

    Args:
        program: The program.
        solver: Name of a solver.
        options: Tolerances, limits, and options of the solver.
        start: The `start` of an earlier solution by the same solver. The earlier program may have had fewer rows.

    Returns:
        The solution.

    Raises:
        InputError: The solver is unknown, does not take rows, or refuses an option.
        MissingDependencyError: The package of the solver is not installed.

    >>> import numpy as np
    >>> program = LinearProgram([1.0], np.ones((1, 1)), [2.0], [np.inf], [0.0], [np.inf])
    >>> solve(program, "scipy").residuals.objective
    2.0
    """
    options = (options or Options()).begun()
    found = find(solver)
    if found.takes != "rows":
        raise InputError("solver", "does not take linear programs", value=solver)
    clock = options.deadline.seconds()

    def run(which: LinearProgram, begin: object = None) -> Answer:
        scaled = scale(which)
        wanted = found.deaf or options.deadline.left() is not None
        if which.matrix.nnz >= found.apart and wanted and not is_webassembly():
            answer = solve_apart(found, scaled.program, options, begin)
        else:
            answer = cast(BackEnd, found.load())(scaled.program, options, begin)
        x, row_dual = scaled.restore(answer.x, answer.row_dual)
        return replace(answer, x=x, row_dual=row_dual)

    answer = run(program, start)
    if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        answer = decide_status(scale(program).program, answer, run)
    return measure(program, answer, solver=found.name, seconds=options.deadline.seconds() - clock)


def block_back_end(solver: str) -> BlockBackEnd:
    """Return the function of a solver of block programs.

    Args:
        solver: Name of the solver.

    Returns:
        The function.

    Raises:
        InputError: The solver does not take block programs.

    >>> callable(block_back_end("block"))
    True
    """
    found = find(solver)
    if found.takes != "blocks":
        raise InputError("solver", "does not take block programs", value=solver)
    return cast(BlockBackEnd, found.load())
