"""One holder at a time for the file of an accountant."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from mechdesign import sharing
from mechdesign.errors import ExportError, StateError
from mechdesign.sharing import file_of

__all__ = ["file_of", "locked", "locked_to_begin", "require_one_name"]


def __dir__() -> list[str]:
    return sorted(__all__)


# How long another process may take from making the lock to making the file, and how often it is looked for.
_BEGINNING_S = 1.0
_PAUSE_S = 0.02


def locked(path: Path, wait: float) -> AbstractContextManager[None]:
    """Hold the lock of a file; raise `ExportError` where its folder is missing, see `mechdesign.sharing` for more."""
    if not path.parent.is_dir():
        raise ExportError(f"{path} could not be written: {path.parent} is not a folder. Create it first")
    return sharing.locked(path, wait)


@contextmanager
def locked_to_begin(path: Path, wait: float) -> Iterator[None]:
    """Hold the lock of a file that is made where there is none; raise `StateError` where one was there and is gone."""
    until = time.monotonic() + min(wait, _BEGINNING_S)
    while True:
        stood = sharing.lock_file_of(path).exists()
        with locked(path, wait):
            if path.exists() or not stood:
                yield
                return
        if time.monotonic() > until:
            raise StateError(
                f"{path} was there before, as its lock {sharing.lock_file_of(path)} says, and is gone: a new one would "
                "promise the same once more. Restore it, or remove the lock, too, to forget what was released"
            )
        time.sleep(_PAUSE_S)


def require_one_name(path: Path) -> None:
    """Raise `StateError` where a hard link would go on as a second state when the file is replaced."""
    if path.stat().st_nlink > 1:
        raise StateError(
            f"{path} has another name as well, a hard link, which would keep what is left now: nothing was recorded. "
            "Remove the other name, or copy the state to a file of its own and go on with that alone"
        )
