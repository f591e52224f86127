"""Memory limits for reading files, so that a small malicious file cannot exhaust the memory.

A compressed file (.npz, gzip, Parquet) may unpack to 256 MiB or to 100 times its own size, whichever is larger. The
same limit applies to the archives of a bundle. A line of text may take 16 MiB. `allowing_memory`, or the option
``--memory`` of a command, raises the limits for files and for lines.
"""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from mechdesign.base._errors import InputError
from mechdesign.certify._memory import as_bytes

_MAX_UNPACKED_BYTES = 2**28
_MAX_EXPANSION_RATIO = 100
_MAX_LINE_BYTES = 2**24
_CHUNK_BYTES = 2**20

_ALLOWED: ContextVar[int] = ContextVar("allowed_bytes", default=0)


@contextmanager
def allowing_memory(memory: float) -> Iterator[None]:
    """Raise the memory limit for files that are read inside the ``with`` block.

    Args:
        memory: Limit in GiB, a positive number. The maximum size of an unpacked file, and the maximum length of a line.

    Yields:
        None; the limit applies until the end of the block.

    Raises:
        InputError: The limit is not a positive number.

    >>> with allowing_memory(2):
    ...     max_unpacked_bytes(1000) == 2 * 2**30
    True
    """
    before = _ALLOWED.set(as_bytes(memory))
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def memory_limit_gib() -> float | None:
    """Return the limit in GiB that `allowing_memory` sets, or None outside its block."""
    return _ALLOWED.get() / 2**30 or None


def max_unpacked_bytes(size: int) -> int:
    """Return the largest number of bytes that a file of `size` bytes may unpack to."""
    return max(_MAX_UNPACKED_BYTES, _MAX_EXPANSION_RATIO * size, _ALLOWED.get())


def _too_much(path: Path, problem: str, bound: int) -> InputError:
    """Return the error for a file that would need more than `bound` bytes of memory."""
    return InputError(
        str(path),
        problem,
        bound=f"at most {bound} bytes",
        remedy="if you trust the source of the file, raise the limit in GiB: --memory of the command, or "
        "mechdesign.data.allowing_memory",
    )


def require_unpacked(path: Path, size: int, unpacked: int) -> None:
    """Raise `InputError` if a file of `size` bytes unpacks to more than the limit."""
    if unpacked > (bound := max_unpacked_bytes(size)):
        raise _too_much(path, "unpacks to much more than its own size", bound)


def content_of(path: Path) -> bytes:
    """Return the content of a regular file; raise `OSError` for anything else.

    Raises `InputError` if the file is sparse, and its size far exceeds the space that it takes on the disk.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is not a regular file", str(path))
        blocks: int | None = getattr(found, "st_blocks", None)
        require_unpacked(path, found.st_size if blocks is None else min(found.st_size, 512 * blocks), found.st_size)
        # Ignore bytes that another process appends meanwhile.
        return file.read(found.st_size)


class LimitedReader(io.RawIOBase):
    """The bytes of a text file, plain or compressed by gzip; reading raises `InputError` if a line is too long."""

    def __init__(self, path: Path, packed: bool) -> None:
        """Open a file; raise `InputError` if it is compressed by gzip (`packed`) and unpacks to more than the limit."""
        super().__init__()
        self._path = path
        self._longest = max(_MAX_LINE_BYTES, _ALLOWED.get())
        if packed:
            found = path.stat()
            _require_gzip(path, found.st_size, found.st_mtime_ns, max_unpacked_bytes(found.st_size))
        self._source: BinaryIO | gzip.GzipFile = gzip.GzipFile(path, "rb") if packed else path.open("rb")
        self._line = 0
        self._encoding = ""

    def decode(self, encoding: str) -> None:
        """Return to the beginning, and convert the text from `encoding` to UTF-8 from now on."""
        self._encoding = encoding
        self.seek(0)

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def seekable(self) -> bool:
        """Return True: the stream is seekable."""
        return True

    def readinto(self, target: Any) -> int:
        """Read up to ``len(target)`` bytes, and check the length of the current line."""
        content = self._read(len(target))
        target[: len(content)] = content
        end = max(content.rfind(b"\n"), content.rfind(b"\r"))
        self._line = len(content) - end - 1 if end >= 0 else self._line + len(content)
        if self._line > self._longest:
            raise _too_much(self._path, "has a line that is too long", self._longest)
        return len(content)

    def _read(self, size: int) -> bytes:
        if not self._encoding:
            return self._source.read(size)
        # One or two bytes of the source become at most three bytes of UTF-8.
        while piece := self._source.read(max(1, size // 3)):
            if content := self._decoder.decode(piece).encode():
                return content
        return self._decoder.decode(b"", final=True).encode()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset, and restart the count of line bytes. A converted text only supports offset 0."""
        self._line = 0
        if self._encoding:
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        return self._source.seek(offset, whence)

    def close(self) -> None:
        """Close the file."""
        self._source.close()
        super().close()


@functools.lru_cache(maxsize=64)
def _require_gzip(path: Path, size: int, changed: int, bound: int) -> None:
    """Raise `InputError` if a file unpacks to more than `bound` bytes; the bytes are counted and discarded."""
    with gzip.open(path, "rb") as source:
        remaining = bound
        while piece := source.read(_CHUNK_BYTES):
            remaining -= len(piece)
            if remaining < 0:
                raise _too_much(path, "unpacks to much more than its own size", bound)
