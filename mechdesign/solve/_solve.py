"""The entry point: find a solver, run it, and measure its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mechdesign.base._errors import InputError
from mechdesign.base._machine import is_webassembly
from mechdesign.solve._apart import solve_apart
from mechdesign.solve._block import BlockBackEnd
from mechdesign.solve._contract import Answer, BackEnd, Options, Solution, Status, measure
from mechdesign.solve._feasibility import decide_status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import find
from mechdesign.solve._scaling import scale


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
