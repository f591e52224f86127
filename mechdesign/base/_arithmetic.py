"""The arithmetic that this package computes in: its own, whatever the caller has set for the thread."""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")

_TRAPS = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
_DECIMAL = decimal.Context(28, decimal.ROUND_HALF_EVEN, -999_999, 999_999, 1, 0, [], _TRAPS)


def decimals(digits: int, rounding: str = decimal.ROUND_HALF_EVEN) -> decimal.Context:
    """Return a context with so many digits and all exponents there are; the caller's defaults have no part in it.

    >>> str(decimals(3, decimal.ROUND_CEILING).divide(decimal.Decimal(2), decimal.Decimal(3)))
    '0.667'
    """
    return decimal.Context(digits, rounding, decimal.MIN_EMIN, decimal.MAX_EMAX, 1, 0, [], _TRAPS)


@contextmanager
def own_arithmetic() -> Iterator[None]:
    """Compute in the defaults of NumPy and of `decimal` in the block: what is too small for a float becomes zero.

    >>> import numpy as np
    >>> with np.errstate(all="raise"), own_arithmetic():
    ...     float(np.exp(np.float64(-800)))
    0.0
    """
    with (
        np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
        decimal.localcontext(_DECIMAL),
    ):
        yield


def in_own_arithmetic(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function compute in `own_arithmetic`: a door of the package, through which callers come."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **keywords: _P.kwargs) -> _R:
        with own_arithmetic():
            return function(*args, **keywords)

    return wrapper
