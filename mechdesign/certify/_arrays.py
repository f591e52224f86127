"""Checked, read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def as_floats(values: ArrayLike, path: str, axes: int, *, infinite: bool = False) -> Floats:
    """Return a read-only float64 array of `axes` axes with entries >= 0, finite ones unless `infinite` is set."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise InputError(path, f"holds {raw.dtype}", bound="an array of real numbers")
    if raw.ndim != axes:
        raise InputError(path, f"has {raw.ndim} axes", value=raw.shape, bound=f"an array of {axes} axes")
    good = raw >= 0 if infinite else np.isfinite(raw) & (raw >= 0)
    _require(good, raw, path, "not negative and not NaN" if infinite else "finite and not negative")
    return _frozen(raw, np.dtype(np.float64))


def as_integers(values: ArrayLike, path: str, axes: int) -> Integers:
    """Return a read-only int64 array of `axes` axes with entries >= 0."""
    raw = np.asarray(values)
    if raw.size == 0 and raw.dtype.kind == "f":
        raw = raw.astype(np.int64)
    if raw.dtype.kind not in "iu":
        raise InputError(path, f"holds {raw.dtype}", bound="an array of integers")
    if raw.ndim != axes:
        raise InputError(path, f"has {raw.ndim} axes", value=raw.shape, bound=f"an array of {axes} axes")
    _require((raw >= 0) & (raw <= np.iinfo(np.int64).max), raw, path, "an integer between 0 and 2**63 - 1")
    return _frozen(raw, np.dtype(np.int64))


def require_below(indices: Integers, limit: int, path: str) -> None:
    """Raise `InputError` naming the first of `indices` that is not below `limit`."""
    _require(indices < limit, indices, path, f"an index between 0 and {limit - 1}")


def require_same_length(path: str, **arrays: NDArray[Any]) -> None:
    """Raise `InputError` unless all arrays, given by name, have the same length."""
    if len({len(array) for array in arrays.values()}) > 1:
        found = {name: len(array) for name, array in arrays.items()}
        raise InputError(path, "has arrays of different lengths", value=found, bound="of one length")


def _require(good: NDArray[np.bool_], array: NDArray[Any], path: str, bound: str) -> None:
    if good.all():
        return
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    place = ",".join(str(int(position)) for position in index)
    raise InputError(f"{path}[{place}]", "is not accepted", value=array[index].item(), bound=bound)


def _frozen(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a read-only array in C order: `array` itself where nobody can write to it, a copy otherwise."""
    if array.dtype == dtype and array.base is None and not array.flags.writeable and array.flags.c_contiguous:
        return array
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    copy.setflags(write=False)
    return copy
