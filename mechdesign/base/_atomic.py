"""Atomic writes: one file, or a set of files that belong together.

A single file is written under a temporary name and renamed when it is complete. For a set, all new files are written
under temporary names next to the old files and synchronised. Then the new files are renamed one by one, and files that
belong only to the old set are removed. The last file, such as a certificate with the digests of all other files, is
renamed at the end. After a crash the folder contains the old set, the new set, or a set whose last file does not match.
After an *error* the old files are restored from hard links, which are kept until the end.

Only the owner can read a private file, even while it is being written. A file that replaces another file keeps the mode
and the group of the old file. A private file that replaces a file of another user gets the mode 0600 instead.

A file replaces a link with the same name, so that the link cannot redirect the output. Only links in output names that
a user gives are followed, see `mechdesign.base._files`.

Some network file systems cannot synchronise a folder or a file. The files are then complete, and a
`SynchronisationWarning` reports that a power failure may undo the write.
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
"""A lock that is held while files are written; code that ends the process acquires it first."""

# Longest name that file systems accept.
_MAX_NAME_BYTES = 255


def _renew_lock() -> None:
    """Give a forked process a new lock: the thread that held the old lock does not run in that process."""
    global WRITING
    WRITING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

# Errors of file systems that cannot synchronise a folder; only the first two state the true reason.
_UNSYNCHRONISED_FOLDER = (
    *(errno.EINVAL, errno.ENOTSUP),
    *(errno.EIO, errno.EPERM, errno.EBADF, errno.ENOSYS, errno.EACCES, errno.EISDIR, errno.ENOTTY),
)
_UNSYNCHRONISED_FILE = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
# Errors of file systems whose file modes are fixed at mount time.
_NO_MODES = (errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def write_file(
    path: str | os.PathLike[str], parts: Iterable[bytes], *, private: bool = False, shared: bool = False
) -> None:
    """Write a file in pieces under a temporary name, and rename it when it is complete.

    If several processes write the file at the same time, the version that is renamed last remains. A file that replaces
    another file keeps its mode and group; a file that replaces a link does not.

    Args:
        path: The file.
        parts: The contents, in pieces.
        private: Give a new file the mode 0600, even if it replaces a file of another user.
        shared: Share a private file, such as a ledger, with the group of its folder; see `shared_mode`.

    Raises:
        ExportError: The file cannot be written; an old file is unchanged.
    """
    target = as_path(path, "path")
    temporary = target.parent / make_hidden_name(target.name, f".{secrets.token_hex(4)}.partial")
    try:
        with _writing([temporary]):
            with os.fdopen(_open_new(temporary, target, private, shared), "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                # The content must reach the disk before the file is renamed.
                whole = _synchronise_file(file.fileno())
            os.replace(temporary, target)
            # The content cannot be found until the folder with its name is also on the disk.
            whole = _synchronise(target.parent) and whole
    except OSError as error:
        raise ExportError(f"{target} could not be written: {_reason(error, target.parent)}") from error
    if not whole:
        _note_unsynchronised(target.parent)


@contextlib.contextmanager
def replacing(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Make a folder and empty the files of an older set; at the end, remove the files that are still empty.

    An empty file keeps its mode and group for its new content. Until it is written, readers find the set incomplete.

    Args:
        folder: The folder.
        names: The names of the files, those first that make the set complete.

    Yields:
        Nothing.

    Raises:
        ExportError: The folder or a file cannot be written.
    """
    paths = [folder / name for name in names]
    try:
        make_folder(folder)
        old = [path for path in paths if path.is_file() and not path.is_symlink()]
        for path in paths:
            if path not in old:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {_reason(error)}") from error
    for path in old:
        write_file(path, ())
    try:
        yield
    finally:
        for path in old:
            if path.is_file() and not path.stat().st_size:
                _discard(path)


