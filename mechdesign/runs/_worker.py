"""One run in a process of its own.

It reads a task from standard input, and writes what it finds, phase by phase, to standard output, a line of JSON each.
What solvers print goes elsewhere. It ends when whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from mechdesign.base._errors import MechdesignError
from mechdesign.base._process import ENDING_S, Child, start
from mechdesign.runs._contestants import CONTESTANTS, Contestant
from mechdesign.runs._families import FAMILIES, Instance, RowPairs
from mechdesign.runs._identity import blas
from mechdesign.runs._phases import channel_phases as channel_phases
from mechdesign.runs._phases import fraction_phases as fraction_phases

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
    """Run a task by `mechdesign.runs._worker`, and end it with all its own when it passes a limit.

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
    if "error" in found and "done" not in found:
        return Outcome(found, "error", str(found["error"]))
    return Outcome(found, "done") if "done" in found else Outcome(found, "crash", f"the process ended with code {code}")


@contextlib.contextmanager
def _worker(threads: int) -> Iterator[Child]:
    """Start a worker in a group of its own, and end the group."""
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    child = start("mechdesign.runs._worker", "main", environment, subprocess.DEVNULL)
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


# Large enough for every kernel to be compiled, small enough to take no time.
_WARM_UP = 9
# Seconds for loading packages, and for the other side to end this process itself.
_GRACE = 330


def main() -> None:
    """Read a task, run it, report."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        task = json.loads(sys.stdin.buffer.readline())
        _end_at_the_latest(task.get("time_limit"))
        # The other side keeps the pipe open for as long as it lives and wants the result. Read without a buffer, whose
        # lock would hold up the end of this process.
        threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for found in run(task):
                    _say(out, found)
        except MechdesignError as error:
            _say(out, {"error": str(error)})
        except MemoryError:
            _say(out, {"error": "out of memory"})
        # Whatever a solver raises is a result, too: it failed.
        except Exception as error:
            _say(out, {"error": f"{type(error).__name__}: {error}"})


def run(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is found of a task: first `ready`, once all that is needed is loaded; then phase by phase."""
    contestant = next(each for each in CONTESTANTS if each.name == task["contestant"])
    family, threads = FAMILIES[task["family"]], task["threads"]
    for module in contestant.first:
        importlib.import_module(module)
    small = family.make(_WARM_UP, 0) if not family.data() else FAMILIES["grid"].make(_WARM_UP, 0)
    # Loading packages and compiling kernels is not what is measured.
    with contextlib.suppress(MechdesignError):
        for _ in _phases(small, contestant, threads):
            pass
    instance = family.make(task["n"], task["seed"])
    yield {
        "ready": True,
        "secrets": instance.matrix.shape[0] if isinstance(instance, RowPairs) else instance.prior.size,
    }
    yield from _phases(instance, contestant, threads)
    yield {"peak_mb": _peak(), "blas": blas(), "done": True}


def _end_at_the_latest(limit: float | None) -> None:
    """Let the system end this process some time after its limit.

    A solver that keeps the interpreter's lock would not notice that the other side is gone.
    """
    if limit is not None and hasattr(signal, "alarm"):
        signal.alarm(math.ceil(limit) + _GRACE)


def _phases(instance: Instance, contestant: Contestant, threads: int) -> Iterator[dict[str, Any]]:
    if isinstance(instance, RowPairs):
        return fraction_phases(instance, contestant, threads)
    return channel_phases(instance, contestant, threads)


def _peak() -> float | None:
    """Return the most memory that this process, or one that it started, had at once, in megabytes, where known."""
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    own = _high_water_mark() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / unit, 1)


def _high_water_mark() -> int | None:
    """Return what Linux calls VmHWM, in kilobytes: getrusage counts what the process was forked from, too."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return None


def _say(out: IO[str], found: dict[str, Any]) -> None:
    out.write(json.dumps(found) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
