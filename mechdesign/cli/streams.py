"""The standard streams of a command: one may be closed, its disk may be full, or nobody reads it any more.

Results go to standard output, and a command whose results cannot be written says so by its exit code. What is said on
standard error does not change what a command does: there, what cannot be written is dropped.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

__all__ = ["divert", "occupy_descriptors", "usable"]


def occupy_descriptors() -> None:
    """Open a null device for each standard descriptor that is closed, so that no file of ours takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system gives the least number that is free, and those below are taken.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


@contextmanager
def usable() -> Iterator[None]:
    """Put streams that can be used in the place of standard ones in the block, and put the old ones back after it."""
    before = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        sys.stdin, sys.stdout = _open_or_null(before[0], "r", stack), _open_or_null(before[1], "w", stack)
        sys.stderr = _Forgiving(_open_or_null(before[2], "w", stack))
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def divert(stream: TextIO | None) -> None:
    """Send what a stream still holds to a null device: Python would try to write it once more when it ends."""
    # A stream of a test, or of a notebook, has no descriptor.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(null)


def _open_or_null(stream: TextIO | None, mode: str, stack: contextlib.ExitStack) -> TextIO:
    """Return a stream with the encoding that ε and labels need, or a null device where there is none."""
    if stream is None or stream.closed:
        return cast(TextIO, stack.enter_context(open(os.devnull, mode, encoding="utf-8")))
    if mode == "w" and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


class _Forgiving:
    """A stream for notes: those that cannot be written are dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except OSError:
            divert(self._stream)
            return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError:
            divert(self._stream)
