"""How much a file may make its reader take, so that a few bytes cannot ask for all the memory there is.

What is packed (.npz, gzip, Parquet) may unpack to 256 MiB, or to 100 times the size of the file where that is more, as
each archive of a bundle. A line of a text may take 16 MiB. Both may be raised: by `allowing_memory`, or by ``--memory``
of a command.
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

_UNPACKED_BYTES = 2**28
_GROWTH = 100
_LINE_BYTES = 2**24
_PIECE_BYTES = 2**20

_ALLOWED: ContextVar[int] = ContextVar("allowed_bytes", default=0)


@contextmanager
def allowing_memory(memory: float) -> Iterator[None]:
    """Let each file that is read in the block unpack to so many GiB, and its lines be as long.

    Raises `InputError` for what is no positive number.

    >>> with allowing_memory(2):
    ...     unpacked_bytes(1000) == 2 * 2**30
    True
    """
    before = _ALLOWED.set(as_bytes(memory))
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def allowed_gib() -> float | None:
    """Return how many GiB `allowing_memory` allows, for readers with a bound of their own; None where it does not."""
    return _ALLOWED.get() / 2**30 or None


def unpacked_bytes(size: int) -> int:
    """Return how many bytes a file of `size` bytes may unpack to."""
    return max(_UNPACKED_BYTES, _GROWTH * size, _ALLOWED.get())


def _too_much(path: Path, problem: str, bound: int) -> InputError:
    """Return the error for a file that would take more than `bound` bytes."""
    return InputError(
        str(path),
        problem,
        bound=f"at most {bound} bytes",
        remedy="if you trust where it comes from, allow more: --memory of the command, or "
        "mechdesign.data.allowing_memory, in GiB",
    )


def require_unpacked(path: Path, size: int, unpacked: int) -> None:
    """Raise `InputError` where a file of `size` bytes unpacks to too many."""
    if unpacked > (bound := unpacked_bytes(size)):
        raise _too_much(path, "unpacks to much more than its own size", bound)


def content_of(path: Path) -> bytes:
    """Return the content of a file, which may have holes, of the size that it has; `OSError` for what is no file.

    Raises `InputError` where a file that takes little on the disk holds much.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is no file", str(path))
        blocks: int | None = getattr(found, "st_blocks", None)
        require_unpacked(path, found.st_size if blocks is None else min(found.st_size, 512 * blocks), found.st_size)
        # Not more, whatever is appended meanwhile.
        return file.read(found.st_size)


class LimitedReader(io.RawIOBase):
    """Bytes of a text, plain or compressed by gzip, which end with an `InputError` where a line is too long."""

    def __init__(self, path: Path, packed: bool) -> None:
        """Open a file; raise `InputError` where it is `packed` by gzip and unpacks to too much."""
        super().__init__()
        self._path = path
        self._longest = max(_LINE_BYTES, _ALLOWED.get())
        if packed:
            found = path.stat()
            _require_gzip(path, found.st_size, found.st_mtime_ns, unpacked_bytes(found.st_size))
        self._source: BinaryIO | gzip.GzipFile = gzip.GzipFile(path, "rb") if packed else path.open("rb")
        self._line = 0
        self._encoding = ""

    def decode(self, encoding: str) -> None:
        """Go to the beginning, and give the text in UTF-8 from there on, whatever its `encoding` is."""
        self._encoding = encoding
        self.seek(0)

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read again."""
        return True

    def readinto(self, target: Any) -> int:
        """Read some bytes, and count those of the line that has not ended."""
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
        # A character of two bytes may take three in UTF-8, one of a single byte as many.
        while piece := self._source.read(max(1, size // 3)):
            if content := self._decoder.decode(piece).encode():
                return content
        return self._decoder.decode(b"", final=True).encode()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, whose line counts from there; in other encodings than UTF-8 only to the beginning."""
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
    """Raise `InputError` where a file unpacks to more than `bound` bytes, which are counted and not kept."""
    with gzip.open(path, "rb") as source:
        rest = bound
        while piece := source.read(_PIECE_BYTES):
            rest -= len(piece)
            if rest < 0:
                raise _too_much(path, "unpacks to much more than its own size", bound)
