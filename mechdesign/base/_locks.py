"""Locks for threads and processes: a lock between threads that is renewed after a fork, and locks of files.

An object with a budget belongs to the process that created it. After a fork both processes have a copy of the object,
and each copy could spend the whole budget. An object without a file therefore works only in its own process. An object
with a file works in all processes, since they share the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from mechdesign.base._atomic import make_hidden_name, shared_mode
from mechdesign.base._check import as_number
from mechdesign.base._errors import InputError, LedgerError, LockError, LockWarning
from mechdesign.base._warnings import warn

WAIT_S = 10.0
"""Default time to wait for the lock of a file [s]."""

SHARE = (
    "Users share a ledger in a folder of their group: chgrp GROUP FOLDER; chmod 2770 FOLDER. Let the owner create the "
    "ledger there"
)
"""The remedy for a user without access to the ledger of another user."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
_WARNING_AFTER_S = 1.0
# Time that another process may take between creating the lock and the file, and the interval between checks for the
# file.
_CREATION_S = 1.0
_PAUSE_S = 0.02


class ProcessLock:
    """A lock between the threads of one process; a forked process gets a new lock.

    The thread that held the lock during a fork does not run in the new process and would never release it. The
    attribute `process` is the process that created the lock.

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
        """Return a new lock for a copy of the object."""
        return ProcessLock, ()

    def is_at_home(self) -> bool:
        """Return whether this process created the lock."""
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
        """Release the lock."""
        self._lock.release()


_RENEWING = threading.Lock()


def _renew_lock() -> None:
    """Give a forked process a new lock: the thread that held the old lock does not run in that process."""
    global _RENEWING
    _RENEWING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def file_of(path: str | PathLike[str]) -> Path:
    """Return the unique name of a file, so that links and relative paths give it no second name.

    This also imports the package that locks the file. A process that is forked while another thread imports a module
    waits for this import forever. So `hold_lock` must not be the first to import it.

    Raises `InputError` for a path that does not name a file, and for a link to a missing file. The owner of a link to a
    missing file would decide where the file is created.
    """
    import filelock  # noqa: F401

    try:
        name = Path(path)
        if os.path.islink(name) and not os.path.exists(name):
            problem = f"is a link to a file that does not exist, {os.path.realpath(name)}"
            raise InputError(str(name), problem, remedy="remove the link, or name the file itself")
        if os.path.isdir(name):
            raise InputError(str(name), "is a folder", bound="the path of a file")
        return name.resolve()
    except InputError:
        raise
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise InputError("path", f"does not name a file ({error})", value=path, bound="the path of a file") from error


def exists(path: Path) -> bool:
    """Return whether a file or folder has this name; raise `LedgerError` if that cannot be decided."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise LedgerError(f"{path} is in a folder of another user ({error.strerror}). {SHARE}") from error
    except OSError as error:
        raise LedgerError(f"{path} cannot be found ({error.strerror or error}). Choose another name") from error
    return True


def lock_file_of(path: Path) -> Path:
    """Return the lock file of a file; it is in the same folder and is never removed."""
    return path.parent / make_hidden_name(path.name, ".lock")


def as_wait(value: object) -> float:
    """Return the seconds to wait for a lock; raise `InputError` unless it is a number of at least 0."""
    seconds = as_number(value, "wait")
    if not 0 <= seconds < 1e9:
        raise InputError("wait", "is out of range", value=value, bound="a number of seconds from 0 to 1e9")
    return seconds


@contextlib.contextmanager
def hold_lock(path: Path, wait: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a file in the block; the lock file has the mode of a shared file in its folder.

    Warns with `LockWarning` after a second. Raises `LedgerError` with the name of the lock if the lock is not available
    within `wait` seconds. Raises `LockError` if the lock cannot be opened, is a link, or the file system has no locks.
    A process that is forked in the block does not hold the lock. `file_of` must have made the path.
    """
    from filelock import FileLock, Timeout

    file = lock_file_of(path)
    mode = shared_mode(file.parent)
    lock = FileLock(file, mode=mode, fallback_to_soft=False, preserve_lock_file=True)
    try:
        try:
            lock.acquire(timeout=min(wait, _WARNING_AFTER_S))
        except Timeout:
            if wait > _WARNING_AFTER_S:
                message = f"waiting up to {wait:g} s for {file}, which another process holds"
                warn(message, LockWarning, stacklevel=4)
                lock.acquire(timeout=wait - _WARNING_AFTER_S)
            else:
                raise
    except Timeout:
        raise LedgerError(
            f"{file} is held by another process and was not released within {wait:g} s; nothing was recorded. End "
            "that process, or wait longer (wait= in Python)"
        ) from None
    except (OSError, NotImplementedError) as error:
        why, remedy = why_unlocked(file, error)
        raise LockError(f"{file} {why}; nothing was recorded. {remedy}") from error
    try:
        with contextlib.suppress(OSError):
            # An older lock may have another mode. A folder that is closed for a while keeps the mode.
            if os.access(file.parent, os.W_OK):
                file.chmod(mode)
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def hold_new_lock(path: Path, wait: float, missing: str) -> Iterator[None]:
    """Hold the lock of a file that the caller creates if it is missing.

    Raises `LedgerError` with the text `missing` if there is an old lock without its file; `hold_lock` may raise further
    errors. Another process may have just created the lock; this function waits at most a second for its file.
    """
    until = time.monotonic() + min(wait, _CREATION_S)
    while True:
        earlier = exists(lock_file_of(path))
        with hold_lock(path, wait):
            if exists(path) or not earlier:
                yield
                return
        if time.monotonic() >= until:
            raise LedgerError(missing)
        time.sleep(_PAUSE_S)


def require_one_name(path: Path) -> None:
    """Raise `LedgerError` if the file has a second name, which would keep the old content."""
    if exists(path) and path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path} has a second name (a hard link), which would keep the old content; nothing was recorded. Remove "
            "the other name, or copy the file and use only the copy"
        )


def why_unlocked(file: Path, error: OSError | NotImplementedError) -> tuple[str, str]:
    """Return the reason why a lock file cannot be locked, and a remedy, which is `SHARE` for another user's file."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    try:
        found = file.lstat()
    except OSError:
        return f"cannot be made ({reason})", "Choose another folder"
    if stat.S_ISLNK(found.st_mode):
        return "is a link, but a lock must be a file", "Remove the link"
    others = hasattr(os, "geteuid") and found.st_uid != os.geteuid()
    if isinstance(error, PermissionError) and others:
        return f"belongs to another user ({reason})", SHARE
    # filelock raises NotImplementedError if a system call is missing.
    if isinstance(error, NotImplementedError) or error.errno in _NO_LOCKS:
        remedy = "Store it on a local disk, or mount the network share with locks"
        return f"cannot be locked: its file system refuses locks ({reason})", remedy
    if getattr(error, "errno", None) == errno.EROFS:
        return f"cannot be locked ({reason})", "Mount the file system so that it can be written"
    return f"cannot be locked ({reason})", "Remove it if it is not a lock file"
