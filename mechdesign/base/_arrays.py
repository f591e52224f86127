"""Conversion of user input to checked, read-only NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, named

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Singles = NDArray[np.float32]

T = TypeVar("T", bound=np.generic)

# Largest accepted deviation of a sum of probabilities from 1: far above rounding errors, far below typing errors.
SUM_TOLERANCE = 1e-9


# Maximum number of entries of a sparse matrix that is converted to a dense matrix: 1 GiB of float64.
LARGEST_MATRIX = 2**27

# Maximum number of cells; no computation has enough memory for more cells. The centre of a cell takes 16 bytes.
LARGEST_GRID = 10**7


def read_only(array: NDArray[T]) -> NDArray[T]:
    """Make `array` read-only and return it, so that an object that contains it cannot change."""
    array.setflags(write=False)
    return array


def as_floats(
    values: ArrayLike,
    path: str,
    shape: str,
    rows: Labels | None = None,
    columns: Labels | None = None,
    remedy: str = "",
) -> Floats:
    """Return a read-only float64 copy of `values`, with -0.0 replaced by 0.0.

    Args:
        values: Real numbers; infinities and NaN are accepted.
        path: The path of the argument, for messages.
        shape: The expected shape, such as ``"(n, d)"``; only the number of axes is checked.
        rows: The labels of the rows, as in `mechdesign.base._names.named`.
        columns: The labels of the columns.
        remedy: What to do about another number of axes.

    Returns:
        The array.

    Raises:
        InputError: The values are not real numbers, or the number of axes differs.

    >>> as_floats([1, 2], "weights", "(n,)")
    array([1., 2.])
    """
    array = np.array(named(values, path, rows, columns), dtype=np.float64, order="C", copy=True)
    axes = len([name for name in shape.strip("()").split(",") if name.strip()])
    if array.ndim != axes:
        bound = f"an array of shape {shape}"
        raise InputError(path, f"has {array.ndim} axes", value=array.shape, bound=bound, remedy=remedy)
    _unsign_zeros(array)
    return read_only(array)


def require(good: NDArray[np.bool_], array: NDArray[Any], path: str, bound: str, remedy: str = "") -> None:
    """Raise an `InputError` that names the first entry of `array` where `good` is false."""
    if good.all():
        return
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    place = ",".join(str(int(position)) for position in index)
    raise InputError(f"{path}[{place}]", "is not accepted", value=array[index].item(), bound=bound, remedy=remedy)


def as_nonnegative(
    values: ArrayLike,
    path: str,
    axes: int,
    *,
    infinite: bool = False,
    rows: Labels | None = None,
    columns: Labels | None = None,
) -> Floats:
    """Return a read-only float64 array with `axes` axes and entries >= 0, finite unless `infinite` is set.

    A read-only array is returned unchanged; other arrays are copied. -0.0 becomes 0.0, so that quotients are not
    negative.
    """
    raw = named(values, path, rows, columns)
    if raw.ndim != axes:
        raise InputError(path, f"has {raw.ndim} axes", value=raw.shape, bound=f"an array of {axes} axes")
    good = raw >= 0 if infinite else np.isfinite(raw) & (raw >= 0)
    require(good, raw, path, "not negative and not NaN" if infinite else "finite and not negative")
    return _freeze(raw, np.dtype(np.float64))


def as_whole_numbers(values: ArrayLike, path: str, axes: int, *, minimum: int = 0) -> Integers:
    """Return a read-only int64 array.

    Args:
        values: Integers; a read-only array is returned unchanged, and other arrays are copied.
        path: The path of the argument, for messages.
        axes: Number of axes.
        minimum: The least accepted entry, at least 0.

    Returns:
        The array.

    Raises:
        InputError: An entry is not an integer or out of range, or the number of axes differs.

    >>> as_whole_numbers([1, 2], "counts", 1)
    array([1, 2])
    """
    raw = named(values, path)
    if raw.size == 0 and raw.dtype.kind == "f":
        raw = raw.astype(np.int64)
    if raw.dtype.kind not in "iu":
        raise InputError(path, f"holds {raw.dtype}", bound="an array of integers")
    if raw.ndim != axes:
        raise InputError(path, f"has {raw.ndim} axes", value=raw.shape, bound=f"an array of {axes} axes")
    good = (raw >= minimum) & (raw <= np.iinfo(np.int64).max)
    require(good, raw, path, f"an integer between {minimum} and 2**63 - 1")
    return _freeze(raw, np.dtype(np.int64))


def as_distribution(values: ArrayLike, path: str, remedy: str = "") -> Floats:
    """Return a read-only float64 array of probabilities.

    Args:
        values: Probabilities (n,) >= 0 whose sum is within `SUM_TOLERANCE` of 1.
        path: The path of the argument, for messages.
        remedy: The suggested remedy for another sum.

    Returns:
        The array (n,).

    Raises:
        InputError: An entry is negative or not finite, or the sum differs from 1.

    >>> as_distribution([0.5, 0.5], "prior")
    array([0.5, 0.5])
    """
    array = as_nonnegative(values, path, 1)
    total = math.fsum(array)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(path, "does not sum to 1", value=total, bound="within 1e-9 of 1", remedy=remedy)
    return array


def require_below(indices: Integers, limit: int, path: str) -> None:
    """Raise `InputError` for the first of `indices` that is not below `limit`."""
    require(indices < limit, indices, path, f"an index between 0 and {limit - 1}")


def require_same_length(path: str, **arrays: NDArray[Any]) -> None:
    """Raise `InputError` unless all named arrays have the same length."""
    if len({len(array) for array in arrays.values()}) > 1:
        found = {name: len(array) for name, array in arrays.items()}
        raise InputError(path, "has arrays of different lengths", value=found, bound="of one length")


def as_budgets(epsilons: ArrayLike, path: str = "epsilons") -> Floats:
    """Return budgets as a read-only array of shape (T,), T ≥ 1; raise `InputError` for the first invalid budget."""
    pairs = "here a budget is a number; leakage.temporal takes bounds of pairs, a list of matrices"
    budgets = as_floats(epsilons, path, "(T,)", remedy=pairs)
    if budgets.size == 0:
        raise InputError(path, "are empty", bound="at least one budget")
    good = np.isfinite(budgets) & (budgets >= 0)
    require(good, budgets, path, "a finite number >= 0", "a budget is the privacy loss ε of one release, in nats")
    return budgets


def as_indices(values: ArrayLike, path: str, n: int) -> Integers:
    """Return a one-dimensional int64 array of indices in 0..n-1; raise `InputError` for the first invalid entry."""
    raw = named(values, path)
    if raw.ndim != 1:
        raise InputError(path, f"has {raw.ndim} axes", value=raw.shape, bound="an array of shape (k,)")
    if raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    if raw.dtype.kind not in "iu":
        raise InputError(path, f"holds {raw.dtype}", bound="an array of integers", remedy=_to_integers(raw))
    require((raw >= 0) & (raw < n), raw, path, f"an index between 0 and {n - 1}")
    return raw.astype(np.int64)


def _to_integers(raw: NDArray[Any]) -> str:
    """Return the remedy for entries that are not indices: a mask becomes positions, and floats become integers."""
    if raw.dtype.kind == "b":
        return "use numpy.flatnonzero on a mask"
    whole = raw.dtype.kind == "f" and bool((raw == np.floor(raw)).all())
    return "convert it with astype(int)" if whole else "give positions, which start at 0"


def as_labels(values: Iterable[Hashable], path: str, rows: Labels | None = None) -> list[Hashable]:
    """Return a list of comparable values, in the order of labels of rows.

    NaN is refused, since every NaN would be a new category.
    """
    if isinstance(values, str | bytes):
        raise InputError(path, "is one text", value=values, bound="a list of values")
    require_unmasked(values, path)
    try:
        listed: Any = named(values, path, rows, dtype=object) if hasattr(values, "__array__") else values
        found = list(listed.tolist() if isinstance(listed, np.ndarray) else listed)
    except TypeError as error:
        raise InputError(
            path, "is not a list of values", value=type(values).__name__, bound="a list of values"
        ) from error
    for index, value in enumerate(found):
        try:
            hash(value)
            if value != value:
                raise TypeError
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}[{index}]", "cannot be compared", value=value, bound="a text or number") from error
    if not found:
        raise InputError(path, "are empty", bound="at least one value")
    return found


def _freeze(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a read-only array in C order: `array` itself if it is read-only, a copy otherwise."""
    fixed = array.dtype == dtype and array.base is None and not array.flags.writeable and array.flags.c_contiguous
    if fixed and not (dtype.kind == "f" and np.signbit(array).any()):
        return array
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    _unsign_zeros(copy)
    return read_only(copy)


def _unsign_zeros(array: NDArray[Any]) -> None:
    """Replace -0.0 by 0.0 in an array of floats."""
    if array.dtype.kind == "f":
        array += 0.0
