"""Controls whether unknown kinds of requirements are searched for in installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EXTENSIONS = "mechdesign.requirements"


class _ExtensionSearch:
    """State of one search: extensions are loaded at most once, for any number of unknown names."""

    begun = False


_SEARCH: ContextVar[_ExtensionSearch | None] = ContextVar("search", default=None)


@contextmanager
def finding_extensions(finds: bool = True) -> Iterator[None]:
    """Return a context in which an unknown kind of requirement loads the kinds of installed packages, or does not.

    The setting applies to the current thread or task.

    Args:
        finds: Whether to load extensions.

    Returns:
        A context manager.

    >>> with finding_extensions(False):
    ...     begin_search()
    False
    """
    before = _SEARCH.set(_ExtensionSearch() if finds else None)
    try:
        yield
    finally:
        _SEARCH.reset(before)


def begin_search() -> bool:
    """Return whether the setting allows loading extensions and this block has not loaded them yet."""
    search = _SEARCH.get()
    if search is None or search.begun:
        return False
    search.begun = True
    return True
