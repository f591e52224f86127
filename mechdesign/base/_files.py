"""Files that a user names: where they are written, and who can access them.

A file is replaced as a whole; the target of a link keeps its mode, group and name. A device or a pipe is opened and
written as in a shell, so that some output may have been written before an error.

Trusted files (cached results, states) must not be writable by others. Private files (true data, ledgers, states) should
not be readable by others. Access lists are visible through the group bits, which contain their mask. On systems without
users (Windows), every file is treated as private.
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

# Largest number of links that systems follow.
_MAX_LINKS = 40


def find_output(path: str | os.PathLike[str]) -> Path | None:
    """Return the file that an output name denotes after all links; None for a device or a pipe.

    The file need not exist. Raises `ExportError` for a folder and a loop of links. A file with several names (hard
    links) is also refused, because a new file would leave the old text under the other names.
    """
    target = Path(path)
    if _descriptor_of(target) is not None:
        return None
    try:
        found = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        # A link may point to a file that does not exist yet.
        return Path(os.path.realpath(target)) if target.is_symlink() else target
    except OSError as error:
        raise ExportError(f"{target} could not be written: {error.strerror or error}") from error
    if stat.S_ISDIR(found.st_mode):
        raise ExportError(f"{target} could not be written: it is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_nlink > 1:
        raise ExportError(
            f"{target} has a second name (a hard link), which would keep the old text; nothing was written. Remove "
            "one of the names, or choose another one"
        )
    return Path(os.path.realpath(target)) if target.is_symlink() else target


def write_output(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write an output; a file is replaced atomically, with links followed, but a device or a pipe is written in place.

    Writing to a pipe blocks until another process reads from it. Raises `ClosedPipeError` if the reader closes the
    pipe, and `ExportError` for any other failure and for names that `find_output` refuses.
    """
    file = find_output(path)
    if file is not None:
        write_file(file, parts)
        return
    number = _descriptor_of(Path(path))
    try:
        # The lock WRITING is not held: an interruption does no harm, and the reader may make this process wait.
        descriptor = os.dup(number) if number is not None else os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "wb") as stream:
            for part in parts:
                stream.write(part)
    except BrokenPipeError as error:
        raise ClosedPipeError(f"{path} was closed by its reader before everything was written") from error
    except OSError as error:
        raise ExportError(f"{path} could not be written: {error.strerror or error}") from error


def _descriptor_of(path: Path) -> int | None:
    """Return the file descriptor of this process that a path such as /dev/stdout denotes; None for other paths.

    Output continues at the position of the last write; opening the file again by its name would overwrite it.
    """
    folders = ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd")
    for _ in range(_MAX_LINKS):
        above = (str(path.parent), os.path.realpath(path.parent))
        if re.fullmatch("[0-9]{1,7}", path.name) and not set(above).isdisjoint(folders):
            return int(path.name)
        try:
            path = path.parent / os.readlink(path)
        except (OSError, ValueError, AttributeError):
            return None
    return None


def why_not_own(found: os.stat_result) -> str:
    """Return the reason why others can write to a file or folder; an empty text if they cannot."""
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"is writable by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def read_regular(
    path: Path, require: Callable[[os.stat_result], None] | None = None, *, follow: bool = True, most: int = -1
) -> bytes:
    """Return the content of a regular file, without waiting for pipes or reading devices.

    Args:
        path: The file.
        require: A function that receives the status of the opened file; it may raise an error to refuse the file.
        follow: Whether to follow a link.
        most: The largest number of bytes to read; -1 for all.

    Returns:
        The content of the checked file, even if another file takes its name in the meantime.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is not a regular file", str(path))
        if require is not None:
            require(found)
        return file.read(most)


def read_own(path: Path, refuse: Callable[[str], Exception], *, follow: bool = True) -> bytes:
    """Return the content of a file that nobody else can write to.

    If others can write to the file, `refuse` creates the error from the reason. `read_regular` may raise further
    errors.
    """

    def require(found: os.stat_result) -> None:
        if why := why_not_own(found):
            raise refuse(why)

    return read_regular(path, require, follow=follow)


def readers_of(path: Path) -> str:
    """Return a sentence if the mode of a private file lets others read it, with the remedy; else an empty text."""
    try:
        found = path.lstat()
    except OSError:
        return ""
    mode = stat.S_IMODE(found.st_mode)
    # A file that replaces a link gets a new mode.
    if not hasattr(os, "geteuid") or not stat.S_ISREG(found.st_mode) or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return ""
    close = f"chmod {mode & 0o700:o} {path}"
    return f"it is private, but its mode {mode:04o} lets others read it. To change that: {close}"


def note_readers(path: Path) -> None:
    """Warn with `ExposedFileWarning` if others can read a private file that is about to be replaced."""
    if said := readers_of(path):
        warn(f"{path} keeps its mode: {said}", ExposedFileWarning, stacklevel=3)
