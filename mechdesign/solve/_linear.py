"""Linear programs as data objects, the units in which solvers can decide them, and their MPS format.

The tolerances of solvers are absolute, so programs are solved in units in which their numbers are near 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers, as_floats, require
from mechdesign.base._errors import InputError
from mechdesign.base._values import ReadOnlyMapping


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost @ x`` subject to ``row_lower <= matrix @ x <= row_upper`` and ``lower <= x <= upper``.

    Args:
        cost: Costs (columns,).
        matrix: Sparse matrix (rows, columns).
        row_lower: Lower bounds (rows,); may be infinite.
        row_upper: Upper bounds (rows,); may be infinite.
        lower: Lower bounds of x (columns,); may be infinite.
        upper: Upper bounds of x (columns,); may be infinite.
        row_blocks: Named consecutive slices that cover all rows, such as ``{"p": slice(0, 9), "x": slice(9, 12)}``.
            MPS files and messages show these names.
        column_blocks: Named consecutive slices that cover all columns.
        name: Name of the program.

    Raises:
        InputError: Shapes do not match, numbers are NaN or infinite, or a lower bound is above its upper bound.

    >>> import numpy as np
    >>> from mechdesign.solve import LinearProgram
    >>> LinearProgram([1.0], np.ones((1, 1)), [2.0], [np.inf], [0.0], [np.inf]).rows
    1
    """

    cost: Floats
    matrix: sparse.csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    row_blocks: Mapping[str, slice] = field(default_factory=dict)
    column_blocks: Mapping[str, slice] = field(default_factory=dict)
    name: str = "program"

    def __post_init__(self) -> None:
        given: Any = self.matrix
        if np.ndim(given) != 2:
            raise InputError("matrix", "has the wrong number of axes", value=np.ndim(given), bound="2")
        matrix = sparse.csr_array(given, dtype=np.float64)
        if not matrix.has_canonical_format:
            # Duplicate entries, which solvers refuse, are summed in a copy, because the caller's matrix must not
            # change.
            matrix = matrix.copy()
            matrix.sum_duplicates()
        rows, columns = matrix.shape
        object.__setattr__(self, "matrix", matrix)
        sizes = {"cost": columns, "row_lower": rows, "row_upper": rows, "lower": columns, "upper": columns}
        for attribute, size in sizes.items():
            values = as_floats(getattr(self, attribute), attribute, f"({size},)")
            if values.shape != (size,):
                raise InputError(attribute, "has the wrong shape", value=values.shape, bound=f"({size},)")
            if attribute == "cost":
                require(np.isfinite(values), values, attribute, "a finite number")
            require(~np.isnan(values), values, attribute, "a number")
            object.__setattr__(self, attribute, values)
        if not np.isfinite(matrix.data).all():
            remedy = "drop or rescale rows with huge coefficients"
            raise InputError("matrix", "has entries that are not finite", bound="finite numbers", remedy=remedy)
        _require_room(self.row_lower, self.row_upper, "row")
        _require_room(self.lower, self.upper, "column")
        object.__setattr__(self, "row_blocks", _as_blocks(self.row_blocks, "row_blocks", rows))
        object.__setattr__(self, "column_blocks", _as_blocks(self.column_blocks, "column_blocks", columns))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])


def _require_room(low: Floats, high: Floats, what: str) -> None:
    """Raise `InputError` if no finite number satisfies a lower and an upper bound."""
    for where, problem, bound in (
        (low > high, "has a lower bound above its upper bound", "lower <= upper"),
        (np.isposinf(low) | np.isneginf(high), "can only be infinite", "lower < inf and upper > -inf"),
    ):
        if where.any():
            index = int(where.argmax())
            raise InputError(f"{what}[{index}]", problem, value=(float(low[index]), float(high[index])), bound=bound)


