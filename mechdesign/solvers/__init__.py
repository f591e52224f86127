"""Solvers for linear programs: one file per back end, one contract, one way in."""

from __future__ import annotations

import importlib
import importlib.util
import time
from dataclasses import dataclass

import numpy as np

from mechdesign.errors import InputError, MissingDependencyError
from mechdesign.programs.linear import LinearProgram, residuals
from mechdesign.solvers.contract import Answer, BackEnd, Options, Progress, ProgressCallback, Solution, Status

__all__ = [
    "Answer",
    "Options",
    "Progress",
    "ProgressCallback",
    "Solution",
    "Solver",
    "Status",
    "available",
    "find",
    "solve",
]

# A pair that a solver is in doubt about passes when its own numbers are this close to optimal.
_FINE = 1e-8

# A pair that a solver calls optimal is demoted when its own numbers are further off than this.
_GROSS = 1e-3

# Where the optimum is zero no relative distance of the objectives is small; this much, in units of the costs, is.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Solver:
    """A named way to solve: the module that does it, the method that it is told, and the package it needs."""

    name: str
    module: str
    method: str
    package: str

    @property
    def installed(self) -> bool:
        """Whether the package can be imported."""
        return importlib.util.find_spec(self.package) is not None


_SOLVERS = {
    solver.name: solver
    for solver in (
        Solver("highs", "highs", "choose", "highspy"),
        Solver("highs-simplex", "highs", "simplex", "highspy"),
        Solver("highs-ipx", "highs", "ipx", "highspy"),
        Solver("highs-pdlp", "highs", "pdlp", "highspy"),
        Solver("scipy", "scipy", "highs", "scipy"),
        Solver("scipy-ds", "scipy", "highs-ds", "scipy"),
        Solver("scipy-ipm", "scipy", "highs-ipm", "scipy"),
        Solver("cvxpy", "cvxpy", "CLARABEL", "cvxpy"),
    )
}


def available() -> tuple[Solver, ...]:
    """Return every named solver; ``cvxpy-NAME`` further reaches any solver that cvxpy has installed."""
    return tuple(_SOLVERS.values())


def find(name: str) -> Solver:
    """Look up a solver by name.

    Raises InputError for a name that does not exist and MissingDependencyError for a package that is not installed.
    """
    if name.lower().startswith("cvxpy-") and name.lower() != "cvxpy-":
        solver = Solver(name.lower(), "cvxpy", name[len("cvxpy-") :].upper(), "cvxpy")
    elif name in _SOLVERS:
        solver = _SOLVERS[name]
    else:
        raise InputError(
            "solver", "is not known", value=name, bound=f"one of auto, block, {', '.join(_SOLVERS)}, cvxpy-NAME"
        )
    if not solver.installed:
        raise MissingDependencyError(
            f"solver {name!r} needs the package {solver.package}: pip install {solver.package}"
        )
    return solver


def solve(
    program: LinearProgram, solver: str = "highs", options: Options | None = None, start: object = None
) -> Solution:
    """Solve a program and measure what came back.

    The objective and all residuals are recomputed from the returned numbers; a missing or non-finite answer counts
    as infinite, and "optimal" beside a gross residual (over 1e-3, relative to the size of the data) becomes FAILED.
    """
    options = options or Options()
    found = find(solver)
    back_end: BackEnd = importlib.import_module(f".{found.module}", __name__).back_end(found.method)
    clock = time.perf_counter()
    answer = back_end(program, options, start)
    return measure(program, answer, solver=found.name, seconds=time.perf_counter() - clock)


def measure(program: LinearProgram, answer: Answer, *, solver: str, seconds: float) -> Solution:
    """Turn what a back end says into a Solution, believing only the numbers."""
    x = np.full(program.columns, np.nan) if answer.x is None else np.asarray(answer.x, dtype=np.float64)
    row_dual = (
        np.full(program.rows, np.nan) if answer.row_dual is None else np.asarray(answer.row_dual, dtype=np.float64)
    )
    status, message = answer.status, answer.message
    if x.shape != (program.columns,) or row_dual.shape != (program.rows,):
        status, message = Status.FAILED, f"the solver returned shapes {x.shape} and {row_dual.shape}"
        x, row_dual = np.full(program.columns, np.nan), np.full(program.rows, np.nan)
    quality = residuals(program, x, row_dual)
    scale = 1.0 + float(np.max(np.abs(program.cost), initial=0.0))
    if status is Status.STALLED and max(quality.primal, quality.dual / scale, quality.gap) <= _FINE:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        near = abs(quality.objective - quality.bound) <= _NEGLIGIBLE * scale or quality.gap <= _GROSS
        if not (quality.primal <= _GROSS and quality.dual <= _GROSS * scale and near):
            status = Status.FAILED
            message = (
                f"the solver said optimal, but rows are violated by {quality.primal:.3g}, reduced costs by "
                f"{quality.dual:.3g}, and the objectives differ by {quality.gap:.3g}; its own words: {answer.message}"
            )
    return Solution(
        status, x, row_dual, quality, solver, answer.version, answer.iterations, seconds, message, answer.start
    )
