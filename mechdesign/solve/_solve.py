"""Solvers: one file per back end, one contract, one registry, one way in."""

from __future__ import annotations

from typing import cast

from mechdesign.base._errors import InputError
from mechdesign.solve._apart import solve_apart
from mechdesign.solve._block import BlockBackEnd
from mechdesign.solve._contract import BackEnd, Options, Solution, measure
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import find


def solve(
    program: LinearProgram, solver: str = "highs", options: Options | None = None, start: object = None
) -> Solution:
    """Solve a program of rows and measure what came back.

    The objective and all residuals are recomputed from the returned numbers; a missing or non-finite answer counts
    as infinite, and "optimal" beside a gross residual (over 1e-3, relative to the size of the data) becomes FAILED.

    Large programs are solved in a process of their own where the solver would not keep its time limit, or not hear
    Ctrl-C (`Solver.apart`, `Solver.deaf`). That process is ended a second and a twentieth of the limit after the limit.

    Args:
        program: What to minimise.
        solver: A name that `find` knows.
        options: Tolerances, limits, and options of the solver's own.
        start: The `start` of an earlier solution by the same solver, of a program with the same or fewer rows.

    Raises:
        InputError: There is no such solver, it takes no rows, or it refuses an option.
        MissingDependencyError: Its package is not installed.
    """
    options = (options or Options()).begun()
    found = find(solver)
    if found.takes != "rows":
        raise InputError("solver", "takes no programs of rows", value=solver)
    clock = options.deadline.seconds()
    if program.matrix.nnz >= found.apart and (found.deaf or options.deadline.left() is not None):
        answer = solve_apart(found, program, options, start)
    else:
        answer = cast(BackEnd, found.load())(program, options, start)
    return measure(program, answer, solver=found.name, seconds=options.deadline.seconds() - clock)


def block_back_end(solver: str) -> BlockBackEnd:
    """Return the function that solves block programs; raise InputError for a solver that takes none."""
    found = find(solver)
    if found.takes != "blocks":
        raise InputError("solver", "takes no block programs", value=solver)
    return cast(BlockBackEnd, found.load())
