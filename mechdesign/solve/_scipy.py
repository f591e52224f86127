"""SciPy's `linprog`: another release of HiGHS behind a different interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.optimize
import scipy.sparse as sparse

from mechdesign.base._errors import InputError
from mechdesign.solve._contract import Answer, BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram, split_rows

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
_MIN_TOLERANCE = 1e-10
_EITHER = "unbounded or infeasible"
# The limit of pivots of the simplex method is a constant, plus a number for each row and column.
_MAX_PIVOTS = 100_000
_MAX_PIVOTS_PER_ROW = 100


def back_end() -> BackEnd:
    """Return the function that calls `linprog`; HiGHS chooses the method.

    `linprog` cannot start from an earlier answer, and returns a vertex. It runs in one thread, so it meets every limit
    on threads. Ctrl-C takes effect when `linprog` returns, and discards its numbers.
    """
    return _solve


def _solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
    settings = _settings(program, options)
    try:
        return _run(program, settings)
    except KeyboardInterrupt:
        return Answer(Status.INTERRUPTED, None, None, 0, "interrupted by the user", _version())


def _settings(program: LinearProgram, options: Options) -> dict[str, object]:
    feasibility = max(options.feasibility, _MIN_TOLERANCE)
    settings: dict[str, object] = {
        "primal_feasibility_tolerance": feasibility,
        "dual_feasibility_tolerance": feasibility,
        "ipm_optimality_tolerance": max(options.relative_gap, _MIN_TOLERANCE),
        "maxiter": _MAX_PIVOTS + _MAX_PIVOTS_PER_ROW * (program.rows + program.columns),
    }
    if (left := options.deadline.left()) is not None:
        settings["time_limit"] = left
    for name, value in options.extra.items():
        if name not in OPTIONS:
            accepted = f"one of {', '.join(sorted(OPTIONS))}"
            raise InputError(f"options.extra.{name}", "is not an option of linprog", value=value, bound=accepted)
        # linprog ignores invalid values and only warns.
        if name == "presolve" and not isinstance(value, bool | np.bool_):
            raise InputError(f"options.extra.{name}", "is not a truth value", value=value, bound="True or False")
        if name == _STRATEGY and value is not None and str(value).lower() not in _STRATEGIES:
            accepted = f"one of {', '.join(_STRATEGIES)}"
            raise InputError(f"options.extra.{name}", "is not known to linprog", value=value, bound=accepted)
        settings[name] = value
    return settings


def _run(program: LinearProgram, settings: dict[str, object]) -> Answer:
    """Solve with `linprog`; its form is A_eq x = b_eq and A_ub x <= b_ub, so rows with lower bounds are negated."""
    equal, above, below = split_rows(program)
    linprog: Any = scipy.optimize.linprog
    try:
        result = linprog(
            program.cost,
            A_ub=sparse.vstack([program.matrix[above], -program.matrix[below]], format="csr"),
            b_ub=np.concatenate([program.row_upper[above], -program.row_lower[below]]),
            A_eq=program.matrix[equal],
            b_eq=program.row_lower[equal],
            bounds=np.column_stack([program.lower, program.upper]),
            method="highs",
            options=settings,
        )
    except (scipy.optimize.OptimizeWarning, TypeError, AttributeError) as error:
        raise InputError("options.extra", f"is refused by linprog ({error})", value=settings) from error
    row_dual = None
    if result.x is not None and result.ineqlin.marginals is not None:
        # A marginal is the derivative of the optimum by a right-hand side. The marginal is positive if the row is
        # active at its lower bound. Rows with lower bounds were negated.
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
        version=_version(),
    )


def _status(code: int, message: str, *, present: bool) -> Status:
    if code == 1:
        return Status.TIME_LIMIT if "time limit" in message.lower() else Status.ITERATION_LIMIT
    if code == 4 and present:
        # linprog rejects some optimal answers of HiGHS by an additional tolerance; `measure` makes the final decision.
        return Status.OPTIMAL
    if _EITHER in message:
        # `decide_status` finds out which of the two.
        return Status.INFEASIBLE
    return {0: Status.OPTIMAL, 2: Status.INFEASIBLE, 3: Status.UNBOUNDED}.get(code, Status.FAILED)


def _version() -> str:
    return f"SciPy {scipy.__version__} linprog"
