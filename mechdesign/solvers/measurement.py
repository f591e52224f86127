"""Believe only the numbers: what a back end says becomes a measured solution."""

from __future__ import annotations

import numpy as np

from mechdesign.programs.linear import LinearProgram
from mechdesign.programs.linear import residuals
from mechdesign.solvers.contract import Answer
from mechdesign.solvers.contract import Solution
from mechdesign.solvers.contract import Status

__all__ = ["GROSS", "measure"]

# A pair that a solver is in doubt about passes when its own numbers are this close to optimal.
_FINE = 1e-8

GROSS = 1e-3
"""A pair that a solver calls optimal is demoted when its own numbers are further off than this."""

# Where the optimum is zero no relative distance of the objectives is small; this much, in units of the costs, is.
_NEGLIGIBLE = 1e-6


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
        near = abs(quality.objective - quality.bound) <= _NEGLIGIBLE * scale or quality.gap <= GROSS
        if not (quality.primal <= GROSS and quality.dual <= GROSS * scale and near):
            status = Status.FAILED
            message = (
                f"the solver said optimal, but rows are violated by {quality.primal:.3g}, reduced costs by "
                f"{quality.dual:.3g}, and the objectives differ by {quality.gap:.3g}; its own words: {answer.message}"
            )
    return Solution(
        status, x, row_dual, quality, solver, answer.version, answer.iterations, seconds, message, answer.start
    )