def _as_blocks(named: Mapping[str, slice], path: str, size: int) -> Mapping[str, slice]:
    """Check that the named slices cover `size` rows or columns; return a single slice if none are named."""
    blocks = dict(named) or {"all": slice(0, size)}
    stops = [0, *(block.stop for block in blocks.values())]
    starts = [block.start for block in blocks.values()]
    if starts != stops[:-1] or stops[-1] != size or stops != sorted(stops):
        raise InputError(path, f"must cover 0 to {size} in order, without gaps", value=blocks)
    return ReadOnlyMapping(blocks)


@dataclass(frozen=True)
class Residuals:
    """The distance of a primal-dual pair from optimality; infinite if the pair contains NaN or infinite values.

    Attributes:
        primal: Largest absolute violation of a row or a bound.
        dual: Largest absolute value of a multiplier or reduced cost with the wrong sign.
        objective: ``cost @ x``.
        bound: The dual objective, without multipliers and reduced costs of the wrong sign.
        gap: The relative difference of the objective and the bound.

    >>> Residuals(0.0, 0.0, 2.0, 2.0, 0.0).gap
    0.0
    """

    primal: float
    dual: float
    objective: float
    bound: float
    gap: float


def split_rows(program: LinearProgram) -> tuple[Integers, Integers, Integers]:
    """Return the indices of the equations, of the other rows with an upper bound, and of those with a lower bound."""
    equal = (program.row_lower == program.row_upper) & np.isfinite(program.row_lower)
    ranged = program.row_lower != program.row_upper
    above, below = ranged & np.isfinite(program.row_upper), ranged & np.isfinite(program.row_lower)
    return np.flatnonzero(equal), np.flatnonzero(above), np.flatnonzero(below)


def residuals(program: LinearProgram, x: Floats, row_dual: Floats) -> Residuals:
    """Compute the residuals of a primal-dual pair.

    The reduced costs are ``cost - matrix.T @ row_dual``. A positive reduced cost is the multiplier of the column's
    lower bound. A negative reduced cost is the multiplier of its upper bound. If that bound is infinite, the reduced
    cost is a dual infeasibility.

    Args:
        program: The program.
        x: Values (columns,).
        row_dual: Multipliers (rows,), positive on rows that are active at their lower bound.

    Returns:
        The residuals.

    >>> import numpy as np
    >>> program = LinearProgram([1.0], np.ones((1, 1)), [2.0], [np.inf], [0.0], [np.inf])
    >>> residuals(program, np.array([2.0]), np.array([1.0])).gap
    0.0
    """
    if not (np.isfinite(x).all() and np.isfinite(row_dual).all()):
        return Residuals(np.inf, np.inf, np.inf, -np.inf, np.inf)
    activity = program.matrix @ x
    primal = max(
        float(np.max(violation, initial=0.0))
        for violation in (
            program.row_lower - activity,
            activity - program.row_upper,
            program.lower - x,
            x - program.upper,
        )
    )
    reduced = program.cost - program.matrix.T @ row_dual
    bound = 0.0
    dual = 0.0
    for multiplier, low, high in (
        (row_dual, program.row_lower, program.row_upper),
        (reduced, program.lower, program.upper),
    ):
        leaned = np.where(multiplier > 0, low, high)
        infeasible = ~np.isfinite(leaned)
        dual = max(dual, float(np.max(np.abs(multiplier[infeasible]), initial=0.0)))
        bound += float(multiplier[~infeasible] @ leaned[~infeasible])
    objective = float(program.cost @ x)
    gap = abs(objective - bound) / max(1e-300, abs(objective), abs(bound))
    return Residuals(primal, dual, objective, bound, gap)


