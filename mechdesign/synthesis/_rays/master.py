"""Solve the master program of the rays by Mehrotra's predictor–corrector method (docs/theory/rays.md).

    minimise c·z   subject to   Σ_k z_k column_k = b,   z >= 0.

The program has few rows and many dense columns. Let A be the matrix of the columns, and D a diagonal matrix. Every
iteration solves two systems with the dense matrix A D Aᵀ. The order of A D Aᵀ is the number of rows; forming it
dominates the work. Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg as linalg

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError

_MAX_ITERATIONS = 80
# Desired residual of the rows, relative to the right side; a final correction makes the residual still smaller.
_RESIDUAL = 1e-9
# Largest accepted residual of the rows. It is large, because rounding errors prevent small residuals if few columns
# have positive weight.
_MAX_RESIDUAL = 1e-6
# The iteration ends after this number of steps without a better point.
_PATIENCE = 8
# Share of the mean weight that every column may contribute to the final correction.
_CORRECTION_SHARE = 1e-3
# Allowed error of reduced costs, as a share of the gap. This share may be large, because the prices are proved
# separately.
_DUAL_SHARE = 1e-2
# Share of the distance to the boundary that a step may cover.
_BOUNDARY_FRACTION = 0.9995
# Number of columns that are added to the normal matrix at a time.
_COLUMNS_PER_BATCH = 2048
# The iteration ends if a step is shorter than this.
_MIN_STEP = 1e-8
# The iteration ends if the mean complementary product exceeds this value, because the program then has no solution.
_MAX_PRODUCT = 1e15
# Relative diagonal shifts for a normal matrix that is singular to working precision.
_DIAGONAL_SHIFTS = (1e-14, 1e-12, 1e-10, 1e-8)


@dataclass(frozen=True, eq=False)
class RayMixture:
    """A solution of the master program.

    Attributes:
        weights: Weights z of the columns, shape (k,), positive.
        prices: Multipliers of the rows.
        reduced: Reduced costs, shape (k,), positive.
        cost: c·z.
        iterations: Number of iterations.
    """

    weights: Floats
    prices: Floats
    reduced: Floats
    cost: float
    iterations: int


def solve_master(
    columns: Floats, cost: Floats, right: Floats, gap: float, deadline: Deadline | None = None
) -> RayMixture:
    """Solve the master program to a relative gap.

    If rounding errors or the deadline end the iteration, the result is the best point that meets the rows.

    Args:
        columns: Transposed A, shape (k, rows): one column of A in each row of the array.
        cost: c, shape (k,), not negative.
        right: b, shape (rows,).
        gap: Relative gap at which to stop.
        deadline: Deadline of the iteration.

    Returns:
        The solution with its multipliers.

    Raises:
        SolverError: No iterate meets the rows.
    """
    scale = float(np.abs(cost).max()) or 1.0
    # After an overflow, the step is NaN, which ends the iteration.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        found = _solve(columns, cost / scale, right, gap, deadline)
    return RayMixture(found.weights, found.prices * scale, found.reduced * scale, found.cost * scale, found.iterations)


@dataclass(frozen=True, eq=False)
class _MasterPoint:
    """An iterate that meets the rows, with its normal matrix, its index and its relative gap."""

    normal: _NormalMatrix
    z: Floats
    y: Floats
    s: Floats
    number: int
    gap: float


def _solve(columns: Floats, cost: Floats, right: Floats, gap: float, deadline: Deadline | None) -> RayMixture:
    """Solve the scaled program, and correct the row residuals of the best iterate."""
    deadline, best = deadline or Deadline(), None
    for point in _iterate_points(columns, cost, right, gap):
        if point is not None and (best is None or point.gap < best.gap):
            best = point
        if deadline.stop() is not None:
            break
        if best is not None and (best.gap <= gap or (point and point.number > best.number + _PATIENCE)):
            break
    if best is None:
        raise SolverError(
            "rays: the master program could not be solved to the required accuracy; use a larger tolerance"
        )
    z = _correct_rows(best.normal, best.z, right)
    if np.abs(right - columns.T @ z).max() > _RESIDUAL * np.abs(right).max():
        z = _correct_by_all_columns(columns, z, right)
    return RayMixture(z, best.y, best.s, float(cost @ z), best.number)


def _iterate_points(columns: Floats, cost: Floats, right: Floats, gap: float) -> Iterator[_MasterPoint | None]:
    """Yield the iterates until rounding errors prevent further progress; None replaces iterates that violate rows."""
    normal = _NormalMatrix(columns, np.ones(len(cost)))
    z, y = columns @ normal.solve(right), normal.solve(columns.T @ cost)
    s = cost - columns @ y
    z += max(-1.5 * float(z.min()), 0.0)
    s += max(-1.5 * float(s.min()), 0.0)
    product = float(z @ s) or 1.0
    z, s = z + 0.5 * product / s.sum(), s + 0.5 * product / z.sum()
    size = float(np.abs(right).max())
    for iteration in range(_MAX_ITERATIONS):
        missing, dual = right - columns.T @ z, cost - columns @ y - s
        value = float(cost @ z)
        residual = float(np.abs(missing).max()) / size
        if residual <= _MAX_RESIDUAL:
            off = float(np.abs(dual).max())
            apart = abs(value - float(right @ y)) / max(abs(value), 1e-12)
            # Prices are useful only if the reduced costs are approximately correct.
            wrong = max(off / max(_RESIDUAL, _DUAL_SHARE * gap * value), residual / _RESIDUAL)
            yield _MasterPoint(normal, z, y, s, iteration, max(apart, wrong * gap if wrong > 1 else 0.0))
        else:
            yield None
        try:
            normal = _NormalMatrix(columns, z / s)
        except SolverError:
            return
        system = _MasterSystem(normal, z, s, missing, dual)
        mean = float(z @ s) / len(z)
        dz, dy, ds = system.direction(-z * s)
        after = float((z + _limit_step(z, dz) * dz) @ (s + _limit_step(s, ds) * ds)) / len(z)
        dz, dy, ds = system.direction((after / mean) ** 3 * mean - z * s - dz * ds)
        along_z, along_s = _limit_step(z, dz), _limit_step(s, ds)
        # The negated condition is also true if a value is NaN.
        if not (max(along_z, along_s) >= _MIN_STEP and mean <= _MAX_PRODUCT):
            return
        z, y, s = z + along_z * dz, y + along_s * dy, s + along_s * ds


class _NormalMatrix:
    """The factored normal matrix Aᵀ diag(weights) A for A = `columns`, shape (k, rows), with a unit diagonal."""

    def __init__(self, columns: Floats, weights: Floats) -> None:
        self.columns, self.weights = columns, weights
        matrix = np.zeros((columns.shape[1],) * 2, order="F")
        for start in range(0, len(columns), _COLUMNS_PER_BATCH):
            part = (
                columns[start : start + _COLUMNS_PER_BATCH]
                * np.sqrt(weights[start : start + _COLUMNS_PER_BATCH])[:, None]
            )
            matrix = linalg.blas.dsyrk(1.0, part.T, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        self._scale = 1 / np.sqrt(matrix.diagonal())
        matrix *= self._scale[:, None]
        matrix *= self._scale
        for raised in _DIAGONAL_SHIFTS:
            np.fill_diagonal(matrix, 1 + raised)
            try:
                self._factor = linalg.cholesky(matrix, lower=True, check_finite=False)
            except linalg.LinAlgError:
                continue
            return
        raise SolverError("rays: the normal matrix of the master program is singular")

    def solve(self, right: Floats) -> Floats:
        """Solve a system with the normal matrix."""
        found: Floats = self._scale * linalg.cho_solve((self._factor, True), self._scale * right, check_finite=False)
        return found


@dataclass(frozen=True, eq=False)
class _MasterSystem:
    """Newton's system at a point (z, s); `missing` and `dual` are the residuals of rows and reduced costs."""

    normal: _NormalMatrix
    z: Floats
    s: Floats
    missing: Floats
    dual: Floats

    def direction(self, target: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the steps of z, y and s with z ds + s dz = target; iterative refinement improves the row residual."""
        columns, weights = self.normal.columns, self.normal.weights
        dy = self.normal.solve(self.missing + columns.T @ (weights * self.dual - target / self.s))
        for _ in range(2):
            ds = self.dual - columns @ dy
            dz = (target - self.z * ds) / self.s
            dy = dy + self.normal.solve(self.missing - columns.T @ dz)
        ds = self.dual - columns @ dy
        return (target - self.z * ds) / self.s, dy, ds


def _limit_step(values: Floats, step: Floats) -> float:
    """Return the longest step, at most 1, that leaves positive values positive."""
    least = float((step / values).min())
    return min(1.0, _BOUNDARY_FRACTION / -least) if least < 0 else 1.0


def _correct_rows(normal: _NormalMatrix, z: Floats, right: Floats) -> Floats:
    """Reduce the row residual to rounding errors by corrections in proportion to the weights."""
    for _ in range(3):
        change = normal.weights * (normal.columns @ normal.solve(right - normal.columns.T @ z))
        if not (z + change > 0).all():
            break
        z = z + change
    return z


def _correct_by_all_columns(columns: Floats, z: Floats, right: Floats) -> Floats:
    """Reduce the row residual to rounding errors by small changes of all weights, including tiny ones."""
    normal = _NormalMatrix(columns, z + _CORRECTION_SHARE * float(z.mean()))
    for _ in range(3):
        z = np.maximum(z + normal.weights * (columns @ normal.solve(right - columns.T @ z)), 0.0)
    return z
