"""Digests of files and folders of data."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from mechdesign.base._errors import InputError

__all__ = ["file_digest"]


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, that of the names and contents of all files in it.

    What has not changed since, in size and time, is not read again. Raises `InputError` for what cannot be read.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Devices and pipes would never end.
            raise OSError(None, "it is no file", str(path))
        inner = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        stamps = tuple((each, (found := each.stat()).st_size, found.st_mtime_ns) for each in inner)
        return _digest(path, stamps)
    except OSError as error:
        raise InputError(
            str(path), f"cannot be read ({error.strerror or error})", bound="a file that exists"
        ) from error


@functools.lru_cache(maxsize=64)
def _digest(path: Path, stamps: tuple[tuple[Path, int, int], ...]) -> str:
    if [each for each, *_ in stamps] == [path]:
        return _content(path)
    whole = hashlib.sha256()
    for inner, *_ in stamps:
        whole.update(f"{inner.relative_to(path).as_posix()}\n{_content(inner)}\n".encode())
    return whole.hexdigest()


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
