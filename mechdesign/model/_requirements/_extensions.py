"""The setting that makes unknown kinds of requirements load the kinds of installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EXTENSIONS = "mechdesign.requirements"


class _ExtensionSearch:
    """The state of one search, which loads extensions at most once for any number of unknown names."""

    begun = False


_SEARCH: ContextVar[_ExtensionSearch | None] = ContextVar("search", default=None)


@contextmanager
def finding_extensions(finds: bool = True) -> Iterator[None]:
    """Return a context that sets whether an unknown kind of requirement loads the kinds of installed packages.

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
    """Begin a search if the setting allows it and no search has begun in this context; return whether it began."""
    search = _SEARCH.get()
    if search is None or search.begun:
        return False
    search.begun = True
    return True
