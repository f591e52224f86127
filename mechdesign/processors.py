"""How many processors this process may use, and how many threads it may start.

A machine has more processors than a process may use where `taskset` or a batch system binds it to some of them, and
where a container has a quota of their time.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path

__all__ = ["count_processors", "count_threads"]


def __dir__() -> list[str]:
    return sorted(__all__)


_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def count_processors() -> int:
    """Return how many processors this process may use: those it is bound to, or its quota of time, rounded up."""
    return max(1, min([_bound(), *(math.ceil(quota) for quota in _quotas(_GROUPS, _OWN_GROUPS))]))


def count_threads(most: int) -> int:
    """Return how many threads more, at most `most`, the system lets this process have, by starting them for a moment.

    Containers and users may have a limit of processes, which threads count towards.
    """
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(most):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        # Python's word for it: can't start new thread.
        pass
    finally:
        end.set()
    for thread in started:
        thread.join()
    return len(started)


def _bound() -> int:
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yield the quotas of processor time, in processors, of the control groups that the process is in."""
    lines = (_text(own) or "").splitlines()
    unified = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    inner = groups / unified.strip("/")
    # A container may see its own group as the root, and be told its path from outside.
    for folder in dict.fromkeys((inner, *inner.parents, groups)):
        if folder.is_relative_to(groups):
            yield from _quota((_text(folder / "cpu.max") or "").split())
    older = groups / "cpu"
    yield from _quota([_text(older / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")])


def _quota(numbers: list[str]) -> Iterator[float]:
    """Yield time for each period of time, both in microseconds; nothing where there is no limit."""
    try:
        time, period = (int(number) for number in numbers)
    except ValueError:
        # It says `max`, or there is no such file.
        return
    if time > 0 and period > 0:
        yield time / period


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
