"""Any installed solver of CVXPY, for independent checks of the numbers."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._process import ignore_warnings
from mechdesign.solve._contract import Answer, BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram, split_rows

_STATUS = {
    "optimal": Status.OPTIMAL,
    # `measure` decides whether an inaccurate answer is optimal.
    "optimal_inaccurate": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    # `decide_status` finds out which of the two.
    "infeasible_or_unbounded": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
}
_SCS_INTERRUPTED = -5
# Modules whose warnings only repeat the contents of their results.
_WARNING_MODULES = r"(cvxpy|clarabel|ecos|osqp|scs|mechdesign\.solve\._cvxpy)(\.|$)"

# The SCS package has no list of its settings that a program can read.
_SCS_NAMES = (
    "acceleration_interval",
    "acceleration_lookback",
    "acceleration_type_1",
    "adaptive_scale",
    "alpha",
    "eps_abs",
    "eps_infeas",
    "eps_rel",
    "linear_solver",
    "max_iters",
    "normalize",
    "rho_x",
    "scale",
    "time_limit_secs",
    "use_indirect",
)


@dataclass(frozen=True)
class _Dialect:
    """The option names of one solver.

    Attributes:
        package: The package that provides the solver.
        names: A function that returns all option names.
        tolerances: Options that bound violations.
        time_limit: Option for the time limit; empty if the solver has no such option.
        threads: Option for the number of threads; empty if the solver has no such option.
        gaps: Options that bound the difference of the primal and dual objectives.
        smallest: The smallest tolerance that the solver accepts.
        wrapper: The keyword argument that takes all options as one dictionary; empty if they are passed separately.
        pivots: Option that limits the simplex iterations, for solvers without a default limit.
    """

    package: str
    names: Callable[[], Collection[str]]
    tolerances: tuple[str, ...]
    time_limit: str
    threads: str = ""
    gaps: tuple[str, ...] = ()
    smallest: float = 0.0
    wrapper: str = ""
    pivots: str = ""


def _clarabel_names() -> Collection[str]:
    return _public(importlib.import_module("clarabel").DefaultSettings())


def _highs_names() -> Collection[str]:
    return _public(importlib.import_module("highspy").HighsOptions())


def _osqp_names() -> Collection[str]:
    return _public(importlib.import_module("osqp.ext_builtin").OSQPSettings())


def _piqp_names() -> Collection[str]:
    return _public(importlib.import_module("piqp").SparseSolver().settings)


def _qoco_names() -> Collection[str]:
    return _public(importlib.import_module("qoco.qoco_ext").QOCOSettings)


def _scipy_names() -> Collection[str]:
    names: Collection[str] = importlib.import_module("._scipy", __package__).OPTIONS
    return {"method", *names}


def _scs_names() -> Collection[str]:
    return _SCS_NAMES


def _public(settings: object) -> Collection[str]:
    return {name for name in dir(settings) if not name.startswith("_")}


_DIALECTS = {
    "CLARABEL": _Dialect(
        "clarabel", _clarabel_names, ("tol_feas",), "time_limit", "max_threads", ("tol_gap_abs", "tol_gap_rel")
    ),
    "HIGHS": _Dialect(
        "highspy",
        _highs_names,
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
        "time_limit",
        "threads",
        smallest=1e-10,
        pivots="simplex_iteration_limit",
    ),
    "OSQP": _Dialect("osqp", _osqp_names, ("eps_abs", "eps_rel"), "time_limit"),
    "PIQP": _Dialect(
        "piqp",
        _piqp_names,
        ("eps_abs", "eps_rel"),
        "",
        "num_threads",
        ("eps_duality_gap_abs", "eps_duality_gap_rel"),
    ),
    "QOCO": _Dialect("qoco", _qoco_names, ("abstol", "reltol"), ""),
    "SCIPY": _Dialect(
        "scipy",
        _scipy_names,
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
        "time_limit",
        smallest=1e-10,
        wrapper="scipy_options",
        pivots="maxiter",
    ),
    "SCS": _Dialect("scs", _scs_names, ("eps_abs", "eps_rel"), "time_limit_secs"),
}


# Limit of pivots of the simplex method, as for HiGHS: a constant, plus a number for each row and column.
_MAX_PIVOTS = 100_000
_MAX_PIVOTS_PER_ROW = 100

# Packages whose names differ from those of their solvers.
_PACKAGES = {
    "CBC": "cylp",
    "COPT": "coptpy",
    "GLOP": "ortools",
    "GLPK": "cvxopt",
    "GLPK_MI": "cvxopt",
    "GUROBI": "gurobipy",
    "NAG": "naginterfaces",
    "PDLP": "ortools",
    "PROXQP": "proxsuite",
    "SCIP": "pyscipopt",
    "SDPA": "sdpa-python",
}


def takes_options(method: str) -> bool:
    """Return whether tolerances, limits and options are known for a solver."""
    return method in _DIALECTS


def back_end(method: str) -> BackEnd:
    """Return the CVXPY solver called `method`, such as "CLARABEL".

    The argument `start` and the option `vertex` have no effect. Clarabel, HiGHS and PIQP obey `threads`; the others run
    in one thread. PIQP and QOCO refuse time limits. A solver without an entry in `_DIALECTS` runs with its default
    tolerances, and refuses time limits, threads and extra options. Ctrl-C takes effect when the solver returns, and
    discards its numbers; SCS reacts earlier.

    Args:
        method: Name of the solver in CVXPY, in upper case.

    Returns:
        The back end.

    Raises:
        InputError: CVXPY does not know the solver.
        MissingDependencyError: The solver is not installed.
    """
    # CVXPY warns about missing optional packages.
    with ignore_warnings(module=_WARNING_MODULES):
        cvxpy: Any = importlib.import_module("cvxpy")
        installed = cvxpy.installed_solvers()
        known = {*cvxpy.settings.SOLVERS, *installed}
    if method not in known:
        raise InputError("solver", "is unknown to CVXPY", value=method, bound=f"one of {', '.join(sorted(known))}")
    if method not in installed:
        raise MissingDependencyError(
            f"the CVXPY solver {method} is not installed: pip install {_package(method)}. "
            f"Installed are {', '.join(sorted(installed))}"
        )

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        settings = _settings(method, program, options)
        try:
            answer, said = _solve(cvxpy, program, method, settings, options)
            # After a failure, the solver may still detect infeasibility.
            if said == "solver_error" and program.cost.any():
                feasibility = dataclasses.replace(program, cost=np.zeros(program.columns))
                feasible, _ = _solve(cvxpy, feasibility, method, settings, options)
                if feasible.status is Status.INFEASIBLE:
                    answer = feasible
        except KeyboardInterrupt:
            return Answer(Status.INTERRUPTED, None, None, 0, "interrupted by the user", _version(cvxpy, method))
        return answer

    return solve


_MIN_LIMIT_S = 1e-6


def _settings(method: str, program: LinearProgram, options: Options) -> dict[str, object]:
    dialect = _DIALECTS.get(method)
    limit = options.deadline.limit
    if limit is not None and not (dialect and dialect.time_limit):
        known = f"available with {', '.join(name for name, each in _DIALECTS.items() if each.time_limit)}"
        raise InputError("options.time_limit", f"is not supported by {method}", value=limit, bound=known)
    if dialect is None:
        known = f"available with {', '.join(_DIALECTS)}"
        if options.threads is not None:
            raise InputError("options.threads", f"is not supported by {method}", value=options.threads, bound=known)
        for name, value in options.extra.items():
            raise InputError(f"options.extra.{name}", f"cannot be checked for {method}", value=value, bound=known)
        return {}
    settings: dict[str, object] = dict.fromkeys(dialect.tolerances, max(options.feasibility, dialect.smallest))
    settings |= dict.fromkeys(dialect.gaps, max(options.relative_gap, dialect.smallest))
    if dialect.pivots:
        settings[dialect.pivots] = _MAX_PIVOTS + _MAX_PIVOTS_PER_ROW * (program.rows + program.columns)
    if options.threads is not None and dialect.threads:
        settings[dialect.threads] = options.threads
    names = dialect.names() if options.extra else ()
    for name, value in options.extra.items():
        if name not in names:
            accepted = f"one of {', '.join(sorted(names))}"
            raise InputError(f"options.extra.{name}", f"is not an option of {method}", value=value, bound=accepted)
        settings[name] = value
    return {dialect.wrapper: settings} if dialect.wrapper else settings


def _solve(
    cvxpy: Any, program: LinearProgram, method: str, settings: dict[str, object], options: Options
) -> tuple[Answer, str]:
    """Solve the program once within the remaining time; return the answer and CVXPY's status."""
    equal, above, below = split_rows(program)
    x = cvxpy.Variable(program.columns, bounds=[program.lower, program.upper])
    # For a minimisation with A x = b, the multipliers ν of CVXPY satisfy c + Aᵀν = 0; multipliers of inequalities are ≥
    # 0.
    parts = []
    if equal.size:
        parts.append((equal, -1.0, program.matrix[equal] @ x == program.row_lower[equal]))
    if above.size:
        parts.append((above, -1.0, program.matrix[above] @ x <= program.row_upper[above]))
    if below.size:
        parts.append((below, 1.0, program.matrix[below] @ x >= program.row_lower[below]))
    problem = cvxpy.Problem(cvxpy.Minimize(program.cost @ x), [constraint for _, _, constraint in parts])
    version = _version(cvxpy, method)
    # Warnings of CVXPY repeat the status.
    with ignore_warnings(module=_WARNING_MODULES):
        try:
            data, chain, inverse = problem.get_problem_data(method, solver_opts=_copy(settings))
            left = _with_time(method, settings, options)
            raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=left)
            solution = chain.invert(raw, inverse)
        except (cvxpy.error.SolverError, TypeError, ValueError) as error:
            # CVXPY wraps some errors about the type of an option in another exception.
            wrapped = error.args[0] if error.args else None
            if options.extra and any(isinstance(cause, TypeError | ValueError) for cause in (error, wrapped)):
                problem = f"is refused by {method} ({error})"
                raise InputError("options.extra", problem, value=dict(options.extra)) from error
            if options.deadline.left() == 0:
                return Answer(Status.TIME_LIMIT, None, None, 0, f"time limit: {error}", version), "user_limit"
            return Answer(Status.FAILED, None, None, 0, str(error), version), "solver_error"
    late = options.deadline.left() == 0
    row_dual = None
    if all(constraint.id in solution.dual_vars for _, _, constraint in parts):
        row_dual = np.zeros(program.rows)
        for rows, sign, constraint in parts:
            row_dual[rows] += sign * np.ravel(solution.dual_vars[constraint.id])
    present = x.id in solution.primal_vars
    answer = Answer(
        status=_status(solution.status, raw, late=late),
        x=np.array(np.ravel(solution.primal_vars[x.id]), dtype=np.float64) if present else None,
        row_dual=row_dual if present else None,
        iterations=int(solution.attr.get("num_iters") or 0),
        message=str(solution.status),
        version=version,
    )
    return answer, str(solution.status)