def make_hidden_name(name: str, ending: str) -> str:
    """Return the name of a hidden file that belongs to a file; long names are shortened, and get a digest.

    >>> make_hidden_name("a.csv", ".lock")
    '.a.csv.lock'
    """
    made = f".{name}{ending}"
    if len(os.fsencode(made)) <= _MAX_NAME_BYTES:
        return made
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    left = _MAX_NAME_BYTES - len(os.fsencode(f".~{digest}{ending}"))
    start = name
    while len(os.fsencode(start)) > left:
        start = start[:-1]
    return f".{start}~{digest}{ending}"


def make_folder(path: str | os.PathLike[str], *, private: bool = False) -> None:
    """Make a folder and its missing parents; with `private`, all new folders have the mode 0700.

    Raises `OSError` if the folder cannot be made, for example if a file has the same name.
    """
    folder = Path(path)
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent, private=private)
    folder.mkdir(0o700 if private else 0o777, exist_ok=True)


def replace_files(folder: Path, files: Mapping[str, bytes], last: str, remove: Iterable[str] = ()) -> None:
    """Write `files` into `folder`, with file `last` at the end, and remove the files in `remove`.

    After an error, or Ctrl-C before the last file is in place, a new folder is removed again, and old files are
    restored if the file system allows it.

    Args:
        folder: The folder; it is created if necessary.
        files: The contents of the files, by name.
        last: The name of the file to write last.
        remove: Names of files to remove.

    Raises:
        ExportError: The files cannot be written.
    """
    order = [name for name in files if name != last] + [last]
    gone = [name for name in remove if name not in files]
    try:
        with _in_folder(folder), _writing([folder / _partial(name) for name in order]):
            whole = True
            for name in order:
                whole = _write(folder / _partial(name), folder / name, files[name]) and whole
            whole = _exchange(folder, order, gone) and whole
    except OSError as error:
        raise ExportError(
            f"{folder}: the files could not be written: {_reason(error)}. The previous files were kept or restored "
            "as far as the file system allows; make room or choose another folder, and try again"
        ) from error
    if not whole:
        _note_unsynchronised(folder)


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Make a folder unless it exists; after an error or an interrupt, remove the new folder if it is empty."""
    existed = folder.is_dir()
    try:
        try:
            make_folder(folder)
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
    """Remove the temporary files at the end in every case."""
    with WRITING:
        try:
            yield
        finally:
            for path in temporary:
                _discard(path)


def _exchange(folder: Path, order: list[str], gone: list[str]) -> bool:
    """Rename the temporary files; after an error, or an interrupt before the last file, restore the old files.

    Return whether the folder could be synchronised.
    """
    kept: list[str] = []
    touched: list[str] = []
    try:
        for name in [*gone, *order]:
            if _keep(folder, name):
                kept.append(name)
        # Existing files are replaced first, so that the last file no longer matches them if this loop is interrupted.
        for name in sorted(order[:-1], key=lambda name: name not in kept):
            touched.append(name)
            os.replace(folder / _partial(name), folder / name)
        for name in gone:
            touched.append(name)
            (folder / name).unlink(missing_ok=True)
        # The files must reach the disk before the certificate, which lists them.
        whole = _synchronise(folder)
        touched.append(order[-1])
        os.replace(folder / _partial(order[-1]), folder / order[-1])
        return _synchronise(folder) and whole
    except BaseException as error:
        # An interrupt, unlike an error, keeps a set whose last file is in place.
        if isinstance(error, Exception) or (folder / _partial(order[-1])).exists():
            for name in reversed(touched):
                _put_back(folder, name, name in kept)
        raise
    finally:
        for name in [*gone, *order]:
            _discard(folder / _previous(name))


def _keep(folder: Path, name: str) -> bool:
    """Keep a hard link of a file, if the file exists and the file system supports links."""
    _discard(folder / _previous(name))
    try:
        os.link(folder / name, folder / _previous(name), follow_symlinks=False)
    # Python raises NotImplementedError if the system cannot link without following links.
    except (OSError, NotImplementedError):
        return False
    return True


def _put_back(folder: Path, name: str, kept: bool) -> None:
    with contextlib.suppress(OSError):
        if kept:
            os.replace(folder / _previous(name), folder / name)
        elif not (folder / _partial(name)).exists():
            # The file was renamed, and there was no older file to keep.
            (folder / name).unlink(missing_ok=True)


def _write(path: Path, target: Path, content: bytes) -> bool:
    """Write a temporary file; return whether it could be synchronised."""
    _discard(path)
    descriptor = _open_new(path, target, private=False)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest[: 2**24]) :]
        return _synchronise_file(descriptor)
    finally:
        os.close(descriptor)


def shared_mode(folder: Path) -> int:
    """Return the mode of a shared file: 0660 in a folder with the setgid bit that its group may write, else 0600."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return 0o600
    return 0o660 if mode & stat.S_ISGID and mode & stat.S_IWGRP else 0o600


