"""Solvers of the benchmark, and OR-Tools' PDLP as an additional back end."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._process import ignore_warnings
from mechdesign.solve._contract import Answer, BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import Solver, find, register

NAME = "ortools-pdlp"
"""Name of the back end in `mechdesign.solve._solve`, registered by the import of this module."""


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


_ORTOOLS = ("ortools.linear_solver.pywraplp", "ortools.pdlp.python.pdlp")

TOLERANCE = 1e-7
"""Feasibility tolerance and relative gap of every solver with such options; the defaults of HiGHS and SciPy."""


@dataclass(frozen=True)
class Contestant:
    """A solver with settings that takes part in a benchmark.

    Attributes:
        solver: Name of the solver in tables and on the command line.
        settings: Settings that distinguish contestants of the same solver.
        back_end: Name of its back end in `mechdesign.solve._solve`, or "auto" for `mechdesign.design`.
        route: "design" (`mechdesign.design`), "blocks" (the raw block program), or "rows" (the raw linear program).
        extra: Options under the solver's names.
        vertex: Whether an interior-point method ends with a crossover to a vertex.
        limits: Whether the back end accepts tolerances and threads.
        package: Package that must be importable.
        first: Modules to load before any other solver, since two loaded copies of HiGHS may mix their symbols.
        ours: Whether the solver belongs to this package.

    Example:
        >>> Contestant("highs-ipx", "no crossover", "highs-ipx", vertex=False).name
        'highs-ipx (no crossover)'
    """

    solver: str
    settings: str
    back_end: str
    route: Literal["design", "blocks", "rows"] = "rows"
    extra: Mapping[str, object] = field(default_factory=dict)
    vertex: bool = True
    limits: bool = True
    package: str = ""
    first: tuple[str, ...] = ()
    ours: bool = False

    @property
    def name(self) -> str:
        """The solver and its settings."""
        return f"{self.solver} ({self.settings})" if self.settings else self.solver

    @property
    def installed(self) -> bool:
        """Whether the contestant can run on this machine."""
        if self.package and importlib.util.find_spec(self.package) is None:
            return False
        if self.solver == "highs-hipo":
            return _highs_takes("hipo")
        if self.back_end.startswith("cvxpy-"):
            return self.back_end.removeprefix("cvxpy-").upper() in _cvxpy_solvers()
        try:
            return self.back_end == "auto" or find(self.back_end).installed
        except MissingDependencyError:
            return False

    def options(self, threads: int) -> Options:
        """Return the options of the contestant's back end.

        Args:
            threads: Number of threads.

        Returns:
            The options; the defaults if the back end accepts no tolerances.
        """
        if not self.limits:
            return Options()
        return Options(feasibility=TOLERANCE, gap=TOLERANCE, threads=threads, vertex=self.vertex, extra=self.extra)

    def description(self) -> dict[str, object]:
        """Return the settings that results depend on, for the identity of a row."""
        return {
            "solver": self.solver,
            "settings": self.settings,
            "back_end": self.back_end,
            "extra": dict(self.extra),
            "vertex": self.vertex,
            "tolerance": TOLERANCE if self.limits else None,
        }


def _cvxpy(
    solver: str, method: str, package: str = "", limits: bool = False, first: tuple[str, ...] = ()
) -> Contestant:
    return Contestant(solver, "by CVXPY", f"cvxpy-{method}", limits=limits, package=package or solver, first=first)


CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("auto", "", "auto", route="design", ours=True),
    Contestant("block", "NumPy", "block", route="blocks", extra={"arrays": "numpy"}, ours=True),
    Contestant("block", "Numba", "block", route="blocks", extra={"arrays": "numba"}, package="numba", ours=True),
    Contestant("highs-simplex", "", "highs-simplex"),
    Contestant("highs-ipx", "crossover", "highs-ipx"),
    Contestant("highs-ipx", "no crossover", "highs-ipx", vertex=False),
    Contestant("highs-hipo", "", "highs", extra={"solver": "hipo"}),
    Contestant("highs-pdlp", "", "highs-pdlp"),
    Contestant("scipy", "", "scipy"),
    _cvxpy("clarabel", "clarabel", limits=True),
    _cvxpy("scs", "scs", limits=True),
    _cvxpy("glop", "glop", "ortools", first=_ORTOOLS),
    Contestant("pdlp", "OR-Tools", NAME, package="ortools", first=_ORTOOLS),
    _cvxpy("scip", "scip", "pyscipopt"),
    _cvxpy("glpk", "glpk", "cvxopt"),
    _cvxpy("clp", "cbc", "cylp"),
    _cvxpy("gurobi", "gurobi", "gurobipy"),
    _cvxpy("mosek", "mosek", "mosek"),
    _cvxpy("xpress", "xpress", "xpress"),
    _cvxpy("copt", "copt", "coptpy"),
    _cvxpy("cplex", "cplex", "cplex"),
)
"""Every contestant, whether it is installed or not."""


def names() -> tuple[str, ...]:
    """Return the names of all solvers, in order."""
    return tuple(dict.fromkeys(contestant.solver for contestant in CONTESTANTS))


def select_contestants(solvers: Sequence[str] | None) -> tuple[Contestant, ...]:
    """Return the contestants of the named solvers, in order; without names, all installed contestants.

    Raises `InputError` if a name is unknown or the list is empty. Raises `MissingDependencyError` if a named solver is
    not installed.
    """
    if solvers is None:
        return tuple(contestant for contestant in CONTESTANTS if contestant.installed)
    if isinstance(solvers, str) or not solvers:
        raise InputError("solvers", "must be a list of names", value=solvers, bound=f"of {', '.join(names())}")
    for index, name in enumerate(solvers):
        require_name(name, names(), f"solvers[{index}]")
        if not any(each.installed for each in CONTESTANTS if each.solver == name):
            package = next(each.package for each in CONTESTANTS if each.solver == name) or "another build of HiGHS"
            raise MissingDependencyError(f"solvers[{index}]: {name} is not installed; it needs {package}")
    return tuple(each for each in CONTESTANTS if each.solver in solvers and each.installed)


@functools.cache
def _cvxpy_solvers() -> frozenset[str]:
    with ignore_warnings(module="cvxpy"):
        import cvxpy
    found: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
    return frozenset(found)


@functools.cache
def _highs_takes(method: str) -> bool:
    """Return whether the installed HiGHS has a method."""
    import highspy

    new: Any = highspy.Highs
    highs = new()
    highs.setOptionValue("output_flag", False)
    return bool(highs.setOptionValue("solver", method) == highspy.HighsStatus.kOk)
