"""A linear program as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._errors import InputError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.base._arrays import Floats

__all__ = ["LinearProgram", "Residuals", "residuals"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost @ x`` subject to ``row_lower <= matrix @ x <= row_upper`` and ``lower <= x <= upper``.

    `matrix` is sparse, of shape (rows, columns); bounds may be infinite. `row_blocks` and `column_blocks` name
    consecutive slices, which together cover all rows and all columns: ``{"p": slice(0, 9), "x": slice(9, 12)}``.
    The names are what an MPS file and an error message show.
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
            # Solvers refuse entries that are given twice; what the caller holds is not ours to change.
            matrix = matrix.copy()
            matrix.sum_duplicates()
        rows, columns = matrix.shape
        object.__setattr__(self, "matrix", matrix)
        sizes = {"cost": columns, "row_lower": rows, "row_upper": rows, "lower": columns, "upper": columns}
        for attribute, size in sizes.items():
            values = np.array(getattr(self, attribute), dtype=np.float64)
            if values.shape != (size,):
                raise InputError(attribute, "has the wrong shape", value=values.shape, bound=f"({size},)")
            if np.isnan(values).any():
                raise InputError(f"{attribute}[{int(np.isnan(values).argmax())}]", "is not a number", value="nan")
            values.flags.writeable = False
            object.__setattr__(self, attribute, values)
        if not np.isfinite(matrix.data).all() or not np.isfinite(self.cost).all():
            raise InputError("matrix and cost", "must be finite", remedy="drop or rescale rows with huge coefficients")
        for low, high, what in ((self.row_lower, self.row_upper, "row"), (self.lower, self.upper, "column")):
            if (low > high).any():
                index = int((low > high).argmax())
                raise InputError(
                    f"{what}[{index}]", "has a lower bound above its upper bound", value=(low[index], high[index])
                )
            nowhere = np.isposinf(low) | np.isneginf(high)
            if nowhere.any():
                index = int(nowhere.argmax())
                raise InputError(f"{what}[{index}]", "can only be infinite", value=(low[index], high[index]))
        for attribute, size in (("row_blocks", rows), ("column_blocks", columns)):
            blocks = dict(getattr(self, attribute)) or {"all": slice(0, size)}
            stops = [0, *(block.stop for block in blocks.values())]
            starts = [block.start for block in blocks.values()]
            if starts != stops[:-1] or stops[-1] != size or stops != sorted(stops):
                raise InputError(attribute, f"must cover 0 to {size} in order, without gaps", value=blocks)
            object.__setattr__(self, attribute, ReadOnlyMapping(blocks))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])


@dataclass(frozen=True)
class Residuals:
    """How far a primal-dual pair is from optimality, recomputed from the numbers themselves.

    `primal` and `dual` are the largest absolute violations of a row, of a bound, or of the sign of a multiplier;
    `objective` is ``cost @ x``; `bound` is the dual objective with infeasible reduced costs left out, and `gap` their
    relative distance. Not-a-number counts as infinite.
    """

    primal: float
    dual: float
    objective: float
    bound: float
    gap: float


def residuals(program: LinearProgram, x: Floats, row_dual: Floats) -> Residuals:
    """Measure the pair (x, row_dual); multipliers are positive on rows that hold at their lower bound.

    The reduced costs are ``cost - matrix.T @ row_dual``: positive ones lean on the lower bound of their column,
    negative ones on the upper bound; where that bound is infinite they count as dual infeasibility.
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