def to_mps(program: LinearProgram, comments: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a program in free MPS format, as a minimisation.

    Names come from the blocks: ``privacy_17`` is row 17 of block ``privacy``. Numbers have 17 significant digits, so
    readers restore exactly the same numbers. Two kinds of rows change their form. Readers drop rows without bounds. If
    no RANGES entry expresses both bounds of a row exactly, the row is written twice, the second time with the suffix
    ``_upper``. Empty sections are omitted, because some readers stop at them.

    Args:
        program: The program.
        comments: Comment lines for the start of the file.

    Yields:
        The lines.

    Raises:
        InputError: The names of two blocks differ only in spaces.
    """
    row_names = _names(program.row_blocks)
    column_names = _names(program.column_blocks)
    equal = program.row_lower == program.row_upper
    below, above = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    kinds = np.select([equal, below, above], ["E", "G", "L"], "N")
    # A range R means [right, right + R] in a G row and [right - R, right] in an L row.
    right = np.where(below, program.row_lower, program.row_upper)
    ranges: dict[int, float] = {}
    twice: dict[int, str] = {}
    for row in np.flatnonzero(below & above & ~equal).tolist():
        kind, ranges[row] = _range(float(program.row_lower[row]), float(program.row_upper[row]))
        if kind == "L":
            kinds[row], right[row] = kind, program.row_upper[row]
        elif not kind:
            del ranges[row]
            twice[row] = f"{row_names[row]}_upper"
    yield from (f"* {line}\n" for line in comments)
    yield f"NAME {'_'.join(program.name.split()) or 'program'}\n"
    yield "ROWS\n"
    yield " N objective\n"
    for name, kind in zip(row_names, kinds, strict=True):
        yield f" {kind} {name}\n"
    for name in twice.values():
        yield f" L {name}\n"
    yield "COLUMNS\n"
    by_column = program.matrix.tocsc()
    for column, name in enumerate(column_names):
        entries = slice(by_column.indptr[column], by_column.indptr[column + 1])
        if program.cost[column] or entries.start == entries.stop:
            yield f" {name} objective {program.cost[column]:.17g}\n"
        for row, value in zip(by_column.indices[entries], by_column.data[entries], strict=True):
            yield f" {name} {row_names[row]} {value:.17g}\n"
            if row in twice:
                yield f" {name} {twice[row]} {value:.17g}\n"
    yield from _section("RHS", _right_sides(program, row_names, kinds, right, twice))
    yield from _section("RANGES", (f" range {row_names[row]} {width:.17g}\n" for row, width in ranges.items()))
    yield from _section("BOUNDS", _bounds(program, column_names))
    yield "ENDATA\n"


def _section(name: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield a section, or nothing if the section has no lines."""
    first = next(lines, None)
    if first is not None:
        yield f"{name}\n"
        yield first
        yield from lines


def _right_sides(
    program: LinearProgram, names: Sequence[str], kinds: NDArray[np.str_], right: Floats, twice: Mapping[int, str]
) -> Iterator[str]:
    for row in np.flatnonzero((kinds != "N") & (right != 0)).tolist():
        yield f" rhs {names[row]} {right[row]:.17g}\n"
    for row, name in twice.items():
        yield f" rhs {name} {program.row_upper[row]:.17g}\n"


def _bounds(program: LinearProgram, names: Sequence[str]) -> Iterator[str]:
    for column, name in enumerate(names):
        low, high = program.lower[column], program.upper[column]
        if low == high:
            yield f" FX bound {name} {low:.17g}\n"
            continue
        if np.isneginf(low) and np.isposinf(high):
            yield f" FR bound {name}\n"
            continue
        if low != 0:
            yield f" MI bound {name}\n" if np.isneginf(low) else f" LO bound {name} {low:.17g}\n"
        if np.isfinite(high):
            yield f" UP bound {name} {high:.17g}\n"


def _range(low: float, high: float) -> tuple[str, float]:
    """Return the row type and the range that express exactly these bounds, or an empty type if no range does."""
    width = high - low
    for kind in ("G", "L"):
        for candidate in (width, math.nextafter(width, math.inf), math.nextafter(width, 0.0)):
            if (low + candidate == high) if kind == "G" else (high - candidate == low):
                return kind, candidate
    return "", 0.0


def _names(blocks: Mapping[str, slice]) -> list[str]:
    names = ["_".join(block.split()) for block in blocks]
    if len(set(names)) < len(names):
        raise InputError("blocks", "have names that differ only in spaces", value=list(blocks))
    return [
        f"{name}_{i}" for name, part in zip(names, blocks.values(), strict=True) for i in range(part.stop - part.start)
    ]


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
