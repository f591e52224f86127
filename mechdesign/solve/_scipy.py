"""SciPy's `linprog`: HiGHS once more, but another release of it, reached through an interface of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy
import scipy.optimize
import scipy.sparse as sparse

from mechdesign.base._errors import InputError
from mechdesign.solve._contract import Answer, BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram

OPTIONS = frozenset(
    {
        "disp",
        "dual_feasibility_tolerance",
        "ipm_optimality_tolerance",
        "maxiter",
        "presolve",
        "primal_feasibility_tolerance",
        "simplex_dual_edge_weight_strategy",
        "time_limit",
    }
)
_STRATEGY = "simplex_dual_edge_weight_strategy"
_STRATEGIES = ("dantzig", "devex", "steepest", "steepest-devex")
_SMALLEST_TOLERANCE = 1e-10
_EITHER = "unbounded or infeasible"
# As for HiGHS itself; one number limits the interior point and the clean-up of its crossover.
_INTERIOR_ITERATIONS, _PIVOTS, _PIVOTS_EACH = 2_000, 100_000, 100
_LOOSER = (10, 10_000)


def back_end(method: str) -> BackEnd:
    """Return `linprog` with `method`: "highs" (HiGHS decides), "highs-ds" (simplex) or "highs-ipm" (interior point).

    It cannot start from an earlier answer, and every method ends in a vertex. Its solvers run in one thread, so that
    any number of threads is respected. Ctrl-C is seen once `linprog` returns, and then there are no numbers. Where the
    interior point comes to no end, because rounding keeps it from the gap asked for, it is asked for a larger one.
    """

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        def settings(gap: float) -> dict[str, object]:
            return _settings(program, method, dataclasses.replace(options, gap=gap))

        gap = options.relative_gap
        try:
            answer = _solve(program, method, settings(gap))
            for factor in _LOOSER if method == "highs-ipm" and "maxiter" not in options.extra else ():
                if answer.status is Status.ITERATION_LIMIT:
                    answer = _solve(program, method, settings(factor * gap))
            if answer.status is Status.FAILED and _EITHER in answer.message and program.cost.any():
                feasible = _solve(dataclasses.replace(program, cost=np.zeros(program.columns)), method, settings(gap))
                status = Status.UNBOUNDED if feasible.status is Status.OPTIMAL else feasible.status
                answer = dataclasses.replace(answer, status=status)
        except KeyboardInterrupt:
            return Answer(Status.INTERRUPTED, None, None, 0, "interrupted by the user", _version(method))
        return answer

    return solve


def _settings(program: LinearProgram, method: str, options: Options) -> dict[str, object]:
    feasibility = max(options.feasibility, _SMALLEST_TOLERANCE)
    settings: dict[str, object] = {
        "primal_feasibility_tolerance": feasibility,
        "dual_feasibility_tolerance": feasibility,
        "ipm_optimality_tolerance": max(options.relative_gap, _SMALLEST_TOLERANCE),
        "maxiter": _INTERIOR_ITERATIONS
        if method == "highs-ipm"
        else _PIVOTS + _PIVOTS_EACH * (program.rows + program.columns),
    }
    if (left := options.deadline.left()) is not None:
        settings["time_limit"] = left
    for name, value in options.extra.items():
        if name not in OPTIONS:
            accepted = f"one of {', '.join(sorted(OPTIONS))}"
            raise InputError(f"options.extra.{name}", "is not an option of linprog", value=value, bound=accepted)
        # linprog warns of such values, and ignores them.
        if name == "presolve" and not isinstance(value, bool | np.bool_):
            raise InputError(f"options.extra.{name}", "is no truth value", value=value, bound="True or False")
        if name == _STRATEGY and value is not None and str(value).lower() not in _STRATEGIES:
            accepted = f"one of {', '.join(_STRATEGIES)}"
            raise InputError(f"options.extra.{name}", "is not known to linprog", value=value, bound=accepted)
        settings[name] = value
    return settings


def _solve(program: LinearProgram, method: str, settings: dict[str, object]) -> Answer:
    """Split the rows as `linprog` wants them: A_eq x = b_eq and A_ub x <= b_ub, lower bounds negated."""
    equal = np.flatnonzero((program.row_lower == program.row_upper) & np.isfinite(program.row_lower))
    ranged = program.row_lower != program.row_upper
    above = np.flatnonzero(ranged & np.isfinite(program.row_upper))
    below = np.flatnonzero(ranged & np.isfinite(program.row_lower))
    linprog: Any = scipy.optimize.linprog
    try:
        result = linprog(
            program.cost,
            A_ub=sparse.vstack([program.matrix[above], -program.matrix[below]], format="csr"),
            b_ub=np.concatenate([program.row_upper[above], -program.row_lower[below]]),
            A_eq=program.matrix[equal],
            b_eq=program.row_lower[equal],
            bounds=np.column_stack([program.lower, program.upper]),
            method=method,
            options=settings,
        )
    except (scipy.optimize.OptimizeWarning, TypeError, AttributeError) as error:
        raise InputError("options.extra", f"is refused by linprog ({error})", value=settings) from error
    row_dual = None
    if result.x is not None and result.ineqlin.marginals is not None:
        # A marginal is the derivative of the optimum by a right-hand side, which is positive where a row leans on its
        # lower bound; the rows below had their right-hand sides negated.
        row_dual = np.zeros(program.rows)
        row_dual[equal] = result.eqlin.marginals
        row_dual[above] = result.ineqlin.marginals[: above.size]
        row_dual[below] -= result.ineqlin.marginals[above.size :]
    return Answer(
        status=_status(result.status, result.message, present=result.x is not None),
        x=None if result.x is None else np.asarray(result.x, dtype=np.float64),
        row_dual=row_dual,
        iterations=int(result.nit or 0) + int(result.crossover_nit or 0),
        message=str(result.message),
        version=_version(method),
    )


def _status(code: int, message: str, *, present: bool) -> Status:
    if code == 1:
        return Status.TIME_LIMIT if "time limit" in message.lower() else Status.ITERATION_LIMIT
    if code == 4 and present:
        # linprog doubts what HiGHS calls optimal, by a tolerance of its own: for the measurement to judge.
        return Status.OPTIMAL
    return {0: Status.OPTIMAL, 2: Status.INFEASIBLE, 3: Status.UNBOUNDED}.get(code, Status.FAILED)


def _version(method: str) -> str:
    return f"SciPy {scipy.__version__} linprog ({method})"
