"""HiGHS through highspy: simplex, the interior-point method IPX, and the first-order method PDLP."""

from __future__ import annotations

import math
import time
from typing import Any

import highspy
import numpy as np

from mechdesign.errors import InputError
from mechdesign.programs.linear import LinearProgram
from mechdesign.solvers.contract import Answer, BackEnd, Options, Progress, Status

__all__ = ["back_end"]

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    highspy.HighsModelStatus.kInterrupt: Status.INTERRUPTED,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
}
_SMALLEST_TOLERANCE = 1e-10
_DEVEX = 1


def back_end(method: str) -> BackEnd:
    """Return HiGHS with `method`: "choose" (HiGHS decides), "simplex", "ipx" or "pdlp"."""

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        highs = _configure(method, options, warm=start is not None)
        highs.passModel(_model(program))
        if start is not None:
            highs.setBasis(_extend(start, program))
        interrupted = _run(highs, options)
        return _answer(highs, method, options, interrupted)

    return solve


def _configure(method: str, options: Options, *, warm: bool) -> Any:
    highs = highspy.Highs()
    tolerance = max(options.tolerance, _SMALLEST_TOLERANCE)
    settings: dict[str, object] = {
        "output_flag": False,
        "solver": method,
        "threads": options.threads or 0,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "ipm_optimality_tolerance": max(tolerance, 1e-12),
        "pdlp_optimality_tolerance": max(tolerance, 1e-12),
        "run_crossover": "on" if options.vertex else "off",
    }
    if options.time_limit is not None:
        settings["time_limit"] = max(options.time_limit, 0.0)
    if warm:
        # Exact steepest-edge weights for a basis with many rows cost more than the few iterations that follow.
        settings["simplex_dual_edge_weight_strategy"] = _DEVEX
    settings.update(options.extra)
    for name, value in settings.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise InputError(f"options.{name}", "is refused by HiGHS", value=value, remedy="see the HiGHS option list")
    return highs


def _model(program: LinearProgram) -> Any:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.columns, program.rows
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.matrix.indptr
    model.a_matrix_.index_ = program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    return model


def _extend(start: Any, program: LinearProgram) -> Any:
    """Give rows that were appended since `start` was made a basic slack."""
    basis = highspy.HighsBasis()
    basis.col_status = list(start.col_status)
    missing = program.rows - len(start.row_status)
    basis.row_status = list(start.row_status) + [highspy.HighsBasisStatus.kBasic] * missing
    basis.valid = True
    return basis


def _run(highs: Any, options: Options) -> bool:
    """Run in a thread of HiGHS's own, so that Ctrl-C stops the solve and not the program."""
    clock = time.perf_counter()
    highs.HandleUserInterrupt = True
    highs.startSolve()
    interrupted = False
    next_report = 0.5
    while True:
        try:
            finished, _ = highs.wait(0.1)
            if finished:
                return interrupted
            elapsed = time.perf_counter() - clock
            if options.report is not None and elapsed >= next_report:
                next_report = elapsed + 0.5
                options.report(Progress("HiGHS", elapsed))
        except KeyboardInterrupt:
            interrupted = True
            highs.cancelSolve()


def _answer(highs: Any, method: str, options: Options, interrupted: bool) -> Answer:
    status = _STATUS.get(highs.getModelStatus(), Status.FAILED)
    if interrupted and status is not Status.OPTIMAL:
        status = Status.INTERRUPTED
    solution, info = highs.getSolution(), highs.getInfo()
    counts = (info.simplex_iteration_count, info.ipm_iteration_count, getattr(info, "pdlp_iteration_count", 0))
    start = highs.getBasis() if info.basis_validity == highspy.BasisValidity.kBasisValidityValid else None
    return Answer(
        status=status,
        x=np.array(solution.col_value) if solution.value_valid else None,
        row_dual=np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=sum(count for count in counts if count > 0 and math.isfinite(count)),
        message=highs.modelStatusToString(highs.getModelStatus()),
        version=f"HiGHS {highs.version()} ({method})",
        start=start,
    )
