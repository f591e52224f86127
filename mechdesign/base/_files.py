"""Files that a user names: written wherever they are, and whose they are.

A file is replaced as a whole, and one behind a link keeps its mode, group and name. A device or a pipe is opened and
written, as a shell does it: something may have been written when an error comes.

What is believed without a proof (results that were kept, states) must be nobody else's to change. What is its owner's
alone (true data, ledgers, states) should be nobody else's to read. Access lists are seen through the bits of the group,
which hold their mask. Where the system knows no users (Windows), every file counts as its reader's own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ClosedPipeError, ExportError, ExposedFileWarning
from mechdesign.base._warnings import warn

# As far as systems follow one link after another.
_MOST_LINKS = 40


def find_output(path: str | os.PathLike[str]) -> Path | None:
    """Return the file that a user's name for an output stands for, links followed; None for a device or a pipe.

    The file need not exist. Raises `ExportError` for a folder, a loop of links, and a file with several names (hard
    links): a new file would leave the old text under the others.
    """
    target = Path(path)
    if _descriptor_of(target) is not None:
        return None
    try:
        found = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        # A link may name a file that is to be made.
        return Path(os.path.realpath(target)) if target.is_symlink() else target
    except OSError as error:
        raise ExportError(f"{target} could not be written: {error.strerror or error}") from error
    if stat.S_ISDIR(found.st_mode):
        raise ExportError(f"{target} could not be written: it is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_nlink > 1:
        raise ExportError(
            f"{target} has another name as well, a hard link, under which the old text would stay; nothing was "
            "written. Remove one of the names, or choose another one"
        )
    return Path(os.path.realpath(target)) if target.is_symlink() else target


def write_output(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write what a user names as output: a file as `write_file` does, links followed; a device or a pipe in place.

    A pipe is waited for until somebody reads it. Raises `ClosedPipeError` where its reader goes away, and `ExportError`
    on any other failure and for what `find_output` refuses.
    """
    file = find_output(path)
    if file is not None:
        write_file(file, parts)
        return
    number = _descriptor_of(Path(path))
    try:
        # Not within WRITING: nothing is spoilt by an end in between, and whoever reads may let us wait.
        descriptor = os.dup(number) if number is not None else os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "wb") as stream:
            for part in parts:
                stream.write(part)
    except BrokenPipeError as error:
        raise ClosedPipeError(f"{path} was closed by its reader before all was written") from error
    except OSError as error:
        raise ExportError(f"{path} could not be written: {error.strerror or error}") from error


def _descriptor_of(path: Path) -> int | None:
    """Return the number of the open file of this process that a path such as /dev/stdout stands for, else None.

    Such a file is written where its last writer stopped; opened anew by its name it would be written over.
    """
    folders = ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd")
    for _ in range(_MOST_LINKS):
        above = (str(path.parent), os.path.realpath(path.parent))
        if re.fullmatch("[0-9]{1,7}", path.name) and not set(above).isdisjoint(folders):
            return int(path.name)
        try:
            path = path.parent / os.readlink(path)
        except (OSError, ValueError, AttributeError):
            return None
    return None


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
