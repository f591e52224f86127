"""Chains with unknown rows: rows of zeros, for states without observed steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arrays import SUM_TOLERANCE, Floats, Integers, as_nonnegative
from mechdesign.base._errors import InputError
from mechdesign.base._names import Names, settled

Ends = Literal["any", "stay"]

ENDS: tuple[Ends, ...] = ("any", "stay")

ROW_OF_ZEROS = "is a row of zeros: no observed step leaves the state (or, in a backward matrix, enters it)"

CLOSED = 'count steps with ends = "stay", which puts a 1 on the diagonal'


@dataclass(frozen=True, eq=False, repr=False)
class OpenChain:
    """A transition matrix with unknown rows, which are rows of zeros.

    Functions that compute leakage read a row of zeros as any row. Functions that need a Markov chain reject it.

    Attributes:
        matrix: Float64 of shape (n, n), read-only: a row of zeros for each state without observed steps, and a
            distribution for each other state. Steps leave a state in a forward matrix, and enter it in a backward
            matrix.
        names: The names of the states, if a frame was given; otherwise empty.

    Raises:
        InputError: No row is unknown, all rows are unknown, or a known row is not a distribution.

    >>> OpenChain([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0, 0, 0]])
    OpenChain(3 states, 1 of them with an unknown row)
    """

    matrix: Floats
    names: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check the known rows, and freeze the matrix."""
        given = settled(self.matrix, "matrix", self.names)
        object.__setattr__(self, "matrix", as_rows(given.values, unknown=True))
        object.__setattr__(self, "names", given.rows)

    @property
    def unknown(self) -> Integers:
        """The states with unknown rows, ascending, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1)).astype(np.int64)

    @property
    def size(self) -> int:
        """The number n of states."""
        return len(self.matrix)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"OpenChain({self.size} states, {len(self.unknown)} of them with an unknown row)"

    def stationary(self) -> NoReturn:
        """Raise `InputError`: unknown rows determine no stationary distribution.

        Raises:
            InputError: Always.
        """
        raise self._refusal()

    def reverse(self, initial: ArrayLike) -> NoReturn:
        """Raise `InputError`: a chain with unknown rows cannot be reversed. Count the backward chain instead.

        Args:
            initial: The distribution of the previous state, (n,).

        Raises:
            InputError: Always.
        """
        raise self._refusal()

    def _refusal(self) -> InputError:
        unknown = f"has {len(self.unknown)} unknown rows of {self.size}"
        return InputError("matrix", unknown, bound="a row for each state", remedy=CLOSED)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # If a copy is requested, return a writable copy instead of the frozen array.
        return np.array(self.matrix, dtype=dtype) if copy else np.asarray(self.matrix, dtype=dtype)


def as_ends(ends: str) -> Ends:
    """Return one of `ENDS`; raise `InputError` for anything else."""
    for known in ENDS:
        if isinstance(ends, str) and ends == known:
            return known
    raise InputError("ends", "is not known", value=ends, bound='"any" or "stay"')


def as_rows(matrix: ArrayLike, unknown: bool = False) -> Floats:
    """Return a read-only float64 matrix (n, n) whose rows are distributions.

    If `unknown` is true, some but not all rows must be zero. Raises InputError for the first invalid row.
    """
    rows = as_nonnegative(matrix, "matrix", 2)
    if rows.shape[0] != rows.shape[1] or rows.size == 0:
        raise InputError("matrix", "has the wrong shape", value=rows.shape, bound="of shape (n, n), n >= 1")
    zero = ~rows.any(axis=1)
    if unknown and (zero.all() or not zero.any()):
        problem = "has no known row" if zero.all() else "has no unknown row"
        raise InputError("matrix", problem, bound="some rows of zeros, and some that sum to 1")
    if not unknown and zero.any():
        raise InputError(
            f"matrix[{int(np.argmax(zero))}]",
            f"{ROW_OF_ZEROS} ({int(zero.sum())} of {len(rows)} rows)",
            bound="a row that sums to 1",
            remedy=f"{CLOSED}; functions that compute leakage read a row of zeros as any row",
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
            value=totals[row],
            bound=f"within {SUM_TOLERANCE} of 1",
            remedy="rows are current states, columns are next states; normalise each row",
        )
    return rows