def _status(said: str, raw: Any, *, late: bool) -> Status:
    info = raw.get("info") if isinstance(raw, dict) else None
    if isinstance(info, dict) and info.get("status_val") == _SCS_INTERRUPTED:
        return Status.INTERRUPTED
    if late and said in ("user_limit", "optimal_inaccurate", "solver_error"):
        return Status.TIME_LIMIT
    if said == "user_limit":
        return Status.ITERATION_LIMIT
    return _STATUS.get(said, Status.FAILED)


def _copy(settings: dict[str, object]) -> dict[str, object]:
    """Copy the settings and the dictionaries in them, because CVXPY modifies its arguments."""
    return {name: dict(value) if isinstance(value, dict) else value for name, value in settings.items()}


def _with_time(method: str, settings: dict[str, object], options: Options) -> dict[str, Any]:
    """Return the settings with the remaining time as the time limit."""
    timed: dict[str, Any] = _copy(settings)
    dialect = _DIALECTS.get(method)
    left = options.deadline.left()
    if dialect is not None and left is not None and dialect.time_limit not in options.extra:
        # For some solvers zero means no limit.
        (timed[dialect.wrapper] if dialect.wrapper else timed)[dialect.time_limit] = max(left, _MIN_LIMIT_S)
    return timed


def _package(method: str) -> str:
    return _DIALECTS[method].package if method in _DIALECTS else _PACKAGES.get(method, method.lower())


def _version(cvxpy: Any, method: str) -> str:
    try:
        version = importlib.metadata.version(_package(method))
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    return f"CVXPY {cvxpy.__version__} with {method} {version}"
