"""Run a task in a process of its own, within limits of time and memory."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import psutil

from mechdesign.base._process import ENDING_S
from mechdesign.base._process import Child
from mechdesign.base._process import start

__all__ = ["Outcome", "run_apart"]

_STARTUP = 300.0
_LOOK = 0.05
_GIGABYTE = 2**30
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and what was found until then.

    Attributes:
        found: What the process said, phase by phase, as one mapping.
        ended: "done", "error", "time", "memory", or "crash".
        message: What is known about an error or a crash.
    """

    found: Mapping[str, Any]
    ended: str
    message: str = ""


def run_apart(task: Mapping[str, object], time_limit: float, memory: float, threads: int) -> Outcome:
    """Run a task by `mechdesign.bench.worker`, and end it with all its own when it passes a limit.

    Args:
        task: What `worker.run` takes.
        time_limit: Seconds, from when all packages are loaded.
        memory: Most gigabytes, resident, of the process and those that it starts.
        threads: Threads of the linear algebra below NumPy.
    """
    found: dict[str, Any] = {}
    with _worker(threads) as child:
        process: Any = child.process
        lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        deadline, greeted = time.monotonic() + _STARTUP, False
        while True:
            try:
                line = lines.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() > deadline:
                    return Outcome(found, "time", f"passed {time_limit:g} s")
                if _resident(process.pid) > memory * _GIGABYTE:
                    return Outcome(found, "memory", f"passed {memory:g} GB")
                continue
            if line is None:
                break
            if not greeted:
                if not child.has_greeted(line):
                    return Outcome(found, "crash", f"{sys.executable} did not say that it is this Python")
                greeted = True
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(task).encode() + b"\n")
                    process.stdin.flush()
                continue
            said = json.loads(line)
            if "ready" in said:
                deadline = time.monotonic() + time_limit
            found |= said
        # One that closes its output and goes on is ended below.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)
        code = process.poll()
    if "done" in found:
        return Outcome(found, "done")
    if "error" in found:
        return Outcome(found, "error", str(found["error"]))
    return Outcome(found, "crash", f"the process ended with code {code}")


@contextlib.contextmanager
def _worker(threads: int) -> Iterator[Child]:
    """Start a worker in a group of its own, and end the group."""
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    child = start("mechdesign.bench.worker", "main", environment, subprocess.DEVNULL)
    try:
        yield child
    finally:
        _end(child.process)
        child.end()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, those that it started, and their group."""
    with contextlib.suppress(psutil.Error):
        # Some back ends solve in a session of their own.
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    if hasattr(os, "killpg") and process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _resident(pid: int) -> int:
    """Return the bytes of memory that a process and those that it started hold."""
    total = 0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for each in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += each.memory_info().rss
    return total


def _read(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            lines.put(line)
    lines.put(None)
