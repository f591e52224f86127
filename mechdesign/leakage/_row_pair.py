"""The linear-fractional program of a pair of rows, solved directly: a slow check, independent of the closed forms."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_distribution
from mechdesign.base._check import as_number
from mechdesign.base._errors import InputError
from mechdesign.solve._contract import Options
from mechdesign.solve._fractional import FractionalProgram, solve_fractional

# e^20 is 4.9e8: larger bounds cannot be separated from the tolerances of LP solvers in double precision.
LARGEST_ALPHA = 20.0

_TIGHT = 1e-10


def row_pair_program(q: ArrayLike, d: ArrayLike, alpha: float) -> FractionalProgram:
    """Return the program (19)–(21): maximise q·x / d·x if entries of x differ by at most a factor e^α.

    The ratio does not depend on the scale of x. Therefore the n bounds e^(−α/2) ≤ x_j ≤ e^(α/2) replace n² constraints.

    Args:
        q: Row of the numerator, a distribution of shape (n,).
        d: Row of the denominator, a distribution of shape (n,).
        alpha: Leakage of the adjacent release in nats, from 0 to `LARGEST_ALPHA`. Larger values exceed the precision of
            LP solvers.

    Returns:
        The linear-fractional program.

    Raises:
        InputError: If the rows differ in length, if a row is not a distribution, or if α is out of range.

    >>> row_pair_program([0.8, 0.2], [0.2, 0.8], 1.0).upper.round(4).tolist()
    [1.6487, 1.6487]
    """
    q, d = _row(q, "q"), _row(d, "d")
    if len(q) != len(d):
        raise InputError("d", "differs in length from q", value=len(d), bound=f"{len(q)} entries")
    alpha = as_number(alpha, "alpha")
    if not 0 <= alpha <= LARGEST_ALPHA:
        raise InputError(
            "alpha",
            "is out of the range of linear programs",
            value=alpha,
            bound=f"between 0 and {LARGEST_ALPHA:g}",
            remedy="use LossFunction or algorithm1, which are exact for every alpha",
        )
    n = len(q)
    return FractionalProgram(
        numerator=q,
        denominator=d,
        matrix=sparse.csr_array((0, n)),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
        lower=np.full(n, math.exp(-alpha / 2)),
        upper=np.full(n, math.exp(alpha / 2)),
        name="temporal privacy leakage",
    )


def fractional(
    q: ArrayLike,
    d: ArrayLike,
    alpha: float,
    method: str = "charnes-cooper",
    solver: str = "highs",
    options: Options | None = None,
) -> float:
    """Return max ln(q·x / d·x) for one ordered pair of rows by linear programming, accurate to about 1e-7.

    Args:
        q: Row of the numerator, a distribution of shape (n,).
        d: Row of the denominator, a distribution of shape (n,).
        alpha: Leakage of the adjacent release in nats, from 0 to `LARGEST_ALPHA`.
        method: "charnes-cooper" (one program of n + 1 variables) or "dinkelbach" (a few programs of n variables).
        solver: Name of a solver.
        options: Options of the solver; None for a feasibility tolerance of 1e-10.

    Returns:
        The maximum in nats.

    >>> round(fractional([0.8, 0.2], [0.2, 0.8], 1.0), 6)
    0.569445
    """
    program = row_pair_program(q, d, alpha)
    found = solve_fractional(program, method, solver, options or Options(feasibility=_TIGHT))
    return math.log(found.value)


def _row(values: ArrayLike, path: str) -> Floats:
    return as_distribution(values, path, "normalise the row")
