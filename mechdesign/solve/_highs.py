"""HiGHS through highspy: simplex, the interior-point method IPX, and the first-order method PDLP."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._machine import is_webassembly
from mechdesign.solve._apart import SolverState, wait
from mechdesign.solve._contract import Answer, BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    highspy.HighsModelStatus.kInterrupt: Status.INTERRUPTED,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
    # HiGHS returns kUnknown if its interior-point method misses a tolerance.
    highspy.HighsModelStatus.kUnknown: Status.STALLED,
}
_CONCLUSIVE = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
_MIN_TOLERANCE = 1e-10
_MIN_INTERIOR_TOLERANCE = 1e-12
_MIN_COEFFICIENT = 1e-12
_DEVEX_PRICING = 1
_PRIMAL_SIMPLEX = 4

# Iteration limits, far above normal counts. The limit of pivots of the simplex method is a constant, plus a number for
# each row and column.
_MAX_INTERIOR_ITERATIONS = 500
_MAX_FIRST_ORDER_ITERATIONS = 1_000_000
_MAX_PIVOTS = 100_000
_MAX_PIVOTS_PER_ROW = 100
# Factors by which repeated interior-point runs enlarge the gap.
_GAP_FACTORS = (10, 10_000)

_IPX_ROW = re.compile(r"\s*(\d+)\*?(\s+[-+]?\d\.\d+e[-+]\d+){5}")


def back_end(method: str) -> BackEnd:
    """Return HiGHS with `method`: "choose" (HiGHS decides), "simplex", "ipx" or "pdlp".

    The simplex method starts from the basis of an earlier answer, even if rows were appended since. After Ctrl-C the
    answer contains the last iterate; PDLP ignores Ctrl-C. HiGHS accepts tolerances of at least 1e-10. Progress reports
    count iterations of the simplex method and of IPX. If IPX misses the required gap because of rounding, it runs again
    with a larger gap and crossover.
    """

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        # If HiGHS received a basis, it would run the simplex method instead of IPX or PDLP.
        start = start if method in ("choose", "simplex") else None
        settings = _settings(method, program, options, warm=start is not None)
        highs = _configure(settings, options)
        if highs.passModel(_model(program)) == highspy.HighsStatus.kError:
            return _report_refusal(highs, method)
        if start is not None:
            highs.setBasis(_extend(start, program))
        interrupted = _run(highs, options)
        dual = method in ("choose", "simplex") and "simplex_strategy" not in options.extra
        others: list[dict[str, object]] = []
        if dual and highs.getModelStatus() not in _STATUS:
            # If costs are huge and the optimum is zero, the dual simplex method may fail, but the primal simplex method
            # does not.
            others = [settings | {"simplex_strategy": _PRIMAL_SIMPLEX}]
        elif method == "ipx" and "ipm_iteration_limit" not in options.extra:
            looser = [replace(options, gap=factor * options.relative_gap, vertex=True) for factor in _GAP_FACTORS]
            others = [_settings(method, program, one, warm=False) for one in looser]
        for other in others:
            if interrupted or (method == "ipx" and highs.getModelStatus() != highspy.HighsModelStatus.kIterationLimit):
                break
            highs = _configure(other, options)
            highs.passModel(_model(program))
            interrupted = _run(highs, options)
        return _answer(highs, method, interrupted)

    return solve


def _settings(method: str, program: LinearProgram, options: Options, *, warm: bool) -> dict[str, object]:
    feasibility = max(options.feasibility, _MIN_TOLERANCE)
    gap = max(options.relative_gap, _MIN_TOLERANCE)
    settings: dict[str, object] = {
        "output_flag": False,
        "solver": method,
        "threads": options.threads or 0,
        "primal_feasibility_tolerance": feasibility,
        "dual_feasibility_tolerance": feasibility,
        # Without crossover, a few more interior-point iterations make the solution as accurate as a vertex.
        "ipm_optimality_tolerance": gap if options.vertex else max(gap / 100, _MIN_INTERIOR_TOLERANCE),
        "pdlp_optimality_tolerance": gap,
        "run_crossover": "on" if options.vertex else "off",
        # HiGHS silently drops coefficients below this value. Its default is a thousand times larger.
        "small_matrix_value": _MIN_COEFFICIENT,
        "ipm_iteration_limit": _MAX_INTERIOR_ITERATIONS,
        "pdlp_iteration_limit": _MAX_FIRST_ORDER_ITERATIONS,
        "simplex_iteration_limit": _MAX_PIVOTS + _MAX_PIVOTS_PER_ROW * (program.rows + program.columns),
    }
    if warm:
        # Computing exact steepest-edge weights for a large basis takes longer than the few remaining iterations.
        settings["simplex_dual_edge_weight_strategy"] = _DEVEX_PRICING
    return settings | dict(options.extra)


def _configure(settings: Mapping[str, object], options: Options) -> Any:
    new: Any = highspy.Highs
    highs = new()
    # Turn output off first, so that HiGHS does not comment on the other options.
    highs.setOptionValue("output_flag", False)
    for name, value in settings.items():
        try:
            accepted = highs.setOptionValue(name, value) == highspy.HighsStatus.kOk
        except TypeError:
            accepted = False
        if not accepted:
            place = "options.extra" if name in options.extra else "options"
            raise InputError(f"{place}.{name}", "is refused by HiGHS", value=value, remedy="see the HiGHS option list")
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


@dataclass(frozen=True, eq=False)
class _Basis:
    """The basis status of every column and row as numbers, because HiGHS's own type cannot be pickled."""

    columns: npt.NDArray[np.int8]
    rows: npt.NDArray[np.int8]


