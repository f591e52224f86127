"""The process of a command: Ctrl-C and the standard streams.

Python handles signals only between two steps of the main thread, and a call into compiled code may take minutes. So the
system passes signals to a separate thread. This thread announces the reaction to Ctrl-C. The thread ends the process if
no results must be kept, or after a second Ctrl-C, but first waits for files that are being written.

Results go to standard output, and a command whose results cannot be written has an exit code other than 0. Notes on
standard error do not change the result of a command: a note that cannot be written is dropped.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import promise
from mechdesign.cli._console import STOPPED, say_error, say_stopping

# Seconds that the main thread has for ending cleanly, before the process is ended.
_END_TIMEOUT_S, _SECOND_END_TIMEOUT_S = 1.0, 0.3


@contextmanager
def watch_signals() -> Iterator[None]:
    """Handle Ctrl-C during a block in the main thread, unless the program ignores Ctrl-C."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    thread = threading.Thread(target=_watch, args=(receiver,), daemon=True)
    with receiver, sender:
        try:
            thread.start()
        except RuntimeError:
            # The system allows no further thread: Ctrl-C is handled when compiled code returns.
            yield
            return
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            sender.close()
            thread.join()


def _watch(receiver: socket.socket) -> None:
    """Read signal numbers until the sending socket is closed."""
    count = 0
    deadline: float | None = None
    while True:
        receiver.settimeout(None if deadline is None else max(1e-3, deadline - time.monotonic()))
        try:
            received = receiver.recv(64)
        except TimeoutError:
            promised = promise() if count == 1 else None
            if promised is None:
                _end()
            else:
                # The main thread has caught the signal and will keep partial results.
                say_stopping(promised)
                deadline = None
            continue
        if not received:
            return
        for _ in range(received.count(signal.SIGINT)):
            count += 1
            promised = promise()
            if count == 1 and promised is not None:
                say_stopping(promised)
            else:
                deadline = time.monotonic() + (_END_TIMEOUT_S if count == 1 else _SECOND_END_TIMEOUT_S)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # The progress line hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)


def occupy_descriptors() -> None:
    """Open a null device for each closed standard descriptor, so that none of our files gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system assigns the least free number, and all smaller ones are taken.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


@contextmanager
def use_open_streams() -> Iterator[None]:
    """Replace unusable standard streams during the block, and restore the old streams after it."""
    before = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        sys.stdin, sys.stdout = _open_or_null(before[0], "r", stack), _open_or_null(before[1], "w", stack)
        sys.stderr = _NotesStream(_open_or_null(before[2], "w", stack))
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def divert(stream: TextIO | None) -> None:
    """Send the unwritten output of a stream to a null device; Python would try to write it again at its exit."""
    # A stream of a test or a notebook has no descriptor.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(null)


def _open_or_null(stream: TextIO | None, mode: str, stack: contextlib.ExitStack) -> TextIO:
    """Return the stream with an encoding for ε and labels, or a null device if the stream is missing."""
    if stream is None or stream.closed:
        return cast(TextIO, stack.enter_context(open(os.devnull, mode, encoding="utf-8")))
    if mode == "w" and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


class _NotesStream:
    """A stream for notes, which drops notes that cannot be written."""

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
        """Write the buffered text."""
        try:
            self._stream.flush()
        except OSError:
            divert(self._stream)
