"""Settings of the whole process: changed once for all users that overlap, and put back by the last one.

Who restores what it found would, beside another user in another thread, restore what that one had set. So users are
counted. No lock is held while a setting is in use, so that nobody waits for another one's work. After a fork the new
process has locks of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar

__all__ = ["Keyed", "Wanted", "ignore_warnings"]

Key = TypeVar("Key", bound=Hashable)
_MISSING = object()


class _Lock:
    """A lock that a forked process gets anew: the thread that held the old one does not run there."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class Wanted:
    """A number of the process that users want at most: the least of theirs holds, and what was before in the end.

    `limit` sets the number for the first user and returns what puts back what was before; `change` sets another one.
    """

    def __init__(self, limit: Callable[[int], Callable[[], None]], change: Callable[[int], None]) -> None:
        self._limit, self._change = limit, change
        self._lock, self._wanted = _Lock(), list[int]()
        self._undo: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def at_most(self, number: int) -> Iterator[None]:
        """Let the number be at most this one in the block."""
        with self._lock:
            if not self._wanted:
                self._undo = self._limit(number)
            elif number < min(self._wanted):
                self._change(number)
            self._wanted.append(number)
        try:
            yield
        finally:
            with self._lock:
                self._wanted.remove(number)
                if not self._wanted:
                    self._undo()
                else:
                    self._change(min(self._wanted))


class Keyed(Generic[Key]):
    """Settings with names, as `matplotlib.rcParams` has them.

    The first user of a setting sets it, and the last one puts back what was before, unless it was changed by others
    meanwhile. Users that overlap should want the same values: those of the first one hold.
    """

    def __init__(self, settings: Callable[[], Any]) -> None:
        self._settings = settings
        self._lock, self._users = _Lock(), Counter[Key]()
        self._before: dict[Key, Any] = {}
        self._set: dict[Key, Any] = {}

    @contextlib.contextmanager
    def set_to(self, wanted: Callable[[Mapping[Key, Any]], Mapping[Key, Any]]) -> Iterator[None]:
        """Set what `wanted` returns in the block, given what users have set already."""
        with self._lock:
            found, asked = self._settings(), dict(wanted(self._set))
            for key, value in asked.items():
                if not self._users[key]:
                    self._before[key] = found[key]
                    found[key] = value
                    self._set[key] = found[key]
            self._users.update(asked.keys())
        try:
            yield
        finally:
            with self._lock:
                found = self._settings()
                self._users.subtract(asked.keys())
                for key in asked:
                    if not self._users[key]:
                        before, ours = self._before.pop(key), self._set.pop(key)
                        if found[key] == ours:
                            found[key] = before

    def before(self, key: Key) -> Any:
        """Return what a setting is outside of all users."""
        with self._lock:
            known = self._before.get(key, _MISSING)
            return self._settings()[key] if known is _MISSING else known


_FILTERS = _Lock()
_IGNORED: Counter[tuple[Any, ...]] = Counter()


@contextlib.contextmanager
def ignore_warnings(*, message: str = "", module: str = "") -> Iterator[None]:
    """Ignore warnings of other packages in the block, in all threads: by the start of the message, or the module.

    One filter is put before those there are, and taken away by the last user. `warnings.catch_warnings` would put back
    a whole list, and with it what other threads had set.
    """
    matched = re.compile(message, re.IGNORECASE) if message else None
    item = ("ignore", matched, Warning, re.compile(module) if module else None, 0)
    with _FILTERS:
        if not _IGNORED[item]:
            warnings.filters.insert(0, item)  # type: ignore[attr-defined]
        _IGNORED[item] += 1
    try:
        yield
    finally:
        with _FILTERS:
            _IGNORED[item] -= 1
            if not _IGNORED[item]:
                # A caller may have put back a list without it.
                with contextlib.suppress(ValueError):
                    warnings.filters.remove(item)  # type: ignore[attr-defined]