def _read_basis(basis: Any) -> _Basis:
    columns, rows = (np.array([int(one) for one in part], np.int8) for part in (basis.col_status, basis.row_status))
    return _Basis(columns, rows)


def _extend(start: Any, program: LinearProgram) -> Any:
    """Extend the basis `start` by basic slacks for rows that were appended later."""
    missing = program.rows - len(start.rows)
    named = {int(status): status for status in highspy.HighsBasisStatus.__members__.values()}
    basis = highspy.HighsBasis()
    basis.col_status = [named[number] for number in start.columns.tolist()]
    basis.row_status = [named[number] for number in start.rows.tolist()] + [highspy.HighsBasisStatus.kBasic] * missing
    basis.valid = True
    return basis


def _run(highs: Any, options: Options) -> bool:
    """Run HiGHS in a new thread, so that Ctrl-C stops only the solve; return whether Ctrl-C was pressed.

    Each thread has its own HiGHS scheduler, whose number of workers is fixed. In WebAssembly, which has no threads,
    HiGHS runs in this thread.
    """
    left = options.deadline.left()
    if left is not None and "time_limit" not in options.extra:
        highs.setOptionValue("time_limit", left)
    state = SolverState("HiGHS")
    done = threading.Event()

    def work() -> None:
        try:
            highs.run()
            highs.resetGlobalScheduler(False)
        finally:
            done.set()

    _subscribe(highs, state, options)
    if is_webassembly():
        work()
        return False
    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise SolverError(
            f"the system cannot start a thread for HiGHS ({error}): raise the limit of processes"
        ) from error

    def stop() -> None:
        state.stop = True

    with options.deadline.keeping():
        try:
            return wait(done, state, options.deadline, stop)
        finally:
            state.stop = True
            thread.join()


def _subscribe(highs: Any, state: SolverState, options: Options) -> None:
    """Report the progress of HiGHS, and stop HiGHS on request."""

    def listen(event: Any) -> None:
        if event.data_out.simplex_iteration_count > 0:
            state.stage, state.iteration = "HiGHS simplex", event.data_out.simplex_iteration_count
        if state.stop:
            event.interrupt()

    def read(event: Any) -> None:
        # The interrupt callback of IPX does not receive an iteration count, but IPX logs one line per iteration.
        row = _IPX_ROW.match(event.message)
        if row is not None:
            state.stage, state.iteration = "HiGHS interior point", int(row[1])
        elif "crossover" in event.message:
            state.stage = "HiGHS crossover"

    highs.cbSimplexInterrupt.subscribe(listen)
    highs.cbIpmInterrupt.subscribe(listen)
    if options.deadline.progress is not None and "output_flag" not in options.extra:
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("output_flag", True)
        highs.cbLogging.subscribe(read)


def _answer(highs: Any, method: str, interrupted: bool) -> Answer:
    status = _STATUS.get(highs.getModelStatus(), Status.FAILED)
    if interrupted and status not in _CONCLUSIVE:
        status = Status.INTERRUPTED
    solution, info = highs.getSolution(), highs.getInfo()
    counts = (
        info.simplex_iteration_count,
        info.ipm_iteration_count,
        info.crossover_iteration_count,
        getattr(info, "pdlp_iteration_count", 0),
    )
    start = _read_basis(highs.getBasis()) if info.basis_validity == highspy.BasisValidity.kBasisValidityValid else None
    return Answer(
        status=status,
        x=np.array(solution.col_value) if solution.value_valid else None,
        row_dual=np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=sum(count for count in counts if count > 0 and math.isfinite(count)),
        message=highs.modelStatusToString(highs.getModelStatus()),
        version=_version(method),
        start=start,
    )


def _report_refusal(highs: Any, method: str) -> Answer:
    message = "HiGHS refuses the program: a coefficient is too large, or the data are inconsistent"
    return Answer(Status.FAILED, None, None, 0, message, _version(method))


def _version(method: str) -> str:
    new: Any = highspy.Highs
    return f"HiGHS {new().version()} ({method})"
