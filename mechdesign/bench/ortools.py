"""OR-Tools' first-order method PDLP, called directly: what CVXPY makes of its answer depends on the release."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np

from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._contract import Answer
from mechdesign.solve._contract import BackEnd
from mechdesign.solve._contract import Options
from mechdesign.solve._registry import Solver
from mechdesign.solve._contract import Status
from mechdesign.solve._registry import register

__all__ = ["NAME"]

NAME = "ortools-pdlp"
"""What the back end is called in `mechdesign.solve._solve`, from when this module is imported."""


def _back_end() -> BackEnd:
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp

    reasons: Any = solve_log_pb2
    said = {
        reasons.TERMINATION_REASON_OPTIMAL: Status.OPTIMAL,
        reasons.TERMINATION_REASON_PRIMAL_INFEASIBLE: Status.INFEASIBLE,
        reasons.TERMINATION_REASON_DUAL_INFEASIBLE: Status.UNBOUNDED,
        reasons.TERMINATION_REASON_TIME_LIMIT: Status.TIME_LIMIT,
        reasons.TERMINATION_REASON_ITERATION_LIMIT: Status.ITERATION_LIMIT,
    }

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        quadratic: Any = pdlp.QuadraticProgram()
        quadratic.resize_and_initialize(program.columns, program.rows)
        quadratic.objective_vector = program.cost
        quadratic.constraint_matrix = program.matrix.tocsc()
        quadratic.constraint_lower_bounds = program.row_lower
        quadratic.constraint_upper_bounds = program.row_upper
        quadratic.variable_lower_bounds = program.lower
        quadratic.variable_upper_bounds = program.upper
        asked: Any = solvers_pb2.PrimalDualHybridGradientParams()
        criteria = asked.termination_criteria.simple_optimality_criteria
        criteria.eps_optimal_absolute = criteria.eps_optimal_relative = options.relative_gap
        if options.threads is not None:
            asked.num_threads = options.threads
        if options.time_limit is not None:
            asked.termination_criteria.time_sec_limit = options.time_limit
        result: Any = pdlp.primal_dual_hybrid_gradient(quadratic, asked)
        log = result.solve_log
        reason = log.termination_reason
        return Answer(
            said.get(reason, Status.FAILED),
            np.array(result.primal_solution),
            np.array(result.dual_solution),
            int(log.iteration_count),
            reasons.TerminationReason.Name(reason),
            f"OR-Tools {importlib.metadata.version('ortools')} (PDLP)",
        )

    return solve


register(Solver(NAME, _back_end, "ortools"))
