"""Checks of plain numbers, choices and types; the error for each fault is one sentence."""

from __future__ import annotations

import difflib
import math
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base._errors import InputError

# Numbers from users (ε, factors, floors, radii, counts, coordinates) are 0 or in this range, far from overflow. The
# verifier itself accepts numbers between 1e-400 and 1e400. docs/trust/limits.md lists all limits.
LEAST_NUMBER = 1e-100


LARGEST_NUMBER = 1e100


# Sums of counts up to this size cannot overflow.
LARGEST_COUNT = LARGEST_NUMBER


def require_unmasked(values: object, path: str) -> None:
    """Raise `InputError` if `values` is or contains a masked array, whose masked values would be used as given.

    Lists, tuples, arrays of objects, and the values of mappings are searched at any depth.
    """
    # NumPy loads this module when it is first needed, and it takes 10 ms.
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        raise InputError(
            path,
            "is or contains a masked array",
            value=f"numpy.ma.{type(values).__name__}",
            bound="an array without a mask",
            remedy="remove masked entries with compressed(), or replace them with filled(value)",
        )
    inside: Iterable[object] = ()
    if isinstance(values, list | tuple):
        inside = values
    elif isinstance(values, Mapping):
        inside = values.values()
    elif isinstance(values, np.ndarray) and values.dtype.kind == "O":
        inside = values.ravel().tolist()
    # Skip numbers and texts: they contain no arrays, and there may be millions of them.
    if all(issubclass(kind, int | float | str | np.generic) for kind in set(map(type, inside))):
        return
    for value in inside:
        require_unmasked(value, path)


def require_kind(value: object, kind: Any, path: str, bound: str) -> None:
    """Raise `InputError` unless `value` is an instance of `kind`, a class, a union or a tuple of them.

    The message contains only the class of the value, as the value itself may be large.
    """
    if not isinstance(value, kind):
        raise InputError(path, "has another type", value=type(value).__name__, bound=bound)


def as_path(value: object, path: str) -> Path:
    """Return a path from a text or a path; raise `InputError` for anything else.

    >>> as_path("channel.npz", "file").name
    'channel.npz'
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str) or "\0" in found:
        bound = "a path: a text or a pathlib.Path"
        raise InputError(path, "is not a path", value=type(value).__name__, bound=bound)
    if not found:
        raise InputError(path, "is empty", bound='a path; "." is the current folder')
    return Path(found)


def as_list(values: Any, path: str, bound: str) -> list[Any]:
    """Return the items of an iterable as a list; raise `InputError` for texts, mappings, and sets without an order."""
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(path, "is not a list", value=type(values).__name__, bound=bound)
    return list(values)


def as_integer(value: object, path: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int from `minimum` to `maximum`; raise `InputError` otherwise."""
    require_unmasked(value, path)
    bound = f"an integer >= {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}"
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "is not a whole number", value=value, bound=bound) from error
    if number < minimum:
        raise InputError(path, "is too small", value=number, bound=bound)
    if maximum is not None and number > maximum:
        raise InputError(path, "is too large", value=number, bound=bound)
    return number


def as_truth(value: object, path: str) -> bool:
    """Return a truth value; raise `InputError` for anything else, such as the text "no", which Python takes as true."""
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


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a NumPy generator: `rng` itself, or a new generator with a given seed or a seed from the system."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InputError(
            "rng", "is not a random generator", value=rng, bound="a numpy.random.Generator or a seed >= 0"
        ) from error


def rename_path(error: InputError, path: str, own: str) -> InputError:
    """Return a copy of an error in whose path the prefix `own` is replaced by `path`."""
    place = path + error.path.removeprefix(own)
    return InputError(place, error.problem, value=error.value, bound=error.bound, remedy=error.remedy)


def require_name(name: object, known: Iterable[str], path: str) -> str:
    """Return a known name; for any other value raise the error of `unknown_name`."""
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    raise unknown_name(name, names, path)


def unknown_name(name: object, known: Sequence[str], path: str) -> InputError:
    """Return the error for a name that is not known, with the known names and the closest one."""
    return InputError(path, "is not known", value=name, bound=f"one of {', '.join(known)}", remedy=suggest(name, known))


def suggest(name: object, known: Sequence[str]) -> str:
    """Return a question with the most similar name, or "" if none is similar."""
    close = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"did you mean {close[0]}?" if close else ""
