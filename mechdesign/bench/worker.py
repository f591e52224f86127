"""The other side of a run: a process of its own that builds, solves and certifies one problem.

It reads a task from standard input, and writes what it finds, phase by phase, to standard output, a line of JSON each.
What solvers print goes elsewhere. It ends when whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mechdesign.bench.channels import phases as channel_phases
from mechdesign.bench.contestants import CONTESTANTS
from mechdesign.bench.contestants import Contestant
from mechdesign.bench.families import FAMILIES
from mechdesign.bench.families.family import Instance
from mechdesign.bench.families.family import RowPairs
from mechdesign.bench.fractions import phases as fraction_phases
from mechdesign.base._errors import MechdesignError
from mechdesign.records.environment import blas

__all__ = ["main", "run"]

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
