"""Ctrl-C at the command line: it is answered at once, whatever the program is computing.

Python tells the main thread of a signal only between two of its steps, and a call into compiled code may take minutes.
A thread of its own, to which the system passes signals on, says what is being done about Ctrl-C, and ends the process
where nothing is to be kept, or after a second Ctrl-C. It waits for files that are being written.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mechdesign.base import _atomic as atomic
from mechdesign.base import _interrupts as interrupts
from mechdesign.cli.console import STOPPED
from mechdesign.cli.console import say_error
from mechdesign.cli.console import say_stopping

__all__ = ["watched"]

# So many seconds the main thread has to end by itself, tidily, before the process is ended.
_PATIENCE, _LESS_PATIENCE = 1.0, 0.3


@contextmanager
def watched() -> Iterator[None]:
    """Answer Ctrl-C during the block, in the main thread and unless the program ignores it."""
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
            # The system gives this process no further thread: Ctrl-C is answered when compiled code returns.
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
    """Read the numbers of signals until the other side is closed."""
    count = 0
    deadline: float | None = None
    while True:
        receiver.settimeout(None if deadline is None else max(1e-3, deadline - time.monotonic()))
        try:
            received = receiver.recv(64)
        except TimeoutError:
            promise = interrupts.promise() if count == 1 else None
            if promise is None:
                _end()
            else:
                # The main thread has caught it, and found something to keep after all.
                say_stopping(promise)
                deadline = None
            continue
        if not received:
            return
        for _ in range(received.count(signal.SIGINT)):
            count += 1
            promise = interrupts.promise()
            if count == 1 and promise is not None:
                say_stopping(promise)
            else:
                deadline = time.monotonic() + (_PATIENCE if count == 1 else _LESS_PATIENCE)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # A line that shows progress hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)