def _open_new(path: Path, target: Path, private: bool, shared: bool = False) -> int:
    """Open a new file with the mode and the group of the file `target`, if it exists and they may be kept."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    old = _find_replaced(target)
    if old is not None and private and not shared and old.st_uid != os.geteuid():
        # Otherwise the owner of the old file would decide who can read the new content.
        old = None
    descriptor = os.open(path, flags, 0o666 if old is None and not private else 0o600)
    try:
        if shared:
            _share(descriptor, target.parent, old)
        elif old is not None:
            _copy_mode(descriptor, old)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _find_replaced(target: Path) -> os.stat_result | None:
    """Return the status of the file that will be replaced; None if there is no file, or if it has no mode."""
    try:
        # The link itself is replaced, so that the mode of its target does not matter.
        old = os.lstat(target)
    except OSError:
        return None
    return old if stat.S_ISREG(old.st_mode) and hasattr(os, "geteuid") else None


def _share(descriptor: int, folder: Path, old: os.stat_result | None) -> None:
    """Give a shared file to the group of its folder, or back to its owner; raise `OSError` if that locks them out."""
    mode, new = shared_mode(folder), os.fstat(descriptor)
    if mode == 0o660:
        if new.st_gid != folder.stat().st_gid:
            os.fchown(descriptor, -1, folder.stat().st_gid)
        _set_mode(descriptor, mode)
    elif old is not None and old.st_uid != new.st_uid:
        try:
            os.fchown(descriptor, old.st_uid, -1)
        except OSError as error:
            raise PermissionError(errno.EPERM, f"its owner, user {old.st_uid}, could no longer read it") from error


def _copy_mode(descriptor: int, old: os.stat_result) -> None:
    """Copy mode and group to an open file; if the group cannot be kept, no group may read the file."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(descriptor).st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        # EPERM: the user is not in the group. EINVAL: the user namespace does not have the group.
        except OSError:
            mode &= ~0o070
    _set_mode(descriptor, mode)


def _set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file, unless its file system refuses to change modes; only its owner may then read it."""
    # Some file systems refuse even a change without effect.
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        try:
            os.fchmod(descriptor, mode)
        except OSError as error:
            if error.errno not in _NO_MODES:
                raise


def _synchronise_file(descriptor: int) -> bool:
    """Synchronise the content of a file; return False if its file system cannot."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCHRONISED_FILE:
            raise
        return False
    return True


def _synchronise(folder: Path) -> bool:
    """Synchronise renames in a folder, on systems that support it; return False if the file system cannot."""
    if os.name == "nt":
        return True
    try:
        # A folder that is writable but not readable cannot be opened.
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
    """Warn once for each folder that a power failure may undo the write."""
    if folder in _SAID:
        return
    _SAID.add(folder)
    warn(
        f"{folder} is written, but its file system cannot synchronise it: a power failure may undo the write. Copy "
        "important files to another disk",
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


def _reason(error: OSError, folder: Path | None = None) -> str:
    """Return the reason of an error, with a remedy for a folder whose users cannot replace the files of others."""
    said = error.strerror or str(error)
    sticky = folder is not None and error.errno == errno.EPERM and folder.stat().st_mode & stat.S_ISVTX
    return f"{said}. Remove the sticky bit of its folder: chmod -t {folder}" if sticky else said
