"""Checks of transition matrices, and properties of their rows."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base._arrays import SUM_TOLERANCE, Floats, Integers, Singles, as_floats, read_only, require
from mechdesign.base._check import as_number, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import opened
from mechdesign.certify._exact import exact, float_down, float_up
from mechdesign.model._markov import CLOSED, ROW_OF_ZEROS

_REMEDY = "rows are the state that is known, columns the state before or after it; normalise each row"


def as_transition(matrix: Any, path: str, unknown: bool = False) -> Floats | sparse.csr_array:
    """Return a row-stochastic matrix of shape (n, n): read-only float64, or canonical CSR if it was sparse.

    Each row must be finite and nonnegative, and must sum to 1 within 1e-9. If `unknown` is true, some but not all rows
    may be zero. A row is divided by its sum if the sum deviates from 1 by more than the rounding of its entries. Raises
    `InputError` naming the row.
    """
    if sparse.issparse(matrix):
        return _as_sparse(matrix, path, unknown)
    array = as_floats(opened(matrix, path).settled(path).values, path, "(n, n)")
    _require_square(array.shape, path)
    require(
        np.isfinite(array) & (array >= 0),
        array,
        path,
        "a finite number >= 0",
        "probabilities are never negative: check the row, or clip and normalise it",
    )
    # Adding zero turns −0 into +0, so that equal matrices have equal bytes.
    array = array + 0.0
    for row, scale in enumerate(_row_scales([array_row.tolist() for array_row in array], path, unknown)):
        if scale != 1.0:
            array[row] /= scale
    return read_only(array)


def _as_sparse(matrix: Any, path: str, unknown: bool) -> sparse.csr_array:
    array = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    _require_square(array.shape, path)
    array.sum_duplicates()
    array.eliminate_zeros()
    array.sort_indices()
    wrong = np.flatnonzero(~(np.isfinite(array.data) & (array.data >= 0)))
    if wrong.size:
        at = int(wrong[0])
        row = int(np.searchsorted(array.indptr, at, side="right")) - 1
        raise InputError(
            f"{path}[{row},{int(array.indices[at])}]",
            "is not accepted",
            value=float(array.data[at]),
            bound="a finite number >= 0",
            remedy="probabilities are never negative: check the row, or clip and normalise it",
        )
    ends = array.indptr
    rows = [array.data[ends[row] : ends[row + 1]].tolist() for row in range(array.shape[0])]
    scales = np.array(_row_scales(rows, path, unknown))
    array.data /= np.repeat(scales, np.diff(ends))
    return array


def _require_square(shape: tuple[int, ...], path: str) -> None:
    if shape[0] != shape[1] or shape[0] == 0:
        raise InputError(
            path,
            "is not a square matrix",
            value=shape,
            bound="of shape (n, n), n >= 1",
            remedy="give one row and one column for each state, without labels",
        )


def _row_scales(rows: list[list[float]], path: str, unknown: bool) -> list[float]:
    """Return the divisor of each row: its sum, or 1 for unknown rows and sums of 1 up to the rounding of entries."""
    scales = []
    if unknown and not any(map(any, rows)):
        raise InputError(path, "has no known row", bound="at least one row that sums to 1")
    for index, row in enumerate(rows):
        try:
            total = math.fsum(row)
        except OverflowError:
            total = math.inf
        if total == 0 and unknown:
            scales.append(1.0)
            continue
        if total == 0:
            remedy = f"{CLOSED}, or use LossFunction, which reads a row of zeros as any row"
            raise InputError(f"{path}[{index}]", ROW_OF_ZEROS, bound="a row that sums to 1", remedy=remedy)
        if not abs(total - 1) <= SUM_TOLERANCE:
            raise InputError(
                f"{path}[{index}]",
                "does not sum to 1",
                value=total,
                bound=f"within {SUM_TOLERANCE} of 1",
                remedy=_REMEDY,
            )
        scales.append(total if abs(total - 1) > 2.0**-53 * (len(row) + 4) else 1.0)
    return scales


def matrix_digest(matrix: Floats | sparse.csr_array) -> str:
    """Return the SHA-256, in hexadecimal, of a checked matrix."""
    state = hashlib.sha256()
    if sparse.issparse(matrix):
        state.update(f"sparse {matrix.shape[0]}\n".encode())
        state.update(matrix.indptr.astype("<i8").tobytes())
        state.update(matrix.indices.astype("<i8").tobytes())
        state.update(matrix.data.astype("<f8").tobytes())
    else:
        state.update(f"dense {matrix.shape[0]}\n".encode())
        state.update(np.ascontiguousarray(matrix, dtype="<f8").tobytes())
    return state.hexdigest()


def unknown_rows(matrix: Floats | sparse.csr_array) -> Integers:
    """Return the rows of zeros of a checked matrix, ascending, int64."""
    entries = np.diff(matrix.indptr) if sparse.issparse(matrix) else matrix.any(axis=1)
    return np.flatnonzero(entries == 0).astype(np.int64)


def distinct_rows(matrix: Floats | sparse.csr_array) -> Integers:
    """Return the index of the first of each set of identical rows, in order."""
    first: dict[bytes, int] = {}
    for row in range(matrix.shape[0]):
        if sparse.issparse(matrix):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            key = matrix.indices[part].astype("<i8").tobytes() + b"|" + matrix.data[part].tobytes()
        else:
            key = matrix[row].tobytes()
        first.setdefault(hashlib.sha256(key).digest(), row)
    return np.array(list(first.values()), dtype=np.int64)


def disjoint_rows(matrix: Floats | sparse.csr_array) -> tuple[int, int] | None:
    """Return two rows with disjoint supports, or None; such rows make L(α) = α (Theorem 7 generalised).

    A sparse matrix is searched row by row. For each row, its columns list the rows that share a column with it. A row
    that is missing from these lists is disjoint from the searched row. A row with an entry in a column without zeros
    overlaps every row, and needs no search.
    """
    if not sparse.issparse(matrix):
        positive = np.asarray(matrix) > 0
        if positive.all(axis=0).any():
            # All rows have a positive entry in one column.
            return None
        pattern = positive.astype(np.float32)
        common: Singles = pattern @ pattern.T
        at = int(np.argmin(common))
        row, other = divmod(at, matrix.shape[0])
        return (row, other) if common[row, other] == 0 else None
    n = matrix.shape[0]
    columns = matrix.tocsc()
    per_column = np.diff(columns.indptr)
    full = per_column == n
    for row in np.argsort(np.diff(matrix.indptr), kind="stable").tolist():
        own = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if full[own].any():
            continue
        reached = np.zeros(n, dtype=bool)
        for column in own.tolist():
            reached[columns.indices[columns.indptr[column] : columns.indptr[column + 1]]] = True
        if not reached.all():
            return row, int(np.argmin(reached))
    return None


# Exact types of numbers, whose conversion to float may round.
_EXACT = (int, Fraction, Decimal)


def as_alphas(alpha: ArrayLike) -> Floats:
    """Return numbers α ≥ 0 or infinity as float64 of any shape; raise `InputError` for the first invalid one."""
    bound = "numbers >= 0"
    require_unmasked(alpha, "alpha")
    try:
        values = np.asarray(alpha)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"an array of {values.dtype} was given")
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("alpha", "is not an array of numbers", value=alpha, bound=bound) from error
    good = values >= 0
    if not good.all():
        raise InputError("alpha", "is not accepted", value=float(values[~good].flat[0]), bound="a number >= 0")
    return values


def as_not_negative(value: float, path: str) -> float:
    """Return a finite number ≥ 0 rounded up to a float; raise `InputError` for other values."""
    number = as_number(value, path)
    if number < 0:
        raise InputError(path, "is negative", value=number, bound="a number >= 0")
    return round_up(exact(value, path)) if isinstance(value, _EXACT) else number


def as_target(alpha: float) -> float:
    """Return the leakage limit of each release, a finite number > 0, rounded down to a float; or raise `InputError`."""
    number = as_number(alpha, "alpha")
    if number <= 0:
        raise InputError(
            "alpha",
            "leaves no budget",
            value=number,
            bound="a number > 0",
            remedy="alpha is the largest leakage of each release in nats, such as 1",
        )
    return round_down(exact(alpha, "alpha")) if isinstance(alpha, _EXACT) else number


def round_up(number: Fraction) -> float:
    """Return the least float whose decimal is at least a fraction ≥ 0; `math.inf` if no float is large enough.

    >>> round_up(3 * Fraction("0.1"))
    0.3
    """
    return float_up(Fraction(number))


def round_down(number: Fraction) -> float:
    """Return the largest float whose decimal is at most a fraction ≥ 0."""
    return float_down(Fraction(number))
