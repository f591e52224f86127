"""A benchmark run in a separate process.

The process reads a task from standard input, and writes its results to standard output, one line of JSON per phase.
Output of solvers is redirected. The process ends if its parent is gone.
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

_STARTUP_TIMEOUT_S = 300.0
_CHECK_INTERVAL_S = 0.05
_GIGABYTE = 2**30
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True)
class WorkerOutcome:
    """How a run ended, and the results of its finished phases.

    Attributes:
        found: Results of all finished phases, as one mapping.
        ended: "done", "error", "time", "memory", or "crash".
        message: Description of an error or a crash.
    """

    found: Mapping[str, Any]
    ended: str
    message: str = ""


def run_in_worker(task: Mapping[str, object], time_limit: float, memory: float, threads: int) -> WorkerOutcome:
    """Run a task in a worker process, and end the process and its children if it exceeds a limit.

    Args:
        task: Argument of `run`.
        time_limit: Seconds, counted from the time at which all packages are loaded.
        memory: Limit in gigabytes of resident memory, for the process and its children.
        threads: Number of threads of NumPy's linear algebra.

    Returns:
        The outcome.
    """
    found: dict[str, Any] = {}
    with _worker(threads) as child:
        process: Any = child.process
        lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        deadline, greeted = time.monotonic() + _STARTUP_TIMEOUT_S, False
        while True:
            try:
                line = lines.get(timeout=_CHECK_INTERVAL_S)
            except queue.Empty:
                if time.monotonic() > deadline:
                    return WorkerOutcome(found, "time", f"passed {time_limit:g} s")
                if _resident(process.pid) > memory * _GIGABYTE:
                    return WorkerOutcome(found, "memory", f"passed {memory:g} GB")
                continue
            if line is None:
                break
            if not greeted:
                if not child.has_greeted(line):
                    return WorkerOutcome(
                        found, "crash", f"{sys.executable} did not send the greeting of this Python version"
                    )
                greeted = True
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(task).encode() + b"\n")
                    process.stdin.flush()
                continue
            said = json.loads(line)
            if "ready" in said:
                deadline = time.monotonic() + time_limit
            found |= said
        # If the process has closed its output but continues, the code below ends it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)
        code = process.poll()
    if "error" in found and "done" not in found:
        return WorkerOutcome(found, "error", str(found["error"]))
    return (
        WorkerOutcome(found, "done")
        if "done" in found
        else WorkerOutcome(found, "crash", f"the process ended with code {code}")
    )


@contextlib.contextmanager
def _worker(threads: int) -> Iterator[Child]:
    """Start a worker in a separate process group, and end the group on exit of the context."""
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    child = start("mechdesign.runs._worker", "main", environment, subprocess.DEVNULL)
    try:
        yield child
    finally:
        _kill_children(child.process.pid)
        child.end()


def _kill_children(pid: int) -> None:
    """Kill the processes that a process started: some back ends solve in a session, and so a group, of their own."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()


def _resident(pid: int) -> int:
    """Return the bytes of memory of a process and its children."""
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


# This problem is large enough to compile every kernel, and small enough to be solved immediately.
_WARM_UP_SIZE = 9
# Seconds after the time limit, in which packages are loaded and the parent process can end this process first.
_GRACE_S = 330


def main() -> None:
    """Read a task, run it, and write the results."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        task = json.loads(sys.stdin.buffer.readline())
        _set_alarm(task.get("time_limit"))
        # The parent process keeps the pipe open as long as it runs and needs the result. Read without a buffer, whose
        # lock would delay the end of this process.
        threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for found in run(task):
                    _write_line(out, found)
        except MechdesignError as error:
            _write_line(out, {"error": str(error)})
        except MemoryError:
            _write_line(out, {"error": "out of memory"})
        # Any error of a solver is a result: the solver failed.
        except Exception as error:
            _write_line(out, {"error": f"{type(error).__name__}: {error}"})


def run(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results of a task: first `ready`, after everything is loaded, and then the results of each phase."""
    contestant = next(each for each in CONTESTANTS if each.name == task["contestant"])
    family, threads = FAMILIES[task["family"]], task["threads"]
    for module in contestant.first:
        importlib.import_module(module)
    small = family.make(_WARM_UP_SIZE, 0) if not family.data() else FAMILIES["grid"].make(_WARM_UP_SIZE, 0)
    # Exclude loading packages and compiling kernels from the measured time.
    with contextlib.suppress(MechdesignError):
        for _ in _phases(small, contestant, threads):
            pass
    instance = family.make(task["n"], task["seed"])
    yield {
        "ready": True,
        "secrets": instance.matrix.shape[0] if isinstance(instance, RowPairs) else instance.prior.size,
    }
    yield from _phases(instance, contestant, threads)
    yield {"peak_mb": _peak_memory(), "blas": blas(), "done": True}


def _set_alarm(limit: float | None) -> None:
    """Let the operating system end this process some time after its limit.

    A solver that holds the interpreter's lock would not notice the end of the parent process.
    """
    if limit is not None and hasattr(signal, "alarm"):
        signal.alarm(math.ceil(limit) + _GRACE_S)


def _phases(instance: Instance, contestant: Contestant, threads: int) -> Iterator[dict[str, Any]]:
    if isinstance(instance, RowPairs):
        return fraction_phases(instance, contestant, threads)
    return channel_phases(instance, contestant, threads)


def _peak_memory() -> float | None:
    """Return the peak memory in megabytes of this process or one of its children, or None if unknown."""
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    own = _high_water_mark() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / unit, 1)


def _high_water_mark() -> int | None:
    """Return VmHWM of Linux in kilobytes; getrusage would include the memory of the process before its fork."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return None


def _write_line(out: IO[str], found: dict[str, Any]) -> None:
    out.write(json.dumps(found) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
