"""Whose a file is: who besides its owner can write it, or read it.

What is believed without a proof (results that were kept, states) must be nobody else's to change. What is its owner's
alone (true data, ledgers, states) should be nobody else's to read. Access lists are seen through the bits of the group,
which hold their mask. Where the system knows no users (Windows), every file counts as its reader's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from mechdesign.errors import ExposedFileWarning
from mechdesign.warned import warn

__all__ = ["note_readers", "read_own", "read_regular", "readers_of", "why_not_above", "why_not_own"]


def __dir__() -> list[str]:
    return sorted(__all__)


def why_not_own(found: os.stat_result, *, or_root: bool = False) -> str:
    """Say why a file or folder is not the user's alone to write, or return an empty text where it is.

    Where `or_root` is true it may belong to the system's administrator, who can write everything anyway.
    """
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid() and not (or_root and found.st_uid == 0):
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def why_not_above(path: Path) -> str:
    """Say which folder above `path` lets others put something else in its place, or return an empty text.

    Each must belong to the user or to the system's administrator, or have the sticky bit; and one that everybody can
    write must have the sticky bit. Folders that do not exist are passed over; links are followed.
    """
    if not hasattr(os, "geteuid"):
        return ""
    for folder in path.resolve().parents:
        try:
            found = folder.stat()
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            continue
        ours = found.st_uid in (os.geteuid(), 0) and not found.st_mode & stat.S_IWOTH
        if not ours and not found.st_mode & stat.S_ISVTX:
            return f"lies in {folder}, which others can write or own"
    return ""


def read_regular(path: Path, require: Callable[[os.stat_result], None] | None = None, *, follow: bool = True) -> bytes:
    """Return the content of a file, and never wait for that of a pipe, nor read a device, which has no end.

    `require` is given what is known of the file, and may raise. What is looked at is the file that is read, whatever
    takes its name meanwhile. Raises `OSError` where it cannot be read or is no file, and for a link that it is not to
    `follow`.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is no file", str(path))
        if require is not None:
            require(found)
        return file.read()


def read_own(path: Path, refuse: Callable[[str], Exception], *, or_root: bool = False, follow: bool = True) -> bytes:
    """Return the content of a file that nobody else can write.

    Raises what `refuse` makes of the reason where others can write it, and what `read_regular` raises.
    """

    def require(found: os.stat_result) -> None:
        if why := why_not_own(found, or_root=or_root):
            raise refuse(why)

    return read_regular(path, require, follow=follow)


def readers_of(path: Path) -> str:
    """Say that the mode of an owner's file lets others read it, and what closes it; else return an empty text."""
    try:
        found = path.lstat()
    except OSError:
        return ""
    mode = stat.S_IMODE(found.st_mode)
    # What replaces a link has a mode of its own.
    if not hasattr(os, "geteuid") or not stat.S_ISREG(found.st_mode) or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return ""
    close = f"chmod {mode & 0o700:o} {path}"
    return f"it is for its owner only, and its mode {mode:04o} lets others read it. Close it: {close}"


def note_readers(path: Path) -> None:
    """Warn (`ExposedFileWarning`) where an owner's file, which is about to be replaced, can be read by others."""
    if said := readers_of(path):
        warn(f"{path} keeps its mode: {said}", ExposedFileWarning, stacklevel=3)
