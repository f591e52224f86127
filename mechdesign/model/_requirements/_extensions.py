"""A context in which unknown kinds of requirements are looked up in the extensions of installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EXTENSIONS = "mechdesign.requirements"


class _ExtensionSearch:
    """The state of one search: extensions are loaded at most once, even if several names are unknown."""

    begun = False


_SEARCH: ContextVar[_ExtensionSearch | None] = ContextVar("search", default=None)


@contextmanager
def finding_extensions(finds: bool = True) -> Iterator[None]:
    """Return a context that decides whether an unknown kind of requirement is looked up in installed packages.

    The decision applies only to the current thread or task.

    Args:
        finds: Whether to load the extensions of installed packages when a kind is unknown.

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
    """Begin a search if the context allows one and none has begun in it; return whether a search began."""
    search = _SEARCH.get()
    if search is None or search.begun:
        return False
    search.begun = True
    return True
