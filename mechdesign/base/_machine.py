"""The machine: its processors, its memory, and the limits of the process.

A process may use fewer processors than the machine has. `taskset` or a batch system may restrict a process, and a
container may have a quota of processor time.
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
    """Yield the version (1 or 2) and folder of each control group that may limit "cpu" or "memory", innermost first."""
    for line in read_lines(_OWN):
        hierarchy, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if hierarchy == "0" and not controllers:
            version, root = 2, _GROUPS
        elif controller in controllers.split(","):
            version, root = 1, _GROUPS / controller
        else:
            continue
        # In a container this path may be a path on the host; the group of the container is then the root folder.
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            yield version, folder
            if folder == root:
                break


def read_lines(path: Path) -> list[str]:
    """Return the lines of a system file; an empty list if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


# Some systems without such a limit, such as WASI, report a memory in which Python alone could not run.
_MIN_MEMORY_BYTES = 64 * 2**20
_PROC = Path("/proc")
# Files of a control group, by version: limit, usage, and the field of memory.stat for unused file pages.
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def free_memory(addresses: int = 0) -> int | None:
    """Return the bytes that the process can still use without swapping; None if the system does not report this.

    The result is the minimum of the available memory of the machine and of `memory_below_limits`.
    """
    known = [each for each in (_available(), memory_below_limits(addresses)) if each is not None]
    return min(known) if known else None


def memory_below_limits(addresses: int = 0) -> int | None:
    """Return the bytes that the process may still use under its limits; None without limits.

    The limits are RLIMIT_AS and RLIMIT_DATA (addresses and data), and the limits of control groups (versions 1 and 2)
    and their parents. RLIMIT_AS also counts addresses that are never filled: in all, `addresses`.
    """
    left = [*_process_headrooms(addresses), *_group_headrooms()]
    return max(0, min(left)) if left else None


def _available() -> int | None:
    for line in read_lines(_PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        stated = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return stated if stated >= _MIN_MEMORY_BYTES else None


def _process_headrooms(addresses: int) -> Iterator[int]:
    try:
        import resource
    except ImportError:
        # Windows and WebAssembly have no such limits.
        return
    held = [int(part) for line in read_lines(_PROC / "self/statm")[:1] for part in line.split()]
    page = os.sysconf("SC_PAGE_SIZE")
    # Positions of the pages of addresses and of data in statm; see proc(5).
    # The process has taken some of the unfilled addresses already: its addresses minus its resident pages.
    taken = page * (held[0] - held[1]) if len(held) > 1 else 0
    for name, place, unfilled in (("RLIMIT_AS", 0, max(0, addresses - taken)), ("RLIMIT_DATA", 5, 0)):
        number = getattr(resource, name, None)
        limit = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - unfilled - (page * held[place] if len(held) > place else 0)


def _group_headrooms() -> Iterator[int]:
    for version, folder in find_groups("memory"):
        if (left := _group_headroom(folder, *_FILES[version])) is not None:
            yield left


def _group_headroom(folder: Path, limit: str, usage: str, unused: str) -> int | None:
    """Return the bytes that a control group may still use; unused file pages count, as the kernel can reclaim them."""
    most, held = (_number(folder / name) for name in (limit, usage))
    if most is None or held is None:
        return None
    kept = [int(line.split()[1]) for line in read_lines(folder / "memory.stat") if line.startswith(f"{unused} ")]
    return most - held + sum(kept)


def _number(path: Path) -> int | None:
    """Return the number in a file; None if there is no file, or for words such as "max"."""
    lines = read_lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def count_processors() -> int:
    """Return the number of processors that this process may use: its affinity, or its quota of time, rounded up."""
    return max(1, min([_count_usable(), *(math.ceil(quota) for quota in _quotas())]))


def is_webassembly() -> bool:
    """Return whether this is WebAssembly, where neither threads nor processes can be started."""
    return sys.platform in ("emscripten", "wasi")


def count_threads(most: int) -> int:
    """Start threads for a moment, and return how many further threads, at most `most`, can run.

    Containers and users may have a limit on processes, which includes threads.
    """
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(most):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        # Python reports: can't start new thread.
        pass
    finally:
        end.set()
    for thread in started:
        thread.join()
    return len(started)


def _count_usable() -> int:
    """Return the number of processors in the affinity of this process, or of the machine if it is unknown."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas() -> Iterator[float]:
    """Yield the quotas of processor time of the process's control groups, in processors."""
    for version, folder in find_groups("cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        yield from _quota([word for name in names for line in read_lines(folder / name) for word in line.split()])


def _quota(numbers: list[str]) -> Iterator[float]:
    """Yield a quota in processors, from its time and its period; yield nothing if there is no limit."""
    try:
        time, period = (int(number) for number in numbers)
    except ValueError:
        # The file contains `max`, or does not exist.
        return
    if time > 0 and period > 0:
        yield time / period
