"""A benchmark run in a separate process, which leads its own session.

The process reads a task from standard input, and writes its results to standard output, one line of JSON per phase.
Output of solvers is redirected. The whole session ends with the run, at a limit, or if the parent process is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

import psutil

from mechdesign.base._errors import MechdesignError
from mechdesign.base._process import start
from mechdesign.runs._families import FAMILIES, Family, Instance, RowPairs
from mechdesign.runs._phases import channel_phases, fraction_phases
from mechdesign.solve._registry import Solver, solve_here
from mechdesign.synthesis._settings import SolveSettings

_STARTUP_TIMEOUT_S = 300.0
_CHECK_INTERVAL_S = 0.1
_MEGABYTE = 2**20
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# OR-Tools contains a copy of HiGHS, whose symbols may be mixed up with those of a copy that was loaded before.
_FIRST = ("ortools.linear_solver.pywraplp", "ortools.pdlp.python.pdlp")
_BY_ORTOOLS = ("cvxpy-glop", "cvxpy-pdlp")
# This problem is large enough to compile every kernel, and small enough to be solved immediately.
_WARM_UP_SIZE = 9


@dataclass(frozen=True)
class Task:
    """A problem, as a family with the number of secrets and the seed, and a solver with its settings.

    `solver` is the registered solver of `settings.solver`, or None for "auto".
    """

    family: Family
    n: int
    seed: int
    solver: Solver | None
    settings: SolveSettings


@dataclass(frozen=True)
class Outcome:
    """The end of a run, and its results.

    Attributes:
        ended: "done", "error", "time", "memory", or "crash".
        found: Results of all finished phases, as one mapping. An error or a crash has a `message`. `peak_mb` is the
            most resident memory of the process and its children, as sampled.
    """

    ended: str
    found: Mapping[str, Any]


class _EndedError(Exception):
    """A run that does not go on: how it ended, and why."""


def run_in_worker(task: Task, time_limit: float, memory: float) -> Outcome:
    """Run a task in a separate process, and end this process and those that it started.

    Args:
        task: The task.
        time_limit: Seconds, counted from the time at which all packages are loaded.
        memory: Limit in gigabytes of resident memory, for the process and its children.

    Returns:
        The outcome.
    """
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(task.settings.threads or 1))}
    child = start("mechdesign.runs._worker", "main", environment, subprocess.DEVNULL)
    watch, spent = _Watch(child.process, memory), sum(os.times()[2:4])
    found: dict[str, Any] = {}
    ended, message = "done", ""
    try:
        if not child.has_greeted(watch.read()):
            raise _EndedError("crash", f"{sys.executable} did not send the greeting of this Python version")
        watch.send(task)
        for line in iter(watch.read, b""):
            found |= json.loads(line)
            if "error" in found:
                raise _EndedError("error", found["error"])
            if "done" in found:
                break
            if "build_s" not in found:
                watch.set_limit(time_limit)
        else:
            raise _EndedError("crash", "the process ended with code {code}")
    except _EndedError as error:
        ended, message = error.args
    finally:
        child.end()
    found.setdefault("processor_s", max(0.0, sum(os.times()[2:4]) - spent - found.get("started_s", math.inf)))
    if message:
        found["message"] = message.format(code=child.process.returncode)
    return Outcome(ended, found | {"peak_mb": round(watch.peak_mb, 1)})


class _Watch:
    """Reads the lines of a process, and watches its time and its memory meanwhile."""

    def __init__(self, process: Any, memory: float) -> None:
        self.peak_mb = 0.0
        self._process, self._memory = process, memory
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.set_limit(_STARTUP_TIMEOUT_S)
        threading.Thread(target=self._read_all, daemon=True).start()

    def set_limit(self, seconds: float) -> None:
        """Set the time that is left from now on."""
        self._limit, self._deadline = seconds, time.monotonic() + seconds

    def send(self, task: Task) -> None:
        """Send a task by value, as its functions may be those of a script or a notebook."""
        from joblib import wrap_non_picklable_objects

        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(pickle.dumps(wrap_non_picklable_objects(task, keep_wrapper=False)))
            self._process.stdin.flush()

    def read(self) -> bytes:
        """Return the next line, or nothing at the end; raise `_EndedError` at a limit."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._lines.get(timeout=_CHECK_INTERVAL_S)
            self.peak_mb = max(self.peak_mb, _resident(self._process.pid) / _MEGABYTE)
            if self.peak_mb > 1024 * self._memory:
                raise _EndedError("memory", f"passed {self._memory:g} GB")
            if time.monotonic() > self._deadline:
                raise _EndedError("time", f"passed {self._limit:g} s")

    def _read_all(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")


def _resident(pid: int) -> int:
    """Return the bytes of memory of a process and its children."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        return sum(each.memory_info().rss for each in (root, *root.children(recursive=True)))
    return 0


def main() -> None:
    """Read a task, run it, and write the results."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        try:
            task = pickle.load(sys.stdin.buffer)
            _end_with_parent()
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


def _end_with_parent() -> None:
    """End this session if the parent process is gone: the system then closes the other end of the pipe.

    A solver may hold the interpreter's lock, so that no thread runs. On Linux the system itself ends the session, by a
    signal that announces an event of the pipe.
    """
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)


def run(task: Task) -> Iterator[dict[str, Any]]:
    """Yield the results of a task: first the size, after everything is loaded, and then the results of each phase."""
    for module in _FIRST if task.settings.solver in _BY_ORTOOLS else ():
        importlib.import_module(module)
    if task.solver is not None:
        solve_here(task.solver)
    # Exclude loading packages and compiling kernels from the measured time. "auto" chooses another solver for the
    # small problem.
    small = task.family.make(_WARM_UP_SIZE, 0) if not task.family.data() else FAMILIES["grid"].make(_WARM_UP_SIZE, 0)
    for settings in (task.settings, *([replace(task.settings, solver="block")] if task.solver is None else [])):
        with contextlib.suppress(MechdesignError):
            for _ in _phases(small, settings):
                pass
    instance = task.family.make(task.n, task.seed)
    size = instance.matrix.shape[0] if isinstance(instance, RowPairs) else instance.prior.size
    started = time.process_time()
    yield {"n": size, "started_s": started}
    yield from _phases(instance, task.settings)
    yield {"processor_s": time.process_time() - started, "done": True}


def _phases(instance: Instance, settings: SolveSettings) -> Iterator[dict[str, Any]]:
    if isinstance(instance, RowPairs):
        return fraction_phases(instance, settings)
    return channel_phases(instance, settings)


def _write_line(out: IO[str], found: dict[str, Any]) -> None:
    out.write(json.dumps(found) + "\n")
    out.flush()
