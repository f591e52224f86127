"""Write files that a crash cannot spoil: one file, or a set of files that belong together.

One file is written under a temporary name and renamed when it is whole. Of a set, all new files are written beside the
old ones under temporary names and synchronised. Then they are renamed one by one, files of the old set that the new one
lacks are removed, and the file that vouches for all others (a certificate with their digests, say) is renamed last. A
crash leaves the old set, the new set, or one whose last file does not fit. After an *error* in between, the old files,
of which hard links are kept until the end, are put back.

A file that is its owner's alone is readable by nobody else from its first byte on. A file that replaces another keeps
the mode and the group of the other, but for a private file in place of one that another user put there.

A file takes the place of a link that has its name: nobody else chooses where it is written. Only what a user names as
output is followed, see `mechdesign.base._files`.

Some shares cannot synchronise a folder, or a file. What was written is whole then, and a `SynchronisationWarning` says
that a loss of power may undo it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mechdesign.base._check import as_path
from mechdesign.base._errors import ExportError, SynchronisationWarning
from mechdesign.base._warnings import warn

WRITING = threading.RLock()
"""Held while files are written: whoever would end the process takes it first."""

# What file systems take.
_LONGEST_NAME_BYTES = 255


def _renew_lock() -> None:
    """Give a forked process a lock of its own: the thread that held the old one does not run there."""
    global WRITING
    WRITING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

# Of a share that cannot synchronise, by what it answers: the first two say so, the others answer as for another fault.
_UNSYNCHRONISED_FOLDER = (
    *(errno.EINVAL, errno.ENOTSUP),
    *(errno.EIO, errno.EPERM, errno.EBADF, errno.ENOSYS, errno.EACCES, errno.EISDIR, errno.ENOTTY),
)
_UNSYNCHRONISED_FILE = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
# Of a file system that gives files the modes that it was mounted with.
_NO_MODES = (errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def write_file(
    path: str | os.PathLike[str], parts: Iterable[bytes], *, private: bool = False, shared: bool = False
) -> None:
    """Write a file in pieces under a temporary name, and rename it when it is whole.

    Several may write at once: the last one wins. A file that replaces another keeps its mode and group; one that
    replaces a link does not. A new file that is `private` has the mode 0600, also in place of a file of another user,
    unless it is `shared` with the group, as a ledger may be.

    Raises `ExportError` on failure; an old file is then as before.
    """
    target = as_path(path, "path")
    temporary = target.parent / hidden_name(target.name, f".{secrets.token_hex(4)}.partial")
    try:
        with _writing([temporary]):
            with os.fdopen(_open_new(temporary, target, private, shared), "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                # The name must not reach the disk before the content.
                whole = _synchronise_file(file.fileno())
            os.replace(temporary, target)
            # Nor is the content of use while its name is still to be written.
            whole = _synchronise(target.parent) and whole
    except OSError as error:
        raise ExportError(f"{target} could not be written: {_reason(error)}") from error
    if not whole:
        _note_unsynchronised(target.parent)


def hidden_name(name: str, ending: str) -> str:
    """Return the name of a hidden file that goes with a file; of a long name the start stands, and a digest.

    >>> hidden_name("a.csv", ".lock")
    '.a.csv.lock'
    """
    made = f".{name}{ending}"
    if len(os.fsencode(made)) <= _LONGEST_NAME_BYTES:
        return made
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    left = _LONGEST_NAME_BYTES - len(os.fsencode(f".~{digest}{ending}"))
    start = name
    while len(os.fsencode(start)) > left:
        start = start[:-1]
    return f".{start}~{digest}{ending}"


def make_folder(path: str | os.PathLike[str], *, private: bool = False) -> None:
    """Make a folder and those above it where they are missing; a `private` one, and what is made above it, is 0700.

    Raises `OSError` where that is not possible, for example where a file has the name.
    """
    folder = Path(path)
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent, private=private)
    folder.mkdir(0o700 if private else 0o777, exist_ok=True)


def replace_files(
    folder: Path, files: Mapping[str, bytes], last: str, remove: Iterable[str] = (), *, private: bool = False
) -> None:
    """Write `files` into `folder`, made if need be, file `last` at the end, and remove the files in `remove`.

    New files that are `private` have the mode 0600, and a folder made for them has 0700. Raises `ExportError` when that
    cannot be done; the files that stood there are then as before, wherever the file system lets them be put back. After
    an error or Ctrl-C a new folder is removed again.
    """
    order = [name for name in files if name != last] + [last]
    gone = [name for name in remove if name not in files]
    try:
        with _in_folder(folder, private), _writing([folder / _partial(name) for name in order]):
            whole = True
            for name in order:
                whole = _write(folder / _partial(name), folder / name, files[name], private) and whole
            whole = _exchange(folder, order, gone) and whole
    except OSError as error:
        raise ExportError(
            f"{folder}: the export could not be written: {_reason(error)}. What stood there before was left or put "
            "back as far as the file system allows; make room or choose another folder, and export again"
        ) from error
    if not whole:
        _note_unsynchronised(folder)


@contextlib.contextmanager
def _in_folder(folder: Path, private: bool) -> Iterator[None]:
    """Make a folder unless it exists; after an error, interrupts included, remove the new folder if it is empty."""
    existed = folder.is_dir()
    try:
        try:
            make_folder(folder, private=private)
        except OSError as error:
            raise ExportError(f"{folder}: the folder cannot be made: {_reason(error)}") from error
        yield
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def _writing(temporary: Iterable[Path]) -> Iterator[None]:
    """Discard temporary files in the end, however that comes."""
    with WRITING:
        try:
            yield
        finally:
            for path in temporary:
                _discard(path)


def _exchange(folder: Path, order: list[str], gone: list[str]) -> bool:
    """Rename the temporary files to their names; on any error, interrupts included, put the old files back.

    Return whether the folder could be synchronised.
    """
    kept: list[str] = []
    touched: list[str] = []
    try:
        for name in [*gone, *order]:
            if _keep(folder, name):
                kept.append(name)
        # Those that stand there first: from then on the old set is incomplete, whatever else comes beside it.
        for name in sorted(order[:-1], key=lambda name: name not in kept):
            touched.append(name)
            os.replace(folder / _partial(name), folder / name)
        for name in gone:
            touched.append(name)
            (folder / name).unlink(missing_ok=True)
        # The certificate must not reach the disk before what it speaks of.
        whole = _synchronise(folder)
        touched.append(order[-1])
        os.replace(folder / _partial(order[-1]), folder / order[-1])
        return _synchronise(folder) and whole
    except BaseException:
        for name in reversed(touched):
            _put_back(folder, name, name in kept)
        raise
    finally:
        for name in kept:
            _discard(folder / _previous(name))


def _keep(folder: Path, name: str) -> bool:
    """Keep a hard link of a file, if there is one and the file system has links."""
    _discard(folder / _previous(name))
    try:
        os.link(folder / name, folder / _previous(name), follow_symlinks=False)
    # Python raises NotImplementedError where the system cannot link without following links.
    except (OSError, NotImplementedError):
        return False
    return True


def _put_back(folder: Path, name: str, kept: bool) -> None:
    with contextlib.suppress(OSError):
        if kept:
            os.replace(folder / _previous(name), folder / name)
        elif not (folder / _partial(name)).exists():
            # The file was renamed, and none was there before, or none that could be kept.
            (folder / name).unlink(missing_ok=True)


def _write(path: Path, target: Path, content: bytes, private: bool) -> bool:
    """Write a temporary file; return whether it could be synchronised."""
    _discard(path)
    descriptor = _open_new(path, target, private)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest[: 2**24]) :]
        return _synchronise_file(descriptor)
    finally:
        os.close(descriptor)


def _open_new(path: Path, target: Path, private: bool, shared: bool = False) -> int:
    """Open a file that does not exist yet, with the mode and group that `target` has or should have."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    old = _replaced(target)
    if old is not None and private and not shared and old.st_uid != os.geteuid():
        # Whoever put it there would choose who can read what is written now.
        old = None
    descriptor = os.open(path, flags, 0o666 if old is None and not private else 0o600)
    try:
        if old is not None:
            _copy_mode(descriptor, old)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _replaced(target: Path) -> os.stat_result | None:
    """Return what is known of the file that will be replaced, or None where there is none, or it has no mode."""
    try:
        # The mode of a link's target is not that of what is replaced, the link.
        old = os.lstat(target)
    except OSError:
        return None
    return old if stat.S_ISREG(old.st_mode) and hasattr(os, "geteuid") else None


