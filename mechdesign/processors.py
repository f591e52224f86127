"""How many processors this process may use, and how many threads it may start.

A machine has more processors than a process may use where `taskset` or a batch system binds it to some of them, and
where a container has a quota of their time.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator

from mechdesign.control_groups import find_groups, read_lines

__all__ = ["count_processors", "count_threads"]


def __dir__() -> list[str]:
    return sorted(__all__)


def count_processors() -> int:
    """Return how many processors this process may use: those it is bound to, or its quota of time, rounded up."""
    return max(1, min([_bound(), *(math.ceil(quota) for quota in _quotas())]))


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


def _quotas() -> Iterator[float]:
    """Yield the quotas of processor time, in processors, of the control groups that the process is in."""
    for version, folder in find_groups("cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        yield from _quota([word for name in names for line in read_lines(folder / name) for word in line.split()])


def _quota(numbers: list[str]) -> Iterator[float]:
    """Yield time for each period of time, both in microseconds; nothing where there is no limit."""
    try:
        time, period = (int(number) for number in numbers)
    except ValueError:
        # It says `max`, or there is no such file.
        return
    if time > 0 and period > 0:
        yield time / period
