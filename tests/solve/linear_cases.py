"""Linear programs with known answers, and larger ones; other processes import them too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from mechdesign.solve._contract import Status
from mechdesign.solve._linear import LinearProgram

INF = math.inf
HIGHS = ("highs", "highs-simplex", "highs-ipx", "highs-pdlp")
ALL = (*HIGHS, "scipy", "cvxpy", "cvxpy-scs", "cvxpy-osqp", "cvxpy-highs", "cvxpy-scipy")


def program(cost, rows, row_lower, row_upper, lower, upper) -> LinearProgram:
    matrix = np.array(rows, dtype=float).reshape(len(row_lower), len(cost))
    return LinearProgram(np.array(cost, dtype=float), sparse.csr_array(matrix), row_lower, row_upper, lower, upper)


@dataclass(frozen=True)
class Known:
    """A program and its optimum; `x` and `dual` are None where they are not unique."""

    program: LinearProgram
    value: float
    x: tuple[float, ...] | None = None
    dual: tuple[float, ...] | None = None


NONE2, ANY2 = [0, 0], [INF, INF]
FEASIBLE = {
    "upper rows": Known(
        program([-3, -5], [[1, 0], [0, 2], [3, 2]], [-INF] * 3, [4, 12, 18], NONE2, ANY2), -36, (2, 6), (0, -1.5, -1)
    ),
    "lower rows": Known(program([3, 5], [[-1, 1], [1, 1]], [-2, 6], ANY2, NONE2, ANY2), 22, (4, 2), (1, 4)),
    "two-sided row held below": Known(program([1], [[1]], [2], [5], [0], [INF]), 2, (2,), (1,)),
    "two-sided row held above": Known(program([-1], [[1]], [2], [5], [0], [INF]), -5, (5,), (-1,)),
    "two-sided rows": Known(
        program([-1, -2], [[1, 1], [1, -1]], [1, -5], [9, 5], NONE2, ANY2), -16, (2, 7), (-1.5, 0.5)
    ),
    "equality rows": Known(program([3, 1], [[1, 1], [1, -1]], [3, 1], [3, 1], NONE2, ANY2), 7, (2, 1), (2, 1)),
    "negative equality dual": Known(program([1, -1], [[1, 1]], [4], [4], NONE2, ANY2), -4, (0, 4), (-1,)),
    "free column": Known(program([1], [[1]], [-3], [INF], [-INF], [INF]), -3, (-3,), (1,)),
    "fixed column": Known(program([1.5, 2], [[1, 1]], [3], [INF], [2, 0], [2, INF]), 5, (2, 1), (2,)),
    "upper-bounded columns": Known(program([-1, -1], [[1, 1]], [-INF], [100], NONE2, [3, 2]), -5, (3, 2), (0,)),
    "column with an upper bound only": Known(program([-1], [[1]], [-INF], [0], [-INF], [-7]), 7, (-7,), (0,)),
    "negative bounds": Known(program([1, 1], [[1, 1]], [-100], [INF], [-5, -3], [-1, -2]), -8, (-5, -3), (0,)),
    "degenerate": Known(
        program([1, 1], [[1, 1], [1, 2], [2, 1], [1, 0]], [0] * 4, [INF] * 4, [-INF] * 2, ANY2), 0, (0, 0)
    ),
    "many optima": Known(program([1, 1, 1], [[1, 1, 1]], [1], [INF], [0] * 3, [INF] * 3), 1, None, (1,)),
    "redundant rows": Known(
        program(
            [1, 2],
            [[1, 1], [2, 2], [1, 1], [0, 1], [0, -1]],
            [2, 4, -INF, 1, -INF],
            [2, 4, 5, INF, 7],
            NONE2,
            ANY2,
        ),
        3,
        (1, 1),
    ),
    "empty row and free row": Known(
        program([2, 1], [[0, 0], [1, 1], [1, 0]], [-1, 1, -INF], [1, INF, INF], NONE2, ANY2), 1, (0, 1), (0, 1, 0)
    ),
    "empty column": Known(program([1, -1, 2], [[1, 0, 1]], [3], [INF], [0] * 3, [INF, 5, INF]), -2, (3, 5, 0), (1,)),
    "no rows": Known(program([1, -1], [], [], [], NONE2, [INF, 2]), -2, (0, 2), ()),
    "badly scaled": Known(program([1, 1e6], [[1e6, 1]], [1e3], [INF], NONE2, ANY2), 1e-3, (1e-3, 0), (1e-6,)),
    "zero objective": Known(program([0, 0], [[1, 1], [1, -1]], [1, 0], [2, INF], NONE2, ANY2), 0),
    "zero optimum": Known(program([1, 3], [[1, 1]], [-INF], [2], NONE2, ANY2), 0, (0, 0), (0,)),
}
INFEASIBLE = {
    "infeasible rows": program([1, 1], [[1, 1], [1, 1]], [2, -INF], [INF, 1], NONE2, ANY2),
    "infeasible bounds": program([1, 1], [[1, 1]], [5], [INF], NONE2, [2, 2]),
    "infeasible equalities": program([0, 0], [[1, 1], [1, 1]], [1, 2], [1, 2], [-INF] * 2, ANY2),
    # Clarabel gives up on this one unless it is asked for a point alone.
    "equalities with a cost": program([2], [[2], [-1], [-1]], [0, -2, -1], [0, INF, -1], [0], [2]),
    "infeasible empty row": program([1, 1], [[0, 0], [1, 1]], [1, 1], [2, INF], NONE2, ANY2),
    "with a ray": program([-1, 0, 0], [[0, 1, 1], [0, 1, 1]], [2, -INF], [INF, 1], [0] * 3, [INF] * 3),
}
UNBOUNDED = {
    "unbounded": program([-1, 0], [[1, -1]], [-INF], [1], NONE2, ANY2),
    "unbounded free column": program([1, 0], [[1, -1]], [-INF], [1], [-INF, 0], ANY2),
    "unbounded without rows": program([1], [], [], [], [-INF], [5]),
}
HOPELESS = {
    **{name: (Status.INFEASIBLE, lp) for name, lp in INFEASIBLE.items()},
    **{name: (Status.UNBOUNDED, lp) for name, lp in UNBOUNDED.items()},
}


HONEST = FEASIBLE["upper rows"]


def metric_program(n: int) -> LinearProgram:
    """Build a privacy program on n random points: n² columns, about n³ rows, and seconds of work from n = 40 on."""
    rng = np.random.default_rng(0)
    points = 4 * rng.random((n, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    prior = rng.dirichlet(np.ones(n))
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    pairs = np.arange(first.size)
    block = sparse.coo_array(
        (
            np.concatenate([np.ones(first.size), -np.exp(distance[first, second] / 2)]),
            (np.concatenate([pairs, pairs]), np.concatenate([first, second])),
        )
    )
    privacy = sparse.kron(block, sparse.eye_array(n))
    sums = sparse.kron(sparse.eye_array(n), np.ones((1, n)))
    rows = privacy.shape[0]
    return LinearProgram(
        (prior[:, None] * distance).ravel(),
        sparse.csr_array(sparse.vstack([privacy, sums])),
        np.concatenate([np.full(rows, -INF), np.ones(n)]),
        np.concatenate([np.zeros(rows), np.ones(n)]),
        np.zeros(n * n),
        np.full(n * n, INF),
    )


def with_a_row(lp: LinearProgram) -> LinearProgram:
    """Return the program with a further row, which its optimum meets."""
    return LinearProgram(
        lp.cost,
        sparse.csr_array(sparse.vstack([lp.matrix, np.ones((1, lp.columns))])),
        np.append(lp.row_lower, 0),
        np.append(lp.row_upper, INF),
        lp.lower,
        lp.upper,
    )
