"""Linear programs in units in which solvers, whose tolerances are absolute, can decide them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._linear import LinearProgram

# If all numbers are between the inverse of this power of two and the power, no unit changes but to raise small numbers.
_ORDINARY_EXPONENT = 30
# Solvers refuse coefficients above this power of two, and drop those below its inverse. A fit is not used if it leaves
# such coefficients, or bounds that are further apart. A row with 1e-300 and 1 has no other.
_LARGEST_EXPONENT = 45
_UNIT_ITERATIONS = 1000


@dataclass(frozen=True, eq=False)
class Scaled:
    """A program in other units; all factors are powers of two, so nothing is rounded.

    Attributes:
        program: The program in the new units.
        rows: Exponents of the factors of rows (rows,).
        columns: Exponents of the factors of columns (columns,): x is the new x times these factors.
        cost: Exponent of the factor of the objective.
    """

    program: LinearProgram
    rows: Integers
    columns: Integers
    cost: int

    def convert(self, x: Floats, row_dual: Floats) -> tuple[Floats, Floats]:
        """Return values and multipliers of the original program in the new units."""
        return _multiply(x, -self.columns), _multiply(row_dual, self.cost - self.rows)

    def restore(self, x: Floats | None, row_dual: Floats | None) -> tuple[Floats | None, Floats | None]:
        """Return values and multipliers of the new program in the original units; wrong shapes stay as they are."""
        if x is not None and np.shape(x) == self.columns.shape:
            x = _multiply(x, self.columns)
        if row_dual is not None and np.shape(row_dual) == self.rows.shape:
            row_dual = _multiply(row_dual, self.rows - self.cost)
        return x, row_dual


def scale(program: LinearProgram) -> Scaled:
    """Return the program in units in which its numbers are near 1.

    Solvers compare with absolute tolerances, drop small coefficients, and take large bounds as infinite. Rows, costs
    and all bounds together are raised if their largest number is below 1. If a number is beyond 2^±30, `_fit_units`
    first finds units of the columns, and rows and costs are lowered too.
    """
    of_row = np.repeat(np.arange(program.rows), np.diff(program.matrix.indptr))
    of_column = program.matrix.indices.astype(np.int64)
    costs = _exponents(program.cost)
    row_bounds = np.stack([_exponents(program.row_lower), _exponents(program.row_upper)])
    bounds = np.stack([_exponents(program.lower), _exponents(program.upper)])
    free = np.isinf(program.row_lower) & np.isinf(program.row_upper)
    coefficients = np.where(free[of_row], np.nan, _exponents(program.matrix.data))
    present = ~np.isnan(coefficients)
    columns, lowest = np.zeros(program.columns), np.inf
    rows = _find_shift(coefficients, of_row, program.rows, lowest)
    if any((np.abs(each) > _ORDINARY_EXPONENT).any() for each in (coefficients, row_bounds, bounds)):
        lowest = 0.0
        units = _fit_units(of_row, of_column, coefficients, row_bounds, bounds, costs)
        fitted = coefficients + units[of_column]
        shifts = _find_shift(fitted, of_row, program.rows, lowest)
        sides = np.concatenate([(row_bounds + shifts).ravel(), (bounds - units).ravel()])
        sides = sides[~np.isnan(sides)]
        apart = np.max(sides, initial=-np.inf) - np.min(sides, initial=np.inf)
        if np.max(np.abs(fitted + shifts[of_row])[present], initial=apart / 2) <= _LARGEST_EXPONENT:
            rows, columns = shifts, units
        else:
            rows = _find_shift(coefficients, of_row, program.rows, lowest)
    # An empty row has the unit of its bounds.
    empty = np.bincount(of_row[present], minlength=program.rows) == 0
    places = np.tile(np.arange(program.rows), 2)
    rows = np.where(empty, _find_shift(row_bounds.ravel(), places, program.rows, lowest), rows)
    everything = np.concatenate([(row_bounds + rows).ravel(), (bounds - columns).ravel()])
    size = _find_shift(everything, np.zeros(everything.size, np.int64), 1, np.inf)[0]
    rows, columns = rows + size, columns - size
    cost = _find_shift(costs + columns, np.zeros(program.columns, np.int64), 1, _ORDINARY_EXPONENT)[0]
    # An empty column has the unit of its cost, because no other number says whether the cost is small.
    empty = np.bincount(of_column[present], minlength=program.columns) == 0
    columns = np.where(empty, np.fmax(columns, -(costs + cost)), columns)
    return _apply(program, of_row, rows.astype(np.int64), columns.astype(np.int64), int(cost))


def _apply(program: LinearProgram, of_row: Integers, rows: Integers, columns: Integers, cost: int) -> Scaled:
    # Rows without bounds say nothing, and their numbers have no unit.
    free = np.isinf(program.row_lower) & np.isinf(program.row_upper)
    if not (rows.any() or columns.any() or cost or free.any()):
        return Scaled(program, rows, columns, cost)
    data = _multiply(program.matrix.data, rows[of_row] + columns[program.matrix.indices]) * ~free[of_row]
    raised = replace(
        program,
        cost=_multiply(program.cost, columns + cost),
        matrix=sparse.csr_array((data, program.matrix.indices, program.matrix.indptr), program.matrix.shape),
        row_lower=_multiply(program.row_lower, rows),
        row_upper=_multiply(program.row_upper, rows),
        lower=_multiply(program.lower, -columns),
        upper=_multiply(program.upper, -columns),
    )
    return Scaled(raised, rows, columns, cost)


def _exponents(values: Floats) -> Floats:
    """Return e with 2^e <= |value| < 2^(e + 1), and NaN for zero and infinity."""
    return np.where(np.isfinite(values) & (values != 0), np.frexp(values)[1] - 1.0, np.nan)


def _multiply(values: Floats, exponents: Integers) -> Floats:
    """Multiply by powers of two; finite numbers stay finite."""
    with np.errstate(under="ignore", over="ignore"):
        found = np.ldexp(values, exponents)
    largest = np.finfo(np.float64).max
    return np.where(np.isfinite(values), np.clip(found, -largest, largest), values)


def _find_shift(exponents: Floats, group: Integers, groups: int, lowest: float) -> Floats:
    """Return what raises the largest exponent of each group to 0, and lowers the smallest if it exceeds `lowest`."""
    largest, smallest = np.full(groups, np.nan), np.full(groups, np.nan)
    np.fmax.at(largest, group, exponents)
    np.fmin.at(smallest, group, exponents)
    return np.where(largest < 0, -largest, np.where(smallest > lowest, -smallest, 0.0))


def _fit_units(
    of_row: Integers, of_column: Integers, coefficients: Floats, row_bounds: Floats, bounds: Floats, costs: Floats
) -> Floats:
    """Return exponents of the columns that bring all numbers near 1, by least squares over their logarithms.

    The bounds of rows are the coefficients of a further column, which stays 1. The bounds of columns and the costs
    belong to further rows (Curtis and Reid 1972, On the automatic scaling of matrices for Gaussian elimination).
    """
    rows, columns = row_bounds.shape[1], bounds.shape[1]
    last = rows + 2 * columns
    every_row, every_column = np.arange(rows), np.arange(columns)
    parts = [(of_row, of_column, coefficients), (np.full(columns, last), every_column, costs)]
    parts += [(every_row, np.full(rows, columns), each) for each in row_bounds]
    for side, each in enumerate(bounds):
        bounded = np.where(np.isnan(each), np.nan, 0.0)
        own = rows + side * columns + every_column
        parts += [(own, every_column, bounded), (own, np.full(columns, columns), each)]
    row, column, exponent = (np.concatenate(each) for each in zip(*parts, strict=True))
    kept = ~np.isnan(exponent)
    row, column, exponent = row[kept], column[kept], exponent[kept]
    entries = np.arange(exponent.size)
    incidence = sparse.csr_array(
        (np.ones(2 * entries.size), (np.tile(entries, 2), np.concatenate([row, last + 1 + column]))),
        (entries.size, last + 2 + columns),
    )
    found = scipy.sparse.linalg.lsmr(incidence, -exponent, atol=1e-9, btol=1e-9, maxiter=_UNIT_ITERATIONS)[0]
    units = found[last + 1 :]
    return np.rint(units[:columns] - units[columns])
