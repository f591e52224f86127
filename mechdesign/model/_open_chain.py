"""Chains with ends: states whose rows are unknown because no observed step leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arrays import (
    SUM_TOLERANCE,
    Floats,
    Integers,
    as_amounts,
    read_only,
)
from mechdesign.base._errors import InputError, Total

Ends = Literal["stay", "mixture", "any"]


ENDS: tuple[Ends, ...] = ("stay", "mixture", "any")


ROW_OF_ZEROS = "is a row of zeros: no observed step leaves the state (or, in a backward matrix, enters it)"


CLOSED = 'use ends = "stay", which puts a 1 on the diagonal'


@dataclass(frozen=True, eq=False, repr=False)
class OpenChain:
    """A chain with ends: states whose rows are unknown because no observed step leaves them.

    Functions that compute leakage accept an open chain in place of a matrix. Functions that need a Markov chain reject
    an open chain.

    Attributes:
        matrix: Float64 of shape (n, n), read-only: a row of zeros for each end, and a distribution for each other
            state. In a backward matrix, an end is a state that no observed step enters.
        ends: The possible rows of ends: "mixture" means any mixture of the other rows, and "any" means any
            distribution.

    Raises:
        InputError: No row is unknown, all rows are unknown, or a known row is not a distribution.

    >>> OpenChain([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0, 0, 0]], "mixture")
    OpenChain(3 states, 1 of them ends: mixture)
    """

    matrix: Floats
    ends: Ends

    def __post_init__(self) -> None:
        """Check the known rows, and freeze the matrix."""
        if as_ends(self.ends) == "stay":
            raise InputError(
                "ends",
                "is not an option of an open chain",
                value="stay",
                remedy="use a MarkovChain with a 1 on the diagonal",
            )
        object.__setattr__(self, "matrix", as_rows(self.matrix, ends=True))

    @property
    def missing(self) -> Integers:
        """The ends, ascending, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1)).astype(np.int64)

    @property
    def size(self) -> int:
        """The number n of states."""
        return len(self.matrix)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"OpenChain({self.size} states, {len(self.missing)} of them ends: {self.ends})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        raise InputError(
            "matrix",
            f"is not a Markov chain: the rows of {len(self.missing)} of its {self.size} states are unknown",
            value=self.ends,
            remedy=CLOSED,
        )


def as_ends(ends: str) -> Ends:
    """Return one of `ENDS`; raise `InputError` for anything else."""
    for known in ENDS:
        if isinstance(ends, str) and ends == known:
            return known
    raise InputError("ends", "is not known", value=ends, bound='"stay", "mixture" or "any"')


def as_rows(matrix: ArrayLike, ends: bool = False) -> Floats:
    """Return a read-only float64 matrix (n, n) whose rows are distributions.

    If `ends` is true, some but not all rows must be zero. Raises InputError for the first invalid row.
    """
    rows = as_amounts(matrix, "matrix", "(n, n)")
    if rows.shape[0] != rows.shape[1] or rows.size == 0:
        raise InputError("matrix", "has the wrong shape", value=rows.shape, bound="of shape (n, n), n >= 1")
    zero = ~rows.any(axis=1)
    if ends and (zero.all() or not zero.any()):
        problem = "has no known row" if zero.all() else "has no end"
        raise InputError("matrix", problem, bound="some rows of zeros, and some that sum to 1")
    if not ends and zero.any():
        raise InputError(
            f"matrix[{int(np.argmax(zero))}]",
            ROW_OF_ZEROS,
            bound="a row that sums to 1",
            remedy='put a 1 on its diagonal if people stay; leakage also takes OpenChain(matrix, "mixture")',
        )
    # Sums of entries near the largest float64 may overflow; these rows are rejected below.
    with np.errstate(over="ignore", under="ignore"):
        totals = rows.sum(axis=1)
    wrong = np.flatnonzero((np.abs(totals - 1) > SUM_TOLERANCE) & ~zero)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"matrix[{row}]",
            "does not sum to 1",
            value=Total(totals[row]),
            bound=f"within {SUM_TOLERANCE} of 1",
            remedy="rows are current states, columns are next states; normalise each row",
        )
    if ends:
        # Adding 0.0 replaces −0.0 by 0.0.
        rows = rows + 0.0
        read_only(rows)
    return rows
