"""Write where a user says: to a file, through a link, to a device or into a pipe.

A file is replaced as a whole, and one behind a link keeps its mode, group and name. A device or a pipe is opened and
written, as a shell does it: something may have been written when an error comes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from mechdesign.atomic import write_file
from mechdesign.errors import ClosedPipeError, ExportError

__all__ = ["find_output", "write_output"]

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
