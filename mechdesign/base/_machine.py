"""The machine: its processors, its memory, and the limits of the process.

A machine has more processors than a process may use where `taskset` or a batch system binds it to some of them, and
where a container has a quota of their time.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_OWN, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def find_groups(controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the version, 1 or 2, and the folder of each group that may limit "cpu" or "memory", the innermost first."""
    for line in read_lines(_OWN):
        hierarchy, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if hierarchy == "0" and not controllers:
            version, root = 2, _GROUPS
        elif controller in controllers.split(","):
            version, root = 1, _GROUPS / controller
        else:
            continue
        # In a container the path may be that of the host: then the group is at the root.
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            yield version, folder
            if folder == root:
                break


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of the system, none where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


_PROC = Path("/proc")
# Of a control group, by its version: its limit, what it holds, and in its memory.stat what it holds and does not use.
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def free_memory() -> int | None:
    """Return the bytes that the process can still take without swapping, where the system says so.

    It is the least of what the machine has available and of what `limited_memory` returns.
    """
    known = [each for each in (_available(), limited_memory()) if each is not None]
    return min(known) if known else None


def limited_memory() -> int | None:
    """Return the bytes that limits leave to the process, None without any.

    Limits are those of its addresses and its data (RLIMIT_AS, RLIMIT_DATA), and those of its control groups, versions 1
    and 2, and the groups above.
    """
    left = [*_left_by_process(), *_left_by_groups()]
    return max(0, min(left)) if left else None


def _available() -> int | None:
    for line in read_lines(_PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_by_process() -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    held = [int(part) for line in read_lines(_PROC / "self/statm")[:1] for part in line.split()]
    page = os.sysconf("SC_PAGE_SIZE")
    # Pages of addresses and of data, as proc(5) lists them.
    for name, place in (("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)):
        number = getattr(resource, name, None)
        limit = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - (page * held[place] if len(held) > place else 0)


def _left_by_groups() -> Iterator[int]:
    for version, folder in find_groups("memory"):
        if (left := _left_in(folder, *_FILES[version])) is not None:
            yield left


def _left_in(folder: Path, limit: str, usage: str, unused: str) -> int | None:
    """Return what a group leaves: files that were read and are not in use are given back when memory is short."""
    most, held = (_number(folder / name) for name in (limit, usage))
    if most is None or held is None:
        return None
    kept = [int(line.split()[1]) for line in read_lines(folder / "memory.stat") if line.startswith(f"{unused} ")]
    return most - held + sum(kept)


def _number(path: Path) -> int | None:
    """Return the number in a file; None for none, and for words such as "max"."""
    lines = read_lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


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
