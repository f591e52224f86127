"""Linear-fractional programs, and methods that solve them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, as_floats, require
from mechdesign.base._check import as_number, require_name
from mechdesign.base._errors import InfeasibleError, InputError, SolverError, UnboundedError
from mechdesign.solve._contract import Options, Solution, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve


@dataclass(frozen=True, eq=False)
class FractionalProgram:
    """Maximise ``(numerator @ x + numerator_constant) / (denominator @ x + denominator_constant)`` over a polyhedron.

    The polyhedron is ``row_lower <= matrix @ x <= row_upper`` and ``lower <= x <= upper``. The denominator must be
    positive on the polyhedron; it is checked at the solution only.

    Args:
        numerator: Coefficients (columns,).
        denominator: Coefficients (columns,).
        matrix: Sparse matrix (rows, columns), possibly without rows.
        row_lower: Lower bounds of the rows; may be infinite.
        row_upper: Upper bounds of the rows; may be infinite.
        lower: Lower bounds of x; may be infinite.
        upper: Upper bounds of x; may be infinite.
        numerator_constant: Constant of the numerator.
        denominator_constant: Constant of the denominator.
        name: Name for messages.

    Raises:
        InputError: Shapes do not match, numbers are not finite, or the denominator is zero everywhere.

    >>> import numpy as np, scipy.sparse
    >>> none = np.zeros(0)
    >>> matrix = scipy.sparse.csr_array((0, 1))
    >>> FractionalProgram([2.0], [1.0], matrix, none, none, [0.0], [1.0], 0.0, 1.0).fraction(np.array([1.0]))
    (2.0, 2.0)
    """

    numerator: Floats
    denominator: Floats
    matrix: sparse.csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    numerator_constant: float = 0.0
    denominator_constant: float = 0.0
    name: str = "fractional"

    def __post_init__(self) -> None:
        # A linear program with the same polyhedron checks the arguments.
        none = np.zeros(np.shape(self.matrix)[-1:])
        base = LinearProgram(none, self.matrix, self.row_lower, self.row_upper, self.lower, self.upper, name=self.name)
        values: dict[str, Any] = {
            name: getattr(base, name) for name in ("matrix", "row_lower", "row_upper", "lower", "upper")
        }
        for name in ("numerator", "denominator"):
            coefficients = as_floats(getattr(self, name), name, "(columns,)")
            if coefficients.shape != (base.columns,):
                raise InputError(name, "has the wrong shape", value=coefficients.shape, bound=f"({base.columns},)")
            require(np.isfinite(coefficients), coefficients, name, "a finite number")
            values[name] = coefficients
        for name in ("numerator_constant", "denominator_constant"):
            values[name] = as_number(getattr(self, name), name)
        if not values["denominator"].any() and values["denominator_constant"] == 0:
            raise InputError("denominator", "is zero everywhere", bound="positive on the polyhedron")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> int:
        """Number of variables."""
        return len(self.numerator)

    def fraction(self, x: Floats) -> tuple[float, float]:
        """Return the numerator and the denominator at a point.

        Args:
            x: A point (columns,).

        Returns:
            Both values.
        """
        return (
            float(self.numerator @ x) + self.numerator_constant,
            float(self.denominator @ x) + self.denominator_constant,
        )


@dataclass(frozen=True, eq=False)
class CharnesCooper:
    """A linear program that is equivalent to a fractional program, with the inverse transformation.

    The variables are y = t·(x − shift) and t·`unit` with t = 1/(denominator at x), and the objective is −fraction.

    Attributes:
        program: The linear program.
        shift: The lower bounds of x (columns,), with zeros in place of infinite bounds.
        unit: The factor by which the last variable scales t.

    >>> import numpy as np, scipy.sparse
    >>> none, matrix = np.zeros(0), scipy.sparse.csr_array((0, 1))
    >>> fractional = FractionalProgram([2.0], [1.0], matrix, none, none, [0.0], [1.0], 0.0, 1.0)
    >>> charnes_cooper(fractional).invert(np.array([0.5, 0.5]))
    array([1.])
    """

    program: LinearProgram
    shift: Floats
    unit: float

    def invert(self, y: Floats) -> Floats | None:
        """Return x for a solution of the linear program.

        Args:
            y: A solution of `program`.

        Returns:
            The point x, or None if t = 0. In that case the best fraction is approached only at infinity.
        """
        t = y[-1] / self.unit
        return None if t <= 0 else self.shift + y[:-1] / t


def charnes_cooper(fractional: FractionalProgram, heaviest: float = 1e4) -> CharnesCooper:
    """Reduce a fractional program to a single linear program (Charnes and Cooper, 1962).

    With x = shift + z the constraints are ``low t <= matrix @ y <= high t``, ``y <= (upper − lower) t`` and t ≥ 0, and
    y ≥ 0 if x has a lower bound. The row ``denominator @ y + constant t = 1`` is multiplied by a weight. The shift
    turns lower bounds into sign constraints. The unit of t (the largest bound) and the weight keep the coefficients
    within the range that solvers accept.

    Args:
        fractional: The program.
        heaviest: Upper limit of the absolute coefficients in the row of the denominator.

    Returns:
        The linear program and the inverse transformation.

    >>> import numpy as np, scipy.sparse
    >>> none, matrix = np.zeros(0), scipy.sparse.csr_array((0, 1))
    >>> charnes_cooper(FractionalProgram([2.0], [1.0], matrix, none, none, [0.0], [1.0], 0.0, 1.0)).program.columns
    2
    """
    n, entries, diagonal = fractional.columns, fractional.matrix.tocoo(), np.arange(fractional.columns)
    bounded = np.isfinite(fractional.lower)
    shift = np.where(bounded, fractional.lower, 0.0)
    moved = fractional.matrix @ shift
    # Each finite bound b of a row a becomes a·y − b t ≥ 0 or a·y − b t ≤ 0; the sign turns both into ≥ 0.
    parts = (
        ("rows_lower", (entries.row, entries.col, entries.data), fractional.row_lower - moved, 1.0),
        ("rows_upper", (entries.row, entries.col, entries.data), fractional.row_upper - moved, -1.0),
        ("upper", (diagonal, diagonal, np.ones(n)), fractional.upper - shift, -1.0),
    )
    unit = max(float(np.abs(bound[np.isfinite(bound)]).max(initial=0.0)) for _, _, bound, _ in parts) or 1.0
    row_blocks, coordinates, count = {}, [], 0
    for name, (row, column, value), bound, sign in parts:
        finite = np.isfinite(bound)
        number, which = np.cumsum(finite) - 1 + count, np.flatnonzero(finite)
        kept = finite[row]
        coordinates.append((number[row[kept]], column[kept], sign * value[kept]))
        coordinates.append((number[which], np.full(len(which), n), -sign * bound[which] / unit))
        row_blocks[name] = slice(count, count + len(which))
        count += len(which)
    above, below = fractional.fraction(shift)
    denominator = np.append(fractional.denominator, below / unit)
    # Solvers drop coefficients below an absolute threshold; scaling the row up avoids that.
    weight = float(2.0 ** np.floor(np.log2(heaviest / np.abs(denominator).max())))
    coordinates.append((np.full(n + 1, count), np.arange(n + 1), weight * denominator))
    row, column, value = (np.concatenate(each) for each in zip(*coordinates, strict=True))
    rows = count + 1
    matrix = sparse.csr_array((value, (row, column)), shape=(rows, n + 1))
    matrix.eliminate_zeros()
    row_lower, row_upper = np.zeros(rows), np.full(rows, np.inf)
    row_lower[-1] = row_upper[-1] = weight
    program = LinearProgram(
        cost=-np.append(fractional.numerator, above / unit),
        matrix=matrix,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.append(np.where(bounded, 0.0, -np.inf), 0.0),
        upper=np.full(n + 1, np.inf),
        row_blocks=row_blocks | {"denominator": slice(rows - 1, rows)},
        column_blocks={"y": slice(0, n), "t": slice(n, n + 1)},
        name=f"{fractional.name} by Charnes and Cooper",
    )
    return CharnesCooper(program, shift, unit)


# Approximate size of the largest coefficient of the objective of a step of Dinkelbach's method.
_LARGEST_OBJECTIVE = 1e6


def dinkelbach(fractional: FractionalProgram, value: float) -> LinearProgram:
    """Return the linear program of one step of Dinkelbach's method (1967): maximise numerator − value · denominator.

    The variables are x. With the constants included, the maximum is zero if and only if `value` is the best fraction.
    Otherwise the fraction at the solution is better than `value`. The objective is scaled, because solvers treat
    coefficients below an absolute tolerance as zero.

    Args:
        fractional: The program.
        value: The current fraction.

    Returns:
        The linear program.

    >>> import numpy as np, scipy.sparse
    >>> none, matrix = np.zeros(0), scipy.sparse.csr_array((0, 1))
    >>> dinkelbach(FractionalProgram([2.0], [1.0], matrix, none, none, [0.0], [1.0], 0.0, 1.0), 0.5).cost < 0
    array([ True])
    """
    cost = value * fractional.denominator - fractional.numerator
    largest = float(np.abs(cost).max())
    return LinearProgram(
        cost=cost * 2.0 ** np.floor(np.log2(_LARGEST_OBJECTIVE / largest)) if largest > 0 else cost,
        matrix=fractional.matrix,
        row_lower=fractional.row_lower,
        row_upper=fractional.row_upper,
        lower=fractional.lower,
        upper=fractional.upper,
        name=f"{fractional.name} by Dinkelbach",
    )


_MAX_STEPS = 200
_ROW_SCALES = (1e4, 1e6, 1e2)


@dataclass(frozen=True, eq=False)
class FractionalSolution:
    """The best fraction and the point that attains it.

    Attributes:
        value: The fraction, recomputed at `x`. If `x` is None, the value that the solver reports.
        x: The point, clipped to its bounds; None if the best fraction is approached only at infinity.
        violation: Largest absolute violation of a row.
        programs: Number of linear programs that were solved.
        solver: Name of the back end.
    """

    value: float
    x: Floats | None
    violation: float
    programs: int
    solver: str


def solve_fractional(
    fractional: FractionalProgram,
    method: str = "charnes-cooper",
    solver: str = "highs",
    options: Options | None = None,
) -> FractionalSolution:
    """Maximise a fraction with one linear program ("charnes-cooper") or a sequence of them ("dinkelbach").

    Args:
        fractional: The program.
        method: "charnes-cooper" or "dinkelbach".
        solver: Name of any solver of linear programs.
        options: Options for the solver.

    Returns:
        The best fraction.

    Raises:
        InfeasibleError: The polyhedron is empty.
        UnboundedError: The fraction is unbounded.
        SolverError: A solver fails.
        InputError: The denominator is not positive at the solution.
    """
    methods = {"charnes-cooper": _by_charnes_cooper, "dinkelbach": _by_dinkelbach}
    return methods[require_name(method, methods, "method")](fractional, solver, options)


def _by_charnes_cooper(fractional: FractionalProgram, solver: str, options: Options | None) -> FractionalSolution:
    options = (options or Options()).begun()
    # If coefficients span many orders of magnitude, a solver may fail at one scale and succeed at another.
    for heaviest in _ROW_SCALES:
        reduced = charnes_cooper(fractional, heaviest)
        solution = solve(reduced.program, solver, options)
        if solution.status is Status.OPTIMAL:
            break
    else:
        reduced = charnes_cooper(fractional)
        solution = _require_optimal(solve(reduced.program, solver, options), fractional)
    x = reduced.invert(solution.x)
    if x is None:
        return FractionalSolution(-solution.residuals.objective, None, solution.residuals.primal, 1, solution.solver)
    return _evaluate(fractional, x, 1, solution.solver)


def _by_dinkelbach(fractional: FractionalProgram, solver: str, options: Options | None) -> FractionalSolution:
    # The first value is the fraction at the point with the largest numerator.
    options = (options or Options()).begun()
    best = None
    value = 0.0
    for step in range(1, _MAX_STEPS + 1):
        solution = _require_optimal(solve(dinkelbach(fractional, value), solver, options), fractional)
        found = _evaluate(fractional, solution.x, step, solution.solver)
        # The values increase up to the best fraction; after that, rounding may change them in either direction.
        if best is not None and found.value <= value * (1 + math.copysign(4e-16, value)):
            return FractionalSolution(best.value, best.x, best.violation, step, best.solver)
        best, value = found, found.value
    raise SolverError(f"Dinkelbach's method did not converge in {_MAX_STEPS} steps; the last value was {value!r}")


def _require_optimal(solution: Solution, fractional: FractionalProgram) -> Solution:
    if solution.status is Status.OPTIMAL:
        return solution
    message = f"{fractional.name}: {solution.solver} ended with: {solution.status.value} ({solution.message})"
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(message)
    if solution.status is Status.UNBOUNDED:
        raise UnboundedError(message)
    raise SolverError(message)


def _evaluate(fractional: FractionalProgram, x: Floats, programs: int, solver: str) -> FractionalSolution:
    x = np.clip(x, fractional.lower, fractional.upper)
    above, below = fractional.fraction(x)
    if not below > 0:
        raise InputError(
            "denominator", "is not positive at a point of the polyhedron", value=below, bound="> 0 at all its points"
        )
    activity = fractional.matrix @ x
    violation = max(
        float(np.max(fractional.row_lower - activity, initial=0.0)),
        float(np.max(activity - fractional.row_upper, initial=0.0)),
    )
    return FractionalSolution(above / below, x, violation, programs, solver)
