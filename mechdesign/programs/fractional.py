"""Linear-fractional programs as values, and two ways to reduce them to linear ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

from mechdesign.errors import InputError
from mechdesign.programs.linear import LinearProgram

__all__ = ["CharnesCooper", "FractionalProgram", "charnes_cooper", "dinkelbach"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FractionalProgram:
    """Maximise ``(numerator @ x + numerator_constant) / (denominator @ x + denominator_constant)`` over a polyhedron.

    The polyhedron is ``row_lower <= matrix @ x <= row_upper`` and ``lower <= x <= upper``; the denominator must be
    positive on all of it, which the reductions take for granted and `solvers.fractional` checks at the answer. Shapes:
    `matrix` (rows, columns), which may have no rows; bounds may be infinite.
    """

    numerator: Array
    denominator: Array
    matrix: sparse.csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    numerator_constant: float = 0.0
    denominator_constant: float = 0.0
    name: str = "fractional"

    def __post_init__(self) -> None:
        # A linear program has the same polyhedron, and checks it.
        base = LinearProgram(
            self.numerator, self.matrix, self.row_lower, self.row_upper, self.lower, self.upper, name=self.name
        )
        values: dict[str, Any] = {"numerator": base.cost}
        for attribute in ("matrix", "row_lower", "row_upper", "lower", "upper"):
            values[attribute] = getattr(base, attribute)
        denominator = np.array(self.denominator, dtype=np.float64)
        if denominator.shape != (base.columns,):
            raise InputError("denominator", "has the wrong shape", value=denominator.shape, bound=f"({base.columns},)")
        for name in ("numerator_constant", "denominator_constant"):
            values[name] = float(getattr(self, name))
        if not (np.isfinite(denominator).all() and np.isfinite(list(values.values())[-2:]).all()):
            raise InputError("denominator and constants", "must be finite")
        if not denominator.any() and values["denominator_constant"] == 0:
            raise InputError("denominator", "is zero everywhere", bound="positive on the polyhedron")
        denominator.flags.writeable = False
        values["denominator"] = denominator
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> int:
        """Number of variables."""
        return len(self.numerator)

    def fraction(self, x: Array) -> tuple[float, float]:
        """Return numerator and denominator at x, shape (columns,)."""
        return (
            float(self.numerator @ x) + self.numerator_constant,
            float(self.denominator @ x) + self.denominator_constant,
        )


@dataclass(frozen=True, eq=False)
class CharnesCooper:
    """A linear program equivalent to a fractional one, and the way back.

    The variables are y = t·x and, last, t·`unit` with t = 1/(denominator at x); the objective is minus the fraction.
    """

    program: LinearProgram
    unit: float

    def invert(self, y: Array) -> Array | None:
        """Return x for a solution y of `program`, or None when t = 0: the best fraction is only approached, far out."""
        t = y[-1] / self.unit
        return None if t <= 0 else y[:-1] / t


def charnes_cooper(fractional: FractionalProgram, unit: float = 1.0) -> CharnesCooper:
    """Reduce to one linear program (Charnes and Cooper, 1962).

    ``row_lower t <= matrix @ y <= row_upper t``, ``lower t <= y <= upper t``, ``denominator @ y + constant t = 1`` and
    t ≥ 0; bounds on y turn into rows, two entries each. `unit` scales the variable t, for polyhedra far from size 1:
    the square root of its smallest times its largest bound keeps coefficients close to 1.
    """
    n = fractional.columns
    make: Any = sparse.csr_array
    identity = sparse.eye_array(n, format="csr")
    blocks, names = [], []
    # Each finite bound b of a row a gives a·y − b t ≥ 0 or ≤ 0.
    for matrix, low, high, name in (
        (fractional.matrix, fractional.row_lower, fractional.row_upper, "rows"),
        (identity, fractional.lower, fractional.upper, "bounds"),
    ):
        for bound, sign, side in ((low, 1.0, "lower"), (high, -1.0, "upper")):
            finite = np.flatnonzero(np.isfinite(bound))
            column = make((-sign * bound[finite] / unit).reshape(-1, 1))
            blocks.append(sparse.hstack([sign * matrix[finite], column], format="csr"))
            names.append(f"{name}_{side}")
    last = make(np.append(fractional.denominator, fractional.denominator_constant / unit).reshape(1, -1))
    matrix = make(sparse.vstack([*blocks, last], format="csr"))
    rows = matrix.shape[0]
    sizes = [block.shape[0] for block in blocks] + [1]
    ends = np.cumsum(sizes).tolist()
    row_lower, row_upper = np.zeros(rows), np.full(rows, np.inf)
    row_lower[-1] = row_upper[-1] = 1.0
    program = LinearProgram(
        cost=-np.append(fractional.numerator, fractional.numerator_constant / unit),
        matrix=matrix,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.append(np.full(n, -np.inf), 0.0),
        upper=np.full(n + 1, np.inf),
        row_blocks={
            name: slice(end - size, end) for name, size, end in zip([*names, "denominator"], sizes, ends, strict=True)
        },
        column_blocks={"y": slice(0, n), "t": slice(n, n + 1)},
        name=f"{fractional.name} by Charnes and Cooper",
    )
    return CharnesCooper(program, unit)


def dinkelbach(fractional: FractionalProgram, value: float) -> LinearProgram:
    """Return the linear program of one step of Dinkelbach's method (1967): maximise numerator − value · denominator.

    Its variables are x itself. Its maximum, constants included, is zero exactly when `value` is the best fraction; else
    the fraction at its solution is a better value.
    """
    return LinearProgram(
        cost=value * fractional.denominator - fractional.numerator,
        matrix=fractional.matrix,
        row_lower=fractional.row_lower,
        row_upper=fractional.row_upper,
        lower=fractional.lower,
        upper=fractional.upper,
        name=f"{fractional.name} by Dinkelbach",
    )
