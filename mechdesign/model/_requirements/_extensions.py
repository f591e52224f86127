"""Whether a kind of requirement that is not known is looked for in the packages that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EXTENSIONS = "mechdesign.requirements"


class _Search:
    """Whether extensions were looked for: once is enough, however many names are not known."""

    begun = False


_SEARCH: ContextVar[_Search | None] = ContextVar("search", default=None)


@contextmanager
def finding_extensions(finds: bool = True) -> Iterator[None]:
    """Load the kinds of other packages in the block, or do not, as soon as one is named that is not known.

    It holds for the thread, or task, that it is entered in.
    """
    before = _SEARCH.set(_Search() if finds else None)
    try:
        yield
    finally:
        _SEARCH.reset(before)


def begin_search() -> bool:
    """Tell whether extensions are to be loaded now: they are wanted, and were not looked for in this block."""
    search = _SEARCH.get()
    if search is None or search.begun:
        return False
    search.begun = True
    return True