def _copy_mode(descriptor: int, old: os.stat_result) -> None:
    """Give an open file the mode and group of another; where the group cannot be kept, no group may read it."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(descriptor).st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        # EPERM for a group that the user is not in, EINVAL for one that the system's user space does not know.
        except OSError:
            mode &= ~0o070
    # File systems without modes refuse what changes none; one that refuses any leaves the file to its owner alone.
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        try:
            os.fchmod(descriptor, mode)
        except OSError as error:
            if error.errno not in _NO_MODES:
                raise


def _synchronise_file(descriptor: int) -> bool:
    """Make the content of a file last; return False where its file system cannot."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCHRONISED_FILE:
            raise
        return False
    return True


def _synchronise(folder: Path) -> bool:
    """Make renames last, on systems where folders can be synchronised; return False where the file system cannot."""
    if os.name == "nt":
        return True
    try:
        # A folder that may be written, and not read, cannot be opened.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCHRONISED_FOLDER:
            raise
        return False
    return True


_SAID: set[Path] = set()


def _note_unsynchronised(folder: Path) -> None:
    """Say once of each folder that what is written there may not outlast a loss of power."""
    if folder in _SAID:
        return
    _SAID.add(folder)
    warn(
        f"{folder} is written, on a file system that cannot synchronise it: a loss of power may undo it. Copy what "
        "is to last to another disk",
        SynchronisationWarning,
        stacklevel=3,
    )


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _partial(name: str) -> str:
    return f".{name}.partial"


def _previous(name: str) -> str:
    return f".{name}.previous"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
