"""How much memory the process may still take: what the machine has free, and the limits of process and container."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mechdesign.control_groups import find_groups, read_lines

__all__ = ["free_memory", "limited_memory"]

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
