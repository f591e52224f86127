"""Solve linear-fractional programs through any back end for linear ones."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from mechdesign.base._errors import InfeasibleError
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SolverError
from mechdesign.base._errors import UnboundedError
from mechdesign.programs.fractional import FractionalProgram
from mechdesign.programs.fractional import charnes_cooper
from mechdesign.programs.fractional import dinkelbach
from mechdesign.solvers.contract import Options
from mechdesign.solvers.contract import Solution
from mechdesign.solvers.contract import Status
from mechdesign.solvers import solve
from mechdesign.base._arrays import Floats

__all__ = ["FractionalSolution", "solve_fractional"]


_MOST_STEPS = 200
_SCALES = (1e4, 1e6, 1e2)


@dataclass(frozen=True, eq=False)
class FractionalSolution:
    """The best fraction found.

    `value` is recomputed at `x`, which is moved onto its bounds where the solver left them by rounding. `violation` is
    the largest absolute violation of a row. Where the best fraction is only approached far out, `x` is None and `value`
    is what the solver says. `programs` counts the linear programs solved; `solver` names the back end.
    """

    value: float
    x: Floats | None
    violation: float
    programs: int
    solver: str


def solve_fractional(
    fractional: FractionalProgram,
    method: str = "charnes-cooper",
    solver: str = "highs",
    options: Options | None = None,
) -> FractionalSolution:
    """Maximise a fraction by one linear program ("charnes-cooper") or by a few ("dinkelbach"), on any back end.

    Raises `InfeasibleError`, `UnboundedError` or `SolverError` when a linear program ends so, and `InputError` when the
    denominator is not positive at the answer.
    """
    if method == "charnes-cooper":
        return _by_charnes_cooper(fractional, solver, options)
    if method == "dinkelbach":
        return _by_dinkelbach(fractional, solver, options)
    raise InputError("method", "is not known", value=method, bound='"charnes-cooper" or "dinkelbach"')


def _by_charnes_cooper(fractional: FractionalProgram, solver: str, options: Options | None) -> FractionalSolution:
    options, clock = options or Options(), time.perf_counter()
    # Where coefficients spread over many orders of magnitude, a solver may fail at one scale and succeed at another.
    for heaviest in _SCALES:
        reduced = charnes_cooper(fractional, heaviest)
        solution = solve(reduced.program, solver, options.after(time.perf_counter() - clock))
        if solution.status is Status.OPTIMAL:
            break
    else:
        reduced = charnes_cooper(fractional)
        solution = _solved(solve(reduced.program, solver, options.after(time.perf_counter() - clock)), fractional)
    x = reduced.invert(solution.x)
    if x is None:
        return FractionalSolution(-solution.residuals.objective, None, solution.residuals.primal, 1, solution.solver)
    return _measured(fractional, x, 1, solution.solver)


def _by_dinkelbach(fractional: FractionalProgram, solver: str, options: Options | None) -> FractionalSolution:
    # Any point of the polyhedron gives a first value; the one of largest numerator is a promising one.
    options, clock = options or Options(), time.perf_counter()
    best = None
    value = 0.0
    for step in range(1, _MOST_STEPS + 1):
        left = options.after(time.perf_counter() - clock)
        solution = _solved(solve(dinkelbach(fractional, value), solver, left), fractional)
        found = _measured(fractional, solution.x, step, solution.solver)
        # Values rise until they are the best; then rounding may move them either way.
        if best is not None and found.value <= value * (1 + math.copysign(4e-16, value)):
            return FractionalSolution(best.value, best.x, best.violation, step, best.solver)
        best, value = found, found.value
    raise SolverError(f"Dinkelbach's method did not settle in {_MOST_STEPS} steps; the last value was {value!r}")


def _solved(solution: Solution, fractional: FractionalProgram) -> Solution:
    if solution.status is Status.OPTIMAL:
        return solution
    message = f"{fractional.name}: {solution.solver} ended with: {solution.status.value} ({solution.message})"
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(message)
    if solution.status is Status.UNBOUNDED:
        raise UnboundedError(message)
    raise SolverError(message)


def _measured(fractional: FractionalProgram, x: Floats, programs: int, solver: str) -> FractionalSolution:
    x = np.clip(x, fractional.lower, fractional.upper)
    above, below = fractional.fraction(x)
    if not below > 0:
        raise InputError(
            "denominator", "is not positive at a point of the polyhedron", value=below, bound="> 0 on all of it"
        )
    activity = fractional.matrix @ x
    violation = max(
        float(np.max(fractional.row_lower - activity, initial=0.0)),
        float(np.max(activity - fractional.row_upper, initial=0.0)),
    )
    return FractionalSolution(above / below, x, violation, programs, solver)
