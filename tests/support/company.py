"""Forked processes and threads that use one thing at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


def start_child(work: Callable[[], int]) -> int:
    """Start a forked process that ends with the number of `work`, or with 100 if it raises; return its id."""
    if child := os.fork():
        return child
    code = 100
    try:
        # Whoever waits for a lock for ever is stopped.
        signal.alarm(20)
        code = work()
    finally:
        os._exit(code)


def end_of(child: int) -> int:
    """Wait for a process, and return the number with which it ends."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(work: Callable[[], int]) -> int:
    """Return the number, below 100, that `work` returns in a forked process; 100 where it raised."""
    return end_of(start_child(work))


@contextmanager
def turns() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run several threads that start together and take turns, and return what they gave."""
    start, found = threading.Barrier(len(works)), []

    def run(work: Callable[[], object]) -> None:
        start.wait()
        found.append(work())

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    with turns():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == len(works)
    return found


@contextmanager
def held_by_another_thread(lock: object) -> Iterator[None]:
    """Hold a lock in another thread during the block."""
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:  # type: ignore[attr-defined]
            inside.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join()
