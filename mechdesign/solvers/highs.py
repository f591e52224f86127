"""HiGHS through highspy: simplex, the interior-point method IPX, and the first-order method PDLP."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from mechdesign import interrupts
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
    # What an interior point is called that missed one of its tolerances.
    highspy.HighsModelStatus.kUnknown: Status.STALLED,
}
_CONCLUSIVE = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
_SMALLEST_TOLERANCE = 1e-10
_INTERIOR_TOLERANCE = 1e-12
_SMALLEST_COEFFICIENT = 1e-12
_DEVEX = 1
_PRIMAL = 4

# Methods that never ask whether the user wants to stop: they run in a process of their own, which can be ended.
_DEAF = ("pdlp", "hipdlp")

_IPX_ROW = re.compile(r"\s*(\d+)\*?(\s+[-+]?\d\.\d+e[-+]\d+){5}")
_SECONDS_BETWEEN_REPORTS = 0.5


def back_end(method: str) -> BackEnd:
    """Return HiGHS with `method`: "choose" (HiGHS decides), "simplex", "ipx" or "pdlp".

    It starts from the basis of an earlier answer, also when rows were appended since. After Ctrl-C the answer holds
    the last iterate, except for PDLP, which then gives no numbers. HiGHS takes no tolerance below 1e-10. Reports
    count the iterations of the simplex method and of IPX.
    """

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        # Given a basis, HiGHS would run simplex instead of the method that was asked for.
        start = start if method in ("choose", "simplex") else None
        settings = _settings(method, options, warm=start is not None)
        highs = _configure(settings, options)
        if settings["solver"] in _DEAF:
            return _solve_apart(program, settings, options, method)
        if highs.passModel(_model(program)) == highspy.HighsStatus.kError:
            return _refused(highs, method)
        if start is not None:
            highs.setBasis(_extend(start, program))
        interrupted = _run(highs, options)
        dual = method in ("choose", "simplex") and "simplex_strategy" not in options.extra
        if dual and not interrupted and highs.getModelStatus() not in _STATUS:
            # The dual simplex method may fail where costs are huge and the optimum is zero; the primal one does not.
            highs = _configure(settings | {"simplex_strategy": _PRIMAL}, options)
            highs.passModel(_model(program))
            interrupted = _run(highs, options)
        return _answer(highs, method, interrupted)

    return solve


def _settings(method: str, options: Options, *, warm: bool) -> dict[str, object]:
    feasibility = max(options.feasibility, _SMALLEST_TOLERANCE)
    gap = max(options.relative_gap, _SMALLEST_TOLERANCE)
    settings: dict[str, object] = {
        "output_flag": False,
        "solver": method,
        "threads": options.threads or 0,
        "primal_feasibility_tolerance": feasibility,
        "dual_feasibility_tolerance": feasibility,
        # Without crossover the interior point is the answer; a few more iterations make it as good as a vertex.
        "ipm_optimality_tolerance": gap if options.vertex else max(gap / 100, _INTERIOR_TOLERANCE),
        "pdlp_optimality_tolerance": gap,
        "run_crossover": "on" if options.vertex else "off",
        # Smaller coefficients are dropped without a word; the default is a thousand times larger.
        "small_matrix_value": _SMALLEST_COEFFICIENT,
    }
    if options.time_limit is not None:
        settings["time_limit"] = max(float(options.time_limit), 0.0)
    if warm:
        # Exact steepest-edge weights for a basis with many rows cost more than the few iterations that follow.
        settings["simplex_dual_edge_weight_strategy"] = _DEVEX
    return settings | dict(options.extra)


def _configure(settings: Mapping[str, object], options: Options) -> Any:
    new: Any = highspy.Highs
    highs = new()
    # First of all, so that HiGHS does not print what it thinks of the others.
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


def _extend(start: Any, program: LinearProgram) -> Any:
    """Give rows that were appended since `start` was made a basic slack."""
    basis = highspy.HighsBasis()
    basis.col_status = list(start.col_status)
    missing = program.rows - len(start.row_status)
    basis.row_status = list(start.row_status) + [highspy.HighsBasisStatus.kBasic] * missing
    basis.valid = True
    return basis


@dataclass
class _Moment:
    """What the solving thread tells (stage, iteration) and is told (stop)."""

    stage: str = "HiGHS"
    iteration: int = 0
    stop: bool = False


def _run(highs: Any, options: Options) -> bool:
    """Run in a thread, so that Ctrl-C stops the solve and not the program; return whether it came.

    The thread is always a new one: the HiGHS scheduler belongs to a thread, and refuses another number of workers
    than it was made with.
    """
    moment = _Moment()
    done = threading.Event()

    def listen(event: Any) -> None:
        if event.data_out.simplex_iteration_count > 0:
            moment.stage, moment.iteration = "HiGHS simplex", event.data_out.simplex_iteration_count
        if moment.stop:
            event.interrupt()

    def read(event: Any) -> None:
        # IPX gives its interrupt callback no iteration count, but it logs one line per iteration.
        row = _IPX_ROW.match(event.message)
        if row is not None:
            moment.stage, moment.iteration = "HiGHS interior point", int(row[1])
        elif "crossover" in event.message:
            moment.stage = "HiGHS crossover"

    def work() -> None:
        try:
            highs.run()
            highs.resetGlobalScheduler(False)
        finally:
            done.set()

    highs.cbSimplexInterrupt.subscribe(listen)
    highs.cbIpmInterrupt.subscribe(listen)
    if options.progress is not None and "output_flag" not in options.extra:
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("output_flag", True)
        highs.cbLogging.subscribe(read)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def stop() -> None:
        moment.stop = True

    with interrupts.scope():
        interrupts.defer()
        try:
            return _wait(done, moment, options, stop)
        finally:
            moment.stop = True
            thread.join()


def _wait(done: threading.Event, moment: _Moment, options: Options, stop: Callable[[], None]) -> bool:
    """Wait until `done`, report now and then, call `stop` on Ctrl-C; return whether that came."""
    clock = time.perf_counter()
    next_report = _SECONDS_BETWEEN_REPORTS
    interrupted = False
    while True:
        try:
            interrupts.check()
            if done.wait(0.1):
                return interrupted
            elapsed = time.perf_counter() - clock
            if options.progress is not None and elapsed >= next_report:
                next_report = elapsed + _SECONDS_BETWEEN_REPORTS
                options.progress(Progress(moment.stage, elapsed, moment.iteration))
        except KeyboardInterrupt:
            interrupted = True
            stop()


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
    start = highs.getBasis() if info.basis_validity == highspy.BasisValidity.kBasisValidityValid else None
    return Answer(
        status=status,
        x=np.array(solution.col_value) if solution.value_valid else None,
        row_dual=np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=sum(count for count in counts if count > 0 and math.isfinite(count)),
        message=highs.modelStatusToString(highs.getModelStatus()),
        version=_version(method),
        start=start,
    )


def _refused(highs: Any, method: str) -> Answer:
    message = "HiGHS refuses the program: a coefficient is too large, or the data contradict themselves"
    return Answer(Status.FAILED, None, None, 0, message, _version(method))


def _version(method: str) -> str:
    new: Any = highspy.Highs
    return f"HiGHS {new().version()} ({method})"


def _solve_apart(program: LinearProgram, settings: Mapping[str, object], options: Options, method: str) -> Answer:
    """Solve in a process of its own, which Ctrl-C ends; see `_serve` for the other side."""
    fields = ("cost", "matrix", "row_lower", "row_upper", "lower", "upper")
    task = pickle.dumps(({name: getattr(program, name) for name in fields}, dict(settings), method, time.time()), 5)
    moment = _Moment(stage=f"HiGHS {method}")
    done = threading.Event()
    received: list[bytes] = []
    with _process() as process:

        def converse() -> None:
            try:
                process.stdin.write(task)
                process.stdin.flush()
                received.append(process.stdout.read())
            except (OSError, ValueError):
                # The process ended early, or was ended.
                pass
            finally:
                done.set()

        thread = threading.Thread(target=converse, daemon=True)
        thread.start()
        with interrupts.scope():
            interrupts.defer()
            try:
                interrupted = _wait(done, moment, options, process.kill)
            finally:
                process.kill()
                thread.join()
    if received and received[0]:
        answer: Answer = pickle.loads(received[0])
        return answer
    if interrupted:
        return Answer(Status.INTERRUPTED, None, None, 0, "stopped by the user", _version(method))
    message = f"the process that ran HiGHS ended with code {process.returncode}"
    return Answer(Status.FAILED, None, None, 0, message, _version(method))


@contextlib.contextmanager
def _process() -> Iterator[Any]:
    """Start Python on `_serve`, with the same import path and out of reach of the terminal's Ctrl-C; end it."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _serve; _serve()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _serve() -> None:
    """Read a task from standard input, solve it, write the answer to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fields, settings, method, sent = pickle.load(sys.stdin.buffer)
    # The other side keeps the pipe open for as long as it lives and wants the answer.
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(1)), daemon=True).start()
    # HiGHS prints to standard output from C: keep that apart from the answer.
    with os.fdopen(os.dup(1), "wb") as output:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(2 if settings["output_flag"] else silence, 1)
        if "time_limit" in settings:
            settings["time_limit"] = max(settings["time_limit"] - (time.time() - sent), 0.0)
        highs = _configure(settings, Options())
        if highs.passModel(_model(LinearProgram(**fields))) == highspy.HighsStatus.kError:
            answer = _refused(highs, method)
        else:
            highs.run()
            # A basis belongs to the process that made it.
            answer = dataclasses.replace(_answer(highs, method, interrupted=False), start=None)
        output.write(pickle.dumps(answer, 5))
    os._exit(0)
