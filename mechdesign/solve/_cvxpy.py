"""Any solver that CVXPY has installed: an independent way to the same numbers."""

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
from mechdesign.solve._linear import LinearProgram

_STATUS = {
    "optimal": Status.OPTIMAL,
    # Close to optimal is for the measurement to judge.
    "optimal_inaccurate": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
}
_SCS_INTERRUPTED = -5
# Modules whose warnings tell nothing that their results do not tell.
_TALKATIVE = r"(cvxpy|clarabel|ecos|osqp|scs|mechdesign\.solvers\.cvxpy)(\.|$)"

# SCS publishes its settings in prose only.
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
    """How one solver calls what every back end offers, and which option names of its own it has.

    `tolerances` name what bounds violations, `gaps` what bounds the distance of the two objectives. `smallest` is the
    least tolerance that it accepts, `wrapper` the keyword under which it wants all its options. `pivots` names what
    bounds the iterations of a simplex method, which has no bound of its own.
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


# As for HiGHS itself.
_PIVOTS, _PIVOTS_EACH = 100_000, 100

# Packages that are not called after the solver that they bring.
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


def back_end(method: str) -> BackEnd:
    """Return the CVXPY solver called `method`, such as "CLARABEL".

    None of them starts from an earlier answer, and `vertex` has no meaning here. `threads` reaches Clarabel and HiGHS;
    SCS, OSQP and SciPy run in one thread. A solver that this file has no dialect for runs with its own tolerances, and
    neither a time limit, nor threads, nor extra options are accepted for it. Ctrl-C is seen when the solver returns,
    except that SCS looks out for it; then there are no numbers.

    Raises InputError for a solver that CVXPY does not know, MissingDependencyError for one that is not installed.
    """
    # CVXPY warns of the optional packages that it did not find.
    with ignore_warnings(module=_TALKATIVE):
        cvxpy: Any = importlib.import_module("cvxpy")
        installed = cvxpy.installed_solvers()
        known = {*cvxpy.settings.SOLVERS, *installed}
    if method not in known:
        raise InputError("solver", "is not known to CVXPY", value=method, bound=f"one of {', '.join(sorted(known))}")
    if method not in installed:
        raise MissingDependencyError(
            f"CVXPY has no solver {method} installed: pip install {_package(method)}. "
            f"Installed are {', '.join(sorted(installed))}"
        )

    def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
        settings = _settings(method, program, options)
        try:
            answer, said = _solve(cvxpy, program, method, settings, options)
            # "Unbounded" is the discovery of a ray, which a program without any point can have as well; where a solver
            # gives up, it may still tell that there is no point.
            if said in (*_UNSURE, "solver_error") and program.cost.any():
                feasibility = dataclasses.replace(program, cost=np.zeros(program.columns))
                feasible, _ = _solve(cvxpy, feasibility, method, settings, options)
                if said in _UNSURE:
                    status = Status.UNBOUNDED if feasible.status is Status.OPTIMAL else feasible.status
                    answer = dataclasses.replace(answer, status=status)
                elif feasible.status is Status.INFEASIBLE:
                    answer = feasible
        except KeyboardInterrupt:
            return Answer(Status.INTERRUPTED, None, None, 0, "interrupted by the user", _version(cvxpy, method))
        return answer

    return solve


_LEAST_LIMIT_S = 1e-6
# What a program without any point may be called, too.
_UNSURE = ("unbounded", "infeasible_or_unbounded")


def _settings(method: str, program: LinearProgram, options: Options) -> dict[str, object]:
    dialect = _DIALECTS.get(method)
    if dialect is None:
        known = f"available with {', '.join(_DIALECTS)}"
        limit = options.deadline.limit
        if limit is not None:
            raise InputError("options.time_limit", f"cannot be honoured by {method}", value=limit, bound=known)
        if options.threads is not None:
            raise InputError("options.threads", f"cannot be honoured by {method}", value=options.threads, bound=known)
        for name, value in options.extra.items():
            raise InputError(f"options.extra.{name}", f"cannot be checked for {method}", value=value, bound=known)
        return {}
    settings: dict[str, object] = dict.fromkeys(dialect.tolerances, max(options.feasibility, dialect.smallest))
    settings |= dict.fromkeys(dialect.gaps, max(options.relative_gap, dialect.smallest))
    if dialect.pivots:
        settings[dialect.pivots] = _PIVOTS + _PIVOTS_EACH * (program.rows + program.columns)
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
    """Solve once, in the time left; give the answer and CVXPY's own word for the status."""
    equal = np.flatnonzero((program.row_lower == program.row_upper) & np.isfinite(program.row_lower))
    ranged = program.row_lower != program.row_upper
    above = np.flatnonzero(ranged & np.isfinite(program.row_upper))
    below = np.flatnonzero(ranged & np.isfinite(program.row_lower))
    x = cvxpy.Variable(program.columns, bounds=[program.lower, program.upper])
    # CVXPY's multipliers of a minimisation: c + Aᵀν = 0 for A x = b, and not negative for inequalities.
    parts = []
    if equal.size:
        parts.append((equal, -1.0, program.matrix[equal] @ x == program.row_lower[equal]))
    if above.size:
        parts.append((above, -1.0, program.matrix[above] @ x <= program.row_upper[above]))
    if below.size:
        parts.append((below, 1.0, program.matrix[below] @ x >= program.row_lower[below]))
    problem = cvxpy.Problem(cvxpy.Minimize(program.cost @ x), [constraint for _, _, constraint in parts])
    version = _version(cvxpy, method)
    # What CVXPY warns of, the status says.
    with ignore_warnings(module=_TALKATIVE):
        try:
            data, chain, inverse = problem.get_problem_data(method, solver_opts=_copy(settings))
            left = _timed(method, settings, options)
            raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=left)
            solution = chain.invert(raw, inverse)
        except (cvxpy.error.SolverError, TypeError, ValueError) as error:
            # CVXPY wraps some of the complaints about the type of an option.
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
    """Copy one level deep, since CVXPY adds and removes entries of what it is given."""
    return {name: dict(value) if isinstance(value, dict) else value for name, value in settings.items()}


def _timed(method: str, settings: dict[str, object], options: Options) -> dict[str, Any]:
    """Return settings with the time that is left."""
    timed: dict[str, Any] = _copy(settings)
    dialect = _DIALECTS.get(method)
    left = options.deadline.left()
    if dialect is not None and left is not None and dialect.time_limit not in options.extra:
        # Zero means "no limit" to some of them.
        (timed[dialect.wrapper] if dialect.wrapper else timed)[dialect.time_limit] = max(left, _LEAST_LIMIT_S)
    return timed


def _package(method: str) -> str:
    return _DIALECTS[method].package if method in _DIALECTS else _PACKAGES.get(method, method.lower())


def _version(cvxpy: Any, method: str) -> str:
    try:
        version = importlib.metadata.version(_package(method))
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    return f"CVXPY {cvxpy.__version__} with {method} {version}"
