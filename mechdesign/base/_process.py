"""The process: its settings, and the programs that it starts.

Where Python is embedded or frozen, `sys.executable` is the application, and starting it would begin the application
anew. So nothing is sent to a child, and nothing that it says is read, before it has greeted; it is waited for with a
limit, and ended otherwise.

Who restores what it found would, beside another user in another thread, restore what that one had set. So users are
counted. No lock is held while a setting is in use, so that nobody waits for another one's work. After a fork the new
process has locks of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

from mechdesign.base._version import __version__

GREETING_S = 120.0
"""How long a child may take to greet, in seconds: it has imported next to nothing."""

ENDING_S = 30.0
"""How long a child that was killed is waited for, in seconds: the system may be writing what it had in memory."""

_WORD = "mechdesign"


@dataclass(frozen=True)
class Child:
    """A process that was started: its first line must be `greeting`."""

    process: subprocess.Popen[bytes]
    greeting: bytes

    def has_greeted(self, line: bytes) -> bool:
        """Tell whether the first line of its output is the greeting."""
        return line.rstrip(b"\r\n") == self.greeting

    def end(self) -> None:
        """Kill it and close its pipes, and wait for it, with a limit."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def start(module: str, function: str, environment: Mapping[str, str], stderr: int | IO[bytes] | None = None) -> Child:
    """Start Python on a function of a module, in a session of its own; its pipes are standard input and output.

    It finds the same packages as this process. Raises `OSError` where no process can be started.
    """
    if not sys.executable:
        raise OSError("this program does not know which Python runs it")
    token = secrets.token_hex(16)
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import greet; greet({token!r}); "
        f"from {module} import {function}; {function}()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=dict(environment),
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    return Child(process, _greeting(token))


def greet(token: str) -> None:
    """Say to whoever started this process that it is Python with this version of the package."""
    os.write(1, _greeting(token) + b"\n")


def _greeting(token: str) -> bytes:
    return f"{_WORD} {__version__} {sys.version_info.major}.{sys.version_info.minor} {token}".encode()


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
