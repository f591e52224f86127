"""Child processes and process-wide settings.

In an embedded or frozen Python, `sys.executable` is the application, so that starting it could start the application
again. Nothing is sent to a child, and none of its output is used, before it has sent its greeting. A child without a
greeting within a time limit is killed.

If two threads each saved and restored a setting, one thread could restore the value that the other thread had set. The
users of a setting are therefore counted. No lock is held while a setting is in use, so that threads do not wait for
each other. After a fork the new process has new locks.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
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
"""Time limit for the greeting of a child [s]; the child imports little before its greeting."""

ENDING_S = 30.0
"""Time limit for the end of a killed child [s]; the system may still write its memory to disk."""

_WORD = "mechdesign"


@dataclass(frozen=True)
class Child:
    """A child process.

    Attributes:
        process: The process.
        greeting: The expected first line of the output.
    """

    process: subprocess.Popen[bytes]
    greeting: bytes

    def has_greeted(self, line: bytes) -> bool:
        """Return whether the first line of the output is the greeting."""
        return line.rstrip(b"\r\n") == self.greeting

    def kill(self) -> None:
        """Kill the process and those that it started: a script that stands for Python may wait for another program."""
        if hasattr(os, "killpg"):
            # It leads a session, and so a group, of its own, until its end is waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self.process.returncode is None:
                    os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def end(self) -> None:
        """Kill the process, close its pipes, and wait for its end, with a time limit."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def start(module: str, function: str, environment: Mapping[str, str], stderr: int | IO[bytes] | None = None) -> Child:
    """Start Python with a function of a module, in a new session; its pipes are standard input and output.

    The child finds the same packages as this process. Raises `OSError` if no process can be started.
    """
    if not sys.executable:
        raise OSError("the path of the running Python is unknown")
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
    """Report to the parent process that this is Python with this version of the package."""
    os.write(1, _greeting(token) + b"\n")


def _greeting(token: str) -> bytes:
    return f"{_WORD} {__version__} {sys.version_info.major}.{sys.version_info.minor} {token}".encode()


Key = TypeVar("Key", bound=Hashable)


class _Lock:
    """A lock that is renewed after a fork: the thread that held the old lock does not run in the new process."""

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


class UpperLimit:
    """A process-wide number, kept at the least limit of its current users; the last user restores the old value.

    `limit` sets the number for the first user and returns a function that restores it; `change` sets another number.
    """

    def __init__(self, limit: Callable[[int], Callable[[], None]], change: Callable[[int], None]) -> None:
        self._limit, self._change = limit, change
        self._lock, self._wanted = _Lock(), list[int]()
        self._undo: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def at_most(self, number: int) -> Iterator[None]:
        """Limit the process-wide number in the block."""
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


class SharedSettings(Generic[Key]):
    """Settings with names, such as `matplotlib.rcParams`.

    The first user of a setting sets it. The last user restores the old value, unless other code has changed the
    setting. Simultaneous users should set equal values: the value of the first user applies.
    """

    def __init__(self, settings: Callable[[], Any]) -> None:
        self._settings = settings
        self._lock, self._users = _Lock(), Counter[Key]()
        self._before: dict[Key, Any] = {}
        self._set: dict[Key, Any] = {}

    @contextlib.contextmanager
    def set_to(self, wanted: Callable[[Mapping[Key, Any]], Mapping[Key, Any]]) -> Iterator[None]:
        """During the block, apply the settings that `wanted` returns; `wanted` receives the settings in use."""
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


_FILTERS = _Lock()
_IGNORED: Counter[tuple[Any, ...]] = Counter()


@contextlib.contextmanager
def ignore_warnings(*, message: str = "", module: str = "") -> Iterator[None]:
    """Ignore warnings with this message prefix, or from this module, in all threads during the block.

    The first user inserts a filter at the front of `warnings.filters`, and the last user removes it.
    `warnings.catch_warnings` would restore the whole list, and so discard filters that other threads have set.
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
                # Other code may have restored a list of filters without this filter.
                with contextlib.suppress(ValueError):
                    warnings.filters.remove(item)  # type: ignore[attr-defined]
