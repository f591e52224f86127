"""Add a solver from outside the package: from a problem to a certificate that anyone can verify.

A solver of rows is a function of a `LinearProgram` and `Options` that returns an `Answer`. It need not be trusted:
statuses, objectives and residuals are recomputed, and the channel that comes of its numbers is certified in exact
arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import mechdesign as md
from mechdesign.programs.linear import LinearProgram
from mechdesign.solvers import Answer, Options, Solver, Status, register, registry

# --- the solver ----------------------------------------------------------------------------------------------------


def affine_scaling(program: LinearProgram, options: Options, start: object = None) -> Answer:
    """Solve a program by affine scaling (Dikin 1967), each step a dense least-squares problem.

    Rows get slacks and free columns are split, which gives A z = b, z >= 0. From an interior point every step goes most
    of the way to the boundary, in the direction that is steepest in the metric of the point. Enough for small programs.
    """
    if options.extra:
        raise md.errors.InputError("options.extra", "has options that are not known", value=dict(options.extra))
    A, b, c, sign = _standard(program)
    iterations, z, y = 0, np.ones(A.shape[1]), np.zeros(A.shape[0])
    # A column of its own makes up for what the first point lacks; it costs more than anything it could save.
    A, c, z = np.c_[A, b - A @ z], np.append(c, 1e3 * (1 + np.abs(c).max())), np.append(z, 1.0)
    for iterations in range(1, 1001):
        D = A * z
        y = np.linalg.lstsq(D.T, z * c, rcond=None)[0]
        reduced = c - A.T @ y
        if z @ np.abs(reduced) <= options.relative_gap * (1 + abs(c @ z)) and reduced.min() > -options.feasibility:
            break
        step = z * reduced
        z = z * (1 - 0.9 * step / max(step.max(), 1e-300))
    status = Status.OPTIMAL if z[-1] < 1e-6 else Status.INFEASIBLE
    return Answer(status, sign @ z[: sign.shape[1]], y[: program.rows], iterations, "it stopped", "affine scaling 1.0")


def _standard(program: LinearProgram) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return A, b, c of the standard form, and the matrix that turns its point into that of the program."""
    free = np.isneginf(program.lower)
    assert ((program.lower == 0) | free).all()
    assert np.isposinf(program.upper).all()
    sign = np.eye(program.columns)
    sign = np.c_[sign, -sign[:, free]]
    equal = program.row_lower == program.row_upper
    assert np.isposinf(program.row_upper[~equal]).all()
    slacks = -np.eye(program.rows)[:, ~equal]
    A = np.c_[program.matrix.toarray() @ sign, slacks]
    c = np.concatenate([program.cost @ sign, np.zeros(slacks.shape[1])])
    return A, program.row_lower, c, sign


# --- its registration: one line --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(Solver("affine-scaling", lambda: affine_scaling, package="numpy"))
    yield
    # A package would leave it in; a test cleans up.
    del registry._SOLVERS["affine-scaling"]


# --- what it can be used for -----------------------------------------------------------------------------------------


SPECIFICATION = """
schema = 1

[domain]
grid = { columns = 2, rows = 2, width = 2.0, height = 2.0 }

[prior]
uniform = true

[cost]
distance = "euclidean"

[[privacy]]
kind = "metric"
epsilon = 0.8
distance = "euclidean"

[solver]
name = "affine-scaling"
tolerance = 1e-6
"""
