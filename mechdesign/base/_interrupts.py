"""What Ctrl-C does: it ends the work at once, unless something found so far is to be kept.

Python raises KeyboardInterrupt wherever the main thread happens to be, also where compiled code is being called, which
may not bear it, or halfway through a certificate. Who has something to keep opens a `scope` and calls `defer`: from
there to the end of the scope the first Ctrl-C is only noted, `check` raises it where that does no harm, and a second
one is raised at once. Threads other than the main one never see Ctrl-C, and for them nothing here does anything.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class _State:
    """Of the outermost scope: whether Ctrl-C is deferred, came, was dealt with, and came once more."""

    promise: str | None
    deferring: bool = False
    came: bool = False
    taken: bool = False
    insisted: bool = False


# Signals are the process's, and so is what they mean.
_open: _State | None = None
_promises: list[str] = []


@contextmanager
def scope(promise: str | None = None) -> Iterator[None]:
    """Let `defer` have an effect up to the end of the block; of nested scopes the outermost counts.

    A Ctrl-C that was noted and that nobody took is raised at the end. Where a program handles Ctrl-C in its own way,
    it goes on to.

    Args:
        promise: What a deferred Ctrl-C is answered with, such as "certifying the best channel found so far".
    """
    global _open
    if not _in_main_thread() or _open is not None or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    state = _open = _State(promise)
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _open = None
    if state.came and not state.taken:
        raise KeyboardInterrupt


def _note(number: int, frame: object) -> None:
    if _open is None or not _open.deferring or _open.came:
        if _open is not None:
            _open.insisted = _open.came
        raise KeyboardInterrupt
    _open.came = True


def defer() -> None:
    """Only note the first Ctrl-C from here on, to the end of the scope that is open."""
    if _open is not None and _in_main_thread():
        _open.deferring = True


@contextmanager
def promised(promise: str) -> Iterator[None]:
    """State what Ctrl-C is answered with in the block, which catches KeyboardInterrupt itself."""
    _promises.append(promise)
    try:
        yield
    finally:
        _promises.pop()


def promise() -> str | None:
    """Return what a first Ctrl-C is answered with now, None where it ends everything at once; for any thread."""
    state = _open
    if _promises:
        return _promises[0]
    return state.promise if state is not None and state.deferring else None


def noted() -> bool:
    """Tell whether a Ctrl-C was noted that nobody has taken yet."""
    return _open is not None and _open.came and not _open.taken


def insisted() -> bool:
    """Tell whether Ctrl-C came again after one that was noted: other threads learn of it in no other way."""
    return _open is not None and _open.insisted


def check() -> None:
    """Raise the Ctrl-C that was noted, once.

    Raises:
        KeyboardInterrupt: if there is one.
    """
    if _in_main_thread() and noted():
        take()
        raise KeyboardInterrupt


def take() -> bool:
    """Tell whether a Ctrl-C was noted in the scope that is open; whoever asks deals with it."""
    if _open is None or not _open.came or not _in_main_thread():
        return False
    _open.taken = True
    return True


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
