"""Add a solver from outside the package, and take it from a specification to an export that anyone can verify.

A solver of rows is a function of a `LinearProgram` and `Options` that returns an `Answer`, and a line that registers
it. It need not be trusted: statuses, objectives and residuals are recomputed from its numbers, and the channel that
comes of them is certified in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputError, SolverError
from mechdesign.solve import Answer, LinearProgram, Options, Solver, Status, Stop, register
from mechdesign.solve import _registry as registry


# [solver]
def dense_simplex(program: LinearProgram, options: Options, start: object = None) -> Answer:
    """Solve a small program by the primal simplex method, each basis solved afresh.

    Programs have columns that are >= 0 or free, and rows that are equations or lower bounds: A z = b, z >= 0 after free
    columns are split and rows have their slacks. An artificial variable for each row, dearer than all else, makes the
    first basis; a right-hand side that is perturbed a little keeps bases from tying (Charnes 1952).
    """
    if options.extra:
        raise InputError(f"options.extra.{min(options.extra)}", "is not an option of the dense simplex method")
    free, equal = np.isneginf(program.lower), program.row_lower == program.row_upper
    split = np.c_[np.eye(program.columns), -np.eye(program.columns)[:, free]]
    A = np.c_[program.matrix.toarray() @ split, -np.eye(program.rows)[:, ~equal], np.eye(program.rows)]
    dear = np.full(program.rows, 1e3 * (1 + np.abs(program.cost).max()))
    c = np.concatenate([program.cost @ split, np.zeros((~equal).sum()), dear])
    perturbed = program.row_lower + 1e-9 * (1 + np.random.default_rng(0).random(program.rows))
    basis = np.arange(A.shape[1] - program.rows, A.shape[1])
    status, pivots = Status.ITERATION_LIMIT, 0
    for pivots in range(10_000):
        B = A[:, basis]
        y = np.linalg.solve(B.T, c[basis])
        reduced = c - A.T @ y
        entering = int(reduced.argmin())
        if reduced[entering] >= -options.feasibility:
            status = Status.OPTIMAL
            break
        if options.deadline.stop() is Stop.TIME:
            status = Status.TIME_LIMIT
            break
        values, falls = np.linalg.solve(B, np.c_[perturbed, A[:, entering]]).T
        blocking = np.flatnonzero(falls > 1e-9)
        if not blocking.size:
            return Answer(Status.UNBOUNDED, None, None, pivots, "a ray without end", "dense simplex 1.0")
        basis[blocking[(values[blocking] / falls[blocking]).argmin()]] = entering
    z = np.zeros(A.shape[1])
    z[basis] = np.linalg.solve(A[:, basis], program.row_lower)
    if status is Status.OPTIMAL and z[-program.rows :].max() > options.feasibility:
        status = Status.INFEASIBLE
    x = split @ z[: split.shape[1]]
    return Answer(status, x, y, pivots, f"{pivots} pivots", "dense simplex 1.0")


MINE = Solver("dense", lambda: dense_simplex, package="numpy", exact=True)
# [/solver]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    # A package of one's own says this when it is imported; it is all that mechdesign is told.
    register(MINE)
    yield
    del registry._SOLVERS["dense"]


# [specification]
SPECIFICATION = """
title = "Four corners"

[domain]
grid = { columns = 2, rows = 2, width = 2.0, height = 2.0 }

[prior]
probabilities = [0.4, 0.3, 0.2, 0.1]

[cost]
distance = "euclidean"

[[privacy]]
kind = "metric"
epsilon = 0.8
distance = "euclidean"

[[privacy]]
kind = "distortion"
minimum = 0.6
distance = "euclidean"

[solver]
name = "dense"
"""
# [/specification]


def four_corners(objective: str = "expected") -> md.Problem:
    """Return the problem of the specification."""
    d = md.distances.euclidean(md.Domain.grid(2, 2, 2.0, 2.0))
    requirements = [md.MetricPrivacy("0.8", d), md.DistortionPrivacy("0.6", d)]
    return md.Problem([0.4, 0.3, 0.2, 0.1], d, requirements, objective)


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_it_agrees_with_the_others_and_proves_it(objective):
    made = md.design(four_corners(objective), solver="dense")
    other = md.design(four_corners(objective), solver="highs-simplex")
    assert made.status == "optimal"
    assert made.summary.solver_version == "dense simplex 1.0"
    assert made.certificate.holds
    assert made.certificate.lower_bound <= other.certificate.cost
    assert other.certificate.lower_bound <= made.certificate.cost


def test_from_a_specification_to_a_verified_export(tmp_path: Path):
    (tmp_path / "corners.toml").write_text(SPECIFICATION, encoding="utf-8")
    made = tmp_path / "made"
    result = CliRunner().invoke(main, ["design", str(tmp_path / "corners.toml"), "-o", str(made), "--no-report"])
    assert result.exit_code == 0, result.output
    certificate = md.verify(made)
    assert certificate.holds
    assert certificate.provenance["solver"] == "dense"
    assert certificate.relative_gap <= 1e-9


def test_it_shows_among_the_solvers():
    with pytest.raises(InputError, match=r"must be one of .*dense"):
        md.design(four_corners(), solver="sparse")


@pytest.mark.parametrize("rows", ["all", "reduced", "lazy"])
def test_every_choice_of_rows_is_open_to_it(rows):
    assert md.design(four_corners(), solver="dense", rows=rows).status == "optimal"


def test_one_that_lies_exports_nothing_that_is_not_private(monkeypatch):
    """A point that breaks bounds is refused; one that keeps them, with poor multipliers, is certified as it is."""
    honest = md.design(four_corners(), solver="dense").certificate

    def secretive(program: LinearProgram, options: Options, start: object = None) -> Answer:
        answer = dense_simplex(program, options)
        return Answer(Status.OPTIMAL, answer.x, 0 * answer.row_dual, 1, "trust me", "liar 1.0")

    def careless(program: LinearProgram, options: Options, start: object = None) -> Answer:
        answer = dense_simplex(program, options)
        return Answer(Status.OPTIMAL, np.eye(4, program.columns // 4).ravel(), answer.row_dual, 1, "trust me", "liar")

    monkeypatch.setitem(registry._SOLVERS, "secretive", Solver("secretive", lambda: secretive, "numpy"))
    monkeypatch.setitem(registry._SOLVERS, "careless", Solver("careless", lambda: careless, "numpy"))
    design = md.design(four_corners(), solver="secretive")
    assert design.certificate.holds
    assert design.certificate.cost == pytest.approx(honest.cost, rel=1e-9)
    assert design.certificate.lower_bound < honest.lower_bound
    assert design.status == Status.STALLED
    assert "multipliers" in design.summary.message
    with pytest.raises(SolverError):
        md.design(four_corners(), solver="careless")


def test_its_time_limit_is_that_of_the_design():
    made = md.design(four_corners(), solver="dense", time_limit=1e-6)
    assert made.certificate.holds
    assert made.status == Status.TIME_LIMIT
