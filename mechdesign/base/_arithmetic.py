"""The arithmetic settings of this package, independent of the caller's settings for the thread."""

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
    """Return a decimal context with the given digits and the full range of exponents; it ignores the caller's defaults.

    >>> str(decimals(3, decimal.ROUND_CEILING).divide(decimal.Decimal(2), decimal.Decimal(3)))
    '0.667'
    """
    return decimal.Context(digits, rounding, decimal.MIN_EMIN, decimal.MAX_EMAX, 1, 0, [], _TRAPS)


@contextmanager
def own_arithmetic() -> Iterator[None]:
    """Use the default settings of NumPy and `decimal` in the block: underflow gives zero.

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
    """Decorate a public function so that it runs in `own_arithmetic`."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **keywords: _P.kwargs) -> _R:
        with own_arithmetic():
            return function(*args, **keywords)

    return wrapper
