"""Write files that a crash cannot spoil: one file, or a set of files that belong together.

One file is written under a temporary name and renamed when it is whole. Of a set, all new files are written beside the
old ones under temporary names and synchronised. Then they are renamed one by one, files of the old set that the new one
lacks are removed, and the file that vouches for all others (a certificate with their digests, say) is renamed last. A
crash leaves the old set, the new set, or one whose last file does not fit. After an *error* in between, the old files,
of which hard links are kept until the end, are put back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mechdesign.errors import ExportError

__all__ = ["WRITING", "replace_files", "write_file"]

WRITING = threading.RLock()
"""Held while files are written: whoever would end the process takes it first."""


def write_file(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write a file in pieces under a temporary name, and rename it when it is whole.

    Several may write at once: the last one wins. Raises `ExportError` on failure; an old file is then as before.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        with _writing([temporary]):
            with temporary.open("xb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                # The name must not reach the disk before the content.
                os.fsync(file.fileno())
            os.replace(temporary, target)
            # Nor is the content of use while its name is still to be written.
            _synchronise(target.parent)
    except OSError as error:
        raise ExportError(f"{target} could not be written: {_reason(error)}") from error


def replace_files(directory: Path, files: Mapping[str, bytes], last: str, remove: Iterable[str] = ()) -> None:
    """Write `files` into `directory`, made if need be, file `last` at the end, and remove the files in `remove`.

    Raises `ExportError` when that cannot be done; the files that stood there are then as before, wherever the file
    system lets them be put back.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{directory}: the folder cannot be made: {_reason(error)}") from error
    order = [name for name in files if name != last] + [last]
    gone = [name for name in remove if name not in files]
    try:
        with _writing([directory / _partial(name) for name in order]):
            for name in order:
                _write(directory / _partial(name), files[name])
            _exchange(directory, order, gone)
    except OSError as error:
        raise ExportError(
            f"{directory}: the export could not be written: {_reason(error)}. What stood there before was left or put "
            "back as far as the file system allows; make room or choose another folder, and export again"
        ) from error


@contextlib.contextmanager
def _writing(temporary: Iterable[Path]) -> Iterator[None]:
    """Discard temporary files in the end, however that comes."""
    with WRITING:
        try:
            yield
        finally:
            for path in temporary:
                _discard(path)


def _exchange(directory: Path, order: list[str], gone: list[str]) -> None:
    """Rename the temporary files to their names; on any error, interrupts included, put the old files back."""
    kept: list[str] = []
    touched: list[str] = []
    try:
        for name in [*gone, *order]:
            if _keep(directory, name):
                kept.append(name)
        for name in order[:-1]:
            touched.append(name)
            os.replace(directory / _partial(name), directory / name)
        for name in gone:
            touched.append(name)
            (directory / name).unlink(missing_ok=True)
        # The certificate must not reach the disk before what it speaks of.
        _synchronise(directory)
        touched.append(order[-1])
        os.replace(directory / _partial(order[-1]), directory / order[-1])
        _synchronise(directory)
    except BaseException:
        for name in reversed(touched):
            _put_back(directory, name, name in kept)
        raise
    finally:
        for name in kept:
            _discard(directory / _previous(name))


def _keep(directory: Path, name: str) -> bool:
    """Keep a hard link of a file, if there is one and the file system has links."""
    _discard(directory / _previous(name))
    try:
        os.link(directory / name, directory / _previous(name), follow_symlinks=False)
    # Python raises NotImplementedError where the system cannot link without following links.
    except (OSError, NotImplementedError):
        return False
    return True


def _put_back(directory: Path, name: str, kept: bool) -> None:
    with contextlib.suppress(OSError):
        if kept:
            os.replace(directory / _previous(name), directory / name)
        elif not (directory / _partial(name)).exists():
            # The file was renamed, and none was there before, or none that could be kept.
            (directory / name).unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest[: 2**24]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _synchronise(directory: Path) -> None:
    """Make renames last, on systems where folders can be synchronised."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _partial(name: str) -> str:
    return f".{name}.partial"


def _previous(name: str) -> str:
    return f".{name}.previous"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
