"""What threads and processes share: locks between threads, which a forked process gets anew, and locks of files.

An object that keeps a budget belongs to the process that made it. After a fork both processes hold a copy, and each
copy would spend the whole budget. An object without a file therefore works in its own process only; one with a file
goes on, since all processes share the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mechdesign.base._atomic import hidden_name
from mechdesign.base._check import as_number
from mechdesign.base._errors import InputError, LedgerError, LockError, LockWarning
from mechdesign.base._warnings import warn

WAIT_S = 10.0
"""How long the lock of a file is waited for, in seconds."""

SHARE = (
    "A ledger for several users is begun with: mechdesign ledger new PATH --group NAME, in a folder where the group "
    "may write"
)
"""What a user can do who may not use the ledger of another."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
_SAID_AFTER_S = 1.0
# How long another process may take between making the lock and making the file, and how often the file is looked for.
_BEGINNING_S = 1.0
_PAUSE_S = 0.02


class ProcessLock:
    """A lock between the threads of one process, which a forked process gets anew.

    The thread that held the lock when a process was forked does not run in the new one and would never give it back.
    Attribute `process` is the process that made it.

    >>> lock = ProcessLock()
    >>> with lock:
    ...     lock.is_at_home()
    True
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._of = self.process
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Give a copy of what has a lock a lock of its own."""
        return ProcessLock, ()

    def is_at_home(self) -> bool:
        """Tell whether this is the process that made the lock."""
        return os.getpid() == self.process

    def __enter__(self) -> ProcessLock:
        """Wait for the lock, without a limit."""
        if os.getpid() != self._of:
            with _RENEWING:
                if os.getpid() != self._of:
                    self._lock = threading.RLock()
                    self._of = os.getpid()
        self._lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        """Give the lock back."""
        self._lock.release()


_RENEWING = threading.Lock()


def _renew_lock() -> None:
    """Give a forked process a lock of its own: the thread that held the old one does not run there."""
    global _RENEWING
    _RENEWING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def file_of(path: str | PathLike[str]) -> Path:
    """Return the one name of a file: through a link or from another folder it must not be a second one.

    Raises `InputError` for what names no file, and for a link to none: who made the link would choose where it is made.
    """
    try:
        name = Path(path)
        if os.path.islink(name) and not os.path.exists(name):
            remedy = "remove the link, or name the file itself"
            raise InputError(
                "path",
                f"is a link to a file that does not exist, {os.path.realpath(name)}",
                value=path,
                bound="the path of a file",
                remedy=remedy,
            )
        return name.resolve()
    except InputError:
        raise
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise InputError("path", f"does not name a file ({error})", value=path, bound="the path of a file") from error


def stands(path: Path) -> bool:
    """Tell whether something has this name; raise `LedgerError` where that cannot be told."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise LedgerError(f"{path} lies in a folder of another user ({error.strerror}). {SHARE}") from error
    except OSError as error:
        raise LedgerError(f"{path} cannot be looked for ({error.strerror or error}). Choose another name") from error
    return True


def lock_file_of(path: Path) -> Path:
    """Return the lock of a file, which stands beside it and stays there."""
    return path.parent / hidden_name(path.name, ".lock")


def as_wait(value: object) -> float:
    """Return how long a lock is waited for, in seconds; raise `InputError` for what is no number of at least 0."""
    seconds = as_number(value, "wait")
    if not 0 <= seconds < 1e9:
        raise InputError("wait", "is out of range", value=value, bound="a number of seconds from 0 to 1e9")
    return seconds


@contextlib.contextmanager
def locked(path: Path, wait: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a file, of this process and all others; a new lock file has the mode 0600.

    Warns (`LockWarning`) after a second. Raises `LedgerError`, naming the lock, where it is not had within `wait`
    seconds, and `LockError` where it cannot be opened, is a link, or the file system has no locks. A process that is
    forked meanwhile does not hold it.
    """
    file = lock_file_of(path)
    lock = FileLock(file, mode=0o600, fallback_to_soft=False, preserve_lock_file=True)
    try:
        try:
            lock.acquire(timeout=min(wait, _SAID_AFTER_S))
        except Timeout:
            if wait > _SAID_AFTER_S:
                message = f"waiting up to {wait:g} s for {file}, which another process holds"
                warn(message, LockWarning, stacklevel=4)
                lock.acquire(timeout=wait - _SAID_AFTER_S)
            else:
                raise
    except Timeout:
        raise LedgerError(
            f"{file} is held by another process: it was waited for {wait:g} s, and nothing was recorded. End that "
            "process, or wait longer (--wait, or wait= in Python)"
        ) from None
    except (OSError, NotImplementedError) as error:
        why, remedy = why_unlocked(file, error)
        raise LockError(f"{file} {why}; nothing was recorded. {remedy}") from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def locked_to_begin(path: Path, wait: float, missing: Callable[[], Exception]) -> Iterator[None]:
    """Hold the lock of a file that the caller makes where there is none.

    Raises what `missing` returns where an earlier lock stands and its file is gone, and what `locked` raises. Another
    process may have made the lock a moment ago: its file is waited for, at most a second.
    """
    until = time.monotonic() + min(wait, _BEGINNING_S)
    while True:
        earlier = stands(lock_file_of(path))
        with locked(path, wait):
            if stands(path) or not earlier:
                yield
                return
        if time.monotonic() >= until:
            raise missing()
        time.sleep(_PAUSE_S)


def require_one_name(path: Path, refuse: Callable[[str], Exception]) -> None:
    """Raise what `refuse` makes of the reason where a hard link would keep the old content as a second file."""
    if stands(path) and path.stat().st_nlink > 1:
        raise refuse(
            f"{path} has another name as well, a hard link, which would keep what is left now: nothing was recorded. "
            "Remove the other name, or copy the file and go on with the copy alone"
        )


def why_unlocked(file: Path, error: OSError | NotImplementedError, share: str = SHARE) -> tuple[str, str]:
    """Say why a lock file could not be locked, and what a user can do: `share`, where it belongs to another one."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    try:
        found = file.lstat()
    except OSError:
        return f"cannot be made ({reason})", "Choose another folder"
    if stat.S_ISLNK(found.st_mode):
        return "is a link, which no lock may be", "Remove the link"
    others = hasattr(os, "geteuid") and found.st_uid != os.geteuid()
    if isinstance(error, PermissionError) and others:
        return f"belongs to another user ({reason})", share
    # filelock raises NotImplementedError for a system call that is missing.
    if isinstance(error, NotImplementedError) or error.errno in _NO_LOCKS:
        remedy = "Keep it on a local disk, or have the share mounted with locks"
        return f"cannot be locked: its file system refuses locks ({reason})", remedy
    return f"cannot be locked ({reason})", "Remove it if it is no lock file"
