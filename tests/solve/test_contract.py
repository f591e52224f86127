"""One contract for all back ends: named programs with known answers, garbage, options, and brute force."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_cases import ALL, ANY2, FEASIBLE, HIGHS, HONEST, HOPELESS, INF, NONE2, metric_program, program, with_a_row
from refusals import Mistake, assert_refused

from mechdesign.base._deadline import Deadline, Progress
from mechdesign.errors import InputError, MissingDependencyError
from mechdesign.solve import _registry as registry
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import Answer, Options, Solution, Status, measure
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

pytestmark = pytest.mark.usefixtures("loaded")


# The methods of a wrapper with the programs they solve. The last two of CVXPY are HiGHS again.
WRAPPERS = [
    pytest.param(solvers, programs, id=solvers[0])
    for solvers, programs in (
        (HIGHS, FEASIBLE),
        (("scipy",), FEASIBLE),
        (("cvxpy",), FEASIBLE),
        (("cvxpy-scs",), FEASIBLE),
        (("cvxpy-osqp",), FEASIBLE),
        *([(("cvxpy-piqp",), FEASIBLE)] if importlib.util.find_spec("piqp") else []),
        (("cvxpy-highs", "cvxpy-scipy"), ["upper rows", "two-sided row held above", "free column", "no rows"]),
    )
]


@pytest.mark.usefixtures("pdlp_here")
@pytest.mark.parametrize(("names", "programs"), WRAPPERS)
def test_known_optimum(names: tuple[str, ...], programs: Iterable[str]) -> None:
    for solver, name in itertools.product(names, programs):
        known, where = FEASIBLE[name], f"{solver}: {name}"
        solution = solve(known.program, solver)
        assert solution.status is Status.OPTIMAL, (where, solution.message)
        scale = 1 + abs(known.value)
        assert float(known.program.cost @ solution.x) == pytest.approx(known.value, abs=1e-7 * scale), where
        assert solution.residuals.objective == float(known.program.cost @ solution.x), where
        assert solution.residuals.bound == pytest.approx(known.value, abs=1e-7 * scale), where
        assert solution.residuals.primal <= 1e-7, where
        assert solution.residuals.dual <= 1e-7, where
        if known.x is not None:
            np.testing.assert_allclose(solution.x, known.x, atol=1e-6, err_msg=where)
        if known.dual is not None:
            np.testing.assert_allclose(solution.row_dual, known.dual, atol=1e-6, err_msg=where)
        assert_complementary(known.program, solution, where)
        assert solution.seconds >= 0, where
        assert solution.iterations >= 0, where
        assert solution.version, where
        assert solution.message, where


def assert_complementary(lp: LinearProgram, solution: Solution, where: str) -> None:
    """A positive multiplier sits at a lower bound, a negative one at an upper bound, of rows and of columns."""
    sides = (
        (solution.row_dual, lp.matrix @ solution.x, lp.row_lower, lp.row_upper),
        (lp.cost - lp.matrix.T @ solution.row_dual, solution.x, lp.lower, lp.upper),
    )
    for multiplier, value, low, high in sides:
        for held, bound in ((multiplier > 1e-5, low), (multiplier < -1e-5, high)):
            np.testing.assert_allclose(value[held], bound[held], atol=1e-5, err_msg=where)


@pytest.mark.usefixtures("pdlp_here")
@pytest.mark.parametrize("names", [HIGHS, ("scipy",), *[(name,) for name in ALL[5:8]]])
def test_known_failure(names: tuple[str, ...]) -> None:
    found = {(solver, name): solve(lp, solver).status for solver in names for name, (_, lp) in HOPELESS.items()}
    assert found == {(solver, name): status for solver in names for name, (status, _) in HOPELESS.items()}


@pytest.mark.parametrize("solver", ["cvxpy-highs", "cvxpy-scipy"])
def test_failures_of_the_other_solvers_of_cvxpy(solver: str) -> None:
    for name in ("infeasible rows", "infeasible bounds", "unbounded"):
        status, lp = HOPELESS[name]
        assert solve(lp, solver).status is status, name


INTEGERS = st.integers(-4, 4)


@st.composite
def random_programs(draw: st.DrawFn) -> LinearProgram:
    """Draw a program in a box, so that it has an optimal vertex or no point at all."""
    columns, rows = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    matrix = [[draw(INTEGERS) for _ in range(columns)] for _ in range(rows)]
    row_lower, row_upper = [], []
    for _ in range(rows):
        low, width = draw(INTEGERS), draw(st.integers(0, 4))
        kind = draw(st.sampled_from("LGER"))
        row_lower.append(-INF if kind == "L" else low)
        row_upper.append(INF if kind == "G" else low if kind == "E" else low + width)
    lower = [draw(INTEGERS) for _ in range(columns)]
    upper = [low + draw(st.integers(0, 5)) for low in lower]
    return program([draw(INTEGERS) for _ in range(columns)], matrix, row_lower, row_upper, lower, upper)


def best_vertex(lp: LinearProgram) -> float | None:
    """Find the optimum by trying every choice of as many active bounds as there are columns."""
    stack = np.vstack([lp.matrix.toarray(), np.eye(lp.columns)])
    low, high = np.concatenate([lp.row_lower, lp.lower]), np.concatenate([lp.row_upper, lp.upper])
    planes = [(row, bound) for row, *bounds in zip(stack, low, high, strict=True) for bound in bounds]
    best = None
    for chosen in itertools.combinations([plane for plane in planes if np.isfinite(plane[1])], lp.columns):
        matrix = np.array([row for row, _ in chosen])
        if abs(np.linalg.det(matrix)) < 1e-9:
            continue
        x = np.linalg.solve(matrix, np.array([bound for _, bound in chosen]))
        if (stack @ x >= low - 1e-9).all() and (stack @ x <= high + 1e-9).all():
            value = float(lp.cost @ x)
            best = value if best is None else min(best, value)
    return best


@settings(max_examples=12)
@given(lp=random_programs())
def test_random_programs_agree_with_brute_force(lp: LinearProgram) -> None:
    best = best_vertex(lp)
    for solver in ("highs", "highs-simplex", "highs-ipx", "scipy", "cvxpy"):
        solution = solve(lp, solver)
        if best is None:
            assert solution.status is Status.INFEASIBLE, solver
        else:
            assert solution.status is Status.OPTIMAL, (solver, solution.message)
            accuracy = 1e-6 if solver == "cvxpy" else 1e-7
            assert solution.residuals.objective == pytest.approx(best, abs=accuracy), solver
            assert solution.residuals.bound == pytest.approx(best, abs=accuracy), solver


def answer(x: object, row_dual: object, status: Status = Status.OPTIMAL) -> Answer:
    return Answer(status, x, row_dual, 1, "all is well", "fake 1.0")  # type: ignore[arg-type]


GARBAGE = {
    "nan": ([np.nan, 6], HONEST.dual),
    "nan dual": (HONEST.x, [0, np.nan, -1]),
    "infinite": ([INF, 6], HONEST.dual),
    "no point": (None, HONEST.dual),
    "no dual": (HONEST.x, None),
    "too long": ([2, 6, 0], HONEST.dual),
    "column vector": ([[2], [6]], HONEST.dual),
    "dual too short": (HONEST.x, [-1.5, -1]),
    "shuffled": ([6, 2], HONEST.dual),
    "outside a row": ([4, 6], HONEST.dual),
    "outside a bound": ([-1, 6], HONEST.dual),
    "feasible but poor": ([0, 0], HONEST.dual),
    "dual of the wrong sign": (HONEST.x, [0, 1.5, 1]),
    "dual shuffled": (HONEST.x, [-1.5, 0, -1]),
    "no reason": (HONEST.x, [0, 0, 0]),
    "dual scaled": (HONEST.x, [0, -15, -10]),
}


def test_garbage_called_optimal_is_failure() -> None:
    for name, pair in GARBAGE.items():
        parts = [None if part is None else np.array(part, dtype=float) for part in pair]
        solution = measure(HONEST.program, answer(*parts), solver="fake", seconds=1.0)
        assert solution.status is Status.FAILED, name
        assert (solution.x.shape, solution.row_dual.shape) == ((2,), (3,)), name
    # The words of the solver survive a demotion.
    assert "reported optimal" in solution.message
    assert "all is well" in solution.message


def proves_itself(lp: LinearProgram, x: tuple[int, ...], row_dual: tuple[int, ...]) -> bool:
    """Return whether x meets all bounds and each multiplier sits at its bound, in exact integers."""
    matrix = [[int(value) for value in row] for row in lp.matrix.toarray()]
    activity = [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix]
    columns = [sum(row[j] * y for row, y in zip(matrix, row_dual, strict=True)) for j in range(lp.columns)]
    reduced = [int(cost) - used for cost, used in zip(lp.cost, columns, strict=True)]
    sides = ((row_dual, activity, lp.row_lower, lp.row_upper), (reduced, x, lp.lower, lp.upper))
    return all(
        low <= value <= high and (multiplier <= 0 or value == low) and (multiplier >= 0 or value == high)
        for side in sides
        for multiplier, value, low, high in zip(*side, strict=True)
    )


def test_of_all_small_pairs_those_are_optimal_that_prove_themselves() -> None:
    """Brute force: where a bound is infinite, a multiplier of the wrong sign changes neither objective nor gap."""
    programs = {
        "lower rows": program([1, 3], [[-1, 1], [1, 1]], [-2, 4], ANY2, NONE2, ANY2),
        "both sides": program([1, -1], [[1, 1], [1, -1]], [1, -INF], [INF, 2], [0, -INF], [INF, 3]),
        "free columns": program([0, 1], [[1, 1], [1, 0]], [2, -INF], [INF, 1], [-INF] * 2, ANY2),
    }
    proved = dict.fromkeys(programs, 0)
    for name, lp in programs.items():
        pairs = itertools.product(range(4), range(4), range(-2, 3), range(-2, 3))
        for x, row_dual in ((pair[:2], pair[2:]) for pair in pairs):
            optimal = proves_itself(lp, x, row_dual)
            proved[name] += optimal
            for said in (Status.OPTIMAL, Status.STALLED):
                pair = answer(np.array(x, dtype=float), np.array(row_dual, dtype=float), said)
                found = measure(lp, pair, solver="fake", seconds=0.0).status
                assert (found is Status.OPTIMAL) is optimal, (name, x, row_dual, said)
    assert all(proved.values()), proved


def test_missing_numbers_are_infinite() -> None:
    solution = measure(HONEST.program, answer(None, None, Status.TIME_LIMIT), solver="fake", seconds=1.0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.residuals.primal == solution.residuals.dual == solution.residuals.gap == INF
    assert solution.residuals.bound == -INF


def test_rounding_at_a_zero_optimum_is_no_gap() -> None:
    lp = FEASIBLE["zero optimum"].program
    assert measure(lp, answer(np.array([1e-12, 0]), np.zeros(1)), solver="fake", seconds=1.0).status is Status.OPTIMAL
    assert measure(lp, answer(np.array([1e-3, 0]), np.zeros(1)), solver="fake", seconds=1.0).status is Status.FAILED


def test_a_lying_back_end_is_seen_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(program: LinearProgram, options: Options, start: object = None) -> Answer:
        return answer(np.zeros(program.columns), np.zeros(program.rows))

    monkeypatch.setitem(registry._SOLVERS, "fake", registry.Solver("fake", lambda: lie, "numpy"))
    assert solve(HONEST.program, "fake").status is Status.FAILED


def test_every_solver_can_be_found() -> None:
    for solver in registry.available():
        if solver.installed:
            assert registry.find(solver.name) is solver
        else:  # an optional package's
            with pytest.raises(MissingDependencyError, match=f"pip install {solver.package}"):
                registry.find(solver.name)


def test_what_the_package_requires_brings_its_solvers() -> None:
    assert {"block", "highs", "highs-ipx", "scipy", "cvxpy"} <= {s.name for s in registry.available() if s.installed}


def asked(solver: str, **options: object) -> Callable[[], object]:
    return lambda: solve(HONEST.program, solver, Options(**options))


@pytest.mark.usefixtures("pdlp_here")
def test_refusals() -> None:
    wrong = [
        ("highs", "presolve", object()),
        ("highs", "solver", "magic"),
        ("highs", "threads", -3),
        ("highs-pdlp", "primal_feasibility_tolerance", -1.0),
        ("scipy", "presolve", "perhaps"),
        ("scipy", "maxiter", "many"),
        ("scipy", "simplex_dual_edge_weight_strategy", "coin"),
        ("cvxpy", "max_iter", "many"),
        ("cvxpy-osqp", "max_iter", "many"),
        *[(solver, "no_such_option", 1) for solver in ALL],
    ]
    extras = [(f"{solver}: {name}", asked(solver, extra={name: value})) for solver, name, value in wrong]
    limits = [("time_limit", "", -3.0), ("time_limit", "", math.nan), ("threads", "options.", -1)]
    unknown = ("", "simplex", "cvxpy-", "HIGHS", "auto")
    taken = ("auto", "highs", "block", "cvxpy-mine", "", "Mine", "my own")
    register = [partial(registry.register, registry.Solver(name, lambda: None, "numpy")) for name in taken]
    rows = [
        *[(name, make, "options.extra", "") for name, make in extras],
        *[(f"{name}={value}", asked("highs", **{name: value}), at + name, "") for name, at, value in limits],
        *[(f"find {name}", partial(registry.find, name), "solver", "is not known") for name in unknown],
        *[(f"register {name}", make, "name", "") for name, make in zip(taken, register, strict=True)],
        ("rows for blocks", asked("block"), "solver", "does not take linear programs"),
        ("blocks for rows", partial(solvers.block_back_end, "highs"), "solver", "does not take block programs"),
        ("unknown to CVXPY", asked("cvxpy-banana"), "solver", "CLARABEL"),
    ]
    assert_refused(Mistake(*row, InputError) for row in rows)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not any(solver.installed for solver in registry.available())
    with pytest.raises(MissingDependencyError, match="pip install highspy"):
        solve(HONEST.program, "highs")
    with pytest.raises(MissingDependencyError, match="pip install cvxpy"):
        solve(HONEST.program, "cvxpy-scs")


@pytest.mark.parametrize("platform", ["emscripten", "wasi"])
def test_no_thread_and_no_process_is_started_in_webassembly(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("nothing may be started")

    lp, names = metric_program(6), ("scipy", "highs", "highs-ipx")
    expected = {solver: solve(lp, solver).residuals.objective for solver in names}
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for solver in names:
        monkeypatch.setitem(registry._SOLVERS, solver, replace(registry.find(solver), apart=0, deaf=True))
        found = solve(lp, solver, Options(deadline=Deadline(60.0)))
        assert found.status is Status.OPTIMAL, solver
        assert found.residuals.objective == pytest.approx(expected[solver], rel=1e-7), solver


def test_the_first_installed_solver_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.choose_installed("highs", "scipy") == "highs"
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "highspy" else found(name))
    assert registry.choose_installed("highs", "scipy") == "scipy"
    assert registry.choose_installed("highs", "highs-ipx") == "highs"


def test_solver_not_installed_in_cvxpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpy.installed_solvers", lambda: ["SCIPY", "OSQP"])
    with pytest.raises(MissingDependencyError, match=r"pip install clarabel\. Installed are OSQP, SCIPY"):
        solve(HONEST.program, "cvxpy")
    with pytest.raises(MissingDependencyError, match="pip install gurobipy"):
        solve(HONEST.program, "cvxpy-GUROBI")


@pytest.mark.usefixtures("pdlp_here")
def test_extra_options_reach_the_solver() -> None:
    for solver, extra in (
        ("highs", {"presolve": "off", "simplex_iteration_limit": 1}),
        ("highs-ipx", {"presolve": "off", "ipm_iteration_limit": 1}),
        ("highs-pdlp", {"presolve": "off", "pdlp_iteration_limit": 1}),
        ("scipy", {"presolve": False, "maxiter": 1}),
        ("cvxpy", {"max_iter": 1}),
        ("cvxpy-osqp", {"max_iter": 1}),
        ("cvxpy-highs", {"presolve": "off", "simplex_iteration_limit": 1}),
    ):
        assert solve(HONEST.program, solver, Options(extra=extra)).status is Status.ITERATION_LIMIT, solver


def test_inaccurate_is_measured_and_its_message_kept() -> None:
    solution = solve(HONEST.program, "cvxpy-scs", Options(extra={"max_iters": 1}))
    assert solution.status is Status.FAILED
    assert "optimal_inaccurate" in solution.message


def test_a_solver_without_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(importlib.import_module("mechdesign.solve._cvxpy")._DIALECTS, "CLARABEL")
    assert solve(HONEST.program, "cvxpy").status is Status.OPTIMAL
    for options in (Options(time_limit=1.0), Options(threads=1), Options(extra={"max_iter": 5})):
        with pytest.raises(InputError, match="CLARABEL"):
            solve(HONEST.program, "cvxpy", options)


def test_piqp_and_qoco_are_asked_for_the_same_accuracy_and_take_no_limit() -> None:
    cvxpy = importlib.import_module("mechdesign.solve._cvxpy")
    options = Options(1e-7, 1e-6, threads=2)
    piqp = {
        "eps_abs": 1e-7,
        "eps_rel": 1e-7,
        "eps_duality_gap_abs": 1e-6,
        "eps_duality_gap_rel": 1e-6,
        "num_threads": 2,
    }
    assert cvxpy._settings("PIQP", HONEST.program, options) == piqp
    assert cvxpy._settings("QOCO", HONEST.program, options) == {"abstol": 1e-7, "reltol": 1e-7}
    for name in ("PIQP", "QOCO"):
        with pytest.raises(InputError, match=r"available with .*SCS"):
            cvxpy._settings(name, HONEST.program, Options(time_limit=1.0).begun())


def test_versions_name_who_solved() -> None:
    assert solve(HONEST.program, "cvxpy-scs").version.startswith("CVXPY ")
    assert " with SCS 3" in solve(HONEST.program, "cvxpy-scs").version
    assert solve(HONEST.program, "highs-ipx").version.endswith("(ipx)")
    assert solve(HONEST.program, "scipy").version.startswith("SciPy ")


def test_data_that_highs_cannot_take() -> None:
    # No units bring both numbers of the column below the largest coefficient that HiGHS takes.
    solution = solve(program([1, 1], [[1e200, 1], [1, 1], [1, 1e200]], [1] * 3, [INF] * 3, [0, 0], [INF, INF]), "highs")
    assert solution.status is Status.FAILED
    assert "refuses" in solution.message
    assert solve(program([1], [[1e200]], [1], [INF], [0], [INF]), "highs").status is Status.OPTIMAL


def test_where_the_dual_simplex_method_gives_up() -> None:
    # Two secrets at e^0.5, the second of which never occurs, with costs scaled as if the optimum were not 0. HiGHS
    # itself ends with "Dual simplex ratio test failed due to excessive dual values".
    small, large = math.exp(-0.25), math.exp(0.25)
    privacy = np.vstack((np.kron([-small, large], np.eye(3)), np.kron([large, -small], np.eye(3))))
    rows = np.vstack((np.kron(np.eye(2), np.ones(3)), privacy))
    costs = [float.fromhex("0x1.6d944fbd98d6dp+27"), 0, 2e8, 0, 0, 0]
    bounds = ([1, 1] + [0] * 6, [1, 1] + [INF] * 6)
    for solver in ("highs", "highs-simplex"):
        found = solve(program(costs, rows, *bounds, [0] * 6, [INF] * 6), solver)
        assert found.status is Status.OPTIMAL, solver
        assert found.residuals.objective == pytest.approx(0, abs=1e-3), solver


def test_small_coefficients_are_not_dropped() -> None:
    assert solve(program([1], [[1e-11]], [1], [INF], [0], [INF]), "highs").residuals.objective == pytest.approx(1e11)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["highs-simplex", "highs-ipx", "highs-pdlp", "scipy", "cvxpy-scipy"])
def test_time_limit(solver: str) -> None:
    solution = solve(metric_program(36), solver, Options(time_limit=0.3))
    assert solution.status is Status.TIME_LIMIT
    # Some start a process first, which takes its time where others are at work.
    assert solution.seconds < 60


@pytest.mark.usefixtures("pdlp_here")
@pytest.mark.parametrize("solver", ["highs-pdlp", "cvxpy", "cvxpy-scs"])
def test_tolerance_takes_effect(solver: str) -> None:
    lp = metric_program(8)
    loose, tight = (solve(lp, solver, Options(feasibility=level, vertex=False)) for level in (1e-4, 1e-9))
    assert loose.iterations < tight.iterations
    assert max(tight.residuals.primal, tight.residuals.dual) < 1e-6


def test_tolerance_of_the_simplex_method() -> None:
    # A row violated by 1e-5 is feasible to a tolerance of 1e-4, and to no smaller one.
    lp = program([1, 1], [[1, 1], [1, 1]], [1, -INF], [INF, 1 - 1e-5], NONE2, ANY2)
    for solver in ("highs-simplex", "cvxpy-highs"):
        extra = {"presolve": "off"}
        assert solve(lp, solver, Options(feasibility=1e-4, extra=extra)).status is Status.OPTIMAL
        assert solve(lp, solver, Options(feasibility=1e-7, extra=extra)).status is Status.INFEASIBLE


def test_vertex() -> None:
    lp = program([1] * 5, [[1] * 5], [1], [INF], [0] * 5, [INF] * 5)
    inside, corner = (
        solve(lp, "highs-ipx", Options(vertex=vertex, extra={"presolve": "off"})).x for vertex in (False, True)
    )
    assert np.count_nonzero(inside > 1e-3) == 5
    assert np.count_nonzero(corner) == 1


def test_the_number_of_threads_may_change_within_a_process(tmp_path: Path) -> None:
    lp = metric_program(6)
    for threads in (2, 1):
        log = tmp_path / f"{threads}.log"
        extra = {"parallel": "on", "simplex_strategy": 3, "presolve": "off", "log_to_console": False}
        options = Options(threads=threads, extra={**extra, "log_file": str(log), "output_flag": True})
        assert solve(lp, "highs-simplex", options).status is Status.OPTIMAL
        words = log.read_text()
        assert f"threads available = {threads} " in words


def test_solving_in_two_threads_at_once() -> None:
    lp = metric_program(16)
    found: list[Status] = []
    threads = [threading.Thread(target=lambda: found.append(solve(lp, "highs-simplex").status)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Status.OPTIMAL] * 3


def test_start_from_an_earlier_basis() -> None:
    lp = metric_program(8)
    cold = solve(lp, "highs-simplex")
    assert cold.iterations > 10
    assert solve(lp, "highs-simplex", start=cold.start).iterations == 0
    assert solve(with_a_row(lp), "highs-simplex", start=cold.start).iterations == 0


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "stage"), [("highs-simplex", "simplex"), ("highs-ipx", "interior point")])
def test_progress(solver: str, stage: str) -> None:
    seen: list[Progress] = []

    def report(moment: Progress) -> None:
        # Where others are at work, a moment of the presolve may come first.
        if stage in moment.stage and moment.iteration > 0:
            seen.append(moment)
        if len(seen) == 2:
            raise StopIteration

    with contextlib.suppress(StopIteration):
        solve(metric_program(36), solver, Options(time_limit=60, progress=report))
    assert seen
    assert seen[0].iteration <= seen[-1].iteration
    assert 0 < seen[0].seconds <= seen[-1].seconds


def test_an_error_in_a_report_stops_the_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_INTERVAL_S", "_POLL_INTERVAL_S"):
        monkeypatch.setattr(f"mechdesign.solve._apart.{name}", 1e-3)

    def report(moment: Progress) -> None:
        raise LookupError(moment.stage)

    before = set(threading.enumerate())
    with pytest.raises(LookupError):
        solve(metric_program(20), "highs-simplex", Options(progress=report, extra={"presolve": "off"}))
    assert set(threading.enumerate()) <= before


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from linear_cases import metric_program
from mechdesign.solve._contract import Options
from mechdesign.solve._solve import solve
lp = metric_program(40)
# What is imported late is there before the signal comes.
solve(metric_program(2), {solver!r})
print("ready", flush=True)
solution = solve(lp, {solver!r}, Options(time_limit=60))
print(solution.status.name, solution.seconds < 20, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("solver", ["highs-simplex", "highs-ipx", "highs-pdlp"])
def test_interrupt(solver: str) -> None:
    script = SCRIPT.format(folder=str(Path(__file__).parent), solver=solver)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
            # To the whole group, as a terminal does.
            os.killpg(process.pid, signal.SIGINT)
            words = process.stdout.read()
            assert words == "INTERRUPTED True\n"
            assert process.wait(10) == 0
        finally:
            process.kill()


def interrupt(*arguments: object, **keywords: object) -> object:
    raise KeyboardInterrupt


def test_interrupt_in_linprog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy.optimize, "linprog", interrupt)
    solution = solve(HONEST.program, "scipy")
    assert solution.status is Status.INTERRUPTED
    assert np.isnan(solution.x).all()


def test_interrupt_in_cvxpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpy.Problem.get_problem_data", interrupt)
    assert solve(HONEST.program, "cvxpy").status is Status.INTERRUPTED


def test_one_value_of_options_gives_every_solve_its_time() -> None:
    options = replace(Options(time_limit=0.2), gap=1e-6)
    time.sleep(0.25)
    assert solve(HONEST.program, "highs", options).status is Status.OPTIMAL
    late = Options(deadline=Deadline(0.0)).begun()
    assert late.begun().time_limit == late.time_limit == 0.0
    assert Options(time_limit=5.0, progress=print).begun().progress is print


def test_options_are_values() -> None:
    options = Options(time_limit=5.0, progress=print)
    assert options == Options(time_limit=5.0, progress=print) == copy.deepcopy(options)
    assert replace(options, time_limit=60.0).time_limit == 60.0
    assert replace(options, progress=None).progress is None
    assert pickle.loads(pickle.dumps(Options(time_limit=5.0))) == Options(time_limit=5.0)


def test_ctrl_c_while_a_compiled_package_is_imported_stays_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extension modules raise ImportError from KeyboardInterrupt."""

    def interrupt(name: str) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    def fail(name: str) -> None:
        raise ImportError("no such library") from OSError()

    monkeypatch.setattr(importlib, "import_module", interrupt)
    with pytest.raises(KeyboardInterrupt):
        registry.find("highs-simplex").load()
    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(ImportError, match="no such library"):
        registry.find("highs-simplex").load()
