"""Warnings of this package: each thread and task can suppress or collect them.

The filters of `warnings` belong to the whole process: a change in one thread would affect all others.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mechdesign.base import _arithmetic as arithmetic

_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())
_collected: ContextVar[tuple[tuple[type[Warning], ...], list[Warning]] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Warn as `warnings.warn` does, unless warnings of this category are suppressed or collected here."""
    if issubclass(category, _silenced.get()):
        return
    collecting = _collected.get()
    if collecting is not None and issubclass(category, collecting[0]):
        collecting[1].append(category(message))
        return
    warnings.warn(message, category, stacklevel=_level(stacklevel))


def _level(stacklevel: int) -> int:
    """Return the stack level of a caller, as seen from `warn`; wrappers of `in_own_arithmetic` are not counted."""
    frame, level = sys._getframe(2), 2
    while stacklevel > 1 and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
        stacklevel -= frame.f_code.co_filename != arithmetic.__file__
    return level


@contextmanager
def suppress_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Suppress warnings of these categories in the block.

    >>> with suppress_warnings(UserWarning):
    ...     warn("said before", UserWarning)
    """
    token = _silenced.set((*_silenced.get(), *categories))
    try:
        yield
    finally:
        _silenced.reset(token)


@contextmanager
def collect_warnings(*categories: type[Warning]) -> Iterator[list[Warning]]:
    """Collect warnings of these categories in the block instead of showing them.

    >>> with collect_warnings(UserWarning) as found:
    ...     warn("twice", UserWarning)
    >>> [str(each) for each in found]
    ['twice']
    """
    found: list[Warning] = []
    token = _collected.set((categories, found))
    try:
        yield found
    finally:
        _collected.reset(token)
