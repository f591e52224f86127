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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import promise
from mechdesign.cli._console import STOPPED, say_error, say_stopping

# Seconds that the main thread has for ending cleanly, before the process is ended.
_END_TIMEOUT_S = 0.5
_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


@contextmanager
def watch_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C during a block in the main thread, unless the program ignores Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    thread = threading.Thread(target=_watch, args=(receiver,), daemon=True)
    with receiver, sender:
        thread.start()
        try:
            signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(-1)
            sender.close()
            thread.join()


def _watch(receiver: socket.socket) -> None:
    """Answer each Ctrl-C, which arrives as a byte, until the sending socket is closed."""
    count = 0
    while True:
        try:
            if not receiver.recv(1):
                return
        except TimeoutError:
            # By then the main thread may have caught the signal, and be saving partial results.
            if count > 1 or promise() is None:
                _end()
        else:
            count += 1
        promised = promise() if count == 1 else None
        if promised is not None:
            say_stopping(promised)
        receiver.settimeout(_END_TIMEOUT_S if promised is None else None)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # The progress line hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)


@contextmanager
def use_streams() -> Iterator[None]:
    """Write UTF-8 in the block, for ε and labels; drop notes that cannot be written and output to closed streams."""
    for name, mode in _STREAMS.items():
        if getattr(sys, name) is None:
            # The system assigns the least free number, which is that of the closed stream: no file of ours may get it.
            null = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(null.fileno(), True)
            setattr(sys, name, null)
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED, Python raises no error if a disk is full or a pipe is closed, and loses the output.
        sys.stdout = open(  # noqa: SIM115
            sys.stdout.fileno(), "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
    sys.stderr = _NotesStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def divert(stream: TextIO) -> None:
    """Send the unwritten output of a stream to a null device; Python would try to write it again at its exit."""
    # A stream of a test or a notebook has no descriptor.
    with contextlib.suppress(OSError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), stream.fileno())


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
