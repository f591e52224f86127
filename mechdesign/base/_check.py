"""Plain numbers, choices and kinds, checked: one sentence for each fault."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base._errors import InputError

# What users state (ε, factors, floors, radii, counts, coordinates) is 0 or between these, far from where floats end.
# The verifier itself reads numbers between 1e-400 and 1e400. docs/limits.md lists all limits.
LEAST_NUMBER = 1e-100


LARGEST_NUMBER = 1e100


# Sums of counts up to this size cannot overflow.
LARGEST_COUNT = LARGEST_NUMBER


def require_unmasked(values: object, path: str) -> None:
    """Raise `InputError` where `values` is a masked array or holds one: the values under a mask would pass for given.

    Lists, tuples and arrays of objects are searched at any depth, and mappings by their values.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(
            path,
            "is a masked array, or holds one",
            value=f"numpy.ma.{type(values).__name__}",
            bound="an array without a mask",
            remedy="leave masked entries out with compressed(), or say what they are with filled(value)",
        )
    inside: Iterable[object] = ()
    if isinstance(values, list | tuple):
        inside = values
    elif isinstance(values, Mapping):
        inside = values.values()
    elif isinstance(values, np.ndarray) and values.dtype.kind == "O":
        inside = values.ravel().tolist()
    # Plain numbers and texts hold nothing: there may be millions of them.
    if all(issubclass(kind, int | float | str | np.generic) for kind in set(map(type, inside))):
        return
    for value in inside:
        require_unmasked(value, path)


def require_kind(value: object, kind: Any, path: str, bound: str) -> None:
    """Raise `InputError` unless `value` is an instance of `kind`, a class, a union or a tuple of them.

    What was found is named by its class: a value of another kind may be anything, and large.
    """
    if not isinstance(value, kind):
        raise InputError(path, "is of another kind", value=type(value).__name__, bound=bound)


def as_path(value: object, path: str, bound: str = "a path: a text or a pathlib.Path") -> Path:
    """Return a path that was handed over as a text or a path; raise `InputError` for anything else.

    >>> as_path("channel.npz", "file").name
    'channel.npz'
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str) or "\0" in found:
        raise InputError(path, "is no path", value=type(value).__name__, bound=bound)
    return Path(found)


def as_list(values: Any, path: str, bound: str) -> list[Any]:
    """Return what is iterated over as a list; raise `InputError` for texts, and for what has no items."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(path, "is no list", value=type(values).__name__, bound=bound)
    return list(values)


def as_integer(value: object, path: str, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`; raise `InputError` otherwise."""
    require_unmasked(value, path)
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "is not a whole number", value=value, bound=f"an integer >= {minimum}") from error
    if number < minimum:
        raise InputError(path, "is too small", value=number, bound=f"an integer >= {minimum}")
    return number


def as_truth(value: object, path: str) -> bool:
    """Return a truth value; raise `InputError` for anything else: a text such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(path, "is not a truth value", value=value, bound="True or False")
    return bool(value)


def as_number(value: object, path: str) -> float:
    """Return `value` as a finite float; raise `InputError` otherwise."""
    require_unmasked(value, path)
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(path, "is not a number", value=value, bound="a finite number") from error
    if not math.isfinite(number):
        raise InputError(path, "is not finite", value=number, bound="a finite number")
    return number


def as_positive(value: object, path: str) -> float:
    """Return `value` as a finite float above 0; raise `InputError` otherwise."""
    number = as_number(value, path)
    if number <= 0:
        raise InputError(path, "is not positive", value=number, bound="> 0")
    return number


def as_smoothing(value: object, path: str) -> float:
    """Return a smoothing constant: a number from 0 to `LARGEST_COUNT`."""
    number = as_number(value, path)
    if not 0 <= number <= LARGEST_COUNT:
        raise InputError(path, "is out of range", value=number, bound=f"between 0 and {LARGEST_COUNT}")
    return number


def as_generator(rng: np.random.Generator | int | None, path: str = "rng") -> np.random.Generator:
    """Return a NumPy generator: `rng` itself, one from a seed, or without it one that the operating system seeds."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InputError(
            path, "is not a random generator", value=rng, bound="a numpy.random.Generator or a seed >= 0"
        ) from error


def renamed(error: InputError, path: str, own: str) -> InputError:
    """Return an error about `path` that was found under another name, `own`, further down."""
    place = path + error.path.removeprefix(own)
    return InputError(place, error.problem, value=error.value, bound=error.bound, remedy=error.remedy)
